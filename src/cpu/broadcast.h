/* SPDX-License-Identifier: MIT */
/* Two inputs that broadcast to the output, as lines that either input reads with a step of 0 or 1. */
#ifndef MICA_CPU_BROADCAST_H
#define MICA_CPU_BROADCAST_H

#include "cpu/kernels.h"

/* -ENOTSUP unless the shapes of `a` and `b` broadcast to that of `out`. */
int mica_cpu_check_broadcast(const struct mica_tensor *a, const struct mica_tensor *b, const struct mica_tensor *out,
                             struct mica_cpu_reason *reason);

/*
 * Part of a line: `count` elements of the output at `out`, made of those at `a`
 * and `b`. An input whose step is 0 gives its one element to all of them.
 */
typedef void mica_broadcast_line(const void *user, const void *a, const void *b, void *out, size_t count,
                                 const size_t *steps);

/* Calls `line` for the whole output of a call whose inputs 0 and 1 and output have passed the check. */
void mica_broadcast_run(const struct mica_cpu_call *call, mica_broadcast_line *line, const void *user);

#endif
