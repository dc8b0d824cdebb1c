/* SPDX-License-Identifier: MIT */
/*
 * Two cubes to one, and one to another quantization, by the DPU alone (specification, section 9).
 *
 * How far from the exact result, in steps of the output and before the only rounding that matters:
 * ADD, SUB: the input of the larger scale is multiplied by 2^14 exactly, the other by k / 2^s with a relative error
 * of at most 2^-15 and a rounding of 2^-15 steps of the larger input; the output's factor is off by at most 2^-15 of
 * a value that counts only up to 255. rk_elementwise_problem() computes the sum with the very numbers that are used
 * and takes what is below half a step. The reference is itself within a quarter of a step of the exact value before
 * it rounds; two values less than one apart round to integers at most 1 apart.
 * MUL: the product is exact, its factor off by 2^-15: below 0.01. MAX, MIN: exact, factors being powers of 2.
 */
#include <errno.h>
#include <math.h>

#include "npu/rockchip/compile/dpu_task.h"

/* What the vendor multiplies the side of the larger scale by: values keep 14 bits below the point. */
#define UNIT 0x4000
#define LARGEST_INPUT 255.0  /* |value - zero point| */
#define LARGEST_OUTPUT 256.0 /* what lies further from the zero point saturates anyway */
#define TOLERANCE 0.5

static bool is_sum(enum rk_elementwise_kind kind)
{
    return kind == RK_ELEMENTWISE_ADD || kind == RK_ELEMENTWISE_SUB;
}

static bool is_order(enum rk_elementwise_kind kind)
{
    return kind == RK_ELEMENTWISE_MAX || kind == RK_ELEMENTWISE_MIN;
}

/* The factor of the output stage. */
static double factor_of(const struct rk_elementwise *e)
{
    if (e->kind == RK_ELEMENTWISE_MUL)
        return e->scale_a * e->scale_b / e->scale_out;
    if (is_order(e->kind))
        return 1.0 / UNIT;
    return fmax(e->scale_a, e->scale_b) / (UNIT * e->scale_out);
}

static double ratio_of(const struct rk_elementwise *e)
{
    return fmin(e->scale_a, e->scale_b) / fmax(e->scale_a, e->scale_b);
}

/* Largest distance from the exact sum, in steps of the output. */
static double sum_error(const struct rk_elementwise *e)
{
    double exact = UNIT * ratio_of(e), factor = factor_of(e);
    struct rk_scale smaller = rk_scale_of(exact), out = rk_scale_of(factor);
    double input = fabs(rk_scale_value(smaller) - exact) * LARGEST_INPUT + 0.5;
    return input * factor + fabs(rk_scale_value(out) / factor - 1) * LARGEST_OUTPUT;
}

const char *rk_elementwise_problem(const struct rk_elementwise *e)
{
    double factor = factor_of(e);
    if (!(factor > 0) || factor > RK_LARGEST_SCALE)
        return "the output's scale is too small for the inputs'";
    if (is_sum(e->kind) && !(sum_error(e) < TOLERANCE))
        return "the inputs' scales are too far above the output's for the NPU's 15-bit factors";
    return NULL;
}

static struct rk_dpu_stages stages_of(const struct rk_elementwise *e)
{
    static const enum rk_dpu_combine combines[] = {
        [RK_ELEMENTWISE_ADD] = RK_DPU_ALU_ADD,  [RK_ELEMENTWISE_SUB] = RK_DPU_ALU_ADD,
        [RK_ELEMENTWISE_MUL] = RK_DPU_MULTIPLY, [RK_ELEMENTWISE_MAX] = RK_DPU_ALU_MAX,
        [RK_ELEMENTWISE_MIN] = RK_DPU_ALU_MIN,
    };
    struct rk_dpu_stages stages = {
        .a_offset = -e->zero_a,
        .b_offset = -e->zero_b,
        .out_offset = e->zero_out,
        .a_scale = {UNIT, 0},
        .b_scale = {UNIT, 0},
        .out_scale = rk_scale_of(factor_of(e)),
        .combine = combines[e->kind],
    };
    if (e->kind == RK_ELEMENTWISE_MUL) {
        stages.a_scale = (struct rk_scale){0, 0};
        stages.b_scale = (struct rk_scale){1, 0};
    } else if (is_sum(e->kind)) {
        struct rk_scale *smaller = e->scale_a < e->scale_b ? &stages.a_scale : &stages.b_scale;
        if (e->scale_a != e->scale_b)
            *smaller = rk_scale_of(UNIT * ratio_of(e));
    }
    if (e->kind == RK_ELEMENTWISE_SUB)
        stages.b_scale.scale = -stages.b_scale.scale;
    return stages;
}

int32_t rk_elementwise_sum(const struct rk_elementwise *e, int32_t a, int32_t b)
{
    struct rk_dpu_stages stages = stages_of(e);
    int64_t v = rk_scale_apply((int64_t)a + stages.a_offset, stages.a_scale) +
                rk_scale_apply((int64_t)b + stages.b_offset, stages.b_scale);
    v = rk_scale_apply(v, stages.out_scale) + stages.out_offset;
    return v < INT8_MIN ? INT8_MIN : v > INT8_MAX ? INT8_MAX : (int32_t)v;
}

/* The vendor's main cube of a sum is the one of the smaller scale. */
static bool swaps(const struct rk_elementwise *e)
{
    return e->kind == RK_ELEMENTWISE_ADD && e->scale_b < e->scale_a;
}

static struct rk_elementwise swapped(const struct rk_elementwise *e)
{
    struct rk_elementwise other = *e;
    other.a = e->b;
    other.b = e->a;
    other.scale_a = e->scale_b;
    other.scale_b = e->scale_a;
    other.zero_a = e->zero_b;
    other.zero_b = e->zero_a;
    return other;
}

/* ---- clamping --------------------------------------------------------------- */

/* The least v >= 0 that the output stage makes `steps` or more of; 0: none within 31 bits. */
static int32_t first_reaching(struct rk_scale out, int32_t steps)
{
    int64_t low = 0, high = INT32_MAX;
    if (steps <= 0 || rk_scale_apply(high, out) < steps)
        return 0;
    while (low + 1 < high) {
        int64_t middle = low + (high - low) / 2;
        if (rk_scale_apply(middle, out) >= steps)
            high = middle;
        else
            low = middle;
    }
    return (int32_t)high;
}

bool rk_dpu_clamp(struct rk_dpu_stages *stages, int32_t min, int32_t max)
{
    if (min <= INT8_MIN && max >= INT8_MAX)
        return true;
    if (min != stages->out_offset && !(min <= INT8_MIN && stages->out_offset <= INT8_MIN))
        return false;
    stages->relu = true;
    if (max >= INT8_MAX)
        return true;
    int32_t steps = max - stages->out_offset, bound = first_reaching(stages->out_scale, steps);
    if (bound == 0 || rk_scale_apply(bound, stages->out_scale) != steps)
        return false;
    stages->relu_max = bound;
    return true;
}

/* A table that clamps, behind what the stages leave. */
static int lower_clamped(struct rk_plan *plan, struct rk_dpu_task *task, int32_t min, int32_t max)
{
    struct rk_cube out = task->out;
    int8_t table[256];
    for (int32_t i = 0; i < 256; i++) {
        int32_t value = i - 128 < min ? min : i - 128;
        table[i] = (int8_t)(value > max ? max : value);
    }
    task->stages.relu = false;
    int error = rk_plan_cube(plan, out.shape, &task->out);
    if (!error)
        error = rk_dpu_lower(plan, task);
    return error ? error : rk_lower_table(plan, task->op, task->out, out, table);
}

int rk_lower_elementwise(struct rk_plan *plan, const struct rk_elementwise *elementwise)
{
    struct rk_elementwise e = swaps(elementwise) ? swapped(elementwise) : *elementwise;
    const char *problem = rk_elementwise_problem(&e);
    if (problem)
        return mica_fail(plan->log, -ENOTSUP, "an element-wise operation can't run: %s", problem);
    struct rk_dpu_task task = {e.op, "EW", e.a, e.b, e.out, stages_of(&e)};
    if (rk_dpu_clamp(&task.stages, e.min, e.max))
        return rk_dpu_lower(plan, &task);
    return lower_clamped(plan, &task, e.min, e.max);
}

/* ---- one cube --------------------------------------------------------------- */

int rk_lower_copy(struct rk_plan *plan, uint32_t op, struct rk_cube in, struct rk_cube out)
{
    struct rk_dpu_task task = {.op = op, .unit = "EW", .a = in, .b = in, .out = out, .stages = rk_dpu_copy()};
    return rk_dpu_lower(plan, &task);
}

bool rk_requantize_possible(double factor)
{
    return factor > 0 && factor <= RK_LARGEST_SCALE;
}

int rk_lower_requantize(struct rk_plan *plan, uint32_t op, struct rk_cube in, int32_t in_zero, struct rk_cube out,
                        int32_t out_zero, double factor)
{
    if (factor == 1 && in_zero == out_zero)
        return rk_lower_copy(plan, op, in, out);
    struct rk_dpu_task task = {.op = op, .unit = "EW", .a = in, .b = in, .out = out};
    task.stages =
        (struct rk_dpu_stages){.a_offset = -in_zero, .out_offset = out_zero, .out_scale = rk_scale_of(factor)};
    return rk_dpu_lower(plan, &task);
}
