/* SPDX-License-Identifier: MIT */
/*
 * What the compiler takes, and the sentence for what it does not. The graph
 * has checked types, ranks and shapes already; here stand the limits of the
 * chip and of this compiler.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "npu/vivante/compile/compile.h"
#include "npu/vivante/compile/lower.h"
#include "npu/vivante/compile/requant.h"
#include "npu/vivante/compile/window.h"

#define MAX_KERNEL_CHANNELS 0xfffffu /* 20 bits */

/* One question, with room for its answer. */
struct query {
    const struct viv_chip *chip;
    const struct mica_graph *graph;
    const struct mica_op *op;
    char *reason;
    size_t size;
};

static bool refuse(const struct query *query, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool refuse(const struct query *query, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(query->reason, query->size, format, arguments);
    va_end(arguments);
    return false;
}

static bool is_byte(const struct mica_tensor *tensor)
{
    return tensor->type == MICA_TYPE_UINT8 || tensor->type == MICA_TYPE_INT8;
}

/* A tensor that the device computes or reads as 8-bit data. */
static bool check_data(const struct query *query, const struct mica_tensor *tensor, const char *what)
{
    if (!tensor)
        return refuse(query, "the %s tensor is missing", what);
    if (tensor->problem)
        return refuse(query, "the %s tensor can't be used: %s", what, tensor->problem);
    if (!is_byte(tensor))
        return refuse(query, "the %s is %s; the NPU computes with uint8 and int8 only", what,
                      mica_type_name(tensor->type));
    if (tensor->data)
        return refuse(query, "the %s is a constant; the NPU reads only computed tensors there", what);
    return true;
}

static bool check_quantized(const struct query *query, const struct mica_tensor *tensor, const char *what)
{
    if (!check_data(query, tensor, what))
        return false;
    if (tensor->quant.count != 1)
        return refuse(query, "the %s needs one scale and zero point for the whole tensor", what);
    return true;
}

static bool check_same_type(const struct query *query, const struct mica_tensor *a, const struct mica_tensor *b)
{
    return a->type == b->type || refuse(query, "inputs and output mix uint8 and int8");
}

/* An image of batch 1 that the TP cores can transpose, should a neighbour need it in the other layout. */
static bool check_image(const struct query *query, const struct mica_tensor *tensor, const char *what)
{
    if (tensor->rank == 4 && tensor->dims[0] != 1)
        return refuse(query, "the %s has batch size %d, only 1 is supported", what, tensor->dims[0]);
    struct viv_shape shape = viv_shape_of(tensor);
    if (!viv_shape_flat(shape) && !viv_shape_transposable(shape))
        return refuse(query, "the %s has a dimension above %d, too large for the TP cores", what, INT16_MAX);
    return true;
}

static bool check_image4(const struct query *query, const struct mica_tensor *tensor, const char *what)
{
    if (!check_quantized(query, tensor, what))
        return false;
    if (tensor->rank != 4)
        return refuse(query, "the %s has rank %u, only images of rank 4 are supported", what, tensor->rank);
    return check_image(query, tensor, what);
}

static bool check_activation(const struct query *query, enum mica_activation activation, const struct mica_tensor *out)
{
    bool relu;
    return viv_activation_free(activation, out, &relu) ||
           refuse(query,
                  "the activation clamps inside the output's range of scale %g and zero point %d; "
                  "the NN cores can only clamp at the range's end",
                  (double)out->quant.scale[0], out->quant.zero_point[0]);
}

/* One quantization for all of it; per-channel parameters count as one when they are all equal. */
static bool check_weights(const struct query *query, const struct mica_tensor *weights)
{
    if (!weights || weights->problem)
        return refuse(query, "the weights can't be used: %s", weights ? weights->problem : "there are none");
    if (!weights->data)
        return refuse(query, "the weights are not constant");
    if (!is_byte(weights))
        return refuse(query, "the weights are %s; the NN cores take uint8 and int8", mica_type_name(weights->type));
    if (!weights->quant.count)
        return refuse(query, "the weights are not quantized");
    for (uint32_t i = 1; i < weights->quant.count; i++)
        if (weights->quant.scale[i] != weights->quant.scale[0] ||
            weights->quant.zero_point[i] != weights->quant.zero_point[0])
            return refuse(query, "the weights are quantized per channel, which this chip's NN cores can't do; "
                                 "convert the model with per-tensor weights");
    return true;
}

static bool check_bias(const struct query *query, const struct mica_tensor *bias, uint32_t channels)
{
    if (!bias)
        return true;
    if (bias->problem || bias->type != MICA_TYPE_INT32 || bias->bytes != (size_t)channels * 4)
        return refuse(query, "the bias is not one int32 per output channel");
    return bias->data || refuse(query, "the bias is not constant");
}

static bool check_scale(const struct query *query, float in, float weight, float out)
{
    struct viv_requant requant;
    return viv_requant_make(query->chip, in, weight, out, &requant) ||
           refuse(query, "the scales %g, %g and %g give a factor outside the NN cores' range", (double)in,
                  (double)weight, (double)out);
}

static bool check_channels(const struct query *query, uint32_t inputs, uint32_t outputs)
{
    if (outputs > VIV_MAX_CHANNELS)
        return refuse(query, "%u output channels, the NN cores count to %u", outputs, VIV_MAX_CHANNELS);
    if (inputs > MAX_KERNEL_CHANNELS)
        return refuse(query, "%u input channels, the NN cores count to %u", inputs, MAX_KERNEL_CHANNELS);
    return true;
}

/* Nothing is known of larger kernels, on boards or in simulators. */
static bool check_kernel(const struct query *query, const struct viv_window *window, uint32_t inputs)
{
    uint64_t weights = (uint64_t)window->kernel_w * window->kernel_h * window->step * window->step * inputs;
    return weights <= VIV_MAX_KERNEL_WEIGHTS ||
           refuse(query, "kernels of %llu weights are too large for the NN cores, at most %u are supported",
                  (unsigned long long)weights, VIV_MAX_KERNEL_WEIGHTS);
}

/* What convolutions and fully connected layers share. */
static bool check_product(const struct query *query, uint32_t outputs, enum mica_activation activation)
{
    const struct mica_tensor *in = mica_op_input(query->graph, query->op, 0);
    const struct mica_tensor *weights = mica_op_input(query->graph, query->op, 1);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    return check_same_type(query, in, out) && check_weights(query, weights) &&
           check_bias(query, mica_op_input(query->graph, query->op, 2), outputs) &&
           check_scale(query, in->quant.scale[0], weights->quant.scale[0], out->quant.scale[0]) &&
           check_activation(query, activation, out);
}

static bool supports_conv(const struct query *query)
{
    const struct mica_tensor *in = mica_op_input(query->graph, query->op, 0);
    const struct mica_tensor *weights = mica_op_input(query->graph, query->op, 1);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    bool depthwise = query->op->kind == MICA_OP_DEPTHWISE_CONV_2D;
    if (!check_image4(query, in, "input") || !check_image4(query, out, "output"))
        return false;
    if (!weights || weights->rank != 4)
        return refuse(query, "the weights do not have four dimensions");
    uint32_t inputs = (uint32_t)in->dims[3], outputs = (uint32_t)out->dims[3];
    if (depthwise && inputs != outputs)
        return refuse(query, "depth multiplier %d is not supported, only 1", query->op->window.depth_multiplier);
    if (!depthwise && (uint32_t)weights->dims[3] != inputs)
        return refuse(query, "grouped convolutions are not supported");
    const struct mica_padding *padding = &query->op->window.padding;
    if (padding->left < 0 || padding->top < 0 || padding->left > 64 || padding->top > 64)
        return refuse(query, "padding %d, %d is out of the NN cores' range", padding->left, padding->top);
    struct viv_window window;
    return check_product(query, outputs, query->op->window.activation) &&
           check_channels(query, inputs * VIV_PHASES, outputs) &&
           viv_window_make(query->chip, query->graph, query->op, &window, query->reason, query->size) &&
           (depthwise || check_kernel(query, &window, inputs));
}

static bool supports_fully_connected(const struct query *query)
{
    const struct mica_tensor *in = mica_op_input(query->graph, query->op, 0);
    const struct mica_tensor *weights = mica_op_input(query->graph, query->op, 1);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    if (!check_quantized(query, in, "input") || !check_quantized(query, out, "output"))
        return false;
    if (!weights || weights->rank != 2)
        return refuse(query, "the weights do not have two dimensions");
    uint32_t outputs = (uint32_t)weights->dims[0], inputs = (uint32_t)weights->dims[1];
    if (in->bytes != inputs || out->bytes != outputs)
        return refuse(query, "batches are not supported: %zu input values for %u weights a row", in->bytes, inputs);
    if (inputs > VIV_MAX_KERNEL_WEIGHTS)
        return refuse(query, "%u input values are too many for the NN cores, at most %u are supported", inputs,
                      VIV_MAX_KERNEL_WEIGHTS);
    uint32_t size = viv_fully_connected_kernel(query->chip, inputs);
    return check_product(query, outputs, query->op->activation) &&
           check_channels(query, inputs == 1 ? 1 : inputs / (size * size), outputs);
}

static bool same_shape(const struct mica_tensor *a, const struct mica_tensor *b)
{
    bool same = a->rank == b->rank;
    for (uint32_t i = 0; same && i < a->rank; i++)
        same = a->dims[i] == b->dims[i];
    return same;
}

static bool supports_add(const struct query *query)
{
    const struct mica_tensor *a = mica_op_input(query->graph, query->op, 0);
    const struct mica_tensor *b = mica_op_input(query->graph, query->op, 1);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    if (!check_quantized(query, a, "first input") || !check_quantized(query, b, "second input") ||
        !check_quantized(query, out, "output"))
        return false;
    if (!check_same_type(query, a, b) || !check_same_type(query, a, out))
        return false;
    if (!same_shape(a, b) || !same_shape(a, out))
        return refuse(query, "the inputs have different shapes; broadcasting is not supported");
    if (!viv_add_columns(out->bytes))
        return refuse(query, "%zu values are too many for one addition", out->bytes);
    struct viv_add add = viv_add_weights(a, b, out);
    if (add.error >= 1)
        return refuse(query,
                      "the inputs' scales %g and %g are too coarse for the output's %g: the NN cores' 8-bit "
                      "factors would be wrong by %.1f steps",
                      (double)a->quant.scale[0], (double)b->quant.scale[0], (double)out->quant.scale[0], add.error);
    return check_scale(query, a->quant.scale[0], add.weight_scale, out->quant.scale[0]) &&
           check_activation(query, query->op->activation, out);
}

static bool same_quantization(const struct mica_tensor *a, const struct mica_tensor *b)
{
    return a->type == b->type && a->quant.scale[0] == b->quant.scale[0] &&
           a->quant.zero_point[0] == b->quant.zero_point[0];
}

static bool supports_concatenation(const struct query *query)
{
    const struct mica_op *op = query->op;
    const struct mica_tensor *out = mica_op_output(query->graph, op, 0);
    if (!check_quantized(query, out, "output") || !check_image(query, out, "output"))
        return false;
    if (op->axis != (int32_t)out->rank - 1)
        return refuse(query, "concatenation along axis %d is not supported, only along channels (the last)", op->axis);
    if (op->activation != MICA_ACT_NONE)
        return refuse(query, "a concatenation with an activation is not supported");
    for (uint32_t i = 0; i < op->input_count; i++) {
        const struct mica_tensor *in = mica_op_input(query->graph, op, i);
        if (!check_quantized(query, in, "input") || !check_image(query, in, "input"))
            return false;
        if (!same_quantization(in, out))
            return refuse(query, "input %u is not quantized like the output", i);
    }
    return true;
}

static bool supports_pad(const struct query *query)
{
    const struct mica_tensor *in = mica_op_input(query->graph, query->op, 0);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    struct mica_padding padding;
    if (!check_image4(query, in, "input") || !check_image4(query, out, "output"))
        return false;
    if (mica_op_input(query->graph, query->op, 2))
        return refuse(query, "padding with a value of the model's own is not supported, only with zeros");
    if (!viv_pad_amounts(query->graph, query->op, &padding))
        return refuse(query, "only constant padding of rows and columns is supported");
    if (out->dims[1] > (int32_t)VIV_MAX_IMAGE || out->dims[2] > (int32_t)VIV_MAX_IMAGE)
        return refuse(query, "the padded image has more than %u rows or columns", VIV_MAX_IMAGE);
    return same_quantization(in, out) || refuse(query, "input and output are quantized differently");
}

static bool supports_reshape(const struct query *query)
{
    const struct mica_tensor *in = mica_op_input(query->graph, query->op, 0);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    return check_data(query, in, "input") && check_data(query, out, "output") && check_same_type(query, in, out) &&
           (in->bytes == out->bytes || refuse(query, "input and output have different sizes"));
}

static bool supported(const struct query *query)
{
    switch (query->op->kind) {
    case MICA_OP_CONV_2D:
    case MICA_OP_DEPTHWISE_CONV_2D:
        return supports_conv(query);
    case MICA_OP_FULLY_CONNECTED:
        return supports_fully_connected(query);
    case MICA_OP_ADD:
        return supports_add(query);
    case MICA_OP_CONCATENATION:
        return supports_concatenation(query);
    case MICA_OP_PAD:
        return supports_pad(query);
    case MICA_OP_RESHAPE:
        return supports_reshape(query);
    default:
        return refuse(query, "%s is not implemented for this NPU", query->op->type);
    }
}

int viv_supports(const struct mica_chip *chip, const struct mica_graph *graph, uint32_t op, char *reason, size_t size)
{
    struct query query = {chip->parameters, graph, &graph->ops[op], reason, size};
    if (query.op->problem) {
        refuse(&query, "%s", query.op->problem);
        return -ENOTSUP;
    }
    return supported(&query) ? 0 : -ENOTSUP;
}
