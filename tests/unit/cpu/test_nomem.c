/* SPDX-License-Identifier: MIT */
/* Memory that runs out at every allocation of every kernel that allocates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>

#include "scene.h"

static long countdown; /* the allocation that brings it to 0 fails; below: none */
static long outstanding;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void __real_free(void *pointer);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void __wrap_free(void *pointer);

static void *count(void *pointer)
{
    outstanding += pointer != NULL;
    return pointer;
}

void *__wrap_malloc(size_t size)
{
    return --countdown == 0 ? NULL : count(__real_malloc(size));
}

void *__wrap_calloc(size_t number, size_t size)
{
    return --countdown == 0 ? NULL : count(__real_calloc(number, size));
}

void __wrap_free(void *pointer)
{
    outstanding -= pointer != NULL;
    __real_free(pointer);
}

static void make_weighted(struct scene *s, enum mica_op_kind kind, enum mica_type type)
{
    bool is_float = type == MICA_TYPE_FLOAT32;
    float scale = is_float ? 0 : 0.5f;
    scene_create(s);
    scene_tensor(s, type, scale, 0, DIMS(1, 5, 5, 8));
    if (kind == MICA_OP_FULLY_CONNECTED)
        scene_tensor(s, type, scale, 0, DIMS(8, 8));
    else if (kind == MICA_OP_DEPTHWISE_CONV_2D)
        scene_tensor(s, type, scale, 0, DIMS(1, 1, 1, 8));
    else
        scene_tensor(s, type, scale, 0, DIMS(8, 1, 1, 8));
    scene_tensor(s, is_float ? MICA_TYPE_FLOAT32 : MICA_TYPE_INT32, 0, 0, DIMS(8));
    scene_tensor(s, type, scale, 0, DIMS(1, 5, 5, 8));
    struct mica_op op = {.kind = kind};
    if (kind != MICA_OP_FULLY_CONNECTED)
        op.window = scene_window(1, 1);
    scene_op(s, op, 1);
}

static void make_pool(struct scene *s)
{
    scene_create(s);
    scene_tensor(s, MICA_TYPE_UINT8, 1, 0, DIMS(1, 5, 5, 8));
    scene_tensor(s, MICA_TYPE_UINT8, 1, 0, DIMS(1, 4, 4, 8));
    scene_op(s, (struct mica_op){.kind = MICA_OP_AVERAGE_POOL_2D, .window = scene_window(2, 2)}, 1);
}

static void make_detection(struct scene *s)
{
    struct mica_detection detection = {.max_detections = 2,
                                       .max_classes_per_detection = 1,
                                       .classes = 2,
                                       .iou_threshold = 0.5f,
                                       .scale_x = 1,
                                       .scale_y = 1,
                                       .scale_w = 1,
                                       .scale_h = 1};
    scene_create(s);
    scene_tensor(s, MICA_TYPE_FLOAT32, 0, 0, DIMS(1, 3, 4));
    scene_tensor(s, MICA_TYPE_FLOAT32, 0, 0, DIMS(1, 3, 2));
    scene_tensor(s, MICA_TYPE_FLOAT32, 0, 0, DIMS(3, 4));
    scene_tensor(s, MICA_TYPE_FLOAT32, 0, 0, DIMS(1, 2, 4));
    scene_tensor(s, MICA_TYPE_FLOAT32, 0, 0, DIMS(1, 2));
    scene_tensor(s, MICA_TYPE_FLOAT32, 0, 0, DIMS(1, 2));
    scene_tensor(s, MICA_TYPE_FLOAT32, 0, 0, DIMS(1));
    scene_op(s, (struct mica_op){.kind = MICA_OP_DETECTION_POSTPROCESS, .detection = detection}, 4);
}

static void make_transpose_conv(struct scene *s, enum mica_type type)
{
    static const int32_t shape[] = {1, 4, 4, 3};
    bool is_float = type == MICA_TYPE_FLOAT32;
    float scale = is_float ? 0 : 0.5f;
    struct mica_window window = scene_window(2, 2);
    window.stride_x = window.stride_y = 2;
    scene_create(s);
    scene_constant(s, MICA_TYPE_INT32, DIMS(4), shape);
    scene_tensor(s, type, scale, 0, DIMS(3, 2, 2, 5));
    scene_tensor(s, type, scale, 0, DIMS(1, 2, 2, 5));
    scene_tensor(s, type, scale, 0, DIMS(1, 4, 4, 3));
    scene_op(s, (struct mica_op){.kind = MICA_OP_TRANSPOSE_CONV, .window = window}, 1);
}

static void make_matmul(struct scene *s, enum mica_type type)
{
    float scale = type == MICA_TYPE_FLOAT32 ? 0 : 0.5f;
    scene_create(s);
    scene_tensor(s, type, scale, 0, DIMS(2, 3, 5));
    scene_tensor(s, type, scale, 0, DIMS(2, 5, 4));
    scene_tensor(s, type, scale, 0, DIMS(2, 3, 4));
    scene_op(s, (struct mica_op){.kind = MICA_OP_BATCH_MATMUL}, 1);
}

static void make_mean(struct scene *s)
{
    static const int32_t axes[] = {1};
    scene_create(s);
    scene_tensor(s, MICA_TYPE_INT8, 1, 0, DIMS(2, 3));
    scene_constant(s, MICA_TYPE_INT32, DIMS(1), axes);
    scene_tensor(s, MICA_TYPE_INT8, 1, 0, DIMS(2));
    scene_op(s, (struct mica_op){.kind = MICA_OP_MEAN}, 1);
}

static void make_int16(struct scene *s, bool depthwise)
{
    scene_create(s);
    scene_tensor(s, MICA_TYPE_INT16, 0.5f, 0, DIMS(1, 5, 5, 8));
    if (depthwise)
        scene_tensor(s, MICA_TYPE_INT8, 0.5f, 0, DIMS(1, 1, 1, 8));
    else
        scene_tensor(s, MICA_TYPE_INT8, 0.5f, 0, DIMS(8, 1, 1, 8));
    scene_tensor(s, MICA_TYPE_INT64, 0, 0, DIMS(8));
    scene_tensor(s, MICA_TYPE_INT16, 0.5f, 0, DIMS(1, 5, 5, 8));
    struct mica_window window = scene_window(1, 1);
    enum mica_op_kind kind = depthwise ? MICA_OP_DEPTHWISE_CONV_2D : MICA_OP_CONV_2D;
    scene_op(s, (struct mica_op){.kind = kind, .window = window}, 1);
}

/* Fails the nth allocation until a run needs no nth; the kernel allocates `least` times or more. */
static void sweep_in(struct scene *s, enum mica_arithmetic arithmetic, long least)
{
    long failures = 0;
    for (long n = 1;; n++) {
        long before = outstanding;
        countdown = n;
        int result = scene_try(s, arithmetic, NULL);
        bool failed = countdown <= 0;
        countdown = 0;
        assert_int_equal(outstanding, before);
        assert_int_equal(result, failed ? -ENOMEM : 0);
        if (!failed)
            break;
        failures++;
    }
    assert_true(failures >= least);
    scene_destroy(s);
}

static void sweep(struct scene *s, long least)
{
    sweep_in(s, MICA_ARITHMETIC_TFLITE, least);
}

static void every_kernel_returns_what_it_took(void **state)
{
    static const enum mica_op_kind kinds[] = {MICA_OP_CONV_2D, MICA_OP_DEPTHWISE_CONV_2D, MICA_OP_FULLY_CONNECTED};
    struct scene s;
    for (int i = 0; i < 3; i++) {
        make_weighted(&s, kinds[i], MICA_TYPE_UINT8);
        sweep(&s, 3);
        make_weighted(&s, kinds[i], MICA_TYPE_FLOAT32);
        sweep(&s, kinds[i] == MICA_OP_DEPTHWISE_CONV_2D ? 0 : 2);
    }
    make_weighted(&s, MICA_OP_CONV_2D, MICA_TYPE_UINT8);
    sweep_in(&s, MICA_ARITHMETIC_ROCKCHIP, 4);
    make_transpose_conv(&s, MICA_TYPE_UINT8);
    sweep(&s, 17);
    make_transpose_conv(&s, MICA_TYPE_FLOAT32);
    sweep(&s, 12);
    make_matmul(&s, MICA_TYPE_INT8);
    sweep(&s, 8);
    make_matmul(&s, MICA_TYPE_FLOAT32);
    sweep(&s, 5);
    make_int16(&s, false);
    sweep(&s, 1);
    make_int16(&s, true);
    sweep(&s, 2);
    make_mean(&s);
    sweep(&s, 1);
    make_pool(&s);
    sweep(&s, 1);
    make_detection(&s);
    sweep(&s, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kernel_returns_what_it_took),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
