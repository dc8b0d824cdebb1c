/* SPDX-License-Identifier: MIT */
/* What the decoder refuses, in what words; and that nothing is read past a buffer's end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

struct good {
    struct kernels kernels;
    struct viv_coefficients coefficients;
};

static void make(struct good *good, const struct viv_chip *chip, uint8_t runs, bool precode)
{
    struct viv_huffman_choices choices = {.precode = precode, .runs = runs, .run = {1, 2, 3, 4, 5, 6}};
    static const uint8_t with_runs[8] = {0, 1, 2, 3, 4, 5, 7, 8}, without[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    memcpy(choices.symbol_map, runs ? with_runs : without, 8);
    assert_true(kernels_make(&good->kernels, chip, 14, 5, 3, 3, false, false));
    good->kernels.job.kernels_per_core = good->kernels.shape.kernels_per_core = 2;
    good->kernels.set.zero_point = good->kernels.shape.zero_point = 7;
    for (uint32_t i = 0; i < 14 * 45; i++)
        good->kernels.weights[i] = (uint8_t)(i % 11 < 5 ? 7 : i * i);
    kernels_order(&good->kernels);
    assert_true(
        viv_coef_huffman_write(chip, &good->kernels.set, &good->kernels.job, &choices, NULL, &good->coefficients));
}

static void drop(struct good *good)
{
    kernels_finish(&good->kernels);
    free(good->coefficients.data);
}

/* The message of decoding exactly `size` of the buffer's bytes; "" when that works. */
static const char *message(const struct good *good, size_t size, struct mica_log *log)
{
    struct viv_coefs coefs;
    uint8_t *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, good->coefficients.data, size);
    *log = (struct mica_log){.sink = NULL};
    int result = viv_coef_huffman_decode(copy, size, &good->kernels.shape, 0x1000, NULL, log, &coefs);
    free(copy);
    if (!result)
        viv_coefs_release(&coefs);
    assert_true(result == 0 || (result == -EIO && log->last_error[0]));
    return log->last_error;
}

/* After changing one byte of a good buffer. */
static void refuses(const struct viv_chip *chip, uint32_t at, uint8_t value, const char *words)
{
    struct good good;
    struct mica_log log;
    make(&good, chip, 4, false);
    good.coefficients.data[at] = value;
    const char *said = message(&good, good.coefficients.size, &log);
    if (!strstr(said, words))
        fail_msg("byte %u = %u on %s says \"%s\"", at, value, chip->name, said);
    uint64_t size;
    if (at < 28)
        assert_int_equal(viv_coef_huffman_size(good.coefficients.data, &good.kernels.shape, 0, &log, &size), -EIO);
    drop(&good);
}

static void good_buffers_are_taken(void **state)
{
    for (uint32_t i = 0; i < 6; i++) {
        struct good good;
        struct mica_log log;
        make(&good, i % 2 ? &viv_s905d3 : &viv_imx8mp, i < 3 ? 0 : 6, i == 5);
        assert_string_equal(message(&good, good.coefficients.size, &log), "");
        drop(&good);
    }
}

static void v7_streams_are_refused_by_name(void **state)
{
    for (uint32_t byte = 0; byte < 256; byte += 64) {
        refuses(&viv_s905d3, 0, (uint8_t)byte, "V7 stream");
        refuses(&viv_imx8mp, 0, (uint8_t)byte, "V7 stream");
    }
}

static void headers_are_checked(void **state)
{
    refuses(&viv_s905d3, 0, 0x20, "version");
    refuses(&viv_s905d3, 0, 0x12, "16 bits");
    refuses(&viv_s905d3, 0, 0x14, "16 bits");
    refuses(&viv_s905d3, 0, 0x18, "reserved");
    refuses(&viv_imx8mp, 0, 0x11, "differences");
    refuses(&viv_s905d3, 1, 5, "run table");
    refuses(&viv_s905d3, 20, 0x11, "symbol map");
    refuses(&viv_s905d3, 23, 0x98, "symbol map");
    refuses(&viv_s905d3, 25, 1, "reserved");
    refuses(&viv_s905d3, 26, 1, "reserved");
    refuses(&viv_imx8mp, 27, 1, "reserved");
    refuses(&viv_imx8mp, 31, 0xff, "cut");
}

static void differences_with_an_average_are_refused(void **state)
{
    struct good good;
    struct mica_log log;
    make(&good, &viv_s905d3, 0, true);
    good.coefficients.data[24] = 1;
    assert_non_null(strstr(message(&good, good.coefficients.size, &log), "average bias"));
    drop(&good);
}

static void wrong_bit_counts_are_noticed(void **state)
{
    for (uint32_t core = 0; core < 2; core++)
        for (int difference = -40; difference <= 40; difference++) {
            struct good good;
            struct mica_log log;
            uint32_t bits;
            make(&good, &viv_s905d3, core ? 4 : 0, false);
            memcpy(&bits, good.coefficients.data + 28 + 4 * core, 4);
            bits += (uint32_t)difference;
            memcpy(good.coefficients.data + 28 + 4 * core, &bits, 4);
            bool taken = !message(&good, good.coefficients.size, &log)[0];
            assert_true(taken == (difference == 0));
            drop(&good);
        }
}

static void another_number_of_kernels_is_noticed(void **state)
{
    struct good good;
    struct mica_log log;
    make(&good, &viv_imx8mp, 0, false);
    good.kernels.shape.kernels = 13;
    assert_non_null(strstr(message(&good, good.coefficients.size, &log), "more or fewer kernels"));
    good.kernels.shape.kernels = 0;
    assert_non_null(strstr(message(&good, good.coefficients.size, &log), "more or fewer kernels"));
    good.kernels.shape.kernels = 14;
    good.kernels.shape.channels = 6;
    assert_string_not_equal(message(&good, good.coefficients.size, &log), "");
    drop(&good);
}

/* Eighteen taps fill two blocks of nine; of seventeen the last place is a filler. */
static void fillers_must_be_zero_points(void **state)
{
    struct good good = {.coefficients = {0}};
    struct viv_huffman_choices choices = {.symbol_map = {0, 1, 2, 3, 4, 5, 6, 7}};
    struct mica_log log;
    assert_true(kernels_make(&good.kernels, &viv_imx8mp, 1, 18, 1, 1, false, false));
    good.kernels.weights[17] = 1;
    kernels_order(&good.kernels);
    assert_true(
        viv_coef_huffman_write(&viv_imx8mp, &good.kernels.set, &good.kernels.job, &choices, NULL, &good.coefficients));
    assert_string_equal(message(&good, good.coefficients.size, &log), "");
    good.kernels.shape.channels = 17;
    assert_non_null(strstr(message(&good, good.coefficients.size, &log), "behind the last tap"));
    drop(&good);
}

static void shapes_beyond_the_simulator_are_refused(void **state)
{
    struct good good;
    struct mica_log log;
    make(&good, &viv_s905d3, 0, false);
    good.kernels.shape.kernel_w = 16;
    good.kernels.shape.kernel_h = 15;
    assert_non_null(strstr(message(&good, good.coefficients.size, &log), "beyond"));
    good.kernels.shape.kernel_w = 0;
    assert_non_null(strstr(message(&good, good.coefficients.size, &log), "beyond"));
    good.kernels.shape.kernel_w = good.kernels.shape.kernel_h = 3;
    good.kernels.shape.kernels_per_core = 0;
    assert_non_null(strstr(message(&good, good.coefficients.size, &log), "no kernels per core"));
    good.kernels.shape.kernels_per_core = 1;
    good.kernels.shape.depthwise = true;
    assert_non_null(strstr(message(&good, good.coefficients.size, &log), "depthwise"));
    drop(&good);
}

static void cut_buffers_are_refused(void **state)
{
    struct good good;
    struct mica_log log;
    uint64_t needed;
    make(&good, &viv_imx8mp, 4, false);
    assert_int_equal(viv_coef_huffman_size(good.coefficients.data, &good.kernels.shape, 0, &log, &needed), 0);
    for (size_t size = 0; size < needed; size++)
        assert_non_null(strstr(message(&good, size, &log), "cut"));
    assert_string_equal(message(&good, needed, &log), "");
    drop(&good);
}

static void threads_change_nothing(void **state)
{
    struct mica_threads *threads = mica_threads_create(3);
    assert_non_null(threads);
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct random random = {seed};
        struct kernels kernels;
        struct viv_coefficients one, many;
        struct viv_coefs coefs;
        struct mica_log log = {.sink = NULL};
        assert_true(kernels_random(&kernels, &random, 5000));
        assert_true(viv_coef_huffman_encode(kernels.chip, &kernels.set, &kernels.job, &one, NULL));
        kernels.job.threads = threads;
        assert_true(viv_coef_huffman_encode(kernels.chip, &kernels.set, &kernels.job, &many, NULL));
        assert_int_equal(one.size, many.size);
        assert_memory_equal(one.data, many.data, one.size);
        assert_int_equal(viv_coef_huffman_decode(one.data, one.size, &kernels.shape, 0, threads, &log, &coefs), 0);
        assert_null(kernels_compare(&kernels, &coefs));
        viv_coefs_release(&coefs);
        free(one.data);
        free(many.data);
        kernels_finish(&kernels);
    }
    mica_threads_destroy(threads);
}

/* Damaged streams end in an error or in kernels, never outside of memory (a sanitizer watches). */
static void damaged_streams_are_survived(void **state)
{
    struct random random = {1};
    for (uint32_t turn = 0; turn < 20000; turn++) {
        struct good good;
        struct mica_log log;
        make(&good, turn % 2 ? &viv_s905d3 : &viv_imx8mp, turn % 3 ? 4 : 0, false);
        for (uint32_t i = 0; i <= turn % 5; i++)
            good.coefficients.data[random_below(&random, (uint32_t)good.coefficients.size)] =
                (uint8_t)random_word(&random);
        message(&good, good.coefficients.size, &log);
        drop(&good);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_buffers_are_taken),       cmocka_unit_test(v7_streams_are_refused_by_name),
        cmocka_unit_test(headers_are_checked),          cmocka_unit_test(differences_with_an_average_are_refused),
        cmocka_unit_test(wrong_bit_counts_are_noticed), cmocka_unit_test(another_number_of_kernels_is_noticed),
        cmocka_unit_test(fillers_must_be_zero_points),  cmocka_unit_test(shapes_beyond_the_simulator_are_refused),
        cmocka_unit_test(cut_buffers_are_refused),      cmocka_unit_test(threads_change_nothing),
        cmocka_unit_test(damaged_streams_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
