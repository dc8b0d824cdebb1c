/* SPDX-License-Identifier: MIT */
/* The two operands of an operation, broadcast to its output (elementwise_op.c). */
#ifndef MICA_ROCKCHIP_COMPILE_OPERAND_H
#define MICA_ROCKCHIP_COMPILE_OPERAND_H

#include "npu/rockchip/compile/plan.h"

/* 0, or -ENOTSUP with the reason: types, and whether each can be brought to the output's shape. */
int rk_check_operands(const struct rk_chip *chip, const struct mica_graph *graph, uint32_t op_index, char *reason,
                      size_t size);
/* The value of input 0 or 1 in the output's shape. */
int rk_lower_operand(struct rk_plan *plan, uint32_t op_index, uint32_t input, struct rk_cube *cube);

#endif
