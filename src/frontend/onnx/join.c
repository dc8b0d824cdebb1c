/* SPDX-License-Identifier: MIT */
/* Operations with several inputs or outputs that only move values, and padding. */
#include "frontend/onnx/internal.h"

#include <math.h>

#include "graph/check.h"
#include "util/checked.h"

static int32_t input_of(const struct onnx_reader *reader, uint32_t i)
{
    return i < reader->node->inputs ? reader->node->in[i] : ONNX_NONE;
}

static int32_t axis_of(int64_t axis, uint32_t rank)
{
    axis += axis < 0 ? (int64_t)rank : 0;
    return axis >= 0 && axis < (int64_t)rank ? (int32_t)axis : -1;
}

/* ---- concatenation ---------------------------------------------------- */

static int emit_concat(struct onnx_reader *reader, const struct onnx_call *call, const int32_t *values, uint32_t count)
{
    struct mica_op op = {.kind = MICA_OP_CONCATENATION};
    int error = 0;
    enum onnx_layout layout = onnx_preferred(reader, values, count);
    struct onnx_result result = onnx_call_result(reader, call, layout);
    const struct onnx_value *first = &reader->values[onnx_resolve(reader, values[0])];
    int32_t axis = axis_of(onnx_int(reader, "axis", MICA_MAX_RANK), first->rank);
    int32_t *inputs = mica_new_array(count, sizeof *inputs);
    if (!inputs)
        return mica_fail_nomem(reader->log);
    if (axis < 0)
        error = onnx_refuse(reader, "its axis is out of range");
    result.type = first->type;
    op.axis = onnx_place(layout, axis);
    for (uint32_t i = 0; i < count && !error; i++) {
        bool fits = reader->values[onnx_resolve(reader, values[i])].rank == first->rank;
        error = fits ? onnx_call_rescaled(reader, values[i], &call->quant, layout, &inputs[i])
                     : onnx_refuse(reader, "its inputs differ in their number of dimensions");
    }
    if (!error)
        error = onnx_call_emit(reader, call, &op, inputs, count, &result, NULL);
    free(inputs);
    return error;
}

/* Quantized when all inputs are: as what follows is, or else, if all are alike, as they are. */
int onnx_concat(struct onnx_reader *reader, int kind)
{
    const struct onnx_node *node = reader->node;
    struct onnx_call call, moving;
    int error = 0;
    if (!node->inputs)
        return onnx_refuse(reader, "it has no input");
    int32_t *values = mica_new_array(node->inputs, sizeof *values);
    if (!values)
        return mica_fail_nomem(reader->log);
    bool quantized = !reader->float_only, codes = true;
    for (uint32_t i = 0; i < node->inputs && !error; i++) {
        values[i] = onnx_resolve(reader, node->in[i]);
        error = onnx_usable(reader, values[i]);
        quantized = quantized && !error && reader->values[values[i]].source >= 0;
        codes = codes && !error && reader->values[values[i]].quant.count == 1;
    }
    if (!error)
        error = onnx_call_plain(reader, 1, &call);
    if (!error && quantized && call.quantized) {
        for (uint32_t i = 0; i < node->inputs; i++)
            values[i] = onnx_resolve(reader, reader->values[values[i]].source);
    } else if (!error) {
        moving = call;
        moving.quantized = codes;
        moving.quant = codes ? reader->values[values[0]].quant : (struct onnx_quant){0};
        moving.out = node->outputs ? node->out[0] : ONNX_NONE;
        moving.low = -INFINITY;
        moving.high = INFINITY;
        moving.done_count = 0;
        moving.checked = false;
        call = moving;
    }
    if (!error)
        error = emit_concat(reader, &call, values, node->inputs);
    free(values);
    return error;
}

/* Scale and zero point of the output, then three inputs for each part. */
int onnx_qlinear_concat(struct onnx_reader *reader, int kind)
{
    static const uint8_t places[] = {2};
    const struct onnx_node *node = reader->node;
    struct onnx_call call;
    if (node->inputs < 5 || (node->inputs - 2) % 3)
        return onnx_refuse(reader, "%u inputs are not two and three for each part", node->inputs);
    uint32_t count = (node->inputs - 2) / 3;
    int error = onnx_call_qlinear(reader, places, 1, 0, 0, &call);
    int32_t *values = mica_new_array(count, sizeof *values);
    if (!values)
        return mica_fail_nomem(reader->log);
    for (uint32_t i = 0; i < count && !error; i++) {
        values[i] = onnx_resolve(reader, node->in[2 + 3 * i]);
        error = onnx_usable(reader, values[i]);
        struct onnx_quant quant = {.type = error ? MICA_TYPE_OTHER : reader->values[values[i]].type};
        if (!error)
            error = onnx_read_quant(reader, node->in[3 + 3 * i], node->in[4 + 3 * i], 0, &quant);
        if (!error)
            error = onnx_adopt_quant(reader, values[i], &quant);
    }
    if (!error)
        error = emit_concat(reader, &call, values, count);
    free(values);
    return error;
}

/* ---- split ------------------------------------------------------------ */

/* Sizes of the parts: given, or all alike, where the last may be smaller. */
static int part_sizes(struct onnx_reader *reader, int64_t size, uint32_t count, int32_t *sizes)
{
    int64_t given[64];
    uint32_t number;
    if (!onnx_ints(reader, "split", given, 64, &number))
        return onnx_refuse(reader, "more than 64 parts are not supported");
    int result = number ? 0 : onnx_integers(reader, input_of(reader, 1), given, 64, &number);
    if (result || (number && number != count))
        return result ? result : onnx_refuse(reader, "it has not as many sizes as outputs");
    int64_t each = (size + count - 1) / count;
    for (uint32_t i = 0; i < count; i++) {
        int64_t own = number ? given[i] : i + 1 < count ? each : size - each * (count - 1);
        if (own < 1 || own > size)
            return onnx_refuse(reader, "the size of a part is out of range");
        sizes[i] = (int32_t)own;
    }
    return 0;
}

static int emit_part(struct onnx_reader *reader, const struct onnx_result *like, const struct mica_op *op,
                     int32_t input, int32_t out)
{
    struct onnx_result result = *like;
    result.value = out;
    result.dims = op->slice.count;
    if (like->quant.count && reader->values[out].source >= 0)
        result.value = reader->values[out].source;
    return onnx_emit(reader, op, &input, 1, &result);
}

/* A slice for each part that is used. */
int onnx_split(struct onnx_reader *reader, int kind)
{
    struct onnx_node *node = reader->node;
    struct mica_op op = {.kind = MICA_OP_SLICE};
    struct onnx_call call;
    int32_t input, sizes[64];
    if (!node->outputs || node->outputs > 64)
        return onnx_refuse(reader, "%u outputs are not supported: 1 to 64 are", node->outputs);
    for (uint32_t i = 0; i < node->outputs; i++)
        if (node->out[i] < 0)
            return onnx_refuse(reader, "an output without a name is not supported");
    int error = onnx_call_moving(reader, 1, &call);
    if (error)
        return error;
    const struct onnx_value *value = &reader->values[call.in[0]];
    enum onnx_layout layout = onnx_preferred(reader, call.in, 1);
    int32_t axis = axis_of(onnx_int(reader, "axis", 0), value->rank), place = onnx_place(layout, axis);
    if (axis < 0)
        return onnx_refuse(reader, "its axis is out of range");
    bool hidden = call.out != node->out[0];
    struct onnx_result result = onnx_call_result(reader, &call, layout);
    result.rank = value->rank;
    for (uint32_t i = 0; i < value->rank; i++) {
        op.slice.step[i] = 1;
        op.slice.count[i] = value->dims[layout == ONNX_IMAGE ? onnx_image_order[i] : i];
    }
    error = part_sizes(reader, value->dims[axis], node->outputs, sizes);
    if (!error)
        error = onnx_tensor(reader, call.in[0], layout, &input);
    for (uint32_t i = 0; i < node->outputs && !error; i++) {
        if (hidden && i)
            reader->values[node->out[i]].source = onnx_hidden(reader);
        op.slice.count[place] = sizes[i];
        error = emit_part(reader, &result, &op, input, node->out[i]);
        op.slice.begin[place] += sizes[i];
    }
    return error;
}

/* ---- padding ---------------------------------------------------------- */

static int pad_amounts(struct onnx_reader *reader, const struct onnx_value *value, enum onnx_layout layout,
                       int32_t *amounts)
{
    int64_t pads[2 * MICA_MAX_RANK], axes[MICA_MAX_RANK];
    uint32_t count, axis_count;
    memset(amounts, 0, 2 * MICA_MAX_RANK * sizeof *amounts);
    int result = onnx_ints(reader, "pads", pads, 2 * MICA_MAX_RANK, &count) ? 0 : onnx_refuse(reader, "too many pads");
    if (!result && !count)
        result = onnx_integers(reader, input_of(reader, 1), pads, 2 * MICA_MAX_RANK, &count);
    if (!result)
        result = onnx_integers(reader, input_of(reader, 3), axes, MICA_MAX_RANK, &axis_count);
    uint32_t rank = result ? 0 : axis_count ? axis_count : value->rank;
    if (!result && count != 2 * rank)
        result = onnx_refuse(reader, "it has not two pads for each dimension");
    for (uint32_t i = 0; i < rank && !result; i++) {
        int32_t axis = axis_count ? axis_of(axes[i], value->rank) : (int32_t)i;
        if (axis < 0 || pads[i] < 0 || pads[i + rank] < 0 || pads[i] > INT32_MAX || pads[i + rank] > INT32_MAX)
            return onnx_refuse(reader, "negative or huge pads are not supported");
        amounts[2 * onnx_place(layout, axis)] = (int32_t)pads[i];
        amounts[2 * onnx_place(layout, axis) + 1] = (int32_t)pads[i + rank];
    }
    return result;
}

/* Of quantized values the operation itself pads with what means 0; anything else is a constant. */
static int pad_value(struct onnx_reader *reader, const struct onnx_call *call, int32_t *tensor)
{
    float real = onnx_float(reader, "value", 0);
    int64_t code = 0;
    uint32_t count;
    bool codes = call->quantized && call->out == reader->node->out[0];
    int result = codes ? onnx_integers(reader, input_of(reader, 2), &code, 1, &count)
                       : onnx_floats(reader, input_of(reader, 2), &real, 1, &count);
    *tensor = MICA_NO_TENSOR;
    if (!result && codes)
        real = (float)(code - call->quant.zero_point[0]) * call->quant.scale[0];
    if (result || (!(real < 0) && !(real > 0)))
        return result;
    return onnx_add_scalar(reader, real, call->quantized ? &call->quant : NULL, tensor);
}

int onnx_pad(struct onnx_reader *reader, int kind)
{
    struct mica_op op = {.kind = MICA_OP_PAD};
    struct onnx_bytes mode = onnx_string(reader, "mode", "constant");
    struct onnx_call call;
    int32_t inputs[3] = {0, 0, MICA_NO_TENSOR}, amounts[2 * MICA_MAX_RANK], dims[2] = {0, 2};
    if (onnx_is(mode, "reflect"))
        op.kind = MICA_OP_MIRROR_PAD;
    else if (!onnx_is(mode, "constant"))
        return onnx_refuse(reader, "modes other than constant and reflect are not supported");
    int error = onnx_call_moving(reader, 1, &call);
    if (error)
        return error;
    enum onnx_layout layout = onnx_preferred(reader, call.in, 1);
    struct onnx_result result = onnx_call_result(reader, &call, layout);
    dims[0] = (int32_t)reader->values[call.in[0]].rank;
    error = pad_amounts(reader, &reader->values[call.in[0]], layout, amounts);
    if (!error && op.kind == MICA_OP_PAD)
        error = pad_value(reader, &call, &inputs[2]);
    if (!error)
        error = onnx_add_int32(reader, amounts, 2, dims, &inputs[1]);
    if (!error)
        error = onnx_tensor(reader, call.in[0], layout, &inputs[0]);
    return error ? error : onnx_emit(reader, &op, inputs, inputs[2] < 0 ? 2 : 3, &result);
}
