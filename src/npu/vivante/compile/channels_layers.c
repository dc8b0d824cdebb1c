/* SPDX-License-Identifier: MIT */
/*
 * Planes of one channel one above the other: the same weights, biases 255 steps apart, so that each plane holds what is
 * in its part of the range and saturates beyond.
 */
#include "npu/vivante/compile/channels_judge.h"

#include <math.h>

/* Plane i has what is in its 255 steps above bottom[i], in the group's steps around the real zero. */
struct layers {
    uint32_t count;
    double bottom[VIV_MAX_PLANES];
    int32_t shift[VIV_MAX_PLANES];
};

static bool place_layers(const struct viv_channel_judge *judge, const struct viv_channel *channel, double low,
                         double high, struct layers *layers)
{
    double zero = judge->layer->zero, span = high - low, count = ceil(span / VIV_PLANE_STEPS);
    if (!(count <= VIV_MAX_PLANES))
        return false;
    layers->count = count < 1 ? 1 : (uint32_t)count;
    double start = (low + high - VIV_PLANE_STEPS * layers->count) / 2;
    if (layers->count == 1 && low >= -zero && high <= VIV_PLANE_STEPS - zero)
        start = -zero;
    for (uint32_t i = 0; i < layers->count; i++) {
        if (!viv_channel_shift(channel, -(start + VIV_PLANE_STEPS * i + zero) / judge->first, &layers->shift[i]))
            return false;
        layers->bottom[i] = -zero - layers->shift[i] * judge->first;
    }
    return true;
}

/* How far the sum of the planes is from the exact result, from the lower end of the range up. */
struct drift {
    double now, least, most;
    double largest; /* of the planes' factors */
};

static void drift_by(struct drift *drift, double step)
{
    drift->now += step;
    drift->least = fmin(drift->least, drift->now);
    drift->most = fmax(drift->most, drift->now);
}

/* The factor of plane `i`, which brings the sum back to where it should be at the plane's end. */
static double add_layer(const struct layers *layers, uint32_t i, double low, double high, double factor, double unit,
                        struct drift *drift)
{
    double from = fmax(low, layers->bottom[i]), to = fmin(high, layers->bottom[i] + VIV_PLANE_STEPS);
    double length = fmax(to - from, 1);
    if (i)
        drift_by(drift, (layers->bottom[i - 1] + VIV_PLANE_STEPS - layers->bottom[i]) * factor);
    double weight = viv_within(viv_nearest((factor - drift->now / length) / unit), 0, VIV_LARGEST_FACTOR);
    drift_by(drift, (weight * unit - factor) * length);
    drift->largest = fmax(drift->largest, weight * unit);
    return weight;
}

/* Planes that are enough whatever becomes of roundings; 0: it must be found out. */
static uint32_t surely_layered(const struct viv_channel_judge *judge, const struct viv_channel *channel, double factor,
                               double span)
{
    double unit = judge->unit, planes = ceil(span / VIV_PLANE_STEPS), least = VIV_PLANE_STEPS * (planes + 2) + 512;
    double drift = planes > 1 ? 0.5 * unit * VIV_PLANE_STEPS : 0.25 * unit * span;
    double error = 0.5 * (factor + 2 * unit) + drift + unit + 0.5 + channel->rounding;
    bool fits = planes >= 1 && planes <= VIV_MAX_PLANES && judge->first < 0.5 &&
                least / judge->first + channel->largest < VIV_LARGEST_SUM;
    return fits && error < VIV_CHANNEL_LIMIT ? (uint32_t)planes : 0;
}

uint32_t viv_try_layered(const struct viv_channel_judge *judge, const struct viv_channel *channel, double *error,
                         struct viv_plane *planes, int32_t *bias)
{
    double factor = channel->factor / judge->first, unit = judge->unit;
    double low = viv_within(channel->low, judge->low, judge->high) / factor;
    double high = viv_within(channel->high, judge->low, judge->high) / factor;
    struct layers layers;
    uint32_t sure = planes ? 0 : surely_layered(judge, channel, factor, high - low);
    if (sure)
        return sure;
    if (!(factor < (VIV_LARGEST_FACTOR + 0.5) * unit) || !place_layers(judge, channel, low, high, &layers))
        return 0;
    struct drift drift = {0};
    for (uint32_t i = 0; i < layers.count; i++) {
        double weight = add_layer(&layers, i, low, high, factor, unit, &drift);
        if (planes)
            planes[i] = (struct viv_plane){{1, 0, layers.shift[i]}, (uint8_t)weight};
    }
    if (bias) {
        double at_low = planes[0].factor * unit * viv_within(low - layers.bottom[0], 0, VIV_PLANE_STEPS);
        *bias = (int32_t)nearbyint((low * factor - (drift.least + drift.most) / 2 - at_low) / unit);
    }
    /* Where planes overlap, by less than an accumulator step, both round. */
    double seam = layers.count > 1 ? fmax(0, judge->first - 0.5) * drift.largest : 0;
    *error = 0.5 * drift.largest + seam + (drift.most - drift.least) / 2 + 0.5 * unit + 0.5 + channel->rounding;
    return *error < VIV_CHANNEL_LIMIT ? layers.count : 0;
}
