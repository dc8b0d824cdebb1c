/* SPDX-License-Identifier: MIT */
#include "cpu/requant.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "cpu/rockchip.h"
#include "util/checked.h"

struct mica_multiplier mica_multiplier_vivante(float factor, enum mica_arithmetic arithmetic)
{
    uint32_t bits;
    memcpy(&bits, &factor, sizeof bits);
    int32_t exponent = (int32_t)(bits >> 23 & 0xff), fraction = (int32_t)(bits & 0x7fffff);
    bool v8 = arithmetic == MICA_ARITHMETIC_VIVANTE_V8;
    int32_t mantissa = v8 ? fraction | 1 << 23 : fraction >> 8 | 1 << 15;
    int32_t shift = (v8 ? 150 : 142) - exponent;
    /*
     * At the ends the exact shift stops mattering: a product is below 2^55, so that 2^62 brings all to 0; and without
     * a shift all but 0 is beyond 8 bits already.
     */
    return (struct mica_multiplier){mantissa, mica_clamp_int(shift, 0, 62)};
}

/* A real value in the output's quantization, as TFLite rounds it, kept well inside int32. */
static int32_t quantize_limit(float value, float scale, int32_t zero_point)
{
    float steps = roundf(value / scale);
    return zero_point + (int32_t)mica_clamp_float(steps, -65536.0f, 65536.0f);
}

void mica_requant_set_output(struct mica_requant *requant, enum mica_arithmetic arithmetic,
                             const struct mica_tensor *output, enum mica_activation activation)
{
    float scale = output->quant.scale[0];
    int32_t zero_point = mica_cpu_zero_point(output), min = 0, max = 255;
    if (activation == MICA_ACT_RELU || activation == MICA_ACT_RELU6)
        min = zero_point;
    if (activation == MICA_ACT_RELU6)
        max = quantize_limit(6, scale, zero_point);
    if (activation == MICA_ACT_RELU_N1_TO_1) {
        min = quantize_limit(-1, scale, zero_point);
        max = quantize_limit(1, scale, zero_point);
    }
    requant->arithmetic = arithmetic;
    requant->zero_point = zero_point;
    requant->min = min < 0 ? 0 : min;
    requant->max = max > 255 ? 255 : max;
    requant->flip = mica_cpu_flip(output);
}

/* Of channel `i`: one product in float32 or in double, and the quotient in double. */
static double real_factor(const struct mica_cpu_call *call, size_t i, bool single)
{
    const struct mica_tensor *input = mica_cpu_input(call, mica_op_data_input(call->op));
    const struct mica_tensor *weights = mica_cpu_input(call, 1);
    float a = input->quant.scale[0], b = weights->quant.scale[weights->quant.count > 1 ? i : 0];
    double product = single ? (double)(a * b) : (double)a * (double)b;
    return product / (double)mica_cpu_output(call, 0)->quant.scale[0];
}

/* Specification, section 6.1: every step in float32. */
static float vivante_factor(const struct mica_cpu_call *call, size_t i)
{
    const struct mica_tensor *input = mica_cpu_input(call, mica_op_data_input(call->op));
    const struct mica_tensor *weights = mica_cpu_input(call, 1);
    float product = input->quant.scale[0] * weights->quant.scale[weights->quant.count > 1 ? i : 0];
    return product / mica_cpu_output(call, 0)->quant.scale[0];
}

static void set_multipliers(struct mica_requant *requant, const struct mica_cpu_call *call, size_t channels,
                            enum mica_tflite_rounding rounding)
{
    for (size_t i = 0; i < channels; i++) {
        struct mica_multiplier multiplier;
        if (call->arithmetic == MICA_ARITHMETIC_TFLITE)
            multiplier = mica_multiplier_tflite(real_factor(call, i, rounding == MICA_TFLITE_TWICE_SINGLE));
        else
            multiplier = mica_multiplier_vivante(vivante_factor(call, i), call->arithmetic);
        requant->mantissa[i] = multiplier.mantissa;
        requant->shift[i] = multiplier.shift;
    }
    for (size_t i = 0; requant->factor && i < channels; i++)
        requant->factor[i] = real_factor(call, i, false);
}

int mica_requant_init(struct mica_requant *requant, const struct mica_cpu_call *call, enum mica_activation activation,
                      size_t channels, enum mica_tflite_rounding rounding)
{
    bool once = call->arithmetic == MICA_ARITHMETIC_TFLITE && rounding == MICA_TFLITE_ONCE;
    *requant = (struct mica_requant){0};
    requant->mantissa = mica_new_array(channels, 4 * sizeof *requant->mantissa);
    requant->factor = once ? mica_new_array(channels, sizeof *requant->factor) : NULL;
    if (!requant->mantissa || (once && !requant->factor)) {
        mica_requant_finish(requant);
        return mica_fail_nomem(call->log);
    }
    requant->shift = requant->mantissa + channels;
    mica_requant_set_output(requant, call->arithmetic, mica_cpu_output(call, 0), activation);
    if (!mica_is_rockchip(call->arithmetic)) {
        set_multipliers(requant, call, channels, rounding);
        return 0;
    }
    requant->channel = requant->shift + channels;
    requant->channel_shift = requant->channel + channels;
    int result = mica_rockchip_set_channels(requant, call, channels);
    if (result)
        mica_requant_finish(requant);
    return result;
}

void mica_requant_finish(struct mica_requant *requant)
{
    free(requant->mantissa);
    free(requant->factor);
    requant->mantissa = requant->shift = requant->channel = requant->channel_shift = NULL;
    requant->factor = NULL;
}

void mica_activation_range(enum mica_activation activation, float *min, float *max)
{
    *min = -FLT_MAX;
    *max = FLT_MAX;
    if (activation == MICA_ACT_RELU || activation == MICA_ACT_RELU6)
        *min = 0;
    if (activation == MICA_ACT_RELU6)
        *max = 6;
    if (activation == MICA_ACT_RELU_N1_TO_1) {
        *min = -1;
        *max = 1;
    }
}
