/* SPDX-License-Identifier: MIT */
/*
 * Streams, descriptors and coefficients that no driver would make. Whatever
 * they say, the simulator answers with a result or an error, in short time;
 * the sanitizers watch the rest.
 */
#include "encode.h"
#include "support.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "npu/vivante/hw/states.h"
#include "npu/vivante/sim/nn_job.h"

#define MEMORY 0x400000u
#define MEMORY_BYTES 0x40000u
#define DESCRIPTOR MEMORY
#define COEFFICIENTS (MEMORY + 0x10000u)
#define CYCLES 200000u /* of one stream: random jobs should not take long */

static void open_bench(struct bench *bench, const struct mica_chip *chip)
{
    bench_open_chip(bench, chip, NULL);
    bench_map(bench, MEMORY, MEMORY_BYTES, MICA_ACCESS_READ | MICA_ACCESS_WRITE);
    viv_sim_set_cycle_limit(bench->sim, CYCLES);
}

static void expect_an_answer(const struct bench *bench, int result)
{
    assert_true(result == 0 || result == -EIO || result == -EFAULT || result == -ENOMEM);
    assert_true(result == 0 || bench->log.last_error[0]);
}

/* Small numbers, single bits, all ones, or anything. */
static uint32_t strange_word(struct random *random)
{
    switch (random_below(random, 6)) {
    case 0:
        return random_below(random, 64);
    case 1:
        return UINT32_C(1) << random_below(random, 32);
    case 2:
        return UINT32_MAX;
    case 3:
        return MEMORY + random_below(random, MEMORY_BYTES);
    case 4:
        return 0;
    default:
        return random_word(random);
    }
}

static void throw_streams(const struct mica_chip *chip)
{
    const uint32_t states[] = {VIV_PS_NN_INST_ADDR, VIV_PS_TP_INST_ADDR, VIV_PS_10A4, VIV_GL_NN_CONFIG};
    struct random random = {31};
    struct bench bench;
    open_bench(&bench, chip);
    for (size_t i = 0; i < MEMORY_BYTES; i += 4) {
        uint32_t word = strange_word(&random);
        memcpy(bench_at(&bench, MEMORY + i), &word, 4);
    }
    for (unsigned round = 0; round < 30000; round++) {
        uint32_t stream[24];
        size_t words = random_below(&random, 25), count;
        for (size_t i = 0; i < words; i++)
            stream[i] =
                random_below(&random, 3) ? VIV_LOAD_STATE(states[random_below(&random, 4)]) : strange_word(&random);
        uint32_t *copy = malloc(words * 4 + 1); /* so that a byte too far shows */
        memcpy(copy, stream, words * 4);
        expect_an_answer(&bench, viv_sim_run(bench.sim, copy, words, NULL, 0, &count));
        free(copy);
    }
    bench_close(&bench);
}

static void random_streams(void **state)
{
    for (size_t i = 0; i < BENCH_CHIPS; i++)
        throw_streams(bench_chips[i]);
}

static void set(uint32_t *words, enum viv_nn_field field, uint32_t value)
{
    assert_true(viv_field_set(words, &viv_nn_fields[field], value));
}

/* A job that runs, to be damaged: 3x3, 6 channels to 11, or 11 channels in the chip's depthwise mode, 12 x 9 pixels. */
static void good_nn(struct bench *bench, uint32_t *words, bool depthwise)
{
    enum { KERNELS = 11, TAPS = 54 };
    const struct viv_chip *chip = bench->sim->chip;
    struct random random = {5};
    uint8_t weights[KERNELS * TAPS];
    uint32_t bias[KERNELS], offset[KERNELS];
    viv_fields_idle(words, VIV_NN_WORDS, viv_nn_fields, VIV_NN_FIELD_COUNT);
    set(words, VIV_NN_KERNEL_X_SIZE, 3);
    set(words, VIV_NN_KERNEL_Y_SIZE, 3);
    set(words, VIV_NN_KERNEL_Z_SIZE, depthwise ? 1 : 6);
    set(words, VIV_NN_DEPTHWISE, depthwise);
    set(words, VIV_NN_NO_Z_OFFSET, !chip->z_offset_in_stream);
    set(words, VIV_NN_OUT_IMAGE_Y_STRIDE, 9);
    set(words, VIV_NN_KERNELS_PER_CORE, 2);
    set(words, VIV_NN_IN_IMAGE_X_SIZE, 12);
    set(words, VIV_NN_IN_IMAGE_Y_SIZE, 9);
    set(words, VIV_NN_IN_IMAGE_X_STRIDE, 12);
    set(words, VIV_NN_IN_IMAGE_Y_STRIDE, 9);
    set(words, VIV_NN_IN_IMAGE_X_OFFSET, ~0u);
    set(words, VIV_NN_IN_IMAGE_Y_OFFSET, ~0u);
    set(words, VIV_NN_OUT_IMAGE_X_SIZE, 12);
    set(words, VIV_NN_OUT_IMAGE_Y_SIZE, 9);
    set(words, VIV_NN_OUT_IMAGE_Z_SIZE, KERNELS);
    set(words, VIV_NN_OUT_IMAGE_X_STRIDE, 12);
    set(words, VIV_NN_OUT_IMAGE_TILE_X_SIZE, 12);
    set(words, VIV_NN_OUT_IMAGE_TILE_Y_SIZE, 9);
    set(words, VIV_NN_POST_SHIFT, chip->multiplier_bits == 23 ? 1 : 24);
    set(words, VIV_NN_COEF_ZERO_POINT, 128);
    set(words, VIV_NN_KERNEL_ADDRESS, COEFFICIENTS >> 6);
    set(words, VIV_NN_IN_IMAGE_ADDRESS, MEMORY + 0x20000);
    set(words, VIV_NN_OUT_IMAGE_ADDRESS, MEMORY + 0x30000);
    for (size_t i = 0; i < sizeof weights; i++)
        weights[i] = random_below(&random, 2) ? 128 : (uint8_t)random_word(&random);
    for (uint32_t i = 0; i < KERNELS; i++) {
        bias[i] = 0;
        offset[i] = i * 108;
    }
    const struct coefficients coefficients = {.w = 3,
                                              .h = 3,
                                              .z = depthwise ? 1 : 6,
                                              .kernels = KERNELS,
                                              .kernels_per_core = 2,
                                              .zero_point = 128,
                                              .run_bits = 3,
                                              .weights = weights,
                                              .bias = bias,
                                              .offset = offset,
                                              .depthwise = depthwise};
    memset(bench_at(bench, COEFFICIENTS), 0, 0x10000);
    encode_coefficients(chip, &coefficients, &random, bench_at(bench, COEFFICIENTS), 0x10000);
}

static int run_nn(struct bench *bench, const uint32_t *words)
{
    memcpy(bench_at(bench, DESCRIPTOR), words, 4 * VIV_NN_WORDS);
    return bench_run_nn(bench, DESCRIPTOR, NULL);
}

/*
 * First-pixel pooling takes the image apart in even and odd rows; of the odd ones a 3x3 kernel needs one less. The
 * image claims 100 rows a page apart, and only the 5 that taps read are there.
 */
static void a_job_fetches_only_what_taps_read(void **state)
{
    enum { IMAGE = 0x20000000, ROWS = 5, CHANNELS = 6 };
    struct bench bench;
    uint32_t words[VIV_NN_WORDS];
    open_bench(&bench, &bench_chip);
    bench_map(&bench, IMAGE, ROWS * CHANNELS * MICA_DEVICE_PAGE, MICA_ACCESS_READ);
    good_nn(&bench, words, false);
    set(words, VIV_NN_POOLING, VIV_POOL_FIRST_PIXEL);
    set(words, VIV_NN_IN_IMAGE_ADDRESS, IMAGE);
    set(words, VIV_NN_IN_IMAGE_X_SIZE, 8);
    set(words, VIV_NN_IN_IMAGE_Y_SIZE, 100);
    set(words, VIV_NN_IN_IMAGE_X_STRIDE, MICA_DEVICE_PAGE);
    set(words, VIV_NN_IN_IMAGE_Y_STRIDE, ROWS);
    set(words, VIV_NN_IN_IMAGE_X_OFFSET, 0);
    set(words, VIV_NN_IN_IMAGE_Y_OFFSET, 0);
    set(words, VIV_NN_OUT_IMAGE_X_SIZE, 3);
    set(words, VIV_NN_OUT_IMAGE_Y_SIZE, 3);
    assert_int_equal(run_nn(&bench, words), 0);
    set(words, VIV_NN_OUT_IMAGE_Y_SIZE, 5); /* two rows more are read, and not there */
    assert_int_equal(run_nn(&bench, words), -EFAULT);
    bench_close(&bench);
}

/* The depthwise bit is another format's; V7 kernels are whole. */
static void depthwise_has_no_v7_stream(void **state)
{
    struct bench bench;
    uint32_t words[VIV_NN_WORDS];
    open_bench(&bench, &bench_imx8mp);
    good_nn(&bench, words, true);
    viv_sim_read_v7(bench.sim);
    assert_int_equal(run_nn(&bench, words), -EIO);
    assert_non_null(strstr(bench.log.last_error, "V7"));
    bench_close(&bench);
}

/* What there is to damage. */
static const struct victim {
    const struct mica_chip *chip;
    bool depthwise;
} victims[] = {{&bench_chip, false}, {&bench_imx8mp, false}, {&bench_imx8mp, true}, {&bench_s905d3, false}};

static void for_each_victim(void (*test)(const struct victim *victim))
{
    for (size_t i = 0; i < sizeof victims / sizeof victims[0]; i++) {
        print_message("%s%s\n", victims[i].chip->name, victims[i].depthwise ? ", depthwise" : "");
        test(&victims[i]);
    }
}

static void damage_descriptors(const struct victim *victim)
{
    struct random random = {41};
    struct bench bench;
    uint32_t good[VIV_NN_WORDS], words[VIV_NN_WORDS];
    unsigned ran = 0;
    open_bench(&bench, victim->chip);
    good_nn(&bench, good, victim->depthwise);
    assert_int_equal(run_nn(&bench, good), 0);
    for (unsigned round = 0; round < 10000; round++) {
        memcpy(words, good, sizeof words);
        for (uint32_t damage = 1 + random_below(&random, 3); damage; damage--) {
            uint32_t word = random_below(&random, 26);
            words[word] = random_below(&random, 2) ? strange_word(&random)
                                                   : words[word] ^ UINT32_C(1) << random_below(&random, 32);
        }
        int result = run_nn(&bench, words);
        expect_an_answer(&bench, result);
        ran += result == 0;
        if (round % 256 == 0) /* outputs may have gone over the coefficients */
            good_nn(&bench, good, victim->depthwise);
    }
    print_message("%u of 10000 still ran\n", ran);
    assert_in_range(ran, 1, 9999);
    bench_close(&bench);
}

static void damaged_nn_descriptors(void **state)
{
    for_each_victim(damage_descriptors);
}

static void damage_coefficients(const struct victim *victim)
{
    struct random random = {43};
    struct bench bench;
    uint32_t words[VIV_NN_WORDS];
    static uint8_t good[0x1000];
    open_bench(&bench, victim->chip);
    good_nn(&bench, words, victim->depthwise);
    uint8_t *coefficients = bench_at(&bench, COEFFICIENTS);
    memcpy(good, coefficients, sizeof good);
    unsigned ran = 0;
    for (unsigned round = 0; round < 10000; round++) {
        bool header = random_below(&random, 4) == 0;
        memcpy(coefficients, good, sizeof good);
        for (uint32_t damage = 1 + random_below(&random, 4); damage; damage--)
            coefficients[header ? random_below(&random, 68) : 64 + random_below(&random, 1500)] =
                (uint8_t)strange_word(&random);
        int result = run_nn(&bench, words);
        expect_an_answer(&bench, result);
        ran += result == 0;
    }
    print_message("%u of 10000 still ran\n", ran);
    assert_in_range(ran, 1, 9999);
    bench_close(&bench);
}

static void damaged_coefficients(void **state)
{
    for_each_victim(damage_coefficients);
}

static void random_v7_header(struct random *random, uint8_t *coefficients)
{
    memset(coefficients, 0, 64);
    for (size_t core = 0; core < 8; core++)
        coefficients[4 * core] = (uint8_t)(random_below(random, 4) * 64);
    coefficients[64] = (uint8_t)random_below(random, 6);
    coefficients[65] = (uint8_t)random_below(random, 3);
    coefficients[66] = 0;
}

/* Every permutation is a symbol map; with zero runs, 8 takes the place of one of 1 to 6. */
static void random_huffman_header(struct random *random, const struct viv_chip *chip, uint8_t *coefficients)
{
    const uint8_t sizes[] = {0, 4, 6, 10, 18};
    uint8_t map[8], runs = sizes[random_below(random, 5)];
    memset(coefficients, 0, 64);
    coefficients[0] = chip->coef_precode && random_below(random, 2) ? 0x11 : 0x10;
    coefficients[1] = runs;
    for (size_t i = 0; i < runs; i++)
        coefficients[2 + i] = (uint8_t)random_below(random, random_below(random, 2) ? 8 : 256);
    for (uint8_t i = 0; i < 8; i++) {
        uint32_t j = random_below(random, i + 1u);
        map[i] = map[j];
        map[j] = i;
    }
    uint32_t gone = 1 + random_below(random, 6);
    for (size_t i = 0; i < 8; i++) {
        uint8_t length = runs && map[i] == gone ? 8 : map[i];
        coefficients[20 + i / 2] |= (uint8_t)(length << 4 * (i % 2));
    }
    for (size_t core = 0; core < chip->nn_cores; core++) {
        uint32_t bits = random_below(random, 4) * 512 - random_below(random, 2) * random_below(random, 500);
        bits = bits < 4096 ? bits : 0;
        memcpy(coefficients + 28 + 4 * core, &bits, sizeof bits);
    }
}

static void throw_coefficients(const struct victim *victim)
{
    struct random random = {47};
    struct bench bench;
    uint32_t words[VIV_NN_WORDS];
    open_bench(&bench, victim->chip);
    good_nn(&bench, words, victim->depthwise);
    uint8_t *coefficients = bench_at(&bench, COEFFICIENTS);
    for (unsigned round = 0; round < 5000; round++) {
        for (size_t i = 64; i < 64 + 8 * 192; i++)
            coefficients[i] = (uint8_t)random_word(&random);
        if (victim->chip == &bench_chip)
            random_v7_header(&random, coefficients);
        else
            random_huffman_header(&random, bench.sim->chip, coefficients);
        set(words, VIV_NN_KERNEL_X_SIZE, 1 + random_below(&random, 3));
        set(words, VIV_NN_KERNEL_Y_SIZE, 1 + random_below(&random, 3));
        set(words, VIV_NN_KERNEL_Z_SIZE, victim->depthwise ? 1 : 1 + random_below(&random, 40));
        set(words, VIV_NN_OUT_IMAGE_Z_SIZE, 1 + random_below(&random, 12));
        expect_an_answer(&bench, run_nn(&bench, words));
    }
    bench_close(&bench);
}

static void random_coefficients(void **state)
{
    for_each_victim(throw_coefficients);
}

static void damaged_tp_descriptors(void **state)
{
    struct random random = {53};
    struct bench bench;
    open_bench(&bench, &bench_chip);
    unsigned ran = 0;
    for (unsigned round = 0; round < 20000; round++) {
        uint32_t words[VIV_TP_WORDS];
        viv_fields_idle(words, VIV_TP_WORDS, viv_tp_fields, VIV_TP_FIELD_COUNT);
        words[0] = words[2] = 16;
        words[1] = 3 << 16 | 5;
        words[3] = 80;
        words[5] = 4 << 16 | 15;
        words[8] = words[9] = 5 << 16 | 16;
        words[10] = MEMORY + 0x20000;
        words[13] = MEMORY + 0x30000;
        words[14] = 1;
        words[16] = 1 << 16 | 240;
        for (uint32_t damage = random_below(&random, 5); damage; damage--)
            words[random_below(&random, VIV_TP_WORDS)] = strange_word(&random);
        memcpy(bench_at(&bench, DESCRIPTOR), words, sizeof words);
        int result = bench_run_tp(&bench, DESCRIPTOR, NULL);
        expect_an_answer(&bench, result);
        ran += result == 0;
    }
    print_message("%u of 20000 still ran\n", ran);
    assert_in_range(ran, 1, 19999);
    bench_close(&bench);
}

/* Announces far more weights than its bytes can hold: refused before anything is allocated. */
static void a_tiny_buffer_cannot_announce_a_giant(void **state)
{
    struct bench bench;
    uint32_t words[VIV_NN_WORDS];
    open_bench(&bench, &bench_chip);
    good_nn(&bench, words, false);
    uint8_t *coefficients = bench_at(&bench, COEFFICIENTS);
    coefficients[65] = coefficients[66] = 255;
    set(words, VIV_NN_KERNEL_Z_SIZE, 100000);
    assert_int_equal(run_nn(&bench, words), -EIO);
    assert_non_null(strstr(bench.log.last_error, "too short"));
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_streams),
        cmocka_unit_test(a_job_fetches_only_what_taps_read),
        cmocka_unit_test(depthwise_has_no_v7_stream),
        cmocka_unit_test(damaged_nn_descriptors),
        cmocka_unit_test(damaged_coefficients),
        cmocka_unit_test(random_coefficients),
        cmocka_unit_test(damaged_tp_descriptors),
        cmocka_unit_test(a_tiny_buffer_cannot_announce_a_giant),
    };
    return cmocka_run_group_tests_name("hostile jobs", tests, NULL, NULL);
}
