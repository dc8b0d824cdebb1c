/* SPDX-License-Identifier: MIT */
/* What a node computes on, and what of the nodes behind it goes into the same operation. */
#include "frontend/onnx/internal.h"

#include <math.h>

static int32_t input_of(const struct onnx_node *node, uint32_t i)
{
    return i < node->inputs ? node->in[i] : ONNX_NONE;
}

static int start(struct onnx_reader *reader, struct onnx_call *call)
{
    const struct onnx_node *node = reader->node;
    *call = (struct onnx_call){.out = ONNX_NONE, .low = -INFINITY, .high = INFINITY};
    for (int i = 0; i < 4; i++)
        call->in[i] = ONNX_NONE;
    if (!node->outputs || node->out[0] < 0)
        return onnx_refuse(reader, "it has no output");
    call->out = node->out[0];
    return 0;
}

/* ---- limits behind an operation --------------------------------------- */

/* Bounds of a Clip: inputs since operator set 11, attributes before. */
static bool clip_bounds(struct onnx_reader *reader, const struct onnx_node *node, float *low, float *high)
{
    uint32_t count;
    *low = onnx_float(reader, "min", -INFINITY);
    *high = onnx_float(reader, "max", INFINITY);
    bool good = !onnx_floats(reader, input_of(node, 1), low, 1, &count) &&
                !onnx_floats(reader, input_of(node, 2), high, 1, &count);
    return good && *low <= *high;
}

static bool add_limits(struct onnx_reader *reader, struct onnx_node *node, struct onnx_call *call)
{
    struct onnx_node *own = reader->node;
    float low = 0, high = INFINITY;
    bool good = onnx_is(node->type, "Relu");
    reader->node = node;
    if (onnx_is(node->type, "Clip"))
        good = clip_bounds(reader, node, &low, &high);
    reader->node = own;
    /* max(min(x, h), l) of a value already inside of [L, H] */
    if (good && low <= call->high && high >= call->low) {
        call->low = fmaxf(call->low, low);
        call->high = fminf(call->high, high);
        return true;
    }
    return false;
}

static bool reads_quantize(struct onnx_reader *reader, struct onnx_node *node, struct onnx_quant *quant)
{
    struct onnx_node *own = reader->node;
    reader->node = node;
    quant->type = onnx_type_of((uint64_t)onnx_int(reader, "output_dtype", ONNX_UINT8));
    bool good = onnx_is(node->type, "QuantizeLinear") &&
                !onnx_read_quant(reader, input_of(node, 1), input_of(node, 2), 0, quant) && quant->count == 1 &&
                quant->scale[0] > 0;
    reader->node = own;
    return good && (quant->type == MICA_TYPE_UINT8 || quant->type == MICA_TYPE_INT8 || quant->type == MICA_TYPE_INT16);
}

/* From the node's output through limits to one QuantizeLinear, with no other user in between. */
static bool find_quantize(struct onnx_reader *reader, struct onnx_call *call)
{
    int32_t index = call->out;
    while (call->done_count < 4) {
        const struct onnx_value *value = &reader->values[index];
        if (value->uses != 1 || value->user < 0)
            return false;
        struct onnx_node *user = &reader->nodes[value->user];
        if (user->foreign || user->done || user->inputs < 1 || user->in[0] != index || user->outputs < 1 ||
            user->out[0] < 0 || reader->values[user->out[0]].state != ONNX_MISSING)
            return false;
        call->done[call->done_count++] = value->user;
        if (reads_quantize(reader, user, &call->quant)) {
            call->out = user->out[0];
            return true;
        }
        if (!add_limits(reader, user, call))
            return false;
        index = user->out[0];
    }
    return false;
}

/* ---- the three ways --------------------------------------------------- */

static bool all_quantized(const struct onnx_reader *reader, const struct onnx_call *call, uint32_t inputs)
{
    for (uint32_t i = 0; i < inputs; i++)
        if (call->in[i] >= 0 && reader->values[call->in[i]].source < 0)
            return false;
    return true;
}

static int take_inputs(struct onnx_reader *reader, uint32_t inputs, struct onnx_call *call)
{
    int result = start(reader, call);
    for (uint32_t i = 0; i < inputs && !result; i++) {
        call->in[i] = onnx_resolve(reader, input_of(reader->node, i));
        if (call->in[i] >= 0 || i == 0) /* no operation does without its first input */
            result = onnx_usable(reader, call->in[i]);
    }
    return result;
}

int onnx_call_plain(struct onnx_reader *reader, uint32_t inputs, struct onnx_call *call)
{
    int result = take_inputs(reader, inputs, call);
    if (result || reader->float_only || !all_quantized(reader, call, inputs))
        return result;
    struct onnx_call found = *call;
    if (!find_quantize(reader, &found))
        return 0;
    *call = found;
    call->quantized = call->checked = true;
    for (uint32_t i = 0; i < inputs; i++)
        if (call->in[i] >= 0)
            call->in[i] = onnx_resolve(reader, reader->values[call->in[i]].source);
    return 0;
}

int onnx_call_moving(struct onnx_reader *reader, uint32_t inputs, struct onnx_call *call)
{
    int result = take_inputs(reader, inputs, call);
    if (result)
        return result;
    const struct onnx_value *value = &reader->values[call->in[0]];
    if (value->source >= 0 && value->state != ONNX_CONSTANT) { /* the output is a quantized one as float, too */
        int32_t hidden = onnx_hidden(reader);
        call->in[0] = onnx_resolve(reader, value->source);
        reader->values[call->out].source = hidden;
        call->out = hidden;
    }
    call->quant = reader->values[call->in[0]].quant;
    call->quantized = call->quant.count == 1;
    return call->quant.count > 1 ? onnx_refuse(reader, "it moves values of several scales") : 0;
}

int onnx_call_qlinear(struct onnx_reader *reader, const uint8_t *places, uint32_t inputs, uint32_t result, int32_t axis,
                      struct onnx_call *call)
{
    const struct onnx_node *node = reader->node;
    int error = start(reader, call);
    for (uint32_t i = 0; i < inputs && !error; i++) {
        struct onnx_quant quant = {.type = MICA_TYPE_UINT8};
        call->in[i] = onnx_resolve(reader, input_of(node, places[i]));
        error = onnx_usable(reader, call->in[i]);
        if (error)
            return error;
        quant.type = reader->values[call->in[i]].type;
        error = onnx_read_quant(reader, input_of(node, places[i] + 1u), input_of(node, places[i] + 2u),
                                i == 1 ? axis : 0, &quant);
        if (!error)
            error = onnx_adopt_quant(reader, call->in[i], &quant);
    }
    call->quantized = true;
    call->quant.type = MICA_TYPE_UINT8;
    if (!error)
        error = onnx_read_quant(reader, input_of(node, result), input_of(node, result + 1), 0, &call->quant);
    if (!error && call->quant.count != 1)
        error = onnx_refuse(reader, "its output needs exactly one scale");
    return error;
}

int onnx_call_rescaled(struct onnx_reader *reader, int32_t value, const struct onnx_quant *quant,
                       enum onnx_layout layout, int32_t *tensor)
{
    int error = onnx_tensor(reader, value, layout, tensor);
    if (error || !quant->count || onnx_same_quant(&reader->values[onnx_resolve(reader, value)].quant, quant))
        return error;
    struct onnx_result result = {.value = ONNX_NONE, .quant = *quant, .layout = layout};
    error =
        onnx_emit(reader, &(struct mica_op){.kind = MICA_OP_QUANTIZE, .type = "QuantizeLinear"}, tensor, 1, &result);
    *tensor = result.tensor;
    return error;
}

/* ---- results ---------------------------------------------------------- */

struct onnx_result onnx_call_result(const struct onnx_reader *reader, const struct onnx_call *call,
                                    enum onnx_layout layout)
{
    struct onnx_result result = {.value = call->out, .quant = call->quant, .layout = layout, .checked = call->checked};
    if (call->in[0] >= 0)
        result.type = reader->values[call->in[0]].type;
    return result;
}

static bool has_limits_of(const struct onnx_call *call, float low, float high)
{
    return !(call->low < low) && !(call->low > low) && !(call->high < high) && !(call->high > high);
}

/* Where the operation has a place for them: as the activation they are. */
static bool fuse_limits(const struct onnx_call *call, struct mica_op *op)
{
    enum mica_activation activation;
    if (has_limits_of(call, 0, INFINITY))
        activation = MICA_ACT_RELU;
    else if (has_limits_of(call, 0, 6))
        activation = MICA_ACT_RELU6;
    else if (has_limits_of(call, -1, 1))
        activation = MICA_ACT_RELU_N1_TO_1;
    else
        return false;
    switch (op->kind) {
    case MICA_OP_CONV_2D:
    case MICA_OP_DEPTHWISE_CONV_2D:
        op->window.activation = activation;
        return true;
    case MICA_OP_FULLY_CONNECTED:
    case MICA_OP_ADD:
    case MICA_OP_SUB:
    case MICA_OP_MUL:
        op->activation = activation;
        return true;
    default:
        return false;
    }
}

/* One more operation behind the tensor of `result`; the last of them, when *left gets 0, makes the call's output. */
static int follow(struct onnx_reader *reader, const struct onnx_call *call, enum mica_op_kind kind, const char *type,
                  int32_t second, int *left, struct onnx_result *result)
{
    const int32_t inputs[2] = {result->tensor, second};
    result->quant = call->quant;
    result->value = --*left ? ONNX_NONE : call->out;
    return onnx_emit(reader, &(struct mica_op){.kind = kind, .type = type}, inputs, second < 0 ? 1 : 2, result);
}

static int limit(struct onnx_reader *reader, const struct onnx_call *call, enum mica_op_kind kind, float bound,
                 int *left, struct onnx_result *result)
{
    int32_t second;
    int error = onnx_add_scalar(reader, bound, &call->quant, &second);
    return error ? error : follow(reader, call, kind, "Clip", second, left, result);
}

static bool at_end(const struct onnx_quant *quant, float bound, bool low)
{
    int32_t code = onnx_code_of(quant, bound);
    return code == onnx_code_of(quant, low ? -INFINITY : INFINITY);
}

int onnx_call_emit(struct onnx_reader *reader, const struct onnx_call *call, struct mica_op *op, const int32_t *inputs,
                   uint32_t count, struct onnx_result *result, const struct onnx_quant *own)
{
    bool low = call->quantized && !at_end(&call->quant, call->low, true);
    bool high = call->quantized && !at_end(&call->quant, call->high, false);
    bool rescale = call->quantized && own && own->count && !onnx_same_quant(own, &call->quant);
    if ((low || high) && !rescale && fuse_limits(call, op))
        low = high = false;
    int left = rescale + low + high;
    if (rescale)
        result->quant = *own;
    if (left)
        result->value = ONNX_NONE;
    int error = onnx_emit(reader, op, inputs, count, result);
    if (!error && rescale)
        error = follow(reader, call, MICA_OP_QUANTIZE, "QuantizeLinear", ONNX_NONE, &left, result);
    if (!error && low)
        error = limit(reader, call, MICA_OP_MAXIMUM, call->low, &left, result);
    if (!error && high)
        error = limit(reader, call, MICA_OP_MINIMUM, call->high, &left, result);
    for (uint32_t i = 0; i < call->done_count && !error; i++)
        reader->nodes[call->done[i]].done = true;
    return error;
}
