/* SPDX-License-Identifier: MIT */
/*
 * Scales per channel: what is chosen for random layers, computed here step by step as the hardware would, stays within
 * the bound that was promised, of the exact result and of TFLite's, for usual inputs and for bad ones.
 */
#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "npu/vivante/compile/channels.h"

#define MAX_CHANNELS 80
#define MAX_TAPS 96
#define INPUTS 60 /* tried a channel */

struct layer {
    struct viv_channel_layer layer;
    struct mica_tensor in, weights, bias, out;
    float in_scale, out_scale, scales[MAX_CHANNELS];
    int32_t in_zero, weight_zeros[MAX_CHANNELS], out_zero, biases[MAX_CHANNELS];
    int8_t values[MAX_CHANNELS * MAX_TAPS];
    uint32_t channels, taps;
};

static double random_real(struct random *random)
{
    return random_word(random) / 4294967296.0;
}

/* Outputs, and so scales, are made for what the first channel usually gets to. */
static void make_layer(struct random *random, const struct viv_chip *chip, bool fold, struct layer *layer)
{
    bool depthwise = random_below(random, 2);
    layer->channels = random_between(random, 2, MAX_CHANNELS);
    layer->taps = depthwise ? (uint32_t[]){4, 9, 25}[random_below(random, 3)] : random_between(random, 1, MAX_TAPS);
    layer->in_zero = (int32_t)random_below(random, 256) - 128;
    layer->out_zero = (int32_t[]){-128, 127, (int32_t)random_below(random, 256) - 128}[random_below(random, 3)];
    layer->in_scale = 0.02f;
    layer->out_scale = 0.05f;
    double factor = pow(10, -1 - 3 * random_real(random)), spread = pow(10, 3 * random_real(random));
    for (uint32_t i = 0; i < layer->channels; i++) {
        double own = factor * pow(spread, random_real(random) - 1);
        layer->scales[i] = (float)((double)layer->out_scale / (double)layer->in_scale * own);
        layer->weight_zeros[i] = 0;
        layer->biases[i] = (int32_t)((random_real(random) - 0.5) * 200 / own);
    }
    for (uint32_t i = 0; i < layer->channels * layer->taps; i++)
        layer->values[i] = (int8_t)((int32_t)random_below(random, 255) - 127);
    uint32_t channels = layer->channels, taps = layer->taps;
    layer->in = (struct mica_tensor){.type = MICA_TYPE_INT8};
    layer->in.quant = (struct mica_quantization){.count = 1, .scale = &layer->in_scale, .zero_point = &layer->in_zero};
    layer->out = layer->in;
    layer->out.quant =
        (struct mica_quantization){.count = 1, .scale = &layer->out_scale, .zero_point = &layer->out_zero};
    layer->weights = (struct mica_tensor){.type = MICA_TYPE_INT8, .rank = 4, .data = layer->values};
    int32_t dims[] = {depthwise ? 1 : (int32_t)channels, 1, depthwise ? (int32_t)taps : 1, 0};
    dims[3] = (int32_t)(depthwise ? channels : taps);
    memcpy(layer->weights.dims, dims, sizeof(dims));
    layer->weights.bytes = channels * taps;
    layer->weights.quant = (struct mica_quantization){
        .count = channels, .scale = layer->scales, .zero_point = layer->weight_zeros, .axis = depthwise ? 3 : 0};
    layer->bias = (struct mica_tensor){.type = MICA_TYPE_INT32, .data = layer->biases};
    layer->layer = (struct viv_channel_layer){
        .chip = chip, .in = &layer->in, .weights = &layer->weights, .bias = &layer->bias, .out = &layer->out};
    layer->layer.zero = (uint8_t)(layer->out_zero + 128);
    layer->layer.relu = layer->layer.zero > 0 && random_below(random, 3) == 0;
    layer->layer.fold = fold;
}

static int weight(const struct layer *layer, uint32_t channel, uint32_t tap)
{
    return layer->weights.quant.axis ? layer->values[tap * layer->channels + channel]
                                     : layer->values[channel * layer->taps + tap];
}

/* ---- arithmetic, from the specification -------------------------------------------- */

static int clamp(double value, int low)
{
    return value < low ? low : value > 255 ? 255 : (int)value;
}

static int requantize(const struct viv_chip *chip, const struct viv_requant *requant, int64_t sum, int zero, int low)
{
    return clamp(nearbyint((double)sum * viv_requant_exact(chip, requant)) + zero, low);
}

static int32_t tflite(double factor, int32_t sum)
{
    int exponent;
    int64_t multiplier = llround(frexp(factor, &exponent) * 2147483648.0);
    if (multiplier == INT64_C(1) << 31) {
        multiplier /= 2;
        exponent++;
    }
    int64_t product = (exponent > 0 ? (int64_t)sum * (INT64_C(1) << exponent) : sum) * multiplier;
    int32_t high = (int32_t)((product + (product >= 0 ? 1 << 30 : 1 - (1 << 30))) / (INT64_C(1) << 31));
    int right = exponent > 0 ? 0 : -exponent;
    if (right > 31)
        return 0;
    int32_t mask = (int32_t)((INT64_C(1) << right) - 1), rest = high & mask, half = (mask >> 1) + (high < 0);
    return (high >> right) + (rest > half);
}

/* A plane's sum of products; inputs are around their zero point. */
static int64_t plane_sum(const struct layer *layer, uint32_t channel, const struct viv_weight_change *change,
                         const int *inputs)
{
    int32_t bias = layer->biases[channel];
    int64_t sum = change->shift + (change->fine > 0 ? 0 : (int64_t)nearbyint(bias * change->ratio));
    for (uint32_t i = 0; i < layer->taps; i++) {
        uint8_t changed = viv_weight_changed(change, (uint8_t)(weight(layer, channel, i) + 128), 128);
        sum += (changed - 128) * inputs[i];
    }
    assert_true(sum >= INT32_MIN && sum <= INT32_MAX);
    return sum;
}

static int device(const struct layer *layer, const struct viv_channels *channels, uint32_t index, const int *inputs)
{
    const struct viv_channel *channel = &channels->channels[index];
    const struct viv_channel_group *group = &channels->groups[channel->group];
    const struct viv_chip *chip = layer->layer.chip;
    int zero = layer->layer.zero, low = layer->layer.relu ? zero : 0;
    bool second = group->way == VIV_ADDED;
    int64_t added = channel->bias;
    for (uint32_t i = channel->first; i < channel->first + channel->planes; i++) {
        const struct viv_plane *plane = &channels->planes[i];
        int64_t sum = plane_sum(layer, index, &plane->change, inputs);
        int value = requantize(chip, &group->requant, sum, zero, second ? 0 : low);
        if (!second)
            return value;
        added += plane->factor * value;
    }
    return requantize(chip, &channels->correction, added, zero, low);
}

/* ---- inputs -------------------------------------------------------------------------- */

/* Bad ones are where they add up what the first plane's weights are off; random ones in between bring sums back. */
static void make_inputs(struct random *random, const struct layer *layer, const struct viv_channels *channels,
                        uint32_t index, int *inputs)
{
    const struct viv_channel *channel = &channels->channels[index];
    const struct viv_weight_change *change = &channels->planes[channel->first].change;
    int zero = layer->in_zero + 128, span = (int)random_between(random, 1, 255);
    uint32_t bad = random_below(random, 3) ? random_below(random, layer->taps + 1) : 0, up = random_below(random, 2);
    for (uint32_t i = 0; i < layer->taps; i++) {
        int value = (int)random_below(random, (uint32_t)span + 1) + (int)random_below(random, (uint32_t)(256 - span));
        double scaled = weight(layer, index, i) * change->ratio;
        if (random_below(random, layer->taps) < bad)
            value = (nearbyint(scaled) > scaled) == up ? 255 : 0;
        inputs[i] = value - zero;
    }
}

static void check_channel(struct random *random, const struct layer *layer, const struct viv_channels *channels,
                          uint32_t index, double *worst)
{
    const struct viv_channel *channel = &channels->channels[index];
    int inputs[MAX_TAPS], zero = layer->layer.zero, low = layer->layer.relu ? zero : 0;
    double factor = (double)layer->in_scale * (double)layer->scales[index] / (double)layer->out_scale;
    for (int round = 0; round < INPUTS; round++) {
        make_inputs(random, layer, channels, index, inputs);
        int64_t sum = layer->biases[index];
        for (uint32_t i = 0; i < layer->taps; i++)
            sum += weight(layer, index, i) * inputs[i];
        double exact = (double)sum * factor + zero;
        exact = exact < low ? low : exact > 255 ? 255 : exact;
        int got = device(layer, channels, index, inputs), wanted = clamp(tflite(factor, (int32_t)sum) + zero, low);
        double off = fabs(got - exact);
        assert_true(off <= channels->bound - channel->rounding + 1e-6);
        assert_true(abs(got - wanted) < channels->bound);
        *worst = fmax(*worst, off + channel->rounding);
    }
}

/* ---- tests -------------------------------------------------------------------------------- */

static const struct viv_channel_costs cheap_jobs = {1000, 100, 1, 1000, 100}, dear_jobs = {100000, 10, 3, 1000, 10},
                                      dear_second = {10000, 100, 1, 100000, 3000};

static double check_layers(const struct viv_chip *chip, bool fold, uint32_t *ways)
{
    const struct viv_channel_costs costs[] = {cheap_jobs, dear_jobs, dear_second};
    static struct layer layer;
    struct random random = {fold ? 7 : 1};
    double worst = 0;
    for (int round = 0; round < 120; round++) {
        make_layer(&random, chip, fold, &layer);
        struct viv_channels channels;
        char reason[200];
        assert_true(viv_channels_possible(&layer.layer, reason, sizeof(reason)));
        assert_int_equal(viv_channels_choose(&layer.layer, &costs[round % 3], 1, &channels), 0);
        assert_true(fold || channels.bound < VIV_CHANNEL_LIMIT);
        for (uint32_t i = 0; i < layer.channels; i++)
            check_channel(&random, &layer, &channels, i, &worst);
        for (uint32_t i = 0; i < channels.group_count; i++)
            ways[channels.groups[i].way]++;
        viv_channels_finish(&channels);
    }
    return worst;
}

static void exact_ways_keep_their_bound(void **state)
{
    const struct viv_chip *const chips[] = {&viv_a311d, &viv_imx8mp, &viv_s905d3};
    for (int i = 0; i < 3; i++) {
        uint32_t ways[VIV_WAYS] = {0};
        double worst = check_layers(chips[i], false, ways);
        print_message("%s: %u groups near, %u folded, %u added; worst %.3f of %.3f\n", chips[i]->name, ways[VIV_NEAR],
                      ways[VIV_FOLDED], ways[VIV_ADDED], worst, VIV_CHANNEL_LIMIT);
        assert_true(ways[VIV_ADDED] > 20 && worst > 1.4); /* the test tries what it is about */
        assert_true(!chips[i]->z_offset_in_stream || (ways[VIV_NEAR] > 20 && ways[VIV_FOLDED] > 0));
    }
}

static void folded_scales_keep_their_bound(void **state)
{
    const struct viv_chip *const chips[] = {&viv_a311d, &viv_imx8mp};
    for (int i = 0; i < 2; i++) {
        uint32_t ways[VIV_WAYS] = {0};
        double worst = check_layers(chips[i], true, ways);
        print_message("%s: %u groups near, %u folded, %u added; worst %.3f\n", chips[i]->name, ways[VIV_NEAR],
                      ways[VIV_FOLDED], ways[VIV_ADDED], worst);
        assert_true(ways[VIV_FOLDED] > 20 && worst > 2);
    }
}

static void jobs_and_kernels_are_weighed(void **state)
{
    static struct layer layer;
    struct random random = {3};
    uint32_t groups[2] = {0}, planes[2] = {0};
    for (int round = 0; round < 30; round++) {
        make_layer(&random, &viv_a311d, false, &layer);
        for (int i = 0; i < 2; i++) {
            struct viv_channels channels;
            assert_int_equal(viv_channels_choose(&layer.layer, i ? &dear_jobs : &cheap_jobs, 1, &channels), 0);
            groups[i] += channels.group_count;
            planes[i] += channels.plane_count;
            viv_channels_finish(&channels);
        }
    }
    print_message("%u groups and %u kernels, where jobs are dear %u and %u\n", groups[0], planes[0], groups[1],
                  planes[1]);
    assert_true(groups[1] < groups[0] && planes[1] > planes[0]);
}

/* All channels are pruned: zeros and no bias, whatever the scale. */
static void idle_layers_compute_their_zero_point(void **state)
{
    static struct layer layer;
    struct random random = {5};
    int inputs[MAX_TAPS];
    make_layer(&random, &viv_a311d, false, &layer);
    memset(layer.values, 0, sizeof(layer.values));
    memset(layer.biases, 0, sizeof(layer.biases));
    layer.scales[0] = 1e-30f;
    struct viv_channels channels;
    assert_int_equal(viv_channels_choose(&layer.layer, &cheap_jobs, 1, &channels), 0);
    assert_int_equal(channels.group_count, 1);
    for (uint32_t i = 0; i < layer.channels; i++) {
        make_inputs(&random, &layer, &channels, i, inputs);
        assert_int_equal(device(&layer, &channels, i, inputs), layer.layer.zero);
    }
    viv_channels_finish(&channels);
}

static void factors_beyond_the_multiplier_are_refused(void **state)
{
    static struct layer layer;
    struct random random = {6};
    char reason[200] = "";
    make_layer(&random, &viv_imx8mp, false, &layer);
    layer.scales[0] = 1e30f;
    assert_false(viv_channels_possible(&layer.layer, reason, sizeof(reason)));
    assert_non_null(strstr(reason, "quantized per channel"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_ways_keep_their_bound),
        cmocka_unit_test(folded_scales_keep_their_bound),
        cmocka_unit_test(jobs_and_kernels_are_weighed),
        cmocka_unit_test(idle_layers_compute_their_zero_point),
        cmocka_unit_test(factors_beyond_the_multiplier_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
