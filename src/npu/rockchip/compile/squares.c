/* SPDX-License-Identifier: MIT */
/*
 * SQUARED_DIFFERENCE. How much a is above b, and how much b is above a, each cut off at 0 and in steps that 8 bits can
 * count: one of them is 0, and the greater is the distance, whose square a table knows. Where such steps are too coarse
 * for a result within 1, a second window counts on from where the first one ends, with steps of half the size.
 *
 * What the unit computes of every pair of codes is known, and so is TFLite's result (cpu/table.h). A step of the
 * distance is good if all pairs that fall onto it have results at most 2 apart: the one between them is within 1 of
 * all. Every pair is looked at, so that "within 1" is certain whatever the scales are.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/table.h"
#include "npu/rockchip/compile/dpu_task.h"
#include "npu/rockchip/compile/move.h"
#include "npu/rockchip/compile/operand.h"
#include "npu/rockchip/compile/refuse.h"
#include "util/checked.h"

#define MAX_WINDOWS 2u
#define STEPS 254.6 /* of a window: the last one begins half a step before it */

/* Window i counts distances from i * lead steps of the first operand on, in steps of `step`. */
struct squares {
    struct rk_elementwise above, below; /* a - b, b - a; of the first window */
    uint32_t windows;
    int32_t lead;
    double step;
    int8_t tables[MAX_WINDOWS][256];
};

static void describe(const struct mica_graph *graph, uint32_t op_index, struct squares *squares)
{
    const struct mica_op *op = &graph->ops[op_index];
    const struct mica_tensor *a = mica_op_input(graph, op, 0), *b = mica_op_input(graph, op, 1);
    *squares = (struct squares){.above = {
                                    .op = op_index,
                                    .kind = RK_ELEMENTWISE_SUB,
                                    .scale_a = (double)a->quant.scale[0],
                                    .scale_b = (double)b->quant.scale[0],
                                    .zero_a = rk_stored_zero(a),
                                    .zero_b = rk_stored_zero(b),
                                    .zero_out = INT8_MIN,
                                    .min = INT8_MIN,
                                    .max = INT8_MAX,
                                }};
    squares->below = squares->above;
    squares->below.scale_a = squares->above.scale_b;
    squares->below.scale_b = squares->above.scale_a;
    squares->below.zero_a = squares->above.zero_b;
    squares->below.zero_b = squares->above.zero_a;
}

/* The two differences of a window. */
struct pair {
    struct rk_elementwise above, below;
};

static struct pair window_of(const struct squares *squares, uint32_t window)
{
    struct pair pair = {squares->above, squares->below};
    int32_t lead = (int32_t)window * squares->lead;
    pair.above.scale_out = pair.below.scale_out = squares->step;
    pair.above.zero_a += lead;
    pair.below.zero_b -= lead;
    return pair;
}

/* ---- proof ------------------------------------------------------------------------- */

/* The results that fall onto one step of a distance. */
struct cell {
    int32_t low, high;
};

/* The window that tells a pair's distance, and its step there: the last that counts anything, or the first. */
static uint32_t place_of(const struct squares *squares, const struct pair *pairs, int32_t a, int32_t b, int32_t *step)
{
    uint32_t window = squares->windows;
    do {
        const struct pair *pair = &pairs[--window];
        int32_t above = rk_elementwise_sum(&pair->above, a, b), below = rk_elementwise_sum(&pair->below, b, a);
        *step = (above > below ? above : below) - INT8_MIN;
    } while (*step == 0 && window > 0);
    return window;
}

/* The value between the two; where nothing falls, the one before. False: none is within 1 of both. */
static bool fill_table(const struct cell cells[256], int32_t before, int8_t table[256])
{
    for (uint32_t i = 0; i < 256; i++) {
        if (cells[i].high >= cells[i].low) {
            int32_t middle = (cells[i].low + cells[i].high + 1) >> 1;
            if (cells[i].high - cells[i].low > 2)
                return false;
            before = middle > before ? middle : before;
            if (before - cells[i].low > 1) /* the maximum of the windows has to be the last one's */
                return false;
        }
        table[i] = (int8_t)before;
    }
    return true;
}

/* Sets the tables; false: some result would be more than 1 off. */
static bool prove(struct squares *squares, const uint8_t *results)
{
    struct pair pairs[MAX_WINDOWS];
    struct cell cells[MAX_WINDOWS][256];
    for (uint32_t window = 0; window < squares->windows; window++) {
        pairs[window] = window_of(squares, window);
        if (rk_elementwise_problem(&pairs[window].above) || rk_elementwise_problem(&pairs[window].below))
            return false;
        for (uint32_t i = 0; i < 256; i++)
            cells[window][i] = (struct cell){INT8_MAX, INT8_MIN};
    }
    for (uint32_t i = 0; i < MICA_CPU_PAIRS; i++) {
        int32_t step, result = (int8_t)results[i];
        uint32_t window = place_of(squares, pairs, (int8_t)(uint8_t)(i >> 8), (int8_t)(uint8_t)i, &step);
        struct cell *cell = &cells[window][step];
        cell->low = result < cell->low ? result : cell->low;
        cell->high = result > cell->high ? result : cell->high;
    }
    int32_t before = INT8_MIN;
    for (uint32_t window = 0; window < squares->windows; window++) {
        if (!fill_table(cells[window], before, squares->tables[window]))
            return false;
        before = squares->tables[window][255];
    }
    squares->tables[MAX_WINDOWS - 1][0] = squares->windows > 1 ? INT8_MIN : squares->tables[MAX_WINDOWS - 1][0];
    return true;
}

/* The largest distance whose square the output can say, or that there is. */
static double reach_of(const struct mica_graph *graph, const struct mica_op *op, const struct squares *squares)
{
    const struct mica_tensor *out = mica_op_output(graph, op, 0);
    const struct rk_elementwise *e = &squares->above;
    double most = sqrt((double)(INT8_MAX - rk_stored_zero(out)) * (double)out->quant.scale[0]);
    double up = (INT8_MAX - e->zero_a) * e->scale_a - (INT8_MIN - e->zero_b) * e->scale_b;
    double down = (INT8_MAX - e->zero_b) * e->scale_b - (INT8_MIN - e->zero_a) * e->scale_a;
    return fmin(most, fmax(up, down));
}

/* One window in steps of the operands, one, two. */
static bool find(struct squares *squares, double reach, const uint8_t *results)
{
    const struct rk_elementwise *e = &squares->above;
    squares->windows = 1;
    squares->step = e->scale_a;
    if (e->scale_a == e->scale_b && prove(squares, results))
        return true;
    squares->step = reach / STEPS;
    if (!(squares->step > 0))
        return false;
    if (prove(squares, results))
        return true;
    double lead = round(reach / 2 / e->scale_a);
    squares->windows = 2;
    squares->lead = lead < 1 ? 1 : lead > UINT8_MAX ? UINT8_MAX : (int32_t)lead;
    squares->step = fmax(squares->lead * e->scale_a, reach - squares->lead * e->scale_a) / STEPS;
    return prove(squares, results);
}

/* ---- the operation ----------------------------------------------------------------- */

/* 0, -ENOMEM or -ENOTSUP. */
static int make(const struct mica_graph *graph, uint32_t op_index, struct squares *squares)
{
    const struct mica_op *op = &graph->ops[op_index];
    uint8_t *results = malloc(MICA_CPU_PAIRS);
    if (!results)
        return -ENOMEM;
    describe(graph, op_index, squares);
    int error = mica_cpu_squares(graph, op, results);
    if (!error && !find(squares, reach_of(graph, op, squares), results))
        error = -ENOTSUP;
    free(results);
    return error;
}

int rk_supports_squares(const struct rk_chip *chip, const struct mica_graph *graph, uint32_t op_index, char *reason,
                        size_t size)
{
    struct squares squares;
    int error = rk_check_operands(chip, graph, op_index, reason, size);
    if (error)
        return error;
    if (mica_op_output(graph, &graph->ops[op_index], 0)->type != MICA_TYPE_INT8)
        return rk_refuse(reason, size, "TensorFlow Lite defines it for int8 only");
    error = make(graph, op_index, &squares);
    if (error == -ENOTSUP)
        return rk_refuse(reason, size,
                         "the scales are so far apart that 8-bit differences don't give squares within 1");
    if (error)
        rk_refuse(reason, size, "memory ran out");
    return error;
}

/* The squares of the distances that a window counts. */
static int lower_window(struct rk_plan *plan, const struct squares *squares, uint32_t window, struct rk_cube a,
                        struct rk_cube b, struct rk_cube out)
{
    struct pair pair = window_of(squares, window);
    struct rk_cube distance;
    pair.above.a = pair.below.b = a;
    pair.above.b = pair.below.a = b;
    int error = rk_plan_cube(plan, out.shape, &pair.above.out);
    if (!error)
        error = rk_plan_cube(plan, out.shape, &pair.below.out);
    if (!error)
        error = rk_plan_cube(plan, out.shape, &distance);
    if (!error)
        error = rk_lower_elementwise(plan, &pair.above);
    if (!error)
        error = rk_lower_elementwise(plan, &pair.below);
    if (!error)
        error = rk_lower_combine(plan, pair.above.op, RK_ELEMENTWISE_MAX, pair.above.out, pair.below.out, distance, 0);
    return error ? error : rk_lower_table(plan, pair.above.op, distance, out, squares->tables[window]);
}

int rk_lower_squares(struct rk_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    struct squares squares;
    struct rk_cube a, b, out, parts[MAX_WINDOWS];
    int error = make(plan->graph, op_index, &squares);
    if (error)
        return error == -ENOMEM ? mica_fail_nomem(plan->log)
                                : mica_fail(plan->log, error, "%s can't run with these scales", op->type);
    error = rk_lower_operand(plan, op_index, 0, &a);
    if (!error)
        error = rk_lower_operand(plan, op_index, 1, &b);
    if (!error)
        error = rk_plan_result(plan, (uint32_t)op->outputs[0], &out);
    if (error || squares.windows == 1)
        return error ? error : lower_window(plan, &squares, 0, a, b, out);
    for (uint32_t window = 0; !error && window < squares.windows; window++) {
        error = rk_plan_cube(plan, out.shape, &parts[window]);
        if (!error)
            error = lower_window(plan, &squares, window, a, b, parts[window]);
    }
    return error ? error : rk_lower_combine(plan, op_index, RK_ELEMENTWISE_MAX, parts[0], parts[1], out, 0);
}
