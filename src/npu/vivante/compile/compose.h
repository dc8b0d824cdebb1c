/* SPDX-License-Identifier: MIT */
/* Operations that are made from others, and what supports.c asks about them. */
#ifndef MICA_VIVANTE_COMPILE_COMPOSE_H
#define MICA_VIVANTE_COMPILE_COMPOSE_H

#include "npu/vivante/compile/lower.h"
#include "npu/vivante/compile/requant.h"

int viv_lower_maximum(struct viv_plan *plan, uint32_t op);
int viv_lower_unary(struct viv_plan *plan, uint32_t op);
int viv_lower_fold(struct viv_plan *plan, uint32_t op);

/* A factor as a whole weight and a multiplier of at most 1. */
bool viv_unary_factor(const struct viv_chip *chip, double factor, int32_t *weight, struct viv_requant *requant);

/* Weights of what is above and below zero. */
struct viv_fold {
    int32_t weight[2];
    struct viv_requant requant;
    double error; /* largest error of the sum before rounding, in steps of the output */
};

bool viv_fold_weights(const struct viv_chip *chip, const struct mica_op *op, const struct mica_tensor *in,
                      const struct mica_tensor *out, struct viv_fold *fold);

/* ---- moves.c: bytes to other places -------------------------------------------- */

int viv_lower_move(struct viv_plan *plan, uint32_t op);

/* Can TP jobs do it, in any layout? Else the reason. */
bool viv_move_supported(const struct mica_graph *graph, const struct mica_op *op, char *reason, size_t size);

/* ---- pool.c ----------------------------------------------------------------------- */

/* An average as a depthwise convolution, without weights; whether one window is all; the factor of the sum. */
struct mica_op viv_average_op(const struct mica_graph *graph, const struct mica_op *op);
bool viv_average_global(const struct mica_graph *graph, const struct mica_op *average);
double viv_average_factor(const struct mica_graph *graph, const struct mica_op *op);

int viv_lower_average(struct viv_plan *plan, uint32_t op);
#define VIV_MAX_POOL 31 /* columns of a window of a maximum, in steps of two */

struct mica_window viv_maximum_window(const struct mica_graph *graph, const struct mica_op *op);
int viv_lower_max_pool(struct viv_plan *plan, uint32_t op);

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
