/* SPDX-License-Identifier: MIT */
/*
 * Weights of one operation in the order of the hardware: kernel by kernel,
 * channel by channel, taps in stream order (specification, sections 5.1 and
 * 5.2.2), as uint8, with biases that already contain the input zero point.
 */
#ifndef MICA_VIVANTE_COMPILE_WEIGHTS_H
#define MICA_VIVANTE_COMPILE_WEIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "npu/vivante/hw/chips.h"

#define VIV_MAX_TAPS 225 /* 15 x 15 */
#define VIV_PHASES 4     /* channels that space-to-depth makes of one */

/* What becomes of one of the source's kernels (channels.h). */
struct viv_weight_change {
    double ratio;  /* weights and bias times this, rounded; 1: as they are */
    double fine;   /* not 0: instead what that rounding left of the weights, so many times, rounded; no bias */
    int32_t shift; /* added to the bias */
};

struct viv_weights {
    /* Where they come from: weight of kernel k, channel z, original tap i is at k, z and i times these strides. */
    const uint8_t *source;
    const int32_t *bias_source; /* NULL: zeros */
    size_t kernel_stride, channel_stride, tap_stride;
    uint8_t flip;       /* XORed into each byte: 0x80 makes int8 what the hardware wants (specification, section 6.2) */
    uint8_t zero_point; /* as the hardware sees it */
    int32_t bias_factor; /* of sum(weight - zero point) in the bias: minus the input zero point, on some chips + 128 */

    uint32_t kernels;
    uint32_t channels;                     /* of the source that each kernel has; depthwise 1 */
    uint32_t phases;                       /* lowered channels per source channel */
    uint32_t taps;                         /* lowered taps per lowered channel */
    int16_t map[VIV_PHASES][VIV_MAX_TAPS]; /* original tap of each lowered one in stream order, -1: none */
    int16_t *wide_map;                     /* [phases][taps], owned, where `map` is too small; NULL: `map` counts */
    bool diagonal;                         /* kernel k sees input channel k / multiplier only */
    uint32_t multiplier;                   /* of a depthwise convolution; 0 stands for 1 */
    bool pointwise;                        /* 1x1 kernels */
    /* Channels in groups (channels.h), NULL: there are none. The arrays are owned, `kernels` long. */
    uint32_t *order;                   /* kernel k is the source's order[k], */
    uint32_t *place;                   /* its result is plane place[k] of the job's output, NULL: order[k] */
    struct viv_weight_change *changes; /* and its weights are changed; NULL: none are */

    /* Made by viv_weights_prepare(). */
    const uint8_t *data; /* [kernels][channels * phases][taps] */
    uint32_t *bias;      /* [kernels], bias + bias_factor * sum(weight - zero point) */
    uint8_t *owned;
};

/* A weight as the hardware sees it after such a change. */
uint8_t viv_weight_changed(const struct viv_weight_change *change, uint8_t weight, uint8_t zero_point);

/* Original tap of a lowered one, -1: none. */
static inline int16_t viv_weights_tap(const struct viv_weights *weights, uint32_t phase, uint32_t tap)
{
    return weights->wide_map ? weights->wide_map[phase * weights->taps + tap] : weights->map[phase][tap];
}

/* Lowered channels that a kernel has. */
static inline uint32_t viv_weights_planes(const struct viv_weights *weights)
{
    return weights->channels * weights->phases;
}

static inline uint32_t viv_weights_multiplier(const struct viv_weights *weights)
{
    return weights->multiplier ? weights->multiplier : 1;
}

/* Bytes of one kernel in `data`. */
static inline size_t viv_weights_per_kernel(const struct viv_weights *weights)
{
    return (size_t)weights->channels * weights->phases * weights->taps;
}

/*
 * Row * width + column of each tap in stream order: as they come on chips with
 * blocks of nine, on others row pairs in blocks of three columns.
 */
void viv_tap_order(const struct viv_chip *chip, uint32_t width, uint32_t height, uint16_t *order);

/* Fills in `data` and `bias`. False when memory runs out. */
bool viv_weights_prepare(struct viv_weights *weights);
void viv_weights_finish(struct viv_weights *weights);

/* What weights are like, before preparation. */
struct viv_weights_profile {
    double share;   /* of the lowered taps that the source has, the others are zero points */
    double density; /* share of them that differ from the zero point */
    double entropy; /* bits of a weight of the source, order 0 */
};

struct viv_weights_profile viv_weights_profile(const struct viv_weights *weights);

#endif
