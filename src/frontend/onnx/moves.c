/* SPDX-License-Identifier: MIT */
/* Operations that move values: other shapes, other orders, parts. */
#include "frontend/onnx/internal.h"

static int32_t input_of(const struct onnx_reader *reader, uint32_t i)
{
    return i < reader->node->inputs ? reader->node->in[i] : ONNX_NONE;
}

/* Counted from the first dimension; -1 when there is none such. */
static int32_t axis_of(int64_t axis, uint32_t rank)
{
    axis += axis < 0 ? (int64_t)rank : 0;
    return axis >= 0 && axis < (int64_t)rank ? (int32_t)axis : -1;
}

/* Parameters that older operator sets have as an attribute, newer ones as an input. */
static int parameters(struct onnx_reader *reader, uint32_t input, const char *name, int64_t *out, uint32_t *count)
{
    if (!onnx_ints(reader, name, out, MICA_MAX_RANK, count))
        return onnx_refuse(reader, "its %s are too many", name);
    return *count ? 0 : onnx_integers(reader, input_of(reader, input), out, MICA_MAX_RANK, count);
}

/* ---- other shapes ----------------------------------------------------- */

static int reshape_dims(struct onnx_reader *reader, const struct onnx_value *value, int32_t *dims, uint32_t *rank)
{
    int64_t wanted[MICA_MAX_RANK];
    size_t left = onnx_elements(value);
    int32_t open = -1;
    int result = parameters(reader, 1, "shape", wanted, rank);
    for (uint32_t i = 0; i < *rank && !result; i++) {
        if (wanted[i] == 0 && i < value->rank && !onnx_int(reader, "allowzero", 0))
            wanted[i] = value->dims[i];
        if (wanted[i] == -1 && open < 0)
            open = (int32_t)i;
        else if (wanted[i] < 1 || left % (uint64_t)wanted[i])
            result = onnx_refuse(reader, "the shape it asks for does not fit its input");
        else
            left /= (size_t)wanted[i];
        dims[i] = wanted[i] > 0 && wanted[i] <= INT32_MAX ? (int32_t)wanted[i] : 1;
    }
    if (!result && open < 0 && left != 1)
        result = onnx_refuse(reader, "the shape it asks for does not fit its input");
    if (!result && open >= 0)
        dims[open] = (int32_t)left;
    return result;
}

static int flatten_dims(struct onnx_reader *reader, const struct onnx_value *value, int32_t *dims, uint32_t *rank)
{
    int64_t axis = onnx_int(reader, "axis", 1);
    axis += axis < 0 ? (int64_t)value->rank : 0;
    if (axis < 0 || axis > (int64_t)value->rank)
        return onnx_refuse(reader, "its axis is out of range");
    *rank = 2;
    dims[0] = dims[1] = 1;
    for (uint32_t i = 0; i < value->rank; i++)
        dims[(int64_t)i >= axis] *= value->dims[i];
    return 0;
}

static int squeeze_dims(struct onnx_reader *reader, const struct onnx_value *value, int32_t *dims, uint32_t *rank)
{
    int64_t axes[MICA_MAX_RANK];
    uint32_t count, drop = 0;
    int result = parameters(reader, 1, "axes", axes, &count);
    for (uint32_t i = 0; i < count && !result; i++) {
        int32_t axis = axis_of(axes[i], value->rank);
        if (axis < 0 || value->dims[axis] != 1)
            return onnx_refuse(reader, "it drops a dimension that is not there or not 1");
        drop |= 1u << axis;
    }
    *rank = 0;
    for (uint32_t i = 0; i < value->rank; i++)
        if (count ? !(drop >> i & 1) : value->dims[i] != 1)
            dims[(*rank)++] = value->dims[i];
    return result;
}

static int unsqueeze_dims(struct onnx_reader *reader, const struct onnx_value *value, int32_t *dims, uint32_t *rank)
{
    int64_t axes[MICA_MAX_RANK];
    uint32_t count, added = 0, from = 0;
    int result = parameters(reader, 1, "axes", axes, &count);
    if (result || value->rank + count > MICA_MAX_RANK)
        return result ? result : onnx_refuse(reader, "its output has more than 8 dimensions");
    *rank = value->rank + count;
    for (uint32_t i = 0; i < count; i++) {
        int32_t axis = axis_of(axes[i], *rank);
        if (axis < 0 || added >> axis & 1)
            return onnx_refuse(reader, "its axes are out of range");
        added |= 1u << axis;
    }
    for (uint32_t i = 0; i < *rank; i++)
        dims[i] = added >> i & 1 ? 1 : value->dims[from++];
    return 0;
}

/* An image of one channel or pixel is the same in both orders. */
static enum onnx_layout unordered(const struct onnx_reader *reader, int32_t index)
{
    const struct onnx_value *value = &reader->values[index];
    bool same = value->rank == 4 && (value->dims[1] == 1 || (value->dims[2] == 1 && value->dims[3] == 1));
    return same ? onnx_preferred(reader, &index, 1) : ONNX_PLAIN;
}

int onnx_reshape(struct onnx_reader *reader, int kind)
{
    static int (*const shapes[])(struct onnx_reader * reader, const struct onnx_value *value, int32_t *dims,
                                 uint32_t *rank) = {reshape_dims, flatten_dims, squeeze_dims, unsqueeze_dims};
    struct onnx_call call;
    int32_t dims[MICA_MAX_RANK] = {0}, input;
    int error = onnx_call_moving(reader, 1, &call);
    if (error)
        return error;
    struct onnx_result result = onnx_call_result(reader, &call, ONNX_PLAIN);
    error = shapes[kind](reader, &reader->values[call.in[0]], dims, &result.rank);
    result.dims = dims;
    if (!error)
        error = onnx_tensor(reader, call.in[0], unordered(reader, call.in[0]), &input);
    return error ? error : onnx_emit(reader, &(struct mica_op){.kind = MICA_OP_RESHAPE}, &input, 1, &result);
}

/* ---- other orders ----------------------------------------------------- */

static bool is_order(const int32_t *order, uint32_t count, const uint8_t *wanted)
{
    bool same = count == 4;
    for (uint32_t i = 0; same && i < 4; i++)
        same = order[i] == wanted[i];
    return same;
}

/* Channels last in the file: the graph's order for images is there already. */
static int relabel(struct onnx_reader *reader, const struct onnx_call *call, enum onnx_layout from, enum onnx_layout to)
{
    int32_t input;
    int error = onnx_tensor(reader, call->in[0], from, &input);
    if (error)
        return error;
    struct onnx_result result = onnx_call_result(reader, call, to);
    result.tensor = input;
    onnx_settle_result(reader, &result);
    return 0;
}

int onnx_transpose(struct onnx_reader *reader, int kind)
{
    static const uint8_t to_last[4] = {0, 2, 3, 1}, to_first[4] = {0, 3, 1, 2};
    int64_t wanted[MICA_MAX_RANK];
    int32_t order[MICA_MAX_RANK], inputs[2];
    uint32_t count;
    struct onnx_call call;
    int error = onnx_call_moving(reader, 1, &call);
    if (error)
        return error;
    const uint32_t rank = reader->values[call.in[0]].rank;
    if (!onnx_ints(reader, "perm", wanted, MICA_MAX_RANK, &count) || (count && count != rank))
        return onnx_refuse(reader, "its perm does not have as many numbers as its input dimensions");
    for (uint32_t i = 0; i < rank; i++)
        order[i] = !count ? (int32_t)(rank - 1 - i) : wanted[i] >= 0 && wanted[i] < rank ? (int32_t)wanted[i] : -1;
    const bool computed = reader->values[call.in[0]].state != ONNX_CONSTANT;
    if (computed && is_order(order, rank, to_first))
        return relabel(reader, &call, ONNX_PLAIN, ONNX_IMAGE);
    if (computed && is_order(order, rank, to_last) && onnx_preferred(reader, call.in, 1) == ONNX_IMAGE)
        return relabel(reader, &call, ONNX_IMAGE, ONNX_PLAIN);
    struct onnx_result result = onnx_call_result(reader, &call, ONNX_PLAIN);
    const int32_t length = (int32_t)rank;
    error = onnx_tensor(reader, call.in[0], ONNX_PLAIN, &inputs[0]);
    if (!error)
        error = onnx_add_int32(reader, order, 1, &length, &inputs[1]);
    return error ? error : onnx_emit(reader, &(struct mica_op){.kind = MICA_OP_TRANSPOSE}, inputs, 2, &result);
}

int onnx_depth_to_space(struct onnx_reader *reader, int kind)
{
    struct mica_op op = {.kind = (enum mica_op_kind)kind};
    int64_t block = onnx_int(reader, "blocksize", 0);
    struct onnx_call call;
    int32_t input;
    int error = onnx_call_moving(reader, 1, &call);
    if (error)
        return error;
    const struct onnx_value *value = &reader->values[call.in[0]];
    if (block < 1 || block > MICA_MAX_WINDOW || value->rank != 4)
        return onnx_refuse(reader, "its blocks or its input's shape are out of range");
    if (kind == MICA_OP_DEPTH_TO_SPACE && onnx_is(onnx_string(reader, "mode", "DCR"), "CRD") &&
        value->dims[1] != block * block)
        return onnx_refuse(reader, "mode CRD with more than one channel left is not supported");
    op.block = (int32_t)block;
    struct onnx_result result = onnx_call_result(reader, &call, ONNX_IMAGE);
    error = onnx_tensor(reader, call.in[0], ONNX_IMAGE, &input);
    return error ? error : onnx_emit(reader, &op, &input, 1, &result);
}

/* ---- parts ------------------------------------------------------------ */

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

struct slice_list {
    int64_t starts[MICA_MAX_RANK], ends[MICA_MAX_RANK], axes[MICA_MAX_RANK], steps[MICA_MAX_RANK];
    uint32_t count;
};

static int read_slices(struct onnx_reader *reader, struct slice_list *list)
{
    uint32_t ends, axes, steps;
    int result = parameters(reader, 1, "starts", list->starts, &list->count);
    if (!result)
        result = parameters(reader, 2, "ends", list->ends, &ends);
    if (!result)
        result = parameters(reader, 3, "axes", list->axes, &axes);
    if (!result)
        result = onnx_integers(reader, input_of(reader, 4), list->steps, MICA_MAX_RANK, &steps);
    if (result)
        return result;
    for (uint32_t i = 0; i < list->count; i++) {
        list->axes[i] = axes ? list->axes[i] : i;
        list->steps[i] = steps ? list->steps[i] : 1;
    }
    if (ends != list->count || (axes && axes != ends) || (steps && steps != ends))
        return onnx_refuse(reader, "its starts, ends, axes and steps differ in number");
    return 0;
}

/* One dimension, placed as the layout has it. */
static int slice_dimension(struct onnx_reader *reader, const struct slice_list *list, uint32_t i,
                           const struct onnx_value *value, enum onnx_layout layout, struct mica_slice *slice)
{
    int32_t axis = axis_of(list->axes[i], value->rank);
    if (axis < 0 || list->steps[i] == 0)
        return onnx_refuse(reader, "its axes or steps are out of range");
    int64_t size = value->dims[axis], step = clamp(list->steps[i], -INT32_MAX, INT32_MAX);
    int64_t begin = clamp(list->starts[i], -(INT64_C(1) << 40), INT64_C(1) << 40);
    int64_t end = clamp(list->ends[i], -(INT64_C(1) << 40), INT64_C(1) << 40);
    begin += begin < 0 ? size : 0;
    end += end < 0 ? size : 0;
    begin = step > 0 ? clamp(begin, 0, size) : clamp(begin, 0, size - 1);
    end = step > 0 ? clamp(end, 0, size) : clamp(end, -1, size - 1);
    int64_t span = step > 0 ? end - begin : begin - end, stride = step > 0 ? step : -step;
    if (span <= 0)
        return onnx_refuse(reader, "it takes nothing of dimension %d", axis);
    const int32_t place = onnx_place(layout, axis);
    slice->begin[place] = (int32_t)begin;
    slice->count[place] = (int32_t)((span - 1) / stride + 1);
    slice->step[place] = slice->count[place] > 1 ? (int32_t)step : 1;
    return 0;
}

int onnx_slice(struct onnx_reader *reader, int kind)
{
    struct mica_op op = {.kind = MICA_OP_SLICE};
    struct slice_list list;
    struct onnx_call call;
    int32_t input;
    int error = onnx_call_moving(reader, 1, &call);
    if (!error)
        error = read_slices(reader, &list);
    if (error)
        return error;
    const struct onnx_value *value = &reader->values[call.in[0]];
    enum onnx_layout layout = onnx_preferred(reader, call.in, 1);
    struct onnx_result result = onnx_call_result(reader, &call, layout);
    for (uint32_t i = 0; i < value->rank; i++) {
        op.slice.step[i] = 1;
        op.slice.count[i] = value->dims[layout == ONNX_IMAGE ? onnx_image_order[i] : i];
    }
    for (uint32_t i = 0; i < list.count && !error; i++)
        error = slice_dimension(reader, &list, i, value, layout, &op.slice);
    result.rank = value->rank;
    result.dims = op.slice.count;
    if (!error)
        error = onnx_tensor(reader, call.in[0], layout, &input);
    return error ? error : onnx_emit(reader, &op, &input, 1, &result);
}

int onnx_gather(struct onnx_reader *reader, int kind)
{
    struct mica_op op = {.kind = MICA_OP_GATHER};
    struct onnx_call call;
    int32_t inputs[2];
    int error = onnx_call_moving(reader, 1, &call);
    if (error)
        return error;
    const struct onnx_value *value = &reader->values[call.in[0]];
    op.axis = axis_of(onnx_int(reader, "axis", 0), value->rank);
    if (op.axis < 0 || reader->node->inputs < 2)
        return onnx_refuse(reader, "its axis is out of range, or it has no indices");
    struct onnx_result result = onnx_call_result(reader, &call, ONNX_PLAIN);
    error = onnx_tensor(reader, call.in[0], ONNX_PLAIN, &inputs[0]);
    if (!error)
        error = onnx_tensor(reader, input_of(reader, 1), ONNX_PLAIN, &inputs[1]);
    return error ? error : onnx_emit(reader, &op, inputs, 2, &result);
}
