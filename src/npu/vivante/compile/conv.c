/* SPDX-License-Identifier: MIT */
#include "npu/vivante/compile/conv.h"

#include <errno.h>

#include "npu/vivante/compile/channels.h"
#include "npu/vivante/compile/coef.h"
#include "npu/vivante/compile/elementwise.h"
#include "npu/vivante/compile/tile.h"

struct viv_weights *viv_conv_weights(struct viv_plan *plan, const struct mica_op *op, uint32_t *index)
{
    struct viv_weights *weights = viv_plan_weights(plan, index);
    if (!weights)
        return NULL;
    const struct mica_tensor *tensor = mica_op_input(plan->graph, op, 1), *bias = mica_op_input(plan->graph, op, 2);
    weights->source = tensor->data;
    weights->bias_source = bias ? bias->data : NULL;
    weights->flip = viv_flip(tensor);
    weights->zero_point = viv_zero_point(tensor);
    weights->bias_factor = (int32_t)plan->chip->bias_input_zero - viv_zero_point(mica_op_input(plan->graph, op, 0));
    weights->phases = 1;
    return weights;
}

/* The lanes of a tensor (window.h), straight from outside where they need no padding of rows. */
static int lower_lanes(struct viv_plan *plan, uint32_t op, uint32_t tensor, const struct viv_window *window,
                       struct viv_ref *out)
{
    const struct mica_tensor *t = &plan->graph->tensors[tensor];
    const struct viv_lanes *x = &window->x, *y = &window->y;
    struct viv_shape shape = viv_shape_of(t);
    uint64_t lane = (uint64_t)window->job_w * window->job_h;
    uint8_t zero_point = viv_tensor_zero(t);
    struct viv_ref in;
    bool outside =
        !viv_has_planar(plan, tensor) && x->groups * y->groups == 1 && !y->padding && y->stride * y->columns <= shape.h;
    int error = outside ? viv_need_nhwc(plan, tensor, op, &in) : viv_need_planar(plan, tensor, op, &in);
    if (!error)
        error = viv_plan_storage(plan, lane * shape.c * viv_window_phases(window), out);
    if (!error && outside)
        return viv_tp_lanes_nhwc(plan, op, shape, x, y, in, *out, zero_point);
    for (uint32_t group = 0; !error && group < x->groups * y->groups; group++)
        error = viv_tp_lanes(plan, op, shape, shape.w * shape.h, x, y, group, in, *out, zero_point);
    return error;
}

/* The job's input: the operation's, planar, or its space-to-depth form or lanes. */
int viv_conv_input(struct viv_plan *plan, uint32_t op, const struct viv_window *window, struct viv_ref *ref)
{
    uint32_t tensor = (uint32_t)plan->graph->ops[op].inputs[0];
    const struct mica_tensor *t = &plan->graph->tensors[tensor];
    struct viv_shape shape = viv_shape_of(t);
    if (window->lowering == VIV_DIRECT || window->lowering == VIV_FIRST_PIXEL)
        return viv_need_planar(plan, tensor, op, ref);
    struct viv_ref in;
    if (window->lowering == VIV_LANES)
        return lower_lanes(plan, op, tensor, window, ref);
    bool from_nhwc = !viv_has_planar(plan, tensor) && shape.h % 2 == 0;
    int error = from_nhwc ? viv_need_nhwc(plan, tensor, op, &in) : viv_need_planar(plan, tensor, op, &in);
    if (!error)
        error = viv_plan_storage(plan, (uint64_t)window->job_w * window->job_h * shape.c * VIV_PHASES, ref);
    if (error)
        return error;
    uint8_t zero_point = viv_tensor_zero(t);
    return from_nhwc ? viv_tp_space_to_depth_nhwc(plan, op, shape, in, *ref, zero_point)
                     : viv_tp_space_to_depth(plan, op, shape, in, *ref, zero_point);
}

int viv_conv_factor(struct viv_plan *plan, const struct mica_op *op, uint32_t data, struct viv_nn *nn)
{
    const struct mica_tensor *in = mica_op_input(plan->graph, op, data), *weights = mica_op_input(plan->graph, op, 1);
    const struct mica_tensor *out = mica_op_output(plan->graph, op, 0);
    struct viv_requant requant = {0}; /* stays so where each group of channels has its own */
    if (!viv_channels_differ(weights) &&
        !viv_requant_make(plan->chip, in->quant.scale[0], weights->quant.scale[0], out->quant.scale[0], &requant))
        return mica_fail(plan->log, -ENOTSUP, "%s \"%s\" has scales that the NN cores can't compute", op->type,
                         out->name);
    nn->post_multiplier = requant.multiplier;
    nn->post_shift = requant.shift;
    nn->in_zero_point = viv_zero_point(in);
    return 0;
}

int viv_conv_arithmetic(struct viv_plan *plan, const struct mica_op *op, enum mica_activation activation,
                        struct viv_nn *nn)
{
    const struct mica_tensor *out = mica_op_output(plan->graph, op, 0);
    viv_clamp_first(viv_bounds_of(activation, out), viv_zero_point(out), &nn->out_zero_point, &nn->relu);
    return viv_conv_factor(plan, op, 0, nn);
}

void viv_conv_geometry(const struct viv_window *window, struct viv_nn *nn)
{
    nn->in_w = nn->in_x_stride = window->job_w;
    nn->in_h = nn->in_y_stride = window->job_h;
    nn->kernel_w = window->kernel_w;
    nn->kernel_h = window->kernel_h;
    nn->x_offset = window->x_offset;
    nn->y_offset = window->y_offset;
    nn->first_pixel = window->lowering == VIV_FIRST_PIXEL;
    nn->out_w = window->out_w * (nn->first_pixel ? 2 : 1);
    nn->out_h = window->out_h * (nn->first_pixel ? 2 : 1);
    nn->out_x_stride = window->out_w;
    nn->out_y_stride = window->out_h;
}

int viv_conv_begin(struct viv_plan *plan, uint32_t op_index, struct viv_window *window, struct viv_nn *nn,
                   struct viv_weights **weights)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    char reason[128];
    if (!viv_window_make(plan->chip, plan->graph, op, window, reason, sizeof(reason)))
        return mica_fail(plan->log, -ENOTSUP, "%s", reason);
    viv_conv_geometry(window, nn);
    int error = viv_conv_arithmetic(plan, op, op->window.activation, nn);
    if (!error)
        error = viv_conv_input(plan, op_index, window, &nn->in);
    if (!error)
        error = viv_make_planar(plan, (uint32_t)op->outputs[0], &nn->out);
    if (!error)
        error = viv_clamp_begin(plan, op, viv_bounds_of(op->window.activation, mica_op_output(plan->graph, op, 0)),
                                &nn->out);
    if (error)
        return error;
    *weights = viv_conv_weights(plan, op, &nn->weights);
    return *weights ? 0 : -ENOMEM;
}

int viv_conv_job(struct viv_plan *plan, uint32_t op_index, struct viv_weights *weights, struct viv_nn *nn)
{
    if (viv_channels_differ(mica_op_input(plan->graph, &plan->graph->ops[op_index], 1)))
        return viv_channels_lower(plan, op_index, 0, weights, nn);
    nn->in_c = weights->channels * weights->phases;
    nn->out_c = weights->kernels;
    struct viv_weights_profile profile = viv_weights_profile(weights);
    viv_tile_choose(plan->chip, nn, viv_coef_estimate(plan->chip, nn->out_c, nn->in_c, weights->taps, &profile),
                    profile.density);
    struct viv_job *job = viv_plan_job(plan, op_index, true);
    if (!job)
        return -ENOMEM;
    job->nn = *nn;
    job->macs = mica_op_macs(plan->graph, &plan->graph->ops[op_index]);
    return 0;
}

int viv_lower_conv(struct viv_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    const struct mica_tensor *filter = mica_op_input(plan->graph, op, 1);
    struct viv_nn nn = {0};
    struct viv_window window;
    struct viv_weights *weights = NULL;
    int error = viv_conv_begin(plan, op_index, &window, &nn, &weights);
    if (error)
        return error;
    weights->kernels = (uint32_t)filter->dims[0];
    weights->channels = (uint32_t)filter->dims[3];
    weights->tap_stride = weights->channels;
    weights->channel_stride = 1;
    weights->kernel_stride = (size_t)(filter->dims[1] * filter->dims[2]) * weights->channels;
    if (!viv_window_map(plan->chip, &window, &op->window, weights))
        return mica_fail_nomem(plan->log);
    weights->pointwise = weights->taps == 1;
    return viv_conv_job(plan, op_index, weights, &nn);
}
