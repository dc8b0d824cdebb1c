/* SPDX-License-Identifier: MIT */
/* One value from one: for 8 bits by a table of 256, for float32 by the function itself; and PRELU. */
#include <math.h>
#include <string.h>

#include "cpu/broadcast.h"
#include "cpu/requant.h"
#include "cpu/rockchip.h"
#include "cpu/table.h"

int mica_cpu_check_unary(const struct mica_graph *graph, const struct mica_op *op, struct mica_cpu_reason *reason)
{
    uint8_t table[256];
    int result = mica_cpu_check_operands(graph, op, 1, 1, reason);
    if (result)
        return result;
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *out = mica_op_output(graph, op, 0);
    result = mica_cpu_check_value(in, "input", reason);
    if (result)
        return result;
    if (in->type != out->type || in->bytes != out->bytes)
        return mica_cpu_refuse(reason, "input and output have different types or sizes");
    if (in->type != MICA_TYPE_FLOAT32 && mica_cpu_table(graph, op, table))
        return mica_cpu_refuse(reason, "%s is not defined for %s with these scales", op->type,
                               mica_type_name(in->type));
    return 0;
}

/* TFLite's float kernel takes short cuts at both ends. */
static float logistic(float x)
{
    if (x > 16.619047164916992188f)
        return 1.0f;
    if (x < -9.0f)
        return expf(x);
    return 1.0f / (1.0f + expf(-x));
}

static float function_of(const struct mica_op *op, float x)
{
    switch (op->kind) {
    case MICA_OP_LOGISTIC:
        return logistic(x);
    case MICA_OP_TANH:
        return tanhf(x);
    case MICA_OP_HARD_SWISH:
        return x * mica_clamp_float(x + 3, 0, 6) / 6;
    case MICA_OP_RELU:
        return x < 0 ? 0 : x;
    case MICA_OP_RELU6:
        return mica_clamp_float(x, 0, 6);
    case MICA_OP_RELU_N1_TO_1:
        return mica_clamp_float(x, -1, 1);
    case MICA_OP_RELU_0_TO_1:
        return mica_clamp_float(x, 0, 1);
    case MICA_OP_LEAKY_RELU:
        return x > 0 ? x : x * op->alpha;
    case MICA_OP_ELU:
        return x < 0 ? expm1f(x) : x;
    case MICA_OP_ABS:
        return fabsf(x);
    case MICA_OP_NEG:
        return -x;
    case MICA_OP_EXP:
        return expf(x);
    case MICA_OP_LOG:
        return logf(x);
    case MICA_OP_SQRT:
        return sqrtf(x);
    default:
        return 1.0f / sqrtf(x);
    }
}

enum { PIECE = 1 << 14 };

struct unary {
    const struct mica_op *op;
    const void *in;
    void *out;
    size_t count;
    uint8_t table[256];
};

static void run_bytes(void *user, size_t index)
{
    const struct unary *unary = user;
    const uint8_t *in = unary->in;
    uint8_t *out = unary->out;
    size_t end = (index + 1) * PIECE < unary->count ? (index + 1) * PIECE : unary->count;
    for (size_t i = index * PIECE; i < end; i++)
        out[i] = unary->table[in[i]];
}

static void run_floats(void *user, size_t index)
{
    const struct unary *unary = user;
    const float *in = unary->in;
    float *out = unary->out;
    size_t end = (index + 1) * PIECE < unary->count ? (index + 1) * PIECE : unary->count;
    for (size_t i = index * PIECE; i < end; i++)
        out[i] = function_of(unary->op, in[i]);
}

int mica_cpu_unary(const struct mica_cpu_call *call)
{
    const struct mica_tensor *in = mica_cpu_input(call, 0);
    struct unary unary = {
        call->op, mica_cpu_input_data(call, 0), mica_cpu_output_data(call, 0), mica_cpu_elements(in), {0}};
    bool is_float = in->type == MICA_TYPE_FLOAT32;
    if (!is_float && mica_cpu_table(call->graph, call->op, unary.table))
        memset(unary.table, 0, sizeof unary.table); /* the check has seen that there is a table */
    mica_parallel_for(call->threads, (unary.count + PIECE - 1) / PIECE, is_float ? run_floats : run_bytes, &unary);
    return 0;
}

/* ---- PRELU ------------------------------------------------------------------- */

int mica_cpu_check_prelu(const struct mica_graph *graph, const struct mica_op *op, struct mica_cpu_reason *reason)
{
    int result = mica_cpu_check_operands(graph, op, 2, 1, reason);
    if (result)
        return result;
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *slopes = mica_op_input(graph, op, 1);
    const struct mica_tensor *out = mica_op_output(graph, op, 0);
    result = mica_cpu_check_value(in, "input", reason);
    if (!result)
        result = mica_cpu_check_value(slopes, "the tensor of slopes", reason);
    if (!result)
        result = mica_cpu_check_value(out, "output", reason);
    if (result)
        return result;
    if (in->type != slopes->type || in->type != out->type)
        return mica_cpu_refuse(reason, "input, slopes and output have different types");
    return mica_cpu_check_broadcast(in, slopes, out, reason);
}

struct prelu {
    int32_t values[2][256];          /* of input and slope bytes, without their zero points */
    struct mica_requant requants[2]; /* above zero, below */
    struct mica_multiplier above, below;
};

static void prelu_line(const void *user, const void *a, const void *b, void *out, size_t count, const size_t *steps)
{
    const struct prelu *prelu = user;
    const uint8_t *in = a, *slopes = b;
    uint8_t *result = out;
    for (size_t i = 0; i < count; i++) {
        int32_t value = prelu->values[0][in[i * steps[0]]];
        const struct mica_multiplier *m = value < 0 ? &prelu->below : &prelu->above;
        int32_t product = value < 0 ? value * prelu->values[1][slopes[i * steps[1]]] : value;
        result[i] = mica_requant_value(&prelu->requants[value < 0], product, m->mantissa, m->shift);
    }
}

static void prelu_line_float(const void *user, const void *a, const void *b, void *out, size_t count,
                             const size_t *steps)
{
    const float *in = a, *slopes = b;
    float *result = out;
    (void)user;
    for (size_t i = 0; i < count; i++)
        result[i] = in[i * steps[0]] >= 0 ? in[i * steps[0]] : in[i * steps[0]] * slopes[i * steps[1]];
}

int mica_cpu_prelu(const struct mica_cpu_call *call)
{
    const struct mica_tensor *const inputs[2] = {mica_cpu_input(call, 0), mica_cpu_input(call, 1)};
    const struct mica_tensor *out = mica_cpu_output(call, 0);
    if (out->type == MICA_TYPE_FLOAT32) {
        mica_broadcast_run(call, prelu_line_float, NULL);
        return 0;
    }
    struct prelu prelu;
    for (int i = 0; i < 2; i++)
        for (int byte = 0; byte < 256; byte++)
            prelu.values[i][byte] = (byte ^ mica_cpu_flip(inputs[i])) - mica_cpu_zero_point(inputs[i]);
    float above = inputs[0]->quant.scale[0] / out->quant.scale[0];
    float below = inputs[0]->quant.scale[0] * inputs[1]->quant.scale[0] / out->quant.scale[0];
    prelu.above = mica_multiplier_tflite((double)above);
    prelu.below = mica_multiplier_tflite((double)below);
    mica_requant_set_output(&prelu.requants[0], MICA_ARITHMETIC_TFLITE, out, MICA_ACT_NONE);
    prelu.requants[1] = prelu.requants[0];
    if (mica_is_rockchip(call->arithmetic)) { /* a table of TFLite's above zero, products below */
        mica_requant_set_output(&prelu.requants[1], call->arithmetic, out, MICA_ACT_NONE);
        prelu.below = mica_multiplier_rockchip((double)inputs[0]->quant.scale[0] * (double)inputs[1]->quant.scale[0] /
                                               (double)out->quant.scale[0]);
    }
    mica_broadcast_run(call, prelu_line, &prelu);
    return 0;
}
