/* SPDX-License-Identifier: MIT */
/*
 * A simulated device as a winsys. Submissions run inside submit(), so a fence
 * is signalled when its caller sees it; wait() hands out the remembered result.
 */
#include "winsys/winsys.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "util/checked.h"

/* User space owns the addresses from 4 MiB up (specification, section 2.5); the last page stays free so that every
 * end address fits 32 bits. */
#define FIRST_ADDRESS (UINT64_C(4) << 20)
#define LAST_ADDRESS (MICA_DEVICE_SPACE - MICA_DEVICE_PAGE)
/* What the kernel takes in one submission (specification, section 2.6). */
#define MAX_STREAM_WORDS (128u * 1024 / 4)
/* Results kept for wait(). */
#define KEPT_RESULTS 256u

struct sim_bo {
    struct mica_bo bo;
    unsigned access;     /* of the submission that runs */
    struct sim_bo *next; /* lower addresses */
};

struct sim_winsys {
    struct mica_winsys winsys;
    struct mica_device_memory memory;
    struct mica_log *log;
    void *sim;
    pthread_mutex_t lock; /* a session may run in the background while others make buffers */
    struct sim_bo *bos;   /* highest address first */
    uint32_t last_handle;
    uint64_t last_fence;
    int results[KEPT_RESULTS];
};

static struct sim_winsys *self(struct mica_winsys *winsys)
{
    return (struct sim_winsys *)winsys;
}

/* Highest free place of `size` bytes, and the link where its buffer belongs. One page stays free between buffers, so
 * that a job that runs over the end of one faults. */
static struct sim_bo **find_place(struct sim_winsys *sim, uint64_t size, uint64_t *address)
{
    uint64_t top = LAST_ADDRESS;
    struct sim_bo **link = &sim->bos;
    for (;; link = &(*link)->next) {
        uint64_t bottom = *link ? (*link)->bo.address + (*link)->bo.size + MICA_DEVICE_PAGE : FIRST_ADDRESS;
        if (top >= bottom && top - bottom >= size) {
            *address = top - size;
            return link;
        }
        if (!*link)
            return NULL;
        top = (*link)->bo.address - MICA_DEVICE_PAGE;
    }
}

static int create_locked(struct sim_winsys *sim, uint64_t size, struct mica_bo **out)
{
    uint64_t address;
    struct sim_bo **link = find_place(sim, size, &address);
    if (!link)
        return mica_fail(sim->log, -ENOMEM, "the simulated device has no room for a buffer of %llu bytes",
                         (unsigned long long)size);
    struct sim_bo *bo = calloc(1, sizeof *bo);
    if (!bo)
        return mica_fail_nomem(sim->log);
    if (mica_device_memory_map(&sim->memory, address, size)) {
        free(bo);
        return mica_fail_nomem(sim->log);
    }
    bo->bo = (struct mica_bo){++sim->last_handle, address, size, sim->memory.base + address};
    bo->next = *link;
    *link = bo;
    *out = &bo->bo;
    return 0;
}

static int bo_create(struct mica_winsys *winsys, uint64_t size, struct mica_bo **out)
{
    struct sim_winsys *sim = self(winsys);
    if (size == 0 || size > MICA_DEVICE_SPACE)
        return mica_fail(sim->log, -EINVAL, "a buffer of %llu bytes cannot exist in a 4 GiB address space",
                         (unsigned long long)size);
    pthread_mutex_lock(&sim->lock);
    int result = create_locked(sim, mica_align(size, MICA_DEVICE_PAGE), out);
    pthread_mutex_unlock(&sim->lock);
    return result;
}

static void bo_destroy(struct mica_winsys *winsys, struct mica_bo *target)
{
    struct sim_winsys *sim = self(winsys);
    if (!target)
        return;
    pthread_mutex_lock(&sim->lock);
    for (struct sim_bo **link = &sim->bos; *link; link = &(*link)->next) {
        struct sim_bo *bo = *link;
        if (&bo->bo != target)
            continue;
        *link = bo->next;
        mica_device_memory_unmap(&sim->memory, bo->bo.address, bo->bo.size);
        free(bo);
        break;
    }
    pthread_mutex_unlock(&sim->lock);
}

static int bo_begin_cpu(struct mica_winsys *winsys, struct mica_bo *bo, unsigned access)
{
    return 0;
}

static void bo_end_cpu(struct mica_winsys *winsys, struct mica_bo *bo)
{
}

static struct sim_bo *find_bo(struct sim_winsys *sim, const struct mica_bo *target)
{
    for (struct sim_bo *bo = sim->bos; bo; bo = bo->next)
        if (&bo->bo == target)
            return bo;
    return NULL;
}

/* Opens the listed buffers, and no others, to the device. */
static int open_buffers(struct sim_winsys *sim, const struct mica_submit *submit)
{
    for (struct sim_bo *bo = sim->bos; bo; bo = bo->next)
        bo->access = 0;
    for (uint32_t i = 0; i < submit->bo_count; i++) {
        struct sim_bo *bo = find_bo(sim, submit->bos[i].bo);
        if (!bo)
            return mica_fail(sim->log, -EINVAL, "buffer %u of the submission is not one of this device", i);
        bo->access |= submit->bos[i].access & (MICA_ACCESS_READ | MICA_ACCESS_WRITE);
    }
    for (struct sim_bo *bo = sim->bos; bo; bo = bo->next)
        mica_device_memory_protect(&sim->memory, bo->bo.address, bo->bo.size, bo->access);
    return 0;
}

static void close_buffers(struct sim_winsys *sim)
{
    for (struct sim_bo *bo = sim->bos; bo; bo = bo->next)
        mica_device_memory_protect(&sim->memory, bo->bo.address, bo->bo.size, 0);
}

static int submit_locked(struct sim_winsys *sim, const struct mica_submit *submit, uint64_t *fence)
{
    int result = open_buffers(sim, submit);
    if (result)
        return result;
    size_t count = 0, capacity = submit->reports ? submit->report_capacity : 0;
    result = sim->winsys.chip->family->sim_run(sim->sim, submit->stream, submit->words, submit->reports, capacity,
                                               submit->report_count ? submit->report_count : &count);
    close_buffers(sim);
    *fence = ++sim->last_fence;
    sim->results[*fence % KEPT_RESULTS] = result;
    return 0;
}

static int submit_stream(struct mica_winsys *winsys, const struct mica_submit *submit, uint64_t *fence)
{
    struct sim_winsys *sim = self(winsys);
    if (submit->words > MAX_STREAM_WORDS)
        return mica_fail(sim->log, -EINVAL, "a command stream of %u words is longer than the %u the kernel takes",
                         submit->words, MAX_STREAM_WORDS);
    pthread_mutex_lock(&sim->lock);
    int result = submit_locked(sim, submit, fence);
    pthread_mutex_unlock(&sim->lock);
    return result;
}

static int wait_fence(struct mica_winsys *winsys, uint64_t fence, int64_t timeout_ns)
{
    struct sim_winsys *sim = self(winsys);
    pthread_mutex_lock(&sim->lock);
    int result = -EINVAL;
    if (fence && fence <= sim->last_fence && sim->last_fence - fence < KEPT_RESULTS)
        result = sim->results[fence % KEPT_RESULTS];
    else
        mica_fail(sim->log, -EINVAL, "fence %llu is unknown, or too old", (unsigned long long)fence);
    pthread_mutex_unlock(&sim->lock);
    return result;
}

static void destroy(struct mica_winsys *winsys)
{
    if (!winsys)
        return;
    struct sim_winsys *sim = self(winsys);
    winsys->chip->family->sim_destroy(sim->sim);
    for (struct sim_bo *bo = sim->bos, *next; bo; bo = next) {
        next = bo->next;
        free(bo);
    }
    mica_device_memory_destroy(&sim->memory);
    pthread_mutex_destroy(&sim->lock);
    free(sim);
}

int mica_winsys_sim_create(const struct mica_chip *chip, struct mica_threads *threads, struct mica_log *log,
                           struct mica_winsys **winsys)
{
    struct sim_winsys *sim = calloc(1, sizeof *sim);
    if (!sim)
        return mica_fail_nomem(log);
    sim->log = log;
    sim->winsys = (struct mica_winsys){
        .chip = chip,
        .simulated = true,
        .destroy = destroy,
        .bo_create = bo_create,
        .bo_destroy = bo_destroy,
        .bo_begin_cpu = bo_begin_cpu,
        .bo_end_cpu = bo_end_cpu,
        .submit = submit_stream,
        .wait = wait_fence,
    };
    int result = mica_device_memory_create(&sim->memory);
    if (result) {
        free(sim);
        return mica_fail(log, result, "the simulated device's 4 GiB address space cannot be reserved");
    }
    result = chip->family->sim_create(chip, &sim->memory, threads, log, &sim->sim);
    if (result) {
        mica_device_memory_destroy(&sim->memory);
        free(sim);
        return result;
    }
    pthread_mutex_init(&sim->lock, NULL);
    *winsys = &sim->winsys;
    return 0;
}
