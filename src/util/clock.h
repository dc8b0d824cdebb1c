/* SPDX-License-Identifier: MIT */
/* Wall time that no one sets back. */
#ifndef MICA_UTIL_CLOCK_H
#define MICA_UTIL_CLOCK_H

#include <time.h>

/* Seconds since some moment that stays the same. */
static inline double mica_clock_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

#endif
