/* SPDX-License-Identifier: MIT */
/*
 * Channels to pixels and back, by convolutions with weights of 1. One pixel a row, with zeros on its left and right,
 * under a kernel of n columns: each of n places sees the pixel through another column of the kernel, which takes other
 * channels of it. So a pixel becomes n pixels. The other way a kernel takes n pixels of a row and puts each to
 * channels of its own. Anything else goes by way of the channels that both numbers have in common. Exact.
 */
#include "npu/rockchip/compile/relayout.h"

#include <errno.h>

#include "npu/rockchip/compile/move.h"
#include "npu/rockchip/compile/select.h"

#define MAX_SPLIT (RK_MAX_PAD + 1)
#define MAX_RUNS 16u /* tasks that a step is cut to */
#define MAX_STEPS 8u

/* One convolution: pixels of `from` channels become those of `to`; one is a multiple of the other. */
struct step {
    uint32_t from, to;
};

struct route {
    uint32_t count;
    struct step steps[MAX_STEPS];
};

static uint32_t common(uint32_t a, uint32_t b)
{
    while (b) {
        uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The largest divisor of `times` that one step can do; 1: none. */
static uint32_t divisor(uint32_t times, uint32_t most)
{
    uint32_t best = 1;
    for (uint32_t i = 2; i <= most && i <= times; i++)
        if (times % i == 0)
            best = i;
    return best;
}

static bool add_steps(struct route *route, uint32_t from, uint32_t to)
{
    bool splits = from > to;
    while (from != to) {
        uint32_t by = splits ? divisor(from / to, MAX_SPLIT) : divisor(to / from, RK_MAX_KERNEL);
        if (by == 1 || route->count == MAX_STEPS)
            return false;
        uint32_t next = splits ? from / by : from * by;
        route->steps[route->count++] = (struct step){from, next};
        from = next;
    }
    return true;
}

static bool find_route(uint32_t from, uint32_t to, struct route *route)
{
    uint32_t shared = common(from, to);
    route->count = 0;
    return add_steps(route, from, shared) && add_steps(route, shared, to);
}

/* `rows` rows, each of which is one pixel on the side that has more channels. */
static struct rk_weighted weighted_of(uint32_t op, const struct step *step, uint32_t rows)
{
    bool splits = step->from > step->to;
    uint32_t times = splits ? step->from / step->to : step->to / step->from;
    struct rk_cube in = {.shape = {splits ? 1 : times, rows, step->from}};
    struct rk_cube out = {.shape = {splits ? times : 1, rows, step->to}};
    struct rk_weighted weighted = rk_weighted_plain(op, in, out);
    weighted.kernel_w = times;
    weighted.pad_left = splits ? (int32_t)times - 1 : 0;
    return weighted;
}

static uint64_t rows_of(const struct step *step, uint64_t values)
{
    return values / (step->from > step->to ? step->from : step->to);
}

const char *rk_relayout_problem(const struct rk_chip *chip, struct rk_shape from, uint32_t channels)
{
    struct route route;
    uint64_t values = (uint64_t)from.w * from.h * from.c;
    if (!find_route(from.c, channels, &route))
        return "the numbers of channels have no common divisor that convolutions could go by";
    for (uint32_t i = 0; i < route.count; i++) {
        uint64_t rows = rows_of(&route.steps[i], values);
        if (rows > (uint64_t)RK_MAX_IMAGE * MAX_RUNS)
            return "there are too many pixels to bring them into another layout";
        struct rk_weighted weighted =
            weighted_of(0, &route.steps[i], rows < RK_MAX_IMAGE ? (uint32_t)rows : RK_MAX_IMAGE);
        const char *problem = rk_matrix_problem(chip, &weighted);
        if (problem)
            return problem;
    }
    return NULL;
}

/* Group g of channels of the wide pixel is narrow pixel g, which it sees through the g-th kernel column from behind. */
static void fill(struct rk_matrix *matrix, const struct step *step)
{
    uint32_t times = matrix->weighted.kernel_w, narrow = step->from > step->to ? step->to : step->from;
    for (uint32_t g = 0; g < times; g++)
        for (uint32_t c = 0; c < narrow; c++) {
            if (step->from > step->to)
                rk_matrix_set(matrix, c, 0, times - 1 - g, g * narrow + c, 1);
            else
                rk_matrix_set(matrix, g * narrow + c, 0, g, c, 1);
        }
}

static int lower_rows(struct rk_plan *plan, uint32_t op, const struct step *step, struct rk_cube in, struct rk_cube out,
                      uint32_t rows)
{
    struct rk_weighted weighted = weighted_of(op, step, rows);
    struct rk_matrix matrix;
    weighted.in = rk_cube_reshaped(plan, in, weighted.in.shape.w, rows);
    weighted.out = rk_cube_reshaped(plan, out, weighted.out.shape.w, rows);
    int error = rk_matrix_new(plan, &weighted, &matrix);
    if (error)
        return error;
    fill(&matrix, step);
    return rk_lower_matrix(plan, &matrix, 1);
}

static int lower_step(struct rk_plan *plan, uint32_t op, const struct step *step, struct rk_cube in, struct rk_cube out)
{
    uint64_t left = rows_of(step, (uint64_t)in.shape.w * in.shape.h * in.shape.c);
    struct rk_weighted one = weighted_of(op, step, 1);
    int error = 0;
    while (!error && left) {
        uint32_t rows = left < RK_MAX_IMAGE ? (uint32_t)left : RK_MAX_IMAGE;
        error = lower_rows(plan, op, step, in, out, rows);
        in.at.offset += (uint64_t)rows * one.in.shape.w * plan->chip->atom;
        out.at.offset += (uint64_t)rows * one.out.shape.w * plan->chip->atom;
        left -= rows;
    }
    return error;
}

int rk_lower_relayout(struct rk_plan *plan, uint32_t op, struct rk_cube in, struct rk_cube out)
{
    struct route route;
    int error = 0;
    if (!find_route(in.shape.c, out.shape.c, &route))
        return mica_fail(plan->log, -ENOTSUP, "%u channels can't be made %u", in.shape.c, out.shape.c);
    uint64_t values = (uint64_t)in.shape.w * in.shape.h * in.shape.c;
    for (uint32_t i = 0; !error && i < route.count; i++) {
        struct rk_cube next = out;
        struct rk_shape shape = {1, (uint32_t)(values / route.steps[i].to), route.steps[i].to};
        if (i + 1 < route.count)
            error = rk_plan_cube(plan, shape, &next);
        if (!error)
            error = lower_step(plan, op, &route.steps[i], in, next);
        in = next;
    }
    return error;
}
