/* SPDX-License-Identifier: MIT */
/* Which weights, strides and passes a RESIZE takes. */
#include "npu/rockchip/compile/resize.h"

/* The fraction bits of the reference's positions for int8: factors beyond them are not exact there. */
#define LARGEST_EXACT 1024u
#define LARGEST_SPREAD 8u /* of the transposed convolution (specification, section 12) */

static void set_box(struct rk_resize_axis *axis)
{
    axis->kernel = axis->spread;
    axis->pad = axis->spread - 1;
    axis->unit = 1;
    for (uint32_t i = 0; i < axis->kernel && i < RK_MAX_KERNEL; i++)
        axis->weights[i] = 1;
}

/* Pixel i of the input stands at i * spread; output pixel x, d behind it, takes spread - |d| of it. */
static void set_triangle(struct rk_resize_axis *axis)
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
static void set_half_triangle(struct rk_resize_axis *axis)
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

static const char *set_nearest(struct rk_resize_axis *axis, const struct mica_resize *how)
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

static const char *set_bilinear(struct rk_resize_axis *axis, const struct mica_resize *how)
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

static const char *set_axis(const struct mica_op *op, bool is_int8, uint32_t in, uint32_t out,
                            struct rk_resize_axis *axis)
{
    *axis =
        (struct rk_resize_axis){.in = in, .out = out, .spread = 1, .step = 1, .kernel = 1, .weights = {1}, .unit = 1};
    if (op->kind == MICA_OP_RESIZE_NEAREST)
        return set_nearest(axis, &op->resize);
    const char *problem = set_bilinear(axis, &op->resize);
    if (!problem && is_int8 && LARGEST_EXACT % axis->spread)
        problem = "the reference's positions for int8 are exact for factors that are powers of two only";
    return problem;
}

/* The largest weight is the product of the axes' largest ones. */
static bool weights_fit(const struct rk_resize_pass *pass)
{
    uint32_t largest[2] = {0};
    const struct rk_resize_axis *axes[2] = {&pass->x, &pass->y};
    for (int a = 0; a < 2; a++)
        for (uint32_t i = 0; i < axes[a]->kernel && i < RK_MAX_KERNEL; i++)
            if (axes[a]->weights[i] > largest[a])
                largest[a] = axes[a]->weights[i];
    return largest[0] * largest[1] <= INT8_MAX;
}

/* Both axes of a pass. */
static const char *set_pass(const struct mica_graph *graph, uint32_t op_index, struct rk_shape from, struct rk_shape to,
                            struct rk_resize_pass *pass)
{
    const struct mica_op *op = &graph->ops[op_index];
    const struct mica_tensor *in = mica_op_input(graph, op, 0);
    bool is_int8 = in->type == MICA_TYPE_INT8;
    *pass = (struct rk_resize_pass){.op = op_index, .channels = from.c, .zero = rk_stored_zero(in)};
    const char *problem = set_axis(op, is_int8, from.w, to.w, &pass->x);
    if (!problem)
        problem = set_axis(op, is_int8, from.h, to.h, &pass->y);
    if (problem)
        return problem;
    bool larger = pass->x.spread > 1 || pass->y.spread > 1, smaller = pass->x.step > 1 || pass->y.step > 1;
    return larger && smaller ? "it makes one side larger and the other smaller" : NULL;
}

static bool is_possible(const struct rk_resize_pass *pass)
{
    const struct rk_resize_axis *axes[2] = {&pass->x, &pass->y};
    for (int a = 0; a < 2; a++)
        if (axes[a]->kernel > RK_MAX_KERNEL || axes[a]->spread > LARGEST_SPREAD)
            return false;
    return weights_fit(pass);
}

static bool is_power_of_two(uint32_t factor)
{
    return (factor & (factor - 1)) == 0;
}

/* What is between two passes along an axis: about the root of the factor for each, the larger one first. */
static uint32_t size_between(const struct rk_resize_axis *axis, bool align_corners)
{
    uint32_t first = 1;
    while (first * first < axis->spread)
        first *= 2;
    return align_corners ? (axis->in - 1) * first + 1 : axis->in * first;
}

static struct rk_shape shape_between(const struct mica_op *op, const struct rk_resize_pass *pass)
{
    if (op->kind == MICA_OP_RESIZE_BILINEAR && op->resize.half_pixel_centers)
        return (struct rk_shape){pass->x.out, pass->y.in, pass->channels};
    bool align = op->resize.align_corners;
    return (struct rk_shape){size_between(&pass->x, align), size_between(&pass->y, align), pass->channels};
}

const char *rk_resize_describe(const struct mica_graph *graph, uint32_t op_index, struct rk_resize *resize)
{
    const struct mica_op *op = &graph->ops[op_index];
    struct rk_shape from = rk_shape_of(mica_op_input(graph, op, 0)), to = rk_shape_of(mica_op_output(graph, op, 0));
    struct rk_resize_pass *passes = resize->passes;
    *resize = (struct rk_resize){.count = 1, .repeats = from.w == 1 && from.h == 1};
    if (resize->repeats) {
        passes[0] = (struct rk_resize_pass){.op = op_index, .channels = from.c};
        passes[0].zero = rk_stored_zero(mica_op_input(graph, op, 0));
        passes[0].x.out = to.w;
        passes[0].y.out = to.h;
        return NULL;
    }
    const char *problem = set_pass(graph, op_index, from, to, &passes[0]);
    if (problem || is_possible(&passes[0]) || !is_power_of_two(passes[0].x.spread) ||
        !is_power_of_two(passes[0].y.spread))
        return problem;
    struct rk_shape between = shape_between(op, &passes[0]);
    resize->count = RK_RESIZE_PASSES;
    problem = set_pass(graph, op_index, from, between, &passes[0]);
    if (!problem)
        problem = set_pass(graph, op_index, between, to, &passes[1]);
    if (!problem && !(is_possible(&passes[0]) && is_possible(&passes[1])))
        problem = "the factor is too large for two passes with 8-bit weights";
    return problem;
}

/* ---- steps ------------------------------------------------------------------------ */

bool rk_resize_is_smaller(const struct rk_resize_pass *pass)
{
    return pass->x.step > 1 || pass->y.step > 1;
}

struct rk_shape rk_resize_out(const struct rk_resize_pass *pass)
{
    return (struct rk_shape){pass->x.out, pass->y.out, pass->channels};
}

struct rk_weighted rk_resize_spreading(const struct rk_resize_pass *pass, struct rk_cube in)
{
    const struct rk_resize_axis *x = &pass->x, *y = &pass->y;
    struct rk_weighted weighted = rk_weighted_plain(pass->op, in, (struct rk_cube){.shape = rk_resize_out(pass)});
    weighted.kernel_w = x->kernel;
    weighted.kernel_h = y->kernel;
    weighted.spread_x = x->spread;
    weighted.spread_y = y->spread;
    weighted.pad_left = (int32_t)x->pad;
    weighted.pad_top = (int32_t)y->pad;
    weighted.in_zero = weighted.out_zero = pass->zero;
    return weighted;
}
