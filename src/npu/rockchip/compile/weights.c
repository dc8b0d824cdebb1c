/* SPDX-License-Identifier: MIT */
/* Weights and coefficients in the order that the engine reads them (specification, sections 5, 6 and 17). */
#include "npu/rockchip/compile/fusion.h"
#include "npu/rockchip/compile/weighted.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/checked.h"

#define INPUT_GROUP 32u /* input channels of one run of a kernel's weights; the last may have half */
#define HALF_GROUP 16u
#define COEFFICIENT_STEP 64u /* channels that coefficients are stored for: multiples of it, as the vendor does */
#define BYTES_PER_CHANNEL 8u /* of a group of A, B and C: 4 + 2 + 2 */

/* ---- sums ------------------------------------------------------------------------- */

static void finish_channel(const struct rk_weighted *weighted, uint32_t o, int64_t sum, int64_t magnitude,
                           struct rk_channel *channel)
{
    double below = abs(INT8_MIN - weighted->in_zero), above = abs(INT8_MAX - weighted->in_zero);
    channel->sum = sum;
    channel->reach = (double)magnitude * fmax(below, above) + (weighted->bias ? fabs((double)weighted->bias[o]) : 0);
}

static void measure_direct(const struct rk_weighted *weighted, struct rk_channel *channels)
{
    size_t per_kernel = (size_t)weighted->kernel_w * weighted->kernel_h * weighted->in.shape.c;
    for (uint32_t o = 0; o < weighted->out.shape.c; o++) {
        const int8_t *weights = weighted->weights + o * per_kernel;
        int32_t zero = weighted->weight_zero[o];
        int64_t sum = 0, magnitude = 0;
        for (size_t begin = 0; begin < per_kernel; begin += 65536) { /* so many fit 32 bits, which vectorise better */
            size_t end = per_kernel - begin < 65536 ? per_kernel : begin + 65536;
            int32_t part = 0, part_magnitude = 0;
            for (size_t i = begin; i < end; i++) {
                part += weights[i] - zero;
                part_magnitude += abs(weights[i] - zero);
            }
            sum += part;
            magnitude += part_magnitude;
        }
        finish_channel(weighted, o, sum, magnitude, &channels[o]);
    }
}

static void measure_depthwise(const struct rk_weighted *weighted, struct rk_channel *channels)
{
    uint32_t count = weighted->out.shape.c, taps = weighted->kernel_w * weighted->kernel_h;
    for (uint32_t c = 0; c < count; c++) {
        int64_t sum = 0, magnitude = 0;
        for (uint32_t tap = 0; tap < taps; tap++) {
            int32_t w = weighted->weights[(size_t)tap * count + c] - weighted->weight_zero[c];
            sum += w;
            magnitude += abs(w);
        }
        finish_channel(weighted, c, sum, magnitude, &channels[c]);
    }
}

struct rk_channel *rk_channels_measure(const struct rk_weighted *weighted)
{
    struct rk_channel *channels = mica_new_array(weighted->out.shape.c, sizeof(*channels));
    if (channels && weighted->depthwise)
        measure_depthwise(weighted, channels);
    else if (channels)
        measure_direct(weighted, channels);
    return channels;
}

double rk_channel_swing(const struct rk_weighted *weighted, const struct rk_channel *channel, uint32_t o)
{
    return channel->reach - (weighted->bias ? fabs((double)weighted->bias[o]) : 0);
}

bool rk_channels_sortable(const struct rk_weighted *weighted, const struct rk_channel *channels)
{
    for (uint32_t o = 0; o < weighted->out.shape.c; o++)
        if (rk_channel_swing(weighted, &channels[o], o) > RK_LARGEST_SWING)
            return false;
    return true;
}

/* ---- weights ---------------------------------------------------------------------- */

/* Kernels [first, first + count) of one group: by input group, then position, then kernel, then input channel. */
static uint8_t *pack_kernels(const struct rk_weighted *weighted, uint32_t first, uint32_t real, uint32_t count,
                             uint8_t *at)
{
    uint32_t channels = weighted->in.shape.c, lanes = (uint32_t)mica_align(channels, HALF_GROUP);
    uint32_t taps = weighted->kernel_w * weighted->kernel_h;
    for (uint32_t group = 0; group < lanes; group += INPUT_GROUP) {
        uint32_t width = lanes - group < INPUT_GROUP ? lanes - group : INPUT_GROUP;
        uint32_t copied = channels - group < width ? channels - group : width;
        for (uint32_t tap = 0; tap < taps; tap++)
            for (uint32_t k = 0; k < count; k++, at += width) {
                if (k >= real) {
                    memset(at, 0, width);
                    continue;
                }
                size_t kernel = (size_t)(first + k) * taps + tap;
                memcpy(at, weighted->weights + kernel * channels + group, copied);
                memset(at + copied, weighted->weight_zero[first + k], width - copied);
            }
    }
    return at;
}

static void pack_direct(const struct rk_chip *chip, const struct rk_weighted *weighted, uint32_t first, uint32_t count,
                        uint8_t *at)
{
    for (uint32_t done = 0; done < count; done += chip->kernel_group) {
        uint32_t real = count - done < chip->kernel_group ? count - done : chip->kernel_group;
        at = pack_kernels(weighted, first + done, real, (uint32_t)mica_align(real, 2), at);
    }
}

static void pack_depthwise(const struct rk_chip *chip, const struct rk_weighted *weighted, uint32_t first,
                           uint32_t count, uint8_t *at)
{
    uint32_t taps = weighted->kernel_w * weighted->kernel_h;
    for (uint32_t done = 0; done < count; done += chip->depthwise_group) {
        uint32_t real = count - done < chip->depthwise_group ? count - done : chip->depthwise_group;
        uint32_t width = (uint32_t)mica_align(real, HALF_GROUP);
        for (uint32_t tap = 0; tap < taps; tap++, at += width) {
            memcpy(at, weighted->weights + (size_t)tap * weighted->out.shape.c + first + done, real);
            memset(at + real, 0, width - real);
        }
    }
}

int rk_weights_pack(struct rk_plan *plan, const struct rk_weighted *weighted, uint32_t first, uint32_t count,
                    struct rk_ref *ref)
{
    uint64_t size = rk_weight_bytes(weighted, count);
    uint8_t *data = malloc(size);
    if (!data)
        return mica_fail_nomem(plan->log);
    if (weighted->depthwise)
        pack_depthwise(plan->chip, weighted, first, count, data);
    else
        pack_direct(plan->chip, weighted, first, count, data);
    return rk_plan_constant(plan, data, size, ref);
}

/* ---- coefficients ------------------------------------------------------------------- */

static void put(uint8_t *at, uint32_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static bool is_dropped(const struct rk_requant *requant, uint32_t o)
{
    return requant->class_of && requant->class_of[o] != requant->own;
}

/* What is added to the accumulator: the bias less what the zero point of the input contributes. */
static int32_t added(const struct rk_weighted *weighted, const struct rk_channel *channel,
                     const struct rk_requant *requant, uint32_t o)
{
    int64_t value = (weighted->bias ? weighted->bias[o] : 0);
    if (is_dropped(requant, o))
        value = rk_requant_drop(requant, rk_channel_swing(weighted, channel, o));
    value -= weighted->in_zero * channel->sum;
    return value < INT32_MIN ? INT32_MIN : value > INT32_MAX ? INT32_MAX : (int32_t)value;
}

int rk_coefficients_pack(struct rk_plan *plan, const struct rk_weighted *weighted, const struct rk_channel *channels,
                         const struct rk_requant *requant, uint32_t first, uint32_t count, struct rk_ref *ref)
{
    uint32_t group = plan->chip->coef_group;
    uint64_t size = mica_align(count, COEFFICIENT_STEP) * (requant->per_channel ? BYTES_PER_CHANNEL : 4);
    uint8_t *data = calloc(1, size);
    if (!data)
        return mica_fail_nomem(plan->log);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t o = first + i;
        struct rk_factor factor = {weighted->factor[o], channels[o].reach};
        uint32_t a = (uint32_t)added(weighted, &channels[o], requant, o);
        if (requant->fusion)
            a += (uint32_t)rk_fusion_lift(requant, requant->fusion, factor);
        if (!requant->per_channel) {
            put(data + 4 * i, a, 4);
            continue;
        }
        uint8_t *at = data + (size_t)(i / group) * group * BYTES_PER_CHANNEL;
        put(at + i % group * 4, a, 4);
        put(at + group * 4 + i % group * 2, (uint32_t)-weighted->weight_zero[o], 2);
        int32_t multiplier = is_dropped(requant, o) ? RK_MAX_MULTIPLIER : rk_requant_multiplier(requant, factor);
        put(at + group * 6 + i % group * 2, (uint32_t)multiplier, 2);
    }
    return rk_plan_constant(plan, data, size, ref);
}
