/* SPDX-License-Identifier: MIT */
/*
 * How far the one task's sum may be from that of two: the convolution's result isn't rounded before it is added. The
 * reference's is, to half a step (a little more, for it rounds twice), and both round the sum. Two numbers less than 1
 * apart round to integers at most 1 apart; so does this add up all that separates them before that, in steps of the
 * sum, and fuses below 1 only. The convolution's clamps are rebuilt: what saturates there may not come back here.
 */
#include "npu/rockchip/compile/fusion.h"

#include <math.h>

/* The open driver makes operands of fewer pixels larger, for reasons unknown: those aren't fused. */
#define LEAST_PIXELS 12u
#define MOST_DIFFERENT 1.0
#define LARGEST_INPUT 255.0  /* |value - zero point| */
#define LARGEST_OUTPUT 256.0 /* what lies further from the zero point saturates anyway */
/* Bits that the reference keeps below the point of an addition's larger input; its roundings there, all together. */
#define REFERENCE_BITS 20
#define REFERENCE_ROUNDINGS 8.0
#define LARGEST_BOUND (1 << 30)

/* What a step of the value behind BS is, in steps of the convolution's result. */
static double unit_of(const struct rk_weighted *weighted, uint32_t first, const struct rk_requant *requant)
{
    return requant->per_channel ? ldexp(requant->unit, (int)requant->mul_shift) : weighted->factor[first];
}

static double multiplier_of(const struct rk_requant *requant, struct rk_factor channel)
{
    return requant->per_channel ? ldexp(rk_requant_multiplier(requant, channel), -(int)requant->mul_shift) : 1;
}

int64_t rk_fusion_lift(const struct rk_requant *requant, const struct rk_fusion *fusion, struct rk_factor channel)
{
    return (int64_t)rint(fusion->lift / multiplier_of(requant, channel));
}

/* The reference's rounding of the convolution's result. */
static double reference_rounding(double factor)
{
    int exponent;
    frexp(factor, &exponent);
    return 0.5 + (exponent < 0 ? ldexp(0.5, exponent) : 0);
}

/* Largest distance of one channel's two results, unrounded and rounded, in steps of the convolution; negative: it
 * doesn't fit. */
static double channel_distance(const struct rk_weighted *weighted, const struct rk_channel *channel, uint32_t o,
                               const struct rk_requant *requant, const struct rk_fusion *fusion, double unit)
{
    struct rk_factor factor = {weighted->factor[o], channel->reach};
    double multiplier = multiplier_of(requant, factor);
    if (multiplier == 0) /* nothing would lift what is always 0 */
        return -1;
    double lift = fusion->lift / multiplier, offset = fabs((double)channel->sum * weighted->in_zero);
    if (channel->reach + offset + lift > LARGEST_BOUND)
        return -1;
    double most = fmin(factor.factor * factor.reach, LARGEST_INPUT);
    double error = most * fabs(multiplier * unit / factor.factor - 1) + fabs(rint(lift) - lift) * multiplier * unit;
    return error + (requant->per_channel ? unit / 2 : 0) + reference_rounding(factor.factor);
}

static bool set_bounds(const struct rk_weighted *weighted, double unit, struct rk_fusion *fusion, double *error)
{
    double below = weighted->out_zero - weighted->min, above = weighted->max - weighted->out_zero;
    double lift = rint(below / unit), upper = rint(above / unit);
    if (below < 0 || above < 0 || !(lift + upper < LARGEST_BOUND))
        return false;
    fusion->lift = (int32_t)lift;
    fusion->upper = (int32_t)(lift + upper);
    *error = fmax(fabs(lift * unit - below), fabs(upper * unit - above));
    return true;
}

bool rk_fusion_make(const struct rk_weighted *weighted, const struct rk_channel *channels, uint32_t first,
                    uint32_t count, const struct rk_requant *requant, struct rk_fusion *fusion)
{
    const struct rk_addend *addend = weighted->addend;
    double unit = unit_of(weighted, first, requant), ratio = addend->scale_conv / addend->scale_out;
    double operand = addend->scale / (addend->scale_conv * unit), out = unit * ratio, bounds, distance = 0;
    if (!(operand > 0) || !(operand <= RK_LARGEST_SCALE) || !(out > 0) || !(out <= RK_LARGEST_SCALE) ||
        !set_bounds(weighted, unit, fusion, &bounds))
        return false;
    for (uint32_t o = first; o < first + count; o++) {
        double own = channel_distance(weighted, &channels[o], o, requant, fusion, unit);
        if (own < 0)
            return false;
        distance = fmax(distance, own);
    }
    fusion->stages = (struct rk_dpu_stages){
        .b_offset = -addend->zero,
        .b_scale = rk_scale_of(operand),
        .out_offset = addend->zero_out,
        .out_scale = rk_scale_of(out),
        .combine = RK_DPU_ALU_ADD,
    };
    double error = (distance + bounds) * ratio;
    error += (fabs(rk_scale_value(fusion->stages.b_scale) - operand) * LARGEST_INPUT + 0.5) * out;
    error += fabs(rk_scale_value(fusion->stages.out_scale) / out - 1) * LARGEST_OUTPUT;
    error += ldexp(REFERENCE_ROUNDINGS * fmax(addend->scale_conv, addend->scale) / addend->scale_out, -REFERENCE_BITS);
    return error < MOST_DIFFERENT && rk_dpu_clamp(&fusion->stages, addend->min, addend->max);
}

/*
 * The two reading units take turns at surfaces. Those of a group's padding they may read too: the cube has to have
 * them. Nor may a tile be less than a group of kernels.
 */
bool rk_fusion_readable(const struct rk_chip *chip, const struct rk_weighted *weighted)
{
    const struct rk_shape *shape = &weighted->out.shape;
    const struct rk_cube *cube = &weighted->addend->cube;
    uint32_t padded = rk_padded_channels(chip, false, shape->c), group = chip->kernel_group;
    struct rk_tiling tiling;
    return !weighted->in.packed && !weighted->depthwise && !cube->packed && padded - shape->c < chip->atom &&
           shape->w * shape->h >= LEAST_PIXELS && cube->line == (uint64_t)shape->w * chip->atom &&
           cube->surface >= cube->line * shape->h && cube->at.offset % chip->atom == 0 &&
           rk_tiling_choose(chip, weighted, shape->c < group ? shape->c : group, 0, shape->h, &tiling) &&
           (tiling.channels == shape->c || tiling.channels % group == 0);
}

/* ---- in the graph ------------------------------------------------------------- */

/* How often a tensor is read inside, or by others; *reader is one that does. */
static uint32_t uses_of(const struct rk_plan *plan, uint32_t tensor, uint32_t *reader)
{
    const struct mica_partition *partition = plan->partition;
    uint32_t uses = 0;
    for (uint32_t i = 0; i < partition->output_count; i++)
        uses += partition->outputs[i] == tensor;
    for (uint32_t i = 0; i < partition->op_count; i++) {
        const struct mica_op *op = &plan->graph->ops[partition->ops[i]];
        for (uint32_t n = 0; n < op->input_count; n++)
            if (op->inputs[n] == (int32_t)tensor) {
                *reader = partition->ops[i];
                uses++;
            }
    }
    return uses;
}

static uint32_t maker_of(const struct rk_plan *plan, int32_t tensor)
{
    for (uint32_t i = 0; i < plan->partition->op_count; i++) {
        const struct mica_op *op = &plan->graph->ops[plan->partition->ops[i]];
        for (uint32_t n = 0; n < op->output_count; n++)
            if (op->outputs[n] == tensor)
                return plan->partition->ops[i];
    }
    return RK_NONE;
}

static bool same_size(const struct mica_tensor *a, const struct mica_tensor *b)
{
    struct rk_shape x = rk_shape_of(a), y = rk_shape_of(b);
    return x.w == y.w && x.h == y.h && x.c == y.c && a->type == b->type;
}

/*
 * The program's form is known from the open driver's and the vendor's on RK3588 alone; RK356x has no field that says
 * COMB_USE, and no program of the vendor's for it is known: two tasks there.
 */
uint32_t rk_fused_conv(const struct rk_plan *plan, uint32_t add)
{
    const struct mica_graph *graph = plan->graph;
    const struct mica_op *op = &graph->ops[add];
    const struct mica_tensor *out = mica_op_output(graph, op, 0);
    if (!plan->options.fuse || plan->chip->generation != RK_GENERATION_RK3588 || op->kind != MICA_OP_ADD)
        return RK_NONE;
    for (uint32_t i = 0; i < 2; i++) {
        const struct mica_tensor *in = mica_op_input(graph, op, i);
        if (in->data || !same_size(in, out))
            return RK_NONE;
    }
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t conv = maker_of(plan, op->inputs[i]), reader;
        if (conv != RK_NONE && graph->ops[conv].kind == MICA_OP_CONV_2D &&
            uses_of(plan, (uint32_t)op->inputs[i], &reader) == 1)
            return conv;
    }
    return RK_NONE;
}

bool rk_is_fused(const struct rk_plan *plan, uint32_t conv)
{
    uint32_t reader = RK_NONE;
    return uses_of(plan, (uint32_t)plan->graph->ops[conv].outputs[0], &reader) == 1 && reader != RK_NONE &&
           rk_fused_conv(plan, reader) == conv;
}

int rk_lower_fused(struct rk_plan *plan, uint32_t conv, struct rk_elementwise sum, uint32_t out)
{
    const struct mica_op *op = &plan->graph->ops[sum.op], *first = &plan->graph->ops[conv];
    bool swapped = op->inputs[1] == first->outputs[0];
    struct rk_addend addend = {
        .scale_conv = swapped ? sum.scale_b : sum.scale_a,
        .scale = swapped ? sum.scale_a : sum.scale_b,
        .scale_out = sum.scale_out,
        .zero = swapped ? sum.zero_a : sum.zero_b,
        .zero_out = sum.zero_out,
        .min = sum.min,
        .max = sum.max,
    };
    int error = rk_plan_value(plan, (uint32_t)op->inputs[swapped ? 0 : 1], &addend.cube);
    return error ? error : rk_lower_conv_added(plan, conv, &addend, out);
}
