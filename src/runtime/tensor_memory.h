/* SPDX-License-Identifier: MIT */
/* Where the tensors of one session live: one allocation, shared by tensors whose lifetimes don't overlap. */
#ifndef MICA_RUNTIME_TENSOR_MEMORY_H
#define MICA_RUNTIME_TENSOR_MEMORY_H

#include "runtime/partition.h"

struct mica_tensor_memory {
    void *allocation;
    size_t size; /* bytes the tensors take */
    /*
     * Per graph tensor: its value. Constants stand where the model has them and are
     * read-only; NULL for tensors that live inside a partition only.
     */
    void **data;
};

/*
 * Inputs and outputs of the graph keep their bytes for good, all others from the
 * step that writes them to the last that reads them. The plan must be one that
 * mica_executable_check() accepts. Memory is zeroed.
 */
int mica_tensor_memory_create(const struct mica_graph *graph, const struct mica_plan *plan, struct mica_log *log,
                              struct mica_tensor_memory *memory);
void mica_tensor_memory_finish(struct mica_tensor_memory *memory);

#endif
