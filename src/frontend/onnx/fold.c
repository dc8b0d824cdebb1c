/* SPDX-License-Identifier: MIT */
/* Constants in another order, of another type, or computed from constants. */
#include "frontend/onnx/internal.h"

#include <math.h>

#include "graph/arena.h"

/* ---- order ------------------------------------------------------------ */

/* The same order in memory: dimensions of one element may be anywhere. */
static bool in_order(const struct onnx_value *value, const uint8_t *order)
{
    int last = -1;
    for (uint32_t i = 0; order && i < value->rank; i++) {
        if (value->dims[order[i]] == 1)
            continue;
        if (order[i] < last)
            return false;
        last = order[i];
    }
    return true;
}

struct walk {
    uint32_t rank;
    size_t count[MICA_MAX_RANK], step[MICA_MAX_RANK]; /* of the target's dimensions, in the source */
    size_t size;
    const uint8_t *from;
    uint8_t *to;
};

static void walk(struct walk *walk_, uint32_t dimension, size_t offset)
{
    if (dimension == walk_->rank) {
        memcpy(walk_->to, walk_->from + offset * walk_->size, walk_->size);
        walk_->to += walk_->size;
        return;
    }
    for (size_t i = 0; i < walk_->count[dimension]; i++)
        walk(walk_, dimension + 1, offset + i * walk_->step[dimension]);
}

static void permute(const struct onnx_value *value, const uint8_t *order, uint8_t *to)
{
    struct walk all = {value->rank, {0}, {0}, mica_type_size(value->type), value->data, to};
    size_t steps[MICA_MAX_RANK], step = 1;
    for (uint32_t i = value->rank; i-- > 0; step *= (size_t)value->dims[i])
        steps[i] = step;
    for (uint32_t i = 0; i < value->rank; i++) {
        all.count[i] = (size_t)value->dims[order ? order[i] : i];
        all.step[i] = steps[order ? order[i] : i];
    }
    walk(&all, 0, 0);
}

/* The data as they are where that will do, else a copy. */
static int arranged(struct onnx_reader *reader, const struct onnx_value *value, const uint8_t *order, bool flip,
                    const void **data)
{
    size_t bytes = onnx_elements(value) * mica_type_size(value->type);
    int error = 0;
    *data = value->data;
    if (in_order(value, order) && !flip)
        return 0;
    uint8_t *copy = onnx_alloc(reader, bytes, &error);
    if (!copy)
        return error;
    permute(value, order, copy);
    for (size_t i = 0; flip && i < bytes; i++)
        copy[i] ^= 128;
    *data = copy;
    return 0;
}

static bool is_8bit(enum mica_type type)
{
    return type == MICA_TYPE_INT8 || type == MICA_TYPE_UINT8;
}

static int shifted_zero_points(struct onnx_reader *reader, const struct onnx_quant *quant, bool flip,
                               struct mica_quantization *out)
{
    int error = 0;
    out->zero_point = quant->zero_point;
    if (!flip)
        return 0;
    int32_t *numbers = onnx_alloc(reader, quant->count * sizeof *numbers, &error);
    for (uint32_t i = 0; numbers && i < quant->count; i++)
        numbers[i] = quant->zero_point[i] + (quant->type == MICA_TYPE_INT8 ? 128 : -128);
    out->zero_point = numbers;
    return error;
}

int onnx_constant_tensor(struct onnx_reader *reader, int32_t index, const uint8_t *order, int32_t *tensor)
{
    struct onnx_value *value = &reader->values[index];
    struct onnx_text name = onnx_text(value->name);
    int result = onnx_decode(reader, index);
    if (!result) /* the graph copies scales and zero points */
        result = onnx_spend(reader, value->quant.count * (sizeof(float) + sizeof(int32_t)));
    if (result)
        return result;
    bool quantized = value->quant.count > 0, flip = quantized && is_8bit(value->type) && value->type != reader->inner;
    struct mica_tensor made = {.name = name.text, .type = flip ? reader->inner : value->type, .rank = value->rank};
    result = arranged(reader, value, order, flip, &made.data);
    if (!result && quantized)
        result = shifted_zero_points(reader, &value->quant, flip, &made.quant);
    if (result)
        return result;
    made.quant.count = value->quant.count;
    made.quant.scale = value->quant.scale;
    for (uint32_t i = 0; i < value->rank; i++) {
        made.dims[i] = value->dims[order ? order[i] : i];
        if (value->quant.axis == (order ? order[i] : (int32_t)i))
            made.quant.axis = (int32_t)i;
    }
    *tensor = (int32_t)reader->graph->tensor_count;
    return mica_graph_add_tensor(reader->graph, &made, reader->log);
}

/* ---- computed constants ----------------------------------------------- */

/* Which of the scales element `i` has. */
static size_t scale_of(const struct onnx_value *value, const struct onnx_quant *quant, size_t i)
{
    size_t inner = 1;
    if (quant->count < 2)
        return 0;
    for (uint32_t d = (uint32_t)quant->axis + 1; d < value->rank; d++)
        inner *= (size_t)value->dims[d];
    return i / inner % quant->count;
}

static bool scales_fit(const struct onnx_value *value, const struct onnx_quant *quant)
{
    return quant->count == 1 || (quant->axis >= 0 && (uint32_t)quant->axis < value->rank &&
                                 (uint32_t)value->dims[quant->axis] == quant->count);
}

int onnx_fold_dequantize(struct onnx_reader *reader, int32_t index)
{
    struct onnx_value *value = &reader->values[index], *source = &reader->values[value->source];
    int error = onnx_decode(reader, value->source);
    if (error)
        return error;
    if (!scales_fit(source, &source->quant))
        return onnx_refuse(reader, "the number of a constant's scales does not fit its shape");
    size_t elements = onnx_elements(source);
    float *data = onnx_alloc(reader, elements * sizeof *data, &error);
    if (!data)
        return error;
    for (size_t i = 0; i < elements; i++) {
        size_t k = scale_of(source, &source->quant, i);
        int64_t code = onnx_integer_at(source->type, source->data, i);
        data[i] = (float)(code - source->quant.zero_point[k]) * source->quant.scale[k];
    }
    value->state = ONNX_CONSTANT;
    value->data = data;
    return 0;
}

static void code_range(enum mica_type type, float *low, float *high)
{
    *low = type == MICA_TYPE_UINT8 ? 0 : type == MICA_TYPE_INT8 ? INT8_MIN : INT16_MIN;
    *high = type == MICA_TYPE_UINT8 ? UINT8_MAX : type == MICA_TYPE_INT8 ? INT8_MAX : INT16_MAX;
}

static int32_t code_of(const struct onnx_quant *quant, size_t k, float real)
{
    float low, high, code = rintf(real / quant->scale[k]) + (float)quant->zero_point[k];
    code_range(quant->type, &low, &high);
    if (!(code >= low)) /* also what is no number */
        return (int32_t)low;
    return (int32_t)(code > high ? high : code);
}

int32_t onnx_code_of(const struct onnx_quant *quant, float real)
{
    return code_of(quant, 0, real);
}

int onnx_fold_quantize(struct onnx_reader *reader, int32_t from, int32_t index, const struct onnx_quant *quant)
{
    struct onnx_value *value = &reader->values[index], *source = &reader->values[from];
    struct onnx_quant own = *quant;
    int error = onnx_decode(reader, from);
    if (error)
        return error;
    if (own.axis < 0)
        own.axis += (int32_t)source->rank;
    if (!scales_fit(source, &own) || !(is_8bit(own.type) || own.type == MICA_TYPE_INT16))
        return onnx_refuse(reader, "the scales of a constant do not fit its shape or type");
    size_t elements = onnx_elements(source);
    bool wide = own.type == MICA_TYPE_INT16;
    void *data = onnx_alloc(reader, elements * (wide ? 2 : 1), &error);
    if (!data)
        return error;
    for (size_t i = 0; i < elements; i++) {
        int32_t code = code_of(&own, scale_of(source, &own, i), ((const float *)source->data)[i]);
        if (wide)
            ((int16_t *)data)[i] = (int16_t)code;
        else
            ((uint8_t *)data)[i] = (uint8_t)code;
    }
    value->state = ONNX_CONSTANT;
    value->type = own.type;
    value->rank = source->rank;
    memcpy(value->dims, source->dims, sizeof value->dims);
    value->quant = own;
    value->data = data;
    return 0;
}

/* ---- new ones --------------------------------------------------------- */

int onnx_add_int32(struct onnx_reader *reader, const int32_t *numbers, uint32_t rank, const int32_t *dims,
                   int32_t *tensor)
{
    struct mica_tensor made = {.name = "", .type = MICA_TYPE_INT32, .rank = rank};
    size_t count = 1;
    for (uint32_t i = 0; i < rank; i++)
        count *= (size_t)(made.dims[i] = dims[i]);
    made.data = mica_arena_copy(reader->graph->arena, numbers, count * sizeof *numbers);
    if (!made.data)
        return mica_fail_nomem(reader->log);
    *tensor = (int32_t)reader->graph->tensor_count;
    return mica_graph_add_tensor(reader->graph, &made, reader->log);
}

int onnx_add_scalar(struct onnx_reader *reader, float real, const struct onnx_quant *quant, int32_t *tensor)
{
    struct mica_tensor made = {.name = "", .type = MICA_TYPE_FLOAT32, .rank = 1, .dims = {1}};
    union {
        float real;
        int16_t wide;
        int8_t code;
    } element = {.real = real};
    int32_t zero_point = 0;
    if (quant) {
        bool flip = is_8bit(quant->type) && quant->type != reader->inner;
        int32_t shift = !flip                           ? 0
                        : quant->type == MICA_TYPE_INT8 ? 128
                                                        : -128,
                code = onnx_code_of(quant, real) + shift;
        zero_point = quant->zero_point[0] + shift;
        made.type = flip ? reader->inner : quant->type;
        made.quant = (struct mica_quantization){.count = 1, .scale = quant->scale, .zero_point = &zero_point};
        if (made.type == MICA_TYPE_INT16)
            element.wide = (int16_t)code;
        else
            element.code = (int8_t)(uint8_t)code;
    }
    made.data = mica_arena_copy(reader->graph->arena, &element, sizeof element);
    if (!made.data)
        return mica_fail_nomem(reader->log);
    *tensor = (int32_t)reader->graph->tensor_count;
    return mica_graph_add_tensor(reader->graph, &made, reader->log);
}
