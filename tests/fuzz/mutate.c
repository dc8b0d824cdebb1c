/* SPDX-License-Identifier: MIT */
#include "mutate.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---- random numbers: splitmix64, a public-domain generator ------------ */

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static size_t below(uint64_t *state, size_t limit)
{
    return (size_t)(next_random(state) % limit);
}

/* ---- where the structure is ------------------------------------------- */

#define MAX_SPANS 2048
/* Smaller constants (shapes, paddings, small biases) count as structure. */
#define LARGE_DATA 64

struct span {
    size_t start, end;
};

/* The stretches between the large constants. */
struct structure {
    struct span spans[MAX_SPANS];
    size_t count, total;
};

static bool read32(const uint8_t *data, size_t size, size_t offset, uint32_t *value)
{
    if (offset > size || size - offset < sizeof *value)
        return false;
    memcpy(value, data + offset, sizeof *value);
    return true;
}

/* Where the reference in field `id` of the table at `table` leads. */
static bool follow_field(const uint8_t *data, size_t size, size_t table, unsigned id, size_t *target)
{
    uint32_t back, distance;
    uint16_t field;
    if (!read32(data, size, table, &back))
        return false;
    size_t entry = table - (size_t)(int64_t)(int32_t)back + 4 + 2 * (size_t)id;
    if (entry > size || size - entry < sizeof field)
        return false;
    memcpy(&field, data + entry, sizeof field);
    if (!field || !read32(data, size, table + field, &distance))
        return false;
    *target = table + field + distance;
    return true;
}

static int compare_spans(const void *a, const void *b)
{
    size_t x = ((const struct span *)a)->start, y = ((const struct span *)b)->start;
    return (x > y) - (x < y);
}

/* Model field 4 is the vector of buffers, Buffer field 0 the vector of bytes. */
static size_t find_constants(const uint8_t *data, size_t size, struct span *found)
{
    uint32_t root, count, distance, length;
    size_t buffers, bytes, spans = 0;
    if (!read32(data, size, 0, &root) || !follow_field(data, size, root, 4, &buffers) ||
        !read32(data, size, buffers, &count))
        return 0;
    for (size_t i = 0; i < count && spans < MAX_SPANS - 1; i++) {
        size_t place = buffers + 4 + 4 * i;
        if (!read32(data, size, place, &distance))
            break;
        if (follow_field(data, size, place + distance, 0, &bytes) && read32(data, size, bytes, &length) &&
            length >= LARGE_DATA && size - bytes - 4 >= length)
            found[spans++] = (struct span){bytes + 4, bytes + 4 + length};
    }
    qsort(found, spans, sizeof *found, compare_spans);
    return spans;
}

static void find_structure(const uint8_t *data, size_t size, struct structure *structure)
{
    struct span constants[MAX_SPANS];
    size_t count = find_constants(data, size, constants), position = 0;
    structure->count = structure->total = 0;
    for (size_t i = 0; i <= count; i++) {
        size_t end = i < count ? constants[i].start : size;
        if (end > position) {
            structure->spans[structure->count++] = (struct span){position, end};
            structure->total += end - position;
        }
        if (i < count && constants[i].end > position)
            position = constants[i].end;
    }
}

/* A place for `width` bytes, aligned to them, in the structure 15 times of 16. */
static size_t choose_place(const struct structure *structure, size_t size, size_t width, uint64_t *state)
{
    size_t place = below(state, size);
    if (structure->total && below(state, 16)) {
        size_t rest = below(state, structure->total), i = 0;
        while (rest >= structure->spans[i].end - structure->spans[i].start) {
            rest -= structure->spans[i].end - structure->spans[i].start;
            i++;
        }
        place = structure->spans[i].start + rest;
    }
    place -= place % width;
    return place + width <= size ? place : size - width;
}

/* ---- the changes ------------------------------------------------------ */

/* Zero, one, extremes, sizes around powers of two, and as floats: 0, 1, -1, infinity, NaN, denormal, huge. */
static const uint32_t boundary[] = {
    0,          1,          2,          3,          4,          5,          8,          16,
    127,        128,        255,        256,        32767,      65535,      65536,      1 << 20,
    1 << 28,    0x7ffffffe, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffffe, 0xfffffffc, 0x3f800000,
    0xbf800000, 0x7f800000, 0x7fc00000, 0x00000001, 0x7f7fffff,
};

static uint64_t boundary_value(size_t size, uint64_t *state)
{
    size_t count = sizeof boundary / sizeof boundary[0], choice = below(state, count + 2);
    if (choice == count)
        return size;
    return choice > count ? next_random(state) : boundary[choice];
}

static void store(uint8_t *data, size_t place, size_t width, uint64_t value)
{
    memcpy(data + place, &value, width);
}

static uint64_t load(const uint8_t *data, size_t place, size_t width)
{
    uint64_t value = 0;
    memcpy(&value, data + place, width);
    return value;
}

static void change_once(uint8_t *data, size_t size, const struct structure *structure, uint64_t *state)
{
    size_t width = (size_t)1 << (below(state, 8) < 5 ? 2 : below(state, 4)); /* 32-bit fields most of the time */
    if (width > size)
        width = 1;
    size_t place = choose_place(structure, size, width, state);
    uint64_t old = load(data, place, width);
    switch (below(state, 5)) {
    case 0:
        store(data, place, width, old ^ (UINT64_C(1) << below(state, 8 * width)));
        break;
    case 1:
        store(data, place, width, boundary_value(size, state));
        break;
    case 2:
        store(data, place, width, old + below(state, 8) + 1);
        break;
    case 3:
        store(data, place, width, old - below(state, 8) - 1);
        break;
    default:
        store(data, place, width, load(data, choose_place(structure, size, width, state), width));
        break;
    }
}

size_t mica_mutate(uint8_t *data, size_t size, uint64_t seed)
{
    if (size == 0)
        return 0;
    struct structure structure;
    uint64_t state = seed;
    size_t changes = 1 + below(&state, 1 + below(&state, 8));
    find_structure(data, size, &structure);
    for (size_t i = 0; i < changes; i++)
        change_once(data, size, &structure, &state);
    return below(&state, 24) ? size : below(&state, size);
}
