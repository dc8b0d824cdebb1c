/* SPDX-License-Identifier: MIT */
/*
 * Channels: a 1x1 convolution. Rows: a copy for each run of neighbours. Columns: a convolution writes whole rows of
 * the output, so that each run of columns is written to an image that is as wide as the output, with the lowest value
 * everywhere else; read from so many pixels before, it stands in its columns, and the maximum of all is the result.
 * Columns in other orders go through channels: a window over all of them puts each wanted one to channels of its own,
 * and a second convolution makes columns of those again, as in relayout.c. Exact.
 */
#include "npu/rockchip/compile/pick.h"

#include <errno.h>
#include <stdlib.h>

#include "npu/rockchip/compile/dpu_task.h"
#include "npu/rockchip/compile/move.h"
#include "npu/rockchip/compile/select.h"
#include "util/checked.h"

#define MAX_RUNS 32u     /* of rows, a task each */
#define MAX_SEGMENTS 16u /* of columns, two or three tasks each */
#define LONG_RUN 3u      /* columns that are better a run of their own */
#define MAX_COLUMNS (RK_MAX_PAD + 1)

struct rk_shape rk_picked_shape(struct rk_shape in, const struct rk_pick *pick)
{
    *(pick->axis == RK_ROWS ? &in.h : pick->axis == RK_COLUMNS ? &in.w : &in.c) = pick->count;
    return in;
}

/* Elements from the `first` on that are neighbours in the input too. */
static uint32_t run_at(const struct rk_pick *pick, uint32_t first)
{
    uint32_t count = 1;
    while (first + count < pick->count && pick->source[first + count] == pick->source[first] + count)
        count++;
    return count;
}

/* ---- columns: segments ------------------------------------------------------------- */

/* Output columns [first, first + count), which come from input columns [from, from + span). */
struct segment {
    uint32_t first, count, from, span;
    bool run;
};

/* As many columns from `first` on as one window sees and one convolution puts back. */
static struct segment gather_segment(const struct rk_pick *pick, uint32_t first)
{
    uint32_t low = pick->source[first], high = low, count = 1;
    for (; first + count < pick->count && count < MAX_COLUMNS; count++) {
        uint32_t source = pick->source[first + count];
        uint32_t lowest = source < low ? source : low, highest = source > high ? source : high;
        if (highest - lowest >= RK_MAX_KERNEL || run_at(pick, first + count) >= LONG_RUN)
            break;
        low = lowest;
        high = highest;
    }
    return (struct segment){first, count, low, high - low + 1, false};
}

static struct segment next_segment(const struct rk_pick *pick, uint32_t first)
{
    uint32_t count = run_at(pick, first);
    if (count >= LONG_RUN || count == pick->count - first)
        return (struct segment){first, count, pick->source[first], count, true};
    return gather_segment(pick, first);
}

/* ---- columns: convolutions --------------------------------------------------------- */

/* A run, in an image as wide as the output. */
static struct rk_ones ones_of(const struct rk_pick *pick, const struct segment *segment, struct rk_cube in,
                              struct rk_cube out)
{
    in.shape.w = segment->span;
    struct rk_ones ones = rk_ones_identity(pick->op, in, out);
    ones.in_zero = ones.out_zero = INT8_MIN;
    return ones;
}

/* Each row's wanted columns as the channels of one pixel. */
static struct rk_weighted gathering_of(const struct rk_pick *pick, const struct segment *segment, struct rk_cube in)
{
    in.shape.w = segment->span;
    struct rk_cube out = {.shape = {1, in.shape.h, segment->count * in.shape.c}};
    struct rk_weighted weighted = rk_weighted_plain(pick->op, in, out);
    weighted.kernel_w = segment->span;
    return weighted;
}

/* And as columns again, in an image as wide as the output. */
static struct rk_weighted spreading_of(const struct rk_pick *pick, const struct segment *segment, struct rk_cube in,
                                       struct rk_cube out)
{
    struct rk_weighted weighted = rk_weighted_plain(pick->op, in, out);
    weighted.kernel_w = segment->count;
    weighted.pad_left = (int32_t)segment->count - 1;
    weighted.in_zero = weighted.out_zero = INT8_MIN;
    return weighted;
}

static const char *segment_problem(const struct rk_chip *chip, const struct rk_pick *pick,
                                   const struct segment *segment, struct rk_shape in)
{
    struct rk_cube from = {.shape = in}, to = {.shape = rk_picked_shape(in, pick)};
    struct rk_ones ones = ones_of(pick, segment, from, to);
    if (segment->run)
        return rk_ones_problem(chip, &ones);
    struct rk_weighted gathering = gathering_of(pick, segment, from);
    struct rk_weighted spreading = spreading_of(pick, segment, gathering.out, to);
    const char *problem = rk_matrix_problem(chip, &gathering);
    return problem ? problem : rk_matrix_problem(chip, &spreading);
}

static const char *columns_problem(const struct rk_chip *chip, struct rk_shape in, const struct rk_pick *pick)
{
    uint32_t segments = 0;
    for (uint32_t first = 0; first < pick->count; segments++) {
        struct segment segment = next_segment(pick, first);
        const char *problem = segment_problem(chip, pick, &segment, in);
        if (problem)
            return problem;
        if (segments == MAX_SEGMENTS)
            return "the columns' new order has too many pieces, each of which takes the NPU a few tasks";
        first += segment.count;
    }
    return NULL;
}

static int lower_gathering(struct rk_plan *plan, const struct rk_pick *pick, const struct segment *segment,
                           struct rk_cube in, struct rk_cube *out)
{
    struct rk_weighted weighted = gathering_of(pick, segment, in);
    struct rk_matrix matrix;
    int error = rk_plan_cube(plan, weighted.out.shape, &weighted.out);
    *out = weighted.out;
    if (!error)
        error = rk_matrix_new(plan, &weighted, &matrix);
    if (error)
        return error;
    for (uint32_t i = 0; i < segment->count; i++)
        for (uint32_t c = 0; c < in.shape.c; c++)
            rk_matrix_set(&matrix, i * in.shape.c + c, 0, pick->source[segment->first + i] - segment->from, c, 1);
    return rk_lower_matrix(plan, &matrix, 1);
}

static int lower_spreading(struct rk_plan *plan, const struct rk_pick *pick, const struct segment *segment,
                           struct rk_cube in, struct rk_cube out)
{
    struct rk_weighted weighted = spreading_of(pick, segment, in, out);
    struct rk_matrix matrix;
    int error = rk_matrix_new(plan, &weighted, &matrix);
    if (error)
        return error;
    for (uint32_t i = 0; i < segment->count; i++)
        for (uint32_t c = 0; c < out.shape.c; c++)
            rk_matrix_set(&matrix, c, 0, segment->count - 1 - i, i * out.shape.c + c, 1);
    return rk_lower_matrix(plan, &matrix, 1);
}

/* The segment's columns at the left of `out`. */
static int lower_segment(struct rk_plan *plan, const struct rk_pick *pick, const struct segment *segment,
                         struct rk_cube in, struct rk_cube out)
{
    in.at.offset += (uint64_t)segment->from * plan->chip->atom;
    struct rk_ones ones = ones_of(pick, segment, in, out);
    if (segment->run)
        return rk_lower_ones(plan, &ones);
    struct rk_cube joint;
    int error = lower_gathering(plan, pick, segment, in, &joint);
    return error ? error : lower_spreading(plan, pick, segment, joint, out);
}

static int lower_columns(struct rk_plan *plan, const struct rk_pick *pick, struct rk_cube in, struct rk_cube out)
{
    struct segment segment = next_segment(pick, 0);
    int error = lower_segment(plan, pick, &segment, in, out);
    while (!error && segment.first + segment.count < pick->count) {
        struct rk_cube wide;
        segment = next_segment(pick, segment.first + segment.count);
        error = rk_plan_cube(plan, out.shape, &wide);
        if (!error)
            error = lower_segment(plan, pick, &segment, in, wide);
        uint64_t pixels = (uint64_t)out.shape.w * out.shape.h - segment.first;
        struct rk_cube place = rk_cube_run(plan, out, segment.first, pixels);
        if (!error)
            error = rk_lower_combine(plan, pick->op, RK_ELEMENTWISE_MAX, rk_cube_run(plan, wide, 0, pixels), place,
                                     place, 0);
    }
    return error;
}

/* ---- rows, channels ---------------------------------------------------------------- */

static const char *rows_problem(const struct rk_pick *pick)
{
    uint32_t runs = 0;
    for (uint32_t first = 0; first < pick->count && runs <= MAX_RUNS; first += run_at(pick, first))
        runs++;
    return runs > MAX_RUNS ? "the rows' new order has too many pieces, each of which is a task of the NPU" : NULL;
}

static int lower_rows(struct rk_plan *plan, const struct rk_pick *pick, struct rk_cube in, struct rk_cube out)
{
    int error = 0;
    for (uint32_t first = 0, count; !error && first < pick->count; first += count) {
        count = run_at(pick, first);
        error = rk_lower_copy(plan, pick->op, rk_cube_rows(plan, in, pick->source[first], count),
                              rk_cube_rows(plan, out, first, count));
    }
    return error;
}

static int lower_channels(struct rk_plan *plan, const struct rk_pick *pick, struct rk_cube in, struct rk_cube out)
{
    int32_t *zero = mica_new_array(pick->count, sizeof(*zero));
    double *factor = mica_new_array(pick->count, sizeof(*factor));
    int error = zero && factor ? 0 : mica_fail_nomem(plan->log);
    for (uint32_t i = 0; !error && i < pick->count; i++)
        factor[i] = 1;
    struct rk_select select = {
        .op = pick->op, .in = in, .out = out, .source = pick->source, .zero = zero, .factor = factor};
    if (!error)
        error = rk_lower_select(plan, &select);
    free(zero);
    free(factor);
    return error;
}

/* ---- any --------------------------------------------------------------------------- */

/* The columns of a single row are rows of one: copies then. */
static bool is_row(struct rk_shape in, const struct rk_pick *pick)
{
    return pick->axis == RK_COLUMNS && in.h == 1 && !rows_problem(pick);
}

const char *rk_pick_problem(const struct rk_chip *chip, struct rk_shape in, const struct rk_pick *pick)
{
    struct rk_select select = {.in = {.shape = in}, .out = {.shape = rk_picked_shape(in, pick)}};
    if (is_row(in, pick))
        return NULL;
    return pick->axis == RK_ROWS      ? rows_problem(pick)
           : pick->axis == RK_COLUMNS ? columns_problem(chip, in, pick)
                                      : rk_select_problem(chip, &select);
}

int rk_lower_pick(struct rk_plan *plan, const struct rk_pick *pick, struct rk_cube in, struct rk_cube out)
{
    if (is_row(in.shape, pick))
        return lower_rows(plan, pick, rk_cube_reshaped(plan, in, 1, in.shape.w),
                          rk_cube_reshaped(plan, out, 1, out.shape.w));
    return pick->axis == RK_ROWS      ? lower_rows(plan, pick, in, out)
           : pick->axis == RK_COLUMNS ? lower_columns(plan, pick, in, out)
                                      : lower_channels(plan, pick, in, out);
}
