/* SPDX-License-Identifier: MIT */
/*
 * A model as tensors and operations in execution order. Knows no file format
 * and no hardware. Everything the graph owns lives in one arena; constant
 * tensor data is borrowed from whoever built the graph, never copied.
 */
#ifndef MICA_GRAPH_GRAPH_H
#define MICA_GRAPH_GRAPH_H

#include "mica/mica.h"
#include "util/log.h"

/* No tensor may be larger; a graph that asks for more is refused. */
#define MICA_MAX_TENSOR_BYTES ((size_t)1 << 28)
/* "No tensor": an optional input that is absent. */
#define MICA_NO_TENSOR (-1)

/* real = scale * (q - zero_point), per tensor (count 1) or per slice along `axis` (count = dims[axis]). */
struct mica_quantization {
    uint32_t count; /* 0: not quantized */
    const float *scale;
    const int32_t *zero_point;
    int32_t axis;
};

struct mica_tensor {
    const char *name; /* never NULL */
    enum mica_type type;
    uint32_t rank;
    int32_t dims[MICA_MAX_RANK]; /* each >= 1 in a valid graph */
    size_t bytes;                /* element count times element size, set by mica_graph_add_tensor() */
    struct mica_quantization quant;
    const void *data; /* constant value of `bytes` bytes, aligned to its element; NULL: computed or input */
    /* Set when nothing can compute with the tensor (dynamic shape, bad quantization, ...): the reason. NULL: fine. */
    const char *problem;
};

enum mica_op_kind {
    MICA_OP_UNKNOWN,           /* carries a type name, nothing else */
    MICA_OP_CONV_2D,           /* input NHWC, weights OHWI, bias [O] or absent */
    MICA_OP_DEPTHWISE_CONV_2D, /* input NHWC, weights 1HWO, bias [O] or absent */
    MICA_OP_FULLY_CONNECTED,   /* input [..., I], weights OI, bias [O] or absent */
    MICA_OP_ADD,
    MICA_OP_AVERAGE_POOL_2D,
    MICA_OP_MAX_POOL_2D,
    MICA_OP_RESHAPE, /* the output tensor's shape counts, a shape input is ignored */
    MICA_OP_SOFTMAX,
    MICA_OP_LOGISTIC,
    MICA_OP_CONCATENATION,
    MICA_OP_PAD,      /* inputs: data, paddings (constant int32 [rank, 2]) */
    MICA_OP_QUANTIZE, /* float to integer, or between integer quantizations */
    MICA_OP_DEQUANTIZE,
    MICA_OP_RESIZE_BILINEAR,
    MICA_OP_RESIZE_NEAREST,
    MICA_OP_DETECTION_POSTPROCESS,
};

enum mica_activation {
    MICA_ACT_NONE,
    MICA_ACT_RELU,
    MICA_ACT_RELU_N1_TO_1,
    MICA_ACT_RELU6,
};

/* Columns and rows of padding around an image. Always explicit: SAME is resolved when the graph is built. */
struct mica_padding {
    int32_t left, top, right, bottom;
};

/* Convolution, depthwise convolution, pooling: x is a column, y a row. */
struct mica_window {
    int32_t kernel_x, kernel_y; /* pooling window; for convolutions the weights' size, set too */
    int32_t stride_x, stride_y;
    int32_t dilation_x, dilation_y;
    struct mica_padding padding;
    enum mica_activation activation;
    int32_t depth_multiplier; /* depthwise only */
};

struct mica_detection {
    int32_t max_detections, max_classes_per_detection, detections_per_class, classes;
    float score_threshold, iou_threshold;
    float scale_x, scale_y, scale_w, scale_h;
    bool regular_nms;
};

struct mica_op {
    enum mica_op_kind kind;
    const char *type; /* "CONV_2D"; for custom operations their own name */
    uint32_t input_count, output_count;
    const int32_t *inputs; /* tensor indices, MICA_NO_TENSOR where an optional one is absent */
    const int32_t *outputs;
    union {
        struct mica_window window;       /* conv, depthwise, pools */
        enum mica_activation activation; /* fully connected, add, concatenation */
        float beta;                      /* softmax */
        struct {
            bool align_corners, half_pixel_centers;
        } resize;
        struct mica_detection detection;
    };
    int32_t axis; /* concatenation, already non-negative */
    /* Why nothing here can run the operation (malformed, or of an unknown type); NULL: the shape rules hold. */
    const char *problem;
};

struct mica_graph {
    uint32_t tensor_count, op_count, input_count, output_count;
    struct mica_tensor *tensors;
    struct mica_op *ops;
    const int32_t *inputs, *outputs; /* tensor indices */
    struct mica_arena *arena;
};

/* Bytes of one element, 0 for MICA_TYPE_OTHER. */
size_t mica_type_size(enum mica_type type);
const char *mica_type_name(enum mica_type type);

int mica_graph_create(struct mica_log *log, struct mica_graph **graph);
void mica_graph_destroy(struct mica_graph *graph); /* accepts NULL */

/*
 * Copies `tensor` (name, dims, quantization arrays; not data) into the graph
 * and computes its size. A tensor nothing can use (non-positive dimension, too
 * large, scale not finite and positive, zero point out of its type's range,
 * array lengths that don't fit) is added all the same, with `problem` set.
 */
int mica_graph_add_tensor(struct mica_graph *graph, const struct mica_tensor *tensor, struct mica_log *log);

/*
 * Copies `op` into the graph and checks its rules: indices, types, ranks, shapes,
 * quantization. What does not hold sets `problem`; only a tensor index outside
 * the graph or memory that runs out is an error.
 */
int mica_graph_add_op(struct mica_graph *graph, const struct mica_op *op, struct mica_log *log);

int mica_graph_set_io(struct mica_graph *graph, const int32_t *inputs, uint32_t input_count, const int32_t *outputs,
                      uint32_t output_count, struct mica_log *log);

/* Copies a string into the graph's arena; NULL when memory runs out. */
const char *mica_graph_strdup(struct mica_graph *graph, const char *string);

/* Input `i` of `op`, NULL when absent or beyond the count. */
const struct mica_tensor *mica_op_input(const struct mica_graph *graph, const struct mica_op *op, uint32_t i);
const struct mica_tensor *mica_op_output(const struct mica_graph *graph, const struct mica_op *op, uint32_t i);

/* Multiply-accumulates of one execution; 0 for what has none. */
uint64_t mica_op_macs(const struct mica_graph *graph, const struct mica_op *op);

/*
 * Resolves SAME padding the TFLite way: output = ceil(size / stride), the odd
 * column or row goes to the right or bottom. `size` is the input's, `kernel`
 * the undilated window. Returns the padding before; *after gets the rest.
 */
int32_t mica_same_padding(int32_t size, int32_t kernel, int32_t stride, int32_t dilation, int32_t *after);

#endif
