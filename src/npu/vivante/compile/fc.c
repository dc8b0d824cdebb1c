/* SPDX-License-Identifier: MIT */
/*
 * Fully connected layers: the flat input as an image of k x k pixels and a
 * kernel of the same size, one output pixel (specification, section 7.6). The
 * kernel is square because only square ones are known to run (section 5.1).
 */
#include "npu/vivante/compile/conv.h"

#include <errno.h>

#include "npu/vivante/compile/channels.h"
#include "npu/vivante/compile/coef.h"
#include "npu/vivante/compile/elementwise.h"
#include "npu/vivante/compile/tile.h"

uint32_t viv_fully_connected_kernel(const struct viv_chip *chip, uint32_t inputs)
{
    uint32_t size = chip->max_kernel;
    while (size > 1 && inputs % (size * size))
        size--;
    return inputs == 1 ? 2 : size; /* one input: a 1x1 kernel needs two channels (section 7.4) */
}

static void set_geometry(struct viv_nn *nn, uint32_t size, uint32_t pixels, uint32_t channels, uint32_t outputs)
{
    nn->kernel_w = nn->kernel_h = size;
    nn->in_w = nn->in_h = nn->in_x_stride = nn->in_y_stride = pixels;
    nn->in_c = channels;
    nn->out_w = nn->out_h = nn->out_x_stride = nn->out_y_stride = 1;
    nn->out_c = outputs;
}

static void map_weights(const struct viv_chip *chip, struct viv_weights *weights, uint32_t size, uint32_t inputs)
{
    uint16_t order[VIV_MAX_TAPS];
    uint32_t pixels = inputs == 1 ? 1 : size * size;
    weights->channels = inputs / pixels;
    weights->kernel_stride = inputs;
    weights->channel_stride = pixels;
    weights->tap_stride = 1;
    weights->taps = size * size;
    weights->pointwise = size == 1;
    viv_tap_order(chip, size, size, order);
    for (uint32_t i = 0; i < weights->taps; i++)
        weights->map[0][i] = order[i] < pixels ? (int16_t)order[i] : -1;
}

/* Several rows are the pixels of a 1x1 convolution: the input's planes, made here, for it may have another shape. */
static int lower_rows(struct viv_plan *plan, uint32_t op_index, uint32_t rows)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    const struct mica_tensor *filter = mica_op_input(plan->graph, op, 1), *in = mica_op_input(plan->graph, op, 0);
    uint32_t outputs = (uint32_t)filter->dims[0], inputs = (uint32_t)filter->dims[1], size = inputs == 1 ? 2 : 1;
    struct viv_nn nn = {.kernel_w = size, .kernel_h = size, .in_c = inputs, .out_c = outputs};
    struct viv_ref outside;
    nn.in_w = nn.in_x_stride = nn.out_w = nn.out_x_stride = rows;
    nn.in_h = nn.in_y_stride = nn.out_h = nn.out_y_stride = 1;
    int error = viv_conv_arithmetic(plan, op, op->activation, &nn);
    if (!error)
        error = viv_need_nhwc(plan, (uint32_t)op->inputs[0], op_index, &outside);
    if (!error)
        error = viv_plan_storage(plan, in->bytes, &nn.in);
    if (!error)
        error =
            viv_tp_transpose(plan, op_index, (struct viv_shape){rows, 1, inputs}, outside, nn.in, viv_tensor_zero(in));
    if (!error)
        error = viv_make_planar(plan, (uint32_t)op->outputs[0], &nn.out);
    if (!error)
        error = viv_clamp_begin(plan, op, viv_bounds_of(op->activation, mica_op_output(plan->graph, op, 0)), &nn.out);
    struct viv_weights *weights = error ? NULL : viv_conv_weights(plan, op, &nn.weights);
    if (!weights)
        return error ? error : -ENOMEM;
    weights->kernels = outputs;
    weights->channels = inputs;
    weights->kernel_stride = inputs;
    weights->channel_stride = weights->tap_stride = 1;
    weights->taps = size * size;
    weights->pointwise = size == 1;
    for (uint32_t i = 0; i < weights->taps; i++)
        weights->map[0][i] = i ? -1 : 0;
    return viv_conv_job(plan, op_index, weights, &nn);
}

int viv_lower_fully_connected(struct viv_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    const struct mica_tensor *filter = mica_op_input(plan->graph, op, 1);
    uint32_t outputs = (uint32_t)filter->dims[0], inputs = (uint32_t)filter->dims[1];
    uint32_t size = viv_fully_connected_kernel(plan->chip, inputs);
    uint32_t rows = (uint32_t)(mica_op_input(plan->graph, op, 0)->bytes / inputs);
    struct viv_nn nn = {0};
    if (rows > 1)
        return lower_rows(plan, op_index, rows);
    int error = viv_conv_arithmetic(plan, op, op->activation, &nn);
    if (!error)
        error = viv_need_nhwc(plan, (uint32_t)op->inputs[0], op_index, &nn.in);
    if (!error)
        error = viv_make_nhwc(plan, (uint32_t)op->outputs[0], &nn.out);
    if (!error)
        error = viv_clamp_begin(plan, op, viv_bounds_of(op->activation, mica_op_output(plan->graph, op, 0)), &nn.out);
    if (error)
        return error;
    struct viv_weights *weights = viv_conv_weights(plan, op, &nn.weights);
    if (!weights)
        return -ENOMEM;
    weights->kernels = outputs;
    map_weights(plan->chip, weights, size, inputs);
    set_geometry(&nn, size, inputs == 1 ? 1 : size, weights->channels, outputs);
    return viv_conv_job(plan, op_index, weights, &nn);
}
