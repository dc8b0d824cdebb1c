/* SPDX-License-Identifier: MIT */
/*
 * Concatenation; PACK is one of inputs that have got a dimension. Along rows, or along channels at multiples of
 * sixteen, each input has its place in the output: it is computed there, or copied. Other channels come side by side
 * into one cube first, from where a 1x1 convolution takes each one. Columns: each input is widened to the output's
 * width by zero points on its right; read from so many pixels before, it stands in its columns, zero points everywhere
 * else, and all are added. All exact but for the rounding of inputs with another scale.
 */
#include <errno.h>
#include <stdlib.h>

#include "npu/rockchip/compile/dpu_task.h"
#include "npu/rockchip/compile/move.h"
#include "npu/rockchip/compile/refuse.h"
#include "npu/rockchip/compile/relayout.h"
#include "npu/rockchip/compile/select.h"
#include "npu/rockchip/compile/views.h"
#include "util/checked.h"

enum way {
    WAY_NONE,
    WAY_PIXELS, /* one behind the other in memory */
    WAY_CHANNELS,
    WAY_SELECTED_CHANNELS,
    WAY_COLUMNS,
};

/* An input as a part of the output: of PACK with the dimension that it gets. */
static struct rk_shape shape_of(const struct mica_graph *graph, const struct mica_op *op, uint32_t i)
{
    struct mica_tensor part = *mica_op_input(graph, op, i);
    if (op->kind != MICA_OP_PACK)
        return rk_shape_of(&part);
    for (uint32_t d = part.rank; d > (uint32_t)op->axis; d--)
        part.dims[d] = part.dims[d - 1];
    part.dims[op->axis] = 1;
    part.rank++;
    return rk_shape_of(&part);
}

/* Do all inputs begin at multiples of the channel step? */
static bool are_aligned(const struct mica_graph *graph, const struct mica_op *op)
{
    for (uint32_t i = 0; i + 1 < op->input_count; i++)
        if (shape_of(graph, op, i).c % RK_CHANNEL_STEP)
            return false;
    return true;
}

static enum way way_of(const struct mica_graph *graph, const struct mica_op *op)
{
    const struct mica_tensor *out = mica_op_output(graph, op, 0);
    uint32_t axis = (uint32_t)op->axis, before = 1;
    if (axis + 1 == out->rank)
        return are_aligned(graph, op) ? WAY_CHANNELS : WAY_SELECTED_CHANNELS;
    for (uint32_t i = 0; i < axis; i++)
        before *= (uint32_t)out->dims[i];
    if (before == 1)
        return WAY_PIXELS;
    return axis + 2 == out->rank ? WAY_COLUMNS : WAY_NONE;
}

static double factor_of(const struct mica_tensor *in, const struct mica_tensor *out)
{
    return (double)in->quant.scale[0] / (double)out->quant.scale[0];
}

/* Lanes of the cube that has all inputs side by side. */
static uint32_t lanes_of(const struct mica_graph *graph, const struct mica_op *op)
{
    uint64_t lanes = 0;
    for (uint32_t i = 0; i < op->input_count; i++)
        lanes += mica_align(shape_of(graph, op, i).c, RK_CHANNEL_STEP);
    return lanes > UINT32_MAX ? UINT32_MAX : (uint32_t)lanes;
}

static struct rk_cube with_channels(struct rk_shape shape, uint32_t channels)
{
    shape.c = channels;
    return (struct rk_cube){.shape = shape};
}

/* An input as wide as the output, zero points on its right. */
static struct rk_ones widened(const struct mica_graph *graph, uint32_t op_index, uint32_t i)
{
    const struct mica_op *op = &graph->ops[op_index];
    const struct mica_tensor *in = mica_op_input(graph, op, i), *out = mica_op_output(graph, op, 0);
    struct rk_ones ones = rk_ones_identity(op_index, (struct rk_cube){.shape = shape_of(graph, op, i)},
                                           (struct rk_cube){.shape = rk_shape_of(out)});
    ones.factor = factor_of(in, out);
    ones.in_zero = rk_stored_zero(in);
    ones.out_zero = rk_stored_zero(out);
    return ones;
}

/* One input: can it be brought to the output's quantization and place? */
static const char *input_problem(const struct rk_chip *chip, const struct mica_graph *graph, uint32_t op_index,
                                 uint32_t i, enum way way)
{
    const struct mica_op *op = &graph->ops[op_index];
    const struct mica_tensor *in = mica_op_input(graph, op, i), *out = mica_op_output(graph, op, 0);
    struct rk_shape own = rk_shape_of(in), part = shape_of(graph, op, i);
    double factor = factor_of(in, out);
    if (in->type != out->type)
        return "input and output mix uint8 and int8";
    if (!rk_requantize_possible(factor))
        return "its scale is too large for the output's";
    if (way == WAY_COLUMNS) {
        struct rk_ones ones = widened(graph, op_index, i);
        return rk_ones_problem(chip, &ones);
    }
    return own.c == part.c ? NULL : rk_relayout_problem(chip, own, part.c);
}

/* The factors of all output channels. */
static void fill_factors(const struct mica_graph *graph, const struct mica_op *op, double *factor)
{
    uint32_t o = 0;
    for (uint32_t i = 0; i < op->input_count; i++) {
        const struct mica_tensor *in = mica_op_input(graph, op, i);
        for (uint32_t c = 0; c < shape_of(graph, op, i).c; c++)
            factor[o++] = factor_of(in, mica_op_output(graph, op, 0));
    }
}

/* Neighbouring channels share a converter, whose factors mustn't be too far apart. */
static const char *selection_problem(const struct rk_chip *chip, const struct mica_graph *graph,
                                     const struct mica_op *op)
{
    struct rk_shape shape = rk_shape_of(mica_op_output(graph, op, 0));
    struct rk_select select = {.in = with_channels(shape, lanes_of(graph, op)), .out = {.shape = shape}};
    const char *problem = rk_select_problem(chip, &select);
    double factors[RK_CHANNEL_STEP];
    uint32_t count = 0;
    for (uint32_t i = 0; i < op->input_count && !problem; i++) {
        const struct mica_tensor *in = mica_op_input(graph, op, i);
        for (uint32_t c = 0; c < shape_of(graph, op, i).c && !problem; c++) {
            factors[count++] = factor_of(in, mica_op_output(graph, op, 0));
            if (count == RK_CHANNEL_STEP) {
                problem = rk_factors_problem(factors, count, NULL);
                count = 0;
            }
        }
    }
    return problem || !count ? problem : rk_factors_problem(factors, count, NULL);
}

int rk_check_concatenation(const struct rk_chip *chip, const struct mica_graph *graph, uint32_t op_index,
                           bool in_sequence, char *reason, size_t size)
{
    const struct mica_op *op = &graph->ops[op_index];
    if (rk_check_tensors(graph, op, 0, op->input_count, reason, size))
        return -ENOTSUP;
    enum way way = in_sequence ? WAY_PIXELS : way_of(graph, op);
    if (way == WAY_NONE)
        return rk_refuse(reason, size, "it concatenates along dimension %d, before rows of an image", op->axis);
    for (uint32_t i = 0; i < op->input_count; i++) {
        const char *problem = input_problem(chip, graph, op_index, i, way);
        if (problem)
            return rk_refuse(reason, size, "input %u can't be concatenated: %s", i, problem);
    }
    const char *problem = way == WAY_SELECTED_CHANNELS ? selection_problem(chip, graph, op) : NULL;
    return problem ? rk_refuse(reason, size, "%s", problem) : 0;
}

int rk_supports_concatenation(const struct rk_chip *chip, const struct mica_graph *graph, uint32_t op_index,
                              char *reason, size_t size)
{
    const struct mica_op *op = &graph->ops[op_index];
    int error = rk_check_concatenation(chip, graph, op_index, false, reason, size);
    if (error != -ENOTSUP || op->problem || !rk_is_sequence(graph, op))
        return error;
    char other[256];
    if (rk_check_concatenation(chip, graph, op_index, true, other, sizeof(other)))
        return error;
    int unseen = rk_nobody_looks(chip, graph, op->outputs[0], NULL);
    return unseen < 0 ? unseen : unseen ? 0 : error;
}

/* ---- lowering --------------------------------------------------------------------- */

struct concatenation {
    struct rk_plan *plan;
    const struct mica_op *op;
    uint32_t op_index;
    const struct mica_tensor *tensor; /* the output */
    struct rk_cube out;
};

/* The value of an input in the shape of its part of the output. */
static int value_of(const struct concatenation *c, uint32_t i, struct rk_cube *cube)
{
    struct rk_shape shape = shape_of(c->plan->graph, c->op, i);
    struct rk_cube in;
    int error = rk_plan_value(c->plan, (uint32_t)c->op->inputs[i], &in);
    if (error)
        return error;
    if (in.shape.c == shape.c) {
        *cube = c->op->kind == MICA_OP_PACK ? rk_cube_reshaped(c->plan, in, shape.w, shape.h) : in;
        return 0;
    }
    error = rk_plan_cube(c->plan, shape, cube);
    return error ? error : rk_lower_relayout(c->plan, c->op_index, in, *cube);
}

/* Each input at its place: behind `*at` pixels or channels. */
static int lower_places(const struct concatenation *c, bool channels)
{
    uint64_t at = 0;
    int error = 0;
    for (uint32_t i = 0; !error && i < c->op->input_count; i++) {
        const struct mica_tensor *in = mica_op_input(c->plan->graph, c->op, i);
        struct rk_shape shape = shape_of(c->plan->graph, c->op, i);
        struct rk_cube cube, place;
        error = value_of(c, i, &cube);
        if (error)
            break;
        if (channels) {
            place = rk_cube_channels(c->plan, c->out, (uint32_t)at, shape.c);
        } else {
            place = rk_cube_run(c->plan, c->out, at, 0);
            place = rk_cube_reshaped(c->plan, place, shape.w, shape.h);
        }
        at += channels ? shape.c : (uint64_t)shape.w * shape.h;
        error = rk_lower_place(c->plan, c->op_index, cube, rk_stored_zero(in), place, rk_stored_zero(c->tensor),
                               factor_of(in, c->tensor));
    }
    return error;
}

/* All inputs into one cube, as they are; `source` and `zero` say where output channels are in it. */
static int gather(const struct concatenation *c, struct rk_cube joint, uint32_t *source, int32_t *zero)
{
    uint32_t lane = 0, o = 0;
    int error = 0;
    for (uint32_t i = 0; !error && i < c->op->input_count; i++) {
        const struct mica_tensor *in = mica_op_input(c->plan->graph, c->op, i);
        uint32_t channels = shape_of(c->plan->graph, c->op, i).c;
        struct rk_cube cube;
        error = value_of(c, i, &cube);
        if (!error)
            error =
                rk_lower_place(c->plan, c->op_index, cube, 0, rk_cube_channels(c->plan, joint, lane, channels), 0, 1);
        for (uint32_t n = 0; n < channels; n++, o++) {
            source[o] = lane + n;
            zero[o] = rk_stored_zero(in);
        }
        lane += (uint32_t)mica_align(channels, RK_CHANNEL_STEP);
    }
    return error;
}

static int lower_selection(const struct concatenation *c)
{
    struct rk_shape shape = c->out.shape;
    uint32_t *source = mica_new_array(shape.c, sizeof(*source));
    int32_t *zero = mica_new_array(shape.c, sizeof(*zero));
    double *factor = mica_new_array(shape.c, sizeof(*factor));
    struct rk_cube joint;
    int error = source && zero && factor ? 0 : mica_fail_nomem(c->plan->log);
    if (!error)
        error = rk_plan_cube(c->plan, with_channels(shape, lanes_of(c->plan->graph, c->op)).shape, &joint);
    if (!error)
        error = gather(c, joint, source, zero);
    if (!error) {
        fill_factors(c->plan->graph, c->op, factor);
        struct rk_select select = {.op = c->op_index,
                                   .in = joint,
                                   .out = c->out,
                                   .source = source,
                                   .zero = zero,
                                   .factor = factor,
                                   .out_zero = rk_stored_zero(c->tensor)};
        error = rk_lower_select(c->plan, &select);
    }
    free(source);
    free(zero);
    free(factor);
    return error;
}

/* Adds the pixels of a widened input to the output's, `column` columns further right. */
static int add_columns(const struct concatenation *c, struct rk_cube input, uint32_t column)
{
    uint64_t pixels = (uint64_t)c->out.shape.w * c->out.shape.h - column;
    struct rk_cube place = rk_cube_run(c->plan, c->out, column, pixels);
    return rk_lower_combine(c->plan, c->op_index, RK_ELEMENTWISE_ADD, rk_cube_run(c->plan, input, 0, pixels), place,
                            place, rk_stored_zero(c->tensor));
}

static int lower_columns(const struct concatenation *c)
{
    uint32_t column = 0;
    int error = 0;
    for (uint32_t i = 0; !error && i < c->op->input_count; i++) {
        struct rk_ones ones = widened(c->plan->graph, c->op_index, i);
        error = value_of(c, i, &ones.in);
        ones.out = c->out;
        if (!error && i > 0)
            error = rk_plan_cube(c->plan, c->out.shape, &ones.out);
        if (!error)
            error = rk_lower_ones(c->plan, &ones);
        if (!error && i > 0)
            error = add_columns(c, ones.out, column);
        column += shape_of(c->plan->graph, c->op, i).w;
    }
    return error;
}

/* Is one of the inputs not in the shape of its tensor? */
static bool has_views(const struct rk_plan *plan, const struct mica_op *op)
{
    for (uint32_t i = 0; i < op->input_count; i++) {
        const struct rk_value *value = &plan->values[op->inputs[i]];
        if (value->piece_count || (value->cube.at.storage != RK_NONE &&
                                   value->cube.shape.c != rk_shape_of(mica_op_input(plan->graph, op, i)).c))
            return true;
    }
    return false;
}

int rk_lower_concatenation(struct rk_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    struct concatenation c = {plan, op, op_index, mica_op_output(plan->graph, op, 0), {.packed = false}};
    char reason[256];
    if (has_views(plan, op) || rk_check_concatenation(plan->chip, plan->graph, op_index, false, reason, sizeof(reason)))
        return rk_lower_sequence(plan, op_index);
    int error = rk_plan_result(plan, (uint32_t)op->outputs[0], &c.out);
    if (error)
        return error;
    switch (way_of(plan->graph, op)) {
    case WAY_PIXELS:
        return lower_places(&c, false);
    case WAY_CHANNELS:
        return lower_places(&c, true);
    case WAY_SELECTED_CHANNELS:
        return lower_selection(&c);
    case WAY_COLUMNS:
        return lower_columns(&c);
    default:
        return mica_fail(plan->log, -ENOTSUP, "%s along dimension %d can't run", op->type, op->axis);
    }
}
