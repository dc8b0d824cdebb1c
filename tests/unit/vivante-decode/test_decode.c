/* SPDX-License-Identifier: MIT */
/* Every capture decodes with nothing unknown, and what is damaged is said instead of read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dirent.h>

#include "analysis/capture.h"
#include "npu/program.h"
#include "npu/vivante/decode/decode.h"
#include "npu/vivante/hw/states.h"

#define CAPTURES MICA_SHARED_DIR "/captures"

/* What a decoding said. */
struct heard {
    int depth, deepest;
    size_t fields, unknown, descriptors, coefficients, histograms, kernels;
    uint64_t weights;
    char first_unknown[128];
};

static void hear_open(void *user, const char *kind, uint64_t address, const char *title)
{
    struct heard *heard = user;
    heard->deepest = ++heard->depth > heard->deepest ? heard->depth : heard->deepest;
    heard->descriptors += strstr(kind, "descriptor") != NULL;
    heard->coefficients += !strcmp(kind, "coefficients");
    heard->histograms += !strcmp(kind, "histogram");
    heard->kernels += !strcmp(kind, "kernel");
    assert_non_null(title);
}

static void hear_field(void *user, const struct mica_decoded *field)
{
    struct heard *heard = user;
    assert_true(heard->depth > 0);
    assert_non_null(field->name);
    heard->fields++;
    if (!strcmp(field->name, "weights") && !field->unknown)
        heard->weights += field->value;
    if (!field->unknown)
        return;
    if (!heard->unknown++)
        snprintf(heard->first_unknown, sizeof heard->first_unknown, "%s = 0x%llx %s", field->name,
                 (unsigned long long)field->value, field->text ? field->text : "");
}

static void hear_close(void *user)
{
    struct heard *heard = user;
    heard->depth--;
}

static const void *at(void *user, uint64_t address, uint64_t size)
{
    uint64_t fault;
    return mica_device_at(user, address, size, MICA_ACCESS_READ, &fault);
}

static const struct viv_chip *chip_of(const char *name)
{
    const struct viv_chip *const chips[] = {&viv_a311d, &viv_imx8mp, &viv_s905d3};
    for (size_t i = 0; i < 3; i++)
        if (!strcmp(chips[i]->name, name))
            return chips[i];
    return NULL;
}

static void decode_capture(const char *folder, struct heard *heard, bool weights)
{
    struct mica_recording capture;
    struct mica_device_memory memory;
    struct mica_log log = {0};
    if (mica_recording_load(folder, &log, &capture))
        fail_msg("%s: %s", folder, log.last_error);
    assert_int_equal(mica_device_memory_create(&memory), 0);
    struct mica_decode_memory reader = {&memory, at};
    struct mica_decode_sink sink = {heard, hear_open, hear_field, hear_close};
    struct viv_decode decode = {chip_of(capture.chip), &sink, &reader, weights};
    assert_non_null(decode.chip);
    for (size_t i = 0; i < capture.submit_count; i++) {
        assert_int_equal(mica_recording_map(&capture, i, &memory), 0);
        viv_decode_stream(&decode, capture.submits[i].stream, capture.submits[i].words);
    }
    assert_int_equal(heard->depth, 0);
    mica_device_memory_destroy(&memory);
    mica_recording_release(&capture);
}

static void every_capture_decodes(void **state)
{
    static const char *const chips[] = {"a311d", "imx8mp", "s905d3"};
    size_t seen = 0;
    DIR *dir = opendir(CAPTURES);
    if (!dir)
        exit(77);
    for (struct dirent *entry; (entry = readdir(dir));) {
        for (size_t i = 0; entry->d_name[0] != '.' && i < 3; i++) {
            struct heard heard = {0};
            char folder[512];
            snprintf(folder, sizeof folder, CAPTURES "/%s/%s/submit_0001", entry->d_name, chips[i]);
            DIR *there = opendir(folder);
            if (!there)
                continue;
            closedir(there);
            snprintf(folder, sizeof folder, CAPTURES "/%s/%s", entry->d_name, chips[i]);
            decode_capture(folder, &heard, false);
            if (heard.unknown)
                fail_msg("%s: %zu unknown, first %s", folder, heard.unknown, heard.first_unknown);
            assert_true(heard.descriptors >= 1 && heard.coefficients >= 1);
            assert_int_equal(heard.coefficients, heard.histograms);
            assert_true(heard.weights > 0);
            seen++;
        }
    }
    closedir(dir);
    assert_true(seen >= 50);
}

static void kernels_are_listed_on_request(void **state)
{
    struct heard heard = {0};
    DIR *dir = opendir(CAPTURES);
    if (!dir)
        exit(77);
    closedir(dir);
    decode_capture(CAPTURES "/conv_u8_i8_k1_ic16_oc16_s1_p1/imx8mp", &heard, true);
    assert_int_equal(heard.kernels, 16);
}

static void decode_words(const uint32_t *words, size_t count, struct heard *heard)
{
    struct mica_decode_sink sink = {heard, hear_open, hear_field, hear_close};
    struct viv_decode decode = {&viv_a311d, &sink, NULL, false};
    uint32_t *exact = malloc(4 * count); /* sanitizers see a word too many */
    memcpy(exact, words, 4 * count);
    viv_decode_stream(&decode, exact, count);
    free(exact);
    assert_int_equal(heard->depth, 0);
}

static void what_is_unknown_is_said(void **state)
{
    const uint32_t state_unknown[] = {VIV_LOAD_STATE(0x3ffc), 1};
    const uint32_t command_unknown[] = {0x58000000, 7};
    const uint32_t runs_over[] = {0x08050000 | VIV_GL_NN_CONFIG >> 2, 0};
    const uint32_t known[] = {VIV_LOAD_STATE(VIV_GL_NN_CONFIG), 0x10, 0, 0, 0x18000000, 0};
    struct heard heard = {0};
    decode_words(state_unknown, 2, &heard);
    assert_int_equal(heard.unknown, 1);
    decode_words(command_unknown, 2, &heard);
    assert_int_equal(heard.unknown, 3);
    decode_words(runs_over, 2, &heard);
    assert_int_equal(heard.unknown, 4);
    decode_words(known, 6, &heard);
    assert_int_equal(heard.unknown, 4);
}

static void random_words_are_survived(void **state)
{
    uint32_t words[64], seed = 1;
    for (int round = 0; round < 2000; round++) {
        struct heard heard = {0};
        for (size_t i = 0; i < 64; i++) {
            seed = seed * 1664525 + 1013904223;
            words[i] = seed ^ seed >> 13;
        }
        decode_words(words, 1 + seed % 64, &heard);
    }
}

static void broken_coefficients_are_said(void **state)
{
    const struct viv_huffman_shape shape = {.chip = &viv_imx8mp,
                                            .kernels_per_core = 4,
                                            .kernel_w = 3,
                                            .kernel_h = 3,
                                            .channels = 8,
                                            .zero_point = 128,
                                            .kernels = 16};
    struct heard heard = {0};
    struct mica_decode_sink sink = {&heard, hear_open, hear_field, hear_close};
    struct viv_decode decode = {&viv_imx8mp, &sink, NULL, true};
    uint8_t *bytes = calloc(1, 100);
    bytes[0] = 0x10;
    viv_decode_coefficients(&decode, 0, bytes, 100, &shape); /* a symbol map that is none */
    assert_int_equal(heard.unknown, 1);
    viv_decode_coefficients(&decode, 0, bytes, 10, &shape); /* shorter than a header */
    assert_int_equal(heard.unknown, 2);
    viv_decode_coefficients(&decode, 0x1000, NULL, 0, &shape); /* no memory */
    assert_int_equal(heard.unknown, 3);
    viv_decode_coefficients(&decode, 0, bytes, 100, &(struct viv_huffman_shape){.chip = &viv_imx8mp});
    assert_int_equal(heard.unknown, 4);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_unknown_is_said),       cmocka_unit_test(random_words_are_survived),
        cmocka_unit_test(broken_coefficients_are_said),  cmocka_unit_test(every_capture_decodes),
        cmocka_unit_test(kernels_are_listed_on_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
