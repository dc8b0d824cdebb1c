/* SPDX-License-Identifier: MIT */
#include "npu/rockchip/compile/constant_operand.h"

#include <stdlib.h>

#include "npu/rockchip/compile/select.h"
#include "util/checked.h"

/* The operation from the constant's point of view. */
struct operand {
    const struct rk_elementwise *e;
    const struct mica_tensor *constant, *in, *out;
    uint32_t input;        /* the graph's tensor */
    int32_t in_zero, zero; /* of the computed operand and the constant */
};

static bool find_operand(const struct rk_plan *plan, const struct rk_elementwise *e, struct operand *operand)
{
    const struct mica_op *op = &plan->graph->ops[e->op];
    const struct mica_tensor *a = mica_op_input(plan->graph, op, 0), *b = mica_op_input(plan->graph, op, 1);
    bool first = a->data != NULL;
    if (first == (b->data != NULL))
        return false;
    *operand = (struct operand){
        .e = e,
        .constant = first ? a : b,
        .in = first ? b : a,
        .out = mica_op_output(plan->graph, op, 0),
        .input = (uint32_t)op->inputs[first ? 1 : 0],
        .in_zero = first ? e->zero_b : e->zero_a,
        .zero = first ? e->zero_a : e->zero_b,
    };
    struct rk_shape in = rk_shape_of(operand->in), out = rk_shape_of(operand->out);
    struct rk_shape constant = rk_shape_of(operand->constant);
    return in.w == out.w && in.h == out.h && in.c == out.c && constant.w == 1 && constant.h == 1;
}

/* The constant's number for a channel, stored domain. */
static int32_t number_of(const struct operand *operand, uint32_t channel)
{
    uint8_t byte = ((const uint8_t *)operand->constant->data)[operand->constant->bytes == 1 ? 0 : channel];
    return (int8_t)(uint8_t)(operand->constant->type == MICA_TYPE_UINT8 ? byte ^ 0x80 : byte);
}

static double factor_of(const struct rk_elementwise *e)
{
    return e->scale_a * e->scale_b / e->scale_out;
}

static struct rk_weighted weighted_of(const struct operand *operand)
{
    struct rk_cube in = {.shape = rk_shape_of(operand->in)}, out = {.shape = rk_shape_of(operand->out)};
    struct rk_weighted weighted = rk_weighted_plain(operand->e->op, in, out);
    weighted.depthwise = true;
    weighted.in_zero = operand->in_zero;
    weighted.out_zero = operand->e->zero_out;
    weighted.min = operand->e->min;
    weighted.max = operand->e->max;
    return weighted;
}

bool rk_has_constant_operand(const struct rk_plan *plan, const struct rk_elementwise *e)
{
    struct operand operand;
    if (!find_operand(plan, e, &operand))
        return false;
    if (e->kind == RK_ELEMENTWISE_MAX || e->kind == RK_ELEMENTWISE_MIN)
        return operand.constant->bytes == 1;
    double factor = factor_of(e);
    struct rk_weighted weighted = weighted_of(&operand);
    return e->kind == RK_ELEMENTWISE_MUL && !rk_weighted_problem(plan->chip, &weighted) &&
           !rk_factors_problem(&factor, 1, NULL);
}

/* The product and its one rounding are those of an element-wise task. */
static int lower_product(struct rk_plan *plan, const struct operand *operand, struct rk_cube in, struct rk_cube out)
{
    struct rk_weighted weighted = weighted_of(operand);
    uint32_t channels = out.shape.c;
    int8_t *weights = mica_new_array(channels, sizeof(*weights));
    int32_t *weight_zero = mica_new_array(channels, sizeof(*weight_zero));
    double *factor = mica_new_array(channels, sizeof(*factor));
    int error = weights && weight_zero && factor ? 0 : mica_fail_nomem(plan->log);
    for (uint32_t c = 0; !error && c < channels; c++) {
        weights[c] = (int8_t)number_of(operand, c);
        weight_zero[c] = operand->zero;
        factor[c] = factor_of(operand->e);
    }
    weighted.in = in;
    weighted.out = out;
    weighted.weights = weights;
    weighted.weight_zero = weight_zero;
    weighted.factor = factor;
    if (!error)
        error = rk_lower_weighted(plan, &weighted);
    free(weights);
    free(weight_zero);
    free(factor);
    return error;
}

/* The greater or smaller of every value and one number. */
static int lower_bound(struct rk_plan *plan, const struct operand *operand, struct rk_cube in, struct rk_cube out)
{
    int32_t number = number_of(operand, 0);
    bool max = operand->e->kind == RK_ELEMENTWISE_MAX;
    int8_t table[256];
    for (int32_t i = 0; i < 256; i++)
        table[i] = (int8_t)((i - 128 > number) == max ? i - 128 : number);
    return rk_lower_table(plan, operand->e->op, in, out, table);
}

int rk_lower_constant_product(struct rk_plan *plan, const struct rk_elementwise *e)
{
    struct operand operand;
    return find_operand(plan, e, &operand) ? lower_product(plan, &operand, e->a, e->out) : 0;
}

int rk_lower_constant_operand(struct rk_plan *plan, const struct rk_elementwise *e)
{
    struct operand operand;
    struct rk_cube in, out;
    if (!find_operand(plan, e, &operand))
        return 0;
    int error = rk_plan_value(plan, operand.input, &in);
    if (!error)
        error = rk_plan_result(plan, (uint32_t)plan->graph->ops[e->op].outputs[0], &out);
    if (error)
        return error;
    return e->kind == RK_ELEMENTWISE_MUL ? lower_product(plan, &operand, in, out)
                                         : lower_bound(plan, &operand, in, out);
}
