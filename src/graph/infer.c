/* SPDX-License-Identifier: MIT */
/*
 * Output shapes from inputs and parameters, for files that leave them to be
 * computed. Nothing is trusted and nothing reported: what comes out is checked
 * by the rules like any other shape.
 */
#include "graph/check.h"

struct inference {
    const struct mica_tensor *input, *second; /* usable; second may be NULL */
    uint32_t rank;
    int64_t dims[2 * MICA_MAX_RANK];
};

static void start_from_input(struct inference *shape)
{
    shape->rank = shape->input->rank;
    for (uint32_t i = 0; i < shape->rank; i++)
        shape->dims[i] = shape->input->dims[i];
}

static bool infer_window(const struct mica_window *window, int64_t channels, struct inference *shape)
{
    if (shape->input->rank != 4)
        return false;
    const struct mica_padding *padding = &window->padding;
    shape->rank = 4;
    shape->dims[0] = shape->input->dims[0];
    shape->dims[1] = mica_window_output(shape->input->dims[1], mica_window_extent(window->kernel_y, window->dilation_y),
                                        window->stride_y, (int64_t)padding->top + padding->bottom);
    shape->dims[2] = mica_window_output(shape->input->dims[2], mica_window_extent(window->kernel_x, window->dilation_x),
                                        window->stride_x, (int64_t)padding->left + padding->right);
    shape->dims[3] = channels;
    return true;
}

static bool infer_transpose_conv(const struct mica_graph *graph, const struct mica_op *op, struct inference *shape)
{
    shape->rank = 4;
    for (uint32_t i = 0; i < 4; i++)
        if (!mica_constant_at(mica_op_input(graph, op, 0), i, &shape->dims[i]))
            return false;
    return true;
}

static bool infer_convolution(struct mica_window window, uint32_t channel_axis, struct inference *shape)
{
    const struct mica_tensor *weights = shape->second;
    if (!weights || weights->rank != 4)
        return false;
    window.kernel_y = weights->dims[1];
    window.kernel_x = weights->dims[2];
    return infer_window(&window, weights->dims[channel_axis], shape);
}

static bool infer_fully_connected(struct inference *shape)
{
    if (!shape->second || shape->second->rank != 2)
        return false;
    shape->rank = 2;
    shape->dims[0] = (int64_t)(mica_elements(shape->input) / (uint64_t)shape->second->dims[1]);
    shape->dims[1] = shape->second->dims[0];
    return true;
}

static bool infer_broadcast(struct inference *shape)
{
    if (!shape->second)
        return false;
    const struct mica_tensor *longer = shape->input, *other = shape->second;
    if (longer->rank < other->rank) {
        longer = shape->second;
        other = shape->input;
    }
    shape->rank = longer->rank;
    uint32_t missing = longer->rank - other->rank;
    for (uint32_t i = 0; i < shape->rank; i++) {
        int32_t x = longer->dims[i], y = i < missing ? 1 : other->dims[i - missing];
        shape->dims[i] = x == 1 ? y : x;
    }
    return true;
}

static bool infer_concatenation(const struct mica_graph *graph, const struct mica_op *op, struct inference *shape)
{
    start_from_input(shape);
    if (op->axis < 0 || (uint32_t)op->axis >= shape->rank)
        return false;
    for (uint32_t i = 1; i < op->input_count; i++) {
        const struct mica_tensor *input = mica_op_input(graph, op, i);
        if (!input || input->problem || input->rank != shape->rank)
            return false;
        shape->dims[op->axis] += input->dims[op->axis];
    }
    return true;
}

/* A constant int32 parameter of `count` elements. */
static const int32_t *parameters(const struct inference *shape, uint64_t count)
{
    const struct mica_tensor *tensor = shape->second;
    bool fits = tensor && tensor->data && tensor->type == MICA_TYPE_INT32 && mica_elements(tensor) == count;
    return fits ? tensor->data : NULL;
}

static bool infer_pad(struct inference *shape)
{
    const int32_t *amounts = parameters(shape, 2 * (uint64_t)shape->input->rank);
    if (!amounts)
        return false;
    start_from_input(shape);
    for (uint32_t i = 0; i < shape->rank; i++)
        shape->dims[i] += (int64_t)amounts[2 * i] + amounts[2 * i + 1];
    return true;
}

static bool infer_resize(struct inference *shape)
{
    const int32_t *size = parameters(shape, 2);
    if (!size || shape->input->rank != 4)
        return false;
    start_from_input(shape);
    shape->dims[1] = size[0];
    shape->dims[2] = size[1];
    return true;
}

/* Rows and columns follow from the inputs' last two dimensions, the rest broadcasts. */
static bool infer_matmul(const struct mica_op *op, struct inference *shape)
{
    const struct mica_tensor *x = shape->input, *y = shape->second;
    if (!y || x->rank < 2 || y->rank < 2 || !infer_broadcast(shape))
        return false;
    shape->dims[shape->rank - 2] = mica_dim_from_end(x, !op->matmul.adjoint_x);
    shape->dims[shape->rank - 1] = mica_dim_from_end(y, op->matmul.adjoint_y);
    return true;
}

static bool infer(const struct mica_graph *graph, const struct mica_op *op, uint32_t output, struct inference *shape)
{
    switch (op->kind) {
    case MICA_OP_CONV_2D:
        return infer_convolution(op->window, 0, shape);
    case MICA_OP_DEPTHWISE_CONV_2D:
        return infer_convolution(op->window, 3, shape);
    case MICA_OP_AVERAGE_POOL_2D:
    case MICA_OP_MAX_POOL_2D:
        return infer_window(&op->window, shape->input->dims[3], shape);
    case MICA_OP_FULLY_CONNECTED:
        return infer_fully_connected(shape);
    case MICA_OP_TRANSPOSE_CONV:
        return infer_transpose_conv(graph, op, shape);
    case MICA_OP_BATCH_MATMUL:
        return infer_matmul(op, shape);
    case MICA_OP_ADD:
    case MICA_OP_SUB:
    case MICA_OP_MUL:
    case MICA_OP_DIV:
    case MICA_OP_FLOOR_DIV:
    case MICA_OP_MAXIMUM:
    case MICA_OP_MINIMUM:
    case MICA_OP_SQUARED_DIFFERENCE:
        return infer_broadcast(shape);
    case MICA_OP_SOFTMAX:
    case MICA_OP_LOGISTIC:
    case MICA_OP_QUANTIZE:
    case MICA_OP_DEQUANTIZE:
    case MICA_OP_RELU:
    case MICA_OP_RELU6:
    case MICA_OP_RELU_N1_TO_1:
    case MICA_OP_RELU_0_TO_1:
    case MICA_OP_LEAKY_RELU:
    case MICA_OP_TANH:
    case MICA_OP_HARD_SWISH:
    case MICA_OP_ELU:
    case MICA_OP_ABS:
    case MICA_OP_NEG:
    case MICA_OP_EXP:
    case MICA_OP_SQRT:
    case MICA_OP_RSQRT:
    case MICA_OP_LOG:
    case MICA_OP_PRELU:
    case MICA_OP_REVERSE:
    case MICA_OP_CAST:
        start_from_input(shape);
        return true;
    case MICA_OP_CONCATENATION:
        return infer_concatenation(graph, op, shape);
    case MICA_OP_PAD:
    case MICA_OP_MIRROR_PAD:
        return infer_pad(shape);
    case MICA_OP_RESIZE_BILINEAR:
    case MICA_OP_RESIZE_NEAREST:
        return infer_resize(shape);
    default:
        return mica_infer_move(graph, op, output, shape->dims, &shape->rank);
    }
}

bool mica_op_infer_output_shape(const struct mica_graph *graph, const struct mica_op *op, uint32_t output,
                                uint32_t *rank, int32_t dims[MICA_MAX_RANK])
{
    struct inference shape = {.input = mica_op_input(graph, op, 0), .second = mica_op_input(graph, op, 1)};
    bool several = op->kind == MICA_OP_SPLIT || op->kind == MICA_OP_UNPACK;
    if (!shape.input || shape.input->problem || (shape.second && shape.second->problem) || (output > 0 && !several))
        return false;
    if (!infer(graph, op, output, &shape) || shape.rank > MICA_MAX_RANK)
        return false;
    for (uint32_t i = 0; i < shape.rank; i++) {
        if (shape.dims[i] < 1 || shape.dims[i] > INT32_MAX)
            return false;
        dims[i] = (int32_t)shape.dims[i];
    }
    *rank = shape.rank;
    return true;
}

bool mica_op_infer_shape(const struct mica_graph *graph, const struct mica_op *op, uint32_t *rank,
                         int32_t dims[MICA_MAX_RANK])
{
    return mica_op_infer_output_shape(graph, op, 0, rank, dims);
}
