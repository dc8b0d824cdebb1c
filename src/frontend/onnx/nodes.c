/* SPDX-License-Identifier: MIT */
/* Every kind of node that is known, and what becomes of those that are not. */
#include "frontend/onnx/internal.h"

static const struct {
    const char *type;
    onnx_handler *handler;
    int kind;
} handlers[] = {
    {"Conv", onnx_conv, 0},
    {"QLinearConv", onnx_qlinear_conv, 0},
    {"ConvTranspose", onnx_conv_transpose, 0},
    {"Gemm", onnx_gemm, 0},
    {"QGemm", onnx_qgemm, 0},
    {"MatMul", onnx_matmul, 0},
    {"QLinearMatMul", onnx_qlinear_matmul, 0},
    {"MaxPool", onnx_pool, MICA_OP_MAX_POOL_2D},
    {"AveragePool", onnx_pool, MICA_OP_AVERAGE_POOL_2D},
    {"QLinearAveragePool", onnx_qlinear_pool, MICA_OP_AVERAGE_POOL_2D},
    {"GlobalMaxPool", onnx_global_pool, MICA_OP_MAX_POOL_2D},
    {"GlobalAveragePool", onnx_global_pool, MICA_OP_AVERAGE_POOL_2D},
    {"QLinearGlobalAveragePool", onnx_qlinear_global_pool, MICA_OP_AVERAGE_POOL_2D},
    {"Add", onnx_binary, MICA_OP_ADD},
    {"Sub", onnx_binary, MICA_OP_SUB},
    {"Mul", onnx_binary, MICA_OP_MUL},
    {"Div", onnx_binary, MICA_OP_DIV},
    {"Max", onnx_binary, MICA_OP_MAXIMUM},
    {"Min", onnx_binary, MICA_OP_MINIMUM},
    {"PRelu", onnx_binary, MICA_OP_PRELU},
    {"QLinearAdd", onnx_qlinear_binary, MICA_OP_ADD},
    {"QLinearMul", onnx_qlinear_binary, MICA_OP_MUL},
    {"Relu", onnx_unary, MICA_OP_RELU},
    {"LeakyRelu", onnx_unary, MICA_OP_LEAKY_RELU},
    {"Sigmoid", onnx_unary, MICA_OP_LOGISTIC},
    {"Tanh", onnx_unary, MICA_OP_TANH},
    {"HardSwish", onnx_unary, MICA_OP_HARD_SWISH},
    {"Elu", onnx_unary, MICA_OP_ELU},
    {"Abs", onnx_unary, MICA_OP_ABS},
    {"Neg", onnx_unary, MICA_OP_NEG},
    {"Exp", onnx_unary, MICA_OP_EXP},
    {"Log", onnx_unary, MICA_OP_LOG},
    {"Sqrt", onnx_unary, MICA_OP_SQRT},
    {"QLinearLeakyRelu", onnx_qlinear_unary, MICA_OP_LEAKY_RELU},
    {"QLinearSigmoid", onnx_qlinear_unary, MICA_OP_LOGISTIC},
    {"Softmax", onnx_softmax, 0},
    {"QLinearSoftmax", onnx_qlinear_softmax, 0},
    {"Clip", onnx_clip, 0},
    {"ReduceMean", onnx_reduce, MICA_OP_MEAN},
    {"ReduceSum", onnx_reduce, MICA_OP_SUM},
    {"ReduceMax", onnx_reduce, MICA_OP_REDUCE_MAX},
    {"ReduceMin", onnx_reduce, MICA_OP_REDUCE_MIN},
    {"ArgMax", onnx_arg_max, 0},
    {"QuantizeLinear", onnx_quantize, 0},
    {"DequantizeLinear", onnx_dequantize, 0},
    {"Identity", onnx_identity, 0},
    {"Dropout", onnx_identity, 0},
    {"Constant", onnx_constant, 0},
    {"Cast", onnx_cast, 0},
    {"Reshape", onnx_reshape, 0},
    {"Flatten", onnx_reshape, 1},
    {"Squeeze", onnx_reshape, 2},
    {"Unsqueeze", onnx_reshape, 3},
    {"Transpose", onnx_transpose, 0},
    {"DepthToSpace", onnx_depth_to_space, MICA_OP_DEPTH_TO_SPACE},
    {"SpaceToDepth", onnx_depth_to_space, MICA_OP_SPACE_TO_DEPTH},
    {"Concat", onnx_concat, 0},
    {"QLinearConcat", onnx_qlinear_concat, 0},
    {"Slice", onnx_slice, 0},
    {"Split", onnx_split, 0},
    {"Gather", onnx_gather, 0},
    {"Pad", onnx_pad, 0},
    {"Resize", onnx_resize, 0},
    {"Upsample", onnx_resize, 1},
};

static int handle(struct onnx_reader *reader)
{
    for (size_t i = 0; i < sizeof handlers / sizeof handlers[0] && !reader->node->foreign; i++)
        if (onnx_is(reader->node->type, handlers[i].type))
            return handlers[i].handler(reader, handlers[i].kind);
    return onnx_refuse(reader, "operation %.100s is not implemented", reader->type);
}

/* Values that are hidden quantized ones as float have their shape. */
static void finish_sources(struct onnx_reader *reader)
{
    const struct onnx_node *node = reader->node;
    for (uint32_t i = 0; i < node->outputs; i++) {
        struct onnx_value *value = node->out[i] < 0 ? NULL : &reader->values[node->out[i]];
        if (!value || value->state != ONNX_MISSING || value->source < 0)
            continue;
        const struct onnx_value *source = &reader->values[value->source];
        value->state = source->state;
        value->type = MICA_TYPE_FLOAT32;
        value->problem = source->problem;
        value->rank = source->rank;
        memcpy(value->dims, source->dims, sizeof value->dims);
    }
}

static int refused(struct onnx_reader *reader)
{
    for (uint32_t i = 0; i < reader->node->outputs; i++)
        if (reader->node->out[i] >= 0)
            reader->values[reader->node->out[i]].source = ONNX_NONE;
    return onnx_emit_unknown(reader, reader->problem);
}

int onnx_add_node(struct onnx_reader *reader, struct onnx_node *node)
{
    struct onnx_text type = onnx_text(node->type);
    reader->node = node;
    memcpy(reader->type, type.text, sizeof reader->type - 1);
    for (uint32_t i = 0; i < node->outputs; i++)
        if (node->out[i] >= 0 && reader->values[node->out[i]].state != ONNX_MISSING)
            return onnx_damaged(reader, "something is computed twice, or is an input or constant too");
    reader->float_only = false;
    int result = handle(reader);
    if (result == ONNX_RETRY) {
        reader->float_only = true;
        result = handle(reader);
    }
    if (reader->failed)
        return reader->failed;
    if (result > 0)
        return refused(reader);
    finish_sources(reader);
    return result;
}
