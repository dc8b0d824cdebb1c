/* SPDX-License-Identifier: MIT */
/* Tensors for people: types, shapes, real values, the highest scores. */
#ifndef MICA_CLI_TENSOR_H
#define MICA_CLI_TENSOR_H

#include "mica/mica.h"

const char *cli_type_name(enum mica_type type); /* "uint8" */
size_t cli_type_bytes(enum mica_type type);     /* 0 for MICA_TYPE_OTHER */

#define CLI_SHAPE_SIZE 128

/* "1x224x224x3", and the same after the type: "uint8 1x224x224x3"; `text` of CLI_SHAPE_SIZE. */
void cli_dims_text(const int32_t *dims, uint32_t rank, char *text);
void cli_shape_text(const struct mica_tensor_info *tensor, char *text);

/* Elements whose type is known and whose count fits the tensor's bytes; 0 for anything else. */
size_t cli_element_count(const struct mica_tensor_info *tensor);

/* Element `index` as it is stored, and as the real number it stands for. */
double cli_raw_value(const struct mica_tensor_info *tensor, const void *data, size_t index);
double cli_real_value(const struct mica_tensor_info *tensor, const void *data, size_t index);

/* A list of scores, one a class: every dimension but one is 1. */
bool cli_is_classes(const struct mica_tensor_info *tensor);

/*
 * Indices of the at most `count` highest elements, highest first, equal ones in
 * order of their index. Returns how many.
 */
size_t cli_top(const struct mica_tensor_info *tensor, const void *data, size_t *indices, size_t count);

struct cli_range {
    double least, most, mean;
};

/* Of the real values; false for an empty tensor or one of an unknown type. */
bool cli_range(const struct mica_tensor_info *tensor, const void *data, struct cli_range *range);

#endif
