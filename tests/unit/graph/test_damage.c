/* SPDX-License-Identifier: MIT */
/*
 * Damaged models, and memory that runs out: an error or problems, never a
 * crash. Meant to run under sanitizers too.
 */
#include "files.h"

#include "frontend/tflite/reader.h"
#include "invariants.h"
#include "mutate.h"

#include <errno.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- allocation that fails on demand ---------------------------------- */

static size_t allocations, failing = SIZE_MAX;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);

static bool fails(void)
{
    return allocations++ == failing;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    return fails() ? NULL : __real_realloc(memory, size);
}

/* ---- the small models ------------------------------------------------- */

static glob_t models;

static int find_models(void **state)
{
    return glob(MICA_SHARED_DIR "/captures/*/model.tflite", 0, NULL, &models) ||
           glob(MICA_SHARED_DIR "/models/ops_int8/*.tflite", GLOB_APPEND, NULL, &models) ||
           glob(MICA_SHARED_DIR "/models/split_concat.tflite", GLOB_APPEND, NULL, &models);
}

static int forget_models(void **state)
{
    globfree(&models);
    return 0;
}

/* Reads and destroys; returns whether the model was taken. */
static bool survives(const struct test_file *file, const char *what)
{
    struct mica_log log = {.sink = NULL};
    struct mica_graph *graph = NULL;
    int error = mica_tflite_read(file->data, file->size, &log, &graph);
    if (error) {
        assert_int_equal(error, -EINVAL);
        assert_true(log.last_error[0]);
        assert_null(graph);
        return false;
    }
    const char *broken = graph_invariants(graph);
    if (broken)
        fail_msg("%s: does not hold: %s", what, broken);
    mica_graph_destroy(graph);
    return true;
}

static void truncated_models_do_no_harm(void **state)
{
    for (size_t i = 0; i < models.gl_pathc; i++) {
        struct test_file file = test_file_read(models.gl_pathv[i]);
        for (size_t size = 0; size < file.size; size += 64) {
            struct test_file part = test_file_copy(&file, size);
            survives(&part, models.gl_pathv[i]);
            test_file_free(&part);
        }
        test_file_free(&file);
    }
}

/* In small models nearly all is structure: every bit of the first and of the last KiB. */
static void flipped_bits_do_no_harm(void **state)
{
    for (size_t i = 0; i < models.gl_pathc; i += 5) {
        struct test_file file = test_file_read(models.gl_pathv[i]);
        for (size_t bit = 0; bit < 8 * file.size; bit++) {
            if (bit == 8 * 1024 && file.size > 2048)
                bit = 8 * (file.size - 1024);
            file.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
            survives(&file, models.gl_pathv[i]);
            file.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        test_file_free(&file);
    }
}

static void mutants_do_no_harm(void **state)
{
    unsigned taken = 0, refused = 0;
    for (size_t i = 0; i < models.gl_pathc; i++) {
        struct test_file file = test_file_read(models.gl_pathv[i]);
        for (uint64_t seed = 0; seed < 200; seed++) {
            struct test_file mutant = test_file_copy(&file, file.size);
            struct test_file part = {mutant.data, mica_mutate(mutant.data, mutant.size, seed)};
            survives(&part, models.gl_pathv[i]) ? taken++ : refused++;
            test_file_free(&mutant);
        }
        test_file_free(&file);
    }
    /* Both ways must be exercised, or the mutants are too tame or too wild. */
    assert_true(taken > 1000 && refused > 1000);
}

static void mutants_are_reproducible(void **state)
{
    struct test_file file = test_file_read(models.gl_pathv[0]);
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct test_file a = test_file_copy(&file, file.size), b = test_file_copy(&file, file.size);
        size_t size = mica_mutate(a.data, a.size, seed);
        assert_true(size <= a.size);
        assert_int_equal(mica_mutate(b.data, b.size, seed), size);
        assert_memory_equal(a.data, b.data, a.size);
        test_file_free(&a);
        test_file_free(&b);
    }
    test_file_free(&file);
}

/* The first operations of one larger model, so that all arrays grow. */
static void memory_that_runs_out_is_an_error(void **state)
{
    static const char *const paths[] = {
        MICA_SHARED_DIR "/models/ops_int8/dw3x3.tflite",
        MICA_SHARED_DIR "/models/ops_int8/abs.tflite",
        MICA_SHARED_DIR "/models/tiny_vww_96_int8.tflite",
        MICA_SHARED_DIR "/models/coco_ssd_mobilenet_v1_1.0_quant.tflite",
    };
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        struct test_file file = test_file_read(paths[i]);
        int error = -ENOMEM;
        for (size_t n = 0; error; n++) {
            struct mica_log log = {.sink = NULL};
            struct mica_graph *graph = NULL;
            allocations = 0;
            failing = n;
            error = mica_tflite_read(file.data, file.size, &log, &graph);
            failing = SIZE_MAX;
            assert_true(n < 10000);
            if (error) {
                assert_int_equal(error, -ENOMEM);
                assert_string_equal(log.last_error, "out of memory");
            }
            mica_graph_destroy(graph);
        }
        test_file_free(&file);
    }
}

static void what_is_no_model_is_named(void **state)
{
    _Alignas(16) static const char text[64] = "this is a text, not a model";
    struct mica_log log = {.sink = NULL};
    struct mica_graph *graph = NULL;
    assert_int_equal(mica_tflite_read(text, sizeof text, &log, &graph), -EINVAL);
    assert_non_null(strstr(log.last_error, "no .tflite, .onnx or .mica file"));
    assert_int_equal(mica_tflite_read(text, 0, &log, &graph), -EINVAL);
    assert_int_equal(mica_tflite_read(text + 4, 32, &log, &graph), -EINVAL);
    assert_non_null(strstr(log.last_error, "aligned"));
    assert_int_equal(mica_tflite_read(text, 32, NULL, &graph), -EINVAL); /* no log at all */
}

/* ---- small files that describe huge graphs ---------------------------- */

struct writer {
    uint8_t *data;
    size_t used;
};

static size_t put32(struct writer *writer, uint32_t value)
{
    memcpy(writer->data + writer->used, &value, sizeof value);
    writer->used += sizeof value;
    return writer->used - sizeof value;
}

/* Makes the reference at `place` lead to where the next thing is written. */
static void lead_here(struct writer *writer, size_t place)
{
    uint32_t distance = (uint32_t)(writer->used - place);
    memcpy(writer->data + place, &distance, sizeof distance);
}

#define MAX_FIELDS 6

/* A table with the 32-bit fields in `mask`, field i at the place returned plus 4 * i. */
static size_t put_table(struct writer *writer, size_t reference, unsigned mask)
{
    uint16_t vtable[2 + MAX_FIELDS] = {sizeof vtable, 4 + 4 * MAX_FIELDS};
    for (unsigned i = 0; i < MAX_FIELDS; i++)
        vtable[2 + i] = (uint16_t)(mask >> i & 1 ? 4 + 4 * i : 0);
    memcpy(writer->data + writer->used, vtable, sizeof vtable);
    writer->used += sizeof vtable;
    lead_here(writer, reference);
    size_t fields = put32(writer, sizeof vtable) + 4; /* back to the vtable */
    writer->used += sizeof(uint32_t) * MAX_FIELDS;
    return fields;
}

/* A vector whose `count` references all lead to one table; returns what put_table() does. */
static size_t put_shared(struct writer *writer, size_t reference, uint32_t count, unsigned mask)
{
    lead_here(writer, reference);
    put32(writer, count);
    size_t first = writer->used;
    for (uint32_t i = 0; i < count; i++)
        put32(writer, 0);
    size_t table = put_table(writer, first, mask);
    for (uint32_t i = 1; i < count; i++) {
        uint32_t distance = (uint32_t)(table - 4 - (first + 4 * i));
        memcpy(writer->data + first + 4 * i, &distance, sizeof distance);
    }
    return table;
}

/* `tensors` references to one scalar with a name of `name` bytes; no operation. */
static struct test_file repetitive_model(uint32_t tensors, uint32_t name)
{
    struct test_file file = {.size = 4096 + 4 * (size_t)tensors + name};
    assert_int_equal(posix_memalign((void **)&file.data, 16, file.size), 0);
    memset(file.data, 0, file.size);
    struct writer writer = {.data = file.data};
    size_t root = put32(&writer, 0);
    memcpy(file.data + put32(&writer, 0), "TFL3", 4);
    size_t model = put_table(&writer, root, 1 << 0 | 1 << 2 | 1 << 4);
    file.data[model] = 3;                     /* the format's version */
    put_shared(&writer, model + 4 * 4, 1, 0); /* buffers */
    size_t subgraph = put_shared(&writer, model + 4 * 2, 1, 1 << 0);
    size_t tensor = put_shared(&writer, subgraph, tensors, 1 << 1 | 1 << 3);
    file.data[tensor + 4] = 3; /* its type: uint8 */
    lead_here(&writer, tensor + 4 * 3);
    put32(&writer, name);
    memset(file.data + writer.used, 'n', name);
    return file;
}

static void expect_refused(struct test_file file, const char *reason)
{
    struct mica_log log = {.sink = NULL};
    struct mica_graph *graph = NULL;
    assert_int_equal(mica_tflite_read(file.data, file.size, &log, &graph), -EINVAL);
    if (!strstr(log.last_error, reason))
        fail_msg("refused for another reason: %s", log.last_error);
    test_file_free(&file);
}

static void repetition_is_bounded(void **state)
{
    struct test_file modest = repetitive_model(20, 30);
    assert_true(survives(&modest, "modest"));
    test_file_free(&modest);
    expect_refused(repetitive_model(5000, 200000), "over and over");
    expect_refused(repetitive_model(100000, 1200000), "more tensors");
    expect_refused(repetitive_model(1000000, 0), "repeats itself"); /* too many tables to verify */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(truncated_models_do_no_harm),
        cmocka_unit_test(flipped_bits_do_no_harm),
        cmocka_unit_test(mutants_do_no_harm),
        cmocka_unit_test(mutants_are_reproducible),
        cmocka_unit_test(memory_that_runs_out_is_an_error),
        cmocka_unit_test(what_is_no_model_is_named),
        cmocka_unit_test(repetition_is_bounded),
    };
    if (!test_file_exists(MICA_SHARED_DIR "/models/models.csv"))
        return 77;
    return cmocka_run_group_tests_name("damage", tests, find_models, forget_models);
}
