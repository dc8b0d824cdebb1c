/* SPDX-License-Identifier: MIT */
/* ADD, SUB, MUL, MAXIMUM, MINIMUM of the graph: constants, broadcasting, fused activations. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "npu/rockchip/compile/broadcast.h"
#include "npu/rockchip/compile/constant_operand.h"
#include "npu/rockchip/compile/dpu_task.h"
#include "npu/rockchip/compile/fusion.h"
#include "npu/rockchip/compile/operand.h"
#include "npu/rockchip/compile/refuse.h"
#include "util/checked.h"

#define CHANNEL_STEP 16u /* what reads may touch, as in value.c */

static enum rk_elementwise_kind kind_of(const struct mica_op *op)
{
    switch (op->kind) {
    case MICA_OP_SUB:
        return RK_ELEMENTWISE_SUB;
    case MICA_OP_MUL:
        return RK_ELEMENTWISE_MUL;
    case MICA_OP_MAXIMUM:
        return RK_ELEMENTWISE_MAX;
    case MICA_OP_MINIMUM:
        return RK_ELEMENTWISE_MIN;
    default:
        return RK_ELEMENTWISE_ADD;
    }
}

static bool has_activation(const struct mica_op *op)
{
    return op->kind == MICA_OP_ADD || op->kind == MICA_OP_SUB || op->kind == MICA_OP_MUL;
}

static struct rk_elementwise describe(const struct mica_graph *graph, uint32_t op_index)
{
    const struct mica_op *op = &graph->ops[op_index];
    const struct mica_tensor *a = mica_op_input(graph, op, 0), *b = mica_op_input(graph, op, 1);
    const struct mica_tensor *out = mica_op_output(graph, op, 0);
    struct rk_elementwise e = {
        .op = op_index,
        .kind = kind_of(op),
        .scale_a = (double)a->quant.scale[0],
        .scale_b = (double)b->quant.scale[0],
        .scale_out = (double)out->quant.scale[0],
        .zero_a = rk_stored_zero(a),
        .zero_b = rk_stored_zero(b),
        .zero_out = rk_stored_zero(out),
    };
    rk_activation_range(has_activation(op) ? op->activation : MICA_ACT_NONE, out, &e.min, &e.max);
    return e;
}

static bool same_shape(struct rk_shape a, struct rk_shape b)
{
    return a.w == b.w && a.h == b.h && a.c == b.c;
}

/* Rows are all leading dimensions together: they agree as a whole, or there is only one. */
static bool repeats(struct rk_shape from, struct rk_shape to)
{
    return (from.h == to.h || from.h == 1) && (from.w == to.w || from.w == 1) && (from.c == to.c || from.c == 1);
}

int rk_check_operands(const struct rk_chip *chip, const struct mica_graph *graph, uint32_t op_index, char *reason,
                      size_t size)
{
    const struct mica_op *op = &graph->ops[op_index];
    if (rk_check_tensors(graph, op, 0, 2, reason, size))
        return -ENOTSUP;
    const struct mica_tensor *out = mica_op_output(graph, op, 0);
    const char *problem;
    for (uint32_t i = 0; i < 2; i++) {
        const struct mica_tensor *in = mica_op_input(graph, op, i);
        struct rk_shape from = rk_shape_of(in), to = rk_shape_of(out);
        if (in->type != out->type)
            return rk_refuse(reason, size, "inputs and output mix uint8 and int8");
        if (in->data || same_shape(from, to))
            continue;
        problem = repeats(from, to) ? rk_broadcast_problem(chip, from, to) : "it is repeated along some of its rows";
        if (problem)
            return rk_refuse(reason, size, "input %u can't be broadcast: %s", i, problem);
    }
    return 0;
}

int rk_supports_elementwise(const struct rk_chip *chip, const struct mica_graph *graph, uint32_t op_index, char *reason,
                            size_t size)
{
    int error = rk_check_operands(chip, graph, op_index, reason, size);
    if (error)
        return error;
    struct rk_elementwise e = describe(graph, op_index);
    const char *problem = rk_elementwise_problem(&e);
    return problem ? rk_refuse(reason, size, "%s", problem) : 0;
}

/* ---- constants ---------------------------------------------------------------- */

/* Element of `in` that stands for element 0 of the last dimension at pixel `p` of `out`. */
static uint64_t source_of(const struct mica_tensor *in, const struct mica_tensor *out, uint64_t p)
{
    uint64_t offset = 0, stride = in->rank ? (uint64_t)in->dims[in->rank - 1] : 1;
    for (uint32_t i = 1; i < out->rank; i++) {
        uint64_t size = (uint64_t)out->dims[out->rank - 1 - i];
        uint64_t own = i < in->rank ? (uint64_t)in->dims[in->rank - 1 - i] : 1;
        offset += own == 1 ? 0 : p % size * stride;
        stride *= own;
        p /= size;
    }
    return offset;
}

/* A constant repeated to the output's shape, as a cube. */
static int expand(struct rk_plan *plan, const struct mica_tensor *in, const struct mica_tensor *out,
                  struct rk_cube *cube)
{
    struct rk_shape shape = rk_shape_of(out);
    uint32_t atom = plan->chip->atom, step = in->rank && in->dims[in->rank - 1] == (int32_t)shape.c ? 1 : 0;
    uint64_t pixels = (uint64_t)shape.w * shape.h, bytes = pixels * mica_align(shape.c, CHANNEL_STEP);
    uint8_t *data = malloc(bytes), flip = in->type == MICA_TYPE_UINT8 ? 0x80 : 0;
    struct rk_ref at;
    if (!data)
        return mica_fail_nomem(plan->log);
    memset(data, rk_stored_zero(in), bytes);
    for (uint64_t p = 0; p < pixels; p++) {
        const uint8_t *from = (const uint8_t *)in->data + source_of(in, out, p);
        for (uint32_t c = 0; c < shape.c; c++)
            data[c / atom * pixels * atom + p * atom + c % atom] = from[(size_t)c * step] ^ flip;
    }
    int error = rk_plan_constant(plan, data, bytes, &at);
    if (!error)
        *cube = rk_cube_dense(plan, at, shape);
    return error;
}

/* ---- lowering ------------------------------------------------------------------- */

int rk_lower_operand(struct rk_plan *plan, uint32_t op_index, uint32_t input, struct rk_cube *cube)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    const struct mica_tensor *in = mica_op_input(plan->graph, op, input), *out = mica_op_output(plan->graph, op, 0);
    if (in->data && !same_shape(rk_shape_of(in), rk_shape_of(out)))
        return expand(plan, in, out, cube);
    int error = rk_plan_value(plan, (uint32_t)op->inputs[input], cube);
    if (error || same_shape(cube->shape, rk_shape_of(out)))
        return error;
    return rk_lower_broadcast(plan, op_index, *cube, rk_stored_zero(in), rk_shape_of(out), cube);
}

/* The convolution that waited for this addition, with it or alone. */
static int lower_with(struct rk_plan *plan, uint32_t conv, const struct rk_elementwise *e)
{
    const struct mica_op *op = &plan->graph->ops[e->op], *first = &plan->graph->ops[conv];
    int error = rk_lower_fused(plan, conv, *e, (uint32_t)op->outputs[0]);
    if (error != RK_UNFUSED)
        return error;
    error = rk_lower_conv_added(plan, conv, NULL, (uint32_t)first->outputs[0]);
    return error ? error : RK_UNFUSED;
}

int rk_lower_elementwise_op(struct rk_plan *plan, uint32_t op_index)
{
    struct rk_elementwise e = describe(plan->graph, op_index);
    uint32_t conv = rk_fused_conv(plan, op_index);
    int done = conv == RK_NONE ? RK_UNFUSED : lower_with(plan, conv, &e);
    if (done != RK_UNFUSED)
        return done;
    if (rk_has_constant_operand(plan, &e))
        return rk_lower_constant_operand(plan, &e);
    int error = rk_lower_operand(plan, op_index, 0, &e.a);
    if (!error)
        error = rk_lower_operand(plan, op_index, 1, &e.b);
    if (!error)
        error = rk_plan_result(plan, (uint32_t)plan->graph->ops[op_index].outputs[0], &e.out);
    return error ? error : rk_lower_elementwise(plan, &e);
}
