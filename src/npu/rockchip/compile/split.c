/* SPDX-License-Identifier: MIT */
/* SPLIT, SPLIT_V: each output is a part of the input. */
#include <errno.h>

#include "npu/rockchip/compile/part.h"
#include "npu/rockchip/compile/refuse.h"

/* The part that is output `i`; `*first` is where it begins along the axis, and gets where the next one does. */
static const char *find_part(const struct mica_graph *graph, uint32_t op_index, uint32_t i, uint32_t *first,
                             struct rk_part *part)
{
    const struct mica_op *op = &graph->ops[op_index];
    const struct mica_tensor *in = mica_op_input(graph, op, mica_op_data_input(op));
    uint32_t axis = (uint32_t)op->axis, count = (uint32_t)mica_op_output(graph, op, i)->dims[axis];
    *part = rk_part_all(in, op_index);
    const char *problem = rk_part_dimension(in, axis, (struct rk_range){*first, 1, count}, part);
    *first += count;
    return problem;
}

int rk_supports_split(const struct rk_chip *chip, const struct mica_graph *graph, uint32_t op_index, char *reason,
                      size_t size)
{
    const struct mica_op *op = &graph->ops[op_index];
    uint32_t data = mica_op_data_input(op), first = 0;
    if (rk_check_tensors(graph, op, data, data + 1, reason, size))
        return -ENOTSUP;
    const struct mica_tensor *in = mica_op_input(graph, op, data);
    for (uint32_t i = 0; i < op->output_count; i++) {
        struct rk_part part;
        const char *problem = find_part(graph, op_index, i, &first, &part);
        if (!problem && !rk_same_quantization(in, mica_op_output(graph, op, i)))
            problem = "it is quantized differently from the input";
        if (!problem)
            problem = rk_part_problem(chip, rk_shape_of(in), &part);
        if (problem)
            return rk_refuse(reason, size, "output %u can't be taken out: %s", i, problem);
    }
    return 0;
}

int rk_lower_split(struct rk_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    uint32_t first = 0;
    struct rk_cube in;
    int error = rk_plan_value(plan, (uint32_t)op->inputs[mica_op_data_input(op)], &in);
    for (uint32_t i = 0; !error && i < op->output_count; i++) {
        struct rk_part part;
        const char *problem = find_part(plan->graph, op_index, i, &first, &part);
        if (problem)
            return mica_fail(plan->log, -ENOTSUP, "output %u of %s can't be taken out: %s", i, op->type, problem);
        error = rk_lower_part(plan, &part, in, (uint32_t)op->outputs[i]);
    }
    return error;
}
