/* SPDX-License-Identifier: MIT */
/* Convolutions and fully connected layers: sums of products with weights, requantized. */
#include "graph/check.h"

#include <math.h>

/* ---- weights ---------------------------------------------------------- */

static const struct mica_tensor *data_of(const struct mica_check *check)
{
    return mica_check_input(check, mica_op_data_input(check->op));
}

/* int16 values have zero point 0, int8 weights, and no transposed convolution. */
static bool check_int16(struct mica_check *check)
{
    const struct mica_tensor *input = data_of(check), *weights = mica_check_input(check, 1);
    const struct mica_tensor *output = mica_check_output(check, 0);
    if (check->op->kind == MICA_OP_TRANSPOSE_CONV)
        return mica_reject(check, "type int16 of the input is not supported: uint8, int8 and float32 are");
    if (output->type != MICA_TYPE_INT16 || weights->type != MICA_TYPE_INT8)
        return mica_reject(check, "int16 input with %s weights and %s output is not supported",
                           mica_type_name(weights->type), mica_type_name(output->type));
    if (input->quant.count != 1 || output->quant.count != 1)
        return mica_reject(check, "int16 input and output need exactly one scale and zero point");
    if (!input->quant.symmetric || !output->quant.symmetric)
        return mica_reject(check, "int16 input and output should have zero point 0");
    return true;
}

/* Input, weights and output agree: all float32, all uint8, all int8, or int16 with int8 weights. */
static bool check_types(struct mica_check *check)
{
    const struct mica_tensor *input = data_of(check), *weights = mica_check_input(check, 1);
    const struct mica_tensor *output = mica_check_output(check, 0);
    if (input->type == MICA_TYPE_INT16)
        return check_int16(check);
    if (!mica_check_number(check, input, "input") || !mica_check_number(check, output, "output"))
        return false;
    if (input->type != output->type)
        return mica_reject(check, "input is %s but output is %s", mica_type_name(input->type),
                           mica_type_name(output->type));
    if (weights->type == input->type)
        return true;
    if (input->type == MICA_TYPE_FLOAT32 && weights->quant.count)
        return mica_reject(check,
                           "float32 input with %s weights: hybrid operations (dynamic-range quantization) are not "
                           "supported",
                           mica_type_name(weights->type));
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
    double sum = (double)data_of(check)->quant.scale[0] * (double)weights->quant.scale[0];
    double error = fabs(sum - (double)bias->quant.scale[0]) / (double)mica_check_output(check, 0)->quant.scale[0];
    if (error <= 0.02)
        return true;
    return mica_reject(check, "the bias's scale %g should be %g, the product of the input's and the weights'",
                       (double)bias->quant.scale[0], sum);
}

/* int16 has 64-bit sums, and a bias of that size or the smaller one. */
static bool check_bias_type(struct mica_check *check, const struct mica_tensor *bias)
{
    enum mica_type data = data_of(check)->type, type = data == MICA_TYPE_FLOAT32 ? data : MICA_TYPE_INT32;
    if (bias->type == type || (data == MICA_TYPE_INT16 && bias->type == MICA_TYPE_INT64))
        return true;
    return mica_reject(check, "the bias is %s instead of %s", mica_type_name(bias->type), mica_type_name(type));
}

static bool check_bias(struct mica_check *check, int32_t channels)
{
    const struct mica_tensor *bias = mica_check_input(check, mica_op_data_input(check->op) ? 3 : 2);
    if (!bias)
        return true;
    if (!check_bias_type(check, bias))
        return false;
    if (mica_elements(bias) != (uint64_t)channels)
        return mica_reject(check, "the bias's shape %s does not fit %d output channels", mica_shape_text(bias).text,
                           channels);
    return !mica_is_quantized(data_of(check)->type) || check_bias_scale(check, bias);
}

static bool check_requantization(struct mica_check *check)
{
    const struct mica_tensor *input = data_of(check), *weights = mica_check_input(check, 1);
    if (!mica_is_quantized(input->type))
        return true;
    return mica_check_factor(check, (double)input->quant.scale[0] * (double)weights->quant.largest_scale /
                                        (double)mica_check_output(check, 0)->quant.scale[0]);
}

/* ---- convolutions ----------------------------------------------------- */

/* Images and weights of four dimensions; `axis` is the weights' channel dimension. */
static bool check_convolution_shapes(struct mica_check *check, int32_t axis)
{
    const struct mica_tensor *input = data_of(check), *weights = mica_check_input(check, 1);
    const struct mica_tensor *output = mica_check_output(check, 0);
    if (!mica_check_rank(check, input, "input", 4) || !mica_check_rank(check, weights, "weights", 4) ||
        !mica_check_rank(check, output, "output", 4))
        return false;
    check->op->window.kernel_y = weights->dims[1];
    check->op->window.kernel_x = weights->dims[2];
    if (output->dims[3] != weights->dims[axis])
        return mica_reject(check, "weights %s do not make the %d channels of the output", mica_shape_text(weights).text,
                           output->dims[3]);
    return true;
}

static bool check_weights(struct mica_check *check, int32_t axis)
{
    return check_weight_scales(check, axis) && check_symmetric(check) &&
           check_bias(check, mica_check_output(check, 0)->dims[3]) && check_requantization(check);
}

/* What convolution and depthwise convolution share. */
static bool check_convolution(struct mica_check *check, int32_t axis)
{
    return mica_check_io(check, 2, 3, 1) && check_convolution_shapes(check, axis) && check_types(check) &&
           mica_check_window(check, mica_check_input(check, 0), mica_check_output(check, 0)) &&
           check_weights(check, axis);
}

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

/* The convolution whose transposition it is goes from the output's size to the data's. */
bool mica_rule_transpose_conv(struct mica_check *check)
{
    if (!mica_check_io(check, 3, 4, 1) || !check_convolution_shapes(check, 0) || !check_types(check))
        return false;
    const struct mica_tensor *shape = mica_check_input(check, 0), *weights = mica_check_input(check, 1);
    const struct mica_tensor *data = mica_check_input(check, 2), *output = mica_check_output(check, 0);
    if (!mica_check_constant(check, shape, "output shape", 4))
        return false;
    for (uint32_t i = 0; i < 4; i++)
        if (((const int32_t *)shape->data)[i] != output->dims[i])
            return mica_reject(check, "output %s does not have the shape that input 0 asks for",
                               mica_shape_text(output).text);
    if (data->dims[3] != weights->dims[3])
        return mica_reject(check, "weights %s do not fit the %d channels of the input", mica_shape_text(weights).text,
                           data->dims[3]);
    struct mica_window *window = &check->op->window;
    if (window->dilation_x == 0)
        window->dilation_x = 1;
    if (window->dilation_y == 0)
        window->dilation_y = 1;
    if (!mica_check_window(check, output, data) || !check_weights(check, 0))
        return false;
    return (window->dilation_x == 1 && window->dilation_y == 1) ||
           mica_reject(check, "dilated transposed convolution is not supported");
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
