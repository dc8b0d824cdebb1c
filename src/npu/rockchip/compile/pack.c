/* SPDX-License-Identifier: MIT */
/* UNPACK: parts of the input that have lost a dimension. (PACK is a concatenation: concatenation.c.) Exact. */
#include <errno.h>

#include "npu/rockchip/compile/part.h"
#include "npu/rockchip/compile/refuse.h"
#include "npu/rockchip/compile/relayout.h"

static const char *find_part(const struct mica_tensor *in, const struct mica_op *op, uint32_t op_index, uint32_t i,
                             struct rk_part *part)
{
    *part = rk_part_all(in, op_index);
    return rk_part_dimension(in, (uint32_t)op->axis, (struct rk_range){i, 1, 1}, part);
}

static struct rk_shape shape_of(const struct rk_part *part)
{
    return (struct rk_shape){part->x.count, part->y.count, part->c.count};
}

int rk_supports_unpack(const struct rk_chip *chip, const struct mica_graph *graph, uint32_t op_index, char *reason,
                       size_t size)
{
    const struct mica_op *op = &graph->ops[op_index];
    if (rk_check_tensors(graph, op, 0, 1, reason, size))
        return -ENOTSUP;
    const struct mica_tensor *in = mica_op_input(graph, op, 0);
    for (uint32_t i = 0; i < op->output_count; i++) {
        const struct mica_tensor *out = mica_op_output(graph, op, i);
        struct rk_part part;
        const char *problem = find_part(in, op, op_index, i, &part);
        if (!problem && !rk_same_quantization(in, out))
            problem = "it is quantized differently from the input";
        if (!problem)
            problem = rk_part_problem(chip, rk_shape_of(in), &part);
        if (!problem && part.c.count != rk_shape_of(out).c)
            problem = rk_relayout_problem(chip, shape_of(&part), rk_shape_of(out).c);
        if (problem)
            return rk_refuse(reason, size, "output %u can't be taken out: %s", i, problem);
    }
    return 0;
}

static int lower_output(struct rk_plan *plan, const struct rk_part *part, struct rk_cube in, uint32_t tensor)
{
    struct rk_cube taken, out;
    if (part->c.count == rk_shape_of(&plan->graph->tensors[tensor]).c)
        return rk_lower_part(plan, part, in, tensor);
    int error = rk_plan_cube(plan, shape_of(part), &taken);
    if (!error)
        error = rk_lower_part_to(plan, part, in, taken);
    if (!error)
        error = rk_plan_result(plan, tensor, &out);
    return error ? error : rk_lower_relayout(plan, part->op, taken, out);
}

int rk_lower_unpack(struct rk_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    struct rk_cube in;
    int error = rk_plan_value(plan, (uint32_t)op->inputs[0], &in);
    for (uint32_t i = 0; !error && i < op->output_count; i++) {
        struct rk_part part;
        const char *problem = find_part(mica_op_input(plan->graph, op, 0), op, op_index, i, &part);
        error = problem ? mica_fail(plan->log, -ENOTSUP, "output %u of %s can't be taken out: %s", i, op->type, problem)
                        : lower_output(plan, &part, in, (uint32_t)op->outputs[i]);
    }
    return error;
}
