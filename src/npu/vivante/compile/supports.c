/* SPDX-License-Identifier: MIT */
/*
 * What the compiler takes, and the sentence for what it does not. The graph
 * has checked types, ranks and shapes already; here stand the limits of the
 * chip and of this compiler.
 */
#include "npu/vivante/compile/supports.h"

#include <errno.h>

#include "npu/vivante/compile/batch.h"
#include "npu/vivante/compile/compile.h"
#include "npu/vivante/compile/compose.h"
#include "npu/vivante/compile/lower.h"

/* Is one operand a constant that can be biases or weights of one job? */
static bool one_job(const struct viv_chip *chip, const struct mica_graph *graph, const struct mica_op *op)
{
    char reason[256];
    struct viv_query query = {chip, graph, op, reason, sizeof(reason)};
    return viv_constant_input(graph, op) >= 0 && viv_supports_constant(&query);
}

static bool supports_sum(const struct viv_query *query)
{
    return one_job(query->chip, query->graph, query->op) || viv_supports_add(query);
}

static int lower_sum(struct viv_plan *plan, uint32_t op)
{
    bool constant = one_job(plan->chip, plan->graph, &plan->graph->ops[op]);
    return constant ? viv_lower_constant(plan, op) : viv_lower_add(plan, op);
}

static bool supports_product(const struct viv_query *query)
{
    return one_job(query->chip, query->graph, query->op) || viv_supports_multiply(query);
}

static int lower_product(struct viv_plan *plan, uint32_t op)
{
    bool constant = one_job(plan->chip, plan->graph, &plan->graph->ops[op]);
    return constant ? viv_lower_constant(plan, op) : viv_lower_multiply(plan, op);
}

static bool supports_maximum(const struct viv_query *query)
{
    return viv_table_bounds(query->graph, query->op) ? viv_supports_table(query) : viv_supports_maximum(query);
}

static int lower_maximum(struct viv_plan *plan, uint32_t op)
{
    bool bounds = viv_table_bounds(plan->graph, &plan->graph->ops[op]);
    return bounds ? viv_lower_table(plan, op) : viv_lower_maximum(plan, op);
}

/* Means over rows and columns of one image use all cores. */
static bool is_image_mean(const struct mica_graph *graph, const struct mica_op *op)
{
    const struct mica_tensor *in = mica_op_input(graph, op, 0);
    return in->rank == 4 && in->dims[0] == 1 && op->axes == 6;
}

static bool supports_mean(const struct viv_query *query)
{
    if (is_image_mean(query->graph, query->op) && viv_supports_average(query))
        return true;
    return viv_supports_reduce(query);
}

static int lower_mean(struct viv_plan *plan, uint32_t op)
{
    struct viv_query query = {plan->chip, plan->graph, &plan->graph->ops[op], NULL, 0};
    bool image = is_image_mean(query.graph, query.op) && viv_supports_average(&query);
    return image ? viv_lower_average(plan, op) : viv_lower_reduce(plan, op);
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
        [MICA_OP_MUL] = {supports_product, lower_product},
        [MICA_OP_SQUARED_DIFFERENCE] = {viv_supports_squared_difference, viv_lower_squared_difference},
        [MICA_OP_PRELU] = {viv_supports_prelu, viv_lower_prelu},
        [MICA_OP_MAXIMUM] = {supports_maximum, lower_maximum},
        [MICA_OP_MINIMUM] = {supports_maximum, lower_maximum},
        [MICA_OP_QUANTIZE] = {viv_supports_quantize, viv_lower_quantize},
        [MICA_OP_RELU] = {viv_supports_table, viv_lower_table},
        [MICA_OP_RELU6] = {viv_supports_table, viv_lower_table},
        [MICA_OP_RELU_N1_TO_1] = {viv_supports_table, viv_lower_table},
        [MICA_OP_RELU_0_TO_1] = {viv_supports_table, viv_lower_table},
        [MICA_OP_LEAKY_RELU] = {viv_supports_table, viv_lower_table},
        [MICA_OP_ABS] = {viv_supports_table, viv_lower_table},
        [MICA_OP_LOGISTIC] = {viv_supports_table, viv_lower_table},
        [MICA_OP_TANH] = {viv_supports_table, viv_lower_table},
        [MICA_OP_HARD_SWISH] = {viv_supports_table, viv_lower_table},
        [MICA_OP_ELU] = {viv_supports_table, viv_lower_table},
        [MICA_OP_EXP] = {viv_supports_table, viv_lower_table},
        [MICA_OP_LOG] = {viv_supports_table, viv_lower_table},
        [MICA_OP_SQRT] = {viv_supports_table, viv_lower_table},
        [MICA_OP_RSQRT] = {viv_supports_table, viv_lower_table},
        [MICA_OP_NEG] = {viv_supports_table, viv_lower_table},
        [MICA_OP_AVERAGE_POOL_2D] = {viv_supports_average, viv_lower_average},
        [MICA_OP_MEAN] = {supports_mean, lower_mean},
        [MICA_OP_SUM] = {viv_supports_reduce, viv_lower_reduce},
        [MICA_OP_MAX_POOL_2D] = {viv_supports_max_pool, viv_lower_max_pool},
        [MICA_OP_REDUCE_MAX] = {viv_supports_reduce, viv_lower_reduce},
        [MICA_OP_REDUCE_MIN] = {viv_supports_reduce, viv_lower_reduce},
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
    case MICA_OP_DIV:
        return "divides computed values: the NN cores have no division";
    case MICA_OP_BATCH_MATMUL:
        return "multiplies computed matrices: the NN cores only multiply by constant weights";
    case MICA_OP_SOFTMAX:
        return "divides by a sum over its values: the NN cores have no division";
    case MICA_OP_ARG_MAX:
    case MICA_OP_DETECTION_POSTPROCESS:
        return "results in indices or lists: the NPU computes 8-bit values alone";
    case MICA_OP_DEQUANTIZE:
    case MICA_OP_CAST:
        return "has a side that is not 8-bit, as the NPU's tensors are";
    default:
        return "is not implemented for this NPU";
    }
}

/* What one image needs, all do. */
static int ask_image(const struct viv_operation *operation, struct viv_query query)
{
    struct viv_batch_image image;
    viv_batch_image(query.graph, query.op, &image);
    query.graph = &image.graph;
    query.op = &image.op;
    return operation->supports(&query) ? 0 : -ENOTSUP;
}

int viv_supports(const struct mica_chip *chip, const struct mica_graph *graph, uint32_t op, char *reason, size_t size)
{
    struct viv_query query = {chip->parameters, graph, &graph->ops[op], reason, size};
    const struct viv_operation *operation = viv_operation_of(query.op->kind);
    int error = -ENOTSUP;
    if (query.op->problem)
        viv_refuse(&query, "%s", query.op->problem);
    else if (!operation)
        viv_refuse(&query, "%s %s", query.op->type, missing_unit(query.op->kind));
    else if (viv_is_batched(graph, query.op))
        error = ask_image(operation, query);
    else if (operation->supports(&query))
        error = 0;
    if (!error && size) /* one way may have been refused before another was found */
        reason[0] = 0;
    return error;
}
