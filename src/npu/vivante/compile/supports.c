/* SPDX-License-Identifier: MIT */
/*
 * What the compiler takes, and the sentence for what it does not. The graph
 * has checked types, ranks and shapes already; here stand the limits of the
 * chip and of this compiler.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "npu/vivante/compile/channels.h"
#include "npu/vivante/compile/compile.h"
#include "npu/vivante/compile/compose.h"
#include "npu/vivante/compile/elementwise.h"
#include "npu/vivante/compile/lower.h"
#include "npu/vivante/compile/requant.h"
#include "npu/vivante/compile/window.h"

#define MAX_FOLD_ERROR 0.7           /* with both roundings below 2 steps */
#define MAX_DENSE_TAPS (1u << 26)    /* of all kernels of a job, nearly all of them zero points */
#define MAX_SCALES 4096u             /* of the weights of one layer */
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

/* One zero point for all of it, and one scale, or one for each output channel. */
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
        if (weights->quant.zero_point[i] != weights->quant.zero_point[0])
            return refuse(query, "the weights' channels have different zero points; an NN job has one for all weights");
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

/* Channels in groups (channels.h). On some chips the second stage is a dense 1x1 job. */
static bool check_channel_scales(const struct query *query, uint32_t outputs, enum mica_activation activation)
{
    const struct mica_tensor *in = mica_op_input(query->graph, query->op, mica_op_data_input(query->op));
    const struct mica_tensor *weights = mica_op_input(query->graph, query->op, 1);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    uint32_t bias = mica_op_data_input(query->op) == 0 ? 2 : 3;
    if (weights->quant.count != outputs)
        return refuse(query, "the weights have %u scales for %u output channels", weights->quant.count, outputs);
    if (outputs > MAX_SCALES)
        return refuse(query, "%u output channels with a scale each, at most %u are supported", outputs, MAX_SCALES);
    struct viv_reach reach;
    viv_clamp_first(viv_bounds_of(activation, out), viv_zero_point(out), &reach.zero, &reach.relu);
    struct viv_channels channels;
    int error = viv_channels_choose(query->chip, in, weights, mica_op_input(query->graph, query->op, bias), out, &reach,
                                    &channels, query->reason, query->size);
    viv_channels_finish(&channels);
    return !error;
}

/* With a depth multiplier all channels are one dense job. */
static bool check_multiplier(const struct query *query, const struct viv_window *window, uint32_t inputs,
                             uint32_t outputs)
{
    uint64_t taps = (uint64_t)window->kernel_w * window->kernel_h * window->step * window->step * inputs * outputs;
    return inputs == outputs || taps <= MAX_DENSE_TAPS ||
           refuse(query, "depth multiplier %d makes a dense job of %llu weights, at most %u are supported",
                  query->op->window.depth_multiplier, (unsigned long long)taps, MAX_DENSE_TAPS);
}

/* What convolutions and fully connected layers share. */
static bool check_product(const struct query *query, uint32_t outputs, enum mica_activation activation)
{
    uint32_t data = mica_op_data_input(query->op);
    const struct mica_tensor *in = mica_op_input(query->graph, query->op, data);
    const struct mica_tensor *weights = mica_op_input(query->graph, query->op, 1);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    return check_same_type(query, in, out) && check_weights(query, weights) &&
           check_bias(query, mica_op_input(query->graph, query->op, data == 0 ? 2 : 3), outputs) &&
           (viv_channels_differ(weights)
                ? check_channel_scales(query, outputs, activation)
                : check_scale(query, in->quant.scale[0], weights->quant.scale[0], out->quant.scale[0]));
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
    if (!depthwise && (uint32_t)weights->dims[3] != inputs)
        return refuse(query, "grouped convolutions are not supported");
    const struct mica_padding *padding = &query->op->window.padding;
    if (padding->left < 0 || padding->top < 0 || padding->left > 64 || padding->top > 64)
        return refuse(query, "padding %d, %d is out of the NN cores' range", padding->left, padding->top);
    struct viv_window window;
    return check_product(query, outputs, query->op->window.activation) &&
           check_channels(query, inputs * VIV_PHASES, outputs) &&
           viv_window_make(query->chip, query->graph, query->op, &window, query->reason, query->size) &&
           (depthwise ? check_multiplier(query, &window, inputs, outputs) : check_kernel(query, &window, inputs));
}

static bool supports_transpose_conv(const struct query *query)
{
    const struct mica_tensor *in = mica_op_input(query->graph, query->op, 2);
    const struct mica_tensor *weights = mica_op_input(query->graph, query->op, 1);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    const struct mica_window *w = &query->op->window;
    if (!check_image4(query, in, "input") || !check_image4(query, out, "output"))
        return false;
    if (!weights || weights->rank != 4)
        return refuse(query, "the weights do not have four dimensions");
    if (w->stride_x > 8 || w->stride_y > 8)
        return refuse(query, "stride %dx%d is not supported, at most 8x8", w->stride_x, w->stride_y);
    if (out->dims[1] > (int32_t)VIV_MAX_IMAGE || out->dims[2] > (int32_t)VIV_MAX_IMAGE)
        return refuse(query, "images of more than %u columns or rows do not fit the NN descriptor", VIV_MAX_IMAGE);
    if (!check_product(query, (uint32_t)out->dims[3], w->activation) ||
        !check_channels(query, (uint32_t)in->dims[3], (uint32_t)out->dims[3]))
        return false;
    return viv_transpose_conv_fits(query->chip, query->graph, query->op) ||
           refuse(query, "kernel %dx%d or its padding is too large for the NN cores", w->kernel_x, w->kernel_y);
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

/* Two computed tensors of one shape and type, and the output likewise. */
static bool check_pair(const struct query *query)
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
    return viv_add_columns(out->bytes) || refuse(query, "%zu values are too many for one job", out->bytes);
}

static bool supports_add(const struct query *query)
{
    const struct mica_tensor *a = mica_op_input(query->graph, query->op, 0);
    const struct mica_tensor *b = mica_op_input(query->graph, query->op, 1);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    if (!check_pair(query))
        return false;
    struct viv_add add = viv_add_weights(a, b, out, query->op->kind == MICA_OP_SUB);
    if (add.error >= 1)
        return refuse(query,
                      "the inputs' scales %g and %g are too coarse for the output's %g: the NN cores' 8-bit "
                      "factors would be wrong by %.1f steps",
                      (double)a->quant.scale[0], (double)b->quant.scale[0], (double)out->quant.scale[0], add.error);
    return check_scale(query, a->quant.scale[0], add.weight_scale, out->quant.scale[0]);
}

static bool same_quantization(const struct mica_tensor *a, const struct mica_tensor *b)
{
    return a->type == b->type && a->quant.scale[0] == b->quant.scale[0] &&
           a->quant.zero_point[0] == b->quant.zero_point[0];
}

/* With one constant operand. */
static bool supports_constant(const struct query *query)
{
    int index = viv_constant_input(query->graph, query->op);
    const struct mica_tensor *constant = mica_op_input(query->graph, query->op, (uint32_t)index);
    const struct mica_tensor *data = mica_op_input(query->graph, query->op, 1 - (uint32_t)index);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    if (!check_quantized(query, data, "input") || !check_quantized(query, out, "output") ||
        !check_same_type(query, data, out) || !check_same_type(query, data, constant) ||
        !check_image(query, data, "input"))
        return false;
    if (constant->problem || constant->quant.count != 1)
        return refuse(query, "the constant needs one scale and zero point");
    if (!same_shape(data, out))
        return refuse(query, "input and output have different shapes; broadcasting computed values is not supported");
    struct viv_shape shape = viv_shape_of(out);
    if (shape.w > VIV_MAX_IMAGE || shape.h > VIV_MAX_IMAGE)
        return refuse(query, "images of more than %u columns or rows do not fit the NN descriptor", VIV_MAX_IMAGE);
    const char *why = viv_constant_refusal(query->chip, query->graph, query->op);
    return why ? refuse(query, "%s", why) : check_channels(query, shape.c, shape.c);
}

static bool supports_bilinear(const struct query *query)
{
    const struct mica_tensor *in = mica_op_input(query->graph, query->op, 0);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    if (!check_image4(query, in, "input") || !check_image4(query, out, "output"))
        return false;
    if (!same_quantization(in, out))
        return refuse(query, "input and output are quantized differently");
    const char *why = viv_bilinear_refusal(query->graph, query->op);
    return why ? refuse(query, "%s", why) : check_channels(query, (uint32_t)in->dims[3], (uint32_t)in->dims[3]);
}

static bool supports_maximum(const struct query *query)
{
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    return check_pair(query) && ((same_quantization(mica_op_input(query->graph, query->op, 0), out) &&
                                  same_quantization(mica_op_input(query->graph, query->op, 1), out)) ||
                                 refuse(query, "inputs and output are quantized differently"));
}

/* One value from one. */
static bool check_unary(const struct query *query)
{
    const struct mica_tensor *in = mica_op_input(query->graph, query->op, 0);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    return check_quantized(query, in, "input") && check_quantized(query, out, "output") &&
           (viv_add_columns(out->bytes) || refuse(query, "%zu values are too many for one job", out->bytes));
}

/* TFLite has absolute values of int8 alone. */
static bool check_signed(const struct query *query)
{
    return query->op->kind != MICA_OP_ABS || mica_op_input(query->graph, query->op, 0)->type == MICA_TYPE_INT8 ||
           refuse(query, "%s of uint8 does not exist in TFLite", query->op->type);
}

static bool supports_unary(const struct query *query)
{
    const struct mica_tensor *in = mica_op_input(query->graph, query->op, 0);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    if (!check_unary(query) || !check_signed(query))
        return false;
    struct viv_requant requant;
    int32_t weight;
    double factor = (double)in->quant.scale[0] / out->quant.scale[0];
    return viv_unary_factor(query->chip, factor, &weight, &requant) ||
           refuse(query, "the scales %g and %g give a factor outside the NN cores' range", (double)in->quant.scale[0],
                  (double)out->quant.scale[0]);
}

static bool supports_fold(const struct query *query)
{
    const struct mica_tensor *in = mica_op_input(query->graph, query->op, 0);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    if (!check_unary(query) || !check_signed(query))
        return false;
    struct viv_fold fold;
    if (!viv_fold_weights(query->chip, query->op, in, out, &fold))
        return refuse(query, "the scales %g and %g give a factor outside the NN cores' range",
                      (double)in->quant.scale[0], (double)out->quant.scale[0]);
    return fold.error < MAX_FOLD_ERROR ||
           refuse(query, "the NN cores' 8-bit factors would be wrong by %.2f steps", fold.error);
}

/* Bytes that only go somewhere else. */
static bool supports_move(const struct query *query)
{
    const struct mica_op *op = query->op;
    bool several = op->kind == MICA_OP_CONCATENATION || op->kind == MICA_OP_PACK;
    uint32_t first = several ? 0 : mica_op_data_input(op), count = several ? op->input_count : 1;
    for (uint32_t i = first; i < first + count; i++) {
        const struct mica_tensor *in = mica_op_input(query->graph, op, i);
        if (!check_quantized(query, in, "input"))
            return false;
        for (uint32_t j = 0; j < op->output_count; j++) {
            const struct mica_tensor *out = mica_op_output(query->graph, op, j);
            if (!check_quantized(query, out, "output"))
                return false;
            if (!same_quantization(in, out))
                return refuse(query, "input %u is not quantized like the output", i);
            struct viv_shape shape = viv_shape_of(out);
            if (!viv_shape_flat(shape) && !viv_shape_transposable(shape))
                return refuse(query, "the output has a dimension above %d, too large for the TP cores", INT16_MAX);
        }
    }
    return viv_move_supported(query->graph, op, query->reason, query->size);
}

static bool supports_concatenation(const struct query *query)
{
    const struct mica_op *op = query->op;
    const struct mica_tensor *out = mica_op_output(query->graph, op, 0);
    if (op->activation != MICA_ACT_NONE)
        return refuse(query, "a concatenation with an activation is not supported");
    if (op->axis != (int32_t)out->rank - 1)
        return supports_move(query);
    if (!check_quantized(query, out, "output") || !check_image(query, out, "output"))
        return false;
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
    const struct mica_tensor *value = mica_op_input(query->graph, query->op, 2);
    if (value && (value->problem || !value->data || value->bytes != 1 || !is_byte(value)))
        return refuse(query, "the padding value is not a constant of one byte");
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

static bool check_average_axes(const struct query *query)
{
    const struct mica_tensor *in = mica_op_input(query->graph, query->op, 0);
    if (query->op->kind == MICA_OP_AVERAGE_POOL_2D)
        return true;
    return (in->rank == 4 && query->op->axes == 6) ||
           refuse(query, "only rows and columns of images can be reduced (axes 1 and 2 of four)");
}

static bool supports_average(const struct query *query)
{
    const struct mica_tensor *in = mica_op_input(query->graph, query->op, 0);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    if (!check_image4(query, in, "input") || !check_quantized(query, out, "output") ||
        !check_image(query, out, "output") || !check_same_type(query, in, out) || !check_average_axes(query))
        return false;
    struct mica_op average = viv_average_op(query->graph, query->op);
    const struct mica_padding *padding = &average.window.padding;
    if (padding->left || padding->top || padding->right > 0 || padding->bottom > 0)
        return refuse(query,
                      "averages with padding are not supported: windows at the border have divisors of their own");
    struct viv_requant requant;
    if (!viv_requant_factor(query->chip, viv_average_factor(query->graph, query->op), &requant))
        return refuse(query, "the scales %g and %g give a factor outside the NN cores' range",
                      (double)in->quant.scale[0], (double)out->quant.scale[0]);
    if (!check_channels(query, (uint32_t)in->dims[3] * VIV_PHASES, (uint32_t)in->dims[3]))
        return false;
    uint64_t pixels = (uint64_t)in->dims[1] * (uint64_t)in->dims[2];
    if (viv_average_global(query->graph, &average))
        return pixels * 4 <= VIV_MAX_KERNEL_WEIGHTS ||
               refuse(query, "%llu pixels are too many for one average", (unsigned long long)pixels);
    struct viv_window window;
    return viv_window_make(query->chip, query->graph, &average, &window, query->reason, query->size);
}

static bool supports_max_pool(const struct query *query)
{
    const struct mica_tensor *in = mica_op_input(query->graph, query->op, 0);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    if (!check_image4(query, in, "input") || !check_quantized(query, out, "output") ||
        !check_image(query, out, "output"))
        return false;
    if (query->op->kind == MICA_OP_REDUCE_MAX && !check_average_axes(query))
        return false;
    const struct mica_window window = viv_maximum_window(query->graph, query->op), *w = &window;
    bool one = out->bytes == (size_t)in->dims[3];
    if (!same_quantization(in, out))
        return refuse(query, "input and output are quantized differently");
    if (w->kernel_x != w->kernel_y || w->kernel_x < 2 || w->kernel_x > VIV_MAX_POOL)
        return refuse(query, "windows of %dx%d are not supported, only squares from 2x2 to %dx%d", w->kernel_x,
                      w->kernel_y, VIV_MAX_POOL, VIV_MAX_POOL);
    if (!one && (w->stride_x != w->stride_y || w->stride_x > 2))
        return refuse(query, "stride %dx%d is not supported, only 1x1 and 2x2", w->stride_x, w->stride_y);
    return (in->dims[1] < INT16_MAX / 2 && in->dims[2] < INT16_MAX / 2) ||
           refuse(query, "the image is too large for the TP cores");
}

static bool supported(const struct query *query)
{
    switch (query->op->kind) {
    case MICA_OP_CONV_2D:
    case MICA_OP_DEPTHWISE_CONV_2D:
        return supports_conv(query);
    case MICA_OP_FULLY_CONNECTED:
        return supports_fully_connected(query);
    case MICA_OP_TRANSPOSE_CONV:
        return supports_transpose_conv(query);
    case MICA_OP_AVERAGE_POOL_2D:
    case MICA_OP_MEAN:
        return supports_average(query);
    case MICA_OP_MAX_POOL_2D:
    case MICA_OP_REDUCE_MAX:
        return supports_max_pool(query);
    case MICA_OP_LOGISTIC:
    case MICA_OP_TANH:
    case MICA_OP_HARD_SWISH:
    case MICA_OP_ELU:
    case MICA_OP_EXP:
    case MICA_OP_SQRT:
    case MICA_OP_RSQRT:
    case MICA_OP_LOG:
        return refuse(query, "%s needs a table: how the TP cores interpolate between its entries is not known",
                      query->op->type);
    case MICA_OP_SQUARED_DIFFERENCE:
    case MICA_OP_DIV:
    case MICA_OP_BATCH_MATMUL:
        return refuse(query, "%s multiplies computed values: the NN cores only multiply by constant weights",
                      query->op->type);
    case MICA_OP_ADD:
    case MICA_OP_SUB:
    case MICA_OP_MUL:
        if (viv_constant_input(query->graph, query->op) >= 0)
            return supports_constant(query);
        if (query->op->kind == MICA_OP_MUL)
            return refuse(query, "MUL multiplies computed values: the NN cores only multiply by constant weights");
        return supports_add(query);
    case MICA_OP_RESIZE_BILINEAR:
        return supports_bilinear(query);
    case MICA_OP_MAXIMUM:
    case MICA_OP_MINIMUM:
        return supports_maximum(query);
    case MICA_OP_QUANTIZE:
    case MICA_OP_RELU:
    case MICA_OP_RELU6:
    case MICA_OP_RELU_N1_TO_1:
    case MICA_OP_RELU_0_TO_1:
        return supports_unary(query);
    case MICA_OP_LEAKY_RELU:
    case MICA_OP_ABS:
        return supports_fold(query);
    case MICA_OP_SLICE:
    case MICA_OP_SPLIT:
    case MICA_OP_PACK:
    case MICA_OP_UNPACK:
    case MICA_OP_TRANSPOSE:
    case MICA_OP_MIRROR_PAD:
    case MICA_OP_GATHER:
    case MICA_OP_GATHER_ND:
    case MICA_OP_REVERSE:
    case MICA_OP_SPACE_TO_DEPTH:
    case MICA_OP_DEPTH_TO_SPACE:
    case MICA_OP_RESIZE_NEAREST:
        return supports_move(query);
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
