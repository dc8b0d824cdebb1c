/* SPDX-License-Identifier: MIT */
/*
 * What the kernels share: the call they get, and small readers of it. Each
 * kind of operation has a check (0, or -ENOTSUP and a reason; everything that
 * memory safety depends on is checked there once more, whatever built the
 * graph) and a run, which may rely on its check.
 */
#ifndef MICA_CPU_KERNELS_H
#define MICA_CPU_KERNELS_H

#include "cpu/cpu.h"

struct mica_cpu_call {
    const struct mica_graph *graph;
    const struct mica_op *op;
    void *const *data;
    enum mica_arithmetic arithmetic;
    struct mica_threads *threads;
    struct mica_log *log;
};

/* Where a check writes why it refuses. */
struct mica_cpu_reason {
    char *text;
    size_t size;
};

typedef int mica_cpu_check(const struct mica_graph *graph, const struct mica_op *op, struct mica_cpu_reason *reason);
typedef int mica_cpu_kernel(const struct mica_cpu_call *call);

mica_cpu_check mica_cpu_check_conv, mica_cpu_check_depthwise, mica_cpu_check_fully_connected, mica_cpu_check_arith,
    mica_cpu_check_pool, mica_cpu_check_reshape, mica_cpu_check_softmax, mica_cpu_check_concatenation,
    mica_cpu_check_pad, mica_cpu_check_quantize, mica_cpu_check_dequantize, mica_cpu_check_resize,
    mica_cpu_check_postprocess, mica_cpu_check_unary, mica_cpu_check_prelu, mica_cpu_check_reduce,
    mica_cpu_check_arg_max, mica_cpu_check_slice, mica_cpu_check_transpose, mica_cpu_check_reverse,
    mica_cpu_check_split, mica_cpu_check_pack, mica_cpu_check_unpack, mica_cpu_check_blocks, mica_cpu_check_mirror_pad,
    mica_cpu_check_gather, mica_cpu_check_gather_nd, mica_cpu_check_cast, mica_cpu_check_transpose_conv,
    mica_cpu_check_matmul;

mica_cpu_kernel mica_cpu_conv, mica_cpu_depthwise, mica_cpu_fully_connected, mica_cpu_arith, mica_cpu_average_pool,
    mica_cpu_max_pool, mica_cpu_reshape, mica_cpu_softmax, mica_cpu_concatenation, mica_cpu_pad, mica_cpu_quantize,
    mica_cpu_dequantize, mica_cpu_resize_bilinear, mica_cpu_resize_nearest, mica_cpu_postprocess, mica_cpu_unary,
    mica_cpu_prelu, mica_cpu_reduce, mica_cpu_arg_max, mica_cpu_slice, mica_cpu_transpose, mica_cpu_reverse,
    mica_cpu_split, mica_cpu_pack, mica_cpu_unpack, mica_cpu_blocks, mica_cpu_mirror_pad, mica_cpu_gather,
    mica_cpu_gather_nd, mica_cpu_cast, mica_cpu_transpose_conv, mica_cpu_matmul;

/* Writes the reason and returns -ENOTSUP. */
int mica_cpu_refuse(struct mica_cpu_reason *reason, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* -ENOTSUP unless the operation has inputs [0, inputs) and outputs [0, outputs), all usable. */
int mica_cpu_check_operands(const struct mica_graph *graph, const struct mica_op *op, uint32_t inputs, uint32_t outputs,
                            struct mica_cpu_reason *reason);

/*
 * Input, weights, optional bias and output of a convolution or a fully connected
 * layer have types that go together: all float32; uint8 with int32 bias, per
 * tensor; int8 with int32 bias, weights per tensor or per channel of
 * `channel_axis`; int16 with int64 bias, int8 weights of either kind. The bias
 * must have one value a channel.
 */
int mica_cpu_check_weighted(const struct mica_graph *graph, const struct mica_op *op, int32_t channels,
                            int32_t channel_axis, struct mica_cpu_reason *reason);

/* The usual: `tensor` is float32, or uint8 or int8 quantized per tensor. */
int mica_cpu_check_value(const struct mica_tensor *tensor, const char *what, struct mica_cpu_reason *reason);

/* The activation is one of the four that exist. */
int mica_cpu_check_activation(enum mica_activation activation, struct mica_cpu_reason *reason);

static inline bool mica_cpu_is_8bit(const struct mica_tensor *tensor)
{
    return tensor->type == MICA_TYPE_UINT8 || tensor->type == MICA_TYPE_INT8;
}

static inline bool mica_cpu_per_tensor(const struct mica_tensor *tensor)
{
    return tensor->quant.count == 1;
}

static inline bool mica_cpu_same_shape(const struct mica_tensor *a, const struct mica_tensor *b)
{
    bool same = a->rank == b->rank;
    for (uint32_t i = 0; same && i < a->rank; i++)
        same = a->dims[i] == b->dims[i];
    return same;
}

static inline size_t mica_cpu_elements(const struct mica_tensor *tensor)
{
    size_t size = mica_type_size(tensor->type);
    return size ? tensor->bytes / size : 0;
}

static inline bool mica_cpu_same_quantization(const struct mica_tensor *a, const struct mica_tensor *b)
{
    return mica_cpu_per_tensor(a) && mica_cpu_per_tensor(b) && a->quant.scale[0] == b->quant.scale[0] &&
           a->quant.zero_point[0] == b->quant.zero_point[0];
}

/* What to combine (exclusive or) a stored byte with to get its value in the unsigned domain: int8 is read as +128. */
static inline uint8_t mica_cpu_flip(const struct mica_tensor *tensor)
{
    return tensor->type == MICA_TYPE_INT8 ? 0x80 : 0;
}

/* The zero point in the unsigned domain. */
static inline int32_t mica_cpu_zero_point(const struct mica_tensor *tensor)
{
    return tensor->quant.zero_point[0] + (tensor->type == MICA_TYPE_INT8 ? 128 : 0);
}

/* Where the bias of a weighted operation is. */
static inline uint32_t mica_cpu_bias_input(const struct mica_op *op)
{
    return mica_op_data_input(op) == 2 ? 3 : 2;
}

static inline const struct mica_tensor *mica_cpu_input(const struct mica_cpu_call *call, uint32_t i)
{
    return mica_op_input(call->graph, call->op, i);
}

static inline const struct mica_tensor *mica_cpu_output(const struct mica_cpu_call *call, uint32_t i)
{
    return mica_op_output(call->graph, call->op, i);
}

/* Value of input `i`, NULL when absent. */
static inline const void *mica_cpu_input_data(const struct mica_cpu_call *call, uint32_t i)
{
    bool there = i < call->op->input_count && call->op->inputs[i] != MICA_NO_TENSOR;
    return there ? call->data[call->op->inputs[i]] : NULL;
}

static inline void *mica_cpu_output_data(const struct mica_cpu_call *call, uint32_t i)
{
    return call->data[call->op->outputs[i]];
}

#endif
