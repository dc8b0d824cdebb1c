/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "delegate/options.h"

static struct mica_log messages;
static struct mica_delegate_options options;

static int clear_environment(void **state)
{
    unsetenv("MICA_DEVICE");
    unsetenv("MICA_PROFILE");
    unsetenv("MICA_LOG_LEVEL");
    unsetenv("MICA_THREADS");
    unsetenv("MICA_ON_CHIP");
    unsetenv("MICA_OPTIMIZE");
    unsetenv("MICA_CORES");
    unsetenv("MICA_CLOCK");
    unsetenv("MICA_SPLIT");
    unsetenv("MICA_PARTITION");
    return 0;
}

static int parse(const char *key, const char *value)
{
    return mica_delegate_options_parse(&key, &value, 1, &messages, &options);
}

static int parse_none(void)
{
    return mica_delegate_options_parse(NULL, NULL, 0, &messages, &options);
}

static void defaults_hold_without_options(void **state)
{
    assert_int_equal(parse_none(), 0);
    assert_string_equal(options.device, "auto");
    assert_false(options.profile);
    assert_int_equal(options.log_level, MICA_LOG_WARNING);
    assert_int_equal(options.threads, 0);
    assert_false(options.compile.on_chip || options.compile.optimize_size);
    assert_true(options.cores == 0 && options.clock_mhz == 0 && options.compile.split == 0);
}

static void every_option_is_taken(void **state)
{
    const char *keys[] = {"device",   "profile", "log_level", "threads", "on_chip",
                          "optimize", "cores",   "clock",     "split"};
    const char *values[] = {"sim:a311d", "1", "debug", "3", "1", "size", "3", "800", "2"};
    assert_int_equal(mica_delegate_options_parse(keys, values, 9, &messages, &options), 0);
    assert_true(options.cores == 3 && options.clock_mhz == 800 && options.compile.split == 2);
    assert_true(options.compile.on_chip && options.compile.optimize_size);
    assert_string_equal(options.device, "sim:a311d");
    assert_true(options.profile);
    assert_int_equal(options.log_level, MICA_LOG_DEBUG);
    assert_int_equal(options.threads, 3);
}

static void the_environment_counts_where_no_option_is_given(void **state)
{
    setenv("MICA_DEVICE", "cpu", 1);
    setenv("MICA_PROFILE", "1", 1);
    setenv("MICA_LOG_LEVEL", "info", 1);
    setenv("MICA_THREADS", "2", 1);
    setenv("MICA_ON_CHIP", "1", 1);
    setenv("MICA_OPTIMIZE", "size", 1);
    assert_int_equal(parse("device", "sim:a311d"), 0);
    assert_string_equal(options.device, "sim:a311d");
    assert_true(options.profile);
    assert_int_equal(options.log_level, MICA_LOG_INFO);
    assert_int_equal(options.threads, 2);
    assert_true(options.compile.on_chip && options.compile.optimize_size);
}

static void an_empty_variable_is_unset_and_an_overridden_one_is_ignored(void **state)
{
    setenv("MICA_PROFILE", "", 1);
    setenv("MICA_THREADS", "nonsense", 1);
    assert_int_equal(parse("threads", "0"), 0);
    assert_false(options.profile);
}

static void a_bad_variable_is_named(void **state)
{
    setenv("MICA_THREADS", "many", 1);
    assert_int_equal(parse_none(), -EINVAL);
    assert_non_null(strstr(messages.last_error, "MICA_THREADS"));
    assert_non_null(strstr(messages.last_error, "\"many\""));
}

static void numbers_of_the_device_start_at_one(void **state)
{
    static const char *const keys[] = {"cores", "clock", "split"};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(parse(keys[i], "0"), -EINVAL);
        assert_non_null(strstr(messages.last_error, "must be a number from 1 to"));
        assert_int_equal(parse(keys[i], "2x"), -EINVAL);
        assert_int_equal(parse(keys[i], "99999999999"), -EINVAL);
    }
    setenv("MICA_CORES", "many", 1);
    assert_int_equal(parse_none(), -EINVAL);
    assert_non_null(strstr(messages.last_error, "MICA_CORES"));
    assert_int_equal(parse("cores", "2"), 0);
    assert_int_equal(options.cores, 2);
}

static void an_unknown_option_names_the_known_ones(void **state)
{
    assert_int_equal(parse("Device", "auto"), -EINVAL);
    assert_string_equal(messages.last_error,
                        "unknown option \"Device\"; the options are device, profile, log_level, threads, "
                        "on_chip, optimize, cores, clock, split, partition, fuse, per_channel");
    assert_int_equal(parse(NULL, "auto"), -EINVAL);
    assert_int_equal(parse("", ""), -EINVAL);
}

static void scales_per_channel_are_exact_or_folded(void **state)
{
    assert_int_equal(parse("per_channel", "folded"), 0);
    assert_true(options.compile.fold_scales);
    assert_int_equal(parse("per_channel", "exact"), 0);
    assert_false(options.compile.fold_scales);
    assert_int_equal(parse("per_channel", "1"), -EINVAL);
    assert_string_equal(messages.last_error, "option per_channel must be exact or folded, not \"1\"");
}

static void partitions_are_all_or_by_cost(void **state)
{
    assert_int_equal(parse("partition", "cost:8000"), 0);
    assert_int_equal(options.compile.cost_cpu_macs, 8000);
    assert_int_equal(parse("partition", "all"), 0);
    assert_int_equal(options.compile.cost_cpu_macs, 0);
    assert_int_equal(parse("partition", "fast"), -EINVAL);
    setenv("MICA_PARTITION", "cost:1", 1);
    assert_int_equal(parse("device", "cpu"), 0);
    assert_int_equal(options.compile.cost_cpu_macs, 1);
    unsetenv("MICA_PARTITION");
    assert_int_equal(parse("device", "cpu"), 0);
    assert_int_equal(options.compile.cost_cpu_macs, 0);
}

static void bad_values_are_errors(void **state)
{
    static const char *const bad[][2] = {
        {"profile", "yes"},
        {"profile", ""},
        {"profile", "10"},
        {"log_level", "Info"},
        {"log_level", ""},
        {"threads", "-1"},
        {"threads", " 1"},
        {"threads", "1 "},
        {"threads", ""},
        {"threads", "1025"},
        {"threads", "1e3"},
        {"threads", "+2"},
        {"threads", "99999999999999999999"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(parse(bad[i][0], bad[i][1]), -EINVAL);
        assert_non_null(strstr(messages.last_error, bad[i][0]));
    }
}

static void a_device_name_that_is_too_long_is_an_error(void **state)
{
    char name[300];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_int_equal(parse("device", name), -EINVAL);
}

static void missing_arrays_and_values_are_errors(void **state)
{
    const char *key = "device";
    assert_int_equal(mica_delegate_options_parse(NULL, NULL, 2, &messages, &options), -EINVAL);
    assert_int_equal(mica_delegate_options_parse(&key, NULL, 1, &messages, &options), -EINVAL);
    assert_int_equal(parse("device", NULL), -EINVAL);
}

static void the_last_of_a_repeated_option_counts(void **state)
{
    const char *keys[] = {"threads", "threads"}, *values[] = {"1", "2"};
    assert_int_equal(mica_delegate_options_parse(keys, values, 2, &messages, &options), 0);
    assert_int_equal(options.threads, 2);
}

#define CASE(function) cmocka_unit_test_setup(function, clear_environment)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(defaults_hold_without_options),
        CASE(every_option_is_taken),
        CASE(the_environment_counts_where_no_option_is_given),
        CASE(an_empty_variable_is_unset_and_an_overridden_one_is_ignored),
        CASE(a_bad_variable_is_named),
        CASE(numbers_of_the_device_start_at_one),
        CASE(an_unknown_option_names_the_known_ones),
        CASE(scales_per_channel_are_exact_or_folded),
        CASE(partitions_are_all_or_by_cost),
        CASE(bad_values_are_errors),
        CASE(a_device_name_that_is_too_long_is_an_error),
        CASE(missing_arrays_and_values_are_errors),
        CASE(the_last_of_a_repeated_option_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
