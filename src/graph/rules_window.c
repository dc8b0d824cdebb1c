/* SPDX-License-Identifier: MIT */
/* Convolutions, fully connected layers and pools: sums over a window, requantized. */
#include "graph/check.h"

#include <math.h>

/* ---- windows ---------------------------------------------------------- */

static bool in_window_range(int32_t value)
{
    return value >= 1 && value <= MICA_MAX_WINDOW;
}

/* Padding as wide as the window would make outputs that see no input at all. */
static bool padding_fits(int32_t padding, int64_t extent)
{
    return padding >= 0 && padding < extent;
}

static bool check_window_values(struct mica_check *check, const struct mica_window *window)
{
    if (!in_window_range(window->kernel_x) || !in_window_range(window->kernel_y))
        return mica_reject(check, "a window of %dx%d is out of range (1 to %d)", window->kernel_x, window->kernel_y,
                           MICA_MAX_WINDOW);
    if (!in_window_range(window->stride_x) || !in_window_range(window->stride_y))
        return mica_reject(check, "a stride of %dx%d is out of range (1 to %d)", window->stride_x, window->stride_y,
                           MICA_MAX_WINDOW);
    if (!in_window_range(window->dilation_x) || !in_window_range(window->dilation_y))
        return mica_reject(check, "a dilation of %dx%d is out of range (1 to %d)", window->dilation_x,
                           window->dilation_y, MICA_MAX_WINDOW);
    return mica_check_activation(check, window->activation);
}

static bool check_padding(struct mica_check *check, const struct mica_window *window)
{
    int64_t extent_x = mica_window_extent(window->kernel_x, window->dilation_x);
    int64_t extent_y = mica_window_extent(window->kernel_y, window->dilation_y);
    const struct mica_padding *padding = &window->padding;
    if (extent_x > MICA_MAX_WINDOW || extent_y > MICA_MAX_WINDOW)
        return mica_reject(check, "a dilated window of %lldx%lld is larger than %d", (long long)extent_x,
                           (long long)extent_y, MICA_MAX_WINDOW);
    if (padding_fits(padding->left, extent_x) && padding_fits(padding->right, extent_x) &&
        padding_fits(padding->top, extent_y) && padding_fits(padding->bottom, extent_y))
        return true;
    return mica_reject(check, "padding %d, %d, %d, %d (left, top, right, bottom) should be smaller than the window",
                       padding->left, padding->top, padding->right, padding->bottom);
}

/* The images' sizes follow from the window; batch and channels are the caller's. */
static bool check_window(struct mica_check *check, const struct mica_tensor *input, const struct mica_tensor *output)
{
    const struct mica_window *window = &check->op->window;
    if (!check_window_values(check, window) || !check_padding(check, window))
        return false;
    const struct mica_padding *padding = &window->padding;
    int64_t rows = mica_window_output(input->dims[1], mica_window_extent(window->kernel_y, window->dilation_y),
                                      window->stride_y, (int64_t)padding->top + padding->bottom);
    int64_t columns = mica_window_output(input->dims[2], mica_window_extent(window->kernel_x, window->dilation_x),
                                         window->stride_x, (int64_t)padding->left + padding->right);
    if (rows == output->dims[1] && columns == output->dims[2] && input->dims[0] == output->dims[0])
        return true;
    return mica_reject(check, "output %s does not fit: the window makes %dx%lldx%lld of input %s",
                       mica_shape_text(output).text, input->dims[0], (long long)rows, (long long)columns,
                       mica_shape_text(input).text);
}

/* ---- weights ---------------------------------------------------------- */

/* Input, weights and output agree: all float32, all uint8, or all int8. */
static bool check_types(struct mica_check *check)
{
    const struct mica_tensor *input = mica_check_input(check, 0), *weights = mica_check_input(check, 1);
    if (!mica_check_in_out(check))
        return false;
    if (weights->type == input->type)
        return true;
    return mica_reject(check, "%s input with %s weights is not supported", mica_type_name(input->type),
                       mica_type_name(weights->type));
}

/* One scale, or for int8 also one a channel, along `axis` of the weights. */
static bool check_weight_scales(struct mica_check *check, int32_t axis)
{
    const struct mica_tensor *weights = mica_check_input(check, 1);
    const struct mica_quantization *quant = &weights->quant;
    if (!mica_is_integer(weights->type) || quant->count == 1)
        return true;
    if (quant->count == 0)
        return mica_reject(check, "the weights are %s, so they need a scale", mica_type_name(weights->type));
    if (weights->type == MICA_TYPE_UINT8)
        return mica_reject(check, "uint8 weights with one scale a channel are not supported");
    if (quant->axis != axis)
        return mica_reject(check, "the weights' scales run along dimension %d, not along the output channels",
                           quant->axis);
    return true;
}

/* TensorFlow Lite's int8 convolutions take the weights' zero point as 0 without looking at it. */
static bool check_symmetric(struct mica_check *check)
{
    const struct mica_tensor *weights = mica_check_input(check, 1);
    if (weights->type != MICA_TYPE_INT8 || weights->quant.symmetric)
        return true;
    return mica_reject(check, "int8 weights should have zero point 0");
}

/* The bias is added to sums of scale input * weights; TensorFlow Lite's tolerance for one that is not. */
static bool check_bias_scale(struct mica_check *check, const struct mica_tensor *bias)
{
    const struct mica_tensor *weights = mica_check_input(check, 1);
    if (bias->quant.count != 1 || weights->quant.count != 1)
        return true;
    double sum = (double)mica_check_input(check, 0)->quant.scale[0] * (double)weights->quant.scale[0];
    double error = fabs(sum - (double)bias->quant.scale[0]) / (double)mica_check_output(check, 0)->quant.scale[0];
    if (error <= 0.02)
        return true;
    return mica_reject(check, "the bias's scale %g should be %g, the product of the input's and the weights'",
                       (double)bias->quant.scale[0], sum);
}

static bool check_bias(struct mica_check *check, int32_t channels)
{
    const struct mica_tensor *bias = mica_check_input(check, 2);
    if (!bias)
        return true;
    bool integer = mica_is_integer(mica_check_input(check, 0)->type);
    enum mica_type type = integer ? MICA_TYPE_INT32 : MICA_TYPE_FLOAT32;
    if (bias->type != type)
        return mica_reject(check, "the bias is %s instead of %s", mica_type_name(bias->type), mica_type_name(type));
    if (mica_elements(bias) != (uint64_t)channels)
        return mica_reject(check, "the bias's shape %s does not fit %d output channels", mica_shape_text(bias).text,
                           channels);
    return !integer || check_bias_scale(check, bias);
}

static bool check_requantization(struct mica_check *check)
{
    const struct mica_tensor *input = mica_check_input(check, 0), *weights = mica_check_input(check, 1);
    if (!mica_is_integer(input->type))
        return true;
    return mica_check_factor(check, (double)input->quant.scale[0] * (double)weights->quant.largest_scale /
                                        (double)mica_check_output(check, 0)->quant.scale[0]);
}

/* What convolution and depthwise convolution share; `axis` is the weights' channel dimension. */
static bool check_convolution(struct mica_check *check, int32_t axis)
{
    if (!mica_check_io(check, 2, 3, 1))
        return false;
    const struct mica_tensor *input = mica_check_input(check, 0), *weights = mica_check_input(check, 1);
    const struct mica_tensor *output = mica_check_output(check, 0);
    if (!mica_check_rank(check, input, "input", 4) || !mica_check_rank(check, weights, "weights", 4) ||
        !mica_check_rank(check, output, "output", 4))
        return false;
    check->op->window.kernel_y = weights->dims[1];
    check->op->window.kernel_x = weights->dims[2];
    if (output->dims[3] != weights->dims[axis])
        return mica_reject(check, "weights %s do not make the %d channels of the output", mica_shape_text(weights).text,
                           output->dims[3]);
    return check_types(check) && check_window(check, input, output) && check_weight_scales(check, axis) &&
           check_symmetric(check) && check_bias(check, output->dims[3]) && check_requantization(check);
}

/* ---- rules ------------------------------------------------------------ */

bool mica_rule_conv(struct mica_check *check)
{
    if (!check_convolution(check, 0))
        return false;
    const struct mica_tensor *input = mica_check_input(check, 0), *weights = mica_check_input(check, 1);
    int32_t channels = input->dims[3], per_group = weights->dims[3];
    if (channels == per_group)
        return true;
    if (channels % per_group == 0)
        return mica_reject(check, "grouped convolution (%d groups) is not supported", channels / per_group);
    return mica_reject(check, "weights %s do not fit the %d channels of the input", mica_shape_text(weights).text,
                       channels);
}

bool mica_rule_depthwise(struct mica_check *check)
{
    if (!check_convolution(check, 3))
        return false;
    const struct mica_tensor *input = mica_check_input(check, 0), *weights = mica_check_input(check, 1);
    struct mica_window *window = &check->op->window;
    int32_t multiplier = weights->dims[3] / input->dims[3];
    if (weights->dims[0] != 1 || multiplier < 1 || weights->dims[3] % input->dims[3])
        return mica_reject(check, "weights %s do not fit the %d channels of the input", mica_shape_text(weights).text,
                           input->dims[3]);
    if (window->depth_multiplier != 0 && window->depth_multiplier != multiplier)
        return mica_reject(check, "depth multiplier %d contradicts the weights' %d", window->depth_multiplier,
                           multiplier);
    window->depth_multiplier = multiplier;
    return true;
}

static bool check_fully_connected_shapes(struct mica_check *check)
{
    const struct mica_tensor *input = mica_check_input(check, 0), *weights = mica_check_input(check, 1);
    const struct mica_tensor *output = mica_check_output(check, 0);
    if (!mica_check_rank(check, weights, "weights", 2))
        return false;
    uint64_t inputs = (uint64_t)weights->dims[1], outputs = (uint64_t)weights->dims[0];
    if (mica_elements(input) % inputs)
        return mica_reject(check, "input %s does not fit weights %s", mica_shape_text(input).text,
                           mica_shape_text(weights).text);
    if (output->rank < 1 || output->dims[output->rank - 1] != weights->dims[0] ||
        mica_elements(output) != mica_elements(input) / inputs * outputs)
        return mica_reject(check, "output %s does not fit input %s and weights %s", mica_shape_text(output).text,
                           mica_shape_text(input).text, mica_shape_text(weights).text);
    return true;
}

bool mica_rule_fully_connected(struct mica_check *check)
{
    if (!mica_check_io(check, 2, 3, 1) || !check_types(check) || !check_fully_connected_shapes(check))
        return false;
    const struct mica_tensor *weights = mica_check_input(check, 1);
    if (weights->quant.count > 1 && !check_symmetric(check))
        return false;
    return check_weight_scales(check, 0) && check_bias(check, weights->dims[0]) && check_requantization(check) &&
           mica_check_activation(check, check->op->activation);
}

bool mica_rule_pool(struct mica_check *check)
{
    if (!mica_check_io(check, 1, 1, 1) || !mica_check_in_out(check))
        return false;
    const struct mica_tensor *input = mica_check_input(check, 0), *output = mica_check_output(check, 0);
    struct mica_window *window = &check->op->window;
    if (window->dilation_x == 0)
        window->dilation_x = 1;
    if (window->dilation_y == 0)
        window->dilation_y = 1;
    if (!mica_check_rank(check, input, "input", 4) || !mica_check_rank(check, output, "output", 4) ||
        !check_window(check, input, output))
        return false;
    if (window->dilation_x != 1 || window->dilation_y != 1)
        return mica_reject(check, "dilated pooling is not supported");
    if (input->dims[3] != output->dims[3])
        return mica_reject(check, "output %s should have the %d channels of the input", mica_shape_text(output).text,
                           input->dims[3]);
    return mica_check_same_quantization(check, input, output);
}
