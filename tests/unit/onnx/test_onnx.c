/* SPDX-License-Identifier: MIT */
/* What becomes of models, of damaged and hostile ones too, and when memory runs out. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "build.h"
#include "frontend/onnx/reader.h"
#include "frontend/onnx/wire.h"
#include "graph/graph.h"
#include "invariants.h"
#include "mutate.h"

/* ---- allocation that fails on demand ---------------------------------- */

static size_t allocations, failing = SIZE_MAX;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);

static bool fails(void)
{
    return allocations++ == failing;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    return fails() ? NULL : __real_realloc(memory, size);
}

/* ---- helpers ---------------------------------------------------------- */

static struct mica_log messages;

static int read_bytes(const uint8_t *data, size_t size, struct mica_graph **graph)
{
    messages = (struct mica_log){.sink = NULL};
    *graph = NULL;
    int error = mica_onnx_read(data, size, &messages, graph);
    if (error) {
        assert_null(*graph);
        assert_true(messages.last_error[0]);
    } else {
        const char *broken = graph_invariants(*graph);
        if (broken)
            fail_msg("does not hold: %s", broken);
    }
    return error;
}

/* The model stays until the graph, which borrows from it, has gone. */
static uint8_t *kept;

static struct mica_graph *read_graph(const struct pb *pb)
{
    struct mica_graph *graph;
    size_t size;
    kept = pb_model(pb, &size);
    assert_true(mica_onnx_recognize(kept, size));
    if (read_bytes(kept, size, &graph))
        fail_msg("%s", messages.last_error);
    return graph;
}

static void forget(struct mica_graph *graph)
{
    mica_graph_destroy(graph);
    free(kept);
}

static int refuse(const struct pb *pb)
{
    struct mica_graph *graph;
    size_t size;
    uint8_t *data = pb_model(pb, &size);
    int error = read_bytes(data, size, &graph);
    mica_graph_destroy(graph);
    free(data);
    return error;
}

static const int64_t image[4] = {1, 3, 8, 8};

/* One unary operation on a float image, with a problem or without. */
static void frame(struct pb *graph, const char *last)
{
    pb_value(graph, 11, "x", 1, 4, image);
    pb_value(graph, 12, last, 1, 4, image);
}

/* ---- tests ------------------------------------------------------------ */

static void test_network(void **state)
{
    static const enum mica_op_kind kinds[] = {
        MICA_OP_QUANTIZE,
        MICA_OP_TRANSPOSE,
        MICA_OP_CONV_2D,
        MICA_OP_DEPTHWISE_CONV_2D,
        MICA_OP_ADD,
        MICA_OP_MAX_POOL_2D,
        MICA_OP_RESIZE_NEAREST,
        MICA_OP_CONCATENATION,
        MICA_OP_AVERAGE_POOL_2D,
        MICA_OP_LOGISTIC,
        MICA_OP_QUANTIZE,
        MICA_OP_TRANSPOSE,
        MICA_OP_RESHAPE,
        MICA_OP_FULLY_CONNECTED,
        MICA_OP_DEQUANTIZE,
        MICA_OP_SOFTMAX,
    };
    struct pb pb = {0};
    pb_network(&pb, false);
    struct mica_graph *graph = read_graph(&pb);
    assert_int_equal(graph->op_count, sizeof kinds / sizeof kinds[0]);
    for (uint32_t i = 0; i < graph->op_count; i++) {
        if (graph->ops[i].problem)
            fail_msg("%s: %s", graph->ops[i].type, graph->ops[i].problem);
        assert_int_equal(graph->ops[i].kind, kinds[i]);
    }
    const struct mica_tensor *weights = mica_op_input(graph, &graph->ops[2], 1);
    assert_int_equal(weights->dims[0], 6);
    assert_int_equal(weights->dims[3], 3);
    assert_int_equal(weights->quant.count, 6);
    assert_int_equal(weights->quant.axis, 0);
    assert_int_equal(((const int8_t *)weights->data)[0], 5);
    assert_int_equal(((const int8_t *)weights->data)[3], -7); /* one pixel further: the next three channels */
    assert_int_equal(graph->ops[3].window.activation, MICA_ACT_RELU);
    assert_string_equal(graph->tensors[graph->inputs[0]].name, "x");
    assert_int_equal(graph->tensors[graph->inputs[0]].dims[1], 3);
    assert_string_equal(graph->tensors[graph->outputs[0]].name, "out");
    forget(graph);
}

static void test_unknown_operations_have_their_name(void **state)
{
    struct pb pb = {0};
    pb_network(&pb, true);
    struct mica_graph *graph = read_graph(&pb);
    const struct mica_op *op = &graph->ops[graph->op_count - 1];
    assert_int_equal(op->kind, MICA_OP_UNKNOWN);
    assert_string_equal(op->type, "Mystery");
    assert_non_null(strstr(op->problem, "Mystery"));
    forget(graph);
}

/* An operation whose first input is absent: with a name of no letters, or with no inputs at all. */
static void test_absent_inputs_are_problems(void **state)
{
    static const char *const types[] = {"AveragePool", "MaxPool", "GlobalAveragePool", "Conv",
                                        "Relu",        "Add",     "Softmax",           "Concat",
                                        "Resize",      "Gemm",    "Reshape",           "ReduceMean"};
    static const int64_t kernel[2] = {2, 2};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        struct pb pb = {0}, attributes = {0};
        pb_ints(&attributes, "kernel_shape", 2, kernel);
        pb_node(&pb, types[i], "", "y", &attributes);
        frame(&pb, "y");
        struct mica_graph *graph = NULL;
        size_t size;
        uint8_t *data = pb_model(&pb, &size);
        if (!read_bytes(data, size, &graph))
            assert_non_null(graph->ops[0].problem);
        mica_graph_destroy(graph);
        free(data);
    }
}

static void test_constants_are_borrowed_where_nothing_changes(void **state)
{
    static const int8_t weights[4 * 3] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, zero;
    static const float scale = 0.1f;
    struct pb pb = {0};
    frame(&pb, "y");
    pb_tensor(&pb, "w", 3, 4, (const int64_t[]){4, 3, 1, 1}, weights, sizeof weights);
    pb_tensor(&pb, "s", 1, 0, NULL, &scale, sizeof scale);
    pb_tensor(&pb, "z", 3, 0, NULL, &zero, 1);
    pb_node(&pb, "QuantizeLinear", "x s z", "q", NULL);
    pb_node(&pb, "QLinearConv", "q s z w s z s z", "c", NULL);
    pb_node(&pb, "DequantizeLinear", "c s z", "y", NULL);
    struct mica_graph *graph = read_graph(&pb);
    const uint8_t *data = mica_op_input(graph, &graph->ops[2], 1)->data;
    assert_true(data > kept && data < kept + sizeof pb.data);
    assert_memory_equal(data, weights, sizeof weights);
    forget(graph);
}

static void test_names_for_nothing(void **state)
{
    struct pb pb = {0};
    frame(&pb, "z");
    pb_node(&pb, "Identity", "x", "y", NULL);
    pb_node(&pb, "Dropout", "y", "z", NULL);
    struct mica_graph *graph = read_graph(&pb);
    assert_int_equal(graph->op_count, 1); /* an output is not the input itself */
    assert_int_not_equal(graph->inputs[0], graph->outputs[0]);
    forget(graph);
}

static void test_order_of_nodes_is_checked(void **state)
{
    struct pb pb = {0}, loop = {0};
    frame(&pb, "z");
    pb_node(&pb, "Relu", "y", "z", NULL);
    pb_node(&pb, "Relu", "x", "y", NULL);
    struct mica_graph *graph = read_graph(&pb);
    assert_non_null(strstr(graph->ops[0].problem, "nothing before it computes"));
    assert_null(graph->ops[1].problem);
    forget(graph);
    frame(&loop, "z");
    pb_node(&loop, "Relu", "z", "z", NULL);
    graph = read_graph(&loop);
    assert_non_null(graph->ops[0].problem);
    forget(graph);
}

static void test_every_value_is_made_once(void **state)
{
    struct pb twice = {0}, input = {0}, constants = {0};
    frame(&twice, "y");
    pb_node(&twice, "Relu", "x", "y", NULL);
    pb_node(&twice, "Relu", "x", "y", NULL);
    assert_int_equal(refuse(&twice), -EINVAL);
    frame(&input, "x");
    pb_node(&input, "Relu", "x", "x", NULL);
    assert_int_equal(refuse(&input), -EINVAL);
    frame(&constants, "c");
    pb_tensor(&constants, "c", 3, 0, NULL, "", 1);
    pb_tensor(&constants, "c", 3, 0, NULL, "", 1);
    assert_int_equal(refuse(&constants), -EINVAL);
}

/* Shapes that lie about their data, are empty, or huge. */
static void test_shapes_of_constants(void **state)
{
    static const int64_t shapes[][4] = {
        {2, 1, 1, 1}, {0, 1, 1, 1}, {-1, 1, 1, 1}, {1 << 20, 1 << 20, 1 << 20, 1 << 20}, {INT64_MAX, 1, 1, 1}};
    static const float one = 1;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct pb pb = {0};
        frame(&pb, "y");
        pb_tensor(&pb, "c", 1, 4, shapes[i], &one, sizeof one);
        pb_node(&pb, "Add", "x c", "y", NULL);
        struct mica_graph *graph = read_graph(&pb);
        assert_non_null(graph->ops[graph->op_count - 1].problem);
        forget(graph);
    }
}

static void test_sizes_left_open(void **state)
{
    struct pb batch = {0}, dynamic = {0};
    pb_value(&batch, 11, "x", 1, 4, (const int64_t[]){0, 3, 8, 8});
    pb_value(&batch, 12, "y", 1, 0, NULL);
    pb_node(&batch, "Relu", "x", "y", NULL);
    struct mica_graph *graph = read_graph(&batch);
    assert_null(graph->ops[0].problem);
    assert_int_equal(graph->tensors[graph->inputs[0]].dims[0], 1);
    forget(graph);
    pb_value(&dynamic, 11, "x", 1, 4, (const int64_t[]){1, 3, 0, 8});
    pb_value(&dynamic, 12, "y", 1, 0, NULL);
    pb_node(&dynamic, "Relu", "x", "y", NULL);
    graph = read_graph(&dynamic);
    assert_non_null(graph->ops[0].problem);
    assert_non_null(graph->tensors[graph->inputs[0]].problem);
    forget(graph);
}

/* Scales that many nodes use, each with zero points of its own: what is copied is counted. */
static void test_copies_are_limited(void **state)
{
    static float scales[2000];
    static const int8_t codes[2000];
    for (int nodes = 2; nodes < 50; nodes += 46) {
        struct pb pb = {0};
        frame(&pb, "y");
        for (int i = 0; i < 2000; i++)
            scales[i] = 1;
        pb_tensor(&pb, "s", 1, 1, (const int64_t[]){2000}, scales, sizeof scales);
        pb_tensor(&pb, "c", 3, 1, (const int64_t[]){2000}, codes, sizeof codes);
        for (int i = 0; i < nodes; i++) {
            char output[] = "o00";
            output[1] = (char)('0' + i / 10);
            output[2] = (char)('0' + i % 10);
            pb_node(&pb, "DequantizeLinear", "c s", output, NULL);
        }
        pb_node(&pb, "Relu", "x", "y", NULL);
        assert_int_equal(refuse(&pb), nodes > 2 ? -EINVAL : 0);
    }
}

static void test_numbers_packed_or_not(void **state)
{
    static const uint8_t packed[] = {0x42, 3, 1, 0x96, 1, 0x40, 7, 0x42, 1, 2};
    struct onnx_numbers numbers = onnx_numbers((struct onnx_bytes){packed, sizeof packed}, 8, ONNX_WIRE_VARINT);
    static const uint64_t expected[] = {1, 150, 7, 2};
    uint64_t value;
    for (int i = 0; i < 4; i++) {
        assert_true(onnx_next_number(&numbers, &value));
        assert_int_equal(value, expected[i]);
    }
    assert_false(onnx_next_number(&numbers, &value));
    assert_false(numbers.message.error);
}

static void test_damaged_wire(void **state)
{
    static const struct onnx_bytes messages_[] = {
        {(const uint8_t *)"\x0a", 1},                                              /* no length */
        {(const uint8_t *)"\x0a\x02x", 3},                                         /* too long */
        {(const uint8_t *)"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11},     /* 2^64 - 1 long */
        {(const uint8_t *)"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12}, /* 11 bytes of a number */
        {(const uint8_t *)"\x0d\x00\x00", 3},                                      /* half a float */
        {(const uint8_t *)"\x0b\x0c", 2},                                          /* a group */
        {(const uint8_t *)"\x00\x00", 2},                                          /* field 0 */
    };
    struct onnx_field field;
    for (size_t i = 0; i < sizeof messages_ / sizeof messages_[0]; i++) {
        struct onnx_cursor cursor = onnx_cursor(messages_[i]);
        assert_false(onnx_next(&cursor, &field));
        assert_true(cursor.error);
        assert_false(onnx_next(&cursor, &field));
    }
}

static void test_cut_and_changed(void **state)
{
    struct pb pb = {0};
    struct mica_graph *graph;
    size_t size, taken = 0;
    pb_network(&pb, true);
    uint8_t *model = pb_model(&pb, &size);
    for (size_t i = 0; i < size; i++) {
        uint8_t *copy = NULL; /* of exactly that size, for the sanitizer to see */
        assert_int_equal(posix_memalign((void **)&copy, 16, i ? i : 1), 0);
        memcpy(copy, model, i);
        if (!read_bytes(copy, i, &graph))
            mica_graph_destroy(graph);
        free(copy);
    }
    for (uint64_t seed = 0; seed < 20000; seed++) {
        uint8_t *copy = NULL;
        assert_int_equal(posix_memalign((void **)&copy, 16, size), 0);
        memcpy(copy, model, size);
        size_t left = mica_mutate(copy, size, seed);
        int error = read_bytes(copy, left, &graph);
        assert_true(error == 0 || error == -EINVAL);
        taken += !error;
        mica_graph_destroy(graph);
        free(copy);
    }
    assert_true(taken > 1000 && taken < 20000);
    free(model);
}

static void test_memory_runs_out(void **state)
{
    struct pb pb = {0};
    struct mica_graph *graph;
    size_t size, n = 0;
    bool more = true;
    pb_network(&pb, true);
    uint8_t *model = pb_model(&pb, &size);
    for (; more; n++) {
        allocations = 0;
        failing = n;
        messages = (struct mica_log){.sink = NULL};
        int error = mica_onnx_read(model, size, &messages, &graph);
        failing = SIZE_MAX;
        more = allocations > n;
        assert_int_equal(error, more ? -ENOMEM : 0);
    }
    assert_true(n > 10);
    mica_graph_destroy(graph);
    free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_network),
        cmocka_unit_test(test_unknown_operations_have_their_name),
        cmocka_unit_test(test_absent_inputs_are_problems),
        cmocka_unit_test(test_constants_are_borrowed_where_nothing_changes),
        cmocka_unit_test(test_names_for_nothing),
        cmocka_unit_test(test_order_of_nodes_is_checked),
        cmocka_unit_test(test_every_value_is_made_once),
        cmocka_unit_test(test_shapes_of_constants),
        cmocka_unit_test(test_sizes_left_open),
        cmocka_unit_test(test_copies_are_limited),
        cmocka_unit_test(test_numbers_packed_or_not),
        cmocka_unit_test(test_damaged_wire),
        cmocka_unit_test(test_cut_and_changed),
        cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
