/* SPDX-License-Identifier: MIT */
/* Inside the graph room: what the rules of the operations share. */
#ifndef MICA_GRAPH_CHECK_H
#define MICA_GRAPH_CHECK_H

#include "graph/graph.h"

/* What is done for every pair of an operation's outputs must not take forever. */
#define MICA_MAX_OUTPUTS 1024u

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

/* Values of `a` get into `b` as they are: any type, and if it is quantized, both alike or both not at all. */
bool mica_check_moved(struct mica_check *check, const struct mica_tensor *a, const struct mica_tensor *b);

/*
 * The operation's window makes image `output` of image `input`, all its values are
 * in range; channels are not looked at.
 */
bool mica_check_window(struct mica_check *check, const struct mica_tensor *input, const struct mica_tensor *output);

/* A factor that integers will be multiplied by. */
bool mica_check_factor(struct mica_check *check, double factor);

/* A parameter: a constant int32 tensor of that many elements. */
bool mica_check_constant(struct mica_check *check, const struct mica_tensor *tensor, const char *what,
                         uint64_t elements);

/* One constant integer that names a dimension of `data`, counted from either end. */
bool mica_check_axis(struct mica_check *check, const struct mica_tensor *tensor, const struct mica_tensor *data,
                     int32_t *axis);

/* The same, any number of them: bit d stands for dimension d. */
bool mica_check_axes(struct mica_check *check, const struct mica_tensor *tensor, const struct mica_tensor *data,
                     uint32_t *axes);

bool mica_is_integer(enum mica_type type);   /* uint8 or int8 */
bool mica_is_quantized(enum mica_type type); /* the same and int16 */
uint64_t mica_elements(const struct mica_tensor *tensor);

/* Element `i` of a constant int32 or int64 tensor; false when it is none, or has not so many. */
bool mica_constant_at(const struct mica_tensor *tensor, uint64_t i, int64_t *value);

/* The axes that a constant names, as above; false when one is not an integer constant of the tensor's dimensions. */
bool mica_constant_axes(const struct mica_tensor *tensor, uint32_t rank, uint32_t *axes);

/* Size of dimension `i`, counted from the last one; missing leading dimensions are 1. */
int32_t mica_dim_from_end(const struct mica_tensor *tensor, uint32_t i);

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
bool mica_rule_transpose_conv(struct mica_check *check);
bool mica_rule_matmul(struct mica_check *check);
bool mica_rule_binary(struct mica_check *check); /* ADD and its like */
bool mica_rule_prelu(struct mica_check *check);
bool mica_rule_unary(struct mica_check *check); /* RELU and its like */
bool mica_rule_reduce(struct mica_check *check);
bool mica_rule_arg_max(struct mica_check *check);
bool mica_rule_mirror_pad(struct mica_check *check);
bool mica_rule_slice(struct mica_check *check);
bool mica_rule_split(struct mica_check *check);
bool mica_rule_transpose(struct mica_check *check);
bool mica_rule_block(struct mica_check *check); /* space to depth and back */
bool mica_rule_pack(struct mica_check *check);
bool mica_rule_unpack(struct mica_check *check);
bool mica_rule_gather(struct mica_check *check);
bool mica_rule_gather_nd(struct mica_check *check);
bool mica_rule_reverse(struct mica_check *check);
bool mica_rule_cast(struct mica_check *check);
bool mica_rule_reshape(struct mica_check *check);
bool mica_rule_softmax(struct mica_check *check);
bool mica_rule_logistic(struct mica_check *check);
bool mica_rule_concatenation(struct mica_check *check);
bool mica_rule_pad(struct mica_check *check);
bool mica_rule_quantize(struct mica_check *check);
bool mica_rule_dequantize(struct mica_check *check);
bool mica_rule_resize(struct mica_check *check);
bool mica_rule_detection(struct mica_check *check);

/* infer_move.c: the shapes of what only moves values, or makes few of many; nothing is checked in them. */
bool mica_infer_move(const struct mica_graph *graph, const struct mica_op *op, uint32_t output,
                     int64_t dims[2 * MICA_MAX_RANK], uint32_t *rank);

/*
 * Windows, in 64 bits because nothing is trusted yet. The output size is 0 when
 * the window doesn't fit.
 */
int64_t mica_window_extent(int32_t kernel, int32_t dilation);
int64_t mica_window_output(int64_t size, int64_t extent, int32_t stride, int64_t padding);

#endif
