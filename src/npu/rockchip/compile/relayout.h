/* SPDX-License-Identifier: MIT */
/* The same values, in order, as pixels with another number of channels. */
#ifndef MICA_ROCKCHIP_COMPILE_RELAYOUT_H
#define MICA_ROCKCHIP_COMPILE_RELAYOUT_H

#include "npu/rockchip/compile/plan.h"

/* NULL, or why an image can't get so many channels a pixel. */
const char *rk_relayout_problem(const struct rk_chip *chip, struct rk_shape from, uint32_t channels);
/* Both cubes have their rows without gaps, and as many values. `out` may have any width and height. Exact. */
int rk_lower_relayout(struct rk_plan *plan, uint32_t op, struct rk_cube in, struct rk_cube out);

#endif
