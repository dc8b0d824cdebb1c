/* SPDX-License-Identifier: MIT */
/* What the families' decoders say, kept: a list of groups and fields in order, each with its depth. */
#ifndef MICA_ANALYSIS_DECODING_H
#define MICA_ANALYSIS_DECODING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/capture.h"
#include "npu/npu.h"

struct mica_decoding_item {
    bool group;
    uint32_t depth;
    const char *name;    /* a group's kind: "command", "NN descriptor" */
    const char *text;    /* a group's title; a field's value in words, NULL: none */
    const char *meaning; /* NULL: none */
    uint64_t value;      /* a group's address */
    bool is_signed, unknown, idle;
};

struct mica_decoding_chunk;

struct mica_decoding {
    struct mica_decoding_item *items;
    size_t count, capacity, unknown; /* fields that nobody knows */
    bool full;                       /* more was there than is kept: MICA_DECODING_MOST_ITEMS or _BYTES */
    bool failed;                     /* memory ran out */
    uint32_t depth;
    uint64_t bytes; /* that the decoder looked at */
    struct mica_decoding_chunk *chunks;
};

#define MICA_DECODING_MOST_ITEMS ((size_t)1 << 20)
#define MICA_DECODING_MOST_BYTES ((uint64_t)1 << 28)

/* Each appends to `decoding`, {0} at first, and returns 0 or -ENOMEM, said. Release it in both cases. */

/* A submission whose buffers are mapped in `memory`. `weights`: each kernel's too. */
int mica_decoding_submit(struct mica_decoding *decoding, const struct mica_recorded_submit *submit,
                         const struct mica_chip *chip, const struct mica_device_memory *memory, bool weights,
                         struct mica_log *log);

/* A command stream (etnaviv) or register programs (rocket) by themselves. */
int mica_decoding_raw(struct mica_decoding *decoding, const struct mica_chip *chip, const void *bytes, size_t size,
                      struct mica_log *log);

/* What of an NN job's descriptor a coefficient buffer must be read with. */
struct mica_coefficient_shape {
    uint32_t kernel_w, kernel_h, channels, kernels, kernels_per_core, plane, zero_point;
    bool depthwise;
};

/* "3x3,in=16,out=32,per-core=4,zero=128,depthwise": 3x3 is needed; -EINVAL, said. */
int mica_coefficient_shape_parse(const char *text, struct mica_log *log, struct mica_coefficient_shape *shape);

int mica_decoding_coefficients(struct mica_decoding *decoding, const struct mica_chip *chip, const void *bytes,
                               size_t size, const struct mica_coefficient_shape *shape, bool weights,
                               struct mica_log *log);

void mica_decoding_release(struct mica_decoding *decoding);

/* A copy that lives as long as the decoding; NULL: memory ran out, or `text` is NULL. */
const char *mica_decoding_keep(struct mica_decoding *decoding, const char *text);

#endif
