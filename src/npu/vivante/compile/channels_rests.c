/* SPDX-License-Identifier: MIT */
/* Planes with weights that are scaled and rounded, and with what that leaves of them. */
#include "npu/vivante/compile/channels_judge.h"

#include <math.h>

#define FINEST 254.0 /* how often a rounding rest of up to 0.5 goes into an 8-bit weight */
#define ATTEMPTS 4

/* What rounding leaves of the weights times `ratio`, also without signs; the same at `fine` times that, and what is
 * left then. */
struct rests {
    double sum, size, fine_up, fine_down, last, last_size;
};

static void measure_rests(const struct viv_channel_judge *judge, uint32_t index, double ratio, double fine,
                          struct rests *rests)
{
    *rests = (struct rests){0};
    const int16_t *weights = viv_channel_weights(judge, index);
    for (size_t i = 0; i < judge->taps; i++) {
        double scaled = weights[i] * ratio, rest = scaled - viv_nearest(scaled), whole = viv_nearest(rest * fine);
        double last = fine > 0 ? whole / fine - rest : 0;
        rests->sum += rest;
        rests->size += fabs(rest);
        rests->fine_up += whole > 0 ? whole : 0;
        rests->fine_down += whole < 0 ? -whole : 0;
        rests->last += last;
        rests->last_size += fabs(last);
    }
}

/* Rests alone, without signs. */
static double measure_size(const struct viv_channel_judge *judge, uint32_t index, double ratio)
{
    const int16_t *weights = viv_channel_weights(judge, index);
    double size = 0;
    for (size_t i = 0; i < judge->taps; i++)
        size += fabs(weights[i] * ratio - viv_nearest(weights[i] * ratio));
    return size;
}

struct refined {
    double weight, fine_weight, ratio, fine; /* weight and fine_weight: factors of the second stage */
    double fine_low, fine_high;              /* of the second plane, in the group's steps */
    struct rests rests;
};

/* Whether the second plane's range fits it, with factors that make the first one hold what the output needs. */
static bool fit_refined(const struct viv_channel_judge *judge, uint32_t index, const struct viv_channel *channel,
                        double span, struct refined *refined)
{
    double unit = judge->unit, first = judge->first, below = judge->in_zero, above = 255 - below;
    refined->weight = ceil(fmax(channel->factor / (first * unit), span / VIV_PLANE_STEPS / unit) - 1e-9);
    for (int i = 0; i < ATTEMPTS && refined->weight <= VIV_LARGEST_FACTOR; i++) {
        refined->ratio = channel->factor / (first * refined->weight * unit);
        double most = fmin(FINEST, 250 / (first * 255 * measure_size(judge, index, refined->ratio) + 1e-9));
        refined->fine_weight = ceil(refined->weight / most);
        refined->fine = refined->weight / refined->fine_weight;
        if (refined->fine < 2)
            return false;
        measure_rests(judge, index, refined->ratio, refined->fine, &refined->rests);
        refined->fine_high = first * (refined->rests.fine_up * above + refined->rests.fine_down * below);
        refined->fine_low = -first * (refined->rests.fine_up * below + refined->rests.fine_down * above);
        double spread = (refined->fine_high - refined->fine_low) * refined->fine_weight * unit;
        double needed = ceil((span + spread) / VIV_PLANE_STEPS / unit);
        if (refined->fine_high - refined->fine_low <= VIV_PLANE_STEPS - 1 && refined->weight >= needed)
            return true;
        refined->weight = fmax(needed, refined->weight + 1);
    }
    return false;
}

/* Rests of rounding are a quarter on average: with a third of that the error would still be too large. */
static bool hopeless(const struct viv_channel_judge *judge)
{
    double rests = judge->first * (double)judge->taps * 255 / 4, fine = fmin(FINEST, 250 / rests);
    return rests / 2 / fine / 3 > 1;
}

uint32_t viv_try_refined(const struct viv_channel_judge *judge, uint32_t index, const struct viv_channel *channel,
                         double *error, struct viv_plane *planes, int32_t *bias)
{
    double low = viv_within(channel->low, judge->low, judge->high),
           high = viv_within(channel->high, judge->low, judge->high);
    double unit = judge->unit, first = judge->first, zero = judge->layer->zero;
    struct refined r;
    if (channel->factor > first * VIV_LARGEST_FACTOR * unit || hopeless(judge) ||
        !fit_refined(judge, index, channel, high - low, &r))
        return 0;
    double coarse = r.weight * unit, fine = r.fine_weight * unit, last = coarse * first;
    *error = 0.5 * (coarse + fine) + last * (127.5 * r.rests.last_size + 0.5) + 0.5 * unit + 0.5 + channel->rounding;
    if (*error >= VIV_CHANNEL_LIMIT)
        return 0;
    double bottom = ((low + high) - fine * (r.fine_low + r.fine_high)) / 2 / coarse - VIV_PLANE_STEPS / 2;
    double fine_bottom = (r.fine_low + r.fine_high - VIV_PLANE_STEPS) / 2;
    int32_t shift, fine_shift;
    if (!viv_channel_shift(channel, -(bottom + zero) / first, &shift) ||
        !viv_channel_shift(channel, -(fine_bottom + zero) / first, &fine_shift))
        return 0;
    if (planes) {
        planes[0] = (struct viv_plane){{r.ratio, 0, shift}, (uint8_t)r.weight};
        planes[1] = (struct viv_plane){{r.ratio, r.fine, fine_shift}, (uint8_t)r.fine_weight};
    }
    if (bias) {
        double at = coarse * (-zero - shift * first) + fine * (-zero - fine_shift * first);
        *bias = (int32_t)nearbyint((at - last * r.rests.last * (127.5 - judge->in_zero)) / unit);
    }
    return 2;
}

/* A plane with scaled and rounded weights alone, as many times the output's step as its range needs. */
uint32_t viv_try_scaled(const struct viv_channel_judge *judge, uint32_t index, const struct viv_channel *channel,
                        double *error, struct viv_plane *plane, int32_t *bias)
{
    double low = viv_within(channel->low, judge->low, judge->high),
           high = viv_within(channel->high, judge->low, judge->high);
    double unit = judge->unit, first = judge->first, zero = judge->layer->zero;
    double factor = ceil(fmax(channel->factor / (first * unit), (high - low) / (VIV_PLANE_STEPS - 1) / unit) - 1e-9);
    double coarse = factor * unit, last = coarse * first;
    bool fold = judge->layer->fold && viv_expected_error(judge) * coarse < VIV_EXPECTED_ERROR;
    struct rests rests;
    int32_t shift;
    if (factor > VIV_LARGEST_FACTOR || (!fold && last * 127.5 * (double)judge->taps / 4 / 3 > 1))
        return 0;
    double bottom = (low + high) / 2 / coarse - VIV_PLANE_STEPS / 2;
    if (!viv_channel_shift(channel, -(bottom + zero) / first, &shift))
        return 0;
    if (fold && !plane)
        return 1;
    measure_rests(judge, index, channel->factor / last, 0, &rests);
    double input = fold ? viv_usual_input(judge) : 127.5 - judge->in_zero;
    double uneven = fabs(rests.sum * (127.5 - judge->in_zero - input));
    *error = 0.5 * coarse + last * (127.5 * rests.size + uneven + 0.5) + 0.5 * unit + 0.5 + channel->rounding;
    if (plane)
        *plane = (struct viv_plane){{channel->factor / last, 0, shift}, (uint8_t)factor};
    if (bias) /* with what is left out of the weights */
        *bias = (int32_t)nearbyint((coarse * (-zero - shift * first) + last * rests.sum * input) / unit);
    return fold || *error < VIV_CHANNEL_LIMIT;
}
