/* SPDX-License-Identifier: MIT */
/*
 * Places for storages. Constants share one buffer and what tasks hand on to each other another, where two that are
 * never alive at the same time may share bytes; what the host reads or writes has a buffer of its own.
 */
#include <stdlib.h>

#include "npu/rockchip/compile/emit.h"
#include "util/checked.h"

/* Time is counted in layers: tasks of one layer may run at the same time, or in any order. */
static void use(struct rk_plan *plan, struct rk_ref ref, uint32_t layer, unsigned access)
{
    struct rk_storage *storage = &plan->storages[rk_plan_resolve(plan, ref).storage];
    if (storage->first == RK_NONE || layer < storage->first)
        storage->first = layer;
    if (storage->last < layer)
        storage->last = layer;
    storage->access |= access;
}

static void find_lifetimes(struct rk_plan *plan)
{
    for (uint32_t i = 0; i < plan->storage_count; i++) {
        plan->storages[i].first = RK_NONE;
        plan->storages[i].last = 0;
        plan->storages[i].access = 0;
    }
    for (uint32_t i = 0; i < plan->task_count; i++) {
        const struct rk_task *task = &plan->tasks[i];
        for (uint32_t u = 0; u < task->use_count; u++)
            use(plan, task->uses[u].ref, task->layer, task->uses[u].access);
    }
}

static bool in_scratch(const struct rk_storage *storage)
{
    return storage->parent == RK_NONE && !storage->external && !storage->data && storage->first != RK_NONE;
}

static int by_first_use(const void *a, const void *b)
{
    const struct rk_storage *x = *(struct rk_storage *const *)a, *y = *(struct rk_storage *const *)b;
    return x->first != y->first ? (x->first < y->first ? -1 : 1) : (x > y) - (x < y);
}

static int by_size(const void *a, const void *b)
{
    const struct rk_storage *x = *(struct rk_storage *const *)a, *y = *(struct rk_storage *const *)b;
    return x->size != y->size ? (x->size > y->size ? -1 : 1) : by_first_use(a, b);
}

/* The lowest gap among those placed that live at the same time; `placed` is ordered by offset. Returns its index. */
static uint32_t find_gap(struct rk_storage *const *placed, uint32_t count, struct rk_storage *storage)
{
    uint64_t offset = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (placed[i]->last < storage->first || placed[i]->first > storage->last)
            continue;
        if (placed[i]->offset >= offset + storage->size)
            break;
        uint64_t end = mica_align(placed[i]->offset + placed[i]->size, RK_ALIGNMENT);
        if (end > offset)
            offset = end;
    }
    storage->offset = offset;
    uint32_t at = 0;
    while (at < count && placed[at]->offset <= offset)
        at++;
    return at;
}

static uint64_t pack(struct rk_storage **order, uint32_t count, struct rk_storage **placed)
{
    uint64_t bytes = 0;
    for (uint32_t n = 0; n < count; n++) {
        uint32_t at = find_gap(placed, n, order[n]);
        for (uint32_t i = n; i > at; i--)
            placed[i] = placed[i - 1];
        placed[at] = order[n];
        if (order[n]->offset + order[n]->size > bytes)
            bytes = order[n]->offset + order[n]->size;
    }
    return bytes;
}

/* Largest first is mostly best, and order of use sometimes: the better of the two. */
static int place_scratch(struct rk_plan *plan)
{
    struct rk_storage **order = mica_new_array(plan->storage_count, sizeof(*order));
    struct rk_storage **placed = mica_new_array(plan->storage_count, sizeof(*placed));
    uint32_t count = 0;
    if (order && placed) {
        for (uint32_t i = 0; i < plan->storage_count; i++)
            if (in_scratch(&plan->storages[i])) {
                plan->storages[i].buffer = RK_BUFFER_SCRATCH;
                order[count++] = &plan->storages[i];
            }
        qsort(order, count, sizeof(*order), by_first_use);
        uint64_t by_use = pack(order, count, placed);
        qsort(order, count, sizeof(*order), by_size);
        plan->scratch_bytes = pack(order, count, placed);
        if (by_use < plan->scratch_bytes) {
            qsort(order, count, sizeof(*order), by_first_use);
            plan->scratch_bytes = pack(order, count, placed);
        }
    }
    bool failed = !order || !placed;
    free(order);
    free(placed);
    return failed ? mica_fail_nomem(plan->log) : 0;
}

int rk_memory_place(struct rk_plan *plan)
{
    uint64_t constants = 0;
    uint32_t external = RK_BUFFER_EXTERNAL;
    find_lifetimes(plan);
    for (uint32_t i = 0; i < plan->storage_count; i++) {
        struct rk_storage *storage = &plan->storages[i];
        if (storage->parent != RK_NONE)
            continue;
        storage->offset = 0;
        if (storage->external) {
            storage->buffer = external++;
        } else if (storage->data && storage->first != RK_NONE) {
            storage->buffer = RK_BUFFER_COEFFICIENTS;
            storage->offset = constants;
            constants = mica_align(constants + storage->size, RK_ALIGNMENT);
        }
    }
    plan->constant_bytes = constants;
    plan->external_count = external - RK_BUFFER_EXTERNAL;
    return place_scratch(plan);
}
