/* SPDX-License-Identifier: MIT */
/*
 * Reshapes cost nothing or are refused: the NPU can't bring values into another memory layout. Free are those that keep
 * the channels, and those whose new shape nobody looks at: the host, who takes a tensor's bytes in order, and fully
 * connected layers, who weigh a row of values wherever they are.
 */
#include <errno.h>

#include "npu/rockchip/compile/dpu_task.h"
#include "npu/rockchip/compile/layer.h"
#include "npu/rockchip/compile/refuse.h"

#define MAX_CHAIN 16u /* reshapes of reshapes that are followed */

static int nobody_looks(const struct rk_chip *chip, const struct mica_graph *graph, int32_t tensor,
                        struct rk_shape view, uint32_t *budget);

static bool reads(const struct mica_op *op, int32_t tensor)
{
    for (uint32_t i = 0; i < op->input_count; i++)
        if (op->inputs[i] == tensor)
            return true;
    return false;
}

/* Would operation `op` do with the bytes of `tensor` in the form that the cube of another shape has? 1, 0, -ENOMEM. */
static int takes_view(const struct rk_chip *chip, const struct mica_graph *graph, uint32_t op_index, int32_t tensor,
                      struct rk_shape view, uint32_t *budget)
{
    const struct mica_op *op = &graph->ops[op_index];
    char reason[256];
    if (op->problem)
        return 1; /* the host runs it */
    int error = op->kind == MICA_OP_RESHAPE ? 0 : rk_supports_graph_op(chip, graph, op_index, reason, sizeof(reason));
    if (error)
        return error == -ENOMEM ? error : 1;
    if (op->kind == MICA_OP_FULLY_CONNECTED)
        return op->inputs[0] == tensor && rk_fully_connected_takes(chip, graph, op, view);
    if (op->kind != MICA_OP_RESHAPE || *budget == 0)
        return 0;
    --*budget;
    return nobody_looks(chip, graph, op->outputs[0], view, budget);
}

/* All that read it take it in that form: 1, 0, -ENOMEM. */
static int nobody_looks(const struct rk_chip *chip, const struct mica_graph *graph, int32_t tensor,
                        struct rk_shape view, uint32_t *budget)
{
    int answer = 1;
    for (uint32_t i = 0; i < graph->op_count && answer > 0; i++)
        if (reads(&graph->ops[i], tensor))
            answer = takes_view(chip, graph, i, tensor, view, budget);
    return answer;
}

int rk_supports_reshape(const struct rk_chip *chip, const struct mica_graph *graph, uint32_t op_index, char *reason,
                        size_t size)
{
    const struct mica_op *op = &graph->ops[op_index];
    int error = rk_check_tensors(graph, op, 0, 1, reason, size);
    if (error)
        return error;
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *out = mica_op_output(graph, op, 0);
    if (in->bytes != out->bytes || in->type != out->type)
        return rk_refuse(reason, size, "input and output differ in size or type");
    struct rk_shape from = rk_shape_of(in), to = rk_shape_of(out);
    uint32_t budget = MAX_CHAIN;
    int unseen = nobody_looks(chip, graph, op->outputs[0], from, &budget);
    if (unseen < 0)
        rk_refuse(reason, size, "memory ran out while what reads it was looked at");
    if (unseen)
        return unseen < 0 ? unseen : 0;
    /* What reads a value in another form than its shape's must not meet an alias: see takes_view(). */
    if (from.c == to.c)
        return 0;
    return rk_refuse(reason, size,
                     "it makes %u channels of %u, and the NPU has no unit that brings values into another layout", to.c,
                     from.c);
}

int rk_lower_reshape(struct rk_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    struct rk_shape shape = rk_shape_of(&plan->graph->tensors[op->outputs[0]]);
    struct rk_cube in;
    int error = rk_plan_value(plan, (uint32_t)op->inputs[0], &in);
    bool same_channels = !error && in.shape.c == shape.c;
    if (!error && same_channels && in.shape.w != shape.w && in.line != (uint64_t)in.shape.w * plan->chip->atom) {
        struct rk_cube dense;
        error = rk_plan_cube(plan, in.shape, &dense);
        if (!error)
            error = rk_lower_copy(plan, op_index, in, dense);
        in = dense;
    }
    if (error)
        return error;
    if (same_channels) {
        uint64_t line = in.shape.w == shape.w ? in.line : (uint64_t)shape.w * plan->chip->atom;
        in.shape = shape;
        in.line = line;
    }
    plan->values[op->outputs[0]].cube = in;
    return 0;
}
