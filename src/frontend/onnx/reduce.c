/* SPDX-License-Identifier: MIT */
/* One value from many. */
#include "frontend/onnx/internal.h"

static int32_t axis_of(int64_t axis, uint32_t rank)
{
    axis += axis < 0 ? (int64_t)rank : 0;
    return axis >= 0 && axis < (int64_t)rank ? (int32_t)axis : -1;
}

/* The dimensions to reduce, bit by bit, of the file. */
static int read_axes(struct onnx_reader *reader, uint32_t rank, uint32_t *axes)
{
    int64_t list[MICA_MAX_RANK];
    uint32_t count;
    int result = onnx_ints(reader, "axes", list, MICA_MAX_RANK, &count) ? 0 : onnx_refuse(reader, "too many axes");
    if (!result && !count && reader->node->inputs > 1)
        result = onnx_integers(reader, reader->node->in[1], list, MICA_MAX_RANK, &count);
    *axes = count ? 0 : (1u << rank) - 1;
    for (uint32_t i = 0; i < count && !result; i++) {
        int32_t axis = axis_of(list[i], rank);
        if (axis < 0)
            return onnx_refuse(reader, "its axes are out of range");
        *axes |= 1u << axis;
    }
    return result;
}

int onnx_reduce(struct onnx_reader *reader, int kind)
{
    struct mica_op op = {.kind = (enum mica_op_kind)kind};
    struct onnx_call call;
    uint32_t axes, count = 0;
    int32_t inputs[2], list[MICA_MAX_RANK];
    int error = onnx_call_plain(reader, 1, &call);
    if (!error && call.in[0] < 0)
        error = onnx_refuse(reader, "it has no input");
    if (error)
        return error;
    const uint32_t rank = reader->values[call.in[0]].rank;
    error = read_axes(reader, rank, &axes);
    if (error)
        return error;
    op.keep_dims = onnx_int(reader, "keepdims", 1) != 0;
    /* Without rows and columns, what is left has the same order in both layouts. */
    enum onnx_layout layout = onnx_preferred(reader, call.in, 1);
    if (layout == ONNX_IMAGE && !op.keep_dims && (axes & 12) != 12)
        layout = ONNX_PLAIN;
    struct onnx_result result = onnx_call_result(reader, &call, layout);
    const bool flat = layout == ONNX_IMAGE && !op.keep_dims;
    for (uint32_t i = 0; i < rank; i++)
        if (axes >> i & 1)
            list[count++] = onnx_place(layout, (int32_t)i);
    if (flat)
        result.layout = ONNX_PLAIN;
    const int32_t length = (int32_t)count;
    error = count ? onnx_add_int32(reader, list, 1, &length, &inputs[1]) : onnx_refuse(reader, "it reduces nothing");
    if (!error)
        error = onnx_tensor(reader, call.in[0], layout, &inputs[0]);
    const bool picks = kind == MICA_OP_REDUCE_MAX || kind == MICA_OP_REDUCE_MIN;
    const struct onnx_quant *own = picks ? &reader->values[call.in[0]].quant : NULL;
    return error ? error : onnx_call_emit(reader, &call, &op, inputs, 2, &result, own);
}

/* The graph drops the dimension; where the file keeps it, a reshape follows. */
static int keep_dimension(struct onnx_reader *reader, struct onnx_result *result, int32_t out, const int32_t *dims,
                          uint32_t rank)
{
    const int32_t tensor = result->tensor;
    result->value = out;
    result->dims = dims;
    result->rank = rank;
    return onnx_emit(reader, &(struct mica_op){.kind = MICA_OP_RESHAPE, .type = "Reshape"}, &tensor, 1, result);
}

int onnx_arg_max(struct onnx_reader *reader, int kind)
{
    struct mica_op op = {.kind = MICA_OP_ARG_MAX};
    struct onnx_call call;
    const int32_t one = 1;
    int32_t inputs[2], dims[MICA_MAX_RANK];
    reader->float_only = true; /* it makes no codes; but it may read them */
    int error = onnx_call_plain(reader, 1, &call);
    if (!error && call.in[0] < 0)
        error = onnx_refuse(reader, "it has no input");
    if (error)
        return error;
    const struct onnx_value *value = &reader->values[call.in[0]];
    if (value->source >= 0 && value->state != ONNX_CONSTANT)
        call.in[0] = onnx_resolve(reader, value->source);
    value = &reader->values[call.in[0]];
    int32_t axis = axis_of(onnx_int(reader, "axis", 0), value->rank);
    if (axis < 0 || onnx_int(reader, "select_last_index", 0))
        return onnx_refuse(reader, "its axis is out of range, or it wants the last of several largest values");
    enum onnx_layout layout = axis == 1 ? onnx_preferred(reader, call.in, 1) : ONNX_PLAIN;
    struct onnx_result result = {.value = call.out, .type = MICA_TYPE_INT64};
    bool keep = onnx_int(reader, "keepdims", 1) != 0;
    memcpy(dims, value->dims, sizeof dims);
    dims[axis] = 1;
    const uint32_t rank = value->rank;
    if (keep)
        result.value = ONNX_NONE;
    axis = onnx_place(layout, axis);
    error = onnx_add_int32(reader, &axis, 1, &one, &inputs[1]);
    if (!error)
        error = onnx_tensor(reader, call.in[0], layout, &inputs[0]);
    if (!error)
        error = onnx_emit(reader, &op, inputs, 2, &result);
    return !error && keep ? keep_dimension(reader, &result, call.out, dims, rank) : error;
}
