/* SPDX-License-Identifier: MIT */
/* Groups of channels for the smallest coefficients, whatever that costs in time. */
#ifndef MICA_VIVANTE_COMPILE_DEPTHWISE_SIZE_H
#define MICA_VIVANTE_COMPILE_DEPTHWISE_SIZE_H

#include "npu/vivante/compile/plan.h"

/*
 * How many channels of a depthwise operation go in a job, by encoding them all
 * for several sizes of a group. Prepares `weights`. -ENOMEM or 0.
 */
int viv_depthwise_smallest_group(const struct viv_plan *plan, struct viv_weights *weights, uint32_t *group);

#endif
