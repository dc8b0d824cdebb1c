/* SPDX-License-Identifier: MIT */
/*
 * REDUCE_MAX and REDUCE_MIN over rows and columns. Rows: the upper half of the image against its lower half, until one
 * is left. Columns: the image against itself, shifted by a pixel, then by two and so on, until each row's first pixel
 * has met all others of its row; where one row is left, its pixels are rows of one. Exact.
 */
#include <errno.h>

#include "npu/rockchip/compile/dpu_task.h"
#include "npu/rockchip/compile/mean.h"
#include "npu/rockchip/compile/move.h"
#include "npu/rockchip/compile/refuse.h"
#include "npu/rockchip/compile/select.h"

struct extreme {
    uint32_t op;
    enum rk_elementwise_kind kind;
    struct rk_shape in, out;
    struct rk_sides sides;
};

static const char *describe(const struct mica_graph *graph, uint32_t op_index, struct extreme *extreme)
{
    const struct mica_op *op = &graph->ops[op_index];
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *out = mica_op_output(graph, op, 0);
    bool max = op->kind == MICA_OP_REDUCE_MAX;
    *extreme =
        (struct extreme){.op = op_index, .kind = max ? RK_ELEMENTWISE_MAX : RK_ELEMENTWISE_MIN, .in = rk_shape_of(in)};
    const char *problem = rk_sides_of(in, op->axes, &extreme->sides);
    struct rk_shape shape = extreme->in;
    extreme->out = (struct rk_shape){extreme->sides.columns ? 1 : shape.w, extreme->sides.rows ? 1 : shape.h, shape.c};
    if (!problem && extreme->sides.channels)
        problem = "it reduces channels, which the NPU can't compare with each other";
    if (!problem && rk_shape_of(out).c != shape.c)
        problem = "the output has lost its channel dimension";
    return !problem && !rk_same_quantization(in, out) ? "input and output are quantized differently" : problem;
}

/* Takes each row's first pixel. */
static struct rk_ones taking_of(const struct extreme *extreme, struct rk_cube in, struct rk_cube out)
{
    in.shape.w = out.shape.w = 1;
    return rk_ones_identity(extreme->op, in, out);
}

/* Rows of several columns stay, of which one is wanted. */
static bool takes(const struct extreme *extreme)
{
    return extreme->sides.columns && !extreme->sides.rows && extreme->in.h > 1 && extreme->in.w > 1;
}

int rk_supports_extreme(const struct rk_chip *chip, const struct mica_graph *graph, uint32_t op_index, char *reason,
                        size_t size)
{
    struct extreme extreme;
    if (rk_check_tensors(graph, &graph->ops[op_index], 0, 1, reason, size))
        return -ENOTSUP;
    const char *problem = describe(graph, op_index, &extreme);
    if (!problem && takes(&extreme)) {
        struct rk_ones ones =
            taking_of(&extreme, (struct rk_cube){.shape = extreme.in}, (struct rk_cube){.shape = extreme.out});
        problem = rk_ones_problem(chip, &ones);
    }
    return problem ? rk_refuse(reason, size, "%s", problem) : 0;
}

/* `image` becomes one row: what all of its rows make. */
static int fold_rows(struct rk_plan *plan, const struct extreme *extreme, struct rk_cube *image)
{
    int error = 0;
    while (!error && image->shape.h > 1) {
        struct rk_cube in = *image;
        uint32_t half = in.shape.h - in.shape.h / 2;
        error = rk_plan_cube(plan, (struct rk_shape){in.shape.w, half, in.shape.c}, image);
        if (!error)
            error = rk_lower_combine(plan, extreme->op, extreme->kind, rk_cube_rows(plan, in, 0, half),
                                     rk_cube_rows(plan, in, in.shape.h - half, half), *image, 0);
    }
    return error;
}

/* Each row's first pixel becomes what all of the row makes; the last rows' other pixels hold anything. */
static int fold_columns(struct rk_plan *plan, const struct extreme *extreme, struct rk_cube *image)
{
    uint32_t width = image->shape.w, shift;
    uint64_t pixels = (uint64_t)width * image->shape.h;
    int error = 0;
    for (uint32_t span = 1; !error && span < width; span += shift) {
        struct rk_cube next;
        shift = span < width - span ? span : width - span;
        pixels -= shift;
        error = rk_plan_cube(plan, image->shape, &next);
        if (!error)
            error = rk_lower_combine(plan, extreme->op, extreme->kind, rk_cube_run(plan, *image, 0, pixels),
                                     rk_cube_run(plan, *image, shift, pixels), rk_cube_run(plan, next, 0, pixels), 0);
        *image = next;
    }
    return error;
}

static int finish(struct rk_plan *plan, const struct extreme *extreme, struct rk_cube image, struct rk_cube out)
{
    if (!takes(extreme))
        return rk_lower_copy(plan, extreme->op, image, out);
    struct rk_ones ones = taking_of(extreme, image, out);
    return rk_lower_ones(plan, &ones);
}

int rk_lower_extreme(struct rk_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    struct extreme extreme;
    struct rk_cube image, out;
    const char *problem = describe(plan->graph, op_index, &extreme);
    if (problem)
        return mica_fail(plan->log, -ENOTSUP, "%s can't run: %s", op->type, problem);
    int error = rk_plan_value(plan, (uint32_t)op->inputs[0], &image);
    if (!error)
        error = rk_plan_result(plan, (uint32_t)op->outputs[0], &out);
    if (error)
        return error;
    out = rk_cube_reshaped(plan, out, extreme.out.w, extreme.out.h);
    if (extreme.sides.rows)
        error = fold_rows(plan, &extreme, &image);
    if (!error && extreme.sides.columns && image.shape.h == 1) {
        image = rk_cube_reshaped(plan, image, 1, image.shape.w);
        error = fold_rows(plan, &extreme, &image);
    } else if (!error && extreme.sides.columns) {
        error = fold_columns(plan, &extreme, &image);
    }
    return error ? error : finish(plan, &extreme, image, out);
}
