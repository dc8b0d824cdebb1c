/* SPDX-License-Identifier: MIT */
#include "invariants.h"

#include <math.h>

#define HOLDS(condition)       \
    do {                       \
        if (!(condition))      \
            return #condition; \
    } while (0)

static const char *tensor_invariants(const struct mica_tensor *tensor)
{
    HOLDS(tensor->name);
    HOLDS(tensor->rank <= MICA_MAX_RANK);
    if (tensor->problem) {
        HOLDS(tensor->bytes == 0 && !tensor->data && tensor->quant.count == 0);
        return NULL;
    }
    size_t bytes = mica_type_size(tensor->type);
    for (uint32_t i = 0; i < tensor->rank; i++) {
        HOLDS(tensor->dims[i] >= 1);
        bytes *= (size_t)tensor->dims[i];
        HOLDS(bytes <= MICA_MAX_TENSOR_BYTES);
    }
    HOLDS(bytes >= 1 && bytes == tensor->bytes);
    for (uint32_t i = 0; i < tensor->quant.count; i++) {
        HOLDS(tensor->quant.scale[i] > 0 && isfinite(tensor->quant.scale[i]));
        HOLDS(tensor->quant.scale[i] <= tensor->quant.largest_scale);
        HOLDS(!tensor->quant.symmetric || tensor->quant.zero_point[i] == 0);
    }
    HOLDS(!tensor->data || (uintptr_t)tensor->data % mica_type_size(tensor->type) == 0);
    volatile unsigned char sum = 0;
    for (size_t i = 0; tensor->data && i < bytes; i++)
        sum = (unsigned char)(sum + ((const unsigned char *)tensor->data)[i]);
    return NULL;
}

/* Along one direction, in the arithmetic that a kernel would use. */
static const char *window_line(int32_t in, int32_t out, int32_t kernel, int32_t stride, int32_t dilation,
                               int32_t before, int32_t after)
{
    HOLDS(kernel >= 1 && stride >= 1 && dilation >= 1 && before >= 0 && after >= 0);
    int32_t extent = (kernel - 1) * dilation + 1;
    int32_t first = 0 * stride - before, last = (out - 1) * stride - before;
    HOLDS(first + extent > 0);                  /* the first window sees something */
    HOLDS(last < in);                           /* so does the last */
    HOLDS(last + extent <= in + after);         /* which ends inside the padding */
    HOLDS(last + stride + extent > in + after); /* and there is no room for another */
    return NULL;
}

static const char *window_invariants(const struct mica_window *window, const struct mica_tensor *input,
                                     const struct mica_tensor *output)
{
    HOLDS(input->rank == 4 && output->rank == 4 && input->dims[0] == output->dims[0]);
    const struct mica_padding *padding = &window->padding;
    const char *broken = window_line(input->dims[1], output->dims[1], window->kernel_y, window->stride_y,
                                     window->dilation_y, padding->top, padding->bottom);
    if (!broken)
        broken = window_line(input->dims[2], output->dims[2], window->kernel_x, window->stride_x, window->dilation_x,
                             padding->left, padding->right);
    return broken;
}

static uint64_t elements(const struct mica_tensor *tensor)
{
    return tensor->bytes / mica_type_size(tensor->type);
}

static bool integer(const struct mica_tensor *tensor)
{
    return tensor->type == MICA_TYPE_UINT8 || tensor->type == MICA_TYPE_INT8 || tensor->type == MICA_TYPE_INT16;
}

/* A factor that kernels can represent. */
static bool sound(double factor)
{
    return factor > 0 && factor < (double)(1 << 30);
}

static double scale(const struct mica_tensor *tensor)
{
    return (double)tensor->quant.scale[0];
}

/* Weights of `channels` outputs with `fan_in` values each, and the bias. */
static const char *weight_invariants(const struct mica_graph *graph, const struct mica_op *op, uint64_t channels,
                                     uint64_t fan_in)
{
    const uint32_t data = mica_op_data_input(op);
    const struct mica_tensor *input = mica_op_input(graph, op, data), *weights = mica_op_input(graph, op, 1);
    const struct mica_tensor *bias = mica_op_input(graph, op, data ? 3 : 2), *output = mica_op_output(graph, op, 0);
    bool wide = input->type == MICA_TYPE_INT16;
    HOLDS(weights->type == (wide ? MICA_TYPE_INT8 : input->type) && output->type == input->type);
    HOLDS(elements(weights) == channels * fan_in);
    HOLDS(!integer(weights) || weights->quant.count == 1 || weights->quant.count == channels);
    HOLDS(!bias || elements(bias) == channels);
    HOLDS(!bias || (wide && bias->type == MICA_TYPE_INT64) ||
          bias->type == (integer(input) ? MICA_TYPE_INT32 : MICA_TYPE_FLOAT32));
    for (uint32_t i = 0; i < weights->quant.count && integer(input); i++)
        HOLDS(scale(input) * (double)weights->quant.scale[i] / scale(output) < (double)(1 << 30));
    return NULL;
}

static const char *conv_invariants(const struct mica_graph *graph, const struct mica_op *op)
{
    const struct mica_tensor *input = mica_op_input(graph, op, 0), *output = mica_op_output(graph, op, 0);
    const char *broken = window_invariants(&op->window, input, output);
    if (broken)
        return broken;
    uint64_t window = (uint64_t)op->window.kernel_x * (uint64_t)op->window.kernel_y;
    if (op->kind == MICA_OP_CONV_2D)
        return weight_invariants(graph, op, (uint64_t)output->dims[3], window * (uint64_t)input->dims[3]);
    HOLDS(op->window.depth_multiplier >= 1);
    HOLDS((int64_t)op->window.depth_multiplier * input->dims[3] == output->dims[3]);
    return weight_invariants(graph, op, (uint64_t)output->dims[3], window);
}

static const char *transpose_conv_invariants(const struct mica_graph *graph, const struct mica_op *op)
{
    const struct mica_tensor *data = mica_op_input(graph, op, 2), *output = mica_op_output(graph, op, 0);
    const struct mica_tensor *weights = mica_op_input(graph, op, 1);
    const char *broken = window_invariants(&op->window, output, data);
    if (broken)
        return broken;
    HOLDS(op->window.dilation_x == 1 && op->window.dilation_y == 1);
    HOLDS(weights->dims[0] == output->dims[3] && weights->dims[3] == data->dims[3]);
    uint64_t window = (uint64_t)op->window.kernel_x * (uint64_t)op->window.kernel_y;
    return weight_invariants(graph, op, (uint64_t)output->dims[3], window * (uint64_t)data->dims[3]);
}

static const char *fully_connected_invariants(const struct mica_graph *graph, const struct mica_op *op)
{
    const struct mica_tensor *input = mica_op_input(graph, op, 0), *weights = mica_op_input(graph, op, 1);
    const struct mica_tensor *output = mica_op_output(graph, op, 0);
    uint64_t fan_in = (uint64_t)weights->dims[1], channels = (uint64_t)weights->dims[0];
    HOLDS(weights->rank == 2);
    HOLDS(elements(input) % fan_in == 0);
    HOLDS(elements(output) == elements(input) / fan_in * channels);
    return weight_invariants(graph, op, channels, fan_in);
}

/* What moves values keeps their type and meaning. */
static const char *moved(const struct mica_tensor *a, const struct mica_tensor *b)
{
    HOLDS(a->type == b->type);
    HOLDS(!integer(a) || (a->quant.count == b->quant.count && a->quant.count <= 1));
    HOLDS(!integer(a) || !a->quant.count || a->quant.zero_point[0] == b->quant.zero_point[0]);
    return NULL;
}

static const char *concat_invariants(const struct mica_graph *graph, const struct mica_op *op)
{
    const struct mica_tensor *output = mica_op_output(graph, op, 0);
    uint64_t sum = 0;
    HOLDS(op->axis >= 0 && (uint32_t)op->axis < output->rank);
    for (uint32_t i = 0; i < op->input_count; i++)
        sum += mica_op_input(graph, op, i)->bytes;
    HOLDS(sum == output->bytes);
    return NULL;
}

static const char *pad_invariants(const struct mica_graph *graph, const struct mica_op *op)
{
    const struct mica_tensor *input = mica_op_input(graph, op, 0), *paddings = mica_op_input(graph, op, 1);
    const struct mica_tensor *output = mica_op_output(graph, op, 0);
    HOLDS(paddings->data && elements(paddings) == 2 * (uint64_t)input->rank && output->rank == input->rank);
    const int32_t *amounts = paddings->data;
    for (uint32_t i = 0; i < input->rank; i++) {
        HOLDS(amounts[2 * i] >= 0 && amounts[2 * i] <= output->dims[i] - input->dims[i]);
        HOLDS(amounts[2 * i + 1] == output->dims[i] - input->dims[i] - amounts[2 * i]);
        HOLDS(op->kind == MICA_OP_PAD || (amounts[2 * i] <= input->dims[i] && amounts[2 * i + 1] <= input->dims[i]));
    }
    const struct mica_tensor *value = mica_op_input(graph, op, 2);
    HOLDS(!value || (value->data && elements(value) == 1 && value->type == output->type));
    return moved(input, output);
}

static const char *binary_invariants(const struct mica_graph *graph, const struct mica_op *op)
{
    const struct mica_tensor *output = mica_op_output(graph, op, 0);
    const struct mica_tensor *a = mica_op_input(graph, op, 0), *b = mica_op_input(graph, op, 1);
    for (uint32_t k = 0; k < 2; k++) {
        const struct mica_tensor *input = k ? b : a;
        HOLDS(input->rank <= output->rank && input->type == output->type);
        for (uint32_t i = 0; i < input->rank; i++) {
            int32_t wanted = output->dims[i + output->rank - input->rank];
            HOLDS(input->dims[i] == wanted || input->dims[i] == 1);
        }
        HOLDS(!integer(input) || input->quant.count == 1);
    }
    if (!integer(a))
        return NULL;
    HOLDS(output->quant.count == 1);
    double twice = 2 * fmax(scale(a), scale(b));
    HOLDS((op->kind != MICA_OP_ADD && op->kind != MICA_OP_SUB) || twice / (1 << 20) / scale(output) < 1);
    HOLDS(op->kind != MICA_OP_SQUARED_DIFFERENCE || twice * twice / (1 << 14) / scale(output) < 1);
    HOLDS((op->kind != MICA_OP_MUL && op->kind != MICA_OP_PRELU) || sound(scale(a) * scale(b) / scale(output)));
    HOLDS((op->kind != MICA_OP_MAXIMUM && op->kind != MICA_OP_MINIMUM) || (!moved(a, output) && !moved(b, output)));
    HOLDS(op->kind != MICA_OP_FLOOR_DIV);
    return NULL;
}

static const char *prelu_invariants(const struct mica_graph *graph, const struct mica_op *op)
{
    HOLDS(mica_op_input(graph, op, 1)->data);
    HOLDS(mica_op_input(graph, op, 0)->bytes == mica_op_output(graph, op, 0)->bytes);
    return binary_invariants(graph, op);
}

/* Dimension `i` counted from the last one. */
static int32_t from_end(const struct mica_tensor *tensor, uint32_t i)
{
    return i < tensor->rank ? tensor->dims[tensor->rank - 1 - i] : 1;
}

static const char *matmul_invariants(const struct mica_graph *graph, const struct mica_op *op)
{
    const struct mica_tensor *x = mica_op_input(graph, op, 0), *y = mica_op_input(graph, op, 1);
    const struct mica_tensor *output = mica_op_output(graph, op, 0);
    HOLDS(x->rank >= 2 && y->rank >= 2 && output->rank >= 2 && x->type == y->type && x->type == output->type);
    HOLDS(from_end(x, op->matmul.adjoint_x ? 1 : 0) == from_end(y, op->matmul.adjoint_y ? 0 : 1));
    HOLDS(from_end(x, op->matmul.adjoint_x ? 0 : 1) == from_end(output, 1));
    HOLDS(from_end(y, op->matmul.adjoint_y ? 1 : 0) == from_end(output, 0));
    for (uint32_t i = 2; i < MICA_MAX_RANK; i++) {
        HOLDS(from_end(x, i) == from_end(output, i) || from_end(x, i) == 1);
        HOLDS(from_end(y, i) == from_end(output, i) || from_end(y, i) == 1);
    }
    HOLDS(!integer(x) || sound(scale(x) * scale(y) / scale(output)));
    return NULL;
}

static const char *unary_invariants(const struct mica_graph *graph, const struct mica_op *op)
{
    const struct mica_tensor *input = mica_op_input(graph, op, 0), *output = mica_op_output(graph, op, 0);
    HOLDS(input->type == output->type && input->bytes == output->bytes);
    if (!integer(input))
        return NULL;
    HOLDS(input->quant.count == 1 && output->quant.count == 1);
    HOLDS(op->kind == MICA_OP_TANH || op->kind == MICA_OP_SQRT || op->kind == MICA_OP_RSQRT ||
          op->kind == MICA_OP_HARD_SWISH || sound(scale(input) / scale(output)));
    HOLDS(op->kind != MICA_OP_HARD_SWISH || scale(input) / 128 / scale(output) < 1);
    HOLDS(op->kind != MICA_OP_LEAKY_RELU || fabs((double)op->alpha) * scale(input) / scale(output) < 1 << 30);
    return NULL;
}

/* Without the dimensions in `axes`, or with ones there, the input's shape is the output's. */
static const char *reduced(const struct mica_tensor *input, const struct mica_tensor *output, uint32_t axes)
{
    uint64_t left = 1;
    HOLDS(axes != 0 && axes >> input->rank == 0);
    for (uint32_t i = 0; i < input->rank; i++)
        left *= axes >> i & 1 ? 1 : (uint64_t)input->dims[i];
    HOLDS(left == elements(output));
    return NULL;
}

static const char *reduce_invariants(const struct mica_graph *graph, const struct mica_op *op)
{
    const struct mica_tensor *input = mica_op_input(graph, op, 0), *output = mica_op_output(graph, op, 0);
    HOLDS(input->type == output->type);
    const bool picks = op->kind == MICA_OP_REDUCE_MAX || op->kind == MICA_OP_REDUCE_MIN;
    HOLDS(!integer(input) || !picks || !moved(input, output));
    HOLDS(!integer(input) || picks ||
          (elements(input) / elements(output) <= 1 << 23 && sound(scale(input) / scale(output))));
    return reduced(input, output, op->axes);
}

static const char *arg_max_invariants(const struct mica_graph *graph, const struct mica_op *op)
{
    const struct mica_tensor *output = mica_op_output(graph, op, 0);
    HOLDS(output->type == MICA_TYPE_INT32 || output->type == MICA_TYPE_INT64);
    HOLDS(op->axis >= 0 && op->axis < MICA_MAX_RANK);
    return reduced(mica_op_input(graph, op, 0), output, 1u << op->axis);
}

static const char *slice_invariants(const struct mica_graph *graph, const struct mica_op *op)
{
    const struct mica_tensor *input = mica_op_input(graph, op, 0), *output = mica_op_output(graph, op, 0);
    uint64_t taken = 1;
    for (uint32_t i = 0; i < input->rank; i++) {
        int64_t first = op->slice.begin[i], last = first + (int64_t)op->slice.step[i] * (op->slice.count[i] - 1);
        HOLDS(op->slice.count[i] >= 1 && op->slice.step[i] != 0);
        HOLDS(first >= 0 && first < input->dims[i] && last >= 0 && last < input->dims[i]);
        taken *= (uint64_t)op->slice.count[i];
    }
    HOLDS(taken == elements(output));
    return moved(input, output);
}

/* `part` has everything of `whole` but in dimension `axis`. */
static const char *part_of(const struct mica_tensor *part, const struct mica_tensor *whole, uint32_t axis)
{
    HOLDS(part->rank == whole->rank);
    for (uint32_t i = 0; i < whole->rank; i++)
        HOLDS(i == axis || part->dims[i] == whole->dims[i]);
    return moved(part, whole);
}

static const char *split_invariants(const struct mica_graph *graph, const struct mica_op *op)
{
    const struct mica_tensor *data = mica_op_input(graph, op, mica_op_data_input(op));
    int64_t sum = 0;
    HOLDS(op->axis >= 0 && (uint32_t)op->axis < data->rank);
    for (uint32_t i = 0; i < op->output_count; i++) {
        const struct mica_tensor *output = mica_op_output(graph, op, i);
        const char *broken = part_of(output, data, (uint32_t)op->axis);
        if (broken)
            return broken;
        sum += output->dims[op->axis];
    }
    HOLDS(sum == data->dims[op->axis]);
    return NULL;
}

static const char *stack_invariants(const struct mica_graph *graph, const struct mica_op *op)
{
    bool pack = op->kind == MICA_OP_PACK;
    const struct mica_tensor *many = pack ? mica_op_output(graph, op, 0) : mica_op_input(graph, op, 0);
    uint32_t count = pack ? op->input_count : op->output_count;
    HOLDS(op->axis >= 0 && (uint32_t)op->axis < many->rank && many->dims[op->axis] == (int32_t)count);
    for (uint32_t i = 0; i < count; i++) {
        const struct mica_tensor *one = pack ? mica_op_input(graph, op, i) : mica_op_output(graph, op, i);
        HOLDS(one->rank + 1 == many->rank && elements(one) * count == elements(many));
        if (moved(one, many))
            return moved(one, many);
    }
    return NULL;
}

static const char *transpose_invariants(const struct mica_graph *graph, const struct mica_op *op)
{
    const struct mica_tensor *input = mica_op_input(graph, op, 0), *order = mica_op_input(graph, op, 1);
    const struct mica_tensor *output = mica_op_output(graph, op, 0);
    uint32_t seen = 0;
    HOLDS(order->data && elements(order) == input->rank && output->rank == input->rank);
    for (uint32_t i = 0; i < input->rank; i++) {
        int32_t from = ((const int32_t *)order->data)[i];
        HOLDS(from >= 0 && (uint32_t)from < input->rank && input->dims[from] == output->dims[i]);
        seen |= 1u << from;
    }
    HOLDS(seen == (1u << input->rank) - 1);
    return moved(input, output);
}

static const char *block_invariants(const struct mica_graph *graph, const struct mica_op *op)
{
    const struct mica_tensor *input = mica_op_input(graph, op, 0), *output = mica_op_output(graph, op, 0);
    const struct mica_tensor *wide = op->kind == MICA_OP_SPACE_TO_DEPTH ? input : output;
    const struct mica_tensor *deep = wide == input ? output : input;
    HOLDS(input->rank == 4 && output->rank == 4 && op->block >= 1 && elements(input) == elements(output));
    HOLDS(wide->dims[1] / op->block == deep->dims[1] && wide->dims[2] / op->block == deep->dims[2]);
    HOLDS(wide->dims[1] % op->block == 0 && wide->dims[2] % op->block == 0 && wide->dims[0] == deep->dims[0]);
    return moved(input, output);
}

static const char *gather_invariants(const struct mica_graph *graph, const struct mica_op *op)
{
    const struct mica_tensor *data = mica_op_input(graph, op, 0), *indices = mica_op_input(graph, op, 1);
    const struct mica_tensor *output = mica_op_output(graph, op, 0);
    HOLDS(indices->type == MICA_TYPE_INT32 || indices->type == MICA_TYPE_INT64);
    if (op->kind == MICA_OP_GATHER) {
        HOLDS(op->axis >= 0 && (uint32_t)op->axis < data->rank);
        HOLDS(elements(output) == elements(data) / (uint64_t)data->dims[op->axis] * elements(indices));
    } else {
        uint64_t run = elements(data), places;
        HOLDS(indices->rank >= 1 && (uint32_t)indices->dims[indices->rank - 1] <= data->rank);
        places = elements(indices) / (uint64_t)indices->dims[indices->rank - 1];
        for (int32_t i = 0; i < indices->dims[indices->rank - 1]; i++)
            run /= (uint64_t)data->dims[i];
        HOLDS(elements(output) == places * run);
    }
    return moved(data, output);
}

static const char *reverse_invariants(const struct mica_graph *graph, const struct mica_op *op)
{
    const struct mica_tensor *input = mica_op_input(graph, op, 0), *output = mica_op_output(graph, op, 0);
    HOLDS(op->axes != 0 && op->axes >> input->rank == 0 && input->bytes == output->bytes);
    return moved(input, output);
}

static const char *resize_invariants(const struct mica_graph *graph, const struct mica_op *op)
{
    const struct mica_tensor *input = mica_op_input(graph, op, 0), *output = mica_op_output(graph, op, 0);
    HOLDS(input->rank == 4 && output->rank == 4);
    HOLDS(input->dims[0] == output->dims[0] && input->dims[3] == output->dims[3]);
    return NULL;
}

static const char *detection_invariants(const struct mica_graph *graph, const struct mica_op *op)
{
    const struct mica_tensor *boxes = mica_op_input(graph, op, 0), *scores = mica_op_input(graph, op, 1);
    uint64_t count = (uint64_t)op->detection.max_detections * (uint64_t)op->detection.max_classes_per_detection;
    HOLDS(op->output_count == 4 && boxes->rank == 3 && scores->rank == 3);
    HOLDS(elements(boxes) == (uint64_t)boxes->dims[1] * 4 && elements(mica_op_input(graph, op, 2)) == elements(boxes));
    HOLDS(scores->dims[1] == boxes->dims[1] && scores->dims[2] >= op->detection.classes);
    HOLDS(elements(mica_op_output(graph, op, 0)) == 4 * count && elements(mica_op_output(graph, op, 1)) == count);
    HOLDS(elements(mica_op_output(graph, op, 2)) == count && elements(mica_op_output(graph, op, 3)) == 1);
    return NULL;
}

static const char *same_size(const struct mica_graph *graph, const struct mica_op *op)
{
    const struct mica_tensor *input = mica_op_input(graph, op, 0), *output = mica_op_output(graph, op, 0);
    HOLDS(op->kind == MICA_OP_RESHAPE ? input->bytes == output->bytes : elements(input) == elements(output));
    return NULL;
}

static const char *kind_invariants(const struct mica_graph *graph, const struct mica_op *op)
{
    switch (op->kind) {
    case MICA_OP_CONV_2D:
    case MICA_OP_DEPTHWISE_CONV_2D:
        return conv_invariants(graph, op);
    case MICA_OP_FULLY_CONNECTED:
        return fully_connected_invariants(graph, op);
    case MICA_OP_AVERAGE_POOL_2D:
    case MICA_OP_MAX_POOL_2D:
        HOLDS(mica_op_input(graph, op, 0)->dims[3] == mica_op_output(graph, op, 0)->dims[3]);
        return window_invariants(&op->window, mica_op_input(graph, op, 0), mica_op_output(graph, op, 0));
    case MICA_OP_TRANSPOSE_CONV:
        return transpose_conv_invariants(graph, op);
    case MICA_OP_ADD:
    case MICA_OP_SUB:
    case MICA_OP_MUL:
    case MICA_OP_DIV:
    case MICA_OP_FLOOR_DIV:
    case MICA_OP_MAXIMUM:
    case MICA_OP_MINIMUM:
    case MICA_OP_SQUARED_DIFFERENCE:
        return binary_invariants(graph, op);
    case MICA_OP_PRELU:
        return prelu_invariants(graph, op);
    case MICA_OP_BATCH_MATMUL:
        return matmul_invariants(graph, op);
    case MICA_OP_MEAN:
    case MICA_OP_SUM:
    case MICA_OP_REDUCE_MAX:
    case MICA_OP_REDUCE_MIN:
        return reduce_invariants(graph, op);
    case MICA_OP_ARG_MAX:
        return arg_max_invariants(graph, op);
    case MICA_OP_SLICE:
        return slice_invariants(graph, op);
    case MICA_OP_SPLIT:
        return split_invariants(graph, op);
    case MICA_OP_PACK:
    case MICA_OP_UNPACK:
        return stack_invariants(graph, op);
    case MICA_OP_TRANSPOSE:
        return transpose_invariants(graph, op);
    case MICA_OP_SPACE_TO_DEPTH:
    case MICA_OP_DEPTH_TO_SPACE:
        return block_invariants(graph, op);
    case MICA_OP_GATHER:
    case MICA_OP_GATHER_ND:
        return gather_invariants(graph, op);
    case MICA_OP_REVERSE:
        return reverse_invariants(graph, op);
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
        return unary_invariants(graph, op);
    case MICA_OP_CONCATENATION:
        return concat_invariants(graph, op);
    case MICA_OP_PAD:
    case MICA_OP_MIRROR_PAD:
        return pad_invariants(graph, op);
    case MICA_OP_RESIZE_BILINEAR:
    case MICA_OP_RESIZE_NEAREST:
        return resize_invariants(graph, op);
    case MICA_OP_DETECTION_POSTPROCESS:
        return detection_invariants(graph, op);
    case MICA_OP_RESHAPE:
    case MICA_OP_SOFTMAX:
    case MICA_OP_LOGISTIC:
    case MICA_OP_QUANTIZE:
    case MICA_OP_DEQUANTIZE:
    case MICA_OP_CAST:
        return same_size(graph, op);
    case MICA_OP_UNKNOWN:
        break;
    }
    return "an unknown operation has a problem";
}

/* The bias, and the shape that a reshape ignores. */
static bool optional_input(enum mica_op_kind kind, uint32_t i)
{
    switch (kind) {
    case MICA_OP_CONV_2D:
    case MICA_OP_DEPTHWISE_CONV_2D:
    case MICA_OP_FULLY_CONNECTED:
    case MICA_OP_PAD:
        return i == 2;
    case MICA_OP_TRANSPOSE_CONV:
        return i == 3;
    case MICA_OP_RESHAPE:
        return i == 1;
    case MICA_OP_SLICE: /* what it takes is known already */
        return i >= 1;
    default:
        return false;
    }
}

static const char *op_invariants(const struct mica_graph *graph, const struct mica_op *op)
{
    HOLDS(op->type);
    for (uint32_t i = 0; i < op->input_count; i++)
        HOLDS(op->inputs[i] >= -1 && op->inputs[i] < (int32_t)graph->tensor_count);
    for (uint32_t i = 0; i < op->output_count; i++)
        HOLDS(op->outputs[i] >= 0 && op->outputs[i] < (int32_t)graph->tensor_count);
    HOLDS(!op->problem || mica_op_macs(graph, op) == 0);
    if (op->problem)
        return NULL;
    HOLDS(op->input_count >= 1 && op->output_count >= 1);
    for (uint32_t i = 0; i < op->input_count; i++)
        HOLDS(mica_op_input(graph, op, i) || optional_input(op->kind, i));
    for (uint32_t i = 0; i < op->input_count; i++)
        HOLDS(!mica_op_input(graph, op, i) || !mica_op_input(graph, op, i)->problem);
    for (uint32_t i = 0; i < op->output_count; i++)
        HOLDS(!mica_op_output(graph, op, i)->problem && !mica_op_output(graph, op, i)->data);
    mica_op_macs(graph, op);
    return kind_invariants(graph, op);
}

const char *graph_invariants(const struct mica_graph *graph)
{
    const char *broken = NULL;
    for (uint32_t i = 0; i < graph->tensor_count && !broken; i++)
        broken = tensor_invariants(&graph->tensors[i]);
    for (uint32_t i = 0; i < graph->op_count && !broken; i++)
        broken = op_invariants(graph, &graph->ops[i]);
    return broken;
}
