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
    [MICA_OP_ADD] = {mica_cpu_check_add, mica_cpu_add},
    [MICA_OP_AVERAGE_POOL_2D] = {mica_cpu_check_pool, mica_cpu_average_pool},
    [MICA_OP_MAX_POOL_2D] = {mica_cpu_check_pool, mica_cpu_max_pool},
    [MICA_OP_RESHAPE] = {mica_cpu_check_reshape, mica_cpu_reshape},
    [MICA_OP_SOFTMAX] = {mica_cpu_check_softmax, mica_cpu_softmax},
    [MICA_OP_LOGISTIC] = {mica_cpu_check_logistic, mica_cpu_logistic},
    [MICA_OP_CONCATENATION] = {mica_cpu_check_concatenation, mica_cpu_concatenation},
    [MICA_OP_PAD] = {mica_cpu_check_pad, mica_cpu_pad},
    [MICA_OP_QUANTIZE] = {mica_cpu_check_quantize, mica_cpu_quantize},
    [MICA_OP_DEQUANTIZE] = {mica_cpu_check_dequantize, mica_cpu_dequantize},
    [MICA_OP_RESIZE_BILINEAR] = {mica_cpu_check_resize, mica_cpu_resize_bilinear},
    [MICA_OP_RESIZE_NEAREST] = {mica_cpu_check_resize, mica_cpu_resize_nearest},
    [MICA_OP_DETECTION_POSTPROCESS] = {mica_cpu_check_postprocess, mica_cpu_postprocess},
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
