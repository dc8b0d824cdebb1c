/* SPDX-License-Identifier: MIT */
/* What convolutions and depthwise convolutions have in common. */
#ifndef MICA_VIVANTE_COMPILE_CONV_H
#define MICA_VIVANTE_COMPILE_CONV_H

#include "npu/vivante/compile/lower.h"
#include "npu/vivante/compile/window.h"

/* New weights for `op` lowered by `window` (NULL: fully connected), strides and map not yet set. */
struct viv_weights *viv_conv_weights(struct viv_plan *plan, const struct mica_op *op, uint32_t *index);

/*
 * The job's input: the operation's, planar, or its space-to-depth form.
 */
int viv_conv_input(struct viv_plan *plan, uint32_t op, const struct viv_window *window, struct viv_ref *ref);

/* Geometry, arithmetic and zero points of the job; channels, addresses, weights and tile are the caller's. */
int viv_conv_geometry(struct viv_plan *plan, const struct mica_op *op, const struct viv_window *window,
                      struct viv_nn *nn);

/* Requantization, zero points and activation of an op whose inputs are 0 = data and 1 = weights. */
int viv_conv_arithmetic(struct viv_plan *plan, const struct mica_op *op, enum mica_activation activation,
                        struct viv_nn *nn);

#endif
