/* SPDX-License-Identifier: MIT */
/* Scales, multipliers and clamps against arithmetic in real numbers and by trying all values. */
#include "support.h"

#include <math.h>

#include "npu/rockchip/compile/plan.h"
#include "npu/rockchip/compile/requant.h"

#define CHANNELS 32

static void scales_are_the_nearest(void **state)
{
    (void)state;
    struct random random = {3};
    for (unsigned i = 0; i < 100000; i++) {
        double factor = exp2(random_between(&random, -4800000, 1499999) / 100000.0);
        uint32_t scale, shift;
        assert_true(rk_scale_make(factor, &scale, &shift));
        assert_true(scale >= 0x4000 && scale <= 0x7fff && shift <= 63);
        double got = ldexp(scale, -(int)shift), step = ldexp(1, -(int)shift);
        /* Just below a power of two the next scale up would be 0x8000: the power itself is as near. */
        assert_true(fabs(got - factor) <= step / 2 * (1 + 1e-12));
    }
}

static void a_carry_goes_to_the_next_power(void **state)
{
    (void)state;
    uint32_t scale, shift;
    for (int exponent = -40; exponent <= 14; exponent++) {
        assert_true(rk_scale_make(ldexp(1 - 1e-6, exponent), &scale, &shift));
        assert_int_equal(scale, 0x4000);
        assert_int_equal(shift, 14 - exponent);
        assert_true(rk_scale_make(ldexp(1, exponent), &scale, &shift));
        assert_int_equal(scale, 0x4000);
        assert_int_equal(shift, 14 - exponent);
    }
}

static void factors_out_of_range_are_refused_or_zero(void **state)
{
    (void)state;
    uint32_t scale, shift;
    assert_false(rk_scale_make(32768, &scale, &shift));
    assert_false(rk_scale_make(32767.9, &scale, &shift));
    assert_true(rk_scale_make(32767, &scale, &shift));
    assert_int_equal(scale, 32767);
    assert_int_equal(shift, 0);
    assert_false(rk_scale_make(0, &scale, &shift));
    assert_false(rk_scale_make(NAN, &scale, &shift));
    assert_false(rk_scale_make(INFINITY, &scale, &shift));
    assert_true(rk_scale_make(1e-20, &scale, &shift));
    assert_int_equal(rk_round_shift((int64_t)INT32_MAX * scale, shift), 0);
    assert_int_equal(rk_round_shift((int64_t)INT32_MIN * scale, shift), 0);
    double large[] = {1e-3, 40000};
    assert_non_null(rk_factors_problem(large, 2, NULL));
}

static void ties_go_to_even(void **state)
{
    (void)state;
    assert_int_equal(rk_round_shift(3, 1), 2);
    assert_int_equal(rk_round_shift(5, 1), 2);
    assert_int_equal(rk_round_shift(-3, 1), -2);
    assert_int_equal(rk_round_shift(-5, 1), -2);
    assert_int_equal(rk_round_shift(7, 2), 2);
    assert_int_equal(rk_round_shift(-7, 0), -7);
}

static int64_t convert(const struct rk_requant *requant, int64_t value)
{
    return rk_round_shift(value * requant->scale, requant->shift);
}

static int64_t limited(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* Where the engine takes the clamp, clamping before the conversion is clamping after it. */
static void clamps_are_exact(void **state)
{
    (void)state;
    struct random random = {5};
    unsigned taken = 0, left = 0;
    for (unsigned i = 0; i < 3000; i++) {
        struct rk_factor factor = {exp2(random_between(&random, -1200, 300) / 100.0), 1e9};
        struct rk_requant requant;
        assert_true(rk_requant_make(&factor, 1, true, &requant));
        int32_t zero = random_between(&random, -128, 127);
        int32_t min = random_below(&random, 3) ? zero : -128, max = random_between(&random, zero, 127);
        if (!rk_requant_clamp(&requant, zero, min, max)) {
            left++;
            continue;
        }
        taken++;
        int32_t span = (int32_t)(400 / factor.factor) + 4;
        for (int32_t v = -span; v <= span; v += span / 500 + 1) {
            int64_t clamped = v;
            if (requant.relu && clamped < 0)
                clamped = 0;
            if (requant.relux && clamped > requant.upper)
                clamped = requant.upper;
            int64_t got = limited(convert(&requant, clamped) + zero, -128, 127);
            assert_int_equal(got, limited(limited(convert(&requant, v) + zero, -128, 127), min, max));
        }
    }
    assert_true(taken > 1000 && left > 100);
}

/* Every channel's result, computed as the engine does, is as near as the reported error says. */
static void channels_are_as_near_as_promised(void **state)
{
    (void)state;
    struct random random = {9};
    for (unsigned i = 0; i < 2000; i++) {
        struct rk_factor factors[CHANNELS];
        double top = exp2(random_between(&random, -1000, 500) / 100.0), span = random_between(&random, 0, 9);
        for (unsigned c = 0; c < CHANNELS; c++)
            factors[c] = (struct rk_factor){top * exp2(-span * random_below(&random, 1000) / 1000.0), INT32_MAX};
        struct rk_requant requant;
        uint32_t used = rk_requant_group(factors, CHANNELS, 16, true, &requant);
        if (!used) {
            assert_true(span > 6);
            continue;
        }
        assert_true(used == CHANNELS || used == 16);
        assert_true(requant.error <= RK_MAX_ERROR);
        for (unsigned c = 0; c < used; c++) {
            int64_t v = (int64_t)(random_between(&random, -255, 255) / factors[c].factor), m = v;
            if (requant.per_channel)
                m = rk_round_shift(v * rk_requant_multiplier(&requant, factors[c]), requant.mul_shift);
            assert_true(m >= INT32_MIN && m <= INT32_MAX);
            double exact = (double)v * factors[c].factor;
            assert_true(fabs((double)convert(&requant, m) - exact) <= 0.5 + requant.error + 1e-9);
        }
    }
}

static void channels_that_can_only_give_zero_cost_nothing(void **state)
{
    (void)state;
    struct rk_factor factors[] = {{0.01, 1e6}, {1e-12, 1000}, {0.009, 1e6}, {1e-20, 0}};
    struct rk_requant requant;
    assert_int_equal(rk_requant_group(factors, 4, 16, true, &requant), 4);
    assert_true(requant.error < 0.1);
    assert_int_equal(rk_requant_multiplier(&requant, factors[1]), 0);
}

static void factors_too_far_apart_are_refused(void **state)
{
    (void)state;
    double near[32], far[32], split[32], bound;
    for (unsigned i = 0; i < 32; i++) {
        near[i] = 0.01 / (1 + i % 16);
        far[i] = i % 2 ? 0.01 : 0.00001;
        split[i] = i < 16 ? 0.01 : 0.00001;
    }
    assert_null(rk_factors_problem(near, 32, &bound));
    assert_true(bound > 0 && bound < 0.5);
    assert_non_null(rk_factors_problem(far, 32, &bound));
    assert_null(rk_factors_problem(split, 32, &bound)); /* each surface has its own conversion */
}

/* What the engine makes of an accumulator, in steps before the zero point. */
static int64_t made(const struct rk_requant *requant, int32_t multiplier, int64_t v)
{
    int64_t m = rk_round_shift(v * multiplier, requant->mul_shift);
    m = m < INT32_MIN ? INT32_MIN : m > INT32_MAX ? INT32_MAX : m;
    return convert(requant, m);
}

static void check_classes(struct random *random, const struct rk_factor *factors, uint32_t used,
                          const uint8_t *class_of, const struct rk_classes *classes)
{
    for (uint32_t c = 0; c < used; c++) {
        assert_true(class_of[c] < classes->count);
        for (uint32_t k = 0; k < classes->count; k++) {
            const struct rk_requant *requant = &classes->requants[k];
            assert_true(requant->per_channel && requant->error <= RK_GROUP_ERROR);
            double swing = random_between(random, 0, 1 << 29);
            if (class_of[c] != k) { /* at the bottom from wherever it is */
                int64_t drop = rk_requant_drop(requant, swing);
                assert_true(drop >= -(INT64_C(3) << 29) &&
                            made(requant, RK_MAX_MULTIPLIER, drop + (int64_t)swing) < -300);
                assert_true(drop - swing > INT32_MIN && made(requant, RK_MAX_MULTIPLIER, drop - (int64_t)swing) < -300);
                continue;
            }
            double v = rint(fmin(255 / factors[c].factor, factors[c].reach) * random_between(random, -100, 100) / 100);
            int64_t got = made(requant, rk_requant_multiplier(requant, factors[c]), (int64_t)v);
            assert_true(fabs((double)got - v * factors[c].factor) <= 0.5 + requant->error + 1e-9);
        }
    }
}

static void neighbours_far_apart_are_sorted(void **state)
{
    (void)state;
    struct random random = {11};
    unsigned several = 0, refused = 0, joined = 0;
    for (unsigned i = 0; i < 2000; i++) {
        struct rk_factor factors[CHANNELS];
        uint8_t class_of[CHANNELS];
        struct rk_classes classes;
        uint32_t atom = i % 2 ? 16 : 8, span = (uint32_t)random_between(&random, 9, 40);
        double top = exp2(random_between(&random, -1000, 100) / 100.0);
        for (unsigned c = 0; c < CHANNELS; c++) {
            factors[c].factor = top * exp2(-(double)span * random_below(&random, 1000) / 1000.0);
            factors[c].reach = exp2(random_between(&random, 800, 3050) / 100.0);
        }
        uint32_t used = rk_requant_classes(factors, CHANNELS, atom, true, class_of, &classes);
        refused += !used;
        several += used && classes.count > 1;
        joined += used > atom;
        assert_true(used % atom == 0 && (!used || classes.count <= RK_MAX_CLASSES));
        if (used)
            check_classes(&random, factors, used, class_of, &classes);
    }
    assert_true(several > 500 && joined > 50);
    (void)refused;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scales_are_the_nearest),
        cmocka_unit_test(a_carry_goes_to_the_next_power),
        cmocka_unit_test(factors_out_of_range_are_refused_or_zero),
        cmocka_unit_test(ties_go_to_even),
        cmocka_unit_test(clamps_are_exact),
        cmocka_unit_test(channels_are_as_near_as_promised),
        cmocka_unit_test(channels_that_can_only_give_zero_cost_nothing),
        cmocka_unit_test(factors_too_far_apart_are_refused),
        cmocka_unit_test(neighbours_far_apart_are_sorted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
