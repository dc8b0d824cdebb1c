/* SPDX-License-Identifier: MIT */
/*
 * Reshapes cost nothing where they keep the channels, where nobody looks at the new shape, or where the host writes
 * their input and can as well write their output (views.c). Others go through convolutions (relayout.c).
 */
#include <errno.h>

#include "npu/rockchip/compile/dpu_task.h"
#include "npu/rockchip/compile/refuse.h"
#include "npu/rockchip/compile/relayout.h"
#include "npu/rockchip/compile/views.h"
#include "util/checked.h"

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
    switch (rk_reshape_way(chip, graph, op_index)) {
    case RK_RESHAPE_REFUSED:
        return rk_refuse(reason, size, "it makes %u channels of %u, which is another memory layout: %s", to.c, from.c,
                         rk_relayout_problem(chip, from, to.c));
    case RK_RESHAPE_NOMEM:
        rk_refuse(reason, size, "memory ran out while what reads it was looked at");
        return -ENOMEM;
    default:
        return 0;
    }
}

/* The same pixels, in order. */
static int lower_pixels(struct rk_plan *plan, uint32_t op_index, struct rk_cube in, struct rk_shape shape,
                        struct rk_cube *out)
{
    int error = 0;
    *out = in;
    if (in.shape.w != shape.w && in.line != (uint64_t)in.shape.w * plan->chip->atom) {
        error = rk_plan_cube(plan, in.shape, out);
        if (!error)
            error = rk_lower_copy(plan, op_index, in, *out);
    }
    out->line = in.shape.w == shape.w ? out->line : (uint64_t)shape.w * plan->chip->atom;
    out->shape = shape;
    return error;
}

int rk_lower_reshape(struct rk_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    struct rk_value *from = &plan->values[op->inputs[0]], *to = &plan->values[op->outputs[0]];
    struct rk_shape shape = rk_shape_of(&plan->graph->tensors[op->outputs[0]]);
    struct rk_cube in;
    int error = rk_plan_value(plan, (uint32_t)op->inputs[0], &in);
    if (error)
        return error;
    if (!from->piece_count && in.shape.c == shape.c)
        return lower_pixels(plan, op_index, in, shape, &to->cube);
    /* What comes in another form than its tensor's has been found to be unseen here too, in that form. */
    bool is_view = from->piece_count || in.shape.c != rk_shape_of(mica_op_input(plan->graph, op, 0)).c;
    enum rk_reshape_way way = is_view ? RK_RESHAPE_UNSEEN : rk_reshape_way(plan->chip, plan->graph, op_index);
    if (way == RK_RESHAPE_UNSEEN) {
        *to = *from;
        return 0;
    }
    if (way != RK_RESHAPE_RELAYOUT)
        return way == RK_RESHAPE_NOMEM ? mica_fail_nomem(plan->log)
                                       : mica_fail(plan->log, -ENOTSUP, "%s can't be done in place", op->type);
    struct rk_cube out;
    error = rk_plan_result(plan, (uint32_t)op->outputs[0], &out);
    return error ? error : rk_lower_relayout(plan, op_index, in, out);
}
