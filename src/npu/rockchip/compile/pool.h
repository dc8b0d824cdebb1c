/* SPDX-License-Identifier: MIT */
/* What both kinds of pooling share. */
#ifndef MICA_ROCKCHIP_COMPILE_POOL_H
#define MICA_ROCKCHIP_COMPILE_POOL_H

#include "npu/rockchip/compile/plan.h"

struct rk_pool {
    const struct mica_window *window;
    struct rk_shape in, out;
    int32_t zero, min, max; /* of the output, stored domain */
};

/* 0, or -ENOTSUP with the reason: not an image, or requantized. */
int rk_pool_check(const struct mica_graph *graph, const struct mica_op *op, char *reason, size_t size);
struct rk_pool rk_pool_of(const struct mica_graph *graph, const struct mica_op *op);

/* Strides don't matter where there is one window. */
static inline uint32_t rk_pool_stride(uint32_t windows, int32_t stride)
{
    return windows == 1 ? 1 : (uint32_t)stride;
}

#endif
