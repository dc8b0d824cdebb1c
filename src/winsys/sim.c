/* SPDX-License-Identifier: MIT */
/*
 * A simulated device as a winsys. On-chip memory is always there, at the
 * chip's addresses; buffers keep away from it. Submissions run inside submit(), so a fence
 * is signalled when its caller sees it; wait() hands out the remembered result.
 */
#include "winsys/winsys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "util/checked.h"

/* The last page stays free so that every end address fits 32 bits. */
#define LAST_ADDRESS (MICA_DEVICE_SPACE - MICA_DEVICE_PAGE)
/* Results kept for wait(). */
#define KEPT_RESULTS 256u

/* What on-chip memory holds for a program after another one used it: reading it before writing shows. */
#define LEFT_BY_OTHERS 0xa5

/* What a kernel driver has to say about addresses and submissions. */
struct driver {
    const char *name;
    uint64_t first_address; /* of user space */
    bool lowest;            /* buffers go to the lowest free addresses, else to the highest */
    uint32_t most_words;    /* of one submission's stream */
    uint32_t unit;          /* words that a stream has a multiple of */
};

static const struct driver drivers[] = {
    /* User space owns the addresses from 4 MiB up, and chooses them; a stream has 128 KiB at most (specification of
     * the kernel interfaces, 1.4 and 1.7). */
    {"etnaviv", UINT64_C(4) << 20, false, 128u * 1024 / 4, 1},
    /* The kernel chooses addresses, first fit from 0; tasks are two words (2). How many one job has is bounded by
     * its 500 ms, not by their number. */
    {"rocket", 0, true, UINT32_MAX, 2},
};

struct sim_bo {
    struct mica_bo bo;
    unsigned access;     /* of the submission that runs */
    bool stale;          /* on-chip memory that others used since */
    struct sim_bo *next; /* lower addresses; on-chip memory is in no order */
};

struct sim_winsys {
    struct mica_winsys winsys;
    const struct driver *driver;
    struct mica_device_memory memory;
    struct mica_log *log;
    void *sim;
    pthread_mutex_t lock; /* a session may run in the background while others make buffers */
    struct sim_bo *bos;   /* highest address first, the windows of on-chip memory among them */
    struct sim_bo *on_chip;
    uint32_t last_handle;
    uint64_t last_fence;
    int results[KEPT_RESULTS];
};

static struct sim_winsys *self(struct mica_winsys *winsys)
{
    return (struct sim_winsys *)winsys;
}

/* The free place of `size` bytes that the driver would choose, and the link where its buffer belongs. One page stays
 * free between buffers, so that a job that runs over the end of one faults. */
static struct sim_bo **find_place(struct sim_winsys *sim, uint64_t size, uint64_t *address)
{
    uint64_t top = LAST_ADDRESS;
    struct sim_bo **found = NULL;
    for (struct sim_bo **link = &sim->bos;; link = &(*link)->next) {
        uint64_t bottom =
            *link ? (*link)->bo.address + (*link)->bo.size + MICA_DEVICE_PAGE : sim->driver->first_address;
        if (top >= bottom && top - bottom >= size) {
            *address = sim->driver->lowest ? bottom : top - size;
            found = link;
        }
        if (!*link || (found && !sim->driver->lowest))
            return found;
        if ((*link)->bo.address < MICA_DEVICE_PAGE) /* a buffer at address 0 has nothing below */
            return found;
        top = (*link)->bo.address - MICA_DEVICE_PAGE;
    }
}

/* `fd`: the file whose pages it gets; negative: fresh zeros. */
static int create_locked(struct sim_winsys *sim, uint64_t size, int fd, struct mica_bo **out)
{
    uint64_t address;
    struct sim_bo **link = find_place(sim, size, &address);
    if (!link)
        return mica_fail(sim->log, -ENOMEM, "the simulated device has no room for a buffer of %llu bytes",
                         (unsigned long long)size);
    struct sim_bo *bo = calloc(1, sizeof *bo);
    if (!bo)
        return mica_fail_nomem(sim->log);
    int error = fd < 0 ? mica_device_memory_map(&sim->memory, address, size)
                       : mica_device_memory_map_file(&sim->memory, address, size, fd);
    if (error) {
        free(bo);
        if (fd < 0 || error == -ENOMEM)
            return mica_fail_nomem(sim->log);
        return mica_fail(sim->log, error, "the memory behind descriptor %d can't be shared for writing: %s", fd,
                         strerror(-error));
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
    int result = create_locked(sim, mica_align(size, MICA_DEVICE_PAGE), -1, out);
    pthread_mutex_unlock(&sim->lock);
    return result;
}

/* Memory that can shrink under the device would end the process with a signal. */
static int check_shared(struct sim_winsys *sim, int fd, uint64_t *size)
{
    struct statfs system;
    if (fstatfs(fd, &system))
        return mica_fail(sim->log, -errno, "descriptor %d can't be imported: %s", fd, strerror(errno));
    int seals = fcntl(fd, F_GET_SEALS);
    if (system.f_type != DMA_BUF_MAGIC && (seals < 0 || !(seals & F_SEAL_SHRINK)))
        return mica_fail(sim->log, -EINVAL,
                         "descriptor %d can't be imported: it is neither a dma-buf nor a memfd that was sealed with "
                         "F_SEAL_SHRINK",
                         fd);
    off_t end = lseek(fd, 0, SEEK_END);
    if (end <= 0 || (uint64_t)end > MICA_DEVICE_SPACE)
        return mica_fail(sim->log, -EINVAL, "descriptor %d can't be imported: it has %lld bytes", fd, (long long)end);
    *size = (uint64_t)end;
    return 0;
}

static int bo_import(struct mica_winsys *winsys, int fd, struct mica_bo **out)
{
    struct sim_winsys *sim = self(winsys);
    uint64_t size = 0;
    pthread_mutex_lock(&sim->lock);
    int result = check_shared(sim, fd, &size);
    if (!result)
        result = create_locked(sim, mica_align(size, MICA_DEVICE_PAGE), fd, out);
    pthread_mutex_unlock(&sim->lock);
    return result;
}

static bool in_window(const struct mica_chip *chip, uint64_t address, uint64_t size)
{
    for (unsigned i = 0; chip->on_chip && i < MICA_ON_CHIP_WINDOWS; i++) {
        const struct mica_on_chip *window = &chip->on_chip[i];
        if (address >= window->address && mica_range_inside(address - window->address, size, window->size))
            return true;
    }
    return false;
}

static int bo_create_on_chip(struct mica_winsys *winsys, uint64_t address, uint64_t size, struct mica_bo **out)
{
    struct sim_winsys *sim = self(winsys);
    if (!size || size > MICA_DEVICE_SPACE || address % MICA_DEVICE_PAGE ||
        !in_window(winsys->chip, address, mica_align(size, MICA_DEVICE_PAGE)))
        return mica_fail(sim->log, -EINVAL, "%s has no %llu bytes of on-chip memory at 0x%llx", winsys->chip->name,
                         (unsigned long long)size, (unsigned long long)address);
    struct sim_bo *bo = calloc(1, sizeof *bo);
    if (!bo)
        return mica_fail_nomem(sim->log);
    pthread_mutex_lock(&sim->lock);
    bo->bo = (struct mica_bo){++sim->last_handle, address, mica_align(size, MICA_DEVICE_PAGE), NULL};
    bo->stale = true;
    bo->next = sim->on_chip;
    sim->on_chip = bo;
    pthread_mutex_unlock(&sim->lock);
    *out = &bo->bo;
    return 0;
}

/* Takes the buffer out of a list; NULL if it isn't there. */
static struct sim_bo *take(struct sim_bo **link, const struct mica_bo *target)
{
    for (; *link; link = &(*link)->next) {
        struct sim_bo *bo = *link;
        if (&bo->bo != target)
            continue;
        *link = bo->next;
        return bo;
    }
    return NULL;
}

static void bo_destroy(struct mica_winsys *winsys, struct mica_bo *target)
{
    struct sim_winsys *sim = self(winsys);
    if (!target)
        return;
    pthread_mutex_lock(&sim->lock);
    struct sim_bo *bo = take(&sim->bos, target);
    if (bo)
        mica_device_memory_unmap(&sim->memory, bo->bo.address, bo->bo.size);
    else
        bo = take(&sim->on_chip, target);
    pthread_mutex_unlock(&sim->lock);
    free(bo);
}

static int bo_begin_cpu(struct mica_winsys *winsys, struct mica_bo *bo, unsigned access)
{
    return 0;
}

static void bo_end_cpu(struct mica_winsys *winsys, struct mica_bo *bo)
{
}

static struct sim_bo *find_bo(struct sim_bo *bo, const struct mica_bo *target)
{
    while (bo && &bo->bo != target)
        bo = bo->next;
    return bo;
}

/* The contents of on-chip memory belong to who used it last. */
static void use_on_chip(struct sim_winsys *sim, struct sim_bo *used)
{
    if (used->stale)
        memset(sim->memory.base + used->bo.address, LEFT_BY_OTHERS, used->bo.size);
    for (struct sim_bo *bo = sim->on_chip; bo; bo = bo->next) {
        if (bo->bo.address < used->bo.address + used->bo.size && used->bo.address < bo->bo.address + bo->bo.size)
            bo->stale = bo != used;
    }
}

static void protect(struct sim_winsys *sim, const struct sim_bo *bo, unsigned access)
{
    mica_device_memory_protect(&sim->memory, bo->bo.address, bo->bo.size, access);
}

static void close_buffers(struct sim_winsys *sim)
{
    for (struct sim_bo *bo = sim->bos; bo; bo = bo->next)
        protect(sim, bo, bo->access = 0);
    for (struct sim_bo *bo = sim->on_chip; bo; bo = bo->next)
        protect(sim, bo, bo->access = 0);
}

/* Opens the listed buffers to the device; until now, none is. */
static int open_buffers(struct sim_winsys *sim, const struct mica_submit *submit)
{
    for (uint32_t i = 0; i < submit->bo_count; i++) {
        struct sim_bo *bo = find_bo(sim->bos, submit->bos[i].bo);
        struct sim_bo *on_chip = bo ? NULL : find_bo(sim->on_chip, submit->bos[i].bo);
        if (!bo && !on_chip) {
            close_buffers(sim);
            return mica_fail(sim->log, -EINVAL, "buffer %u of the submission is not one of this device", i);
        }
        if (on_chip)
            use_on_chip(sim, bo = on_chip);
        bo->access |= submit->bos[i].access & (MICA_ACCESS_READ | MICA_ACCESS_WRITE);
        protect(sim, bo, bo->access);
    }
    return 0;
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
    if (submit->words > sim->driver->most_words)
        return mica_fail(sim->log, -EINVAL, "a command stream of %u words is longer than the %u the kernel takes",
                         submit->words, sim->driver->most_words);
    if (submit->words % sim->driver->unit)
        return mica_fail(sim->log, -EINVAL, "a submission of %u words is no list of tasks, which have %u each",
                         submit->words, sim->driver->unit);
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

static int set_clock(struct mica_winsys *winsys, double mhz)
{
    struct sim_winsys *sim = self(winsys);
    pthread_mutex_lock(&sim->lock);
    int result = winsys->chip->family->sim_set_clock(sim->sim, mhz);
    pthread_mutex_unlock(&sim->lock);
    return result;
}

static const struct driver *find_driver(const char *name)
{
    for (size_t i = 0; i < sizeof drivers / sizeof drivers[0]; i++) {
        if (!strcmp(drivers[i].name, name))
            return &drivers[i];
    }
    return NULL;
}

static void free_list(struct sim_bo *bo)
{
    for (struct sim_bo *next; bo; bo = next) {
        next = bo->next;
        free(bo);
    }
}

/* What a half-made one has, too. */
static void destroy(struct mica_winsys *winsys)
{
    if (!winsys)
        return;
    struct sim_winsys *sim = self(winsys);
    winsys->chip->family->sim_destroy(sim->sim);
    free_list(sim->bos);
    free_list(sim->on_chip);
    mica_device_memory_destroy(&sim->memory);
    pthread_mutex_destroy(&sim->lock);
    free(sim);
}

/* Backs a window of on-chip memory and keeps buffers away from it. */
static int reserve_window(struct sim_winsys *sim, const struct mica_on_chip *window)
{
    struct sim_bo *bo = calloc(1, sizeof *bo), **link = &sim->bos;
    if (!bo || mica_device_memory_map(&sim->memory, window->address, window->size)) {
        free(bo);
        return mica_fail_nomem(sim->log);
    }
    bo->bo = (struct mica_bo){0, window->address, window->size, NULL};
    while (*link && (*link)->bo.address > window->address)
        link = &(*link)->next;
    bo->next = *link;
    *link = bo;
    return 0;
}

static int start(struct sim_winsys *sim, struct mica_threads *threads)
{
    const struct mica_chip *chip = sim->winsys.chip;
    int result = mica_device_memory_create(&sim->memory);
    if (result)
        return mica_fail(sim->log, result, "the simulated device's 4 GiB address space cannot be reserved");
    for (unsigned i = 0; !result && chip->on_chip && i < MICA_ON_CHIP_WINDOWS; i++) {
        if (chip->on_chip[i].size)
            result = reserve_window(sim, &chip->on_chip[i]);
    }
    return result ? result : chip->family->sim_create(chip, &sim->memory, threads, sim->log, &sim->sim);
}

int mica_winsys_sim_create(const struct mica_chip *chip, struct mica_threads *threads, struct mica_log *log,
                           struct mica_winsys **winsys)
{
    const struct driver *driver = find_driver(chip->driver);
    if (!driver)
        return mica_fail(log, -ENOTSUP, "%s can't be simulated: nothing is known of its kernel driver, %s", chip->name,
                         chip->driver);
    struct sim_winsys *sim = calloc(1, sizeof *sim);
    if (!sim)
        return mica_fail_nomem(log);
    sim->log = log;
    sim->driver = driver;
    sim->winsys = (struct mica_winsys){
        .chip = chip,
        .simulated = true,
        .destroy = destroy,
        .bo_create = bo_create,
        .bo_create_on_chip = bo_create_on_chip,
        .bo_import = bo_import,
        .bo_destroy = bo_destroy,
        .bo_begin_cpu = bo_begin_cpu,
        .bo_end_cpu = bo_end_cpu,
        .submit = submit_stream,
        .wait = wait_fence,
        .set_clock = chip->family->sim_set_clock ? set_clock : NULL,
    };
    pthread_mutex_init(&sim->lock, NULL);
    int result = start(sim, threads);
    if (result) {
        destroy(&sim->winsys);
        return result;
    }
    *winsys = &sim->winsys;
    return 0;
}
