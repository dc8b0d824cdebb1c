/* SPDX-License-Identifier: MIT */
/* The building blocks of the rules, and the way from an operation to its rule. */
#include "graph/check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool mica_reject(struct mica_check *check, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(check->problem, sizeof check->problem, format, args);
    va_end(args);
    return false;
}

const struct mica_tensor *mica_check_input(const struct mica_check *check, uint32_t i)
{
    return mica_op_input(check->graph, check->op, i);
}

const struct mica_tensor *mica_check_output(const struct mica_check *check, uint32_t i)
{
    return mica_op_output(check->graph, check->op, i);
}

struct mica_shape_text mica_shape_text(const struct mica_tensor *tensor)
{
    struct mica_shape_text shape = {"scalar"};
    size_t used = 0;
    for (uint32_t i = 0; i < tensor->rank && used < sizeof shape.text; i++)
        used += (size_t)snprintf(shape.text + used, sizeof shape.text - used, i ? "x%d" : "%d", tensor->dims[i]);
    return shape;
}

bool mica_is_integer(enum mica_type type)
{
    return type == MICA_TYPE_UINT8 || type == MICA_TYPE_INT8;
}

bool mica_is_quantized(enum mica_type type)
{
    return mica_is_integer(type) || type == MICA_TYPE_INT16;
}

static bool tensor_usable(struct mica_check *check, const struct mica_tensor *tensor)
{
    if (tensor->problem)
        return mica_reject(check, "tensor \"%.80s\" can't be used: %s", tensor->name, tensor->problem);
    return true;
}

static bool output_usable(struct mica_check *check, uint32_t index)
{
    const struct mica_op *op = check->op;
    const struct mica_tensor *output = mica_check_output(check, index);
    if (output->data)
        return mica_reject(check, "it writes the constant \"%.100s\"", output->name);
    for (uint32_t i = 0; i < op->input_count; i++)
        if (op->inputs[i] == op->outputs[index])
            return mica_reject(check, "it writes its own input \"%.100s\"", output->name);
    for (uint32_t i = 0; i < index; i++)
        if (op->outputs[i] == op->outputs[index])
            return mica_reject(check, "it writes \"%.100s\" twice", output->name);
    return tensor_usable(check, output);
}

bool mica_check_io(struct mica_check *check, uint32_t required, uint32_t most, uint32_t outputs)
{
    const struct mica_op *op = check->op;
    if (op->input_count < required || op->input_count > most)
        return mica_reject(check, "%u inputs: it needs %u at least and takes %u at most", op->input_count, required,
                           most);
    if (op->output_count != outputs)
        return mica_reject(check, "%u outputs: it has %u", op->output_count, outputs);
    if (outputs > MICA_MAX_OUTPUTS)
        return mica_reject(check, "%u outputs are more than %u", outputs, MICA_MAX_OUTPUTS);
    for (uint32_t i = 0; i < op->input_count; i++) {
        const struct mica_tensor *input = mica_check_input(check, i);
        if (!input && i < required)
            return mica_reject(check, "input %u is absent", i);
        if (input && !tensor_usable(check, input))
            return false;
    }
    for (uint32_t i = 0; i < outputs; i++)
        if (!output_usable(check, i))
            return false;
    return true;
}

bool mica_check_rank(struct mica_check *check, const struct mica_tensor *tensor, const char *what, uint32_t rank)
{
    if (tensor->rank == rank)
        return true;
    return mica_reject(check, "shape %s of the %s should have %u dimensions", mica_shape_text(tensor).text, what, rank);
}

bool mica_check_same_shape(struct mica_check *check, const struct mica_tensor *a, const struct mica_tensor *b)
{
    bool same = a->rank == b->rank;
    for (uint32_t i = 0; same && i < a->rank; i++)
        same = a->dims[i] == b->dims[i];
    if (same)
        return true;
    return mica_reject(check, "input %s and output %s should have the same shape", mica_shape_text(a).text,
                       mica_shape_text(b).text);
}

bool mica_check_activation(struct mica_check *check, enum mica_activation activation)
{
    switch (activation) {
    case MICA_ACT_NONE:
    case MICA_ACT_RELU:
    case MICA_ACT_RELU_N1_TO_1:
    case MICA_ACT_RELU6:
        return true;
    }
    return mica_reject(check, "fused activation %u does not exist", (unsigned)activation);
}

bool mica_check_number(struct mica_check *check, const struct mica_tensor *tensor, const char *what)
{
    if (tensor->type == MICA_TYPE_FLOAT32)
        return true;
    if (!mica_is_integer(tensor->type))
        return mica_reject(check, "type %s of the %s is not supported: uint8, int8 and float32 are",
                           mica_type_name(tensor->type), what);
    if (tensor->quant.count != 1)
        return mica_reject(check, "type %s of the %s needs exactly one scale and zero point",
                           mica_type_name(tensor->type), what);
    return true;
}

bool mica_check_in_out(struct mica_check *check)
{
    const struct mica_tensor *input = mica_check_input(check, 0), *output = mica_check_output(check, 0);
    if (!mica_check_number(check, input, "input") || !mica_check_number(check, output, "output"))
        return false;
    if (input->type != output->type)
        return mica_reject(check, "input is %s but output is %s", mica_type_name(input->type),
                           mica_type_name(output->type));
    return true;
}

/* TensorFlow Lite's own tolerance: converters round scales on their way. */
bool mica_check_same_quantization(struct mica_check *check, const struct mica_tensor *a, const struct mica_tensor *b)
{
    if (!mica_is_quantized(a->type))
        return true;
    if (fabsf(a->quant.scale[0] - b->quant.scale[0]) <= 1e-6f && a->quant.zero_point[0] == b->quant.zero_point[0])
        return true;
    return mica_reject(check,
                       "input (scale %g, zero point %d) and output (scale %g, zero point %d) should be quantized "
                       "alike",
                       (double)a->quant.scale[0], a->quant.zero_point[0], (double)b->quant.scale[0],
                       b->quant.zero_point[0]);
}

bool mica_check_moved(struct mica_check *check, const struct mica_tensor *a, const struct mica_tensor *b)
{
    if (a->type != b->type)
        return mica_reject(check, "input is %s but output is %s", mica_type_name(a->type), mica_type_name(b->type));
    if (!mica_is_quantized(a->type) || a->quant.count + b->quant.count == 0)
        return true;
    if (a->quant.count != 1 || b->quant.count != 1)
        return mica_reject(check, "%s values that are moved need exactly one scale and zero point on either side",
                           mica_type_name(a->type));
    return mica_check_same_quantization(check, a, b);
}

bool mica_check_factor(struct mica_check *check, double factor)
{
    if (factor > 0 && factor < (double)(1 << 30))
        return true;
    return mica_reject(check, "its scales make a rescaling factor of %g, which is out of range", factor);
}

bool mica_check_constant(struct mica_check *check, const struct mica_tensor *tensor, const char *what,
                         uint64_t elements)
{
    if (!tensor->data || tensor->type != MICA_TYPE_INT32)
        return mica_reject(check, "the %s should be a constant int32 tensor", what);
    if (mica_elements(tensor) == elements)
        return true;
    return mica_reject(check, "shape %s of the %s should have %llu elements", mica_shape_text(tensor).text, what,
                       (unsigned long long)elements);
}

bool mica_check_axes(struct mica_check *check, const struct mica_tensor *tensor, const struct mica_tensor *data,
                     uint32_t *axes)
{
    return mica_constant_axes(tensor, data->rank, axes) ||
           mica_reject(check, "its axes should be constant integers that name dimensions of input %s",
                       mica_shape_text(data).text);
}

bool mica_check_axis(struct mica_check *check, const struct mica_tensor *tensor, const struct mica_tensor *data,
                     int32_t *axis)
{
    uint32_t axes;
    if (!mica_check_axes(check, tensor, data, &axes))
        return false;
    if (mica_elements(tensor) != 1)
        return mica_reject(check, "shape %s of the axis should have 1 element", mica_shape_text(tensor).text);
    *axis = __builtin_ctz(axes);
    return true;
}

/* ---- from an operation to its rule ------------------------------------ */

/* What is known of operations that will not be implemented soon. */
static const struct {
    const char *part, *nature;
} natures[] = {
    {"LSTM", "it is recurrent"},
    {"RNN", "it is recurrent"},
    {"SVDF", "it is recurrent"},
    {"CALL", "it is control flow"},
    {"WHILE", "it is control flow"},
    {"VARIABLE", "it is about variables, which keep values between runs"},
    {"VAR_HANDLE", "it is about variables, which keep values between runs"},
    {"FFT", "it is about complex numbers"},
    {"COMPLEX", "it is about complex numbers"},
};

static bool rule_unknown(struct mica_check *check)
{
    const char *type = check->op->type;
    if (strcmp(type, "IF") == 0)
        return mica_reject(check, "operation IF is not implemented: it is control flow");
    for (size_t i = 0; i < sizeof natures / sizeof natures[0]; i++)
        if (strstr(type, natures[i].part))
            return mica_reject(check, "operation %.100s is not implemented: %s", type, natures[i].nature);
    return mica_reject(check, "operation %.100s is not implemented", type);
}

static bool (*const rules[])(struct mica_check *check) = {
    [MICA_OP_UNKNOWN] = rule_unknown,
    [MICA_OP_CONV_2D] = mica_rule_conv,
    [MICA_OP_DEPTHWISE_CONV_2D] = mica_rule_depthwise,
    [MICA_OP_FULLY_CONNECTED] = mica_rule_fully_connected,
    [MICA_OP_ADD] = mica_rule_binary,
    [MICA_OP_AVERAGE_POOL_2D] = mica_rule_pool,
    [MICA_OP_MAX_POOL_2D] = mica_rule_pool,
    [MICA_OP_RESHAPE] = mica_rule_reshape,
    [MICA_OP_SOFTMAX] = mica_rule_softmax,
    [MICA_OP_LOGISTIC] = mica_rule_logistic,
    [MICA_OP_CONCATENATION] = mica_rule_concatenation,
    [MICA_OP_PAD] = mica_rule_pad,
    [MICA_OP_QUANTIZE] = mica_rule_quantize,
    [MICA_OP_DEQUANTIZE] = mica_rule_dequantize,
    [MICA_OP_RESIZE_BILINEAR] = mica_rule_resize,
    [MICA_OP_RESIZE_NEAREST] = mica_rule_resize,
    [MICA_OP_DETECTION_POSTPROCESS] = mica_rule_detection,
    [MICA_OP_SUB] = mica_rule_binary,
    [MICA_OP_MUL] = mica_rule_binary,
    [MICA_OP_MAXIMUM] = mica_rule_binary,
    [MICA_OP_MINIMUM] = mica_rule_binary,
    [MICA_OP_SQUARED_DIFFERENCE] = mica_rule_binary,
    [MICA_OP_TRANSPOSE_CONV] = mica_rule_transpose_conv,
    [MICA_OP_MEAN] = mica_rule_reduce,
    [MICA_OP_SUM] = mica_rule_reduce,
    [MICA_OP_REDUCE_MAX] = mica_rule_reduce,
    [MICA_OP_SPLIT] = mica_rule_split,
    [MICA_OP_SLICE] = mica_rule_slice,
    [MICA_OP_TRANSPOSE] = mica_rule_transpose,
    [MICA_OP_MIRROR_PAD] = mica_rule_mirror_pad,
    [MICA_OP_SPACE_TO_DEPTH] = mica_rule_block,
    [MICA_OP_DEPTH_TO_SPACE] = mica_rule_block,
    [MICA_OP_RELU] = mica_rule_unary,
    [MICA_OP_RELU6] = mica_rule_unary,
    [MICA_OP_RELU_N1_TO_1] = mica_rule_unary,
    [MICA_OP_RELU_0_TO_1] = mica_rule_unary,
    [MICA_OP_LEAKY_RELU] = mica_rule_unary,
    [MICA_OP_TANH] = mica_rule_unary,
    [MICA_OP_HARD_SWISH] = mica_rule_unary,
    [MICA_OP_ELU] = mica_rule_unary,
    [MICA_OP_ABS] = mica_rule_unary,
    [MICA_OP_NEG] = mica_rule_unary,
    [MICA_OP_EXP] = mica_rule_unary,
    [MICA_OP_SQRT] = mica_rule_unary,
    [MICA_OP_RSQRT] = mica_rule_unary,
    [MICA_OP_PRELU] = mica_rule_prelu,
    [MICA_OP_ARG_MAX] = mica_rule_arg_max,
    [MICA_OP_BATCH_MATMUL] = mica_rule_matmul,
    [MICA_OP_PACK] = mica_rule_pack,
    [MICA_OP_UNPACK] = mica_rule_unpack,
    [MICA_OP_GATHER] = mica_rule_gather,
    [MICA_OP_CAST] = mica_rule_cast,
    [MICA_OP_DIV] = mica_rule_binary,
    [MICA_OP_FLOOR_DIV] = mica_rule_binary,
    [MICA_OP_GATHER_ND] = mica_rule_gather_nd,
    [MICA_OP_REVERSE] = mica_rule_reverse,
    [MICA_OP_LOG] = mica_rule_unary,
    [MICA_OP_REDUCE_MIN] = mica_rule_reduce,
};

bool mica_check_op(struct mica_check *check)
{
    if ((size_t)check->op->kind >= sizeof rules / sizeof rules[0])
        return mica_reject(check, "operation kind %u does not exist", (unsigned)check->op->kind);
    return rules[check->op->kind](check);
}
