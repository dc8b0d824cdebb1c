/* SPDX-License-Identifier: MIT */
/*
 * Maximum pooling without the pooling unit, whose interrupts the mainline kernel masks (specification, section 2): the
 * greater of an image and the image shifted by a pixel is the maximum of two neighbours, and so on in doubling steps,
 * first along rows, then along columns; a convolution then takes the windows that count. Exact.
 */
#include <errno.h>

#include "npu/rockchip/compile/move.h"
#include "npu/rockchip/compile/pool.h"
#include "npu/rockchip/compile/refuse.h"
#include "npu/rockchip/compile/select.h"

/* Columns or rows that the windows reach over, from the first one's begin on. */
static uint32_t reach(uint32_t windows, int32_t stride, int32_t kernel)
{
    return (windows - 1) * (uint32_t)stride + (uint32_t)kernel;
}

/* What the image must be extended to so that all windows are inside of it; its own size when they are. */
static struct rk_shape extended(const struct rk_pool *pool, bool *pads)
{
    const struct mica_window *w = pool->window;
    uint32_t columns = reach(pool->out.w, w->stride_x, w->kernel_x),
             rows = reach(pool->out.h, w->stride_y, w->kernel_y);
    *pads = w->padding.left > 0 || w->padding.top > 0 || columns > pool->in.w || rows > pool->in.h;
    return *pads ? (struct rk_shape){columns, rows, pool->in.c} : pool->in;
}

/* Copies into a larger image of values that no maximum takes. */
static struct rk_ones extension_of(const struct rk_pool *pool, uint32_t op, struct rk_cube in, struct rk_cube out)
{
    struct rk_ones ones = rk_ones_identity(op, in, out);
    ones.pad_left = pool->window->padding.left;
    ones.pad_top = pool->window->padding.top;
    ones.in_zero = ones.out_zero = INT8_MIN;
    return ones;
}

/* Takes every window's maximum from where it is: at the window's first pixel. */
static struct rk_ones taking_of(const struct rk_pool *pool, uint32_t op, struct rk_cube in, struct rk_cube out)
{
    const struct mica_window *w = pool->window;
    in.shape.w -= (uint32_t)w->kernel_x - 1;
    in.shape.h -= (uint32_t)w->kernel_y - 1;
    struct rk_ones ones = rk_ones_identity(op, in, out);
    ones.stride_x = rk_pool_stride(pool->out.w, w->stride_x);
    ones.stride_y = rk_pool_stride(pool->out.h, w->stride_y);
    ones.in_zero = ones.out_zero = pool->zero;
    ones.min = pool->min;
    ones.max = pool->max;
    return ones;
}

int rk_supports_max_pool(const struct rk_chip *chip, const struct mica_graph *graph, uint32_t op_index, char *reason,
                         size_t size)
{
    const struct mica_op *op = &graph->ops[op_index];
    bool pads;
    if (rk_pool_check(graph, op, reason, size))
        return -ENOTSUP;
    struct rk_pool pool = rk_pool_of(graph, op);
    struct rk_cube in = {.shape = pool.in}, image = {.shape = extended(&pool, &pads)}, out = {.shape = pool.out};
    struct rk_ones extension = extension_of(&pool, op_index, in, image),
                   taking = taking_of(&pool, op_index, image, out);
    const char *problem = pads ? rk_ones_problem(chip, &extension) : NULL;
    if (!problem)
        problem = rk_ones_problem(chip, &taking);
    return problem ? rk_refuse(reason, size, "%s", problem) : 0;
}

/*
 * Maxima over `kernel` pixels that are `step` apart. Only the first *pixels of the image have a value: the last ones
 * lack neighbours, and what their places hold is never taken.
 */
static int widen(struct rk_plan *plan, uint32_t op, uint32_t kernel, uint32_t step, struct rk_cube *image,
                 uint64_t *pixels)
{
    int error = 0;
    for (uint32_t span = 1, shift; !error && span < kernel; span += shift) {
        struct rk_cube next;
        shift = span < kernel - span ? span : kernel - span;
        *pixels -= (uint64_t)shift * step;
        error = rk_plan_cube(plan, image->shape, &next);
        if (!error)
            error = rk_lower_combine(plan, op, RK_ELEMENTWISE_MAX, rk_cube_run(plan, *image, 0, *pixels),
                                     rk_cube_run(plan, *image, (uint64_t)shift * step, *pixels),
                                     rk_cube_run(plan, next, 0, *pixels), 0);
        *image = next;
    }
    return error;
}

int rk_lower_max_pool(struct rk_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    struct rk_pool pool = rk_pool_of(plan->graph, op);
    struct rk_cube image, out, in;
    bool pads;
    struct rk_shape shape = extended(&pool, &pads);
    uint64_t pixels = (uint64_t)shape.w * shape.h;
    int error = rk_plan_value(plan, (uint32_t)op->inputs[0], &in);
    if (!error)
        error = rk_plan_result(plan, (uint32_t)op->outputs[0], &out);
    if (error)
        return error;
    image = in;
    if (pads) {
        error = rk_plan_cube(plan, shape, &image);
        struct rk_ones ones = extension_of(&pool, op_index, in, image);
        if (!error)
            error = rk_lower_ones(plan, &ones);
    }
    if (!error)
        error = widen(plan, op_index, (uint32_t)op->window.kernel_x, 1, &image, &pixels);
    if (!error)
        error = widen(plan, op_index, (uint32_t)op->window.kernel_y, shape.w, &image, &pixels);
    struct rk_ones taking = taking_of(&pool, op_index, image, out);
    return error ? error : rk_lower_ones(plan, &taking);
}
