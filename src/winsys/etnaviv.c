/* SPDX-License-Identifier: MIT */
/*
 * The kernel's etnaviv driver as a winsys, with soft pinning: the addresses are ours to choose
 * (specification of the kernel interfaces, section 1). Written from the interface alone; never yet run on a board.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "uapi/etnaviv.h"
#include "util/checked.h"
#include "winsys/drm.h"
#include "winsys/kernel.h"

#define DRIVER "etnaviv"
#define MAX_STREAM_BYTES (128u * 1024)
/* The last page stays free so that every end address fits 32 bits. */
#define LAST_ADDRESS (MICA_DEVICE_SPACE - MICA_DEVICE_PAGE)
#define NO_MMU_V2 UINT64_MAX /* softpin start of cores that can't soft-pin */
#define CLOSE_TIMEOUT_NS INT64_C(3000000000)
#define PREP_TIMEOUT_NS INT64_C(10000000000)

struct etnaviv_bo {
    struct mica_bo bo;
    bool on_chip;            /* an address and no buffer */
    uint32_t users;          /* imports of the same memory: the kernel gives all of them one handle */
    struct etnaviv_bo *next; /* higher addresses */
};

struct etnaviv {
    struct mica_winsys winsys;
    struct mica_log *log;
    int fd;
    uint32_t pipe;
    uint64_t first_address;
    pthread_mutex_t lock; /* of the list */
    struct etnaviv_bo *bos;
    struct mica_drm_fences fences;
};

static struct etnaviv *self(struct mica_winsys *winsys)
{
    return (struct etnaviv *)winsys;
}

static struct mica_etnaviv_time deadline(int64_t timeout_ns)
{
    int64_t at = mica_drm_deadline(timeout_ns);
    return (struct mica_etnaviv_time){at / 1000000000, at % 1000000000};
}

/* ---- addresses ---------------------------------------------------------------- */

static uint64_t end_of(const struct etnaviv_bo *bo)
{
    return bo->bo.address + bo->bo.size + MICA_DEVICE_PAGE; /* a page between buffers stays free */
}

/* Keeps what is on chip out of the way: its windows are no place for buffers. */
static uint64_t skip_windows(const struct mica_chip *chip, uint64_t address, uint64_t size)
{
    for (unsigned i = 0; chip->on_chip && i < MICA_ON_CHIP_WINDOWS; i++) {
        const struct mica_on_chip *window = &chip->on_chip[i];
        if (window->size && address < window->address + window->size && window->address < address + size)
            return skip_windows(chip, window->address + window->size, size);
    }
    return address;
}

/* Puts a buffer at the lowest free address; false when there is none. */
static bool place(struct etnaviv *etnaviv, struct etnaviv_bo *bo)
{
    const struct mica_chip *chip = etnaviv->winsys.chip;
    struct etnaviv_bo **link = &etnaviv->bos;
    uint64_t address = skip_windows(chip, etnaviv->first_address, bo->bo.size);
    for (; *link; link = &(*link)->next) {
        if (address + bo->bo.size + MICA_DEVICE_PAGE <= (*link)->bo.address)
            break;
        if (end_of(*link) > address)
            address = skip_windows(chip, end_of(*link), bo->bo.size);
    }
    if (address > LAST_ADDRESS || bo->bo.size > LAST_ADDRESS - address)
        return false;
    bo->bo.address = address;
    bo->next = *link;
    *link = bo;
    return true;
}

static void forget(struct etnaviv *etnaviv, const struct etnaviv_bo *bo)
{
    for (struct etnaviv_bo **link = &etnaviv->bos; *link; link = &(*link)->next) {
        if (*link != bo)
            continue;
        *link = bo->next;
        return;
    }
}

/* ---- buffers -------------------------------------------------------------------- */

static int map_buffer(struct etnaviv *etnaviv, struct mica_bo *bo)
{
    struct mica_etnaviv_gem_info info = {.handle = bo->handle};
    int error = mica_drm_call(etnaviv->fd, MICA_ETNAVIV_GEM_INFO, &info);
    if (error)
        return error;
    void *map = mmap(NULL, bo->size, PROT_READ | PROT_WRITE, MAP_SHARED, etnaviv->fd, (off_t)info.offset);
    if (map == MAP_FAILED)
        return -errno;
    bo->map = map;
    return 0;
}

/* Gives the kernel's buffer `handle` a mapping and an address; takes the handle over, also when it fails. */
static int adopt(struct etnaviv *etnaviv, uint32_t handle, uint64_t size, struct mica_bo **out)
{
    struct etnaviv_bo *bo = calloc(1, sizeof *bo);
    if (!bo) {
        mica_drm_close_handle(etnaviv->fd, handle);
        return mica_fail_nomem(etnaviv->log);
    }
    bo->bo = (struct mica_bo){.handle = handle, .size = size};
    bo->users = 1;
    int error = map_buffer(etnaviv, &bo->bo);
    if (!error) {
        pthread_mutex_lock(&etnaviv->lock);
        error = place(etnaviv, bo) ? 0 : -ENOSPC;
        pthread_mutex_unlock(&etnaviv->lock);
    }
    if (error) {
        if (bo->bo.map)
            munmap(bo->bo.map, size);
        mica_drm_close_handle(etnaviv->fd, handle);
        free(bo);
        return mica_fail(etnaviv->log, error, "a buffer of the NPU can't be mapped: %s", strerror(-error));
    }
    *out = &bo->bo;
    return 0;
}

static int bo_create(struct mica_winsys *winsys, uint64_t size, struct mica_bo **out)
{
    struct etnaviv *etnaviv = self(winsys);
    if (size == 0 || size > LAST_ADDRESS)
        return mica_fail(etnaviv->log, -EINVAL, "a buffer of %llu bytes cannot exist in a 4 GiB address space",
                         (unsigned long long)size);
    struct mica_etnaviv_gem_new make = {.size = mica_align(size, MICA_DEVICE_PAGE),
                                        .flags = MICA_ETNAVIV_BO_WRITE_COMBINED};
    int error = mica_drm_call(etnaviv->fd, MICA_ETNAVIV_GEM_NEW, &make);
    if (error)
        return mica_fail(etnaviv->log, error, "the NPU's driver gives no buffer of %llu bytes: %s",
                         (unsigned long long)size, strerror(-error));
    return adopt(etnaviv, make.handle, make.size, out);
}

static int bo_import(struct mica_winsys *winsys, int fd, struct mica_bo **out)
{
    struct etnaviv *etnaviv = self(winsys);
    uint32_t handle;
    uint64_t size;
    int error = mica_drm_import(etnaviv->fd, fd, &handle, &size);
    if (error)
        return mica_fail(etnaviv->log, error, "descriptor %d can't be imported: %s", fd, strerror(-error));
    pthread_mutex_lock(&etnaviv->lock);
    struct etnaviv_bo *known = etnaviv->bos;
    while (known && known->bo.handle != handle)
        known = known->next;
    if (known)
        known->users++;
    pthread_mutex_unlock(&etnaviv->lock);
    if (known) {
        *out = &known->bo;
        return 0;
    }
    return adopt(etnaviv, handle, mica_align(size, MICA_DEVICE_PAGE), out);
}

static int bo_create_on_chip(struct mica_winsys *winsys, uint64_t address, uint64_t size, struct mica_bo **out)
{
    struct etnaviv *etnaviv = self(winsys);
    struct etnaviv_bo *bo = calloc(1, sizeof *bo);
    if (!bo)
        return mica_fail_nomem(etnaviv->log);
    bo->bo = (struct mica_bo){.address = address, .size = mica_align(size, MICA_DEVICE_PAGE)};
    bo->on_chip = true;
    *out = &bo->bo;
    return 0;
}

static void bo_destroy(struct mica_winsys *winsys, struct mica_bo *target)
{
    struct etnaviv *etnaviv = self(winsys);
    struct etnaviv_bo *bo = (struct etnaviv_bo *)target;
    if (!bo)
        return;
    if (!bo->on_chip) {
        pthread_mutex_lock(&etnaviv->lock);
        bool last = --bo->users == 0;
        if (last)
            forget(etnaviv, bo);
        pthread_mutex_unlock(&etnaviv->lock);
        if (!last)
            return;
        munmap(bo->bo.map, bo->bo.size);
        mica_drm_close_handle(etnaviv->fd, bo->bo.handle);
    }
    free(bo);
}

static int bo_begin_cpu(struct mica_winsys *winsys, struct mica_bo *bo, unsigned access)
{
    struct etnaviv *etnaviv = self(winsys);
    uint32_t op = (access & MICA_ACCESS_READ ? MICA_ETNAVIV_PREP_READ : 0) |
                  (access & MICA_ACCESS_WRITE ? MICA_ETNAVIV_PREP_WRITE : 0);
    struct mica_etnaviv_cpu_prep prep = {bo->handle, op, deadline(PREP_TIMEOUT_NS)};
    int error = mica_drm_call(etnaviv->fd, MICA_ETNAVIV_GEM_CPU_PREP, &prep);
    if (error)
        return mica_fail(etnaviv->log, error, "a buffer of the NPU can't be used by the CPU: %s", strerror(-error));
    return 0;
}

static void bo_end_cpu(struct mica_winsys *winsys, struct mica_bo *bo)
{
    struct mica_etnaviv_cpu_fini fini = {.handle = bo->handle};
    mica_drm_call(self(winsys)->fd, MICA_ETNAVIV_GEM_CPU_FINI, &fini);
}

/* ---- submissions ---------------------------------------------------------------- */

static uint32_t list_bos(const struct mica_submit *submit, struct mica_etnaviv_bo *list)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < submit->bo_count; i++) {
        const struct mica_bo *bo = submit->bos[i].bo;
        unsigned access = submit->bos[i].access;
        if (((const struct etnaviv_bo *)bo)->on_chip)
            continue;
        uint32_t flags = (access & MICA_ACCESS_READ ? MICA_ETNAVIV_USE_READ : 0) |
                         (access & MICA_ACCESS_WRITE ? MICA_ETNAVIV_USE_WRITE : 0),
                 at = 0;
        while (at < count && list[at].handle != bo->handle) /* one twice is EALREADY */
            at++;
        if (at == count)
            list[count++] = (struct mica_etnaviv_bo){.handle = bo->handle, .address = bo->address};
        list[at].flags |= flags;
    }
    return count;
}

static int submit_stream(struct mica_winsys *winsys, const struct mica_submit *submit, uint64_t *fence)
{
    struct etnaviv *etnaviv = self(winsys);
    if (submit->words > MAX_STREAM_BYTES / 4)
        return mica_fail(etnaviv->log, -EINVAL, "a command stream of %u words is longer than the %u the kernel takes",
                         submit->words, MAX_STREAM_BYTES / 4);
    struct mica_etnaviv_bo *list = mica_new_array(submit->bo_count, sizeof *list);
    if (!list)
        return mica_fail_nomem(etnaviv->log);
    struct mica_etnaviv_submit call = {
        .pipe = etnaviv->pipe,
        .nr_bos = list_bos(submit, list),
        .stream_size = 4 * submit->words,
        .bos = (uintptr_t)list,
        .stream = (uintptr_t)submit->stream,
        .flags = MICA_ETNAVIV_SUBMIT_SOFTPIN | MICA_ETNAVIV_SUBMIT_FENCE_OUT,
        .fence_fd = -1,
    };
    if (submit->report_count)
        *submit->report_count = 0;
    int error = mica_drm_call(etnaviv->fd, MICA_ETNAVIV_GEM_SUBMIT, &call);
    free(list);
    if (error)
        return mica_fail(etnaviv->log, error, "the NPU's driver refused a submission: %s", strerror(-error));
    *fence = mica_drm_fences_add(&etnaviv->fences, call.fence_fd, 0);
    return 0;
}

static int wait_fence(struct mica_winsys *winsys, uint64_t fence, int64_t timeout_ns)
{
    struct etnaviv *etnaviv = self(winsys);
    int sync;
    uint32_t handle;
    int error = mica_drm_fences_get(&etnaviv->fences, fence, &sync, &handle);
    if (error)
        return mica_fail(etnaviv->log, error, "fence %llu can't be waited for: %s", (unsigned long long)fence,
                         error == -EINVAL ? "it is unknown, or too old" : strerror(-error));
    error = mica_drm_wait_sync(sync, timeout_ns);
    close(sync);
    if (error == -EIO)
        return mica_fail(etnaviv->log, -EIO,
                         "the kernel gave a job up: it hung, or used an address that it may not; its log says more");
    return error ? mica_fail(etnaviv->log, error, "waiting for the NPU failed: %s", strerror(-error)) : 0;
}

/* ---- the device -------------------------------------------------------------------- */

static int get_param(int fd, uint32_t pipe, enum mica_etnaviv_parameter parameter, uint64_t *value)
{
    struct mica_etnaviv_param call = {.pipe = pipe, .param = parameter};
    int error = mica_drm_call(fd, MICA_ETNAVIV_GET_PARAM, &call);
    *value = call.value;
    return error;
}

/* As struct mica_chip has it; false: no such core. */
static bool identify(int fd, uint32_t pipe, char *identity, size_t size)
{
    static const enum mica_etnaviv_parameter parts[] = {MICA_ETNAVIV_MODEL, MICA_ETNAVIV_REVISION, MICA_ETNAVIV_PRODUCT,
                                                        MICA_ETNAVIV_CUSTOMER, MICA_ETNAVIV_ECO};
    uint64_t value[5];
    for (size_t i = 0; i < 5; i++)
        if (get_param(fd, pipe, parts[i], &value[i]))
            return false;
    snprintf(identity, size, "%llx:%llx:%llx:%llx:%llx", (unsigned long long)value[0], (unsigned long long)value[1],
             (unsigned long long)value[2], (unsigned long long)value[3], (unsigned long long)value[4]);
    return true;
}

/* GPU and NPU of a board are cores of one node. */
static const struct mica_chip *find_chip(int fd, const struct mica_chip *const *chips, size_t count, uint32_t *pipe)
{
    char identity[96];
    for (*pipe = 0; *pipe < MICA_ETNAVIV_PIPES; ++*pipe) {
        if (!identify(fd, *pipe, identity, sizeof identity))
            continue;
        for (size_t i = 0; i < count; i++)
            if (!strcmp(chips[i]->driver, DRIVER) && chips[i]->identity && !strcmp(chips[i]->identity, identity))
                return chips[i];
    }
    return NULL;
}

static void destroy(struct mica_winsys *winsys)
{
    if (!winsys)
        return;
    struct etnaviv *etnaviv = self(winsys);
    mica_drm_fences_finish(&etnaviv->fences, CLOSE_TIMEOUT_NS);
    pthread_mutex_destroy(&etnaviv->lock);
    close(etnaviv->fd);
    free(etnaviv);
}

static int start(int fd, const char *path, const struct mica_chip *const *chips, size_t count, struct mica_log *log,
                 struct mica_winsys **winsys)
{
    uint32_t pipe;
    uint64_t first;
    const struct mica_chip *chip = find_chip(fd, chips, count, &pipe);
    if (!chip)
        return mica_fail(log, -ENODEV, "%s has no NPU that Mica knows", path);
    if (get_param(fd, pipe, MICA_ETNAVIV_SOFTPIN_START, &first) || first == NO_MMU_V2)
        return mica_fail(log, -ENOTSUP, "%s: the kernel has no soft pinning for this NPU", path);
    struct etnaviv *etnaviv = calloc(1, sizeof *etnaviv);
    if (!etnaviv)
        return mica_fail_nomem(log);
    etnaviv->log = log;
    etnaviv->fd = fd;
    etnaviv->pipe = pipe;
    etnaviv->first_address = mica_align(first, MICA_DEVICE_PAGE);
    pthread_mutex_init(&etnaviv->lock, NULL);
    mica_drm_fences_init(&etnaviv->fences);
    etnaviv->winsys = (struct mica_winsys){
        .chip = chip,
        .destroy = destroy,
        .bo_create = bo_create,
        .bo_create_on_chip = bo_create_on_chip,
        .bo_import = bo_import,
        .bo_destroy = bo_destroy,
        .bo_begin_cpu = bo_begin_cpu,
        .bo_end_cpu = bo_end_cpu,
        .submit = submit_stream,
        .wait = wait_fence,
    };
    *winsys = &etnaviv->winsys;
    return 0;
}

int mica_winsys_etnaviv_open(const char *path, const struct mica_chip *const *chips, size_t count, struct mica_log *log,
                             struct mica_winsys **winsys)
{
    int fd, error = mica_drm_open(path, DRIVER, log, &fd);
    if (error)
        return error;
    error = start(fd, path, chips, count, log, winsys);
    if (error)
        close(fd);
    return error;
}
