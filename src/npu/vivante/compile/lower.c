/* SPDX-License-Identifier: MIT */
#include "npu/vivante/compile/lower.h"

#include <errno.h>

#include "npu/vivante/compile/batch.h"
#include "npu/vivante/compile/supports.h"

static int lower_inputs(struct viv_plan *plan)
{
    const struct mica_partition *partition = plan->partition;
    for (uint32_t i = 0; i < partition->input_count; i++) {
        struct viv_ref ref;
        int error = viv_make_nhwc(plan, partition->inputs[i], &ref);
        if (error)
            return error;
        plan->storages[ref.storage].is_input = true;
        plan->storages[ref.storage].external = true;
    }
    return 0;
}

static int lower_op(struct viv_plan *plan, uint32_t op)
{
    const struct viv_operation *operation = viv_operation_of(plan->graph->ops[op].kind);
    if (!operation)
        return mica_fail(plan->log, -ENOTSUP, "%s can't be compiled for the NPU", plan->graph->ops[op].type);
    return viv_is_batched(plan->graph, &plan->graph->ops[op]) ? viv_lower_batch(plan, op, operation->lower)
                                                              : operation->lower(plan, op);
}

static int lower_output(struct viv_plan *plan, uint32_t tensor)
{
    struct viv_ref ref, copy;
    uint32_t op = plan->values[tensor].op;
    if (op == VIV_NONE)
        return mica_fail(plan->log, -EINVAL, "partition output \"%s\" is computed by none of its operations",
                         plan->graph->tensors[tensor].name);
    int error = viv_need_nhwc(plan, tensor, op, &ref);
    if (!error && plan->storages[ref.storage].is_input) { /* a reshaped input: the host must not get its own bytes */
        error = viv_make_nhwc(plan, tensor, &copy);
        if (!error)
            error = viv_tp_copy(plan, op, plan->graph->tensors[tensor].bytes, ref, copy, 0);
        ref = copy;
    }
    if (!error)
        plan->storages[viv_plan_resolve(plan, ref).storage].external = true;
    return error;
}

int viv_lower(struct viv_plan *plan)
{
    const struct mica_partition *partition = plan->partition;
    int error = lower_inputs(plan);
    for (uint32_t i = 0; !error && i < partition->op_count; i++) {
        uint32_t op = partition->ops[i];
        error = lower_op(plan, op);
        if (!error)
            error = viv_clamp_finish(plan, op);
        for (uint32_t j = 0; !error && j < plan->graph->ops[op].output_count; j++)
            plan->values[plan->graph->ops[op].outputs[j]].op = op;
    }
    for (uint32_t i = 0; !error && i < partition->output_count; i++)
        error = lower_output(plan, partition->outputs[i]);
    return error;
}
