/* SPDX-License-Identifier: MIT */
/* GATHER and GATHER_ND: elements or slices that indices choose. The indices are values, checked as they come. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "cpu/kernels.h"

static int check_operands(const struct mica_graph *graph, const struct mica_op *op, struct mica_cpu_reason *reason)
{
    int result = mica_cpu_check_operands(graph, op, 2, 1, reason);
    if (result)
        return result;
    const struct mica_tensor *indices = mica_op_input(graph, op, 1);
    if (mica_op_input(graph, op, 0)->type != mica_op_output(graph, op, 0)->type)
        return mica_cpu_refuse(reason, "input and output differ in type");
    if (indices->type != MICA_TYPE_INT32 && indices->type != MICA_TYPE_INT64)
        return mica_cpu_refuse(reason, "the indices are %s, not int32 or int64", mica_type_name(indices->type));
    return 0;
}

static int64_t index_at(const struct mica_tensor *indices, const void *data, size_t i)
{
    return indices->type == MICA_TYPE_INT32 ? ((const int32_t *)data)[i] : ((const int64_t *)data)[i];
}

/* Elements in dimensions [first, end). */
static size_t elements_of(const struct mica_tensor *tensor, uint32_t first, uint32_t end)
{
    size_t count = 1;
    for (uint32_t i = first; i < end; i++)
        count *= (size_t)tensor->dims[i];
    return count;
}

static int fail_index(const struct mica_cpu_call *call, int64_t index, int32_t size)
{
    return mica_fail(call->log, -EINVAL, "%s: index %" PRId64 " is outside the dimension of %d", call->op->type, index,
                     size);
}

int mica_cpu_check_gather(const struct mica_graph *graph, const struct mica_op *op, struct mica_cpu_reason *reason)
{
    int result = check_operands(graph, op, reason);
    if (result)
        return result;
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *out = mica_op_output(graph, op, 0);
    if (op->axis < 0 || (uint32_t)op->axis >= in->rank)
        return mica_cpu_refuse(reason, "axis %d is out of range", op->axis);
    size_t slices = mica_cpu_elements(in) / (size_t)in->dims[op->axis], total;
    if (__builtin_mul_overflow(slices, mica_cpu_elements(mica_op_input(graph, op, 1)), &total) ||
        total != mica_cpu_elements(out))
        return mica_cpu_refuse(reason, "input and indices don't fit the output");
    return 0;
}

int mica_cpu_gather(const struct mica_cpu_call *call)
{
    const struct mica_tensor *in = mica_cpu_input(call, 0), *indices = mica_cpu_input(call, 1);
    const void *chosen = mica_cpu_input_data(call, 1);
    const uint8_t *from = mica_cpu_input_data(call, 0);
    uint8_t *to = mica_cpu_output_data(call, 0);
    uint32_t axis = (uint32_t)call->op->axis;
    size_t outer = elements_of(in, 0, axis), count = mica_cpu_elements(indices);
    size_t run = elements_of(in, axis + 1, in->rank) * mica_type_size(in->type);
    for (size_t i = 0; i < outer; i++, from += (size_t)in->dims[axis] * run) {
        for (size_t j = 0; j < count; j++, to += run) {
            int64_t index = index_at(indices, chosen, j);
            if (index < 0 || index >= in->dims[axis])
                return fail_index(call, index, in->dims[axis]);
            memcpy(to, from + (size_t)index * run, run);
        }
    }
    return 0;
}

int mica_cpu_check_gather_nd(const struct mica_graph *graph, const struct mica_op *op, struct mica_cpu_reason *reason)
{
    int result = check_operands(graph, op, reason);
    if (result)
        return result;
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *indices = mica_op_input(graph, op, 1);
    if (indices->rank < 1 || (uint32_t)indices->dims[indices->rank - 1] > in->rank)
        return mica_cpu_refuse(reason, "the indices count through more dimensions than the input has");
    uint32_t depth = (uint32_t)indices->dims[indices->rank - 1];
    size_t slices = mica_cpu_elements(indices) / depth, total;
    if (__builtin_mul_overflow(slices, elements_of(in, depth, in->rank), &total) ||
        total != mica_cpu_elements(mica_op_output(graph, op, 0)))
        return mica_cpu_refuse(reason, "input and indices don't fit the output");
    return 0;
}

int mica_cpu_gather_nd(const struct mica_cpu_call *call)
{
    const struct mica_tensor *in = mica_cpu_input(call, 0), *indices = mica_cpu_input(call, 1);
    const void *chosen = mica_cpu_input_data(call, 1);
    const uint8_t *from = mica_cpu_input_data(call, 0);
    uint8_t *to = mica_cpu_output_data(call, 0);
    uint32_t depth = (uint32_t)indices->dims[indices->rank - 1];
    size_t run = elements_of(in, depth, in->rank) * mica_type_size(in->type);
    for (size_t i = 0; i < mica_cpu_elements(indices) / depth; i++, to += run) {
        size_t slice = 0;
        for (uint32_t j = 0; j < depth; j++) {
            int64_t index = index_at(indices, chosen, i * depth + j);
            if (index < 0 || index >= in->dims[j])
                return fail_index(call, index, in->dims[j]);
            slice = slice * (size_t)in->dims[j] + (size_t)index;
        }
        memcpy(to, from + slice * run, run);
    }
    return 0;
}
