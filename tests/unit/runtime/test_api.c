/* SPDX-License-Identifier: MIT */
/* What a careless caller does: every NULL, every index past the end, and the order of calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake.h"

static void every_destroy_accepts_null(void **state)
{
    mica_context_destroy(NULL);
    mica_device_close(NULL);
    mica_model_destroy(NULL);
    mica_executable_destroy(NULL);
    mica_session_destroy(NULL);
}

static void null_is_an_argument_error_and_not_a_crash(void **state)
{
    mica_context *context;
    mica_device *device = NULL;
    mica_model *model = NULL;
    mica_executable *executable = NULL;
    mica_session *session = NULL;
    struct mica_device_info device_info;
    struct mica_tensor_info tensor;
    struct mica_operation_info operation;
    struct mica_job_info job;
    struct mica_memory_info memory;
    void *data;
    char text[8];
    assert_int_equal(mica_context_create(&context), 0);
    mica_context_set_log(NULL, MICA_LEVEL_DEBUG, NULL, NULL);
    assert_string_equal(mica_last_error(NULL), "");
    assert_string_equal(mica_last_error(context), "");
    assert_string_equal(mica_device_name(NULL), "");
    const int results[] = {
        mica_context_create(NULL),
        mica_context_set_threads(NULL, 1),
        mica_device_list(NULL, 0, &device_info),
        mica_device_list(context, 0, NULL),
        mica_device_open(NULL, "cpu", &device),
        mica_device_open(context, "cpu", NULL),
        mica_model_load(NULL, "x", &model),
        mica_model_load(context, NULL, &model),
        mica_model_load(context, "x", NULL),
        mica_model_load_memory(NULL, text, 1, &model),
        mica_model_load_memory(context, NULL, 1, &model),
        mica_model_load_memory(context, text, 1, NULL),
        mica_model_input(NULL, 0, &tensor),
        mica_model_output(NULL, 0, &tensor),
        mica_model_operation(NULL, 0, &operation),
        mica_model_placement(NULL, NULL, 0, text, sizeof text),
        mica_model_way(NULL, NULL, 0, NULL),
        mica_executable_compile(NULL, NULL, &executable),
        mica_executable_save(NULL, "x"),
        mica_executable_load(NULL, "x", &executable),
        mica_session_create(NULL, &session),
        mica_session_set_input(NULL, 0, text, 1),
        mica_session_invoke(NULL),
        mica_session_invoke_async(NULL),
        mica_session_wait(NULL, 0),
        mica_session_get_output(NULL, 0, text, 1),
        mica_session_job(NULL, 0, &job),
        mica_session_capture(NULL, "x"),
        mica_device_configure(NULL, "on-chip", "1"),
        mica_executable_memory(NULL, &memory),
        mica_session_map_input(NULL, 0, &data),
        mica_session_map_output(NULL, 0, &data),
        mica_session_bind_input_dmabuf(NULL, 0, -1, 0),
        mica_session_bind_output_dmabuf(NULL, 0, -1, 0),
    };
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++)
        assert_int_equal(results[i], -EINVAL);
    assert_int_equal(mica_model_input_count(NULL), 0);
    assert_int_equal(mica_model_output_count(NULL), 0);
    assert_int_equal(mica_model_operation_count(NULL), 0);
    assert_int_equal(mica_executable_partition_count(NULL), 0);
    assert_int_equal(mica_executable_npu_operation_count(NULL), 0);
    assert_int_equal(mica_session_job_count(NULL), 0);
    assert_null(mica_executable_model(NULL));
    assert_true(!device && !model && !executable && !session);
    mica_context_destroy(context);
}

static void the_version_is_that_of_the_header(void **state)
{
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", MICA_VERSION_MAJOR, MICA_VERSION_MINOR, MICA_VERSION_PATCH);
    assert_string_equal(mica_version(), version);
}

static void note_message(void *user, enum mica_level level, const char *message)
{
    snprintf(user, 256, "%d %s", level, message);
}

static void devices_are_listed_and_refused_with_a_reason(void **state)
{
    mica_context *context;
    struct mica_device_info info;
    bool has_cpu = false, has_simulator = false;
    assert_int_equal(mica_context_create(&context), 0);
    for (size_t i = 0; !mica_device_list(context, i, &info); i++) {
        mica_device *device = NULL;
        assert_true(info.description[0]);
        assert_int_equal(info.available, !info.reason[0]);
        bool pattern = strstr(info.name, ":PATH") != NULL; /* stands for every node's path */
        assert_int_equal(mica_device_open(context, info.name, &device), pattern ? -ENOENT : 0);
        if (!pattern)
            assert_string_equal(mica_device_name(device), info.name);
        has_cpu |= !strcmp(info.name, "cpu");
        has_simulator |= !strcmp(info.name, "sim:a311d") && info.available;
        mica_device_close(device);
    }
    assert_true(has_cpu && has_simulator);
    assert_int_equal(mica_device_list(context, 1000, &info), -ENOENT);
    mica_device *device = NULL;
    assert_int_equal(mica_device_open(context, "drm:/dev/dri/no-such-node", &device), -ENOENT);
    assert_non_null(strstr(mica_last_error(context), "/dev/dri/no-such-node"));
    assert_int_equal(mica_device_open(context, "drm:/dev/null", &device), -ENODEV);
    assert_int_equal(mica_device_open(context, "accel:/dev/null", &device), -ENODEV);
    assert_non_null(strstr(mica_last_error(context), "rocket"));
    assert_int_equal(mica_device_open(context, "sim:a311", &device), -ENODEV);
    assert_int_equal(mica_device_open(context, "cpu2", &device), -ENODEV);
    assert_null(device);
    mica_context_destroy(context);
}

static void auto_says_what_it_chose(void **state)
{
    static const char *const names[] = {"auto", "", NULL};
    for (size_t i = 0; i < 3; i++) {
        mica_context *context;
        mica_device *device;
        char message[256] = "";
        assert_int_equal(mica_context_create(&context), 0);
        mica_context_set_log(context, MICA_LEVEL_INFO, note_message, message);
        assert_int_equal(mica_device_open(context, names[i], &device), 0);
        assert_string_equal(mica_device_name(device), "sim:a311d");
        assert_non_null(strstr(message, "sim:a311d"));
        assert_int_equal(message[0], '0' + MICA_LEVEL_INFO);
        mica_device_close(device);
        mica_context_destroy(context);
    }
}

static void the_sink_gets_what_the_level_lets_through(void **state)
{
    mica_context *context;
    mica_device *device;
    char message[256] = "";
    assert_int_equal(mica_context_create(&context), 0);
    mica_context_set_log(context, MICA_LEVEL_ERROR, note_message, message);
    assert_int_equal(mica_device_open(context, "auto", &device), 0);
    mica_device_close(device);
    assert_string_equal(message, "");
    assert_int_equal(mica_device_open(context, "nothing", &device), -ENODEV);
    assert_string_equal(message + 2, mica_last_error(context));
    mica_context_set_log(context, MICA_LEVEL_DEBUG, NULL, NULL);
    assert_int_equal(mica_device_open(context, "still nothing", &device), -ENODEV);
    assert_non_null(strstr(mica_last_error(context), "still nothing"));
    mica_context_destroy(context);
}

static void threads_are_set_before_devices(void **state)
{
    mica_context *context;
    mica_device *device;
    assert_int_equal(mica_context_create(&context), 0);
    assert_int_equal(mica_context_set_threads(context, 1000000), -EINVAL);
    assert_int_equal(mica_context_set_threads(context, 2), 0);
    assert_int_equal(mica_device_open(context, "cpu", &device), 0);
    assert_int_equal(mica_context_set_threads(context, 3), -EBUSY);
    mica_device_close(device);
    mica_context_destroy(context);
}

static void device_options_are_checked_by_name_and_value(void **state)
{
    mica_context *context;
    mica_device *device;
    assert_int_equal(mica_context_create(&context), 0);
    assert_int_equal(mica_device_open(context, "cpu", &device), 0);
    assert_int_equal(mica_device_configure(device, "on-chip", "1"), 0);
    assert_int_equal(mica_device_configure(device, "optimize", "size"), 0);
    assert_true(device->options.on_chip && device->options.optimize_size);
    assert_int_equal(mica_device_configure(device, "fuse", "1"), 0);
    assert_true(device->options.fuse);
    assert_int_equal(mica_device_configure(device, "fuse", "0"), 0);
    assert_false(device->options.fuse);
    assert_int_equal(mica_device_configure(device, "per-channel", "folded"), 0);
    assert_true(device->options.fold_scales);
    assert_int_equal(mica_device_configure(device, "per-channel", "exact"), 0);
    assert_false(device->options.fold_scales);
    assert_int_equal(mica_device_configure(device, "on-chip", "2"), -EINVAL);
    assert_string_equal(mica_last_error(context), "device option on-chip must be 0 or 1, not \"2\"");
    assert_int_equal(mica_device_configure(device, "optimize", ""), -EINVAL);
    assert_string_equal(mica_last_error(context), "device option optimize must be speed or size, not \"\"");
    assert_int_equal(mica_device_configure(device, "on_chip", "1"), -EINVAL);
    assert_string_equal(mica_last_error(context), "there is no device option \"on_chip\"; the options are on-chip, "
                                                  "optimize, fuse, per-channel, cores, clock, split, partition");
    assert_int_equal(mica_device_configure(device, NULL, "1"), -EINVAL);
    assert_int_equal(mica_device_configure(device, "on-chip", NULL), -EINVAL);
    assert_true(device->options.on_chip && device->options.optimize_size);
    assert_int_equal(mica_device_configure(device, "on-chip", "0"), 0);
    assert_int_equal(mica_device_configure(device, "optimize", "speed"), 0);
    assert_false(device->options.on_chip || device->options.optimize_size);
    mica_device_close(device);
    mica_context_destroy(context);
}

static void files_that_are_no_models_are_refused(void **state)
{
    mica_context *context;
    mica_model *model = NULL;
    char path[] = "/tmp/mica-test-XXXXXX", fifo[64];
    assert_int_equal(mica_context_create(&context), 0);
    assert_int_equal(mica_model_load(context, "/does/not/exist", &model), -ENOENT);
    assert_string_equal(mica_last_error(context), "/does/not/exist: No such file or directory");
    assert_int_equal(mica_model_load(context, "/tmp", &model), -EISDIR);
    assert_int_equal(mica_model_load(context, "/dev/null", &model), -EINVAL);
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(mica_model_load(context, path, &model), -EINVAL);
    assert_non_null(strstr(mica_last_error(context), "empty"));
    assert_int_equal(write(file, "no model at all", 15), 15);
    assert_int_equal(mica_model_load(context, path, &model), -EINVAL);
    assert_int_equal(ftruncate(file, INT64_C(1) << 33), 0);
    assert_int_equal(mica_model_load(context, path, &model), -EFBIG);
    snprintf(fifo, sizeof fifo, "%s.fifo", path);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(mica_model_load(context, fifo, &model), -EINVAL);
    assert_int_equal(mica_model_load_memory(context, (const char *)&model + 1, 8, &model), -EINVAL);
    assert_null(model);
    unlink(fifo);
    close(file);
    unlink(path);
    mica_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_destroy_accepts_null),
        cmocka_unit_test(null_is_an_argument_error_and_not_a_crash),
        cmocka_unit_test(the_version_is_that_of_the_header),
        cmocka_unit_test(devices_are_listed_and_refused_with_a_reason),
        cmocka_unit_test(auto_says_what_it_chose),
        cmocka_unit_test(the_sink_gets_what_the_level_lets_through),
        cmocka_unit_test(threads_are_set_before_devices),
        cmocka_unit_test(device_options_are_checked_by_name_and_value),
        cmocka_unit_test(files_that_are_no_models_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
