/* SPDX-License-Identifier: MIT */
/*
 * Maxima of windows. Squares are chains of the 2x2 and 3x3 ones that the TP cores have (specification, section 4.4a);
 * others are maxima of shifted images. The lowest byte, 0, pads.
 */
#include <errno.h>

#include "npu/vivante/compile/box.h"
#include "npu/vivante/compile/compose.h"
#include "npu/vivante/compile/elementwise.h"
#include "npu/vivante/compile/maximum.h"
#include "npu/vivante/compile/query.h"
#include "npu/vivante/compile/window.h"
#include "util/checked.h"

#define MOST_PLANES 65535u

static int new_image(struct viv_plan *plan, struct viv_shape shape, struct viv_pixels *image)
{
    struct viv_ref ref;
    int error = viv_plan_storage(plan, (uint64_t)shape.w * shape.h * shape.c, &ref);
    *image = viv_pixels_packed(ref, shape);
    return error;
}

/* ---- windows ----------------------------------------------------------------------- */

/*
 * Windows of `taps` neighbours, `apart` bytes from one to the next: each round makes windows up to four times as
 * long, from overlapping ones of before.
 */
static int slide(struct viv_plan *plan, uint32_t op, uint32_t taps, bool rows, struct viv_pixels *image)
{
    uint32_t size = 1;
    int error = 0;
    while (!error && size < taps) {
        uint32_t next = 4 * size < taps ? 4 * size : taps;
        uint64_t offsets[4], apart = rows ? image->row : 1;
        for (uint32_t i = 0; i < 4; i++)
            offsets[i] = (i * size < next - size ? i * size : next - size) * apart;
        if (rows)
            image->shape.h -= next - size;
        else
            image->shape.w -= next - size;
        error = viv_maximum_reduce(plan, op, offsets, 4, image);
        size = next;
    }
    return error;
}

/* A window over lanes (window.h): tap k is place k / stride of phase k mod stride, planes of which are `phase` apart.
 */
static int reduce_lanes(struct viv_plan *plan, uint32_t op, uint32_t taps, uint32_t stride, uint64_t phase,
                        uint64_t place, struct viv_pixels *image)
{
    uint64_t offsets[VIV_MAX_WINDOW];
    for (uint32_t k = 0; k < taps; k++)
        offsets[k] = k % stride * phase + k / stride * place;
    return viv_maximum_reduce(plan, op, offsets, taps, image);
}

static int stepped(struct viv_plan *plan, uint32_t op, const struct mica_window *w, struct viv_shape out,
                   struct viv_pixels *image)
{
    struct viv_lanes x = {.stride = (uint32_t)w->stride_x, .groups = 1, .padding = w->padding.left};
    struct viv_lanes y = {.stride = (uint32_t)w->stride_y, .groups = 1, .padding = w->padding.top};
    x.columns = out.w + mica_cdiv((uint32_t)w->kernel_x, x.stride) - 1;
    y.columns = out.h + mica_cdiv((uint32_t)w->kernel_y, y.stride) - 1;
    uint64_t lane = (uint64_t)x.columns * y.columns;
    struct viv_ref lanes;
    int error = viv_plan_storage(plan, lane * x.stride * y.stride * out.c, &lanes);
    if (!error)
        error = viv_tp_lanes(plan, op, image->shape, image->shape.w * image->shape.h, &x, &y, 0, image->ref, lanes, 0);
    /* Along columns: what is left are planes a channel and row's phase. */
    *image = viv_pixels_packed(lanes, (struct viv_shape){out.w, y.columns, out.c * y.stride});
    image->row = x.columns;
    image->plane = lane * x.stride;
    if (!error)
        error = reduce_lanes(plan, op, (uint32_t)w->kernel_x, x.stride, lane, 1, image);
    image->shape = out;
    image->plane *= y.stride;
    return error ? error
                 : reduce_lanes(plan, op, (uint32_t)w->kernel_y, y.stride, image->plane / y.stride, image->row, image);
}

/* ---- squares ------------------------------------------------------------------------ */

static int pool_once(struct viv_plan *plan, uint32_t op, uint32_t size, uint32_t step, struct viv_pixels *image)
{
    struct viv_shape shape = image->shape;
    struct viv_ref in = image->ref;
    struct viv_shape out = {(shape.w - size) / step + 1, (shape.h - size) / step + 1, shape.c};
    int error = new_image(plan, out, image);
    return error ? error : viv_tp_max_pool(plan, op, shape, size, step, in, image->ref);
}

/* Windows of k: of 3 and 2 with step 1, as long as they are needed, the last with the step. */
static int pool_square(struct viv_plan *plan, uint32_t op, uint32_t size, uint32_t step, struct viv_pixels *image)
{
    int error = 0;
    while (!error && size > 3) { /* a window of k after one of m is one of k + m - 1 */
        error = pool_once(plan, op, size > 4 ? 3 : 2, 1, image);
        size -= size > 4 ? 2 : 1;
    }
    return error ? error : pool_once(plan, op, size, step, image);
}

/* The image with columns and rows of the smallest value around it, where windows stick out. */
static int pad_lowest(struct viv_plan *plan, uint32_t op, const struct mica_padding *padding, struct viv_pixels *image)
{
    struct viv_shape shape = image->shape;
    struct viv_ref in = image->ref;
    if (!padding->left && !padding->top && !padding->right && !padding->bottom)
        return 0;
    struct viv_shape padded = {shape.w + (uint32_t)(padding->left + padding->right),
                               shape.h + (uint32_t)(padding->top + padding->bottom), shape.c};
    int error = new_image(plan, padded, image);
    return error ? error : viv_tp_pad(plan, op, shape, padding, in, image->ref, 0);
}

/* How much of an image its windows see. */
static int32_t seen(int32_t outputs, int32_t stride, int32_t kernel)
{
    return (outputs - 1) * stride + kernel;
}

/* Paddings behind the image as windows need them; cuts off what none sees (an image whose rows are wider). */
static struct mica_padding paddings(const struct mica_window *w, struct viv_shape in, struct viv_shape out)
{
    struct mica_padding padding = {.left = w->padding.left, .top = w->padding.top};
    int32_t right = seen((int32_t)out.w, w->stride_x, w->kernel_x) - padding.left - (int32_t)in.w;
    int32_t bottom = seen((int32_t)out.h, w->stride_y, w->kernel_y) - padding.top - (int32_t)in.h;
    padding.right = right > 0 ? right : 0;
    padding.bottom = bottom > 0 ? bottom : 0;
    return padding;
}

/* A square of what both sides have, then the rest of the longer one. */
static int one_by_one(struct viv_plan *plan, uint32_t op, const struct mica_window *w, struct viv_shape out,
                      struct viv_pixels *image)
{
    uint32_t kernel_x = (uint32_t)w->kernel_x, kernel_y = (uint32_t)w->kernel_y;
    uint32_t square = kernel_x < kernel_y ? kernel_x : kernel_y;
    struct mica_padding padding = paddings(w, image->shape, out);
    int error = pad_lowest(plan, op, &padding, image);
    if (!error && square > 1 && square <= VIV_MAX_POOL) {
        error = pool_square(plan, op, square, 1, image);
        kernel_x -= square - 1;
        kernel_y -= square - 1;
    }
    if (!error)
        error = slide(plan, op, kernel_x, false, image);
    return error ? error : slide(plan, op, kernel_y, true, image);
}

/* Does a chain of the cores' own windows do? */
static bool is_square(const struct mica_window *w)
{
    return w->kernel_x == w->kernel_y && w->kernel_x > 1 && w->kernel_x <= VIV_MAX_POOL && w->stride_x == w->stride_y &&
           w->stride_x <= 2;
}

/* The stride of an axis with one output does not matter: the other's is as good. */
static struct mica_window window_of(const struct mica_op *op, struct viv_shape out)
{
    struct mica_window w = op->window;
    w.stride_x = out.w > 1 ? w.stride_x : out.h > 1 && w.stride_y <= 2 ? w.stride_y : 1;
    w.stride_y = out.h > 1 ? w.stride_y : w.stride_x <= 2 ? w.stride_x : 1;
    return w;
}

static int lower_window(struct viv_plan *plan, uint32_t op, const struct mica_window *w, struct viv_shape out,
                        struct viv_pixels *image)
{
    if (is_square(w)) {
        struct mica_padding padding = paddings(w, image->shape, out);
        int error = pad_lowest(plan, op, &padding, image);
        return error ? error : pool_square(plan, op, (uint32_t)w->kernel_x, (uint32_t)w->stride_x, image);
    }
    return w->stride_x == 1 && w->stride_y == 1 ? one_by_one(plan, op, w, out, image)
                                                : stepped(plan, op, w, out, image);
}

/* ---- the operation --------------------------------------------------------------------- */

/* What the moves and pools before can't do: the first step of a clamp (clamp.c). */
static int clamp(struct viv_plan *plan, uint32_t op, struct viv_bounds bounds, uint8_t zero, struct viv_ref in,
                 struct viv_ref out, uint64_t bytes)
{
    struct viv_elementwise same = {.inputs = 1, .weight = {1}, .in_zero = {zero}};
    viv_requant_factor(plan->chip, 1, &same.requant);
    viv_clamp_first(bounds, zero, &same.out_zero, &same.relu);
    return viv_elementwise_jobs(plan, op, &same, in, out, bytes);
}

/* The result's planes, of which the first rows and columns count, to where they belong. */
static int finish(struct viv_plan *plan, uint32_t op_index, struct viv_shape shape, struct viv_ref in,
                  const struct viv_pixels *image)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    const struct mica_tensor *out = mica_op_output(plan->graph, op, 0);
    struct viv_bounds bounds = viv_bounds_of(op->window.activation, out);
    bool clamped = bounds.low > 0 || bounds.high < 255;
    struct viv_ref to, exact;
    struct viv_box box = {0};
    int error = viv_make_planar(plan, (uint32_t)op->outputs[0], &to);
    exact = to;
    if (!error && clamped)
        error = viv_plan_storage(plan, out->bytes, &exact);
    if (!error && image->ref.storage != in.storage && image->row == shape.w && image->plane == shape.w * shape.h) {
        error = viv_place(plan, image->ref, out->bytes, exact, 0, 0, op_index);
    } else if (!error) {
        viv_box_add(&box, shape.c, image->plane, (uint64_t)shape.w * shape.h);
        viv_box_add(&box, shape.h, image->row, shape.w);
        viv_box_add(&box, shape.w, 1, 1);
        error = viv_box_lower(plan, op_index, &box, image->ref, exact, 0);
    }
    if (!error && clamped)
        error = viv_clamp_begin(plan, op, bounds, &to);
    return error || !clamped ? error : clamp(plan, op_index, bounds, viv_zero_point(out), exact, to, out->bytes);
}

int viv_lower_max_pool(struct viv_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    struct viv_shape in = viv_shape_of(mica_op_input(plan->graph, op, 0));
    struct viv_shape out = viv_shape_of(mica_op_output(plan->graph, op, 0));
    struct mica_window w = window_of(op, out);
    struct viv_ref planar;
    int error = viv_need_planar(plan, (uint32_t)op->inputs[0], op_index, &planar);
    struct viv_pixels image = viv_pixels_packed(planar, in);
    if (!error)
        error = lower_window(plan, op_index, &w, out, &image);
    return error ? error : finish(plan, op_index, out, planar, &image);
}

static bool check_size(const struct viv_query *query, const struct mica_window *w, struct viv_shape in,
                       struct viv_shape out)
{
    uint64_t columns = (uint64_t)out.w * (uint64_t)w->stride_x + (uint64_t)w->kernel_x;
    uint64_t rows = (uint64_t)out.h * (uint64_t)w->stride_y + (uint64_t)w->kernel_y;
    uint32_t taps = w->kernel_x > w->kernel_y ? (uint32_t)w->kernel_x : (uint32_t)w->kernel_y;
    bool small = w->stride_x <= 1 && w->stride_y <= 1; /* then windows grow in place */
    if (w->kernel_x > VIV_MAX_WINDOW || w->kernel_y > VIV_MAX_WINDOW)
        return viv_refuse(query, "windows of more than %d columns or rows are not supported", VIV_MAX_WINDOW);
    uint64_t bytes = columns * rows * out.c * (small || is_square(w) ? 1 : mica_cdiv(taps, 4));
    return (columns <= INT16_MAX / 2 && rows <= INT16_MAX / 2 && in.w <= INT16_MAX / 2 && in.h <= INT16_MAX / 2 &&
            (uint64_t)out.c * (uint64_t)w->stride_y <= MOST_PLANES && bytes <= MICA_MAX_TENSOR_BYTES) ||
           viv_refuse(query, "the image is too large for the TP cores");
}

bool viv_supports_max_pool(const struct viv_query *query)
{
    const struct mica_tensor *in = mica_op_input(query->graph, query->op, 0);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    if (!viv_check_image4(query, in, "input") || !viv_check_image4(query, out, "output"))
        return false;
    const struct mica_window window = window_of(query->op, viv_shape_of(out)), *w = &window;
    if (!viv_same_quantization(in, out))
        return viv_refuse(query, "input and output are quantized differently");
    if (w->padding.left < 0 || w->padding.top < 0)
        return viv_refuse(query, "padding %d, %d is negative", w->padding.left, w->padding.top);
    if (w->padding.left > VIV_MAX_WINDOW || w->padding.top > VIV_MAX_WINDOW)
        return viv_refuse(query, "padding of more than %d columns or rows is not supported", VIV_MAX_WINDOW);
    return check_size(query, w, viv_shape_of(in), viv_shape_of(out));
}
