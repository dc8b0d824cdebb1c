/* SPDX-License-Identifier: MIT */
#include "cpu/cpu.h"

#include <errno.h>

#include "cpu/kernels.h"

struct entry {
    mica_cpu_check *check;
    mica_cpu_kernel *run;
};

static const struct entry entries[] = {
    [MICA_OP_CONV_2D] = {mica_cpu_check_conv, mica_cpu_conv},
    [MICA_OP_DEPTHWISE_CONV_2D] = {mica_cpu_check_depthwise, mica_cpu_depthwise},
    [MICA_OP_FULLY_CONNECTED] = {mica_cpu_check_fully_connected, mica_cpu_fully_connected},
    [MICA_OP_ADD] = {mica_cpu_check_arith, mica_cpu_arith},
    [MICA_OP_AVERAGE_POOL_2D] = {mica_cpu_check_pool, mica_cpu_average_pool},
    [MICA_OP_MAX_POOL_2D] = {mica_cpu_check_pool, mica_cpu_max_pool},
    [MICA_OP_RESHAPE] = {mica_cpu_check_reshape, mica_cpu_reshape},
    [MICA_OP_SOFTMAX] = {mica_cpu_check_softmax, mica_cpu_softmax},
    [MICA_OP_LOGISTIC] = {mica_cpu_check_unary, mica_cpu_unary},
    [MICA_OP_CONCATENATION] = {mica_cpu_check_concatenation, mica_cpu_concatenation},
    [MICA_OP_PAD] = {mica_cpu_check_pad, mica_cpu_pad},
    [MICA_OP_QUANTIZE] = {mica_cpu_check_quantize, mica_cpu_quantize},
    [MICA_OP_DEQUANTIZE] = {mica_cpu_check_dequantize, mica_cpu_dequantize},
    [MICA_OP_RESIZE_BILINEAR] = {mica_cpu_check_resize, mica_cpu_resize_bilinear},
    [MICA_OP_RESIZE_NEAREST] = {mica_cpu_check_resize, mica_cpu_resize_nearest},
    [MICA_OP_DETECTION_POSTPROCESS] = {mica_cpu_check_postprocess, mica_cpu_postprocess},
    [MICA_OP_SUB] = {mica_cpu_check_arith, mica_cpu_arith},
    [MICA_OP_MUL] = {mica_cpu_check_arith, mica_cpu_arith},
    [MICA_OP_MAXIMUM] = {mica_cpu_check_arith, mica_cpu_arith},
    [MICA_OP_MINIMUM] = {mica_cpu_check_arith, mica_cpu_arith},
    [MICA_OP_SQUARED_DIFFERENCE] = {mica_cpu_check_arith, mica_cpu_arith},
    [MICA_OP_MEAN] = {mica_cpu_check_reduce, mica_cpu_reduce},
    [MICA_OP_SUM] = {mica_cpu_check_reduce, mica_cpu_reduce},
    [MICA_OP_REDUCE_MAX] = {mica_cpu_check_reduce, mica_cpu_reduce},
    [MICA_OP_SPLIT] = {mica_cpu_check_split, mica_cpu_split},
    [MICA_OP_SLICE] = {mica_cpu_check_slice, mica_cpu_slice},
    [MICA_OP_TRANSPOSE] = {mica_cpu_check_transpose, mica_cpu_transpose},
    [MICA_OP_MIRROR_PAD] = {mica_cpu_check_mirror_pad, mica_cpu_mirror_pad},
    [MICA_OP_SPACE_TO_DEPTH] = {mica_cpu_check_blocks, mica_cpu_blocks},
    [MICA_OP_DEPTH_TO_SPACE] = {mica_cpu_check_blocks, mica_cpu_blocks},
    [MICA_OP_RELU] = {mica_cpu_check_unary, mica_cpu_unary},
    [MICA_OP_RELU6] = {mica_cpu_check_unary, mica_cpu_unary},
    [MICA_OP_RELU_N1_TO_1] = {mica_cpu_check_unary, mica_cpu_unary},
    [MICA_OP_RELU_0_TO_1] = {mica_cpu_check_unary, mica_cpu_unary},
    [MICA_OP_LEAKY_RELU] = {mica_cpu_check_unary, mica_cpu_unary},
    [MICA_OP_TANH] = {mica_cpu_check_unary, mica_cpu_unary},
    [MICA_OP_HARD_SWISH] = {mica_cpu_check_unary, mica_cpu_unary},
    [MICA_OP_ELU] = {mica_cpu_check_unary, mica_cpu_unary},
    [MICA_OP_ABS] = {mica_cpu_check_unary, mica_cpu_unary},
    [MICA_OP_NEG] = {mica_cpu_check_unary, mica_cpu_unary},
    [MICA_OP_EXP] = {mica_cpu_check_unary, mica_cpu_unary},
    [MICA_OP_SQRT] = {mica_cpu_check_unary, mica_cpu_unary},
    [MICA_OP_RSQRT] = {mica_cpu_check_unary, mica_cpu_unary},
    [MICA_OP_PRELU] = {mica_cpu_check_prelu, mica_cpu_prelu},
    [MICA_OP_ARG_MAX] = {mica_cpu_check_arg_max, mica_cpu_arg_max},
    [MICA_OP_PACK] = {mica_cpu_check_pack, mica_cpu_pack},
    [MICA_OP_UNPACK] = {mica_cpu_check_unpack, mica_cpu_unpack},
    [MICA_OP_GATHER] = {mica_cpu_check_gather, mica_cpu_gather},
    [MICA_OP_CAST] = {mica_cpu_check_cast, mica_cpu_cast},
    [MICA_OP_GATHER_ND] = {mica_cpu_check_gather_nd, mica_cpu_gather_nd},
    [MICA_OP_REVERSE] = {mica_cpu_check_reverse, mica_cpu_reverse},
    [MICA_OP_TRANSPOSE_CONV] = {mica_cpu_check_transpose_conv, mica_cpu_transpose_conv},
    [MICA_OP_BATCH_MATMUL] = {mica_cpu_check_matmul, mica_cpu_matmul},
    [MICA_OP_DIV] = {mica_cpu_check_arith, mica_cpu_arith},
    [MICA_OP_FLOOR_DIV] = {mica_cpu_check_arith, mica_cpu_arith},
    [MICA_OP_LOG] = {mica_cpu_check_unary, mica_cpu_unary},
    [MICA_OP_REDUCE_MIN] = {mica_cpu_check_reduce, mica_cpu_reduce},
};

static const struct entry *entry_of(const struct mica_op *op)
{
    unsigned kind = op->kind;
    return kind < sizeof entries / sizeof entries[0] && entries[kind].run ? &entries[kind] : NULL;
}

int mica_cpu_supports(const struct mica_graph *graph, uint32_t op, char *reason, size_t size)
{
    struct mica_cpu_reason where = {reason, size};
    if (op >= graph->op_count)
        return mica_cpu_refuse(&where, "there is no operation %u", op);
    const struct mica_op *operation = &graph->ops[op];
    if (operation->problem)
        return mica_cpu_refuse(&where, "%s", operation->problem);
    const struct entry *entry = entry_of(operation);
    if (!entry)
        return mica_cpu_refuse(&where, "there is no CPU kernel for %s", operation->type);
    return entry->check(graph, operation, &where);
}

int mica_cpu_run(const struct mica_graph *graph, uint32_t op, void *const *data, const struct mica_cpu_options *options,
                 struct mica_log *log)
{
    char reason[256];
    if (mica_cpu_supports(graph, op, reason, sizeof reason))
        return mica_fail(log, -ENOTSUP, "operation %u can't run on the CPU: %s", op, reason);
    struct mica_cpu_call call = {
        .graph = graph,
        .op = &graph->ops[op],
        .data = data,
        .arithmetic = options->arithmetic,
        .threads = options->threads,
        .log = log,
    };
    return entry_of(call.op)->run(&call);
}
