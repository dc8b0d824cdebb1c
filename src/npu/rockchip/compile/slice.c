/* SPDX-License-Identifier: MIT */
/* SLICE, STRIDED_SLICE. */
#include <errno.h>

#include "npu/rockchip/compile/part.h"
#include "npu/rockchip/compile/refuse.h"

static const char *find_part(const struct mica_graph *graph, uint32_t op_index, struct rk_part *part)
{
    const struct mica_op *op = &graph->ops[op_index];
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *out = mica_op_output(graph, op, 0);
    *part = rk_part_all(in, op_index);
    for (uint32_t i = 0; i < in->rank; i++) {
        if (op->slice.step[i] < 0 && op->slice.count[i] > 1)
            return "it goes backwards";
        struct rk_range range = {(uint32_t)op->slice.begin[i], 1, (uint32_t)op->slice.count[i]};
        if (range.count > 1)
            range.step = (uint32_t)op->slice.step[i];
        const char *problem = rk_part_dimension(in, i, range, part);
        if (problem)
            return problem;
    }
    return rk_shape_of(out).c == part->c.count ? NULL : "the output has lost its channel dimension";
}

/* What is no regular part is picked row by row (choice.c). */
static const char *part_problem(const struct rk_chip *chip, const struct mica_graph *graph, uint32_t op_index,
                                struct rk_part *part)
{
    const char *problem = find_part(graph, op_index, part);
    return problem ? problem : rk_part_problem(chip, rk_shape_of(mica_op_input(graph, &graph->ops[op_index], 0)), part);
}

int rk_supports_slice(const struct rk_chip *chip, const struct mica_graph *graph, uint32_t op_index, char *reason,
                      size_t size)
{
    const struct mica_op *op = &graph->ops[op_index];
    struct rk_part part;
    if (rk_check_tensors(graph, op, 0, 1, reason, size))
        return -ENOTSUP;
    const struct mica_tensor *in = mica_op_input(graph, op, 0);
    if (!rk_same_quantization(in, mica_op_output(graph, op, 0)))
        return rk_refuse(reason, size, "input and output are quantized differently");
    return part_problem(chip, graph, op_index, &part) ? rk_supports_choice(chip, graph, op_index, reason, size) : 0;
}

int rk_lower_slice(struct rk_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    struct rk_part part;
    struct rk_cube in;
    if (part_problem(plan->chip, plan->graph, op_index, &part))
        return rk_lower_choice(plan, op_index);
    int error = rk_plan_value(plan, (uint32_t)op->inputs[0], &in);
    return error ? error : rk_lower_part(plan, &part, in, (uint32_t)op->outputs[0]);
}
