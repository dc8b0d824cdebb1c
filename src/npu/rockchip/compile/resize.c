/* SPDX-License-Identifier: MIT */
/*
 * RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR by whole factors. Larger: a transposed convolution with weights of 1, or
 * with those of a triangle, whose positions are exact. The reference repeats the image's border where a pixel lies
 * beyond the middle of its last one; there the image is extended by a copy of its border first. Smaller (nearest):
 * a strided convolution. Nearest is exact; bilinear is rounded once from the exact value, within 1 of the reference,
 * which for int8 has positions of 10 fraction bits: factors that are powers of two are exact in those.
 *
 * Factors whose weights don't fit 8 bits, or whose strides the core doesn't have, take two passes. Interpolating twice
 * by smaller factors is the same where pixels of the input are pixels of the result; with half pixels, which aren't,
 * columns come first and rows second. The first pass rounds by half a step at most, so does the second, and so does
 * the reference: results are less than two apart, which for integers is at most 1.
 */
#include <errno.h>

#include "npu/rockchip/compile/broadcast.h"
#include "npu/rockchip/compile/dpu_task.h"
#include "npu/rockchip/compile/move.h"
#include "npu/rockchip/compile/refuse.h"
#include "npu/rockchip/compile/resize.h"

static bool is_extended(const struct rk_resize_pass *pass)
{
    return pass->x.before || pass->x.after || pass->y.before || pass->y.after;
}

/* Every step-th pixel, from the first one on. */
static struct rk_ones taking_of(const struct rk_resize_pass *pass, const struct rk_chip *chip, struct rk_cube in)
{
    const struct rk_resize_axis *x = &pass->x, *y = &pass->y;
    in.at.offset += y->first * in.line + (uint64_t)x->first * chip->atom;
    in.shape.w = (x->out - 1) * x->step + 1;
    in.shape.h = (y->out - 1) * y->step + 1;
    struct rk_ones ones = rk_ones_identity(pass->op, in, (struct rk_cube){.shape = rk_resize_out(pass)});
    ones.stride_x = x->out == 1 ? 1 : x->step;
    ones.stride_y = y->out == 1 ? 1 : y->step;
    return ones;
}

/* The image with room for its border, which holds what no maximum takes. */
static struct rk_ones extension_of(const struct rk_resize_pass *pass, struct rk_cube in)
{
    const struct rk_resize_axis *x = &pass->x, *y = &pass->y;
    struct rk_cube out = {.shape = {in.shape.w + x->before + x->after, in.shape.h + y->before + y->after, in.shape.c}};
    struct rk_ones ones = rk_ones_identity(pass->op, in, out);
    ones.pad_left = (int32_t)x->before;
    ones.pad_top = (int32_t)y->before;
    ones.in_zero = ones.out_zero = INT8_MIN;
    return ones;
}

static const char *steps_problem(const struct rk_chip *chip, const struct rk_resize_pass *pass)
{
    struct rk_cube in = {.shape = {pass->x.in, pass->y.in, pass->channels}};
    if (rk_resize_is_smaller(pass)) {
        struct rk_ones ones = taking_of(pass, chip, in);
        return rk_ones_problem(chip, &ones);
    }
    if (is_extended(pass)) {
        struct rk_ones ones = extension_of(pass, in);
        const char *problem = rk_ones_problem(chip, &ones);
        if (problem)
            return problem;
        in = ones.out;
    }
    struct rk_weighted weighted = rk_resize_spreading(pass, in);
    return rk_matrix_problem(chip, &weighted);
}

static const char *passes_problem(const struct rk_chip *chip, const struct rk_resize *resize)
{
    const struct rk_resize_pass *first = &resize->passes[0];
    if (resize->repeats)
        return rk_broadcast_problem(chip, (struct rk_shape){1, 1, first->channels}, rk_resize_out(first));
    const char *problem = NULL;
    for (uint32_t i = 0; i < resize->count && !problem; i++)
        problem = steps_problem(chip, &resize->passes[i]);
    return problem;
}

int rk_supports_resize(const struct rk_chip *chip, const struct mica_graph *graph, uint32_t op_index, char *reason,
                       size_t size)
{
    const struct mica_op *op = &graph->ops[op_index];
    struct rk_resize resize;
    if (rk_check_tensors(graph, op, 0, 1, reason, size))
        return -ENOTSUP;
    const struct mica_tensor *in = mica_op_input(graph, op, 0);
    const char *problem = rk_image_problem(in);
    if (!problem && !rk_same_quantization(in, mica_op_output(graph, op, 0)))
        problem = "input and output are quantized differently";
    if (!problem)
        problem = rk_resize_describe(graph, op_index, &resize);
    if (!problem)
        problem = passes_problem(chip, &resize);
    return problem ? rk_refuse(reason, size, "%s", problem) : 0;
}

/* ---- lowering --------------------------------------------------------------------- */

static bool is_column(const void *user, uint32_t x, uint32_t y)
{
    (void)y;
    return x == *(const uint32_t *)user;
}

/* Column `to` gets what its neighbour `from` has, by the maximum with an image that is shifted and blanked elsewhere.
 */
static int repeat_column(struct rk_plan *plan, uint32_t op, struct rk_cube image, uint32_t from, uint32_t to)
{
    uint64_t pixels = (uint64_t)image.shape.w * image.shape.h - 1, at = to > from ? 1 : 0;
    struct rk_cube mask, shifted;
    int error = rk_plan_mask(plan, image.shape, is_column, &to, &mask);
    if (!error)
        error = rk_plan_cube(plan, image.shape, &shifted);
    if (error)
        return error;
    struct rk_cube place = rk_cube_run(plan, image, at, pixels), blanked = rk_cube_run(plan, shifted, at, pixels);
    error = rk_lower_combine(plan, op, RK_ELEMENTWISE_MIN, rk_cube_run(plan, image, 1 - at, pixels),
                             rk_cube_run(plan, mask, at, pixels), blanked, 0);
    return error ? error : rk_lower_combine(plan, op, RK_ELEMENTWISE_MAX, place, blanked, place, 0);
}

static int repeat_row(struct rk_plan *plan, uint32_t op, struct rk_cube image, uint32_t from, uint32_t to)
{
    return rk_lower_copy(plan, op, rk_cube_rows(plan, image, from, 1), rk_cube_rows(plan, image, to, 1));
}

/* `image` is replaced by itself with its border repeated. */
static int extend(struct rk_plan *plan, const struct rk_resize_pass *pass, struct rk_cube *image)
{
    struct rk_ones ones = extension_of(pass, *image);
    int error = rk_plan_cube(plan, ones.out.shape, &ones.out);
    if (!error)
        error = rk_lower_ones(plan, &ones);
    *image = ones.out;
    uint32_t w = image->shape.w, h = image->shape.h;
    if (!error && pass->x.after)
        error = repeat_column(plan, pass->op, *image, w - 2, w - 1);
    if (!error && pass->x.before)
        error = repeat_column(plan, pass->op, *image, 1, 0);
    if (!error && pass->y.after)
        error = repeat_row(plan, pass->op, *image, h - 2, h - 1);
    if (!error && pass->y.before)
        error = repeat_row(plan, pass->op, *image, 1, 0);
    return error;
}

static int spread(struct rk_plan *plan, const struct rk_resize_pass *pass, struct rk_cube in, struct rk_cube out)
{
    struct rk_phases phases;
    if (rk_resize_phases(plan->chip, pass, in, &phases))
        return rk_lower_phases(plan, pass, &phases, out);
    const struct rk_resize_axis *x = &pass->x, *y = &pass->y;
    struct rk_weighted weighted = rk_resize_spreading(pass, in);
    struct rk_matrix matrix;
    weighted.out = out;
    int error = rk_matrix_new(plan, &weighted, &matrix);
    if (error)
        return error;
    for (uint32_t c = 0; c < pass->channels; c++)
        for (uint32_t row = 0; row < y->kernel; row++)
            for (uint32_t column = 0; column < x->kernel; column++)
                rk_matrix_set(&matrix, c, row, column, c, (int8_t)(y->weights[row] * x->weights[column]));
    return rk_lower_matrix(plan, &matrix, 1.0 / ((double)x->unit * y->unit));
}

/* The one pixel, as a row that is longer than the image at most. */
static int repeat_pixel(struct rk_plan *plan, const struct rk_resize_pass *pass, struct rk_cube in, struct rk_cube out)
{
    struct rk_cube repeated;
    int error = rk_lower_broadcast(plan, pass->op, in, pass->zero, out.shape, &repeated);
    return error ? error : rk_lower_copy(plan, pass->op, repeated, out);
}

static int lower_pass(struct rk_plan *plan, const struct rk_resize_pass *pass, struct rk_cube in, struct rk_cube out)
{
    int error = 0;
    if (rk_resize_is_smaller(pass)) {
        struct rk_ones ones = taking_of(pass, plan->chip, in);
        ones.out = out;
        return rk_lower_ones(plan, &ones);
    }
    if (is_extended(pass))
        error = extend(plan, pass, &in);
    return error ? error : spread(plan, pass, in, out);
}

int rk_lower_resize(struct rk_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    struct rk_resize resize;
    struct rk_cube in, out;
    const char *problem = rk_resize_describe(plan->graph, op_index, &resize);
    if (problem)
        return mica_fail(plan->log, -ENOTSUP, "%s can't run: %s", op->type, problem);
    int error = rk_plan_value(plan, (uint32_t)op->inputs[0], &in);
    if (!error)
        error = rk_plan_result(plan, (uint32_t)op->outputs[0], &out);
    if (error)
        return error;
    if (resize.repeats)
        return repeat_pixel(plan, &resize.passes[0], in, out);
    for (uint32_t i = 0; !error && i < resize.count; i++) {
        struct rk_cube next = out;
        if (i + 1 < resize.count)
            error = rk_plan_cube(plan, rk_resize_out(&resize.passes[i]), &next);
        if (!error)
            error = lower_pass(plan, &resize.passes[i], in, next);
        in = next;
    }
    return error;
}
