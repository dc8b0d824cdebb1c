/* SPDX-License-Identifier: MIT */
/*
 * Protocol buffers as they lie in a file: a cursor over the fields of one
 * message. Errors are sticky: past damage there are no more fields, and `error`
 * is set, so callers check once, at the end. Nothing is copied.
 */
#ifndef MICA_FRONTEND_ONNX_WIRE_H
#define MICA_FRONTEND_ONNX_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct onnx_bytes {
    const uint8_t *data;
    size_t size;
};

/* How a field's value is stored. */
enum onnx_wire {
    ONNX_WIRE_VARINT = 0,
    ONNX_WIRE_FIXED64 = 1,
    ONNX_WIRE_BYTES = 2, /* strings, messages, packed numbers */
    ONNX_WIRE_FIXED32 = 5,
};

struct onnx_field {
    uint32_t number;
    enum onnx_wire wire;
    uint64_t value;          /* all but bytes */
    struct onnx_bytes bytes; /* inside of the message; empty for all others */
};

struct onnx_cursor {
    struct onnx_bytes left;
    bool error;
};

static inline struct onnx_cursor onnx_cursor(struct onnx_bytes message)
{
    return (struct onnx_cursor){message, false};
}

static inline bool onnx_wire_fail(struct onnx_cursor *cursor)
{
    cursor->error = true;
    cursor->left.size = 0;
    return false;
}

/* 1 to 10 bytes of 7 bits, the lowest first. */
static inline bool onnx_read_varint(struct onnx_cursor *cursor, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 70 && cursor->left.size; shift += 7) {
        uint8_t byte = *cursor->left.data;
        cursor->left.data++;
        cursor->left.size--;
        *value |= shift < 64 ? (uint64_t)(byte & 127) << shift : 0;
        if (byte < 128)
            return true;
    }
    return onnx_wire_fail(cursor);
}

static inline bool onnx_take(struct onnx_cursor *cursor, uint64_t size, struct onnx_bytes *bytes)
{
    if (size > cursor->left.size)
        return onnx_wire_fail(cursor);
    *bytes = (struct onnx_bytes){cursor->left.data, (size_t)size};
    cursor->left.data += size;
    cursor->left.size -= (size_t)size;
    return true;
}

static inline bool onnx_read_fixed(struct onnx_cursor *cursor, size_t size, uint64_t *value)
{
    struct onnx_bytes bytes;
    *value = 0;
    if (!onnx_take(cursor, size, &bytes))
        return false;
    memcpy(value, bytes.data, size);
    return true;
}

/* The next field; false at the end, and where the message is damaged. */
static inline bool onnx_next(struct onnx_cursor *cursor, struct onnx_field *field)
{
    uint64_t tag;
    if (!cursor->left.size || !onnx_read_varint(cursor, &tag))
        return false;
    *field = (struct onnx_field){.number = (uint32_t)(tag >> 3), .wire = (enum onnx_wire)(tag & 7)};
    if (tag >> 3 == 0 || tag >> 32)
        return onnx_wire_fail(cursor);
    switch (field->wire) {
    case ONNX_WIRE_VARINT:
        return onnx_read_varint(cursor, &field->value);
    case ONNX_WIRE_FIXED64:
        return onnx_read_fixed(cursor, 8, &field->value);
    case ONNX_WIRE_FIXED32:
        return onnx_read_fixed(cursor, 4, &field->value);
    case ONNX_WIRE_BYTES:
        return onnx_read_varint(cursor, &field->value) && onnx_take(cursor, field->value, &field->bytes);
    }
    return onnx_wire_fail(cursor);
}

/* The next field of that number and kind; others are passed over. */
static inline bool onnx_next_of(struct onnx_cursor *cursor, uint32_t number, enum onnx_wire wire,
                                struct onnx_field *field)
{
    while (onnx_next(cursor, field))
        if (field->number == number && field->wire == wire)
            return true;
    return false;
}

/* The last field of that number and kind, which is the one that counts; false when there is none. */
static inline bool onnx_find(struct onnx_bytes message, uint32_t number, enum onnx_wire wire, struct onnx_field *field)
{
    struct onnx_cursor cursor = onnx_cursor(message);
    struct onnx_field next;
    bool found = false;
    while (onnx_next_of(&cursor, number, wire, &next)) {
        *field = next;
        found = true;
    }
    return found;
}

/* A repeated number on its way: packed into one field, or a field each, or both. */
struct onnx_numbers {
    struct onnx_cursor message, packed;
    uint32_t number;
    enum onnx_wire wire; /* of one element */
};

static inline struct onnx_numbers onnx_numbers(struct onnx_bytes message, uint32_t number, enum onnx_wire wire)
{
    return (struct onnx_numbers){onnx_cursor(message), {{NULL, 0}, false}, number, wire};
}

static inline bool onnx_next_number(struct onnx_numbers *numbers, uint64_t *value)
{
    struct onnx_field field;
    while (!numbers->packed.left.size) {
        if (!onnx_next(&numbers->message, &field))
            return false;
        if (field.number != numbers->number)
            continue;
        if (field.wire == numbers->wire) {
            *value = field.value;
            return true;
        }
        numbers->packed = onnx_cursor(field.bytes);
    }
    bool good = numbers->wire == ONNX_WIRE_VARINT
                    ? onnx_read_varint(&numbers->packed, value)
                    : onnx_read_fixed(&numbers->packed, numbers->wire == ONNX_WIRE_FIXED32 ? 4 : 8, value);
    numbers->message.error = numbers->message.error || numbers->packed.error;
    return good;
}

static inline bool onnx_is(struct onnx_bytes bytes, const char *text)
{
    return bytes.size == strlen(text) && !memcmp(bytes.data, text, bytes.size);
}

#endif
