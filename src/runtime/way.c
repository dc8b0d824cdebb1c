/* SPDX-License-Identifier: MIT */
/* mica_model_way(): how an NPU computes one operation, from its family or, where that can't tell, from its table. */
#include <stdio.h>
#include <string.h>

#include "runtime/objects.h"

static const struct mica_operation_support *find_row(const struct mica_chip *chip, const char *name)
{
    size_t count = 0;
    const struct mica_operation_support *rows =
        chip->family->operations ? chip->family->operations(chip, &count) : NULL;
    for (size_t i = 0; i < count; i++)
        if (!strcmp(rows[i].name, name))
            return &rows[i];
    return NULL;
}

/* TensorFlow Lite's names, for operations of models that have others. */
static const char *name_of(enum mica_op_kind kind)
{
    static const char *const names[] = {
        [MICA_OP_CONV_2D] = "CONV_2D",
        [MICA_OP_DEPTHWISE_CONV_2D] = "DEPTHWISE_CONV_2D",
        [MICA_OP_FULLY_CONNECTED] = "FULLY_CONNECTED",
        [MICA_OP_ADD] = "ADD",
        [MICA_OP_AVERAGE_POOL_2D] = "AVERAGE_POOL_2D",
        [MICA_OP_MAX_POOL_2D] = "MAX_POOL_2D",
        [MICA_OP_RESHAPE] = "RESHAPE",
        [MICA_OP_LOGISTIC] = "LOGISTIC",
        [MICA_OP_CONCATENATION] = "CONCATENATION",
        [MICA_OP_PAD] = "PAD",
        [MICA_OP_QUANTIZE] = "QUANTIZE",
        [MICA_OP_RESIZE_BILINEAR] = "RESIZE_BILINEAR",
        [MICA_OP_RESIZE_NEAREST] = "RESIZE_NEAREST_NEIGHBOR",
        [MICA_OP_SUB] = "SUB",
        [MICA_OP_MUL] = "MUL",
        [MICA_OP_MAXIMUM] = "MAXIMUM",
        [MICA_OP_MINIMUM] = "MINIMUM",
        [MICA_OP_SQUARED_DIFFERENCE] = "SQUARED_DIFFERENCE",
        [MICA_OP_TRANSPOSE_CONV] = "TRANSPOSE_CONV",
        [MICA_OP_MEAN] = "MEAN",
        [MICA_OP_SUM] = "SUM",
        [MICA_OP_REDUCE_MAX] = "REDUCE_MAX",
        [MICA_OP_REDUCE_MIN] = "REDUCE_MIN",
        [MICA_OP_SPLIT] = "SPLIT",
        [MICA_OP_SLICE] = "SLICE",
        [MICA_OP_TRANSPOSE] = "TRANSPOSE",
        [MICA_OP_MIRROR_PAD] = "MIRROR_PAD",
        [MICA_OP_SPACE_TO_DEPTH] = "SPACE_TO_DEPTH",
        [MICA_OP_DEPTH_TO_SPACE] = "DEPTH_TO_SPACE",
        [MICA_OP_RELU] = "RELU",
        [MICA_OP_RELU6] = "RELU6",
        [MICA_OP_LEAKY_RELU] = "LEAKY_RELU",
        [MICA_OP_TANH] = "TANH",
        [MICA_OP_HARD_SWISH] = "HARD_SWISH",
        [MICA_OP_ELU] = "ELU",
        [MICA_OP_ABS] = "ABS",
        [MICA_OP_NEG] = "NEG",
        [MICA_OP_EXP] = "EXP",
        [MICA_OP_LOG] = "LOG",
        [MICA_OP_SQRT] = "SQRT",
        [MICA_OP_RSQRT] = "RSQRT",
        [MICA_OP_PRELU] = "PRELU",
        [MICA_OP_PACK] = "PACK",
        [MICA_OP_UNPACK] = "UNPACK",
        [MICA_OP_GATHER] = "GATHER",
        [MICA_OP_GATHER_ND] = "GATHER_ND",
        [MICA_OP_REVERSE] = "REVERSE_V2",
        [MICA_OP_SOFTMAX] = "SOFTMAX",
    };
    return (size_t)kind < sizeof names / sizeof names[0] ? names[kind] : NULL;
}

static void describe_by_table(const struct mica_chip *chip, const struct mica_op *op, struct mica_way *way)
{
    const char *name = name_of(op->kind);
    const struct mica_operation_support *row = find_row(chip, op->type);
    if (!row && name)
        row = find_row(chip, name);
    *way = (struct mica_way){.us = -1, .off = row ? row->off : 1};
    snprintf(way->text, sizeof way->text, "%s", row ? row->how : chip->description);
}

int mica_model_way(const mica_model *model, const mica_device *device, size_t index, struct mica_way *way)
{
    MICA_CHECK_ARG(NULL, model);
    struct mica_log *log = MICA_LOG_OF(model);
    MICA_CHECK_ARG(log, device);
    MICA_CHECK_ARG(log, way);
    MICA_CHECK_ARG(log, index < mica_model_operation_count(model));
    char reason[256];
    const struct mica_chip *chip = device->opened.chip;
    uint32_t op = (uint32_t)index;
    int placement = mica_place_operation(model->graph, chip, op, reason, sizeof reason);
    if (placement <= 0)
        return mica_fail(log, placement ? placement : -ENOTSUP, "%s", reason);
    describe_by_table(chip, &model->graph->ops[op], way);
    if (!chip->family->describe)
        return 0;
    int error = chip->family->describe(chip, model->graph, op, &device->options, way);
    return error ? mica_fail(log, error, "operation %zu can't be described", index) : 0;
}
