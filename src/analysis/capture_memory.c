/* SPDX-License-Identifier: MIT */
/* A recording's buffers as the device's memory, one submission after the other. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/capture.h"
#include "npu/program.h"
#include "util/checked.h"

/* A buffer as the last submission that had it left it. */
struct region {
    const struct mica_recorded_bo *bo;
    bool written; /* by the device, ever */
    const struct mica_recorded_bo *seen;
    uint64_t seen_ns;
};

struct regions {
    struct region *list;
    size_t count;
};

static struct region *find(const struct regions *regions, const struct mica_recorded_bo *bo)
{
    for (size_t i = 0; i < regions->count; i++) {
        const struct mica_recorded_bo *known = regions->list[i].bo;
        if (known->address == bo->address && known->size == bo->size && known->handle == bo->handle)
            return &regions->list[i];
    }
    return NULL;
}

static bool overlap(const struct mica_recorded_bo *a, const struct mica_recorded_bo *b)
{
    return a->address < b->address + b->size && b->address < a->address + a->size;
}

static struct region *add(struct regions *regions, const struct mica_recorded_bo *bo)
{
    size_t kept = 0;
    for (size_t i = 0; i < regions->count; i++)
        if (!overlap(regions->list[i].bo, bo))
            regions->list[kept++] = regions->list[i];
    regions->count = kept;
    struct region *grown = realloc(regions->list, (kept + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    regions->list = grown;
    grown[regions->count] = (struct region){.bo = bo};
    return &grown[regions->count++];
}

/* Contents that were seen when this one had begun already may be of later submissions too. */
static void plan_bo(struct mica_recorded_bo *bo, const struct region *region, const struct mica_recorded_submit *submit)
{
    bo->state = MICA_RECORDED_UPDATED;
    if (!region->written)
        return;
    bo->state = MICA_RECORDED_KEPT;
    if (!region->seen || !bo->contents || (submit->start_ns && region->seen_ns >= submit->start_ns))
        return;
    bo->state = MICA_RECORDED_MERGED;
    bo->seen = region->seen;
}

static int plan_submit(struct regions *regions, struct mica_recorded_submit *submit)
{
    for (size_t i = 0; i < submit->bo_count; i++) {
        struct mica_recorded_bo *bo = &submit->bos[i];
        struct region *region = find(regions, bo);
        bo->state = MICA_RECORDED_FRESH;
        if (region)
            plan_bo(bo, region, submit);
        else
            region = add(regions, bo);
        if (!region)
            return -ENOMEM;
        region->written |= bo->access & MICA_ACCESS_WRITE;
        region->bo = bo;
        if (bo->after) {
            region->seen = bo;
            region->seen_ns = submit->after_ns;
        }
    }
    return 0;
}

int mica_recording_plan(struct mica_recording *recording)
{
    struct regions regions = {0};
    int error = 0;
    for (size_t i = 0; !error && i < recording->submit_count; i++)
        error = plan_submit(&regions, &recording->submits[i]);
    free(regions.list);
    return error ? mica_fail_nomem(recording->folder.log) : 0;
}

/* What the host changed since: where the contents aren't what the device left. */
static void merge(const struct mica_recorded_bo *bo, uint8_t *host)
{
    const struct mica_recorded_bo *seen = bo->seen;
    for (size_t i = 0; i < bo->contents_size; i++) {
        uint8_t before = i < seen->after_size ? seen->after[i] : 0;
        if (bo->contents[i] != before)
            host[i] = bo->contents[i];
    }
}

static int map_bo(const struct mica_recorded_bo *bo, struct mica_device_memory *memory)
{
    uint8_t *host = memory->base + bo->address;
    int error = bo->state == MICA_RECORDED_FRESH ? mica_device_memory_map(memory, bo->address, bo->size) : 0;
    if (error)
        return error;
    if (bo->state == MICA_RECORDED_MERGED)
        merge(bo, host);
    else if (bo->state != MICA_RECORDED_KEPT && bo->contents)
        memcpy(host, bo->contents, bo->contents_size);
    mica_device_memory_protect(memory, bo->address, bo->size, bo->access);
    return 0;
}

int mica_recording_map(const struct mica_recording *recording, size_t submit, struct mica_device_memory *memory)
{
    mica_device_memory_protect(memory, 0, MICA_DEVICE_SPACE, 0);
    for (size_t i = 0; i < recording->submits[submit].bo_count; i++) {
        int error = map_bo(&recording->submits[submit].bos[i], memory);
        if (error)
            return mica_fail(recording->folder.log, error, "memory for the capture's buffers can't be had: %s",
                             strerror(-error));
    }
    return 0;
}
