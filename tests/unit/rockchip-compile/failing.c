/* SPDX-License-Identifier: MIT */
#include "failing.h"

#include <stdbool.h>
#include <stddef.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

long allocations_left = -1;

static bool allowed(void)
{
    if (allocations_left == 0)
        return false;
    allocations_left -= allocations_left > 0;
    return true;
}

void *__wrap_malloc(size_t size)
{
    return allowed() ? __real_malloc(size) : NULL;
}

void *__wrap_calloc(size_t count, size_t size)
{
    return allowed() ? __real_calloc(count, size) : NULL;
}

void *__wrap_realloc(void *old, size_t size)
{
    return allowed() ? __real_realloc(old, size) : NULL;
}
