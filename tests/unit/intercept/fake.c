/* SPDX-License-Identifier: MIT */
/*
 * Device nodes that are not there, for tests: preloaded behind the
 * interceptor, so that the calls it passes on end here. Jobs compute nothing:
 * they turn the first bytes of what they write, and only when somebody waits,
 * so that a look at contents that comes too early shows.
 */
#undef _FILE_OFFSET_BITS
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake.h"
#include "uapi/aipu.h"
#include "uapi/etnaviv.h"
#include "uapi/galcore.h"
#include "uapi/rknpu.h"
#include "uapi/rocket.h"

#define SHOWN __attribute__((visibility("default")))
#define MOST_NODES 64
#define MOST_BUFFERS 512

struct buffer {
    uint64_t size, address;
    int memory;
    bool pending;
};

struct node {
    ino_t inode;
    char driver[16];
    struct buffer buffers[MOST_BUFFERS]; /* handle 1 is the first */
    uint32_t count, fence;
    uint64_t next_address;
};

static struct node nodes[MOST_NODES];
static size_t node_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *real(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

static struct node *find_node(int fd)
{
    struct stat status;
    if (fd < 0 || fstat(fd, &status))
        return NULL;
    for (size_t i = 0; i < node_count; i++)
        if (nodes[i].inode == status.st_ino)
            return &nodes[i];
    return NULL;
}

static int open_node(const char *path)
{
    static const char *const names[][2] = {{"/dev/dri/renderD128", "etnaviv"},
                                           {"/dev/accel/accel0", "rocket"},
                                           {"/dev/dri/card1", "rknpu"},
                                           {"/dev/rknpu", "rknpu"},
                                           {"/dev/aipu", "aipu"},
                                           {"/dev/galcore", "galcore"},
                                           {"/dev/dri/renderD129", "display"}};
    struct stat status;
    for (size_t i = 0; path && i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(path, names[i][0]) != 0)
            continue;
        int fd = memfd_create("node", 0);
        fstat(fd, &status);
        pthread_mutex_lock(&lock);
        struct node *node = &nodes[node_count++ % MOST_NODES];
        *node = (struct node){.inode = status.st_ino};
        snprintf(node->driver, sizeof node->driver, "%s", names[i][1]);
        pthread_mutex_unlock(&lock);
        return fd;
    }
    return -1;
}

/* ---- buffers -------------------------------------------------------------------- */

static struct buffer *find(struct node *node, uint32_t handle)
{
    return handle && handle <= node->count && node->buffers[handle - 1].memory >= 0 ? &node->buffers[handle - 1] : NULL;
}

static uint32_t create(struct node *node, uint64_t size)
{
    if (!size || size > 1 << 26 || node->count == MOST_BUFFERS)
        return 0;
    struct buffer *buffer = &node->buffers[node->count++];
    *buffer = (struct buffer){.size = (size + 4095) & ~UINT64_C(4095), .address = node->next_address};
    node->next_address += buffer->size;
    buffer->memory = memfd_create("buffer", 0);
    return ftruncate(buffer->memory, (off_t)buffer->size) ? 0 : node->count;
}

static void run_job(struct buffer *buffer)
{
    uint8_t bytes[FAKE_TURNED];
    buffer->pending = false;
    if (pread(buffer->memory, bytes, sizeof bytes, 0) != sizeof bytes)
        abort();
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] ^= FAKE_TURN;
    if (pwrite(buffer->memory, bytes, sizeof bytes, 0) != sizeof bytes)
        abort();
}

static void run_all(struct node *node)
{
    for (uint32_t i = 0; i < node->count; i++)
        if (node->buffers[i].pending)
            run_job(&node->buffers[i]);
}

static bool busy(const struct node *node)
{
    for (uint32_t i = 0; i < node->count; i++)
        if (node->buffers[i].pending)
            return true;
    return false;
}

static int gem_close(struct node *node, const struct mica_drm_gem_close *call)
{
    struct buffer *buffer = find(node, call->handle);
    if (!buffer)
        return EINVAL;
    close(buffer->memory);
    buffer->memory = -1;
    return 0;
}

/* ---- drivers ---------------------------------------------------------------------- */

static int etnaviv_submit(struct node *node, struct mica_etnaviv_submit *call)
{
    if (call->pipe || call->stream_size % 4 || call->stream_size > 131072 || call->nr_bos > MOST_BUFFERS)
        return EINVAL;
    for (uint32_t i = 0; i < call->nr_bos; i++) {
        struct mica_etnaviv_bo bo;
        if (!fake_readable(call->bos + i * sizeof bo, sizeof bo))
            return EFAULT;
        memcpy(&bo, (void *)(uintptr_t)(call->bos + i * sizeof bo), sizeof bo);
        struct buffer *buffer = find(node, bo.handle);
        if (!buffer)
            return EINVAL;
        buffer->pending |= bo.flags & MICA_ETNAVIV_USE_WRITE;
    }
    if (!fake_readable(call->stream, call->stream_size))
        return EFAULT;
    call->fence = ++node->fence;
    return 0;
}

static int etnaviv_param(struct mica_etnaviv_param *call)
{
    static const uint32_t values[] = {[MICA_ETNAVIV_MODEL] = 0x8000,
                                      [MICA_ETNAVIV_REVISION] = 0x7120,
                                      [MICA_ETNAVIV_PRODUCT] = 0x45080009,
                                      [MICA_ETNAVIV_CUSTOMER] = 0x88,
                                      [MICA_ETNAVIV_ECO] = 0};
    if (call->pipe)
        return ENXIO;
    call->value = call->param < sizeof values / sizeof values[0] ? values[call->param] : 0;
    return 0;
}

static int etnaviv(struct node *node, unsigned long request, void *argument)
{
    struct mica_etnaviv_gem_new *make = argument;
    struct mica_etnaviv_gem_info *info = argument;
    struct mica_etnaviv_wait_fence *wait = argument;
    switch (request) {
    case MICA_ETNAVIV_GET_PARAM:
        return etnaviv_param(argument);
    case MICA_ETNAVIV_GEM_NEW:
        make->handle = create(node, make->size);
        return make->handle ? 0 : ENOMEM;
    case MICA_ETNAVIV_GEM_INFO:
        info->offset = (uint64_t)info->handle << 32;
        return find(node, info->handle) ? 0 : ENOENT;
    case MICA_ETNAVIV_GEM_SUBMIT:
        return etnaviv_submit(node, argument);
    case MICA_ETNAVIV_WAIT_FENCE:
        if (wait->flags & MICA_ETNAVIV_WAIT_NONBLOCK)
            return busy(node) ? EBUSY : 0;
        run_all(node);
        return 0;
    case MICA_ETNAVIV_GEM_CPU_PREP:
        run_all(node);
        return 0;
    default:
        return ENOTTY;
    }
}

static int rocket_submit(struct node *node, const struct mica_rocket_submit *call)
{
    if (call->reserved || call->job_struct_size < sizeof(struct mica_rocket_job) || call->job_count > 64)
        return EINVAL;
    for (uint32_t i = 0; i < call->job_count; i++) {
        struct mica_rocket_job job;
        if (!fake_readable(call->jobs + i * call->job_struct_size, sizeof job))
            return EFAULT;
        memcpy(&job, (void *)(uintptr_t)(call->jobs + i * call->job_struct_size), sizeof job);
        for (uint32_t k = 0; k < job.out_count && fake_readable(job.out_handles + 4 * k, 4); k++) {
            struct buffer *buffer = find(node, ((uint32_t *)(uintptr_t)job.out_handles)[k]);
            if (buffer)
                buffer->pending = true;
        }
    }
    return 0;
}

static int rocket(struct node *node, unsigned long request, void *argument)
{
    struct mica_rocket_create_bo *make = argument;
    const struct mica_rocket_prep_bo *prep = argument;
    const struct buffer *buffer;
    switch (request) {
    case MICA_ROCKET_CREATE_BO:
        make->handle = create(node, make->size);
        if (!make->handle)
            return ENOSPC;
        make->dma_address = node->buffers[make->handle - 1].address;
        make->offset = (uint64_t)make->handle << 32;
        return 0;
    case MICA_ROCKET_SUBMIT:
        return rocket_submit(node, argument);
    case MICA_ROCKET_PREP_BO:
        buffer = find(node, prep->handle);
        if (buffer && buffer->pending)
            run_all(node); /* else an input of a job that runs: nothing to wait for */
        return buffer ? 0 : ENOENT;
    case MICA_ROCKET_FINI_BO:
        return find(node, ((struct mica_rocket_fini_bo *)argument)->handle) ? 0 : ENOENT;
    default:
        return ENOTTY;
    }
}

static int rknpu_create(struct node *node, struct mica_rknpu_mem_create *make, bool own_type)
{
    make->handle = create(node, make->size);
    if (!make->handle)
        return ENOMEM;
    const struct buffer *buffer = &node->buffers[make->handle - 1];
    make->object = 0xffff000000000000 + make->handle;
    make->dma_address = buffer->address;
    if (own_type)
        make->handle = (uint32_t)dup(buffer->memory);
    return 0;
}

/* Blocking: all that was made is "written" before the call returns. */
static int rknpu(struct node *node, unsigned long request, void *argument)
{
    struct mica_rknpu_mem_map *map = argument;
    bool own = _IOC_TYPE(request) == MICA_RKNPU_TYPE;
    switch (_IOC_NR(request) - (own ? 0 : MICA_DRM_COMMAND_BASE)) {
    case MICA_RKNPU_MEM_CREATE:
        return rknpu_create(node, argument, own);
    case MICA_RKNPU_MEM_MAP:
        map->offset = (uint64_t)map->handle << 32;
        return find(node, map->handle) ? 0 : EINVAL;
    case MICA_RKNPU_SUBMIT:
        if (node->count)
            run_job(&node->buffers[node->count - 1]);
        return 0;
    default:
        return ENOTTY;
    }
}

static int aipu(struct node *node, unsigned long request, void *argument)
{
    struct mica_aipu_query_status *query = argument;
    struct mica_aipu_buffer made;
    uint64_t size;
    uint32_t handle;
    switch (_IOC_NR(request)) {
    case MICA_AIPU_REQ_BUF:
        memcpy(&size, argument, sizeof size);
        handle = _IOC_SIZE(request) >= MICA_AIPU_FIRST_REQ_BUF_SIZE ? create(node, size) : 0;
        if (!handle)
            return ENOMEM;
        made = (struct mica_aipu_buffer){node->buffers[handle - 1].address, (uint64_t)handle << 32,
                                         node->buffers[handle - 1].size};
        memcpy((uint8_t *)argument +
                   (_IOC_SIZE(request) == MICA_AIPU_REQ_BUF_SIZE ? MICA_AIPU_BUFFER_AT : MICA_AIPU_FIRST_BUFFER_AT),
               &made, sizeof made);
        return 0;
    case MICA_AIPU_SCHEDULE_JOB:
        if (node->count)
            node->buffers[node->count - 1].pending = true;
        return 0;
    case MICA_AIPU_QUERY_STATUS:
        query->count = busy(node);
        run_all(node);
        return 0;
    default:
        return ENOTTY;
    }
}

static int galcore(struct mica_galcore_arguments *arguments)
{
    uint32_t status = 0x600d;
    if (!fake_readable(arguments->output, 8) || arguments->output_size < 8)
        return EFAULT;
    memcpy((uint8_t *)(uintptr_t)arguments->output + 4, &status, sizeof status);
    return 0;
}

static int version(const struct node *node, struct mica_drm_version *call)
{
    size_t length = strlen(node->driver);
    if (call->name && call->name_length >= length && fake_readable(call->name, length))
        memcpy((void *)(uintptr_t)call->name, node->driver, length);
    call->name_length = length;
    return 0;
}

static int answer(struct node *node, unsigned long request, void *argument)
{
    if (request == MICA_DRM_VERSION)
        return version(node, argument);
    if (request == MICA_DRM_GEM_CLOSE)
        return gem_close(node, argument);
    if (!strcmp(node->driver, "etnaviv"))
        return etnaviv(node, request, argument);
    if (!strcmp(node->driver, "rocket"))
        return rocket(node, request, argument);
    if (!strcmp(node->driver, "rknpu"))
        return rknpu(node, request, argument);
    return !strcmp(node->driver, "aipu") ? aipu(node, request, argument) : ENOTTY;
}

/* ---- the functions ------------------------------------------------------------------- */

static int open_or(const char *name, const char *path, int flags, mode_t mode)
{
    int fd = open_node(path);
    int (*next)(const char *, int, ...) = NULL;
    *(void **)&next = real(name);
    return fd >= 0 ? fd : next(path, flags, mode);
}

#define OPEN(name)                                   \
    SHOWN int name(const char *path, int flags, ...) \
    {                                                \
        va_list arguments;                           \
        va_start(arguments, flags);                  \
        mode_t mode = va_arg(arguments, mode_t);     \
        va_end(arguments);                           \
        return open_or(#name, path, flags, mode);    \
    }
#undef open
#undef open64
OPEN(open)
OPEN(open64)

SHOWN int openat(int folder, const char *path, int flags, ...)
{
    int (*next)(int, const char *, int, ...) = NULL;
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = va_arg(arguments, mode_t);
    va_end(arguments);
    *(void **)&next = real("openat");
    int fd = open_node(path);
    return fd >= 0 ? fd : next(folder, path, flags, mode);
}

SHOWN int ioctl(int fd, unsigned long request, ...)
{
    int (*next)(int, unsigned long, ...) = NULL;
    va_list arguments;
    va_start(arguments, request);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    struct node *node = find_node(fd);
    if (!node) {
        *(void **)&next = real("ioctl");
        return next(fd, request, argument);
    }
    bool special = !strcmp(node->driver, "galcore") && request == MICA_GALCORE_INTERFACE;
    size_t size = special ? sizeof(struct mica_galcore_arguments) : _IOC_SIZE(request);
    uint64_t copy[2048] = {0}; /* 14 bits of size */
    if (!fake_readable((uintptr_t)argument, size)) {
        errno = EFAULT;
        return -1;
    }
    memcpy(copy, argument, size);
    pthread_mutex_lock(&lock);
    int error = special ? galcore((void *)copy) : answer(node, request & UINT32_MAX, copy);
    pthread_mutex_unlock(&lock);
    if (error) {
        errno = error;
        return -1;
    }
    if (_IOC_DIR(request) & _IOC_READ)
        memcpy(argument, copy, size);
    return 0;
}

static void *map(void *address, size_t size, int protection, int flags, int fd, off64_t offset)
{
    void *(*next)(void *, size_t, int, int, int, off64_t) = NULL;
    *(void **)&next = real("mmap64");
    struct node *node = find_node(fd);
    if (!node)
        return next(address, size, protection, flags, fd, offset);
    const struct buffer *buffer = find(node, (uint32_t)((uint64_t)offset >> 32));
    if (buffer && size <= buffer->size)
        return next(address, size, protection, flags, buffer->memory, 0);
    errno = EINVAL;
    return MAP_FAILED;
}

#undef mmap
#undef mmap64
SHOWN void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
    return map(address, size, protection, flags, fd, offset);
}

SHOWN void *mmap64(void *address, size_t size, int protection, int flags, int fd, off64_t offset)
{
    return map(address, size, protection, flags, fd, offset);
}
