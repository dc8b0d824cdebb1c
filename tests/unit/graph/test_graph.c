/* SPDX-License-Identifier: MIT */
/* The container: tensors, indices, order of execution, padding and inferred shapes. */
#include "sketch.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static struct mica_graph *graph;

static int setup(void **state)
{
    return mica_graph_create(NULL, &graph);
}

static int teardown(void **state)
{
    mica_graph_destroy(graph);
    return 0;
}

static const struct mica_tensor *add(struct mica_tensor tensor)
{
    assert_int_equal(mica_graph_add_tensor(graph, &tensor, NULL), 0);
    return &graph->tensors[graph->tensor_count - 1];
}

static void a_tensor_gets_its_size(void **state)
{
    const struct mica_tensor *tensor = add((struct mica_tensor){.type = MICA_TYPE_INT16, .rank = 2, .dims = {3, 5}});
    assert_null(tensor->problem);
    assert_int_equal(tensor->bytes, 30);
    assert_string_equal(tensor->name, "");
    tensor = add((struct mica_tensor){.type = MICA_TYPE_INT64});
    assert_null(tensor->problem);
    assert_int_equal(tensor->bytes, 8);
}

static void an_unusable_tensor_says_why(void **state)
{
    static const float bad[] = {0, -1, INFINITY, NAN};
    static const int32_t zero;
    const struct mica_tensor wrong[] = {
        {.type = MICA_TYPE_UINT8, .rank = 1, .dims = {0}},
        {.type = MICA_TYPE_UINT8, .rank = 1, .dims = {-1}},
        {.type = MICA_TYPE_UINT8, .rank = 1, .dims = {INT32_MAX}},
        {.type = MICA_TYPE_UINT8, .rank = 3, .dims = {65536, 65536, 65536}},
        {.type = MICA_TYPE_UINT8, .rank = 4, .dims = {1 << 30, 1 << 30, 1 << 30, 1 << 30}},
        {.type = MICA_TYPE_FLOAT32, .rank = 1, .dims = {(1 << 26) + 1}},
        {.type = MICA_TYPE_UINT8, .rank = 9},
        {.type = MICA_TYPE_UINT8, .rank = UINT32_MAX},
        {.type = MICA_TYPE_OTHER},
        {.type = 99},
        {.type = MICA_TYPE_UINT8, .quant = {.count = 1, .scale = &bad[0], .zero_point = &zero}},
        {.type = MICA_TYPE_UINT8, .quant = {.count = 1, .scale = &bad[1], .zero_point = &zero}},
        {.type = MICA_TYPE_UINT8, .quant = {.count = 1, .scale = &bad[2], .zero_point = &zero}},
        {.type = MICA_TYPE_UINT8, .quant = {.count = 1, .scale = &bad[3], .zero_point = &zero}},
        {.type = MICA_TYPE_UINT8, .quant = {.count = 2, .scale = &bad[3], .zero_point = &zero}},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const struct mica_tensor *tensor = add(wrong[i]);
        assert_non_null(tensor->problem);
        assert_int_equal(tensor->bytes, 0);
        assert_int_equal(tensor->quant.count, 0);
    }
}

static void zero_points_fit_their_type(void **state)
{
    static const struct {
        enum mica_type type;
        int32_t lowest, highest;
    } ranges[] = {{MICA_TYPE_UINT8, 0, 255}, {MICA_TYPE_INT8, -128, 127}, {MICA_TYPE_INT16, -32768, 32767}};
    const float scale = 1;
    for (size_t i = 0; i < 3; i++) {
        const int32_t points[] = {ranges[i].lowest, ranges[i].highest, ranges[i].lowest - 1, ranges[i].highest + 1};
        for (size_t k = 0; k < 4; k++) {
            struct mica_tensor tensor = {.type = ranges[i].type, .quant = {1, &scale, &points[k], 0, 0, false}};
            assert_int_equal(add(tensor)->problem != NULL, k >= 2);
        }
    }
}

static void what_is_added_is_copied(void **state)
{
    char name[] = "name", type[] = "TYPE";
    float scale = 2;
    int32_t zero_point = 3, input = 0, output = 1;
    struct mica_tensor tensor = {
        .name = name, .type = MICA_TYPE_UINT8, .quant = {.count = 1, .scale = &scale, .zero_point = &zero_point}};
    add(tensor);
    add(tensor);
    struct mica_op op = {.type = type, .input_count = 1, .output_count = 1, .inputs = &input, .outputs = &output};
    assert_int_equal(mica_graph_add_op(graph, &op, NULL), 0);
    name[0] = type[0] = 'x';
    scale = 0, zero_point = 0, input = output = 7;
    assert_string_equal(graph->tensors[0].name, "name");
    assert_true(graph->tensors[0].quant.scale[0] == 2 && graph->tensors[0].quant.zero_point[0] == 3);
    assert_string_equal(graph->ops[0].type, "TYPE");
    assert_int_equal(graph->ops[0].inputs[0], 0);
    assert_int_equal(graph->ops[0].outputs[0], 1);
}

static void indices_outside_are_errors(void **state)
{
    static const int32_t bad[] = {-2, 1, INT32_MAX, INT32_MIN};
    const int32_t good = 0, none = MICA_NO_TENSOR;
    add((struct mica_tensor){.type = MICA_TYPE_UINT8});
    for (size_t i = 0; i < 4; i++) {
        struct mica_op op = {.input_count = 1, .output_count = 1, .inputs = &bad[i], .outputs = &good};
        assert_int_equal(mica_graph_add_op(graph, &op, NULL), -EINVAL);
        op.inputs = &good;
        op.outputs = &bad[i];
        assert_int_equal(mica_graph_add_op(graph, &op, NULL), -EINVAL);
        assert_int_equal(mica_graph_set_io(graph, &bad[i], 1, &good, 1, NULL), -EINVAL);
        assert_int_equal(mica_graph_set_io(graph, &good, 1, &bad[i], 1, NULL), -EINVAL);
    }
    struct mica_op op = {.input_count = 1, .output_count = 1, .inputs = &none, .outputs = &none};
    assert_int_equal(mica_graph_add_op(graph, &op, NULL), -EINVAL);
    assert_int_equal(mica_graph_set_io(graph, &none, 1, &good, 1, NULL), -EINVAL);
    assert_int_equal(graph->op_count, 0);
}

static void a_constant_is_no_graph_input(void **state)
{
    const int32_t index = 0;
    add((struct mica_tensor){.type = MICA_TYPE_UINT8, .data = &index});
    assert_int_equal(mica_graph_set_io(graph, &index, 1, &index, 1, NULL), -EINVAL);
    assert_int_equal(mica_graph_set_io(graph, NULL, 0, &index, 1, NULL), 0);
}

/* A chain of `count` logistic operations on tensors 0 to 3. */
static void chain(const int32_t (*steps)[2], size_t count, int32_t output)
{
    static const float scale = 1.0f / 256;
    static const int32_t zero, input = 0;
    for (int i = 0; i < 4; i++)
        add((struct mica_tensor){.name = "t",
                                 .type = MICA_TYPE_UINT8,
                                 .rank = 1,
                                 .dims = {4},
                                 .data = i == 3 ? "0123" : NULL,
                                 .quant = {.count = 1, .scale = &scale, .zero_point = &zero}});
    for (size_t i = 0; i < count; i++) {
        struct mica_op op = {.kind = MICA_OP_LOGISTIC,
                             .input_count = 1,
                             .output_count = 1,
                             .inputs = &steps[i][0],
                             .outputs = &steps[i][1]};
        assert_int_equal(mica_graph_add_op(graph, &op, NULL), 0);
    }
    assert_int_equal(mica_graph_set_io(graph, &input, 1, &output, 1, NULL), 0);
}

static void values_flow_in_order(void **state)
{
    chain((const int32_t[][2]){{0, 1}, {1, 2}}, 2, 2);
    assert_int_equal(mica_graph_check_flow(graph, NULL), 0);
    assert_null(graph->ops[0].problem);
    assert_null(graph->ops[1].problem);
}

static void reading_too_early_is_a_problem(void **state)
{
    chain((const int32_t[][2]){{1, 2}, {0, 1}}, 2, 2);
    assert_int_equal(mica_graph_check_flow(graph, NULL), 0);
    assert_non_null(strstr(graph->ops[0].problem, "nothing before it computes"));
    assert_null(graph->ops[1].problem);
}

static void writing_twice_is_a_problem(void **state)
{
    chain((const int32_t[][2]){{0, 1}, {3, 1}}, 2, 1);
    assert_int_equal(mica_graph_check_flow(graph, NULL), 0);
    assert_null(graph->ops[0].problem);
    assert_non_null(strstr(graph->ops[1].problem, "another operation"));
}

static void writing_an_input_is_a_problem(void **state)
{
    chain((const int32_t[][2]){{3, 0}}, 1, 0);
    assert_int_equal(mica_graph_check_flow(graph, NULL), 0);
    assert_non_null(strstr(graph->ops[0].problem, "input of the graph"));
}

static void an_output_nobody_computes_is_an_error(void **state)
{
    chain((const int32_t[][2]){{0, 1}}, 1, 2);
    assert_int_equal(mica_graph_check_flow(graph, NULL), -EINVAL);
}

static void same_padding_is_tensorflows(void **state)
{
    int32_t after;
    assert_int_equal(mica_same_padding(224, 3, 2, 1, &after), 0);
    assert_int_equal(after, 1);
    assert_int_equal(mica_same_padding(112, 3, 1, 1, &after), 1);
    assert_int_equal(after, 1);
    assert_int_equal(mica_same_padding(7, 2, 2, 1, &after), 0);
    assert_int_equal(after, 1);
    assert_int_equal(mica_same_padding(8, 1, 4, 1, &after), 0);
    assert_int_equal(after, 0);
    assert_int_equal(mica_same_padding(8, 3, 1, 2, &after), 2);
    assert_int_equal(after, 2);
    assert_int_equal(mica_same_padding(0, 3, 1, 1, &after), 0);
    assert_int_equal(mica_same_padding(8, 3, 0, 1, &after), 0);
    assert_true(mica_same_padding(INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, &after) > 0 && after == INT32_MAX);
}

/* output = ceil(size / stride) for every small window, and the odd one goes behind. */
static void same_padding_makes_the_right_size(void **state)
{
    for (int32_t size = 1; size < 20; size++)
        for (int32_t kernel = 1; kernel < 8; kernel++)
            for (int32_t stride = 1; stride < 6; stride++)
                for (int32_t dilation = 1; dilation < 4; dilation++) {
                    int32_t after, before = mica_same_padding(size, kernel, stride, dilation, &after);
                    int32_t extent = (kernel - 1) * dilation + 1;
                    assert_true(after - before == 0 || after - before == 1);
                    assert_int_equal((size + before + after - extent) / stride + 1, (size + stride - 1) / stride);
                    assert_true(size + before + after >= extent);
                }
}

static void inferred_shapes_are_what_the_rules_want(void **state)
{
    const struct sketch all[] = {sketch_conv(), sketch_depthwise(), sketch_fully_connected(), sketch_pool(),
                                 sketch_add(),  sketch_softmax(),   sketch_logistic(),        sketch_concat(),
                                 sketch_pad(),  sketch_quantize(),  sketch_dequantize(),      sketch_resize()};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct mica_graph *built = sketch_build(&all[i]);
        const struct mica_tensor *output = mica_op_output(built, built->ops, 0);
        uint32_t rank;
        int32_t dims[MICA_MAX_RANK];
        assert_true(mica_op_infer_shape(built, built->ops, &rank, dims));
        assert_int_equal(rank, output->rank);
        assert_memory_equal(dims, output->dims, rank * sizeof *dims);
        mica_graph_destroy(built);
    }
}

static void a_shape_can_be_set_later(void **state)
{
    add((struct mica_tensor){.type = MICA_TYPE_INT16});
    assert_int_equal(mica_graph_set_shape(graph, 0, 2, (const int32_t[]){3, 4}, NULL), 0);
    assert_int_equal(graph->tensors[0].bytes, 24);
    assert_int_equal(mica_graph_set_shape(graph, 1, 2, (const int32_t[]){3, 4}, NULL), -EINVAL);
    assert_int_equal(mica_graph_set_shape(graph, 0, 2, (const int32_t[]){3, 0}, NULL), 0);
    assert_non_null(graph->tensors[0].problem);
}

static void many_tensors_and_operations_fit(void **state)
{
    for (int i = 0; i < 5000; i++) {
        add((struct mica_tensor){.name = "some name", .type = MICA_TYPE_UINT8});
        struct mica_op op = {.type = "X", .output_count = 1, .outputs = (const int32_t[]){i}};
        assert_int_equal(mica_graph_add_op(graph, &op, NULL), 0);
    }
    assert_int_equal(graph->tensor_count, 5000);
    assert_int_equal(graph->ops[4999].outputs[0], 4999);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_tensor_gets_its_size),
        TEST(an_unusable_tensor_says_why),
        TEST(zero_points_fit_their_type),
        TEST(what_is_added_is_copied),
        TEST(indices_outside_are_errors),
        TEST(a_constant_is_no_graph_input),
        TEST(values_flow_in_order),
        TEST(reading_too_early_is_a_problem),
        TEST(writing_twice_is_a_problem),
        TEST(writing_an_input_is_a_problem),
        TEST(an_output_nobody_computes_is_an_error),
        TEST(same_padding_is_tensorflows),
        TEST(same_padding_makes_the_right_size),
        TEST(inferred_shapes_are_what_the_rules_want),
        TEST(a_shape_can_be_set_later),
        TEST(many_tensors_and_operations_fit),
    };
    return cmocka_run_group_tests_name("graph", tests, NULL, NULL);
}
