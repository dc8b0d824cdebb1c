/* SPDX-License-Identifier: MIT */
/* Functions of one value as ramps and their sum: every byte, by arithmetic written here once more. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cpu/table.h"
#include "npu/vivante/compile/table_fit.h"

static const struct viv_chip *const chips[] = {&viv_a311d, &viv_imx8mp, &viv_s905d3};

static const struct function {
    enum mica_op_kind kind;
    const char *name;
    bool only_signed;
    uint32_t most; /* ramps that were ever seen, and some */
} functions[] = {
    {MICA_OP_LOGISTIC, "LOGISTIC", false, 48},
    {MICA_OP_TANH, "TANH", false, 48},
    {MICA_OP_HARD_SWISH, "HARD_SWISH", false, 48},
    {MICA_OP_ELU, "ELU", true, 48},
    {MICA_OP_EXP, "EXP", true, 48},
    {MICA_OP_LOG, "LOG", true, 48},
    {MICA_OP_SQRT, "SQRT", true, 48},
    {MICA_OP_RSQRT, "RSQRT", true, 48},
    {MICA_OP_NEG, "NEG", true, 2},
    {MICA_OP_RELU, "RELU", false, 2},
    {MICA_OP_RELU6, "RELU6", false, 48},
    {MICA_OP_RELU_N1_TO_1, "RELU_N1_TO_1", false, 48},
    {MICA_OP_RELU_0_TO_1, "RELU_0_TO_1", false, 48},
    {MICA_OP_LEAKY_RELU, "LEAKY_RELU", false, 48},
    {MICA_OP_ABS, "ABS", true, 48},
    {MICA_OP_QUANTIZE, "QUANTIZE", false, 48},
};

static int32_t clamp(long double value)
{
    return value < 0 ? 0 : value > 255 ? 255 : (int32_t)value;
}

/* The specification's section 6.1 in floating point, which holds 31 + 24 bits. */
static int32_t requantized(const struct viv_chip *chip, struct viv_requant requant, int32_t sum, int32_t zero,
                           bool relu)
{
    long double factor = 1 + (long double)requant.multiplier / (1L << chip->multiplier_bits);
    int shift = chip->multiplier_bits == 15 ? (int)requant.shift - 15 : (int)requant.shift;
    long double value = ldexpl(sum * factor, -shift), down = floorl(value), rest = value - down;
    long double rounded = rest > 0.5L || (rest == 0.5L && fmodl(down, 2) != 0) ? down + 1 : down;
    return clamp(relu && rounded < 0 ? zero : rounded + zero);
}

static int32_t device(const struct viv_chip *chip, const struct viv_table_fit *fit, int32_t x)
{
    int32_t sum = fit->bias;
    if (fit->single)
        return requantized(chip, fit->requant, sum + fit->ramps[0].weight * x, fit->zero, fit->zero > 0);
    for (uint32_t i = 0; i < fit->count; i++)
        sum += fit->ramps[i].weight * clamp(fit->ramps[i].gain * (x - fit->ramps[i].start));
    return requantized(chip, fit->requant, sum, 0, false);
}

static void check_fields(const struct viv_table_fit *fit)
{
    assert_in_range(fit->count, 1, VIV_TABLE_RAMPS);
    assert_true(!fit->single || fit->count == 1);
    for (uint32_t i = 0; i < fit->count; i++) {
        const struct viv_ramp *ramp = &fit->ramps[i];
        assert_true(ramp->gain != 0 && (ramp->gain > 0) == (fit->ramps[0].gain > 0));
        assert_true(ramp->gain >= -127 && ramp->gain <= 127 && ramp->weight >= -127 && ramp->weight <= 127);
        assert_in_range(ramp->start, 0, 255);
    }
}

static void check(const struct viv_chip *chip, const struct viv_table_fit *fit, const uint8_t table[256])
{
    check_fields(fit);
    for (int32_t x = 0; x < 256; x++) {
        assert_int_equal(viv_table_value(chip, fit, (uint8_t)x), table[x]);
        assert_int_equal(device(chip, fit, x), table[x]);
    }
}

/* ---- what TFLite has ------------------------------------------------------------ */

static double uniform(struct random *random, double low, double high)
{
    return low + (high - low) * random_word(random) / 4294967296.0;
}

static float some_scale(struct random *random)
{
    return (float)pow(10, uniform(random, -3, 0.5));
}

static int32_t some_zero_point(struct random *random, enum mica_type type)
{
    return (int32_t)random_below(random, 256) - (type == MICA_TYPE_INT8 ? 128 : 0);
}

/* Scales as models have them, and others. */
static void some_output(struct random *random, const struct function *function, struct spec *out, const struct spec *in)
{
    out->scale = (float)(in->scale * pow(2, uniform(random, -3, 3)));
    out->zero_point = some_zero_point(random, out->type);
    if (function->kind == MICA_OP_LOGISTIC || function->kind == MICA_OP_TANH) { /* TFLite wants no others */
        out->scale = function->kind == MICA_OP_TANH ? 1.0f / 128 : 1.0f / 256;
        out->zero_point = function->kind == MICA_OP_TANH ? 0 : -128;
        out->zero_point += out->type == MICA_TYPE_INT8 ? 0 : 128;
    }
    if (function->kind == MICA_OP_EXP || function->kind == MICA_OP_LOG || function->kind == MICA_OP_SQRT ||
        function->kind == MICA_OP_RSQRT)
        out->scale = some_scale(random) / 8;
}

/* False: TFLite has no such function. */
static bool some_table(struct random *random, const struct function *function, uint8_t table[256])
{
    bool is_signed = function->only_signed || random_below(random, 2);
    struct spec in = {is_signed ? MICA_TYPE_INT8 : MICA_TYPE_UINT8, some_scale(random), 0, 1, {4}}, out = in;
    in.zero_point = some_zero_point(random, in.type);
    some_output(random, function, &out, &in);
    uint8_t stored[256], flip = is_signed ? 0x80 : 0;
    struct net net;
    net_open(&net);
    int32_t input = net_tensor(&net, &in, NULL), output = net_tensor(&net, &out, NULL);
    struct mica_op op = {.kind = function->kind, .alpha = (float)uniform(random, -0.5, 1.5)};
    net_op(&net, op, function->name, &input, 1, output);
    bool known = !mica_cpu_table(net.graph, &net.graph->ops[0], stored);
    for (uint32_t x = 0; known && x < 256; x++)
        table[x] = stored[x ^ flip] ^ flip;
    net_close(&net);
    return known;
}

static void functions_are_exact_for_every_byte(void **state)
{
    (void)state;
    struct random random = {7};
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        uint32_t most = 0, sum = 0, count = 0;
        for (uint32_t run = 0; run < 300; run++) {
            const struct viv_chip *chip = chips[run % 3];
            uint8_t table[256];
            struct viv_table_fit fit;
            if (!some_table(&random, &functions[i], table))
                continue;
            assert_true(viv_table_fits(chip, table) && viv_table_fit(chip, table, &fit));
            check(chip, &fit, table);
            most = fit.count > most ? fit.count : most;
            sum += fit.count;
            count++;
        }
        print_message("%-14s %5.1f ramps, at most %u\n", functions[i].name, (double)sum / count, most);
        assert_true(most <= functions[i].most);
    }
}

/* ---- what it hasn't ----------------------------------------------------------------- */

static void any_other_function_is_exact_or_refused(void **state)
{
    (void)state;
    struct random random = {3};
    for (uint32_t run = 0; run < 300; run++) {
        uint8_t table[256];
        uint32_t step = random_below(&random, 40), value = random_below(&random, 256), fitted = 0;
        for (uint32_t x = 0; x < 256; x++) {
            int32_t next = (int32_t)(value + random_below(&random, 2 * step + 1)) - (int32_t)step;
            value = random_below(&random, 4) ? (uint32_t)clamp(next) : value;
            table[x] = (uint8_t)value;
        }
        struct viv_table_fit fit;
        assert_int_equal(viv_table_fit(chips[run % 3], table, &fit), viv_table_fits(chips[run % 3], table));
        if (viv_table_fit(chips[run % 3], table, &fit)) {
            check(chips[run % 3], &fit, table);
            fitted++;
        }
        assert_true(fitted || step > 1);
    }
}

/* But for some that multipliers of 16 bits are not exact enough for. */
static void lines_with_a_bound_below_are_one_job(void **state)
{
    (void)state;
    struct random random = {5};
    uint32_t single = 0;
    for (uint32_t run = 0; run < 600; run++) {
        uint8_t table[256], low = (uint8_t)random_below(&random, 200);
        double slope = uniform(&random, -3, 3), start = uniform(&random, -100, 300);
        for (int32_t x = 0; x < 256; x++) {
            int32_t value = clamp(floor(start + slope * x + 0.5));
            table[x] = run % 2 && value < low ? low : (uint8_t)value;
        }
        struct viv_table_fit fit;
        assert_true(viv_table_fit(chips[run % 3], table, &fit));
        check(chips[run % 3], &fit, table);
        single += fit.single;
    }
    assert_in_range(single, 580, 600);
}

static void constants_and_steps(void **state)
{
    (void)state;
    for (uint32_t at = 0; at <= 256; at += 16)
        for (uint32_t pair = 0; pair < 5; pair++) {
            static const uint8_t values[5][2] = {{0, 255}, {255, 0}, {7, 7}, {3, 200}, {0, 1}};
            uint8_t table[256];
            for (uint32_t x = 0; x < 256; x++)
                table[x] = values[pair][x >= at];
            struct viv_table_fit fit;
            assert_true(viv_table_fit(chips[pair % 3], table, &fit));
            check(chips[pair % 3], &fit, table);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_are_exact_for_every_byte),
        cmocka_unit_test(any_other_function_is_exact_or_refused),
        cmocka_unit_test(lines_with_a_bound_below_are_one_job),
        cmocka_unit_test(constants_and_steps),
    };
    return cmocka_run_group_tests_name("vivante-compile tables", tests, NULL, NULL);
}
