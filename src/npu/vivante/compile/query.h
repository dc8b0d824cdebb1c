/* SPDX-License-Identifier: MIT */
/* A question whether the chip can run an operation, and answers that many operations share. */
#ifndef MICA_VIVANTE_COMPILE_QUERY_H
#define MICA_VIVANTE_COMPILE_QUERY_H

#include "npu/vivante/compile/plan.h"

struct viv_query {
    const struct viv_chip *chip;
    const struct mica_graph *graph;
    const struct mica_op *op;
    char *reason; /* room of `size` bytes for the answer, a sentence when it is no */
    size_t size;
};

/* Writes the reason; false. */
bool viv_refuse(const struct viv_query *query, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- each: true, or false with the reason; `what` names the tensor in it --------- */

/* A tensor that the device computes or reads as 8-bit data. */
bool viv_check_data(const struct viv_query *query, const struct mica_tensor *tensor, const char *what);
/* The same with one scale and zero point. */
bool viv_check_quantized(const struct viv_query *query, const struct mica_tensor *tensor, const char *what);
bool viv_check_same_type(const struct viv_query *query, const struct mica_tensor *a, const struct mica_tensor *b);
/* An image of batch 1 that the TP cores can transpose, should a neighbour need it in the other layout. */
bool viv_check_image(const struct viv_query *query, const struct mica_tensor *tensor, const char *what);
/* Without the batch: tensors of any rank that may be needed in either layout. */
bool viv_check_layouts(const struct viv_query *query, const struct mica_tensor *tensor, const char *what);
/* viv_check_image() of one that is quantized, of rank 4. */
bool viv_check_image4(const struct viv_query *query, const struct mica_tensor *tensor, const char *what);
/* Has in * weight / out a multiplier and a shift? */
bool viv_check_scale(const struct viv_query *query, float in, float weight, float out);
bool viv_check_channels(const struct viv_query *query, uint32_t inputs, uint32_t outputs);

/* Input `index` of an operation that moves or joins: quantized like the output, or made so. */
bool viv_check_part(const struct viv_query *query, uint32_t index);
/* Two tensors of which at most one is constant, that broadcast, and an output, all of one type and quantized. */
bool viv_check_pair(const struct viv_query *query);

bool viv_is_byte(const struct mica_tensor *tensor);
bool viv_same_shape(const struct mica_tensor *a, const struct mica_tensor *b);
/* Type, scale and zero point; both are quantized. */
bool viv_same_quantization(const struct mica_tensor *a, const struct mica_tensor *b);

/* ---- what the chip takes, one function an operation or a few alike ---------------- */

bool viv_supports_conv(const struct viv_query *query); /* and depthwise */
bool viv_supports_transpose_conv(const struct viv_query *query);
bool viv_supports_fully_connected(const struct viv_query *query);
bool viv_supports_add(const struct viv_query *query);
bool viv_supports_constant(const struct viv_query *query);
bool viv_supports_multiply(const struct viv_query *query);
bool viv_supports_prelu(const struct viv_query *query);
bool viv_supports_squared_difference(const struct viv_query *query);
bool viv_supports_maximum(const struct viv_query *query);
bool viv_supports_table(const struct viv_query *query);
bool viv_supports_quantize(const struct viv_query *query);
bool viv_supports_bilinear(const struct viv_query *query);
bool viv_supports_move(const struct viv_query *query);
bool viv_supports_concatenation(const struct viv_query *query);
bool viv_supports_pad(const struct viv_query *query);
bool viv_supports_reshape(const struct viv_query *query);
bool viv_supports_average(const struct viv_query *query);
bool viv_supports_max_pool(const struct viv_query *query);
bool viv_supports_reduce(const struct viv_query *query);

#endif
