/* SPDX-License-Identifier: MIT */
/* Memory that runs out: each allocation fails once, the call says so, and the next one works. */
#include "encode.h"
#include "support.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "winsys/winsys.h"

#define DESCRIPTOR 0x400000u
#define COEFFICIENTS 0x410000u
#define INPUT 0x420000u
#define OUTPUT 0x430000u

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);

static long countdown = -1; /* allocations until the one that fails; negative: none does */

static bool fails_now(void)
{
    return countdown >= 0 && countdown-- == 0;
}

void *__wrap_malloc(size_t size)
{
    return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails_now() ? NULL : __real_calloc(count, size);
}

static void set(uint32_t *words, enum viv_nn_field field, uint32_t value)
{
    assert_true(viv_field_set(words, &viv_nn_fields[field], value));
}

/* 3x3, 8 to 8 channels, 10 x 10 pixels. */
struct kind {
    const struct mica_chip *chip;
    bool sparse; /* most weights are zero */
    bool depthwise;
    uint32_t pooling;
};

static void put_job(struct bench *bench, const struct kind *kind)
{
    enum { KERNELS = 8, TAPS = 72 };
    const struct viv_chip *chip = kind->chip->parameters;
    struct random random = {5};
    uint32_t words[VIV_NN_WORDS], bias[KERNELS] = {0}, offset[KERNELS];
    uint8_t weights[KERNELS * TAPS];
    viv_fields_idle(words, VIV_NN_WORDS, viv_nn_fields, VIV_NN_FIELD_COUNT);
    set(words, VIV_NN_KERNEL_X_SIZE, 3);
    set(words, VIV_NN_KERNEL_Y_SIZE, 3);
    set(words, VIV_NN_KERNEL_Z_SIZE, 8);
    set(words, VIV_NN_DEPTHWISE, kind->depthwise);
    set(words, VIV_NN_NO_Z_OFFSET, !chip->z_offset_in_stream);
    set(words, VIV_NN_OUT_IMAGE_Y_STRIDE, 8);
    set(words, VIV_NN_KERNELS_PER_CORE, 1);
    set(words, VIV_NN_POOLING, kind->pooling);
    set(words, VIV_NN_IN_IMAGE_X_SIZE, 10);
    set(words, VIV_NN_IN_IMAGE_Y_SIZE, 10);
    set(words, VIV_NN_IN_IMAGE_X_STRIDE, 10);
    set(words, VIV_NN_IN_IMAGE_Y_STRIDE, 10);
    set(words, VIV_NN_OUT_IMAGE_X_SIZE, 8);
    set(words, VIV_NN_OUT_IMAGE_Y_SIZE, 8);
    set(words, VIV_NN_OUT_IMAGE_Z_SIZE, KERNELS);
    set(words, VIV_NN_OUT_IMAGE_X_STRIDE, 8);
    set(words, VIV_NN_OUT_IMAGE_TILE_X_SIZE, 8);
    set(words, VIV_NN_OUT_IMAGE_TILE_Y_SIZE, 8);
    set(words, VIV_NN_KERNEL_ADDRESS, COEFFICIENTS >> 6);
    set(words, VIV_NN_IN_IMAGE_ADDRESS, INPUT);
    set(words, VIV_NN_OUT_IMAGE_ADDRESS, OUTPUT);
    for (size_t i = 0; i < sizeof weights; i++)
        weights[i] = kind->sparse && random_below(&random, 10) ? 0 : 1 + (uint8_t)random_below(&random, 100);
    for (uint32_t i = 0; i < KERNELS; i++)
        offset[i] = i * 64;
    const struct coefficients coefficients = {.w = 3,
                                              .h = 3,
                                              .z = kind->depthwise ? 1 : 8,
                                              .kernels = KERNELS,
                                              .kernels_per_core = 1,
                                              .run_bits = 3,
                                              .weights = weights,
                                              .bias = bias,
                                              .offset = offset,
                                              .depthwise = kind->depthwise};
    memset(bench_at(bench, COEFFICIENTS), 0, 0x10000);
    encode_coefficients(chip, &coefficients, &random, bench_at(bench, COEFFICIENTS), 0x10000);
    memcpy(bench_at(bench, DESCRIPTOR), words, sizeof words);
}

/* Runs the job on fresh simulators, with allocation after allocation failing, until none is left to fail. */
static void sweep(const struct kind *kind)
{
    long n = 0;
    for (int result = -ENOMEM; result; n++) {
        struct bench bench;
        bench_open_chip(&bench, kind->chip, NULL);
        bench_map(&bench, DESCRIPTOR, 0x40000, MICA_ACCESS_READ | MICA_ACCESS_WRITE);
        put_job(&bench, kind);
        countdown = n;
        result = bench_run_nn(&bench, DESCRIPTOR, NULL);
        countdown = -1;
        assert_true(result == 0 || result == -ENOMEM);
        assert_true(result == 0 || bench.log.last_error[0]);
        assert_int_equal(bench_run_nn(&bench, DESCRIPTOR, NULL), 0);
        bench_close(&bench);
    }
    print_message("%ld allocations\n", n - 1);
    assert_true(n > 5);
}

static void a_job_survives_every_failure(void **state)
{
    const struct kind kinds[] = {
        {&bench_chip, false, false, 0},   {&bench_chip, true, false, 0},   {&bench_chip, true, false, 1},
        {&bench_imx8mp, false, false, 0}, {&bench_imx8mp, false, true, 0}, {&bench_imx8mp, true, false, 1},
        {&bench_s905d3, false, false, 0}, {&bench_s905d3, true, false, 3},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        sweep(&kinds[i]);
}

static void a_device_survives_every_failure(void **state)
{
    long n = 0;
    for (int result = -ENOMEM; result; n++) {
        struct mica_log log = {0};
        struct mica_winsys *winsys = NULL;
        struct mica_bo *bo = NULL;
        countdown = n;
        result = mica_winsys_sim_create(&bench_chip, NULL, &log, &winsys);
        if (!result) {
            result = winsys->bo_create(winsys, 100, &bo);
            countdown = -1;
            winsys->bo_destroy(winsys, bo);
            winsys->destroy(winsys);
        }
        countdown = -1;
        assert_true(result == 0 || (result == -ENOMEM && log.last_error[0]));
    }
    assert_true(n > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_survives_every_failure),
        cmocka_unit_test(a_device_survives_every_failure),
    };
    return cmocka_run_group_tests_name("memory that runs out", tests, NULL, NULL);
}
