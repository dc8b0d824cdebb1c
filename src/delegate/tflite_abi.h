/* SPDX-License-Identifier: MIT */
/*
 * The part of TensorFlow Lite's C interface that an external delegate touches,
 * declared anew: no distribution packages the headers. Names are ours; layouts
 * are facts, pinned below. They hold for every runtime since 2.5 (fields and
 * enumeration values are only ever appended) and were verified by running in
 * tflite-runtime 2.14.0 and LiteRT 2.3.0.
 *
 * Objects of these types come from the host: a pointer to one is valid, but
 * every number and inner pointer describes a model that nobody has verified.
 */
#ifndef MICA_DELEGATE_TFLITE_ABI_H
#define MICA_DELEGATE_TFLITE_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tfl_status {
    TFL_OK = 0,
    TFL_ERROR = 1,
};

enum tfl_type {
    TFL_TYPE_FLOAT32 = 1,
    TFL_TYPE_INT32 = 2,
    TFL_TYPE_UINT8 = 3,
    TFL_TYPE_INT64 = 4,
    TFL_TYPE_BOOL = 6,
    TFL_TYPE_INT16 = 7,
    TFL_TYPE_INT8 = 9,
};

enum tfl_allocation {
    TFL_ALLOCATION_MMAP_RO = 1, /* constant, for as long as the interpreter lives */
    TFL_ALLOCATION_DYNAMIC = 4, /* size known only while running */
};

enum { TFL_QUANTIZATION_AFFINE = 1 };
enum { TFL_OPTIONAL_TENSOR = -1 };

struct tfl_int_array {
    int size;
    int data[];
};

struct tfl_float_array {
    int size;
    float data[];
};

struct tfl_affine_quantization {
    struct tfl_float_array *scale;
    struct tfl_int_array *zero_point;
    int32_t quantized_dimension;
};

struct tfl_tensor {
    int type; /* enum tfl_type */
    void *data;
    struct tfl_int_array *dims;
    struct {
        float scale;
        int32_t zero_point;
    } params;            /* older form of `quantization`, per tensor only */
    int allocation_type; /* enum tfl_allocation */
    size_t bytes;
    const void *allocation;
    const char *name;
    struct tfl_delegate *delegate;
    int buffer_handle;
    bool data_is_stale;
    bool is_variable;
    struct {
        int type;
        void *params; /* struct tfl_affine_quantization for TFL_QUANTIZATION_AFFINE */
    } quantization;
    void *sparsity;
    const struct tfl_int_array *dims_signature;
};

struct tfl_node {
    struct tfl_int_array *inputs, *outputs, *intermediates, *temporaries;
    void *user_data;    /* what init() returned */
    void *builtin_data; /* parameters of a built-in operation */
    const void *custom_initial_data;
    int custom_initial_data_size;
    struct tfl_delegate *delegate; /* owner of a delegate's node */
    bool might_have_side_effect;
};

struct tfl_context;

struct tfl_registration {
    void *(*init)(struct tfl_context *context, const char *buffer, size_t length);
    void (*free)(struct tfl_context *context, void *user_data);
    int (*prepare)(struct tfl_context *context, struct tfl_node *node);
    int (*invoke)(struct tfl_context *context, struct tfl_node *node);
    const char *(*profiling_string)(const struct tfl_context *context, const struct tfl_node *node);
    int32_t builtin_code;
    const char *custom_name;
    int version;
    void *registration_external;
    void *async_kernel;
    uint64_t inplace_operator;
};

/* What init() of a delegate's kernel gets as its buffer. */
struct tfl_delegate_params {
    struct tfl_delegate *delegate;
    struct tfl_int_array *nodes_to_replace, *input_tensors, *output_tensors;
};

struct tfl_context {
    size_t tensors_size;
    /* The plan belongs to the host and lives until the next call. */
    int (*GetExecutionPlan)(struct tfl_context *context, struct tfl_int_array **plan);
    struct tfl_tensor *tensors;
    void *impl;
    void *ResizeTensor;
    void (*ReportError)(struct tfl_context *context, const char *format, ...);
    void *AddTensors;
    int (*GetNodeAndRegistration)(struct tfl_context *context, int node, struct tfl_node **node_out,
                                  struct tfl_registration **registration);
    int (*ReplaceNodeSubsetsWithDelegateKernels)(struct tfl_context *context, struct tfl_registration registration,
                                                 const struct tfl_int_array *nodes, struct tfl_delegate *delegate);
    int recommended_num_threads;
    void *GetExternalContext, *SetExternalContext;
    bool allow_fp32_relax_to_fp16;
    void *profiler;
    void *AllocatePersistentBuffer, *AllocateBufferForEval, *RequestScratchBufferInArena, *GetScratchBuffer;
    void *ResizeTensorExplicit;
    void *PreviewDelegatePartitioning;
    struct tfl_tensor *(*GetTensor)(const struct tfl_context *context, int index);
    void *GetEvalTensor, *GetModelMetadata, *AcquireSubgraphContext, *ReleaseSubgraphContext;
};

struct tfl_delegate {
    void *data; /* ours */
    int (*Prepare)(struct tfl_context *context, struct tfl_delegate *delegate);
    void *CopyFromBufferHandle, *CopyToBufferHandle, *FreeBufferHandle; /* NULL: tensors stay in host memory */
    int64_t flags;                                                      /* 0: static shapes only */
    void *opaque_delegate_builder;
};

/* ---- parameters of built-in operations (fields that later versions append are left out) ---- */

enum tfl_builtin {
    TFL_BUILTIN_ADD = 0,
    TFL_BUILTIN_AVERAGE_POOL_2D = 1,
    TFL_BUILTIN_CONCATENATION = 2,
    TFL_BUILTIN_CONV_2D = 3,
    TFL_BUILTIN_DEPTHWISE_CONV_2D = 4,
    TFL_BUILTIN_DEPTH_TO_SPACE = 5,
    TFL_BUILTIN_DEQUANTIZE = 6,
    TFL_BUILTIN_FULLY_CONNECTED = 9,
    TFL_BUILTIN_LOGISTIC = 14,
    TFL_BUILTIN_MAX_POOL_2D = 17,
    TFL_BUILTIN_MUL = 18,
    TFL_BUILTIN_RELU = 19,
    TFL_BUILTIN_RELU_N1_TO_1 = 20,
    TFL_BUILTIN_RELU6 = 21,
    TFL_BUILTIN_RESHAPE = 22,
    TFL_BUILTIN_RESIZE_BILINEAR = 23,
    TFL_BUILTIN_SOFTMAX = 25,
    TFL_BUILTIN_SPACE_TO_DEPTH = 26,
    TFL_BUILTIN_TANH = 28,
    TFL_BUILTIN_CUSTOM = 32,
    TFL_BUILTIN_PAD = 34,
    TFL_BUILTIN_GATHER = 36,
    TFL_BUILTIN_TRANSPOSE = 39,
    TFL_BUILTIN_MEAN = 40,
    TFL_BUILTIN_SUB = 41,
    TFL_BUILTIN_DIV = 42,
    TFL_BUILTIN_SQUEEZE = 43,
    TFL_BUILTIN_STRIDED_SLICE = 45,
    TFL_BUILTIN_EXP = 47,
    TFL_BUILTIN_SPLIT = 49,
    TFL_BUILTIN_DELEGATE = 51,
    TFL_BUILTIN_CAST = 53,
    TFL_BUILTIN_PRELU = 54,
    TFL_BUILTIN_MAXIMUM = 55,
    TFL_BUILTIN_ARG_MAX = 56,
    TFL_BUILTIN_MINIMUM = 57,
    TFL_BUILTIN_NEG = 59,
    TFL_BUILTIN_PADV2 = 60,
    TFL_BUILTIN_SLICE = 65,
    TFL_BUILTIN_TRANSPOSE_CONV = 67,
    TFL_BUILTIN_EXPAND_DIMS = 70,
    TFL_BUILTIN_LOG = 73,
    TFL_BUILTIN_SUM = 74,
    TFL_BUILTIN_SQRT = 75,
    TFL_BUILTIN_RSQRT = 76,
    TFL_BUILTIN_REDUCE_MAX = 82,
    TFL_BUILTIN_PACK = 83,
    TFL_BUILTIN_UNPACK = 88,
    TFL_BUILTIN_REDUCE_MIN = 89,
    TFL_BUILTIN_FLOOR_DIV = 90,
    TFL_BUILTIN_RESIZE_NEAREST_NEIGHBOR = 97,
    TFL_BUILTIN_LEAKY_RELU = 98,
    TFL_BUILTIN_SQUARED_DIFFERENCE = 99,
    TFL_BUILTIN_MIRROR_PAD = 100,
    TFL_BUILTIN_ABS = 101,
    TFL_BUILTIN_SPLIT_V = 102,
    TFL_BUILTIN_REVERSE_V2 = 105,
    TFL_BUILTIN_GATHER_ND = 107,
    TFL_BUILTIN_ELU = 111,
    TFL_BUILTIN_QUANTIZE = 114,
    TFL_BUILTIN_HARD_SWISH = 117,
    TFL_BUILTIN_BATCH_MATMUL = 126,
    TFL_BUILTIN_RELU_0_TO_1 = 152,
};

enum tfl_padding {
    TFL_PADDING_SAME = 1,
    TFL_PADDING_VALID = 2,
};

enum tfl_activation {
    TFL_ACT_NONE = 0,
    TFL_ACT_RELU = 1,
    TFL_ACT_RELU_N1_TO_1 = 2,
    TFL_ACT_RELU6 = 3,
};

struct tfl_conv_params {
    int padding, stride_width, stride_height, activation;
    int dilation_width, dilation_height;
};

struct tfl_depthwise_params {
    int padding, stride_width, stride_height;
    int depth_multiplier;
    int activation;
    int dilation_width, dilation_height;
};

struct tfl_pool_params {
    int padding, stride_width, stride_height, filter_width, filter_height, activation;
};

struct tfl_fully_connected_params {
    int activation;
    int weights_format; /* 0: rows of inputs, one for each output */
    bool keep_num_dims;
};

/* Also of SUB, MUL and DIV. */
struct tfl_add_params {
    int activation;
};

struct tfl_transpose_conv_params {
    int padding, stride_width, stride_height;
    int activation; /* of operation version 4 and above only */
};

/* MEAN, SUM, REDUCE_MAX */
struct tfl_reducer_params {
    bool keep_dims;
};

struct tfl_strided_slice_params {
    int begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask;
    bool offset; /* of operation version 8 and above only */
};

enum tfl_mirror {
    TFL_MIRROR_REFLECT = 1,
    TFL_MIRROR_SYMMETRIC = 2,
};

struct tfl_mirror_pad_params {
    int mode; /* enum tfl_mirror */
};

/* SPACE_TO_DEPTH, DEPTH_TO_SPACE */
struct tfl_block_params {
    int block_size;
};

struct tfl_leaky_relu_params {
    float alpha;
};

struct tfl_batch_matmul_params {
    bool adj_x, adj_y;
};

struct tfl_pack_params {
    int values_count, axis;
};

struct tfl_unpack_params {
    int num, axis;
};

struct tfl_gather_params {
    int axis, batch_dims;
};

struct tfl_concatenation_params {
    int axis, activation;
};

struct tfl_softmax_params {
    float beta;
};

struct tfl_resize_params {
    bool align_corners, half_pixel_centers;
};

#define TFL_AT(type, field, offset) _Static_assert(offsetof(struct type, field) == (offset), #type "." #field)
#define TFL_SIZE(type, size) _Static_assert(sizeof(struct type) == (size), "size of " #type)

TFL_SIZE(tfl_context, 200);
TFL_AT(tfl_context, tensors_size, 0);
TFL_AT(tfl_context, GetExecutionPlan, 8);
TFL_AT(tfl_context, tensors, 16);
TFL_AT(tfl_context, ResizeTensor, 32);
TFL_AT(tfl_context, ReportError, 40);
TFL_AT(tfl_context, AddTensors, 48);
TFL_AT(tfl_context, GetNodeAndRegistration, 56);
TFL_AT(tfl_context, ReplaceNodeSubsetsWithDelegateKernels, 64);
TFL_AT(tfl_context, recommended_num_threads, 72);
TFL_AT(tfl_context, profiler, 104);
TFL_AT(tfl_context, PreviewDelegatePartitioning, 152);
TFL_AT(tfl_context, GetTensor, 160);
TFL_SIZE(tfl_delegate, 56);
TFL_AT(tfl_delegate, Prepare, 8);
TFL_AT(tfl_delegate, flags, 40);
TFL_SIZE(tfl_registration, 88);
TFL_AT(tfl_registration, invoke, 24);
TFL_AT(tfl_registration, profiling_string, 32);
TFL_AT(tfl_registration, builtin_code, 40);
TFL_AT(tfl_registration, custom_name, 48);
TFL_AT(tfl_registration, version, 56);
TFL_SIZE(tfl_node, 80);
TFL_AT(tfl_node, outputs, 8);
TFL_AT(tfl_node, temporaries, 24);
TFL_AT(tfl_node, user_data, 32);
TFL_AT(tfl_node, builtin_data, 40);
TFL_AT(tfl_node, delegate, 64);
TFL_SIZE(tfl_tensor, 112);
TFL_AT(tfl_tensor, data, 8);
TFL_AT(tfl_tensor, dims, 16);
TFL_AT(tfl_tensor, params, 24);
TFL_AT(tfl_tensor, allocation_type, 32);
TFL_AT(tfl_tensor, bytes, 40);
TFL_AT(tfl_tensor, name, 56);
TFL_AT(tfl_tensor, delegate, 64);
TFL_AT(tfl_tensor, buffer_handle, 72);
TFL_AT(tfl_tensor, data_is_stale, 76);
TFL_AT(tfl_tensor, is_variable, 77);
TFL_AT(tfl_tensor, quantization, 80);
TFL_AT(tfl_tensor, sparsity, 96);
TFL_AT(tfl_tensor, dims_signature, 104);
TFL_SIZE(tfl_delegate_params, 32);
TFL_SIZE(tfl_affine_quantization, 24);
TFL_SIZE(tfl_conv_params, 24);
TFL_AT(tfl_conv_params, activation, 12);
TFL_SIZE(tfl_depthwise_params, 28);
TFL_AT(tfl_depthwise_params, activation, 16);
TFL_SIZE(tfl_pool_params, 24);
TFL_AT(tfl_pool_params, activation, 20);
TFL_SIZE(tfl_transpose_conv_params, 16);
TFL_AT(tfl_transpose_conv_params, activation, 12);
TFL_SIZE(tfl_reducer_params, 1);
TFL_SIZE(tfl_strided_slice_params, 24);
TFL_AT(tfl_strided_slice_params, shrink_axis_mask, 16);
TFL_AT(tfl_strided_slice_params, offset, 20);
TFL_SIZE(tfl_mirror_pad_params, 4);
TFL_SIZE(tfl_block_params, 4);
TFL_SIZE(tfl_leaky_relu_params, 4);
TFL_SIZE(tfl_batch_matmul_params, 2);
TFL_AT(tfl_batch_matmul_params, adj_y, 1);
TFL_AT(tfl_pack_params, axis, 4);
TFL_AT(tfl_unpack_params, axis, 4);
TFL_AT(tfl_gather_params, batch_dims, 4);

#undef TFL_AT
#undef TFL_SIZE

#endif
