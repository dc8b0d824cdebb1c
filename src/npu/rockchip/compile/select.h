/* SPDX-License-Identifier: MIT */
/* Convolutions that move values rather than weigh them. */
#ifndef MICA_ROCKCHIP_COMPILE_SELECT_H
#define MICA_ROCKCHIP_COMPILE_SELECT_H

#include "npu/rockchip/compile/plan.h"

/* ---- each channel for itself ---------------------------------------------------- */

/* A depthwise convolution whose weights are all 1. */
struct rk_ones {
    uint32_t op;
    uint64_t macs;
    struct rk_cube in, out;
    uint32_t kernel_w, kernel_h, stride_x, stride_y;
    int32_t pad_left, pad_top;
    double factor;
    int32_t in_zero, out_zero; /* also the padding */
    int32_t min, max;
};

/* One window a pixel, nothing changes: kernel, strides and factor 1, zeros 0, no clamp. */
struct rk_ones rk_ones_identity(uint32_t op, struct rk_cube in, struct rk_cube out);
const char *rk_ones_problem(const struct rk_chip *chip, const struct rk_ones *ones);
/* By the timing model; infinity: the chip can't. */
double rk_ones_us(const struct rk_chip *chip, const struct rk_ones *ones);
int rk_lower_ones(struct rk_plan *plan, const struct rk_ones *ones);

/* ---- channels to other channels -------------------------------------------------- */

#define RK_NO_CHANNEL UINT32_MAX

/*
 * out channel o = (in channel source[o] - zero) * factor + out_zero, RK_NO_CHANNEL: out_zero; arrays are per output
 * channel and borrowed. Pixels outside of the input (pads) count as in_zero.
 */
struct rk_select {
    uint32_t op;
    struct rk_cube in,
        out; /* in.shape.c counts lanes: the last surface's unused ones too, if a source is behind them */
    int32_t pad_left, pad_top;
    const uint32_t *source;
    const int32_t *zero;
    const double *factor;
    int32_t in_zero, out_zero;
};

/* Looks at shapes and padding. */
const char *rk_select_problem(const struct rk_chip *chip, const struct rk_select *select);
int rk_lower_select(struct rk_plan *plan, const struct rk_select *select);

/* ---- any other direct convolution that moves ------------------------------------- */

/* A 1x1 convolution, no weights yet: to be completed by what differs. */
struct rk_weighted rk_weighted_plain(uint32_t op, struct rk_cube in, struct rk_cube out);

/* rk_weighted_problem(), and the size of the weights that rk_lower_matrix() takes. */
const char *rk_matrix_problem(const struct rk_chip *chip, const struct rk_weighted *weighted);

/*
 * A direct convolution whose non-zero weights are few: add them, then lower. Everything is freed by
 * rk_lower_matrix(), whatever it returns.
 */
struct rk_matrix {
    struct rk_weighted weighted;
    int8_t *weights; /* [o][kh][kw][i], zeroed */
};

int rk_matrix_new(struct rk_plan *plan, const struct rk_weighted *weighted, struct rk_matrix *matrix);
void rk_matrix_set(struct rk_matrix *matrix, uint32_t o, uint32_t y, uint32_t x, uint32_t i, int8_t weight);
/* All channels have this factor. */
int rk_lower_matrix(struct rk_plan *plan, struct rk_matrix *matrix, double factor);

#endif
