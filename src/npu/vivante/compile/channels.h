/* SPDX-License-Identifier: MIT */
/*
 * Weights with a scale for each output channel, on cores that have one
 * multiplier a job. Channels of about the same factor (input scale * weight
 * scale / output scale) share a job. Where few groups do, that is all; else the
 * groups are coarse, and a second stage multiplies each channel of their 8-bit
 * results by its own factor of 1 to 1.4, an 8-bit weight of a 1x1 depthwise job.
 *
 * The accumulators are those of the model, bit for bit: no weight is rounded.
 * What the two roundings and the 8-bit factors can cost is summed up for each
 * channel (channel_error() in the source), together with TFLite's own rounding,
 * and every channel is given to a group where the sum stays below 2 steps of
 * the output: results differ from TFLite's by at most 1, whatever the input.
 */
#ifndef MICA_VIVANTE_COMPILE_CHANNELS_H
#define MICA_VIVANTE_COMPILE_CHANNELS_H

#include "npu/vivante/compile/lower.h"
#include "npu/vivante/compile/requant.h"
#include "npu/vivante/compile/weights.h"

/* What the job's result may be around its zero point. */
struct viv_reach {
    uint8_t zero;
    bool relu;
};

/* How the channels of one operation are computed. */
struct viv_channels {
    uint32_t kernels, group_count;
    bool corrected;                /* there is a second stage */
    uint32_t *group;               /* of each channel */
    uint8_t *factor;               /* of each channel in the second stage */
    uint8_t *idle;                 /* of each channel: it computes the zero point only, its weights are so small */
    struct viv_requant *requants;  /* of each group */
    struct viv_requant correction; /* of the second stage: a weight of 255 stands for the largest factor */
    double bound;                  /* largest distance from TFLite's result before it becomes a whole number, below 2 */
};

/* Does the weights tensor have more than one scale? */
bool viv_channels_differ(const struct mica_tensor *weights);

/*
 * 0; -ENOMEM; or -ENOTSUP with the reason. `in`, `weights` and `out` are usable and quantized. What it
 * allocates viv_channels_finish() releases, also after an error.
 */
int viv_channels_choose(const struct viv_chip *chip, const struct mica_tensor *in, const struct mica_tensor *weights,
                        const struct mica_tensor *bias, const struct mica_tensor *out, const struct viv_reach *reach,
                        struct viv_channels *channels, char *reason, size_t size);
void viv_channels_finish(struct viv_channels *channels);

/* The jobs of `op`, whose data, weights and bias are inputs `data`, 1 and 2: `nn` and `weights` are as for one job. */
int viv_channels_lower(struct viv_plan *plan, uint32_t op, uint32_t data, struct viv_weights *weights,
                       const struct viv_nn *nn);

#endif
