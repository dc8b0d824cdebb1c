/* SPDX-License-Identifier: MIT */
/* One value from one or two, or from many. */
#include "frontend/onnx/internal.h"

#include <math.h>

/* ---- two inputs ------------------------------------------------------- */

/* Dimensions are counted from the last one; channels last they only can be where there are four, or one element. */
static enum onnx_layout common_layout(const struct onnx_reader *reader, const struct onnx_call *call)
{
    enum onnx_layout layout = onnx_preferred(reader, call->in, 2);
    for (int i = 0; i < 2; i++) {
        const struct onnx_value *value = &reader->values[call->in[i]];
        bool constant = value->state == ONNX_CONSTANT ||
                        (value->source >= 0 && reader->values[value->source].state == ONNX_CONSTANT);
        if (value->rank != 4 && onnx_elements(value) != 1 && !(constant && value->rank < 4))
            return ONNX_PLAIN;
    }
    return layout;
}

/* A constant of fewer dimensions, as if it had four. */
static int widened(struct onnx_reader *reader, int32_t index, enum onnx_layout layout, int32_t *tensor)
{
    struct onnx_value *value = &reader->values[index];
    int result = 0;
    if (layout == ONNX_PLAIN || value->rank == 4 || onnx_elements(value) == 1)
        return onnx_tensor(reader, index, value->rank == 4 ? layout : ONNX_PLAIN, tensor);
    if (value->state != ONNX_CONSTANT)
        result = onnx_fold_dequantize(reader, index);
    struct onnx_value narrow = *value;
    uint32_t missing = 4 - narrow.rank;
    for (uint32_t i = 0; i < 4; i++)
        value->dims[i] = i < missing ? 1 : narrow.dims[i - missing];
    value->rank = 4;
    if (!result)
        result = onnx_constant_tensor(reader, index, onnx_image_order, tensor);
    memcpy(value->dims, narrow.dims, sizeof value->dims);
    value->rank = narrow.rank;
    return result;
}

static bool keeps_scale(int kind)
{
    return kind == MICA_OP_MAXIMUM || kind == MICA_OP_MINIMUM;
}

static int emit_binary(struct onnx_reader *reader, const struct onnx_call *call, int kind)
{
    struct mica_op op = {.kind = (enum mica_op_kind)kind};
    int32_t inputs[2];
    if (reader->node->inputs < 2 || call->in[0] < 0 || call->in[1] < 0)
        return onnx_refuse(reader, "it needs two inputs");
    enum onnx_layout layout = common_layout(reader, call);
    struct onnx_result result = onnx_call_result(reader, call, layout);
    for (int i = 0; i < 2; i++) {
        int error = call->quantized && keeps_scale(kind) && reader->values[call->in[i]].rank == 4
                        ? onnx_call_rescaled(reader, call->in[i], &call->quant, layout, &inputs[i])
                        : widened(reader, call->in[i], layout, &inputs[i]);
        if (error)
            return error;
    }
    return onnx_call_emit(reader, call, &op, inputs, 2, &result, NULL);
}

int onnx_binary(struct onnx_reader *reader, int kind)
{
    struct onnx_call call;
    if (reader->node->inputs != 2)
        return onnx_refuse(reader, "%u inputs are not supported: 2 are", reader->node->inputs);
    reader->float_only = reader->float_only || kind == MICA_OP_DIV; /* no kernel for quotients of codes */
    int result = onnx_call_plain(reader, 2, &call);
    return result ? result : emit_binary(reader, &call, kind);
}

int onnx_qlinear_binary(struct onnx_reader *reader, int kind)
{
    static const uint8_t places[] = {0, 3};
    struct onnx_call call;
    int result = onnx_call_qlinear(reader, places, 2, 6, 0, &call);
    return result ? result : emit_binary(reader, &call, kind);
}

/* ---- one input -------------------------------------------------------- */

/*
 * Where the graph fixes what the codes of a result mean, and how: rescaling is a second rounding, which must not
 * cost more than one code.
 */
static const struct onnx_quant *fixed_quant(const struct onnx_call *call, int kind, struct onnx_quant *own)
{
    static const float unit = 1.0f / 256, twice = 1.0f / 128;
    static const int32_t zero_points[] = {0, -128, 128, 0};
    bool tanh = kind == MICA_OP_TANH, is_signed = call->quant.type == MICA_TYPE_INT8;
    if (!call->quantized || (kind != MICA_OP_LOGISTIC && kind != MICA_OP_SOFTMAX && !tanh))
        return NULL;
    *own = (struct onnx_quant){.count = 1,
                               .scale = tanh ? &twice : &unit,
                               .zero_point = &zero_points[2 * tanh + is_signed],
                               .type = call->quant.type};
    /* Within the rules' tolerance it is what they mean. */
    if (fabsf(call->quant.scale[0] / own->scale[0] - 1) < 0.001f && call->quant.zero_point[0] == own->zero_point[0])
        return NULL;
    return own;
}

static int emit_unary(struct onnx_reader *reader, const struct onnx_call *call, struct mica_op *op,
                      enum onnx_layout layout)
{
    struct onnx_result result = onnx_call_result(reader, call, layout);
    struct onnx_quant own;
    const struct onnx_quant *fixed = fixed_quant(call, op->kind, &own);
    int32_t input;
    if (fixed && call->checked && call->quant.scale[0] < 0.9f * fixed->scale[0])
        return ONNX_RETRY;
    int error = onnx_tensor(reader, call->in[0], layout, &input);
    return error ? error : onnx_call_emit(reader, call, op, &input, 1, &result, fixed);
}

static void set_slope(const struct onnx_reader *reader, struct mica_op *op)
{
    if (op->kind == MICA_OP_LEAKY_RELU)
        op->alpha = onnx_float(reader, "alpha", 0.01f);
}

/* For 8 bits, what the tables of the kernels hold; all else goes through float. */
static bool has_table(int kind)
{
    return kind == MICA_OP_RELU || kind == MICA_OP_LEAKY_RELU || kind == MICA_OP_LOGISTIC || kind == MICA_OP_TANH;
}

int onnx_unary(struct onnx_reader *reader, int kind)
{
    struct mica_op op = {.kind = (enum mica_op_kind)kind};
    struct onnx_call call;
    float alpha = onnx_float(reader, "alpha", 1);
    if (kind == MICA_OP_ELU && (alpha < 1 || alpha > 1))
        return onnx_refuse(reader, "a factor alpha other than 1 is not supported");
    reader->float_only = reader->float_only || !has_table(kind);
    int result = onnx_call_plain(reader, 1, &call);
    set_slope(reader, &op);
    return result ? result : emit_unary(reader, &call, &op, onnx_preferred(reader, call.in, 1));
}

int onnx_qlinear_unary(struct onnx_reader *reader, int kind)
{
    static const uint8_t places[] = {0};
    struct mica_op op = {.kind = (enum mica_op_kind)kind};
    struct onnx_call call;
    int result = onnx_call_qlinear(reader, places, 1, 3, 0, &call);
    set_slope(reader, &op);
    return result ? result : emit_unary(reader, &call, &op, onnx_preferred(reader, call.in, 1));
}

/* Over the last dimension, or over the channels of an image. */
static int emit_softmax(struct onnx_reader *reader, const struct onnx_call *call, int64_t version)
{
    struct mica_op op = {.kind = MICA_OP_SOFTMAX, .beta = 1};
    const struct onnx_value *value = &reader->values[call->in[0]];
    int64_t axis = onnx_int(reader, "axis", version < 13 ? 1 : -1);
    axis += axis < 0 ? value->rank : 0;
    size_t behind = 1;
    for (uint32_t i = 0; version < 13 && i < value->rank; i++)
        behind *= (int64_t)i > axis ? (size_t)value->dims[i] : 1;
    if (behind > 1)
        return onnx_refuse(reader, "softmax over several dimensions is not supported");
    if (axis == (int64_t)value->rank - 1)
        return emit_unary(reader, call, &op, ONNX_PLAIN);
    if (axis == 1 && value->rank == 4)
        return emit_unary(reader, call, &op, ONNX_IMAGE);
    return onnx_refuse(reader, "softmax over dimension %lld of %u is not supported", (long long)axis, value->rank);
}

int onnx_softmax(struct onnx_reader *reader, int kind)
{
    struct onnx_call call;
    int result = onnx_call_plain(reader, 1, &call);
    if (!result && call.in[0] < 0)
        result = onnx_refuse(reader, "it has no input");
    return result ? result : emit_softmax(reader, &call, reader->version);
}

int onnx_qlinear_softmax(struct onnx_reader *reader, int kind)
{
    static const uint8_t places[] = {0};
    struct onnx_call call;
    int result = onnx_call_qlinear(reader, places, 1, 3, 0, &call);
    return result ? result : emit_softmax(reader, &call, onnx_int(reader, "opset", 13));
}

/* ---- Clip, where it is no part of another operation -------------------- */

static int clip_float(struct onnx_reader *reader, const struct onnx_call *call, float low, float high)
{
    enum onnx_layout layout = onnx_preferred(reader, call->in, 1);
    struct onnx_result result = onnx_call_result(reader, call, layout);
    struct mica_op op = {.kind = low < 0 || low > 0        ? MICA_OP_UNKNOWN
                                 : !(high < INFINITY)      ? MICA_OP_RELU
                                 : !(high < 6 || high > 6) ? MICA_OP_RELU6
                                 : !(high < 1 || high > 1) ? MICA_OP_RELU_0_TO_1
                                                           : MICA_OP_UNKNOWN};
    int32_t inputs[2];
    int error = onnx_tensor(reader, call->in[0], layout, &inputs[0]);
    if (error || op.kind != MICA_OP_UNKNOWN)
        return error ? error : onnx_emit(reader, &op, inputs, 1, &result);
    result.value = ONNX_NONE;
    error = onnx_add_scalar(reader, low, NULL, &inputs[1]);
    if (!error)
        error = onnx_emit(reader, &(struct mica_op){.kind = MICA_OP_MAXIMUM}, inputs, 2, &result);
    inputs[0] = result.tensor;
    result.value = call->out;
    if (!error)
        error = onnx_add_scalar(reader, high, NULL, &inputs[1]);
    return error ? error : onnx_emit(reader, &(struct mica_op){.kind = MICA_OP_MINIMUM}, inputs, 2, &result);
}

int onnx_clip(struct onnx_reader *reader, int kind)
{
    struct onnx_node *node = reader->node;
    struct onnx_call call;
    uint32_t count;
    float low = onnx_float(reader, "min", -INFINITY), high = onnx_float(reader, "max", INFINITY);
    int result = onnx_floats(reader, node->inputs > 1 ? node->in[1] : ONNX_NONE, &low, 1, &count);
    if (!result)
        result = onnx_floats(reader, node->inputs > 2 ? node->in[2] : ONNX_NONE, &high, 1, &count);
    if (!result)
        result = onnx_call_plain(reader, 1, &call);
    if (result)
        return result;
    if (!call.quantized)
        return clip_float(reader, &call, low, high);
    if (!(low <= call.high && high >= call.low && low <= high))
        return onnx_refuse(reader, "its bounds exclude each other");
    call.low = fmaxf(call.low, low);
    call.high = fminf(call.high, high);
    call.checked = false;
    /* Rescaling, then the limits. */
    enum onnx_layout layout = onnx_preferred(reader, call.in, 1);
    struct onnx_result done = onnx_call_result(reader, &call, layout);
    struct mica_op op = {.kind = MICA_OP_QUANTIZE, .type = "QuantizeLinear"};
    int32_t input;
    result = onnx_tensor(reader, call.in[0], layout, &input);
    return result ? result : onnx_call_emit(reader, &call, &op, &input, 1, &done, NULL);
}
