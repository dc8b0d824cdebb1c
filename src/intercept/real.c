/* SPDX-License-Identifier: MIT */
#include "intercept/real.h"

#include <dlfcn.h>

struct ic_real ic_real_functions;
atomic_int ic_real_resolved;

static void resolve(void *function, const char *name)
{
    *(void **)function = dlsym(RTLD_NEXT, name);
}

/* Two threads that come here at once write the same. */
void ic_real_resolve(void)
{
    struct ic_real *real = &ic_real_functions;
    resolve(&real->open, "open");
    resolve(&real->open64, "open64");
    resolve(&real->openat, "openat");
    resolve(&real->openat64, "openat64");
    resolve(&real->open_2, "__open_2");
    resolve(&real->open64_2, "__open64_2");
    resolve(&real->openat_2, "__openat_2");
    resolve(&real->openat64_2, "__openat64_2");
    resolve(&real->close, "close");
    resolve(&real->close_range, "close_range");
    resolve(&real->closefrom, "closefrom");
    resolve(&real->dup, "dup");
    resolve(&real->dup2, "dup2");
    resolve(&real->dup3, "dup3");
    resolve(&real->fcntl, "fcntl");
    resolve(&real->fcntl64, "fcntl64");
    resolve(&real->mmap, "mmap");
    resolve(&real->mmap64, "mmap64");
    resolve(&real->munmap, "munmap");
    resolve(&real->_exit, "_exit");
    resolve(&real->ioctl, "ioctl");
    atomic_store_explicit(&ic_real_resolved, 1, memory_order_release);
}
