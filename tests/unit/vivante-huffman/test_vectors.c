/* SPDX-License-Identifier: MIT */
/*
 * The specification's vectors: with the choices found in a stream ours has the
 * same bytes, and with choices of our own it is never larger.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "npu/vivante/hw/fields.h"
#include "support.h"

#define VECTORS MICA_SHARED_DIR "/spec/vivante/vectors"
#define SKIP 77 /* meson's exit code for a test that can't run here */

struct vector {
    const char *name;
    json_t *root;
    struct kernels kernels; /* decoded from its stream */
    uint8_t *buffer;
    size_t size;
};

static const struct viv_chip *chip_of(const char *name)
{
    const struct viv_chip *chips[] = {&viv_imx8mp, &viv_s905d3};
    for (size_t i = 0; i < 2; i++)
        if (!strncmp(name, chips[i]->name, strlen(chips[i]->name)))
            return chips[i];
    return NULL;
}

static const json_t *nn_job(const json_t *root)
{
    size_t i;
    json_t *job;
    json_array_foreach(json_object_get(root, "jobs"), i,
                       job) if (!strcmp(json_string_value(json_object_get(job, "unit")), "NN")) return job;
    return NULL;
}

static void read_words(const json_t *job, uint32_t words[VIV_NN_WORDS])
{
    const json_t *list = json_object_get(json_array_get(json_object_get(job, "descriptors"), 0), "words");
    memset(words, 0, VIV_NN_WORDS * sizeof *words);
    for (size_t i = 0; i < json_array_size(list) && i < VIV_NN_WORDS; i++)
        words[i] = (uint32_t)strtoul(json_string_value(json_array_get(list, i)), NULL, 16);
}

static void read_buffer(const json_t *job, struct vector *vector)
{
    const json_t *item = json_array_get(json_object_get(job, "coefficients"), 0);
    const char *digits = json_string_value(json_object_get(item, "bytes"));
    vector->size = (size_t)json_integer_value(json_object_get(item, "size"));
    vector->buffer = calloc(1, vector->size);
    assert_non_null(vector->buffer);
    for (size_t i = 0; digits[2 * i]; i++) {
        unsigned byte = 0;
        assert_true(i < vector->size && sscanf(digits + 2 * i, "%2x", &byte) == 1);
        vector->buffer[i] = (uint8_t)byte;
    }
}

static struct viv_huffman_shape shape_of(const struct viv_chip *chip, const uint32_t *words)
{
    bool column = viv_nn_get(words, VIV_NN_LAYER_TYPE); /* one column: the width field has the height */
    return (struct viv_huffman_shape){
        .chip = chip,
        .kernels_per_core = viv_nn_get(words, VIV_NN_KERNELS_PER_CORE),
        .kernel_w = column ? 1 : viv_nn_get(words, VIV_NN_KERNEL_X_SIZE),
        .kernel_h = column ? viv_nn_get(words, VIV_NN_KERNEL_X_SIZE) : viv_nn_get(words, VIV_NN_KERNEL_Y_SIZE),
        .channels = viv_nn_get(words, VIV_NN_KERNEL_Z_SIZE),
        .depthwise = viv_nn_get(words, VIV_NN_DEPTHWISE),
        .zero_point = (uint8_t)viv_nn_get(words, VIV_NN_COEF_ZERO_POINT),
        .kernels = viv_nn_get(words, VIV_NN_OUT_IMAGE_Z_SIZE),
        .plane = 1,
    };
}

/* False when the vector has no NN job. */
static bool open_vector(struct vector *vector, const char *name)
{
    char path[512];
    uint32_t words[VIV_NN_WORDS];
    struct viv_coefs coefs;
    struct mica_log log = {.sink = NULL};
    uint64_t size;
    snprintf(path, sizeof path, "%s/%s", VECTORS, name);
    *vector = (struct vector){.name = name, .root = json_load_file(path, 0, NULL)};
    assert_non_null(vector->root);
    const json_t *job = nn_job(vector->root);
    if (!job) {
        json_decref(vector->root);
        return false;
    }
    read_words(job, words);
    read_buffer(job, vector);
    struct viv_huffman_shape shape = shape_of(chip_of(name), words);
    if (viv_coef_huffman_size(vector->buffer, &shape, 0, &log, &size) ||
        viv_coef_huffman_decode(vector->buffer, vector->size, &shape, 0, NULL, &log, &coefs))
        fail_msg("%s: %s", name, log.last_error);
    assert_true(size <= vector->size);
    if (!kernels_from(&vector->kernels, &shape, &coefs))
        fail_msg("%s: the offsets are not those of planes", name);
    viv_coefs_release(&coefs);
    return true;
}

static void close_vector(struct vector *vector)
{
    kernels_finish(&vector->kernels);
    free(vector->buffer);
    json_decref(vector->root);
}

/* Choices that a stream's header shows. */
static void read_choices(const struct vector *vector, struct viv_huffman_choices *choices)
{
    const uint8_t *header = vector->buffer;
    *choices = (struct viv_huffman_choices){.precode = header[0] & 1, .average_bias = header[24], .runs = header[1]};
    for (uint32_t i = 0; i < choices->runs; i++)
        choices->run[i] = (uint16_t)(header[2 + i] + 1);
    for (uint32_t i = 0; i < 8; i++)
        choices->symbol_map[i] = header[20 + i / 2] >> 4 * (i % 2) & 15;
    choices->split = VIV_SPLIT_VENDOR;
}

/* Where the vendor put each kernel; false where the format leaves no freedom. */
static bool read_placement(const struct vector *vector, struct viv_huffman_placement *placement, uint32_t *kernels)
{
    const json_t *order = json_object_get(json_object_get(vector->root, "choices"), "kernel_order");
    json_t *core, *superblock, *kernel;
    size_t i, j, k;
    uint32_t next = 0;
    *placement = (struct viv_huffman_placement){.kernels = kernels};
    json_array_foreach(order, i, core)
    {
        json_array_foreach(core, j, superblock) json_array_foreach(superblock, k, kernel) kernels[next++] =
            (uint32_t)json_integer_value(kernel);
        placement->first[i + 1] = next;
    }
    return order != NULL;
}

static void check_same_bytes(const struct vector *vector)
{
    struct viv_huffman_choices choices;
    struct viv_huffman_placement placement;
    struct viv_coefficients ours;
    uint32_t kernels[1024];
    bool placed = read_placement(vector, &placement, kernels);
    read_choices(vector, &choices);
    assert_true(viv_coef_huffman_write(vector->kernels.chip, &vector->kernels.set, &vector->kernels.job, &choices,
                                       placed ? &placement : NULL, &ours));
    size_t common = ours.size < vector->size ? ours.size : vector->size;
    if (ours.stream_bytes != recorded_bytes(vector->kernels.chip, vector->buffer) ||
        memcmp(ours.data, vector->buffer, common))
        fail_msg("%s: the bytes differ", vector->name);
    for (size_t i = common; i < vector->size; i++)
        assert_int_equal(vector->buffer[i], 0);
    free(ours.data);
}

/* Without zero runs the floor is exact but for the dummies, of up to 13 bits a core. */
static void check_exact(const struct vector *vector, const struct viv_coefficients *ours,
                        const struct viv_huffman_floor *bounds)
{
    const struct viv_chip *chip = vector->kernels.chip;
    uint64_t sum = 0, fixed = 64 + (chip->bias_place == VIV_BIAS_TABLE ? vector->kernels.set.count * 4 : 0);
    for (uint32_t i = 0; i < ours->cores; i++) {
        uint32_t bits;
        memcpy(&bits, ours->data + 28 + 4 * i, 4);
        sum += bits;
    }
    if (sum > 8 * (bounds->format - fixed) + 13 * ours->cores)
        fail_msg("%s: %llu bits, the floor is %llu bytes with %llu fixed", vector->name, (unsigned long long)sum,
                 (unsigned long long)bounds->format, (unsigned long long)fixed);
}

static void check_not_larger(const struct vector *vector, enum viv_huffman_effort effort)
{
    struct viv_huffman_job job = vector->kernels.job;
    struct viv_coefficients ours;
    struct viv_huffman_choices choices;
    struct viv_huffman_floor bounds;
    struct mica_log log = {.sink = NULL};
    job.effort = effort;
    assert_true(viv_coef_huffman_encode(vector->kernels.chip, &vector->kernels.set, &job, &ours, &choices));
    assert_true(viv_coef_huffman_floor(vector->kernels.chip, &vector->kernels.set, &job, &bounds));
    const char *problem = kernels_decode(&vector->kernels, &ours, &log);
    if (problem)
        fail_msg("%s: %s", vector->name, problem);
    if (ours.stream_bytes > recorded_bytes(vector->kernels.chip, vector->buffer))
        print_error("%s: %zu bytes, the recorded stream %zu\n", vector->name, ours.stream_bytes,
                    recorded_bytes(vector->kernels.chip, vector->buffer));
    else
        print_message("%s: %zu bytes of streams, recorded %zu, floor of all %llu\n", vector->name, ours.stream_bytes,
                      recorded_bytes(vector->kernels.chip, vector->buffer), (unsigned long long)bounds.format);
    assert_true(ours.size >= bounds.padded && bounds.padded >= bounds.format);
    assert_true(vector->size >= bounds.format);
    if (!choices.runs)
        check_exact(vector, &ours, &bounds);
    bool larger = ours.stream_bytes > recorded_bytes(vector->kernels.chip, vector->buffer);
    free(ours.data);
    assert_false(larger);
}

/* Calls `check` for every vector of both chips; returns how many there were. */
static unsigned each_vector(void (*check)(const struct vector *vector))
{
    DIR *folder = opendir(VECTORS);
    unsigned count = 0;
    assert_non_null(folder);
    for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        struct vector vector;
        if (!chip_of(entry->d_name) || !open_vector(&vector, entry->d_name))
            continue;
        check(&vector);
        close_vector(&vector);
        count++;
    }
    closedir(folder);
    return count;
}

static void check_quick(const struct vector *vector)
{
    check_not_larger(vector, VIV_HUFFMAN_QUICK);
}

static void check_exhaustive(const struct vector *vector)
{
    check_not_larger(vector, VIV_HUFFMAN_EXHAUSTIVE);
}

static void recorded_choices_give_the_recorded_bytes(void **state)
{
    assert_int_equal(each_vector(check_same_bytes), 53);
}

static void searched_streams_are_never_larger(void **state)
{
    assert_int_equal(each_vector(check_quick), 53);
}

static void the_slow_search_is_never_larger_either(void **state)
{
    assert_int_equal(each_vector(check_exhaustive), 53);
}

int main(void)
{
    if (access(VECTORS, R_OK))
        return SKIP;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_choices_give_the_recorded_bytes),
        cmocka_unit_test(searched_streams_are_never_larger),
        cmocka_unit_test(the_slow_search_is_never_larger_either),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
