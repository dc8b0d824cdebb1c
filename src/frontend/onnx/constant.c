/* SPDX-License-Identifier: MIT */
/* Constants: numbers as the file has them, and what is quantized how. */
#include "frontend/onnx/internal.h"

#include <errno.h>

#include "graph/arena.h"
#include "util/checked.h"

int32_t onnx_resolve(const struct onnx_reader *reader, int32_t value)
{
    while (value >= 0 && reader->values[value].same >= 0)
        value = reader->values[value].same;
    return value;
}

int onnx_spend(struct onnx_reader *reader, size_t bytes)
{
    if (bytes > reader->budget)
        return reader->failed = onnx_damaged(reader, "it uses the same data over and over");
    reader->budget -= bytes;
    return 0;
}

void *onnx_alloc(struct onnx_reader *reader, size_t bytes, int *error)
{
    *error = onnx_spend(reader, bytes);
    if (*error)
        return NULL;
    void *memory = mica_arena_alloc(reader->graph->arena, bytes);
    if (!memory)
        *error = reader->failed = mica_fail_nomem(reader->log);
    return memory;
}

size_t onnx_elements(const struct onnx_value *value)
{
    size_t elements = 1;
    for (uint32_t i = 0; i < value->rank; i++)
        if (!mica_mul_size(elements, (size_t)value->dims[i], &elements) || elements > MICA_MAX_TENSOR_BYTES)
            return 0;
    return elements;
}

/* ---- decoding --------------------------------------------------------- */

static void put(enum mica_type type, void *data, size_t i, uint64_t bits)
{
    switch (mica_type_size(type)) {
    case 1:
        ((uint8_t *)data)[i] = (uint8_t)bits;
        break;
    case 2:
        ((uint16_t *)data)[i] = (uint16_t)bits;
        break;
    case 4:
        ((uint32_t *)data)[i] = (uint32_t)bits;
        break;
    default:
        ((uint64_t *)data)[i] = bits;
        break;
    }
}

/* Numbers that stand one by one; every one takes a byte at least. */
static int decode_numbers(struct onnx_reader *reader, struct onnx_value *value, size_t elements)
{
    bool is_float = value->type == MICA_TYPE_FLOAT32;
    uint32_t number = is_float                         ? ONNX_TENSOR_FLOAT_DATA
                      : value->type == MICA_TYPE_INT64 ? ONNX_TENSOR_INT64_DATA
                                                       : ONNX_TENSOR_INT32_DATA;
    struct onnx_numbers numbers =
        onnx_numbers(value->constant, number, is_float ? ONNX_WIRE_FIXED32 : ONNX_WIRE_VARINT);
    uint64_t bits;
    size_t i = 0;
    int error = 0;
    if (elements > value->constant.size)
        return onnx_refuse(reader, "a constant has less data than its shape says");
    void *data = onnx_alloc(reader, elements * mica_type_size(value->type), &error);
    if (!data)
        return error;
    for (; i < elements && onnx_next_number(&numbers, &bits); i++)
        put(value->type, data, i, bits);
    if (i < elements)
        return onnx_refuse(reader, "a constant has less data than its shape says");
    value->data = data;
    return 0;
}

static int decode_raw(struct onnx_reader *reader, struct onnx_value *value, struct onnx_bytes raw, size_t elements)
{
    size_t size = mica_type_size(value->type);
    int error = 0;
    if (raw.size / size != elements || raw.size % size)
        return onnx_refuse(reader, "a constant's data do not have the size of its shape");
    if ((uintptr_t)raw.data % size == 0) {
        value->data = raw.data;
        return 0;
    }
    void *copy = onnx_alloc(reader, raw.size, &error);
    if (copy)
        value->data = memcpy(copy, raw.data, raw.size);
    return error;
}

int onnx_decode(struct onnx_reader *reader, int32_t index)
{
    struct onnx_value *value = &reader->values[index];
    struct onnx_field raw;
    if (value->state != ONNX_CONSTANT)
        return onnx_refuse(reader, "\"%.100s\" should be a constant", onnx_text(value->name).text);
    if (value->problem)
        return onnx_refuse(reader, "a constant can't be used: %s", value->problem);
    if (value->data)
        return 0;
    size_t elements = onnx_elements(value);
    if (!elements)
        return onnx_refuse(reader, "a constant is empty or too large");
    if (onnx_find(value->constant, ONNX_TENSOR_RAW_DATA, ONNX_WIRE_BYTES, &raw))
        return decode_raw(reader, value, raw.bytes, elements);
    return decode_numbers(reader, value, elements);
}

struct onnx_text onnx_text(struct onnx_bytes name)
{
    struct onnx_text text = {""};
    size_t size = name.size < sizeof text.text ? name.size : sizeof text.text - 1;
    if (size)
        memcpy(text.text, name.data, size);
    return text;
}

/* ---- lists of numbers ------------------------------------------------- */

int64_t onnx_integer_at(enum mica_type type, const void *data, size_t i)
{
    switch (type) {
    case MICA_TYPE_INT64:
        return ((const int64_t *)data)[i];
    case MICA_TYPE_INT32:
        return ((const int32_t *)data)[i];
    case MICA_TYPE_INT16:
        return ((const int16_t *)data)[i];
    case MICA_TYPE_INT8:
        return ((const int8_t *)data)[i];
    default:
        return ((const uint8_t *)data)[i];
    }
}

/* *elements is 0 for an absent or empty constant. */
static int list(struct onnx_reader *reader, int32_t *value, uint32_t most, uint32_t *elements)
{
    *value = onnx_resolve(reader, *value);
    *elements = 0;
    if (*value < 0)
        return 0;
    const struct onnx_value *constant = &reader->values[*value];
    if (constant->state == ONNX_CONSTANT && constant->rank == 1 && constant->dims[0] == 0)
        return 0;
    int result = onnx_decode(reader, *value);
    if (result)
        return result;
    size_t count = onnx_elements(&reader->values[*value]);
    if (count > most)
        return onnx_refuse(reader, "a parameter has %zu elements where %u at most make sense", count, most);
    *elements = (uint32_t)count;
    return 0;
}

int onnx_integers(struct onnx_reader *reader, int32_t value, int64_t *out, uint32_t most, uint32_t *count)
{
    int result = list(reader, &value, most, count);
    if (!result && *count && reader->values[value].type == MICA_TYPE_FLOAT32)
        result = onnx_refuse(reader, "a parameter that should be integers is float");
    for (uint32_t i = 0; !result && i < *count; i++)
        out[i] = onnx_integer_at(reader->values[value].type, reader->values[value].data, i);
    return result;
}

int onnx_floats(struct onnx_reader *reader, int32_t value, float *out, uint32_t most, uint32_t *count)
{
    int result = list(reader, &value, most, count);
    if (!result && *count && reader->values[value].type != MICA_TYPE_FLOAT32)
        result = onnx_refuse(reader, "a parameter that should be float is of another type");
    if (!result && *count)
        memcpy(out, reader->values[value].data, *count * sizeof *out);
    return result;
}

/* ---- quantization ----------------------------------------------------- */

static int read_zero_points(struct onnx_reader *reader, int32_t index, struct onnx_quant *quant)
{
    int error = index < 0 ? 0 : onnx_decode(reader, index);
    if (error)
        return error;
    int32_t *numbers = onnx_alloc(reader, quant->count * sizeof *numbers, &error);
    if (!numbers)
        return error;
    quant->zero_point = numbers;
    if (index < 0)
        return 0;
    const struct onnx_value *value = &reader->values[index];
    if (onnx_elements(value) != quant->count || value->type == MICA_TYPE_FLOAT32)
        return onnx_refuse(reader, "it has not as many zero points as scales");
    quant->type = value->type;
    for (uint32_t i = 0; i < quant->count; i++)
        numbers[i] = (int32_t)onnx_integer_at(value->type, value->data, i);
    return 0;
}

int onnx_read_quant(struct onnx_reader *reader, int32_t scale, int32_t zero_point, int64_t axis,
                    struct onnx_quant *quant)
{
    scale = onnx_resolve(reader, scale);
    zero_point = onnx_resolve(reader, zero_point);
    if (scale < 0)
        return onnx_refuse(reader, "it has no scale");
    int result = onnx_decode(reader, scale);
    if (result)
        return result;
    const struct onnx_value *value = &reader->values[scale];
    if (value->type != MICA_TYPE_FLOAT32)
        return onnx_refuse(reader, "its scale is not float32");
    if (value->rank > 1)
        return onnx_refuse(reader, "scales of blocks are not supported");
    if (axis < -MICA_MAX_RANK || axis >= MICA_MAX_RANK)
        return onnx_refuse(reader, "axis %lld is out of range", (long long)axis);
    quant->count = (uint32_t)onnx_elements(value);
    quant->scale = value->data;
    quant->axis = (int32_t)axis;
    return read_zero_points(reader, zero_point, quant);
}

bool onnx_same_quant(const struct onnx_quant *a, const struct onnx_quant *b)
{
    bool same = a->count == b->count && a->type == b->type && (a->count < 2 || a->axis == b->axis);
    for (uint32_t i = 0; same && i < a->count; i++)
        same = !(a->scale[i] < b->scale[i]) && !(a->scale[i] > b->scale[i]) && a->zero_point[i] == b->zero_point[i];
    return same;
}

int onnx_adopt_quant(struct onnx_reader *reader, int32_t index, const struct onnx_quant *quant)
{
    struct onnx_value *value = &reader->values[index];
    struct onnx_quant own = *quant;
    if (value->type != quant->type)
        return onnx_refuse(reader, "a zero point is %s and what it belongs to %s", mica_type_name(quant->type),
                           mica_type_name(value->type));
    if (own.axis < 0)
        own.axis += (int32_t)value->rank;
    if (own.count < 2)
        own.axis = 0;
    if (value->quant.count)
        return onnx_same_quant(&value->quant, &own)
                   ? 0
                   : onnx_refuse(reader, "it takes a scale or zero point that its input was not made with");
    if (value->tensor[0][0] >= 0 || value->tensor[1][0] >= 0)
        return onnx_refuse(reader, "its input was used without a scale before");
    value->quant = own;
    return 0;
}
