/* SPDX-License-Identifier: MIT */
/*
 * Place by place arithmetic on many planes: a convolution of 1x1 whose channels
 * are tensors, or pieces of them, the same pitch apart. Output k is
 * clamp(round(M * (bias[k] + sum(weight[k][i] * plane i))) + out_zero), of the
 * planes' bytes as they are.
 */
#ifndef MICA_VIVANTE_COMPILE_MIX_H
#define MICA_VIVANTE_COMPILE_MIX_H

#include "npu/vivante/compile/elementwise.h"

#define VIV_MIX_INPUTS 16u
#define VIV_MIX_OUTPUTS 8u

struct viv_mix {
    uint32_t inputs, outputs;
    int16_t weight[VIV_MIX_OUTPUTS][VIV_MIX_INPUTS]; /* from the least to the largest at most 255 apart */
    int32_t bias[VIV_MIX_OUTPUTS];
    struct viv_requant requant;
    uint8_t out_zero;
    bool relu; /* nothing below out_zero */
};

/*
 * `bytes` of each plane; planes begin viv_elementwise_pitch(bytes) apart. An only output is
 * written no further than its bytes when `exact`; else whole pitches are computed, what is behind the bytes means
 * nothing.
 */
int viv_mix_jobs(struct viv_plan *plan, uint32_t op, const struct viv_mix *mix, struct viv_ref in, struct viv_ref out,
                 uint64_t bytes, bool exact);

/* Inputs that follow each other: `count` planes for each group of places, or `count` for all groups. */
struct viv_mix_block {
    uint32_t count;
    bool shared;
};

#define VIV_MIX_BLOCKS 3u

/*
 * The same for `groups` at once, whose planes of exactly `bytes` bytes follow each other: each block has its planes
 * group by group, and so has the output. `bytes` is a viv_mix_foldable() number.
 */
int viv_mix_groups(struct viv_plan *plan, uint32_t op, const struct viv_mix *mix,
                   const struct viv_mix_block blocks[VIV_MIX_BLOCKS], uint32_t groups, struct viv_ref in,
                   struct viv_ref out, uint64_t bytes);

/* Are so many bytes a rectangle that an NN job can have? */
bool viv_mix_foldable(uint64_t bytes);

#endif
