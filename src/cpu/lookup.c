/* SPDX-License-Identifier: MIT */
/* QUANTIZE and DEQUANTIZE, between float32, uint8, int8 and int16; between 8 bits by a table of 256. */
#include <math.h>
#include <string.h>

#include "cpu/requant.h"
#include "cpu/table.h"

static int check_number(const struct mica_tensor *tensor, const char *what, struct mica_cpu_reason *reason)
{
    if (tensor->type == MICA_TYPE_INT16 && mica_cpu_per_tensor(tensor))
        return 0;
    return mica_cpu_check_value(tensor, what, reason);
}

static int check_pair(const struct mica_graph *graph, const struct mica_op *op, struct mica_cpu_reason *reason)
{
    int result = mica_cpu_check_operands(graph, op, 1, 1, reason);
    if (result)
        return result;
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *out = mica_op_output(graph, op, 0);
    result = check_number(in, "input", reason);
    if (!result)
        result = check_number(out, "output", reason);
    if (!result && mica_cpu_elements(in) != mica_cpu_elements(out))
        result = mica_cpu_refuse(reason, "input and output differ in size");
    return result;
}

int mica_cpu_check_quantize(const struct mica_graph *graph, const struct mica_op *op, struct mica_cpu_reason *reason)
{
    int result = check_pair(graph, op, reason);
    if (!result && mica_op_output(graph, op, 0)->type == MICA_TYPE_FLOAT32)
        result = mica_cpu_refuse(reason, "the output is not uint8, int8 or int16");
    return result;
}

int mica_cpu_check_dequantize(const struct mica_graph *graph, const struct mica_op *op, struct mica_cpu_reason *reason)
{
    int result = check_pair(graph, op, reason);
    if (!result && (mica_op_input(graph, op, 0)->type == MICA_TYPE_FLOAT32 ||
                    mica_op_output(graph, op, 0)->type != MICA_TYPE_FLOAT32))
        result = mica_cpu_refuse(reason, "only uint8, int8 and int16 to float32 is supported");
    return result;
}

/* Element `i` of an integer tensor. */
static int32_t code_at(const struct mica_tensor *tensor, const void *data, size_t i)
{
    if (tensor->type == MICA_TYPE_INT16)
        return ((const int16_t *)data)[i];
    return tensor->type == MICA_TYPE_INT8 ? ((const int8_t *)data)[i] : ((const uint8_t *)data)[i];
}

/* A whole number of steps of the output's scale becomes element `i`, saturated. */
static void put_steps(const struct mica_tensor *out, void *data, size_t i, int64_t steps)
{
    int32_t min = out->type == MICA_TYPE_INT16 ? INT16_MIN : out->type == MICA_TYPE_INT8 ? INT8_MIN : 0;
    int32_t max = out->type == MICA_TYPE_INT16 ? INT16_MAX : out->type == MICA_TYPE_INT8 ? INT8_MAX : UINT8_MAX;
    int64_t code = steps + out->quant.zero_point[0];
    int32_t clamped = (int32_t)(code < min ? min : code > max ? max : code);
    if (out->type == MICA_TYPE_INT16)
        ((int16_t *)data)[i] = (int16_t)clamped;
    else
        ((uint8_t *)data)[i] = (uint8_t)clamped;
}

/* What is not a number becomes the zero point. */
static void quantize_floats(const struct mica_cpu_call *call, const struct mica_tensor *out)
{
    const float *from = mica_cpu_input_data(call, 0);
    for (size_t i = 0; i < mica_cpu_elements(out); i++) {
        float steps = from[i] / out->quant.scale[0];
        float rounded = isnan(steps) ? 0.0f : mica_clamp_float(roundf(steps), -131072.0f, 131072.0f);
        put_steps(out, mica_cpu_output_data(call, 0), i, (int64_t)rounded);
    }
}

static void requantize(const struct mica_cpu_call *call, const struct mica_tensor *in, const struct mica_tensor *out)
{
    struct mica_multiplier m = mica_multiplier_tflite((double)in->quant.scale[0] / (double)out->quant.scale[0]);
    const void *from = mica_cpu_input_data(call, 0);
    for (size_t i = 0; i < mica_cpu_elements(out); i++) {
        int32_t value = code_at(in, from, i) - in->quant.zero_point[0];
        put_steps(out, mica_cpu_output_data(call, 0), i, mica_scale_tflite(value, m.mantissa, m.shift));
    }
}

static void look_up(const struct mica_cpu_call *call, const uint8_t table[256])
{
    const uint8_t *in = mica_cpu_input_data(call, 0);
    uint8_t *out = mica_cpu_output_data(call, 0);
    for (size_t i = 0; i < mica_cpu_input(call, 0)->bytes; i++)
        out[i] = table[in[i]];
}

int mica_cpu_quantize(const struct mica_cpu_call *call)
{
    const struct mica_tensor *in = mica_cpu_input(call, 0), *out = mica_cpu_output(call, 0);
    uint8_t table[256];
    if (in->type == MICA_TYPE_FLOAT32)
        quantize_floats(call, out);
    else if (mica_cpu_table(call->graph, call->op, table))
        requantize(call, in, out);
    else
        look_up(call, table);
    return 0;
}

int mica_cpu_dequantize(const struct mica_cpu_call *call)
{
    const struct mica_tensor *in = mica_cpu_input(call, 0);
    const void *from = mica_cpu_input_data(call, 0);
    float *to = mica_cpu_output_data(call, 0);
    for (size_t i = 0; i < mica_cpu_elements(in); i++)
        to[i] = in->quant.scale[0] * (float)(code_at(in, from, i) - in->quant.zero_point[0]);
    return 0;
}
