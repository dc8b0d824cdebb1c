/* SPDX-License-Identifier: MIT */
/* Cuts a graph into what the NPU takes and what stays on the CPU. */
#ifndef MICA_RUNTIME_PARTITION_H
#define MICA_RUNTIME_PARTITION_H

#include "npu/npu.h"

/* A run of the plan: either one NPU partition or operations for the CPU, in an order that respects all dependencies. */
struct mica_step {
    bool npu;
    struct mica_partition partition; /* for CPU steps only `ops` and `op_count` count */
};

struct mica_plan {
    uint32_t step_count;
    struct mica_step *steps;
};

/*
 * Plans `graph` for `chip` (NULL: all on the CPU): as few partitions as the
 * dependencies allow.
 */
int mica_plan_create(const struct mica_graph *graph, const struct mica_chip *chip, struct mica_log *log,
                     struct mica_plan *plan);
void mica_plan_finish(struct mica_plan *plan);

/* The same in two steps: which operations `chip` takes, one flag an operation; then the plan, for any such flags. */
int mica_place_all(const struct mica_graph *graph, const struct mica_chip *chip, struct mica_log *log, bool *npu);
int mica_plan_create_placed(const struct mica_graph *graph, const bool *npu, struct mica_log *log,
                            struct mica_plan *plan);

/* A plan as numbers only: what an executable file holds. */
struct mica_plan_layout {
    uint32_t step_count;
    bool *npu;           /* per step */
    uint32_t *op_counts; /* per step */
    const uint32_t *ops; /* as many as the graph has, step by step */
};

/* Makes the plan again; -EINVAL unless every operation of the graph stands in exactly one step. */
int mica_plan_restore(const struct mica_graph *graph, const struct mica_plan_layout *layout, struct mica_log *log,
                      struct mica_plan *plan);

/*
 * Fills in inputs and outputs of the partition made of `ops` (execution order):
 * what it reads from outside, and what others or the graph's outputs need.
 * Allocates the three arrays; release them with mica_partition_finish().
 */
int mica_partition_create(const struct mica_graph *graph, const uint32_t *ops, uint32_t op_count, struct mica_log *log,
                          struct mica_partition *partition);
void mica_partition_finish(struct mica_partition *partition);

#endif
