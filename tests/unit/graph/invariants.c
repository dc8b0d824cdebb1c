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
    return tensor->type == MICA_TYPE_UINT8 || tensor->type == MICA_TYPE_INT8;
}

/* Weights of `channels` outputs with `fan_in` values each, and the bias. */
static const char *weight_invariants(const struct mica_graph *graph, const struct mica_op *op, uint64_t channels,
                                     uint64_t fan_in)
{
    const struct mica_tensor *input = mica_op_input(graph, op, 0), *weights = mica_op_input(graph, op, 1);
    const struct mica_tensor *bias = mica_op_input(graph, op, 2);
    HOLDS(weights->type == input->type);
    HOLDS(elements(weights) == channels * fan_in);
    HOLDS(!integer(weights) || weights->quant.count == 1 || weights->quant.count == channels);
    HOLDS(!bias || elements(bias) == channels);
    HOLDS(!bias || bias->type == (integer(input) ? MICA_TYPE_INT32 : MICA_TYPE_FLOAT32));
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
    }
    return NULL;
}

static const char *add_invariants(const struct mica_graph *graph, const struct mica_op *op)
{
    const struct mica_tensor *output = mica_op_output(graph, op, 0);
    for (uint32_t k = 0; k < 2; k++) {
        const struct mica_tensor *input = mica_op_input(graph, op, k);
        HOLDS(input->rank <= output->rank && input->type == output->type);
        for (uint32_t i = 0; i < input->rank; i++) {
            int32_t wanted = output->dims[i + output->rank - input->rank];
            HOLDS(input->dims[i] == wanted || input->dims[i] == 1);
        }
    }
    return NULL;
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
    case MICA_OP_ADD:
        return add_invariants(graph, op);
    case MICA_OP_CONCATENATION:
        return concat_invariants(graph, op);
    case MICA_OP_PAD:
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
        return i == 2;
    case MICA_OP_RESHAPE:
        return i == 1;
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
