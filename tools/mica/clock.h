/* SPDX-License-Identifier: MIT */
#ifndef MICA_CLI_CLOCK_H
#define MICA_CLI_CLOCK_H

#include <time.h>

/* Milliseconds of a clock that only goes forward. */
static inline double cli_clock_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

#endif
