/* SPDX-License-Identifier: MIT */
/* Executable files: round trips, and thousands of damaged ones. Skipped (77) without the model collection. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "fake.h"

/* A model whose only RESHAPE stands between others, small enough to run often. */
#define MODEL MICA_SHARED_DIR "/models/tflm_micro_speech_int8.tflite"

/* For the real compiler and simulator: a stem convolution, so jobs of both units. */
#define SIMULATED_MODEL MICA_SHARED_DIR "/captures/conv_u8_i8_k3_ic3_oc16_s1_p1/model.tflite"

/* Instead of the C library's, for the library under test too. */
static unsigned umask_calls, interruptions;
static bool interrupt_writes;

mode_t umask(mode_t mask)
{
    umask_calls++;
    return (mode_t)syscall(SYS_umask, mask);
}

ssize_t write(int file, const void *data, size_t size)
{
    if (interrupt_writes && ++interruptions % 3 == 0) {
        errno = EINTR;
        return -1;
    }
    return syscall(SYS_write, file, data, interrupt_writes && size > 1000 ? 1000 : size);
}

struct fixture {
    mica_context *context;
    mica_device *device;
    mica_model *model;
    mica_executable *executable;
    char directory[32], path[64];
    uint8_t *file;
    size_t size;
};

static void read_file(struct fixture *f)
{
    FILE *stream = fopen(f->path, "rb");
    assert_non_null(stream);
    fseek(stream, 0, SEEK_END);
    f->size = (size_t)ftell(stream);
    rewind(stream);
    f->file = malloc(f->size);
    assert_int_equal(fread(f->file, 1, f->size, stream), f->size);
    fclose(stream);
}

static void write_file(const struct fixture *f, const uint8_t *data, size_t size)
{
    FILE *stream = fopen(f->path, "wb");
    assert_non_null(stream);
    assert_int_equal(fwrite(data, 1, size, stream), size);
    assert_int_equal(fclose(stream), 0);
}

/* Tensors of it fit on chip. */
#define ON_CHIP_MODEL MICA_SHARED_DIR "/models/mobilenet_v1_0.25_128_quant.tflite"

static int create(void **state, const char *simulated, const char *device, bool on_chip)
{
    struct fixture *f = calloc(1, sizeof *f);
    strcpy(f->directory, "/tmp/mica-executable-XXXXXX");
    assert_non_null(mkdtemp(f->directory));
    snprintf(f->path, sizeof f->path, "%s/file", f->directory);
    assert_int_equal(mica_context_create(&f->context), 0);
    assert_int_equal(mica_context_set_threads(f->context, 1), 0);
    if (simulated)
        assert_int_equal(mica_device_open(f->context, device, &f->device), 0);
    else
        f->device = fake_device_open(f->context);
    assert_int_equal(mica_model_load(f->context, simulated ? simulated : MODEL, &f->model), 0);
    assert_int_equal(mica_device_configure(f->device, "on-chip", on_chip ? "1" : "0"), 0);
    assert_int_equal(mica_executable_compile(f->model, f->device, &f->executable), 0);
    assert_int_equal(mica_executable_save(f->executable, f->path), 0);
    read_file(f);
    *state = f;
    return 0;
}

static int setup(void **state)
{
    return create(state, NULL, NULL, false);
}

static int setup_simulated(void **state)
{
    return create(state, SIMULATED_MODEL, "sim:a311d", false);
}

static int setup_rockchip(void **state)
{
    return create(state, SIMULATED_MODEL, "sim:rk3588", false);
}

static int setup_on_chip(void **state)
{
    return create(state, ON_CHIP_MODEL, "sim:a311d", true);
}

/* Tensors of the border in blocks; the file has layouts then. */
static int setup_blocked(void **state)
{
    fake_block = 16;
    int result = create(state, NULL, NULL, false);
    fake_block = 0;
    return result;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    unlink(f->path);
    assert_int_equal(rmdir(f->directory), 0); /* nothing else is left in it */
    mica_executable_destroy(f->executable);
    mica_model_destroy(f->model);
    mica_device_close(f->device);
    mica_context_destroy(f->context);
    free(f->file);
    free(f);
    return 0;
}

/* Runs once on inputs of `seed`; the sum of all outputs, or 0 when the run failed. */
static uint64_t run(mica_executable *executable, unsigned seed)
{
    const mica_model *model = mica_executable_model(executable);
    struct mica_tensor_info info;
    mica_session *session;
    uint64_t sum = 1;
    if (mica_session_create(executable, &session))
        return 0;
    for (size_t i = 0; i < mica_model_input_count(model); i++) {
        assert_int_equal(mica_model_input(model, i, &info), 0);
        uint8_t *data = malloc(info.bytes);
        for (size_t k = 0; k < info.bytes; k++)
            data[k] = (uint8_t)(seed = seed * 1103515245 + 12345, seed >> 16);
        assert_int_equal(mica_session_set_input(session, i, data, info.bytes), 0);
        free(data);
    }
    if (mica_session_invoke(session))
        sum = 0;
    struct mica_memory_info memory;
    assert_int_equal(mica_executable_memory(executable, &memory), 0);
    for (size_t i = 0; sum && i < mica_model_output_count(model); i++) {
        assert_int_equal(mica_model_output(model, i, &info), 0);
        uint8_t *data = malloc(info.bytes);
        assert_int_equal(mica_session_get_output(session, i, data, info.bytes), 0);
        sum = XXH3_64bits_withSeed(data, info.bytes, sum);
        free(data);
    }
    mica_session_destroy(session);
    return sum;
}

static void saved_executables_run_alike(void **state)
{
    struct fixture *f = *state;
    mica_executable *loaded;
    assert_true(mica_executable_partition_count(f->executable) > 0);
    assert_int_equal(mica_executable_load(f->device, f->path, &loaded), 0);
    assert_int_equal(mica_executable_partition_count(loaded), mica_executable_partition_count(f->executable));
    assert_int_equal(mica_executable_npu_operation_count(loaded), mica_executable_npu_operation_count(f->executable));
    assert_int_equal(mica_model_operation_count(mica_executable_model(loaded)), mica_model_operation_count(f->model));
    for (unsigned seed = 0; seed < 3; seed++) {
        uint64_t expected = run(f->executable, seed);
        assert_true(expected != 0);
        assert_true(run(loaded, seed) == expected);
    }
    /* Saved again it is the same file. */
    uint8_t *file = f->file;
    size_t size = f->size;
    assert_int_equal(mica_executable_save(loaded, f->path), 0);
    mica_executable_destroy(loaded);
    read_file(f);
    assert_int_equal(f->size, size);
    assert_memory_equal(f->file, file, size);
    free(file);
}

static void saving_replaces_files_and_nothing_else(void **state)
{
    struct fixture *f = *state;
    struct stat status;
    mode_t mask = umask(0022);
    assert_int_equal(mica_executable_save(f->executable, f->path), 0);
    umask(mask);
    assert_int_equal(stat(f->path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0644);
    assert_int_equal(mica_executable_save(f->executable, "/tmp"), -EINVAL);
    assert_int_equal(mica_executable_save(f->executable, "/dev/null"), -EINVAL);
    assert_int_equal(mica_executable_save(f->executable, ""), -EINVAL);
    assert_int_equal(mica_executable_save(f->executable, "/does/not/exist/x"), -ENOENT);
    assert_non_null(strstr(mica_last_error(f->context), "/does/not/exist/x"));
}

/* The mask is the process's: who sets it for a moment breaks what other threads create then. */
static void saving_leaves_the_mask_alone(void **state)
{
    struct fixture *f = *state;
    umask_calls = 0;
    assert_int_equal(mica_executable_save(f->executable, f->path), 0);
    assert_int_equal(umask_calls, 0);
}

static void saving_goes_on_after_signals(void **state)
{
    struct fixture *f = *state;
    uint8_t *before = f->file;
    size_t size = f->size;
    interrupt_writes = true;
    int error = mica_executable_save(f->executable, f->path);
    interrupt_writes = false;
    assert_int_equal(error, 0);
    assert_true(interruptions > 0);
    read_file(f);
    assert_int_equal(f->size, size);
    assert_memory_equal(f->file, before, size);
    free(before);
}

static void another_chip_is_told_apart(void **state)
{
    struct fixture *f = *state;
    mica_device *cpu;
    mica_executable *loaded = NULL;
    assert_int_equal(mica_device_open(f->context, "cpu", &cpu), 0);
    assert_int_equal(mica_executable_load(cpu, f->path, &loaded), -EINVAL);
    assert_non_null(strstr(mica_last_error(f->context), "fakechip"));
    assert_null(loaded);
    mica_device_close(cpu);
}

static void other_files_are_refused(void **state)
{
    struct fixture *f = *state;
    mica_executable *loaded = NULL;
    assert_int_equal(mica_executable_load(f->device, MODEL, &loaded), -EINVAL);
    assert_int_equal(mica_executable_load(f->device, "/does/not/exist", &loaded), -ENOENT);
    static const uint32_t versions[] = {3, 5, 99};
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        char text[32];
        snprintf(text, sizeof text, "version %u and", versions[i]);
        memcpy(f->file + 8, &versions[i], sizeof versions[i]);
        write_file(f, f->file, f->size);
        assert_int_equal(mica_executable_load(f->device, f->path, &loaded), -EINVAL);
        assert_non_null(strstr(mica_last_error(f->context), text));
        assert_null(loaded);
    }
}

static void the_checksum_sees_every_flip(void **state)
{
    struct fixture *f = *state;
    mica_executable *loaded = NULL;
    srand(2);
    for (int i = 0; i < 300; i++) {
        size_t at = (size_t)rand() % f->size;
        uint8_t old = f->file[at];
        f->file[at] ^= (uint8_t)(1 << rand() % 8);
        write_file(f, f->file, f->size);
        assert_true(mica_executable_load(f->device, f->path, &loaded) < 0);
        f->file[at] = old;
    }
    for (size_t size = 1; size < f->size; size += 1 + size / 20) {
        write_file(f, f->file, size);
        assert_int_equal(mica_executable_load(f->device, f->path, &loaded), -EINVAL);
    }
    assert_null(loaded);
}

static void sign(uint8_t *file, size_t size)
{
    XXH3_state_t state;
    uint64_t length = size;
    if (size < 128)
        return;
    memcpy(file + 48, &length, 8);
    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, file + 128, size - 128);
    XXH3_64bits_update(&state, file, 120);
    uint64_t sum = XXH3_64bits_digest(&state);
    memcpy(file + 120, &sum, 8);
}

/* Flips, odd numbers and cuts where they hurt: mostly in the header and in the plan with its programs. */
static size_t mutate(const struct fixture *f, uint8_t *file)
{
    static const uint32_t odd[] = {0, 1, 2, 0x7f, 0xff, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff, 0x10000};
    uint64_t plan;
    memcpy(&plan, f->file + 72, 8);
    memcpy(file, f->file, f->size);
    for (int count = 1 + rand() % 3; count > 0; count--) {
        size_t start = 0, end = f->size;
        switch (rand() % 8) {
        case 0:
            end = 128;
            break;
        case 1:
            break;
        default:
            start = (size_t)plan;
        }
        size_t at = start + (size_t)rand() % (end - start);
        uint32_t value = rand() & 1 ? odd[rand() % 10] : (uint32_t)rand() % 64;
        if (rand() % 4 == 0)
            file[at] ^= (uint8_t)(1 << rand() % 8);
        else if ((at & ~(size_t)3) + 4 <= f->size)
            memcpy(file + (at & ~(size_t)3), &value, 4);
    }
    return rand() % 16 ? f->size : (size_t)rand() % f->size;
}

/* Loads and runs files damaged in `count` ways; how many loaded and how many of those ran to the end. */
static void run_damaged(struct fixture *f, int count, int *loads, int *runs)
{
    uint8_t *file = malloc(f->size);
    *loads = *runs = 0;
    srand(3);
    for (int i = 0; i < count; i++) {
        mica_executable *loaded = NULL;
        size_t size = mutate(f, file);
        sign(file, size);
        write_file(f, file, size);
        if (mica_executable_load(f->device, f->path, &loaded))
            continue;
        ++*loads;
        *runs += run(loaded, 1) != 0;
        mica_executable_destroy(loaded);
    }
    free(file);
}

static void damaged_files_with_a_valid_checksum_do_no_harm(void **state)
{
    int loads, runs;
    run_damaged(*state, 5000, &loads, &runs);
    printf("%d of 5000 loaded, %d ran\n", loads, runs);
    assert_true(loads > 100 && loads < 4900 && runs > 50); /* or the damage is not of the right sort */
}

static void damaged_programs_do_no_harm_in_the_simulator(void **state)
{
    int loads, runs;
    run_damaged(*state, 2000, &loads, &runs);
    printf("%d of 2000 loaded, %d ran\n", loads, runs);
    assert_true(loads > 40 && loads < 1960 && runs > 20);
}

static void damaged_rockchip_programs_do_no_harm(void **state)
{
    int loads, runs;
    run_damaged(*state, 600, &loads, &runs);
    printf("%d of 600 loaded, %d ran\n", loads, runs);
    assert_true(loads > 20 && loads < 590 && runs > 10);
}

static void damaged_programs_on_chip_do_no_harm(void **state)
{
    int loads, runs;
    struct fixture *f = *state;
    struct mica_memory_info memory;
    assert_int_equal(mica_executable_memory(f->executable, &memory), 0);
    assert_true(memory.on_chip_bytes > 0);
    run_damaged(f, 400, &loads, &runs);
    printf("%d of 400 loaded, %d ran\n", loads, runs);
    assert_true(loads > 20 && loads < 390 && runs > 10);
}

int main(void)
{
    if (access(MODEL, R_OK) || access(SIMULATED_MODEL, R_OK) || access(ON_CHIP_MODEL, R_OK)) {
        printf("skipped: there is no %s, %s or %s\n", MODEL, SIMULATED_MODEL, ON_CHIP_MODEL);
        return 77;
    }
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(saved_executables_run_alike),
        TEST(saving_replaces_files_and_nothing_else),
        TEST(saving_leaves_the_mask_alone),
        TEST(saving_goes_on_after_signals),
        TEST(another_chip_is_told_apart),
        TEST(other_files_are_refused),
        TEST(the_checksum_sees_every_flip),
        TEST(damaged_files_with_a_valid_checksum_do_no_harm),
        cmocka_unit_test_setup_teardown(saved_executables_run_alike, setup_blocked, teardown),
        cmocka_unit_test_setup_teardown(damaged_files_with_a_valid_checksum_do_no_harm, setup_blocked, teardown),
        cmocka_unit_test_setup_teardown(saved_executables_run_alike, setup_simulated, teardown),
        cmocka_unit_test_setup_teardown(damaged_programs_do_no_harm_in_the_simulator, setup_simulated, teardown),
        cmocka_unit_test_setup_teardown(saved_executables_run_alike, setup_rockchip, teardown),
        cmocka_unit_test_setup_teardown(damaged_rockchip_programs_do_no_harm, setup_rockchip, teardown),
        cmocka_unit_test_setup_teardown(saved_executables_run_alike, setup_on_chip, teardown),
        cmocka_unit_test_setup_teardown(damaged_programs_on_chip_do_no_harm, setup_on_chip, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
