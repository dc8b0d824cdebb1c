/* SPDX-License-Identifier: MIT */
/*
 * Products, sums and repeated operands: the jobs' arithmetic, evaluated here from
 * the specification (section 6.1) for every pair of bytes, and where moves put bytes.
 */
#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "npu/vivante/compile/pair.h"
#include "npu/vivante/compile/product.h"
#include "npu/vivante/compile/sum.h"

static const struct viv_chip *const chips[] = {&viv_a311d, &viv_imx8mp};

/* ---- what a job makes of bytes ----------------------------------------------------- */

/* acc * M / 2^S to the nearest whole number, ties to even. */
static int64_t scaled(const struct viv_chip *chip, const struct viv_requant *requant, int32_t sum)
{
    unsigned bits = chip->multiplier_bits, shift = requant->shift + (bits == 23 ? 23 : 0);
    int64_t product = (int64_t)sum * ((INT64_C(1) << bits) + requant->multiplier), floor = product >> shift;
    int64_t rest = product - floor * (INT64_C(1) << shift), half = shift ? INT64_C(1) << (shift - 1) : 0;
    if (shift && (rest > half || (rest == half && floor % 2)))
        floor++;
    return floor;
}

static uint8_t output_of(const struct viv_chip *chip, const struct viv_mix *mix, uint32_t output, const uint8_t *planes)
{
    int32_t sum = mix->bias[output];
    for (uint32_t i = 0; i < mix->inputs; i++)
        sum += mix->weight[output][i] * planes[i];
    int64_t value = scaled(chip, &mix->requant, sum) + mix->out_zero;
    if (mix->relu && value < mix->out_zero)
        value = mix->out_zero;
    return value < 0 ? 0 : value > 255 ? 255 : (uint8_t)value;
}

static void run(const struct viv_chip *chip, const struct viv_mix *mix, const uint8_t *planes, uint8_t *outputs)
{
    uint8_t made[VIV_MIX_OUTPUTS];
    for (uint32_t i = 0; i < mix->outputs; i++)
        made[i] = output_of(chip, mix, i, planes);
    memcpy(outputs, made, mix->outputs);
}

/* Weights are 8 bits above a zero point that is one of them. */
static void check_weights(const struct viv_mix *mix)
{
    int least = 0, largest = 0;
    assert_true(mix->inputs <= VIV_MIX_INPUTS && mix->outputs <= VIV_MIX_OUTPUTS);
    for (uint32_t k = 0; k < mix->outputs; k++)
        for (uint32_t i = 0; i < mix->inputs; i++) {
            least = mix->weight[k][i] < least ? mix->weight[k][i] : least;
            largest = mix->weight[k][i] > largest ? mix->weight[k][i] : largest;
        }
    assert_true(largest - least <= 255);
}

/* ---- products ------------------------------------------------------------------------ */

struct recipe {
    struct viv_mix marks[VIV_PRODUCT_DIGITS], bits, masked, masked_bits, sum, sum_bits;
};

static void make_recipe(const struct viv_chip *chip, const struct viv_product *product, struct recipe *recipe)
{
    for (uint32_t digit = 0; digit < VIV_PRODUCT_DIGITS; digit++) {
        viv_product_marks(chip, digit, &recipe->marks[digit]);
        check_weights(&recipe->marks[digit]);
    }
    viv_product_bits(chip, &recipe->bits);
    viv_product_masked(chip, product, &recipe->masked);
    viv_product_masked_bits(chip, product, &recipe->masked_bits);
    viv_product_sum(product, true, &recipe->sum);
    viv_product_sum(product, false, &recipe->sum_bits);
    check_weights(&recipe->bits);
    check_weights(&recipe->masked);
    check_weights(&recipe->masked_bits);
    check_weights(&recipe->sum);
    check_weights(&recipe->sum_bits);
}

/* Marks | y | x | masked. */
static void make_marks(const struct viv_chip *chip, const struct recipe *recipe, uint8_t *planes)
{
    for (uint32_t digit = 0; digit < VIV_PRODUCT_DIGITS; digit++) {
        uint8_t *y_end = planes + VIV_PRODUCT_MARKS - 3 * digit;
        run(chip, &recipe->marks[digit], y_end, y_end - 3);
    }
}

static uint8_t direct(const struct viv_chip *chip, const struct recipe *recipe, uint8_t x, uint8_t y)
{
    uint8_t planes[VIV_PRODUCT_MARKS + 2 + VIV_PRODUCT_BITS] = {0};
    planes[VIV_PRODUCT_MARKS] = y;
    planes[VIV_PRODUCT_MARKS + 1] = x;
    make_marks(chip, recipe, planes);
    run(chip, &recipe->masked, planes, planes + VIV_PRODUCT_MARKS + 2);
    return output_of(chip, &recipe->sum, 0, planes + VIV_PRODUCT_MARKS);
}

static uint8_t by_bits(const struct viv_chip *chip, const struct recipe *recipe, uint8_t x, uint8_t y)
{
    uint8_t small[VIV_PRODUCT_MARKS + 1] = {0}, planes[2 * VIV_PRODUCT_BITS + 2];
    small[VIV_PRODUCT_MARKS] = y;
    make_marks(chip, recipe, small);
    planes[VIV_PRODUCT_BITS] = x;
    planes[VIV_PRODUCT_BITS + 1] = y;
    run(chip, &recipe->bits, small, planes + VIV_PRODUCT_BITS + 2);
    for (uint32_t bit = 0; bit < VIV_PRODUCT_BITS; bit++)
        assert_int_equal(planes[VIV_PRODUCT_BITS + 2 + bit], y >> bit & 1 ? 255 : 255 - VIV_PRODUCT_BIT_STEP);
    run(chip, &recipe->masked_bits, planes + VIV_PRODUCT_BITS, planes);
    return output_of(chip, &recipe->sum_bits, 0, planes);
}

static void check_product(const struct viv_chip *chip, uint8_t x_zero, uint8_t y_zero, double factor, uint8_t out_zero)
{
    struct viv_product product = {.x_zero = x_zero, .y_zero = y_zero, .out_zero = out_zero};
    struct recipe recipe;
    assert_true(viv_requant_factor(chip, factor, &product.requant));
    make_recipe(chip, &product, &recipe);
    for (uint32_t x = 0; x < 256; x++)
        for (uint32_t y = 0; y < 256; y++) {
            int32_t exact = ((int32_t)x - x_zero) * ((int32_t)y - y_zero);
            int64_t wanted = scaled(chip, &product.requant, exact) + out_zero;
            wanted = wanted < 0 ? 0 : wanted > 255 ? 255 : wanted;
            if (direct(chip, &recipe, (uint8_t)x, (uint8_t)y) != wanted ||
                by_bits(chip, &recipe, (uint8_t)x, (uint8_t)y) != wanted)
                fail_msg("%u * %u with zero points %u and %u", x, y, x_zero, y_zero);
        }
}

static void products_are_exact_before_they_are_rounded(void **state)
{
    static const uint8_t zeros[] = {0, 1, 127, 128, 200, 255};
    (void)state;
    for (unsigned chip = 0; chip < 2; chip++)
        for (unsigned i = 0; i < 36; i++)
            check_product(chips[chip], zeros[i / 6], zeros[i % 6], i % 3 ? 0.00391 / (i + 1) : 1.37, zeros[i % 5]);
}

/* ---- sums ------------------------------------------------------------------------------ */

static struct mica_tensor quantized(float *scale, int32_t *zero)
{
    return (struct mica_tensor){.type = MICA_TYPE_UINT8, .quant = {.count = 1, .scale = scale, .zero_point = zero}};
}

/* The sum of weights is as far from the real one as the bound says, at most; half a step each are the two roundings. */
static void check_sum(struct random *random, bool subtract)
{
    float scale[3];
    int32_t zero[3];
    struct mica_tensor tensors[3];
    struct viv_sum sum;
    const struct viv_chip *chip = chips[random_below(random, 2)];
    for (unsigned i = 0; i < 3; i++) {
        scale[i] = (float)exp(random_below(random, 4000) / 1000.0 - 5);
        zero[i] = (int32_t)random_below(random, 256);
        tensors[i] = quantized(&scale[i], &zero[i]);
    }
    if (!viv_sum_choose(chip, &tensors[0], &tensors[1], &tensors[2], subtract, &sum))
        return;
    assert_true(sum.bound < 2);
    int32_t weight[] = {sum.copies ? sum.weight[0] : sum.add.weight[0], sum.copies ? sum.weight[1] : sum.add.weight[1]};
    uint32_t copies = sum.copies ? sum.copies : 1;
    assert_true(abs(weight[0]) <= (int32_t)(255 * copies) && abs(weight[1]) <= (int32_t)(255 * copies));
    for (int32_t a = 0; a < 256; a += 5)
        for (int32_t b = 0; b < 256; b += 3) {
            int32_t acc = weight[0] * (a - zero[0]) + weight[1] * (b - zero[1]);
            double real = ((double)scale[0] * (a - zero[0]) + (subtract ? -1 : 1) * (double)scale[1] * (b - zero[1])) /
                          (double)scale[2];
            if (fabs(real) > 256)
                continue;
            assert_true(fabs((double)scaled(chip, &sum.requant, acc) - real) <= sum.bound - 0.5 + 1e-3);
        }
}

static void sums_are_as_near_as_their_bound(void **state)
{
    struct random random = {20261121};
    (void)state;
    for (unsigned i = 0; i < 600; i++)
        check_sum(&random, i % 2);
}

/* ---- repeated operands -------------------------------------------------------------------- */

static struct mica_tensor shaped(uint32_t rank, const int32_t *dims)
{
    struct mica_tensor tensor = {.type = MICA_TYPE_UINT8, .rank = rank, .bytes = 1};
    for (uint32_t i = 0; i < rank; i++) {
        tensor.dims[i] = dims[i];
        tensor.bytes *= (size_t)dims[i];
    }
    return tensor;
}

/* Doubling: a few jobs, however often it is repeated. */
static void repeating_takes_few_jobs(void **state)
{
    (void)state;
    struct mica_tensor out = shaped(4, (const int32_t[]){1, 28, 28, 72});
    struct mica_tensor channel = shaped(1, (const int32_t[]){72}), one = shaped(0, NULL);
    struct mica_tensor pixel = shaped(4, (const int32_t[]){1, 28, 28, 1});
    for (int planar = 0; planar < 2; planar++) {
        assert_int_equal(viv_repeat_jobs(&out, &out, planar), 0);
        /* 784 pixels are ten doublings, 72 channels seven; long copies are two jobs. */
        assert_in_range(viv_repeat_jobs(&channel, &out, planar), 1 + 10, 1 + 12);
        assert_in_range(viv_repeat_jobs(&pixel, &out, planar), 1 + 7, 1 + 9);
        assert_in_range(viv_repeat_jobs(&one, &out, planar), 1 + 16, 1 + 20);
    }
    assert_int_equal(viv_pair_rounds(&channel, &out, false), 784);
    assert_int_equal(viv_pair_rounds(&channel, &out, true), 0);
    assert_int_equal(viv_pair_rounds(&pixel, &out, true), 72);
    assert_int_equal(viv_pair_rounds(&pixel, &out, false), 0);
}

static void constants_are_laid_down_repeated(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {1, 2, 3, 4, 5, 6};
    struct mica_tensor constant = shaped(3, (const int32_t[]){2, 1, 3}), out = shaped(4, (const int32_t[]){2, 2, 4, 3});
    uint8_t nhwc[48], planar[48];
    constant.data = bytes;
    viv_pair_lay_down(&constant, &out, false, nhwc);
    viv_pair_lay_down(&constant, &out, true, planar);
    for (uint32_t i = 0; i < 48; i++) {
        uint32_t c = i % 3, w = i / 3 % 4, h = i / 12; /* batch and rows */
        assert_int_equal(nhwc[i], bytes[h % 2 * 3 + c]);
        assert_int_equal(planar[c * 16 + h * 4 + w], nhwc[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_exact_before_they_are_rounded),
        cmocka_unit_test(sums_are_as_near_as_their_bound),
        cmocka_unit_test(repeating_takes_few_jobs),
        cmocka_unit_test(constants_are_laid_down_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
