/* SPDX-License-Identifier: MIT */
/* What convolutions and depthwise convolutions have in common. */
#ifndef MICA_VIVANTE_COMPILE_CONV_H
#define MICA_VIVANTE_COMPILE_CONV_H

#include "npu/vivante/compile/lower.h"
#include "npu/vivante/compile/window.h"

/* New weights for `op`, strides and map not yet set. */
struct viv_weights *viv_conv_weights(struct viv_plan *plan, const struct mica_op *op, uint32_t *index);

/*
 * What both begin with: the window, the job's geometry, arithmetic and operands, and new weights. Channels, the
 * weights' strides and map, and the tile are the caller's.
 */
int viv_conv_begin(struct viv_plan *plan, uint32_t op_index, struct viv_window *window, struct viv_nn *nn,
                   struct viv_weights **weights);

/* Requantization, zero points and activation of an op whose inputs are 0 = data and 1 = weights. */
int viv_conv_arithmetic(struct viv_plan *plan, const struct mica_op *op, enum mica_activation activation,
                        struct viv_nn *nn);

/* The multiplier and the input's zero point only; `data` is the input with the data. */
int viv_conv_factor(struct viv_plan *plan, const struct mica_op *op, uint32_t data, struct viv_nn *nn);

void viv_conv_geometry(const struct viv_window *window, struct viv_nn *nn);

/* The job's input: the operation's, planar, or its space-to-depth form or lanes. */
int viv_conv_input(struct viv_plan *plan, uint32_t op, const struct viv_window *window, struct viv_ref *ref);

/* The job, or those of each group of channels, of a dense operation whose data is input 0. */
int viv_conv_job(struct viv_plan *plan, uint32_t op, struct viv_weights *weights, struct viv_nn *nn);

/* depthwise.c: one job, with hardware for it. */
int viv_depthwise_job(struct viv_plan *plan, uint32_t op, const struct viv_weights *weights, struct viv_nn nn,
                      uint64_t macs);

/* depthwise.c: the jobs of a depthwise convolution without hardware for it, `macs` in all. */
int viv_depthwise_groups(struct viv_plan *plan, uint32_t op, struct viv_weights *weights, struct viv_nn nn,
                         uint64_t macs);

#endif
