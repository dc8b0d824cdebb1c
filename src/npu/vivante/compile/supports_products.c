/* SPDX-License-Identifier: MIT */
/* Convolutions and fully connected layers. */
#include "npu/vivante/compile/channels.h"
#include "npu/vivante/compile/compose.h"
#include "npu/vivante/compile/elementwise.h"
#include "npu/vivante/compile/query.h"
#include "npu/vivante/compile/requant.h"
#include "npu/vivante/compile/window.h"

#define MAX_DENSE_TAPS (1u << 26) /* of all kernels of a job, nearly all of them zero points */
#define MOST_EXPANSION 4u         /* of a job with more weights than that, by lanes or space-to-depth */
#define MAX_SCALES 4096u          /* of the weights of one layer */
#define MAX_FACTOR 2.0            /* i.MX 8M Plus has no larger ones; on V7 two stages may then clamp too early */

/* One zero point for all of it, and one scale, or one for each output channel. */
static bool check_weights(const struct viv_query *query, const struct mica_tensor *weights)
{
    if (!weights || weights->problem)
        return viv_refuse(query, "the weights can't be used: %s", weights ? weights->problem : "there are none");
    if (!weights->data)
        return viv_refuse(query, "the weights are not constant");
    if (!viv_is_byte(weights))
        return viv_refuse(query, "the weights are %s; the NN cores take uint8 and int8", mica_type_name(weights->type));
    if (!weights->quant.count)
        return viv_refuse(query, "the weights are not quantized");
    for (uint32_t i = 1; i < weights->quant.count; i++)
        if (weights->quant.zero_point[i] != weights->quant.zero_point[0])
            return viv_refuse(query,
                              "the weights' channels have different zero points; an NN job has one for all weights");
    return true;
}

static bool check_bias(const struct viv_query *query, const struct mica_tensor *bias, uint32_t channels)
{
    if (!bias)
        return true;
    if (bias->problem || bias->type != MICA_TYPE_INT32 || bias->bytes != (size_t)channels * 4)
        return viv_refuse(query, "the bias is not one int32 per output channel");
    return bias->data || viv_refuse(query, "the bias is not constant");
}

/* Nothing is known of larger kernels, on boards or in simulators. */
static bool check_kernel(const struct viv_query *query, const struct viv_window *window, uint32_t inputs)
{
    uint64_t weights = (uint64_t)window->kernel_w * window->kernel_h * viv_window_phases(window) * inputs;
    return weights <= VIV_MAX_KERNEL_WEIGHTS ||
           viv_refuse(query, "kernels of %llu weights are too large for the NN cores, at most %u are supported",
                      (unsigned long long)weights, VIV_MAX_KERNEL_WEIGHTS);
}

/* Channels in groups (channels.h). On some chips the second stage is a dense 1x1 job. */
static bool check_channel_scales(const struct viv_query *query, uint32_t outputs, enum mica_activation activation)
{
    const struct mica_tensor *in = mica_op_input(query->graph, query->op, mica_op_data_input(query->op));
    const struct mica_tensor *weights = mica_op_input(query->graph, query->op, 1);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    uint32_t bias = mica_op_data_input(query->op) == 0 ? 2 : 3;
    if (weights->quant.count != outputs)
        return viv_refuse(query, "the weights have %u scales for %u output channels", weights->quant.count, outputs);
    if (outputs > MAX_SCALES)
        return viv_refuse(query, "%u output channels with a scale each, at most %u are supported", outputs, MAX_SCALES);
    for (uint32_t i = 0; i < outputs; i++) {
        double factor = (double)in->quant.scale[0] * weights->quant.scale[i] / out->quant.scale[0];
        if (!(factor < MAX_FACTOR))
            return viv_refuse(
                query, "scales per channel: a step of channel %u's sums is %g of the output's, it must be below %g", i,
                factor, MAX_FACTOR);
    }
    struct viv_channel_layer layer = {.chip = query->chip, .in = in, .weights = weights, .out = out};
    layer.bias = mica_op_input(query->graph, query->op, bias);
    viv_clamp_first(viv_bounds_of(activation, out), viv_zero_point(out), &layer.zero, &layer.relu);
    return viv_channels_possible(&layer, query->reason, query->size);
}

/* With a depth multiplier all channels are one dense job. */
static bool check_multiplier(const struct viv_query *query, const struct viv_window *window, uint32_t inputs,
                             uint32_t outputs)
{
    uint64_t taps = (uint64_t)window->kernel_w * window->kernel_h * viv_window_phases(window) * inputs * outputs;
    return inputs == outputs || taps <= MAX_DENSE_TAPS ||
           viv_refuse(query, "depth multiplier %d makes a dense job of %llu weights, at most %u are supported",
                      query->op->window.depth_multiplier, (unsigned long long)taps, MAX_DENSE_TAPS);
}

/* Large strides and dilations make many times the weights that a model has: so small ones can't take all memory. */
static bool check_expansion(const struct viv_query *query, const struct viv_window *window, uint32_t inputs,
                            uint32_t outputs)
{
    uint64_t taps = (uint64_t)window->kernel_w * window->kernel_h * viv_window_phases(window) * inputs * outputs;
    uint64_t own = mica_op_input(query->graph, query->op, 1)->bytes;
    return taps <= MAX_DENSE_TAPS || taps <= MOST_EXPANSION * own ||
           viv_refuse(query, "its %llu weights would become %llu, more than %u and %u times as many",
                      (unsigned long long)own, (unsigned long long)taps, MAX_DENSE_TAPS, MOST_EXPANSION);
}

/* What convolutions and fully connected layers share. */
static bool check_product(const struct viv_query *query, uint32_t outputs, enum mica_activation activation)
{
    uint32_t data = mica_op_data_input(query->op);
    const struct mica_tensor *in = mica_op_input(query->graph, query->op, data);
    const struct mica_tensor *weights = mica_op_input(query->graph, query->op, 1);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    return viv_check_same_type(query, in, out) && check_weights(query, weights) &&
           check_bias(query, mica_op_input(query->graph, query->op, data == 0 ? 2 : 3), outputs) &&
           (viv_channels_differ(weights)
                ? check_channel_scales(query, outputs, activation)
                : viv_check_scale(query, in->quant.scale[0], weights->quant.scale[0], out->quant.scale[0]));
}

bool viv_supports_conv(const struct viv_query *query)
{
    const struct mica_tensor *in = mica_op_input(query->graph, query->op, 0);
    const struct mica_tensor *weights = mica_op_input(query->graph, query->op, 1);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    bool depthwise = query->op->kind == MICA_OP_DEPTHWISE_CONV_2D;
    if (!viv_check_image4(query, in, "input") || !viv_check_image4(query, out, "output"))
        return false;
    if (!weights || weights->rank != 4)
        return viv_refuse(query, "the weights do not have four dimensions");
    uint32_t inputs = (uint32_t)in->dims[3], outputs = (uint32_t)out->dims[3];
    if (!depthwise && (uint32_t)weights->dims[3] != inputs)
        return viv_refuse(query, "grouped convolutions are not supported");
    const struct mica_padding *padding = &query->op->window.padding;
    if (padding->left < 0 || padding->top < 0)
        return viv_refuse(query, "padding %d, %d is negative", padding->left, padding->top);
    struct viv_window window;
    return check_product(query, outputs, query->op->window.activation) &&
           viv_window_make(query->chip, query->graph, query->op, &window, query->reason, query->size) &&
           viv_check_channels(query, inputs * viv_window_phases(&window), outputs) &&
           (depthwise ? check_multiplier(query, &window, inputs, outputs)
                      : check_expansion(query, &window, inputs, outputs)) &&
           check_kernel(query, &window, depthwise && inputs == outputs ? 1 : inputs);
}

bool viv_supports_transpose_conv(const struct viv_query *query)
{
    const struct mica_tensor *in = mica_op_input(query->graph, query->op, 2);
    const struct mica_tensor *weights = mica_op_input(query->graph, query->op, 1);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    const struct mica_window *w = &query->op->window;
    if (!viv_check_image4(query, in, "input") || !viv_check_image4(query, out, "output"))
        return false;
    if (!weights || weights->rank != 4)
        return viv_refuse(query, "the weights do not have four dimensions");
    if (w->stride_x > 8 || w->stride_y > 8)
        return viv_refuse(query, "stride %dx%d is not supported, at most 8x8", w->stride_x, w->stride_y);
    if (out->dims[1] > (int32_t)VIV_MAX_IMAGE || out->dims[2] > (int32_t)VIV_MAX_IMAGE)
        return viv_refuse(query, "images of more than %u columns or rows do not fit the NN descriptor", VIV_MAX_IMAGE);
    if (!check_product(query, (uint32_t)out->dims[3], w->activation) ||
        !viv_check_channels(query, (uint32_t)in->dims[3], (uint32_t)out->dims[3]))
        return false;
    return viv_transpose_conv_fits(query->chip, query->graph, query->op) ||
           viv_refuse(query, "kernel %dx%d or its padding is too large for the NN cores", w->kernel_x, w->kernel_y);
}

bool viv_supports_fully_connected(const struct viv_query *query)
{
    const struct mica_tensor *in = mica_op_input(query->graph, query->op, 0);
    const struct mica_tensor *weights = mica_op_input(query->graph, query->op, 1);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    if (!viv_check_quantized(query, in, "input") || !viv_check_quantized(query, out, "output"))
        return false;
    if (!weights || weights->rank != 2)
        return viv_refuse(query, "the weights do not have two dimensions");
    uint32_t outputs = (uint32_t)weights->dims[0], inputs = (uint32_t)weights->dims[1];
    uint64_t rows = in->bytes / inputs;
    if (in->bytes != rows * inputs || out->bytes != rows * outputs)
        return viv_refuse(query, "%zu input values are no rows of %u", in->bytes, inputs);
    if (rows > VIV_MAX_IMAGE || (rows > 1 && inputs > INT16_MAX))
        return viv_refuse(query, "%llu rows of %u values are too many for the NN cores", (unsigned long long)rows,
                          inputs);
    if (inputs > VIV_MAX_KERNEL_WEIGHTS)
        return viv_refuse(query, "%u input values are too many for the NN cores, at most %u are supported", inputs,
                          VIV_MAX_KERNEL_WEIGHTS);
    uint32_t size = viv_fully_connected_kernel(query->chip, inputs);
    return check_product(query, outputs, query->op->activation) &&
           viv_check_channels(query, inputs == 1 ? 1 : inputs / (size * size), outputs);
}
