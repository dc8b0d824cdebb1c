/* SPDX-License-Identifier: MIT */
/* Operations that only move data: concatenation, padding, reshape. */
#include "npu/vivante/compile/lower.h"

#include <errno.h>

#include "npu/vivante/compile/compose.h"
#include "npu/vivante/compile/requant.h"

/* Then planes follow each other, and most inputs can be made where they belong. */
static bool joins_channels(const struct mica_graph *graph, const struct mica_op *op)
{
    const struct mica_tensor *out = mica_op_output(graph, op, 0);
    return op->axis == (int32_t)out->rank - 1 && viv_shape_transposable(viv_shape_of(out));
}

int viv_lower_concatenation(struct viv_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    if (!joins_channels(plan->graph, op))
        return viv_lower_move(plan, op_index);
    struct viv_ref out, in;
    int error = viv_make_planar(plan, (uint32_t)op->outputs[0], &out);
    uint64_t offset = 0;
    for (uint32_t i = 0; !error && i < op->input_count; i++) {
        const struct mica_tensor *tensor = mica_op_input(plan->graph, op, i);
        error = viv_need_planar(plan, (uint32_t)op->inputs[i], op_index, &in);
        if (!error)
            error = viv_place(plan, in, tensor->bytes, out, offset, viv_tensor_zero(tensor), op_index);
        offset += tensor->bytes;
    }
    return error;
}

bool viv_pad_amounts(const struct mica_graph *graph, const struct mica_op *op, struct mica_padding *padding)
{
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *amounts = mica_op_input(graph, op, 1);
    if (!amounts || !amounts->data || amounts->type != MICA_TYPE_INT32 || in->rank != 4 || amounts->bytes != 32)
        return false;
    const int32_t *a = amounts->data;
    for (unsigned i = 0; i < 8; i++)
        if (a[i] < 0 || a[i] > (int32_t)VIV_MAX_IMAGE)
            return false;
    *padding = (struct mica_padding){.left = a[4], .top = a[2], .right = a[5], .bottom = a[3]};
    return a[0] == 0 && a[1] == 0 && a[6] == 0 && a[7] == 0;
}

int viv_lower_pad(struct viv_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    const struct mica_tensor *tensor = mica_op_input(plan->graph, op, 0);
    struct mica_padding padding;
    struct viv_ref in, out;
    if (!viv_pad_amounts(plan->graph, op, &padding))
        return mica_fail(plan->log, -ENOTSUP, "%s pads more than columns and rows", op->type);
    int error = viv_need_planar(plan, (uint32_t)op->inputs[0], op_index, &in);
    if (!error)
        error = viv_make_planar(plan, (uint32_t)op->outputs[0], &out);
    if (error)
        return error;
    const struct mica_tensor *value = mica_op_input(plan->graph, op, 2);
    uint8_t byte = value ? *(const uint8_t *)value->data ^ viv_flip(tensor) : viv_tensor_zero(tensor);
    return viv_tp_pad(plan, op_index, viv_shape_of(tensor), &padding, in, out, byte);
}

int viv_lower_reshape(struct viv_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    plan->values[op->outputs[0]].reshape_of = (uint32_t)op->inputs[0];
    return 0;
}
