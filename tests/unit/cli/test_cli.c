/* SPDX-License-Identifier: MIT */
/* The mica command called again and again in one process: the same answers each time, nothing kept, nothing changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cli.h"
#include "resize.h"
#include "samples.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MODEL MICA_SHARE "/mobilenet_v1_1.0_224_quant.tflite"
#define PICTURE MICA_SHARE "/chelsea.png"

struct answer {
    int code;
    char *out, *err;
};

static struct answer call(const char *const *argv)
{
    struct answer answer = {0};
    size_t out_size, err_size;
    FILE *out = open_memstream(&answer.out, &out_size), *err = open_memstream(&answer.err, &err_size);
    assert_true(out && err);
    int argc = 0;
    while (argv[argc])
        argc++;
    answer.code = mica_cli_main(argc, (char **)(uintptr_t)argv, out, err);
    fclose(out);
    fclose(err);
    return answer;
}

static void forget(struct answer *answer)
{
    free(answer->out);
    free(answer->err);
}

/* Cases in an order that would show state left behind by the one before, such as getopt's. */
static const char *const cases[][11] = {
    {"mica", "run", MODEL, "--json", "-qv"},
    {"mica", "--help"},
    {"mica", "run", "-v", "--", MODEL, PICTURE, "too many"},
    {"mica", "info", MODEL, "--device", "cpu"},
    {"mica", "devices", "-vv", "--json"},
    {"mica", "run", "--top", "3", MODEL, PICTURE, "--device"},
    {"mica"},
    {"mica", "run", MODEL, PICTURE "/", "--device", "cpu"},
    {"mica", "info", "--device", "cpu", MODEL, "--json"},
    {"mica", "profile", MODEL, "--device", "nothing"},
    {"mica", "compile", "-ooo", PICTURE, "--device", "cpu"},
    {"mica", "run", MODEL, PICTURE, "--device", "cpu", "--cores", "2"},
    {"mica", "run", MODEL, PICTURE, "--device", "cpu", "--cores", "2", "--repeat=2"},
    {"mica", "profile", MODEL, "--device", "cpu", "--clock", "500"},
    {"mica", "info", MODEL, "--device", "a311d", "--split", "2"},
    {"mica", "info", MODEL, "--device", "a311d", "--split", "0"},
    {"mica", "run", MODEL, PICTURE, "--device", "cpu", "--layout", "CHW"},
    {"mica", "run", MODEL, PICTURE, "--device", "cpu", "--normalize", "2"},
    {"mica", "run", MODEL, PICTURE, "--device", "cpu", "--every", "1"},
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

static void test_answers_do_not_depend_on_earlier_calls(void **state)
{
    static const int codes[CASES] = {CLI_USAGE,  CLI_OK,    CLI_USAGE,  CLI_OK,     CLI_OK,    CLI_USAGE, CLI_USAGE,
                                     CLI_FAILED, CLI_OK,    CLI_FAILED, CLI_FAILED, CLI_USAGE, CLI_USAGE, CLI_FAILED,
                                     CLI_USAGE,  CLI_USAGE, CLI_USAGE,  CLI_USAGE,  CLI_FAILED};
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        struct answer first = call(cases[i]);
        assert_int_equal(first.code, codes[i]);
        for (size_t k = 0; k < CASES; k++) {
            struct answer between = call(cases[k]);
            struct answer again = call(cases[i]);
            assert_int_equal(again.code, first.code);
            assert_string_equal(again.out, first.out);
            assert_string_equal(again.err, first.err);
            forget(&between);
            forget(&again);
        }
        forget(&first);
    }
}

static void test_arguments_stay_as_they_were(void **state)
{
    (void)state;
    const char *argv[] = {"mica", "info", MODEL, "--device", "cpu", NULL};
    const char *copy[6];
    memcpy(copy, argv, sizeof(copy));
    struct answer answer = call(argv);
    assert_int_equal(answer.code, CLI_OK);
    assert_memory_equal(copy, argv, sizeof(copy));
    forget(&answer);
}

static void test_a_picture_runs_twice_with_the_same_classes(void **state)
{
    (void)state;
    const char *argv[] = {"mica", "run", MODEL, PICTURE, "--device", "cpu", "--top", "1", NULL};
    for (int i = 0; i < 2; i++) {
        struct answer answer = call(argv);
        assert_int_equal(answer.code, CLI_OK);
        assert_non_null(strstr(answer.out, "Egyptian cat"));
        assert_null(strstr(answer.out, "tabby"));
        forget(&answer);
    }
}

static void test_a_stream_tells_its_throughput(void **state)
{
    (void)state;
    const char *text[] = {"mica", "run",      MODEL, PICTURE, "--device", "rk3588", "--cores",
                          "3",    "--repeat", "4",   "--top", "1",        NULL};
    struct answer answer = call(text);
    assert_int_equal(answer.code, CLI_OK);
    assert_non_null(strstr(answer.err, "it is simulated: sim:rk3588"));
    assert_non_null(strstr(answer.out, "Egyptian cat"));
    assert_non_null(strstr(answer.out, "inferences a second: 4 on 3 cores for the simulation on this computer\n"));
    assert_non_null(strstr(answer.out, "the stream on it: about "));
    assert_null(strstr(answer.out, "split"));
    forget(&answer);
    const char *one[] = {"mica", "run", MODEL, PICTURE, "--device", "rk3588", "--split", "3", "--top", "1", NULL};
    answer = call(one);
    assert_int_equal(answer.code, CLI_OK);
    assert_non_null(strstr(answer.out, "spread over 3 cores, on simulators only: no kernel allows it\n"));
    forget(&answer);
}

static void test_a_profile_has_the_cost_of_starting_jobs(void **state)
{
    (void)state;
    const char *argv[] = {"mica", "profile", MODEL, "--device", "sim:rk3588", "--clock", "800", NULL};
    struct answer answer = call(argv);
    assert_int_equal(answer.code, CLI_OK);
    assert_non_null(strstr(answer.out, "starting the jobs"));
    assert_non_null(strstr(answer.out, "Cycles are of 800 MHz."));
    forget(&answer);
}

static void test_output_that_fails_is_a_failure(void **state)
{
    (void)state;
    const char *argv[] = {"mica", "--help", NULL};
    char little[16];
    FILE *out = fmemopen(little, sizeof(little), "w"), *err = tmpfile();
    assert_true(out && err);
    assert_int_equal(mica_cli_main(2, (char **)(uintptr_t)argv, out, err), CLI_FAILED);
    fclose(out);
    fclose(err);
}

/* Every sample, through every way to make it a value, comes back. */
static void test_samples_come_back(void **state)
{
    static const char *const ways[] = {"none", "0..1", "-1..1", "imagenet", "0.2,0.3,0.4/0.5,0.6,0.7"};
    uint8_t pixels[3 * 256];
    float values[3 * 256];
    const int32_t dims[] = {1, 3, 256, 1};
    struct mica_tensor_info tensor = {
        .type = MICA_TYPE_FLOAT32, .rank = 4, .dims = dims, .bytes = sizeof(values), .name = "x"};
    (void)state;
    for (size_t i = 0; i < sizeof(pixels); i++)
        pixels[i] = (uint8_t)(i / 3);
    for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++) {
        struct cli cli = {.out = stdout, .err = stderr, .channels_first = true, .options = {.normalize = ways[w]}};
        struct cli_samples samples;
        struct cli_map map;
        assert_true(cli_map_of(&cli, &tensor, &map));
        assert_int_equal(map.channels, 3);
        assert_int_equal(cli_samples_choose(&cli, &tensor, &map, false, &samples), 0);
        cli_samples_put(&samples, &tensor, &map, pixels, values);
        for (size_t i = 0; i < sizeof(pixels); i++) {
            size_t index = cli_map_index(&map, i / 3, i % 3);
            assert_int_equal(index, (i % 3) * 256 + i / 3);
            assert_int_equal(cli_samples_get(&samples, &tensor, values, index, i % 3), pixels[i]);
        }
    }
}

static void test_values_that_are_none_become_samples(void **state)
{
    const float values[] = {NAN, INFINITY, -INFINITY, 1e30f, -1e30f};
    const int32_t dims[] = {1, 1, 1, 5};
    const struct mica_tensor_info tensor = {
        .type = MICA_TYPE_FLOAT32, .rank = 4, .dims = dims, .bytes = sizeof(values)};
    struct cli cli = {.out = stdout, .err = stderr, .options = {.normalize = "imagenet"}};
    const struct cli_map map = {1, 5, 1, false};
    struct cli_samples samples;
    (void)state;
    assert_int_equal(cli_samples_choose(&cli, &tensor, &map, false, &samples), 0);
    assert_int_equal(cli_samples_get(&samples, &tensor, values, 1, 0), 255);
    assert_int_equal(cli_samples_get(&samples, &tensor, values, 2, 0), 0);
    assert_int_equal(cli_samples_get(&samples, &tensor, values, 3, 0), 255);
    assert_int_equal(cli_samples_get(&samples, &tensor, values, 4, 0), 0);
    cli_samples_get(&samples, &tensor, values, 0, 0); /* any, but no undefined behaviour */
}

static void test_resizing_to_the_same_size_changes_nothing(void **state)
{
    (void)state;
    uint8_t bytes[7 * 5 * 3], same[sizeof(bytes)];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 37);
    struct cli_pixels from = {7, 5, 3, bytes}, to = {7, 5, 3, same};
    assert_int_equal(cli_resize(&from, &to), 0);
    assert_memory_equal(bytes, same, sizeof(bytes));
}

static void test_resizing_one_color_keeps_it(void **state)
{
    (void)state;
    enum { W = 31, H = 13, TO_W = 8, TO_H = 40 };
    uint8_t bytes[W * H], resized[TO_W * TO_H];
    memset(bytes, 201, sizeof(bytes));
    struct cli_pixels from = {W, H, 1, bytes}, to = {TO_W, TO_H, 1, resized};
    assert_int_equal(cli_resize(&from, &to), 0);
    for (size_t i = 0; i < sizeof(resized); i++)
        assert_int_equal(resized[i], 201);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers_do_not_depend_on_earlier_calls),
        cmocka_unit_test(test_arguments_stay_as_they_were),
        cmocka_unit_test(test_a_picture_runs_twice_with_the_same_classes),
        cmocka_unit_test(test_a_stream_tells_its_throughput),
        cmocka_unit_test(test_a_profile_has_the_cost_of_starting_jobs),
        cmocka_unit_test(test_output_that_fails_is_a_failure),
        cmocka_unit_test(test_samples_come_back),
        cmocka_unit_test(test_values_that_are_none_become_samples),
        cmocka_unit_test(test_resizing_to_the_same_size_changes_nothing),
        cmocka_unit_test(test_resizing_one_color_keeps_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
