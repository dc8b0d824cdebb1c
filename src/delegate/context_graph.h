/* SPDX-License-Identifier: MIT */
/* The host's interpreter as a graph. */
#ifndef MICA_DELEGATE_CONTEXT_GRAPH_H
#define MICA_DELEGATE_CONTEXT_GRAPH_H

#include "delegate/tflite_abi.h"
#include "graph/graph.h"

/*
 * Graph tensor i is the interpreter's tensor i, and graph operation i is node
 * nodes[i], the i-th of the execution plan. What is malformed, dynamic or owned
 * by another delegate carries a `problem`. The graph's outputs are not set: the
 * host doesn't tell them here. Constant data stays the host's.
 */
struct mica_context_graph {
    struct mica_graph *graph;
    int *nodes; /* graph->op_count entries */
};

/* -ENOMEM, or -EINVAL when the host's own functions fail. */
int mica_context_graph_create(struct tfl_context *context, struct mica_log *log, struct mica_context_graph *result);
void mica_context_graph_finish(struct mica_context_graph *result);

#endif
