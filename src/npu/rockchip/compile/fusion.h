/* SPDX-License-Identifier: MIT */
/*
 * A convolution and the addition that alone reads its result, as one task: the second cube comes in behind the
 * accumulators (specification, section 9), and the convolution's result never sees memory.
 */
#ifndef MICA_ROCKCHIP_COMPILE_FUSION_H
#define MICA_ROCKCHIP_COMPILE_FUSION_H

#include "npu/rockchip/compile/dpu_task.h"
#include "npu/rockchip/compile/weighted.h"

/* What is added to a convolution's result, and what the sum is. rk_weighted's out_zero, min and max stay those of the
 * convolution, its `out` is the sum's cube. */
struct rk_addend {
    struct rk_cube cube;                 /* of out's shape, rows without gaps */
    double scale_conv, scale, scale_out; /* of the convolution's result, the cube and the sum */
    int32_t zero, zero_out, min, max;    /* of the cube; of the sum */
};

/* The stages behind the accumulator that make the sum of some channels (fusion.c). */
struct rk_fusion {
    int32_t lift;  /* added in BS, so that its clamp at 0 is the convolution's lower bound; BN takes it back */
    int32_t upper; /* the convolution's upper bound, lifted */
    struct rk_dpu_stages stages; /* b_offset, b_scale, out_offset, out_scale, relu, relu_max */
};

/*
 * Fills in the fusion for channels [first, first + count), which `requant` serves. False: the sum would not be
 * within 1 of that of the rounded result, or a bound can't be had.
 */
bool rk_fusion_make(const struct rk_weighted *weighted, const struct rk_channel *channels, uint32_t first,
                    uint32_t count, const struct rk_requant *requant, struct rk_fusion *fusion);
/* What a channel's coefficient has added for the lift. */
int64_t rk_fusion_lift(const struct rk_requant *requant, const struct rk_fusion *fusion, struct rk_factor channel);

/* Can tasks of this convolution read their addend? Looks at shapes. */
bool rk_fusion_readable(const struct rk_chip *chip, const struct rk_weighted *weighted);

/* ---- in the graph ------------------------------------------------------------- */

/* The convolution that an addition shall take into itself, RK_NONE: none. */
uint32_t rk_fused_conv(const struct rk_plan *plan, uint32_t add);
/* Does an addition behind it take this convolution into itself? */
bool rk_is_fused(const struct rk_plan *plan, uint32_t conv);

/* Of rk_lower_fused() and what it calls: it has to be two tasks, nothing was done. */
#define RK_UNFUSED 1
/* Lowers both as one. `out`: the sum's tensor. */
int rk_lower_fused(struct rk_plan *plan, uint32_t conv, struct rk_elementwise sum, uint32_t out);

#endif
