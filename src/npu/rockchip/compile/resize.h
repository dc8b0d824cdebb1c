/* SPDX-License-Identifier: MIT */
/* What RESIZE operations are as convolutions: see resize.c. */
#ifndef MICA_ROCKCHIP_COMPILE_RESIZE_H
#define MICA_ROCKCHIP_COMPILE_RESIZE_H

#include "npu/rockchip/compile/select.h"

/* One axis: pixels are `spread` apart and weighted, or every `step`th is taken. */
struct rk_resize_axis {
    uint32_t in, out;
    uint32_t spread, step, first;
    uint32_t before, after; /* repeated border pixels */
    uint32_t kernel, pad;
    uint32_t weights[RK_MAX_KERNEL], unit; /* weights are in 1 / unit */
};

/* One pass of two, or the only one. */
struct rk_resize_pass {
    uint32_t op;
    struct rk_resize_axis x, y;
    uint32_t channels;
    int32_t zero;
};

#define RK_RESIZE_PASSES 2u

struct rk_resize {
    uint32_t count;
    struct rk_resize_pass passes[RK_RESIZE_PASSES];
    bool repeats; /* the one pixel of the input is everywhere */
};

/* ---- resize_form.c --------------------------------------------------------- */

/* NULL, or why not. */
const char *rk_resize_describe(const struct mica_graph *graph, uint32_t op_index, struct rk_resize *resize);
/* Takes some of the pixels, rather than putting others between. */
bool rk_resize_is_smaller(const struct rk_resize_pass *pass);
struct rk_shape rk_resize_out(const struct rk_resize_pass *pass);
/* The transposed convolution of a pass that makes larger, without weights. */
struct rk_weighted rk_resize_spreading(const struct rk_resize_pass *pass, struct rk_cube in);

/* ---- resize_phases.c ------------------------------------------------------- */

/*
 * A transposed convolution spends most of its time on the zeros between pixels. The `spread` output columns that begin
 * at a pixel see the same few pixels of the input, each with other weights: they can be channels of one pixel first,
 * which a transposed convolution that only moves makes columns of. Larger factors take half the time so.
 */
struct rk_phases {
    struct rk_weighted weigh, move;
    int32_t lowest; /* column of the input, from the pixel's own on, that the kernel begins with */
};

/* False: one transposed convolution is as quick. */
bool rk_resize_phases(const struct rk_chip *chip, const struct rk_resize_pass *pass, struct rk_cube in,
                      struct rk_phases *phases);
/* Both convolutions, in.weigh.in to out. */
int rk_lower_phases(struct rk_plan *plan, const struct rk_resize_pass *pass, struct rk_phases *phases,
                    struct rk_cube out);

#endif
