/* SPDX-License-Identifier: MIT */
/* The functions that stand in front of the C library's. While nothing is recorded each is one test and one jump. */
/* Both kinds of names are defined here, so none may stand for the other. */
#undef _FILE_OFFSET_BITS

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "intercept/intercept.h"
#include "intercept/real.h"

#define SHOWN __attribute__((visibility("default")))
#define HAS_MODE(flags) ((flags)&O_CREAT || ((flags)&O_TMPFILE) == O_TMPFILE)

/* ---- open ------------------------------------------------------------------------- */

static int opened(int fd, const char *path)
{
    if (fd < 0 || !ic_on())
        return fd;
    if (ic_node_path(path))
        ic_opened(fd, path);
    else if (!ic_unknown(fd))
        ic_forget(fd);
    return fd;
}

/* The path of openat() where it stands below a folder of /dev. */
static int opened_at(int fd, int folder, const char *path)
{
    char link[64], whole[512];
    int error = errno;
    if (fd < 0 || !ic_on() || !path || path[0] == '/' || folder == AT_FDCWD)
        return opened(fd, path);
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    ssize_t size = readlink(link, whole, sizeof whole / 2);
    errno = error;
    if (size < 0)
        return opened(fd, path);
    snprintf(whole + size, sizeof whole - (size_t)size, "/%s", path);
    return opened(fd, whole);
}

#define WITH_MODE(flags, mode)            \
    mode_t mode = 0;                      \
    if (HAS_MODE(flags)) {                \
        va_list arguments;                \
        va_start(arguments, flags);       \
        mode = va_arg(arguments, mode_t); \
        va_end(arguments);                \
    }

#define OPEN(name)                                               \
    SHOWN int name(const char *path, int flags, ...)             \
    {                                                            \
        WITH_MODE(flags, mode)                                   \
        return opened(ic_real()->name(path, flags, mode), path); \
    }

#define OPEN_AT(name)                                                               \
    SHOWN int name(int folder, const char *path, int flags, ...)                    \
    {                                                                               \
        WITH_MODE(flags, mode)                                                      \
        return opened_at(ic_real()->name(folder, path, flags, mode), folder, path); \
    }

/* What programs call that were built with checks of the C library. */
#define OPEN_CHECKED(name)                                 \
    SHOWN int __##name(const char *path, int flags);       \
    SHOWN int __##name(const char *path, int flags)        \
    {                                                      \
        return opened(ic_real()->name(path, flags), path); \
    }

#define OPEN_AT_CHECKED(name)                                                 \
    SHOWN int __##name(int folder, const char *path, int flags);              \
    SHOWN int __##name(int folder, const char *path, int flags)               \
    {                                                                         \
        return opened_at(ic_real()->name(folder, path, flags), folder, path); \
    }

#undef open
#undef open64
#undef openat
#undef openat64
OPEN(open)
OPEN(open64)
OPEN_AT(openat)
OPEN_AT(openat64)
OPEN_CHECKED(open_2)
OPEN_CHECKED(open64_2)
OPEN_AT_CHECKED(openat_2)
OPEN_AT_CHECKED(openat64_2)

/* ---- descriptors -------------------------------------------------------------------- */

SHOWN int close(int fd)
{
    if (ic_on() && !ic_unknown(fd))
        ic_closing(fd);
    return ic_real()->close(fd);
}

SHOWN int close_range(unsigned first, unsigned last, int flags)
{
    if (ic_on() && !(flags & CLOSE_RANGE_CLOEXEC))
        ic_closing_range(first, last);
    if (ic_real()->close_range)
        return ic_real()->close_range(first, last, flags);
    errno = ENOSYS;
    return -1;
}

SHOWN void closefrom(int first)
{
    if (ic_on())
        ic_closing_range(first < 0 ? 0 : (unsigned)first, UINT32_MAX);
    if (ic_real()->closefrom)
        ic_real()->closefrom(first);
}

static int duplicated(int from, int to)
{
    if (to >= 0 && ic_on())
        ic_duplicated(from, to);
    return to;
}

SHOWN int dup(int fd)
{
    return duplicated(fd, ic_real()->dup(fd));
}

/* What dup2() and dup3() replace is closed. */
SHOWN int dup2(int from, int to)
{
    if (from != to && ic_on() && ic_watched(to))
        ic_closing(to);
    return duplicated(from, ic_real()->dup2(from, to));
}

SHOWN int dup3(int from, int to, int flags)
{
    if (from != to && ic_on() && ic_watched(to))
        ic_closing(to);
    return duplicated(from, ic_real()->dup3(from, to, flags));
}

#define CONTROL(name)                                                       \
    SHOWN int name(int fd, int command, ...)                                \
    {                                                                       \
        va_list arguments;                                                  \
        va_start(arguments, command);                                       \
        void *argument = va_arg(arguments, void *);                         \
        va_end(arguments);                                                  \
        int result = ic_real()->name(fd, command, argument);                \
        bool duplicates = command == F_DUPFD || command == F_DUPFD_CLOEXEC; \
        return duplicates ? duplicated(fd, result) : result;                \
    }

#undef fcntl
#undef fcntl64
CONTROL(fcntl)
CONTROL(fcntl64)

/* ---- requests ------------------------------------------------------------------------ */

/* Could it be a request to a node that was opened before this program began? */
static bool may_be_node(unsigned long request)
{
    unsigned type = _IOC_TYPE(request);
    return type == 'd' || type == 'r' || type == 'A' || request == 30000;
}

SHOWN int ioctl(int fd, unsigned long request, ...)
{
    va_list arguments;
    va_start(arguments, request);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    if (!ic_on() || (!ic_watched(fd) && (!ic_unknown(fd) || !may_be_node(request))))
        return ic_real()->ioctl(fd, request, argument);
    return ic_ioctl(fd, request, argument);
}

/* ---- memory ---------------------------------------------------------------------------- */

#define MAP(name, offset_type)                                                                          \
    SHOWN void *name(void *address, size_t size, int protection, int flags, int fd, offset_type offset) \
    {                                                                                                   \
        void *result = ic_real()->name(address, size, protection, flags, fd, offset);                   \
        if (fd >= 0 && ic_on() && ic_watched(fd))                                                       \
            ic_mapped(fd, result, size, protection, (uint64_t)offset);                                  \
        return result;                                                                                  \
    }

#undef mmap
#undef mmap64
MAP(mmap, off_t)
MAP(mmap64, off64_t)

SHOWN int munmap(void *address, size_t size)
{
    if (ic_on() && atomic_load_explicit(&ic_program_views, memory_order_relaxed))
        ic_unmapping(address, size);
    return ic_real()->munmap(address, size);
}

/* ---- the end ------------------------------------------------------------------------------ */

static void finish(void)
{
    struct ic_guard guard;
    if (!ic_on() || !ic_enter(&guard))
        return;
    ic_flush_all(false);
    ic_leave(&guard);
}

SHOWN void _exit(int code)
{
    finish();
    ic_real()->_exit(code);
}

SHOWN void _Exit(int code)
{
    _exit(code);
}
