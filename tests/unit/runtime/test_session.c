/* SPDX-License-Identifier: MIT */
/* The API from contexts to sessions, on a graph made by hand and the fake device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake.h"

struct fixture {
    mica_context *context;
    mica_device *device;
    mica_model model; /* around a graph that came from no file */
    mica_executable *executable;
    mica_session *session;
};

static int32_t add_tensor(struct mica_graph *graph, const char *name)
{
    static const float scale = 1.0f / 256;
    static const int32_t zero_point = -128;
    int32_t index = (int32_t)graph->tensor_count;
    assert_int_equal(
        mica_graph_add_tensor(
            graph,
            &(struct mica_tensor){
                .name = name, .type = MICA_TYPE_INT8, .rank = 2, .dims = {1, 8}, .quant = {1, &scale, &zero_point, 0}},
            NULL),
        0);
    return index;
}

static void add_op(struct mica_graph *graph, enum mica_op_kind kind, const char *type, int32_t from, int32_t to)
{
    struct mica_op op = {
        .kind = kind, .type = type, .input_count = 1, .output_count = 1, .inputs = &from, .outputs = &to};
    if (kind == MICA_OP_SOFTMAX)
        op.beta = 1.0f;
    assert_int_equal(mica_graph_add_op(graph, &op, NULL), 0);
}

/* a -> RESHAPE -> b -> SOFTMAX -> c -> RESHAPE -> d -> RESHAPE -> e; outputs c and e. */
static struct mica_graph *make_graph(void)
{
    struct mica_graph *graph;
    assert_int_equal(mica_graph_create(NULL, &graph), 0);
    int32_t t[5];
    for (int i = 0; i < 5; i++)
        t[i] = add_tensor(graph, (char[]){(char)('a' + i), 0});
    add_op(graph, MICA_OP_RESHAPE, "RESHAPE", t[0], t[1]);
    add_op(graph, MICA_OP_SOFTMAX, "SOFTMAX", t[1], t[2]);
    add_op(graph, MICA_OP_RESHAPE, "RESHAPE", t[2], t[3]);
    add_op(graph, MICA_OP_RESHAPE, "RESHAPE", t[3], t[4]);
    assert_int_equal(mica_graph_set_io(graph, t, 1, (int32_t[]){t[2], t[4]}, 2, NULL), 0);
    return graph;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_int_equal(mica_context_create(&f->context), 0);
    assert_int_equal(mica_context_set_threads(f->context, 1), 0);
    f->device = fake_device_open(f->context);
    f->model = (mica_model){.context = f->context, .graph = make_graph()};
    assert_int_equal(mica_executable_compile(&f->model, f->device, &f->executable), 0);
    assert_int_equal(mica_session_create(f->executable, &f->session), 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    mica_session_destroy(f->session);
    mica_executable_destroy(f->executable);
    mica_graph_destroy(f->model.graph);
    mica_device_close(f->device);
    mica_context_destroy(f->context);
    free(f);
    return 0;
}

static const int8_t zeros[8] = {0};

/* Softmax of equal values: 1/8 = 32/256 each. */
static void assert_outputs(mica_session *session)
{
    int8_t output[8];
    for (size_t i = 0; i < 2; i++) {
        memset(output, 0, sizeof output);
        assert_int_equal(mica_session_get_output(session, i, output, sizeof output), 0);
        for (int k = 0; k < 8; k++)
            assert_int_equal(output[k], 32 - 128);
    }
}

static void a_session_runs_npu_and_cpu_steps(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(mica_executable_partition_count(f->executable), 2);
    assert_int_equal(mica_executable_npu_operation_count(f->executable), 3);
    assert_int_equal(mica_session_set_input(f->session, 0, zeros, 8), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(mica_session_invoke(f->session), 0);
        assert_outputs(f->session);
    }
}

static void jobs_are_listed_in_order(void **state)
{
    struct fixture *f = *state;
    static const char *const units[] = {"NN", "CPU", "NN", "NN"};
    struct mica_job_info job;
    assert_int_equal(mica_session_job_count(f->session), 0);
    assert_int_equal(mica_session_job(f->session, 0, &job), -EINVAL);
    assert_int_equal(mica_session_invoke(f->session), 0);
    assert_int_equal(mica_session_invoke(f->session), 0);
    assert_int_equal(mica_session_job_count(f->session), 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(mica_session_job(f->session, i, &job), 0);
        assert_string_equal(job.unit, units[i]);
        assert_int_equal(job.operation, i);
        assert_int_equal(job.estimate, i != 1);
        assert_int_equal(job.cycles, i != 1 ? 8 : 0);
        if (i != 1)
            assert_true(job.us > 0.0799 && job.us < 0.0801); /* 8 cycles at 100 MHz */
    }
    assert_int_equal(mica_session_job(f->session, 4, &job), -EINVAL);
}

static void a_device_without_reports_still_has_rows(void **state)
{
    struct fixture *f = *state;
    struct mica_job_info job;
    fake_winsys_of(f->device)->no_reports = true;
    assert_int_equal(mica_session_invoke(f->session), 0);
    assert_int_equal(mica_session_job_count(f->session), 4);
    assert_int_equal(mica_session_job(f->session, 3, &job), 0);
    assert_int_equal(job.cycles, 0);
    assert_int_equal(job.macs, 7);
}

static void background_runs_are_waited_for(void **state)
{
    struct fixture *f = *state;
    pthread_mutex_t *gate = &fake_winsys_of(f->device)->gate;
    int8_t output[8];
    assert_int_equal(mica_session_wait(f->session, -1), -EINVAL); /* nothing runs */
    for (int round = 0; round < 3; round++) {
        pthread_mutex_lock(gate);
        assert_int_equal(mica_session_invoke_async(f->session), 0);
        assert_int_equal(mica_session_wait(f->session, 0), -ETIMEDOUT);
        assert_int_equal(mica_session_wait(f->session, 20), -ETIMEDOUT);
        assert_int_equal(mica_session_invoke_async(f->session), -EBUSY);
        assert_int_equal(mica_session_invoke(f->session), -EBUSY);
        assert_int_equal(mica_session_set_input(f->session, 0, zeros, 8), -EBUSY);
        assert_int_equal(mica_session_get_output(f->session, 0, output, 8), -EBUSY);
        assert_int_equal(mica_session_capture(f->session, "/nowhere"), -EBUSY);
        assert_int_equal(mica_session_job_count(f->session), 0);
        pthread_mutex_unlock(gate);
        assert_int_equal(mica_session_wait(f->session, -1), 0);
        assert_int_equal(mica_session_wait(f->session, 0), 0); /* the result stays */
    }
    assert_int_equal(mica_session_set_input(f->session, 0, zeros, 8), 0);
    assert_int_equal(mica_session_invoke_async(f->session), 0);
    assert_int_equal(mica_session_wait(f->session, 60000), 0);
    assert_outputs(f->session);
    assert_int_equal(mica_session_job_count(f->session), 4);
}

static void *wait_forever(void *session)
{
    return (void *)(intptr_t)mica_session_wait(session, -1);
}

static void any_thread_may_wait(void **state)
{
    struct fixture *f = *state;
    pthread_mutex_t *gate = &fake_winsys_of(f->device)->gate;
    pthread_t threads[3];
    void *result;
    pthread_mutex_lock(gate);
    assert_int_equal(mica_session_invoke_async(f->session), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, wait_forever, f->session), 0);
    pthread_mutex_unlock(gate);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], &result);
        assert_int_equal((intptr_t)result, 0);
    }
}

static void destroying_waits_for_a_run(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(mica_session_invoke_async(f->session), 0);
    mica_session_destroy(f->session);
    f->session = NULL;
    assert_int_equal(fake_winsys_of(f->device)->submit_count, 3);
}

static void failed_runs_tell_why_and_leave_no_results(void **state)
{
    struct fixture *f = *state;
    int8_t output[8];
    assert_int_equal(mica_session_get_output(f->session, 0, output, 8), -EINVAL);
    fake_winsys_of(f->device)->wait_result = -ETIMEDOUT;
    assert_int_equal(mica_session_invoke(f->session), -ETIMEDOUT);
    assert_int_equal(mica_session_get_output(f->session, 0, output, 8), -EINVAL);
    assert_non_null(strstr(mica_last_error(f->context), "failed"));
    assert_int_equal(mica_session_job_count(f->session), 0);
    assert_int_equal(mica_session_invoke_async(f->session), 0);
    assert_int_equal(mica_session_wait(f->session, -1), -ETIMEDOUT);
    fake_winsys_of(f->device)->wait_result = 0;
    assert_int_equal(mica_session_invoke(f->session), 0);
    assert_int_equal(mica_session_get_output(f->session, 0, output, 8), 0);
}

static void sessions_of_one_executable_are_independent(void **state)
{
    struct fixture *f = *state;
    static const int8_t peak[8] = {127, -128, -128, -128, -128, -128, -128, -128};
    mica_session *other;
    int8_t output[8];
    assert_int_equal(mica_session_create(f->executable, &other), 0);
    assert_int_equal(mica_session_set_input(f->session, 0, zeros, 8), 0);
    assert_int_equal(mica_session_set_input(other, 0, peak, 8), 0);
    pthread_mutex_t *gate = &fake_winsys_of(f->device)->gate;
    pthread_mutex_lock(gate);
    assert_int_equal(mica_session_invoke_async(other), 0);
    assert_int_equal(mica_session_invoke_async(f->session), 0);
    pthread_mutex_unlock(gate);
    assert_int_equal(mica_session_wait(f->session, -1), 0);
    assert_int_equal(mica_session_wait(other, -1), 0);
    assert_outputs(f->session);
    assert_int_equal(mica_session_get_output(other, 1, output, 8), 0);
    assert_true(output[0] > output[1] + 20);
    mica_session_destroy(other);
}

static void executables_that_nothing_can_run_are_refused(void **state)
{
    struct fixture *f = *state;
    mica_executable *executable = NULL;
    char reason[128];
    f->model.graph->ops[1].problem = "for this test";
    assert_int_equal(mica_executable_compile(&f->model, f->device, &executable), -ENOTSUP);
    assert_non_null(strstr(mica_last_error(f->context), "SOFTMAX"));
    assert_non_null(strstr(mica_last_error(f->context), "for this test"));
    assert_int_equal(mica_model_placement(&f->model, f->device, 1, reason, sizeof reason), -ENOTSUP);
    assert_string_equal(reason, "for this test");
    f->model.graph->ops[1].problem = NULL;
    assert_int_equal(mica_model_placement(&f->model, f->device, 1, reason, sizeof reason), 0);
    assert_string_equal(reason, "SOFTMAX is no RESHAPE");
    assert_int_equal(mica_model_placement(&f->model, f->device, 2, reason, sizeof reason), 1);
    /* A value that nobody makes. */
    ((int32_t *)f->model.graph->ops[1].inputs)[0] = 3;
    assert_int_equal(mica_executable_compile(&f->model, f->device, &executable), -EINVAL);
    assert_null(executable);
}

static int describe(const struct mica_chip *chip, const struct mica_graph *graph, uint32_t op,
                    const struct mica_compile_options *options, struct mica_way *way)
{
    assert_true(way->us < 0 && !way->jobs);
    way->jobs = options->fold_scales ? 1 : 3;
    way->us = 12.5;
    return op == 2 ? 0 : -ENOMEM;
}

static void ways_come_from_the_family_or_its_table(void **state)
{
    struct fixture *f = *state;
    struct mica_way way;
    assert_int_equal(mica_model_way(&f->model, f->device, 2, &way), 0);
    assert_true(way.us < 0 && way.jobs == 0 && way.text[0]);
    assert_int_equal(mica_model_way(&f->model, f->device, 1, &way), -ENOTSUP);
    assert_string_equal(mica_last_error(f->context), "SOFTMAX is no RESHAPE");
    fake_family.describe = describe;
    assert_int_equal(mica_model_way(&f->model, f->device, 2, &way), 0);
    assert_true(way.jobs == 3 && way.us > 12 && way.us < 13);
    assert_int_equal(mica_device_configure(f->device, "per-channel", "folded"), 0);
    assert_int_equal(mica_model_way(&f->model, f->device, 2, &way), 0);
    assert_int_equal(way.jobs, 1);
    assert_int_equal(mica_model_way(&f->model, f->device, 0, &way), -ENOMEM);
    fake_family.describe = NULL;
    assert_int_equal(mica_model_way(&f->model, f->device, 9, &way), -EINVAL);
    assert_int_equal(mica_model_way(&f->model, f->device, 2, NULL), -EINVAL);
}

static void tensors_without_an_end_are_refused(void **state)
{
    struct fixture *f = *state;
    mica_session *session;
    size_t bytes = f->model.graph->tensors[1].bytes;
    for (int i = 0; i < 5; i++)
        f->model.graph->tensors[i].bytes = ((size_t)1 << 28) + 1;
    assert_int_equal(mica_session_create(f->executable, &session), -EFBIG);
    for (int i = 0; i < 5; i++)
        f->model.graph->tensors[i].bytes = bytes;
}

/* Of the fixture's graph: a is the NPU's alone, c the CPU's too, e is written on the NPU and read by nobody. */
static void tensors_of_the_npu_alone_are_in_place(void **state)
{
    struct fixture *f = *state;
    void *a, *c, *e;
    uint8_t copied[8];
    assert_int_equal(mica_session_map_input(f->session, 0, &a), 0);
    assert_int_equal(mica_session_map_output(f->session, 0, &c), 0);
    assert_int_equal(mica_session_map_output(f->session, 1, &e), 0);
    assert_ptr_equal(a, mica_instance_map(f->session->run.steps[0].instance, false, 0));
    assert_ptr_equal(e, mica_instance_map(f->session->run.steps[2].instance, true, 0));
    assert_ptr_not_equal(c, mica_instance_map(f->session->run.steps[2].instance, false, 0));
    memset(a, 5, 8);
    assert_int_equal(mica_session_invoke(f->session), 0);
    assert_outputs(f->session);
    assert_memory_equal(c, e, 8);
    assert_int_equal(mica_session_get_output(f->session, 1, copied, 8), 0);
    assert_memory_equal(copied, e, 8);
    assert_int_equal(mica_session_bind_input_dmabuf(f->session, 0, 0, 0), -ENOTSUP); /* the fake can't import */
    assert_int_equal(mica_session_bind_output_dmabuf(f->session, 0, 0, 0), -ENOTSUP);
    assert_non_null(strstr(mica_last_error(f->context), "on the CPU"));
}

static void memory_changes_hands_between_runs_only(void **state)
{
    struct fixture *f = *state;
    struct fake_winsys *fake = fake_winsys_of(f->device);
    void *data;
    pthread_mutex_lock(&fake->gate);
    assert_int_equal(mica_session_invoke_async(f->session), 0);
    assert_int_equal(mica_session_map_input(f->session, 0, &data), -EBUSY);
    assert_int_equal(mica_session_map_output(f->session, 0, &data), -EBUSY);
    assert_int_equal(mica_session_bind_input_dmabuf(f->session, 0, -1, 0), -EBUSY);
    assert_int_equal(mica_session_bind_output_dmabuf(f->session, 1, -1, 0), -EBUSY);
    pthread_mutex_unlock(&fake->gate);
    assert_int_equal(mica_session_wait(f->session, -1), 0);
    assert_int_equal(mica_session_bind_input_dmabuf(f->session, 0, -1, 0), 0);
}

static void wrong_sizes_are_refused(void **state)
{
    struct fixture *f = *state;
    int8_t data[16] = {0};
    assert_int_equal(mica_session_set_input(f->session, 0, data, 7), -EINVAL);
    assert_int_equal(mica_session_set_input(f->session, 0, data, 9), -EINVAL);
    assert_int_equal(mica_session_set_input(f->session, 1, data, 8), -EINVAL);
    assert_int_equal(mica_session_invoke(f->session), 0);
    assert_int_equal(mica_session_get_output(f->session, 0, data, 9), -EINVAL);
    assert_non_null(strstr(mica_last_error(f->context), "\"c\""));
    assert_int_equal(mica_session_get_output(f->session, 2, data, 8), -EINVAL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_session_runs_npu_and_cpu_steps),
        TEST(jobs_are_listed_in_order),
        TEST(a_device_without_reports_still_has_rows),
        TEST(background_runs_are_waited_for),
        TEST(any_thread_may_wait),
        TEST(destroying_waits_for_a_run),
        TEST(failed_runs_tell_why_and_leave_no_results),
        TEST(sessions_of_one_executable_are_independent),
        TEST(executables_that_nothing_can_run_are_refused),
        TEST(ways_come_from_the_family_or_its_table),
        TEST(tensors_without_an_end_are_refused),
        TEST(tensors_of_the_npu_alone_are_in_place),
        TEST(memory_changes_hands_between_runs_only),
        TEST(wrong_sizes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
