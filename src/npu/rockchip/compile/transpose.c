/* SPDX-License-Identifier: MIT */
/*
 * TRANSPOSE of an image's sides. Two steps change neighbours: rows and columns, a convolution for each column, which
 * becomes a row; columns and channels, all of a row's pixels to one pixel whose channels are ordered anew, and that to
 * pixels again. Any order is at most three of them. Dimensions of 1 don't count. Exact.
 */
#include <errno.h>

#include "npu/rockchip/compile/move.h"
#include "npu/rockchip/compile/refuse.h"
#include "npu/rockchip/compile/relayout.h"
#include "npu/rockchip/compile/select.h"
#include "npu/rockchip/compile/views.h"

#define MAX_COLUMNS 32u        /* a task each */
#define MAX_WEIGHTS (1u << 22) /* of an exchange: more than that takes longer to fetch than the host needs */
#define MAX_SWAPS 3u

struct transposition {
    uint32_t op;
    struct rk_shape in;
    uint32_t count, channels;   /* of exchanges; of the output */
    bool of_columns[MAX_SWAPS]; /* columns with channels; else rows with columns */
};

/* Rows, columns or channels: which side of an image a dimension is. */
static uint32_t side_of(uint32_t dimension, uint32_t rank)
{
    return dimension + 1 == rank ? 2 : dimension + 2 == rank ? 1 : 0;
}

/* The sides in the output's order; false: rows of several dimensions don't stay together. */
static bool find_order(const struct mica_tensor *in, const int32_t *order, uint32_t sides[3])
{
    uint32_t seen = 0, count = 0, last_row = 0;
    bool in_rows = false;
    for (uint32_t i = 0; i < in->rank; i++) {
        uint32_t dimension = (uint32_t)order[i], side = side_of(dimension, in->rank);
        if (in->dims[dimension] == 1)
            continue;
        if (seen >> side & 1) {
            if (!in_rows || side != 0 || dimension < last_row)
                return false;
        } else {
            sides[count++] = side;
            seen |= 1u << side;
        }
        in_rows = side == 0;
        last_row = dimension;
    }
    /* Sides of 1 stand before the others. */
    uint32_t missing[3], gone = 0;
    for (uint32_t side = 0; side < 3; side++)
        if (!(seen >> side & 1))
            missing[gone++] = side;
    for (uint32_t i = count; i-- > 0;)
        sides[i + gone] = sides[i];
    for (uint32_t i = 0; i < gone; i++)
        sides[i] = missing[i];
    return true;
}

static const char *describe(const struct mica_graph *graph, uint32_t op_index, struct transposition *t)
{
    const struct mica_op *op = &graph->ops[op_index];
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *out = mica_op_output(graph, op, 0);
    uint32_t sides[3];
    *t = (struct transposition){.op = op_index, .in = rk_shape_of(in), .channels = rk_shape_of(out).c};
    if (!rk_same_quantization(in, out) || in->type != out->type)
        return "input and output are quantized differently";
    if (!find_order(in, mica_op_input(graph, op, 1)->data, sides))
        return "it takes dimensions before the columns apart";
    /* What is out of order is brought there by exchanges of neighbours, which give the order when undone backwards. */
    while (sides[0] > sides[1] || sides[1] > sides[2]) {
        bool columns = sides[1] > sides[2];
        uint32_t *pair = sides + (columns ? 1 : 0), first = pair[0];
        pair[0] = pair[1];
        pair[1] = first;
        t->of_columns[t->count++] = columns;
    }
    for (uint32_t i = 0; i < t->count / 2; i++) {
        bool other = t->of_columns[i];
        t->of_columns[i] = t->of_columns[t->count - 1 - i];
        t->of_columns[t->count - 1 - i] = other;
    }
    return NULL;
}

/* ---- columns and channels ---------------------------------------------------------- */

/* Each row's pixels as one, channel after channel. */
static struct rk_weighted joining_of(uint32_t op, struct rk_cube in)
{
    struct rk_cube out = {.shape = {1, in.shape.h, in.shape.w * in.shape.c}};
    struct rk_weighted weighted = rk_weighted_plain(op, in, out);
    weighted.kernel_w = in.shape.w;
    return weighted;
}

static const char *channels_problem(const struct rk_chip *chip, struct rk_shape in)
{
    uint64_t joint = (uint64_t)in.w * in.c;
    struct rk_weighted joining = joining_of(0, (struct rk_cube){.shape = in});
    if (in.w > RK_MAX_KERNEL || joint * joint > MAX_WEIGHTS)
        return "columns and channels can change places where there are up to 31 columns and 2048 values a row";
    const char *problem = rk_matrix_problem(chip, &joining);
    return problem ? problem : rk_relayout_problem(chip, joining.out.shape, in.w);
}

static int swap_channels(struct rk_plan *plan, uint32_t op, struct rk_cube in, struct rk_cube out)
{
    struct rk_weighted weighted = joining_of(op, in);
    struct rk_matrix matrix;
    bool last = in.shape.c == 1; /* the joint pixels are the result */
    int error = last ? 0 : rk_plan_cube(plan, weighted.out.shape, &weighted.out);
    if (last)
        weighted.out = out;
    if (!error)
        error = rk_matrix_new(plan, &weighted, &matrix);
    if (error)
        return error;
    for (uint32_t x = 0; x < in.shape.w; x++)
        for (uint32_t c = 0; c < in.shape.c; c++)
            rk_matrix_set(&matrix, c * in.shape.w + x, 0, x, c, 1);
    error = rk_lower_matrix(plan, &matrix, 1);
    return error || last ? error : rk_lower_relayout(plan, op, weighted.out, out);
}

/* ---- rows and columns -------------------------------------------------------------- */

/* Column `x` as a row. */
static struct rk_ones column_of(const struct rk_chip *chip, uint32_t op, struct rk_cube in, struct rk_cube out,
                                uint32_t x)
{
    in.at.offset += (uint64_t)x * chip->atom;
    out.at.offset += (uint64_t)x * in.shape.h * chip->atom;
    in.shape.w = out.shape.w = 1;
    out.shape.h = in.shape.h;
    out.line = chip->atom;
    return rk_ones_identity(op, in, out);
}

static const char *rows_problem(const struct rk_chip *chip, struct rk_shape in)
{
    struct rk_ones ones = column_of(chip, 0, (struct rk_cube){.shape = in}, (struct rk_cube){.shape = in}, 0);
    if (in.w > MAX_COLUMNS)
        return "more than 32 columns would become rows, each of which is a task of the NPU";
    return rk_ones_problem(chip, &ones);
}

static int swap_rows(struct rk_plan *plan, uint32_t op, struct rk_cube in, struct rk_cube out)
{
    int error = 0;
    for (uint32_t x = 0; !error && x < in.shape.w; x++) {
        struct rk_ones ones = column_of(plan->chip, op, in, out, x);
        error = rk_lower_ones(plan, &ones);
    }
    return error;
}

/* ---- both -------------------------------------------------------------------------- */

static struct rk_shape swapped(struct rk_shape shape, bool of_columns)
{
    return of_columns ? (struct rk_shape){shape.c, shape.h, shape.w} : (struct rk_shape){shape.h, shape.w, shape.c};
}

static const char *problem_of(const struct rk_chip *chip, const struct transposition *t)
{
    struct rk_shape shape = t->in;
    for (uint32_t i = 0; i < t->count; i++) {
        const char *problem = t->of_columns[i] ? channels_problem(chip, shape) : rows_problem(chip, shape);
        if (problem)
            return problem;
        shape = swapped(shape, t->of_columns[i]);
    }
    return shape.c == t->channels ? NULL : rk_relayout_problem(chip, shape, t->channels);
}

int rk_supports_transpose(const struct rk_chip *chip, const struct mica_graph *graph, uint32_t op_index, char *reason,
                          size_t size)
{
    struct transposition t;
    if (rk_is_reshape(graph, &graph->ops[op_index]))
        return rk_supports_reshape(chip, graph, op_index, reason, size);
    if (rk_check_tensors(graph, &graph->ops[op_index], 0, 1, reason, size))
        return -ENOTSUP;
    const char *problem = describe(graph, op_index, &t);
    if (!problem)
        problem = problem_of(chip, &t);
    return problem ? rk_refuse(reason, size, "%s", problem) : 0;
}

static int lower(struct rk_plan *plan, const struct transposition *t, struct rk_cube in, struct rk_cube out)
{
    struct rk_shape shape = t->in;
    int error = 0;
    for (uint32_t i = 0; !error && i < t->count; i++) {
        shape = swapped(shape, t->of_columns[i]);
        struct rk_cube next = rk_cube_reshaped(plan, out, shape.w, shape.h);
        if (i + 1 < t->count || shape.c != t->channels)
            error = rk_plan_cube(plan, shape, &next);
        if (!error)
            error = t->of_columns[i] ? swap_channels(plan, t->op, in, next) : swap_rows(plan, t->op, in, next);
        in = next;
    }
    return error || shape.c == t->channels ? error : rk_lower_relayout(plan, t->op, in, out);
}

int rk_lower_transpose(struct rk_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    struct transposition t;
    struct rk_cube in, out;
    if (rk_is_reshape(plan->graph, op))
        return rk_lower_reshape(plan, op_index);
    const char *problem = describe(plan->graph, op_index, &t);
    if (problem)
        return mica_fail(plan->log, -ENOTSUP, "%s can't run: %s", op->type, problem);
    int error = rk_plan_value(plan, (uint32_t)op->inputs[0], &in);
    if (!error)
        error = rk_plan_result(plan, (uint32_t)op->outputs[0], &out);
    return error ? error : lower(plan, &t, in, out);
}
