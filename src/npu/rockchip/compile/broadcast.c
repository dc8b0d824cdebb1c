/* SPDX-License-Identifier: MIT */
/*
 * Repetition by convolutions with weights of 1: an image of one row with zero-point padding above and below, under a
 * window so high that each place of it sees the row, gives that row as often as there are places. The pixels of what
 * comes out follow each other in memory, so that it is the single row of the next step. Whether the element-wise
 * unit's own per-channel operands work is unproven.
 */
#include "npu/rockchip/compile/broadcast.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "npu/rockchip/compile/select.h"
#include "util/checked.h"

#define MAX_REPEAT (RK_MAX_PAD + 1)
#define MAX_STEPS 4

struct steps {
    uint32_t count, repeats[MAX_STEPS];
};

/* As few steps as possible, as even as possible: together at least `times` repetitions. False: too many. */
static bool make_steps(uint32_t times, struct steps *steps)
{
    uint64_t reach = 1;
    steps->count = 0;
    while (reach < times && steps->count < MAX_STEPS) {
        reach *= MAX_REPEAT;
        steps->count++;
    }
    if (reach < times)
        return false;
    uint64_t left = times;
    for (uint32_t i = 0; i < steps->count; i++) {
        uint32_t repeat = 1, after = steps->count - i;
        while (pow(repeat, after) < (double)left - 0.5)
            repeat++;
        steps->repeats[i] = repeat;
        left = (left + repeat - 1) / repeat;
    }
    return true;
}

static struct rk_ones ones_of(uint32_t op, struct rk_cube in, struct rk_cube out, int32_t zero)
{
    struct rk_ones ones = rk_ones_identity(op, in, out);
    ones.in_zero = ones.out_zero = zero;
    return ones;
}

/* out.h rows, each of which is the single one of `in`. */
static struct rk_ones rows_of(uint32_t op, struct rk_cube in, struct rk_cube out, int32_t zero)
{
    struct rk_ones ones = ones_of(op, in, out, zero);
    ones.kernel_h = out.shape.h;
    ones.pad_top = (int32_t)out.shape.h - 1;
    return ones;
}

static struct rk_ones columns_of(uint32_t op, struct rk_cube in, struct rk_cube out, int32_t zero)
{
    struct rk_ones ones = ones_of(op, in, out, zero);
    ones.kernel_w = out.shape.w;
    ones.pad_left = (int32_t)out.shape.w - 1;
    return ones;
}

/* What has to be repeated, and how often: pixels in a row. */
struct task {
    uint32_t unit, times;
    bool columns; /* instead: every row's pixel, to as many columns */
};

static struct task task_of(struct rk_shape from, struct rk_shape to)
{
    if (from.h == to.h && from.w != to.w && from.h != 1)
        return (struct task){1, to.w, true};
    if (from.w == to.w)
        return (struct task){from.w, from.h == to.h ? 1 : to.h, false};
    return (struct task){1, from.h == to.h ? to.w : to.w * to.h, false};
}

static struct rk_cube shaped(struct rk_cube cube, uint32_t w, uint32_t h)
{
    cube.shape.w = w;
    cube.shape.h = h;
    return cube;
}

static struct rk_select channels_of(uint32_t op, struct rk_cube in, struct rk_cube out, int32_t zero)
{
    return (struct rk_select){.op = op, .in = in, .out = out, .in_zero = zero, .out_zero = zero};
}

static const char *step_problems(const struct rk_chip *chip, const struct task *task, uint32_t channels)
{
    struct steps steps;
    struct rk_cube in = {.shape = {task->unit, 1, channels}};
    if (!make_steps(task->times, &steps))
        return "it has to be repeated too often";
    for (uint32_t i = 0; i < steps.count; i++) {
        struct rk_ones ones = rows_of(0, in, shaped(in, in.shape.w, steps.repeats[i]), 0);
        const char *problem = rk_ones_problem(chip, &ones);
        if (problem)
            return problem;
        in.shape.w *= steps.repeats[i];
    }
    return NULL;
}

const char *rk_broadcast_problem(const struct rk_chip *chip, struct rk_shape from, struct rk_shape to)
{
    struct task task = task_of(from, to);
    struct rk_cube in = {.shape = from};
    const char *problem = NULL;
    if (!task.columns) {
        problem = step_problems(chip, &task, from.c);
    } else if (to.w > MAX_REPEAT) {
        problem = "the pixels of many rows can be repeated to 16 columns at most";
    } else {
        struct rk_ones ones = columns_of(0, in, shaped(in, to.w, to.h), 0);
        problem = rk_ones_problem(chip, &ones);
    }
    if (problem || from.c == to.c)
        return problem;
    struct rk_select select = channels_of(0, shaped(in, to.w, to.h), (struct rk_cube){.shape = to}, 0);
    return rk_select_problem(chip, &select);
}

/* `cube` is replaced by its repetition, a row of at least unit * times pixels. */
static int repeat(struct rk_plan *plan, uint32_t op, const struct task *task, int32_t zero, struct rk_cube *cube)
{
    struct steps steps;
    if (!make_steps(task->times, &steps))
        return mica_fail(plan->log, -ENOTSUP, "an operand has to be repeated %u times, too often", task->times);
    *cube = shaped(*cube, task->unit, 1);
    cube->line = (uint64_t)task->unit * plan->chip->atom;
    int error = 0;
    for (uint32_t i = 0; !error && i < steps.count; i++) {
        struct rk_cube out;
        struct rk_shape shape = {cube->shape.w, steps.repeats[i], cube->shape.c};
        error = rk_plan_cube(plan, shape, &out);
        if (error)
            break;
        struct rk_ones ones = rows_of(op, *cube, out, zero);
        error = rk_lower_ones(plan, &ones);
        *cube = shaped(out, shape.w * shape.h, 1);
        cube->line = out.line * shape.h;
    }
    return error;
}

static int spread_columns(struct rk_plan *plan, uint32_t op, int32_t zero, uint32_t columns, struct rk_cube *cube)
{
    struct rk_cube out;
    int error = rk_plan_cube(plan, (struct rk_shape){columns, cube->shape.h, cube->shape.c}, &out);
    if (error)
        return error;
    struct rk_ones ones = columns_of(op, *cube, out, zero);
    *cube = out;
    return rk_lower_ones(plan, &ones);
}

/* One channel to all. */
static int spread_channels(struct rk_plan *plan, uint32_t op, int32_t zero, uint32_t channels, struct rk_cube *cube)
{
    uint32_t *source = mica_new_array(channels, sizeof(*source));
    int32_t *zeros = mica_new_array(channels, sizeof(*zeros));
    double *factor = mica_new_array(channels, sizeof(*factor));
    struct rk_cube out;
    int error = source && zeros && factor ? 0 : mica_fail_nomem(plan->log);
    if (!error)
        error = rk_plan_cube(plan, (struct rk_shape){cube->shape.w, cube->shape.h, channels}, &out);
    if (!error) {
        struct rk_select select = channels_of(op, *cube, out, zero);
        for (uint32_t c = 0; c < channels; c++) {
            zeros[c] = zero;
            factor[c] = 1;
        }
        select.source = source;
        select.zero = zeros;
        select.factor = factor;
        error = rk_lower_select(plan, &select);
        *cube = out;
    }
    free(source);
    free(zeros);
    free(factor);
    return error;
}

int rk_lower_broadcast(struct rk_plan *plan, uint32_t op, struct rk_cube in, int32_t zero, struct rk_shape to,
                       struct rk_cube *out)
{
    struct task task = task_of(in.shape, to);
    *out = in;
    int error = task.columns     ? spread_columns(plan, op, zero, to.w, out)
                : task.times > 1 ? repeat(plan, op, &task, zero, out)
                                 : 0;
    *out = shaped(*out, to.w, to.h);
    out->line = (uint64_t)to.w * plan->chip->atom;
    if (!error && out->shape.c != to.c)
        error = spread_channels(plan, op, zero, to.c, out);
    return error;
}
