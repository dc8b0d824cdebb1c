/* SPDX-License-Identifier: MIT */
/*
 * PRELU with constant slopes: what is above zero by a table, TFLite's own values; what is below zero times the slopes,
 * rounded once; and their sum, of which one side is always zero. Within 1: the product's factor is off by 2^-15.
 */
#include <errno.h>

#include "cpu/table.h"
#include "npu/rockchip/compile/constant_operand.h"
#include "npu/rockchip/compile/dpu_task.h"
#include "npu/rockchip/compile/move.h"
#include "npu/rockchip/compile/operand.h"
#include "npu/rockchip/compile/refuse.h"

static struct rk_elementwise product_of(const struct mica_graph *graph, uint32_t op_index)
{
    const struct mica_op *op = &graph->ops[op_index];
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *slopes = mica_op_input(graph, op, 1);
    const struct mica_tensor *out = mica_op_output(graph, op, 0);
    return (struct rk_elementwise){
        .op = op_index,
        .kind = RK_ELEMENTWISE_MUL,
        .scale_a = (double)in->quant.scale[0],
        .scale_b = (double)slopes->quant.scale[0],
        .scale_out = (double)out->quant.scale[0],
        .zero_a = rk_stored_zero(in),
        .zero_b = rk_stored_zero(slopes),
        .zero_out = rk_stored_zero(out),
        .min = INT8_MIN,
        .max = INT8_MAX,
    };
}

int rk_supports_prelu(const struct rk_chip *chip, const struct mica_graph *graph, uint32_t op_index, char *reason,
                      size_t size)
{
    const struct mica_op *op = &graph->ops[op_index];
    int error = rk_check_operands(chip, graph, op_index, reason, size);
    if (error)
        return error;
    if (mica_op_input(graph, op, 0)->data || !mica_op_input(graph, op, 1)->data)
        return rk_refuse(reason, size, "the slopes are computed, and the NPU needs constants");
    struct rk_elementwise product = product_of(graph, op_index);
    const char *problem = rk_elementwise_problem(&product);
    return problem ? rk_refuse(reason, size, "%s", problem) : 0;
}

/* The values above zero as the output has them; all others are its zero. */
static int lower_above(struct rk_plan *plan, uint32_t op_index, struct rk_cube in, struct rk_cube out)
{
    struct mica_op relu = plan->graph->ops[op_index];
    uint8_t bytes[256], flip = mica_op_input(plan->graph, &relu, 0)->type == MICA_TYPE_UINT8 ? 0x80 : 0;
    int8_t table[256];
    relu.kind = MICA_OP_LEAKY_RELU;
    relu.alpha = 0;
    int error = mica_cpu_table(plan->graph, &relu, bytes);
    if (error)
        return mica_fail(plan->log, error, "%s can't run: there is no table for its types", relu.type);
    for (int32_t i = 0; i < 256; i++)
        table[i] = (int8_t)(uint8_t)(bytes[(uint8_t)(i - 128) ^ flip] ^ flip);
    return rk_lower_table(plan, op_index, in, out, table);
}

/* The values below zero. */
static int lower_below(struct rk_plan *plan, uint32_t op_index, int32_t zero, struct rk_cube in, struct rk_cube out)
{
    int8_t table[256];
    for (int32_t i = 0; i < 256; i++)
        table[i] = (int8_t)(i - 128 < zero ? i - 128 : zero);
    return rk_lower_table(plan, op_index, in, out, table);
}

/* e->a times the slopes. */
static int lower_product(struct rk_plan *plan, struct rk_elementwise *e)
{
    if (rk_has_constant_operand(plan, e))
        return rk_lower_constant_product(plan, e);
    int error = rk_lower_operand(plan, e->op, 1, &e->b);
    return error ? error : rk_lower_elementwise(plan, e);
}

int rk_lower_prelu(struct rk_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    struct rk_elementwise e = product_of(plan->graph, op_index);
    struct rk_cube in, out, above;
    int error = rk_lower_operand(plan, op_index, 0, &in);
    if (!error)
        error = rk_plan_result(plan, (uint32_t)op->outputs[0], &out);
    if (!error && e.zero_a == INT8_MIN) /* there is nothing below */
        return lower_above(plan, op_index, in, out);
    if (!error)
        error = rk_plan_cube(plan, out.shape, &above);
    if (!error)
        error = rk_plan_cube(plan, out.shape, &e.a);
    if (!error)
        error = rk_plan_cube(plan, out.shape, &e.out);
    if (!error)
        error = lower_above(plan, op_index, in, above);
    if (!error)
        error = lower_below(plan, op_index, e.zero_a, in, e.a);
    if (!error)
        error = lower_product(plan, &e);
    return error ? error : rk_lower_combine(plan, op_index, RK_ELEMENTWISE_ADD, above, e.out, out, e.zero_out);
}
