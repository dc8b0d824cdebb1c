/* SPDX-License-Identifier: MIT */
/* A regular part of an image: what split and slice take. */
#ifndef MICA_ROCKCHIP_COMPILE_PART_H
#define MICA_ROCKCHIP_COMPILE_PART_H

#include "npu/rockchip/compile/plan.h"

/* Elements first, first + step, ... along one axis. */
struct rk_range {
    uint32_t first, step, count;
};

struct rk_part {
    uint32_t op;
    struct rk_range x, y, c;
};

/* NULL, or why a part of an image of this shape can't be taken out. */
const char *rk_part_problem(const struct rk_chip *chip, struct rk_shape in, const struct rk_part *part);

/*
 * Makes the part the value of a tensor of the same type and quantization, whose shape has as many channels and pixels:
 * by address if all pixels follow each other in memory, else by convolutions. Exact.
 */
int rk_lower_part(struct rk_plan *plan, const struct rk_part *part, struct rk_cube in, uint32_t out);

/* The same to a cube that is there already, by convolutions. */
int rk_lower_part_to(struct rk_plan *plan, const struct rk_part *part, struct rk_cube in, struct rk_cube result);

/* What a range of one dimension of a tensor is in its image; NULL, or why there is none. */
const char *rk_part_dimension(const struct mica_tensor *tensor, uint32_t dimension, struct rk_range range,
                              struct rk_part *part);
/* All of a tensor. */
struct rk_part rk_part_all(const struct mica_tensor *tensor, uint32_t op);

#endif
