/* SPDX-License-Identifier: MIT */
/* Operations that are made from others, and what supports.c asks about them. */
#ifndef MICA_VIVANTE_COMPILE_COMPOSE_H
#define MICA_VIVANTE_COMPILE_COMPOSE_H

#include "npu/vivante/compile/lower.h"
#include "npu/vivante/compile/requant.h"

int viv_lower_multiply(struct viv_plan *plan, uint32_t op);
int viv_lower_prelu(struct viv_plan *plan, uint32_t op);
int viv_lower_squared_difference(struct viv_plan *plan, uint32_t op);
int viv_lower_maximum(struct viv_plan *plan, uint32_t op);
int viv_lower_quantize(struct viv_plan *plan, uint32_t op);

/* A factor as a whole weight and a multiplier of at most 1. */
bool viv_unary_factor(const struct viv_chip *chip, double factor, int32_t *weight, struct viv_requant *requant);

/* ---- table.c: any function of one value --------------------------------------------- */

int viv_lower_table(struct viv_plan *plan, uint32_t op);

/* The value of an input in a layout that it has, and the output's place in the same. */
int viv_value_by_value(struct viv_plan *plan, uint32_t op, uint32_t input, struct viv_ref *in, struct viv_ref *out);

/* Is it MAXIMUM or MINIMUM with one constant value, all quantized alike? */
bool viv_table_bounds(const struct mica_graph *graph, const struct mica_op *op);

/* Does one job give TFLite's very results? */
bool viv_table_is_one_job(const struct viv_chip *chip, const struct mica_graph *graph, const struct mica_op *op);

/* table_jobs.c: exactly table[x] for each byte x, both as the device has them; viv_table_fit() must have found it. */
int viv_table_jobs(struct viv_plan *plan, uint32_t op, const uint8_t table[256], struct viv_ref in, struct viv_ref out,
                   uint64_t bytes);

/* ---- join.c: parts of concatenations --------------------------------------------- */

/* Input `index` of a move in that layout of its own shape, quantized like the output. */
int viv_join_part(struct viv_plan *plan, uint32_t op, uint32_t index, bool planar, struct viv_ref *ref);

/* ---- moves.c: bytes to other places -------------------------------------------- */

int viv_lower_move(struct viv_plan *plan, uint32_t op);

/* Can TP jobs do it, in any layout? Else the reason. */
bool viv_move_supported(const struct mica_graph *graph, const struct mica_op *op, char *reason, size_t size);

/* ---- pool.c ----------------------------------------------------------------------- */

/* An average as a depthwise convolution, without weights; whether one window is all; the factor of the sum. */
struct mica_op viv_average_op(const struct mica_graph *graph, const struct mica_op *op);
bool viv_average_global(const struct mica_graph *graph, const struct mica_op *average);
double viv_average_factor(const struct mica_graph *graph, const struct mica_op *op, double pixels);

/* A box of outputs whose windows have equally many pixels of the image. */
struct viv_average_area {
    int32_t x, y, x_end, y_end;
    double pixels; /* 0: the window is outside */
};

/* The next one, row by row; all zero before the first. False: there is none. */
bool viv_average_next(const struct mica_graph *graph, const struct mica_op *average, struct viv_average_area *area);

int viv_lower_average(struct viv_plan *plan, uint32_t op);

/* ---- maximum.c --------------------------------------------------------------------- */

#define VIV_MAX_POOL 31    /* columns of a square that pooling jobs make in steps of two */
#define VIV_MAX_WINDOW 256 /* columns of any window */

int viv_lower_max_pool(struct viv_plan *plan, uint32_t op);

/*
 * The maxima of `count` rows of `bytes` bytes that follow each other at *ref, which becomes where they are. A storage
 * of so many bytes has viv_maximum_room().
 */
int viv_lower_maximum_of(struct viv_plan *plan, uint32_t op, uint64_t count, uint64_t bytes, struct viv_ref *ref);
uint64_t viv_maximum_room(uint64_t bytes);

/* ---- reduce.c: over any dimensions --------------------------------------------------- */

int viv_lower_reduce(struct viv_plan *plan, uint32_t op);

/* ---- transpose_conv.c ------------------------------------------------------------- */

int viv_lower_transpose_conv(struct viv_plan *plan, uint32_t op);

/* Do the kernels and offsets of all phases fit the chip? */
bool viv_transpose_conv_fits(const struct viv_chip *chip, const struct mica_graph *graph, const struct mica_op *op);

/* ---- constant.c: ADD, SUB and MUL with one constant --------------------------------- */

int viv_lower_constant(struct viv_plan *plan, uint32_t op);

/* Which of two inputs is the only constant; -1: none is, or both are. */
int viv_constant_input(const struct mica_graph *graph, const struct mica_op *op);

/* Of such an operation: NULL, or why not. */
const char *viv_constant_refusal(const struct viv_chip *chip, const struct mica_graph *graph, const struct mica_op *op);

/* ---- resize.c ------------------------------------------------------------------------ */

int viv_lower_bilinear(struct viv_plan *plan, uint32_t op);

/* NULL, or why not. */
const char *viv_bilinear_refusal(const struct mica_graph *graph, const struct mica_op *op);

#endif
