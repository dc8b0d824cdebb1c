/* SPDX-License-Identifier: MIT */
/*
 * The arithmetic that takes the time, in one plain version and in versions for
 * vector units. All versions give the same bits for every input: sums are
 * 32-bit and wrap, as in the hardware (specification, section 6.1).
 *
 * Numbers go in pairs: a "tap" is a byte offset into the image and a 16-bit
 * weight, and two taps are multiplied and added in one step.
 */
#ifndef MICA_VIVANTE_SIM_KERNELS_H
#define MICA_VIVANTE_SIM_KERNELS_H

#include <stddef.h>
#include <stdint.h>

/* Kernels (output channels) that dense() computes at a time. */
#define VIV_ROWS 4u
/* Pixels of a full panel; a rest of the image uses narrow ones. */
#define VIV_WIDE 24u
#define VIV_NARROW 8u
/* Vector versions read the image up to this many bytes beyond the last pixel asked for. */
#define VIV_IMAGE_SLACK 64u

/* What becomes of halves, or of everything behind the point. */
enum viv_rounding {
    VIV_ROUND_HALF_UP = 0,
    VIV_ROUND_HALF_EVEN = 1,
    VIV_ROUND_TO_ZERO = 2,
    VIV_ROUND_DOWN = 3,
    VIV_ROUND_HALF_AWAY = 4, /* from zero */
};

/* Requantization (specification, section 6.1). */
struct viv_post {
    int32_t multiplier; /* 2^15 + m, or 2^23 + m */
    uint32_t shift;     /* 0..127 */
    enum viv_rounding rounding;
    int32_t zero_point;
    int32_t lowest; /* of the result: 0, or the zero point with ReLU */
};

struct viv_kernels {
    const char *name;

    /* panel[pair][pixel][2] = image[taps[2 * pair]  + pixel], image[taps[2 * pair + 1] + pixel]; width WIDE or NARROW.
     */
    void (*pack)(int16_t *panel, const uint8_t *image, const uint32_t *taps, size_t pairs, unsigned width);

    /* sums[row][width] = sum over pairs of weights[pair][row][2] times panel[pair][pixel][2]. */
    void (*dense)(int32_t *sums, const int16_t *weights, const int16_t *panel, size_t pairs, unsigned width);

    /* sums[pixel] = sum over pairs, straight from the image; `pixels` is a multiple of 32. Taps and weights: 2 a pair.
     */
    void (*sparse)(int32_t *sums, const uint8_t *image, const uint32_t *taps, const int16_t *weights, size_t pairs,
                   size_t pixels);

    /* out[i] = requantized (sums[i] + bias), wrapping. */
    void (*requantize)(uint8_t *out, const int32_t *sums, size_t count, uint32_t bias, const struct viv_post *post);
};

extern const struct viv_kernels viv_kernels_portable;

/* The fastest version that this machine can run. */
const struct viv_kernels *viv_kernels_best(void);

/* Version `index` of those this machine can run, the portable one first; NULL past the last. */
const struct viv_kernels *viv_kernels_at(size_t index);

#endif
