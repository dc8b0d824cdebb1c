/* SPDX-License-Identifier: MIT */
/* Random kernels through the encoder and back through the decoder of section 5.1. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "npu/vivante/compile/coef_v7.h"
#include "npu/vivante/compile/weights.h"

#define CASES 12000

/* What the hardware should see: kernel k, channel z, tap i. */
static uint8_t expected(const struct viv_kernel_set *set, uint32_t k, uint32_t z, uint32_t i)
{
    uint32_t first = set->diagonal ? k * set->stored_channels : 0;
    if (z < first || z - first >= set->stored_channels)
        return set->zero_point;
    return set->data[((size_t)k * set->stored_channels + z - first) * set->taps + i];
}

static void check(const struct viv_kernel_set *set, uint32_t kernels_per_core)
{
    struct viv_coefficients coefficients;
    assert_true(viv_coef_v7_encode(&viv_a311d, set, kernels_per_core, &coefficients));
    struct shape shape = {kernels_per_core, set->channels, set->taps, set->pointwise, set->zero_point};
    struct decoded decoded;
    const char *wrong = decode_v7(coefficients.data, coefficients.size, &shape, &decoded);
    if (wrong)
        fail_msg("%s", wrong);
    assert_int_equal(decoded.size, coefficients.size);
    assert_int_equal(decoded.count, set->count);
    assert_int_equal(decoded.zero_run_bits, coefficients.zero_run_bits);
    for (uint32_t k = 0; k < set->count; k++) {
        assert_int_equal(decoded.kernels[k].offset, k * set->plane);
        assert_int_equal(decoded.kernels[k].bias, set->bias[k]);
        const uint8_t *weights = decoded.kernels[k].weights;
        for (uint32_t z = 0; z < set->channels; z++)
            for (uint32_t i = 0; i < set->taps; i++)
                if (weights[z * set->taps + i] != expected(set, k, z, i))
                    fail_msg("kernel %u channel %u tap %u", k, z, i);
    }
    decoded_finish(&decoded);
    free(coefficients.data);
}

/* Weights that are the zero point in `sparsity` of 256 cases, in runs of about `run`. */
static void fill(struct random *random, uint8_t *data, size_t size, uint8_t zero_point, uint32_t sparsity, uint32_t run)
{
    bool zero = false;
    for (size_t i = 0; i < size; i++) {
        if (random_below(random, run) == 0)
            zero = random_below(random, 256) < sparsity;
        data[i] = zero ? zero_point : (uint8_t)random_word(random);
    }
}

static void random_case(struct random *random, bool diagonal)
{
    static const uint32_t taps[] = {1, 4, 9, 9, 9, 25, 16, 3, 49, 121};
    struct viv_kernel_set set = {.count = random_between(random, 1, 40), .diagonal = diagonal};
    set.taps = diagonal ? taps[random_between(random, 1, 5)] : taps[random_below(random, 10)];
    set.pointwise = set.taps == 1;
    set.stored_channels = diagonal ? (random_below(random, 4) ? 1 : 4) : random_between(random, 1, 20);
    set.channels = diagonal ? set.count * set.stored_channels : set.stored_channels;
    set.zero_point = (uint8_t)random_word(random);
    set.plane = random_between(random, 1, 1000);
    uint32_t bias[40];
    random_bytes(random, bias, sizeof(bias));
    size_t size = (size_t)set.count * set.stored_channels * set.taps;
    uint8_t *data = malloc(size);
    assert_non_null(data);
    fill(random, data, size, set.zero_point, random_below(random, 257), random_between(random, 1, 50));
    set.bias = bias;
    set.data = data;
    check(&set, random_between(random, 1, 6));
    free(data);
}

static void every_dense_kernel_comes_back(void **state)
{
    (void)state;
    struct random random = {1};
    for (unsigned i = 0; i < CASES; i++)
        random_case(&random, false);
}

static void every_depthwise_kernel_comes_back(void **state)
{
    (void)state;
    struct random random = {2};
    for (unsigned i = 0; i < CASES; i++)
        random_case(&random, true);
}

static void all_zero_weights_take_almost_no_space(void **state)
{
    (void)state;
    uint8_t data[8 * 8 * 9];
    uint32_t bias[8] = {0};
    memset(data, 77, sizeof(data));
    struct viv_kernel_set set = {8, 8, 8, 9, false, false, 77, data, bias, 1};
    struct viv_coefficients coefficients;
    assert_true(viv_coef_v7_encode(&viv_a311d, &set, 1, &coefficients));
    assert_int_equal(coefficients.size, 64 + 8 * 64);
    assert_true(coefficients.zero_run_bits > 0);
    free(coefficients.data);
}

static void pointwise_streams_are_never_run_coded(void **state)
{
    (void)state;
    static uint8_t data[16 * 600];
    uint32_t bias[16] = {0};
    struct viv_kernel_set set = {16, 600, 600, 1, false, true, 0, data, bias, 1};
    struct viv_coefficients coefficients;
    assert_true(viv_coef_v7_encode(&viv_a311d, &set, 2, &coefficients));
    assert_int_equal(coefficients.zero_run_bits, 0);
    assert_int_equal(coefficients.size, 64 + 8 * 1280); /* 3 + 2 * 608 bytes a core */
    free(coefficients.data);
}

/* Row pairs in blocks of three columns (specification, section 5.1). */
static void taps_go_by_row_pairs_and_three_columns(void **state)
{
    (void)state;
    static const uint16_t five[] = {0,  1,  2,  5,  6,  7,  3,  4,  8,  9,  10, 11, 12,
                                    15, 16, 17, 13, 14, 18, 19, 20, 21, 22, 23, 24};
    static const uint16_t seven_wide_two_high[] = {0, 1, 2, 7, 8, 9, 3, 4, 5, 10, 11, 12, 6, 13};
    uint16_t order[VIV_MAX_TAPS];
    viv_tap_order(&viv_a311d, 5, 5, order);
    assert_memory_equal(order, five, sizeof(five));
    viv_tap_order(&viv_a311d, 7, 2, order);
    assert_memory_equal(order, seven_wide_two_high, sizeof(seven_wide_two_high));
    viv_tap_order(&viv_a311d, 3, 3, order);
    for (uint16_t i = 0; i < 9; i++)
        assert_int_equal(order[i], i);
    viv_tap_order(&viv_imx8mp, 7, 2, order); /* in blocks of nine, whatever the shape */
    for (uint16_t i = 0; i < 14; i++)
        assert_int_equal(order[i], i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dense_kernel_comes_back),
        cmocka_unit_test(every_depthwise_kernel_comes_back),
        cmocka_unit_test(all_zero_weights_take_almost_no_space),
        cmocka_unit_test(pointwise_streams_are_never_run_coded),
        cmocka_unit_test(taps_go_by_row_pairs_and_three_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
