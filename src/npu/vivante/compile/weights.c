/* SPDX-License-Identifier: MIT */
#include "npu/vivante/compile/weights.h"

#include <math.h>
#include <stdlib.h>

#include "util/checked.h"

void viv_tap_order(const struct viv_chip *chip, uint32_t width, uint32_t height, uint16_t *order)
{
    if (chip->coef_blocks_of_nine) {
        for (uint32_t i = 0; i < width * height; i++)
            order[i] = (uint16_t)i;
        return;
    }
    for (uint32_t pair = 0; pair < height; pair += 2)
        for (uint32_t block = 0; block < width; block += 3)
            for (uint32_t row = pair; row < pair + 2 && row < height; row++)
                for (uint32_t column = block; column < block + 3 && column < width; column++)
                    *order++ = (uint16_t)(row * width + column);
}

/* One channel of one kernel: `count` taps, at these places of the source, or at none. */
static void gather_channel(const struct viv_weights *weights, const uint8_t *source, const ptrdiff_t *places,
                           uint32_t count, uint8_t *data)
{
    for (uint32_t i = 0; i < count; i++)
        data[i] = places[i] < 0 ? weights->zero_point : source[places[i]] ^ weights->flip;
}

static uint32_t source_kernel(const struct viv_weights *weights, uint32_t kernel)
{
    return weights->order ? weights->order[kernel] : kernel;
}

uint8_t viv_weight_changed(const struct viv_weight_change *change, uint8_t weight, uint8_t zero_point)
{
    if (change->ratio == 1 && !change->fine)
        return weight;
    double scaled = (weight - zero_point) * change->ratio, whole = nearbyint(scaled);
    double value = zero_point + (change->fine ? nearbyint((scaled - whole) * change->fine) : whole);
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static void change_kernel(const struct viv_weights *weights, uint32_t kernel, uint8_t *data)
{
    const struct viv_weight_change *change = weights->changes ? &weights->changes[kernel] : NULL;
    size_t size = viv_weights_per_kernel(weights);
    for (size_t i = 0; change && (change->ratio != 1 || change->fine) && i < size; i++)
        data[i] = viv_weight_changed(change, data[i], weights->zero_point);
}

static int32_t source_bias(const struct viv_weights *weights, uint32_t kernel)
{
    int32_t bias = weights->bias_source ? weights->bias_source[source_kernel(weights, kernel)] : 0;
    const struct viv_weight_change *change = weights->changes ? &weights->changes[kernel] : NULL;
    if (!change)
        return bias;
    double scaled = change->fine ? 0 : change->ratio == 1 ? bias : nearbyint(bias * change->ratio);
    return (int32_t)((uint32_t)(int32_t)scaled + (uint32_t)change->shift);
}

static bool gather(struct viv_weights *weights)
{
    uint32_t count = weights->phases * weights->taps;
    ptrdiff_t *places = mica_new_array(count, sizeof(*places));
    if (!places)
        return false;
    for (uint32_t i = 0; i < count; i++)
        places[i] = viv_weights_tap(weights, i / weights->taps, i % weights->taps) * (ptrdiff_t)weights->tap_stride;
    uint8_t *data = weights->owned;
    for (uint32_t k = 0; k < weights->kernels; k++) {
        const uint8_t *source = weights->source + source_kernel(weights, k) * weights->kernel_stride;
        for (uint32_t z = 0; z < weights->channels; z++, data += count)
            gather_channel(weights, source + z * weights->channel_stride, places, count, data);
        change_kernel(weights, k, data - viv_weights_per_kernel(weights));
    }
    free(places);
    return true;
}

static void fold_biases(struct viv_weights *weights)
{
    size_t size = viv_weights_per_kernel(weights);
    const uint8_t *data = weights->data;
    for (uint32_t k = 0; k < weights->kernels; k++, data += size) {
        uint32_t sum = 0;
        for (size_t i = 0; i < size; i++)
            sum += data[i];
        sum -= (uint32_t)size * weights->zero_point;
        weights->bias[k] = (uint32_t)source_bias(weights, k) + (uint32_t)weights->bias_factor * sum;
    }
}

/* The model's own bytes will do when they are in the right order already. */
static bool usable_as_is(const struct viv_weights *weights)
{
    return !weights->order && !weights->wide_map && weights->map[0][0] == 0 && weights->pointwise &&
           weights->phases == 1 && weights->channel_stride == 1 && !weights->flip &&
           weights->kernel_stride == weights->channels;
}

bool viv_weights_prepare(struct viv_weights *weights)
{
    if (weights->data) /* an addition's, made while lowering */
        return true;
    weights->bias = mica_new_array(weights->kernels, sizeof(*weights->bias));
    if (!weights->bias)
        return false;
    if (usable_as_is(weights)) {
        weights->data = weights->source;
    } else {
        weights->owned = mica_new_array(weights->kernels, viv_weights_per_kernel(weights));
        if (!weights->owned || !gather(weights))
            return false;
        weights->data = weights->owned;
    }
    fold_biases(weights);
    return true;
}

void viv_weights_finish(struct viv_weights *weights)
{
    free(weights->owned);
    free(weights->bias);
    free(weights->order);
    free(weights->place);
    free(weights->changes);
    free(weights->wide_map);
}

/* Weights that the profile looks at, spread over all of them. */
#define PROFILE_SAMPLES 16384u

static void sample(const struct viv_weights *weights, size_t count, uint32_t *counts, uint32_t *total)
{
    size_t step = count / PROFILE_SAMPLES + 1;
    step += step % 2 == 0; /* channels often are a power of two */
    for (size_t i = 0; i < count; i += step, ++*total)
        counts[weights->source[i]]++;
}

struct viv_weights_profile viv_weights_profile(const struct viv_weights *weights)
{
    size_t used = 0;
    uint32_t counts[256] = {0}, total = 0;
    for (uint32_t phase = 0; phase < weights->phases; phase++)
        for (uint32_t tap = 0; tap < weights->taps; tap++)
            used += viv_weights_tap(weights, phase, tap) >= 0;
    sample(weights, (size_t)weights->kernels * weights->channels * used, counts, &total);
    double share = (double)used / ((double)weights->phases * weights->taps);
    double zeros = counts[weights->zero_point ^ weights->flip];
    struct viv_weights_profile profile = {.share = share, .density = total ? (1 - zeros / total) * share : 0};
    for (uint32_t i = 0; i < 256; i++)
        if (counts[i])
            profile.entropy -= counts[i] * log2((double)counts[i] / total) / total;
    return profile;
}
