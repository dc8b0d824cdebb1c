/* SPDX-License-Identifier: MIT */
/*
 * The arithmetic that takes the time, in one plain version and in versions for
 * vector units. All versions give the same bits for every input they may get.
 *
 * Features are bytes widened to 16 bits, the channels of a pixel next to each
 * other; weights are bytes. Both go in pairs, which are multiplied and added in
 * one step. Sums have 32 bits: callers see to it that they don't overflow.
 */
#ifndef MICA_ROCKCHIP_SIM_KERNELS_H
#define MICA_ROCKCHIP_SIM_KERNELS_H

#include <stddef.h>
#include <stdint.h>

/* Output channels that a kernel computes at a time. */
#define RK_COLUMNS 16u
/* Pixels that direct() computes at a time. */
#define RK_PIXELS 6u
/* Most products of two bytes that surely fit in a sum of 32 bits. */
#define RK_MAX_TERMS 131071u
/* Vector versions read features up to this many elements beyond the last that counts. */
#define RK_IMAGE_SLACK 32u

/* What direct() multiplies: `count` runs of `pairs` neighbours, at the same offsets from every pixel. */
struct rk_runs {
    const uint32_t *offsets; /* elements */
    size_t count, pairs;
};

/*
 * Channels in the order that depthwise weights of a pair of taps have. Vector
 * units with two halves get it from putting the taps of each half together.
 */
static inline uint32_t rk_depthwise_channel(uint32_t place)
{
    return (place & 3) | (place & 4) << 1 | (place & 8) >> 1;
}

struct rk_kernels {
    const char *name;

    /*
     * sums[pixel * stride + column] = sum over runs and pairs of pixels[pixel][offset + 2 * pair + i] times
     * weights[run][pair][column][i]. `count` pixels: RK_PIXELS or 1.
     */
    void (*direct)(int32_t *sums, size_t stride, const int16_t *const *pixels, unsigned count,
                   const struct rk_runs *runs, const int8_t *weights);

    /*
     * sums[column] = sum over taps of pixel[offset + column] times weights[pair of taps][place of column][tap % 2];
     * totals[column] = the same with weights of 1, not computed when NULL. runs->pairs is 1: `count` is even, two
     * runs are a pair of taps. `odd`: the last tap is there to make their number even and isn't in totals.
     */
    void (*depthwise)(int32_t *sums, int32_t *totals, const int16_t *pixel, const struct rk_runs *runs, unsigned odd,
                      const int8_t *weights);

    /* Bytes of `count` pixels of `lanes` (8 or 16) channels, each to where the one before is plus `step` elements. */
    void (*widen)(int16_t *out, size_t step, const int8_t *in, size_t count, unsigned lanes);
};

extern const struct rk_kernels rk_kernels_portable;

/* The fastest version that this machine can run. */
const struct rk_kernels *rk_kernels_best(void);

/* Version `index` of those this machine can run, the portable one first; NULL past the last. */
const struct rk_kernels *rk_kernels_at(size_t index);

#ifdef __x86_64__
#define RK_KERNELS_AVX2
extern const struct rk_kernels rk_kernels_avx2;
#endif

#ifdef __aarch64__
#define RK_KERNELS_NEON
extern const struct rk_kernels rk_kernels_neon;
#endif

#endif
