/* SPDX-License-Identifier: MIT */
#include "npu/vivante/compile/channels_judge.h"

#include <math.h>
#include <stdlib.h>

#include "util/checked.h"

#define IDLE_STEPS 0.45   /* a channel that never gets further from zero than this rounds to it everywhere */
#define USUAL_INPUT 32.0  /* above the lower end where that is the zero point: behind a ReLU */
#define INPUT_SPREAD 64.0 /* of usual inputs around their zero point */

double viv_channel_bias(const struct viv_channel_judge *judge, uint32_t index)
{
    const struct mica_tensor *bias = judge->layer->bias;
    return bias ? ((const int32_t *)bias->data)[index] : 0;
}

/* Two roundings where TFLite shifts behind its multiplication, else one. */
static double reference_rounding(double factor)
{
    int exponent;
    frexp(factor, &exponent);
    return exponent < 0 ? 0.5 + ldexp(0.5, exponent) : 0.5;
}

/* Dimensions before that of channels, and behind it. */
static size_t count_values(const struct mica_tensor *tensor, uint32_t from, uint32_t end)
{
    size_t count = 1;
    for (uint32_t d = from; d < end; d++)
        count *= (size_t)tensor->dims[d];
    return count;
}

void viv_channel_judge_init(const struct viv_channel_layer *layer, struct viv_channel_judge *judge)
{
    const struct mica_tensor *tensor = layer->weights;
    uint32_t axis = (uint32_t)tensor->quant.axis;
    *judge = (struct viv_channel_judge){.layer = layer, .outer = count_values(tensor, 0, axis)};
    judge->inner = count_values(tensor, axis + 1, tensor->rank);
    judge->taps = judge->outer * judge->inner;
    judge->low = layer->relu ? 0 : -(double)layer->zero;
    judge->high = 255.0 - layer->zero;
    judge->in_zero = viv_zero_point(layer->in);
}

bool viv_channel_judge_gather(struct viv_channel_judge *judge)
{
    const struct mica_tensor *tensor = judge->layer->weights;
    const uint8_t *bytes = tensor->data;
    uint8_t flip = viv_flip(tensor), zero = viv_zero_point(tensor);
    judge->weights = mica_new_array(tensor->bytes, sizeof(*judge->weights));
    for (size_t o = 0; judge->weights && o < judge->outer; o++)
        for (size_t k = 0; k < tensor->quant.count; k++)
            for (size_t i = 0; i < judge->inner; i++)
                judge->weights[k * judge->taps + o * judge->inner + i] = (int16_t)((*bytes++ ^ flip) - zero);
    return judge->weights != NULL;
}

void viv_channel_judge_finish(struct viv_channel_judge *judge)
{
    free(judge->weights);
}

void viv_channel_measure(const struct viv_channel_judge *judge, uint32_t index, struct viv_channel *channel)
{
    const struct viv_channel_layer *layer = judge->layer;
    const uint8_t *bytes = (const uint8_t *)layer->weights->data + index * judge->inner;
    int32_t flip = viv_flip(layer->weights), weight_zero = viv_zero_point(layer->weights), up = 0, down = 0;
    for (size_t o = 0; o < judge->outer; o++, bytes += layer->weights->quant.count * judge->inner)
        for (size_t i = 0; i < judge->inner; i++) { /* of at most 2^20 weights */
            int32_t weight = (bytes[i] ^ flip) - weight_zero;
            up += weight > 0 ? weight : 0;
            down += weight < 0 ? -weight : 0;
        }
    double above = 255.0 - judge->in_zero, below = judge->in_zero, bias = viv_channel_bias(judge, index);
    double factor = (double)layer->in->quant.scale[0] * layer->weights->quant.scale[index] / layer->out->quant.scale[0];
    *channel = (struct viv_channel){.factor = factor, .rounding = reference_rounding(factor)};
    channel->low = (bias - (double)up * below - (double)down * above) * factor;
    channel->high = (bias + (double)up * above + (double)down * below) * factor;
    channel->largest = 255.0 * (double)(up + down) + fabs(bias);
    channel->idle = channel->largest * factor < IDLE_STEPS;
}

bool viv_channel_shift(const struct viv_channel *channel, double steps, int32_t *shift)
{
    *shift = 0;
    if (!(fabs(steps) + channel->largest < VIV_LARGEST_SUM))
        return false;
    *shift = (int32_t)nearbyint(steps);
    return true;
}

/* The rests of rounding are spread evenly. */
double viv_expected_error(const struct viv_channel_judge *judge)
{
    return judge->first * sqrt((double)judge->taps / 12) * INPUT_SPREAD;
}

double viv_usual_input(const struct viv_channel_judge *judge)
{
    return judge->in_zero < USUAL_INPUT ? USUAL_INPUT - judge->in_zero : 0;
}
