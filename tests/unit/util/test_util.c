/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/bits.h"
#include "util/checked.h"
#include "util/log.h"
#include "util/threads.h"

static void bits_come_back_as_they_were_written(void **state)
{
    enum { FIELDS = 2000 };
    static uint8_t data[FIELDS * 4];
    uint32_t seed = 1, values[FIELDS];
    unsigned widths[FIELDS];
    struct mica_bit_writer writer;
    struct mica_bit_reader reader;
    mica_bit_writer_init(&writer, data, sizeof data * 8);
    for (int i = 0; i < FIELDS; i++) {
        seed = seed * 1664525 + 1013904223;
        widths[i] = (seed >> 24) % 33;
        values[i] = (uint32_t)(seed & ((UINT64_C(1) << widths[i]) - 1));
        mica_bits_write(&writer, values[i], widths[i]);
    }
    assert_false(writer.error);
    mica_bit_reader_init(&reader, data, writer.position);
    for (int i = 0; i < FIELDS; i++)
        assert_int_equal(mica_bits_read(&reader, widths[i]), values[i]);
    assert_false(reader.error);
    assert_int_equal(reader.position, writer.position);
}

static void reading_past_the_end_sticks_and_gives_zeros(void **state)
{
    const uint8_t data[3] = {0xff, 0xff, 0xff};
    struct mica_bit_reader reader;
    mica_bit_reader_init(&reader, data, 20);
    assert_int_equal(mica_bits_read(&reader, 16), 0xffff);
    assert_int_equal(mica_bits_read(&reader, 5), 0);
    assert_true(reader.error);
    assert_int_equal(mica_bits_read(&reader, 1), 0);
    assert_true(reader.error);
}

static void writing_past_the_end_sticks_and_goes_on_counting(void **state)
{
    uint8_t data[2] = {0};
    struct mica_bit_writer writer;
    mica_bit_writer_init(&writer, data, 12);
    mica_bits_write(&writer, 0xfff, 12);
    assert_false(writer.error);
    mica_bits_write(&writer, 1, 1);
    assert_true(writer.error);
    assert_int_equal(writer.position, 13);
    assert_int_equal(data[1], 0x0f);
}

static void a_writer_without_data_counts(void **state)
{
    struct mica_bit_writer writer;
    mica_bit_writer_init(&writer, NULL, 0);
    mica_bits_write(&writer, 5, 32);
    mica_bits_write(&writer, 1, 1);
    assert_false(writer.error);
    assert_int_equal(writer.position, 33);
}

static void sizes_that_overflow_are_refused(void **state)
{
    size_t result;
    assert_false(mica_add_size(SIZE_MAX, 1, &result));
    assert_false(mica_mul_size(SIZE_MAX / 2 + 1, 2, &result));
    assert_true(mica_mul_size(3, 4, &result));
    assert_int_equal(result, 12);
    assert_true(mica_range_inside(4, 0, 4));
    assert_false(mica_range_inside(4, 1, 4));
    assert_false(mica_range_inside(UINT64_MAX, 2, 4));
    assert_int_equal(mica_cdiv(UINT32_MAX, 2), UINT32_MAX / 2 + 1);
}

static atomic_uint visits[1000];

static void visit(void *user, size_t index)
{
    atomic_fetch_add(&visits[index], 1);
}

static void a_parallel_loop_visits_each_index_once(void **state)
{
    for (unsigned count = 0; count <= 4; count++) {
        struct mica_threads *threads = count ? mica_threads_create(count) : NULL;
        for (int round = 1; round <= 20; round++) {
            mica_parallel_for(threads, 1000, visit, NULL);
            for (int i = 0; i < 1000; i++)
                assert_int_equal(visits[i], round);
        }
        for (int i = 0; i < 1000; i++)
            atomic_store(&visits[i], 0);
        mica_threads_destroy(threads);
    }
}

static void loops_end_in_a_child_process(void **state)
{
    int status;
    struct mica_threads *threads = mica_threads_create(3);
    mica_parallel_for(threads, 1000, visit, NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(10); /* instead of hanging */
        mica_parallel_for(threads, 1000, visit, NULL);
        bool all = true;
        for (int i = 0; i < 1000; i++)
            all = all && visits[i] == 2;
        mica_threads_destroy(threads);
        _exit(!all);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    mica_threads_destroy(threads);
}

static void count_messages(void *user, enum mica_log_level level, const char *message)
{
    ++*(int *)user;
}

static void the_last_error_is_kept_and_quiet_levels_are_dropped(void **state)
{
    int messages = 0;
    struct mica_log log = {.sink = count_messages, .user = &messages, .level = MICA_LOG_WARNING};
    assert_int_equal(mica_fail(&log, -EINVAL, "tensor %d is odd", 3), -EINVAL);
    assert_string_equal(log.last_error, "tensor 3 is odd");
    mica_log(&log, MICA_LOG_INFO, "not wanted");
    assert_int_equal(messages, 1);
    assert_string_equal(log.last_error, "tensor 3 is odd");
    assert_int_equal(mica_fail(NULL, -EIO, "nobody listens"), -EIO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_come_back_as_they_were_written),
        cmocka_unit_test(reading_past_the_end_sticks_and_gives_zeros),
        cmocka_unit_test(writing_past_the_end_sticks_and_goes_on_counting),
        cmocka_unit_test(a_writer_without_data_counts),
        cmocka_unit_test(sizes_that_overflow_are_refused),
        cmocka_unit_test(a_parallel_loop_visits_each_index_once),
        cmocka_unit_test(loops_end_in_a_child_process),
        cmocka_unit_test(the_last_error_is_kept_and_quiet_levels_are_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
