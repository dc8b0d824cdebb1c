/* SPDX-License-Identifier: MIT */
#include "delegate/op_params.h"

enum mica_op_kind mica_builtin_kind(int32_t code)
{
    switch (code) {
    case TFL_BUILTIN_ADD:
        return MICA_OP_ADD;
    case TFL_BUILTIN_AVERAGE_POOL_2D:
        return MICA_OP_AVERAGE_POOL_2D;
    case TFL_BUILTIN_CONCATENATION:
        return MICA_OP_CONCATENATION;
    case TFL_BUILTIN_CONV_2D:
        return MICA_OP_CONV_2D;
    case TFL_BUILTIN_DEPTHWISE_CONV_2D:
        return MICA_OP_DEPTHWISE_CONV_2D;
    case TFL_BUILTIN_DEQUANTIZE:
        return MICA_OP_DEQUANTIZE;
    case TFL_BUILTIN_FULLY_CONNECTED:
        return MICA_OP_FULLY_CONNECTED;
    case TFL_BUILTIN_LOGISTIC:
        return MICA_OP_LOGISTIC;
    case TFL_BUILTIN_MAX_POOL_2D:
        return MICA_OP_MAX_POOL_2D;
    case TFL_BUILTIN_RESHAPE:
    case TFL_BUILTIN_SQUEEZE:
    case TFL_BUILTIN_EXPAND_DIMS:
        return MICA_OP_RESHAPE;
    case TFL_BUILTIN_RESIZE_BILINEAR:
        return MICA_OP_RESIZE_BILINEAR;
    case TFL_BUILTIN_SOFTMAX:
        return MICA_OP_SOFTMAX;
    case TFL_BUILTIN_PAD:
        return MICA_OP_PAD;
    case TFL_BUILTIN_RESIZE_NEAREST_NEIGHBOR:
        return MICA_OP_RESIZE_NEAREST;
    case TFL_BUILTIN_QUANTIZE:
        return MICA_OP_QUANTIZE;
    default:
        return MICA_OP_UNKNOWN;
    }
}

static const char *read_activation(int value, enum mica_activation *activation)
{
    switch (value) {
    case TFL_ACT_NONE:
        *activation = MICA_ACT_NONE;
        return NULL;
    case TFL_ACT_RELU:
        *activation = MICA_ACT_RELU;
        return NULL;
    case TFL_ACT_RELU_N1_TO_1:
        *activation = MICA_ACT_RELU_N1_TO_1;
        return NULL;
    case TFL_ACT_RELU6:
        *activation = MICA_ACT_RELU6;
        return NULL;
    default:
        return "its fused activation is none of RELU, RELU_N1_TO_1 and RELU6";
    }
}

/* A dimension of input `i`, 0 when there is none: what that breaks is the graph's rules to say. */
static int32_t input_size(const struct mica_graph *graph, const struct mica_op *op, uint32_t i, int dimension)
{
    const struct mica_tensor *tensor = mica_op_input(graph, op, i);
    return tensor && tensor->rank == 4 ? tensor->dims[dimension] : 0;
}

static const char *resolve_padding(const struct mica_graph *graph, int padding, struct mica_op *op)
{
    struct mica_window *window = &op->window;
    if (padding == TFL_PADDING_VALID)
        return NULL;
    if (padding != TFL_PADDING_SAME)
        return "its padding is neither SAME nor VALID";
    window->padding.left = mica_same_padding(input_size(graph, op, 0, 2), window->kernel_x, window->stride_x,
                                             window->dilation_x, &window->padding.right);
    window->padding.top = mica_same_padding(input_size(graph, op, 0, 1), window->kernel_y, window->stride_y,
                                            window->dilation_y, &window->padding.bottom);
    return NULL;
}

static const char *read_conv(const struct mica_graph *graph, const struct tfl_conv_params *params, struct mica_op *op)
{
    op->window = (struct mica_window){
        .kernel_x = input_size(graph, op, 1, 2),
        .kernel_y = input_size(graph, op, 1, 1),
        .stride_x = params->stride_width,
        .stride_y = params->stride_height,
        .dilation_x = params->dilation_width,
        .dilation_y = params->dilation_height,
    };
    const char *problem = read_activation(params->activation, &op->window.activation);
    return problem ? problem : resolve_padding(graph, params->padding, op);
}

/* The depth multiplier is left to the shapes, as in TFLite's kernels: there are files with a wrong one. */
static const char *read_depthwise(const struct mica_graph *graph, const struct tfl_depthwise_params *params,
                                  struct mica_op *op)
{
    const struct tfl_conv_params conv = {
        .padding = params->padding,
        .stride_width = params->stride_width,
        .stride_height = params->stride_height,
        .activation = params->activation,
        .dilation_width = params->dilation_width,
        .dilation_height = params->dilation_height,
    };
    return read_conv(graph, &conv, op);
}

static const char *read_pool(const struct mica_graph *graph, const struct tfl_pool_params *params, struct mica_op *op)
{
    op->window = (struct mica_window){
        .kernel_x = params->filter_width,
        .kernel_y = params->filter_height,
        .stride_x = params->stride_width,
        .stride_y = params->stride_height,
        .dilation_x = 1,
        .dilation_y = 1,
    };
    const char *problem = read_activation(params->activation, &op->window.activation);
    return problem ? problem : resolve_padding(graph, params->padding, op);
}

static const char *read_fully_connected(const struct tfl_fully_connected_params *params, struct mica_op *op)
{
    if (params->weights_format != 0)
        return "its weights are shuffled for a CPU kernel";
    return read_activation(params->activation, &op->activation);
}

static const char *read_concatenation(const struct mica_graph *graph, const struct tfl_concatenation_params *params,
                                      struct mica_op *op)
{
    const struct mica_tensor *output = mica_op_output(graph, op, 0);
    int64_t rank = output ? (int64_t)output->rank : 0;
    int64_t axis = params->axis < 0 ? params->axis + rank : params->axis;
    if (axis < 0 || axis >= rank)
        return "its axis is none of the tensor's";
    op->axis = (int32_t)axis;
    return read_activation(params->activation, &op->activation);
}

static const char *read_resize(const struct tfl_resize_params *params, struct mica_op *op)
{
    op->resize.align_corners = params->align_corners;
    op->resize.half_pixel_centers = params->half_pixel_centers;
    return NULL;
}

static const char *read_softmax(const struct tfl_softmax_params *params, struct mica_op *op)
{
    op->beta = params->beta;
    return NULL;
}

static const char *read_present(const struct mica_graph *graph, const void *data, struct mica_op *op)
{
    switch (op->kind) {
    case MICA_OP_CONV_2D:
        return read_conv(graph, data, op);
    case MICA_OP_DEPTHWISE_CONV_2D:
        return read_depthwise(graph, data, op);
    case MICA_OP_AVERAGE_POOL_2D:
    case MICA_OP_MAX_POOL_2D:
        return read_pool(graph, data, op);
    case MICA_OP_FULLY_CONNECTED:
        return read_fully_connected(data, op);
    case MICA_OP_ADD:
        return read_activation(((const struct tfl_add_params *)data)->activation, &op->activation);
    case MICA_OP_CONCATENATION:
        return read_concatenation(graph, data, op);
    case MICA_OP_SOFTMAX:
        return read_softmax(data, op);
    case MICA_OP_RESIZE_BILINEAR:
    case MICA_OP_RESIZE_NEAREST:
        return read_resize(data, op);
    default:
        return NULL;
    }
}

static bool has_parameters(enum mica_op_kind kind)
{
    return kind != MICA_OP_UNKNOWN && kind != MICA_OP_RESHAPE && kind != MICA_OP_LOGISTIC && kind != MICA_OP_PAD &&
           kind != MICA_OP_QUANTIZE && kind != MICA_OP_DEQUANTIZE;
}

const char *mica_op_read_params(const struct mica_graph *graph, const void *builtin_data, struct mica_op *op)
{
    if (!has_parameters(op->kind))
        return NULL;
    return builtin_data ? read_present(graph, builtin_data, op) : "its parameters are missing from the model";
}
