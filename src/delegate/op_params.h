/* SPDX-License-Identifier: MIT */
#ifndef MICA_DELEGATE_OP_PARAMS_H
#define MICA_DELEGATE_OP_PARAMS_H

#include "delegate/tflite_abi.h"
#include "graph/graph.h"

/* What the graph calls built-in operation `code`; MICA_OP_UNKNOWN for most. */
enum mica_op_kind mica_builtin_kind(int32_t code);

/*
 * Turns a built-in operation's parameter structure (NULL: the model has none)
 * into those of `op`, whose kind, inputs and outputs (indices inside the graph)
 * are set: SAME padding resolved, axes counted from the front. Returns NULL, or
 * why that can't be done.
 */
const char *mica_op_read_params(const struct mica_graph *graph, const void *builtin_data, struct mica_op *op);

#endif
