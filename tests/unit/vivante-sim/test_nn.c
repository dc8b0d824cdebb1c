/* SPDX-License-Identifier: MIT */
/* Random NN jobs against the slow reference, and what must be refused. */
#include "encode.h"
#include "reference.h"
#include "support.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DESCRIPTOR 0x400000u
#define COEFFICIENTS 0x401000u
#define COEFFICIENT_ROOM 0x80000u
#define INPUT 0x500000u
#define OUTPUT 0x700000u
#define ROOM 0x100000u
#define ALL (MICA_ACCESS_READ | MICA_ACCESS_WRITE)

struct shape {
    const struct viv_chip *chip;
    uint32_t w, h, kw, kh, z, kernels, out_w, out_h, kernels_per_core;
    uint32_t stride, plane_rows, out_stride, out_rows, pooling, pool_3x3;
    bool depthwise; /* z is 1, the image has as many channels as there are kernels */
    int32_t x_offset, y_offset;
    uint32_t density; /* percent of weights off the zero point */
};

static void set(uint32_t *words, enum viv_nn_field field, uint32_t value)
{
    if (!viv_field_set(words, &viv_nn_fields[field], value))
        fail_msg("%s can't hold %u", viv_nn_fields[field].name, value);
}

static uint32_t one_of(struct random *random, const uint32_t *values, uint32_t count)
{
    return values[random_below(random, count)];
}

static int32_t random_offset(const struct viv_chip *chip, struct random *random)
{
    uint32_t values = 1u << chip->offset_bits;
    return (int32_t)random_below(random, values) - (int32_t)(values / 2);
}

static struct shape random_shape(const struct viv_chip *chip, struct random *random)
{
    const uint32_t sizes[] = {1, 1, 2, 3, 3, 5, 7, chip->max_kernel}, densities[] = {0, 2, 10, 50, 100, 100};
    struct shape s = {
        .chip = chip,
        .kw = one_of(random, sizes, 8),
        .z = 1 + random_below(random, 14),
        .kernels = 1 + random_below(random, 24),
        .out_w = 1 + random_below(random, random_below(random, 4) ? 20 : 90),
        .out_h = 1 + random_below(random, 20),
        .w = 1 + random_below(random, 30),
        .h = 1 + random_below(random, 20),
        .x_offset = random_offset(chip, random),
        .y_offset = random_offset(chip, random),
        .kernels_per_core = 1 + random_below(random, 4),
        .density = one_of(random, densities, 6),
    };
    s.kh = random_below(random, 4) ? s.kw : 1 + random_below(random, 5);
    const uint32_t poolings[] = {0, 0, 1, 3};
    s.pooling = one_of(random, poolings, 4);
    s.pool_3x3 = random_below(random, 2);
    if (s.pooling == 1 && (s.out_w < 3 || s.out_h < 3))
        s.pooling = 0;
    s.stride = s.w + random_below(random, 5);
    s.plane_rows = s.h + random_below(random, 3);
    s.out_stride = s.out_w + random_below(random, 4);
    s.out_rows = s.out_h + random_below(random, 3);
    s.depthwise = chip->hardware_depthwise && random_below(random, 3) == 0;
    if (s.depthwise)
        s.z = 1;
    return s;
}

/* Mostly shifts with which results are of all sizes, sometimes any. */
static uint32_t random_shift(const struct viv_chip *chip, struct random *random)
{
    if (random_below(random, 8) == 0)
        return random_below(random, 128);
    return (16 + random_below(random, 16) - (chip->multiplier_bits == 23 ? 15 : 0)) & 127;
}

static void describe(const struct shape *s, struct random *random, uint32_t *words)
{
    bool one_column = s->kw == 1 && s->kh > 1 && !s->chip->thin_kernels;
    viv_fields_idle(words, VIV_NN_WORDS, viv_nn_fields, VIV_NN_FIELD_COUNT);
    set(words, VIV_NN_LAYER_TYPE, one_column);
    set(words, VIV_NN_KERNEL_X_SIZE, one_column ? s->kh : s->kw);
    set(words, VIV_NN_NO_Z_OFFSET, !s->chip->z_offset_in_stream);
    set(words, VIV_NN_DEPTHWISE, s->depthwise);
    set(words, VIV_NN_OUT_IMAGE_Y_STRIDE, s->out_rows);
    set(words, VIV_NN_KERNEL_Y_SIZE, s->kh);
    set(words, VIV_NN_KERNEL_Z_SIZE, s->depthwise && random_below(random, 2) ? s->kernels : s->z);
    set(words, VIV_NN_KERNELS_PER_CORE, s->kernels_per_core);
    set(words, VIV_NN_POOLING, s->pooling);
    set(words, VIV_NN_POOLING_XY_SIZE, s->pool_3x3);
    set(words, VIV_NN_IN_IMAGE_X_SIZE, s->w);
    set(words, VIV_NN_IN_IMAGE_Y_SIZE, s->h);
    set(words, VIV_NN_IN_IMAGE_X_STRIDE, s->stride);
    set(words, VIV_NN_IN_IMAGE_Y_STRIDE, s->plane_rows);
    set(words, VIV_NN_IN_IMAGE_X_OFFSET, (uint32_t)s->x_offset);
    set(words, VIV_NN_IN_IMAGE_Y_OFFSET, (uint32_t)s->y_offset);
    set(words, VIV_NN_IN_IMAGE_BORDER_CONST, random_below(random, 256));
    set(words, VIV_NN_OUT_IMAGE_X_SIZE, s->out_w);
    set(words, VIV_NN_OUT_IMAGE_Y_SIZE, s->out_h);
    set(words, VIV_NN_OUT_IMAGE_Z_SIZE, s->kernels);
    set(words, VIV_NN_OUT_IMAGE_X_STRIDE, s->out_stride);
    set(words, VIV_NN_OUT_IMAGE_TILE_X_SIZE, s->out_w < 64 ? s->out_w : 64);
    set(words, VIV_NN_OUT_IMAGE_TILE_Y_SIZE, 1);
    set(words, VIV_NN_ROUNDING_MODE, random_below(random, 4));
    set(words, VIV_NN_RELU, random_below(random, 2));
    set(words, VIV_NN_POST_MULTIPLIER, random_below(random, 1u << s->chip->multiplier_bits));
    set(words, VIV_NN_POST_SHIFT, random_shift(s->chip, random));
    set(words, VIV_NN_COEF_ZERO_POINT, random_below(random, 256));
    set(words, VIV_NN_OUT_ZERO_POINT, random_below(random, 256));
    set(words, VIV_NN_KERNEL_ADDRESS, COEFFICIENTS >> 6);
    set(words, VIV_NN_IN_IMAGE_ADDRESS, INPUT + random_below(random, 100));
    set(words, VIV_NN_OUT_IMAGE_ADDRESS, OUTPUT + random_below(random, 100));
}

/* Owns its memory. */
static struct coefficients random_coefficients(const struct shape *s, struct random *random, const uint32_t *words)
{
    size_t count = (size_t)s->kernels * s->kw * s->kh * s->z;
    uint8_t *weights = malloc(count), zero_point = (uint8_t)viv_nn_get(words, VIV_NN_COEF_ZERO_POINT);
    uint32_t *bias = calloc(s->kernels, 4), *offset = calloc(s->kernels, 4), place = 0;
    bool wide = random_below(random, 8) == 0; /* biases that make sums wrap */
    for (size_t i = 0; i < count; i++)
        weights[i] = random_below(random, 100) < s->density ? (uint8_t)random_word(random) : zero_point;
    for (uint32_t k = 0; k < s->kernels; k++) {
        bias[k] = wide ? random_word(random) : random_below(random, 200000) - 100000;
        offset[k] = place;
        place += s->out_stride * s->out_h + random_below(random, 7);
    }
    return (struct coefficients){
        .w = s->kw,
        .h = s->kh,
        .z = s->z,
        .kernels = s->kernels,
        .kernels_per_core = s->kernels_per_core,
        .zero_point = zero_point,
        .run_bits = random_below(random, 6),
        .weights = weights,
        .bias = bias,
        .offset = offset,
        .depthwise = s->depthwise,
    };
}

static void release(struct coefficients *coefficients)
{
    free((void *)(uintptr_t)coefficients->weights);
    free((void *)(uintptr_t)coefficients->bias);
    free((void *)(uintptr_t)coefficients->offset);
}

static struct coefficients put_coefficients(const struct shape *s, struct random *random, const uint32_t *words,
                                            uint8_t *out)
{
    struct coefficients coefficients = random_coefficients(s, random, words);
    memset(out, 0, COEFFICIENT_ROOM);
    encode_coefficients(s->chip, &coefficients, random, out, COEFFICIENT_ROOM);
    return coefficients;
}

static void compare(const uint8_t *model, const uint8_t *reference, const struct shape *s, unsigned round)
{
    for (size_t i = 0; i < ROOM; i++)
        if (model[i] != reference[i])
            fail_msg("round %u, byte %zu: %u, reference %u (%ux%u kernel %ux%ux%u, %u kernels, %ux%u out, pooling %u, "
                     "density %u)",
                     round, i, model[i], reference[i], s->w, s->h, s->kw, s->kh, s->z, s->kernels, s->out_w, s->out_h,
                     s->pooling, s->density);
}

static void random_rounds(struct bench *bench, unsigned rounds, uint64_t seed)
{
    struct random random = {seed};
    struct bench other;
    const struct viv_chip *chip = bench->sim->chip;
    bench_open(&other, NULL);
    struct bench *both[] = {bench, &other};
    for (size_t i = 0; i < 2; i++) {
        bench_map(both[i], DESCRIPTOR, 4096, MICA_ACCESS_READ);
        bench_map(both[i], COEFFICIENTS, COEFFICIENT_ROOM, MICA_ACCESS_READ);
        bench_map(both[i], INPUT, ROOM, MICA_ACCESS_READ);
        bench_map(both[i], OUTPUT, ROOM, MICA_ACCESS_WRITE);
    }
    for (unsigned round = 0; round < rounds; round++) {
        struct shape s = random_shape(chip, &random);
        uint32_t words[VIV_NN_WORDS];
        describe(&s, &random, words);
        struct coefficients coefficients = put_coefficients(&s, &random, words, bench_at(bench, COEFFICIENTS));
        for (size_t i = 0; i < 0x4000; i++)
            bench_at(bench, INPUT)[i] = (uint8_t)random_word(&random);
        memcpy(bench_at(bench, DESCRIPTOR), words, sizeof words);
        memset(bench_at(bench, OUTPUT), 0x5a, ROOM);
        memcpy(bench_at(&other, DESCRIPTOR), bench_at(bench, DESCRIPTOR), 4096);
        memcpy(bench_at(&other, COEFFICIENTS), bench_at(bench, COEFFICIENTS), COEFFICIENT_ROOM);
        memcpy(bench_at(&other, INPUT), bench_at(bench, INPUT), 0x4000);
        memset(bench_at(&other, OUTPUT), 0x5a, ROOM);
        if (bench_run_nn(bench, DESCRIPTOR, NULL))
            fail_msg("round %u: %s", round, bench->log.last_error);
        if (chip->coef_format == VIV_COEF_V7)
            reference_nn(chip, other.memory.base, DESCRIPTOR);
        else
            reference_nn_with(chip, other.memory.base, DESCRIPTOR, &coefficients);
        release(&coefficients);
        compare(bench_at(bench, OUTPUT), bench_at(&other, OUTPUT), &s, round);
    }
    bench_close(&other);
}

static void every_version_equals_the_reference(void **state)
{
    for (size_t i = 0; viv_kernels_at(i); i++)
        for (size_t chip = 0; chip < BENCH_CHIPS; chip++) {
            struct bench bench;
            bench_open_chip(&bench, bench_chips[chip], NULL);
            bench.sim->kernels = viv_kernels_at(i);
            print_message("%s, %s\n", bench_chips[chip]->name, bench.sim->kernels->name);
            random_rounds(&bench, 250, 1);
            bench_close(&bench);
        }
}

static void threads_change_nothing(void **state)
{
    struct mica_threads *threads = mica_threads_create(3);
    struct bench bench;
    assert_non_null(threads);
    for (size_t chip = 0; chip < BENCH_CHIPS; chip++) {
        bench_open_chip(&bench, bench_chips[chip], threads);
        random_rounds(&bench, 100, 2);
        bench_close(&bench);
    }
    mica_threads_destroy(threads);
}

/* ---- a job to vary ---------------------------------------------------- */

struct job {
    struct bench bench;
    uint32_t words[VIV_NN_WORDS];
};

static const struct shape plain = {.w = 8,
                                   .h = 8,
                                   .kw = 3,
                                   .kh = 3,
                                   .z = 4,
                                   .kernels = 11,
                                   .out_w = 8,
                                   .out_h = 8,
                                   .kernels_per_core = 1,
                                   .stride = 8,
                                   .plane_rows = 8,
                                   .out_stride = 8,
                                   .out_rows = 8,
                                   .x_offset = -1,
                                   .y_offset = -1,
                                   .density = 100};

static void job_open_on(struct job *job, const struct mica_chip *chip)
{
    struct random random = {7};
    struct shape s = plain;
    s.chip = chip->parameters;
    s.kernels_per_core = 2;
    bench_open_chip(&job->bench, chip, NULL);
    bench_map(&job->bench, DESCRIPTOR, 4096, ALL);
    bench_map(&job->bench, COEFFICIENTS, COEFFICIENT_ROOM, ALL);
    bench_map(&job->bench, INPUT, ROOM, ALL);
    bench_map(&job->bench, OUTPUT, ROOM, ALL);
    describe(&s, &random, job->words);
    struct coefficients coefficients = put_coefficients(&s, &random, job->words, bench_at(&job->bench, COEFFICIENTS));
    release(&coefficients);
    for (size_t i = 0; i < 256; i++)
        bench_at(&job->bench, INPUT)[i] = (uint8_t)random_word(&random);
}

static void job_open(struct job *job)
{
    job_open_on(job, &bench_chip);
}

static int job_run(struct job *job)
{
    memcpy(bench_at(&job->bench, DESCRIPTOR), job->words, sizeof job->words);
    job->bench.log.last_error[0] = 0;
    return bench_run_nn(&job->bench, DESCRIPTOR, NULL);
}

static void expect_refusal_on(const struct mica_chip *chip, enum viv_nn_field field, uint32_t value)
{
    struct job job;
    job_open_on(&job, chip);
    set(job.words, field, value);
    assert_int_equal(job_run(&job), -EIO);
    assert_non_null(strstr(job.bench.log.last_error, viv_nn_fields[field].name));
    bench_close(&job.bench);
}

static void expect_refusal(enum viv_nn_field field, uint32_t value)
{
    for (size_t i = 0; i < BENCH_CHIPS; i++)
        expect_refusal_on(bench_chips[i], field, value);
}

static void what_is_not_simulated_is_refused_by_name(void **state)
{
    expect_refusal(VIV_NN_KERNEL_DATA_TYPE, 2);
    expect_refusal(VIV_NN_IN_IMAGE_DATA_TYPE, 2);
    expect_refusal(VIV_NN_OUT_IMAGE_DATA_TYPE, 4);
    expect_refusal(VIV_NN_POOLING, 2);
    expect_refusal(VIV_NN_IN_IMAGE_BORDER_MODE, 1);
    expect_refusal(VIV_NN_KERNEL_X_SIZE, 0);
    expect_refusal(VIV_NN_OUT_IMAGE_X_SIZE, 0);
    expect_refusal(VIV_NN_KERNELS_PER_CORE, 0);
    expect_refusal(VIV_NN_OUT_IMAGE_TILE_Y_SIZE, 0);
    expect_refusal(VIV_NN_OUT_IMAGE_TILE_X_SIZE, 65);
}

static void what_one_chip_lacks_is_refused_by_name(void **state)
{
    const struct mica_chip *v7[] = {&bench_chip, &bench_s905d3};
    for (size_t i = 0; i < 2; i++) {
        expect_refusal_on(v7[i], VIV_NN_NO_Z_OFFSET, 1);
        expect_refusal_on(v7[i], VIV_NN_DEPTHWISE, 1);
        expect_refusal_on(v7[i], VIV_NN_KERNEL_Y_SIZE, 12);
    }
    expect_refusal_on(&bench_imx8mp, VIV_NN_NO_Z_OFFSET, 0);
    expect_refusal_on(&bench_imx8mp, VIV_NN_LAYER_TYPE, 1);
}

/* A depthwise job's channels are its outputs; its descriptor says so or says 1. */
static void depthwise_kernels_see_one_channel(void **state)
{
    struct job job;
    job_open_on(&job, &bench_imx8mp);
    set(job.words, VIV_NN_DEPTHWISE, 1);
    assert_int_equal(job_run(&job), -EIO);
    assert_non_null(strstr(job.bench.log.last_error, "KERNEL_Z_SIZE"));
    bench_close(&job.bench);
}

static void streams_of_another_format_are_refused(void **state)
{
    const struct mica_chip *chips[] = {&bench_imx8mp, &bench_s905d3};
    for (size_t i = 0; i < 2; i++) {
        struct job v7, job;
        job_open(&v7);
        job_open_on(&job, chips[i]);
        memcpy(bench_at(&job.bench, COEFFICIENTS), bench_at(&v7.bench, COEFFICIENTS), COEFFICIENT_ROOM);
        assert_int_equal(job_run(&job), -EIO);
        assert_non_null(strstr(job.bench.log.last_error, "V7"));
        bench_close(&job.bench);
        bench_close(&v7.bench);
    }
}

/* The four codes of a descriptor, on sums that lie half way, for both generations (specification, section 6.1). */
static void rounding_differs_between_generations(void **state)
{
    /* The sum -5 with a scale of 1/2, and an output zero point of 100. */
    const struct {
        const struct mica_chip *chip;
        uint8_t expected[4];
        uint32_t shift;
    } cases[] = {{&bench_chip, {98, 98, 98, 97}, 16},
                 {&bench_s905d3, {98, 98, 98, 97}, 16},
                 {&bench_imx8mp, {97, 98, 98, 97}, 1}};
    for (size_t i = 0; i < 3; i++)
        for (uint32_t mode = 0; mode < 4; mode++) {
            const uint8_t weight = 5;
            const uint32_t bias = (uint32_t)-5, offset = 0;
            const struct coefficients coefficients = {1, 1, 1, 1, 1, 5, 0, &weight, &bias, &offset, false};
            struct random random = {3};
            struct job job;
            job_open_on(&job, cases[i].chip);
            memset(bench_at(&job.bench, COEFFICIENTS), 0, COEFFICIENT_ROOM);
            encode_coefficients(cases[i].chip->parameters, &coefficients, &random, bench_at(&job.bench, COEFFICIENTS),
                                COEFFICIENT_ROOM);
            set(job.words, VIV_NN_KERNEL_X_SIZE, 1);
            set(job.words, VIV_NN_KERNEL_Y_SIZE, 1);
            set(job.words, VIV_NN_KERNEL_Z_SIZE, 1);
            set(job.words, VIV_NN_OUT_IMAGE_Z_SIZE, 1);
            set(job.words, VIV_NN_COEF_ZERO_POINT, 5);
            set(job.words, VIV_NN_OUT_ZERO_POINT, 100);
            set(job.words, VIV_NN_RELU, 0);
            set(job.words, VIV_NN_POST_MULTIPLIER, 0);
            set(job.words, VIV_NN_POST_SHIFT, cases[i].shift);
            set(job.words, VIV_NN_ROUNDING_MODE, mode);
            assert_int_equal(job_run(&job), 0);
            uint32_t out = viv_nn_get(job.words, VIV_NN_OUT_IMAGE_ADDRESS);
            assert_int_equal(bench_at(&job.bench, out)[0], cases[i].expected[mode]);
            bench_close(&job.bench);
        }
}

static void circular_buffers_may_cover_but_not_wrap(void **state)
{
    struct job job;
    job_open(&job);
    uint32_t in = viv_nn_get(job.words, VIV_NN_IN_IMAGE_ADDRESS);
    set(job.words, VIV_NN_IN_CIRC_SIZE, 4);
    set(job.words, VIV_NN_IN_CIRC_END_P1, (in >> 6) + 5);
    assert_int_equal(job_run(&job), 0);
    set(job.words, VIV_NN_IN_CIRC_END_P1, (in >> 6) + 3);
    assert_int_equal(job_run(&job), -EIO);
    set(job.words, VIV_NN_IN_CIRC_SIZE, 3);
    set(job.words, VIV_NN_IN_CIRC_END_P1, 0x3ffffff);
    assert_int_equal(job_run(&job), -EIO);
    bench_close(&job.bench);
}

static void addresses_the_submission_lacks_fault(void **state)
{
    const uint32_t where[] = {DESCRIPTOR, COEFFICIENTS, INPUT, OUTPUT};
    for (size_t i = 0; i < 4; i++) {
        struct job job;
        job_open(&job);
        assert_int_equal(job_run(&job), 0);
        unsigned without = where[i] == OUTPUT ? MICA_ACCESS_READ : MICA_ACCESS_WRITE;
        mica_device_memory_protect(&job.bench.memory, where[i], 4096, without);
        assert_int_equal(job_run(&job), -EFAULT);
        assert_non_null(strstr(job.bench.log.last_error, "0x00"));
        mica_device_memory_protect(&job.bench.memory, where[i], 4096, ALL);
        assert_int_equal(job_run(&job), 0);
        bench_close(&job.bench);
    }
}

/* The cache must see that coefficients changed in place. */
static void changed_coefficients_are_decoded_again(void **state)
{
    struct job job;
    uint8_t before[704];
    job_open(&job);
    uint8_t *out = bench_at(&job.bench, viv_nn_get(job.words, VIV_NN_OUT_IMAGE_ADDRESS));
    set(job.words, VIV_NN_POST_SHIFT, 20);
    assert_int_equal(job_run(&job), 0);
    memcpy(before, out, sizeof before);
    assert_int_equal(job_run(&job), 0);
    assert_memory_equal(before, out, sizeof before);
    struct random random = {99};
    struct shape s = plain;
    s.chip = &viv_a311d;
    s.kernels_per_core = 2;
    struct coefficients coefficients = put_coefficients(&s, &random, job.words, bench_at(&job.bench, COEFFICIENTS));
    release(&coefficients);
    assert_int_equal(job_run(&job), 0);
    assert_memory_not_equal(before, out, sizeof before);
    bench_close(&job.bench);
}

static void a_job_too_long_for_the_kernel_is_refused(void **state)
{
    struct job job;
    job_open(&job);
    viv_sim_set_cycle_limit(job.bench.sim, 2000);
    assert_int_equal(job_run(&job), -EIO);
    assert_non_null(strstr(job.bench.log.last_error, "timeout"));
    viv_sim_set_cycle_limit(job.bench.sim, 1000000);
    assert_int_equal(job_run(&job), 0);
    bench_close(&job.bench);
}

/* What the stream holds counts, not what the descriptor says: else a short descriptor could start any amount of work.
 */
static void kernels_of_the_stream_are_what_takes_time(void **state)
{
    struct job job;
    struct mica_job_report all, one;
    job_open(&job);
    set(job.words, VIV_NN_KERNELS_PER_CORE, 2);
    memcpy(bench_at(&job.bench, DESCRIPTOR), job.words, sizeof job.words);
    assert_int_equal(bench_run_nn(&job.bench, DESCRIPTOR, &all), 0);
    set(job.words, VIV_NN_OUT_IMAGE_Z_SIZE, 1);
    memcpy(bench_at(&job.bench, DESCRIPTOR), job.words, sizeof job.words);
    assert_int_equal(bench_run_nn(&job.bench, DESCRIPTOR, &one), 0);
    assert_int_equal(one.cycles, all.cycles);
    assert_int_equal(one.write_bytes, all.write_bytes);
    bench_close(&job.bench);
}

/* Kernels beyond the last channel, as mainline writes them when channels don't divide evenly, store nothing. */
static void surplus_kernels_write_nothing(void **state)
{
    struct job job;
    job_open(&job);
    set(job.words, VIV_NN_OUT_IMAGE_Z_SIZE, 10);
    set(job.words, VIV_NN_OUT_IMAGE_ADDRESS, OUTPUT);
    set(job.words, VIV_NN_OUT_ZERO_POINT, 77);
    set(job.words, VIV_NN_POST_SHIFT, 100);
    set(job.words, VIV_NN_ROUNDING_MODE, 1);
    set(job.words, VIV_NN_POST_MULTIPLIER, 0);
    memset(bench_at(&job.bench, OUTPUT), 0x5a, 4096);
    assert_int_equal(job_run(&job), 0);
    for (size_t i = 0; i < 1024; i++)
        if (i >= 11 * 70)
            assert_int_equal(bench_at(&job.bench, OUTPUT)[i], 0x5a);
    assert_int_equal(bench_at(&job.bench, OUTPUT)[0], 77);
    bench_close(&job.bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_version_equals_the_reference),
        cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(what_is_not_simulated_is_refused_by_name),
        cmocka_unit_test(what_one_chip_lacks_is_refused_by_name),
        cmocka_unit_test(depthwise_kernels_see_one_channel),
        cmocka_unit_test(streams_of_another_format_are_refused),
        cmocka_unit_test(rounding_differs_between_generations),
        cmocka_unit_test(circular_buffers_may_cover_but_not_wrap),
        cmocka_unit_test(addresses_the_submission_lacks_fault),
        cmocka_unit_test(changed_coefficients_are_decoded_again),
        cmocka_unit_test(a_job_too_long_for_the_kernel_is_refused),
        cmocka_unit_test(kernels_of_the_stream_are_what_takes_time),
        cmocka_unit_test(surplus_kernels_write_nothing),
    };
    return cmocka_run_group_tests_name("NN jobs", tests, NULL, NULL);
}
