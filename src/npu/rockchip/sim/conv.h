/* SPDX-License-Identifier: MIT */
/* What the files of the convolution pipeline share. */
#ifndef MICA_ROCKCHIP_SIM_CONV_H
#define MICA_ROCKCHIP_SIM_CONV_H

#include "npu/rockchip/sim/internal.h"
#include "npu/rockchip/sim/kernels.h"

/*
 * The pixels that the taps of all outputs look at, padding and the gaps of transposed convolutions included, a byte in
 * 16 bits: [row][column][lane].
 */
struct rk_image {
    const struct rk_conv *conv;
    uint32_t columns, rows;
    uint32_t
        lanes; /* a pixel: pixel mode: its real channels; else those of conv, rounded up to RK_COLUMNS with zeros */
    int16_t *data;
    int32_t *totals; /* [row][column]: sums over lanes; NULL: not wanted */
};

/* Elements of a pixel of a convolution's image. */
uint32_t rk_image_lanes(const struct rk_conv *conv);
/* Fetches the image into the simulator's buffer. -EFAULT, -EIO (too large), -ENOMEM. */
int rk_image_fetch(struct rk_sim *sim, const struct rk_kernels *kernels, const struct rk_conv *conv,
                   struct rk_image *image);

/* How the taps of a convolution lie in its image. */
struct rk_taps {
    bool merged;          /* direct: the taps of a row are one run */
    struct rk_runs runs;  /* offsets: see rk_taps_offsets() */
    size_t terms;         /* products in one run that aren't there to make their number even */
    size_t runs_at_once;  /* that a 32-bit sum surely takes */
    size_t columns_bytes; /* weights of RK_COLUMNS output channels */
};

void rk_taps_plan(const struct rk_conv *conv, struct rk_taps *taps);
/* Fills offsets[taps->runs.count]. */
void rk_taps_offsets(const struct rk_taps *taps, const struct rk_image *image, uint32_t *offsets);

/*
 * The weights of a convolution from memory, repacked if they aren't in the cache: taps->columns_bytes for each
 * RK_COLUMNS channels, in the order that struct rk_kernels says. Valid until the next call. -EFAULT, -EIO, -ENOMEM.
 */
int rk_weights_get(struct rk_sim *sim, const struct rk_conv *conv, const struct rk_taps *taps, const int8_t **weights);
void rk_weights_clear(struct rk_sim *sim);

/* rk_conv_run() with a version of the kernels of the caller's choice. */
int rk_conv_run_with(struct rk_sim *sim, const struct rk_kernels *kernels, const struct rk_conv *conv,
                     const struct rk_dpu *dpu);

#endif
