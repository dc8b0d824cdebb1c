/* SPDX-License-Identifier: MIT */
/* What convolutions and depthwise convolutions have in common. */
#ifndef MICA_VIVANTE_COMPILE_CONV_H
#define MICA_VIVANTE_COMPILE_CONV_H

#include "npu/vivante/compile/lower.h"
#include "npu/vivante/compile/window.h"

/* New weights for `op` lowered by `window` (NULL: fully connected), strides and map not yet set. */
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

#endif
