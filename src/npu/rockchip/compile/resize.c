/* SPDX-License-Identifier: MIT */
/*
 * RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR by whole factors. Larger: a transposed convolution with weights of 1, or
 * with those of a triangle, whose positions are exact. The reference repeats the image's border where a pixel lies
 * beyond the middle of its last one; there the image is extended by a copy of its border first. Smaller (nearest):
 * a strided convolution. Nearest is exact; bilinear is rounded once from the exact value, within 1 of the reference,
 * which for int8 has positions of 10 fraction bits: factors that are powers of two are exact in those.
 */
#include <errno.h>

#include "npu/rockchip/compile/broadcast.h"
#include "npu/rockchip/compile/dpu_task.h"
#include "npu/rockchip/compile/move.h"
#include "npu/rockchip/compile/refuse.h"
#include "npu/rockchip/compile/select.h"

/* The fraction bits of the reference's positions for int8: factors beyond them are not exact there. */
#define LARGEST_EXACT 1024u

/* One axis: pixels are `spread` apart and weighted, or every `step`th is taken. */
struct axis {
    uint32_t in, out;
    uint32_t spread, step, first;
    uint32_t before, after; /* repeated border pixels */
    uint32_t kernel, pad;
    uint32_t weights[RK_MAX_KERNEL], unit; /* weights are in 1 / unit */
};

struct resize {
    uint32_t op;
    struct axis x, y;
    uint32_t channels;
    int32_t zero;
    bool repeats; /* the one pixel of the input is everywhere */
};

static void set_box(struct axis *axis)
{
    axis->kernel = axis->spread;
    axis->pad = axis->spread - 1;
    axis->unit = 1;
    for (uint32_t i = 0; i < axis->kernel && i < RK_MAX_KERNEL; i++)
        axis->weights[i] = 1;
}

/* Pixel i of the input stands at i * spread; output pixel x, d behind it, takes spread - |d| of it. */
static void set_triangle(struct axis *axis)
{
    axis->kernel = 2 * axis->spread - 1;
    axis->pad = axis->spread - 1;
    axis->unit = axis->spread;
    for (uint32_t i = 0; i < axis->kernel && i < RK_MAX_KERNEL; i++)
        axis->weights[i] = i < axis->spread ? i + 1 : axis->kernel - i;
}

/*
 * With half pixels it takes 2 spread - |2 d + 1 - spread|, in units of half as much, for d from about -spread / 2 on.
 * The image is extended by a pixel on its left, so that output pixel 0 is a whole spread behind its first one.
 */
static void set_half_triangle(struct axis *axis)
{
    int32_t s = (int32_t)axis->spread, last = (3 * s) / 2 - (s % 2 == 0), first = s % 2 ? -(s - 1) / 2 : -s / 2;
    axis->before = axis->after = 1;
    axis->kernel = (uint32_t)(last - first + 1);
    axis->pad = (uint32_t)(last - s);
    axis->unit = 2 * axis->spread;
    for (int32_t i = 0; i < (int32_t)axis->kernel && i < (int32_t)RK_MAX_KERNEL; i++) {
        int32_t distance = 2 * (last - i) + 1 - s;
        axis->weights[i] = (uint32_t)(2 * s - (distance < 0 ? -distance : distance));
    }
}

static const char *set_nearest(struct axis *axis, const struct mica_resize *how)
{
    if (axis->out % axis->in == 0 && (!how->align_corners || axis->out == axis->in)) {
        axis->spread = axis->out / axis->in;
        set_box(axis);
        return NULL;
    }
    if (axis->in % axis->out == 0 && !how->align_corners) {
        axis->step = axis->in / axis->out;
        axis->first = how->half_pixel_centers ? axis->step / 2 : 0;
        return NULL;
    }
    return how->align_corners ? "with aligned corners the nearest pixels are at uneven distances"
                              : "the sizes are no whole multiples of each other";
}

static const char *set_bilinear(struct axis *axis, const struct mica_resize *how)
{
    uint32_t in = axis->in, out = axis->out;
    if (in == out) {
        set_box(axis);
        return NULL;
    }
    if (how->align_corners) {
        if (in < 2 || out < in || (out - 1) % (in - 1))
            return "with aligned corners the distances between pixels have to be whole fractions of the input's";
        axis->spread = (out - 1) / (in - 1);
        set_triangle(axis);
        return NULL;
    }
    if (out % in)
        return "the output is no whole multiple of the input";
    axis->spread = out / in;
    if (how->half_pixel_centers) {
        set_half_triangle(axis);
    } else {
        set_triangle(axis);
        axis->after = 1;
    }
    return NULL;
}

static const char *set_axis(const struct mica_op *op, bool is_int8, uint32_t in, uint32_t out, struct axis *axis)
{
    *axis = (struct axis){.in = in, .out = out, .spread = 1, .step = 1, .kernel = 1, .weights = {1}, .unit = 1};
    if (op->kind == MICA_OP_RESIZE_NEAREST)
        return set_nearest(axis, &op->resize);
    const char *problem = set_bilinear(axis, &op->resize);
    if (!problem && is_int8 && LARGEST_EXACT % axis->spread)
        problem = "the reference's positions for int8 are exact for factors that are powers of two only";
    return problem;
}

/* The largest weight is the product of the axes' largest ones. */
static bool weights_fit(const struct resize *resize)
{
    uint32_t largest[2] = {0};
    const struct axis *axes[2] = {&resize->x, &resize->y};
    for (int a = 0; a < 2; a++)
        for (uint32_t i = 0; i < axes[a]->kernel && i < RK_MAX_KERNEL; i++)
            if (axes[a]->weights[i] > largest[a])
                largest[a] = axes[a]->weights[i];
    return largest[0] * largest[1] <= INT8_MAX;
}

static const char *describe(const struct mica_graph *graph, uint32_t op_index, struct resize *resize)
{
    const struct mica_op *op = &graph->ops[op_index];
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *out = mica_op_output(graph, op, 0);
    struct rk_shape from = rk_shape_of(in), to = rk_shape_of(out);
    bool is_int8 = in->type == MICA_TYPE_INT8;
    *resize = (struct resize){.op = op_index, .channels = from.c, .zero = rk_stored_zero(in)};
    resize->repeats = from.w == 1 && from.h == 1;
    if (resize->repeats) {
        resize->x.out = to.w;
        resize->y.out = to.h;
        return NULL;
    }
    const char *problem = set_axis(op, is_int8, from.w, to.w, &resize->x);
    if (!problem)
        problem = set_axis(op, is_int8, from.h, to.h, &resize->y);
    if (problem)
        return problem;
    if (resize->x.kernel > RK_MAX_KERNEL || resize->y.kernel > RK_MAX_KERNEL || !weights_fit(resize))
        return "the factor is too large for 8-bit weights";
    bool larger = resize->x.spread > 1 || resize->y.spread > 1, smaller = resize->x.step > 1 || resize->y.step > 1;
    return larger && smaller ? "it makes one side larger and the other smaller" : NULL;
}

/* ---- steps ------------------------------------------------------------------------ */

static bool is_smaller(const struct resize *resize)
{
    return resize->x.step > 1 || resize->y.step > 1;
}

static bool is_extended(const struct resize *resize)
{
    return resize->x.before || resize->x.after || resize->y.before || resize->y.after;
}

static struct rk_shape out_shape(const struct resize *resize)
{
    return (struct rk_shape){resize->x.out, resize->y.out, resize->channels};
}

/* Every step-th pixel, from the first one on. */
static struct rk_ones taking_of(const struct resize *resize, const struct rk_chip *chip, struct rk_cube in)
{
    const struct axis *x = &resize->x, *y = &resize->y;
    in.at.offset += y->first * in.line + (uint64_t)x->first * chip->atom;
    in.shape.w = (x->out - 1) * x->step + 1;
    in.shape.h = (y->out - 1) * y->step + 1;
    struct rk_ones ones = rk_ones_identity(resize->op, in, (struct rk_cube){.shape = out_shape(resize)});
    ones.stride_x = x->out == 1 ? 1 : x->step;
    ones.stride_y = y->out == 1 ? 1 : y->step;
    return ones;
}

/* The image with room for its border, which holds what no maximum takes. */
static struct rk_ones extension_of(const struct resize *resize, struct rk_cube in)
{
    const struct axis *x = &resize->x, *y = &resize->y;
    struct rk_cube out = {.shape = {in.shape.w + x->before + x->after, in.shape.h + y->before + y->after, in.shape.c}};
    struct rk_ones ones = rk_ones_identity(resize->op, in, out);
    ones.pad_left = (int32_t)x->before;
    ones.pad_top = (int32_t)y->before;
    ones.in_zero = ones.out_zero = INT8_MIN;
    return ones;
}

static struct rk_weighted spreading_of(const struct resize *resize, struct rk_cube in)
{
    const struct axis *x = &resize->x, *y = &resize->y;
    struct rk_weighted weighted = rk_weighted_plain(resize->op, in, (struct rk_cube){.shape = out_shape(resize)});
    weighted.kernel_w = x->kernel;
    weighted.kernel_h = y->kernel;
    weighted.spread_x = x->spread;
    weighted.spread_y = y->spread;
    weighted.pad_left = (int32_t)x->pad;
    weighted.pad_top = (int32_t)y->pad;
    weighted.in_zero = weighted.out_zero = resize->zero;
    return weighted;
}

static const char *steps_problem(const struct rk_chip *chip, const struct resize *resize)
{
    struct rk_cube in = {.shape = {resize->x.in, resize->y.in, resize->channels}};
    if (resize->repeats)
        return rk_broadcast_problem(chip, (struct rk_shape){1, 1, resize->channels}, out_shape(resize));
    if (is_smaller(resize)) {
        struct rk_ones ones = taking_of(resize, chip, in);
        return rk_ones_problem(chip, &ones);
    }
    if (is_extended(resize)) {
        struct rk_ones ones = extension_of(resize, in);
        const char *problem = rk_ones_problem(chip, &ones);
        if (problem)
            return problem;
        in = ones.out;
    }
    struct rk_weighted weighted = spreading_of(resize, in);
    return rk_matrix_problem(chip, &weighted);
}

int rk_supports_resize(const struct rk_chip *chip, const struct mica_graph *graph, uint32_t op_index, char *reason,
                       size_t size)
{
    const struct mica_op *op = &graph->ops[op_index];
    struct resize resize;
    if (rk_check_tensors(graph, op, 0, 1, reason, size))
        return -ENOTSUP;
    const struct mica_tensor *in = mica_op_input(graph, op, 0);
    const char *problem = rk_image_problem(in);
    if (!problem && !rk_same_quantization(in, mica_op_output(graph, op, 0)))
        problem = "input and output are quantized differently";
    if (!problem)
        problem = describe(graph, op_index, &resize);
    if (!problem)
        problem = steps_problem(chip, &resize);
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
static int extend(struct rk_plan *plan, const struct resize *resize, struct rk_cube *image)
{
    struct rk_ones ones = extension_of(resize, *image);
    int error = rk_plan_cube(plan, ones.out.shape, &ones.out);
    if (!error)
        error = rk_lower_ones(plan, &ones);
    *image = ones.out;
    uint32_t w = image->shape.w, h = image->shape.h;
    if (!error && resize->x.after)
        error = repeat_column(plan, resize->op, *image, w - 2, w - 1);
    if (!error && resize->x.before)
        error = repeat_column(plan, resize->op, *image, 1, 0);
    if (!error && resize->y.after)
        error = repeat_row(plan, resize->op, *image, h - 2, h - 1);
    if (!error && resize->y.before)
        error = repeat_row(plan, resize->op, *image, 1, 0);
    return error;
}

static int spread(struct rk_plan *plan, const struct resize *resize, struct rk_cube in, struct rk_cube out)
{
    const struct axis *x = &resize->x, *y = &resize->y;
    struct rk_weighted weighted = spreading_of(resize, in);
    struct rk_matrix matrix;
    weighted.out = out;
    int error = rk_matrix_new(plan, &weighted, &matrix);
    if (error)
        return error;
    for (uint32_t c = 0; c < resize->channels; c++)
        for (uint32_t row = 0; row < y->kernel; row++)
            for (uint32_t column = 0; column < x->kernel; column++)
                rk_matrix_set(&matrix, c, row, column, c, (int8_t)(y->weights[row] * x->weights[column]));
    return rk_lower_matrix(plan, &matrix, 1.0 / ((double)x->unit * y->unit));
}

/* The one pixel, as a row that is longer than the image at most. */
static int repeat_pixel(struct rk_plan *plan, const struct resize *resize, struct rk_cube in, struct rk_cube out)
{
    struct rk_cube repeated;
    int error = rk_lower_broadcast(plan, resize->op, in, resize->zero, out.shape, &repeated);
    return error ? error : rk_lower_copy(plan, resize->op, repeated, out);
}

int rk_lower_resize(struct rk_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    struct resize resize;
    struct rk_cube in, out;
    const char *problem = describe(plan->graph, op_index, &resize);
    if (problem)
        return mica_fail(plan->log, -ENOTSUP, "%s can't run: %s", op->type, problem);
    int error = rk_plan_value(plan, (uint32_t)op->inputs[0], &in);
    if (!error)
        error = rk_plan_result(plan, (uint32_t)op->outputs[0], &out);
    if (error)
        return error;
    if (resize.repeats)
        return repeat_pixel(plan, &resize, in, out);
    if (is_smaller(&resize)) {
        struct rk_ones ones = taking_of(&resize, plan->chip, in);
        ones.out = out;
        return rk_lower_ones(plan, &ones);
    }
    if (is_extended(&resize))
        error = extend(plan, &resize, &in);
    return error ? error : spread(plan, &resize, in, out);
}
