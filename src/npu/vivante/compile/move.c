/* SPDX-License-Identifier: MIT */
/* Operations that only move data: concatenation, reshape. */
#include "npu/vivante/compile/lower.h"

#include "npu/vivante/compile/compose.h"

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
        error = viv_join_part(plan, op_index, i, true, &in);
        if (!error)
            error = viv_place(plan, in, tensor->bytes, out, offset, viv_tensor_zero(tensor), op_index);
        offset += tensor->bytes;
    }
    return error;
}

int viv_lower_reshape(struct viv_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    plan->values[op->outputs[0]].reshape_of = (uint32_t)op->inputs[0];
    return 0;
}
