/* SPDX-License-Identifier: MIT */
/* Checked arithmetic for numbers that came from outside: each returns false on overflow. */
#ifndef MICA_UTIL_CHECKED_H
#define MICA_UTIL_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

static inline bool mica_add_size(size_t a, size_t b, size_t *sum)
{
    return !__builtin_add_overflow(a, b, sum);
}

static inline bool mica_mul_size(size_t a, size_t b, size_t *product)
{
    return !__builtin_mul_overflow(a, b, product);
}

/* True when [offset, offset + length) lies inside [0, size). */
static inline bool mica_range_inside(uint64_t offset, uint64_t length, uint64_t size)
{
    return offset <= size && length <= size - offset;
}

/* Zeroed array of `count` elements, NULL when memory runs out or the size overflows; count 0 gives one element. */
static inline void *mica_new_array(size_t count, size_t size)
{
    return calloc(count ? count : 1, size);
}

static inline uint32_t mica_cdiv(uint32_t a, uint32_t b)
{
    return a / b + (a % b != 0);
}

static inline uint64_t mica_align(uint64_t value, uint64_t alignment)
{
    return (value + alignment - 1) / alignment * alignment;
}

#endif
