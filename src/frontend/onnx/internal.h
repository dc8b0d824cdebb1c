/* SPDX-License-Identifier: MIT */
/* Inside the reader: values by name, nodes, and the way from one to the other. */
#ifndef MICA_FRONTEND_ONNX_INTERNAL_H
#define MICA_FRONTEND_ONNX_INTERNAL_H

#include "frontend/onnx/schema.h"
#include "frontend/onnx/wire.h"
#include "graph/graph.h"

#define ONNX_NONE (-1)
/* What a function returns when a node can't be expressed: reader->problem says why, and the node becomes unknown. */
#define ONNX_REFUSED 1
/* The same, but float operations may do what quantized ones can't. */
#define ONNX_RETRY 2

/* Images are NCHW in ONNX, NHWC in the graph. A value of four dimensions may have tensors of both orders. */
enum onnx_layout {
    ONNX_PLAIN, /* dimensions as in the file */
    ONNX_IMAGE, /* four dimensions, channels last */
};

/* All 8-bit values inside of a graph have one type, int8 or uint8; the same codes but for the sign bit. */
enum onnx_side {
    ONNX_BORDER, /* type as in the file */
    ONNX_INNER,
};

struct onnx_quant {
    uint32_t count; /* 0: none */
    const float *scale;
    const int32_t *zero_point;
    int32_t axis;
    enum mica_type type; /* of the codes */
};

struct onnx_value {
    struct onnx_bytes name;
    enum { ONNX_MISSING, ONNX_INPUT, ONNX_CONSTANT, ONNX_COMPUTED } state;
    enum mica_type type;
    uint32_t rank;
    int32_t dims[MICA_MAX_RANK]; /* in the order of the file; 0: not known */
    const char *problem;         /* why nothing can use it, NULL: fine */
    struct onnx_quant quant;
    struct onnx_bytes constant; /* its tensor message */
    const void *data;           /* of a constant, once decoded: aligned, plain */
    int32_t same;               /* the value it is another name of, or ONNX_NONE */
    int32_t source;             /* it is this quantized value as float; ONNX_NONE: it isn't */
    int32_t tensor[2][2];       /* by layout and side; ONNX_NONE: not made yet */
    int32_t weights;            /* a constant's last tensor in another order, that of `weights_order` */
    const uint8_t *weights_order;
    uint32_t uses;  /* by nodes, and by the model as output */
    int32_t user;   /* the first node that uses it, ONNX_NONE: no node */
    bool is_output; /* of the model */
};

struct onnx_node {
    struct onnx_bytes body, type;
    bool foreign; /* of a domain the reader knows nothing of */
    bool done;    /* it went into another operation */
    uint32_t inputs, outputs;
    const int32_t *in, *out; /* values, ONNX_NONE for an optional one that is absent */
};

struct onnx_reader {
    struct mica_log *log;
    struct mica_graph *graph;
    struct onnx_bytes model; /* the message of the graph */
    size_t budget;           /* bytes that may still be copied */
    int failed;              /* the first allocation that did, also where nobody looked at once */
    int64_t version;         /* of the operator set */
    enum mica_type inner;    /* what 8-bit values are inside */
    struct onnx_value *values;
    uint32_t value_count, value_capacity; /* the capacity has room for one hidden value for each output of a node */
    uint32_t name_count;                  /* values that have names, in the names' order */
    struct onnx_node *nodes;
    uint32_t node_count;
    int32_t *links;         /* what nodes' `in` and `out` point into */
    struct onnx_node *node; /* at hand */
    bool float_only;        /* quantized operations are tried no more */
    char type[48];          /* of the node */
    char problem[200];
};

/* parse.c: from bytes to values and nodes. */
int onnx_parse(struct onnx_reader *reader);
int onnx_damaged(struct onnx_reader *reader, const char *what);
enum mica_type onnx_type_of(uint64_t type);
/* Type, dimensions and message of a constant. */
void onnx_describe_constant(struct onnx_value *value, struct onnx_bytes tensor);
int32_t onnx_value_of_name(const struct onnx_reader *reader, struct onnx_bytes name);

/* constant.c. Values stand for themselves or, in `onnx_resolve()`, for what they are another name of. */
int32_t onnx_resolve(const struct onnx_reader *reader, int32_t value);
/* Takes bytes that are copied off the budget, or fails. */
int onnx_spend(struct onnx_reader *reader, size_t bytes);
/* Memory that lives as long as the graph, taken off the budget; NULL after a message, and *error is set. */
void *onnx_alloc(struct onnx_reader *reader, size_t bytes, int *error);
/* Elements of a value whose shape is known; 0 when it is empty or too large. */
size_t onnx_elements(const struct onnx_value *value);
/* Sets value->data of a constant: 0 or ONNX_REFUSED. */
int onnx_decode(struct onnx_reader *reader, int32_t value);
/* Integers and floats of a constant, at most `most`; *count gets their number. An absent value has none. */
int onnx_integers(struct onnx_reader *reader, int32_t value, int64_t *out, uint32_t most, uint32_t *count);
int onnx_floats(struct onnx_reader *reader, int32_t value, float *out, uint32_t most, uint32_t *count);
/* Element `i` of decoded integers. */
int64_t onnx_integer_at(enum mica_type type, const void *data, size_t i);
/* Scales and zero points (may be absent: then quant->type stays as it is) of something quantized along `axis`. */
int onnx_read_quant(struct onnx_reader *reader, int32_t scale, int32_t zero_point, int64_t axis,
                    struct onnx_quant *quant);
bool onnx_same_quant(const struct onnx_quant *a, const struct onnx_quant *b);
/* The value's quantization is `quant`; ONNX_REFUSED when it has another one already. */
int onnx_adopt_quant(struct onnx_reader *reader, int32_t value, const struct onnx_quant *quant);

/* A value's name as text, as much of it as messages and tensors have. */
struct onnx_text {
    char text[256];
};
struct onnx_text onnx_text(struct onnx_bytes name);

/* fold.c: constants computed from constants. */
/*
 * A constant as a tensor of the graph: its dimension i is dimension order[i] of the file's (NULL: the same), 8-bit
 * quantized ones are of the inner type.
 */
int onnx_constant_tensor(struct onnx_reader *reader, int32_t value, const uint8_t *order, int32_t *tensor);
/* A value that is a quantized constant as float becomes a float constant. */
int onnx_fold_dequantize(struct onnx_reader *reader, int32_t value);
/* The codes of the float constant `from` become the constant `value`. */
int onnx_fold_quantize(struct onnx_reader *reader, int32_t from, int32_t value, const struct onnx_quant *quant);
/* The code of a real number in a quantization of one scale: rounded half to even, as ONNX says, and saturated. */
int32_t onnx_code_of(const struct onnx_quant *quant, float real);
/* New constants. */
int onnx_add_int32(struct onnx_reader *reader, const int32_t *numbers, uint32_t rank, const int32_t *dims,
                   int32_t *tensor);
/* One element: a code of `quant`, or a float where that is NULL. */
int onnx_add_scalar(struct onnx_reader *reader, float real, const struct onnx_quant *quant, int32_t *tensor);

/* attribute.c: attributes of the node at hand; what is absent is the default. */
bool onnx_attribute(const struct onnx_reader *reader, const char *name, struct onnx_bytes *attribute);
int64_t onnx_int(const struct onnx_reader *reader, const char *name, int64_t otherwise);
float onnx_float(const struct onnx_reader *reader, const char *name, float otherwise);
struct onnx_bytes onnx_string(const struct onnx_reader *reader, const char *name, const char *otherwise);
/* False when there are more than `most`; *count is 0 when the attribute is absent. */
bool onnx_ints(const struct onnx_reader *reader, const char *name, int64_t *out, uint32_t most, uint32_t *count);

/* forms.c: the tensors of a value. */
/* A value's tensor of that layout; 8-bit quantized values are of the inner type. Adds what it takes to make it. */
int onnx_tensor(struct onnx_reader *reader, int32_t value, enum onnx_layout layout, int32_t *tensor);
/* The same as in the file: plain, of its own type. */
int onnx_border_tensor(struct onnx_reader *reader, int32_t value, int32_t *tensor);
/* Its plain tensor as in the file, for an input, or what has a problem and nothing else. */
int onnx_add_plain(struct onnx_reader *reader, int32_t value);
/* A tensor with the name of a value, if any, and the quantization, if any. */
int onnx_add_value_tensor(struct onnx_reader *reader, int32_t value, const struct onnx_quant *quant,
                          enum onnx_side side, struct mica_tensor *tensor, int32_t *added);
/* Is it of another 8-bit type inside than in the file? */
bool onnx_has_sides(const struct onnx_reader *reader, const struct onnx_value *value);

/* What an operation's output is to be. */
struct onnx_result {
    int32_t value;       /* gets type, shape and tensor; ONNX_NONE: an intermediate */
    enum mica_type type; /* unless quantized */
    struct onnx_quant quant;
    enum onnx_layout layout;
    const int32_t *dims; /* of `rank`, in the layout's order, where they don't follow from the inputs; else NULL */
    uint32_t rank;
    bool checked;   /* ONNX_RETRY where the graph's rules would not take the operation */
    int32_t tensor; /* gets the tensor */
};

/* emit.c: from values to operations. */
int onnx_refuse(struct onnx_reader *reader, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Is it computed by now, of a known shape? Else ONNX_REFUSED. */
int onnx_usable(struct onnx_reader *reader, int32_t value);
/* An operation with one output, adapted from `op`: its type is the node's where it has none. */
int onnx_emit(struct onnx_reader *reader, const struct mica_op *op, const int32_t *inputs, uint32_t count,
              struct onnx_result *result);
/* The output's tensor of an operation that is about to be added, and what the value is from then on. */
int onnx_add_result(struct onnx_reader *reader, struct onnx_result *result);
void onnx_settle_result(struct onnx_reader *reader, const struct onnx_result *result);
/* The node as something nobody knows. */
int onnx_emit_unknown(struct onnx_reader *reader, const char *problem);
/* IMAGE where a value of four dimensions has that already, else PLAIN. */
enum onnx_layout onnx_preferred(const struct onnx_reader *reader, const int32_t *values, uint32_t count);
/* Where dimension `axis` of the file is in the layout. */
int32_t onnx_place(enum onnx_layout layout, int32_t axis);
extern const uint8_t onnx_image_order[4], onnx_plain_order[4];
/* Another name, or for `source` a quantized value as float. */
void onnx_alias(struct onnx_reader *reader, int32_t value, int32_t of);
int32_t onnx_hidden(struct onnx_reader *reader);

/*
 * What a node computes, whichever way the file says it: on quantized values
 * (QLinear operators; operations between DequantizeLinear and QuantizeLinear) or not.
 */
struct onnx_call {
    bool quantized;
    int32_t in[4]; /* values: the quantized ones, if it is; ONNX_NONE: absent */
    int32_t out;
    struct onnx_quant quant; /* of the output */
    float low, high;         /* between which the real result is kept; infinite where it isn't */
    bool checked;            /* there is another way, should the graph's rules not take this one */
    uint32_t done_count;
    int32_t done[4]; /* nodes that go into this operation */
};

/* call.c */
int onnx_call_plain(struct onnx_reader *reader, uint32_t inputs, struct onnx_call *call);
/*
 * The QLinear form: inputs at `places` of the node, followed by scale and zero point; the output's at `result`.
 * Where the second input has several scales, they run along `axis`.
 */
int onnx_call_qlinear(struct onnx_reader *reader, const uint8_t *places, uint32_t inputs, uint32_t result, int32_t axis,
                      struct onnx_call *call);
/* An operation that moves values: quantized ones stay that, without a QuantizeLinear behind it. */
int onnx_call_moving(struct onnx_reader *reader, uint32_t inputs, struct onnx_call *call);
/* The tensor of input `i`, rescaled to `quant` where it is not that already. */
int onnx_call_rescaled(struct onnx_reader *reader, int32_t value, const struct onnx_quant *quant,
                       enum onnx_layout layout, int32_t *tensor);
/*
 * Emits `op`, limits included. `own`, if not NULL, is the quantization that the operation leaves its output in,
 * which is then rescaled to the call's.
 */
int onnx_call_emit(struct onnx_reader *reader, const struct onnx_call *call, struct mica_op *op, const int32_t *inputs,
                   uint32_t count, struct onnx_result *result, const struct onnx_quant *own);
struct onnx_result onnx_call_result(const struct onnx_reader *reader, const struct onnx_call *call,
                                    enum onnx_layout layout);

/* window.c: strides, dilations and padding of the node's window over `image` (NCHW), of a kernel of rows and columns.
 */
int onnx_window(struct onnx_reader *reader, const int32_t *image, const int32_t kernel[2], bool round_up,
                struct mica_window *window);
/* Zeros around the tensor of an image that is quantized like `like`. */
int onnx_pad_image(struct onnx_reader *reader, const struct mica_padding *padding, const struct onnx_result *like,
                   int32_t *tensor);

/* weights.c: constants that are weights, and what is added to their sums. */
int onnx_weights(struct onnx_reader *reader, int32_t value, const uint8_t *order, int32_t *tensor);
int onnx_bias(struct onnx_reader *reader, const struct onnx_call *call, int32_t bias, int32_t *tensor);

/* One function a kind of node, in the files by subject. `kind` is what the table in nodes.c says. */
typedef int onnx_handler(struct onnx_reader *reader, int kind);
onnx_handler onnx_conv, onnx_qlinear_conv, onnx_conv_transpose, onnx_gemm, onnx_qgemm, onnx_matmul, onnx_qlinear_matmul;
onnx_handler onnx_pool, onnx_global_pool, onnx_qlinear_pool, onnx_qlinear_global_pool;
onnx_handler onnx_binary, onnx_qlinear_binary, onnx_unary, onnx_qlinear_unary, onnx_softmax, onnx_qlinear_softmax;
onnx_handler onnx_clip, onnx_reduce, onnx_arg_max;
onnx_handler onnx_quantize, onnx_dequantize, onnx_identity, onnx_constant, onnx_cast;
onnx_handler onnx_reshape, onnx_transpose, onnx_concat, onnx_qlinear_concat, onnx_slice, onnx_split, onnx_pad;
onnx_handler onnx_resize, onnx_gather, onnx_depth_to_space;

/* nodes.c: adds the operations of a node. */
int onnx_add_node(struct onnx_reader *reader, struct onnx_node *node);

#endif
