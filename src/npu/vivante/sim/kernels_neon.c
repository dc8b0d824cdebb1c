/* SPDX-License-Identifier: MIT */
/* The kernels for aarch64; kernels.c has the plain version and says what they compute. */
#include "npu/vivante/sim/kernels_vector.h"

#ifdef VIV_KERNELS_NEON

#include <arm_neon.h>
#include <string.h>

#define STEP 8u /* pixels a vector holds */

static void pack(int16_t *panel, const uint8_t *image, const uint32_t *taps, size_t pairs, unsigned width)
{
    for (; pairs; pairs--, taps += 2)
        for (unsigned i = 0; i < width; i += STEP, panel += 2 * STEP) {
            int16x8x2_t both = {{
                vreinterpretq_s16_u16(vmovl_u8(vld1_u8(image + taps[0] + i))),
                vreinterpretq_s16_u16(vmovl_u8(vld1_u8(image + taps[1] + i))),
            }};
            vst2q_s16(panel, both);
        }
}

/* Eight pixels' sums. */
struct sums8 {
    int32x4_t low, high;
};

static inline struct sums8 multiply_add(struct sums8 sums, int16x8x2_t pixels, int16x4_t first, int16x4_t second)
{
    sums.low = vmlal_s16(sums.low, vget_low_s16(pixels.val[0]), first);
    sums.high = vmlal_s16(sums.high, vget_high_s16(pixels.val[0]), first);
    sums.low = vmlal_s16(sums.low, vget_low_s16(pixels.val[1]), second);
    sums.high = vmlal_s16(sums.high, vget_high_s16(pixels.val[1]), second);
    return sums;
}

static inline struct sums8 no_sums(void)
{
    return (struct sums8){vdupq_n_s32(0), vdupq_n_s32(0)};
}

static inline void store_sums(int32_t *out, struct sums8 sums)
{
    vst1q_s32(out, sums.low);
    vst1q_s32(out + 4, sums.high);
}

static void dense(int32_t *sums, const int16_t *weights, const int16_t *panel, size_t pairs, unsigned width)
{
    for (unsigned i = 0; i < width; i += STEP, sums += STEP) {
        struct sums8 a = no_sums(), b = a, c = a, d = a;
        const int16_t *weight = weights, *pixel = panel + 2 * i;
        for (size_t pair = 0; pair < pairs; pair++, weight += 2 * VIV_ROWS, pixel += 2 * width) {
            int16x8x2_t x = vld2q_s16(pixel);
            a = multiply_add(a, x, vld1_dup_s16(weight), vld1_dup_s16(weight + 1));
            b = multiply_add(b, x, vld1_dup_s16(weight + 2), vld1_dup_s16(weight + 3));
            c = multiply_add(c, x, vld1_dup_s16(weight + 4), vld1_dup_s16(weight + 5));
            d = multiply_add(d, x, vld1_dup_s16(weight + 6), vld1_dup_s16(weight + 7));
        }
        store_sums(sums, a);
        store_sums(sums + width, b);
        store_sums(sums + 2 * width, c);
        store_sums(sums + 3 * width, d);
    }
}

static inline int16x8x2_t load_pair(const uint8_t *first, const uint8_t *second)
{
    return (int16x8x2_t){{
        vreinterpretq_s16_u16(vmovl_u8(vld1_u8(first))),
        vreinterpretq_s16_u16(vmovl_u8(vld1_u8(second))),
    }};
}

static void sparse(int32_t *sums, const uint8_t *image, const uint32_t *taps, const int16_t *weights, size_t pairs,
                   size_t pixels)
{
    for (size_t i = 0; i < pixels; i += 4 * STEP, image += 4 * STEP, sums += 4 * STEP) {
        struct sums8 a = no_sums(), b = a, c = a, d = a;
        for (size_t pair = 0; pair < pairs; pair++) {
            const uint8_t *first = image + taps[2 * pair], *second = image + taps[2 * pair + 1];
            int16x4_t w0 = vld1_dup_s16(weights + 2 * pair), w1 = vld1_dup_s16(weights + 2 * pair + 1);
            a = multiply_add(a, load_pair(first, second), w0, w1);
            b = multiply_add(b, load_pair(first + STEP, second + STEP), w0, w1);
            c = multiply_add(c, load_pair(first + 2 * STEP, second + 2 * STEP), w0, w1);
            d = multiply_add(d, load_pair(first + 3 * STEP, second + 3 * STEP), w0, w1);
        }
        store_sums(sums, a);
        store_sums(sums + STEP, b);
        store_sums(sums + 2 * STEP, c);
        store_sums(sums + 3 * STEP, d);
    }
}

/* Exact: see kernels_avx2.c. */
struct scale {
    float64x2_t factor, least, most;
    enum viv_rounding rounding;
};

static inline int64x2_t requantize2(int32x2_t sum, const struct scale *scale)
{
    float64x2_t value = vmulq_f64(vcvtq_f64_s64(vmovl_s32(sum)), scale->factor);
    value = vminq_f64(vmaxq_f64(value, scale->least), scale->most);
    switch (scale->rounding) {
    case VIV_ROUND_HALF_UP:
        return vcvtmq_s64_f64(vaddq_f64(value, vdupq_n_f64(0.5)));
    case VIV_ROUND_HALF_AWAY:
        return vcvtaq_s64_f64(value);
    case VIV_ROUND_HALF_EVEN:
        return vcvtnq_s64_f64(value);
    case VIV_ROUND_TO_ZERO:
        return vcvtq_s64_f64(value);
    default:
        return vcvtmq_s64_f64(value);
    }
}

static inline int32x4_t requantize4(int32x4_t sum, const struct scale *scale)
{
    return vcombine_s32(vmovn_s64(requantize2(vget_low_s32(sum), scale)),
                        vmovn_s64(requantize2(vget_high_s32(sum), scale)));
}

static double factor_of(const struct viv_post *post)
{
    uint64_t bits = (uint64_t)(1023 - post->shift) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power * post->multiplier;
}

static void requantize(uint8_t *out, const int32_t *sums, size_t count, uint32_t bias, const struct viv_post *post)
{
    if (!viv_exact_in_double(post)) {
        viv_kernels_portable.requantize(out, sums, count, bias, post);
        return;
    }
    struct scale scale = {
        .factor = vdupq_n_f64(factor_of(post)),
        .least = vdupq_n_f64(post->lowest - post->zero_point),
        .most = vdupq_n_f64(255 - post->zero_point),
        .rounding = post->rounding,
    };
    int32x4_t add = vdupq_n_s32((int32_t)bias), zero = vdupq_n_s32(post->zero_point);
    size_t i = 0;
    for (; i + STEP <= count; i += STEP) {
        int32x4_t low = requantize4(vaddq_s32(vld1q_s32(sums + i), add), &scale);
        int32x4_t high = requantize4(vaddq_s32(vld1q_s32(sums + i + 4), add), &scale);
        int16x8_t both = vcombine_s16(vqmovn_s32(vaddq_s32(low, zero)), vqmovn_s32(vaddq_s32(high, zero)));
        vst1_u8(out + i, vqmovun_s16(both));
    }
    viv_kernels_portable.requantize(out + i, sums + i, count - i, bias, post);
}

const struct viv_kernels viv_kernels_neon = {"NEON", pack, dense, sparse, requantize};

#else
typedef int viv_kernels_not_neon;
#endif
