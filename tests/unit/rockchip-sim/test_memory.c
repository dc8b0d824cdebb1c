/* SPDX-License-Identifier: MIT */
/* Memory that runs out: each allocation fails once, the call says so, and the next one works. */
#include <errno.h>
#include <string.h>

#include "programs.h"

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

static void creating(void **state)
{
    struct mica_device_memory memory;
    struct mica_log log = {0};
    void *sim;
    assert_int_equal(mica_device_memory_create(&memory), 0);
    countdown = 0;
    assert_int_equal(rk_sim_create(&bench_rk3588, &memory, NULL, &log, &sim), -ENOMEM);
    assert_true(log.last_error[0] != '\0');
    countdown = -1;
    rk_sim_destroy(NULL);
    mica_device_memory_destroy(&memory);
}

static void sweep(const struct mica_chip *chip,
                  void (*make)(struct task *, const struct mica_chip *, const struct shape *), long fewest)
{
    long failures = 0;
    for (;; failures++) {
        struct random random = {71};
        struct bench bench;
        struct task task;
        bench_open(&bench, chip, NULL);
        fill_rooms(&bench, &random);
        make(&task, chip, &small_shape);
        countdown = failures;
        int result = run_task(&bench, &task, NULL);
        bool failed = countdown < 0;
        countdown = -1;
        if (failed) {
            assert_int_equal(result, -ENOMEM);
            assert_non_null(strstr(bench.log.last_error, "memory"));
        }
        assert_int_equal(run_task(&bench, &task, NULL), 0);
        bench_close(&bench);
        if (!failed)
            break;
    }
    print_message("%ld allocations\n", failures);
    assert_true(failures >= fewest);
}

static void tasks(void **state)
{
    sweep(&bench_rk3588, make_convolution, 3);
    sweep(&bench_rk3566, make_convolution, 3);
    sweep(&bench_rk3588, make_elementwise, 1);
    sweep(&bench_rk3588, make_pool, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(creating), cmocka_unit_test(tasks)};
    return cmocka_run_group_tests_name("memory that runs out", tests, NULL, NULL);
}
