/* SPDX-License-Identifier: MIT */
/*
 * The functions of the C library that this library, preloaded, stands in
 * front of: the node's path opens, its descriptor takes requests and maps, and
 * everything else goes on as it was meant to.
 */
/* Both kinds of names are defined here, so none may stand for the other. */
#undef _FILE_OFFSET_BITS

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <linux/sync_file.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "vnpu/real.h"
#include "vnpu/table.h"
#include "vnpu/user.h"

#define SHOWN __attribute__((visibility("default")))
#define DEFAULT_CHIP "a311d"
#define SYNC_BASE '>'
#define DMA_BUF_TYPE 'b'

/* This library's own calls pass straight through. */
static _Thread_local int inside;

/* ---- the real functions ------------------------------------------------------------- */

#define REAL(result, name, ...)                \
    static result (*real_##name)(__VA_ARGS__); \
    if (!real_##name)                          \
    *(void **)&real_##name = dlsym(RTLD_NEXT, #name)

int vnpu_real_fstat(int fd, struct stat *status)
{
#ifdef SYS_newfstatat
    return (int)syscall(SYS_newfstatat, fd, "", status, AT_EMPTY_PATH);
#else
    return (int)syscall(SYS_fstat, fd, status);
#endif
}

int vnpu_real_close(int fd)
{
    return (int)syscall(SYS_close, fd);
}

/* ---- which chip, which path ----------------------------------------------------------- */

static const struct mica_chip *chip;
static char node_path[64];

static void choose(void)
{
    const char *name = getenv("MICA_VNPU_CHIP");
    const struct mica_chip *wanted = mica_find_chip(name && name[0] ? name : DEFAULT_CHIP);
    /* A chip that no kernel driver knows has no node. */
    const struct vnpu_driver *driver = wanted && wanted->identity ? vnpu_driver_of(wanted) : NULL;
    if (!driver) {
        fprintf(stderr, "mica vnpu: there is no chip \"%s\"; the chips are a311d, imx8mp, s905d3, rk3588\n", name);
        return;
    }
    snprintf(node_path, sizeof node_path, "%s/%s", driver->folder, driver->node);
    chip = wanted;
}

static bool is_node(const char *path)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (inside || !path || path[0] != '/')
        return false;
    pthread_once(&once, choose);
    return chip && !strcmp(path, node_path);
}

/* What programs look at to see whether a device number is a DRM node's, and the node's folder: both are folders. */
static bool is_folder(const char *path)
{
    char numbers[64];
    if (inside || !path || path[0] != '/')
        return false;
    is_node(path); /* chooses the chip */
    if (!chip)
        return false;
    const struct vnpu_driver *driver = vnpu_driver_of(chip);
    snprintf(numbers, sizeof numbers, "/sys/dev/char/%u:%u/device/drm", driver->major, driver->minor);
    return !strcmp(path, driver->folder) || !strcmp(path, numbers);
}

static int fail(int error)
{
    errno = -error;
    return -1;
}

/* 0 or more as it is, a negative errno as the C library says it. */
static int answer(int result)
{
    return result < 0 ? fail(result) : result;
}

static int open_node(int flags)
{
    struct vnpu_file *file;
    inside++;
    int result = vnpu_file_open(chip, &file);
    if (!result) {
        result = vnpu_node_create(file, flags & O_CLOEXEC);
        if (result < 0)
            vnpu_file_close(file);
    }
    inside--;
    return answer(result);
}

/* ---- open ------------------------------------------------------------------------------ */

#define HAS_MODE(flags) ((flags)&O_CREAT || ((flags)&O_TMPFILE) == O_TMPFILE)

#define OPEN(name)                                   \
    SHOWN int name(const char *path, int flags, ...) \
    {                                                \
        mode_t mode = 0;                             \
        if (HAS_MODE(flags)) {                       \
            va_list arguments;                       \
            va_start(arguments, flags);              \
            mode = va_arg(arguments, mode_t);        \
            va_end(arguments);                       \
        }                                            \
        if (is_node(path))                           \
            return open_node(flags);                 \
        REAL(int, name, const char *, int, ...);     \
        return real_##name(path, flags, mode);       \
    }

#define OPEN_AT(name)                                            \
    SHOWN int name(int folder, const char *path, int flags, ...) \
    {                                                            \
        mode_t mode = 0;                                         \
        if (HAS_MODE(flags)) {                                   \
            va_list arguments;                                   \
            va_start(arguments, flags);                          \
            mode = va_arg(arguments, mode_t);                    \
            va_end(arguments);                                   \
        }                                                        \
        if (is_node(path))                                       \
            return open_node(flags);                             \
        REAL(int, name, int, const char *, int, ...);            \
        return real_##name(folder, path, flags, mode);           \
    }

/* What programs call that were built with checks of the C library. */
#define OPEN_CHECKED(name)                       \
    SHOWN int name(const char *path, int flags); \
    SHOWN int name(const char *path, int flags)  \
    {                                            \
        if (is_node(path))                       \
            return open_node(flags);             \
        REAL(int, name, const char *, int);      \
        return real_##name(path, flags);         \
    }

#define OPEN_AT_CHECKED(name)                                \
    SHOWN int name(int folder, const char *path, int flags); \
    SHOWN int name(int folder, const char *path, int flags)  \
    {                                                        \
        if (is_node(path))                                   \
            return open_node(flags);                         \
        REAL(int, name, int, const char *, int);             \
        return real_##name(folder, path, flags);             \
    }

#undef open
#undef open64
#undef openat
#undef openat64
OPEN(open)
OPEN(open64)
OPEN_AT(openat)
OPEN_AT(openat64)
OPEN_CHECKED(__open_2)
OPEN_CHECKED(__open64_2)
OPEN_AT_CHECKED(__openat_2)
OPEN_AT_CHECKED(__openat64_2)

/* ---- descriptors ------------------------------------------------------------------------- */

SHOWN int close(int fd)
{
    REAL(int, close, int);
    if (inside || !vnpu_any())
        return real_close(fd);
    inside++;
    struct vnpu_object object = vnpu_lookup(fd);
    int result = real_close(fd), error = errno;
    vnpu_release(&object);
    if (!result && (object.kind == VNPU_NODE || object.kind == VNPU_SYNC))
        vnpu_closed();
    inside--;
    errno = error;
    return result;
}

/* A descriptor that dup2() and its like replace is closed, too. */
#define DUP_OVER(name, parameters, call, ...)         \
    SHOWN int name parameters                         \
    {                                                 \
        REAL(int, name, __VA_ARGS__);                 \
        int result = real_##name call, error = errno; \
        if (!inside && vnpu_any()) {                  \
            inside++;                                 \
            vnpu_closed();                            \
            inside--;                                 \
        }                                             \
        errno = error;                                \
        return result;                                \
    }

DUP_OVER(dup2, (int from, int to), (from, to), int, int)
DUP_OVER(dup3, (int from, int to, int flags), (from, to, flags), int, int, int)
DUP_OVER(close_range, (unsigned first, unsigned last, int flags), (first, last, flags), unsigned, unsigned, int)

/* ---- requests ------------------------------------------------------------------------------ */

static int sync_status(int outcome)
{
    return outcome ? outcome : 1;
}

static int sync_info(int outcome, void *argument)
{
    struct sync_file_info info;
    int error = vnpu_copy_in(&info, (uintptr_t)argument, sizeof info);
    if (error)
        return error;
    if (info.num_fences && info.sync_fence_info) {
        struct sync_fence_info fence = {.driver_name = "mica", .obj_name = "vnpu", .status = sync_status(outcome)};
        error = vnpu_copy_out(info.sync_fence_info, &fence, sizeof fence);
        if (error)
            return error;
    }
    memcpy(info.name, "vnpu", sizeof "vnpu");
    info.status = sync_status(outcome);
    info.num_fences = 1;
    return vnpu_copy_out((uintptr_t)argument, &info, sizeof info);
}

/* Gives the caller a new descriptor, or drops it. */
static int tell_sync(int sync, void *argument, const void *answer_data, size_t size)
{
    if (sync < 0)
        return sync;
    int error = vnpu_copy_out((uintptr_t)argument, answer_data, size);
    if (error)
        vnpu_sync_drop(sync);
    return error;
}

static int sync_merge(int outcome, void *argument)
{
    struct sync_merge_data merge;
    int error = vnpu_copy_in(&merge, (uintptr_t)argument, sizeof merge);
    if (error)
        return error;
    struct vnpu_object other = vnpu_lookup(merge.fd2);
    vnpu_release(&other);
    if (other.kind != VNPU_SYNC)
        return -ENOENT;
    merge.fence = vnpu_sync_create(outcome ? outcome : other.outcome);
    return tell_sync(merge.fence, argument, &merge, sizeof merge);
}

static int buffer_call(int outcome, unsigned long request, void *argument)
{
    struct dma_buf_export_sync_file sync;
    if (request == DMA_BUF_IOCTL_SYNC)
        return 0; /* caches need no care here */
    if (request != DMA_BUF_IOCTL_EXPORT_SYNC_FILE)
        return -ENOTTY;
    int error = vnpu_copy_in(&sync, (uintptr_t)argument, sizeof sync);
    if (error)
        return error;
    if (sync.flags & ~DMA_BUF_SYNC_RW || !(sync.flags & DMA_BUF_SYNC_RW))
        return -EINVAL;
    sync.fd = vnpu_sync_create(outcome);
    return tell_sync(sync.fd, argument, &sync, sizeof sync);
}

static int object_call(const struct vnpu_object *object, unsigned long request, void *argument)
{
    if (object->kind == VNPU_NODE)
        return vnpu_file_call(object->file, request, argument);
    if (object->kind == VNPU_BUFFER)
        return buffer_call(object->outcome, request, argument);
    if (request == SYNC_IOC_FILE_INFO)
        return sync_info(object->outcome, argument);
    return request == SYNC_IOC_MERGE ? sync_merge(object->outcome, argument) : -ENOTTY;
}

SHOWN int ioctl(int fd, unsigned long request, ...)
{
    va_list arguments;
    va_start(arguments, request);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    REAL(int, ioctl, int, unsigned long, ...);
    unsigned type = _IOC_TYPE(request);
    if (inside || !vnpu_any() || (type != 'd' && type != DMA_BUF_TYPE && type != SYNC_BASE))
        return real_ioctl(fd, request, argument);
    inside++;
    struct vnpu_object object = vnpu_lookup(fd);
    int result = object.kind == VNPU_NOTHING ? real_ioctl(fd, request, argument)
                                             : answer(object_call(&object, request, argument));
    int error = errno;
    vnpu_release(&object);
    inside--;
    errno = error;
    return result;
}

/* ---- memory --------------------------------------------------------------------------------- */

static void *map_node(struct vnpu_file *file, void *address, size_t size, int protection, int flags, uint64_t offset)
{
    uint64_t start = 0;
    int memory = vnpu_file_map(file, offset, size, &start);
    if (memory < 0) {
        errno = EINVAL;
        return MAP_FAILED;
    }
    void *map = mmap(address, size, protection, flags, memory, (off_t)start);
    int error = errno;
    vnpu_real_close(memory);
    errno = error;
    return map;
}

#define MAP(name, offset_type)                                                                          \
    SHOWN void *name(void *address, size_t size, int protection, int flags, int fd, offset_type offset) \
    {                                                                                                   \
        REAL(void *, name, void *, size_t, int, int, int, offset_type);                                 \
        if (inside || fd < 0 || !vnpu_any())                                                            \
            return real_##name(address, size, protection, flags, fd, offset);                           \
        inside++;                                                                                       \
        struct vnpu_object object = vnpu_lookup(fd);                                                    \
        void *result = object.kind == VNPU_NODE                                                         \
                           ? map_node(object.file, address, size, protection, flags, (uint64_t)offset)  \
                           : real_##name(address, size, protection, flags, fd, offset);                 \
        int error = errno;                                                                              \
        vnpu_release(&object);                                                                          \
        inside--;                                                                                       \
        errno = error;                                                                                  \
        return result;                                                                                  \
    }

#undef mmap
#undef mmap64
MAP(mmap, off_t)
MAP(mmap64, off64_t)

/* ---- what the node looks like ------------------------------------------------------------------ */

#define SHOW_NODE(status)                                          \
    do {                                                           \
        const struct vnpu_driver *driver = vnpu_driver_of(chip);   \
        memset(status, 0, sizeof *(status));                       \
        (status)->st_mode = S_IFCHR | 0666;                        \
        (status)->st_nlink = 1;                                    \
        (status)->st_rdev = makedev(driver->major, driver->minor); \
        (status)->st_blksize = 4096;                               \
    } while (0)

static bool is_node_descriptor(int fd)
{
    if (inside || !vnpu_any())
        return false;
    inside++;
    struct vnpu_object object = vnpu_lookup(fd);
    vnpu_release(&object);
    inside--;
    return object.kind == VNPU_NODE;
}

#define STAT(name, structure)                                  \
    SHOWN int name(const char *path, struct structure *status) \
    {                                                          \
        REAL(int, name, const char *, struct structure *);     \
        bool folder = is_folder(path);                         \
        if (!folder && !is_node(path))                         \
            return real_##name(path, status);                  \
        SHOW_NODE(status);                                     \
        if (folder)                                            \
            (status)->st_mode = S_IFDIR | 0755;                \
        return 0;                                              \
    }

#define FSTAT(name, structure)                       \
    SHOWN int name(int fd, struct structure *status) \
    {                                                \
        REAL(int, name, int, struct structure *);    \
        if (!is_node_descriptor(fd))                 \
            return real_##name(fd, status);          \
        SHOW_NODE(status);                           \
        return 0;                                    \
    }

#define FSTATAT(name, structure)                                                      \
    SHOWN int name(int folder, const char *path, struct structure *status, int flags) \
    {                                                                                 \
        REAL(int, name, int, const char *, struct structure *, int);                  \
        bool by_descriptor = flags & AT_EMPTY_PATH && !path[0];                       \
        if (by_descriptor ? !is_node_descriptor(folder) : !is_node(path))             \
            return real_##name(folder, path, status, flags);                          \
        SHOW_NODE(status);                                                            \
        return 0;                                                                     \
    }

STAT(stat, stat)
STAT(lstat, stat)
FSTAT(fstat, stat)
FSTATAT(fstatat, stat)
STAT(stat64, stat64)
STAT(lstat64, stat64)
FSTAT(fstat64, stat64)
FSTATAT(fstatat64, stat64)

SHOWN int access(const char *path, int mode)
{
    REAL(int, access, const char *, int);
    if (!is_node(path))
        return real_access(path, mode);
    return mode & X_OK ? fail(-EACCES) : 0;
}

SHOWN int faccessat(int folder, const char *path, int mode, int flags)
{
    REAL(int, faccessat, int, const char *, int, int);
    if (!is_node(path))
        return real_faccessat(folder, path, mode, flags);
    return mode & X_OK ? fail(-EACCES) : 0;
}
