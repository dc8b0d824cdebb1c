/* SPDX-License-Identifier: MIT */
#include "npu/rockchip/compile/part.h"

#include <errno.h>
#include <stdlib.h>

#include "npu/rockchip/compile/dpu_task.h"
#include "npu/rockchip/compile/move.h"
#include "npu/rockchip/compile/select.h"
#include "util/checked.h"

/* From the first to the last element that is taken. */
static uint32_t extent(struct rk_range range)
{
    return (range.count - 1) * range.step + 1;
}

static uint32_t stride_of(struct rk_range range)
{
    return range.count == 1 ? 1 : range.step;
}

/* The rectangle of the image that has all elements; channels stay whole unless surfaces can be left out. */
static struct rk_cube view_of(const struct rk_chip *chip, struct rk_cube in, const struct rk_part *part)
{
    in.at.offset += part->y.first * in.line + (uint64_t)part->x.first * chip->atom;
    in.shape.w = extent(part->x);
    in.shape.h = extent(part->y);
    return in;
}

static bool has_strides(const struct rk_part *part)
{
    return stride_of(part->x) > 1 || stride_of(part->y) > 1;
}

static bool channels_by_address(const struct rk_part *part)
{
    return stride_of(part->c) == 1 && part->c.first % RK_CHANNEL_STEP == 0;
}

/* Do the pixels of the part follow each other? */
static bool is_run(struct rk_shape in, const struct rk_part *part)
{
    return !has_strides(part) && (part->x.count == in.w || part->y.count == 1);
}

static struct rk_ones strided(const struct rk_part *part, struct rk_cube in, struct rk_cube out)
{
    struct rk_ones ones = rk_ones_identity(part->op, in, out);
    ones.stride_x = stride_of(part->x);
    ones.stride_y = stride_of(part->y);
    return ones;
}

const char *rk_part_problem(const struct rk_chip *chip, struct rk_shape in, const struct rk_part *part)
{
    struct rk_cube view = view_of(chip, (struct rk_cube){.shape = in}, part);
    struct rk_cube out = {.shape = {part->x.count, part->y.count, channels_by_address(part) ? part->c.count : in.c}};
    const char *problem = NULL;
    view.shape.c = out.shape.c;
    if (has_strides(part) || (channels_by_address(part) && !is_run(in, part))) {
        struct rk_ones ones = strided(part, view, out);
        problem = rk_ones_problem(chip, &ones);
        view = out;
    }
    if (problem || channels_by_address(part))
        return problem;
    out.shape.c = part->c.count;
    struct rk_select select = {.in = view, .out = out};
    return rk_select_problem(chip, &select);
}

static int select_channels(struct rk_plan *plan, const struct rk_part *part, struct rk_cube in, struct rk_cube out)
{
    uint32_t count = part->c.count, *source = mica_new_array(count, sizeof(*source));
    int32_t *zero = mica_new_array(count, sizeof(*zero));
    double *factor = mica_new_array(count, sizeof(*factor));
    int error = source && zero && factor ? 0 : mica_fail_nomem(plan->log);
    for (uint32_t i = 0; !error && i < count; i++) {
        source[i] = part->c.first + i * part->c.step;
        factor[i] = 1;
    }
    struct rk_select select = {.op = part->op, .in = in, .out = out, .source = source, .zero = zero, .factor = factor};
    if (!error)
        error = rk_lower_select(plan, &select);
    free(source);
    free(zero);
    free(factor);
    return error;
}

/* The part has all its pixels in a row: an address says it. */
static int lower_run(struct rk_plan *plan, const struct rk_part *part, struct rk_cube view, uint32_t out)
{
    struct rk_shape shape = rk_shape_of(&plan->graph->tensors[out]);
    view = rk_cube_reshaped(plan, view, shape.w, shape.h);
    if (rk_can_alias(plan, &view)) {
        plan->values[out].cube = view;
        return 0;
    }
    struct rk_cube copy;
    int error = rk_plan_result(plan, out, &copy);
    return error ? error : rk_lower_copy(plan, part->op, view, copy);
}

int rk_lower_part(struct rk_plan *plan, const struct rk_part *part, struct rk_cube in, uint32_t out)
{
    struct rk_cube view = view_of(plan->chip, in, part);
    bool by_address = channels_by_address(part), run = is_run(in.shape, part) && rk_cube_is_flat(plan, &in);
    if (by_address)
        view = rk_cube_channels(plan, view, part->c.first, part->c.count);
    if (by_address && run)
        return lower_run(plan, part, view, out);
    struct rk_cube result;
    int error = rk_plan_result(plan, out, &result);
    return error ? error : rk_lower_part_to(plan, part, in, result);
}

int rk_lower_part_to(struct rk_plan *plan, const struct rk_part *part, struct rk_cube in, struct rk_cube result)
{
    struct rk_cube view = view_of(plan->chip, in, part), taken;
    bool by_address = channels_by_address(part);
    if (by_address)
        view = rk_cube_channels(plan, view, part->c.first, part->c.count);
    int error = 0;
    taken = result = rk_cube_reshaped(plan, result, part->x.count, part->y.count);
    if (!by_address && !has_strides(part))
        return select_channels(plan, part, view, result);
    if (!by_address)
        error = rk_plan_cube(plan, (struct rk_shape){part->x.count, part->y.count, in.shape.c}, &taken);
    struct rk_ones ones = strided(part, view, taken);
    if (!error)
        error = rk_lower_ones(plan, &ones);
    return error || by_address ? error : select_channels(plan, part, taken, result);
}

struct rk_part rk_part_all(const struct mica_tensor *tensor, uint32_t op)
{
    struct rk_shape shape = rk_shape_of(tensor);
    return (struct rk_part){op, {0, 1, shape.w}, {0, 1, shape.h}, {0, 1, shape.c}};
}

const char *rk_part_dimension(const struct mica_tensor *tensor, uint32_t dimension, struct rk_range range,
                              struct rk_part *part)
{
    if (range.count == (uint32_t)tensor->dims[dimension] && stride_of(range) == 1)
        return NULL;
    if (dimension + 1 == tensor->rank) {
        part->c = range;
        return NULL;
    }
    if (dimension + 2 == tensor->rank) {
        part->x = range;
        return NULL;
    }
    /* Rows are all dimensions before the columns together: blocks of them, one after the other. */
    uint32_t before = 1, after = 1;
    for (uint32_t i = 0; i + 2 < tensor->rank; i++)
        if (i != dimension)
            *(i < dimension ? &before : &after) *= (uint32_t)tensor->dims[i];
    if (before > 1 || (after > 1 && stride_of(range) > 1))
        return "it takes parts of a dimension between others";
    if (part->y.count != after * (uint32_t)tensor->dims[dimension])
        return "it takes parts of several dimensions before the columns";
    part->y = (struct rk_range){range.first * after, after > 1 ? 1 : range.step, range.count * after};
    return NULL;
}
