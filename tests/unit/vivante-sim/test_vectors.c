/* SPDX-License-Identifier: MIT */
/* The specification's vectors: streams and descriptors of two other compilers, with the results they must give. */
#include "support.h"

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VECTORS MICA_SHARED_DIR "/spec/vivante/vectors"
#define MEMORY 0x400000u /* where the vectors' addresses are */
#define MEMORY_BYTES 0x100000u

static json_t *load(const char *name)
{
    char path[512];
    json_error_t error;
    snprintf(path, sizeof path, "%s/%s", VECTORS, name);
    json_t *vector = json_load_file(path, 0, &error);
    if (!vector)
        fail_msg("%s: %s", path, error.text);
    return vector;
}

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    assert_non_null(value);
    return value;
}

static uint32_t number(const json_t *value)
{
    return (uint32_t)strtoul(json_string_value(value), NULL, 16);
}

/* Bytes written as hexadecimal digits; returns their number. */
static size_t put_bytes(uint8_t *out, const char *digits)
{
    size_t count = strlen(digits) / 2;
    for (size_t i = 0; i < count; i++) {
        unsigned byte;
        assert_int_equal(sscanf(digits + 2 * i, "%2x", &byte), 1);
        out[i] = (uint8_t)byte;
    }
    return count;
}

static void put_words(uint8_t *out, const json_t *words)
{
    for (size_t i = 0; i < json_array_size(words); i++) {
        uint32_t word = number(json_array_get(words, i));
        memcpy(out + 4 * i, &word, 4);
    }
}

static void check_output(const char *name, const uint8_t *output, const json_t *vector)
{
    const char *digits = text(vector, "model_output");
    uint8_t *expected = malloc(strlen(digits) / 2);
    size_t count = put_bytes(expected, digits);
    if (memcmp(output, expected, count))
        fail_msg("%s: the output differs", name);
    free(expected);
}

/* ---- vectors with command words --------------------------------------- */

static void put_job(struct bench *bench, const json_t *job)
{
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(job, "descriptors"), i, item)
        put_words(bench_at(bench, number(json_object_get(item, "address"))), json_object_get(item, "words"));
    json_array_foreach(json_object_get(job, "coefficients"), i, item)
        put_bytes(bench_at(bench, number(json_object_get(item, "address"))), text(item, "bytes"));
}

static void run_stream(struct bench *bench, const char *name, const json_t *words, size_t jobs)
{
    struct mica_job_report reports[16];
    uint32_t stream[256];
    size_t count;
    assert_in_range(json_array_size(words), 1, 256);
    put_words((uint8_t *)stream, words);
    int result = viv_sim_run(bench->sim, stream, json_array_size(words), reports, 16, &count);
    if (result)
        fail_msg("%s: %d, %s", name, result, bench->log.last_error);
    assert_int_equal(count, jobs);
    uint64_t cycles = 0;
    for (size_t i = 0; i < count; i++)
        cycles += reports[i].cycles;
    assert_int_equal(cycles > 0, jobs > 0);
}

/* The pad vector's expected output belongs to other zero points than its descriptors have; see its notes. */
static void mend_pad(struct bench *bench, const json_t *jobs)
{
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(json_array_get(jobs, 1), "descriptors"), i, item)
        bench_at(bench, number(json_object_get(item, "address")))[4 * 30] = 125;
    item = json_array_get(json_object_get(json_array_get(jobs, 2), "descriptors"), 0);
    uint8_t *words = bench_at(bench, number(json_object_get(item, "address")));
    words[4 * 29 + 3] = words[4 * 30] = 125;
}

static size_t count_descriptors(const json_t *jobs)
{
    size_t i, count = 0;
    json_t *job;
    json_array_foreach(jobs, i, job) count += json_array_size(json_object_get(job, "descriptors"));
    return count;
}

static void run_commands(const struct mica_chip *chip, const char *name, const json_t *vector)
{
    struct bench bench;
    bench_open_chip(&bench, chip, NULL);
    bench_map(&bench, MEMORY, MEMORY_BYTES, MICA_ACCESS_READ | MICA_ACCESS_WRITE);
    json_t *jobs = json_object_get(vector, "jobs"), *job, *commands = json_object_get(vector, "command_words");
    size_t i;
    json_array_foreach(jobs, i, job) put_job(&bench, job);
    uint8_t *input = bench_at(&bench, number(json_object_get(json_array_get(jobs, 0), "input_address")));
    size_t size = put_bytes(input, text(vector, "input"));
    bool add = json_object_get(vector, "input2") != NULL;
    if (add)
        put_bytes(input + size, text(vector, "input2"));
    if (strstr(name, "pad"))
        mend_pad(&bench, jobs);
    run_stream(&bench, name, json_array_get(commands, 0), 0);
    run_stream(&bench, name, json_array_get(commands, 1), count_descriptors(jobs));
    json_t *last = json_array_get(jobs, json_array_size(jobs) - 1);
    check_output(name, bench_at(&bench, number(json_object_get(last, "output_address"))), vector);
    bench_close(&bench);
}

/* ---- vendor vectors: one NN descriptor with placeholders for addresses -- */

#define DESCRIPTOR 0x400000u
#define COEFFICIENTS 0x410000u
#define INPUT 0x430000u
#define OUTPUT 0x450000u

static uint32_t dimension(const json_t *vector, const char *key, size_t i)
{
    return (uint32_t)json_integer_value(json_array_get(json_object_get(vector, key), i));
}

/* Channels last to channel planes, or back. */
static void transpose(uint8_t *out, const uint8_t *in, uint32_t rows, uint32_t columns)
{
    for (uint32_t i = 0; i < rows; i++)
        for (uint32_t j = 0; j < columns; j++)
            out[j * rows + i] = in[i * columns + j];
}

/*
 * The image of a stride-2 job whose reshuffle is not in the vector: channel 4c + 2 * (row parity) + (column parity),
 * after padding with the zero point to an even size, one pair larger than the image.
 */
static void take_apart(uint8_t *out, const uint8_t *nhwc, uint32_t h, uint32_t w, uint32_t channels, uint8_t zero_point)
{
    for (uint32_t c = 0; c < 4 * channels; c++)
        for (uint32_t y = c / 2 % 2; y < h + 2; y += 2)
            for (uint32_t x = c % 2; x < w + 2; x += 2)
                *out++ = y < h && x < w ? nhwc[(y * w + x) * channels + c / 4] : zero_point;
}

static void patch_circular(uint32_t *words, enum viv_nn_field size, enum viv_nn_field end, uint32_t address)
{
    uint32_t units = viv_nn_get(words, size);
    assert_true(viv_field_set(words, &viv_nn_fields[end], units ? (address >> 6) + units : 0x3ffffff));
}

static void patch_addresses(uint32_t *words)
{
    assert_true(viv_field_set(words, &viv_nn_fields[VIV_NN_KERNEL_ADDRESS], COEFFICIENTS >> 6));
    assert_true(viv_field_set(words, &viv_nn_fields[VIV_NN_IN_IMAGE_ADDRESS], INPUT));
    assert_true(viv_field_set(words, &viv_nn_fields[VIV_NN_OUT_IMAGE_ADDRESS], OUTPUT));
    patch_circular(words, VIV_NN_IN_CIRC_SIZE, VIV_NN_IN_CIRC_END_P1, INPUT);
    patch_circular(words, VIV_NN_OUT_CIRC_SIZE, VIV_NN_OUT_CIRC_END_P1, OUTPUT);
}

/* Channels last to channel planes. Jobs with stride 2 read them taken apart, and see four times the channels. */
static void put_input(uint8_t *out, const uint8_t *nhwc, const json_t *vector, const uint32_t *words)
{
    uint32_t h = dimension(vector, "input_shape", 1), w = dimension(vector, "input_shape", 2);
    uint32_t channels = dimension(vector, "input_shape", 3);
    if (viv_nn_get(words, VIV_NN_KERNEL_Z_SIZE) == 4 * channels)
        take_apart(out, nhwc, h, w, channels, (uint8_t)viv_nn_get(words, VIV_NN_IN_IMAGE_BORDER_CONST));
    else
        transpose(out, nhwc, h * w, channels);
}

static void run_descriptor(const struct mica_chip *chip, const char *name, const json_t *vector)
{
    struct bench bench;
    uint8_t nhwc[0x10000];
    uint32_t words[VIV_NN_WORDS];
    bench_open_chip(&bench, chip, NULL);
    bench_map(&bench, MEMORY, MEMORY_BYTES, MICA_ACCESS_READ | MICA_ACCESS_WRITE);
    json_t *job = json_array_get(json_object_get(vector, "jobs"), 0);
    put_words(bench_at(&bench, DESCRIPTOR),
              json_object_get(json_array_get(json_object_get(job, "descriptors"), 0), "words"));
    patch_addresses((uint32_t *)(void *)bench_at(&bench, DESCRIPTOR));
    memcpy(words, bench_at(&bench, DESCRIPTOR), sizeof words);
    put_bytes(bench_at(&bench, COEFFICIENTS), text(json_array_get(json_object_get(job, "coefficients"), 0), "bytes"));
    put_bytes(nhwc, text(vector, "input"));
    put_input(bench_at(&bench, INPUT), nhwc, vector, words);
    int result = bench_run_nn(&bench, DESCRIPTOR, NULL);
    if (result)
        fail_msg("%s: %d, %s", name, result, bench.log.last_error);
    transpose(nhwc, bench_at(&bench, OUTPUT), dimension(vector, "output_shape", 3),
              dimension(vector, "output_shape", 1) * dimension(vector, "output_shape", 2));
    check_output(name, nhwc, vector);
    bench_close(&bench);
}

static void run_chip(const struct mica_chip *chip, size_t vectors)
{
    size_t count = 0;
    char prefix[16];
    snprintf(prefix, sizeof prefix, "%s-", chip->name);
    struct dirent *entry;
    DIR *directory = opendir(VECTORS);
    assert_non_null(directory);
    while ((entry = readdir(directory))) {
        if (strncmp(entry->d_name, prefix, strlen(prefix)))
            continue;
        json_t *vector = load(entry->d_name);
        print_message("%s\n", entry->d_name);
        if (json_object_get(vector, "command_words"))
            run_commands(chip, entry->d_name, vector);
        else
            run_descriptor(chip, entry->d_name, vector);
        json_decref(vector);
        count++;
    }
    closedir(directory);
    assert_int_equal(count, vectors);
}

static void a311d(void **state)
{
    run_chip(&bench_chip, 23);
}

static void imx8mp(void **state)
{
    run_chip(&bench_imx8mp, 27);
}

static void s905d3(void **state)
{
    run_chip(&bench_s905d3, 27);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a311d), cmocka_unit_test(imx8mp), cmocka_unit_test(s905d3)};
    if (access(VECTORS, R_OK))
        return SKIP;
    return cmocka_run_group_tests_name("vectors", tests, NULL, NULL);
}
