/* SPDX-License-Identifier: MIT */
/* A small pool of worker threads for loops whose iterations are independent. */
#ifndef MICA_UTIL_THREADS_H
#define MICA_UTIL_THREADS_H

#include <stddef.h>

struct mica_threads;

/* No pool is larger: what loops keep per thread is bounded by it. */
#define MICA_MAX_THREADS 64u

/* Number of processors this process may run on, at least 1. */
unsigned mica_threads_default(void);

/*
 * `count` threads (at most MICA_MAX_THREADS) work on a loop, the caller among them; 1 (or a failure to
 * start more) gives a pool that runs everything in the caller. NULL only when
 * memory runs out.
 */
struct mica_threads *mica_threads_create(unsigned count);
void mica_threads_destroy(struct mica_threads *threads); /* accepts NULL */

/* How many bodies of a loop can run at the same time: 1 for NULL. */
unsigned mica_threads_count(const struct mica_threads *threads);

/*
 * Calls body(user, i) for every i in [0, count), in no order, and returns when
 * all are done. `threads` may be NULL: then the caller does it all. Not
 * reentrant: a body must not start a loop on the same pool; two callers take turns.
 * In a child of fork(), which has no workers, the caller does it all.
 */
void mica_parallel_for(struct mica_threads *threads, size_t count, void (*body)(void *user, size_t index), void *user);

#endif
