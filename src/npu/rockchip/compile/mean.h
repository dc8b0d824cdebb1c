/* SPDX-License-Identifier: MIT */
#ifndef MICA_ROCKCHIP_COMPILE_MEAN_H
#define MICA_ROCKCHIP_COMPILE_MEAN_H

#include "npu/rockchip/compile/plan.h"

/* The mean over all columns, all rows or both, for each channel. */
struct rk_mean {
    uint32_t op;
    struct rk_cube in, out; /* out.shape: 1 wide or high where it was reduced */
    bool columns, rows;
    double factor; /* input scale / output scale */
    int32_t in_zero, out_zero, min, max;
};

/* Looks at all but addresses. */
const char *rk_mean_problem(const struct rk_chip *chip, const struct rk_mean *mean);
int rk_lower_the_mean(struct rk_plan *plan, const struct rk_mean *mean);

/* Which of an image's sides a reduction over some dimensions of a tensor goes over; NULL, or why none. */
struct rk_sides {
    bool columns, rows, channels;
};
const char *rk_sides_of(const struct mica_tensor *in, uint32_t axes, struct rk_sides *sides);

#endif
