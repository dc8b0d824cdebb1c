/* SPDX-License-Identifier: MIT */
/* Shapes of operations that move values or make one from many. Nothing is trusted: results may be of any size. */
#include "graph/check.h"

/* A shape that grows dimension by dimension; inputs have 8 at most, so two of them fit. */
struct shape {
    int64_t *dims;
    uint32_t *rank;
};

static void append(struct shape shape, int64_t size)
{
    shape.dims[(*shape.rank)++] = size;
}

static void append_range(struct shape shape, const struct mica_tensor *tensor, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to && i < tensor->rank; i++)
        append(shape, tensor->dims[i]);
}

static const struct mica_tensor *usable(const struct mica_graph *graph, const struct mica_op *op, uint32_t i)
{
    const struct mica_tensor *tensor = mica_op_input(graph, op, i);
    return tensor && !tensor->problem ? tensor : NULL;
}

static bool infer_reduce(const struct mica_tensor *data, const struct mica_tensor *axis, bool keep, struct shape shape)
{
    uint32_t axes;
    if (!mica_constant_axes(axis, data->rank, &axes))
        return false;
    for (uint32_t i = 0; i < data->rank; i++) {
        bool reduced = axes >> i & 1;
        if (!reduced || keep)
            append(shape, reduced ? 1 : data->dims[i]);
    }
    return true;
}

static bool infer_split(const struct mica_graph *graph, const struct mica_op *op, uint32_t output, struct shape shape)
{
    bool sized = op->input_count == 3;
    const struct mica_tensor *data = usable(graph, op, mica_op_data_input(op)), *sizes = usable(graph, op, 1);
    uint32_t axes;
    if (!data || !sizes || !op->output_count || op->output_count > MICA_MAX_OUTPUTS ||
        !mica_constant_axes(usable(graph, op, sized ? 2 : 0), data->rank, &axes))
        return false;
    append_range(shape, data, 0, data->rank);
    int64_t *along = &shape.dims[__builtin_ctz(axes)], rest = *along, size;
    if (!sized) {
        *along /= op->output_count;
        return true;
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        if (!mica_constant_at(sizes, i, &size) || size > rest)
            return false;
        rest -= size > 0 && i != output ? size : 0;
    }
    return mica_constant_at(sizes, output, &size) && ((*along = size < 0 ? rest : size), true);
}

static bool infer_transpose(const struct mica_tensor *data, const struct mica_tensor *order, struct shape shape)
{
    for (uint32_t i = 0; i < data->rank; i++) {
        int64_t from;
        if (!mica_constant_at(order, i, &from) || from < 0 || from >= (int64_t)data->rank)
            return false;
        append(shape, data->dims[from]);
    }
    return true;
}

static bool infer_block(const struct mica_op *op, const struct mica_tensor *data, struct shape shape)
{
    int64_t block = op->block;
    if (data->rank != 4 || block < 1 || block > MICA_MAX_WINDOW)
        return false;
    bool deepen = op->kind == MICA_OP_SPACE_TO_DEPTH;
    append(shape, data->dims[0]);
    append(shape, deepen ? data->dims[1] / block : data->dims[1] * block);
    append(shape, deepen ? data->dims[2] / block : data->dims[2] * block);
    append(shape, deepen ? data->dims[3] * block * block : data->dims[3] / (block * block));
    return true;
}

/* Dimension `axis` of `data` gives way to those of `by`, if any. */
static bool infer_replaced(const struct mica_tensor *data, int32_t axis, const struct mica_tensor *by,
                           struct shape shape)
{
    if (axis < 0 || (uint32_t)axis >= data->rank)
        return false;
    append_range(shape, data, 0, (uint32_t)axis);
    if (by)
        append_range(shape, by, 0, by->rank);
    append_range(shape, data, (uint32_t)axis + 1, data->rank);
    return true;
}

static bool infer_pack(const struct mica_op *op, const struct mica_tensor *data, struct shape shape)
{
    if (op->axis < 0 || (uint32_t)op->axis > data->rank)
        return false;
    append_range(shape, data, 0, (uint32_t)op->axis);
    append(shape, op->input_count);
    append_range(shape, data, (uint32_t)op->axis, data->rank);
    return true;
}

static bool infer_gather_nd(const struct mica_tensor *data, const struct mica_tensor *indices, struct shape shape)
{
    if (!indices || indices->rank < 1)
        return false;
    append_range(shape, indices, 0, indices->rank - 1);
    append_range(shape, data, (uint32_t)indices->dims[indices->rank - 1], data->rank);
    return true;
}

/* STRIDED_SLICE has masks that only the model knows. */
static bool infer_slice(const struct mica_op *op, const struct mica_tensor *data, struct shape shape)
{
    for (uint32_t i = 0; op->input_count == 3 && i < data->rank; i++)
        append(shape, op->slice.count[i]);
    return op->input_count == 3;
}

bool mica_infer_move(const struct mica_graph *graph, const struct mica_op *op, uint32_t output,
                     int64_t dims[2 * MICA_MAX_RANK], uint32_t *rank)
{
    const struct mica_tensor *data = usable(graph, op, 0), *second = usable(graph, op, 1);
    struct shape shape = {dims, rank};
    *rank = 0;
    switch (op->kind) {
    case MICA_OP_MEAN:
    case MICA_OP_SUM:
    case MICA_OP_REDUCE_MAX:
    case MICA_OP_REDUCE_MIN:
        return infer_reduce(data, second, op->keep_dims, shape);
    case MICA_OP_ARG_MAX:
        return infer_reduce(data, second, false, shape);
    case MICA_OP_SPLIT:
        return infer_split(graph, op, output, shape);
    case MICA_OP_SLICE:
        return infer_slice(op, data, shape);
    case MICA_OP_TRANSPOSE:
        return infer_transpose(data, second, shape);
    case MICA_OP_SPACE_TO_DEPTH:
    case MICA_OP_DEPTH_TO_SPACE:
        return infer_block(op, data, shape);
    case MICA_OP_PACK:
        return infer_pack(op, data, shape);
    case MICA_OP_UNPACK:
        return infer_replaced(data, op->axis, NULL, shape);
    case MICA_OP_GATHER:
        return second && infer_replaced(data, op->axis, second, shape);
    case MICA_OP_GATHER_ND:
        return infer_gather_nd(data, second, shape);
    default:
        return false;
    }
}
