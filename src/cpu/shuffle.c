/* SPDX-License-Identifier: MIT */
/* SLICE, TRANSPOSE, REVERSE, SPLIT, PACK, UNPACK, SPACE_TO_DEPTH, DEPTH_TO_SPACE: elements elsewhere, of any type. */
#include "cpu/copy.h"

/* All inputs of `[first, first + count)` and all outputs have the type of output 0. */
static int check_types(const struct mica_graph *graph, const struct mica_op *op, uint32_t first, uint32_t count,
                       struct mica_cpu_reason *reason)
{
    enum mica_type type = mica_op_output(graph, op, 0)->type;
    for (uint32_t i = first; i < first + count; i++)
        if (mica_op_input(graph, op, i)->type != type)
            return mica_cpu_refuse(reason, "input and output differ in type");
    for (uint32_t i = 0; i < op->output_count; i++)
        if (mica_op_output(graph, op, i)->type != type)
            return mica_cpu_refuse(reason, "outputs differ in type");
    return 0;
}

static int check_one_to_one(const struct mica_graph *graph, const struct mica_op *op, uint32_t inputs,
                            struct mica_cpu_reason *reason)
{
    int result = mica_cpu_check_operands(graph, op, inputs, 1, reason);
    return result ? result : check_types(graph, op, 0, 1, reason);
}

/* ---- slice ------------------------------------------------------------------- */

int mica_cpu_check_slice(const struct mica_graph *graph, const struct mica_op *op, struct mica_cpu_reason *reason)
{
    int result = check_one_to_one(graph, op, 1, reason);
    if (result)
        return result;
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *out = mica_op_output(graph, op, 0);
    const struct mica_slice *slice = &op->slice;
    size_t left = mica_cpu_elements(out);
    for (uint32_t i = 0; i < in->rank; i++) {
        int64_t first = slice->begin[i], last = first + ((int64_t)slice->count[i] - 1) * slice->step[i];
        if (slice->count[i] < 1 || first < 0 || last < 0 || first >= in->dims[i] || last >= in->dims[i])
            return mica_cpu_refuse(reason, "the slice reaches beyond the input");
        if (left % (size_t)slice->count[i])
            return mica_cpu_refuse(reason, "the slice is not as large as the output");
        left /= (size_t)slice->count[i];
    }
    return left == 1 ? 0 : mica_cpu_refuse(reason, "the slice is not as large as the output");
}

int mica_cpu_slice(const struct mica_cpu_call *call)
{
    const struct mica_tensor *in = mica_cpu_input(call, 0);
    const struct mica_slice *slice = &call->op->slice;
    struct mica_copy copy = {0};
    size_t size = mica_type_size(in->type), left = mica_cpu_elements(mica_cpu_output(call, 0));
    ptrdiff_t strides[MICA_MAX_RANK], offset = 0;
    mica_copy_strides(in, strides);
    for (uint32_t i = 0; i < in->rank; i++) {
        left /= (size_t)slice->count[i];
        mica_copy_add(&copy, (size_t)slice->count[i], strides[i] * slice->step[i], (ptrdiff_t)left);
        offset += slice->begin[i] * strides[i];
    }
    const uint8_t *from = mica_cpu_input_data(call, 0);
    mica_copy_run(&copy, from + offset * (ptrdiff_t)size, mica_cpu_output_data(call, 0), size, call->threads);
    return 0;
}

/* ---- transpose, reverse --------------------------------------------------------- */

static int check_permutation(const struct mica_tensor *in, const struct mica_tensor *out,
                             const struct mica_tensor *order, struct mica_cpu_reason *reason)
{
    if (order->type != MICA_TYPE_INT32 || !order->data || mica_cpu_elements(order) != in->rank || in->rank != out->rank)
        return mica_cpu_refuse(reason,
                               "the permutation is not a constant int32 tensor with a value for each dimension");
    const int32_t *axes = order->data;
    uint32_t seen = 0;
    for (uint32_t i = 0; i < in->rank; i++) {
        int32_t axis = axes[i] < 0 ? axes[i] + (int32_t)in->rank : axes[i];
        if (axis < 0 || (uint32_t)axis >= in->rank || seen >> axis & 1 || out->dims[i] != in->dims[axis])
            return mica_cpu_refuse(reason, "the permutation does not fit input and output");
        seen |= UINT32_C(1) << axis;
    }
    return 0;
}

int mica_cpu_check_transpose(const struct mica_graph *graph, const struct mica_op *op, struct mica_cpu_reason *reason)
{
    int result = check_one_to_one(graph, op, 2, reason);
    return result ? result
                  : check_permutation(mica_op_input(graph, op, 0), mica_op_output(graph, op, 0),
                                      mica_op_input(graph, op, 1), reason);
}

int mica_cpu_transpose(const struct mica_cpu_call *call)
{
    const struct mica_tensor *in = mica_cpu_input(call, 0), *out = mica_cpu_output(call, 0);
    const int32_t *axes = mica_cpu_input(call, 1)->data;
    struct mica_copy copy = {0};
    ptrdiff_t from[MICA_MAX_RANK], to[MICA_MAX_RANK];
    mica_copy_strides(in, from);
    mica_copy_strides(out, to);
    for (uint32_t i = 0; i < out->rank; i++)
        mica_copy_add(&copy, (size_t)out->dims[i], from[axes[i] < 0 ? axes[i] + (int32_t)in->rank : axes[i]], to[i]);
    mica_copy_run(&copy, mica_cpu_input_data(call, 0), mica_cpu_output_data(call, 0), mica_type_size(in->type),
                  call->threads);
    return 0;
}

int mica_cpu_check_reverse(const struct mica_graph *graph, const struct mica_op *op, struct mica_cpu_reason *reason)
{
    int result = check_one_to_one(graph, op, 1, reason);
    if (!result && !mica_cpu_same_shape(mica_op_input(graph, op, 0), mica_op_output(graph, op, 0)))
        result = mica_cpu_refuse(reason, "input and output differ in shape");
    return result;
}

int mica_cpu_reverse(const struct mica_cpu_call *call)
{
    const struct mica_tensor *in = mica_cpu_input(call, 0);
    struct mica_copy copy = {0};
    ptrdiff_t strides[MICA_MAX_RANK], offset = 0, size = (ptrdiff_t)mica_type_size(in->type);
    mica_copy_strides(in, strides);
    for (uint32_t i = 0; i < in->rank; i++) {
        bool turned = call->op->axes >> i & 1;
        mica_copy_add(&copy, (size_t)in->dims[i], turned ? -strides[i] : strides[i], strides[i]);
        offset += turned ? (in->dims[i] - 1) * strides[i] : 0;
    }
    const uint8_t *from = mica_cpu_input_data(call, 0);
    mica_copy_run(&copy, from + offset * size, mica_cpu_output_data(call, 0), (size_t)size, call->threads);
    return 0;
}

/* ---- split, pack, unpack: slices of one tensor and tensors of their own ------------ */

/* Elements before, along and after an axis of a tensor. */
struct around {
    size_t outer, along, inner;
};

static struct around around_axis(const struct mica_tensor *tensor, int32_t axis)
{
    struct around around = {1, 1, 1};
    for (int32_t i = 0; i < (int32_t)tensor->rank; i++)
        *(i < axis ? &around.outer : i == axis ? &around.along : &around.inner) *= (size_t)tensor->dims[i];
    return around;
}

/* Copies `count` slices between `whole`, at slice `first`, and a tensor that holds nothing else. */
static void copy_part(const struct mica_cpu_call *call, struct around whole, size_t first, size_t count, size_t size,
                      const void *from, void *to, bool into_whole)
{
    struct mica_copy copy = {0};
    ptrdiff_t stride = (ptrdiff_t)(whole.along * whole.inner), packed = (ptrdiff_t)(count * whole.inner);
    size_t offset = first * whole.inner * size;
    mica_copy_add(&copy, whole.outer, into_whole ? packed : stride, into_whole ? stride : packed);
    mica_copy_add(&copy, count * whole.inner, 1, 1);
    mica_copy_run(&copy, (const uint8_t *)from + (into_whole ? 0 : offset), (uint8_t *)to + (into_whole ? offset : 0),
                  size, call->threads);
}

int mica_cpu_check_split(const struct mica_graph *graph, const struct mica_op *op, struct mica_cpu_reason *reason)
{
    uint32_t data = mica_op_data_input(op);
    int result = mica_cpu_check_operands(graph, op, data + 1, op->output_count, reason);
    if (!result)
        result = check_types(graph, op, data, 1, reason);
    if (result)
        return result;
    const struct mica_tensor *in = mica_op_input(graph, op, data);
    if (op->axis < 0 || (uint32_t)op->axis >= in->rank)
        return mica_cpu_refuse(reason, "axis %d is out of range", op->axis);
    struct around whole = around_axis(in, op->axis);
    size_t sum = 0, slice = whole.outer * whole.inner;
    for (uint32_t i = 0; i < op->output_count; i++) {
        const struct mica_tensor *out = mica_op_output(graph, op, i);
        if (out->rank != in->rank || mica_cpu_elements(out) != (size_t)out->dims[op->axis] * slice)
            return mica_cpu_refuse(reason, "an output's shape does not fit the input's");
        sum += (size_t)out->dims[op->axis];
    }
    return sum == whole.along ? 0 : mica_cpu_refuse(reason, "the outputs don't add up to the input");
}

int mica_cpu_split(const struct mica_cpu_call *call)
{
    uint32_t data = mica_op_data_input(call->op);
    const struct mica_tensor *in = mica_cpu_input(call, data);
    size_t first = 0;
    for (uint32_t i = 0; i < call->op->output_count; i++) {
        size_t count = (size_t)mica_cpu_output(call, i)->dims[call->op->axis];
        copy_part(call, around_axis(in, call->op->axis), first, count, mica_type_size(in->type),
                  mica_cpu_input_data(call, data), mica_cpu_output_data(call, i), false);
        first += count;
    }
    return 0;
}

/* The packed tensor has one slice for each of `count` tensors of equal size. */
static int check_slices(const struct mica_tensor *packed, int32_t axis, uint32_t count, struct mica_cpu_reason *reason)
{
    if (axis < 0 || (uint32_t)axis >= packed->rank)
        return mica_cpu_refuse(reason, "axis %d is out of range", axis);
    if ((uint32_t)packed->dims[axis] != count)
        return mica_cpu_refuse(reason, "there are %u tensors for %d slices", count, packed->dims[axis]);
    return 0;
}

int mica_cpu_check_pack(const struct mica_graph *graph, const struct mica_op *op, struct mica_cpu_reason *reason)
{
    int result = mica_cpu_check_operands(graph, op, op->input_count, 1, reason);
    if (!result)
        result = check_types(graph, op, 0, op->input_count, reason);
    const struct mica_tensor *out = mica_op_output(graph, op, 0);
    if (!result)
        result = check_slices(out, op->axis, op->input_count, reason);
    for (uint32_t i = 0; i < op->input_count && !result; i++)
        if (mica_op_input(graph, op, i)->bytes != out->bytes / op->input_count)
            result = mica_cpu_refuse(reason, "an input's shape does not fit the output's");
    return result;
}

int mica_cpu_pack(const struct mica_cpu_call *call)
{
    const struct mica_tensor *out = mica_cpu_output(call, 0);
    for (uint32_t i = 0; i < call->op->input_count; i++)
        copy_part(call, around_axis(out, call->op->axis), i, 1, mica_type_size(out->type), mica_cpu_input_data(call, i),
                  mica_cpu_output_data(call, 0), true);
    return 0;
}

int mica_cpu_check_unpack(const struct mica_graph *graph, const struct mica_op *op, struct mica_cpu_reason *reason)
{
    int result = mica_cpu_check_operands(graph, op, 1, op->output_count, reason);
    if (!result)
        result = check_types(graph, op, 0, 1, reason);
    const struct mica_tensor *in = mica_op_input(graph, op, 0);
    if (!result)
        result = check_slices(in, op->axis, op->output_count, reason);
    for (uint32_t i = 0; i < op->output_count && !result; i++)
        if (mica_op_output(graph, op, i)->bytes != in->bytes / op->output_count)
            result = mica_cpu_refuse(reason, "an output's shape does not fit the input's");
    return result;
}

int mica_cpu_unpack(const struct mica_cpu_call *call)
{
    const struct mica_tensor *in = mica_cpu_input(call, 0);
    for (uint32_t i = 0; i < call->op->output_count; i++)
        copy_part(call, around_axis(in, call->op->axis), i, 1, mica_type_size(in->type), mica_cpu_input_data(call, 0),
                  mica_cpu_output_data(call, i), false);
    return 0;
}

/* ---- space to depth and back --------------------------------------------------------- */

/* `wide` has the large image, `deep` the many channels. */
static int check_blocks(const struct mica_tensor *wide, const struct mica_tensor *deep, int32_t block,
                        struct mica_cpu_reason *reason)
{
    if (wide->rank != 4 || deep->rank != 4 || block < 1)
        return mica_cpu_refuse(reason, "input and output are not images, or the block has no size");
    if (wide->dims[0] != deep->dims[0] || wide->dims[1] != (int64_t)deep->dims[1] * block ||
        wide->dims[2] != (int64_t)deep->dims[2] * block || deep->dims[3] != (int64_t)wide->dims[3] * block * block)
        return mica_cpu_refuse(reason, "blocks of %d do not fit input and output", block);
    return 0;
}

int mica_cpu_check_blocks(const struct mica_graph *graph, const struct mica_op *op, struct mica_cpu_reason *reason)
{
    int result = check_one_to_one(graph, op, 1, reason);
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *out = mica_op_output(graph, op, 0);
    bool to_depth = op->kind == MICA_OP_SPACE_TO_DEPTH;
    return result ? result : check_blocks(to_depth ? in : out, to_depth ? out : in, op->block, reason);
}

int mica_cpu_blocks(const struct mica_cpu_call *call)
{
    const struct mica_tensor *in = mica_cpu_input(call, 0), *out = mica_cpu_output(call, 0);
    bool to_depth = call->op->kind == MICA_OP_SPACE_TO_DEPTH;
    const struct mica_tensor *wide = to_depth ? in : out, *deep = to_depth ? out : in;
    ptrdiff_t block = call->op->block, channels = wide->dims[3], row = wide->dims[2] * channels;
    ptrdiff_t deep_pixel = deep->dims[3], deep_row = deep->dims[2] * deep_pixel;
    /* Rows and columns of blocks, rows and columns of one block, channels. */
    const size_t counts[] = {(size_t)deep->dims[0] * (size_t)deep->dims[1], (size_t)deep->dims[2], (size_t)block,
                             (size_t)block, (size_t)channels};
    const ptrdiff_t in_wide[] = {row * block, channels * block, row, channels, 1};
    const ptrdiff_t in_deep[] = {deep_row, deep_pixel, channels * block, channels, 1};
    struct mica_copy copy = {0};
    for (int i = 0; i < 5; i++)
        mica_copy_add(&copy, counts[i], to_depth ? in_wide[i] : in_deep[i], to_depth ? in_deep[i] : in_wide[i]);
    mica_copy_run(&copy, mica_cpu_input_data(call, 0), mica_cpu_output_data(call, 0), mica_type_size(in->type),
                  call->threads);
    return 0;
}
