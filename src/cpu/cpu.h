/* SPDX-License-Identifier: MIT */
/*
 * Integer reference kernels: the fallback for what no NPU takes, and the
 * oracle of the tests. In the default arithmetic every integer result equals
 * TFLite's reference kernels (BUILTIN_REF) bit for bit; in an NPU's arithmetic
 * convolutions of all kinds, fully connected layers and additions give what that
 * NPU's hardware model says, computed here without any of its compiler or
 * simulator; on Rockchip also differences, products, average pools and means (of
 * what one window takes: 31 x 31). All else is TFLite's there too.
 */
#ifndef MICA_CPU_CPU_H
#define MICA_CPU_CPU_H

#include "graph/graph.h"
#include "util/log.h"
#include "util/threads.h"

enum mica_arithmetic {
    MICA_ARITHMETIC_TFLITE,
    /* Vivante A311D, S905D3: 16-bit truncated multiplier, ties to even, before the zero point. */
    MICA_ARITHMETIC_VIVANTE_V7,
    /* Vivante i.MX 8M Plus: the same with a 24-bit multiplier. */
    MICA_ARITHMETIC_VIVANTE_V8,
    /* Rockchip RK3588: 15-bit multipliers, ties to even, before the zero point; per channel two of them. */
    MICA_ARITHMETIC_ROCKCHIP,
    /* Rockchip RK3566, RK3568: the same, with conversions shared by surfaces of 8 channels instead of 16. */
    MICA_ARITHMETIC_ROCKCHIP_RK356X,
};

struct mica_cpu_options {
    enum mica_arithmetic arithmetic;
    struct mica_threads *threads; /* may be NULL */
};

/* 0 if mica_cpu_run() can run the operation; else -ENOTSUP and `reason`, of `size` bytes, says why. */
int mica_cpu_supports(const struct mica_graph *graph, uint32_t op, char *reason, size_t size);

/*
 * Runs operation `op`. data[t] is the value of graph tensor t, of its full
 * size, for every tensor the operation reads or writes (constants included);
 * inputs are not written. Fails with -ENOTSUP (as above), -ENOMEM, or -EINVAL
 * when the values make no sense (a detection box of negative size).
 */
int mica_cpu_run(const struct mica_graph *graph, uint32_t op, void *const *data, const struct mica_cpu_options *options,
                 struct mica_log *log);

#endif
