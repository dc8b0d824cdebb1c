/* SPDX-License-Identifier: MIT */
#include "delegate/op_params.h"

/* By number; MICA_OP_UNKNOWN, which is 0, for all others. */
static const uint8_t kinds[] = {
    [TFL_BUILTIN_ADD] = MICA_OP_ADD,
    [TFL_BUILTIN_AVERAGE_POOL_2D] = MICA_OP_AVERAGE_POOL_2D,
    [TFL_BUILTIN_CONCATENATION] = MICA_OP_CONCATENATION,
    [TFL_BUILTIN_CONV_2D] = MICA_OP_CONV_2D,
    [TFL_BUILTIN_DEPTHWISE_CONV_2D] = MICA_OP_DEPTHWISE_CONV_2D,
    [TFL_BUILTIN_DEPTH_TO_SPACE] = MICA_OP_DEPTH_TO_SPACE,
    [TFL_BUILTIN_DEQUANTIZE] = MICA_OP_DEQUANTIZE,
    [TFL_BUILTIN_FULLY_CONNECTED] = MICA_OP_FULLY_CONNECTED,
    [TFL_BUILTIN_LOGISTIC] = MICA_OP_LOGISTIC,
    [TFL_BUILTIN_MAX_POOL_2D] = MICA_OP_MAX_POOL_2D,
    [TFL_BUILTIN_MUL] = MICA_OP_MUL,
    [TFL_BUILTIN_RELU] = MICA_OP_RELU,
    [TFL_BUILTIN_RELU_N1_TO_1] = MICA_OP_RELU_N1_TO_1,
    [TFL_BUILTIN_RELU6] = MICA_OP_RELU6,
    [TFL_BUILTIN_RESHAPE] = MICA_OP_RESHAPE,
    [TFL_BUILTIN_RESIZE_BILINEAR] = MICA_OP_RESIZE_BILINEAR,
    [TFL_BUILTIN_SOFTMAX] = MICA_OP_SOFTMAX,
    [TFL_BUILTIN_SPACE_TO_DEPTH] = MICA_OP_SPACE_TO_DEPTH,
    [TFL_BUILTIN_TANH] = MICA_OP_TANH,
    [TFL_BUILTIN_PAD] = MICA_OP_PAD,
    [TFL_BUILTIN_GATHER] = MICA_OP_GATHER,
    [TFL_BUILTIN_TRANSPOSE] = MICA_OP_TRANSPOSE,
    [TFL_BUILTIN_MEAN] = MICA_OP_MEAN,
    [TFL_BUILTIN_SUB] = MICA_OP_SUB,
    [TFL_BUILTIN_DIV] = MICA_OP_DIV,
    [TFL_BUILTIN_SQUEEZE] = MICA_OP_RESHAPE,
    [TFL_BUILTIN_STRIDED_SLICE] = MICA_OP_SLICE,
    [TFL_BUILTIN_EXP] = MICA_OP_EXP,
    [TFL_BUILTIN_SPLIT] = MICA_OP_SPLIT,
    [TFL_BUILTIN_CAST] = MICA_OP_CAST,
    [TFL_BUILTIN_PRELU] = MICA_OP_PRELU,
    [TFL_BUILTIN_MAXIMUM] = MICA_OP_MAXIMUM,
    [TFL_BUILTIN_ARG_MAX] = MICA_OP_ARG_MAX,
    [TFL_BUILTIN_MINIMUM] = MICA_OP_MINIMUM,
    [TFL_BUILTIN_NEG] = MICA_OP_NEG,
    [TFL_BUILTIN_PADV2] = MICA_OP_PAD,
    [TFL_BUILTIN_SLICE] = MICA_OP_SLICE,
    [TFL_BUILTIN_TRANSPOSE_CONV] = MICA_OP_TRANSPOSE_CONV,
    [TFL_BUILTIN_EXPAND_DIMS] = MICA_OP_RESHAPE,
    [TFL_BUILTIN_LOG] = MICA_OP_LOG,
    [TFL_BUILTIN_SUM] = MICA_OP_SUM,
    [TFL_BUILTIN_SQRT] = MICA_OP_SQRT,
    [TFL_BUILTIN_RSQRT] = MICA_OP_RSQRT,
    [TFL_BUILTIN_REDUCE_MAX] = MICA_OP_REDUCE_MAX,
    [TFL_BUILTIN_PACK] = MICA_OP_PACK,
    [TFL_BUILTIN_UNPACK] = MICA_OP_UNPACK,
    [TFL_BUILTIN_REDUCE_MIN] = MICA_OP_REDUCE_MIN,
    [TFL_BUILTIN_FLOOR_DIV] = MICA_OP_FLOOR_DIV,
    [TFL_BUILTIN_RESIZE_NEAREST_NEIGHBOR] = MICA_OP_RESIZE_NEAREST,
    [TFL_BUILTIN_LEAKY_RELU] = MICA_OP_LEAKY_RELU,
    [TFL_BUILTIN_SQUARED_DIFFERENCE] = MICA_OP_SQUARED_DIFFERENCE,
    [TFL_BUILTIN_MIRROR_PAD] = MICA_OP_MIRROR_PAD,
    [TFL_BUILTIN_ABS] = MICA_OP_ABS,
    [TFL_BUILTIN_SPLIT_V] = MICA_OP_SPLIT,
    [TFL_BUILTIN_REVERSE_V2] = MICA_OP_REVERSE,
    [TFL_BUILTIN_GATHER_ND] = MICA_OP_GATHER_ND,
    [TFL_BUILTIN_ELU] = MICA_OP_ELU,
    [TFL_BUILTIN_QUANTIZE] = MICA_OP_QUANTIZE,
    [TFL_BUILTIN_HARD_SWISH] = MICA_OP_HARD_SWISH,
    [TFL_BUILTIN_BATCH_MATMUL] = MICA_OP_BATCH_MATMUL,
    [TFL_BUILTIN_RELU_0_TO_1] = MICA_OP_RELU_0_TO_1,
};

enum mica_op_kind mica_builtin_kind(int32_t code)
{
    return code >= 0 && (size_t)code < sizeof kinds / sizeof kinds[0] ? (enum mica_op_kind)kinds[code]
                                                                      : MICA_OP_UNKNOWN;
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

/* `rows` and `columns`: the size of what the window runs over. */
static const char *resolve_padding(int padding, int32_t rows, int32_t columns, struct mica_op *op)
{
    struct mica_window *window = &op->window;
    if (padding == TFL_PADDING_VALID)
        return NULL;
    if (padding != TFL_PADDING_SAME)
        return "its padding is neither SAME nor VALID";
    window->padding.left =
        mica_same_padding(columns, window->kernel_x, window->stride_x, window->dilation_x, &window->padding.right);
    window->padding.top =
        mica_same_padding(rows, window->kernel_y, window->stride_y, window->dilation_y, &window->padding.bottom);
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
    return problem ? problem
                   : resolve_padding(params->padding, input_size(graph, op, 0, 1), input_size(graph, op, 0, 2), op);
}

/* The window runs over the output, whose shape is input 0. */
static const char *read_transpose_conv(const struct mica_graph *graph, const struct tfl_transpose_conv_params *params,
                                       int version, struct mica_op *op)
{
    op->window = (struct mica_window){
        .kernel_x = input_size(graph, op, 1, 2),
        .kernel_y = input_size(graph, op, 1, 1),
        .stride_x = params->stride_width,
        .stride_y = params->stride_height,
        .dilation_x = 1,
        .dilation_y = 1,
    };
    const struct mica_tensor *shape = mica_op_input(graph, op, 0);
    bool known = shape && shape->data && shape->type == MICA_TYPE_INT32 && shape->bytes == 4 * sizeof(int32_t);
    const int32_t *size = known ? shape->data : NULL;
    const char *problem = NULL;
    if (version >= 4)
        problem = read_activation(params->activation, &op->window.activation);
    return problem ? problem : resolve_padding(params->padding, size ? size[1] : 0, size ? size[2] : 0, op);
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
    return problem ? problem
                   : resolve_padding(params->padding, input_size(graph, op, 0, 1), input_size(graph, op, 0, 2), op);
}

static const char *read_fully_connected(const struct tfl_fully_connected_params *params, struct mica_op *op)
{
    if (params->weights_format != 0)
        return "its weights are shuffled for a CPU kernel";
    return read_activation(params->activation, &op->activation);
}

/* A dimension of `tensor`, counted from either end. */
static const char *read_axis(const struct mica_tensor *tensor, int source, struct mica_op *op)
{
    int64_t rank = tensor ? (int64_t)tensor->rank : 0;
    int64_t axis = source < 0 ? source + rank : source;
    if (axis < 0 || axis >= rank)
        return "its axis is none of the tensor's";
    op->axis = (int32_t)axis;
    return NULL;
}

static const char *read_concatenation(const struct mica_graph *graph, const struct tfl_concatenation_params *params,
                                      struct mica_op *op)
{
    const char *problem = read_axis(mica_op_output(graph, op, 0), params->axis, op);
    return problem ? problem : read_activation(params->activation, &op->activation);
}

static const char *read_pack(const struct mica_graph *graph, const struct tfl_pack_params *params, struct mica_op *op)
{
    return read_axis(mica_op_output(graph, op, 0), params->axis, op);
}

static const char *read_unpack(const struct mica_graph *graph, const struct tfl_unpack_params *params,
                               struct mica_op *op)
{
    return read_axis(mica_op_input(graph, op, 0), params->axis, op);
}

static const char *read_gather(const struct mica_graph *graph, const struct tfl_gather_params *params,
                               struct mica_op *op)
{
    if (params->batch_dims != 0)
        return "gathering in batches is not supported";
    return read_axis(mica_op_input(graph, op, 0), params->axis, op);
}

/* NULL: a plain SLICE, which has no parameters. */
static const char *read_slice(const struct mica_graph *graph, const struct tfl_strided_slice_params *params,
                              int version, struct mica_op *op)
{
    struct mica_slice_masks masks = {0};
    const struct mica_tensor *input = mica_op_input(graph, op, 0);
    uint32_t rank;
    int32_t dims[MICA_MAX_RANK];
    if (!input || input->problem)
        return NULL; /* the rules say why */
    if (params)
        masks = (struct mica_slice_masks){
            .begin = (uint32_t)params->begin_mask,
            .end = (uint32_t)params->end_mask,
            .ellipsis = (uint32_t)params->ellipsis_mask,
            .new_axis = (uint32_t)params->new_axis_mask,
            .shrink_axis = (uint32_t)params->shrink_axis_mask,
            .offset = version >= 8 && params->offset,
        };
    return mica_slice_resolve(graph, op, params ? &masks : NULL, &op->slice, &rank, dims);
}

static const char *read_mirror_pad(const struct tfl_mirror_pad_params *params, struct mica_op *op)
{
    op->mirror_symmetric = params->mode == TFL_MIRROR_SYMMETRIC;
    if (params->mode == TFL_MIRROR_SYMMETRIC || params->mode == TFL_MIRROR_REFLECT)
        return NULL;
    return "its mode is neither REFLECT nor SYMMETRIC";
}

static const char *read_matmul(const struct tfl_batch_matmul_params *params, struct mica_op *op)
{
    op->matmul.adjoint_x = params->adj_x;
    op->matmul.adjoint_y = params->adj_y;
    return NULL;
}

/* Structures of a single number. */
static const char *read_scalar(const void *data, struct mica_op *op)
{
    switch (op->kind) {
    case MICA_OP_SOFTMAX:
        op->beta = ((const struct tfl_softmax_params *)data)->beta;
        break;
    case MICA_OP_LEAKY_RELU:
        op->alpha = ((const struct tfl_leaky_relu_params *)data)->alpha;
        break;
    case MICA_OP_MEAN:
    case MICA_OP_SUM:
    case MICA_OP_REDUCE_MAX:
    case MICA_OP_REDUCE_MIN:
        op->keep_dims = ((const struct tfl_reducer_params *)data)->keep_dims;
        break;
    default:
        op->block = ((const struct tfl_block_params *)data)->block_size;
    }
    return NULL;
}

static const char *read_resize(const struct tfl_resize_params *params, struct mica_op *op)
{
    op->resize.align_corners = params->align_corners;
    op->resize.half_pixel_centers = params->half_pixel_centers;
    return NULL;
}

static bool has_parameters(enum mica_op_kind kind)
{
    switch (kind) {
    case MICA_OP_CONV_2D:
    case MICA_OP_DEPTHWISE_CONV_2D:
    case MICA_OP_TRANSPOSE_CONV:
    case MICA_OP_AVERAGE_POOL_2D:
    case MICA_OP_MAX_POOL_2D:
    case MICA_OP_FULLY_CONNECTED:
    case MICA_OP_ADD:
    case MICA_OP_SUB:
    case MICA_OP_MUL:
    case MICA_OP_DIV:
    case MICA_OP_CONCATENATION:
    case MICA_OP_PACK:
    case MICA_OP_UNPACK:
    case MICA_OP_GATHER:
    case MICA_OP_SOFTMAX:
    case MICA_OP_LEAKY_RELU:
    case MICA_OP_MEAN:
    case MICA_OP_SUM:
    case MICA_OP_REDUCE_MAX:
    case MICA_OP_REDUCE_MIN:
    case MICA_OP_SPACE_TO_DEPTH:
    case MICA_OP_DEPTH_TO_SPACE:
    case MICA_OP_MIRROR_PAD:
    case MICA_OP_BATCH_MATMUL:
    case MICA_OP_RESIZE_BILINEAR:
    case MICA_OP_RESIZE_NEAREST:
        return true;
    default:
        return false;
    }
}

static const char *read_present(const struct mica_graph *graph, const void *data, int version, struct mica_op *op)
{
    switch (op->kind) {
    case MICA_OP_CONV_2D:
        return read_conv(graph, data, op);
    case MICA_OP_DEPTHWISE_CONV_2D:
        return read_depthwise(graph, data, op);
    case MICA_OP_TRANSPOSE_CONV:
        return read_transpose_conv(graph, data, version, op);
    case MICA_OP_AVERAGE_POOL_2D:
    case MICA_OP_MAX_POOL_2D:
        return read_pool(graph, data, op);
    case MICA_OP_FULLY_CONNECTED:
        return read_fully_connected(data, op);
    case MICA_OP_ADD:
    case MICA_OP_SUB:
    case MICA_OP_MUL:
    case MICA_OP_DIV:
        return read_activation(((const struct tfl_add_params *)data)->activation, &op->activation);
    case MICA_OP_CONCATENATION:
        return read_concatenation(graph, data, op);
    case MICA_OP_PACK:
        return read_pack(graph, data, op);
    case MICA_OP_UNPACK:
        return read_unpack(graph, data, op);
    case MICA_OP_GATHER:
        return read_gather(graph, data, op);
    case MICA_OP_MIRROR_PAD:
        return read_mirror_pad(data, op);
    case MICA_OP_BATCH_MATMUL:
        return read_matmul(data, op);
    case MICA_OP_RESIZE_BILINEAR:
    case MICA_OP_RESIZE_NEAREST:
        return read_resize(data, op);
    default:
        return read_scalar(data, op);
    }
}

const char *mica_op_read_params(const struct mica_graph *graph, int32_t code, int version, const void *builtin_data,
                                struct mica_op *op)
{
    static const char missing[] = "its parameters are missing from the model";
    op->kind = mica_builtin_kind(code);
    if (op->kind == MICA_OP_SLICE) {
        bool strided = code == TFL_BUILTIN_STRIDED_SLICE;
        return strided && !builtin_data ? missing : read_slice(graph, strided ? builtin_data : NULL, version, op);
    }
    if (!has_parameters(op->kind))
        return NULL;
    return builtin_data ? read_present(graph, builtin_data, version, op) : missing;
}
