/* SPDX-License-Identifier: MIT */
/*
 * Average pooling without the pooling unit, whose interrupts the mainline kernel masks (specification, section 2): a
 * depthwise convolution with equal weights. Padding counts as zero there, so that windows over the image's border need
 * a larger factor: there is one convolution for every number of pixels that windows have, each is blanked where another
 * one counts, and the greatest of them is the result. Each pixel is rounded once: within 1 of TFLite's.
 */
#include <errno.h>

#include "npu/rockchip/compile/mean.h"
#include "npu/rockchip/compile/move.h"
#include "npu/rockchip/compile/pool.h"
#include "npu/rockchip/compile/refuse.h"
#include "npu/rockchip/compile/select.h"

/* Different numbers of pixels in the windows of one average pooling: a task or three each. */
#define MAX_COUNTS 6u

struct rk_pool rk_pool_of(const struct mica_graph *graph, const struct mica_op *op)
{
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *out = mica_op_output(graph, op, 0);
    struct rk_pool pool = {&op->window, rk_shape_of(in), rk_shape_of(out), rk_stored_zero(out), 0, 0};
    rk_activation_range(op->window.activation, out, &pool.min, &pool.max);
    return pool;
}

int rk_pool_check(const struct mica_graph *graph, const struct mica_op *op, char *reason, size_t size)
{
    if (rk_check_tensors(graph, op, 0, 1, reason, size))
        return -ENOTSUP;
    const char *problem = rk_image_problem(mica_op_input(graph, op, 0));
    if (problem)
        return rk_refuse(reason, size, "input 0 can't be used: %s", problem);
    if (!rk_same_quantization(mica_op_input(graph, op, 0), mica_op_output(graph, op, 0)))
        return rk_refuse(reason, size, "input and output are quantized differently");
    return 0;
}

/* ---- average -------------------------------------------------------------------- */

/* Pixels of the image in a window's columns or rows. */
static uint32_t covered(uint32_t window, int32_t stride, int32_t kernel, int32_t pad, uint32_t size)
{
    int64_t first = (int64_t)window * stride - pad, end = first + kernel;
    first = first < 0 ? 0 : first;
    end = end > (int64_t)size ? (int64_t)size : end;
    return end > first ? (uint32_t)(end - first) : 0;
}

static uint32_t count_at(const struct rk_pool *pool, uint32_t x, uint32_t y)
{
    const struct mica_window *w = pool->window;
    return covered(x, w->stride_x, w->kernel_x, w->padding.left, pool->in.w) *
           covered(y, w->stride_y, w->kernel_y, w->padding.top, pool->in.h);
}

struct counts {
    uint32_t count, values[MAX_COUNTS];
};

/* False: there are too many. */
static bool find_counts(const struct rk_pool *pool, struct counts *counts)
{
    counts->count = 0;
    for (uint32_t y = 0; y < pool->out.h; y++)
        for (uint32_t x = 0; x < pool->out.w; x++) {
            uint32_t value = count_at(pool, x, y), i = 0;
            while (i < counts->count && counts->values[i] != value)
                i++;
            if (i == MAX_COUNTS)
                return false;
            if (i == counts->count)
                counts->values[counts->count++] = value;
        }
    return true;
}

/* A window that is the whole image is a mean, which may be larger. */
static bool is_mean(const struct rk_pool *pool)
{
    const struct mica_window *w = pool->window;
    return pool->out.w == 1 && pool->out.h == 1 && w->padding.left == 0 && w->padding.top == 0 &&
           (uint32_t)w->kernel_x == pool->in.w && (uint32_t)w->kernel_y == pool->in.h;
}

static struct rk_ones average_of(const struct rk_pool *pool, uint32_t op, uint32_t count)
{
    const struct mica_window *w = pool->window;
    struct rk_ones ones =
        rk_ones_identity(op, (struct rk_cube){.shape = pool->in}, (struct rk_cube){.shape = pool->out});
    ones.kernel_w = (uint32_t)w->kernel_x;
    ones.kernel_h = (uint32_t)w->kernel_y;
    ones.stride_x = rk_pool_stride(pool->out.w, w->stride_x);
    ones.stride_y = rk_pool_stride(pool->out.h, w->stride_y);
    ones.pad_left = w->padding.left;
    ones.pad_top = w->padding.top;
    ones.factor = 1.0 / count;
    ones.in_zero = ones.out_zero = pool->zero;
    ones.min = pool->min;
    ones.max = pool->max;
    return ones;
}

static struct rk_mean mean_of(const struct rk_pool *pool, uint32_t op)
{
    return (struct rk_mean){
        .op = op,
        .in = {.shape = pool->in},
        .out = {.shape = pool->out},
        .columns = true,
        .rows = true,
        .factor = 1,
        .in_zero = pool->zero,
        .out_zero = pool->zero,
        .min = pool->min,
        .max = pool->max,
    };
}

int rk_supports_average_pool(const struct rk_chip *chip, const struct mica_graph *graph, uint32_t op_index,
                             char *reason, size_t size)
{
    const struct mica_op *op = &graph->ops[op_index];
    struct counts counts;
    if (rk_pool_check(graph, op, reason, size))
        return -ENOTSUP;
    struct rk_pool pool = rk_pool_of(graph, op);
    const char *problem = NULL;
    if (is_mean(&pool)) {
        struct rk_mean mean = mean_of(&pool, op_index);
        problem = rk_mean_problem(chip, &mean);
        return problem ? rk_refuse(reason, size, "%s", problem) : 0;
    }
    if (!find_counts(&pool, &counts))
        return rk_refuse(reason, size, "windows over the border have more than %u different numbers of pixels",
                         MAX_COUNTS);
    for (uint32_t i = 0; i < counts.count && !problem; i++) {
        if (counts.values[i] == 0)
            return rk_refuse(reason, size, "a window has no pixel of the image");
        struct rk_ones ones = average_of(&pool, op_index, counts.values[i]);
        problem = rk_ones_problem(chip, &ones);
    }
    return problem ? rk_refuse(reason, size, "%s", problem) : 0;
}

struct class
{
    const struct rk_pool *pool;
    uint32_t count;
};

static bool has_count(const void *user, uint32_t x, uint32_t y)
{
    const struct class *class = user;
    return count_at(class->pool, x, y) == class->count;
}

/* The averages of all windows of `count` pixels, -128 in all other places. */
static int lower_class(struct rk_plan *plan, const struct rk_pool *pool, uint32_t op, struct rk_cube in, uint32_t count,
                       struct rk_cube *out)
{
    struct rk_ones ones = average_of(pool, op, count);
    struct class class = {pool, count};
    struct rk_cube mask;
    int error = rk_plan_cube(plan, pool->out, out);
    if (error)
        return error;
    ones.in = in;
    ones.out = *out;
    error = rk_lower_ones(plan, &ones);
    if (!error)
        error = rk_plan_mask(plan, pool->out, has_count, &class, &mask);
    return error ? error : rk_lower_combine(plan, op, RK_ELEMENTWISE_MIN, *out, mask, *out, 0);
}

static int lower_classes(struct rk_plan *plan, const struct rk_pool *pool, uint32_t op, struct rk_cube in,
                         struct rk_cube out, const struct counts *counts)
{
    struct rk_cube so_far, next;
    int error = lower_class(plan, pool, op, in, counts->values[0], &so_far);
    for (uint32_t i = 1; !error && i < counts->count; i++) {
        bool last = i + 1 == counts->count;
        error = lower_class(plan, pool, op, in, counts->values[i], &next);
        if (!error)
            error = rk_lower_combine(plan, op, RK_ELEMENTWISE_MAX, so_far, next, last ? out : so_far, 0);
    }
    return error;
}

int rk_lower_average_pool(struct rk_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    struct rk_pool pool = rk_pool_of(plan->graph, op);
    struct counts counts;
    struct rk_cube in, out;
    int error = rk_plan_value(plan, (uint32_t)op->inputs[0], &in);
    if (!error)
        error = rk_plan_result(plan, (uint32_t)op->outputs[0], &out);
    if (error)
        return error;
    if (is_mean(&pool)) {
        struct rk_mean mean = mean_of(&pool, op_index);
        mean.in = in;
        mean.out = out;
        return rk_lower_the_mean(plan, &mean);
    }
    if (!find_counts(&pool, &counts))
        return mica_fail(plan->log, -ENOTSUP, "the windows of %s differ too much in size", op->type);
    if (counts.count > 1)
        return lower_classes(plan, &pool, op_index, in, out, &counts);
    struct rk_ones ones = average_of(&pool, op_index, counts.values[0]);
    ones.in = in;
    ones.out = out;
    return rk_lower_ones(plan, &ones);
}
