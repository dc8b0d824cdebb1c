/* SPDX-License-Identifier: MIT */
/* rk_conv_run() against a slow loop (conv_scene.h) in every mode, at its edges, and with bad addresses. */
#include "conv_scene.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "npu/rockchip/sim/kernels.h"

static void random_tasks(enum mode mode, unsigned rounds)
{
    struct mica_threads *threads = mica_threads_create(2);
    struct random random = {mode + 1};
    for (size_t chip = 0; chip < SCENE_CHIPS; chip++) {
        struct scene scene;
        open_scene(&scene, &scene_chips[chip], chip ? NULL : threads);
        for (unsigned round = 0; round < rounds; round++) {
            choose_task(&scene, mode, &random);
            run_all_versions(&scene);
        }
        close_scene(&scene);
    }
    mica_threads_destroy(threads);
}

static void direct(void **state)
{
    random_tasks(DIRECT, 30);
}

static void depthwise(void **state)
{
    random_tasks(DEPTHWISE, 60);
}

static void packed_pixels(void **state)
{
    random_tasks(PACKED, 60);
}

static void transposed(void **state)
{
    random_tasks(TRANSPOSED, 20);
}

/* ---- edges -------------------------------------------------------------------- */

/* A whole-image kernel of extreme bytes. */
static void open_extreme(struct scene *scene, uint32_t channels, uint32_t size, int8_t weight)
{
    open_scene(scene, &scene_chips[0], NULL);
    scene->conv = (struct rk_conv){
        .feature = FEATURES,
        .line_bytes = size * 16,
        .surface_bytes = size * size * 16,
        .in_w = size,
        .in_h = size,
        .channels = channels,
        .kernel_w = size,
        .kernel_h = size,
        .stride_x = 1,
        .stride_y = 1,
        .dilation_x = 1,
        .dilation_y = 1,
        .spread_x = 1,
        .spread_y = 1,
        .out_w = 1,
        .out_h = 1,
        .kernels = 2,
        .out_channels = 16,
        .weights = WEIGHTS,
        .window_sums = true,
    };
    scene->conv.weight_bytes = (uint64_t)2 * size * size * channels;
    memset(scene->memory.base + FEATURES, -128, MAPPED);
    memset(scene->memory.base + WEIGHTS, weight, MAPPED);
}

/* Sums beyond 32 bits, and beyond 34. */
static void accumulators_saturate(void **state)
{
    const struct {
        uint32_t channels, size, truncate;
        int8_t weight;
        int32_t acc;
    } cases[] = {
        {128, 31, 0, -128, 2015363072}, /* fits: 31 * 31 * 128 products */
        {144, 31, 0, -128, INT32_MAX},  /* 2 267 283 456 */
        {144, 31, 1, -128, 1133641728}, /* halved first */
        {144, 31, 0, 127, INT32_MIN},   /* -2 249 570 304 */
        {144, 31, 3, 127, -281196288},  /* its eighth */
        {2048, 31, 4, -128, 536870912}, /* 32 245 809 152: 2^33 - 1, its sixteenth rounded */
        {2048, 31, 4, 127, -536870912}, /* -2^33 */
        {2048, 31, 0, -128, INT32_MAX},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t version = 0; rk_kernels_at(version); version++) {
            struct scene scene;
            open_extreme(&scene, cases[i].channels, cases[i].size, cases[i].weight);
            scene.conv.truncate = cases[i].truncate;
            prepare_record(&scene);
            assert_int_equal(rk_conv_run_with(scene.sim, rk_kernels_at(version), &scene.conv, &scene.dpu), 0);
            assert_int_equal(scene.dpu.acc[0], cases[i].acc);
            assert_int_equal(scene.dpu.acc[1], cases[i].acc);
            assert_int_equal(scene.dpu.acc[2], 0);
            assert_int_equal(scene.dpu.sum[15], -128 * (int32_t)(cases[i].channels * cases[i].size * cases[i].size));
            close_scene(&scene);
        }
}

/* Halves go away from zero. */
static void truncation_rounds(void **state)
{
    const int32_t cases[][3] = {{5, 1, 3}, {-5, 1, -3}, {6, 2, 2}, {-6, 2, -2}, {5, 2, 1}, {-7, 2, -2}, {3, 3, 0}};
    struct scene scene;
    open_extreme(&scene, 16, 1, 0);
    scene.memory.base[FEATURES] = 1;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        scene.memory.base[WEIGHTS] = (uint8_t)cases[i][0];
        scene.conv.truncate = (uint32_t)cases[i][1];
        prepare_record(&scene);
        assert_int_equal(rk_conv_run(scene.sim, &scene.conv, &scene.dpu), 0);
        assert_int_equal(scene.dpu.acc[0], cases[i][2]);
    }
    close_scene(&scene);
}

static void open_valid(struct scene *scene, enum mode mode)
{
    struct random random = {77};
    open_scene(scene, &scene_chips[0], NULL);
    choose_task(scene, mode, &random);
    prepare_record(scene);
}

static void changed_weights_are_noticed(void **state)
{
    struct scene scene;
    struct random random = {9};
    open_valid(&scene, DIRECT);
    for (unsigned i = 0; i < 5; i++) {
        run_all_versions(&scene);
        change_weights(&scene, &random);
    }
    int8_t *last = (int8_t *)scene.memory.base + WEIGHTS + (scene.conv.weights - WEIGHTS) + scene.conv.weight_bytes - 1;
    *last ^= 1;
    *logical_weight(&scene, scene.conv.kernels - 1, scene.conv.kernel_w * scene.conv.kernel_h - 1,
                    scene.conv.channels - 1) ^= 1;
    run_all_versions(&scene);
    close_scene(&scene);
}

static void expect_fault(struct scene *scene, const char *what)
{
    assert_int_equal(rk_conv_run(scene->sim, &scene->conv, &scene->dpu), -EFAULT);
    assert_non_null(strstr(scene->log.last_error, what));
    for (size_t i = 0; i < (size_t)scene->dpu.pixels * scene->dpu.channels; i++)
        assert_int_equal(scene->dpu.seen[i], 0);
}

static void bad_addresses_fault(void **state)
{
    for (enum mode mode = 0; mode < MODES; mode++) {
        struct scene scene;
        open_valid(&scene, mode);
        const struct rk_conv good = scene.conv;
        const uint64_t end = FEATURES + MAPPED, weights_end = WEIGHTS + MAPPED;
        uint32_t atom = good.packed ? good.real_channels : 16;
        uint64_t last = good.packed ? 0 : good.surface_bytes * (good.channels / 16 - 1);
        uint64_t bytes = last + good.line_bytes * (good.in_h - 1) + (uint64_t)good.in_w * atom;
        scene.conv.feature = end - bytes;
        assert_int_equal(rk_conv_run(scene.sim, &scene.conv, &scene.dpu), 0);
        prepare_record(&scene);
        scene.conv.feature = end - bytes + 1;
        expect_fault(&scene, "features");
        scene.conv.feature = FEATURES - 1;
        expect_fault(&scene, "features");
        scene.conv.feature = UINT64_MAX - 20;
        expect_fault(&scene, "features");
        scene.conv = good;
        scene.conv.weights = weights_end - good.weight_bytes + 1;
        expect_fault(&scene, "weights");
        scene.conv.weights = 0;
        expect_fault(&scene, "weights");
        close_scene(&scene);
    }
}

/* Reads are bounded by what is mapped, not by what is meant. */
static void wild_strides_fault(void **state)
{
    const uint64_t wild[] = {0xffffffff0, 0x7ffffff0, UINT64_MAX - 15, UINT64_C(1) << 63};
    struct scene scene;
    open_valid(&scene, DIRECT);
    const struct rk_conv good = scene.conv;
    scene.conv.channels = 64;
    scene.conv.weight_bytes = UINT64_MAX;
    for (size_t i = 0; i < sizeof wild / sizeof wild[0]; i++) {
        scene.conv.surface_bytes = wild[i] - wild[i] % 16;
        if (scene.conv.surface_bytes != UINT64_MAX - 15)
            expect_fault(&scene, "features");
    }
    /* Surfaces may go down, as long as they are there. */
    scene.conv.feature = FEATURES + 4096;
    scene.conv.surface_bytes = (uint64_t)-16;
    assert_int_equal(rk_conv_run(scene.sim, &scene.conv, &scene.dpu), 0);
    scene.conv = good;
    scene.conv.in_h = 3;
    scene.conv.line_bytes = 0xfffffff0;
    prepare_record(&scene);
    expect_fault(&scene, "features");
    close_scene(&scene);
}

static void expect_refused(struct scene *scene, const char *why)
{
    assert_int_equal(rk_conv_run(scene->sim, &scene->conv, &scene->dpu), -EIO);
    assert_non_null(strstr(scene->log.last_error, why));
}

static void nonsense_is_refused(void **state)
{
    struct scene scene;
    open_valid(&scene, DIRECT);
    const struct rk_conv good = scene.conv;
    uint32_t *const never_zero[] = {
        &scene.conv.kernel_w,   &scene.conv.kernel_h,   &scene.conv.stride_x, &scene.conv.stride_y,
        &scene.conv.dilation_x, &scene.conv.dilation_y, &scene.conv.spread_x, &scene.conv.spread_y,
        &scene.conv.out_w,      &scene.conv.out_h,      &scene.conv.channels, &scene.conv.out_channels,
    };
    for (size_t i = 0; i < sizeof never_zero / sizeof never_zero[0]; i++) {
        *never_zero[i] = 0;
        expect_refused(&scene, "no convolution has such a shape");
        *never_zero[i] = UINT32_MAX;
        expect_refused(&scene, "no convolution has such a shape");
        scene.conv = good;
    }
    scene.conv.weight_bytes--;
    expect_refused(&scene, "weights");
    scene.conv = good;
    scene.conv.out_w = scene.conv.out_h = 8192;
    scene.conv.stride_x = scene.conv.stride_y = 7;
    expect_refused(&scene, "padded image");
    scene.conv.out_w = scene.conv.out_h = 32768;
    scene.conv.stride_x = scene.conv.stride_y = 65536;
    expect_refused(&scene, "padded image");
    close_scene(&scene);
}

/* Padding without end, images outside their padding, and nothing fetched at all. */
static void everything_may_be_padding(void **state)
{
    const int32_t pads[][2] = {{-40, 0}, {0, -40}, {40, 0}, {0, 40}, {-3, -2}};
    for (enum mode mode = 0; mode < MODES; mode++) {
        struct scene scene;
        open_valid(&scene, mode);
        for (size_t i = 0; i < sizeof pads / sizeof pads[0]; i++) {
            scene.conv.pad_left = pads[i][0];
            scene.conv.pad_top = pads[i][1];
            run_all_versions(&scene);
        }
        scene.conv.in_w = 0;
        run_all_versions(&scene);
        close_scene(&scene);
    }
}

/* Each allocation fails once, the call says so, and the next one works. */
static void memory_may_run_out(void **state)
{
    for (enum mode mode = 0; mode < MODES; mode++) {
        struct scene scene;
        open_valid(&scene, mode);
        int result = -ENOMEM;
        long allocations = 0;
        for (; result; allocations++) {
            assert_in_range(allocations, 0, 20);
            rk_conv_finish(scene.sim);
            scene.log.last_error[0] = 0;
            scene_countdown = allocations;
            result = rk_conv_run(scene.sim, &scene.conv, &scene.dpu);
            scene_countdown = -1;
            assert_true(result == 0 || result == -ENOMEM);
            assert_int_equal(scene.log.last_error[0] != 0, result != 0);
            if (result)
                assert_int_equal(rk_conv_run(scene.sim, &scene.conv, &scene.dpu), 0);
            prepare_record(&scene);
        }
        assert_true(allocations > 4);
        run_all_versions(&scene);
        close_scene(&scene);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(direct),
        cmocka_unit_test(depthwise),
        cmocka_unit_test(packed_pixels),
        cmocka_unit_test(transposed),
        cmocka_unit_test(accumulators_saturate),
        cmocka_unit_test(truncation_rounds),
        cmocka_unit_test(changed_weights_are_noticed),
        cmocka_unit_test(bad_addresses_fault),
        cmocka_unit_test(wild_strides_fault),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(everything_may_be_padding),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests_name("rockchip convolution", tests, NULL, NULL);
}
