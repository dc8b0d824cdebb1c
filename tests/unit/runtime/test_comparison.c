/* SPDX-License-Identifier: MIT */
/* Comparisons of a device with the reference, on a graph made by hand and a fake device that can be made to err. */
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
    mica_comparison *comparison;
};

enum { A, B, C, D, E }; /* tensors */

static const int8_t input[8] = {-120, -90, -60, -30, 10, 40, 80, 120};

static void add_tensor(struct mica_graph *graph, const char *name)
{
    static const float scale = 1.0f / 256;
    static const int32_t zero_point = -128;
    struct mica_tensor tensor = {
        .name = name, .type = MICA_TYPE_INT8, .rank = 2, .dims = {1, 8}, .quant = {1, &scale, &zero_point, 0}};
    assert_int_equal(mica_graph_add_tensor(graph, &tensor, NULL), 0);
}

static void add_op(struct mica_graph *graph, enum mica_op_kind kind, const char *type, int32_t from, int32_t to)
{
    struct mica_op op = {
        .kind = kind, .type = type, .input_count = 1, .output_count = 1, .inputs = &from, .outputs = &to};
    if (kind == MICA_OP_SOFTMAX)
        op.beta = 1.0f;
    assert_int_equal(mica_graph_add_op(graph, &op, NULL), 0);
}

/* A -> RESHAPE -> B -> RESHAPE -> C -> SOFTMAX -> D -> RESHAPE -> E, which comes out. */
static struct mica_graph *make_graph(void)
{
    struct mica_graph *graph;
    assert_int_equal(mica_graph_create(NULL, &graph), 0);
    for (int i = 0; i < 5; i++)
        add_tensor(graph, (char[]){(char)('a' + i), 0});
    add_op(graph, MICA_OP_RESHAPE, "RESHAPE", A, B);
    add_op(graph, MICA_OP_RESHAPE, "RESHAPE", B, C);
    add_op(graph, MICA_OP_SOFTMAX, "SOFTMAX", C, D);
    add_op(graph, MICA_OP_RESHAPE, "RESHAPE", D, E);
    assert_int_equal(mica_graph_set_io(graph, (int32_t[]){A}, 1, (int32_t[]){E}, 1, NULL), 0);
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
    assert_int_equal(mica_comparison_create(f->executable, &f->comparison), 0);
    assert_int_equal(mica_comparison_set_input(f->comparison, 0, input, 8), 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    mica_comparison_destroy(f->comparison);
    mica_executable_destroy(f->executable);
    mica_graph_destroy(f->model.graph);
    mica_device_close(f->device);
    mica_context_destroy(f->context);
    free(f);
    return 0;
}

/* ---- a compiler that errs --------------------------------------------- */

static int (*right_compile)(const struct mica_chip *, const struct mica_partition *,
                            const struct mica_compile_options *, struct mica_threads *, struct mica_log *,
                            struct mica_program **);

/* What it compiles copies half of each tensor. */
static int half_compile(const struct mica_chip *chip, const struct mica_partition *partition,
                        const struct mica_compile_options *options, struct mica_threads *threads, struct mica_log *log,
                        struct mica_program **program)
{
    int error = right_compile(chip, partition, options, threads, log, program);
    for (uint32_t i = 0; !error && i < (*program)->submit_count; i++)
        ((uint32_t *)(uintptr_t)(*program)->submits[i].stream)[2] = 4;
    return error;
}

static int setup_half(void **state)
{
    right_compile = fake_family.compile;
    fake_family.compile = half_compile;
    return setup(state);
}

static int teardown_half(void **state)
{
    fake_family.compile = right_compile;
    return teardown(state);
}

/* ---- tests ------------------------------------------------------------ */

static void assert_values(const void *got, const int8_t *wanted)
{
    assert_non_null(got);
    assert_memory_equal(got, wanted, 8);
}

static void operations_know_their_partition(void **state)
{
    struct fixture *f = *state;
    const int partitions[] = {0, 0, -1, 1, -1};
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(mica_executable_partition_of(f->executable, i), partitions[i]);
    assert_int_equal(mica_executable_partition_of(NULL, 0), -1);
}

static void models_list_tensors_and_what_makes_them(void **state)
{
    struct fixture *f = *state;
    struct mica_tensor_info tensor;
    struct mica_operation_info operation;
    assert_int_equal(mica_model_tensor_count(&f->model), 5);
    assert_int_equal(mica_model_tensor(&f->model, D, &tensor), 0);
    assert_string_equal(tensor.name, "d");
    assert_int_equal(mica_model_tensor(&f->model, 5, &tensor), -EINVAL);
    assert_int_equal(mica_model_operation(&f->model, 2, &operation), 0);
    assert_int_equal(operation.output_count, 1);
    assert_int_equal(operation.outputs[0], D);
}

static void the_reference_has_every_value(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < 5; i++)
        assert_null(mica_comparison_reference(f->comparison, i));
    assert_int_equal(mica_comparison_run_reference(f->comparison), 0);
    for (size_t i = A; i <= C; i++)
        assert_values(mica_comparison_reference(f->comparison, i), input);
    const int8_t *soft = mica_comparison_reference(f->comparison, D);
    assert_true(soft[0] > -128 && soft[7] > soft[0]);
    assert_values(mica_comparison_reference(f->comparison, E), soft);
    for (size_t i = 0; i < 6; i++)
        assert_null(mica_comparison_device(f->comparison, i));
}

static void runs_come_after_the_reference(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(mica_comparison_run_alone(f->comparison, 0), -EINVAL);
    assert_int_equal(mica_comparison_run_chained(f->comparison, true), -EINVAL);
    assert_non_null(strstr(mica_last_error(f->context), "mica_comparison_run_reference()"));
    assert_int_equal(mica_comparison_run_reference(f->comparison), 0);
    assert_int_equal(mica_comparison_run_chained(f->comparison, true), 0);
    assert_int_equal(mica_comparison_set_input(f->comparison, 0, input, 8), 0);
    assert_null(mica_comparison_reference(f->comparison, A));
    assert_int_equal(mica_comparison_run_chained(f->comparison, true), -EINVAL);
}

static void alone_an_operation_reads_the_references_values(void **state)
{
    struct fixture *f = *state;
    int8_t half[8] = {0};
    assert_int_equal(mica_comparison_run_reference(f->comparison), 0);
    assert_int_equal(mica_comparison_run_alone(f->comparison, 1), 0); /* B was never on the device */
    memcpy(half, input, 4);
    assert_values(mica_comparison_device(f->comparison, C), half);
    assert_null(mica_comparison_device(f->comparison, B));
    assert_int_equal(mica_comparison_run_alone(f->comparison, 3), 0);
    memcpy(half, mica_comparison_reference(f->comparison, D), 4);
    assert_values(mica_comparison_device(f->comparison, E), half);
    assert_null(mica_comparison_device(f->comparison, C));                  /* of the last run only */
    assert_int_equal(mica_comparison_run_alone(f->comparison, 2), -EINVAL); /* the CPU's */
    assert_int_equal(mica_comparison_run_alone(f->comparison, 4), -EINVAL);
}

static void chained_an_operation_reads_what_came_before(void **state)
{
    struct fixture *f = *state;
    int8_t half[8] = {0};
    memcpy(half, input, 4);
    assert_int_equal(mica_comparison_run_reference(f->comparison), 0);
    for (int every = 0; every < 2; every++) {
        assert_int_equal(mica_comparison_run_chained(f->comparison, every), 0);
        assert_values(mica_comparison_device(f->comparison, C), half);
        const int8_t *got = mica_comparison_device(f->comparison, D);
        assert_memory_not_equal(got, mica_comparison_reference(f->comparison, D), 8);
        assert_int_equal(got[4], got[7]); /* the softmax of what is missing */
        if (every)
            assert_values(mica_comparison_device(f->comparison, B), half);
        else
            assert_null(mica_comparison_device(f->comparison, B)); /* inside the first partition */
        assert_values(mica_comparison_reference(f->comparison, B), input);
    }
}

static void a_right_device_has_the_references_values(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(mica_comparison_run_reference(f->comparison), 0);
    assert_int_equal(mica_comparison_run_chained(f->comparison, true), 0);
    for (size_t i = B; i <= E; i++)
        assert_values(mica_comparison_device(f->comparison, i), mica_comparison_reference(f->comparison, i));
}

static void errors_of_the_device_come_through(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(mica_comparison_run_reference(f->comparison), 0);
    fake_winsys_of(f->device)->submit_result = -EIO;
    assert_int_equal(mica_comparison_run_alone(f->comparison, 0), -EIO);
    assert_int_equal(mica_comparison_run_chained(f->comparison, false), -EIO);
    assert_null(mica_comparison_device(f->comparison, C));
    fake_winsys_of(f->device)->submit_result = 0;
    assert_int_equal(mica_comparison_run_chained(f->comparison, false), 0);
    assert_int_equal(fake_winsys_of(f->device)->misuses, 0);
}

static void arguments_are_checked(void **state)
{
    struct fixture *f = *state;
    mica_comparison *comparison;
    assert_int_equal(mica_comparison_create(NULL, &comparison), -EINVAL);
    assert_int_equal(mica_comparison_create(f->executable, NULL), -EINVAL);
    assert_int_equal(mica_comparison_set_input(NULL, 0, input, 8), -EINVAL);
    assert_int_equal(mica_comparison_set_input(f->comparison, 1, input, 8), -EINVAL);
    assert_int_equal(mica_comparison_set_input(f->comparison, 0, input, 7), -EINVAL);
    assert_int_equal(mica_comparison_set_input(f->comparison, 0, NULL, 8), -EINVAL);
    assert_int_equal(mica_comparison_run_reference(NULL), -EINVAL);
    assert_int_equal(mica_comparison_run_alone(NULL, 0), -EINVAL);
    assert_int_equal(mica_comparison_run_chained(NULL, true), -EINVAL);
    assert_null(mica_comparison_reference(NULL, 0));
    assert_null(mica_comparison_device(NULL, 0));
    mica_comparison_destroy(NULL);
}

int main(void)
{
#define GOOD(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
#define HALF(test) cmocka_unit_test_setup_teardown(test, setup_half, teardown_half)
    const struct CMUnitTest tests[] = {
        GOOD(operations_know_their_partition),
        GOOD(models_list_tensors_and_what_makes_them),
        GOOD(the_reference_has_every_value),
        GOOD(runs_come_after_the_reference),
        HALF(alone_an_operation_reads_the_references_values),
        HALF(chained_an_operation_reads_what_came_before),
        GOOD(a_right_device_has_the_references_values),
        GOOD(errors_of_the_device_come_through),
        GOOD(arguments_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
