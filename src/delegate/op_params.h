/* SPDX-License-Identifier: MIT */
#ifndef MICA_DELEGATE_OP_PARAMS_H
#define MICA_DELEGATE_OP_PARAMS_H

#include "delegate/tflite_abi.h"
#include "graph/graph.h"

/* What the graph calls built-in operation `code`; MICA_OP_UNKNOWN for most. */
enum mica_op_kind mica_builtin_kind(int32_t code);

/*
 * Turns the parameter structure of built-in operation `code` (NULL: the model has
 * none) into kind and parameters of `op`, whose inputs and outputs (indices
 * inside the graph) are set: SAME padding resolved, axes counted from the front.
 * `version` is that of the operation: fields that it does not have are not read,
 * since older hosts' structures end before them. Returns NULL, or why that can't be done.
 */
const char *mica_op_read_params(const struct mica_graph *graph, int32_t code, int version, const void *builtin_data,
                                struct mica_op *op);

#endif
