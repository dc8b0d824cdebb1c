/* SPDX-License-Identifier: MIT */
/* Inside the graph room: what the rules of the operations share. */
#ifndef MICA_GRAPH_CHECK_H
#define MICA_GRAPH_CHECK_H

#include "graph/graph.h"

/* One operation under examination. */
struct mica_check {
    const struct mica_graph *graph;
    struct mica_op *op; /* the graph's own copy: rules set the fields that follow from the tensors */
    char problem[256];  /* the first rule that did not hold, "" while all do */
};

/* Records the problem and returns false, so that a rule can `return mica_reject(...)`. */
bool mica_reject(struct mica_check *check, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Runs the rules of the operation's kind. */
bool mica_check_op(struct mica_check *check);

const struct mica_tensor *mica_check_input(const struct mica_check *check, uint32_t i);
const struct mica_tensor *mica_check_output(const struct mica_check *check, uint32_t i);

/*
 * The building blocks. `what` names the tensor's part in the operation, "weights".
 */
bool mica_check_io(struct mica_check *check, uint32_t required, uint32_t most, uint32_t outputs);
bool mica_check_rank(struct mica_check *check, const struct mica_tensor *tensor, const char *what, uint32_t rank);
bool mica_check_same_shape(struct mica_check *check, const struct mica_tensor *a, const struct mica_tensor *b);
bool mica_check_activation(struct mica_check *check, enum mica_activation activation);

/* uint8, int8 or float32; an integer one with one scale for all. */
bool mica_check_number(struct mica_check *check, const struct mica_tensor *tensor, const char *what);

/* The same for the first input and the output, which have one type. */
bool mica_check_in_out(struct mica_check *check);

/* Input and output have the same quantization: values are moved, not rescaled. */
bool mica_check_same_quantization(struct mica_check *check, const struct mica_tensor *a, const struct mica_tensor *b);

/* A factor that integers will be multiplied by. */
bool mica_check_factor(struct mica_check *check, double factor);

bool mica_is_integer(enum mica_type type); /* uint8 or int8 */
uint64_t mica_elements(const struct mica_tensor *tensor);

/* "1x224x224x3" */
struct mica_shape_text {
    char text[96];
};
struct mica_shape_text mica_shape_text(const struct mica_tensor *tensor);

/* Rules by kind. */
bool mica_rule_conv(struct mica_check *check);
bool mica_rule_depthwise(struct mica_check *check);
bool mica_rule_fully_connected(struct mica_check *check);
bool mica_rule_pool(struct mica_check *check);
bool mica_rule_add(struct mica_check *check);
bool mica_rule_reshape(struct mica_check *check);
bool mica_rule_softmax(struct mica_check *check);
bool mica_rule_logistic(struct mica_check *check);
bool mica_rule_concatenation(struct mica_check *check);
bool mica_rule_pad(struct mica_check *check);
bool mica_rule_quantize(struct mica_check *check);
bool mica_rule_dequantize(struct mica_check *check);
bool mica_rule_resize(struct mica_check *check);
bool mica_rule_detection(struct mica_check *check);

/*
 * Windows, in 64 bits because nothing is trusted yet. The output size is 0 when
 * the window doesn't fit.
 */
int64_t mica_window_extent(int32_t kernel, int32_t dilation);
int64_t mica_window_output(int64_t size, int64_t extent, int32_t stride, int64_t padding);

#endif
