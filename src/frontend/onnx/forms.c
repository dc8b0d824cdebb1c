/* SPDX-License-Identifier: MIT */
/* The tensors of a value: here orders and types of 8-bit values are changed where that is needed. */
#include "frontend/onnx/internal.h"

bool onnx_has_sides(const struct onnx_reader *reader, const struct onnx_value *value)
{
    bool is_8bit = value->type == MICA_TYPE_INT8 || value->type == MICA_TYPE_UINT8;
    return is_8bit && value->quant.count && value->type != reader->inner;
}

/* Quantization of 8-bit values on that side. `zero_point` has room for the one of a single scale. */
static void set_quant(const struct onnx_reader *reader, const struct onnx_quant *quant, enum onnx_side side,
                      struct mica_tensor *tensor, int32_t *zero_point)
{
    bool is_8bit = quant->type == MICA_TYPE_INT8 || quant->type == MICA_TYPE_UINT8;
    tensor->type = quant->type;
    tensor->quant = (struct mica_quantization){
        .count = quant->count, .scale = quant->scale, .zero_point = quant->zero_point, .axis = quant->axis};
    if (side == ONNX_BORDER || !is_8bit || quant->type == reader->inner || quant->count != 1)
        return;
    *zero_point = quant->zero_point[0] + (quant->type == MICA_TYPE_INT8 ? 128 : -128);
    tensor->quant.zero_point = zero_point;
    tensor->type = reader->inner;
}

int onnx_add_value_tensor(struct onnx_reader *reader, int32_t index, const struct onnx_quant *quant,
                          enum onnx_side side, struct mica_tensor *tensor, int32_t *added)
{
    struct onnx_text name = {""};
    int32_t zero_point;
    if (index >= 0)
        name = onnx_text(reader->values[index].name);
    tensor->name = name.text;
    if (quant->count)
        set_quant(reader, quant, side, tensor, &zero_point);
    *added = (int32_t)reader->graph->tensor_count;
    return mica_graph_add_tensor(reader->graph, tensor, reader->log);
}

static int32_t *slot(struct onnx_reader *reader, int32_t value, enum onnx_layout layout, enum onnx_side side)
{
    return &reader->values[value].tensor[layout][side];
}

int onnx_add_plain(struct onnx_reader *reader, int32_t index)
{
    const struct onnx_value *value = &reader->values[index];
    struct mica_tensor tensor = {.type = value->type, .rank = value->rank, .problem = value->problem};
    memcpy(tensor.dims, value->dims, sizeof tensor.dims);
    if (value->state == ONNX_MISSING)
        tensor.problem = "nothing computes it";
    return onnx_add_value_tensor(reader, index, &value->quant, ONNX_BORDER, &tensor,
                                 slot(reader, index, ONNX_PLAIN, ONNX_BORDER));
}

/* An operation from one form of a value to another: `made` gets what is made of tensor `from`. */
static int convert(struct onnx_reader *reader, int32_t index, const struct mica_op *op, const int32_t *inputs,
                   uint32_t count, const struct mica_tensor *like, int32_t *made)
{
    struct mica_tensor tensor = *like;
    struct mica_op own = *op;
    struct onnx_text name = onnx_text(reader->values[index].name);
    int32_t output = (int32_t)reader->graph->tensor_count;
    tensor.name = name.text;
    tensor.data = NULL;
    tensor.bytes = 0;
    int error = mica_graph_add_tensor(reader->graph, &tensor, reader->log);
    own.inputs = inputs;
    own.input_count = count;
    own.outputs = &output;
    own.output_count = 1;
    if (!error)
        error = mica_graph_add_op(reader->graph, &own, reader->log);
    if (!error)
        *made = output;
    return error;
}

static int change_layout(struct onnx_reader *reader, int32_t index, enum onnx_layout layout, int32_t from,
                         int32_t *made)
{
    const uint8_t *order = layout == ONNX_IMAGE ? onnx_image_order : onnx_plain_order;
    struct mica_tensor like = reader->graph->tensors[from];
    const int32_t four = 4, numbers[4] = {order[0], order[1], order[2], order[3]};
    int32_t inputs[2] = {from, ONNX_NONE}, old[4];
    memcpy(old, like.dims, sizeof old);
    for (int i = 0; i < 4; i++)
        like.dims[i] = old[order[i]];
    const int32_t *dims = reader->values[index].dims;
    if (dims[1] == 1 || (dims[2] == 1 && dims[3] == 1)) /* nothing moves in memory */
        return convert(reader, index, &(struct mica_op){.kind = MICA_OP_RESHAPE, .type = "Reshape"}, inputs, 1, &like,
                       made);
    int error = onnx_add_int32(reader, numbers, 1, &four, &inputs[1]);
    return error ? error
                 : convert(reader, index, &(struct mica_op){.kind = MICA_OP_TRANSPOSE, .type = "Transpose"}, inputs, 2,
                           &like, made);
}

static int change_side(struct onnx_reader *reader, int32_t index, enum onnx_side side, int32_t from, int32_t *made)
{
    struct mica_tensor like = reader->graph->tensors[from];
    int32_t zero_point;
    set_quant(reader, &reader->values[index].quant, side, &like, &zero_point);
    return convert(reader, index, &(struct mica_op){.kind = MICA_OP_QUANTIZE, .type = "QuantizeLinear"}, &from, 1,
                   &like, made);
}

static int from_source(struct onnx_reader *reader, int32_t index, enum onnx_layout layout)
{
    const struct onnx_value *value = &reader->values[index];
    const int32_t source = value->source;
    int32_t from;
    if (value->rank != 4)
        layout = ONNX_PLAIN;
    int error = onnx_tensor(reader, source, layout, &from);
    if (error)
        return error;
    struct mica_tensor like = reader->graph->tensors[from];
    like.type = MICA_TYPE_FLOAT32;
    like.quant = (struct mica_quantization){0};
    return convert(reader, index, &(struct mica_op){.kind = MICA_OP_DEQUANTIZE, .type = "DequantizeLinear"}, &from, 1,
                   &like, slot(reader, index, layout, ONNX_BORDER));
}

/* Some tensor of the value, if there is none. */
static int begin(struct onnx_reader *reader, int32_t index, enum onnx_layout layout)
{
    struct onnx_value *value = &reader->values[index];
    for (int i = 0; i < 4; i++)
        if (value->tensor[i / 2][i % 2] >= 0)
            return 0;
    if (value->source >= 0 && value->state != ONNX_CONSTANT) {
        if (reader->values[value->source].state != ONNX_CONSTANT)
            return from_source(reader, index, layout);
        int error = onnx_fold_dequantize(reader, index);
        if (error)
            return error;
    }
    return value->state == ONNX_CONSTANT ? 0 : onnx_add_plain(reader, index);
}

/* At the model's border the order is changed, at the inner side of that the type. */
static int form(struct onnx_reader *reader, int32_t index, enum onnx_layout layout, enum onnx_side side,
                int32_t *tensor)
{
    const enum onnx_layout other = layout == ONNX_IMAGE ? ONNX_PLAIN : ONNX_IMAGE;
    const bool sides = onnx_has_sides(reader, &reader->values[index]);
    int32_t *own = slot(reader, index, layout, side), from = *slot(reader, index, other, side);
    int error = 0;
    if (*own >= 0) {
        *tensor = *own;
        return 0;
    }
    const enum onnx_side across = sides && side == ONNX_BORDER ? ONNX_INNER : ONNX_BORDER;
    if (from >= 0) {
        error = change_layout(reader, index, layout, from, own);
    } else if (sides && *slot(reader, index, layout, across) >= 0) {
        error = change_side(reader, index, side, *slot(reader, index, layout, across), own);
    } else if (sides && side == ONNX_INNER) {
        error = form(reader, index, layout, ONNX_BORDER, &from);
        error = error ? error : change_side(reader, index, side, from, own);
    } else if (sides) {
        error = form(reader, index, other, side, &from);
        error = error ? error : change_layout(reader, index, layout, from, own);
    } else {
        return onnx_refuse(reader, "\"%.100s\" has no value", onnx_text(reader->values[index].name).text);
    }
    *tensor = *own;
    return error;
}

static int constant_form(struct onnx_reader *reader, int32_t index, enum onnx_layout layout, int32_t *tensor)
{
    int32_t *own = slot(reader, index, layout, ONNX_INNER);
    int error =
        *own >= 0 ? 0 : onnx_constant_tensor(reader, index, layout == ONNX_IMAGE ? onnx_image_order : NULL, own);
    *tensor = *own;
    return error;
}

int onnx_tensor(struct onnx_reader *reader, int32_t index, enum onnx_layout layout, int32_t *tensor)
{
    index = onnx_resolve(reader, index);
    int result = onnx_usable(reader, index);
    if (!result && layout == ONNX_IMAGE && reader->values[index].rank != 4)
        result = onnx_refuse(reader, "\"%.100s\" should have 4 dimensions", onnx_text(reader->values[index].name).text);
    if (!result)
        result = begin(reader, index, layout);
    if (result)
        return result;
    if (reader->values[index].state == ONNX_CONSTANT)
        return constant_form(reader, index, layout, tensor);
    return form(reader, index, layout, onnx_has_sides(reader, &reader->values[index]) ? ONNX_INNER : ONNX_BORDER,
                tensor);
}

int onnx_border_tensor(struct onnx_reader *reader, int32_t index, int32_t *tensor)
{
    index = onnx_resolve(reader, index);
    if (onnx_usable(reader, index)) { /* a tensor that says why */
        *tensor = *slot(reader, index, ONNX_PLAIN, ONNX_BORDER);
        int error = *tensor >= 0 ? 0 : onnx_add_plain(reader, index);
        *tensor = *slot(reader, index, ONNX_PLAIN, ONNX_BORDER);
        return error;
    }
    int result = begin(reader, index, ONNX_PLAIN);
    if (result)
        return result;
    if (reader->values[index].state == ONNX_CONSTANT)
        return constant_form(reader, index, ONNX_PLAIN, tensor);
    return form(reader, index, ONNX_PLAIN, ONNX_BORDER, tensor);
}
