/* SPDX-License-Identifier: MIT */
/*
 * The V7 coefficient stream (A311D): what the NN cores read kernels from.
 * Format: specification, section 5.1. A buffer is a header with one size per
 * core and the cores' bit streams, each padded to 64 bytes. Weights are coded
 * as tokens (n, v): n times the weight zero point, then v; n has 0 to
 * chip->zero_run_bits bits, one width per buffer.
 */
#ifndef MICA_VIVANTE_COMPILE_COEF_V7_H
#define MICA_VIVANTE_COMPILE_COEF_V7_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "npu/vivante/hw/chips.h"

/* The kernels of one job. */
struct viv_kernel_set {
    uint32_t count;           /* kernels, one per output channel, at least 1 */
    uint32_t channels;        /* input channels that the job has */
    uint32_t stored_channels; /* of them in `data`: all, or with `diagonal` those that kernel k alone sees */
    uint32_t taps;            /* per channel */
    bool diagonal;            /* kernel k has channels [k, k+1) * stored_channels, the others are zero points */
    bool pointwise;           /* taps 1: channels go in groups of six, never run-coded */
    uint8_t zero_point;
    const uint8_t *data;  /* [count][stored_channels][taps], in stream order */
    const uint32_t *bias; /* [count] */
    uint32_t plane;       /* bytes of an output plane: kernel k writes at k * plane */
    /* Not NULL: kernel k has order[k] - first_place where k stands here. */
    const uint32_t *order;
    uint32_t first_place;
    const uint32_t *place; /* Not NULL: kernel k writes at place[k] * plane whatever its order */
    uint32_t multiplier;   /* with `diagonal`: neighbours that see the same channel; 0 stands for 1 */
};

/* Of all of the job's channels, which kernel k is. */
static inline uint32_t viv_kernel_channel(const struct viv_kernel_set *set, uint32_t kernel)
{
    return set->order ? set->order[kernel] - set->first_place : kernel;
}

/* Its output plane. */
static inline uint32_t viv_kernel_place(const struct viv_kernel_set *set, uint32_t kernel)
{
    return set->place ? set->place[kernel] : viv_kernel_channel(set, kernel);
}

/* The only input channel that kernel k sees, with `diagonal`. */
static inline uint32_t viv_kernel_input(const struct viv_kernel_set *set, uint32_t kernel)
{
    return viv_kernel_channel(set, kernel) / (set->multiplier ? set->multiplier : 1);
}

struct viv_coefficients {
    uint8_t *data;       /* owned by the caller, free() it */
    size_t size;         /* multiple of 64, header included */
    size_t largest_core; /* bytes of the longest core's stream */
    size_t stream_bytes; /* of all cores' streams */
    uint32_t cores;      /* that have kernels */
    uint32_t zero_run_bits;
};

/*
 * Encodes `set` for superblocks of `kernels_per_core` kernels, with the zero-run
 * width that gives the smallest buffer. False when memory runs out.
 */
bool viv_coef_v7_encode(const struct viv_chip *chip, const struct viv_kernel_set *set, uint32_t kernels_per_core,
                        struct viv_coefficients *coefficients);

/* About how many bytes the streams of such a set take when `density` of its taps differ from the zero point. */
uint64_t viv_coef_v7_estimate(const struct viv_chip *chip, uint32_t kernels, uint32_t channels, uint32_t taps,
                              double density);

#endif
