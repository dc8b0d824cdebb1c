/* SPDX-License-Identifier: MIT */
/*
 * What kernels and compilers take for granted about an operation without a
 * problem, checked in the slow and obvious way; used by the tests and by the fuzzer.
 */
#ifndef TEST_GRAPH_INVARIANTS_H
#define TEST_GRAPH_INVARIANTS_H

#include "graph/graph.h"

/* NULL, or what does not hold. Reads every constant byte, so that a sanitizer sees bad ones. */
const char *graph_invariants(const struct mica_graph *graph);

#endif
