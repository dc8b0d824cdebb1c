/* SPDX-License-Identifier: MIT */
/*
 * Sums, differences and products with constants, one for all values or one a
 * channel: depthwise convolutions of single pixels, where the constants are
 * weights or biases.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "npu/vivante/compile/compose.h"
#include "npu/vivante/compile/conv.h"
#include "npu/vivante/compile/elementwise.h"
#include "util/checked.h"

#define ONE 127       /* weight of the data in a sum: the multiplier is that much smaller, and biases are as fine */
#define MAX_STEP 0.25 /* a bias' rounding may cost a half of it, in steps of the output */

int viv_constant_input(const struct mica_graph *graph, const struct mica_op *op)
{
    bool first = mica_op_input(graph, op, 0)->data, second = mica_op_input(graph, op, 1)->data;
    return first == second ? -1 : first ? 0 : 1;
}

/* One value, or one for each channel of the data. */
static bool fits(const struct mica_tensor *constant, const struct mica_tensor *data)
{
    uint32_t channels = viv_shape_of(data).c;
    return constant->bytes == 1 || (constant->bytes == channels && viv_shape_of(constant).c == channels);
}

/* The multiplier, and what a step of the constant is as a bias (0: it is a weight). */
static bool arithmetic(const struct viv_chip *chip, const struct mica_graph *graph, const struct mica_op *op,
                       struct viv_requant *requant, double *step)
{
    int index = viv_constant_input(graph, op);
    const struct mica_tensor *constant = mica_op_input(graph, op, (uint32_t)index);
    const struct mica_tensor *data = mica_op_input(graph, op, 1 - (uint32_t)index), *out = mica_op_output(graph, op, 0);
    *step = 0;
    if (op->kind == MICA_OP_MUL)
        return viv_requant_make(chip, data->quant.scale[0], constant->quant.scale[0], out->quant.scale[0], requant);
    double factor = (double)data->quant.scale[0] / out->quant.scale[0] / ONE;
    *step = (double)constant->quant.scale[0] / data->quant.scale[0] * ONE;
    return factor < MAX_STEP && *step < (1 << 20) && viv_requant_factor(chip, factor, requant);
}

const char *viv_constant_refusal(const struct viv_chip *chip, const struct mica_graph *graph, const struct mica_op *op)
{
    struct viv_requant requant;
    double step;
    int index = viv_constant_input(graph, op);
    if (!fits(mica_op_input(graph, op, (uint32_t)index), mica_op_input(graph, op, 1 - (uint32_t)index)))
        return "a constant must be one value, or one for each channel";
    return arithmetic(chip, graph, op, &requant, &step) ? NULL : "the scales give a factor outside the NN cores' range";
}

/* A 2x2 kernel of which the first tap counts: what 1x1 ones of a single channel become. */
static int make_weights(struct viv_plan *plan, const struct mica_op *op, double step, struct viv_weights *weights)
{
    int index = viv_constant_input(plan->graph, op);
    const struct mica_tensor *constant = mica_op_input(plan->graph, op, (uint32_t)index);
    const struct mica_tensor *data = mica_op_input(plan->graph, op, 1 - (uint32_t)index);
    const uint8_t *bytes = constant->data;
    bool negative = op->kind == MICA_OP_SUB && index == 0, product = op->kind == MICA_OP_MUL;
    int32_t zero = viv_zero_point(constant), sign = op->kind == MICA_OP_SUB && index == 1 ? -1 : 1;
    weights->kernels = viv_shape_of(data).c;
    weights->channels = weights->phases = 1;
    weights->taps = weights->kernel_stride = 4;
    weights->tap_stride = 1;
    weights->zero_point = product ? (uint8_t)zero : negative ? ONE : 0;
    weights->diagonal = !plan->chip->hardware_depthwise;
    for (int16_t tap = 0; tap < 4; tap++)
        weights->map[0][tap] = tap;
    weights->owned = mica_new_array(weights->kernels, 4);
    weights->bias = mica_new_array(weights->kernels, sizeof(*weights->bias));
    if (!weights->owned || !weights->bias)
        return mica_fail_nomem(plan->log);
    weights->source = weights->data = weights->owned;
    for (uint32_t k = 0; k < weights->kernels; k++) {
        int32_t value = bytes[constant->bytes == 1 ? 0 : k] ^ viv_flip(constant);
        int32_t weight = product ? value - zero : negative ? -ONE : ONE;
        for (uint32_t tap = 0; tap < 4; tap++)
            weights->owned[4 * k + tap] = (uint8_t)(weights->zero_point + (tap ? 0 : weight));
        weights->bias[k] = (uint32_t)(weight * ((int32_t)plan->chip->bias_input_zero - viv_zero_point(data)));
        weights->bias[k] += (uint32_t)(int32_t)lround(sign * (value - zero) * step);
    }
    return 0;
}

int viv_lower_constant(struct viv_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    const struct mica_tensor *out = mica_op_output(plan->graph, op, 0);
    uint32_t input = (uint32_t)op->inputs[1 - viv_constant_input(plan->graph, op)];
    struct viv_shape shape = viv_shape_of(out);
    struct viv_bounds bounds = viv_bounds_of(op->activation, out);
    struct viv_requant requant;
    struct viv_nn nn = {.kernel_w = 2, .kernel_h = 2};
    double step;
    if (!arithmetic(plan->chip, plan->graph, op, &requant, &step))
        return mica_fail(plan->log, -ENOTSUP, "the scales of %s \"%s\" do not fit the NN cores", op->type, out->name);
    plan->off = 1;
    snprintf(plan->way, sizeof(plan->way), "NN cores, a convolution of single pixels: constants are biases or weights");
    nn.post_multiplier = requant.multiplier;
    nn.post_shift = requant.shift;
    nn.in_w = nn.in_x_stride = nn.out_w = nn.out_x_stride = shape.w;
    nn.in_h = nn.in_y_stride = nn.out_h = nn.out_y_stride = shape.h;
    nn.in_zero_point = viv_zero_point(&plan->graph->tensors[input]);
    viv_clamp_first(bounds, viv_zero_point(out), &nn.out_zero_point, &nn.relu);
    int error = viv_need_planar(plan, input, op_index, &nn.in);
    if (!error)
        error = viv_make_planar(plan, (uint32_t)op->outputs[0], &nn.out);
    if (!error)
        error = viv_clamp_begin(plan, op, bounds, &nn.out);
    struct viv_weights *weights = error ? NULL : viv_plan_weights(plan, &nn.weights);
    if (!weights)
        return error ? error : -ENOMEM;
    error = make_weights(plan, op, step, weights);
    if (error)
        return error;
    return weights->diagonal ? viv_depthwise_groups(plan, op_index, weights, nn, 0)
                             : viv_depthwise_job(plan, op_index, weights, nn, 0);
}
