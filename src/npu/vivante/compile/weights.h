/* SPDX-License-Identifier: MIT */
/*
 * Weights of one operation in the order of the hardware: kernel by kernel,
 * channel by channel, taps in stream order (specification, section 5.1), as
 * uint8, with biases that already contain the input zero point.
 */
#ifndef MICA_VIVANTE_COMPILE_WEIGHTS_H
#define MICA_VIVANTE_COMPILE_WEIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VIV_MAX_TAPS 225 /* 15 x 15 */
#define VIV_PHASES 4     /* channels that space-to-depth makes of one */

struct viv_weights {
    /* Where they come from: weight of kernel k, channel z, original tap i is at k, z and i times these strides. */
    const uint8_t *source;
    const int32_t *bias_source; /* NULL: zeros */
    size_t kernel_stride, channel_stride, tap_stride;
    uint8_t flip; /* XORed into each byte: 0x80 makes int8 what the hardware wants (specification, section 6.2) */
    uint8_t zero_point, input_zero_point; /* as the hardware sees them */

    uint32_t kernels;
    uint32_t channels;                     /* of the source that each kernel has; depthwise 1 */
    uint32_t phases;                       /* lowered channels per source channel, 1 or VIV_PHASES */
    uint32_t taps;                         /* lowered taps per lowered channel */
    int16_t map[VIV_PHASES][VIV_MAX_TAPS]; /* original tap of each lowered one in stream order, -1: none */
    bool diagonal;                         /* kernel k sees input channel k only */
    bool pointwise;                        /* 1x1 kernels: the hardware takes channels in groups of six */

    /* Made by viv_weights_prepare(). */
    const uint8_t *data; /* [kernels][channels * phases][taps] */
    uint32_t *bias;      /* [kernels], bias - input zero point * sum(weight - zero point) */
    uint8_t *owned;
};

/* Bytes of one kernel in `data`. */
static inline size_t viv_weights_per_kernel(const struct viv_weights *weights)
{
    return (size_t)weights->channels * weights->phases * weights->taps;
}

/* Row * width + column of each tap in stream order: row pairs in blocks of three columns. */
void viv_tap_order(uint32_t width, uint32_t height, uint16_t *order);

/* Fills in `data` and `bias`. False when memory runs out. */
bool viv_weights_prepare(struct viv_weights *weights);
void viv_weights_finish(struct viv_weights *weights);

/* Share of the lowered taps that differ from the zero point, before preparation. */
double viv_weights_density(const struct viv_weights *weights);

#endif
