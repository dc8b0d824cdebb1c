/* SPDX-License-Identifier: MIT */
/* Between real numbers and codes, and nodes that leave values what they are. */
#include "frontend/onnx/internal.h"

static int32_t input_of(const struct onnx_reader *reader, uint32_t i)
{
    return i < reader->node->inputs ? reader->node->in[i] : ONNX_NONE;
}

static int single_io(struct onnx_reader *reader, int32_t *in, int32_t *out)
{
    const struct onnx_node *node = reader->node;
    if (!node->inputs || !node->outputs || node->out[0] < 0)
        return onnx_refuse(reader, "it needs an input and an output");
    *in = onnx_resolve(reader, node->in[0]);
    *out = node->out[0];
    return onnx_usable(reader, *in);
}

static bool has_codes(enum mica_type type)
{
    return type == MICA_TYPE_UINT8 || type == MICA_TYPE_INT8 || type == MICA_TYPE_INT16;
}

/* Nothing is done yet: what uses the result may want the codes. */
int onnx_dequantize(struct onnx_reader *reader, int kind)
{
    int32_t in = ONNX_NONE, out = ONNX_NONE;
    int result = single_io(reader, &in, &out);
    if (result)
        return result;
    struct onnx_quant quant = {.type = reader->values[in].type};
    result = onnx_read_quant(reader, input_of(reader, 1), input_of(reader, 2), onnx_int(reader, "axis", 1), &quant);
    if (!result)
        result = onnx_adopt_quant(reader, in, &quant);
    if (result)
        return result;
    struct onnx_value *value = &reader->values[out];
    const struct onnx_value *source = &reader->values[in];
    if (source->state != ONNX_CONSTANT && (!has_codes(source->type) || quant.count != 1))
        return onnx_refuse(reader, "only constants have several scales, or codes of type %s",
                           mica_type_name(source->type));
    value->state = ONNX_COMPUTED;
    value->type = MICA_TYPE_FLOAT32;
    value->rank = source->rank;
    memcpy(value->dims, source->dims, sizeof value->dims);
    value->source = in;
    return 0;
}

static int emit_quantize(struct onnx_reader *reader, int32_t in, int32_t out, const struct onnx_quant *quant)
{
    enum onnx_layout layout = onnx_preferred(reader, &in, 1);
    struct onnx_result result = {.value = out, .quant = *quant, .layout = layout};
    int32_t tensor;
    int error = onnx_tensor(reader, in, layout, &tensor);
    return error ? error : onnx_emit(reader, &(struct mica_op){.kind = MICA_OP_QUANTIZE}, &tensor, 1, &result);
}

int onnx_quantize(struct onnx_reader *reader, int kind)
{
    int32_t in = ONNX_NONE, out = ONNX_NONE;
    struct onnx_quant quant = {.type = onnx_type_of((uint64_t)onnx_int(reader, "output_dtype", ONNX_UINT8))};
    int result = single_io(reader, &in, &out);
    if (!result)
        result = onnx_read_quant(reader, input_of(reader, 1), input_of(reader, 2), onnx_int(reader, "axis", 1), &quant);
    if (result)
        return result;
    const struct onnx_value *value = &reader->values[in];
    if (value->type != MICA_TYPE_FLOAT32)
        return onnx_refuse(reader, "its input is %s, not float32", mica_type_name(value->type));
    if (value->state == ONNX_CONSTANT)
        return onnx_fold_quantize(reader, in, out, &quant);
    if (!has_codes(quant.type))
        return onnx_refuse(reader, "codes are uint8, int8 or int16 here");
    int32_t source = onnx_resolve(reader, value->source);
    if (quant.count == 1)
        quant.axis = 0;
    if (source >= 0 && onnx_same_quant(&reader->values[source].quant, &quant)) {
        onnx_alias(reader, out, source);
        return 0;
    }
    if (quant.count != 1)
        return onnx_refuse(reader, "only constants may have several scales");
    return emit_quantize(reader, source >= 0 ? source : in, out, &quant);
}

int onnx_identity(struct onnx_reader *reader, int kind)
{
    int32_t in = ONNX_NONE, out = ONNX_NONE;
    int result = single_io(reader, &in, &out);
    if (!result && reader->node->outputs > 1 && reader->node->out[1] >= 0)
        result = onnx_refuse(reader, "its second output is not supported");
    if (!result)
        onnx_alias(reader, out, in);
    return result;
}

int onnx_constant(struct onnx_reader *reader, int kind)
{
    struct onnx_bytes attribute;
    struct onnx_field tensor;
    if (!reader->node->outputs || reader->node->out[0] < 0)
        return onnx_refuse(reader, "it has no output");
    if (!onnx_attribute(reader, "value", &attribute) ||
        !onnx_find(attribute, ONNX_ATTRIBUTE_TENSOR, ONNX_WIRE_BYTES, &tensor))
        return onnx_refuse(reader, "only constants that are tensors are supported");
    onnx_describe_constant(&reader->values[reader->node->out[0]], tensor.bytes);
    return 0;
}

int onnx_cast(struct onnx_reader *reader, int kind)
{
    int32_t in = ONNX_NONE, out = ONNX_NONE, tensor;
    int error = single_io(reader, &in, &out);
    if (error)
        return error;
    enum onnx_layout layout = onnx_preferred(reader, &in, 1);
    struct onnx_result result = {
        .value = out, .type = onnx_type_of((uint64_t)onnx_int(reader, "to", 0)), .layout = layout};
    if (result.type == reader->values[in].type && !reader->values[in].quant.count) {
        onnx_alias(reader, out, in);
        return 0;
    }
    if (reader->values[in].quant.count)
        return onnx_refuse(reader, "a conversion of quantized values is not supported");
    error = onnx_tensor(reader, in, layout, &tensor);
    return error ? error : onnx_emit(reader, &(struct mica_op){.kind = MICA_OP_CAST}, &tensor, 1, &result);
}
