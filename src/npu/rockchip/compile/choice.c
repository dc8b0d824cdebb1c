/* SPDX-License-Identifier: MIT */
/* GATHER, GATHER_ND with constant indices, REVERSE_V2, MIRROR_PAD, unusual slices: picks along dimensions. Exact. */
#include <errno.h>
#include <stdlib.h>

#include "graph/check.h"
#include "npu/rockchip/compile/dpu_task.h"
#include "npu/rockchip/compile/move.h"
#include "npu/rockchip/compile/pick.h"
#include "npu/rockchip/compile/refuse.h"
#include "npu/rockchip/compile/relayout.h"
#include "util/checked.h"

#define MAX_ELEMENTS (1u << 20) /* along one axis of an image */

/* A problem that is none of the operation. */
static const char no_memory[] = "memory ran out";

/* Along one dimension after the other; and then the result as pixels of `channels`. */
struct choice {
    struct rk_shape in;
    uint32_t count, channels;
    struct rk_pick picks[MICA_MAX_RANK]; /* sources owned */
};

static void finish(struct choice *choice)
{
    for (uint32_t i = 0; i < choice->count; i++)
        free((void *)(uintptr_t)choice->picks[i].source);
    choice->count = 0;
}

/* The source of all rows, when that of one of several dimensions before the columns is known. */
static uint32_t *rows_of(const uint32_t *source, uint32_t count, uint64_t before, uint64_t size, uint64_t after)
{
    uint32_t *rows = mica_new_array(before * count * after, sizeof(*rows)), *to = rows;
    for (uint64_t b = 0; rows && b < before; b++)
        for (uint32_t i = 0; i < count; i++)
            for (uint64_t a = 0; a < after; a++)
                *to++ = (uint32_t)((b * size + source[i]) * after + a);
    return rows;
}

static uint64_t product(const int32_t *dims, uint32_t first, uint32_t end)
{
    uint64_t count = 1;
    for (uint32_t i = first; i < end; i++)
        count *= (uint64_t)dims[i];
    return count;
}

/*
 * Adds element source[i] of dimension `dimension` of a tensor with these dimensions, which become the picked ones;
 * `source` is taken over. NULL, or why not.
 */
static const char *add_pick(struct choice *choice, uint32_t op, int32_t *dims, uint32_t rank, uint32_t dimension,
                            uint32_t *source, uint32_t count)
{
    struct rk_pick pick = {op, RK_ROWS, count, source};
    uint64_t size = (uint64_t)dims[dimension];
    if (!source)
        return no_memory;
    if (dimension + 1 == rank || dimension + 2 == rank) {
        pick.axis = dimension + 1 == rank ? RK_CHANNELS : RK_COLUMNS;
    } else {
        uint64_t before = product(dims, 0, dimension), after = product(dims, dimension + 1, rank - 2);
        if (before * count > MAX_ELEMENTS || before * count * after > MAX_ELEMENTS) {
            free(source);
            return "it takes too many rows";
        }
        pick.count = (uint32_t)(before * count * after);
        pick.source = rows_of(source, count, before, size, after);
        free(source);
        if (!pick.source)
            return no_memory;
    }
    dims[dimension] = (int32_t)count;
    choice->picks[choice->count++] = pick;
    return NULL;
}

/* ---- what operations take ---------------------------------------------------------- */

/* Dimensions of a tensor that change from pick to pick. */
struct extents {
    uint32_t rank;
    int32_t dims[MICA_MAX_RANK + 1];
};

static struct extents extents_of(const struct mica_tensor *tensor)
{
    struct extents extents = {.rank = tensor->rank};
    for (uint32_t i = 0; i < tensor->rank; i++)
        extents.dims[i] = tensor->dims[i];
    return extents;
}

static const char *add_reversals(struct choice *choice, uint32_t op_index, const struct mica_op *op,
                                 struct extents *extents)
{
    const char *problem = NULL;
    for (uint32_t d = 0; d < extents->rank && !problem; d++) {
        uint32_t size = (uint32_t)extents->dims[d];
        if (!(op->axes >> d & 1) || size == 1)
            continue;
        uint32_t *source = mica_new_array(size, sizeof(*source));
        for (uint32_t i = 0; source && i < size; i++)
            source[i] = size - 1 - i;
        problem = add_pick(choice, op_index, extents->dims, extents->rank, d, source, size);
    }
    return problem;
}

static const char *add_mirrors(struct choice *choice, const struct mica_graph *graph, uint32_t op_index,
                               struct extents *extents)
{
    const struct mica_op *op = &graph->ops[op_index];
    const struct mica_tensor *amounts = mica_op_input(graph, op, 1);
    int64_t before, after, inside = op->mirror_symmetric ? 0 : 1;
    const char *problem = NULL;
    for (uint32_t d = 0; d < extents->rank && !problem; d++) {
        int64_t size = extents->dims[d];
        if (!mica_constant_at(amounts, 2 * (uint64_t)d, &before) ||
            !mica_constant_at(amounts, 2 * (uint64_t)d + 1, &after))
            return "the paddings are no constant";
        if (before < 0 || after < 0 || before > size - inside || after > size - inside)
            return "its paddings are larger than what can be mirrored";
        uint32_t count = (uint32_t)(before + size + after);
        if (!before && !after)
            continue;
        uint32_t *source = mica_new_array(count, sizeof(*source));
        for (int64_t i = 0; source && i < count; i++) {
            int64_t at = i - before;
            at = at < 0 ? -at - 1 + inside : at >= size ? 2 * size - 1 - at - inside : at;
            source[i] = (uint32_t)at;
        }
        problem = add_pick(choice, op_index, extents->dims, extents->rank, d, source, count);
    }
    return problem;
}

static const char *add_slices(struct choice *choice, uint32_t op_index, const struct mica_op *op,
                              struct extents *extents)
{
    const char *problem = NULL;
    for (uint32_t d = 0; d < extents->rank && !problem; d++) {
        uint32_t count = (uint32_t)op->slice.count[d];
        if (count == (uint32_t)extents->dims[d] && (op->slice.step[d] > 0 || count == 1))
            continue;
        uint32_t *source = mica_new_array(count, sizeof(*source));
        for (uint32_t i = 0; source && i < count; i++)
            source[i] = (uint32_t)(op->slice.begin[d] + (int32_t)i * op->slice.step[d]);
        problem = add_pick(choice, op_index, extents->dims, extents->rank, d, source, count);
    }
    return problem;
}

/* Numbers of a constant, `depth` at a time: positions in dimensions of these sizes. */
static const char *read_indices(const struct mica_tensor *indices, const int32_t *dims, uint32_t depth,
                                uint32_t **source, uint32_t *count)
{
    uint64_t total = mica_elements(indices) / depth;
    if (!indices->data)
        return "the indices are computed, and the NPU reads no memory at computed places";
    if (total == 0 || total > MAX_ELEMENTS)
        return "it takes too many elements";
    *count = (uint32_t)total;
    *source = mica_new_array(total, sizeof(**source));
    if (!*source)
        return no_memory;
    for (uint64_t i = 0; i < total; i++) {
        uint64_t at = 0;
        for (uint32_t k = 0; k < depth; k++) {
            int64_t index;
            if (!mica_constant_at(indices, i * depth + k, &index) || index < 0 || index >= dims[k])
                return "an index lies outside of its dimension";
            at = at * (uint64_t)dims[k] + (uint64_t)index;
        }
        (*source)[i] = (uint32_t)at;
    }
    return NULL;
}

/* The first dimensions that the indices count through are one. */
static const char *flatten(struct extents *extents, uint32_t depth)
{
    if (depth == 0 || depth >= extents->rank)
        return "its indices name single elements, which the NPU can't address";
    uint64_t size = product(extents->dims, 0, depth);
    if (size > INT32_MAX)
        return "its dimensions are too large";
    extents->dims[0] = (int32_t)size;
    for (uint32_t i = depth; i < extents->rank; i++)
        extents->dims[i - depth + 1] = extents->dims[i];
    extents->rank -= depth - 1;
    return NULL;
}

static struct rk_shape shape_of(const struct extents *extents)
{
    struct mica_tensor tensor = {.rank = extents->rank < MICA_MAX_RANK ? extents->rank : MICA_MAX_RANK};
    for (uint32_t i = 0; i < tensor.rank; i++)
        tensor.dims[i] = extents->dims[i];
    return rk_shape_of(&tensor);
}

static const char *add_indices(struct choice *choice, const struct mica_graph *graph, uint32_t op_index,
                               struct extents *extents)
{
    const struct mica_op *op = &graph->ops[op_index];
    const struct mica_tensor *indices = mica_op_input(graph, op, 1);
    bool nd = op->kind == MICA_OP_GATHER_ND;
    uint32_t depth = nd ? (uint32_t)indices->dims[indices->rank - 1] : 1, axis = nd ? 0 : (uint32_t)op->axis, count = 0;
    uint32_t *source = NULL;
    struct extents before = *extents;
    const char *problem = nd ? flatten(extents, depth) : NULL;
    if (!problem)
        problem = read_indices(indices, before.dims + axis, depth, &source, &count);
    if (problem) {
        free(source);
        return problem;
    }
    choice->in = shape_of(extents);
    return add_pick(choice, op_index, extents->dims, extents->rank, axis, source, count);
}

/* ---- the operations ---------------------------------------------------------------- */

static const char *describe(const struct mica_graph *graph, uint32_t op_index, struct choice *choice)
{
    const struct mica_op *op = &graph->ops[op_index];
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *out = mica_op_output(graph, op, 0);
    struct extents extents = extents_of(in);
    *choice = (struct choice){.in = rk_shape_of(in), .channels = rk_shape_of(out).c};
    if (in->type != out->type || !rk_same_quantization(in, out))
        return "input and output are quantized differently";
    return op->kind == MICA_OP_REVERSE      ? add_reversals(choice, op_index, op, &extents)
           : op->kind == MICA_OP_SLICE      ? add_slices(choice, op_index, op, &extents)
           : op->kind == MICA_OP_MIRROR_PAD ? add_mirrors(choice, graph, op_index, &extents)
                                            : add_indices(choice, graph, op_index, &extents);
}

static const char *choice_problem(const struct rk_chip *chip, const struct choice *choice)
{
    struct rk_shape shape = choice->in;
    for (uint32_t i = 0; i < choice->count; i++) {
        const char *problem = rk_pick_problem(chip, shape, &choice->picks[i]);
        if (problem)
            return problem;
        shape = rk_picked_shape(shape, &choice->picks[i]);
    }
    return shape.c == choice->channels ? NULL : rk_relayout_problem(chip, shape, choice->channels);
}

int rk_supports_choice(const struct rk_chip *chip, const struct mica_graph *graph, uint32_t op_index, char *reason,
                       size_t size)
{
    const struct mica_op *op = &graph->ops[op_index];
    struct choice choice;
    if (rk_check_tensors(graph, op, 0, 1, reason, size))
        return -ENOTSUP;
    const char *problem = describe(graph, op_index, &choice);
    if (!problem)
        problem = choice_problem(chip, &choice);
    finish(&choice);
    if (problem)
        rk_refuse(reason, size, "%s", problem);
    return !problem ? 0 : problem == no_memory ? -ENOMEM : -ENOTSUP;
}

/* Pick after pick, the last of them, or the change of channels behind them, to `out`. */
static int lower_picks(struct rk_plan *plan, uint32_t op, const struct choice *choice, struct rk_cube in,
                       struct rk_cube out)
{
    struct rk_shape shape = choice->in;
    int error = 0;
    in = rk_cube_reshaped(plan, in, shape.w, shape.h);
    for (uint32_t i = 0; !error && i < choice->count; i++) {
        shape = rk_picked_shape(shape, &choice->picks[i]);
        struct rk_cube next = rk_cube_reshaped(plan, out, shape.w, shape.h);
        if (i + 1 < choice->count || shape.c != choice->channels)
            error = rk_plan_cube(plan, shape, &next);
        if (!error)
            error = rk_lower_pick(plan, &choice->picks[i], in, next);
        in = next;
    }
    if (error || (choice->count && shape.c == choice->channels))
        return error;
    return shape.c == choice->channels ? rk_lower_copy(plan, op, in, rk_cube_reshaped(plan, out, shape.w, shape.h))
                                       : rk_lower_relayout(plan, op, in, out);
}

int rk_lower_choice(struct rk_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    struct choice choice;
    struct rk_cube in, out;
    const char *problem = describe(plan->graph, op_index, &choice);
    int error = problem == no_memory ? mica_fail_nomem(plan->log)
                : problem            ? mica_fail(plan->log, -ENOTSUP, "%s can't run: %s", op->type, problem)
                                     : 0;
    if (!error)
        error = rk_plan_value(plan, (uint32_t)op->inputs[0], &in);
    if (!error)
        error = rk_plan_result(plan, (uint32_t)op->outputs[0], &out);
    if (!error)
        error = lower_picks(plan, op_index, &choice, in, out);
    finish(&choice);
    return error;
}
