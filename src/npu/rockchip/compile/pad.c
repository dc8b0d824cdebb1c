/* SPDX-License-Identifier: MIT */
/* PAD with a constant: convolutions of one pixel, which see the value outside of the image. Exact. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "npu/rockchip/compile/refuse.h"
#include "npu/rockchip/compile/select.h"
#include "util/checked.h"

/* Left or top are 15 at most in one step. More steps than these are refused. */
#define MAX_STEPS 8u

struct pad {
    uint32_t op;
    struct rk_shape in, out;
    uint32_t left, top, before; /* pixels, and channels */
    int32_t value;              /* stored domain */
};

/* Element `i` of a constant of 32- or 64-bit integers. */
static int64_t amount_at(const struct mica_tensor *amounts, uint32_t i)
{
    if (amounts->type == MICA_TYPE_INT32) {
        int32_t value;
        memcpy(&value, (const uint8_t *)amounts->data + i * sizeof(value), sizeof(value));
        return value;
    }
    int64_t value;
    memcpy(&value, (const uint8_t *)amounts->data + i * sizeof(value), sizeof(value));
    return value;
}

static bool are_amounts(const struct mica_tensor *amounts, uint32_t rank)
{
    size_t size = amounts && amounts->type == MICA_TYPE_INT32   ? sizeof(int32_t)
                  : amounts && amounts->type == MICA_TYPE_INT64 ? sizeof(int64_t)
                                                                : 0;
    return size && amounts->data && amounts->bytes == 2 * rank * size;
}

/* The value to pad with, which PADV2 has as its third input. */
static int32_t value_of(const struct mica_graph *graph, const struct mica_op *op)
{
    const struct mica_tensor *out = mica_op_output(graph, op, 0), *value = mica_op_input(graph, op, 2);
    if (!value)
        return rk_stored_zero(out);
    uint8_t byte = *(const uint8_t *)value->data;
    return (int8_t)(uint8_t)(out->type == MICA_TYPE_UINT8 ? byte ^ 0x80 : byte);
}

static const char *describe(const struct mica_graph *graph, uint32_t op_index, struct pad *pad)
{
    const struct mica_op *op = &graph->ops[op_index];
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *out = mica_op_output(graph, op, 0);
    const struct mica_tensor *amounts = mica_op_input(graph, op, 1), *value = mica_op_input(graph, op, 2);
    if (!are_amounts(amounts, in->rank))
        return "the paddings are no constant";
    if (value && (!value->data || value->bytes != 1))
        return "the value to pad with is no constant";
    if (!rk_same_quantization(in, out))
        return "input and output are quantized differently";
    *pad = (struct pad){.op = op_index, .in = rk_shape_of(in), .out = rk_shape_of(out), .value = value_of(graph, op)};
    uint32_t rank = in->rank;
    uint32_t *const places[] = {&pad->before, &pad->left, &pad->top};
    for (uint32_t i = 0; i < rank && i < 3; i++)
        *places[i] = (uint32_t)amount_at(amounts, 2 * (rank - 1 - i));
    uint32_t outer = 1;
    for (uint32_t i = 0; i + 3 < rank; i++) {
        outer *= (uint32_t)out->dims[i];
        if (in->dims[i] != out->dims[i])
            return "it pads dimensions before the rows";
    }
    return outer > 1 && (uint32_t)in->dims[rank - 3] != (uint32_t)out->dims[rank - 3]
               ? "it pads the rows of more than one image"
               : NULL;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* The next step on the way from `shape`: as much padding as one convolution can. `left`, `top` are what is left to do.
 */
static struct rk_ones step_of(const struct pad *pad, struct rk_cube in, uint32_t left, uint32_t top)
{
    uint32_t x = least(left, RK_MAX_PAD), y = least(top, RK_MAX_PAD);
    bool last = x == left && y == top;
    struct rk_cube out = {.shape = {in.shape.w + x, in.shape.h + y, in.shape.c}};
    if (last)
        out.shape = (struct rk_shape){pad->out.w, pad->out.h, in.shape.c};
    struct rk_ones ones = rk_ones_identity(pad->op, in, out);
    ones.pad_left = (int32_t)x;
    ones.pad_top = (int32_t)y;
    ones.in_zero = ones.out_zero = pad->value;
    return ones;
}

static bool pads_channels(const struct pad *pad)
{
    return pad->in.c != pad->out.c;
}

/* Channels alone, behind all steps but the last; that one's padding comes with it. */
static struct rk_select last_of(const struct pad *pad, struct rk_cube in, uint32_t left, uint32_t top)
{
    return (struct rk_select){.op = pad->op,
                              .in = in,
                              .out = {.shape = pad->out},
                              .pad_left = (int32_t)left,
                              .pad_top = (int32_t)top,
                              .in_zero = pad->value,
                              .out_zero = pad->value};
}

static uint32_t steps_of(const struct pad *pad)
{
    uint32_t most = pad->left > pad->top ? pad->left : pad->top;
    return most <= RK_MAX_PAD ? 1 : mica_cdiv(most, RK_MAX_PAD);
}

static const char *pad_problem(const struct rk_chip *chip, const struct pad *pad)
{
    uint32_t left = pad->left, top = pad->top, steps = steps_of(pad);
    struct rk_cube in = {.shape = pad->in};
    const char *problem = NULL;
    if (steps > MAX_STEPS)
        return "it pads more than 120 columns on the left or rows at the top, 15 of which are a step of the NPU";
    for (uint32_t i = 0; i + 1 < steps && !problem; i++) {
        struct rk_ones ones = step_of(pad, in, left, top);
        problem = rk_ones_problem(chip, &ones);
        left -= (uint32_t)ones.pad_left;
        top -= (uint32_t)ones.pad_top;
        in = ones.out;
    }
    struct rk_select select = last_of(pad, in, left, top);
    struct rk_ones ones = step_of(pad, in, left, top);
    if (problem)
        return problem;
    return pads_channels(pad) ? rk_select_problem(chip, &select) : rk_ones_problem(chip, &ones);
}

int rk_supports_pad(const struct rk_chip *chip, const struct mica_graph *graph, uint32_t op_index, char *reason,
                    size_t size)
{
    const struct mica_op *op = &graph->ops[op_index];
    struct pad pad;
    if (rk_check_tensors(graph, op, 0, 1, reason, size))
        return -ENOTSUP;
    const char *problem = describe(graph, op_index, &pad);
    if (!problem)
        problem = pad_problem(chip, &pad);
    return problem ? rk_refuse(reason, size, "%s", problem) : 0;
}

static int lower_channels(struct rk_plan *plan, const struct pad *pad, struct rk_select *select)
{
    uint32_t *source = mica_new_array(pad->out.c, sizeof(*source));
    int32_t *zero = mica_new_array(pad->out.c, sizeof(*zero));
    double *factor = mica_new_array(pad->out.c, sizeof(*factor));
    int error = source && zero && factor ? 0 : mica_fail_nomem(plan->log);
    for (uint32_t o = 0; !error && o < pad->out.c; o++) {
        bool inside = o >= pad->before && o - pad->before < pad->in.c;
        source[o] = inside ? o - pad->before : RK_NO_CHANNEL;
        zero[o] = pad->value;
        factor[o] = 1;
    }
    select->source = source;
    select->zero = zero;
    select->factor = factor;
    if (!error)
        error = rk_lower_select(plan, select);
    free(source);
    free(zero);
    free(factor);
    return error;
}

static int lower_pad(struct rk_plan *plan, const struct pad *pad, struct rk_cube in, struct rk_cube out)
{
    uint32_t left = pad->left, top = pad->top, steps = steps_of(pad);
    int error = 0;
    for (uint32_t i = 0; i + 1 < steps && !error; i++) {
        struct rk_ones ones = step_of(pad, in, left, top);
        error = rk_plan_cube(plan, ones.out.shape, &ones.out);
        if (!error)
            error = rk_lower_ones(plan, &ones);
        left -= (uint32_t)ones.pad_left;
        top -= (uint32_t)ones.pad_top;
        in = ones.out;
    }
    if (error)
        return error;
    if (pads_channels(pad)) {
        struct rk_select select = last_of(pad, in, left, top);
        select.out = out;
        return lower_channels(plan, pad, &select);
    }
    struct rk_ones ones = step_of(pad, in, left, top);
    ones.out = out;
    return rk_lower_ones(plan, &ones);
}

int rk_lower_pad(struct rk_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    struct pad pad;
    struct rk_cube in, out;
    const char *problem = describe(plan->graph, op_index, &pad);
    if (problem)
        return mica_fail(plan->log, -ENOTSUP, "%s can't run: %s", op->type, problem);
    int error = rk_plan_value(plan, (uint32_t)op->inputs[0], &in);
    if (!error)
        error = rk_plan_result(plan, (uint32_t)op->outputs[0], &out);
    return error ? error : lower_pad(plan, &pad, in, out);
}
