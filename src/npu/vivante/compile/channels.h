/* SPDX-License-Identifier: MIT */
/*
 * Weights with a scale for each output channel, on cores that have one
 * multiplier a job. Channels are put in groups, a job each; how they get their
 * own factor (input scale * weight scale / output scale) there is one of enum
 * viv_channel_way, chosen for all groups together by what the timing model says.
 *
 * Everything that comes in between the exact result and the device's is summed
 * up for each channel (channels_error.c), together with TFLite's own rounding,
 * and must stay below 2 steps of the output: then results differ from TFLite's
 * by at most 1, whatever the input. Folded scales (an option) have a larger
 * bound, which is told.
 */
#ifndef MICA_VIVANTE_COMPILE_CHANNELS_H
#define MICA_VIVANTE_COMPILE_CHANNELS_H

#include "npu/npu.h"
#include "npu/vivante/compile/requant.h"
#include "npu/vivante/compile/weights.h"

#define VIV_MAX_PLANES 8u /* of one channel */

enum viv_channel_way {
    VIV_NEAR,   /* the group's multiplier is near enough to the channel's factor */
    VIV_FOLDED, /* the same with weights that are scaled and rounded */
    /*
     * The group's job makes planes of 8 bits, a second stage adds them up, each times a factor of 8 bits: as many
     * planes as the channel's range takes in the group's steps, one above the other; or one with weights that are
     * scaled and rounded; or that and one with what the rounding left, in finer steps. Whatever takes fewest.
     */
    VIV_ADDED,
    VIV_WAYS,
};

/* One kernel of a group's job. */
struct viv_plane {
    struct viv_weight_change change; /* what it does to the channel's weights and bias */
    uint8_t factor;                  /* in the second stage */
};

/* What of one channel matters here, and what is chosen for it. */
struct viv_channel {
    double factor;    /* what the accumulator is to be multiplied with */
    double rounding;  /* of TFLite: its result is at most so far from the exact one */
    double low, high; /* where the result can be around its zero point, in steps of the output, before clamps */
    double largest;   /* accumulator, without sign */
    bool idle;        /* it never gets far enough from zero to be seen: weights and bias count as zero */
    uint32_t group;
    uint32_t first, planes; /* in struct viv_channels */
    int32_t bias;           /* of the second stage, in its steps */
};

struct viv_channel_group {
    enum viv_channel_way way;
    struct viv_requant requant;
};

/* How the channels of one operation are computed. */
struct viv_channels {
    uint32_t count, group_count, plane_count;
    struct viv_channel *channels;     /* `count`, in order */
    struct viv_channel_group *groups; /* `group_count` */
    struct viv_plane *planes;         /* those of one channel are neighbours, channels in order */
    bool corrected;                   /* there is a second stage */
    struct viv_requant correction;    /* of the second stage: of a factor of 1 */
    double bound;   /* largest distance from TFLite's result before it becomes a whole number; below 2 unless folded */
    uint32_t costs; /* which of the costs they were chosen by */
};

/* The operation, as far as it matters here. */
struct viv_channel_layer {
    const struct viv_chip *chip;
    const struct mica_tensor *in, *weights, *bias, *out; /* usable and quantized; bias may be NULL */
    uint8_t zero;                                        /* of the job's result */
    bool relu;                                           /* the job's result is clamped there from below */
    bool fold; /* scales may be folded beyond the bound, struct mica_compile_options */
};

/* What parts of the computation cost, in cycles: from the timing model, taken as straight lines. */
struct viv_channel_costs {
    double job, kernel;               /* of the first stage, input and output included */
    uint32_t blocks;                  /* a group of more channels than that makes so many jobs */
    double second_job, second_kernel; /* all of the second stage but its kernels; each of its input planes */
};

/* Do the channel's planes go through a second stage? */
static inline bool viv_channel_corrected(const struct viv_channels *channels, const struct viv_channel *channel)
{
    return channels->groups[channel->group].way == VIV_ADDED;
}

/* Does the weights tensor have more than one scale? */
bool viv_channels_differ(const struct mica_tensor *weights);

/* Is there a way for every channel? Else the reason. Allocates nothing. */
bool viv_channels_possible(const struct viv_channel_layer *layer, char *reason, size_t size);

/*
 * The cheapest way for all channels, by one of `count` sets of costs. 0; -ENOMEM; or -ENOTSUP. What it allocates
 * viv_channels_finish() releases, also after an error.
 */
int viv_channels_choose(const struct viv_channel_layer *layer, const struct viv_channel_costs *costs, uint32_t count,
                        struct viv_channels *channels);
void viv_channels_finish(struct viv_channels *channels);

/* "3 groups of channels, 1 of near scales, 2 with a second stage" */
void viv_channels_describe(const struct viv_channels *channels, char *text, size_t size);

/* ---- channels_error.c, _judge.c, _layers.c, _rests.c: what one channel in a group would be ---- */

struct viv_channel_judge {
    const struct viv_channel_layer *layer;
    double first;        /* the group's multiplier, as the hardware has it */
    double unit;         /* what a factor of 1 of the second stage stands for */
    double low, high;    /* clamps of the output around its zero point */
    size_t outer, inner; /* dimensions of the weights before and behind that of channels */
    int16_t *weights;    /* owned: around their zero point, channel by channel; NULL: only planes of the second
                          * stage that are one above the other, and VIV_NEAR, can be tried */
    size_t taps;         /* weights of a channel */
    uint8_t in_zero;
};

/* Fills in everything but `first`, `unit` and `weights`. */
void viv_channel_judge_init(const struct viv_channel_layer *layer, struct viv_channel_judge *judge);
/* `weights`; false when memory runs out. */
bool viv_channel_judge_gather(struct viv_channel_judge *judge);
void viv_channel_judge_finish(struct viv_channel_judge *judge);

/* Few enough of a channel for rounding them to be exact enough, and for judging that quickly? */
bool viv_channel_few_weights(const struct viv_channel_judge *judge);

/* Factor, rounding, range of channel `index`. */
void viv_channel_measure(const struct viv_channel_judge *judge, uint32_t index, struct viv_channel *channel);

/*
 * How channel `index` is computed in a group of that multiplier: number of planes, 0: not near enough. *error gets the
 * distance from TFLite's result; planes (VIV_MAX_PLANES) and *bias what they are; NULL where only the number matters.
 */
uint32_t viv_channel_try(const struct viv_channel_judge *judge, enum viv_channel_way way, uint32_t index,
                         const struct viv_channel *channel, double *error, struct viv_plane *planes, int32_t *bias);

#define VIV_CHANNEL_LIMIT 1.998 /* steps of the output: below 2, results differ by at most 1 */

/* ---- channels_lower.c, channels_second.c ------------------------------------------ */

struct viv_plan;
struct viv_nn;

/* The jobs of `op`, whose data, weights and bias are inputs `data`, 1 and 2: `nn` and `weights` are as for one job. */
int viv_channels_lower(struct viv_plan *plan, uint32_t op, uint32_t data, struct viv_weights *weights,
                       const struct viv_nn *nn);

/* The second stage: from planes at first->out, where plane i of the first stage is places[i], to `out`. */
int viv_channels_second(struct viv_plan *plan, uint32_t op, const struct viv_channels *channels, const uint32_t *places,
                        const struct viv_nn *first, const struct viv_nn *nn);

/* Its jobs: how many channels one takes, columns and rows of its kernel; what all of them cost in cycles. */
struct viv_second_form {
    uint32_t block, kernel;
    double cycles;
};

void viv_channels_second_form(const struct viv_chip *chip, const struct viv_nn *nn, uint32_t count, uint32_t planes,
                              struct viv_second_form *form);

#endif
