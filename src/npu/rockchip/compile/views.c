/* SPDX-License-Identifier: MIT */
/*
 * A tensor's bytes have an order, its cube a shape. Nobody looks at the shape who takes the bytes in order: the host,
 * a fully connected layer, which weighs a row of values wherever they are; and, if nobody looks at what they make of
 * them, reshapes, functions of one value, and concatenations along the first dimension.
 */
#include "npu/rockchip/compile/views.h"

#include <errno.h>

#include "npu/rockchip/compile/layer.h"
#include "npu/rockchip/compile/operations.h"
#include "npu/rockchip/compile/relayout.h"
#include "util/checked.h"

#define MAX_CHAIN 32u /* operations that are followed */

static bool reads(const struct mica_op *op, int32_t tensor)
{
    for (uint32_t i = 0; i < op->input_count; i++)
        if (op->inputs[i] == tensor)
            return true;
    return false;
}

bool rk_is_reshape(const struct mica_graph *graph, const struct mica_op *op)
{
    if (op->kind != MICA_OP_TRANSPOSE || op->problem)
        return op->kind == MICA_OP_RESHAPE;
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *order = mica_op_input(graph, op, 1);
    int32_t last = -1;
    for (uint32_t i = 0; i < in->rank; i++) {
        int32_t dimension = ((const int32_t *)order->data)[i];
        if (in->dims[dimension] == 1)
            continue;
        if (dimension < last)
            return false;
        last = dimension;
    }
    return true;
}

bool rk_is_sequence(const struct mica_graph *graph, const struct mica_op *op)
{
    const struct mica_tensor *out = mica_op_output(graph, op, 0);
    for (int32_t i = 0; i < op->axis; i++)
        if (out->dims[i] != 1)
            return false;
    return true;
}

/* ---- forward ------------------------------------------------------------------------ */

struct search {
    const struct rk_chip *chip;
    const struct mica_graph *graph;
    const struct rk_shape *view;
    uint32_t budget;
};

static int nobody_looks(struct search *search, int32_t tensor);

/* What an operation makes of the value is in the same form. */
static int follow(struct search *search, const struct mica_op *op)
{
    if (search->budget == 0)
        return 0;
    search->budget--;
    return nobody_looks(search, op->outputs[0]);
}

/* One that can't be done runs on the host. */
static int concatenation_takes(struct search *search, uint32_t op_index)
{
    const struct mica_op *op = &search->graph->ops[op_index];
    const struct rk_shape *view = search->view;
    char reason[256];
    if (rk_check_concatenation(search->chip, search->graph, op_index, true, reason, sizeof(reason)))
        return 1;
    search->view = NULL;
    int answer = rk_is_sequence(search->graph, op) ? follow(search, op) : 0;
    search->view = view;
    if (answer)
        return answer;
    return rk_check_concatenation(search->chip, search->graph, op_index, false, reason, sizeof(reason)) != 0;
}

/* Would operation `op` do with the bytes of `tensor` in that form? 1, 0, -ENOMEM. */
static int takes(struct search *search, uint32_t op_index, int32_t tensor)
{
    const struct mica_op *op = &search->graph->ops[op_index];
    char reason[256];
    if (op->problem)
        return 1; /* the host runs it */
    if (rk_is_reshape(search->graph, op))
        return follow(search, op);
    if (op->kind == MICA_OP_CONCATENATION)
        return concatenation_takes(search, op_index);
    int error = rk_supports_graph_op(search->chip, search->graph, op_index, reason, sizeof(reason));
    if (error)
        return error == -ENOMEM ? error : 1;
    if (op->kind == MICA_OP_FULLY_CONNECTED)
        return search->view && op->inputs[0] == tensor &&
               rk_fully_connected_takes(search->chip, search->graph, op, *search->view);
    return rk_operation_of(op->kind)->supports == rk_supports_lookup ? follow(search, op) : 0;
}

static int nobody_looks(struct search *search, int32_t tensor)
{
    int answer = 1;
    for (uint32_t i = 0; i < search->graph->op_count && answer > 0; i++)
        if (reads(&search->graph->ops[i], tensor))
            answer = takes(search, i, tensor);
    return answer;
}

int rk_nobody_looks(const struct rk_chip *chip, const struct mica_graph *graph, int32_t tensor,
                    const struct rk_shape *view)
{
    struct search search = {chip, graph, view, MAX_CHAIN};
    return nobody_looks(&search, tensor);
}

/* ---- backward ----------------------------------------------------------------------- */

static bool same_shape(struct rk_shape a, struct rk_shape b)
{
    return a.w == b.w && a.h == b.h && a.c == b.c;
}

/* 1: no NPU makes it; what another reshape or a concatenation makes counts as the NPU's, whoever runs it. */
static int host_makes(const struct rk_chip *chip, const struct mica_graph *graph, int32_t tensor)
{
    char reason[256];
    for (uint32_t i = 0; i < graph->op_count; i++)
        for (uint32_t n = 0; n < graph->ops[i].output_count; n++) {
            const struct mica_op *op = &graph->ops[i];
            if (op->outputs[n] != tensor || op->problem)
                continue;
            if (rk_is_reshape(graph, op) || op->kind == MICA_OP_CONCATENATION)
                return 0;
            int error = rk_supports_graph_op(chip, graph, i, reason, sizeof(reason));
            return error == -ENOMEM ? error : error != 0;
        }
    return graph->tensors[tensor].data == NULL;
}

/* 1: all readers of a tensor are reshapes to this shape, or run on the host. */
static int all_want(const struct rk_chip *chip, const struct mica_graph *graph, int32_t tensor, struct rk_shape shape)
{
    char reason[256];
    for (uint32_t i = 0; i < graph->op_count; i++) {
        const struct mica_op *op = &graph->ops[i];
        if (!reads(op, tensor) || op->problem)
            continue;
        if (rk_is_reshape(graph, op) && same_shape(rk_shape_of(mica_op_output(graph, op, 0)), shape))
            continue;
        if (rk_is_reshape(graph, op) || op->kind == MICA_OP_CONCATENATION)
            return 0;
        int error = rk_supports_graph_op(chip, graph, i, reason, sizeof(reason));
        if (error == 0 || error == -ENOMEM)
            return error;
    }
    return 1;
}

static enum rk_reshape_way way_of(int answer, enum rk_reshape_way way)
{
    return answer < 0 ? RK_RESHAPE_NOMEM : answer ? way : RK_RESHAPE_REFUSED;
}

enum rk_reshape_way rk_reshape_way(const struct rk_chip *chip, const struct mica_graph *graph, uint32_t op_index)
{
    const struct mica_op *op = &graph->ops[op_index];
    struct rk_shape from = rk_shape_of(mica_op_input(graph, op, 0)), to = rk_shape_of(mica_op_output(graph, op, 0));
    enum rk_reshape_way way = way_of(rk_nobody_looks(chip, graph, op->outputs[0], &from), RK_RESHAPE_UNSEEN);
    if (way != RK_RESHAPE_REFUSED)
        return way;
    if (from.c == to.c)
        return RK_RESHAPE_PIXELS;
    int answer = host_makes(chip, graph, op->inputs[0]);
    if (answer > 0)
        answer = all_want(chip, graph, op->inputs[0], to);
    way = way_of(answer, RK_RESHAPE_WRITTEN);
    if (way == RK_RESHAPE_REFUSED && !rk_relayout_problem(chip, from, to.c))
        way = RK_RESHAPE_RELAYOUT;
    return way;
}

int rk_written_shape(const struct rk_plan *plan, uint32_t tensor, struct rk_shape *shape)
{
    const struct mica_graph *graph = plan->graph;
    *shape = rk_shape_of(&graph->tensors[tensor]);
    for (uint32_t i = 0; i < plan->partition->op_count; i++) {
        const struct mica_op *op = &graph->ops[plan->partition->ops[i]];
        if (!rk_is_reshape(graph, op) || op->inputs[0] != (int32_t)tensor)
            continue;
        enum rk_reshape_way way = rk_reshape_way(plan->chip, graph, plan->partition->ops[i]);
        if (way == RK_RESHAPE_NOMEM)
            return mica_fail_nomem(plan->log);
        if (way == RK_RESHAPE_WRITTEN)
            *shape = rk_shape_of(mica_op_output(graph, op, 0));
    }
    return 0;
}
