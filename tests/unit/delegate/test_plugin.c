/* SPDX-License-Identifier: MIT */
/* The plugin's entry points, partitions, kernels and their errors, on a host and an NPU of our own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "delegate/delegate.h"
#include "fake_npu.h"
#include "models.h"

static char reported[512];

static void keep_report(const char *message)
{
    snprintf(reported, sizeof reported, "%s", message);
}

static int reset(void **state)
{
    fake_npu = (struct fake_npu){.refused_kind = -1};
    reported[0] = '\0';
    return 0;
}

static int check_released(void **state)
{
    assert_int_equal(fake_npu.opened, fake_npu.closed);
    assert_int_equal(fake_npu.buffers, 0);
    return 0;
}

static struct tfl_delegate *create(const char *key, const char *value)
{
    char *keys[] = {(char *)key}, *values[] = {(char *)value};
    return tflite_plugin_create_delegate(keys, values, key ? 1 : 0, keep_report);
}

/* ---- create and destroy ----------------------------------------------- */

static void destroy_accepts_null(void **state)
{
    tflite_plugin_destroy_delegate(NULL);
}

static void create_needs_no_options_and_no_callback(void **state)
{
    struct tfl_delegate *delegate = tflite_plugin_create_delegate(NULL, NULL, 0, NULL);
    assert_non_null(delegate);
    assert_string_equal(fake_npu.device, "auto");
    tflite_plugin_destroy_delegate(delegate);
}

static void a_bad_option_is_reported_to_a_host_that_listens(void **state)
{
    assert_null(create("devise", "auto"));
    assert_non_null(strstr(reported, "devise"));
    assert_non_null(strstr(reported, "device, profile, log_level, threads"));
}

static void a_missing_device_is_reported_to_a_host_that_listens(void **state)
{
    fake_npu.open_error = -ENODEV;
    assert_null(create("device", "sim:none"));
    assert_string_equal(reported, "the test has no device \"sim:none\"");
}

/* TFLite's own wrapper passes no callback and does not look at the result. */
static void a_host_that_does_not_listen_gets_a_delegate_that_fails_later(void **state)
{
    fake_npu.open_error = -ENODEV;
    struct tfl_delegate *delegate = tflite_plugin_create_delegate(NULL, NULL, 0, NULL);
    assert_non_null(delegate);
    struct host *host = model_chain(1);
    assert_int_equal(host_delegate(host, delegate), TFL_ERROR);
    assert_string_equal(host->error, "Mica: the test has no device \"auto\"");
    assert_int_equal(host_kernel_count(host), 0);
    host_destroy(host);
    tflite_plugin_destroy_delegate(delegate);
}

/* ---- partitions ------------------------------------------------------- */

static void fill_input(struct host *host, uint8_t first)
{
    struct tfl_tensor *tensor = &host->context.tensors[0];
    for (size_t i = 0; i < tensor->bytes; i++)
        ((uint8_t *)tensor->data)[i] = (uint8_t)(first + i);
}

/* Each link of the chain doubles and adds 1. */
static void expect_chain(const struct host *host, int links, uint8_t first)
{
    const struct tfl_tensor *tensor = &host->context.tensors[links];
    for (size_t i = 0; i < tensor->bytes; i++) {
        uint8_t value = (uint8_t)(first + i);
        for (int k = 0; k < links; k++)
            value = (uint8_t)(2 * value + 1);
        assert_int_equal(((const uint8_t *)tensor->data)[i], value);
    }
}

static void a_chain_becomes_one_partition(void **state)
{
    struct tfl_delegate *delegate = create(NULL, NULL);
    struct host *host = model_chain(3);
    assert_int_equal(host_delegate(host, delegate), TFL_OK);
    assert_int_equal(host_kernel_count(host), 1);
    assert_true(host_allocate(host));
    for (uint8_t run = 0; run < 3; run++) {
        fill_input(host, run);
        assert_int_equal(host_invoke(host), TFL_OK);
        expect_chain(host, 3, run);
    }
    assert_int_equal(fake_npu.submits, 3);
    host_destroy(host);
    tflite_plugin_destroy_delegate(delegate);
}

static int run_link(void *user, struct host *host, int node)
{
    const struct tfl_tensor *in = &host->context.tensors[node], *out = &host->context.tensors[node + 1];
    for (size_t i = 0; i < in->bytes; i++)
        ((uint8_t *)out->data)[i] = (uint8_t)(2 * ((const uint8_t *)in->data)[i] + 1);
    return 0;
}

static void an_operation_in_between_makes_two_partitions(void **state)
{
    struct tfl_delegate *delegate = create(NULL, NULL);
    struct host *host = model_chain(5);
    host->registrations[2].builtin_code = 28; /* TANH */
    host->cpu = run_link;
    assert_int_equal(host_delegate(host, delegate), TFL_OK);
    assert_int_equal(host_kernel_count(host), 2);
    assert_true(host_allocate(host));
    fill_input(host, 9);
    assert_int_equal(host_invoke(host), TFL_OK);
    expect_chain(host, 5, 9);
    host_destroy(host);
    tflite_plugin_destroy_delegate(delegate);
}

/* The host wants tensor 1 too, though nothing outside the partition reads it. */
static void inner_tensors_that_the_host_wants_come_out(void **state)
{
    const int outputs[] = {1, 3};
    struct tfl_delegate *delegate = create(NULL, NULL);
    struct host *host = model_chain(3);
    host_set_outputs(host, 2, outputs);
    assert_int_equal(host_delegate(host, delegate), TFL_OK);
    assert_true(host_allocate(host));
    fill_input(host, 50);
    assert_int_equal(host_invoke(host), TFL_OK);
    expect_chain(host, 1, 50);
    expect_chain(host, 3, 50);
    host_destroy(host);
    tflite_plugin_destroy_delegate(delegate);
}

static void nodes_of_another_delegate_stay_its_own(void **state)
{
    struct tfl_delegate *first = create(NULL, NULL), *second = create(NULL, NULL);
    struct host *host = model_chain(5);
    fake_npu.refused_kind = MICA_OP_ADD;
    assert_int_equal(host_delegate(host, first), TFL_OK);
    assert_int_equal(host_kernel_count(host), 0);
    fake_npu.refused_kind = -1;
    host->registrations[2].builtin_code = 28;
    assert_int_equal(host_delegate(host, first), TFL_OK);
    assert_int_equal(host_kernel_count(host), 2);
    host->registrations[2].builtin_code = TFL_BUILTIN_ADD;
    assert_int_equal(host_delegate(host, second), TFL_OK);
    assert_int_equal(host_kernel_count(host), 3);
    assert_true(host_allocate(host));
    fill_input(host, 77);
    assert_int_equal(host_invoke(host), TFL_OK);
    expect_chain(host, 5, 77);
    host_destroy(host);
    tflite_plugin_destroy_delegate(first);
    tflite_plugin_destroy_delegate(second);
}

static void device_cpu_takes_nothing(void **state)
{
    struct tfl_delegate *delegate = create("device", "cpu");
    struct host *host = model_chain(2);
    assert_int_equal(host_delegate(host, delegate), TFL_OK);
    assert_int_equal(host_kernel_count(host), 0);
    host_destroy(host);
    tflite_plugin_destroy_delegate(delegate);
}

static void a_conv_is_taken_and_its_constants_stay_outside(void **state)
{
    struct tfl_delegate *delegate = create(NULL, NULL);
    struct host *host = model_conv();
    assert_int_equal(host_delegate(host, delegate), TFL_OK);
    assert_int_equal(host_kernel_count(host), 1);
    assert_string_equal(host->registrations[1].custom_name, "MicaDelegate");
    assert_true(host_allocate(host));
    memset(host->context.tensors[CONV_INPUT].data, 41, host->context.tensors[CONV_INPUT].bytes);
    assert_int_equal(host_invoke(host), TFL_OK);
    assert_int_equal(*(int8_t *)host->context.tensors[CONV_OUTPUT].data, 42);
    host_destroy(host);
    tflite_plugin_destroy_delegate(delegate);
}

/* ---- kernels ---------------------------------------------------------- */

static void prepare_may_run_three_times(void **state)
{
    struct tfl_delegate *delegate = create(NULL, NULL);
    struct host *host = model_chain(3);
    host->prepares = 3;
    assert_int_equal(host_delegate(host, delegate), TFL_OK);
    int buffers = fake_npu.buffers;
    assert_true(host_allocate(host));
    fill_input(host, 1);
    assert_int_equal(host_invoke(host), TFL_OK);
    expect_chain(host, 3, 1);
    assert_int_equal(fake_npu.buffers, buffers);
    host_destroy(host);
    tflite_plugin_destroy_delegate(delegate);
}

static void a_failing_compilation_fails_prepare(void **state)
{
    struct tfl_delegate *delegate = create(NULL, NULL);
    struct host *host = model_chain(3);
    fake_npu.compile_error = -ENOSPC;
    assert_int_equal(host_delegate(host, delegate), TFL_ERROR);
    assert_string_equal(host->error, "Mica: the test lets compilation fail");
    host_destroy(host);
    tflite_plugin_destroy_delegate(delegate);
}

static void a_failing_device_fails_the_invocation(void **state)
{
    struct tfl_delegate *delegate = create(NULL, NULL);
    struct host *host = model_chain(3);
    assert_int_equal(host_delegate(host, delegate), TFL_OK);
    assert_true(host_allocate(host));
    fake_npu.submit_error = -EIO;
    assert_int_equal(host_invoke(host), TFL_ERROR);
    fake_npu.submit_error = 0;
    assert_int_equal(host_invoke(host), TFL_OK);
    host_destroy(host);
    tflite_plugin_destroy_delegate(delegate);
}

static void a_tensor_that_changed_its_size_fails_the_invocation(void **state)
{
    struct tfl_delegate *delegate = create(NULL, NULL);
    struct host *host = model_chain(1);
    assert_int_equal(host_delegate(host, delegate), TFL_OK);
    assert_true(host_allocate(host));
    host->context.tensors[0].bytes--;
    assert_int_equal(host_invoke(host), TFL_ERROR);
    assert_non_null(strstr(host->error, "changed its size"));
    host->context.tensors[0].bytes++;
    assert_int_equal(host_invoke(host), TFL_OK);
    host_destroy(host);
    tflite_plugin_destroy_delegate(delegate);
}

static void a_tensor_without_memory_fails_the_invocation(void **state)
{
    struct tfl_delegate *delegate = create(NULL, NULL);
    struct host *host = model_chain(1);
    assert_int_equal(host_delegate(host, delegate), TFL_OK);
    assert_int_equal(host_invoke(host), TFL_ERROR);
    assert_non_null(strstr(host->error, "no memory"));
    host_destroy(host);
    tflite_plugin_destroy_delegate(delegate);
}

static void failing_host_functions_fail_prepare(void **state)
{
    struct tfl_delegate *delegate = create(NULL, NULL);
    struct host *host = model_chain(2);
    host->fail_plan = true;
    assert_int_equal(host_delegate(host, delegate), TFL_ERROR);
    assert_non_null(strstr(host->error, "no execution plan"));
    host->fail_plan = false;
    host->fail_nodes = true;
    assert_int_equal(host_delegate(host, delegate), TFL_ERROR);
    assert_non_null(strstr(host->error, "no node 0"));
    host->fail_nodes = false;
    host->fail_replace = true;
    assert_int_equal(host_delegate(host, delegate), TFL_ERROR);
    host->fail_replace = false;
    assert_int_equal(host_delegate(host, delegate), TFL_OK);
    host_destroy(host);
    tflite_plugin_destroy_delegate(delegate);
}

static void the_delegate_may_be_destroyed_before_the_interpreter(void **state)
{
    struct tfl_delegate *delegate = create(NULL, NULL);
    struct host *host = model_chain(3);
    assert_int_equal(host_delegate(host, delegate), TFL_OK);
    assert_true(host_allocate(host));
    tflite_plugin_destroy_delegate(delegate);
    assert_int_equal(fake_npu.closed, 0);
    fill_input(host, 5);
    assert_int_equal(host_invoke(host), TFL_OK);
    expect_chain(host, 3, 5);
    host_destroy(host);
    assert_int_equal(fake_npu.closed, 1);
}

/* ---- threads ---------------------------------------------------------- */

static void *use_interpreter(void *delegate)
{
    for (int round = 0; round < 20; round++) {
        struct host *host = model_chain(3);
        if (host_delegate(host, delegate) != TFL_OK || !host_allocate(host))
            return host;
        for (uint8_t run = 0; run < 10; run++) {
            fill_input(host, run);
            if (host_invoke(host) != TFL_OK || *(uint8_t *)host->context.tensors[3].data != (uint8_t)(8 * run + 7))
                return host;
        }
        host_destroy(host);
    }
    return NULL;
}

static void interpreters_in_threads_share_a_delegate(void **state)
{
    struct tfl_delegate *delegate = create("profile", "0");
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_interpreter, delegate), 0);
    for (int i = 0; i < 4; i++) {
        void *failed;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    tflite_plugin_destroy_delegate(delegate);
}

#define CASE(function) cmocka_unit_test_setup_teardown(function, reset, check_released)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(destroy_accepts_null),
        CASE(create_needs_no_options_and_no_callback),
        CASE(a_bad_option_is_reported_to_a_host_that_listens),
        CASE(a_missing_device_is_reported_to_a_host_that_listens),
        CASE(a_host_that_does_not_listen_gets_a_delegate_that_fails_later),
        CASE(a_chain_becomes_one_partition),
        CASE(an_operation_in_between_makes_two_partitions),
        CASE(inner_tensors_that_the_host_wants_come_out),
        CASE(nodes_of_another_delegate_stay_its_own),
        CASE(device_cpu_takes_nothing),
        CASE(a_conv_is_taken_and_its_constants_stay_outside),
        CASE(prepare_may_run_three_times),
        CASE(a_failing_compilation_fails_prepare),
        CASE(a_failing_device_fails_the_invocation),
        CASE(a_tensor_that_changed_its_size_fails_the_invocation),
        CASE(a_tensor_without_memory_fails_the_invocation),
        CASE(failing_host_functions_fail_prepare),
        CASE(the_delegate_may_be_destroyed_before_the_interpreter),
        CASE(interpreters_in_threads_share_a_delegate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
