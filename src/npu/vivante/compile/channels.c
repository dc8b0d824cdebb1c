/* SPDX-License-Identifier: MIT */
#include "npu/vivante/compile/channels.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/checked.h"

#define LARGEST 255u           /* weight of the second stage */
#define LIMIT 1.998            /* steps of the output: below 2, results differ by at most 1 */
#define IDLE_STEPS 0.45        /* a channel that never gets further from zero than this rounds to it everywhere */
#define SECOND_STAGE_GROUP 32u /* channels of a job of the second stage, about */
#define ANCHORS 16u            /* places of a group's multiplier that are tried */

/* What of one channel matters here. */
struct channel {
    double factor;   /* what the accumulator is to be multiplied with */
    double rounding; /* of TFLite: its result is at most so far from the exact one */
    uint32_t index;
};

struct chooser {
    const struct viv_chip *chip;
    struct viv_channels *channels;
    struct channel *sorted; /* those that are not idle, by factor */
    uint32_t count;
    double reach; /* of the output from its zero point, in steps */
};

bool viv_channels_differ(const struct mica_tensor *weights)
{
    for (uint32_t i = 1; i < weights->quant.count; i++)
        if (weights->quant.scale[i] != weights->quant.scale[0])
            return true;
    return false;
}

/* The multiplier as the hardware applies it. */
static double exact(const struct viv_chip *chip, const struct viv_requant *requant)
{
    int shift = (int)requant->shift + (chip->multiplier_bits == 23 ? 23 : 0);
    return ldexp((double)((1u << chip->multiplier_bits) + requant->multiplier), -shift);
}

/* Two roundings where TFLite shifts behind its multiplication, else one. */
static double reference_rounding(double factor)
{
    int exponent;
    frexp(factor, &exponent);
    return exponent < 0 ? 0.5 + ldexp(0.5, exponent) : 0.5;
}

/*
 * The distance of the channel's result from TFLite's: what the first stage rounds, seen through the second, what the
 * second rounds, what TFLite rounds, and how far the factors' product is off over the output's range.
 */
static double channel_error(const struct chooser *chooser, const struct channel *channel, double first, double second)
{
    double off = fabs(first * second / channel->factor - 1) * (chooser->reach + 1);
    return (second != 1 ? 0.5 * second : 0) + 0.5 + off + channel->rounding;
}

/* ---- groups -------------------------------------------------------------------- */

/* A choice for the channels from the first open one on: a multiplier, and who can use it. */
struct group {
    struct viv_requant requant;
    double first;
};

static bool make_group(const struct chooser *chooser, double factor, struct group *group)
{
    if (!viv_requant_factor(chooser->chip, factor, &group->requant))
        return false;
    group->first = exact(chooser->chip, &group->requant);
    return true;
}

/* The second stage's weight for a channel in the group, 0: none is near enough. `unit` is what weight 1 stands for. */
static uint8_t weight_for(const struct chooser *chooser, const struct channel *channel, double first, double unit,
                          double *error)
{
    double wanted = round(channel->factor / (first * unit));
    if (wanted < 1 || wanted > LARGEST || wanted * unit < 1) /* below 1 the first stage would saturate too early */
        return 0;
    *error = channel_error(chooser, channel, first, wanted * unit);
    return *error < LIMIT ? (uint8_t)wanted : 0;
}

/* Open channels that fit; `unit` 0: without a second stage. */
static uint32_t count_members(const struct chooser *chooser, const struct group *group, double unit, uint32_t begin)
{
    uint32_t members = 0;
    double error, widest = unit ? LARGEST * unit * 1.01 : 1.1;
    for (uint32_t i = begin; i < chooser->count && chooser->sorted[i].factor < group->first * widest; i++) {
        const struct channel *channel = &chooser->sorted[i];
        if (chooser->channels->group[channel->index] != VIV_NONE)
            continue;
        members += unit ? weight_for(chooser, channel, group->first, unit, &error) != 0
                        : channel_error(chooser, channel, group->first, 1) < LIMIT;
    }
    return members;
}

static bool best_group(const struct chooser *chooser, double unit, uint32_t begin, struct group *best)
{
    uint32_t most = 0;
    double factor = chooser->sorted[begin].factor;
    for (uint32_t i = 0; i < ANCHORS; i++) {
        struct group group;
        double wanted = unit ? factor / ((ceil(1 / unit) + i) * unit) : factor * (1 + 0.006 * i / ANCHORS);
        if (unit && ceil(1 / unit) + i > LARGEST)
            break;
        if (!make_group(chooser, wanted, &group))
            continue;
        double error;
        const struct channel *first = &chooser->sorted[begin];
        if (unit ? !weight_for(chooser, first, group.first, unit, &error)
                 : channel_error(chooser, first, group.first, 1) >= LIMIT)
            continue;
        uint32_t members = count_members(chooser, &group, unit, begin);
        if (members > most) {
            most = members;
            *best = group;
        }
    }
    return most > 0;
}

static void join(struct chooser *chooser, const struct group *group, double unit, uint32_t begin)
{
    struct viv_channels *channels = chooser->channels;
    channels->requants[channels->group_count] = group->requant;
    for (uint32_t i = begin; i < chooser->count; i++) {
        const struct channel *channel = &chooser->sorted[i];
        double error = unit ? 0 : channel_error(chooser, channel, group->first, 1);
        uint8_t factor = unit ? weight_for(chooser, channel, group->first, unit, &error) : 1;
        if (channels->group[channel->index] != VIV_NONE || !factor || error >= LIMIT)
            continue;
        channels->group[channel->index] = channels->group_count;
        channels->factor[channel->index] = factor;
        channels->bound = error > channels->bound ? error : channels->bound;
    }
    channels->group_count++;
}

/* All channels in at most `most` groups, from the smallest factor on, with a second stage of up to `widest` (0:
 * without).
 */
static bool make_groups(struct chooser *chooser, double widest, uint32_t most)
{
    struct viv_channels *channels = chooser->channels;
    struct group nothing;
    double unit = 0;
    channels->group_count = 0;
    channels->bound = 0;
    channels->corrected = widest != 0;
    if (widest) {
        struct group second;
        if (!make_group(chooser, widest / LARGEST, &second))
            return false;
        channels->correction = second.requant;
        unit = second.first;
    }
    for (uint32_t i = 0; i < channels->kernels; i++)
        channels->group[i] = channels->idle[i] ? 0 : VIV_NONE;
    for (uint32_t i = 0; i < chooser->count; i++) {
        struct group group;
        if (channels->group[chooser->sorted[i].index] != VIV_NONE)
            continue;
        if (channels->group_count == most || !best_group(chooser, unit, i, &group))
            return false;
        join(chooser, &group, unit, i);
    }
    if (!channels->group_count && make_group(chooser, 1.0 / 256, &nothing)) /* all idle: any multiplier will do */
        channels->requants[channels->group_count++] = nothing.requant;
    return channels->group_count != 0;
}

/* ---- channels ------------------------------------------------------------------ */

static int by_factor(const void *a, const void *b)
{
    const struct channel *x = a, *y = b;
    return x->factor != y->factor ? (x->factor < y->factor ? -1 : 1) : (x->index > y->index) - (x->index < y->index);
}

/* The largest accumulator of each channel. */
static void add_largest(const struct mica_tensor *weights, const struct mica_tensor *bias, uint32_t channels,
                        double *largest)
{
    size_t inner = 1;
    for (uint32_t d = (uint32_t)weights->quant.axis + 1; d < weights->rank; d++)
        inner *= (size_t)weights->dims[d];
    const uint8_t *bytes = weights->data;
    uint8_t flip = viv_flip(weights);
    int32_t zero = viv_zero_point(weights);
    for (size_t i = 0; i < weights->bytes; i++)
        largest[i / inner % channels] += 255.0 * abs((bytes[i] ^ flip) - zero);
    const int32_t *biases = bias ? bias->data : NULL;
    for (uint32_t i = 0; biases && i < channels; i++)
        largest[i] += fabs((double)biases[i]);
}

static int list_channels(struct chooser *chooser, const struct mica_tensor *in, const struct mica_tensor *weights,
                         const struct mica_tensor *bias, const struct mica_tensor *out)
{
    uint32_t kernels = weights->quant.count;
    double *largest = mica_new_array(kernels, sizeof(*largest));
    chooser->sorted = mica_new_array(kernels, sizeof(*chooser->sorted));
    if (!largest || !chooser->sorted) {
        free(largest);
        return -ENOMEM;
    }
    add_largest(weights, bias, kernels, largest);
    for (uint32_t i = 0; i < kernels; i++) {
        double factor = (double)in->quant.scale[0] * weights->quant.scale[i] / out->quant.scale[0];
        chooser->channels->idle[i] = largest[i] * factor < IDLE_STEPS;
        if (!chooser->channels->idle[i])
            chooser->sorted[chooser->count++] = (struct channel){factor, reference_rounding(factor), i};
    }
    free(largest);
    qsort(chooser->sorted, chooser->count, sizeof(*chooser->sorted), by_factor);
    return 0;
}

/* ---- the choice ---------------------------------------------------------------- */

/* Widths of the second stage's factor; wide ones make few groups, narrow ones leave more of the bound to its weights.
 */
static const double widths[] = {1.36, 1.2, 1.1};

static bool choose(struct chooser *chooser)
{
    struct viv_channels *channels = chooser->channels;
    uint32_t fewest = channels->kernels;
    double best = 0;
    for (unsigned i = 0; i < sizeof(widths) / sizeof(*widths); i++)
        if (make_groups(chooser, widths[i], fewest) && (!best || channels->group_count < fewest)) {
            fewest = channels->group_count;
            best = widths[i];
        }
    /* Planes in channel order leave no choice of who is in a job, without a second stage that sorts them. */
    uint32_t most = chooser->chip->z_offset_in_stream ? fewest + 1 + channels->kernels / SECOND_STAGE_GROUP : 1;
    if (make_groups(chooser, 0, most))
        return true;
    return best && make_groups(chooser, best, fewest);
}

static int allocate(struct viv_channels *channels, uint32_t kernels)
{
    *channels = (struct viv_channels){.kernels = kernels};
    channels->group = mica_new_array(kernels, sizeof(*channels->group));
    channels->factor = mica_new_array(kernels, sizeof(*channels->factor));
    channels->idle = mica_new_array(kernels, sizeof(*channels->idle));
    channels->requants = mica_new_array(kernels, sizeof(*channels->requants));
    return channels->group && channels->factor && channels->idle && channels->requants ? 0 : -ENOMEM;
}

int viv_channels_choose(const struct viv_chip *chip, const struct mica_tensor *in, const struct mica_tensor *weights,
                        const struct mica_tensor *bias, const struct mica_tensor *out, const struct viv_reach *reach,
                        struct viv_channels *channels, char *reason, size_t size)
{
    struct chooser chooser = {.chip = chip, .channels = channels};
    chooser.reach = reach->relu || reach->zero < 128 ? 255 - reach->zero : reach->zero;
    int error = allocate(channels, weights->quant.count);
    if (!error)
        error = list_channels(&chooser, in, weights, bias, out);
    if (error) {
        snprintf(reason, size, "out of memory");
    } else if (!choose(&chooser)) {
        snprintf(reason, size,
                 "the weights are quantized per channel, and for a factor of %g from sum to output no group keeps the "
                 "result within 1 of the exact one",
                 chooser.count ? chooser.sorted[chooser.count - 1].factor : 0.0);
        error = -ENOTSUP;
    }
    free(chooser.sorted);
    return error;
}

void viv_channels_finish(struct viv_channels *channels)
{
    free(channels->group);
    free(channels->factor);
    free(channels->idle);
    free(channels->requants);
}
