/* SPDX-License-Identifier: MIT */
/*
 * Padding with a constant. Rows and columns of an image are one TP job on its planes; any other axis is
 * one on the tensor as it is outside, where what is before and behind it makes rows of an image.
 */
#include <errno.h>

#include "npu/vivante/compile/compose.h"
#include "npu/vivante/compile/query.h"
#include "npu/vivante/compile/requant.h"

#define MAX_SIDE 16383u /* of the padded image in a TP job, less than the field's 15 bits */
#define MAX_PLANES 65535u

/* Before and behind each dimension of the input. */
static bool amounts_of(const struct mica_graph *graph, const struct mica_op *op, const int32_t **amounts)
{
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *tensor = mica_op_input(graph, op, 1);
    if (!tensor || !tensor->data || tensor->type != MICA_TYPE_INT32 || tensor->bytes != 8 * (size_t)in->rank)
        return false;
    *amounts = tensor->data;
    for (uint32_t i = 0; i < 2 * in->rank; i++)
        if ((*amounts)[i] < 0 || (size_t)(*amounts)[i] > MICA_MAX_TENSOR_BYTES)
            return false;
    return true;
}

/* Only rows and columns of an image that the TP cores can scan. */
static bool is_planar(const struct mica_graph *graph, const struct mica_op *op, const int32_t *amounts)
{
    const struct mica_tensor *out = mica_op_output(graph, op, 0);
    if (out->rank != 4 || out->dims[0] != 1 || amounts[0] || amounts[1] || amounts[6] || amounts[7])
        return false;
    return out->dims[1] <= (int32_t)MAX_SIDE && out->dims[2] <= (int32_t)MAX_SIDE &&
           out->dims[3] <= (int32_t)MAX_PLANES;
}

static uint64_t largest_divisor(uint64_t value, uint64_t most)
{
    uint64_t divisor = value < most ? value : most;
    while (value % divisor)
        divisor--;
    return divisor;
}

/* One axis of `size` elements, `inner` bytes each, `outer` times, as an image that is padded. */
struct axis_pad {
    struct viv_shape shape;
    struct mica_padding padding;
};

static bool make_axis(uint64_t outer, uint64_t size, uint64_t inner, const int32_t *amounts, struct axis_pad *pad)
{
    uint64_t padded = size + (uint64_t)amounts[0] + (uint64_t)amounts[1], w, h, c;
    if (padded * inner <= MAX_SIDE) { /* as columns */
        h = largest_divisor(outer, MAX_SIDE);
        c = outer / h;
        w = size * inner;
        pad->padding = (struct mica_padding){.left = (int32_t)((uint64_t)amounts[0] * inner),
                                             .right = (int32_t)((uint64_t)amounts[1] * inner)};
    } else {
        uint64_t row = largest_divisor(inner, MAX_SIDE), rows = inner / row;
        if (padded * rows > MAX_SIDE)
            return false;
        w = row;
        h = size * rows;
        c = outer;
        pad->padding = (struct mica_padding){.top = (int32_t)((uint64_t)amounts[0] * rows),
                                             .bottom = (int32_t)((uint64_t)amounts[1] * rows)};
    }
    pad->shape = (struct viv_shape){(uint32_t)w, (uint32_t)h, (uint32_t)c};
    return c <= MAX_PLANES;
}

/* Calls for each padded axis, last first; `plan` NULL: only asks whether it can be done. */
static int pad_axes(struct viv_plan *plan, const struct mica_graph *graph, uint32_t op_index, const struct mica_op *op,
                    const int32_t *amounts, struct viv_ref ref, struct viv_ref out, uint8_t value)
{
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *result = mica_op_output(graph, op, 0);
    uint64_t inner = 1, outer = in->bytes;
    uint32_t left = 0;
    int error = 0;
    for (uint32_t d = 0; d < in->rank; d++)
        left += amounts[2 * d] || amounts[2 * d + 1];
    if (!left && plan)
        return viv_tp_copy(plan, op_index, in->bytes, ref, out, value);
    for (uint32_t d = in->rank; !error && d-- > 0; inner *= (uint32_t)result->dims[d]) {
        uint64_t size = (uint32_t)in->dims[d];
        struct axis_pad pad;
        struct viv_ref from = ref;
        outer /= size;
        if (!amounts[2 * d] && !amounts[2 * d + 1])
            continue;
        if (!make_axis(outer, size, inner, amounts + 2 * d, &pad))
            return -ENOTSUP;
        if (!plan)
            continue;
        if (--left == 0)
            ref = out;
        else
            error = viv_plan_storage(plan, outer * (uint32_t)result->dims[d] * inner, &ref);
        if (!error)
            error = viv_tp_pad(plan, op_index, pad.shape, &pad.padding, from, ref, value);
    }
    return error;
}

bool viv_supports_pad(const struct viv_query *query)
{
    const struct mica_tensor *in = mica_op_input(query->graph, query->op, 0);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    const struct mica_tensor *value = mica_op_input(query->graph, query->op, 2);
    const int32_t *amounts;
    struct viv_ref none = {VIV_NONE, 0};
    if (!viv_check_quantized(query, in, "input") || !viv_check_quantized(query, out, "output") ||
        !viv_check_layouts(query, in, "input") || !viv_check_layouts(query, out, "output"))
        return false;
    if (value && (value->problem || !value->data || value->bytes != 1 || !viv_is_byte(value)))
        return viv_refuse(query, "the padding value is not a constant of one byte");
    if (!amounts_of(query->graph, query->op, &amounts))
        return viv_refuse(query, "the paddings are not constant int32 of zero or more");
    if (!is_planar(query->graph, query->op, amounts) &&
        pad_axes(NULL, query->graph, 0, query->op, amounts, none, none, 0))
        return viv_refuse(query, "the padded tensor is too large for the TP cores");
    return viv_same_quantization(in, out) || viv_refuse(query, "input and output are quantized differently");
}

int viv_lower_pad(struct viv_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    const struct mica_tensor *tensor = mica_op_input(plan->graph, op, 0), *value = mica_op_input(plan->graph, op, 2);
    uint32_t input = (uint32_t)op->inputs[0], output = (uint32_t)op->outputs[0];
    const int32_t *amounts;
    struct viv_ref in, out;
    if (!amounts_of(plan->graph, op, &amounts))
        return mica_fail(plan->log, -ENOTSUP, "%s has no constant paddings", op->type);
    uint8_t byte = value ? *(const uint8_t *)value->data ^ viv_flip(tensor) : viv_tensor_zero(tensor);
    bool planar = is_planar(plan->graph, op, amounts);
    int error = planar ? viv_need_planar(plan, input, op_index, &in) : viv_need_nhwc(plan, input, op_index, &in);
    if (!error)
        error = planar ? viv_make_planar(plan, output, &out) : viv_make_nhwc(plan, output, &out);
    if (error || !planar)
        return error ? error : pad_axes(plan, plan->graph, op_index, op, amounts, in, out, byte);
    struct mica_padding padding = {.left = amounts[4], .top = amounts[2], .right = amounts[5], .bottom = amounts[3]};
    return viv_tp_pad(plan, op_index, viv_shape_of(tensor), &padding, in, out, byte);
}
