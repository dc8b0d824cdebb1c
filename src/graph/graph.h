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
/* No window, stride, dilation or padding may be larger: keeps all window arithmetic far inside 32 bits. */
#define MICA_MAX_WINDOW 65536

/* real = scale * (q - zero_point), per tensor (count 1) or per slice along `axis` (count = dims[axis]). */
struct mica_quantization {
    uint32_t count; /* 0: not quantized */
    const float *scale;
    const int32_t *zero_point;
    int32_t axis;
    /* Set by mica_graph_add_tensor(). */
    float largest_scale;
    bool symmetric; /* every zero point is 0 */
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
    MICA_OP_FULLY_CONNECTED,   /* input of rows of I elements whatever its shape, weights OI, bias [O] or absent */
    MICA_OP_ADD,
    MICA_OP_AVERAGE_POOL_2D,
    MICA_OP_MAX_POOL_2D,
    MICA_OP_RESHAPE, /* also SQUEEZE and the like: the output tensor's shape counts, a shape input is ignored */
    MICA_OP_SOFTMAX,
    MICA_OP_LOGISTIC,
    MICA_OP_CONCATENATION,
    MICA_OP_PAD, /* inputs: data, paddings (constant int32 [rank, 2]), for PADV2 the value (constant, one element) */
    MICA_OP_QUANTIZE, /* float to integer, or between integer quantizations */
    MICA_OP_DEQUANTIZE,
    MICA_OP_RESIZE_BILINEAR,
    MICA_OP_RESIZE_NEAREST,
    MICA_OP_DETECTION_POSTPROCESS,
    MICA_OP_SUB, /* this and the next three: two inputs that broadcast as in ADD */
    MICA_OP_MUL,
    MICA_OP_MAXIMUM,
    MICA_OP_MINIMUM,
    MICA_OP_SQUARED_DIFFERENCE,
    MICA_OP_TRANSPOSE_CONV, /* inputs: output shape (constant), weights OHWI, data NHWC, bias [O] or absent */
    MICA_OP_MEAN,           /* inputs: data, axes (constant); this and the next two */
    MICA_OP_SUM,
    MICA_OP_REDUCE_MAX,
    MICA_OP_SPLIT,     /* input 0: axis (constant), 1: data; `axis` is set. SPLIT_V too, whose data is input 0 */
    MICA_OP_SLICE,     /* data and constants; also STRIDED_SLICE: what it takes is in `slice` */
    MICA_OP_TRANSPOSE, /* data, permutation (constant) */
    MICA_OP_MIRROR_PAD,
    MICA_OP_SPACE_TO_DEPTH,
    MICA_OP_DEPTH_TO_SPACE,
    MICA_OP_RELU, /* this and all below but the last: one value from one */
    MICA_OP_RELU6,
    MICA_OP_RELU_N1_TO_1,
    MICA_OP_RELU_0_TO_1,
    MICA_OP_LEAKY_RELU,
    MICA_OP_TANH,
    MICA_OP_HARD_SWISH,
    MICA_OP_ELU,
    MICA_OP_ABS,
    MICA_OP_NEG,
    MICA_OP_EXP,
    MICA_OP_SQRT,
    MICA_OP_RSQRT,
    MICA_OP_PRELU, /* data, slopes (constant) that broadcast */
    MICA_OP_ARG_MAX,
    MICA_OP_BATCH_MATMUL,
    MICA_OP_PACK,
    MICA_OP_UNPACK,
    MICA_OP_GATHER, /* data, indices (int32 or int64). No rule looks at their values: a kernel must check each */
    MICA_OP_CAST,
    MICA_OP_DIV, /* two inputs that broadcast; FLOOR_DIV too */
    MICA_OP_FLOOR_DIV,
    MICA_OP_GATHER_ND, /* the same; the indices' last dimension counts through the data's first ones */
    MICA_OP_REVERSE,   /* data, axes (constant) */
    MICA_OP_LOG,
    MICA_OP_REDUCE_MIN, /* as REDUCE_MAX */
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
    int32_t kernel_x, kernel_y; /* pooling window; for convolutions set from the weights */
    int32_t stride_x, stride_y;
    int32_t dilation_x, dilation_y;
    struct mica_padding padding;
    enum mica_activation activation;
    int32_t depth_multiplier; /* depthwise only; 0 when added: set from the weights */
};

struct mica_resize {
    bool align_corners, half_pixel_centers;
};

struct mica_detection {
    int32_t max_detections, max_classes_per_detection, detections_per_class, classes;
    float score_threshold, iou_threshold;
    float scale_x, scale_y, scale_w, scale_h;
    bool regular_nms;
};

/* Matrix x or y is stored with rows and columns exchanged. */
struct mica_matmul {
    bool adjoint_x, adjoint_y;
};

/*
 * Of input dimension d, `count[d]` elements are taken: element i of the output is
 * element begin[d] + i * step[d] of the input; steps are not 0 (but may be
 * negative), counts not below 1, and all are inside. The output has the same
 * elements in the same order; only dimensions of 1 may have come or gone.
 */
struct mica_slice {
    int32_t begin[MICA_MAX_RANK], step[MICA_MAX_RANK], count[MICA_MAX_RANK];
};

/* How STRIDED_SLICE says what it takes: bits count from the first element of its parameters. */
struct mica_slice_masks {
    uint32_t begin, end, ellipsis, new_axis, shrink_axis;
    bool offset; /* ends count from the beginnings */
};

struct mica_op {
    enum mica_op_kind kind;
    const char *type; /* "CONV_2D"; for custom operations their own name */
    uint32_t input_count, output_count;
    const int32_t *inputs; /* tensor indices, MICA_NO_TENSOR where an optional one is absent */
    const int32_t *outputs;
    union {
        struct mica_window window;       /* convolutions, pools */
        enum mica_activation activation; /* fully connected, add, sub, mul, div, concatenation */
        float beta;                      /* softmax */
        struct mica_resize resize;
        struct mica_detection detection;
        struct mica_slice slice; /* over the input's dimensions, also those that the output has lost */
        float alpha;             /* leaky relu: slope below zero */
        int32_t block;           /* space to depth and back */
        bool keep_dims;          /* mean, sum, reduce max, reduce min */
        bool mirror_symmetric;   /* mirror pad: the border itself is repeated too */
        struct mica_matmul matmul;
    };
    /* Non-negative. Concatenation, pack, unpack, gather: of the output or data. Split and arg max: set by the rules. */
    int32_t axis;
    uint32_t axes; /* mean, sum, reduce max and min, reverse: bit d stands for dimension d; set by the rules */
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

/* Name of a fused activation as the rules' sentences say it, "RELU6". */
const char *mica_activation_name(enum mica_activation activation);

int mica_graph_create(struct mica_log *log, struct mica_graph **graph);
void mica_graph_destroy(struct mica_graph *graph); /* accepts NULL */

/*
 * Copies `tensor` (name, dims, quantization arrays; not data) into the graph
 * and computes its size; its index is the tensor count before the call. A tensor
 * nothing can use (non-positive dimension, too large, scale not finite and
 * positive, zero point out of its type's range, array lengths that don't fit) is
 * added all the same, with `problem` set; it has no bytes, data or quantization
 * then. A `problem` that the caller knows already is kept; `bytes` next to `data`,
 * if not 0, must be the right size.
 * Pointers to tensors move when a tensor is added.
 */
int mica_graph_add_tensor(struct mica_graph *graph, const struct mica_tensor *tensor, struct mica_log *log);

/* Gives a tensor that no operation uses yet another shape, for formats that leave shapes to be computed. */
int mica_graph_set_shape(struct mica_graph *graph, int32_t tensor, uint32_t rank, const int32_t *dims,
                         struct mica_log *log);

/*
 * Copies `op` into the graph and checks its rules: indices, types, ranks, shapes,
 * quantization. What does not hold sets `problem`; only a tensor index outside
 * the graph or memory that runs out is an error. A `problem` that the caller
 * knows already is kept and the rules are not looked at.
 *
 * Without a problem these hold, whatever the model said: counts of inputs and
 * outputs, presence of required inputs, no output is a constant or also an
 * input, all tensors are usable, shapes agree, window arithmetic fits 32 bits,
 * integer tensors carry the quantization that the operation needs, and every
 * requantization factor is finite, positive and below 2^30. Whether weights are
 * constant is not a rule: look at `data`.
 */
int mica_graph_add_op(struct mica_graph *graph, const struct mica_op *op, struct mica_log *log);

/*
 * The shape that output 0 of `op` must have, from its inputs (indices that
 * exist) and parameters; `op` need not be part of the graph.
 * False when it can't be told (inputs don't fit, reshape, strided slice, unknown type).
 */
bool mica_op_infer_shape(const struct mica_graph *graph, const struct mica_op *op, uint32_t *rank,
                         int32_t dims[MICA_MAX_RANK]);

/* The same for any output; several have splits and unpack. */
bool mica_op_infer_output_shape(const struct mica_graph *graph, const struct mica_op *op, uint32_t output,
                                uint32_t *rank, int32_t dims[MICA_MAX_RANK]);

int mica_graph_set_io(struct mica_graph *graph, const int32_t *inputs, uint32_t input_count, const int32_t *outputs,
                      uint32_t output_count, struct mica_log *log);

/*
 * Checks that values flow in execution order, once all is added: an operation
 * that reads what nobody computed before it, or writes an input, a constant or
 * what another one computes, gets a `problem`; a graph output without a value is an
 * error.
 */
int mica_graph_check_flow(struct mica_graph *graph, struct mica_log *log);

/* Copies a string into the graph's arena; NULL when memory runs out. */
const char *mica_graph_strdup(struct mica_graph *graph, const char *string);

/* Input `i` of `op`, NULL when absent or beyond the count. */
const struct mica_tensor *mica_op_input(const struct mica_graph *graph, const struct mica_op *op, uint32_t i);
const struct mica_tensor *mica_op_output(const struct mica_graph *graph, const struct mica_op *op, uint32_t i);

/* Which input the data are: 0, but for transposed convolutions (2) and SPLIT (1; SPLIT_V, with three inputs: 0). */
uint32_t mica_op_data_input(const struct mica_op *op);

/*
 * Resolves the constants (inputs 1 and above) of SLICE, whose `masks` are NULL, or
 * of STRIDED_SLICE into what is taken of input 0 and the output's shape. Returns NULL, or why that
 * can't be done; `op` need not be part of the graph.
 */
const char *mica_slice_resolve(const struct mica_graph *graph, const struct mica_op *op,
                               const struct mica_slice_masks *masks, struct mica_slice *slice, uint32_t *rank,
                               int32_t dims[MICA_MAX_RANK]);

/* Multiply-accumulates of one execution; 0 for what has none. */
uint64_t mica_op_macs(const struct mica_graph *graph, const struct mica_op *op);

/*
 * Resolves SAME padding the TFLite way: output = ceil(size / stride), the odd
 * column or row goes to the right or bottom. `size` is the input's, `kernel`
 * the undilated window. Returns the padding before; *after gets the rest.
 */
int32_t mica_same_padding(int32_t size, int32_t kernel, int32_t stride, int32_t dilation, int32_t *after);

#endif
