/* SPDX-License-Identifier: MIT */
/* A graph, read from a file, in the test host: the delegate sees it, the CPU kernels run what it leaves. */
#ifndef MICA_TESTS_CLIENTS_HOST_GRAPH_H
#define MICA_TESTS_CLIENTS_HOST_GRAPH_H

#include "graph/graph.h"
#include "host.h"

/* Node i is operation i and tensor i is tensor i. `graph` is borrowed. NULL, and a line on stderr, when it can't be. */
struct host *host_from_graph(const struct mica_graph *graph);

#endif
