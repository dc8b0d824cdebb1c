/* SPDX-License-Identifier: MIT */
/* ADD, SUB, MUL, DIV, FLOOR_DIV, MAXIMUM, MINIMUM, SQUARED_DIFFERENCE of two inputs, with broadcasting; here 8 bits. */
#include "cpu/arith.h"

#include <errno.h>
#include <math.h>

#include "cpu/broadcast.h"
#include "cpu/rockchip.h"
#include "cpu/simd.h"

static bool has_activation(enum mica_op_kind kind)
{
    return kind == MICA_OP_ADD || kind == MICA_OP_SUB || kind == MICA_OP_MUL || kind == MICA_OP_DIV;
}

static int check_types(const struct mica_op *op, const struct mica_tensor *const tensors[3],
                       struct mica_cpu_reason *reason)
{
    static const char *const what[] = {"first input", "second input", "output"};
    bool plain = tensors[0]->type == MICA_TYPE_INT32 || tensors[0]->type == MICA_TYPE_INT64;
    for (int i = 0; i < 3; i++) {
        int result = plain ? 0 : mica_cpu_check_value(tensors[i], what[i], reason);
        if (result)
            return result;
        if (tensors[i]->type != tensors[0]->type)
            return mica_cpu_refuse(reason, "inputs and output have different types");
    }
    if (op->kind == MICA_OP_SQUARED_DIFFERENCE && tensors[0]->type == MICA_TYPE_UINT8)
        return mica_cpu_refuse(reason, "SQUARED_DIFFERENCE is not defined for uint8");
    if (mica_cpu_is_8bit(tensors[0]) && (op->kind == MICA_OP_DIV || op->kind == MICA_OP_FLOOR_DIV))
        return mica_cpu_refuse(reason, "there is no CPU kernel for quotients of quantized values");
    return 0;
}

/* Largest and smallest move codes, so that all have one meaning. */
static int check_quantization(const struct mica_op *op, const struct mica_tensor *const tensors[3],
                              struct mica_cpu_reason *reason)
{
    if (!mica_cpu_is_8bit(tensors[0]))
        return 0;
    float larger = fmaxf(tensors[0]->quant.scale[0], tensors[1]->quant.scale[0]), out = tensors[2]->quant.scale[0];
    if ((op->kind == MICA_OP_ADD || op->kind == MICA_OP_SUB) && 2 * larger >= (float)(1 << 20) * out)
        return mica_cpu_refuse(reason, "the output's scale is too small for the inputs'");
    if (op->kind != MICA_OP_MAXIMUM && op->kind != MICA_OP_MINIMUM)
        return 0;
    if (!mica_cpu_same_quantization(tensors[0], tensors[2]) || !mica_cpu_same_quantization(tensors[1], tensors[2]))
        return mica_cpu_refuse(reason, "inputs and output are quantized differently");
    return 0;
}

int mica_cpu_check_arith(const struct mica_graph *graph, const struct mica_op *op, struct mica_cpu_reason *reason)
{
    int result = mica_cpu_check_operands(graph, op, 2, 1, reason);
    if (result)
        return result;
    const struct mica_tensor *const tensors[3] = {mica_op_input(graph, op, 0), mica_op_input(graph, op, 1),
                                                  mica_op_output(graph, op, 0)};
    result = check_types(op, tensors, reason);
    if (!result)
        result = mica_cpu_check_broadcast(tensors[0], tensors[1], tensors[2], reason);
    if (!result)
        result = check_quantization(op, tensors, reason);
    return result || !has_activation(op->kind) ? result : mica_cpu_check_activation(op->activation, reason);
}

/* ---- 8 bits ---------------------------------------------------------------- */

static int32_t value_of(const struct mica_tensor *tensor, int byte)
{
    return (byte ^ mica_cpu_flip(tensor)) - mica_cpu_zero_point(tensor);
}

/* TFLite brings both inputs to half of the larger scale, with `bits` more bits. */
static void set_scaled_terms(struct mica_arith *arith, const struct mica_tensor *const inputs[2], int bits)
{
    double twice = 2 * (double)fmaxf(inputs[0]->quant.scale[0], inputs[1]->quant.scale[0]);
    for (int i = 0; i < 2; i++) {
        struct mica_multiplier m = mica_multiplier_tflite((double)inputs[i]->quant.scale[0] / twice);
        int32_t sign = i == 1 && arith->kind != MICA_OP_ADD ? -1 : 1;
        for (int byte = 0; byte < 256; byte++)
            arith->terms[i][byte] =
                sign * mica_scale_tflite(value_of(inputs[i], byte) * (1 << bits), m.mantissa, m.shift);
    }
}

static void prepare_tflite(struct mica_arith *arith, const struct mica_tensor *const inputs[2],
                           const struct mica_tensor *out)
{
    enum { SUM_BITS = 20, SQUARE_BITS = 7 };
    double twice = 2 * (double)fmaxf(inputs[0]->quant.scale[0], inputs[1]->quant.scale[0]);
    double out_scale = (double)out->quant.scale[0];
    if (arith->kind == MICA_OP_MUL) {
        float factor = inputs[0]->quant.scale[0] * inputs[1]->quant.scale[0] / out->quant.scale[0];
        mica_arith_set_values(arith, inputs);
        arith->multiplier = mica_multiplier_tflite((double)factor);
    } else if (arith->kind == MICA_OP_SQUARED_DIFFERENCE) {
        set_scaled_terms(arith, inputs, SQUARE_BITS);
        arith->multiplier = mica_multiplier_tflite(twice * twice / ((double)(1 << 2 * SQUARE_BITS) * out_scale));
    } else {
        set_scaled_terms(arith, inputs, SUM_BITS);
        arith->multiplier = mica_multiplier_tflite(twice / ((double)(1 << SUM_BITS) * out_scale));
    }
}

/*
 * Vivante specification, section 7.5: the NPU convolves with two weights. All steps are in float32. The form of the V7
 * lowering serves for V8 as well, whose streams differ from it only by the rounding of the bias.
 */
static void prepare_vivante(struct mica_arith *arith, const struct mica_tensor *const inputs[2],
                            const struct mica_tensor *out, enum mica_arithmetic arithmetic)
{
    float ratio = inputs[1]->quant.scale[0] / inputs[0]->quant.scale[0];
    float weight_scale = fmaxf(ratio, 1.0f) / 255.0f;
    const int32_t weights[2] = {(int32_t)roundf(1.0f / weight_scale), (int32_t)roundf(ratio / weight_scale)};
    for (int i = 0; i < 2; i++)
        for (int byte = 0; byte < 256; byte++)
            arith->terms[i][byte] = weights[i] * value_of(inputs[i], byte);
    float product = inputs[0]->quant.scale[0] * weight_scale;
    arith->multiplier = mica_multiplier_vivante(product / out->quant.scale[0], arithmetic);
}

void mica_arith_set_values(struct mica_arith *arith, const struct mica_tensor *const inputs[2])
{
    for (int i = 0; i < 2; i++)
        for (int byte = 0; byte < 256; byte++)
            arith->terms[i][byte] = value_of(inputs[i], byte);
}

static void prepare(struct mica_arith *arith, const struct mica_cpu_call *call)
{
    const struct mica_tensor *const inputs[2] = {mica_cpu_input(call, 0), mica_cpu_input(call, 1)};
    const struct mica_tensor *out = mica_cpu_output(call, 0);
    enum mica_arithmetic arithmetic = call->arithmetic;
    bool rockchip = mica_is_rockchip(arithmetic), sum = arith->kind == MICA_OP_ADD;
    /* The rest does not run on the NPU, or is exact. */
    if (!sum && !(rockchip && (arith->kind == MICA_OP_SUB || arith->kind == MICA_OP_MUL)))
        arithmetic = MICA_ARITHMETIC_TFLITE;
    enum mica_activation activation = has_activation(arith->kind) ? call->op->activation : MICA_ACT_NONE;
    mica_requant_set_output(&arith->requant, arithmetic, out, activation);
    if (arithmetic == MICA_ARITHMETIC_TFLITE)
        prepare_tflite(arith, inputs, out);
    else if (rockchip)
        mica_rockchip_prepare_arith(arith, inputs, out);
    else
        prepare_vivante(arith, inputs, out, arithmetic);
}

MICA_INLINE void sum_line_body(const struct mica_arith *arith, const uint8_t *a, const uint8_t *b, uint8_t *out,
                               size_t count, const size_t *steps)
{
    const struct mica_multiplier m = arith->multiplier;
    for (size_t i = 0; i < count; i++) {
        int32_t sum = arith->terms[0][a[i * steps[0]]] + arith->terms[1][b[i * steps[1]]];
        out[i] = mica_requant_value(&arith->requant, sum, m.mantissa, m.shift);
    }
}

MICA_INLINE void product_line_body(const struct mica_arith *arith, const uint8_t *a, const uint8_t *b, uint8_t *out,
                                   size_t count, const size_t *steps)
{
    const struct mica_multiplier m = arith->multiplier;
    for (size_t i = 0; i < count; i++) {
        int32_t product = arith->terms[0][a[i * steps[0]]] * arith->terms[1][b[i * steps[1]]];
        out[i] = mica_requant_value(&arith->requant, product, m.mantissa, m.shift);
    }
}

MICA_INLINE void square_line_body(const struct mica_arith *arith, const uint8_t *a, const uint8_t *b, uint8_t *out,
                                  size_t count, const size_t *steps)
{
    const struct mica_multiplier m = arith->multiplier;
    for (size_t i = 0; i < count; i++) {
        int32_t difference = arith->terms[0][a[i * steps[0]]] + arith->terms[1][b[i * steps[1]]];
        out[i] = mica_requant_value(&arith->requant, difference * difference, m.mantissa, m.shift);
    }
}

/* Codes with the sign bit turned compare as their values do. */
MICA_INLINE void extreme_line_body(const struct mica_arith *arith, const uint8_t *a, const uint8_t *b, uint8_t *out,
                                   size_t count, const size_t *steps)
{
    const uint8_t flip = arith->requant.flip;
    const bool largest = arith->kind == MICA_OP_MAXIMUM;
    for (size_t i = 0; i < count; i++) {
        uint8_t x = a[i * steps[0]] ^ flip, y = b[i * steps[1]] ^ flip;
        out[i] = (uint8_t)((x > y) == largest ? x : y) ^ flip;
    }
}

#define PARAMETERS                                                                                   \
    (const struct mica_arith *arith, const uint8_t *a, const uint8_t *b, uint8_t *out, size_t count, \
     const size_t *steps)
#define ARGUMENTS (arith, a, b, out, count, steps)
MICA_CPU_WIDE(sum_line, PARAMETERS, ARGUMENTS)
MICA_CPU_WIDE(product_line, PARAMETERS, ARGUMENTS)
MICA_CPU_WIDE(square_line, PARAMETERS, ARGUMENTS)
MICA_CPU_WIDE(extreme_line, PARAMETERS, ARGUMENTS)

static void line_8bit(const void *user, const void *a, const void *b, void *out, size_t count, const size_t *steps)
{
    const struct mica_arith *arith = user;
    if (arith->kind == MICA_OP_MAXIMUM || arith->kind == MICA_OP_MINIMUM)
        extreme_line(arith, a, b, out, count, steps);
    else if (arith->kind == MICA_OP_MUL)
        product_line(arith, a, b, out, count, steps);
    else if (arith->kind == MICA_OP_SQUARED_DIFFERENCE)
        square_line(arith, a, b, out, count, steps);
    else
        sum_line(arith, a, b, out, count, steps);
}

int mica_cpu_arith(const struct mica_cpu_call *call)
{
    enum mica_type type = mica_cpu_output(call, 0)->type;
    struct mica_arith arith = {.kind = call->op->kind};
    mica_activation_range(has_activation(arith.kind) ? call->op->activation : MICA_ACT_NONE, &arith.min, &arith.max);
    if (type == MICA_TYPE_UINT8 || type == MICA_TYPE_INT8) {
        prepare(&arith, call);
        mica_broadcast_run(call, line_8bit, &arith);
        return 0;
    }
    return mica_arith_run_plain(&arith, call);
}
