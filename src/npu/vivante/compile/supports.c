/* SPDX-License-Identifier: MIT */
/*
 * What the compiler takes, and the sentence for what it does not. The graph
 * has checked types, ranks and shapes already; here stand the limits of the
 * chip and of this compiler.
 */
#include "npu/vivante/compile/supports.h"

#include <errno.h>

#include "npu/vivante/compile/compile.h"
#include "npu/vivante/compile/compose.h"
#include "npu/vivante/compile/lower.h"

static bool supports_sum(const struct viv_query *query)
{
    return viv_constant_input(query->graph, query->op) >= 0 ? viv_supports_constant(query) : viv_supports_add(query);
}

static int lower_sum(struct viv_plan *plan, uint32_t op)
{
    bool constant = viv_constant_input(plan->graph, &plan->graph->ops[op]) >= 0;
    return constant ? viv_lower_constant(plan, op) : viv_lower_add(plan, op);
}

static bool supports_product(const struct viv_query *query)
{
    if (viv_constant_input(query->graph, query->op) >= 0)
        return viv_supports_constant(query);
    return viv_refuse(query, "MUL multiplies computed values: the NN cores only multiply by constant weights");
}

const struct viv_operation *viv_operation_of(enum mica_op_kind kind)
{
    static const struct viv_operation operations[] = {
        [MICA_OP_CONV_2D] = {viv_supports_conv, viv_lower_conv},
        [MICA_OP_DEPTHWISE_CONV_2D] = {viv_supports_conv, viv_lower_depthwise},
        [MICA_OP_FULLY_CONNECTED] = {viv_supports_fully_connected, viv_lower_fully_connected},
        [MICA_OP_TRANSPOSE_CONV] = {viv_supports_transpose_conv, viv_lower_transpose_conv},
        [MICA_OP_ADD] = {supports_sum, lower_sum},
        [MICA_OP_SUB] = {supports_sum, lower_sum},
        [MICA_OP_MUL] = {supports_product, viv_lower_constant},
        [MICA_OP_MAXIMUM] = {viv_supports_maximum, viv_lower_maximum},
        [MICA_OP_MINIMUM] = {viv_supports_maximum, viv_lower_maximum},
        [MICA_OP_QUANTIZE] = {viv_supports_unary, viv_lower_unary},
        [MICA_OP_RELU] = {viv_supports_unary, viv_lower_unary},
        [MICA_OP_RELU6] = {viv_supports_unary, viv_lower_unary},
        [MICA_OP_RELU_N1_TO_1] = {viv_supports_unary, viv_lower_unary},
        [MICA_OP_RELU_0_TO_1] = {viv_supports_unary, viv_lower_unary},
        [MICA_OP_LEAKY_RELU] = {viv_supports_fold, viv_lower_fold},
        [MICA_OP_ABS] = {viv_supports_fold, viv_lower_fold},
        [MICA_OP_AVERAGE_POOL_2D] = {viv_supports_average, viv_lower_average},
        [MICA_OP_MEAN] = {viv_supports_average, viv_lower_average},
        [MICA_OP_MAX_POOL_2D] = {viv_supports_max_pool, viv_lower_max_pool},
        [MICA_OP_REDUCE_MAX] = {viv_supports_max_pool, viv_lower_max_pool},
        [MICA_OP_RESIZE_BILINEAR] = {viv_supports_bilinear, viv_lower_bilinear},
        [MICA_OP_CONCATENATION] = {viv_supports_concatenation, viv_lower_concatenation},
        [MICA_OP_PAD] = {viv_supports_pad, viv_lower_pad},
        [MICA_OP_RESHAPE] = {viv_supports_reshape, viv_lower_reshape},
        [MICA_OP_SLICE] = {viv_supports_move, viv_lower_move},
        [MICA_OP_SPLIT] = {viv_supports_move, viv_lower_move},
        [MICA_OP_PACK] = {viv_supports_move, viv_lower_move},
        [MICA_OP_UNPACK] = {viv_supports_move, viv_lower_move},
        [MICA_OP_TRANSPOSE] = {viv_supports_move, viv_lower_move},
        [MICA_OP_MIRROR_PAD] = {viv_supports_move, viv_lower_move},
        [MICA_OP_GATHER] = {viv_supports_move, viv_lower_move},
        [MICA_OP_GATHER_ND] = {viv_supports_move, viv_lower_move},
        [MICA_OP_REVERSE] = {viv_supports_move, viv_lower_move},
        [MICA_OP_SPACE_TO_DEPTH] = {viv_supports_move, viv_lower_move},
        [MICA_OP_DEPTH_TO_SPACE] = {viv_supports_move, viv_lower_move},
        [MICA_OP_RESIZE_NEAREST] = {viv_supports_move, viv_lower_move},
    };
    if ((size_t)kind >= sizeof(operations) / sizeof(operations[0]) || !operations[kind].supports)
        return NULL;
    return &operations[kind];
}

/* Why the host has to run what no job of the NPU computes. */
static const char *missing_unit(enum mica_op_kind kind)
{
    switch (kind) {
    case MICA_OP_LOGISTIC:
    case MICA_OP_TANH:
    case MICA_OP_HARD_SWISH:
    case MICA_OP_ELU:
    case MICA_OP_EXP:
    case MICA_OP_SQRT:
    case MICA_OP_RSQRT:
    case MICA_OP_LOG:
        return "needs a table: how the TP cores interpolate between its entries is not known";
    case MICA_OP_SQUARED_DIFFERENCE:
    case MICA_OP_DIV:
    case MICA_OP_BATCH_MATMUL:
        return "multiplies computed values: the NN cores only multiply by constant weights";
    default:
        return "is not implemented for this NPU";
    }
}

int viv_supports(const struct mica_chip *chip, const struct mica_graph *graph, uint32_t op, char *reason, size_t size)
{
    struct viv_query query = {chip->parameters, graph, &graph->ops[op], reason, size};
    const struct viv_operation *operation = viv_operation_of(query.op->kind);
    if (query.op->problem)
        viv_refuse(&query, "%s", query.op->problem);
    else if (!operation)
        viv_refuse(&query, "%s %s", query.op->type, missing_unit(query.op->kind));
    else if (operation->supports(&query))
        return 0;
    return -ENOTSUP;
}
