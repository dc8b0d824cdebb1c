/* SPDX-License-Identifier: MIT */
/* What the compiler takes, and the sentence for what it does not. */
#include <errno.h>

#include "npu/rockchip/compile/operations.h"
#include "npu/rockchip/compile/refuse.h"

const struct rk_operation *rk_operation_of(enum mica_op_kind kind)
{
    static const struct rk_operation operations[] = {
        [MICA_OP_CONV_2D] = {rk_supports_conv, rk_lower_conv},
        [MICA_OP_DEPTHWISE_CONV_2D] = {rk_supports_depthwise, rk_lower_depthwise},
        [MICA_OP_FULLY_CONNECTED] = {rk_supports_fully_connected, rk_lower_fully_connected},
        [MICA_OP_TRANSPOSE_CONV] = {rk_supports_transpose_conv, rk_lower_transpose_conv},
        [MICA_OP_RESHAPE] = {rk_supports_reshape, rk_lower_reshape},
        [MICA_OP_ADD] = {rk_supports_elementwise, rk_lower_elementwise_op},
        [MICA_OP_SUB] = {rk_supports_elementwise, rk_lower_elementwise_op},
        [MICA_OP_MUL] = {rk_supports_elementwise, rk_lower_elementwise_op},
        [MICA_OP_MAXIMUM] = {rk_supports_elementwise, rk_lower_elementwise_op},
        [MICA_OP_MINIMUM] = {rk_supports_elementwise, rk_lower_elementwise_op},
        [MICA_OP_SQUARED_DIFFERENCE] = {rk_supports_squares, rk_lower_squares},
        [MICA_OP_PRELU] = {rk_supports_prelu, rk_lower_prelu},
        [MICA_OP_AVERAGE_POOL_2D] = {rk_supports_average_pool, rk_lower_average_pool},
        [MICA_OP_MAX_POOL_2D] = {rk_supports_max_pool, rk_lower_max_pool},
        [MICA_OP_MEAN] = {rk_supports_mean, rk_lower_mean},
        [MICA_OP_SUM] = {rk_supports_mean, rk_lower_mean},
        [MICA_OP_REDUCE_MAX] = {rk_supports_extreme, rk_lower_extreme},
        [MICA_OP_REDUCE_MIN] = {rk_supports_extreme, rk_lower_extreme},
        [MICA_OP_CONCATENATION] = {rk_supports_concatenation, rk_lower_concatenation},
        [MICA_OP_SPLIT] = {rk_supports_split, rk_lower_split},
        [MICA_OP_PACK] = {rk_supports_concatenation, rk_lower_concatenation},
        [MICA_OP_UNPACK] = {rk_supports_unpack, rk_lower_unpack},
        [MICA_OP_GATHER] = {rk_supports_choice, rk_lower_choice},
        [MICA_OP_GATHER_ND] = {rk_supports_choice, rk_lower_choice},
        [MICA_OP_REVERSE] = {rk_supports_choice, rk_lower_choice},
        [MICA_OP_MIRROR_PAD] = {rk_supports_choice, rk_lower_choice},
        [MICA_OP_TRANSPOSE] = {rk_supports_transpose, rk_lower_transpose},
        [MICA_OP_SLICE] = {rk_supports_slice, rk_lower_slice},
        [MICA_OP_PAD] = {rk_supports_pad, rk_lower_pad},
        [MICA_OP_RESIZE_NEAREST] = {rk_supports_resize, rk_lower_resize},
        [MICA_OP_RESIZE_BILINEAR] = {rk_supports_resize, rk_lower_resize},
        [MICA_OP_SPACE_TO_DEPTH] = {rk_supports_depth_space, rk_lower_depth_space},
        [MICA_OP_DEPTH_TO_SPACE] = {rk_supports_depth_space, rk_lower_depth_space},
        [MICA_OP_LOGISTIC] = {rk_supports_lookup, rk_lower_lookup},
        [MICA_OP_QUANTIZE] = {rk_supports_lookup, rk_lower_lookup},
        [MICA_OP_RELU] = {rk_supports_lookup, rk_lower_lookup},
        [MICA_OP_RELU6] = {rk_supports_lookup, rk_lower_lookup},
        [MICA_OP_RELU_N1_TO_1] = {rk_supports_lookup, rk_lower_lookup},
        [MICA_OP_RELU_0_TO_1] = {rk_supports_lookup, rk_lower_lookup},
        [MICA_OP_LEAKY_RELU] = {rk_supports_lookup, rk_lower_lookup},
        [MICA_OP_TANH] = {rk_supports_lookup, rk_lower_lookup},
        [MICA_OP_HARD_SWISH] = {rk_supports_lookup, rk_lower_lookup},
        [MICA_OP_ELU] = {rk_supports_lookup, rk_lower_lookup},
        [MICA_OP_ABS] = {rk_supports_lookup, rk_lower_lookup},
        [MICA_OP_NEG] = {rk_supports_lookup, rk_lower_lookup},
        [MICA_OP_EXP] = {rk_supports_lookup, rk_lower_lookup},
        [MICA_OP_SQRT] = {rk_supports_lookup, rk_lower_lookup},
        [MICA_OP_RSQRT] = {rk_supports_lookup, rk_lower_lookup},
        [MICA_OP_LOG] = {rk_supports_lookup, rk_lower_lookup},
    };
    if ((size_t)kind >= sizeof(operations) / sizeof(operations[0]) || !operations[kind].supports)
        return NULL;
    return &operations[kind];
}

/* Why the host has to run what no unit of the NPU computes. */
static const char *missing_unit(enum mica_op_kind kind)
{
    switch (kind) {
    case MICA_OP_SOFTMAX:
        return "it divides by a sum over its values, and the NPU has no divider";
    case MICA_OP_DETECTION_POSTPROCESS:
    case MICA_OP_ARG_MAX:
        return "its result is an index or a list, and the NPU computes values alone";
    case MICA_OP_DEQUANTIZE:
    case MICA_OP_CAST:
        return "one side of it is not 8-bit, and the NPU's tensors are";
    case MICA_OP_BATCH_MATMUL:
        return "products of matrices are only taken as FULLY_CONNECTED";
    default:
        return "the compiler has no way of computing it on this NPU yet";
    }
}

int rk_supports_graph_op(const struct rk_chip *chip, const struct mica_graph *graph, uint32_t op_index, char *reason,
                         size_t size)
{
    const struct mica_op *op = &graph->ops[op_index];
    if (op->problem)
        return rk_refuse(reason, size, "%s", op->problem);
    const struct rk_operation *operation = rk_operation_of(op->kind);
    if (!operation)
        return rk_refuse(reason, size, "%s: %s", op->type, missing_unit(op->kind));
    return operation->supports(chip, graph, op_index, reason, size);
}

int rk_supports(const struct mica_chip *chip, const struct mica_graph *graph, uint32_t op, char *reason, size_t size)
{
    return rk_supports_graph_op(chip->parameters, graph, op, reason, size);
}
