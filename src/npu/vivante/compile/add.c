/* SPDX-License-Identifier: MIT */
/* Operations of one value from the values at the same place of one or two tensors, as elementwise jobs. */
#include "npu/vivante/compile/elementwise.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "npu/vivante/compile/compose.h"
#include "npu/vivante/compile/mix.h"
#include "npu/vivante/compile/pair.h"
#include "npu/vivante/compile/sum.h"

/* Weights of which the larger is `largest`. */
static struct viv_add weights_of(const struct mica_tensor *const inputs[2], const struct mica_tensor *out,
                                 float largest)
{
    float s0 = inputs[0]->quant.scale[0], s1 = inputs[1]->quant.scale[0], ratio = s1 / s0;
    struct viv_add add = {.weight_scale = (ratio > 1.0f ? ratio : 1.0f) / largest};
    const float wanted[] = {1.0f / add.weight_scale, ratio / add.weight_scale};
    for (unsigned i = 0; i < 2; i++) {
        float rounded = roundf(wanted[i]);
        add.weight[i] = rounded >= largest ? (int32_t)largest : rounded > 0 ? (int32_t)rounded : 0;
        uint32_t zero = viv_zero_point(inputs[i]), reach = zero > 127 ? zero : 255 - zero;
        double exact = (double)inputs[i]->quant.scale[0], got = (double)add.weight_scale * s0 * add.weight[i];
        add.error += fabs(got - exact) * reach / out->quant.scale[0];
    }
    return add;
}

/* Sums have the weights that drivers use; differences, with a bit less, those whose quotient is nearest. */
struct viv_add viv_add_weights(const struct mica_tensor *a, const struct mica_tensor *b, const struct mica_tensor *out,
                               bool subtract)
{
    const struct mica_tensor *const inputs[] = {a, b};
    struct viv_add best = weights_of(inputs, out, subtract ? 127.0f : 255.0f);
    if (!subtract)
        return best;
    for (int32_t largest = 126; largest >= 32; largest--) {
        struct viv_add add = weights_of(inputs, out, (float)largest);
        if (add.error < best.error)
            best = add;
    }
    best.weight[1] = -best.weight[1];
    return best;
}

/* ---- operands ---------------------------------------------------------------- */

/* Operands in one layout, the pitch apart, in a storage with `slots` places; *out gets the output in the same layout.
 */
struct operands {
    uint32_t count, slots, tensors[2];
    struct viv_ref first, out;
};

static int place(struct viv_plan *plan, uint32_t op_index, struct operands *operands)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    uint64_t bytes = mica_op_output(plan->graph, op, 0)->bytes, pitch = viv_elementwise_pitch(bytes);
    bool planar = viv_pair_planar(plan, op);
    int error = viv_plan_storage(plan, (operands->slots - 1) * pitch + bytes, &operands->first);
    for (uint32_t i = 0; !error && i < operands->count; i++)
        error = viv_pair_place(plan, op_index, operands->tensors[i], planar, operands->first, i * pitch);
    return error ? error : viv_pair_output(plan, op_index, planar, &operands->out);
}

static struct viv_ref slot(const struct operands *operands, uint32_t index, uint64_t bytes)
{
    return (struct viv_ref){operands->first.storage, operands->first.offset + index * viv_elementwise_pitch(bytes)};
}

/* ---- two tensors ------------------------------------------------------------- */

/* Copies of both inputs behind each other, each with its share of the weights. */
static int add_copies(struct viv_plan *plan, uint32_t op_index, const struct viv_sum *sum, struct viv_bounds bounds)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    const struct mica_tensor *out = mica_op_output(plan->graph, op, 0);
    struct viv_mix mix = {.inputs = 2 * sum->copies, .outputs = 1, .requant = sum->requant};
    struct operands operands = {
        .count = 2, .slots = mix.inputs, .tensors = {(uint32_t)op->inputs[0], (uint32_t)op->inputs[1]}};
    viv_clamp_first(bounds, viv_zero_point(out), &mix.out_zero, &mix.relu);
    for (uint32_t i = 0; i < 2; i++) {
        int32_t left = sum->weight[i];
        mix.bias[0] -= left * viv_zero_point(mica_op_input(plan->graph, op, i));
        for (uint32_t copy = 0; copy < sum->copies; copy++) {
            int32_t share = left / (int32_t)(sum->copies - copy);
            mix.weight[0][2 * copy + i] = (int16_t)share;
            left -= share;
        }
    }
    int error = place(plan, op_index, &operands);
    for (uint32_t copy = 1; !error && copy < sum->copies; copy++)
        error = viv_tp_copy(plan, op_index, viv_elementwise_pitch(out->bytes) + out->bytes, operands.first,
                            slot(&operands, 2 * copy, out->bytes), 0);
    if (!error)
        error = viv_clamp_begin(plan, op, bounds, &operands.out);
    return error ? error : viv_mix_jobs(plan, op_index, &mix, operands.first, operands.out, out->bytes, true);
}

int viv_lower_add(struct viv_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    const struct mica_tensor *a = mica_op_input(plan->graph, op, 0), *b = mica_op_input(plan->graph, op, 1);
    const struct mica_tensor *out = mica_op_output(plan->graph, op, 0);
    struct viv_bounds bounds = viv_bounds_of(op->activation, out);
    struct viv_sum sum;
    if (!viv_sum_choose(plan->chip, a, b, out, op->kind == MICA_OP_SUB, &sum))
        return mica_fail(plan->log, -ENOTSUP, "the scales of %s \"%s\" do not fit the NN cores", op->type, out->name);
    plan->off = 1;
    if (sum.copies > 1)
        snprintf(plan->way, sizeof(plan->way), "%u copies of the inputs, for finer weights", sum.copies);
    mica_log(plan->log, MICA_LOG_INFO, "%s \"%s\": at most %.3f steps from TFLite's result before rounding", op->type,
             out->name, sum.bound);
    if (sum.copies)
        return add_copies(plan, op_index, &sum, bounds);
    struct viv_elementwise pair = {.inputs = 2, .requant = sum.requant};
    struct operands operands = {.count = 2, .slots = 2, .tensors = {(uint32_t)op->inputs[0], (uint32_t)op->inputs[1]}};
    for (uint32_t i = 0; i < 2; i++) {
        pair.weight[i] = sum.add.weight[i];
        pair.in_zero[i] = viv_zero_point(mica_op_input(plan->graph, op, i));
    }
    viv_clamp_first(bounds, viv_zero_point(out), &pair.out_zero, &pair.relu);
    int error = place(plan, op_index, &operands);
    if (!error)
        error = viv_clamp_begin(plan, op, bounds, &operands.out);
    return error ? error : viv_elementwise_jobs(plan, op_index, &pair, operands.first, operands.out, out->bytes);
}

/* max(a, b) = b + relu(a - b) and min(a, b) = a - relu(a - b): all of one quantization, so that nothing is rounded. */
int viv_lower_maximum(struct viv_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    const struct mica_tensor *out = mica_op_output(plan->graph, op, 0);
    bool maximum = op->kind == MICA_OP_MAXIMUM;
    uint8_t zero = viv_zero_point(out);
    uint32_t a = (uint32_t)op->inputs[0], b = (uint32_t)op->inputs[1];
    struct operands operands = {.count = 2, .slots = 3, .tensors = {maximum ? a : b, maximum ? b : a}};
    struct viv_elementwise over = {.inputs = 2, .in_zero = {zero, zero}, .out_zero = 0, .relu = true};
    over.weight[0] = maximum ? 1 : -1;
    over.weight[1] = -over.weight[0];
    struct viv_elementwise sum = {.inputs = 2, .weight = {1, maximum ? 1 : -1}, .in_zero = {zero, 0}, .out_zero = zero};
    viv_requant_factor(plan->chip, 1, &over.requant);
    sum.requant = over.requant;
    int error = place(plan, op_index, &operands);
    if (!error)
        error = viv_elementwise_jobs(plan, op_index, &over, operands.first, slot(&operands, 2, out->bytes), out->bytes);
    return error ? error
                 : viv_elementwise_jobs(plan, op_index, &sum, slot(&operands, 1, out->bytes), operands.out, out->bytes);
}
