/* SPDX-License-Identifier: MIT */
/* The roundings, at their ends and ties. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "cpu/requant.h"
#include "scene.h"

static void tflite_factors_become_mantissa_and_shift(void **state)
{
    struct mica_multiplier m = mica_multiplier_tflite(0.5);
    assert_int_equal(m.mantissa, 1 << 30);
    assert_int_equal(m.shift, 0);
    m = mica_multiplier_tflite(3.0);
    assert_int_equal(m.mantissa, 3 << 29);
    assert_int_equal(m.shift, 2);
    /* Rounds up to the next power of two. */
    m = mica_multiplier_tflite(1 - ldexp(1, -40));
    assert_int_equal(m.mantissa, 1 << 30);
    assert_int_equal(m.shift, 1);
}

static void factors_out_of_range_are_harmless(void **state)
{
    const double factors[] = {0, -1, NAN, ldexp(1, -40), 1e300, INFINITY};
    for (size_t i = 0; i < sizeof factors / sizeof factors[0]; i++) {
        struct mica_multiplier m = mica_multiplier_tflite(factors[i]);
        assert_in_range(m.shift + 31, 0, 61);
        mica_scale_tflite(INT32_MIN, m.mantissa, m.shift);
        mica_scale_tflite(INT32_MAX, m.mantissa, m.shift);
        m = mica_multiplier_vivante((float)factors[i], MICA_ARITHMETIC_VIVANTE_V8);
        assert_in_range(m.shift, 0, 62);
        mica_scale_even(INT32_MIN, m.mantissa, m.shift);
    }
}

static void tflite_rounds_twice(void **state)
{
    struct mica_multiplier half = mica_multiplier_tflite(0.5), quarter = mica_multiplier_tflite(0.25);
    /* Without a second shift, halves go towards plus infinity; */
    assert_int_equal(mica_scale_tflite(3, half.mantissa, half.shift), 2);
    assert_int_equal(mica_scale_tflite(-3, half.mantissa, half.shift), -1);
    /* with one, 0.25 becomes 0.5 before it is rounded again, away from zero. */
    assert_int_equal(mica_scale_tflite(1, quarter.mantissa, quarter.shift), 1);
    assert_int_equal(mica_scale_tflite(-3, quarter.mantissa, quarter.shift), -1);
    assert_int_equal(mica_scale_tflite(-2, quarter.mantissa, quarter.shift), -1);
}

static void the_second_shift_goes_away_from_zero_at_ties(void **state)
{
    assert_int_equal(mica_rounding_shift(3, 1), 2);
    assert_int_equal(mica_rounding_shift(-3, 1), -2);
    assert_int_equal(mica_rounding_shift(-5, 2), -1);
    assert_int_equal(mica_rounding_shift(INT32_MAX, 31), 1);
    assert_int_equal(mica_rounding_shift(INT32_MIN, 31), -1);
    assert_int_equal(mica_rounding_shift(INT32_MIN, 0), INT32_MIN);
}

static void high_multiply_is_a_floor_after_adding_a_half(void **state)
{
    const int32_t values[] = {0, 1, -1, 12345, -98765, INT32_MAX, INT32_MIN, 1 << 30, -(1 << 30)};
    const int32_t mantissas[] = {1 << 30, (1 << 30) + 1, 1464063813, INT32_MAX};
    for (size_t i = 0; i < 9; i++) {
        for (size_t j = 0; j < 4; j++) {
            int64_t sum = (int64_t)values[i] * mantissas[j] + (INT64_C(1) << 30);
            int64_t expected = sum / (INT64_C(1) << 31) - (sum % (INT64_C(1) << 31) < 0);
            assert_int_equal(mica_high_multiply(values[i], mantissas[j]), expected);
        }
    }
}

static void the_v7_multiplier_is_truncated_and_the_v8_one_is_not(void **state)
{
    struct mica_multiplier v7 = mica_multiplier_vivante(0x1.01ffp-3f, MICA_ARITHMETIC_VIVANTE_V7);
    struct mica_multiplier v8 = mica_multiplier_vivante(0x1.01ffp-3f, MICA_ARITHMETIC_VIVANTE_V8);
    assert_int_equal(v7.mantissa, 0x80ff);
    assert_int_equal(v7.shift, 15 + 3);
    assert_int_equal(v8.mantissa, 0x80ff80);
    assert_int_equal(v8.shift, 23 + 3);
}

static void the_npu_rounds_once_and_ties_to_even(void **state)
{
    struct mica_multiplier m = mica_multiplier_vivante(0.5f, MICA_ARITHMETIC_VIVANTE_V7);
    const int32_t values[] = {-7, -5, -3, -1, 1, 3, 5, 7}, expected[] = {-4, -2, -2, 0, 0, 2, 2, 4};
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(mica_scale_even(values[i], m.mantissa, m.shift), expected[i]);
}

static void the_npu_agrees_with_exact_arithmetic(void **state)
{
    uint32_t seed[3];
    for (uint32_t i = 0; i < 20000; i++) {
        scene_noise(seed, sizeof seed, i);
        int32_t value = (int32_t)seed[0] >> (seed[2] & 31);
        float factor = ldexpf(1 + (float)(seed[1] >> 9) * 0x1p-23f, -(int)(seed[2] >> 8 & 31));
        struct mica_multiplier m = mica_multiplier_vivante(factor, MICA_ARITHMETIC_VIVANTE_V8);
        long double exact = rintl((long double)value * (long double)factor);
        assert_true((long double)mica_scale_even(value, m.mantissa, m.shift) == exact);
        m = mica_multiplier_vivante(factor, MICA_ARITHMETIC_VIVANTE_V7);
        exact = rintl((long double)value * ldexpl((long double)m.mantissa, -m.shift));
        assert_true((long double)mica_scale_even(value, m.mantissa, m.shift) == exact);
        assert_true(fabsl(ldexpl((long double)m.mantissa, -m.shift) / (long double)factor - 1) < 0x1p-15L);
    }
}

static void fully_connected_layers_round_once_away_from_zero(void **state)
{
    assert_int_equal(mica_scale_once(5, 0.5), 3);
    assert_int_equal(mica_scale_once(-5, 0.5), -3);
    assert_int_equal(mica_scale_once(1, 0.25), 0);
    assert_true(mica_scale_once(INT32_MAX, 1e9) > 1 << 29);
    assert_true(mica_scale_once(INT32_MIN, 1e9) < -(1 << 29));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tflite_factors_become_mantissa_and_shift),
        cmocka_unit_test(factors_out_of_range_are_harmless),
        cmocka_unit_test(tflite_rounds_twice),
        cmocka_unit_test(the_second_shift_goes_away_from_zero_at_ties),
        cmocka_unit_test(high_multiply_is_a_floor_after_adding_a_half),
        cmocka_unit_test(the_v7_multiplier_is_truncated_and_the_v8_one_is_not),
        cmocka_unit_test(the_npu_rounds_once_and_ties_to_even),
        cmocka_unit_test(the_npu_agrees_with_exact_arithmetic),
        cmocka_unit_test(fully_connected_layers_round_once_away_from_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
