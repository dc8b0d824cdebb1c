/* SPDX-License-Identifier: MIT */
/* What one operation costs, found out by lowering it alone, its inputs being where the NPU made them. */
#include <errno.h>

#include "npu/rockchip/compile/operations.h"
#include "npu/rockchip/compile/views.h"
#include "util/checked.h"

static int make_inputs(struct rk_plan *plan, const struct mica_op *op)
{
    int error = 0;
    for (uint32_t i = 0; !error && i < op->input_count; i++) {
        int32_t tensor = op->inputs[i];
        struct rk_shape shape;
        if (tensor == MICA_NO_TENSOR || plan->graph->tensors[tensor].data ||
            plan->values[tensor].cube.at.storage != RK_NONE)
            continue;
        error = rk_written_shape(plan, (uint32_t)tensor, &shape);
        if (!error)
            error = rk_plan_cube(plan, shape, &plan->values[tensor].cube);
    }
    return error;
}

static int lower_alone(struct rk_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    const struct rk_operation *operation = rk_operation_of(op->kind);
    if (!operation)
        return mica_fail(plan->log, -ENOTSUP, "%s can't be compiled for the NPU", op->type);
    int error = make_inputs(plan, op);
    return error ? error : operation->lower(plan, op_index);
}

static double us_of(const struct rk_plan *plan, double clock_mhz)
{
    double us = 0;
    for (uint32_t i = 0; i < plan->task_count; i++) {
        double compute = (double)plan->tasks[i].compute_cycles / clock_mhz;
        double memory = (double)plan->tasks[i].bytes / (plan->chip->bytes_per_ns * 1000);
        us += (compute > memory ? compute : memory) + plan->chip->task_us;
    }
    return us;
}

int rk_describe(const struct mica_chip *chip, const struct mica_graph *graph, uint32_t op,
                const struct mica_compile_options *options, struct mica_way *way)
{
    struct mica_partition partition = {.graph = graph, .op_count = 1, .ops = &op};
    struct rk_plan plan;
    int error = rk_plan_init(&plan, chip, &partition, options, NULL, NULL);
    if (!error)
        error = lower_alone(&plan, op);
    if (!error) {
        way->jobs = plan.task_count;
        way->us = us_of(&plan, chip->clock_mhz);
    }
    rk_plan_finish(&plan);
    return error;
}
