/* SPDX-License-Identifier: MIT */
/* Damaged and random register programs: an error or a result, in bounded time, and never a byte outside of what is
 * mapped. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "programs.h"

#define CYCLES 200000u /* what a task may take by the timing model */

static uint32_t strange_word(struct random *random, uint32_t word)
{
    static const uint32_t known[] = {0,          1,          0xffffffff,   0x80000000,    0x7fffffff,     0xffff,
                                     0x10000,    0x7fff7fff, VECTOR_INPUT, VECTOR_OUTPUT, VECTOR_WEIGHTS, 0x00ffffff,
                                     0xfffffff0, 0x1fff1fff};
    switch (random_below(random, 6)) {
    case 0:
        return random_word(random);
    case 1:
        return known[random_below(random, sizeof known / sizeof *known)];
    case 2:
        return word + random_below(random, 17) - 8;
    default:
        return word ^ 1u << random_below(random, 32);
    }
}

/* One field to a value that it can have, so that reserved bits don't end everything at once. */
static void damage_field(struct random *random, struct task *task)
{
    const struct rk_chip *chip = task->chip->parameters;
    const struct rk_order *order = rk_program_order(chip->generation, task->kind);
    uint16_t offset = order->offsets[random_below(random, (uint32_t)order->count)];
    size_t candidates[32], count = 0;
    for (size_t i = 0; i < RK_FIELD_COUNT && count < 32; i++) {
        struct rk_field_place place = rk_fields[i].at[chip->generation];
        if (place.width > 0 && place.offset == offset && strncmp(rk_fields[i].name, "RESERVED", 8) != 0)
            candidates[count++] = i;
    }
    if (count == 0)
        return;
    size_t field = candidates[random_below(random, (uint32_t)count)];
    struct rk_field_place place = rk_fields[field].at[chip->generation];
    uint32_t mask = (uint32_t)((UINT64_C(1) << place.width) - 1), *word = &task->registers.word[offset / 4];
    uint32_t value = strange_word(random, *word >> place.lsb & mask) & mask;
    *word = (*word & ~(mask << place.lsb)) | value << place.lsb;
}

static void expect_an_answer(const struct bench *bench, int result)
{
    if (result != 0 && result != -EIO && result != -EFAULT)
        fail_msg("%d: %s", result, bench->log.last_error);
}

static void make_any(struct random *random, struct task *task, const struct mica_chip *chip)
{
    struct shape shape = small_shape;
    shape.depthwise = random_below(random, 2);
    shape.channels = shape.depthwise ? shape.out_channels : 1 + random_below(random, 40);
    switch (random_below(random, 4)) {
    case 0:
        make_elementwise(task, chip, &shape);
        return;
    case 1:
        make_pool(task, chip, &shape);
        return;
    default:
        make_convolution(task, chip, &shape);
    }
}

static void open_hostile(struct bench *bench, const struct mica_chip *chip, struct random *random)
{
    bench_open(bench, chip, NULL);
    fill_rooms(bench, random);
    rk_sim_set_cycle_limit(bench->sim, CYCLES + 20000);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void damaged_registers(void **state)
{
    const struct mica_chip *chips[] = {&bench_rk3588, &bench_rk3566};
    for (uint64_t i = 0; i < 2; i++) {
        struct random random = {21 + i};
        struct bench bench;
        unsigned ran = 0, rounds = 12000;
        double slowest = 0;
        open_hostile(&bench, chips[i], &random);
        for (unsigned round = 0; round < rounds; round++) {
            struct task task;
            make_any(&random, &task, chips[i]);
            for (uint32_t damage = random_below(&random, 4); damage; damage--)
                damage_field(&random, &task);
            double start = now();
            int result = run_task(&bench, &task, NULL);
            slowest = now() - start > slowest ? now() - start : slowest;
            expect_an_answer(&bench, result);
            ran += result == 0;
        }
        print_message("%s: %u of %u still ran, the slowest took %.3f s\n", chips[i]->name, ran, rounds, slowest);
        assert_in_range(ran, rounds / 10, rounds - 1);
        assert_true(slowest < 2);
        bench_close(&bench);
    }
}

/* Whole words, of several tasks in a row. */
static void damaged_words(void **state)
{
    static struct vector_program program;
    const struct mica_chip *chips[] = {&bench_rk3588, &bench_rk3566};
    for (uint64_t i = 0; i < 2; i++) {
        struct random random = {31 + i};
        struct bench bench;
        open_hostile(&bench, chips[i], &random);
        for (unsigned round = 0; round < 4000; round++) {
            memset(&program, 0, sizeof program);
            for (uint32_t tasks = 1 + random_below(&random, 3); tasks; tasks--) {
                struct task task;
                make_any(&random, &task, chips[i]);
                append_task(&program, &task);
            }
            for (uint32_t damage = 1 + random_below(&random, 3); damage; damage--)
                program.words[random_below(&random, program.count)] ^= UINT64_C(1) << random_below(&random, 64);
            expect_an_answer(&bench, vector_run(&bench, &program, VECTOR_PROGRAM, NULL));
        }
        bench_close(&bench);
    }
}

static void random_words(void **state)
{
    struct random random = {41};
    struct bench bench;
    open_hostile(&bench, &bench_rk3588, &random);
    for (unsigned round = 0; round < 20000; round++) {
        uint32_t count = 1 + random_below(&random, 16), stream[2] = {VECTOR_PROGRAM, count};
        size_t jobs;
        for (uint32_t i = 0; i < count; i++) {
            uint64_t word = (uint64_t)random_word(&random) << 32 | random_word(&random);
            uint32_t block = random_below(&random, RK_BLOCK_COUNT);
            if (random_below(&random, 2))
                word =
                    rk_word(rk_blocks[block].target, (uint16_t)(rk_blocks[block].first + 4 * random_below(&random, 80)),
                            random_word(&random) >> random_below(&random, 32));
            if (random_below(&random, 8) == 0)
                word = RK_WORD_BARRIER;
            memcpy(bench_at(&bench, VECTOR_PROGRAM + 8 * i), &word, sizeof word);
        }
        expect_an_answer(&bench, rk_sim_run(bench.sim, stream, 2, NULL, 0, &jobs));
    }
    bench_close(&bench);
}

/* The largest task that the timing model lets through at the default limit ends in bounded host time. */
static void the_largest_task_ends(void **state)
{
    struct random random = {51};
    struct bench bench;
    struct task task;
    bench_open(&bench, &bench_rk3588, NULL);
    fill_rooms(&bench, &random);
    struct shape shape = small_shape;
    shape.kernel_w = shape.kernel_h = 31;
    shape.out_width = shape.out_rows = 2000;
    shape.out_channels = 2;
    make_convolution(&task, &bench_rk3588, &shape);
    assert_int_equal(run_task(&bench, &task, NULL), -EFAULT); /* its output isn't mapped */
    bench_map(&bench, VECTOR_OUTPUT, 0x04000000, MICA_ACCESS_WRITE);
    assert_int_equal(run_task(&bench, &task, NULL), -EIO);
    assert_non_null(strstr(bench.log.last_error, "timeout"));
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_registers),
        cmocka_unit_test(damaged_words),
        cmocka_unit_test(random_words),
        cmocka_unit_test(the_largest_task_ends),
    };
    return cmocka_run_group_tests_name("hostile programs", tests, NULL, NULL);
}
