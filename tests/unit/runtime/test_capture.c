/* SPDX-License-Identifier: MIT */
/* What mica_session_capture() writes, read back as a decoder would. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "fake.h"

struct fixture {
    mica_context *context;
    mica_device *device;
    mica_model model;
    mica_executable *executable;
    mica_session *session;
    char parent[32], directory[64];
};

static int32_t add_tensor(struct mica_graph *graph, const char *name)
{
    static const float scale = 0.5f;
    static const int32_t zero_point = 3;
    const struct mica_tensor tensor = {
        .name = name, .type = MICA_TYPE_UINT8, .rank = 2, .dims = {1, 6}, .quant = {1, &scale, &zero_point, 0}};
    assert_int_equal(mica_graph_add_tensor(graph, &tensor, NULL), 0);
    return (int32_t)graph->tensor_count - 1;
}

static void add_op(struct mica_graph *graph, enum mica_op_kind kind, const char *type, int32_t from, int32_t to)
{
    const struct mica_op op = {
        .kind = kind, .type = type, .input_count = 1, .output_count = 1, .inputs = &from, .outputs = &to};
    assert_int_equal(mica_graph_add_op(graph, &op, NULL), 0);
    assert_null(graph->ops[graph->op_count - 1].problem);
}

/* a -> RESHAPE -> b -> RESHAPE -> c -> DEQUANTIZE and QUANTIZE on the CPU -> e -> RESHAPE -> f. */
static struct mica_graph *make_graph(void)
{
    struct mica_graph *graph;
    int32_t t[6];
    assert_int_equal(mica_graph_create(NULL, &graph), 0);
    for (int i = 0; i < 3; i++)
        t[i] = add_tensor(graph, (char[]){(char)('a' + i), 0});
    t[3] = (int32_t)graph->tensor_count;
    const struct mica_tensor real = {.name = "d", .type = MICA_TYPE_FLOAT32, .rank = 2, .dims = {1, 6}};
    assert_int_equal(mica_graph_add_tensor(graph, &real, NULL), 0);
    t[4] = add_tensor(graph, "e");
    t[5] = add_tensor(graph, "f");
    add_op(graph, MICA_OP_RESHAPE, "RESHAPE", t[0], t[1]);
    add_op(graph, MICA_OP_RESHAPE, "RESHAPE", t[1], t[2]);
    add_op(graph, MICA_OP_DEQUANTIZE, "DEQUANTIZE", t[2], t[3]);
    add_op(graph, MICA_OP_QUANTIZE, "QUANTIZE", t[3], t[4]);
    add_op(graph, MICA_OP_RESHAPE, "RESHAPE", t[4], t[5]);
    assert_int_equal(mica_graph_set_io(graph, t, 1, &t[5], 1, NULL), 0);
    return graph;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    strcpy(f->parent, "/tmp/mica-capture-XXXXXX");
    assert_non_null(mkdtemp(f->parent));
    snprintf(f->directory, sizeof f->directory, "%s/capture", f->parent);
    assert_int_equal(mica_context_create(&f->context), 0);
    f->device = fake_device_open(f->context);
    f->model = (mica_model){.context = f->context, .graph = make_graph(), .name = "some.tflite"};
    assert_int_equal(mica_executable_compile(&f->model, f->device, &f->executable), 0);
    assert_int_equal(mica_session_create(f->executable, &f->session), 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char command[128];
    mica_session_destroy(f->session);
    mica_executable_destroy(f->executable);
    mica_graph_destroy(f->model.graph);
    mica_device_close(f->device);
    mica_context_destroy(f->context);
    snprintf(command, sizeof command, "rm -r '%s'", f->parent);
    assert_int_equal(system(command), 0);
    free(f);
    return 0;
}

static size_t read_file(const struct fixture *f, const char *name, uint8_t *data, size_t size)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", f->directory, name);
    FILE *file = fopen(path, "rb");
    if (!file)
        return SIZE_MAX;
    size = fread(data, 1, size, file);
    fclose(file);
    return size;
}

static json_t *read_json(const struct fixture *f, const char *name)
{
    char path[256];
    json_error_t error;
    snprintf(path, sizeof path, "%s/%s", f->directory, name);
    json_t *json = json_load_file(path, 0, &error);
    assert_non_null(json);
    return json;
}

static void assert_file(const struct fixture *f, const char *name, const void *expected, size_t size)
{
    uint8_t data[8192];
    assert_int_equal(read_file(f, name, data, sizeof data), size);
    assert_memory_equal(data, expected, size);
}

static const uint8_t input[6] = {1, 2, 3, 250, 251, 252};

static void the_run_has_its_tensors_with_values(void **state)
{
    struct fixture *f = *state;
    const char *kind, *name, *type, *address, *key;
    int index, bytes, zero_point, rows, columns, bo, offset, flip_sign;
    double scale;
    assert_int_equal(mica_session_set_input(f->session, 0, input, 6), 0);
    assert_int_equal(mica_session_capture(f->session, f->directory), 0);
    assert_file(f, "in_0.bin", input, 6);
    assert_file(f, "cpu_0.bin", input, 6);
    json_t *run = read_json(f, "run.json"), *tensors = json_object_get(run, "tensors");
    assert_int_equal(json_array_size(tensors), 2);
    assert_string_equal(json_string_value(json_object_get(run, "chip")), "fakechip");
    static const char *const keys[] = {"model", "delegate", "seed", "driver", "chip", "tensors"};
    size_t next = 0;
    json_t *value;
    json_object_foreach(run, key, value) assert_string_equal(key, keys[next++]);
    assert_int_equal(next, 6);
    assert_string_equal(json_string_value(json_object_get(run, "model")), "some.tflite");
    assert_string_equal(json_string_value(json_object_get(run, "delegate")), "Mica 0.1.0");
    assert_int_equal(json_integer_value(json_object_get(run, "seed")), 0);
    assert_int_equal(json_unpack(json_array_get(tensors, 1),
                                 "{s:s, s:i, s:s, s:s, s:i, s:f, s:i, s:[i, i!], s:i, s:s, s:i, s:b!}", "kind", &kind,
                                 "index", &index, "name", &name, "type", &type, "bytes", &bytes, "scale", &scale,
                                 "zero_point", &zero_point, "shape", &rows, &columns, "bo", &bo, "va", &address,
                                 "offset", &offset, "flip_sign", &flip_sign),
                     0);
    assert_string_equal(kind, "output");
    assert_string_equal(name, "f");
    assert_string_equal(type, "UINT8");
    assert_true(index == 0 && bytes == 6 && scale == 0.5 && zero_point == 3 && rows == 1 && columns == 6);
    /* What the last job writes is the output. */
    uint32_t stream[3];
    assert_int_equal(read_file(f, "submit_0002/stream.bin", (uint8_t *)stream, sizeof stream), sizeof stream);
    assert_int_equal(strtoull(address, NULL, 0) + (unsigned)offset, stream[1]);
    assert_true(bo > 0 && !flip_sign);
    json_decref(run);
}

/* Each buffer of each submission: where its file is, and what it holds. */
static void submissions_have_buffers_as_the_jobs_find_them(void **state)
{
    struct fixture *f = *state;
    static const uint8_t other[6] = {9, 9, 9, 9, 9, 9};
    assert_int_equal(mica_session_set_input(f->session, 0, other, 6), 0);
    assert_int_equal(mica_session_invoke(f->session), 0); /* leaves nothing behind in the capture */
    assert_int_equal(mica_session_set_input(f->session, 0, input, 6), 0);
    assert_int_equal(mica_session_capture(f->session, f->directory), 0);
    uint32_t stream[3];
    for (int i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof name, "submit_%04d/submit.json", i);
        json_t *json = read_json(f, name), *bos;
        const char *driver, *chip, *file;
        int index, pipe, exec_state, flags, softpin, words, pmrs;
        json_t *relocs;
        assert_int_equal(json_unpack(json, "{s:s, s:s, s:i, s:i, s:i, s:i, s:b, s:{s:s, s:i!}, s:o, s:o, s:i!}",
                                     "driver", &driver, "chip", &chip, "index", &index, "pipe", &pipe, "exec_state",
                                     &exec_state, "flags", &flags, "softpin", &softpin, "stream", "file", &file,
                                     "words", &words, "bos", &bos, "relocs", &relocs, "pmrs", &pmrs),
                         0);
        assert_string_equal(driver, "etnaviv");
        assert_true(index == i && flags == 8 && softpin && words == 3 && pmrs == 0 && json_array_size(relocs) == 0);
        snprintf(name, sizeof name, "submit_%04d/stream.bin", i);
        assert_int_equal(read_file(f, name, (uint8_t *)stream, sizeof stream), sizeof stream);
        assert_int_equal(stream[2], 6);
        bool found = false;
        for (size_t k = 0; k < json_array_size(bos); k++) {
            const char *access, *address, *bo_file;
            int bo_index, handle, size, end, alloc_flags;
            uint8_t contents[8192];
            assert_int_equal(json_unpack(json_array_get(bos, k), "{s:i, s:s, s:i, s:i, s:i, s:i, s:s, s:s!}", "index",
                                         &bo_index, "access", &access, "handle", &handle, "size", &size, "nonzero_end",
                                         &end, "alloc_flags", &alloc_flags, "va", &address, "file", &bo_file),
                             0);
            assert_int_equal(bo_index, k);
            bool input_only = i == 0 && strtoull(address, NULL, 16) == stream[0];
            assert_true(!strcmp(access, "r") || !strcmp(access, "rw"));
            if (input_only || strtoull(address, NULL, 16) == stream[1])
                assert_string_equal(access, input_only ? "r" : "rw");
            snprintf(name, sizeof name, "submit_%04d/%s", i, bo_file);
            assert_int_equal(read_file(f, name, contents, sizeof contents), size);
            /* What the job reads is the input by now; what it writes is empty yet. */
            if (strtoull(address, NULL, 16) == stream[0]) {
                found = true;
                assert_int_equal(end, 6);
                assert_memory_equal(contents, input, 6);
            } else if (strtoull(address, NULL, 16) == stream[1])
                assert_int_equal(end, 0);
            if (i == 1 && !end)
                assert_memory_equal(bo_file, "../submit_0000/", 15);
        }
        assert_true(found);
        json_decref(json);
    }
    uint8_t byte;
    assert_int_equal(read_file(f, "submit_0003/submit.json", &byte, 1), SIZE_MAX);
}

static void a_capture_changes_nothing_in_the_session(void **state)
{
    struct fixture *f = *state;
    uint8_t output[6];
    static const uint8_t zeros[6];
    assert_int_equal(mica_session_invoke(f->session), 0);
    assert_int_equal(mica_session_set_input(f->session, 0, input, 6), 0);
    assert_int_equal(mica_session_capture(f->session, f->directory), 0);
    assert_int_equal(mica_session_get_output(f->session, 0, output, 6), 0);
    assert_memory_equal(output, zeros, 6);
    assert_int_equal(mica_session_job_count(f->session), 5);
}

static void a_directory_with_files_is_left_alone(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(mica_session_capture(f->session, f->directory), 0);
    assert_int_equal(mica_session_capture(f->session, f->directory), -ENOTEMPTY);
    assert_int_equal(mica_session_capture(f->session, "/does/not/exist"), -ENOENT);
    assert_non_null(strstr(mica_last_error(f->context), "/does/not/exist"));
    assert_int_equal(mica_session_capture(f->session, NULL), -EINVAL);
}

static void failures_of_the_device_come_through(void **state)
{
    struct fixture *f = *state;
    fake_winsys_of(f->device)->submit_result = -EIO;
    assert_int_equal(mica_session_capture(f->session, f->directory), -EIO);
}

/* The format of rocket's captures: tasks in submit.json, no stream; and tensors in blocks. */
static void rocket_submissions_are_jobs_of_tasks(void **state)
{
    struct fixture *f = *state;
    mica_session *session;
    mica_executable *executable;
    fake_block = 8;
    fake_chip.driver = "rocket";
    assert_int_equal(mica_executable_compile(&f->model, f->device, &executable), 0);
    fake_block = 0;
    assert_int_equal(mica_session_create(executable, &session), 0);
    assert_int_equal(mica_session_set_input(session, 0, input, 6), 0);
    int error = mica_session_capture(session, f->directory);
    fake_chip.driver = "etnaviv";
    assert_int_equal(error, 0);
    json_t *json = read_json(f, "submit_0001/submit.json"), *bos;
    const char *driver, *chip, *command, *access, *address;
    int index, job_size, task_size, count, bo, offset;
    json_t *in, *out;
    assert_int_equal(json_unpack(json, "{s:s, s:s, s:i, s:i, s:[{s:i, s:o, s:o, s:[{s:s, s:i, s:i, s:i!}!]!}!], s:o!}",
                                 "driver", &driver, "chip", &chip, "index", &index, "job_struct_size", &job_size,
                                 "jobs", "task_struct_size", &task_size, "in_bos", &in, "out_bos", &out, "tasks",
                                 "regcmd", &command, "regcmd_count", &count, "bo", &bo, "offset", &offset, "bos", &bos),
                     0);
    assert_string_equal(driver, "rocket");
    assert_true(index == 1 && job_size == 40 && task_size == 8 && offset == 0);
    assert_int_equal(json_array_size(in) + json_array_size(out), json_array_size(bos));
    size_t written = 0;
    for (size_t k = 0; k < json_array_size(bos); k++) {
        json_t *row = json_array_get(bos, k);
        access = json_string_value(json_object_get(row, "access"));
        address = json_string_value(json_object_get(row, "va"));
        int handle = (int)json_integer_value(json_object_get(row, "handle"));
        if (strtoull(command, NULL, 16) == strtoull(address, NULL, 16))
            assert_int_equal(bo, handle);
        for (size_t i = 0; i < json_array_size(out); i++)
            written += json_integer_value(json_array_get(out, i)) == handle && strchr(access, 'w');
    }
    assert_int_equal(written, json_array_size(out));
    json_decref(json);
    json = read_json(f, "run.json");
    int block, channels, pixels, surface, padding;
    assert_int_equal(json_unpack(json_object_get(json_array_get(json_object_get(json, "tensors"), 0), "layout"),
                                 "{s:i, s:i, s:i, s:i, s:i!}", "block", &block, "channels", &channels, "pixels",
                                 &pixels, "surface", &surface, "padding", &padding),
                     0);
    assert_true(block == 8 && channels == 1 && pixels == 6 && surface == 56 && padding == 0x77);
    json_decref(json);
    mica_session_destroy(session);
    mica_executable_destroy(executable);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_run_has_its_tensors_with_values),      TEST(submissions_have_buffers_as_the_jobs_find_them),
        TEST(a_capture_changes_nothing_in_the_session), TEST(a_directory_with_files_is_left_alone),
        TEST(failures_of_the_device_come_through),      TEST(rocket_submissions_are_jobs_of_tasks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
