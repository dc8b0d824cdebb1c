/* SPDX-License-Identifier: MIT */
/* The kernels for aarch64; kernels.c has the plain version and says what they compute. */
#include "npu/rockchip/sim/kernels.h"

#ifdef RK_KERNELS_NEON

#include <arm_neon.h>
#include <string.h>

/* Sixteen sums of one pixel, in the order of its weights. */
struct sums16 {
    int32x4_t quarter[4];
};

/* Sixteen weights of each of a pair. */
struct weights16 {
    int16x8_t first[2], second[2];
};

static inline struct sums16 no_sums(void)
{
    int32x4_t zero = vdupq_n_s32(0);
    return (struct sums16){{zero, zero, zero, zero}};
}

static inline struct weights16 load_weights(const int8_t *weights)
{
    int8x16x2_t both = vld2q_s8(weights);
    return (struct weights16){
        {vmovl_s8(vget_low_s8(both.val[0])), vmovl_high_s8(both.val[0])},
        {vmovl_s8(vget_low_s8(both.val[1])), vmovl_high_s8(both.val[1])},
    };
}

static inline void add_pair(struct sums16 *sums, const int16_t *pixel, const struct weights16 *weights)
{
    for (unsigned half = 0; half < 2; half++) {
        int32x4_t low = sums->quarter[2 * half], high = sums->quarter[2 * half + 1];
        low = vmlal_n_s16(low, vget_low_s16(weights->first[half]), pixel[0]);
        high = vmlal_high_n_s16(high, weights->first[half], pixel[0]);
        sums->quarter[2 * half] = vmlal_n_s16(low, vget_low_s16(weights->second[half]), pixel[1]);
        sums->quarter[2 * half + 1] = vmlal_high_n_s16(high, weights->second[half], pixel[1]);
    }
}

static inline void store_sums(int32_t *out, const struct sums16 *sums)
{
    for (unsigned i = 0; i < 4; i++)
        vst1q_s32(out + 4 * i, sums->quarter[i]);
}

/* Three pixels at a time: 12 sums and 4 vectors of weights. */
static void direct_three(int32_t *sums, size_t stride, const int16_t *const *pixels, const struct rk_runs *runs,
                         const int8_t *weights)
{
    struct sums16 a = no_sums(), b = a, c = a;
    for (size_t run = 0; run < runs->count; run++) {
        size_t at = runs->offsets[run];
        const int16_t *p0 = pixels[0] + at, *p1 = pixels[1] + at, *p2 = pixels[2] + at;
        for (size_t i = 0; i < 2 * runs->pairs; i += 2, weights += 2 * RK_COLUMNS) {
            struct weights16 w = load_weights(weights);
            add_pair(&a, p0 + i, &w);
            add_pair(&b, p1 + i, &w);
            add_pair(&c, p2 + i, &w);
        }
    }
    store_sums(sums, &a);
    store_sums(sums + stride, &b);
    store_sums(sums + 2 * stride, &c);
}

static void direct_one(int32_t *sums, const int16_t *pixel, const struct rk_runs *runs, const int8_t *weights)
{
    struct sums16 a = no_sums();
    for (size_t run = 0; run < runs->count; run++) {
        const int16_t *x = pixel + runs->offsets[run];
        for (size_t pair = 0; pair < runs->pairs; pair++, x += 2, weights += 2 * RK_COLUMNS) {
            struct weights16 w = load_weights(weights);
            add_pair(&a, x, &w);
        }
    }
    store_sums(sums, &a);
}

static void direct(int32_t *sums, size_t stride, const int16_t *const *pixels, unsigned count,
                   const struct rk_runs *runs, const int8_t *weights)
{
    if (count != RK_PIXELS) {
        direct_one(sums, pixels[0], runs, weights);
        return;
    }
    direct_three(sums, stride, pixels, runs, weights);
    direct_three(sums + 3 * stride, stride, pixels + 3, runs, weights);
}

/* `weights` are in the order of rk_depthwise_channel(): columns 0-3 and 8-11, then 4-7 and 12-15. */
static inline void add_tap(struct sums16 *sums, const int16_t *x, const int16x8_t *weights)
{
    int16x8_t low = vld1q_s16(x), high = vld1q_s16(x + 8);
    sums->quarter[0] = vmlal_s16(sums->quarter[0], vget_low_s16(low), vget_low_s16(weights[0]));
    sums->quarter[1] = vmlal_s16(sums->quarter[1], vget_high_s16(low), vget_low_s16(weights[1]));
    sums->quarter[2] = vmlal_s16(sums->quarter[2], vget_low_s16(high), vget_high_s16(weights[0]));
    sums->quarter[3] = vmlal_s16(sums->quarter[3], vget_high_s16(high), vget_high_s16(weights[1]));
}

static inline void add_features(struct sums16 *sums, const int16_t *x)
{
    for (unsigned i = 0; i < 4; i++)
        sums->quarter[i] = vaddw_s16(sums->quarter[i], vld1_s16(x + 4 * i));
}

static void depthwise(int32_t *sums, int32_t *totals, const int16_t *pixel, const struct rk_runs *runs, unsigned odd,
                      const int8_t *weights)
{
    struct sums16 sum = no_sums(), total = sum;
    for (size_t tap = 0; tap < runs->count; tap += 2, weights += 2 * RK_COLUMNS) {
        const int16_t *x = pixel + runs->offsets[tap], *y = pixel + runs->offsets[tap + 1];
        struct weights16 w = load_weights(weights);
        add_tap(&sum, x, w.first);
        add_tap(&sum, y, w.second);
        add_features(&total, x);
        if (!odd || tap + 2 < runs->count)
            add_features(&total, y);
    }
    store_sums(sums, &sum);
    if (totals)
        store_sums(totals, &total);
}

static void widen(int16_t *out, size_t step, const int8_t *in, size_t count, unsigned lanes)
{
    for (; count; count--, out += step, in += lanes)
        for (unsigned lane = 0; lane < lanes; lane += 8)
            vst1q_s16(out + lane, vmovl_s8(vld1_s8(in + lane)));
}

const struct rk_kernels rk_kernels_neon = {"NEON", direct, depthwise, widen};

#else
typedef int rk_kernels_not_neon;
#endif
