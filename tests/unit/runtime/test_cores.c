/* SPDX-License-Identifier: MIT */
/* Sessions on several cores, inferences that are split over them, the clock, blocked tensors at the border. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake.h"

#define BYTES 80 /* of every tensor: 8 pixels of 10 channels */

struct fixture {
    mica_context *context;
    mica_device *device;
    mica_model model;
    mica_executable *executable;
};

static int32_t add_tensor(struct mica_graph *graph)
{
    static const float scale = 0.5f;
    static const int32_t zero_point = 3;
    const struct mica_tensor tensor = {
        .name = "t", .type = MICA_TYPE_UINT8, .rank = 2, .dims = {8, 10}, .quant = {1, &scale, &zero_point, 0}};
    assert_int_equal(mica_graph_add_tensor(graph, &tensor, NULL), 0);
    return (int32_t)graph->tensor_count - 1;
}

static void add_op(struct mica_graph *graph, int32_t from, int32_t to)
{
    const struct mica_op op = {.kind = MICA_OP_RESHAPE,
                               .type = "RESHAPE",
                               .input_count = 1,
                               .output_count = 1,
                               .inputs = &from,
                               .outputs = &to};
    assert_int_equal(mica_graph_add_op(graph, &op, NULL), 0);
    assert_null(graph->ops[graph->op_count - 1].problem);
}

/* a -> RESHAPE -> c and b -> RESHAPE -> d, which can run at the same time. */
static struct mica_graph *make_graph(void)
{
    struct mica_graph *graph;
    int32_t t[4];
    assert_int_equal(mica_graph_create(NULL, &graph), 0);
    for (int i = 0; i < 4; i++)
        t[i] = add_tensor(graph);
    add_op(graph, t[0], t[2]);
    add_op(graph, t[1], t[3]);
    assert_int_equal(mica_graph_set_io(graph, t, 2, t + 2, 2, NULL), 0);
    return graph;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    fake_block = 0;
    fake_connect_result = 0;
    assert_int_equal(mica_context_create(&f->context), 0);
    assert_int_equal(mica_context_set_threads(f->context, 1), 0);
    f->device = fake_device_open(f->context);
    f->model = (mica_model){.context = f->context, .graph = make_graph()};
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    mica_executable_destroy(f->executable);
    mica_graph_destroy(f->model.graph);
    mica_device_close(f->device);
    mica_context_destroy(f->context);
    fake_family.stream_us = NULL;
    fake_block = 0;
    fake_connect_result = 0;
    free(f);
    return 0;
}

static void compile(struct fixture *f)
{
    assert_int_equal(mica_executable_compile(&f->model, f->device, &f->executable), 0);
}

static mica_session *open_session(struct fixture *f)
{
    mica_session *session;
    assert_int_equal(mica_session_create(f->executable, &session), 0);
    return session;
}

static void assert_runs(mica_session *session, uint8_t seed)
{
    uint8_t input[BYTES], output[BYTES];
    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0; k < BYTES; k++)
            input[k] = (uint8_t)(seed + 3 * k + i);
        assert_int_equal(mica_session_set_input(session, i, input, BYTES), 0);
    }
    assert_int_equal(mica_session_invoke(session), 0);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(mica_session_get_output(session, i, output, BYTES), 0);
        for (size_t k = 0; k < BYTES; k++)
            assert_int_equal(output[k], (uint8_t)(seed + 3 * k + i));
    }
}

static uint32_t users(const struct fixture *f, uint32_t core)
{
    return f->device->cores.cores[core].users;
}

static void assert_error(const struct fixture *f, const char *text)
{
    if (!strstr(mica_last_error(f->context), text))
        fail_msg("\"%s\" is not in \"%s\"", text, mica_last_error(f->context));
}

/* ---- streams ---------------------------------------------------------- */

static void sessions_are_spread_over_cores(void **state)
{
    struct fixture *f = *state;
    mica_session *sessions[4];
    assert_int_equal(mica_device_configure(f->device, "cores", "3"), 0);
    assert_int_equal(mica_device_cores(f->device), 3);
    compile(f);
    sessions[0] = open_session(f);
    assert_null(fake_core_of(f->device, 1)); /* one session needs no more than one core */
    for (int i = 1; i < 4; i++)
        sessions[i] = open_session(f);
    assert_true(users(f, 0) == 2 && users(f, 1) == 1 && users(f, 2) == 1);
    for (int i = 0; i < 4; i++)
        assert_runs(sessions[i], (uint8_t)i);
    assert_int_equal(fake_core_of(f->device, 0)->submit_count, 4);
    assert_int_equal(fake_core_of(f->device, 1)->submit_count, 2);
    assert_int_equal(fake_core_of(f->device, 2)->submit_count, 2);
    mica_session_destroy(sessions[1]);
    assert_int_equal(mica_device_configure(f->device, "cores", "2"), 0);
    sessions[1] = open_session(f); /* goes to the core that became free */
    assert_int_equal(users(f, 1), 1);
    assert_runs(sessions[1], 9);
    for (int i = 0; i < 4; i++)
        mica_session_destroy(sessions[i]);
    assert_true(users(f, 0) == 0 && users(f, 1) == 0 && users(f, 2) == 0);
}

static void runs_on_different_cores_go_on_at_the_same_time(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(mica_device_configure(f->device, "cores", "2"), 0);
    compile(f);
    mica_session *held = open_session(f), *other = open_session(f);
    pthread_mutex_t *gate = &fake_core_of(f->device, 0)->gate;
    pthread_mutex_lock(gate);
    assert_int_equal(mica_session_invoke_async(held), 0);
    for (uint8_t i = 0; i < 5; i++)
        assert_runs(other, i);
    assert_int_equal(mica_session_wait(held, 1), -ETIMEDOUT);
    pthread_mutex_unlock(gate);
    assert_int_equal(mica_session_wait(held, -1), 0);
    mica_session_destroy(held);
    mica_session_destroy(other);
}

struct stream {
    mica_session *session;
    uint8_t seed;
};

static void *run_stream(void *argument)
{
    const struct stream *stream = argument;
    for (uint8_t i = 0; i < 50; i++)
        assert_runs(stream->session, (uint8_t)(stream->seed + i));
    return NULL;
}

static void sessions_run_in_threads_of_their_own(void **state)
{
    struct fixture *f = *state;
    struct stream streams[3];
    pthread_t threads[3];
    assert_int_equal(mica_device_configure(f->device, "cores", "3"), 0);
    compile(f);
    for (int i = 0; i < 3; i++)
        streams[i] = (struct stream){open_session(f), (uint8_t)(i * 60)};
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_stream, &streams[i]), 0);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        mica_session_destroy(streams[i].session);
    }
}

static void a_core_that_fails_to_open_fails_the_session(void **state)
{
    struct fixture *f = *state;
    mica_session *first, *second = NULL;
    assert_int_equal(mica_device_configure(f->device, "cores", "3"), 0);
    compile(f);
    first = open_session(f);
    fake_connect_result = -EMFILE;
    assert_int_equal(mica_session_create(f->executable, &second), -EMFILE);
    assert_null(second);
    assert_error(f, "the test refuses another core");
    assert_int_equal(users(f, 1), 0);
    fake_connect_result = 0;
    second = open_session(f);
    assert_runs(second, 1);
    assert_runs(first, 2);
    mica_session_destroy(first);
    mica_session_destroy(second);
}

static void a_run_that_fails_says_so_in_its_context(void **state)
{
    struct fixture *f = *state;
    compile(f);
    mica_session *session = open_session(f);
    assert_int_equal(mica_session_invoke(session), 0);
    assert_int_equal(mica_session_set_input(session, 0, "x", 1), -EINVAL);
    assert_error(f, "has 80 bytes, not 1");
    fake_core_of(f->device, 0)->submit_result = -EIO;
    assert_int_equal(mica_session_invoke(session), -EIO);
    fake_core_of(f->device, 0)->submit_result = 0;
    mica_session_destroy(session);
}

/* ---- options ---------------------------------------------------------- */

static void numbers_out_of_range_are_refused(void **state)
{
    static const char *const keys[] = {"cores", "clock", "split"};
    static const char *const values[] = {"0", "", "-1", "+1", " 1", "1 ", "x", "99999999999999999999", "10001"};
    struct fixture *f = *state;
    for (size_t i = 0; i < 3; i++) {
        for (size_t k = 0; k < sizeof values / sizeof values[0]; k++)
            assert_int_equal(mica_device_configure(f->device, keys[i], values[k]), -EINVAL);
    }
    assert_int_equal(mica_device_configure(f->device, "cores", "4"), -EINVAL);
    assert_error(f, "cpu has 3 cores to spread inferences over, so cores can't be 4");
    assert_int_equal(mica_device_configure(f->device, "clock", "201"), -EINVAL);
    assert_error(f, "clock must be from 50 to 200");
    assert_int_equal(mica_device_configure(f->device, "clock", "49"), -EINVAL);
    assert_int_equal(mica_device_configure(f->device, "split", "4"), -EINVAL);
    assert_error(f, "has 3 cores, so an inference can't be split over 4");
    f->device->opened.connect = NULL; /* a device with one connection */
    assert_int_equal(mica_device_configure(f->device, "cores", "2"), -EINVAL);
    assert_int_equal(mica_device_configure(f->device, "cores", "1"), 0);
}

static void devices_without_a_choice_refuse_options(void **state)
{
    mica_device *device;
    struct fixture *f = *state;
    assert_int_equal(mica_device_open(f->context, "cpu", &device), 0);
    assert_int_equal(mica_device_configure(device, "clock", "100"), -ENOTSUP);
    assert_int_equal(mica_device_configure(device, "cores", "2"), -EINVAL);
    assert_int_equal(mica_device_configure(device, "split", "2"), -EINVAL);
    assert_true(mica_device_clock(device, NULL, NULL) == 0);
    mica_device_close(device);
    assert_int_equal(mica_device_open(f->context, "s905d3", &device), 0); /* a chip's name */
    assert_string_equal(mica_device_name(device), "sim:s905d3");
    assert_int_equal(mica_device_configure(device, "clock", "100"), -ENOTSUP);
    assert_error(f, "its timing model counts at one only");
    assert_int_equal(mica_device_configure(device, "cores", "2"), -EINVAL);
    assert_error(f, "sim:s905d3 has 1 core");
    assert_int_equal(mica_device_cores(device), 1);
    mica_device_close(device);
    assert_int_equal(mica_device_open(f->context, "PATH", &device), -ENODEV);
}

static void the_clock_counts_for_every_core(void **state)
{
    double least, most;
    struct mica_job_info job;
    struct fixture *f = *state;
    assert_int_equal(mica_device_configure(f->device, "cores", "2"), 0);
    compile(f);
    mica_session *first = open_session(f);
    assert_true(mica_device_clock(f->device, &least, &most) == 100 && least == 50 && most == 200);
    assert_runs(first, 0);
    assert_int_equal(mica_session_job(first, 0, &job), 0);
    assert_true(job.us == BYTES / 100.0);
    assert_int_equal(mica_device_configure(f->device, "clock", "200"), 0);
    assert_true(mica_device_clock(f->device, NULL, NULL) == 200);
    mica_session *second = open_session(f); /* opens its core after the option */
    mica_session *both[] = {first, second};
    for (uint32_t i = 0; i < 2; i++) {
        assert_true(fake_core_of(f->device, i)->clock_mhz == 200);
        assert_runs(both[i], 0);
        assert_int_equal(mica_session_job(both[i], 0, &job), 0);
        assert_true(job.us == BYTES / 200.0);
        assert_true(job.compute_cycles == BYTES && job.memory_cycles == BYTES / 2 && job.dispatch_us == 3);
        mica_session_destroy(both[i]);
    }
}

/* ---- split ------------------------------------------------------------ */

static void a_split_inference_has_stages_of_several_cores(void **state)
{
    double us;
    struct mica_job_info job;
    struct fixture *f = *state;
    assert_int_equal(mica_device_configure(f->device, "split", "2"), 0);
    compile(f);
    assert_int_equal(mica_executable_split(f->executable), 2);
    mica_session *session = open_session(f);
    assert_int_equal(mica_session_stream_us(session, 0, 1, 1, &us), -EINVAL); /* nothing ran yet */
    assert_runs(session, 7);
    assert_int_equal(fake_core_of(f->device, 0)->submit_count, 2); /* a simulator is the whole chip */
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(mica_session_job(session, i, &job), 0);
        assert_true(job.core == i && job.stage == 0);
    }
    assert_int_equal(mica_session_stream_us(session, 0, 1, 1, &us), 0);
    assert_true(us == BYTES / 100.0 + 3); /* side by side */
    mica_session_destroy(session);
    mica_executable_destroy(f->executable);
    assert_int_equal(mica_device_configure(f->device, "split", "1"), 0);
    compile(f);
    session = open_session(f);
    assert_runs(session, 7);
    assert_int_equal(mica_session_stream_us(session, 0, 1, 1, &us), 0);
    assert_true(us == 2 * (BYTES / 100.0 + 3));
    assert_int_equal(mica_session_stream_us(session, 50, 1, 1, &us), 0);
    assert_true(us == 2 * (BYTES / 50.0 + 3));
    mica_session_destroy(session);
}

static void hardware_takes_no_split_programs(void **state)
{
    struct fixture *f = *state;
    mica_session *session;
    assert_int_equal(mica_device_configure(f->device, "split", "3"), 0);
    compile(f);
    f->device->opened.winsys->simulated = false;
    assert_int_equal(mica_session_create(f->executable, &session), -ENOTSUP);
    assert_error(f, "no kernel interface allows");
    assert_int_equal(mica_device_configure(f->device, "split", "2"), -ENOTSUP);
    assert_error(f, "split is for simulators");
    f->device->opened.winsys->simulated = true;
}

/* ---- streams by the timing model -------------------------------------- */

static double hook(const struct mica_chip *chip, double mhz, const struct mica_job_report *reports, size_t count,
                   uint32_t inferences, uint32_t cores)
{
    assert_true(chip == &fake_chip && count == 2 && reports[1].dispatch_us == 3);
    return cores == 3 ? -1 : mhz * inferences * cores;
}

static void streams_are_what_the_family_says_or_rounds(void **state)
{
    double us = 0;
    struct fixture *f = *state;
    compile(f);
    mica_session *session = open_session(f);
    assert_runs(session, 1);
    double once = 2 * (BYTES / 100.0 + 3);
    assert_int_equal(mica_session_stream_us(session, 0, 7, 3, &us), 0);
    assert_true(us == 3 * once); /* three rounds */
    fake_family.stream_us = hook;
    assert_int_equal(mica_session_stream_us(session, 0, 5, 2, &us), 0);
    assert_true(us == 100.0 * 5 * 2);
    assert_int_equal(mica_session_stream_us(session, 200, 5, 2, &us), 0);
    assert_true(us == 200.0 * 5 * 2);
    assert_int_equal(mica_session_stream_us(session, 0, 5, 3, &us), -ENOMEM);
    assert_int_equal(mica_session_stream_us(session, 0, 0, 1, &us), -EINVAL);
    assert_int_equal(mica_session_stream_us(session, -1, 1, 1, &us), -EINVAL);
    assert_int_equal(mica_session_stream_us(session, 0, 1, 0, &us), -EINVAL);
    assert_int_equal(mica_session_stream_us(session, 0, 1, UINT32_MAX, &us), -EINVAL);
    fake_core_of(f->device, 0)->no_reports = true;
    assert_int_equal(mica_session_invoke(session), 0);
    assert_int_equal(mica_session_stream_us(session, 0, 1, 1, &us), -ENOTSUP);
    mica_session_destroy(session);
}

/* ---- layouts ---------------------------------------------------------- */

static void blocked_tensors_arrive_as_they_left(void **state)
{
    struct fixture *f = *state;
    for (fake_block = 8; fake_block <= 16; fake_block += 8) {
        compile(f);
        mica_session *session = open_session(f);
        for (uint8_t i = 0; i < 3; i++)
            assert_runs(session, i);
        struct mica_tensor_place place;
        assert_true(mica_run_locate(&session->run, 0, false, &place));
        assert_int_equal(place.layout->block, fake_block);
        assert_int_equal(mica_session_bind_input_dmabuf(session, 0, 0, 0), -ENOTSUP);
        assert_error(f, "channels in blocks");
        mica_session_destroy(session);
        mica_executable_destroy(f->executable);
        f->executable = NULL;
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(sessions_are_spread_over_cores),
        TEST(runs_on_different_cores_go_on_at_the_same_time),
        TEST(sessions_run_in_threads_of_their_own),
        TEST(a_core_that_fails_to_open_fails_the_session),
        TEST(a_run_that_fails_says_so_in_its_context),
        TEST(numbers_out_of_range_are_refused),
        TEST(devices_without_a_choice_refuse_options),
        TEST(the_clock_counts_for_every_core),
        TEST(a_split_inference_has_stages_of_several_cores),
        TEST(hardware_takes_no_split_programs),
        TEST(streams_are_what_the_family_says_or_rounds),
        TEST(blocked_tensors_arrive_as_they_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
