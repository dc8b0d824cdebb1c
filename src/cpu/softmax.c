/* SPDX-License-Identifier: MIT */
/*
 * SOFTMAX along the last dimension. The 8-bit kernel is the reference one of
 * TFLite: 32-bit fixed point all the way. Numbers named x_n have n integer
 * bits beside the sign, the rest is fraction.
 */
#include <float.h>
#include <math.h>

#include "cpu/requant.h"

/* Differences to the maximum are scaled to 5 integer bits; sums of exponentials have 12. */
enum { DIFFERENCE_BITS = 5, SUM_BITS = 12 };

/* The scale of differences as TFLite's kernel wants it, 0 when it has none (its multiplier must be above 1). */
static struct mica_multiplier difference_multiplier(float beta, float scale)
{
    double factor = (double)beta * (double)scale * (double)(1 << (31 - DIFFERENCE_BITS));
    if (!(factor > 1))
        return (struct mica_multiplier){0, 0};
    return mica_multiplier_tflite(fmin(factor, (double)INT32_MAX));
}

static bool probability_scale(const struct mica_tensor *out)
{
    return mica_cpu_zero_point(out) == 0 && fabsf(out->quant.scale[0] - 1.0f / 256) <= 0.001f / 256;
}

int mica_cpu_check_softmax(const struct mica_graph *graph, const struct mica_op *op, struct mica_cpu_reason *reason)
{
    int result = mica_cpu_check_operands(graph, op, 1, 1, reason);
    if (result)
        return result;
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *out = mica_op_output(graph, op, 0);
    result = mica_cpu_check_value(in, "input", reason);
    if (!result)
        result = mica_cpu_check_value(out, "output", reason);
    if (result)
        return result;
    if (in->rank < 1 || !mica_cpu_same_shape(in, out) || in->type != out->type)
        return mica_cpu_refuse(reason, "input and output differ in type or shape, or are scalars");
    if (in->type == MICA_TYPE_FLOAT32)
        return 0;
    if (!probability_scale(out))
        return mica_cpu_refuse(reason, "the output's quantization is not 0..255/256");
    if (!difference_multiplier(op->beta, in->quant.scale[0]).mantissa)
        return mica_cpu_refuse(reason, "beta times the input's scale is not above 2^-26");
    return 0;
}

/* value * 2^bits, saturated. */
static int32_t saturating_shift(int32_t value, int bits)
{
    int64_t wide = (int64_t)value * (INT64_C(1) << bits);
    return wide > INT32_MAX ? INT32_MAX : wide < INT32_MIN ? INT32_MIN : (int32_t)wide;
}

/* Product of two fractions; only the product of two smallest numbers does not fit. */
static int32_t multiply(int32_t a, int32_t b)
{
    return a == INT32_MIN && b == INT32_MIN ? INT32_MAX : mica_high_multiply(a, b);
}

/* exp(x_0) for x in [-1/4, 0): the Taylor series around -1/8. */
static int32_t exp_small(int32_t x_0)
{
    const int32_t exp_center = 1895147668; /* exp(-1/8) */
    const int32_t third = 715827883;
    int32_t x = x_0 + (1 << 28), x2 = multiply(x, x), x3 = multiply(x2, x), x4 = multiply(x2, x2);
    int32_t tail = mica_rounding_shift(multiply(mica_rounding_shift(x4, 2) + x3, third) + x2, 1);
    return exp_center + multiply(exp_center, x + tail);
}

/* exp(x_5) for x <= 0: the fraction below 1/4 by series, then a factor exp(-2^i) for each remaining bit. */
static int32_t exp_negative(int32_t x_5)
{
    static const int32_t factors[] = {1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242};
    const int32_t quarter = 1 << (31 - DIFFERENCE_BITS - 2);
    if (x_5 == 0)
        return INT32_MAX;
    int32_t small = (x_5 & (quarter - 1)) - quarter, rest = small - x_5;
    int32_t result = exp_small(saturating_shift(small, DIFFERENCE_BITS));
    for (int i = 0; i < 7; i++)
        if (rest & quarter << i)
            result = multiply(result, factors[i]);
    return result;
}

/* 1 / (1 + x_0) for x in [0, 1): Newton's method on half the denominator. */
static int32_t one_over_one_plus(int32_t x_0)
{
    const int32_t c48_over_17 = 1515870810, minus_32_over_17 = -1010580540, one_2 = 1 << 29;
    int32_t half = (int32_t)(((int64_t)x_0 + INT32_MAX + 1) / 2);
    int32_t x_2 = c48_over_17 + multiply(half, minus_32_over_17);
    for (int i = 0; i < 3; i++)
        x_2 += saturating_shift(multiply(x_2, one_2 - multiply(half, x_2)), 2);
    return saturating_shift(x_2, 1);
}

struct softmax {
    const struct mica_cpu_call *call;
    size_t depth;
    int32_t exponentials[256]; /* of a difference of -i */
    int32_t least;             /* smaller differences count as 0 */
    float beta;
};

/* The largest difference whose scaled value still fits. */
static int32_t difference_radius(int32_t shift)
{
    double largest = (double)((1 << DIFFERENCE_BITS) - 1) * (double)(1 << (31 - DIFFERENCE_BITS));
    return (int32_t)floor(largest / (double)(INT64_C(1) << shift));
}

static void prepare(struct softmax *softmax, float beta, float scale)
{
    struct mica_multiplier multiplier = difference_multiplier(beta, scale);
    softmax->least = -difference_radius(multiplier.shift);
    for (int32_t i = 0; i < 256 && -i >= softmax->least; i++)
        softmax->exponentials[i] =
            exp_negative(mica_high_multiply(-i * (int32_t)(INT64_C(1) << multiplier.shift), multiplier.mantissa));
}

/* What the exponentials are multiplied with, and the shift of the product: together 256 divided by their sum. */
struct inverse {
    int32_t factor, shift;
};

static struct inverse inverse_of(uint64_t sum)
{
    uint32_t sum_12 = sum > UINT32_MAX ? UINT32_MAX : (uint32_t)sum;
    /* exp(0) is in the sum, so that it has a highest bit. */
    int zeros = __builtin_clz(sum_12);
    return (struct inverse){one_over_one_plus((int32_t)(sum_12 << zeros & INT32_MAX)), SUM_BITS - zeros + 31 - 8};
}

static uint64_t sum_line(const struct softmax *softmax, const uint8_t *in, uint8_t flip, int32_t max)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < softmax->depth; i++) {
        int32_t difference = (in[i] ^ flip) - max;
        if (difference >= softmax->least)
            sum += (uint64_t)mica_rounding_shift(softmax->exponentials[-difference], SUM_BITS);
    }
    return sum;
}

static void run_line(void *user, size_t line)
{
    const struct softmax *softmax = user;
    const struct mica_cpu_call *call = softmax->call;
    uint8_t flip = mica_cpu_flip(mica_cpu_input(call, 0));
    const uint8_t *in = (const uint8_t *)mica_cpu_input_data(call, 0) + line * softmax->depth;
    uint8_t *out = (uint8_t *)mica_cpu_output_data(call, 0) + line * softmax->depth;
    int32_t max = 0;
    for (size_t i = 0; i < softmax->depth; i++)
        max = (in[i] ^ flip) > max ? (in[i] ^ flip) : max;
    struct inverse inverse = inverse_of(sum_line(softmax, in, flip, max));
    for (size_t i = 0; i < softmax->depth; i++) {
        int32_t difference = (in[i] ^ flip) - max, value = 0;
        /* Above 31 (sums of 512 and more, which TFLite does not survive) everything rounds to 0. */
        if (difference >= softmax->least && inverse.shift <= 31)
            value = mica_rounding_shift(multiply(inverse.factor, softmax->exponentials[-difference]), inverse.shift);
        out[i] = (uint8_t)mica_clamp_int(value, 0, 255) ^ flip;
    }
}

static void run_line_float(void *user, size_t line)
{
    const struct softmax *softmax = user;
    const float *in = (const float *)mica_cpu_input_data(softmax->call, 0) + line * softmax->depth;
    float *out = (float *)mica_cpu_output_data(softmax->call, 0) + line * softmax->depth;
    float max = -FLT_MAX, sum = 0;
    for (size_t i = 0; i < softmax->depth; i++)
        max = max < in[i] ? in[i] : max;
    for (size_t i = 0; i < softmax->depth; i++) {
        out[i] = expf((in[i] - max) * softmax->beta);
        sum += out[i];
    }
    for (size_t i = 0; i < softmax->depth; i++)
        out[i] /= sum;
}

int mica_cpu_softmax(const struct mica_cpu_call *call)
{
    const struct mica_tensor *in = mica_cpu_input(call, 0);
    struct softmax softmax = {call, (size_t)in->dims[in->rank - 1], {0}, 0, call->op->beta};
    size_t lines = mica_cpu_elements(in) / softmax.depth;
    if (in->type == MICA_TYPE_FLOAT32) {
        mica_parallel_for(call->threads, lines, run_line_float, &softmax);
    } else {
        prepare(&softmax, softmax.beta, in->quant.scale[0]);
        mica_parallel_for(call->threads, lines, run_line, &softmax);
    }
    return 0;
}
