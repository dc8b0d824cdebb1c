/* SPDX-License-Identifier: MIT */
/* NN jobs of a compiled model, seen from outside the compiler: what its programs hold. */
#ifndef MICA_BENCH_PROGRAM_H
#define MICA_BENCH_PROGRAM_H

#include "graph/graph.h"
#include "npu/npu.h"

/* One NN job of one of the model's programs. */
struct bench_job {
    uint32_t op;           /* graph index */
    const uint32_t *words; /* its descriptor, addresses 0 */
    const uint8_t *coefficients;
    uint64_t stored; /* bytes from its coefficient buffer's start to the next one's, or the end */
};

/* A tool's view of a model: `job` for each NN job in order; false stops and fails, with a message in the log. */
struct bench_visitor {
    const struct mica_chip *chip;
    struct mica_compile_options options;
    struct mica_threads *threads;
    bool (*begin)(void *user, const struct mica_graph *graph);
    bool (*job)(void *user, const struct bench_job *job, struct mica_log *log);
    void (*end)(void *user, const struct mica_graph *graph); /* all jobs went well */
    void *user;
};

/* "a311d", ...; NULL: no such chip. */
const struct mica_chip *bench_chip(const char *name);

/* Compiles the model's partitions and visits their jobs. False when something fails; it was printed then. */
bool bench_visit(const char *path, const struct bench_visitor *visitor);

#endif
