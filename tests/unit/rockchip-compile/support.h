/* SPDX-License-Identifier: MIT */
/* Small graphs, random numbers, and a board for the compiler's tests: device memory with a simulator on it. */
#ifndef TESTS_ROCKCHIP_COMPILE_SUPPORT_H
#define TESTS_ROCKCHIP_COMPILE_SUPPORT_H

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
uint32_t random_below(struct random *random, uint32_t bound);             /* [0, bound) */
int32_t random_between(struct random *random, int32_t low, int32_t high); /* both included */
void random_bytes(struct random *random, void *data, size_t size);

/* A file's bytes, aligned as flatbuffers want them, to be freed; NULL: it can't be opened. */
void *file_contents(const char *path, size_t *size);

/* ---- graphs --------------------------------------------------------------- */

struct net {
    struct mica_graph *graph;
    struct mica_log log;
    void **constants; /* owned copies */
    size_t constant_count;
};

struct spec {
    enum mica_type type;
    float scale; /* 0: not quantized */
    int32_t zero_point;
    const float *scales; /* per slice of dims[axis], zero points 0; NULL: `scale` alone */
    int32_t axis;
    uint32_t rank;
    int32_t dims[4];
};

void net_open(struct net *net);
void net_close(struct net *net);

/* Adds a tensor, constant when `data` is not NULL (copied). */
int32_t net_tensor(struct net *net, const struct spec *spec, const void *data);

/* Adds an operation with one output; its kind and parameters come from `op`. */
void net_op(struct net *net, struct mica_op op, const char *type, const int32_t *inputs, uint32_t input_count,
            int32_t output);

/* All operations as one partition; release with partition_finish(). */
void partition_init(struct mica_partition *partition, const struct net *net, const int32_t *inputs,
                    uint32_t input_count, const int32_t *outputs, uint32_t output_count);
void partition_finish(struct mica_partition *partition);

/* ---- boards --------------------------------------------------------------- */

extern const struct mica_chip test_rk3588, test_rk3566;

/*
 * Runs a program on a simulated chip. data[tensor]: the host's bytes of inputs, room for those of outputs. Submissions
 * of one stage run last to first when `backwards`. Fails the test when the device faults; returns modelled cycles.
 */
uint64_t board_run(const struct mica_chip *chip, const struct mica_program *program, uint8_t **data, bool backwards);

#endif
