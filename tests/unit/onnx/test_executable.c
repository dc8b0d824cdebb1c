/* SPDX-License-Identifier: MIT */
/* Executables that hold an ONNX model: the same results, and damage behind a right checksum. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "build.h"
#include "mica/mica.h"
#include "mutate.h"

#define HEADER 128
#define SUM 120

struct fixture {
    mica_context *context;
    mica_device *device;
    uint8_t *model, *file;
    size_t model_size, size;
    float output[4];
    char path[64];
};

static void read_file(struct fixture *f)
{
    FILE *stream = fopen(f->path, "rb");
    assert_non_null(stream);
    assert_int_equal(fseek(stream, 0, SEEK_END), 0);
    f->size = (size_t)ftell(stream);
    rewind(stream);
    f->file = malloc(f->size);
    assert_int_equal(fread(f->file, 1, f->size, stream), f->size);
    fclose(stream);
}

static void write_file(const struct fixture *f, uint8_t *data, size_t size)
{
    XXH3_state_t sum;
    XXH3_64bits_reset(&sum);
    XXH3_64bits_update(&sum, data + HEADER, size - HEADER);
    XXH3_64bits_update(&sum, data, SUM);
    uint64_t value = XXH3_64bits_digest(&sum);
    memcpy(data + SUM, &value, sizeof value);
    FILE *stream = fopen(f->path, "wb");
    assert_non_null(stream);
    assert_int_equal(fwrite(data, 1, size, stream), size);
    assert_int_equal(fclose(stream), 0);
}

static int run(const mica_executable *executable, float output[4])
{
    static float input[3 * 16 * 16];
    mica_session *session = NULL;
    for (int i = 0; i < 3 * 16 * 16; i++)
        input[i] = (float)(i * 37 % 101) * 0.1f - 5;
    int error = mica_session_create((mica_executable *)executable, &session);
    if (!error)
        error = mica_session_set_input(session, 0, input, sizeof input);
    if (!error)
        error = mica_session_invoke(session);
    if (!error)
        error = mica_session_get_output(session, 0, output, 4 * sizeof *output);
    mica_session_destroy(session);
    return error;
}

static void start(struct fixture *f, const char *device)
{
    struct pb pb = {0};
    mica_model *model;
    mica_executable *executable;
    *f = (struct fixture){.path = "/tmp/mica-onnx-XXXXXX"};
    int descriptor = mkstemp(f->path);
    assert_true(descriptor >= 0);
    close(descriptor);
    pb_network(&pb, false);
    f->model = pb_model(&pb, &f->model_size);
    assert_int_equal(mica_context_create(&f->context), 0);
    assert_int_equal(mica_context_set_threads(f->context, 1), 0);
    assert_int_equal(mica_device_open(f->context, device, &f->device), 0);
    assert_int_equal(mica_model_load_memory(f->context, f->model, f->model_size, &model), 0);
    if (mica_executable_compile(model, f->device, &executable))
        fail_msg("%s", mica_last_error(f->context));
    assert_int_equal(mica_executable_save(executable, f->path), 0);
    assert_int_equal(run(executable, f->output), 0);
    mica_executable_destroy(executable);
    mica_model_destroy(model);
    read_file(f);
}

static void finish(struct fixture *f)
{
    mica_device_close(f->device);
    mica_context_destroy(f->context);
    unlink(f->path);
    free(f->model);
    free(f->file);
}

static void round_trip(const char *device)
{
    struct fixture f;
    mica_executable *executable;
    float output[4];
    start(&f, device);
    assert_memory_equal(f.file + HEADER, f.model, f.model_size); /* byte for byte */
    assert_int_equal(mica_executable_load(f.device, f.path, &executable), 0);
    assert_int_equal(run(executable, output), 0);
    assert_memory_equal(output, f.output, sizeof output);
    assert_true(output[0] + output[1] + output[2] + output[3] > 0.9f);
    mica_executable_destroy(executable);
    finish(&f);
}

static void test_round_trip_cpu(void **state)
{
    round_trip("cpu");
}

static void test_round_trip_vivante(void **state)
{
    round_trip("sim:a311d");
}

static void test_round_trip_rockchip(void **state)
{
    round_trip("sim:rk3588");
}

/* The model, plan or programs changed, and the checksum with them: refused, or it runs somehow. */
static void damage(const char *device, unsigned count)
{
    struct fixture f;
    unsigned loaded = 0;
    start(&f, device);
    uint8_t *copy = malloc(f.size);
    for (unsigned seed = 0; seed < count; seed++) {
        mica_executable *executable = NULL;
        float output[4];
        memcpy(copy, f.file, f.size);
        if (seed % 2) {
            (void)mica_mutate(copy + HEADER, f.model_size, seed); /* a cut leaves the rest as it was */
        } else {
            size_t place = HEADER + (size_t)seed * 7919 % (f.size - HEADER);
            copy[place] = (uint8_t)(copy[place] + 1 + seed % 255);
        }
        write_file(&f, copy, f.size);
        if (mica_executable_load(f.device, f.path, &executable)) {
            assert_true(mica_last_error(f.context)[0]);
            continue;
        }
        loaded++;
        (void)run(executable, output);
        mica_executable_destroy(executable);
    }
    assert_true(loaded > 0 && loaded < count);
    free(copy);
    finish(&f);
}

static void test_damage_cpu(void **state)
{
    damage("cpu", 1500);
}

static void test_damage_rockchip(void **state)
{
    damage("sim:rk3588", 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip_cpu),      cmocka_unit_test(test_round_trip_vivante),
        cmocka_unit_test(test_round_trip_rockchip), cmocka_unit_test(test_damage_cpu),
        cmocka_unit_test(test_damage_rockchip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
