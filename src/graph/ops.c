/* SPDX-License-Identifier: MIT */
/* Questions about a graph that is already built. */
#include "graph/graph.h"

#include "graph/check.h"

size_t mica_type_size(enum mica_type type)
{
    switch (type) {
    case MICA_TYPE_UINT8:
    case MICA_TYPE_INT8:
    case MICA_TYPE_BOOL:
        return 1;
    case MICA_TYPE_INT16:
        return 2;
    case MICA_TYPE_FLOAT32:
    case MICA_TYPE_INT32:
        return 4;
    case MICA_TYPE_INT64:
        return 8;
    case MICA_TYPE_OTHER:
        break;
    }
    return 0;
}

const char *mica_type_name(enum mica_type type)
{
    static const char *const names[] = {
        [MICA_TYPE_OTHER] = "other", [MICA_TYPE_FLOAT32] = "float32", [MICA_TYPE_INT32] = "int32",
        [MICA_TYPE_UINT8] = "uint8", [MICA_TYPE_INT8] = "int8",       [MICA_TYPE_INT16] = "int16",
        [MICA_TYPE_INT64] = "int64", [MICA_TYPE_BOOL] = "bool",
    };
    return (size_t)type < sizeof names / sizeof names[0] ? names[type] : "other";
}

const char *mica_activation_name(enum mica_activation activation)
{
    static const char *const names[] = {
        [MICA_ACT_NONE] = "NONE",
        [MICA_ACT_RELU] = "RELU",
        [MICA_ACT_RELU_N1_TO_1] = "RELU_N1_TO_1",
        [MICA_ACT_RELU6] = "RELU6",
    };
    return (size_t)activation < sizeof names / sizeof names[0] ? names[activation] : "unknown";
}

const struct mica_tensor *mica_op_input(const struct mica_graph *graph, const struct mica_op *op, uint32_t i)
{
    if (i >= op->input_count || op->inputs[i] == MICA_NO_TENSOR)
        return NULL;
    return &graph->tensors[op->inputs[i]];
}

const struct mica_tensor *mica_op_output(const struct mica_graph *graph, const struct mica_op *op, uint32_t i)
{
    return i < op->output_count ? &graph->tensors[op->outputs[i]] : NULL;
}

uint64_t mica_elements(const struct mica_tensor *tensor)
{
    return tensor->bytes / mica_type_size(tensor->type);
}

int32_t mica_dim_from_end(const struct mica_tensor *tensor, uint32_t i)
{
    return i < tensor->rank ? tensor->dims[tensor->rank - 1 - i] : 1;
}

bool mica_constant_at(const struct mica_tensor *tensor, uint64_t i, int64_t *value)
{
    if (!tensor || tensor->problem || !tensor->data || i >= mica_elements(tensor))
        return false;
    if (tensor->type == MICA_TYPE_INT32)
        *value = ((const int32_t *)tensor->data)[i];
    else if (tensor->type == MICA_TYPE_INT64)
        *value = ((const int64_t *)tensor->data)[i];
    else
        return false;
    return true;
}

bool mica_constant_axes(const struct mica_tensor *tensor, uint32_t rank, uint32_t *axes)
{
    int64_t axis;
    *axes = 0;
    if (!tensor || tensor->problem || mica_elements(tensor) > MICA_MAX_RANK)
        return false;
    for (uint64_t i = 0; i < mica_elements(tensor); i++) {
        if (!mica_constant_at(tensor, i, &axis) || axis < -(int64_t)rank || axis >= (int64_t)rank)
            return false;
        *axes |= 1u << (axis < 0 ? axis + rank : axis);
    }
    return *axes != 0;
}

uint32_t mica_op_data_input(const struct mica_op *op)
{
    if (op->kind == MICA_OP_TRANSPOSE_CONV)
        return 2;
    return op->kind == MICA_OP_SPLIT && op->input_count == 2;
}

/* Tensors are below 2^28 bytes, so no product of two of them overflows. */
uint64_t mica_op_macs(const struct mica_graph *graph, const struct mica_op *op)
{
    if (op->problem)
        return 0;
    const struct mica_tensor *input = mica_op_input(graph, op, 0);
    const struct mica_tensor *weights = mica_op_input(graph, op, 1), *output = mica_op_output(graph, op, 0);
    switch (op->kind) {
    case MICA_OP_CONV_2D:
        return mica_elements(output) * (mica_elements(weights) / (uint64_t)weights->dims[0]);
    case MICA_OP_DEPTHWISE_CONV_2D:
        return mica_elements(output) * (mica_elements(weights) / (uint64_t)weights->dims[3]);
    case MICA_OP_FULLY_CONNECTED:
        return mica_elements(output) * (uint64_t)weights->dims[1];
    case MICA_OP_TRANSPOSE_CONV: /* as if no value were cut off at the borders */
        return mica_elements(weights) * (mica_elements(mica_op_input(graph, op, 2)) / (uint64_t)weights->dims[3]);
    case MICA_OP_BATCH_MATMUL:
        return mica_elements(output) * (uint64_t)mica_dim_from_end(input, op->matmul.adjoint_x);
    default:
        return 0;
    }
}

int64_t mica_window_extent(int32_t kernel, int32_t dilation)
{
    return ((int64_t)kernel - 1) * dilation + 1;
}

int64_t mica_window_output(int64_t size, int64_t extent, int32_t stride, int64_t padding)
{
    int64_t room = size + padding - extent;
    return room < 0 || stride < 1 ? 0 : room / stride + 1;
}

int32_t mica_same_padding(int32_t size, int32_t kernel, int32_t stride, int32_t dilation, int32_t *after)
{
    *after = 0;
    if (size < 1 || kernel < 1 || stride < 1 || dilation < 1)
        return 0;
    int64_t last = ((int64_t)size - 1) / stride * stride; /* where the last window starts, without padding */
    int64_t total = last + mica_window_extent(kernel, dilation) - size;
    if (total <= 0)
        return 0;
    int64_t before = total / 2, rest = total - before;
    *after = rest < INT32_MAX ? (int32_t)rest : INT32_MAX;
    return before < INT32_MAX ? (int32_t)before : INT32_MAX;
}
