/* SPDX-License-Identifier: MIT */
/* Reads arbitrary bytes as a model. Seeds: any small .tflite files. */
#include "frontend/tflite/reader.h"
#include "graph/graph.h"
#include "invariants.h"
#include "mutate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    void *copy;
    struct mica_graph *graph = NULL;
    struct mica_log log = {.sink = NULL};
    /* Exactly `size` bytes, so that the sanitizer sees the first one that is read too far. */
    if (posix_memalign(&copy, 16, size ? size : 1))
        return 0;
    if (size)
        memcpy(copy, data, size);
    if (!mica_tflite_read(copy, size, &log, &graph)) {
        const char *broken = graph_invariants(graph);
        if (broken) {
            fprintf(stderr, "does not hold: %s\n", broken);
            abort();
        }
        mica_graph_destroy(graph);
    }
    free(copy);
    return 0;
}

/* Half of the changes know where a model's structure is, half are libFuzzer's own. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    if (seed & 1)
        return mica_mutate(data, size, seed);
    return LLVMFuzzerMutate(data, size, max_size);
}
