/* SPDX-License-Identifier: MIT */
/* RESHAPE, CONCATENATION: values go elsewhere, unchanged, except for uint8 concatenations of different scales. */
#include <math.h>
#include <string.h>

#include "cpu/requant.h"

int mica_cpu_check_reshape(const struct mica_graph *graph, const struct mica_op *op, struct mica_cpu_reason *reason)
{
    int result = mica_cpu_check_operands(graph, op, 1, 1, reason);
    if (result)
        return result;
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *out = mica_op_output(graph, op, 0);
    if (in->type != out->type || in->bytes != out->bytes)
        return mica_cpu_refuse(reason, "input and output differ in type or size");
    return 0;
}

int mica_cpu_reshape(const struct mica_cpu_call *call)
{
    /* A runtime may well keep both at one place. */
    memmove(mica_cpu_output_data(call, 0), mica_cpu_input_data(call, 0), mica_cpu_output(call, 0)->bytes);
    return 0;
}

/* ---- concatenation ---- */

static int check_part(const struct mica_tensor *in, const struct mica_tensor *out, int32_t axis,
                      struct mica_cpu_reason *reason)
{
    if (in->type != out->type || in->rank != out->rank)
        return mica_cpu_refuse(reason, "an input has another type or rank than the output");
    for (uint32_t i = 0; i < out->rank; i++)
        if ((int32_t)i != axis && in->dims[i] != out->dims[i])
            return mica_cpu_refuse(reason, "an input's shape does not fit the output's");
    if (out->type == MICA_TYPE_UINT8 && out->quant.count && (!mica_cpu_per_tensor(in) || !mica_cpu_per_tensor(out)))
        return mica_cpu_refuse(reason, "an input is not quantized with one scale");
    if (out->type == MICA_TYPE_INT8 && out->quant.count && !mica_cpu_same_quantization(in, out))
        return mica_cpu_refuse(reason, "int8 inputs must be quantized as the output is");
    return 0;
}

int mica_cpu_check_concatenation(const struct mica_graph *graph, const struct mica_op *op,
                                 struct mica_cpu_reason *reason)
{
    int result = mica_cpu_check_operands(graph, op, op->input_count, 1, reason);
    if (result)
        return result;
    const struct mica_tensor *out = mica_op_output(graph, op, 0);
    if (op->activation != MICA_ACT_NONE)
        return mica_cpu_refuse(reason, "fused activations are not supported");
    if (op->axis < 0 || (uint32_t)op->axis >= out->rank)
        return mica_cpu_refuse(reason, "axis %d is out of range", op->axis);
    int64_t sum = 0;
    for (uint32_t i = 0; i < op->input_count && !result; i++) {
        sum += mica_op_input(graph, op, i)->dims[op->axis];
        result = check_part(mica_op_input(graph, op, i), out, op->axis, reason);
    }
    if (!result && sum != out->dims[op->axis])
        result = mica_cpu_refuse(reason, "the inputs don't add up to the output");
    return result;
}

/* The steps are those of TFLite, in float32. */
static void scale_part(const struct mica_tensor *in, const struct mica_tensor *out, uint8_t table[256])
{
    float inverse = 1.0f / out->quant.scale[0];
    float scale = in->quant.scale[0] * inverse, bias = (float)-in->quant.zero_point[0] * scale;
    for (int byte = 0; byte < 256; byte++) {
        float value = roundf((float)byte * scale + bias);
        int32_t moved = (int32_t)mica_clamp_float(value, -512.0f, 512.0f) + out->quant.zero_point[0];
        table[byte] = (uint8_t)mica_clamp_int(moved, 0, 255);
    }
}

/* Puts one input in its place: `outer` runs of `run` bytes, `stride` bytes apart. */
static void place_part(const struct mica_tensor *in, const struct mica_tensor *out, const uint8_t *from, uint8_t *to,
                       size_t outer, size_t stride)
{
    size_t run = in->bytes / outer;
    bool rescale = out->type == MICA_TYPE_UINT8 && out->quant.count && !mica_cpu_same_quantization(in, out);
    uint8_t table[256];
    if (rescale)
        scale_part(in, out, table);
    for (size_t i = 0; i < outer; i++, from += run, to += stride) {
        if (!rescale) {
            memcpy(to, from, run);
            continue;
        }
        for (size_t j = 0; j < run; j++)
            to[j] = table[from[j]];
    }
}

int mica_cpu_concatenation(const struct mica_cpu_call *call)
{
    const struct mica_tensor *out = mica_cpu_output(call, 0);
    uint8_t *to = mica_cpu_output_data(call, 0);
    size_t outer = 1;
    for (int32_t i = 0; i < call->op->axis; i++)
        outer *= (size_t)out->dims[i];
    for (uint32_t i = 0; i < call->op->input_count; i++) {
        const struct mica_tensor *in = mica_cpu_input(call, i);
        place_part(in, out, mica_cpu_input_data(call, i), to, outer, out->bytes / outer);
        to += in->bytes / outer;
    }
    return 0;
}
