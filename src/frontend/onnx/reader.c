/* SPDX-License-Identifier: MIT */
/* The whole: what 8-bit values are inside, nodes one after the other, inputs and outputs. */
#include "frontend/onnx/reader.h"

#include <errno.h>

#include "frontend/onnx/internal.h"
#include "util/checked.h"

bool mica_onnx_recognize(const void *data, size_t size)
{
    const uint8_t *bytes = data;
    return size >= 8 && bytes[0] == 8 && bytes[1] >= 1 && bytes[1] < 64 && memcmp(bytes + 4, "TFL3", 4) != 0;
}

/* ---- the type of 8-bit values ----------------------------------------- */

struct census {
    uint32_t per_channel, asymmetric; /* weights that only int8 and only uint8 can express */
    uint32_t is_signed, is_unsigned;  /* other 8-bit values */
};

static bool is_zero(struct onnx_reader *reader, int32_t index)
{
    index = onnx_resolve(reader, index);
    if (index < 0 || reader->values[index].state != ONNX_CONSTANT || onnx_elements(&reader->values[index]) != 1 ||
        onnx_decode(reader, index))
        return true;
    const struct onnx_value *value = &reader->values[index];
    return onnx_integer_at(value->type, value->data, 0) == (value->type == MICA_TYPE_UINT8 ? 128 : 0);
}

/* Scale and zero point of one quantized thing; `weights`: it is a constant of several dimensions. */
static void count_quant(struct onnx_reader *reader, int32_t scale, int32_t zero_point, bool weights,
                        struct census *census)
{
    const struct onnx_value *point = zero_point < 0 ? NULL : &reader->values[zero_point];
    if (point && point->type != MICA_TYPE_UINT8 && point->type != MICA_TYPE_INT8)
        return;
    if (!weights) {
        census->is_signed += point && point->type == MICA_TYPE_INT8;
        census->is_unsigned += !point || point->type == MICA_TYPE_UINT8;
    } else if (scale >= 0 && reader->values[scale].state == ONNX_CONSTANT &&
               onnx_elements(&reader->values[scale]) > 1) {
        census->per_channel++;
    } else {
        census->asymmetric += !is_zero(reader, zero_point);
    }
}

static bool is_weights(const struct onnx_reader *reader, int32_t index)
{
    return index >= 0 && reader->values[index].state == ONNX_CONSTANT && reader->values[index].rank >= 2;
}

static void count_node(struct onnx_reader *reader, const struct onnx_node *node, struct census *census)
{
    const int32_t *in = node->in;
    if ((onnx_is(node->type, "QuantizeLinear") || onnx_is(node->type, "DequantizeLinear")) && node->inputs > 2)
        count_quant(reader, in[1], in[2], is_weights(reader, in[0]), census);
    bool linear =
        onnx_is(node->type, "QLinearConv") || onnx_is(node->type, "QLinearMatMul") || onnx_is(node->type, "QGemm");
    if (!linear || node->inputs < 6)
        return;
    count_quant(reader, in[1], in[2], false, census);
    count_quant(reader, in[4], in[5], is_weights(reader, in[3]), census);
}

/*
 * int8 has scales for every channel, but weights around 0; uint8 the contrary. Where the weights leave a choice,
 * most values stay what they are.
 */
static enum mica_type choose_inner(struct onnx_reader *reader)
{
    struct census census = {0};
    for (uint32_t i = 0; i < reader->node_count; i++)
        count_node(reader, &reader->nodes[i], &census);
    if (census.per_channel)
        return MICA_TYPE_INT8;
    return census.asymmetric || census.is_unsigned > census.is_signed ? MICA_TYPE_UINT8 : MICA_TYPE_INT8;
}

/* ---- inputs and outputs ----------------------------------------------- */

/* Scale and zero point of what a node reads, if that node knows. */
static bool told_quant(const struct onnx_node *node, int32_t index, int32_t *scale, int32_t *zero_point)
{
    bool concat = onnx_is(node->type, "QLinearConcat");
    bool linear = !concat && (onnx_is(node->type, "DequantizeLinear") || onnx_is(node->type, "QGemm") ||
                              (node->type.size > 7 && !memcmp(node->type.data, "QLinear", 7)));
    for (uint32_t i = concat ? 2 : 0; (concat || linear) && i + 2 < node->inputs; i += 3)
        if (node->in[i] == index) {
            *scale = node->in[i + 1];
            *zero_point = node->in[i + 2];
            return true;
        }
    return false;
}

/* An input's own quantization is known to those that use it only, perhaps after it has been moved. */
static void find_quant(struct onnx_reader *reader, int32_t input)
{
    struct onnx_value *value = &reader->values[input];
    struct onnx_quant quant = {.type = value->type};
    int32_t scale, zero_point, index = input;
    if (value->type != MICA_TYPE_UINT8 && value->type != MICA_TYPE_INT8 && value->type != MICA_TYPE_INT16)
        return;
    for (int i = 0; i < 16 && reader->values[index].user >= 0; i++) {
        const struct onnx_node *node = &reader->nodes[reader->values[index].user];
        if (told_quant(node, index, &scale, &zero_point)) {
            if (!onnx_read_quant(reader, scale, zero_point, 0, &quant) && quant.count == 1 && quant.type == value->type)
                value->quant = quant;
            return;
        }
        if (!node->outputs || node->out[0] < 0)
            return;
        index = node->out[0];
    }
}

static uint32_t count_of(const struct onnx_reader *reader, uint32_t number)
{
    struct onnx_cursor cursor = onnx_cursor(reader->model);
    struct onnx_field field;
    uint32_t count = 0;
    while (onnx_next_of(&cursor, number, ONNX_WIRE_BYTES, &field))
        count++;
    return count;
}

/* Values that the model lists; constants among its inputs are none. */
static uint32_t list_values(const struct onnx_reader *reader, uint32_t number, int32_t *list)
{
    struct onnx_cursor cursor = onnx_cursor(reader->model);
    struct onnx_field field, name;
    uint32_t count = 0;
    while (onnx_next_of(&cursor, number, ONNX_WIRE_BYTES, &field)) {
        int32_t index = onnx_find(field.bytes, ONNX_VALUE_NAME, ONNX_WIRE_BYTES, &name)
                            ? onnx_value_of_name(reader, name.bytes)
                            : ONNX_NONE;
        if (index >= 0 && (number == ONNX_GRAPH_OUTPUT || reader->values[index].state == ONNX_INPUT))
            list[count++] = index;
    }
    return count;
}

/* An output is a tensor that is nothing else: no input, constant, or other output. */
static int own_output(struct onnx_reader *reader, const int32_t *inputs, uint32_t input_count, const int32_t *outputs,
                      uint32_t done, int32_t *tensor)
{
    bool taken = reader->graph->tensors[*tensor].data != NULL;
    for (uint32_t i = 0; i < input_count && !taken; i++)
        taken = inputs[i] == *tensor;
    for (uint32_t i = 0; i < done && !taken; i++)
        taken = outputs[i] == *tensor;
    if (!taken || reader->graph->tensors[*tensor].problem)
        return 0;
    struct mica_tensor copy = reader->graph->tensors[*tensor];
    int32_t made = (int32_t)reader->graph->tensor_count;
    struct mica_op op = {.kind = MICA_OP_RESHAPE, .type = "Identity", .inputs = tensor, .outputs = &made};
    op.input_count = op.output_count = 1;
    copy.data = NULL;
    int error = mica_graph_add_tensor(reader->graph, &copy, reader->log);
    if (!error)
        error = mica_graph_add_op(reader->graph, &op, reader->log);
    *tensor = made;
    return error;
}

static int make_outputs(struct onnx_reader *reader, int32_t *list, uint32_t inputs, uint32_t outputs)
{
    int error = 0;
    reader->node = NULL;
    for (uint32_t i = 0; i < inputs + outputs && !error; i++) {
        error = onnx_border_tensor(reader, list[i], &list[i]);
        if (error > 0)
            error = onnx_damaged(reader, reader->problem);
        if (!error && i >= inputs)
            error = own_output(reader, list, inputs, list + inputs, i - inputs, &list[i]);
    }
    return error ? error : mica_graph_set_io(reader->graph, list, inputs, list + inputs, outputs, reader->log);
}

/* ---- the whole -------------------------------------------------------- */

/* Constants first: a scale may stand right before the node that uses it, behind what that node goes into. */
static int add_constants(struct onnx_reader *reader)
{
    int error = 0;
    for (uint32_t i = 0; i < reader->node_count && !error; i++)
        if (onnx_is(reader->nodes[i].type, "Constant") && !reader->nodes[i].foreign) {
            error = onnx_add_node(reader, &reader->nodes[i]);
            reader->nodes[i].done = true;
        }
    return error;
}

static int add_nodes(struct onnx_reader *reader)
{
    int error = 0;
    for (uint32_t i = 0; i < reader->node_count && !error; i++)
        if (!reader->nodes[i].done)
            error = onnx_add_node(reader, &reader->nodes[i]);
    return error;
}

/* The number of outputs is small in any honest model: each is compared with each. */
#define MAX_BORDER 1024u

static int build(struct onnx_reader *reader)
{
    const uint32_t most_inputs = count_of(reader, ONNX_GRAPH_INPUT), most_outputs = count_of(reader, ONNX_GRAPH_OUTPUT);
    int32_t *list = mica_new_array((size_t)most_inputs + most_outputs, sizeof *list);
    if (!list)
        return mica_fail_nomem(reader->log);
    uint32_t inputs = list_values(reader, ONNX_GRAPH_INPUT, list);
    int error =
        inputs > MAX_BORDER || most_outputs > MAX_BORDER ? onnx_damaged(reader, "more than 1024 inputs or outputs") : 0;
    for (uint32_t i = 0; i < inputs && !error; i++)
        find_quant(reader, list[i]);
    if (!error)
        error = reader->failed ? reader->failed : add_nodes(reader);
    if (!error) {
        uint32_t outputs = list_values(reader, ONNX_GRAPH_OUTPUT, list + inputs);
        error = make_outputs(reader, list, inputs, outputs);
    }
    free(list);
    return error ? error : mica_graph_check_flow(reader->graph, reader->log);
}

static int open_model(struct onnx_reader *reader, const void *data, size_t size)
{
    const struct onnx_bytes file = {data, size};
    struct onnx_cursor cursor = onnx_cursor(file);
    struct onnx_field field, domain, version;
    while (onnx_next(&cursor, &field)) {
        if (field.wire != ONNX_WIRE_BYTES)
            continue;
        if (field.number == ONNX_MODEL_GRAPH)
            reader->model = field.bytes;
        else if (field.number == ONNX_MODEL_OPSET &&
                 onnx_find(field.bytes, ONNX_OPSET_VERSION, ONNX_WIRE_VARINT, &version) &&
                 (!onnx_find(field.bytes, ONNX_OPSET_DOMAIN, ONNX_WIRE_BYTES, &domain) || !domain.bytes.size ||
                  onnx_is(domain.bytes, "ai.onnx")))
            reader->version = (int64_t)version.value;
    }
    if (cursor.error)
        return onnx_damaged(reader, "its structure leads outside of its bytes");
    if (!reader->model.size)
        return onnx_damaged(reader, "it has no graph");
    reader->budget = size > SIZE_MAX / 16 ? SIZE_MAX : 8 * size + 65536;
    return 0;
}

int mica_onnx_read(const void *data, size_t size, struct mica_log *log, struct mica_graph **graph)
{
    struct onnx_reader reader = {.log = log, .version = 1};
    int error = open_model(&reader, data, size);
    if (!error)
        error = mica_graph_create(log, &reader.graph);
    if (!error)
        error = onnx_parse(&reader);
    if (!error)
        error = add_constants(&reader);
    if (!error) {
        reader.inner = choose_inner(&reader);
        error = reader.failed ? reader.failed : build(&reader);
    }
    free(reader.values);
    free(reader.nodes);
    free(reader.links);
    if (error) {
        mica_graph_destroy(reader.graph);
        return error;
    }
    *graph = reader.graph;
    return 0;
}
