/* SPDX-License-Identifier: MIT */
/* Checks that several kinds of operations share. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "cpu/int16.h"
#include "cpu/kernels.h"
#include "cpu/window.h"

int mica_cpu_refuse(struct mica_cpu_reason *reason, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (reason->size)
        vsnprintf(reason->text, reason->size, format, args);
    va_end(args);
    return -ENOTSUP;
}

static int check_operand(const struct mica_tensor *tensor, const char *what, uint32_t i, struct mica_cpu_reason *reason)
{
    if (!tensor)
        return mica_cpu_refuse(reason, "%s %u is missing", what, i);
    if (tensor->problem)
        return mica_cpu_refuse(reason, "%s %u (%s): %s", what, i, tensor->name, tensor->problem);
    if (!mica_type_size(tensor->type))
        return mica_cpu_refuse(reason, "%s %u (%s) has a type the CPU kernels don't know", what, i, tensor->name);
    return 0;
}

int mica_cpu_check_operands(const struct mica_graph *graph, const struct mica_op *op, uint32_t inputs, uint32_t outputs,
                            struct mica_cpu_reason *reason)
{
    int result = 0;
    for (uint32_t i = 0; i < inputs && !result; i++)
        result = check_operand(mica_op_input(graph, op, i), "input", i, reason);
    for (uint32_t i = 0; i < outputs && !result; i++)
        result = check_operand(mica_op_output(graph, op, i), "output", i, reason);
    return result;
}

int mica_cpu_check_value(const struct mica_tensor *tensor, const char *what, struct mica_cpu_reason *reason)
{
    if (tensor->type == MICA_TYPE_FLOAT32)
        return 0;
    if (!mica_cpu_is_8bit(tensor))
        return mica_cpu_refuse(reason, "%s is %s, the CPU kernel takes float32, uint8 and int8", what,
                               mica_type_name(tensor->type));
    if (!mica_cpu_per_tensor(tensor))
        return mica_cpu_refuse(reason, "%s is not quantized with one scale", what);
    return 0;
}

int mica_cpu_check_activation(enum mica_activation activation, struct mica_cpu_reason *reason)
{
    switch (activation) {
    case MICA_ACT_NONE:
    case MICA_ACT_RELU:
    case MICA_ACT_RELU_N1_TO_1:
    case MICA_ACT_RELU6:
        return 0;
    }
    return mica_cpu_refuse(reason, "unknown fused activation");
}

static int check_bias(const struct mica_tensor *bias, bool is_float, int32_t channels, struct mica_cpu_reason *reason)
{
    if (!bias)
        return 0;
    if (bias->problem)
        return mica_cpu_refuse(reason, "bias: %s", bias->problem);
    if (bias->type != (is_float ? MICA_TYPE_FLOAT32 : MICA_TYPE_INT32))
        return mica_cpu_refuse(reason, "bias is %s", mica_type_name(bias->type));
    if (mica_cpu_elements(bias) != (size_t)channels)
        return mica_cpu_refuse(reason, "bias does not have one value for each output channel");
    return 0;
}

static int check_weights(const struct mica_tensor *weights, int32_t channels, int32_t channel_axis,
                         struct mica_cpu_reason *reason)
{
    uint32_t count = weights->quant.count;
    if (count != 1 && (count != (uint32_t)channels || weights->quant.axis != channel_axis))
        return mica_cpu_refuse(reason, "weights are quantized neither with one scale nor with one for each channel");
    if (weights->type == MICA_TYPE_UINT8 && count != 1)
        return mica_cpu_refuse(reason, "uint8 weights need a single scale");
    for (uint32_t i = 0; count > 1 && i < count; i++)
        if (weights->quant.zero_point[i] != 0)
            return mica_cpu_refuse(reason, "weights with a scale for each channel need zero points of 0");
    return 0;
}

int mica_cpu_check_weighted(const struct mica_graph *graph, const struct mica_op *op, int32_t channels,
                            int32_t channel_axis, struct mica_cpu_reason *reason)
{
    uint32_t data = mica_op_data_input(op);
    const struct mica_tensor *input = mica_op_input(graph, op, data), *weights = mica_op_input(graph, op, 1);
    const struct mica_tensor *bias = mica_op_input(graph, op, mica_cpu_bias_input(op));
    const struct mica_tensor *output = mica_op_output(graph, op, 0);
    if (input->type == MICA_TYPE_INT16)
        return mica_int16_check_weighted(graph, op, channels, channel_axis, reason);
    int result = mica_cpu_check_value(input, "input", reason);
    if (!result)
        result = mica_cpu_check_value(output, "output", reason);
    if (result)
        return result;
    if (weights->type != input->type || output->type != input->type)
        return mica_cpu_refuse(reason, "input %s, weights %s and output %s do not go together",
                               mica_type_name(input->type), mica_type_name(weights->type),
                               mica_type_name(output->type));
    bool is_float = input->type == MICA_TYPE_FLOAT32;
    result = is_float ? 0 : check_weights(weights, channels, channel_axis, reason);
    return result ? result : check_bias(bias, is_float, channels, reason);
}

static bool axis_fits(int32_t out, int32_t stride, int32_t before, int32_t after, int32_t dilation, int32_t kernel)
{
    if (stride < 1 || dilation < 1 || kernel < 1 || before < 0 || after < 0)
        return false;
    int64_t last = (int64_t)(out - 1) * stride + (int64_t)(kernel - 1) * dilation;
    return last + before + after <= INT32_MAX;
}

int mica_cpu_check_window(const struct mica_tensor *in, const struct mica_tensor *out, const struct mica_window *window,
                          struct mica_cpu_reason *reason)
{
    const struct mica_padding *p = &window->padding;
    if (in->rank != 4 || out->rank != 4 || in->dims[0] != out->dims[0])
        return mica_cpu_refuse(reason, "input and output are not images of the same batch");
    if (!axis_fits(out->dims[1], window->stride_y, p->top, p->bottom, window->dilation_y, window->kernel_y) ||
        !axis_fits(out->dims[2], window->stride_x, p->left, p->right, window->dilation_x, window->kernel_x))
        return mica_cpu_refuse(reason, "stride, dilation, padding or kernel size out of range");
    return mica_cpu_check_activation(window->activation, reason);
}

int mica_cpu_check_weighted_window(const struct mica_graph *graph, const struct mica_op *op, int32_t channel_axis,
                                   struct mica_cpu_reason *reason)
{
    int result = mica_cpu_check_operands(graph, op, 2, 1, reason);
    if (result)
        return result;
    const struct mica_tensor *weights = mica_op_input(graph, op, 1), *out = mica_op_output(graph, op, 0);
    result = mica_cpu_check_window(mica_op_input(graph, op, 0), out, &op->window, reason);
    if (result)
        return result;
    if (weights->rank != 4 || weights->dims[channel_axis] != out->dims[3] || weights->dims[1] != op->window.kernel_y ||
        weights->dims[2] != op->window.kernel_x)
        return mica_cpu_refuse(reason, "weights do not fit the output or the window");
    if (weights->type == MICA_TYPE_INT8 && weights->quant.count == 1 && weights->quant.zero_point[0] != 0)
        return mica_cpu_refuse(reason, "int8 weights need a zero point of 0");
    return mica_cpu_check_weighted(graph, op, out->dims[3], channel_axis, reason);
}
