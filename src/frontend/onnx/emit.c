/* SPDX-License-Identifier: MIT */
/* From values to operations and what comes out of them. */
#include "frontend/onnx/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "graph/check.h"

const uint8_t onnx_image_order[4] = {0, 2, 3, 1};
const uint8_t onnx_plain_order[4] = {0, 3, 1, 2};

int onnx_refuse(struct onnx_reader *reader, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(reader->problem, sizeof reader->problem, format, args);
    va_end(args);
    return ONNX_REFUSED;
}

/* ---- what values are -------------------------------------------------- */

int onnx_usable(struct onnx_reader *reader, int32_t index)
{
    index = onnx_resolve(reader, index);
    if (index < 0)
        return onnx_refuse(reader, "one of its inputs is absent");
    const struct onnx_value *value = &reader->values[index];
    if (value->state == ONNX_MISSING)
        return onnx_refuse(reader, "it reads \"%.100s\", which nothing before it computes",
                           onnx_text(value->name).text);
    if (value->problem)
        return onnx_refuse(reader, "tensor \"%.80s\" can't be used: %.100s", onnx_text(value->name).text,
                           value->problem);
    if (!onnx_elements(value))
        return onnx_refuse(reader, "tensor \"%.80s\" can't be used: its shape is dynamic, empty or too large",
                           onnx_text(value->name).text);
    return 0;
}

void onnx_alias(struct onnx_reader *reader, int32_t value, int32_t of)
{
    reader->values[value].same = of;
    reader->values[value].state = ONNX_COMPUTED;
}

int32_t onnx_hidden(struct onnx_reader *reader)
{
    int32_t index = (int32_t)reader->value_count++;
    reader->values[index].name = reader->node->outputs && reader->node->out[0] >= 0
                                     ? reader->values[reader->node->out[0]].name
                                     : (struct onnx_bytes){NULL, 0};
    return index;
}

int32_t onnx_place(enum onnx_layout layout, int32_t axis)
{
    return layout == ONNX_IMAGE && axis >= 0 && axis < 4 ? onnx_plain_order[axis] : axis;
}

enum onnx_layout onnx_preferred(const struct onnx_reader *reader, const int32_t *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        int32_t index = onnx_resolve(reader, values[i]);
        if (index < 0 || reader->values[index].rank != 4)
            continue;
        const struct onnx_value *value = &reader->values[index];
        const struct onnx_value *from = value->source >= 0 ? &reader->values[value->source] : value;
        for (int side = 0; side < 2; side++)
            if (value->tensor[ONNX_IMAGE][side] >= 0 || from->tensor[ONNX_IMAGE][side] >= 0)
                return ONNX_IMAGE;
    }
    return ONNX_PLAIN;
}

/* ---- results ---------------------------------------------------------- */

int onnx_add_result(struct onnx_reader *reader, struct onnx_result *result)
{
    struct mica_tensor tensor = {.type = result->type, .rank = result->rank};
    int32_t named = result->value;
    if (named < 0 && reader->node && reader->node->outputs)
        named = reader->node->out[0];
    for (uint32_t i = 0; i < result->rank && i < MICA_MAX_RANK; i++)
        tensor.dims[i] = result->dims[i];
    return onnx_add_value_tensor(reader, named, &result->quant, ONNX_INNER, &tensor, &result->tensor);
}

void onnx_settle_result(struct onnx_reader *reader, const struct onnx_result *result)
{
    if (result->value < 0)
        return;
    struct onnx_value *value = &reader->values[result->value];
    const struct mica_tensor *tensor = &reader->graph->tensors[result->tensor];
    value->state = ONNX_COMPUTED;
    value->type = result->quant.count ? result->quant.type : result->type;
    value->quant = result->quant;
    value->rank = tensor->rank;
    value->problem = tensor->problem;
    for (uint32_t i = 0; i < tensor->rank; i++)
        value->dims[i] = tensor->dims[onnx_place(result->layout, (int32_t)i)];
    value->tensor[result->layout][onnx_has_sides(reader, value) ? ONNX_INNER : ONNX_BORDER] = result->tensor;
}

static bool rules_take(const struct onnx_reader *reader, const struct mica_op *op)
{
    struct mica_op copy = *op;
    struct mica_check check = {.graph = reader->graph, .op = &copy};
    return mica_check_op(&check);
}

int onnx_emit(struct onnx_reader *reader, const struct mica_op *op, const int32_t *inputs, uint32_t count,
              struct onnx_result *result)
{
    struct mica_op own = *op;
    int32_t dims[MICA_MAX_RANK];
    own.type = op->type ? op->type : reader->type;
    own.inputs = inputs;
    own.input_count = count;
    own.outputs = &result->tensor;
    own.output_count = 1;
    if (!result->dims) {
        if (!mica_op_infer_shape(reader->graph, &own, &result->rank, dims))
            return onnx_refuse(reader, "its inputs' shapes do not fit each other or its parameters");
        result->dims = dims;
    }
    int error = onnx_add_result(reader, result);
    result->dims = NULL;
    if (error)
        return error;
    if (result->checked && !rules_take(reader, &own))
        return ONNX_RETRY;
    error = mica_graph_add_op(reader->graph, &own, reader->log);
    if (!error)
        onnx_settle_result(reader, result);
    return error;
}

/* ---- what nobody knows ------------------------------------------------ */

static int unknown_inputs(struct onnx_reader *reader, int32_t *inputs)
{
    const struct onnx_node *node = reader->node;
    int error = 0;
    for (uint32_t i = 0; i < node->inputs && error >= 0; i++) {
        inputs[i] = MICA_NO_TENSOR;
        error = node->in[i] < 0 ? 0 : onnx_border_tensor(reader, node->in[i], &inputs[i]);
    }
    return error < 0 ? error : 0;
}

static int unknown_outputs(struct onnx_reader *reader, const char *problem, int32_t *outputs, uint32_t *count)
{
    const struct onnx_node *node = reader->node;
    static const char used[] = "can't be used: ", cause[] = ", which it comes from, can't run: ";
    char text[240];
    int error = 0;
    const char *first = strstr(problem, used); /* of a chain the first that can't run is told */
    if (first && strstr(first, cause))
        snprintf(text, sizeof text, "%s", first + strlen(used));
    else
        snprintf(text, sizeof text, "%.40s%s%s", reader->type, cause, problem);
    const char *kept = mica_graph_strdup(reader->graph, text);
    if (!kept)
        return mica_fail_nomem(reader->log);
    *count = 0;
    for (uint32_t i = 0; i < node->outputs && !error; i++) {
        if (node->out[i] < 0)
            continue;
        struct onnx_value *value = &reader->values[node->out[i]];
        value->state = ONNX_COMPUTED;
        value->problem = kept;
        error = onnx_add_plain(reader, node->out[i]);
        outputs[(*count)++] = value->tensor[ONNX_PLAIN][ONNX_BORDER];
    }
    return error;
}

int onnx_emit_unknown(struct onnx_reader *reader, const char *problem)
{
    const struct onnx_node *node = reader->node;
    struct mica_op op = {.kind = MICA_OP_UNKNOWN, .type = reader->type, .problem = problem};
    int error = 0;
    int32_t *links = onnx_alloc(reader, ((size_t)node->inputs + node->outputs) * sizeof *links, &error);
    if (!links)
        return error;
    error = unknown_inputs(reader, links);
    if (!error)
        error = unknown_outputs(reader, problem, links + node->inputs, &op.output_count);
    op.inputs = links;
    op.input_count = node->inputs;
    op.outputs = links + node->inputs;
    return error ? error : mica_graph_add_op(reader->graph, &op, reader->log);
}
