/* SPDX-License-Identifier: MIT */
/* LOGISTIC, QUANTIZE, DEQUANTIZE: what one value becomes depends on it alone, for 8 bits by a table of 256. */
#include <math.h>

#include "cpu/requant.h"

static int check_pair(const struct mica_graph *graph, const struct mica_op *op, struct mica_cpu_reason *reason)
{
    int result = mica_cpu_check_operands(graph, op, 1, 1, reason);
    if (result)
        return result;
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *out = mica_op_output(graph, op, 0);
    result = mica_cpu_check_value(in, "input", reason);
    if (!result)
        result = mica_cpu_check_value(out, "output", reason);
    if (!result && mica_cpu_elements(in) != mica_cpu_elements(out))
        result = mica_cpu_refuse(reason, "input and output differ in size");
    return result;
}

int mica_cpu_check_logistic(const struct mica_graph *graph, const struct mica_op *op, struct mica_cpu_reason *reason)
{
    int result = check_pair(graph, op, reason);
    if (!result && mica_op_input(graph, op, 0)->type != mica_op_output(graph, op, 0)->type)
        result = mica_cpu_refuse(reason, "input and output have different types");
    return result;
}

int mica_cpu_check_quantize(const struct mica_graph *graph, const struct mica_op *op, struct mica_cpu_reason *reason)
{
    int result = check_pair(graph, op, reason);
    if (!result && !mica_cpu_is_8bit(mica_op_output(graph, op, 0)))
        result = mica_cpu_refuse(reason, "the output is not uint8 or int8");
    return result;
}

int mica_cpu_check_dequantize(const struct mica_graph *graph, const struct mica_op *op, struct mica_cpu_reason *reason)
{
    int result = check_pair(graph, op, reason);
    if (!result &&
        (!mica_cpu_is_8bit(mica_op_input(graph, op, 0)) || mica_op_output(graph, op, 0)->type != MICA_TYPE_FLOAT32))
        result = mica_cpu_refuse(reason, "only uint8 and int8 to float32 is supported");
    return result;
}

/* A real number of steps of the output's scale to a stored byte; what is not a number becomes the zero point. */
static uint8_t byte_of(float steps, const struct mica_tensor *out)
{
    float rounded = isnan(steps) ? 0.0f : mica_clamp_float(roundf(steps), -512.0f, 512.0f);
    int32_t value = (int32_t)rounded + mica_cpu_zero_point(out);
    return (uint8_t)mica_clamp_int(value, 0, 255) ^ mica_cpu_flip(out);
}

static int32_t value_of(const struct mica_tensor *tensor, int byte)
{
    return (byte ^ mica_cpu_flip(tensor)) - mica_cpu_zero_point(tensor);
}

static void apply(const struct mica_cpu_call *call, const uint8_t table[256])
{
    const uint8_t *in = mica_cpu_input_data(call, 0);
    uint8_t *out = mica_cpu_output_data(call, 0);
    size_t count = mica_cpu_elements(mica_cpu_input(call, 0));
    for (size_t i = 0; i < count; i++)
        out[i] = table[in[i]];
}

/* TFLite's float kernel takes short cuts at both ends. */
static float logistic(float x)
{
    if (x > 16.619047164916992188f)
        return 1.0f;
    if (x < -9.0f)
        return expf(x);
    return 1.0f / (1.0f + expf(-x));
}

int mica_cpu_logistic(const struct mica_cpu_call *call)
{
    const struct mica_tensor *in = mica_cpu_input(call, 0), *out = mica_cpu_output(call, 0);
    if (in->type == MICA_TYPE_FLOAT32) {
        const float *from = mica_cpu_input_data(call, 0);
        float *to = mica_cpu_output_data(call, 0);
        for (size_t i = 0; i < mica_cpu_elements(in); i++)
            to[i] = logistic(from[i]);
        return 0;
    }
    uint8_t table[256];
    float inverse = 1.0f / out->quant.scale[0];
    for (int byte = 0; byte < 256; byte++) {
        float x = in->quant.scale[0] * (float)value_of(in, byte);
        table[byte] = byte_of(1.0f / (1.0f + expf(-x)) * inverse, out);
    }
    apply(call, table);
    return 0;
}

static void quantize_float(const struct mica_cpu_call *call, const struct mica_tensor *out)
{
    const float *from = mica_cpu_input_data(call, 0);
    uint8_t *to = mica_cpu_output_data(call, 0);
    for (size_t i = 0; i < out->bytes; i++)
        to[i] = byte_of(from[i] / out->quant.scale[0], out);
}

int mica_cpu_quantize(const struct mica_cpu_call *call)
{
    const struct mica_tensor *in = mica_cpu_input(call, 0), *out = mica_cpu_output(call, 0);
    if (in->type == MICA_TYPE_FLOAT32) {
        quantize_float(call, out);
        return 0;
    }
    uint8_t table[256];
    struct mica_requant requant;
    struct mica_multiplier multiplier =
        mica_multiplier_tflite((double)in->quant.scale[0] / (double)out->quant.scale[0]);
    mica_requant_set_output(&requant, MICA_ARITHMETIC_TFLITE, out, MICA_ACT_NONE);
    for (int byte = 0; byte < 256; byte++)
        table[byte] = mica_requant_value(&requant, value_of(in, byte), multiplier.mantissa, multiplier.shift);
    apply(call, table);
    return 0;
}

int mica_cpu_dequantize(const struct mica_cpu_call *call)
{
    const struct mica_tensor *in = mica_cpu_input(call, 0);
    const uint8_t *from = mica_cpu_input_data(call, 0);
    float *to = mica_cpu_output_data(call, 0), table[256];
    for (int byte = 0; byte < 256; byte++)
        table[byte] = in->quant.scale[0] * (float)value_of(in, byte);
    for (size_t i = 0; i < in->bytes; i++)
        to[i] = table[from[i]];
    return 0;
}
