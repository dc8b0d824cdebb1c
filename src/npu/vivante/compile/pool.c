/* SPDX-License-Identifier: MIT */
/*
 * Averages are depthwise convolutions with weights of 1 and the divisor in the
 * multiplier. Where the window is the whole image, planes are folded to small
 * ones that a kernel covers, so that images of any size will do. Maxima are
 * the TP cores' (specification, section 4.4a).
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

double viv_average_factor(const struct mica_graph *graph, const struct mica_op *op)
{
    struct mica_op average = viv_average_op(graph, op);
    double area = (double)average.window.kernel_x * average.window.kernel_y;
    double scales = (double)mica_op_input(graph, op, 0)->quant.scale[0] / mica_op_output(graph, op, 0)->quant.scale[0];
    return scales / area;
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
                    weights->owned[at] = weights->map[phase][tap] >= 0;
                    weights->bias[k] +=
                        (uint32_t)(weights->owned[at] * ((int32_t)plan->chip->bias_input_zero - in_zero));
                }
    return 0;
}

/* Planes of k x k pixels, one behind the other, that make a channel's plane: a dense kernel over them is one output. */
static int lower_global(struct viv_plan *plan, uint32_t op_index, struct viv_nn *nn, struct viv_weights *weights)
{
    const struct mica_tensor *in = mica_op_input(plan->graph, &plan->graph->ops[op_index], 0);
    uint32_t pixels = (uint32_t)(in->dims[1] * in->dims[2]), size = viv_fully_connected_kernel(plan->chip, pixels);
    bool single = pixels % (size * size) != 0 || size == 1; /* planes of one pixel, under a 2x2 kernel with one tap */
    uint32_t side = single ? 1 : size;
    nn->kernel_w = nn->kernel_h = single ? 2 : size;
    nn->in_w = nn->in_h = nn->in_x_stride = nn->in_y_stride = side;
    nn->out_w = nn->out_h = nn->out_x_stride = nn->out_y_stride = 1;
    weights->taps = nn->kernel_w * nn->kernel_h;
    weights->channels = pixels / (side * side);
    weights->phases = 1;
    for (uint32_t tap = 0; tap < weights->taps; tap++)
        weights->map[0][tap] = single && tap ? -1 : (int16_t)tap;
    weights->diagonal = true;
    int error = viv_need_planar(plan, (uint32_t)plan->graph->ops[op_index].inputs[0], op_index, &nn->in);
    if (!error)
        error = fill_ones(plan, weights, nn->in_zero_point);
    return error ? error : viv_depthwise_groups(plan, op_index, weights, *nn, 0);
}

static int lower_windows(struct viv_plan *plan, uint32_t op_index, const struct mica_op *average, struct viv_nn *nn,
                         struct viv_weights *weights)
{
    struct viv_window window;
    char reason[192];
    if (!viv_window_make(plan->chip, plan->graph, average, &window, reason, sizeof(reason)))
        return mica_fail(plan->log, -ENOTSUP, "%s", reason);
    viv_conv_geometry(&window, nn);
    viv_window_map(plan->chip, &window, &average->window, weights);
    weights->channels = 1;
    weights->diagonal = !plan->chip->hardware_depthwise;
    int error = viv_conv_input(plan, op_index, &window, &nn->in);
    if (!error)
        error = fill_ones(plan, weights, nn->in_zero_point);
    if (error)
        return error;
    return weights->diagonal ? viv_depthwise_groups(plan, op_index, weights, *nn, 0)
                             : viv_depthwise_job(plan, op_index, weights, *nn, 0);
}

int viv_lower_average(struct viv_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    const struct mica_tensor *in = mica_op_input(plan->graph, op, 0), *out = mica_op_output(plan->graph, op, 0);
    struct mica_op average = viv_average_op(plan->graph, op);
    struct viv_bounds bounds = viv_bounds_of(average.window.activation, out);
    struct viv_requant requant;
    struct viv_nn nn = {.in_zero_point = viv_zero_point(in)};
    if (!viv_requant_factor(plan->chip, viv_average_factor(plan->graph, op), &requant))
        return mica_fail(plan->log, -ENOTSUP, "the scales of %s \"%s\" do not fit the NN cores", op->type, out->name);
    nn.post_multiplier = requant.multiplier;
    nn.post_shift = requant.shift;
    viv_clamp_first(bounds, viv_zero_point(out), &nn.out_zero_point, &nn.relu);
    int error = viv_make_planar(plan, (uint32_t)op->outputs[0], &nn.out);
    if (!error)
        error = viv_clamp_begin(plan, op, bounds, &nn.out);
    struct viv_weights *weights = error ? NULL : viv_plan_weights(plan, &nn.weights);
    if (!weights)
        return error ? error : -ENOMEM;
    weights->kernels = (uint32_t)in->dims[3];
    return viv_average_global(plan->graph, &average) ? lower_global(plan, op_index, &nn, weights)
                                                     : lower_windows(plan, op_index, &average, &nn, weights);
}

/* ---- maxima --------------------------------------------------------------------- */

/* The image with columns and rows of the smallest value around it, where windows stick out. */
static int pad_lowest(struct viv_plan *plan, uint32_t op, const struct mica_padding *padding, struct viv_shape *shape,
                      struct viv_ref *ref)
{
    struct viv_ref in = *ref;
    if (!padding->left && !padding->top && !padding->right && !padding->bottom)
        return 0;
    uint32_t w = shape->w + (uint32_t)(padding->left + padding->right);
    uint32_t h = shape->h + (uint32_t)(padding->top + padding->bottom);
    int error = viv_plan_storage(plan, (uint64_t)w * h * shape->c, ref);
    if (!error)
        error = viv_tp_pad(plan, op, *shape, padding, in, *ref, 0);
    shape->w = w;
    shape->h = h;
    return error;
}

/* How much of an image its windows see. */
static int32_t seen(int32_t outputs, int32_t stride, int32_t kernel)
{
    return (outputs - 1) * stride + kernel;
}

/* One job; *shape and *ref become its output's. `last`: where that is, NULL: a new storage. */
static int pool_once(struct viv_plan *plan, uint32_t op, uint32_t size, uint32_t step, const struct viv_ref *last,
                     struct viv_shape *shape, struct viv_ref *ref)
{
    struct viv_shape out = {(shape->w - size) / step + 1, (shape->h - size) / step + 1, shape->c};
    struct viv_ref in = *ref;
    int error = 0;
    if (last)
        *ref = *last;
    else
        error = viv_plan_storage(plan, (uint64_t)out.w * out.h * out.c, ref);
    if (!error)
        error = viv_tp_max_pool(plan, op, *shape, size, step, in, *ref);
    *shape = out;
    return error;
}

/* The windows; for a maximum of all rows and columns, one that is a square around them. */
struct mica_window viv_maximum_window(const struct mica_graph *graph, const struct mica_op *op)
{
    const struct mica_tensor *in = mica_op_input(graph, op, 0);
    int32_t size = in->dims[1] > in->dims[2] ? in->dims[1] : in->dims[2];
    if (op->kind == MICA_OP_MAX_POOL_2D)
        return op->window;
    return (struct mica_window){.kernel_x = size, .kernel_y = size, .stride_x = 1, .stride_y = 1};
}

/* Windows of k: of 3 and 2 with step 1, as long as they are needed, the last with the step. */
int viv_lower_max_pool(struct viv_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    const struct mica_tensor *in = mica_op_input(plan->graph, op, 0), *out = mica_op_output(plan->graph, op, 0);
    const struct mica_window window = viv_maximum_window(plan->graph, op), *w = &window;
    struct viv_shape shape = viv_shape_of(in);
    struct mica_padding padding = {.left = w->padding.left, .top = w->padding.top};
    bool one = out->bytes == shape.c;
    int32_t right = seen(one ? 1 : out->dims[2], w->stride_x, w->kernel_x) - padding.left - in->dims[2];
    int32_t bottom = seen(one ? 1 : out->dims[1], w->stride_y, w->kernel_y) - padding.top - in->dims[1];
    padding.right = right > 0 ? right : 0;
    padding.bottom = bottom > 0 ? bottom : 0;
    struct viv_ref ref, to;
    int error = viv_need_planar(plan, (uint32_t)op->inputs[0], op_index, &ref);
    if (!error)
        error = viv_make_planar(plan, (uint32_t)op->outputs[0], &to);
    if (!error)
        error = viv_clamp_begin(plan, op, viv_bounds_of(w->activation, out), &to);
    if (!error)
        error = pad_lowest(plan, op_index, &padding, &shape, &ref);
    int32_t left = w->kernel_x;
    while (!error && left > 3) { /* a window of k after one of m is one of k + m - 1 */
        error = pool_once(plan, op_index, left > 4 ? 3 : 2, 1, NULL, &shape, &ref);
        left -= left > 4 ? 2 : 1;
    }
    return error ? error
                 : pool_once(plan, op_index, (uint32_t)left, one ? 1 : (uint32_t)w->stride_x, &to, &shape, &ref);
}
