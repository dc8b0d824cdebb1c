/* SPDX-License-Identifier: MIT */
#ifndef MICA_ROCKCHIP_COMPILE_CONSTANT_OPERAND_H
#define MICA_ROCKCHIP_COMPILE_CONSTANT_OPERAND_H

#include "npu/rockchip/compile/plan.h"

/*
 * A product with a constant that is one number a channel is a depthwise convolution, the greater or smaller of values
 * and one number a clamp: neither needs a second cube, and both give the same bytes. (Sums as a convolution's bias
 * would be rounded in other places.) Cubes of `elementwise` are not looked at.
 */
bool rk_has_constant_operand(const struct rk_plan *plan, const struct rk_elementwise *elementwise);
int rk_lower_constant_operand(struct rk_plan *plan, const struct rk_elementwise *elementwise);

/* A product of which rk_has_constant_operand() is true, with input 0 in e->a and the result to e->out. */
int rk_lower_constant_product(struct rk_plan *plan, const struct rk_elementwise *e);

#endif
