/* SPDX-License-Identifier: MIT */
#include "npu/vivante/compile/weights.h"

#include <stdlib.h>

#include "util/checked.h"

void viv_tap_order(uint32_t width, uint32_t height, uint16_t *order)
{
    for (uint32_t pair = 0; pair < height; pair += 2)
        for (uint32_t block = 0; block < width; block += 3)
            for (uint32_t row = pair; row < pair + 2 && row < height; row++)
                for (uint32_t column = block; column < block + 3 && column < width; column++)
                    *order++ = (uint16_t)(row * width + column);
}

/* One channel of one kernel, all phases of it. */
static uint8_t *gather_channel(const struct viv_weights *weights, const uint8_t *source, uint8_t *data)
{
    for (uint32_t phase = 0; phase < weights->phases; phase++)
        for (uint32_t tap = 0; tap < weights->taps; tap++) {
            int16_t from = weights->map[phase][tap];
            *data++ = from < 0 ? weights->zero_point : source[(size_t)from * weights->tap_stride] ^ weights->flip;
        }
    return data;
}

static void gather(struct viv_weights *weights)
{
    uint8_t *data = weights->owned;
    for (uint32_t k = 0; k < weights->kernels; k++)
        for (uint32_t z = 0; z < weights->channels; z++)
            data = gather_channel(weights, weights->source + k * weights->kernel_stride + z * weights->channel_stride,
                                  data);
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
        uint32_t bias = weights->bias_source ? (uint32_t)weights->bias_source[k] : 0;
        weights->bias[k] = bias - weights->input_zero_point * sum;
    }
}

/* The model's own bytes will do when they are in the right order already. */
static bool usable_as_is(const struct viv_weights *weights)
{
    return weights->pointwise && weights->phases == 1 && weights->channel_stride == 1 && !weights->flip &&
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
        if (!weights->owned)
            return false;
        gather(weights);
        weights->data = weights->owned;
    }
    fold_biases(weights);
    return true;
}

void viv_weights_finish(struct viv_weights *weights)
{
    free(weights->owned);
    free(weights->bias);
}

double viv_weights_density(const struct viv_weights *weights)
{
    size_t size = (size_t)weights->kernels * weights->channels, used = 0;
    for (uint32_t phase = 0; phase < weights->phases; phase++)
        for (uint32_t tap = 0; tap < weights->taps; tap++)
            used += weights->map[phase][tap] >= 0;
    size_t count = size * used, zeros = 0;
    uint8_t zero = weights->zero_point ^ weights->flip;
    for (size_t i = 0; i < count; i++)
        zeros += weights->source[i] == zero;
    return (double)(count - zeros) / ((double)size * weights->phases * weights->taps);
}
