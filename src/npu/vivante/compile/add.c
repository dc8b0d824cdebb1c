/* SPDX-License-Identifier: MIT */
/* Operations of one value from the values at the same place of one or two tensors, as elementwise jobs. */
#include "npu/vivante/compile/elementwise.h"

#include <errno.h>
#include <math.h>

#include "npu/vivante/compile/compose.h"

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

static int make_out(struct viv_plan *plan, uint32_t tensor, bool planar, struct viv_ref *out)
{
    return planar ? viv_make_planar(plan, tensor, out) : viv_make_nhwc(plan, tensor, out);
}

static int need(struct viv_plan *plan, uint32_t tensor, bool planar, uint32_t op, struct viv_ref *ref)
{
    return planar ? viv_need_planar(plan, tensor, op, ref) : viv_need_nhwc(plan, tensor, op, ref);
}

static bool use_planar(const struct viv_plan *plan, const struct operands *operands)
{
    bool nhwc = true, planar = true;
    struct viv_shape shape = viv_shape_of(&plan->graph->tensors[operands->tensors[0]]);
    for (uint32_t i = 0; i < operands->count; i++) {
        nhwc &= viv_has_nhwc(plan, operands->tensors[i]);
        planar &= viv_has_planar(plan, operands->tensors[i]);
    }
    return viv_shape_transposable(shape) && (planar || !nhwc);
}

static int place(struct viv_plan *plan, uint32_t op, struct operands *operands)
{
    uint64_t bytes = plan->graph->tensors[operands->tensors[0]].bytes, pitch = viv_elementwise_pitch(bytes);
    bool planar = use_planar(plan, operands);
    struct viv_ref in[2];
    int error = 0;
    for (uint32_t i = 0; !error && i < operands->count; i++)
        error = need(plan, operands->tensors[i], planar, op, &in[i]);
    if (!error)
        error = viv_plan_storage(plan, (operands->slots - 1) * pitch + bytes, &operands->first);
    for (uint32_t i = 0; !error && i < operands->count; i++)
        error = viv_place(plan, in[i], bytes, operands->first, i * pitch,
                          viv_tensor_zero(&plan->graph->tensors[operands->tensors[i]]), op);
    return error ? error : make_out(plan, (uint32_t)plan->graph->ops[op].outputs[0], planar, &operands->out);
}

static struct viv_ref slot(const struct operands *operands, uint32_t index, uint64_t bytes)
{
    return (struct viv_ref){operands->first.storage, operands->first.offset + index * viv_elementwise_pitch(bytes)};
}

/* ---- two tensors ------------------------------------------------------------- */

int viv_lower_add(struct viv_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    const struct mica_tensor *a = mica_op_input(plan->graph, op, 0), *b = mica_op_input(plan->graph, op, 1);
    const struct mica_tensor *out = mica_op_output(plan->graph, op, 0);
    struct viv_add add = viv_add_weights(a, b, out, op->kind == MICA_OP_SUB);
    struct viv_elementwise sum = {.inputs = 2, .weight = {add.weight[0], add.weight[1]}};
    struct viv_bounds bounds = viv_bounds_of(op->activation, out);
    sum.in_zero[0] = viv_zero_point(a);
    sum.in_zero[1] = viv_zero_point(b);
    if (!viv_requant_make(plan->chip, a->quant.scale[0], add.weight_scale, out->quant.scale[0], &sum.requant))
        return mica_fail(plan->log, -ENOTSUP, "the scales of %s \"%s\" do not fit the NN cores", op->type, out->name);
    viv_clamp_first(bounds, viv_zero_point(out), &sum.out_zero, &sum.relu);
    struct operands operands = {.count = 2, .slots = 2, .tensors = {(uint32_t)op->inputs[0], (uint32_t)op->inputs[1]}};
    int error = place(plan, op_index, &operands);
    if (!error)
        error = viv_clamp_begin(plan, op, bounds, &operands.out);
    return error ? error : viv_elementwise_jobs(plan, op_index, &sum, operands.first, operands.out, out->bytes);
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

/* ---- one tensor --------------------------------------------------------------- */

/* A whole weight and a multiplier below 1. */
bool viv_unary_factor(const struct viv_chip *chip, double factor, int32_t *weight, struct viv_requant *requant)
{
    for (*weight = 1; *weight < 128; *weight *= 2)
        if (factor / *weight <= 1)
            return viv_requant_factor(chip, factor / *weight, requant);
    return false;
}

static struct viv_bounds unary_bounds(const struct mica_op *op, const struct mica_tensor *out)
{
    switch (op->kind) {
    case MICA_OP_RELU:
        return viv_bounds_of(MICA_ACT_RELU, out);
    case MICA_OP_RELU6:
        return viv_bounds_of(MICA_ACT_RELU6, out);
    case MICA_OP_RELU_N1_TO_1:
        return viv_bounds_of(MICA_ACT_RELU_N1_TO_1, out);
    case MICA_OP_RELU_0_TO_1:
        return viv_bounds_between(out, 0, 1);
    default:
        return viv_bounds_of(MICA_ACT_NONE, out);
    }
}

/* Quantization and clamps. */
int viv_lower_unary(struct viv_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    const struct mica_tensor *in = mica_op_input(plan->graph, op, 0), *out = mica_op_output(plan->graph, op, 0);
    struct viv_bounds bounds = unary_bounds(op, out);
    struct viv_elementwise one = {.inputs = 1, .in_zero = {viv_zero_point(in)}};
    if (!viv_unary_factor(plan->chip, (double)in->quant.scale[0] / out->quant.scale[0], &one.weight[0], &one.requant))
        return mica_fail(plan->log, -ENOTSUP, "the scales of %s \"%s\" do not fit the NN cores", op->type, out->name);
    viv_clamp_first(bounds, viv_zero_point(out), &one.out_zero, &one.relu);
    struct operands operands = {.count = 1, .tensors = {(uint32_t)op->inputs[0]}};
    bool planar = use_planar(plan, &operands);
    int error = need(plan, operands.tensors[0], planar, op_index, &operands.first);
    if (!error)
        error = make_out(plan, (uint32_t)op->outputs[0], planar, &operands.out);
    if (!error)
        error = viv_clamp_begin(plan, op, bounds, &operands.out);
    return error ? error : viv_elementwise_jobs(plan, op_index, &one, operands.first, operands.out, out->bytes);
}

bool viv_fold_weights(const struct viv_chip *chip, const struct mica_op *op, const struct mica_tensor *in,
                      const struct mica_tensor *out, struct viv_fold *fold)
{
    double slope = op->kind == MICA_OP_ABS ? 1 : -(double)op->alpha, best = HUGE_VAL;
    double factor = (double)in->quant.scale[0] / out->quant.scale[0], size = fabs(slope) > 1 ? fabs(slope) : 1;
    for (int32_t weight = 1; weight * size <= 127; weight++) {
        double other = round(slope * weight), error = fabs(other / weight - slope) * factor * viv_zero_point(in);
        struct viv_requant requant;
        if (error >= best || factor / weight > 1 || !viv_requant_factor(chip, factor / weight, &requant))
            continue;
        best = error;
        *fold = (struct viv_fold){{weight, (int32_t)other}, requant, error};
    }
    return best < HUGE_VAL;
}

/* What is above zero and what is below, each without rounding, and their weighted sum: leaky relu, abs. */
int viv_lower_fold(struct viv_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    const struct mica_tensor *in = mica_op_input(plan->graph, op, 0), *out = mica_op_output(plan->graph, op, 0);
    uint8_t zero = viv_zero_point(in);
    struct viv_fold fold;
    if (!viv_fold_weights(plan->chip, op, in, out, &fold))
        return mica_fail(plan->log, -ENOTSUP, "the scales of %s \"%s\" do not fit the NN cores", op->type, out->name);
    struct viv_elementwise above = {.inputs = 1, .weight = {1}, .in_zero = {zero}, .out_zero = 0, .relu = true};
    viv_requant_factor(plan->chip, 1, &above.requant);
    struct viv_elementwise below = above, sum = {.inputs = 2, .requant = fold.requant, .out_zero = viv_zero_point(out)};
    below.weight[0] = -1;
    sum.weight[0] = fold.weight[0];
    sum.weight[1] = fold.weight[1];
    struct operands operands = {.count = 1, .tensors = {(uint32_t)op->inputs[0]}};
    bool planar = use_planar(plan, &operands);
    struct viv_ref ref;
    int error = need(plan, operands.tensors[0], planar, op_index, &ref);
    if (!error)
        error = viv_plan_storage(plan, viv_elementwise_pitch(in->bytes) + in->bytes, &operands.first);
    if (!error)
        error = make_out(plan, (uint32_t)op->outputs[0], planar, &operands.out);
    if (!error)
        error = viv_elementwise_jobs(plan, op_index, &above, ref, operands.first, in->bytes);
    if (!error)
        error = viv_elementwise_jobs(plan, op_index, &below, ref, slot(&operands, 1, in->bytes), in->bytes);
    return error ? error : viv_elementwise_jobs(plan, op_index, &sum, operands.first, operands.out, out->bytes);
}
