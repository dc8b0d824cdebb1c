/* SPDX-License-Identifier: MIT */
/* Reads arbitrary bytes as an ONNX model; starts from the network of the unit tests. */
#include "build.h"
#include "frontend/onnx/reader.h"
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
    if (!mica_onnx_read(copy, size, &log, &graph)) {
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

static size_t network(uint8_t *data, size_t max_size)
{
    static struct pb pb;
    size_t size;
    pb = (struct pb){0};
    pb_network(&pb, true);
    uint8_t *model = pb_model(&pb, &size);
    size = size < max_size ? size : max_size;
    memcpy(data, model, size);
    free(model);
    return size;
}

/* What is too small to be a model is replaced by one; half of the changes are libFuzzer's own. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    if (size < 64)
        size = network(data, max_size);
    if (seed & 1)
        return mica_mutate(data, size, seed);
    return LLVMFuzzerMutate(data, size, max_size);
}
