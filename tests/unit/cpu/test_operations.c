/* SPDX-License-Identifier: MIT */
/*
 * What synthetic models can't show of the operations on one and two tensors: values that TFLite gives no result for,
 * errors of values, refusals, and that threads and vectors change nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "cpu/simd.h"
#include "cpu/table.h"
#include "scene.h"

/* ---- tables --------------------------------------------------------------- */

static void make_unary(struct scene *s, enum mica_op_kind kind, enum mica_type type, float in, float out)
{
    scene_create(s);
    scene_tensor(s, type, in, 0, DIMS(4));
    scene_tensor(s, type, out, 0, DIMS(4));
    scene_op(s, (struct mica_op){.kind = kind}, 1);
}

static void a_table_is_indexed_by_the_stored_byte(void **state)
{
    uint8_t table[256];
    struct scene s;
    make_unary(&s, MICA_OP_RELU, MICA_TYPE_INT8, 1, 1);
    assert_int_equal(mica_cpu_table(s.graph, s.graph->ops, table), 0);
    for (int i = 0; i < 256; i++)
        assert_int_equal(table[i], i < 128 ? i : 0);
    scene_destroy(&s);
}

static void roots_of_negative_values_are_the_largest_output(void **state)
{
    static const enum mica_op_kind kinds[] = {MICA_OP_SQRT, MICA_OP_RSQRT};
    for (int i = 0; i < 2; i++) {
        uint8_t table[256];
        struct scene s;
        make_unary(&s, kinds[i], MICA_TYPE_INT8, 0.1f, 0.1f);
        assert_int_equal(mica_cpu_table(s.graph, s.graph->ops, table), 0);
        assert_int_equal(table[0xff], 127);
        scene_destroy(&s);
    }
}

static void exponentials_beyond_all_bounds_saturate(void **state)
{
    uint8_t table[256];
    struct scene s;
    make_unary(&s, MICA_OP_EXP, MICA_TYPE_INT8, 10, 0.001f);
    assert_int_equal(mica_cpu_table(s.graph, s.graph->ops, table), 0);
    assert_int_equal(table[127], 127);
    assert_int_equal(table[0x80], 0);
    scene_destroy(&s);
}

/* The mantissa of -1/2 is the one next to it: 6.5 is not reached, and becomes 6. A positive one rounds it to 7. */
static void a_negative_slope_is_rounded_as_in_tflite(void **state)
{
    uint8_t table[256];
    struct scene s;
    make_unary(&s, MICA_OP_LEAKY_RELU, MICA_TYPE_INT8, 1, 1);
    s.graph->ops[0].alpha = -0.5f;
    assert_int_equal(mica_cpu_table(s.graph, s.graph->ops, table), 0);
    assert_int_equal((int8_t)table[(uint8_t)-13], 6);
    assert_int_equal((int8_t)table[(uint8_t)-12], 6);
    s.graph->ops[0].kind = MICA_OP_ABS;
    mica_cpu_table(s.graph, s.graph->ops, table);
    assert_int_equal((int8_t)table[(uint8_t)-13], 13);
    scene_destroy(&s);
}

/* TFLite shifts 16-bit numbers here, and by more than they have bits. */
static void hard_swish_of_hardly_anything_is_a_step_as_in_tflite(void **state)
{
    uint8_t table[256];
    struct scene s;
    make_unary(&s, MICA_OP_HARD_SWISH, MICA_TYPE_INT8, 7e-6f, 2);
    assert_int_equal(mica_cpu_table(s.graph, s.graph->ops, table), 0);
    assert_int_equal((int8_t)table[100], 1);
    assert_int_equal((int8_t)table[0], 1);
    assert_int_equal((int8_t)table[(uint8_t)-100], -1);
    scene_destroy(&s);
}

static void what_has_no_table_is_refused(void **state)
{
    uint8_t table[256];
    struct scene s;
    make_unary(&s, MICA_OP_ABS, MICA_TYPE_UINT8, 1, 1);
    assert_int_equal(mica_cpu_table(s.graph, s.graph->ops, table), -ENOTSUP);
    s.graph->ops[0].kind = MICA_OP_SOFTMAX;
    assert_int_equal(mica_cpu_table(s.graph, s.graph->ops, table), -ENOTSUP);
    s.graph->ops[0].kind = MICA_OP_RELU;
    s.graph->ops[0].problem = "it is broken";
    assert_int_equal(mica_cpu_table(s.graph, s.graph->ops, table), -ENOTSUP);
    scene_destroy(&s);
    make_unary(&s, MICA_OP_RELU, MICA_TYPE_FLOAT32, 0, 0);
    assert_int_equal(mica_cpu_table(s.graph, s.graph->ops, table), -ENOTSUP);
    scene_destroy(&s);
}

/* ---- values ------------------------------------------------------------------ */

static void integers_are_not_divided_by_zero(void **state)
{
    static const int32_t left[] = {7, -7, INT32_MIN, 5}, quotients[] = {3, -3, INT32_MIN, 0};
    static const int32_t floors[] = {3, -4, INT32_MIN, 0};
    int32_t right[] = {2, 2, -1, 9};
    for (int down = 0; down < 2; down++) {
        struct scene s;
        scene_create(&s);
        memcpy(s.data[scene_tensor(&s, MICA_TYPE_INT32, 0, 0, DIMS(4))], left, sizeof left);
        memcpy(s.data[scene_tensor(&s, MICA_TYPE_INT32, 0, 0, DIMS(4))], right, sizeof right);
        scene_tensor(&s, MICA_TYPE_INT32, 0, 0, DIMS(4));
        scene_op(&s, (struct mica_op){.kind = down ? MICA_OP_FLOOR_DIV : MICA_OP_DIV}, 1);
        scene_run(&s, MICA_ARITHMETIC_TFLITE);
        assert_memory_equal(s.data[2], down ? floors : quotients, sizeof floors);
        ((int32_t *)s.data[1])[3] = 0;
        assert_int_equal(scene_try(&s, MICA_ARITHMETIC_TFLITE, NULL), -EINVAL);
        scene_destroy(&s);
    }
}

static void indices_are_checked_one_by_one(void **state)
{
    static const int64_t good[] = {2, 0}, bad[][2] = {{0, 3}, {-1, 0}, {0, INT64_MAX}, {INT64_MIN, 0}};
    for (int nd = 0; nd < 2; nd++) {
        struct scene s;
        scene_create(&s);
        scene_noise(s.data[scene_tensor(&s, MICA_TYPE_INT8, 0, 0, DIMS(3, 5))], 15, 1);
        if (nd)
            scene_tensor(&s, MICA_TYPE_INT64, 0, 0, DIMS(2, 1));
        else
            scene_tensor(&s, MICA_TYPE_INT64, 0, 0, DIMS(2));
        scene_tensor(&s, MICA_TYPE_INT8, 0, 0, DIMS(2, 5));
        scene_op(&s, (struct mica_op){.kind = nd ? MICA_OP_GATHER_ND : MICA_OP_GATHER}, 1);
        memcpy(s.data[1], good, sizeof good);
        scene_run(&s, MICA_ARITHMETIC_TFLITE);
        assert_memory_equal(s.data[2], (int8_t *)s.data[0] + 10, 5);
        assert_memory_equal((int8_t *)s.data[2] + 5, s.data[0], 5);
        for (int i = 0; i < 4; i++) {
            memcpy(s.data[1], bad[i], sizeof bad[i]);
            assert_int_equal(scene_try(&s, MICA_ARITHMETIC_TFLITE, NULL), -EINVAL);
            assert_non_null(strstr(s.log.last_error, "index"));
        }
        scene_destroy(&s);
    }
}

static void casts_saturate_where_c_leaves_it_open(void **state)
{
    static const float values[] = {300, -300, NAN, INFINITY, -INFINITY, -1.9f, 1.9f, 1e30f};
    static const enum mica_type types[] = {MICA_TYPE_INT8, MICA_TYPE_UINT8};
    static const int8_t as_int8[] = {127, -128, 0, 127, -128, -1, 1, 127};
    static const uint8_t as_uint8[] = {255, 0, 0, 255, 0, 0, 1, 255};
    for (int i = 0; i < 2; i++) {
        struct scene s;
        scene_create(&s);
        memcpy(s.data[scene_tensor(&s, MICA_TYPE_FLOAT32, 0, 0, DIMS(8))], values, sizeof values);
        scene_tensor(&s, types[i], 0, 0, DIMS(8));
        scene_op(&s, (struct mica_op){.kind = MICA_OP_CAST}, 1);
        scene_run(&s, MICA_ARITHMETIC_TFLITE);
        assert_memory_equal(s.data[1], i ? (const void *)as_uint8 : as_int8, 8);
        scene_destroy(&s);
    }
}

/* Sums of int8, for which TFLite is no reference: those of uint8 whose values are the same. */
static void sums_of_int8_are_those_of_uint8(void **state)
{
    static const int32_t axes[] = {1};
    uint8_t results[2][8];
    for (int i = 0; i < 2; i++) {
        int32_t zero = i ? 0 : 128;
        struct scene s;
        scene_create(&s);
        uint8_t *in = s.data[scene_tensor(&s, i ? MICA_TYPE_INT8 : MICA_TYPE_UINT8, 0.1f, 9 + zero, DIMS(2, 50, 4))];
        scene_noise(in, 400, 5);
        for (int j = 0; j < 400; j++)
            in[j] ^= i ? 0x80 : 0;
        scene_constant(&s, MICA_TYPE_INT32, DIMS(1), axes);
        scene_tensor(&s, i ? MICA_TYPE_INT8 : MICA_TYPE_UINT8, 1.3f, zero, DIMS(2, 4));
        scene_op(&s, (struct mica_op){.kind = MICA_OP_SUM}, 1);
        scene_run(&s, MICA_ARITHMETIC_TFLITE);
        for (int j = 0; j < 8; j++)
            results[i][j] = ((uint8_t *)s.data[2])[j] ^ (i ? 0x80 : 0);
        scene_destroy(&s);
    }
    assert_memory_equal(results[0], results[1], 8);
}

/* ---- refusals ------------------------------------------------------------------ */

static void expect_refusal(const struct scene *s, const char *part)
{
    char reason[256] = "";
    assert_int_equal(mica_cpu_supports(s->graph, 0, reason, sizeof reason), -ENOTSUP);
    if (!strstr(reason, part))
        fail_msg("'%s' does not contain '%s'", reason, part);
}

static void make_pair(struct scene *s, enum mica_op_kind kind, float out_scale)
{
    scene_create(s);
    scene_tensor(s, MICA_TYPE_INT8, 0.1f, 0, DIMS(2, 4));
    scene_tensor(s, MICA_TYPE_INT8, 0.1f, 0, DIMS(4));
    scene_tensor(s, MICA_TYPE_INT8, out_scale, 0, DIMS(2, 4));
    scene_op(s, (struct mica_op){.kind = kind}, 1);
    s->graph->ops[0].problem = NULL;
}

/* The kernels do not rely on the graph alone where memory is at stake. */
static void arithmetic_that_slips_through_is_refused(void **state)
{
    struct scene s;
    make_pair(&s, MICA_OP_MAXIMUM, 0.2f);
    expect_refusal(&s, "quantized differently");
    s.graph->ops[0].kind = MICA_OP_DIV;
    expect_refusal(&s, "quotients");
    s.graph->ops[0].kind = MICA_OP_MUL;
    s.graph->ops[0].activation = (enum mica_activation)77;
    expect_refusal(&s, "activation");
    s.graph->tensors[1].dims[0] = 3;
    expect_refusal(&s, "broadcast");
    s.graph->tensors[1].dims[0] = 4;
    s.graph->tensors[1].type = MICA_TYPE_UINT8;
    expect_refusal(&s, "types");
    scene_destroy(&s);
}

static void moves_that_slip_through_are_refused(void **state)
{
    static const int32_t order[] = {1, 0};
    struct scene s;
    scene_create(&s);
    scene_tensor(&s, MICA_TYPE_INT8, 0, 0, DIMS(2, 4));
    scene_constant(&s, MICA_TYPE_INT32, DIMS(2), order);
    scene_tensor(&s, MICA_TYPE_INT8, 0, 0, DIMS(4, 2));
    scene_op(&s, (struct mica_op){.kind = MICA_OP_TRANSPOSE}, 1);
    assert_null(s.graph->ops[0].problem);
    s.graph->tensors[2].dims[0] = 5;
    expect_refusal(&s, "permutation");
    s.graph->ops[0].kind = MICA_OP_SLICE;
    s.graph->ops[0].slice = (struct mica_slice){.step = {1, 1}, .count = {2, 5}};
    expect_refusal(&s, "beyond");
    s.graph->ops[0].slice = (struct mica_slice){.step = {1, -2}, .begin = {0, 3}, .count = {2, 3}};
    expect_refusal(&s, "beyond");
    s.graph->ops[0].slice = (struct mica_slice){.step = {1, 1}, .count = {1, 3}};
    expect_refusal(&s, "large");
    s.graph->ops[0].kind = MICA_OP_PACK;
    s.graph->ops[0].axis = 7;
    expect_refusal(&s, "type");
    s.graph->ops[0].kind = MICA_OP_UNPACK;
    expect_refusal(&s, "axis");
    s.graph->ops[0].kind = MICA_OP_SPACE_TO_DEPTH;
    s.graph->ops[0].block = 0;
    expect_refusal(&s, "block");
    scene_destroy(&s);
}

static void make_transpose_conv(struct scene *s)
{
    static const int32_t shape[] = {2, 13, 11, 20};
    struct mica_window window = scene_window(3, 3);
    window.stride_x = 2;
    window.stride_y = 3;
    window.padding = (struct mica_padding){1, 0, 0, 0};
    scene_create(s);
    scene_constant(s, MICA_TYPE_INT32, DIMS(4), shape);
    scene_noise(s->data[scene_tensor(s, MICA_TYPE_UINT8, 0.01f, 120, DIMS(20, 3, 3, 9))], 20 * 9 * 9, 1);
    scene_noise(s->data[scene_tensor(s, MICA_TYPE_UINT8, 0.02f, 131, DIMS(2, 5, 6, 9))], 2 * 5 * 6 * 9, 2);
    scene_tensor(s, MICA_TYPE_INT32, 0, 0, DIMS(20));
    scene_tensor(s, MICA_TYPE_UINT8, 0.2f, 100, DIMS(2, 13, 11, 20));
    scene_op(s, (struct mica_op){.kind = MICA_OP_TRANSPOSE_CONV, .window = window}, 1);
    s->graph->ops[0].problem = NULL;
}

static void transposed_convolutions_that_slip_through_are_refused(void **state)
{
    struct scene s;
    make_transpose_conv(&s);
    s.graph->ops[0].window.stride_x = 0;
    expect_refusal(&s, "stride");
    s.graph->ops[0].window.stride_x = 1;
    s.graph->ops[0].window.kernel_x = 4;
    expect_refusal(&s, "weights");
    s.graph->ops[0].window.kernel_x = 3;
    s.graph->tensors[2].dims[0] = 3;
    expect_refusal(&s, "batch");
    scene_destroy(&s);
}

/* ---- threads and vectors ---------------------------------------------------------- */

static void make_product(struct scene *s)
{
    scene_create(s);
    scene_noise(s->data[scene_tensor(s, MICA_TYPE_INT8, 0.1f, 3, DIMS(3, 50, 70, 5))], 52500, 1);
    scene_noise(s->data[scene_tensor(s, MICA_TYPE_INT8, 0.2f, -9, DIMS(3, 50, 70, 5))], 52500, 2);
    scene_tensor(s, MICA_TYPE_INT8, 0.9f, 8, DIMS(3, 50, 70, 5));
    scene_op(s, (struct mica_op){.kind = MICA_OP_MUL}, 1);
}

static void make_reversed_order(struct scene *s)
{
    static const int32_t order[] = {3, 2, 1, 0};
    scene_create(s);
    scene_noise(s->data[scene_tensor(s, MICA_TYPE_INT16, 0, 0, DIMS(3, 20, 7, 5))], 4200, 1);
    scene_constant(s, MICA_TYPE_INT32, DIMS(4), order);
    scene_tensor(s, MICA_TYPE_INT16, 0, 0, DIMS(5, 7, 20, 3));
    scene_op(s, (struct mica_op){.kind = MICA_OP_TRANSPOSE}, 1);
}

static void make_mean(struct scene *s)
{
    static const int32_t axes[] = {1, 2};
    scene_create(s);
    scene_noise(s->data[scene_tensor(s, MICA_TYPE_UINT8, 0.1f, 77, DIMS(5, 20, 7, 65))], 45500, 1);
    scene_constant(s, MICA_TYPE_INT32, DIMS(2), axes);
    scene_tensor(s, MICA_TYPE_UINT8, 0.02f, 60, DIMS(5, 65));
    scene_op(s, (struct mica_op){.kind = MICA_OP_MEAN}, 1);
}

static void threads_and_vectors_change_nothing(void **state)
{
    static void (*const make[])(struct scene *) = {make_transpose_conv, make_product, make_reversed_order, make_mean};
    static const enum mica_arithmetic arithmetic[] = {MICA_ARITHMETIC_TFLITE, MICA_ARITHMETIC_ROCKCHIP};
    struct mica_threads *threads = mica_threads_create(3);
    assert_non_null(threads);
    for (int i = 0; i < 8; i++) {
        struct scene plain, wide;
        make[i / 2](&plain);
        make[i / 2](&wide);
        mica_cpu_allow_wide(false);
        scene_run(&plain, arithmetic[i % 2]);
        mica_cpu_allow_wide(true);
        assert_int_equal(scene_try(&wide, arithmetic[i % 2], threads), 0);
        uint32_t out = plain.count - 1;
        assert_memory_equal(plain.data[out], wide.data[out], plain.graph->tensors[out].bytes);
        scene_destroy(&plain);
        scene_destroy(&wide);
    }
    mica_threads_destroy(threads);
}

/* ---- 16 bits ---------------------------------------------------------------- */

/* A file's bias may be any 64 bits: sums with it may not wrap. */
static void a_wide_bias_saturates(void **state)
{
    struct scene s;
    scene_create(&s);
    int32_t in = scene_tensor(&s, MICA_TYPE_INT16, 1, 0, DIMS(1, 2));
    int32_t weights = scene_tensor(&s, MICA_TYPE_INT8, 1, 0, DIMS(2, 2));
    int32_t bias = scene_tensor(&s, MICA_TYPE_INT64, 0, 0, DIMS(2));
    int32_t out = scene_tensor(&s, MICA_TYPE_INT16, 1, 0, DIMS(1, 2));
    memset(s.data[weights], 0x7f, 4);
    ((int16_t *)s.data[in])[0] = -1;
    ((int64_t *)s.data[bias])[0] = INT64_MIN;
    ((int64_t *)s.data[bias])[1] = INT64_MAX;
    scene_op(&s, (struct mica_op){.kind = MICA_OP_FULLY_CONNECTED}, 1);
    scene_run(&s, MICA_ARITHMETIC_TFLITE);
    assert_int_equal(((int16_t *)s.data[out])[0], INT16_MIN);
    assert_int_equal(((int16_t *)s.data[out])[1], INT16_MAX);
    scene_destroy(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wide_bias_saturates),
        cmocka_unit_test(a_table_is_indexed_by_the_stored_byte),
        cmocka_unit_test(roots_of_negative_values_are_the_largest_output),
        cmocka_unit_test(exponentials_beyond_all_bounds_saturate),
        cmocka_unit_test(a_negative_slope_is_rounded_as_in_tflite),
        cmocka_unit_test(hard_swish_of_hardly_anything_is_a_step_as_in_tflite),
        cmocka_unit_test(what_has_no_table_is_refused),
        cmocka_unit_test(integers_are_not_divided_by_zero),
        cmocka_unit_test(indices_are_checked_one_by_one),
        cmocka_unit_test(casts_saturate_where_c_leaves_it_open),
        cmocka_unit_test(sums_of_int8_are_those_of_uint8),
        cmocka_unit_test(arithmetic_that_slips_through_is_refused),
        cmocka_unit_test(moves_that_slip_through_are_refused),
        cmocka_unit_test(transposed_convolutions_that_slip_through_are_refused),
        cmocka_unit_test(threads_and_vectors_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
