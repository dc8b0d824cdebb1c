/* SPDX-License-Identifier: MIT */
/* The C library's functions, or those of the next preloaded library, that this one stands in front of. */
#ifndef MICA_INTERCEPT_REAL_H
#define MICA_INTERCEPT_REAL_H

#include <stdatomic.h>
#include <sys/types.h>

struct ic_real {
    int (*open)(const char *, int, ...);
    int (*open64)(const char *, int, ...);
    int (*openat)(int, const char *, int, ...);
    int (*openat64)(int, const char *, int, ...);
    int (*open_2)(const char *, int);
    int (*open64_2)(const char *, int);
    int (*openat_2)(int, const char *, int);
    int (*openat64_2)(int, const char *, int);
    int (*close)(int);
    int (*close_range)(unsigned, unsigned, int);
    void (*closefrom)(int);
    int (*dup)(int);
    int (*dup2)(int, int);
    int (*dup3)(int, int, int);
    int (*fcntl)(int, int, ...);
    int (*fcntl64)(int, int, ...);
    int (*ioctl)(int, unsigned long, ...);
    void *(*mmap)(void *, size_t, int, int, int, off_t);
    void *(*mmap64)(void *, size_t, int, int, int, off64_t);
    int (*munmap)(void *, size_t);
    void (*_exit)(int) __attribute__((noreturn));
};

extern struct ic_real ic_real_functions;
extern atomic_int ic_real_resolved;
void ic_real_resolve(void);

/* Resolved at the first use, whoever is first. */
static inline const struct ic_real *ic_real(void)
{
    if (__builtin_expect(!atomic_load_explicit(&ic_real_resolved, memory_order_acquire), 0))
        ic_real_resolve();
    return &ic_real_functions;
}

#endif
