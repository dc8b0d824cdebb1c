/* SPDX-License-Identifier: MIT */
/*
 * Sessions whose tensors are the device's own memory, on the real simulators.
 * Each result is compared with that of a session that copies in and out.
 * Skipped (77) without the model collection.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake.h"

/* uint8 in and out, one convolution: both ends are the NPU's. */
#define CAPTURES MICA_SHARED_DIR "/captures/"
#define MODEL CAPTURES "conv_u8_i8_k3_ic16_oc16_s1_p1/model.tflite"
#define INT8_MODEL CAPTURES "conv_s8_i8_k3_ic16_oc16_s1_p1/model.tflite"
#define MOBILENET MICA_SHARED_DIR "/models/mobilenet_v1_1.0_224_quant.tflite" /* ends in operations on the CPU */
#define PAGE 4096u

struct fixture {
    mica_context *context;
    mica_device *device;
    mica_model *model;
    mica_executable *executable;
    mica_session *session;
    size_t in_size, out_size;
    uint8_t *in, *out; /* what the results must be */
};

static void fill(uint8_t *data, size_t size, unsigned seed)
{
    for (size_t i = 0; i < size; i++)
        data[i] = (uint8_t)((seed = seed * 1103515245 + 12345) >> 16);
}

/* Input of `seed` to f->in, what comes out to f->out, by copies. */
static void expect(struct fixture *f, unsigned seed)
{
    mica_session *session;
    fill(f->in, f->in_size, seed);
    assert_int_equal(mica_session_create(f->executable, &session), 0);
    assert_int_equal(mica_session_set_input(session, 0, f->in, f->in_size), 0);
    assert_int_equal(mica_session_invoke(session), 0);
    assert_int_equal(mica_session_get_output(session, 0, f->out, f->out_size), 0);
    mica_session_destroy(session);
}

static struct fixture *open_model(const char *device, const char *path, bool on_chip)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct mica_tensor_info info;
    assert_int_equal(mica_context_create(&f->context), 0);
    assert_int_equal(mica_context_set_threads(f->context, 1), 0);
    assert_int_equal(mica_device_open(f->context, device, &f->device), 0);
    assert_int_equal(mica_device_configure(f->device, "on-chip", on_chip ? "1" : "0"), 0);
    assert_int_equal(mica_model_load(f->context, path, &f->model), 0);
    assert_int_equal(mica_executable_compile(f->model, f->device, &f->executable), 0);
    assert_int_equal(mica_session_create(f->executable, &f->session), 0);
    assert_int_equal(mica_model_input(f->model, 0, &info), 0);
    f->in = malloc(f->in_size = info.bytes);
    assert_int_equal(mica_model_output(f->model, 0, &info), 0);
    f->out = malloc(f->out_size = info.bytes);
    return f;
}

static void close_model(struct fixture *f)
{
    mica_session_destroy(f->session);
    mica_executable_destroy(f->executable);
    mica_model_destroy(f->model);
    mica_device_close(f->device);
    mica_context_destroy(f->context);
    free(f->in);
    free(f->out);
    free(f);
}

static int setup(void **state)
{
    *state = open_model("sim:a311d", MODEL, false);
    return 0;
}

static int teardown(void **state)
{
    close_model(*state);
    return 0;
}

static bool is_device_memory(struct fixture *f, const void *data)
{
    struct mica_instance *instance = f->session->run.steps[0].instance;
    return data == mica_instance_map(instance, false, 0) || data == mica_instance_map(instance, true, 0);
}

static void mapped_tensors_are_the_devices_own(void **state)
{
    struct fixture *f = *state;
    void *in, *out;
    assert_int_equal(mica_session_map_input(f->session, 0, &in), 0);
    assert_int_equal(mica_session_map_output(f->session, 0, &out), 0);
    assert_true(is_device_memory(f, in) && is_device_memory(f, out));
    for (unsigned seed = 0; seed < 3; seed++) {
        uint8_t *copy = malloc(f->out_size);
        expect(f, seed);
        memcpy(in, f->in, f->in_size);
        assert_int_equal(mica_session_invoke(f->session), 0);
        assert_memory_equal(out, f->out, f->out_size);
        assert_memory_equal(in, f->in, f->in_size); /* keeps its value */
        assert_int_equal(mica_session_get_output(f->session, 0, copy, f->out_size), 0);
        assert_memory_equal(copy, f->out, f->out_size);
        free(copy);
    }
    fill(f->in, f->in_size, 9);
    assert_int_equal(mica_session_set_input(f->session, 0, f->in, f->in_size), 0);
    assert_memory_equal(in, f->in, f->in_size);
}

static int make_memfd(off_t size)
{
    int fd = memfd_create("test", MFD_ALLOW_SEALING | MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, size), 0);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    return fd;
}

static void run_bound(struct fixture *f)
{
    off_t size = (off_t)(2 * PAGE + f->in_size + f->out_size) / PAGE * PAGE + 4 * PAGE;
    off_t out_at = (off_t)(PAGE + f->in_size) / PAGE * PAGE + PAGE;
    int fd = make_memfd(size);
    uint8_t *mine = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), *copy = malloc(f->out_size);
    assert_true(mine != MAP_FAILED);
    assert_int_equal(mica_session_bind_input_dmabuf(f->session, 0, fd, PAGE), 0);
    assert_int_equal(mica_session_bind_output_dmabuf(f->session, 0, fd, (size_t)out_at), 0);
    close(fd);
    for (unsigned seed = 0; seed < 2; seed++) {
        expect(f, seed);
        memcpy(mine + PAGE, f->in, f->in_size);
        assert_int_equal(mica_session_invoke(f->session), 0);
        assert_memory_equal(mine + out_at, f->out, f->out_size);
        assert_int_equal(mica_session_get_output(f->session, 0, copy, f->out_size), 0);
        assert_memory_equal(copy, f->out, f->out_size);
    }
    for (size_t i = 0; i < PAGE; i++)
        assert_int_equal(mine[i] | mine[(size_t)size - PAGE + i], 0);
    munmap(mine, (size_t)size);
    expect(f, 5);
    assert_int_equal(mica_session_bind_input_dmabuf(f->session, 0, -1, 0), 0);
    assert_int_equal(mica_session_bind_output_dmabuf(f->session, 0, -1, 0), 0);
    assert_int_equal(mica_session_set_input(f->session, 0, f->in, f->in_size), 0);
    assert_int_equal(mica_session_invoke(f->session), 0);
    assert_int_equal(mica_session_get_output(f->session, 0, copy, f->out_size), 0);
    assert_memory_equal(copy, f->out, f->out_size);
    free(copy);
}

static void bound_memory_is_read_and_written_in_place(void **state)
{
    run_bound(*state);
}

static void every_chip_does_it(void **state)
{
    static const char *const devices[] = {"sim:a311d", "sim:imx8mp", "sim:s905d3"};
    for (size_t i = 0; i < 3; i++) {
        struct fixture *f = open_model(devices[i], MODEL, false);
        run_bound(f);
        close_model(f);
    }
}

/* Sessions that take turns on the same on-chip memory get what they would in DDR. */
static void on_chip_memory_changes_no_result(void **state)
{
    static const char *const devices[] = {"sim:a311d", "sim:imx8mp", "sim:s905d3"};
    for (size_t i = 0; i < 3; i++) {
        struct mica_memory_info info;
        struct fixture *ddr = open_model(devices[i], MOBILENET, false), *chip = open_model(devices[i], MOBILENET, true);
        assert_int_equal(mica_executable_memory(chip->executable, &info), 0);
        assert_true(info.on_chip_bytes > 100000);
        expect(ddr, (unsigned)i);
        expect(chip, (unsigned)i + 10);
        assert_int_equal(mica_session_set_input(chip->session, 0, ddr->in, ddr->in_size), 0);
        assert_int_equal(mica_session_invoke(chip->session), 0);
        expect(chip, (unsigned)i + 20);
        assert_int_equal(mica_session_invoke(chip->session), 0);
        assert_int_equal(mica_session_get_output(chip->session, 0, chip->out, chip->out_size), 0);
        assert_memory_equal(chip->out, ddr->out, ddr->out_size);
        close_model(ddr);
        close_model(chip);
    }
}

static void bad_memory_is_refused_and_changes_nothing(void **state)
{
    struct fixture *f = *state;
    int small = make_memfd(PAGE / 2), large = make_memfd(64 * PAGE);
    void *before, *after;
    assert_int_equal(mica_session_map_input(f->session, 0, &before), 0);
    assert_int_equal(mica_session_bind_input_dmabuf(f->session, 0, large, 17), -EINVAL);
    assert_non_null(strstr(mica_last_error(f->context), "4096"));
    assert_int_equal(mica_session_bind_input_dmabuf(f->session, 0, large, 64 * PAGE), -EINVAL);
    assert_non_null(strstr(mica_last_error(f->context), "too small"));
    assert_int_equal(mica_session_bind_input_dmabuf(f->session, 0, large, SIZE_MAX / PAGE * PAGE), -EINVAL);
    assert_int_equal(mica_session_bind_input_dmabuf(f->session, 0, 1000, 0), -EBADF);
    assert_int_equal(mica_session_bind_input_dmabuf(f->session, 1, large, 0), -EINVAL);
    assert_int_equal(mica_session_bind_output_dmabuf(f->session, 1, large, 0), -EINVAL);
    assert_int_equal(mica_session_map_input(f->session, 1, &after), -EINVAL);
    assert_int_equal(mica_session_map_output(f->session, 1, &after), -EINVAL);
    assert_int_equal(mica_session_bind_input_dmabuf(f->session, 0, small, 0), 0); /* the page has room */
    assert_int_equal(mica_session_bind_input_dmabuf(f->session, 0, -1, 0), 0);
    assert_int_equal(mica_session_map_input(f->session, 0, &after), 0);
    assert_ptr_equal(before, after);
    close(small);
    close(large);
}

static void tensors_that_cannot_be_in_place_say_why(void **state)
{
    void *data;
    int fd = make_memfd(64 * PAGE);
    struct fixture *f = open_model("sim:a311d", INT8_MODEL, false);
    assert_int_equal(mica_session_bind_input_dmabuf(f->session, 0, fd, 0), -ENOTSUP);
    assert_non_null(strstr(mica_last_error(f->context), "sign bit"));
    assert_int_equal(mica_session_bind_output_dmabuf(f->session, 0, fd, 0), -ENOTSUP);
    assert_int_equal(mica_session_map_input(f->session, 0, &data), 0);
    assert_false(is_device_memory(f, data));
    expect(f, 1);
    memcpy(data, f->in, f->in_size);
    assert_int_equal(mica_session_invoke(f->session), 0);
    assert_int_equal(mica_session_map_output(f->session, 0, &data), 0);
    assert_memory_equal(data, f->out, f->out_size);
    close_model(f);
    f = open_model("sim:a311d", MOBILENET, false);
    assert_int_equal(mica_session_bind_input_dmabuf(f->session, 0, fd, 0), 0);
    assert_int_equal(mica_session_bind_output_dmabuf(f->session, 0, fd, 0), -ENOTSUP);
    assert_non_null(strstr(mica_last_error(f->context), "on the CPU"));
    close_model(f);
    f = open_model("cpu", MODEL, false);
    assert_int_equal(mica_session_bind_input_dmabuf(f->session, 0, fd, 0), -ENOTSUP);
    assert_int_equal(mica_session_map_input(f->session, 0, &data), 0);
    assert_non_null(data);
    close_model(f);
    close(fd);
}

static void the_memory_report_adds_up(void **state)
{
    struct fixture *f = *state;
    struct mica_memory_info info, on_chip;
    const struct mica_program *program = f->executable->programs[0];
    uint64_t sum = 0;
    assert_int_equal(mica_executable_memory(f->executable, &info), 0);
    assert_true(info.coefficient_bytes && info.command_bytes);
    assert_int_equal(info.tensor_bytes, f->in_size + f->out_size);
    assert_int_equal(info.on_chip_bytes, 0);
    for (uint32_t i = 0; i < program->buffer_count; i++)
        sum += program->buffers[i].size;
    for (uint32_t i = 0; i < program->submit_count; i++)
        sum += program->submits[i].words * 4;
    assert_int_equal(info.coefficient_bytes + info.command_bytes + info.intermediate_bytes + info.tensor_bytes, sum);
    struct fixture *large = open_model("sim:a311d", MOBILENET, false);
    assert_int_equal(mica_executable_memory(large->executable, &info), 0);
    assert_true(info.coefficient_bytes > 3000000 && info.coefficient_bytes < 6000000);
    close_model(large);
    large = open_model("sim:a311d", MOBILENET, true);
    assert_int_equal(mica_executable_memory(large->executable, &on_chip), 0);
    assert_true(on_chip.on_chip_bytes > 0 && on_chip.on_chip_bytes <= (1024 + 512) * 1024);
    assert_true(on_chip.intermediate_bytes <= info.intermediate_bytes);
    close_model(large);
}

int main(void)
{
    if (access(MODEL, R_OK) || access(INT8_MODEL, R_OK) || access(MOBILENET, R_OK)) {
        printf("skipped: there is no %s, %s or %s\n", MODEL, INT8_MODEL, MOBILENET);
        return 77;
    }
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(mapped_tensors_are_the_devices_own),
        TEST(bound_memory_is_read_and_written_in_place),
        cmocka_unit_test(every_chip_does_it),
        cmocka_unit_test(on_chip_memory_changes_no_result),
        TEST(bad_memory_is_refused_and_changes_nothing),
        cmocka_unit_test(tensors_that_cannot_be_in_place_say_why),
        TEST(the_memory_report_adds_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
