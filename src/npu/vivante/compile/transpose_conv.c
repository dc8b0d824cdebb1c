/* SPDX-License-Identifier: MIT */
/*
 * Transposed convolutions: the outputs of each phase of the stride are a
 * convolution of their own, with the taps that meet an input there; then a
 * move puts them between those of the other phases.
 */
#include <errno.h>

#include "npu/vivante/compile/box.h"
#include "npu/vivante/compile/channels.h"
#include "npu/vivante/compile/coef.h"
#include "npu/vivante/compile/compose.h"
#include "npu/vivante/compile/conv.h"
#include "npu/vivante/compile/elementwise.h"
#include "npu/vivante/compile/tile.h"
#include "util/checked.h"

/* Taps first + stride * (count - 1 - i) for i from 0, at input place output + offset + i. */
struct phase {
    int32_t outputs, first, count, offset;
};

static struct phase phase_of(int32_t phase, int32_t stride, int32_t padding, int32_t kernel, int32_t size)
{
    struct phase result = {.outputs = size > phase ? (size - phase + stride - 1) / stride : 0};
    result.first = (phase + padding) % stride;
    result.count = kernel > result.first ? (kernel - result.first + stride - 1) / stride : 0;
    result.offset = (phase + padding - result.first) / stride - result.count + 1;
    return result;
}

/* Kernels are square; one without taps is a single zero. */
static int32_t kernel_size(const struct phase *x, const struct phase *y, uint32_t channels)
{
    int32_t size = x->count > y->count ? x->count : y->count, least = channels == 1 ? 2 : 1;
    return size > least ? size : least;
}

bool viv_transpose_conv_fits(const struct viv_chip *chip, const struct mica_graph *graph, const struct mica_op *op)
{
    const struct mica_tensor *in = mica_op_input(graph, op, 2), *out = mica_op_output(graph, op, 0);
    const struct mica_window *w = &op->window;
    int32_t low = -(1 << (chip->offset_bits - 1));
    for (int32_t i = 0; i < w->stride_x * w->stride_y; i++) {
        struct phase x = phase_of(i % w->stride_x, w->stride_x, w->padding.left, w->kernel_x, out->dims[2]);
        struct phase y = phase_of(i / w->stride_x, w->stride_y, w->padding.top, w->kernel_y, out->dims[1]);
        int32_t size = kernel_size(&x, &y, (uint32_t)in->dims[3]);
        if (size > (int32_t)chip->max_kernel || x.offset < low || y.offset < low || x.offset > -low - 1 ||
            y.offset > -low - 1 || (uint64_t)size * size * in->dims[3] > VIV_MAX_KERNEL_WEIGHTS)
            return false;
    }
    return in->dims[1] <= (int32_t)VIV_MAX_IMAGE && in->dims[2] <= (int32_t)VIV_MAX_IMAGE;
}

static void map_taps(const struct viv_chip *chip, const struct mica_window *w, const struct phase *x,
                     const struct phase *y, int32_t size, struct viv_weights *weights)
{
    uint16_t order[VIV_MAX_TAPS];
    viv_tap_order(chip, (uint32_t)size, (uint32_t)size, order);
    weights->taps = (uint32_t)(size * size);
    weights->phases = 1;
    for (uint32_t i = 0; i < weights->taps; i++) {
        int32_t row = order[i] / size, column = order[i] % size;
        int32_t from_row = y->first + w->stride_y * (y->count - 1 - row);
        int32_t from_column = x->first + w->stride_x * (x->count - 1 - column);
        bool real = row < y->count && column < x->count;
        weights->map[0][i] = real ? (int16_t)(from_row * w->kernel_x + from_column) : -1;
    }
}

static struct viv_weights *make_weights(struct viv_plan *plan, const struct mica_op *op, uint32_t *index)
{
    struct viv_weights *weights = viv_plan_weights(plan, index);
    const struct mica_tensor *filter = mica_op_input(plan->graph, op, 1), *bias = mica_op_input(plan->graph, op, 3);
    if (!weights)
        return NULL;
    weights->source = filter->data;
    weights->bias_source = bias ? bias->data : NULL;
    weights->flip = viv_flip(filter);
    weights->zero_point = viv_zero_point(filter);
    weights->bias_factor = (int32_t)plan->chip->bias_input_zero - viv_zero_point(mica_op_input(plan->graph, op, 2));
    weights->kernels = (uint32_t)filter->dims[0];
    weights->channels = weights->tap_stride = (uint32_t)filter->dims[3];
    weights->channel_stride = 1;
    weights->kernel_stride = (size_t)(filter->dims[1] * filter->dims[2]) * weights->channels;
    return weights;
}

static int add_phase(struct viv_plan *plan, uint32_t op_index, struct viv_nn nn, const struct phase *x,
                     const struct phase *y)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    struct viv_weights *weights = make_weights(plan, op, &nn.weights);
    if (!weights)
        return -ENOMEM;
    int32_t size = kernel_size(x, y, weights->channels);
    map_taps(plan->chip, &op->window, x, y, size, weights);
    weights->pointwise = size == 1;
    nn.kernel_w = nn.kernel_h = (uint32_t)size;
    nn.x_offset = x->offset;
    nn.y_offset = y->offset;
    nn.out_w = nn.out_x_stride = (uint32_t)x->outputs;
    nn.out_h = nn.out_y_stride = (uint32_t)y->outputs;
    if (viv_channels_differ(mica_op_input(plan->graph, op, 1)))
        return viv_channels_lower(plan, op_index, 2, weights, &nn);
    nn.in_c = weights->channels;
    nn.out_c = weights->kernels;
    struct viv_weights_profile profile = viv_weights_profile(weights);
    viv_tile_choose(plan->chip, &nn, viv_coef_estimate(plan->chip, nn.out_c, nn.in_c, weights->taps, &profile),
                    profile.density);
    struct viv_job *job = viv_plan_job(plan, op_index, true);
    if (!job)
        return -ENOMEM;
    job->nn = nn;
    job->macs = mica_op_macs(plan->graph, op) / (uint32_t)(op->window.stride_x * op->window.stride_y);
    return 0;
}

/* The phase's planes between those of the others. */
static int interleave(struct viv_plan *plan, uint32_t op_index, const struct viv_nn *nn, const struct phase *x,
                      const struct phase *y, struct viv_ref out)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    const struct mica_tensor *tensor = mica_op_output(plan->graph, op, 0);
    uint64_t row = (uint64_t)tensor->dims[2], plane = row * (uint64_t)tensor->dims[1];
    uint64_t w = (uint64_t)x->outputs, h = (uint64_t)y->outputs;
    struct viv_box box = {0};
    viv_box_add(&box, (uint32_t)tensor->dims[3], w * h, plane);
    viv_box_add(&box, (uint32_t)h, w, row * (uint64_t)op->window.stride_y);
    viv_box_add(&box, (uint32_t)w, 1, (uint64_t)op->window.stride_x);
    return viv_box_lower(plan, op_index, &box, nn->out, out, nn->out_zero_point);
}

int viv_lower_transpose_conv(struct viv_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    const struct mica_window *w = &op->window;
    const struct mica_tensor *in = mica_op_input(plan->graph, op, 2), *out = mica_op_output(plan->graph, op, 0);
    struct viv_bounds bounds = viv_bounds_of(w->activation, out);
    struct viv_nn nn = {.in_w = (uint32_t)in->dims[2], .in_h = (uint32_t)in->dims[1]};
    struct viv_ref to;
    nn.in_x_stride = nn.in_w;
    nn.in_y_stride = nn.in_h;
    int error = viv_conv_factor(plan, op, 2, &nn);
    if (!error)
        error = viv_need_planar(plan, (uint32_t)op->inputs[2], op_index, &nn.in);
    if (!error)
        error = viv_make_planar(plan, (uint32_t)op->outputs[0], &to);
    if (!error)
        error = viv_clamp_begin(plan, op, bounds, &to);
    viv_clamp_first(bounds, viv_zero_point(out), &nn.out_zero_point, &nn.relu);
    for (int32_t i = 0; !error && i < w->stride_x * w->stride_y; i++) {
        int32_t column = i % w->stride_x, row = i / w->stride_x;
        struct phase x = phase_of(column, w->stride_x, w->padding.left, w->kernel_x, out->dims[2]);
        struct phase y = phase_of(row, w->stride_y, w->padding.top, w->kernel_y, out->dims[1]);
        if (!x.outputs || !y.outputs)
            continue;
        struct viv_ref at = {to.storage, to.offset + (uint64_t)row * (uint64_t)out->dims[2] + (uint64_t)column};
        error = viv_plan_storage(plan, (uint64_t)x.outputs * y.outputs * out->dims[3], &nn.out);
        if (!error)
            error = add_phase(plan, op_index, nn, &x, &y);
        if (!error)
            error = interleave(plan, op_index, &nn, &x, &y, at);
    }
    return error;
}
