/* SPDX-License-Identifier: MIT */
/* The golden vectors: recorded jobs of other drivers, and the graphs they were made from. */
#ifndef TESTS_VIVANTE_COMPILE_VECTORS_H
#define TESTS_VIVANTE_COMPILE_VECTORS_H

#include "support.h"

#include <jansson.h>

struct subject {
    struct net net;
    int32_t inputs[2], output;
    uint32_t input_count;
};

bool vectors_exist(void);

/* Calls `body` for every vector whose name begins with `prefix`, paddings left out; false when there are none. */
bool vectors_each(const char *prefix, void (*body)(const json_t *vector));

/* The vector's operation as a graph of its own; close subject->net. */
void vector_build(struct subject *subject, const json_t *vector);

/* The first NN job, and a job's first descriptor. */
const json_t *vector_nn_job(const json_t *vector);
void vector_words(const json_t *job, uint32_t *words, size_t count);

/* `size` bytes (at most; zeros follow) from hexadecimal digits; free() them. */
uint8_t *vector_hex(const char *hex, size_t size);

/* Is relocation `index` the descriptor address behind the command word `command`? */
bool program_names_descriptor(const struct mica_program *program, uint32_t index, uint32_t command);

/* The first NN descriptor of a program: its stream word names it through a relocation. */
void program_nn(const struct mica_program *program, uint32_t *words);

#endif
