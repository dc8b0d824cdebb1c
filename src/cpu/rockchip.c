/* SPDX-License-Identifier: MIT */
#include "cpu/rockchip.h"

#include <math.h>
#include <stdlib.h>

#include "util/checked.h"

#define LARGEST_MULTIPLIER 32767 /* of a channel: signed 16 bits */
#define LONGEST_CHANNEL_SHIFT 15
#define LONGEST_SHIFT 63

struct mica_multiplier mica_multiplier_rockchip(double factor)
{
    if (!(factor > 0))
        return (struct mica_multiplier){0, 0};
    if (factor > LARGEST_MULTIPLIER) /* no program has it */
        return (struct mica_multiplier){LARGEST_MULTIPLIER, 0};
    int exponent;
    int32_t scale = (int32_t)rint(ldexp(frexp(factor, &exponent), 15));
    int32_t shift = 15 - exponent;
    if (scale == 0x8000) { /* the carry; as it is it would negate */
        scale = 0x4000;
        shift--;
    }
    /* Below 2^-49 all results are 0, with the longest shift as well. */
    return shift > LONGEST_SHIFT ? (struct mica_multiplier){0x4000, LONGEST_SHIFT}
                                 : (struct mica_multiplier){scale, shift};
}

/* ---- weighted operations --------------------------------------------------- */

/*
 * Channels of one factor are converted by acc * SCALE / 2^SHIFT. Others share SCALE and SHIFT as well, but their
 * accumulators are first multiplied by C / 2^s, C having 15 bits for the largest factor, and rounded; s is the
 * longest shift whose rounding stays below 1/64 of an output step. Where that is too coarse for some channels, groups
 * of neighbours get conversions of their own: whole surfaces of the chip's atom, as many as stay within half a step of
 * the exact factors (the first one within a whole one).
 *
 * A surface that no conversion serves has its channels sorted into at most 4 classes: the largest factor that is left
 * (2^-20 at least) makes a conversion, and all channels that stay within half a step are its class. Surfaces behind it
 * for which one conversion doesn't do either are sorted with it while no more classes are needed. The NPU computes each
 * class by itself; what it gives for a channel is what the channel's own class gives.
 */
struct channel {
    double factor;
    double reach; /* no accumulator is further from 0 */
};

struct conversion {
    struct mica_multiplier out;
    bool same;        /* one factor: no C */
    double unit;      /* what a step of C is worth */
    int32_t shift;    /* s */
    double deviation; /* largest, in steps of the output */
};

/* What never leaves the zero point may have any factor. */
static bool matters(const struct channel *channel)
{
    return channel->factor * channel->reach >= 0.5;
}

static int32_t channel_multiplier(const struct conversion *conversion, const struct channel *channel)
{
    double steps = rint(channel->factor / conversion->unit);
    return matters(channel) ? (int32_t)fmin(steps, LARGEST_MULTIPLIER) : 0;
}

static double deviation_of(const struct conversion *conversion, const struct channel *channel)
{
    double out = ldexp(conversion->out.mantissa, -conversion->out.shift), got = out;
    if (!matters(channel))
        return 0;
    if (!conversion->same)
        got *= ldexp(channel_multiplier(conversion, channel), -conversion->shift);
    /* Results saturate 255 steps away at the latest. */
    double relative = fabs(got / channel->factor - 1), reach = fmin(channel->factor * channel->reach, 255);
    return reach * relative + (conversion->same ? 0 : out / 2);
}

/* C has 15 bits for `largest`. */
static void set_channel_unit(struct conversion *conversion, double largest)
{
    conversion->same = false;
    conversion->unit = largest / LARGEST_MULTIPLIER;
    double shift = floor(log2(2 * (1.0 / 64) / conversion->unit));
    conversion->shift = shift < 0 ? 0 : shift > LONGEST_CHANNEL_SHIFT ? LONGEST_CHANNEL_SHIFT : (int32_t)shift;
    conversion->out = mica_multiplier_rockchip(ldexp(conversion->unit, conversion->shift));
}

static struct conversion convert(const struct channel *channels, size_t count)
{
    struct conversion conversion = {.same = true};
    double largest = 0;
    for (size_t i = 0; i < count; i++) {
        conversion.same = conversion.same && channels[i].factor == channels[0].factor;
        largest = matters(&channels[i]) ? fmax(largest, channels[i].factor) : largest;
    }
    double factor = conversion.same || largest == 0 ? channels[0].factor : largest;
    conversion.out = mica_multiplier_rockchip(factor);
    if (!conversion.same)
        set_channel_unit(&conversion, factor);
    for (size_t i = 0; i < count; i++)
        conversion.deviation = fmax(conversion.deviation, deviation_of(&conversion, &channels[i]));
    return conversion;
}

static const double close_enough = 0.5, still_right = 1.0;

/* How many channels, from the first, one conversion serves. */
static size_t group_size(const struct channel *channels, size_t count, size_t atom)
{
    size_t size = 0;
    if (convert(channels, count).deviation <= close_enough)
        return count;
    while (size < count) {
        size_t wanted = size + atom < count ? size + atom : count;
        if (convert(channels, wanted).deviation > (size ? close_enough : still_right))
            break;
        size = wanted;
    }
    return size;
}

/* ---- classes of channels ---------------------------------------------------- */

#define MOST_CLASSES 4
#define LEAST_LARGEST 0x1p-20

/* Gives every channel its class's conversion; the number of classes, or 0 if `most` don't do. */
static int classify(const struct channel *channels, size_t count, int most, struct conversion *of)
{
    int classes = 0;
    size_t sorted = 0;
    for (size_t i = 0; i < count; i++)
        of[i].unit = 0; /* no class yet */
    for (; sorted < count && classes < most; classes++) {
        struct conversion conversion = {0};
        double largest = LEAST_LARGEST;
        for (size_t i = 0; i < count; i++)
            largest = of[i].unit == 0 && matters(&channels[i]) ? fmax(largest, channels[i].factor) : largest;
        set_channel_unit(&conversion, largest);
        for (size_t i = 0; i < count; i++)
            if (of[i].unit == 0 && deviation_of(&conversion, &channels[i]) <= close_enough) {
                of[i] = conversion;
                sorted++;
            }
    }
    return sorted == count ? classes : 0;
}

/* How many channels, from the first, are sorted together: whole surfaces. */
static size_t classes_size(const struct channel *channels, size_t count, size_t atom, struct conversion *of)
{
    size_t size = count < atom ? count : atom;
    int most = classify(channels, size, MOST_CLASSES, of);
    while (most && size < count) {
        size_t next = count - size < atom ? count - size : atom;
        if (convert(channels + size, next).deviation <= still_right || !classify(channels, size + next, most, of))
            break;
        size += next;
    }
    if (most)
        classify(channels, size, most, of);
    else /* nothing serves these: no program has them */
        for (size_t i = 0; i < size; i++)
            of[i] = convert(channels, size);
    return size;
}

/* Every channel's conversion. */
static void find_conversions(const struct channel *channels, size_t count, size_t atom, struct conversion *of)
{
    for (size_t first = 0, size; first < count; first += size) {
        size = group_size(channels + first, count - first, atom);
        if (!size) {
            size = classes_size(channels + first, count - first, atom, of + first);
            continue;
        }
        struct conversion conversion = convert(channels + first, size);
        for (size_t i = first; i < first + size; i++)
            of[i] = conversion;
    }
}

/* Channel of element `i` of the weights. */
static size_t channel_of(const struct mica_cpu_call *call, const struct mica_tensor *weights, size_t channels, size_t i)
{
    return call->op->kind == MICA_OP_DEPTHWISE_CONV_2D ? i % channels : i / (mica_cpu_elements(weights) / channels);
}

static void measure(const struct mica_cpu_call *call, struct channel *channels, size_t count)
{
    const struct mica_tensor *in = mica_cpu_input(call, mica_op_data_input(call->op));
    const struct mica_tensor *weights = mica_cpu_input(call, 1), *out = mica_cpu_output(call, 0);
    const uint8_t *bytes = mica_cpu_input_data(call, 1), flip = mica_cpu_flip(weights);
    const int32_t *bias = mica_cpu_input_data(call, mica_cpu_bias_input(call->op));
    int32_t zero = mica_cpu_zero_point(in), furthest = zero > 255 - zero ? zero : 255 - zero;
    for (size_t i = 0; i < mica_cpu_elements(weights); i++)
        channels[channel_of(call, weights, count, i)].reach += abs((bytes[i] ^ flip) - mica_cpu_zero_point(weights));
    for (size_t i = 0; i < count; i++) {
        double weight_scale = (double)weights->quant.scale[weights->quant.count > 1 ? i : 0];
        channels[i].reach = channels[i].reach * furthest + (bias ? fabs((double)bias[i]) : 0);
        channels[i].factor = (double)in->quant.scale[0] * weight_scale / (double)out->quant.scale[0];
    }
}

int mica_rockchip_set_channels(struct mica_requant *requant, const struct mica_cpu_call *call, size_t count)
{
    struct channel *channels = mica_new_array(count, sizeof *channels);
    struct conversion *of = mica_new_array(count, sizeof *of);
    size_t atom = call->arithmetic == MICA_ARITHMETIC_ROCKCHIP ? 16 : 8;
    int result = channels && of ? 0 : mica_fail_nomem(call->log);
    if (!result) {
        measure(call, channels, count);
        find_conversions(channels, count, atom, of);
    }
    for (size_t i = 0; !result && i < count; i++) {
        requant->mantissa[i] = of[i].out.mantissa;
        requant->shift[i] = of[i].out.shift;
        requant->channel[i] = of[i].same ? 1 : channel_multiplier(&of[i], &channels[i]);
        requant->channel_shift[i] = of[i].shift;
    }
    free(channels);
    free(of);
    return result;
}

/* ---- two inputs --------------------------------------------------------------- */

/*
 * Sums keep 14 bits below the larger scale: its side is multiplied by 2^14, the other by what stands for the same,
 * and rounded. Products are exact before their one rounding.
 */
void mica_rockchip_prepare_arith(struct mica_arith *arith, const struct mica_tensor *const inputs[2],
                                 const struct mica_tensor *out)
{
    const double unit = 0x4000, out_scale = (double)out->quant.scale[0];
    const double scales[2] = {(double)inputs[0]->quant.scale[0], (double)inputs[1]->quant.scale[0]};
    double larger = fmax(scales[0], scales[1]), smaller = fmin(scales[0], scales[1]);
    mica_arith_set_values(arith, inputs);
    if (arith->kind == MICA_OP_MUL) {
        arith->multiplier = mica_multiplier_rockchip(scales[0] * scales[1] / out_scale);
        return;
    }
    for (int i = 0; i < 2; i++) {
        bool is_larger = scales[i] == larger;
        struct mica_multiplier m = mica_multiplier_rockchip(is_larger ? unit : unit * (smaller / larger));
        for (int byte = 0; byte < 256; byte++) {
            int32_t term = (int32_t)mica_scale_even(arith->terms[i][byte], m.mantissa, m.shift);
            arith->terms[i][byte] = i == 1 && arith->kind == MICA_OP_SUB ? -term : term;
        }
    }
    arith->multiplier = mica_multiplier_rockchip(larger / (unit * out_scale));
}
