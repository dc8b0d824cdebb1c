/* SPDX-License-Identifier: MIT */
/* How small a coefficient buffer could be: for the bench, so slow and simple. */
#ifndef MICA_BENCH_FLOOR_H
#define MICA_BENCH_FLOOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "npu/vivante/hw/chips.h"
#include "util/log.h"
#include "util/threads.h"

struct bench_floor {
    uint64_t format; /* header, the fewest bits that the format can say the kernels in, biases */
    uint64_t padded; /* the same with each core's stream in blocks of 64 bytes */
};

/* Bytes that an ideal order-0 coder needs. */
double bench_entropy(const void *data, size_t size);

/*
 * The floor for the kernels in `buffer`, which the NN descriptor `words` names.
 * False, with a message, when the buffer can't be decoded or memory runs out.
 */
bool bench_floor(const struct viv_chip *chip, const uint32_t *words, const uint8_t *buffer, uint64_t size,
                 struct mica_threads *threads, struct mica_log *log, struct bench_floor *bounds);

#endif
