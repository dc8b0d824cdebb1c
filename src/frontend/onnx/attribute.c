/* SPDX-License-Identifier: MIT */
/* Attributes of the node at hand, looked up where they lie. */
#include "frontend/onnx/internal.h"

bool onnx_attribute(const struct onnx_reader *reader, const char *name, struct onnx_bytes *attribute)
{
    struct onnx_cursor cursor = onnx_cursor(reader->node->body);
    struct onnx_field field, own;
    while (onnx_next_of(&cursor, ONNX_NODE_ATTRIBUTE, ONNX_WIRE_BYTES, &field))
        if (onnx_find(field.bytes, ONNX_ATTRIBUTE_NAME, ONNX_WIRE_BYTES, &own) && onnx_is(own.bytes, name)) {
            *attribute = field.bytes;
            return true;
        }
    return false;
}

int64_t onnx_int(const struct onnx_reader *reader, const char *name, int64_t otherwise)
{
    struct onnx_bytes attribute;
    struct onnx_field field;
    if (!onnx_attribute(reader, name, &attribute) ||
        !onnx_find(attribute, ONNX_ATTRIBUTE_INT, ONNX_WIRE_VARINT, &field))
        return otherwise;
    return (int64_t)field.value;
}

float onnx_float(const struct onnx_reader *reader, const char *name, float otherwise)
{
    struct onnx_bytes attribute;
    struct onnx_field field;
    float value;
    if (!onnx_attribute(reader, name, &attribute) ||
        !onnx_find(attribute, ONNX_ATTRIBUTE_FLOAT, ONNX_WIRE_FIXED32, &field))
        return otherwise;
    memcpy(&value, &field.value, sizeof value);
    return value;
}

struct onnx_bytes onnx_string(const struct onnx_reader *reader, const char *name, const char *otherwise)
{
    struct onnx_bytes attribute;
    struct onnx_field field;
    if (!onnx_attribute(reader, name, &attribute) ||
        !onnx_find(attribute, ONNX_ATTRIBUTE_STRING, ONNX_WIRE_BYTES, &field))
        return (struct onnx_bytes){(const uint8_t *)otherwise, strlen(otherwise)};
    return field.bytes;
}

bool onnx_ints(const struct onnx_reader *reader, const char *name, int64_t *out, uint32_t most, uint32_t *count)
{
    struct onnx_bytes attribute;
    uint64_t value;
    *count = 0;
    if (!onnx_attribute(reader, name, &attribute))
        return true;
    struct onnx_numbers numbers = onnx_numbers(attribute, ONNX_ATTRIBUTE_INTS, ONNX_WIRE_VARINT);
    while (onnx_next_number(&numbers, &value)) {
        if (*count == most)
            return false;
        out[(*count)++] = (int64_t)value;
    }
    return !numbers.message.error;
}
