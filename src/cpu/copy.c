/* SPDX-License-Identifier: MIT */
#include "cpu/copy.h"

#include <string.h>

void mica_copy_add(struct mica_copy *copy, size_t count, ptrdiff_t from, ptrdiff_t to)
{
    copy->dims[copy->rank++] = (struct mica_copy_dim){count, from, to};
}

void mica_copy_strides(const struct mica_tensor *tensor, ptrdiff_t strides[MICA_MAX_RANK])
{
    ptrdiff_t stride = 1;
    for (uint32_t i = tensor->rank; i-- > 0; stride *= tensor->dims[i])
        strides[i] = stride;
}

/* Without dimensions of 1, neighbours that step as one joined. At least one dimension is left. */
static struct mica_copy simplified(const struct mica_copy *copy)
{
    struct mica_copy simple = {0};
    for (uint32_t i = 0; i < copy->rank; i++) {
        const struct mica_copy_dim *dim = &copy->dims[i];
        struct mica_copy_dim *last = simple.rank ? &simple.dims[simple.rank - 1] : NULL;
        if (dim->count == 1)
            continue;
        if (last && last->from == dim->from * (ptrdiff_t)dim->count && last->to == dim->to * (ptrdiff_t)dim->count)
            *last = (struct mica_copy_dim){last->count * dim->count, dim->from, dim->to};
        else
            mica_copy_add(&simple, dim->count, dim->from, dim->to);
    }
    if (!simple.rank)
        mica_copy_add(&simple, 1, 1, 1);
    return simple;
}

struct run {
    struct mica_copy copy;
    const uint8_t *from;
    uint8_t *to;
    size_t size;
    size_t outer; /* dimensions, from the first, whose elements are a task each */
};

#define COPY_LINE(type)                     \
    for (size_t i = 0; i < dim->count; i++) \
    ((type *)(void *)to)[(ptrdiff_t)i * dim->to] = ((const type *)(const void *)from)[(ptrdiff_t)i * dim->from]

static void copy_line(const struct mica_copy_dim *dim, const uint8_t *from, uint8_t *to, size_t size)
{
    if (dim->from == 1 && dim->to == 1)
        memcpy(to, from, dim->count * size);
    else if (size == 1)
        COPY_LINE(uint8_t);
    else if (size == 2)
        COPY_LINE(uint16_t);
    else if (size == 4)
        COPY_LINE(uint32_t);
    else
        COPY_LINE(uint64_t);
}

/* Everything from dimension `first` on; ranks are small, so that the recursion is. */
static void copy_block(const struct run *run, uint32_t first, const uint8_t *from, uint8_t *to)
{
    const struct mica_copy_dim *dim = &run->copy.dims[first];
    if (first + 1 == run->copy.rank) {
        copy_line(dim, from, to, run->size);
        return;
    }
    for (size_t i = 0; i < dim->count; i++)
        copy_block(run, first + 1, from + (ptrdiff_t)i * dim->from * (ptrdiff_t)run->size,
                   to + (ptrdiff_t)i * dim->to * (ptrdiff_t)run->size);
}

static void run_task(void *user, size_t index)
{
    const struct run *run = user;
    const uint8_t *from = run->from;
    uint8_t *to = run->to;
    for (size_t i = run->outer; i-- > 0;) {
        const struct mica_copy_dim *dim = &run->copy.dims[i];
        ptrdiff_t step = (ptrdiff_t)(index % dim->count) * (ptrdiff_t)run->size;
        from += step * dim->from;
        to += step * dim->to;
        index /= dim->count;
    }
    copy_block(run, (uint32_t)run->outer, from, to);
}

void mica_copy_run(const struct mica_copy *copy, const void *from, void *to, size_t size, struct mica_threads *threads)
{
    enum { ENOUGH = 16 }; /* tasks for any number of threads */
    struct run run = {.copy = simplified(copy), .from = from, .to = to, .size = size};
    size_t tasks = 1;
    while (run.outer + 1 < run.copy.rank && tasks < ENOUGH)
        tasks *= run.copy.dims[run.outer++].count;
    mica_parallel_for(threads, tasks, run_task, &run);
}
