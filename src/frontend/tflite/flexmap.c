/* SPDX-License-Identifier: MIT */
/*
 * Flexbuffers grow towards their end: the last byte is the width of the root
 * value, before it come the root's packed type (type << 2 | log2 width) and the
 * root itself. References are distances back from where they stand. A map is a
 * vector of values with their types behind it; the vector's size stands before
 * its first element, and before that the keys' width and the reference to the
 * sorted keys, a vector of references to strings.
 */
#include "frontend/tflite/flexmap.h"

#include "util/checked.h"

#include <string.h>

enum flex_type {
    FLEX_INT = 1,
    FLEX_UINT = 2,
    FLEX_FLOAT = 3,
    FLEX_INDIRECT_INT = 6,
    FLEX_INDIRECT_UINT = 7,
    FLEX_INDIRECT_FLOAT = 8,
    FLEX_MAP = 9,
    FLEX_BOOL = 26,
};

#define MAX_ENTRIES 64

/* A number found in the map; the kind says which member holds it. */
struct number {
    enum flex_type kind; /* FLEX_INT, FLEX_UINT, FLEX_FLOAT or FLEX_BOOL */
    int64_t integer;
    uint64_t natural;
    double real;
};

static bool valid_width(uint64_t width)
{
    return width == 1 || width == 2 || width == 4 || width == 8;
}

static bool read_natural(const struct mica_flexmap *map, size_t offset, unsigned width, uint64_t *value)
{
    if (!mica_range_inside(offset, width, map->size))
        return false;
    *value = 0;
    memcpy(value, map->data + offset, width);
    return true;
}

/* The place that the reference at `offset` means. */
static bool follow(const struct mica_flexmap *map, size_t offset, unsigned width, size_t *target)
{
    uint64_t distance;
    if (!read_natural(map, offset, width, &distance) || distance > offset)
        return false;
    *target = offset - (size_t)distance;
    return true;
}

/* The size that stands before the vector at `offset`; the elements lie inside the buffer. */
static bool read_count(const struct mica_flexmap *map, size_t offset, unsigned width, size_t *count)
{
    uint64_t value;
    if (offset < width || !read_natural(map, offset - width, width, &value) || value > MAX_ENTRIES)
        return false;
    *count = (size_t)value;
    return mica_range_inside(offset, value * width, map->size);
}

static bool open_keys(struct mica_flexmap *map)
{
    size_t count, header = 3 * (size_t)map->width;
    uint64_t key_width;
    if (map->values < header || !follow(map, map->values - header, map->width, &map->keys) ||
        !read_natural(map, map->values - 2 * (size_t)map->width, map->width, &key_width) || !valid_width(key_width))
        return false;
    map->key_width = (unsigned)key_width;
    return read_count(map, map->keys, map->key_width, &count) && count == map->count;
}

bool mica_flexmap_open(struct mica_flexmap *map, const uint8_t *data, size_t size)
{
    *map = (struct mica_flexmap){.data = data, .size = size};
    if (size < 3)
        return false;
    unsigned root_width = data[size - 1], root_type = data[size - 2];
    if (!valid_width(root_width) || root_type >> 2 != FLEX_MAP || size - 2 < root_width)
        return false;
    map->width = 1u << (root_type & 3);
    if (!follow(map, size - 2 - root_width, root_width, &map->values) ||
        !read_count(map, map->values, map->width, &map->count))
        return false;
    map->types = map->values + map->count * map->width;
    return mica_range_inside(map->types, map->count, size) && open_keys(map);
}

static bool key_equals(const struct mica_flexmap *map, size_t index, const char *key)
{
    size_t offset, length = strlen(key) + 1; /* the terminating zero must match too */
    if (!follow(map, map->keys + index * map->key_width, map->key_width, &offset))
        return false;
    return mica_range_inside(offset, length, map->size) && memcmp(map->data + offset, key, length) == 0;
}

static int64_t sign_extend(uint64_t value, unsigned width)
{
    unsigned unused = 64 - 8 * width;
    return (int64_t)(value << unused) >> unused;
}

static bool decode_float(uint64_t bits, unsigned width, double *value)
{
    if (width == sizeof(float)) {
        float single;
        memcpy(&single, &bits, sizeof single);
        *value = (double)single;
        return true;
    }
    memcpy(value, &bits, sizeof *value);
    return width == sizeof *value;
}

static bool decode(uint64_t bits, unsigned width, unsigned type, struct number *number)
{
    switch (type) {
    case FLEX_INT:
    case FLEX_INDIRECT_INT:
        *number = (struct number){.kind = FLEX_INT, .integer = sign_extend(bits, width)};
        return true;
    case FLEX_UINT:
    case FLEX_INDIRECT_UINT:
        *number = (struct number){.kind = FLEX_UINT, .natural = bits};
        return true;
    case FLEX_BOOL:
        *number = (struct number){.kind = FLEX_BOOL, .natural = bits};
        return true;
    case FLEX_FLOAT:
    case FLEX_INDIRECT_FLOAT:
        *number = (struct number){.kind = FLEX_FLOAT};
        return decode_float(bits, width, &number->real);
    default:
        return false;
    }
}

static bool read_number(const struct mica_flexmap *map, size_t index, struct number *number)
{
    size_t offset = map->values + index * map->width;
    unsigned packed = map->data[map->types + index], type = packed >> 2, width = map->width;
    if (type == FLEX_INDIRECT_INT || type == FLEX_INDIRECT_UINT || type == FLEX_INDIRECT_FLOAT) {
        if (!follow(map, offset, map->width, &offset))
            return false;
        width = 1u << (packed & 3);
    }
    uint64_t bits;
    return read_natural(map, offset, width, &bits) && decode(bits, width, type, number);
}

static bool find(const struct mica_flexmap *map, const char *key, struct number *number)
{
    for (size_t i = 0; i < map->count; i++)
        if (key_equals(map, i, key))
            return read_number(map, i, number);
    return false;
}

bool mica_flexmap_int(const struct mica_flexmap *map, const char *key, int32_t *value)
{
    struct number number;
    if (!find(map, key, &number))
        return false;
    if (number.kind == FLEX_UINT && number.natural <= INT32_MAX)
        number.integer = (int64_t)number.natural;
    else if (number.kind != FLEX_INT || number.integer < INT32_MIN || number.integer > INT32_MAX)
        return false;
    *value = (int32_t)number.integer;
    return true;
}

bool mica_flexmap_float(const struct mica_flexmap *map, const char *key, float *value)
{
    struct number number;
    if (!find(map, key, &number) || number.kind == FLEX_BOOL)
        return false;
    if (number.kind == FLEX_INT)
        number.real = (double)number.integer;
    else if (number.kind == FLEX_UINT)
        number.real = (double)number.natural;
    if (!(number.real >= -3e38 && number.real <= 3e38)) /* NaN, or beyond float */
        return false;
    *value = (float)number.real;
    return true;
}

bool mica_flexmap_bool(const struct mica_flexmap *map, const char *key, bool *value)
{
    struct number number;
    if (!find(map, key, &number) || number.kind == FLEX_FLOAT)
        return false;
    *value = number.integer != 0 || number.natural != 0;
    return true;
}
