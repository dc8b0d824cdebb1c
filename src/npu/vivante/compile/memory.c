/* SPDX-License-Identifier: MIT */
#include "npu/vivante/compile/memory.h"

#include <stdlib.h>

#include "util/checked.h"

#define ALIGNMENT 64u /* a burst */

static void use(struct viv_plan *plan, struct viv_ref ref, uint32_t job, unsigned access)
{
    struct viv_storage *storage = &plan->storages[viv_plan_resolve(plan, ref).storage];
    if (storage->first == UINT32_MAX)
        storage->first = job;
    storage->last = job;
    storage->access |= access;
}

void viv_memory_lifetimes(struct viv_plan *plan)
{
    for (uint32_t i = 0; i < plan->storage_count; i++) {
        plan->storages[i].first = UINT32_MAX;
        plan->storages[i].access = 0;
    }
    for (uint32_t i = 0; i < plan->job_count; i++) {
        const struct viv_job *job = &plan->jobs[i];
        use(plan, job->is_nn ? job->nn.in : job->tp.in, i, MICA_ACCESS_READ);
        use(plan, job->is_nn ? job->nn.out : job->tp.out, i, MICA_ACCESS_WRITE);
    }
}

static bool in_scratch(const struct viv_storage *storage)
{
    return storage->parent == VIV_NONE && !storage->external && storage->first != UINT32_MAX &&
           storage->place == VIV_IN_DDR;
}

static int by_first_use(const void *a, const void *b)
{
    const struct viv_storage *x = *(struct viv_storage *const *)a, *y = *(struct viv_storage *const *)b;
    return x->first != y->first ? (x->first < y->first ? -1 : 1) : (x > y) - (x < y);
}

/* The lowest gap that is large enough among the storages alive, which are ordered by offset; inserts there. */
static void place(struct viv_plan *plan, struct viv_storage **alive, uint32_t *count, struct viv_storage *storage)
{
    uint32_t kept = 0, at = 0;
    for (uint32_t i = 0; i < *count; i++)
        if (alive[i]->last >= storage->first)
            alive[kept++] = alive[i];
    uint64_t offset = 0;
    for (; at < kept && alive[at]->offset < offset + storage->size; at++)
        offset = mica_align(alive[at]->offset + alive[at]->size, ALIGNMENT);
    for (uint32_t i = kept; i > at; i--)
        alive[i] = alive[i - 1];
    alive[at] = storage;
    *count = kept + 1;
    storage->offset = offset;
    if (offset + storage->size > plan->scratch_bytes)
        plan->scratch_bytes = offset + storage->size;
}

static int place_scratch(struct viv_plan *plan, uint32_t scratch)
{
    struct viv_storage **order = mica_new_array(plan->storage_count, sizeof(*order));
    struct viv_storage **alive = mica_new_array((size_t)plan->storage_count + 1, sizeof(*alive));
    uint32_t count = 0, alive_count = 0;
    if (order && alive) {
        for (uint32_t i = 0; i < plan->storage_count; i++)
            if (in_scratch(&plan->storages[i]))
                order[count++] = &plan->storages[i];
        qsort(order, count, sizeof(*order), by_first_use);
        for (uint32_t i = 0; i < count; i++) {
            order[i]->buffer = scratch;
            place(plan, alive, &alive_count, order[i]);
        }
    }
    bool failed = !order || !alive;
    free(order);
    free(alive);
    return failed ? mica_fail_nomem(plan->log) : 0;
}

/* On-chip buffers begin with a page and end with one. */
static void place_on_chip(struct viv_plan *plan, uint32_t on_chip)
{
    for (unsigned i = 0; i < MICA_ON_CHIP_WINDOWS; i++)
        plan->on_chip[i] = (struct mica_on_chip){0};
    for (uint32_t i = 0; i < plan->storage_count; i++) {
        struct viv_storage *storage = &plan->storages[i];
        if (storage->parent != VIV_NONE || storage->place == VIV_IN_DDR)
            continue;
        unsigned window = viv_place_window(plan->chip, storage->place);
        struct mica_on_chip *used = &plan->on_chip[window];
        uint64_t base = plan->chip->on_chip[window].address;
        uint64_t first = base + storage->offset / MICA_DEVICE_PAGE * MICA_DEVICE_PAGE;
        uint64_t end = base + mica_align(storage->offset + storage->size, MICA_DEVICE_PAGE);
        if (used->size && used->address + used->size > end)
            end = used->address + used->size;
        if (used->size && used->address < first)
            first = used->address;
        *used = (struct mica_on_chip){first, end - first};
        storage->buffer = on_chip + window;
    }
    for (uint32_t i = 0; i < plan->storage_count; i++) {
        struct viv_storage *storage = &plan->storages[i];
        unsigned window =
            storage->parent == VIV_NONE ? viv_place_window(plan->chip, storage->place) : MICA_ON_CHIP_WINDOWS;
        if (window < MICA_ON_CHIP_WINDOWS)
            storage->offset -= plan->on_chip[window].address - plan->chip->on_chip[window].address;
    }
}

int viv_memory_place(struct viv_plan *plan, uint32_t scratch, uint32_t on_chip, uint32_t first_external,
                     uint32_t *external_count)
{
    place_on_chip(plan, on_chip);
    *external_count = 0;
    for (uint32_t i = 0; i < plan->storage_count; i++)
        if (plan->storages[i].parent == VIV_NONE && plan->storages[i].external)
            plan->storages[i].buffer = first_external + (*external_count)++;
    return place_scratch(plan, scratch);
}
