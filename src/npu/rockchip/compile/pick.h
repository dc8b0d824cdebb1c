/* SPDX-License-Identifier: MIT */
/* Rows, columns or channels of an image, in any order and as often as wanted. */
#ifndef MICA_ROCKCHIP_COMPILE_PICK_H
#define MICA_ROCKCHIP_COMPILE_PICK_H

#include "npu/rockchip/compile/plan.h"

enum rk_axis {
    RK_ROWS,
    RK_COLUMNS,
    RK_CHANNELS,
};

/* Element i of the output along the axis is element source[i] of the input; `source` is borrowed. */
struct rk_pick {
    uint32_t op;
    enum rk_axis axis;
    uint32_t count;
    const uint32_t *source;
};

struct rk_shape rk_picked_shape(struct rk_shape in, const struct rk_pick *pick);
/* NULL, or why not. */
const char *rk_pick_problem(const struct rk_chip *chip, struct rk_shape in, const struct rk_pick *pick);
/* `out` has the picked shape; the rows of both stand without gaps. Exact. */
int rk_lower_pick(struct rk_plan *plan, const struct rk_pick *pick, struct rk_cube in, struct rk_cube out);

#endif
