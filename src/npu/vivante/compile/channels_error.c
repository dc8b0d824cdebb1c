/* SPDX-License-Identifier: MIT */
/*
 * One channel in a group with a given multiplier: can it be computed there, by which planes, and how far is the result
 * from TFLite's at most, before both become whole numbers. Distances are in steps of the output, for every input there
 * can be:
 *
 *   what the planes' own rounding to 8 bits costs     half a plane's step each (nothing without a second stage)
 *   the last rounding                                 0.5
 *   factors and weights that are not the exact ones   the widest distance over the output's range, or the input's;
 *                                                     biases are moved so that it goes as far up as down
 *   biases that become whole numbers
 *   TFLite's own rounding                             0.5, or 0.5 + 2^-(shift+1) where it rounds twice
 */
#include "npu/vivante/compile/channels_judge.h"

#include <math.h>

#define IDLE_ERROR 0.95  /* of a channel that computes its zero point: what it leaves out, and the last rounding */
#define MOST_RATIO 1.003 /* of weights up to 128, which stay in 8 bits */
#define FEW_WEIGHTS 32

/* ---- one plane, no second stage ------------------------------------------------------ */

static uint32_t try_near(const struct viv_channel_judge *judge, const struct viv_channel *channel, double *error,
                         struct viv_plane *plane)
{
    double low = viv_within(channel->low, judge->low, judge->high),
           high = viv_within(channel->high, judge->low, judge->high);
    double off = judge->first / channel->factor - 1;
    int32_t shift;
    double moved =
        viv_channel_shift(channel, -off * (low + high) / 2 / judge->first, &shift) ? shift * judge->first : 0;
    *error = 0.5 + channel->rounding + fmax(fabs(off * low + moved), fabs(off * high + moved));
    if (plane)
        *plane = (struct viv_plane){{1, 0, shift}, 0};
    return *error < VIV_CHANNEL_LIMIT;
}

/*
 * Weights in the group's steps. What they are off is a sum over inputs, each anywhere in its range. The bias is moved
 * so that inputs which are all `input` above their zero point lose nothing: in the middle, least for all at once.
 */
static double folded_error(const struct viv_channel_judge *judge, uint32_t index, const struct viv_channel *channel,
                           double input, struct viv_weight_change *change)
{
    double sum = 0, size = 0, ratio = channel->factor / judge->first;
    const int16_t *weights = viv_channel_weights(judge, index);
    for (size_t i = 0; i < judge->taps; i++) {
        double off = viv_nearest(weights[i] * ratio) - weights[i] * ratio;
        sum += off;
        size += fabs(off);
    }
    double bias = viv_channel_bias(judge, index) * ratio, moved = nearbyint(bias);
    *change = (struct viv_weight_change){.ratio = ratio};
    if (viv_channel_shift(channel, bias - sum * input - moved, &change->shift))
        moved += change->shift;
    return judge->first * (127.5 * size + fabs(sum * (127.5 - judge->in_zero) + moved - bias));
}

static uint32_t try_folded(const struct viv_channel_judge *judge, uint32_t index, const struct viv_channel *channel,
                           double *error, struct viv_plane *plane)
{
    struct viv_weight_change change;
    if (channel->factor > judge->first * MOST_RATIO)
        return 0;
    bool fold = judge->layer->fold && viv_expected_error(judge) < VIV_EXPECTED_ERROR;
    if (fold && !plane)
        return 1;
    double input = fold ? viv_usual_input(judge) : 127.5 - judge->in_zero;
    *error = 0.5 + channel->rounding + folded_error(judge, index, channel, input, &change);
    if (plane)
        *plane = (struct viv_plane){change, 0};
    return fold || *error < VIV_CHANNEL_LIMIT;
}

bool viv_channel_few_weights(const struct viv_channel_judge *judge)
{
    return judge->taps <= FEW_WEIGHTS;
}

/* The ways of a second stage, by the number of planes. */
static uint32_t try_added(const struct viv_channel_judge *judge, uint32_t index, const struct viv_channel *channel,
                          double *error, struct viv_plane *planes, int32_t *bias)
{
    uint32_t layers = viv_try_layered(judge, channel, error, planes, bias);
    bool few = viv_channel_few_weights(judge);
    if (layers == 1 || !judge->weights || (!few && !judge->layer->fold))
        return layers;
    if (viv_try_scaled(judge, index, channel, error, planes, bias))
        return 1;
    if (few && layers != 2 && viv_try_refined(judge, index, channel, error, planes, bias))
        return 2;
    return layers && (planes || bias) ? viv_try_layered(judge, channel, error, planes, bias) : layers;
}

uint32_t viv_channel_try(const struct viv_channel_judge *judge, enum viv_channel_way way, uint32_t index,
                         const struct viv_channel *channel, double *error, struct viv_plane *planes, int32_t *bias)
{
    if (bias)
        *bias = 0;
    if (channel->idle) {
        *error = IDLE_ERROR;
        if (planes)
            planes[0] = (struct viv_plane){{0, 0, 0}, 0};
        return 1;
    }
    switch (way) {
    case VIV_NEAR:
        return try_near(judge, channel, error, planes);
    case VIV_FOLDED:
        return try_folded(judge, index, channel, error, planes);
    default:
        return try_added(judge, index, channel, error, planes, bias);
    }
}
