/* SPDX-License-Identifier: MIT */
/*
 * Averages are depthwise convolutions with weights of 1 and the divisor in the
 * multiplier. Where the window is the whole image, planes are folded to small
 * ones that a kernel covers, so that images of any size will do.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "npu/vivante/compile/compose.h"
#include "npu/vivante/compile/conv.h"
#include "npu/vivante/compile/elementwise.h"
#include "util/checked.h"

/* Windows over columns and rows: of a mean those are the image. */
struct mica_op viv_average_op(const struct mica_graph *graph, const struct mica_op *op)
{
    const struct mica_tensor *in = mica_op_input(graph, op, 0);
    struct mica_op average = *op;
    average.kind = MICA_OP_DEPTHWISE_CONV_2D;
    if (op->kind != MICA_OP_AVERAGE_POOL_2D) {
        average.window = (struct mica_window){.kernel_x = in->dims[2], .kernel_y = in->dims[1]};
        average.window.stride_x = average.window.stride_y = 1;
    }
    average.window.dilation_x = average.window.dilation_y = 1;
    average.window.depth_multiplier = 1;
    return average;
}

bool viv_average_global(const struct mica_graph *graph, const struct mica_op *average)
{
    const struct mica_tensor *in = mica_op_input(graph, average, 0);
    const struct mica_window *w = &average->window;
    return w->kernel_x == in->dims[2] && w->kernel_y == in->dims[1] && !w->padding.left && !w->padding.top &&
           mica_op_output(graph, average, 0)->bytes == (size_t)in->dims[3];
}

double viv_average_factor(const struct mica_graph *graph, const struct mica_op *op, double pixels)
{
    return (double)mica_op_input(graph, op, 0)->quant.scale[0] / mica_op_output(graph, op, 0)->quant.scale[0] / pixels;
}

/* Weights of 1 where the map has taps; all are in place. */
static int fill_ones(struct viv_plan *plan, struct viv_weights *weights, uint8_t in_zero)
{
    size_t size = viv_weights_per_kernel(weights), at = 0;
    weights->owned = mica_new_array(weights->kernels, size);
    weights->bias = mica_new_array(weights->kernels, sizeof(*weights->bias));
    if (!weights->owned || !weights->bias)
        return mica_fail_nomem(plan->log);
    weights->source = weights->data = weights->owned;
    for (uint32_t k = 0; k < weights->kernels; k++)
        for (uint32_t z = 0; z < weights->channels; z++)
            for (uint32_t phase = 0; phase < weights->phases; phase++)
                for (uint32_t tap = 0; tap < weights->taps; tap++, at++) {
                    weights->owned[at] = viv_weights_tap(weights, phase, tap) >= 0;
                    weights->bias[k] +=
                        (uint32_t)(weights->owned[at] * ((int32_t)plan->chip->bias_input_zero - in_zero));
                }
    return 0;
}

/* The chip has it: viv_supports_average() has asked. */
static void set_factor(const struct viv_plan *plan, const struct mica_op *average, double pixels, struct viv_nn *nn)
{
    struct viv_requant requant = {0};
    viv_requant_factor(plan->chip, viv_average_factor(plan->graph, average, pixels), &requant);
    nn->post_multiplier = requant.multiplier;
    nn->post_shift = requant.shift;
}

/* Planes of k x k pixels, one behind the other, that make a channel's plane: a dense kernel over them is one output. */
static int lower_global(struct viv_plan *plan, uint32_t op_index, const struct mica_op *average, struct viv_nn *nn,
                        struct viv_weights *weights)
{
    const struct mica_tensor *in = mica_op_input(plan->graph, average, 0);
    uint32_t pixels = (uint32_t)(in->dims[1] * in->dims[2]), size = viv_fully_connected_kernel(plan->chip, pixels);
    bool single = pixels % (size * size) != 0 || size == 1; /* planes of one pixel, under a 2x2 kernel with one tap */
    uint32_t side = single ? 1 : size;
    nn->kernel_w = nn->kernel_h = single ? 2 : size;
    nn->in_w = nn->in_h = nn->in_x_stride = nn->in_y_stride = side;
    nn->out_w = nn->out_h = nn->out_x_stride = nn->out_y_stride = 1;
    weights->taps = nn->kernel_w * nn->kernel_h;
    weights->channels = pixels / (side * side);
    weights->phases = 1;
    set_factor(plan, average, pixels, nn);
    for (uint32_t tap = 0; tap < weights->taps; tap++)
        weights->map[0][tap] = single && tap ? -1 : (int16_t)tap;
    weights->diagonal = true;
    int error = viv_need_planar(plan, (uint32_t)plan->graph->ops[op_index].inputs[0], op_index, &nn->in);
    if (!error)
        error = fill_ones(plan, weights, nn->in_zero_point);
    return error ? error : viv_depthwise_groups(plan, op_index, weights, *nn, 0);
}

/* ---- windows that stick out of the image have fewer pixels to divide by --------------- */

static int32_t pixels_at(int32_t place, int32_t size, int32_t kernel, int32_t stride, int32_t padding)
{
    int32_t start = place * stride - padding, end = start + kernel;
    return (end < size ? end : size) - (start > 0 ? start : 0);
}

/* Outputs from `first` on whose windows have as many columns or rows of the image; the next that has not. */
static int32_t run_end(int32_t first, int32_t outputs, int32_t size, int32_t kernel, int32_t stride, int32_t padding)
{
    int32_t end = first + 1, pixels = pixels_at(first, size, kernel, stride, padding);
    while (end < outputs && pixels_at(end, size, kernel, stride, padding) == pixels)
        end++;
    return end;
}

bool viv_average_next(const struct mica_graph *graph, const struct mica_op *average, struct viv_average_area *area)
{
    const struct mica_tensor *in = mica_op_input(graph, average, 0), *out = mica_op_output(graph, average, 0);
    const struct mica_window *w = &average->window;
    int32_t columns = out->rank == 4 ? out->dims[2] : 1, rows = out->rank == 4 ? out->dims[1] : 1;
    area->x = area->x_end;
    if (area->x_end == columns || !area->y_end) {
        area->x = 0;
        area->y = area->y_end;
        if (area->y == rows)
            return false;
        area->y_end = run_end(area->y, rows, in->dims[1], w->kernel_y, w->stride_y, w->padding.top);
    }
    area->x_end = run_end(area->x, columns, in->dims[2], w->kernel_x, w->stride_x, w->padding.left);
    int32_t x = pixels_at(area->x, in->dims[2], w->kernel_x, w->stride_x, w->padding.left);
    int32_t y = pixels_at(area->y, in->dims[1], w->kernel_y, w->stride_y, w->padding.top);
    area->pixels = x > 0 && y > 0 ? (double)x * y : 0;
    return true;
}

/* The job of a part of the outputs: it begins further inside both images. */
static void select_area(const struct viv_average_area *area, struct viv_nn *nn)
{
    int32_t unit = nn->first_pixel ? 2 : 1, x = area->x * unit + nn->x_offset, y = area->y * unit + nn->y_offset;
    uint32_t column = x > 0 ? (uint32_t)x : 0, row = y > 0 ? (uint32_t)y : 0;
    nn->in.offset += (uint64_t)row * nn->in_x_stride + column;
    nn->in_w -= column;
    nn->in_h -= row;
    nn->x_offset = x - (int32_t)column;
    nn->y_offset = y - (int32_t)row;
    nn->out.offset += (uint64_t)area->y * nn->out_x_stride + (uint64_t)area->x;
    nn->out_w = (uint32_t)((area->x_end - area->x) * unit);
    nn->out_h = (uint32_t)((area->y_end - area->y) * unit);
}

static int lower_areas(struct viv_plan *plan, uint32_t op_index, const struct mica_op *average, const struct viv_nn *nn,
                       struct viv_weights *weights)
{
    struct viv_average_area area = {0};
    int error = 0;
    while (!error && viv_average_next(plan->graph, average, &area)) {
        struct viv_nn job = *nn;
        set_factor(plan, average, area.pixels, &job);
        select_area(&area, &job);
        error = weights->diagonal ? viv_depthwise_groups(plan, op_index, weights, job, 0)
                                  : viv_depthwise_job(plan, op_index, weights, job, 0);
    }
    return error;
}

static int lower_windows(struct viv_plan *plan, uint32_t op_index, const struct mica_op *average, struct viv_nn *nn,
                         struct viv_weights *weights)
{
    struct viv_window window;
    char reason[192];
    if (!viv_window_make(plan->chip, plan->graph, average, &window, reason, sizeof(reason)))
        return mica_fail(plan->log, -ENOTSUP, "%s", reason);
    viv_conv_geometry(&window, nn);
    if (!viv_window_map(plan->chip, &window, &average->window, weights))
        return mica_fail_nomem(plan->log);
    weights->channels = 1;
    weights->diagonal = !plan->chip->hardware_depthwise || window.lowering == VIV_LANES;
    int error = viv_conv_input(plan, op_index, &window, &nn->in);
    if (!error)
        error = fill_ones(plan, weights, nn->in_zero_point);
    return error ? error : lower_areas(plan, op_index, average, nn, weights);
}

int viv_lower_average(struct viv_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    const struct mica_tensor *in = mica_op_input(plan->graph, op, 0), *out = mica_op_output(plan->graph, op, 0);
    struct mica_op average = viv_average_op(plan->graph, op);
    struct viv_bounds bounds = viv_bounds_of(average.window.activation, out);
    struct viv_nn nn = {.in_zero_point = viv_zero_point(in)};
    viv_clamp_first(bounds, viv_zero_point(out), &nn.out_zero_point, &nn.relu);
    int error = viv_make_planar(plan, (uint32_t)op->outputs[0], &nn.out);
    if (!error)
        error = viv_clamp_begin(plan, op, bounds, &nn.out);
    struct viv_weights *weights = error ? NULL : viv_plan_weights(plan, &nn.weights);
    if (!weights)
        return error ? error : -ENOMEM;
    weights->kernels = (uint32_t)in->dims[3];
    return viv_average_global(plan->graph, &average) ? lower_global(plan, op_index, &average, &nn, weights)
                                                     : lower_windows(plan, op_index, &average, &nn, weights);
}
