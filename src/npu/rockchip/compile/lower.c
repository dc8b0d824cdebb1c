/* SPDX-License-Identifier: MIT */
/* Graph operations to tasks, one after the other. */
#include <errno.h>

#include "npu/rockchip/compile/dpu_task.h"
#include "npu/rockchip/compile/layer.h"
#include "npu/rockchip/compile/operations.h"
#include "npu/rockchip/compile/views.h"

static int lower_inputs(struct rk_plan *plan)
{
    const struct mica_partition *partition = plan->partition;
    int error = 0;
    for (uint32_t i = 0; !error && i < partition->input_count; i++) {
        uint32_t tensor = partition->inputs[i];
        struct rk_shape shape;
        error = rk_written_shape(plan, tensor, &shape);
        if (error)
            break;
        struct rk_form form = rk_choose_form(plan, tensor);
        shape.w /= form.fold;
        shape.c *= form.fold;
        error = rk_plan_input(plan, tensor, shape, form.packed);
    }
    return error;
}

static bool is_input(const struct rk_plan *plan, uint32_t root)
{
    for (uint32_t i = 0; i < plan->partition->input_count; i++)
        if (rk_plan_resolve(plan, plan->values[plan->partition->inputs[i]].cube.at).storage == root)
            return true;
    return false;
}

/* The operation of the partition that makes a tensor, for reports. */
static uint32_t maker_of(const struct rk_plan *plan, uint32_t tensor)
{
    for (uint32_t i = 0; i < plan->partition->op_count; i++) {
        const struct mica_op *op = &plan->graph->ops[plan->partition->ops[i]];
        for (uint32_t n = 0; n < op->output_count; n++)
            if (op->outputs[n] == (int32_t)tensor)
                return plan->partition->ops[i];
    }
    return plan->partition->ops[0];
}

/* The host reads pixels one after the other, from memory that is not what it wrote itself. */
static int lower_output(struct rk_plan *plan, uint32_t tensor)
{
    struct rk_cube *cube = &plan->values[tensor].cube, copy;
    if (cube->at.storage == RK_NONE)
        return mica_fail(plan->log, -EINVAL, "partition output \"%s\" is computed by none of its operations",
                         plan->graph->tensors[tensor].name);
    uint32_t root = rk_plan_resolve(plan, cube->at).storage;
    bool gaps = cube->shape.h > 1 && cube->line != (uint64_t)cube->shape.w * plan->chip->atom;
    if (gaps || is_input(plan, root) || plan->storages[root].data) {
        int error = rk_plan_cube(plan, cube->shape, &copy);
        if (!error)
            error = rk_lower_copy(plan, maker_of(plan, tensor), *cube, copy);
        if (error)
            return error;
        *cube = copy;
        root = copy.at.storage;
    }
    plan->storages[root].external = true;
    return 0;
}

int rk_lower(struct rk_plan *plan)
{
    const struct mica_partition *partition = plan->partition;
    int error = lower_inputs(plan);
    for (uint32_t i = 0; !error && i < partition->op_count; i++) {
        const struct mica_op *op = &plan->graph->ops[partition->ops[i]];
        const struct rk_operation *operation = rk_operation_of(op->kind);
        error = operation ? operation->lower(plan, partition->ops[i])
                          : mica_fail(plan->log, -ENOTSUP, "%s can't be compiled for the NPU", op->type);
    }
    for (uint32_t i = 0; !error && i < partition->output_count; i++)
        error = lower_output(plan, partition->outputs[i]);
    return error;
}
