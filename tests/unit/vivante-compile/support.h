/* SPDX-License-Identifier: MIT */
/* Small graphs, random numbers, and a slow reader of V7 coefficient streams for the compiler's tests. */
#ifndef TESTS_VIVANTE_COMPILE_SUPPORT_H
#define TESTS_VIVANTE_COMPILE_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "npu/npu.h"

#define SKIP 77 /* meson's exit code for a test that can't run here */

/* ---- random numbers ------------------------------------------------------ */

struct random {
    uint64_t state;
};

uint32_t random_word(struct random *random);
uint32_t random_below(struct random *random, uint32_t bound);                /* [0, bound) */
uint32_t random_between(struct random *random, uint32_t low, uint32_t high); /* both included */
void random_bytes(struct random *random, void *data, size_t size);

/* ---- graphs --------------------------------------------------------------- */

struct net {
    struct mica_graph *graph;
    struct mica_log log;
    void **constants; /* owned copies */
    size_t constant_count;
};

struct spec {
    enum mica_type type;
    float scale;
    int32_t zero_point;
    uint32_t rank;
    int32_t dims[4];
};

void net_open(struct net *net);
void net_close(struct net *net);

/* Adds a tensor, constant when `data` is not NULL (copied). */
int32_t net_tensor(struct net *net, const struct spec *spec, const void *data);

/* Adds an operation with one output; its kind, parameters and axis come from `op`. */
void net_op(struct net *net, struct mica_op op, const char *type, const int32_t *inputs, uint32_t input_count,
            int32_t output);

/* All operations as one partition; release with partition_finish(). */
void partition_init(struct mica_partition *partition, const struct net *net, const int32_t *inputs,
                    uint32_t input_count, const int32_t *outputs, uint32_t output_count);
void partition_finish(struct mica_partition *partition);

/* ---- coefficient streams -------------------------------------------------- */

/* One decoded kernel; which channel it is, its output offset says. */
struct kernel {
    uint32_t offset, bias;
    uint8_t *weights; /* [channels][taps], taps in stream order */
};

struct shape {
    uint32_t kernels_per_core, channels, taps;
    bool pointwise;
    uint8_t zero_point;
};

struct decoded {
    size_t size; /* of header and streams */
    uint32_t count, zero_run_bits;
    struct kernel *kernels; /* ordered by offset */
};

/* NULL, or what is wrong with the buffer. Release with decoded_finish() in both cases. */
const char *decode_v7(const uint8_t *data, size_t size, const struct shape *shape, struct decoded *decoded);
void decoded_finish(struct decoded *decoded);

#endif
