/* SPDX-License-Identifier: MIT */
/* Whole operations on hand-made graphs: against plain loops, at the ends of the range, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "cpu/requant.h"
#include "cpu/simd.h"
#include "scene.h"

/* ---- convolutions against plain loops ---------------------------------- */

/* uint8, 19 to 37 channels, 3x3, dilated and padded unevenly, in tensors 0, 1, 2 and 3. */
static void make_conv(struct scene *s, bool depthwise)
{
    int32_t out = depthwise ? 19 : 37;
    struct mica_window window = scene_window(3, 3);
    window.stride_x = 2;
    window.dilation_y = 2;
    window.padding = (struct mica_padding){1, 2, 2, 2};
    window.depth_multiplier = 1;
    scene_create(s);
    scene_noise(s->data[scene_tensor(s, MICA_TYPE_UINT8, 0.02f, 131, DIMS(2, 9, 12, 19))], 2 * 9 * 12 * 19, 1);
    if (depthwise)
        scene_tensor(s, MICA_TYPE_UINT8, 0.0041f, 77, DIMS(1, 3, 3, 19));
    else
        scene_tensor(s, MICA_TYPE_UINT8, 0.0041f, 77, DIMS(37, 3, 3, 19));
    scene_noise(s->data[1], s->graph->tensors[1].bytes, 2);
    scene_tensor(s, MICA_TYPE_INT32, 0, 0, DIMS(out));
    for (int32_t i = 0; i < out; i++)
        ((int32_t *)s->data[2])[i] = (i - 18) * 20000;
    scene_tensor(s, MICA_TYPE_UINT8, depthwise ? 0.06f : 0.2f, 120, DIMS(2, 9, 7, out));
    scene_op(s, (struct mica_op){.kind = depthwise ? MICA_OP_DEPTHWISE_CONV_2D : MICA_OP_CONV_2D, .window = window}, 1);
    assert_null(s->graph->ops[0].problem);
}

/* The sum of one output, by its definition. */
static uint32_t plain_sum(const struct scene *s, const int32_t at[4], bool depthwise)
{
    const uint8_t *in = s->data[0], *weights = s->data[1];
    const struct mica_window *w = &s->graph->ops[0].window;
    uint32_t sum = ((const uint32_t *)s->data[2])[at[3]];
    for (int32_t ky = 0; ky < 3; ky++) {
        for (int32_t kx = 0; kx < 3; kx++) {
            int32_t y = at[1] + 2 * ky - w->padding.top, x = 2 * at[2] + kx - w->padding.left;
            if (y < 0 || y >= 9 || x < 0 || x >= 12)
                continue;
            for (int32_t c = depthwise ? at[3] : 0; c < (depthwise ? at[3] + 1 : 19); c++) {
                int32_t value = in[((at[0] * 9 + y) * 12 + x) * 19 + c] - 131;
                int32_t tap = weights[depthwise ? (ky * 3 + kx) * 19 + c : ((at[3] * 3 + ky) * 3 + kx) * 19 + c] - 77;
                sum += (uint32_t)(value * tap);
            }
        }
    }
    return sum;
}

static uint8_t plain_result(const struct scene *s, uint32_t sum, enum mica_arithmetic arithmetic)
{
    const struct mica_tensor *t = s->graph->tensors;
    float factor = t[0].quant.scale[0] * t[1].quant.scale[0] / t[3].quant.scale[0];
    struct mica_multiplier m = mica_multiplier_vivante(factor, arithmetic);
    double result = (double)rintl((long double)(int32_t)sum * ldexpl((long double)m.mantissa, -m.shift)) + 120;
    return (uint8_t)fmax(0, fmin(255, result));
}

static void compare_with_plain_loops(bool depthwise, enum mica_arithmetic arithmetic)
{
    struct scene s;
    make_conv(&s, depthwise);
    scene_run(&s, arithmetic);
    const uint8_t *out = s.data[3];
    int32_t at[4], channels = s.graph->tensors[3].dims[3];
    for (size_t i = 0; i < s.graph->tensors[3].bytes; i++) {
        at[3] = (int32_t)i % channels;
        at[2] = (int32_t)i / channels % 7;
        at[1] = (int32_t)i / channels / 7 % 9;
        at[0] = (int32_t)i / channels / 7 / 9;
        assert_int_equal(out[i], plain_result(&s, plain_sum(&s, at, depthwise), arithmetic));
    }
    scene_destroy(&s);
}

static void convolutions_equal_plain_loops_in_npu_arithmetic(void **state)
{
    compare_with_plain_loops(false, MICA_ARITHMETIC_VIVANTE_V7);
    compare_with_plain_loops(false, MICA_ARITHMETIC_VIVANTE_V8);
    compare_with_plain_loops(true, MICA_ARITHMETIC_VIVANTE_V7);
    compare_with_plain_loops(true, MICA_ARITHMETIC_VIVANTE_V8);
}

static void vectors_and_threads_change_nothing(void **state)
{
    struct mica_threads *threads = mica_threads_create(3);
    assert_non_null(threads);
    for (int depthwise = 0; depthwise < 2; depthwise++) {
        struct scene plain, wide;
        make_conv(&plain, depthwise);
        make_conv(&wide, depthwise);
        mica_cpu_allow_wide(false);
        scene_run(&plain, MICA_ARITHMETIC_TFLITE);
        mica_cpu_allow_wide(true);
        assert_int_equal(scene_try(&wide, MICA_ARITHMETIC_TFLITE, threads), 0);
        assert_memory_equal(plain.data[3], wide.data[3], plain.graph->tensors[3].bytes);
        scene_destroy(&plain);
        scene_destroy(&wide);
    }
    mica_threads_destroy(threads);
}

static void sums_wrap_modulo_2_to_the_32(void **state)
{
    enum { TAPS = 40000 };
    struct scene s;
    scene_create(&s);
    memset(s.data[scene_tensor(&s, MICA_TYPE_UINT8, 1, 0, DIMS(1, TAPS))], 255, TAPS);
    memset(s.data[scene_tensor(&s, MICA_TYPE_UINT8, 1, 0, DIMS(1, TAPS))], 255, TAPS);
    scene_tensor(&s, MICA_TYPE_INT32, 0, 0, DIMS(1));
    uint8_t *out = s.data[scene_tensor(&s, MICA_TYPE_UINT8, 1, 0, DIMS(1, 1))];
    scene_op(&s, (struct mica_op){.kind = MICA_OP_FULLY_CONNECTED}, 1);
    int32_t *bias = s.data[2];
    /* 40000 * 255^2 = 2601000000; the bias brings it to 2^32 + 77. */
    *bias = (int32_t)((INT64_C(1) << 32) + 77 - INT64_C(2601000000));
    scene_run(&s, MICA_ARITHMETIC_VIVANTE_V7);
    assert_int_equal(*out, 77);
    scene_run(&s, MICA_ARITHMETIC_TFLITE);
    assert_int_equal(*out, 77);
    *bias = 0; /* beyond 2^31: negative */
    scene_run(&s, MICA_ARITHMETIC_VIVANTE_V8);
    assert_int_equal(*out, 0);
    scene_destroy(&s);
}

/* One value through a 1x1 convolution with weight 1 and factor 1/4. */
static int quarter(int value, enum mica_type type, enum mica_activation activation, enum mica_arithmetic arithmetic)
{
    struct scene s;
    int32_t zero = type == MICA_TYPE_INT8 ? 0 : 128;
    struct mica_window window = scene_window(1, 1);
    window.activation = activation;
    scene_create(&s);
    *(uint8_t *)s.data[scene_tensor(&s, type, 1, zero, DIMS(1, 1, 1, 1))] = (uint8_t)(value + zero);
    *(uint8_t *)s.data[scene_tensor(&s, type, 1, zero, DIMS(1, 1, 1, 1))] = (uint8_t)(zero + 1);
    scene_tensor(&s, MICA_TYPE_INT32, 0, 0, DIMS(1));
    uint8_t *out = s.data[scene_tensor(&s, type, 4, zero, DIMS(1, 1, 1, 1))];
    scene_op(&s, (struct mica_op){.kind = MICA_OP_CONV_2D, .window = window}, 1);
    scene_run(&s, arithmetic);
    int result = type == MICA_TYPE_INT8 ? (int8_t)*out : *out - zero;
    scene_destroy(&s);
    return result;
}

static void each_arithmetic_has_its_ties(void **state)
{
    static const enum mica_type types[] = {MICA_TYPE_UINT8, MICA_TYPE_INT8};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(quarter(2, types[i], MICA_ACT_NONE, MICA_ARITHMETIC_VIVANTE_V7), 0);
        assert_int_equal(quarter(6, types[i], MICA_ACT_NONE, MICA_ARITHMETIC_VIVANTE_V7), 2);
        assert_int_equal(quarter(-2, types[i], MICA_ACT_NONE, MICA_ARITHMETIC_VIVANTE_V8), 0);
        assert_int_equal(quarter(1, types[i], MICA_ACT_NONE, MICA_ARITHMETIC_VIVANTE_V8), 0);
        assert_int_equal(quarter(2, types[i], MICA_ACT_NONE, MICA_ARITHMETIC_TFLITE), 1);
        assert_int_equal(quarter(1, types[i], MICA_ACT_NONE, MICA_ARITHMETIC_TFLITE), 1); /* rounded twice */
        assert_int_equal(quarter(-2, types[i], MICA_ACT_NONE, MICA_ARITHMETIC_TFLITE), -1);
    }
}

static void activations_clamp_in_every_arithmetic(void **state)
{
    for (int i = MICA_ARITHMETIC_TFLITE; i <= MICA_ARITHMETIC_VIVANTE_V8; i++) {
        enum mica_arithmetic arithmetic = (enum mica_arithmetic)i;
        assert_int_equal(quarter(-100, MICA_TYPE_UINT8, MICA_ACT_RELU, arithmetic), 0);
        assert_int_equal(quarter(100, MICA_TYPE_INT8, MICA_ACT_RELU, arithmetic), 25);
        assert_int_equal(quarter(100, MICA_TYPE_INT8, MICA_ACT_RELU6, arithmetic), 2); /* round(6 / 4) */
        assert_int_equal(quarter(-100, MICA_TYPE_UINT8, MICA_ACT_RELU_N1_TO_1, arithmetic), 0);
    }
}

static void a_missing_bias_is_zero(void **state)
{
    struct scene s;
    scene_create(&s);
    memset(s.data[scene_tensor(&s, MICA_TYPE_UINT8, 1, 10, DIMS(1, 1, 1, 2))], 13, 2);
    memset(s.data[scene_tensor(&s, MICA_TYPE_UINT8, 1, 1, DIMS(1, 1, 1, 2))], 3, 2);
    uint8_t *out = s.data[scene_tensor(&s, MICA_TYPE_UINT8, 1, 5, DIMS(1, 1, 1, 1))];
    scene_op(&s, (struct mica_op){.kind = MICA_OP_CONV_2D, .window = scene_window(1, 1)}, 1);
    scene_run(&s, MICA_ARITHMETIC_TFLITE);
    assert_int_equal(*out, 5 + 2 * 3 * 2);
    scene_destroy(&s);
}

/* ---- other operations ---------------------------------------------------- */

static void npu_addition_follows_its_two_weights(void **state)
{
    struct scene s;
    scene_create(&s);
    uint8_t *a = s.data[scene_tensor(&s, MICA_TYPE_UINT8, 0.0311f, 131, DIMS(256))];
    uint8_t *b = s.data[scene_tensor(&s, MICA_TYPE_UINT8, 0.0235f, 125, DIMS(256))];
    uint8_t *out = s.data[scene_tensor(&s, MICA_TYPE_UINT8, 0.0472f, 119, DIMS(256))];
    scene_noise(a, 256, 3);
    scene_noise(b, 256, 4);
    scene_op(&s, (struct mica_op){.kind = MICA_OP_ADD}, 1);
    scene_run(&s, MICA_ARITHMETIC_VIVANTE_V7);
    float ratio = 0.0235f / 0.0311f, step = 1 / 255.0f;
    int32_t weight = (int32_t)roundf(ratio / step);
    struct mica_multiplier m = mica_multiplier_vivante(0.0311f * step / 0.0472f, MICA_ARITHMETIC_VIVANTE_V7);
    for (int i = 0; i < 256; i++) {
        int32_t sum = 255 * (a[i] - 131) + weight * (b[i] - 125);
        long double exact = rintl((long double)sum * ldexpl((long double)m.mantissa, -m.shift)) + 119;
        assert_int_equal(out[i], (int)fmaxl(0, fminl(255, exact)));
    }
    scene_destroy(&s);
}

static void softmax_survives_more_equal_values_than_its_sum_can_hold(void **state)
{
    enum { COUNT = 100000 };
    struct scene s;
    scene_create(&s);
    uint8_t *in = s.data[scene_tensor(&s, MICA_TYPE_UINT8, 0.1f, 0, DIMS(1, COUNT))];
    memset(in, 9, COUNT);
    uint8_t *out = s.data[scene_tensor(&s, MICA_TYPE_UINT8, 1.0f / 256, 0, DIMS(1, COUNT))];
    scene_op(&s, (struct mica_op){.kind = MICA_OP_SOFTMAX, .beta = 1}, 1);
    scene_run(&s, MICA_ARITHMETIC_TFLITE);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(out[i], 0);
    memset(in, 0, COUNT);
    in[5] = 255;
    scene_run(&s, MICA_ARITHMETIC_TFLITE);
    assert_int_equal(out[5], 255);
    scene_destroy(&s);
}

static void quantize_saturates_and_takes_what_is_no_number_for_zero(void **state)
{
    static const float values[] = {INFINITY, -INFINITY, NAN, 1e30f, -1e30f, 0.5f, -0.5f, 1.5f};
    static const uint8_t expected[] = {255, 0, 100, 255, 0, 101, 99, 102};
    struct scene s;
    scene_create(&s);
    memcpy(s.data[scene_tensor(&s, MICA_TYPE_FLOAT32, 0, 0, DIMS(8))], values, sizeof values);
    scene_tensor(&s, MICA_TYPE_UINT8, 1, 100, DIMS(8));
    scene_op(&s, (struct mica_op){.kind = MICA_OP_QUANTIZE}, 1);
    scene_run(&s, MICA_ARITHMETIC_TFLITE);
    assert_memory_equal(s.data[1], expected, 8);
    scene_destroy(&s);
}

static void reshape_works_in_place(void **state)
{
    struct scene s;
    scene_create(&s);
    scene_tensor(&s, MICA_TYPE_INT32, 0, 0, DIMS(2, 3));
    int32_t out = scene_tensor(&s, MICA_TYPE_INT32, 0, 0, DIMS(6));
    scene_op(&s, (struct mica_op){.kind = MICA_OP_RESHAPE}, 1);
    void *own = s.data[out];
    s.data[out] = s.data[0];
    scene_noise(s.data[0], 24, 1);
    uint8_t before[24];
    memcpy(before, s.data[0], 24);
    scene_run(&s, MICA_ARITHMETIC_TFLITE);
    assert_memory_equal(s.data[0], before, 24);
    s.data[out] = own;
    scene_destroy(&s);
}

/* ---- detection ----------------------------------------------------------- */

/* Three boxes, two classes and a background, float32. */
static void make_detection(struct scene *s, bool regular, int32_t classes_per_box)
{
    static const float anchors[] = {0.2f, 0.2f, 0.2f, 0.2f, 0.21f, 0.2f, 0.2f, 0.2f, 0.7f, 0.7f, 0.2f, 0.2f};
    static const float scores[] = {0, 0.5f, 0.6f, 0, 0.9f, 0.1f, 0, 0.6f, 0.6f};
    struct mica_detection detection = {
        .max_detections = 2,
        .max_classes_per_detection = classes_per_box,
        .detections_per_class = 2,
        .classes = 2,
        .score_threshold = 0.3f,
        .iou_threshold = 0.5f,
        .scale_x = 10,
        .scale_y = 10,
        .scale_w = 5,
        .scale_h = 5,
        .regular_nms = regular,
    };
    int32_t slots = 2 * classes_per_box;
    scene_create(s);
    scene_tensor(s, MICA_TYPE_FLOAT32, 0, 0, DIMS(1, 3, 4));
    memcpy(s->data[scene_tensor(s, MICA_TYPE_FLOAT32, 0, 0, DIMS(1, 3, 3))], scores, sizeof scores);
    memcpy(s->data[scene_tensor(s, MICA_TYPE_FLOAT32, 0, 0, DIMS(3, 4))], anchors, sizeof anchors);
    scene_tensor(s, MICA_TYPE_FLOAT32, 0, 0, DIMS(1, slots, 4));
    scene_tensor(s, MICA_TYPE_FLOAT32, 0, 0, DIMS(1, slots));
    scene_tensor(s, MICA_TYPE_FLOAT32, 0, 0, DIMS(1, slots));
    scene_tensor(s, MICA_TYPE_FLOAT32, 0, 0, DIMS(1));
    scene_op(s, (struct mica_op){.kind = MICA_OP_DETECTION_POSTPROCESS, .detection = detection}, 4);
}

static void expect_detections(const struct scene *s, size_t count, const float *classes, const float *scores)
{
    assert_memory_equal(s->data[4], classes, count * sizeof *classes);
    assert_memory_equal(s->data[5], scores, count * sizeof *scores);
}

static void fast_detection_keeps_each_box_once(void **state)
{
    struct scene s;
    make_detection(&s, false, 2);
    scene_run(&s, MICA_ARITHMETIC_TFLITE);
    /* Box 1 covers box 0; the classes of box 2 have equal scores and come in ascending order. */
    expect_detections(&s, 4, (const float[]){0, 1, 0, 1}, (const float[]){0.9f, 0.1f, 0.6f, 0.6f});
    assert_true(*(float *)s.data[6] == 2);
    scene_destroy(&s);
}

static void regular_detection_judges_each_class_alone(void **state)
{
    struct scene s;
    make_detection(&s, true, 1);
    scene_run(&s, MICA_ARITHMETIC_TFLITE);
    /* Class 0: boxes 1 and 2; class 1: boxes 0 and 2, whose scores equal one that came first. */
    expect_detections(&s, 2, (const float[]){0, 0}, (const float[]){0.9f, 0.6f});
    assert_true(*(float *)s.data[6] == 2);
    scene_destroy(&s);
}

static void a_box_of_negative_size_is_an_error(void **state)
{
    struct scene s;
    make_detection(&s, false, 1);
    ((float *)s.data[2])[2] = -0.2f;
    assert_int_equal(scene_try(&s, MICA_ARITHMETIC_TFLITE, NULL), -EINVAL);
    assert_non_null(strstr(s.log.last_error, "box 0"));
    scene_destroy(&s);
}

/* ---- refusals -------------------------------------------------------------- */

static void expect_refusal(const struct scene *s, const char *part)
{
    char reason[256] = "";
    assert_int_equal(mica_cpu_supports(s->graph, 0, reason, sizeof reason), -ENOTSUP);
    if (!strstr(reason, part))
        fail_msg("'%s' does not contain '%s'", reason, part);
}

static void what_the_graph_refuses_is_refused_with_its_words(void **state)
{
    struct scene s;
    scene_create(&s);
    scene_tensor(&s, MICA_TYPE_UINT8, 1, 0, DIMS(4));
    scene_tensor(&s, MICA_TYPE_UINT8, 1, 0, DIMS(5));
    scene_op(&s, (struct mica_op){.kind = MICA_OP_RESHAPE}, 1);
    assert_non_null(s.graph->ops[0].problem);
    expect_refusal(&s, s.graph->ops[0].problem);
    assert_int_equal(scene_try(&s, MICA_ARITHMETIC_TFLITE, NULL), -ENOTSUP);
    scene_destroy(&s);
}

static void unknown_operations_are_refused_by_name(void **state)
{
    struct scene s;
    scene_create(&s);
    scene_tensor(&s, MICA_TYPE_UINT8, 1, 0, DIMS(4));
    scene_tensor(&s, MICA_TYPE_UINT8, 1, 0, DIMS(4));
    scene_op(&s, (struct mica_op){.kind = MICA_OP_UNKNOWN, .type = "FANCY"}, 1);
    s.graph->ops[0].problem = NULL;
    expect_refusal(&s, "FANCY");
    char reason[8] = "";
    assert_int_equal(mica_cpu_supports(s.graph, 7, reason, sizeof reason), -ENOTSUP);
    assert_int_equal(mica_cpu_supports(s.graph, 7, NULL, 0), -ENOTSUP);
    scene_destroy(&s);
}

/* The kernels do not rely on the graph alone where memory is at stake. */
static void shapes_that_slip_through_are_refused(void **state)
{
    struct scene s;
    make_conv(&s, false);
    s.graph->tensors[2].bytes -= 4;
    expect_refusal(&s, "bias");
    s.graph->tensors[2].bytes += 4;
    s.graph->tensors[0].dims[3] = 20;
    expect_refusal(&s, "channels");
    s.graph->tensors[0].dims[3] = 19;
    s.graph->ops[0].window.stride_y = 0;
    expect_refusal(&s, "stride");
    scene_destroy(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_equal_plain_loops_in_npu_arithmetic),
        cmocka_unit_test(vectors_and_threads_change_nothing),
        cmocka_unit_test(sums_wrap_modulo_2_to_the_32),
        cmocka_unit_test(each_arithmetic_has_its_ties),
        cmocka_unit_test(activations_clamp_in_every_arithmetic),
        cmocka_unit_test(a_missing_bias_is_zero),
        cmocka_unit_test(npu_addition_follows_its_two_weights),
        cmocka_unit_test(softmax_survives_more_equal_values_than_its_sum_can_hold),
        cmocka_unit_test(quantize_saturates_and_takes_what_is_no_number_for_zero),
        cmocka_unit_test(reshape_works_in_place),
        cmocka_unit_test(fast_detection_keeps_each_box_once),
        cmocka_unit_test(regular_detection_judges_each_class_alone),
        cmocka_unit_test(a_box_of_negative_size_is_an_error),
        cmocka_unit_test(what_the_graph_refuses_is_refused_with_its_words),
        cmocka_unit_test(unknown_operations_are_refused_by_name),
        cmocka_unit_test(shapes_that_slip_through_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
