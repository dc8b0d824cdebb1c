/* SPDX-License-Identifier: MIT */
/* Computed values that are repeated over rows, columns or channels of an image. */
#ifndef MICA_ROCKCHIP_COMPILE_BROADCAST_H
#define MICA_ROCKCHIP_COMPILE_BROADCAST_H

#include "npu/rockchip/compile/plan.h"

/* NULL, or why `from` can't be repeated to `to`; each of their sizes agrees or is 1. */
const char *rk_broadcast_problem(const struct rk_chip *chip, struct rk_shape from, struct rk_shape to);

/* `out` gets a cube of shape `to`, whose surfaces may stand further apart than dense ones. */
int rk_lower_broadcast(struct rk_plan *plan, uint32_t op, struct rk_cube in, int32_t zero, struct rk_shape to,
                       struct rk_cube *out);

#endif
