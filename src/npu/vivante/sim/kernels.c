/* SPDX-License-Identifier: MIT */
/* The plain version, which the others are checked against, and the choice among them. */
#include "npu/vivante/sim/kernels.h"

#include <stdbool.h>
#include <string.h>

#include "npu/vivante/sim/kernels_vector.h"

static void pack(int16_t *panel, const uint8_t *image, const uint32_t *taps, size_t pairs, unsigned width)
{
    for (size_t pair = 0; pair < pairs; pair++, taps += 2)
        for (unsigned i = 0; i < width; i++) {
            *panel++ = image[taps[0] + i];
            *panel++ = image[taps[1] + i];
        }
}

static void dense(int32_t *sums, const int16_t *weights, const int16_t *panel, size_t pairs, unsigned width)
{
    uint32_t wrapping[VIV_ROWS * VIV_WIDE] = {0};
    for (size_t pair = 0; pair < pairs; pair++, weights += 2 * VIV_ROWS, panel += 2 * width)
        for (unsigned row = 0; row < VIV_ROWS; row++)
            for (unsigned i = 0; i < width; i++)
                wrapping[row * width + i] +=
                    (uint32_t)(weights[2 * row] * panel[2 * i] + weights[2 * row + 1] * panel[2 * i + 1]);
    memcpy(sums, wrapping, sizeof *sums * VIV_ROWS * width);
}

static void sparse(int32_t *sums, const uint8_t *image, const uint32_t *taps, const int16_t *weights, size_t pairs,
                   size_t pixels)
{
    for (size_t i = 0; i < pixels; i++) {
        uint32_t sum = 0;
        for (size_t tap = 0; tap < 2 * pairs; tap++)
            sum += (uint32_t)(weights[tap] * image[taps[tap] + i]);
        sums[i] = (int32_t)sum;
    }
}

/* value * 2^-shift, rounded. */
static int64_t shift_right(int64_t value, uint32_t shift, enum viv_rounding rounding)
{
    if (shift == 0)
        return value;
    if (shift > 62)
        shift = 62; /* products have 56 bits at most: more makes no difference */
    int64_t down = value >> shift;
    int64_t rest = value - (int64_t)((uint64_t)down << shift), half = INT64_C(1) << (shift - 1);
    switch (rounding) {
    case VIV_ROUND_HALF_UP:
        return down + (rest >= half);
    case VIV_ROUND_HALF_AWAY:
        return down + (rest > half || (rest == half && value > 0));
    case VIV_ROUND_HALF_EVEN:
        return down + (rest > half || (rest == half && (down & 1)));
    case VIV_ROUND_TO_ZERO:
        return down + (value < 0 && rest != 0);
    default:
        return down;
    }
}

static void requantize(uint8_t *out, const int32_t *sums, size_t count, uint32_t bias, const struct viv_post *post)
{
    for (size_t i = 0; i < count; i++) {
        int32_t sum = (int32_t)((uint32_t)sums[i] + bias);
        int64_t value = shift_right((int64_t)sum * post->multiplier, post->shift, post->rounding) + post->zero_point;
        value = value < post->lowest ? post->lowest : value;
        out[i] = (uint8_t)(value > 255 ? 255 : value);
    }
}

const struct viv_kernels viv_kernels_portable = {"portable", pack, dense, sparse, requantize};

const struct viv_kernels *viv_kernels_at(size_t index)
{
    const struct viv_kernels *known[3] = {&viv_kernels_portable};
    size_t count = 1;
#ifdef VIV_KERNELS_AVX2
    if (__builtin_cpu_supports("avx2"))
        known[count++] = &viv_kernels_avx2;
#endif
#ifdef VIV_KERNELS_NEON
    known[count++] = &viv_kernels_neon;
#endif
    return index < count ? known[index] : NULL;
}

const struct viv_kernels *viv_kernels_best(void)
{
    const struct viv_kernels *vector = viv_kernels_at(1);
    return vector ? vector : &viv_kernels_portable;
}
