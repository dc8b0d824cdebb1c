/* SPDX-License-Identifier: MIT */
/* The delegate's options: `key: value` pairs from the host, or environment variables where it passes none. */
#ifndef MICA_DELEGATE_OPTIONS_H
#define MICA_DELEGATE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "npu/npu.h"

struct mica_delegate_options {
    char device[256]; /* what mica_open_device() takes */
    bool profile;
    enum mica_log_level log_level;
    unsigned threads;                    /* 0: one per processor */
    struct mica_compile_options compile; /* on_chip, optimize, split, partition */
    uint32_t cores, clock_mhz;           /* 0: the device's default */
};

/*
 * Defaults, then the environment (MICA_DEVICE, MICA_PROFILE, MICA_LOG_LEVEL,
 * MICA_THREADS, MICA_ON_CHIP, MICA_OPTIMIZE, MICA_CORES, MICA_CLOCK, MICA_SPLIT, MICA_PARTITION;
 * empty counts as unset), then keys[i] = values[i], the last of a repeated key. An unknown key or bad value: -EINVAL,
 * and a message that names what would do. What the device allows is not known here yet.
 */
int mica_delegate_options_parse(const char *const *keys, const char *const *values, size_t count, struct mica_log *log,
                                struct mica_delegate_options *options);

#endif
