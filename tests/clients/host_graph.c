/* SPDX-License-Identifier: MIT */
#include "host_graph.h"

#include <stdio.h>
#include <stdlib.h>

#include "cpu/cpu.h"

static int to_tfl_type(enum mica_type type)
{
    static const int types[] = {
        [MICA_TYPE_FLOAT32] = TFL_TYPE_FLOAT32, [MICA_TYPE_INT32] = TFL_TYPE_INT32, [MICA_TYPE_UINT8] = TFL_TYPE_UINT8,
        [MICA_TYPE_INT8] = TFL_TYPE_INT8,       [MICA_TYPE_INT16] = TFL_TYPE_INT16, [MICA_TYPE_INT64] = TFL_TYPE_INT64,
        [MICA_TYPE_BOOL] = TFL_TYPE_BOOL,
    };
    return types[type]; /* 0, "no type", for the rest */
}

static int to_builtin(const struct mica_op *op)
{
    static const int codes[] = {
        [MICA_OP_UNKNOWN] = TFL_BUILTIN_CUSTOM,
        [MICA_OP_CONV_2D] = TFL_BUILTIN_CONV_2D,
        [MICA_OP_DEPTHWISE_CONV_2D] = TFL_BUILTIN_DEPTHWISE_CONV_2D,
        [MICA_OP_FULLY_CONNECTED] = TFL_BUILTIN_FULLY_CONNECTED,
        [MICA_OP_ADD] = TFL_BUILTIN_ADD,
        [MICA_OP_AVERAGE_POOL_2D] = TFL_BUILTIN_AVERAGE_POOL_2D,
        [MICA_OP_MAX_POOL_2D] = TFL_BUILTIN_MAX_POOL_2D,
        [MICA_OP_RESHAPE] = TFL_BUILTIN_RESHAPE,
        [MICA_OP_SOFTMAX] = TFL_BUILTIN_SOFTMAX,
        [MICA_OP_LOGISTIC] = TFL_BUILTIN_LOGISTIC,
        [MICA_OP_CONCATENATION] = TFL_BUILTIN_CONCATENATION,
        [MICA_OP_PAD] = TFL_BUILTIN_PAD,
        [MICA_OP_QUANTIZE] = TFL_BUILTIN_QUANTIZE,
        [MICA_OP_DEQUANTIZE] = TFL_BUILTIN_DEQUANTIZE,
        [MICA_OP_RESIZE_BILINEAR] = TFL_BUILTIN_RESIZE_BILINEAR,
        [MICA_OP_RESIZE_NEAREST] = TFL_BUILTIN_RESIZE_NEAREST_NEIGHBOR,
        [MICA_OP_DETECTION_POSTPROCESS] = TFL_BUILTIN_CUSTOM,
        [MICA_OP_SUB] = TFL_BUILTIN_SUB,
        [MICA_OP_MUL] = TFL_BUILTIN_MUL,
        [MICA_OP_MAXIMUM] = TFL_BUILTIN_MAXIMUM,
        [MICA_OP_MINIMUM] = TFL_BUILTIN_MINIMUM,
        [MICA_OP_SQUARED_DIFFERENCE] = TFL_BUILTIN_SQUARED_DIFFERENCE,
        [MICA_OP_TRANSPOSE_CONV] = TFL_BUILTIN_TRANSPOSE_CONV,
        [MICA_OP_MEAN] = TFL_BUILTIN_MEAN,
        [MICA_OP_SUM] = TFL_BUILTIN_SUM,
        [MICA_OP_REDUCE_MAX] = TFL_BUILTIN_REDUCE_MAX,
        [MICA_OP_SPLIT] = TFL_BUILTIN_SPLIT,
        [MICA_OP_SLICE] = TFL_BUILTIN_SLICE,
        [MICA_OP_TRANSPOSE] = TFL_BUILTIN_TRANSPOSE,
        [MICA_OP_MIRROR_PAD] = TFL_BUILTIN_MIRROR_PAD,
        [MICA_OP_SPACE_TO_DEPTH] = TFL_BUILTIN_SPACE_TO_DEPTH,
        [MICA_OP_DEPTH_TO_SPACE] = TFL_BUILTIN_DEPTH_TO_SPACE,
        [MICA_OP_RELU] = TFL_BUILTIN_RELU,
        [MICA_OP_RELU6] = TFL_BUILTIN_RELU6,
        [MICA_OP_RELU_N1_TO_1] = TFL_BUILTIN_RELU_N1_TO_1,
        [MICA_OP_RELU_0_TO_1] = TFL_BUILTIN_RELU_0_TO_1,
        [MICA_OP_LEAKY_RELU] = TFL_BUILTIN_LEAKY_RELU,
        [MICA_OP_TANH] = TFL_BUILTIN_TANH,
        [MICA_OP_HARD_SWISH] = TFL_BUILTIN_HARD_SWISH,
        [MICA_OP_ELU] = TFL_BUILTIN_ELU,
        [MICA_OP_ABS] = TFL_BUILTIN_ABS,
        [MICA_OP_NEG] = TFL_BUILTIN_NEG,
        [MICA_OP_EXP] = TFL_BUILTIN_EXP,
        [MICA_OP_SQRT] = TFL_BUILTIN_SQRT,
        [MICA_OP_RSQRT] = TFL_BUILTIN_RSQRT,
        [MICA_OP_PRELU] = TFL_BUILTIN_PRELU,
        [MICA_OP_ARG_MAX] = TFL_BUILTIN_ARG_MAX,
        [MICA_OP_BATCH_MATMUL] = TFL_BUILTIN_BATCH_MATMUL,
        [MICA_OP_PACK] = TFL_BUILTIN_PACK,
        [MICA_OP_UNPACK] = TFL_BUILTIN_UNPACK,
        [MICA_OP_GATHER] = TFL_BUILTIN_GATHER,
        [MICA_OP_CAST] = TFL_BUILTIN_CAST,
        [MICA_OP_DIV] = TFL_BUILTIN_DIV,
        [MICA_OP_FLOOR_DIV] = TFL_BUILTIN_FLOOR_DIV,
        [MICA_OP_GATHER_ND] = TFL_BUILTIN_GATHER_ND,
        [MICA_OP_REVERSE] = TFL_BUILTIN_REVERSE_V2,
        [MICA_OP_LOG] = TFL_BUILTIN_LOG,
    };
    if (op->kind == MICA_OP_SPLIT && op->input_count == 3)
        return TFL_BUILTIN_SPLIT_V;
    if (op->kind == MICA_OP_PAD && op->input_count == 3)
        return TFL_BUILTIN_PADV2;
    if (op->kind == MICA_OP_SLICE) /* STRIDED_SLICE's masks are lost: a node nobody knows stands for it */
        return op->input_count == 3 ? TFL_BUILTIN_SLICE : TFL_BUILTIN_CUSTOM;
    return codes[op->kind];
}

/* Files know only SAME and VALID, so any padding at all was SAME. */
static int to_padding(const struct mica_padding *padding)
{
    bool any = padding->left || padding->top || padding->right || padding->bottom;
    return any ? TFL_PADDING_SAME : TFL_PADDING_VALID;
}

static int add(struct host *host, const struct mica_op *op, const void *params, size_t size)
{
    int node = host_add_node(host, to_builtin(op), params, size, (int)op->input_count, op->inputs,
                             (int)op->output_count, op->outputs);
    host->registrations[node].custom_name = op->type;
    host->registrations[node].version = 4; /* has all fields that are set here */
    return node;
}

static void add_window(struct host *host, const struct mica_op *op)
{
    const struct mica_window *w = &op->window;
    const int padding = to_padding(&w->padding);
    const struct tfl_conv_params conv = {padding,       w->stride_x,   w->stride_y,
                                         w->activation, w->dilation_x, w->dilation_y};
    const struct tfl_depthwise_params depthwise = {padding,       w->stride_x,   w->stride_y,  w->depth_multiplier,
                                                   w->activation, w->dilation_x, w->dilation_y};
    const struct tfl_transpose_conv_params transposed = {padding, w->stride_x, w->stride_y, w->activation};
    const struct tfl_pool_params pool = {padding, w->stride_x, w->stride_y, w->kernel_x, w->kernel_y, w->activation};
    if (op->kind == MICA_OP_CONV_2D)
        add(host, op, &conv, sizeof conv);
    else if (op->kind == MICA_OP_DEPTHWISE_CONV_2D)
        add(host, op, &depthwise, sizeof depthwise);
    else if (op->kind == MICA_OP_TRANSPOSE_CONV)
        add(host, op, &transposed, sizeof transposed);
    else
        add(host, op, &pool, sizeof pool);
}

/* What came after the first operations; false for those without parameters. */
static bool add_later(struct host *host, const struct mica_op *op)
{
    const struct tfl_reducer_params reducer = {op->keep_dims};
    const struct tfl_block_params block = {op->block};
    const struct tfl_leaky_relu_params leaky = {op->alpha};
    const struct tfl_mirror_pad_params mirror = {op->mirror_symmetric ? TFL_MIRROR_SYMMETRIC : TFL_MIRROR_REFLECT};
    const struct tfl_batch_matmul_params matmul = {op->matmul.adjoint_x, op->matmul.adjoint_y};
    const struct tfl_pack_params pack = {(int)op->input_count, op->axis};
    const struct tfl_unpack_params unpack = {(int)op->output_count, op->axis};
    const struct tfl_gather_params gather = {op->axis, 0};
    switch (op->kind) {
    case MICA_OP_MEAN:
    case MICA_OP_SUM:
    case MICA_OP_REDUCE_MAX:
        return add(host, op, &reducer, sizeof reducer) >= 0;
    case MICA_OP_SPACE_TO_DEPTH:
    case MICA_OP_DEPTH_TO_SPACE:
        return add(host, op, &block, sizeof block) >= 0;
    case MICA_OP_LEAKY_RELU:
        return add(host, op, &leaky, sizeof leaky) >= 0;
    case MICA_OP_MIRROR_PAD:
        return add(host, op, &mirror, sizeof mirror) >= 0;
    case MICA_OP_BATCH_MATMUL:
        return add(host, op, &matmul, sizeof matmul) >= 0;
    case MICA_OP_PACK:
        return add(host, op, &pack, sizeof pack) >= 0;
    case MICA_OP_UNPACK:
        return add(host, op, &unpack, sizeof unpack) >= 0;
    case MICA_OP_GATHER:
        return add(host, op, &gather, sizeof gather) >= 0;
    default:
        return false;
    }
}

static void add_op(struct host *host, const struct mica_op *op)
{
    const struct tfl_fully_connected_params dense = {.activation = op->activation};
    const struct tfl_add_params sum = {op->activation};
    const struct tfl_concatenation_params concatenation = {op->axis, op->activation};
    const struct tfl_softmax_params softmax = {op->beta};
    const struct tfl_resize_params resize = {op->resize.align_corners, op->resize.half_pixel_centers};
    switch (op->kind) {
    case MICA_OP_CONV_2D:
    case MICA_OP_DEPTHWISE_CONV_2D:
    case MICA_OP_TRANSPOSE_CONV:
    case MICA_OP_AVERAGE_POOL_2D:
    case MICA_OP_MAX_POOL_2D:
        add_window(host, op);
        break;
    case MICA_OP_FULLY_CONNECTED:
        add(host, op, &dense, sizeof dense);
        break;
    case MICA_OP_ADD:
    case MICA_OP_SUB:
    case MICA_OP_MUL:
    case MICA_OP_DIV:
        add(host, op, &sum, sizeof sum);
        break;
    case MICA_OP_CONCATENATION:
        add(host, op, &concatenation, sizeof concatenation);
        break;
    case MICA_OP_SOFTMAX:
        add(host, op, &softmax, sizeof softmax);
        break;
    case MICA_OP_RESIZE_BILINEAR:
    case MICA_OP_RESIZE_NEAREST:
        add(host, op, &resize, sizeof resize);
        break;
    default:
        if (!add_later(host, op))
            add(host, op, NULL, 0);
    }
}

static void add_tensor(struct host *host, int index, const struct mica_tensor *tensor)
{
    host_set_tensor(host, index, to_tfl_type(tensor->type), (int)tensor->rank, tensor->dims, tensor->name);
    if (tensor->quant.count)
        host_set_quantization(host, index, (int)tensor->quant.count, tensor->quant.scale, tensor->quant.zero_point,
                              tensor->quant.axis);
    if (tensor->data)
        host_set_constant(host, index, tensor->data);
}

static int run_on_cpu(void *user, struct host *host, int node)
{
    const struct mica_graph *graph = user;
    const struct mica_cpu_options options = {.arithmetic = MICA_ARITHMETIC_TFLITE};
    void **data = calloc(graph->tensor_count + 1, sizeof *data);
    if (!data)
        return -1;
    for (uint32_t i = 0; i < graph->tensor_count; i++)
        data[i] = host->context.tensors[i].data;
    int error = mica_cpu_run(graph, (uint32_t)node, data, &options, NULL);
    free(data);
    return error;
}

struct host *host_from_graph(const struct mica_graph *graph)
{
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        if (graph->tensors[i].problem) {
            fprintf(stderr, "tensor \"%s\" can't be used: %s\n", graph->tensors[i].name, graph->tensors[i].problem);
            return NULL;
        }
    }
    struct host *host = host_create((int)graph->tensor_count);
    for (uint32_t i = 0; i < graph->tensor_count; i++)
        add_tensor(host, (int)i, &graph->tensors[i]);
    for (uint32_t i = 0; i < graph->op_count; i++)
        add_op(host, &graph->ops[i]);
    host_set_outputs(host, (int)graph->output_count, graph->outputs);
    host->cpu = run_on_cpu;
    host->cpu_user = (void *)graph;
    return host;
}
