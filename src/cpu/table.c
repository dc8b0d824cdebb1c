/* SPDX-License-Identifier: MIT */
#include "cpu/table.h"

#include <errno.h>
#include <math.h>

#include "cpu/fixed.h"

/* A tensor's codes in its own domain. */
struct codes {
    float scale;
    int32_t zero_point, min, max;
};

static bool is_8bit(const struct mica_tensor *tensor)
{
    return tensor && !tensor->problem && tensor->quant.count == 1 &&
           (tensor->type == MICA_TYPE_UINT8 || tensor->type == MICA_TYPE_INT8);
}

static struct codes codes_of(const struct mica_tensor *tensor)
{
    bool is_signed = tensor->type == MICA_TYPE_INT8;
    return (struct codes){tensor->quant.scale[0], tensor->quant.zero_point[0], is_signed ? INT8_MIN : 0,
                          is_signed ? INT8_MAX : UINT8_MAX};
}

struct table {
    struct codes in, out;
    uint8_t *bytes;
};

/* Writes the output code for input code `code`, clamped to its type. */
static void put(const struct table *table, int32_t code, int64_t value)
{
    const struct codes *out = &table->out;
    value = value < out->min ? out->min : value > out->max ? out->max : value;
    table->bytes[(uint8_t)code] = (uint8_t)value;
}

/* ---- by way of float32 --------------------------------------------------- */

static float logistic(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

static float elu(float x)
{
    return x < 0 ? expm1f(x) : x;
}

static void fill_float(const struct table *table, float (*function)(float))
{
    float inverse = 1.0f / table->out.scale;
    for (int32_t code = table->in.min; code <= table->in.max; code++) {
        float x = table->in.scale * (float)(code - table->in.zero_point);
        float steps = mica_clamp_float(roundf(function(x) * inverse), -512.0f, 512.0f);
        put(table, code, (int32_t)steps + table->out.zero_point);
    }
}

/* ---- by a factor, other below the zero point ------------------------------- */

/*
 * Factors may be negative, as a leaky relu's slope. TFLite rounds their mantissa by adding a half and cutting off what
 * is behind the point, which makes it nearer to zero by one.
 */
static struct mica_multiplier signed_multiplier(double factor)
{
    struct mica_multiplier multiplier = mica_multiplier_tflite(fabs(factor));
    if (factor < 0 && multiplier.mantissa)
        multiplier.mantissa = 1 - multiplier.mantissa;
    return multiplier;
}

static void fill_multiplied(const struct table *table, struct mica_multiplier above, struct mica_multiplier below)
{
    struct mica_multiplier multipliers[2] = {above, below};
    for (int32_t code = table->in.min; code <= table->in.max; code++) {
        int32_t value = code - table->in.zero_point;
        const struct mica_multiplier *m = &multipliers[value < 0];
        put(table, code, (int64_t)mica_scale_tflite(value, m->mantissa, m->shift) + table->out.zero_point);
    }
}

static void fill_scaled(const struct table *table, double above, double below)
{
    fill_multiplied(table, signed_multiplier(above), signed_multiplier(below));
}

/* Narrows what the table gives to the codes of the real values [low, high]. */
static void clamp_real(const struct table *table, float low, float high)
{
    const struct codes *out = &table->out;
    int32_t least = out->zero_point + (int32_t)mica_clamp_float(roundf(low / out->scale), -65536.0f, 65536.0f);
    int32_t most = out->zero_point + (int32_t)mica_clamp_float(roundf(high / out->scale), -65536.0f, 65536.0f);
    least = least < out->min ? out->min : least;
    most = most > out->max ? out->max : most;
    for (int i = 0; i < 256; i++) {
        int32_t value = out->min < 0 ? (int8_t)table->bytes[i] : table->bytes[i];
        table->bytes[i] = (uint8_t)mica_clamp_int(value, least, most);
    }
}

static void fill_relu(const struct table *table, float low, float high)
{
    float factor = table->in.scale / table->out.scale;
    fill_scaled(table, (double)factor, (double)factor);
    clamp_real(table, low, high);
}

static void fill_leaky(const struct table *table, float alpha)
{
    float factor = table->in.scale / table->out.scale, below = table->in.scale * alpha / table->out.scale;
    fill_scaled(table, (double)factor, (double)below);
}

/* The codes themselves, not what they stand for, change their sign. */
static void fill_negated(const struct table *table)
{
    for (int32_t code = table->in.min; code <= table->in.max; code++)
        table->bytes[(uint8_t)code] = (uint8_t)-code;
}

/* ---- hard swish, in 16 bits -------------------------------------------------- */

/* round(a * b / 2^15), ties away from zero. */
static int16_t multiply_rounded(int16_t a, int16_t b)
{
    int32_t product = a * b, nudge = product >= 0 ? 1 << 14 : 1 - (1 << 14);
    return a == INT16_MIN && b == INT16_MIN ? INT16_MAX : (int16_t)((product + nudge) / (1 << 15));
}

/* a * b / 2^15, towards zero. */
static int16_t multiply_truncated(int16_t a, int16_t b)
{
    return a == INT16_MIN && b == INT16_MIN ? INT16_MAX : (int16_t)(a * b / (1 << 15));
}

static int16_t shift_saturated(int32_t value, int32_t bits)
{
    int64_t shifted = bits < 32 ? (int64_t)value * (INT64_C(1) << bits) : value < 0 ? INT16_MIN : value ? INT16_MAX : 0;
    return (int16_t)(shifted < INT16_MIN ? INT16_MIN : shifted > INT16_MAX ? INT16_MAX : shifted);
}

/* A factor with 15 fraction bits. */
static struct mica_multiplier short_multiplier(float factor)
{
    struct mica_multiplier multiplier = mica_multiplier_tflite((double)factor);
    bool top = multiplier.mantissa >= INT32_MAX - (1 << 15);
    multiplier.mantissa = top ? INT16_MAX : (multiplier.mantissa + (1 << 15)) >> 16;
    return multiplier;
}

/* TFLite's division by a power of two rounds, but its masks have 16 bits: beyond those it leaves the sign alone. */
static int32_t short_rounding_shift(int16_t value, int32_t bits)
{
    return bits < 16 ? mica_rounding_shift(value, bits) : value < 0 ? -1 : 1;
}

/* min(max(x + 3, 0), 6) / 6 with 15 fraction bits; `value` is x with 7 more bits. */
static int16_t gate(int16_t value, struct mica_multiplier m)
{
    if (m.shift > 0)
        value = shift_saturated(value, m.shift - 1);
    value = multiply_rounded(value, (int16_t)m.mantissa);
    if (m.shift > 0)
        value = shift_saturated(value, 1);
    if (m.shift < 0)
        value = (int16_t)short_rounding_shift(value, -m.shift);
    return (int16_t)((value + (1 << 15)) >> 1);
}

/* TFLite's kernel takes no output scale below 1/128 of the input's. */
static int fill_hard_swish(const struct table *table)
{
    const float fine = 1.0f / 128.0f * table->in.scale;
    struct mica_multiplier to_output = short_multiplier(fine / table->out.scale);
    struct mica_multiplier to_gate = short_multiplier(fine / (3.0f / 32768.0f));
    if (to_output.shift > 0)
        return -ENOTSUP;
    for (int32_t code = table->in.min; code <= table->in.max; code++) {
        int16_t value = (int16_t)((code - table->in.zero_point) * 128);
        int16_t product =
            multiply_truncated(gate(value, to_gate), multiply_rounded(value, (int16_t)to_output.mantissa));
        int32_t shifted = short_rounding_shift(product, -to_output.shift);
        put(table, code, (int16_t)(shifted + table->out.zero_point));
    }
    return 0;
}

/* ---- absolute value and root -------------------------------------------------- */

static void fill_absolute(const struct table *table)
{
    struct mica_multiplier above = mica_multiplier_tflite((double)(table->in.scale / table->out.scale));
    fill_multiplied(table, above, (struct mica_multiplier){-above.mantissa, above.shift});
}

/* What has no logarithm becomes the least output. */
static void fill_logarithm(const struct table *table)
{
    float least = (float)(table->out.min - table->out.zero_point) * table->out.scale, inverse = 1.0f / table->out.scale;
    for (int32_t code = table->in.min; code <= table->in.max; code++) {
        float x = table->in.scale * (float)(code - table->in.zero_point), y = x <= 0 ? least : logf(x);
        put(table, code, (int32_t)mica_clamp_float(roundf(y * inverse), -512.0f, 512.0f) + table->out.zero_point);
    }
}

/* Cuts off where all others round. */
static void fill_root(const struct table *table)
{
    for (int32_t code = table->in.min; code <= table->in.max; code++) {
        float x = table->in.scale * (float)(code - table->in.zero_point);
        float steps = x < 0 ? 512.0f : mica_clamp_float(sqrtf(x) / table->out.scale, 0.0f, 512.0f);
        put(table, code, (int32_t)steps + table->out.zero_point);
    }
}

/* 1 / sqrt(value) = mantissa * 2^(shift - 31), by Newton's method; x_n has n integer bits beside the sign. */
static struct mica_multiplier inverse_root(int32_t value)
{
    const int32_t three_halves_3 = (1 << 28) + (1 << 27), half_root_of_2_0 = 1518500250;
    if (value <= 1)
        return (struct mica_multiplier){INT32_MAX, 0};
    int32_t pairs = (__builtin_clz((uint32_t)value) - 1) / 2 - 1, shift = 11 - pairs;
    /* Now in [2^27, 2^29); half of it is read with 3 integer bits. */
    int32_t half_3 = mica_rounding_shift(value << 2 * pairs >> 1, 1), x_3 = 1 << 28;
    for (int i = 0; i < 5; i++) {
        /* Products of three have 9 integer bits, of two 6: back to 3. */
        int32_t cube_3 = mica_high_multiply(mica_high_multiply(x_3, x_3), x_3) * (1 << 6);
        x_3 = (mica_high_multiply(three_halves_3, x_3) - mica_high_multiply(half_3, cube_3)) * (1 << 3);
    }
    int32_t mantissa = mica_high_multiply(x_3, half_root_of_2_0);
    return shift < 0 ? (struct mica_multiplier){mantissa << -shift, 0} : (struct mica_multiplier){mantissa, -shift};
}

static void fill_inverse_root(const struct table *table)
{
    enum { MORE_BITS = 20 };
    struct mica_multiplier m = mica_multiplier_tflite(1.0 / (double)(sqrtf(table->in.scale) * table->out.scale));
    for (int32_t code = table->in.min; code <= table->in.max; code++) {
        int32_t value = code - table->in.zero_point;
        put(table, code, table->out.max);
        if (value <= 0)
            continue;
        struct mica_multiplier root = inverse_root(value);
        int32_t fine = mica_scale_tflite(1, root.mantissa, root.shift + MORE_BITS);
        put(table, code, (int64_t)mica_scale_tflite(fine, m.mantissa, m.shift - MORE_BITS) + table->out.zero_point);
    }
}

/* ---- all of them ------------------------------------------------------------- */

static bool only_signed(enum mica_op_kind kind)
{
    return kind == MICA_OP_ELU || kind == MICA_OP_ABS || kind == MICA_OP_NEG || kind == MICA_OP_EXP ||
           kind == MICA_OP_SQRT || kind == MICA_OP_RSQRT || kind == MICA_OP_LOG;
}

static int fill(const struct table *table, const struct mica_op *op)
{
    switch (op->kind) {
    case MICA_OP_LOGISTIC:
        return fill_float(table, logistic), 0;
    case MICA_OP_TANH:
        return fill_float(table, tanhf), 0;
    case MICA_OP_ELU:
        return fill_float(table, elu), 0;
    case MICA_OP_EXP:
        return fill_float(table, expf), 0;
    case MICA_OP_LOG:
        return fill_logarithm(table), 0;
    case MICA_OP_SQRT:
        return fill_root(table), 0;
    case MICA_OP_HARD_SWISH:
        return fill_hard_swish(table);
    case MICA_OP_RELU:
        return fill_relu(table, 0, INFINITY), 0;
    case MICA_OP_RELU6:
        return fill_relu(table, 0, 6), 0;
    case MICA_OP_RELU_N1_TO_1:
        return fill_relu(table, -1, 1), 0;
    case MICA_OP_RELU_0_TO_1:
        return fill_relu(table, 0, 1), 0;
    case MICA_OP_LEAKY_RELU:
        return fill_leaky(table, op->alpha), 0;
    case MICA_OP_ABS:
        return fill_absolute(table), 0;
    case MICA_OP_NEG:
        return fill_negated(table), 0;
    case MICA_OP_RSQRT:
        return fill_inverse_root(table), 0;
    case MICA_OP_QUANTIZE: {
        double factor = (double)table->in.scale / (double)table->out.scale;
        return fill_scaled(table, factor, factor), 0;
    }
    default:
        return -ENOTSUP;
    }
}

int mica_cpu_table(const struct mica_graph *graph, const struct mica_op *op, uint8_t table[256])
{
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *out = mica_op_output(graph, op, 0);
    if (op->problem || !is_8bit(in) || !is_8bit(out))
        return -ENOTSUP;
    if (op->kind != MICA_OP_QUANTIZE &&
        (in->type != out->type || (only_signed(op->kind) && in->type != MICA_TYPE_INT8)))
        return -ENOTSUP;
    struct table work = {codes_of(in), codes_of(out), table};
    return fill(&work, op);
}
