/* SPDX-License-Identifier: MIT */
/* What the kernel's etnaviv driver answers (specification of the kernel interfaces, section 1). */
#include "uapi/etnaviv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vnpu/node.h"
#include "vnpu/user.h"

#define FIRST_ADDRESS UINT64_C(0x400000) /* of user space with an MMU of version 2 */
#define MOST_STREAM_BYTES 131072u
#define MOST_LISTED 131072u
#define MOST_PERFMON 128u
#define LAST_PARAMETER 0x1eu

static int get_param(const struct vnpu_file *file, struct mica_etnaviv_param *call)
{
    unsigned long long id[5] = {0};
    if (call->pipe >= MICA_ETNAVIV_PIPES)
        return -EINVAL;
    if (call->pipe != 0)
        return -ENXIO;
    if (call->param == 0 || call->param > LAST_PARAMETER)
        return -EINVAL;
    sscanf(file->chip->identity, "%llx:%llx:%llx:%llx:%llx", &id[0], &id[1], &id[2], &id[3], &id[4]);
    switch (call->param) {
    case MICA_ETNAVIV_MODEL:
        call->value = id[0];
        break;
    case MICA_ETNAVIV_REVISION:
        call->value = id[1];
        break;
    case MICA_ETNAVIV_SOFTPIN_START:
        call->value = FIRST_ADDRESS;
        break;
    case MICA_ETNAVIV_PRODUCT:
        call->value = id[2];
        break;
    case MICA_ETNAVIV_CUSTOMER:
        call->value = id[3];
        break;
    case MICA_ETNAVIV_ECO:
        call->value = id[4];
        break;
    default: /* feature words and GPU limits, of which nothing here knows the values */
        call->value = 0;
    }
    return 0;
}

/* ---- buffers ------------------------------------------------------------------------- */

static int gem_new(struct vnpu_file *file, struct mica_etnaviv_gem_new *call)
{
    const uint32_t caches = MICA_ETNAVIV_BO_CACHED | MICA_ETNAVIV_BO_WRITE_COMBINED | MICA_ETNAVIV_BO_UNCACHED;
    uint32_t cache = call->flags & caches;
    struct vnpu_buffer *buffer;
    if (call->flags & ~(caches | MICA_ETNAVIV_BO_FORCE_MMU) || !cache || cache & (cache - 1))
        return -EINVAL;
    int error = vnpu_buffer_create(file, call->size, &buffer);
    if (!error)
        call->handle = buffer->handle;
    return error;
}

static int gem_info(const struct vnpu_file *file, struct mica_etnaviv_gem_info *call)
{
    const struct vnpu_buffer *buffer = vnpu_buffer_find(file, call->handle);
    if (call->pad)
        return -EINVAL;
    if (!buffer)
        return -ENOENT;
    call->offset = buffer->offset;
    return 0;
}

static int gem_userptr(struct vnpu_file *file, struct mica_etnaviv_gem_userptr *call)
{
    struct vnpu_buffer *buffer;
    if (call->pointer % MICA_DEVICE_PAGE || call->size % MICA_DEVICE_PAGE || !call->size ||
        call->flags & ~(MICA_ETNAVIV_USE_READ | MICA_ETNAVIV_USE_WRITE) || !call->flags)
        return -EINVAL;
    int error = vnpu_buffer_create(file, call->size, &buffer);
    if (error)
        return error;
    vnpu_buffer_replace(buffer, -1, NULL);
    buffer->user = (void *)(uintptr_t)call->pointer;
    buffer->user_read_only = !(call->flags & MICA_ETNAVIV_USE_WRITE);
    call->handle = buffer->handle;
    return 0;
}

/* Jobs are done when their submission returns: nothing to wait for, and no caches. */
static int cpu_prep(const struct vnpu_file *file, const struct mica_etnaviv_cpu_prep *call)
{
    const uint32_t known = MICA_ETNAVIV_PREP_READ | MICA_ETNAVIV_PREP_WRITE | MICA_ETNAVIV_PREP_NOSYNC;
    if (call->op & ~known)
        return -EINVAL;
    return vnpu_buffer_find(file, call->handle) ? 0 : -ENOENT;
}

static int cpu_fini(const struct vnpu_file *file, const struct mica_etnaviv_cpu_fini *call)
{
    if (call->flags)
        return -EINVAL;
    return vnpu_buffer_find(file, call->handle) ? 0 : -ENOENT;
}

static int wait(uint32_t pipe, uint32_t flags)
{
    if (flags & ~MICA_ETNAVIV_WAIT_NONBLOCK || pipe >= MICA_ETNAVIV_PIPES)
        return -EINVAL;
    return pipe == 0 ? 0 : -ENXIO;
}

static int gem_wait(const struct vnpu_file *file, const struct mica_etnaviv_gem_wait *call)
{
    int error = wait(call->pipe, call->flags);
    return error || vnpu_buffer_find(file, call->handle) ? error : -ENOENT;
}

/* ---- submissions ---------------------------------------------------------------------- */

/* A submission with its arrays copied. */
struct copied {
    const struct mica_etnaviv_submit *call;
    struct mica_etnaviv_bo *bos;
    struct mica_etnaviv_reloc *relocs;
    uint32_t *stream;
};

static int check_call(const struct mica_etnaviv_submit *call)
{
    const uint32_t known = MICA_ETNAVIV_SUBMIT_NO_IMPLICIT | MICA_ETNAVIV_SUBMIT_FENCE_IN |
                           MICA_ETNAVIV_SUBMIT_FENCE_OUT | MICA_ETNAVIV_SUBMIT_SOFTPIN;
    if (call->pipe >= MICA_ETNAVIV_PIPES)
        return -EINVAL;
    if (call->pipe != 0)
        return -ENXIO;
    if (call->exec_state > 2 || call->flags & ~known || call->stream_size % 4 ||
        call->stream_size > MOST_STREAM_BYTES || call->nr_bos > MOST_LISTED || call->nr_relocs > MOST_LISTED ||
        call->nr_pmrs > MOST_PERFMON)
        return -EINVAL;
    return call->flags & MICA_ETNAVIV_SUBMIT_SOFTPIN && call->nr_relocs ? -EINVAL : 0;
}

static int copy_arrays(struct copied *copied)
{
    const struct mica_etnaviv_submit *call = copied->call;
    int error = vnpu_copy_array(call->bos, call->nr_bos, sizeof *copied->bos, (void **)&copied->bos);
    if (!error)
        error = vnpu_copy_array(call->relocs, call->nr_relocs, sizeof *copied->relocs, (void **)&copied->relocs);
    return error ? error : vnpu_copy_array(call->stream, call->stream_size, 1, (void **)&copied->stream);
}

static int list_buffers(struct vnpu_file *file, const struct copied *copied)
{
    for (struct vnpu_buffer *buffer = file->buffers; buffer; buffer = buffer->next)
        buffer->listed = false;
    for (uint32_t i = 0; i < copied->call->nr_bos; i++) {
        struct vnpu_buffer *buffer = vnpu_buffer_find(file, copied->bos[i].handle);
        if (!buffer || copied->bos[i].flags & ~(MICA_ETNAVIV_USE_READ | MICA_ETNAVIV_USE_WRITE))
            return -EINVAL;
        if (buffer->listed)
            return -EALREADY;
        buffer->listed = true;
    }
    return 0;
}

/* A range that another buffer has: of this submission, it is taken; of an older one, it is given up. */
static int make_room(struct vnpu_file *file, const struct vnpu_buffer *wanted, uint64_t address)
{
    for (struct vnpu_buffer *buffer = file->buffers; buffer; buffer = buffer->next) {
        if (buffer == wanted || !buffer->mapped || address >= buffer->address + buffer->size ||
            buffer->address >= address + wanted->size)
            continue;
        if (buffer->listed)
            return -ENOSPC;
        vnpu_buffer_unplace(file, buffer);
    }
    return 0;
}

static int pin(struct vnpu_file *file, struct vnpu_buffer *buffer, uint64_t address)
{
    if (address < FIRST_ADDRESS || address % MICA_DEVICE_PAGE)
        return -EINVAL;
    if (buffer->mapped && buffer->address == address)
        return 0;
    vnpu_buffer_unplace(file, buffer);
    int error = make_room(file, buffer, address);
    return error ? error : vnpu_buffer_place(file, buffer, address);
}

static int place(struct vnpu_file *file, const struct copied *copied)
{
    bool pinned = copied->call->flags & MICA_ETNAVIV_SUBMIT_SOFTPIN;
    /* Whoever moves goes first, so that two buffers may swap their places. */
    for (uint32_t i = 0; pinned && i < copied->call->nr_bos; i++) {
        struct vnpu_buffer *buffer = vnpu_buffer_find(file, copied->bos[i].handle);
        if (buffer->mapped && buffer->address != copied->bos[i].address)
            vnpu_buffer_unplace(file, buffer);
    }
    int error = 0;
    for (uint32_t i = 0; !error && i < copied->call->nr_bos; i++) {
        struct vnpu_buffer *buffer = vnpu_buffer_find(file, copied->bos[i].handle);
        uint64_t address;
        if (pinned)
            error = pin(file, buffer, copied->bos[i].address);
        else if (!buffer->mapped)
            error = vnpu_find_range(file, FIRST_ADDRESS, buffer->size, &address)
                        ? vnpu_buffer_place(file, buffer, address)
                        : -ENOSPC;
    }
    return error;
}

/* Offsets rise, and address whole words inside. */
static int relocate(const struct vnpu_file *file, const struct copied *copied)
{
    uint64_t next = 0;
    for (uint32_t i = 0; i < copied->call->nr_relocs; i++) {
        const struct mica_etnaviv_reloc *reloc = &copied->relocs[i];
        if (reloc->offset % 4 || reloc->offset < next || reloc->offset >= copied->call->stream_size ||
            reloc->bo >= copied->call->nr_bos || reloc->flags)
            return -EINVAL;
        const struct vnpu_buffer *buffer = vnpu_buffer_find(file, copied->bos[reloc->bo].handle);
        if (reloc->addend >= buffer->size)
            return -EINVAL;
        copied->stream[reloc->offset / 4] = (uint32_t)(buffer->address + reloc->addend);
        next = (uint64_t)reloc->offset + 4;
    }
    return 0;
}

static int run(struct vnpu_file *file, struct mica_etnaviv_submit *call, const struct copied *copied)
{
    int error = list_buffers(file, copied);
    if (!error)
        error = place(file, copied);
    if (!error)
        error = relocate(file, copied);
    if (error)
        return error;
    int outcome = vnpu_run(file, copied->stream, call->stream_size / 4);
    for (uint32_t i = 0; i < call->nr_bos; i++)
        if (copied->bos[i].flags & MICA_ETNAVIV_USE_WRITE)
            vnpu_buffer_set_outcome(vnpu_buffer_find(file, copied->bos[i].handle), outcome);
    call->fence = ++file->last_fence;
    if (!(call->flags & MICA_ETNAVIV_SUBMIT_FENCE_OUT))
        return 0;
    call->fence_fd = vnpu_sync_create(outcome);
    return call->fence_fd < 0 ? call->fence_fd : 0;
}

static int submit(struct vnpu_file *file, struct mica_etnaviv_submit *call)
{
    struct copied copied = {.call = call};
    int error = check_call(call);
    if (!error)
        error = copy_arrays(&copied);
    if (!error)
        error = run(file, call, &copied);
    free(copied.bos);
    free(copied.relocs);
    free(copied.stream);
    return error;
}

static int call(struct vnpu_file *file, unsigned long request, void *argument)
{
    const struct mica_etnaviv_wait_fence *fence = argument;
    switch (request) {
    case MICA_ETNAVIV_GET_PARAM:
        return get_param(file, argument);
    case MICA_ETNAVIV_GEM_NEW:
        return gem_new(file, argument);
    case MICA_ETNAVIV_GEM_INFO:
        return gem_info(file, argument);
    case MICA_ETNAVIV_GEM_CPU_PREP:
        return cpu_prep(file, argument);
    case MICA_ETNAVIV_GEM_CPU_FINI:
        return cpu_fini(file, argument);
    case MICA_ETNAVIV_GEM_SUBMIT:
        return submit(file, argument);
    case MICA_ETNAVIV_WAIT_FENCE: /* unknown fences are signalled ones, and so are those of jobs that were killed */
        return wait(fence->pipe, fence->flags);
    case MICA_ETNAVIV_GEM_USERPTR:
        return gem_userptr(file, argument);
    case MICA_ETNAVIV_GEM_WAIT:
        return gem_wait(file, argument);
    case MICA_ETNAVIV_PM_QUERY_DOM: /* this device counts nothing */
    case MICA_ETNAVIV_PM_QUERY_SIG:
        return -EINVAL;
    default:
        return -ENOTTY;
    }
}

const struct vnpu_driver vnpu_etnaviv = {
    .name = "etnaviv",
    .date = "0",
    .description = "etnaviv DRM",
    .version = {1, 4, 0},
    .can_import = true,
    .folder = "/dev/dri",
    .node = "renderD128",
    .major = 226,
    .minor = 128,
    .call = call,
};
