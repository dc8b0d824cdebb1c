/* SPDX-License-Identifier: MIT */
/* Reads every model of the collection and compares with what is known of them. */
#include "files.h"

#include "frontend/tflite/reader.h"
#include "invariants.h"

#include <glob.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Reads, and checks what must hold for every model; the caller destroys the graph. */
static struct mica_graph *read_file(const struct test_file *file, const char *path)
{
    struct mica_log log = {.sink = NULL};
    struct mica_graph *graph = NULL;
    if (mica_tflite_read(file->data, file->size, &log, &graph))
        fail_msg("%s: %s", path, log.last_error);
    const char *broken = graph_invariants(graph);
    if (broken)
        fail_msg("%s: does not hold: %s", path, broken);
    return graph;
}

static uint64_t total_macs(const struct mica_graph *graph)
{
    uint64_t macs = 0;
    for (uint32_t i = 0; i < graph->op_count; i++)
        macs += mica_op_macs(graph, &graph->ops[i]);
    return macs;
}

/* Splits one CSV line in place; fields may be in quotes, which hold no quotes in this file. */
static size_t split_csv(char *line, char **fields, size_t most)
{
    size_t count = 0;
    while (count < most) {
        bool quoted = *line == '"';
        line += quoted;
        fields[count++] = line;
        line += strcspn(line, quoted ? "\"" : ",\r\n");
        if (quoted && *line)
            *line++ = 0;
        if (*line != ',')
            break;
        *line++ = 0;
    }
    *line = 0;
    return count;
}

enum {
    FILE_NAME,
    OP_COUNT = 12,
    OPS = 13,
    MACS = 14,
    FIELDS = 15,
};

static void check_network(char **fields)
{
    char path[512];
    snprintf(path, sizeof path, "%s/models/%s", MICA_SHARED_DIR, fields[FILE_NAME]);
    struct test_file file = test_file_read(path);
    struct mica_graph *graph = read_file(&file, path);
    /* The table counts the operations of all subgraphs; only one model has two. */
    if (!strstr(fields[OPS], "CALL_ONCE"))
        assert_int_equal(graph->op_count, strtoul(fields[OP_COUNT], NULL, 10));
    assert_int_equal(total_macs(graph), strtoull(fields[MACS], NULL, 10));
    mica_graph_destroy(graph);
    test_file_free(&file);
}

static void networks_have_their_operations_and_macs(void **state)
{
    FILE *table = fopen(MICA_SHARED_DIR "/models/models.csv", "r");
    char line[4096], *fields[FIELDS];
    unsigned networks = 0;
    assert_non_null(table);
    assert_non_null(fgets(line, sizeof line, table)); /* headings */
    while (fgets(line, sizeof line, table)) {
        assert_int_equal(split_csv(line, fields, FIELDS), FIELDS);
        check_network(fields);
        networks++;
    }
    fclose(table);
    assert_true(networks >= 29);
}

/* Calls `check` for every file that matches and returns their number. */
static size_t for_each(const char *pattern, void (*check)(const struct mica_graph *graph, const char *path))
{
    glob_t found;
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct test_file file = test_file_read(found.gl_pathv[i]);
        struct mica_graph *graph = read_file(&file, found.gl_pathv[i]);
        check(graph, found.gl_pathv[i]);
        mica_graph_destroy(graph);
        test_file_free(&file);
    }
    size_t count = found.gl_pathc;
    globfree(&found);
    return count;
}

static void no_problems(const struct mica_graph *graph, const char *path)
{
    for (uint32_t i = 0; i < graph->op_count; i++)
        if (graph->ops[i].problem)
            fail_msg("%s: %s: %s", path, graph->ops[i].type, graph->ops[i].problem);
    assert_true(graph->op_count > 0 && graph->input_count > 0 && graph->output_count > 0);
}

/* The only reasons for which a network's operation may have a problem. */
static const char *const obstacles[] = {
    "is not implemented: it is recurrent",
    "is not implemented: it is control flow",
    "is not implemented: it is about variables",
    "is not implemented: it is about complex numbers",
    "COMPLEX64 is not supported", /* which a reshape may be in the middle of */
    "it is a variable",
};

static void known_obstacles_only(const struct mica_graph *graph, const char *path)
{
    for (uint32_t i = 0; i < graph->op_count; i++) {
        const struct mica_op *op = &graph->ops[i];
        bool known = !op->problem;
        for (size_t k = 0; k < sizeof obstacles / sizeof obstacles[0]; k++)
            known = known || strstr(op->problem, obstacles[k]);
        if (!known)
            fail_msg("%s: %s: %s", path, op->type, op->problem);
        if (op->kind == MICA_OP_UNKNOWN)
            assert_non_null(strstr(op->problem, op->type));
    }
}

static void networks_are_understood(void **state)
{
    assert_true(for_each(MICA_SHARED_DIR "/models/*.tflite", known_obstacles_only) >= 29);
}

/* The one uint8 model whose convolutions have no weights, and the second of which has two groups. */
static void uint8_model(const struct mica_graph *graph, const char *path)
{
    if (!strstr(path, "/ops_uint8/add.tflite")) {
        no_problems(graph, path);
        return;
    }
    assert_non_null(strstr(graph->ops[0].problem, "nothing before it computes"));
    assert_non_null(strstr(graph->ops[1].problem, "2 groups"));
    assert_null(graph->ops[2].problem);
}

static void single_operations_are_understood(void **state)
{
    assert_true(for_each(MICA_SHARED_DIR "/models/ops_uint8/*.tflite", uint8_model) > 100);
    assert_true(for_each(MICA_SHARED_DIR "/models/ops_int8/*.tflite", no_problems) > 40);
    assert_true(for_each(MICA_SHARED_DIR "/captures/*/model.tflite", no_problems) > 10);
}

static void expect_quantization(const struct mica_tensor *tensor, enum mica_type type, float scale, int32_t zero_point)
{
    assert_int_equal(tensor->type, type);
    assert_int_equal(tensor->quant.count, 1);
    assert_true(fabsf(tensor->quant.scale[0] - scale) < 1e-7f);
    assert_int_equal(tensor->quant.zero_point[0], zero_point);
}

static void mobilenet_is_read_to_the_letter(void **state)
{
    const char *path = MICA_SHARED_DIR "/models/mobilenet_v1_1.0_224_quant.tflite";
    struct test_file file = test_file_read(path);
    struct mica_graph *graph = read_file(&file, path);
    no_problems(graph, path);
    assert_int_equal(graph->input_count, 1);
    expect_quantization(&graph->tensors[graph->inputs[0]], MICA_TYPE_UINT8, 0.0078125f, 128);
    expect_quantization(&graph->tensors[graph->outputs[0]], MICA_TYPE_UINT8, 0.00390625f, 0);
    assert_string_equal(graph->tensors[graph->inputs[0]].name, "input");

    const struct mica_op *conv = &graph->ops[0];
    assert_int_equal(conv->kind, MICA_OP_CONV_2D);
    assert_string_equal(conv->type, "CONV_2D");
    expect_quantization(mica_op_input(graph, conv, 1), MICA_TYPE_UINT8, 0.02182668f, 151);
    expect_quantization(mica_op_input(graph, conv, 2), MICA_TYPE_INT32, 0.00017052f, 0);
    expect_quantization(mica_op_output(graph, conv, 0), MICA_TYPE_UINT8, 0.02352848f, 0);
    assert_int_equal(conv->window.kernel_x, 3);
    assert_int_equal(conv->window.stride_x, 2);
    assert_int_equal(conv->window.dilation_y, 1);
    assert_int_equal(conv->window.padding.left, 0);
    assert_int_equal(conv->window.padding.top, 0);
    assert_int_equal(conv->window.padding.right, 1);
    assert_int_equal(conv->window.padding.bottom, 1);
    assert_int_equal(conv->window.activation, MICA_ACT_NONE); /* this file relies on saturation */
    assert_int_equal(mica_op_macs(graph, conv), 112 * 112 * 32 * 27);

    const struct mica_op *depthwise = &graph->ops[1];
    assert_int_equal(depthwise->kind, MICA_OP_DEPTHWISE_CONV_2D);
    assert_int_equal(depthwise->window.depth_multiplier, 1);
    assert_int_equal(depthwise->window.padding.left, 1);
    expect_quantization(mica_op_input(graph, depthwise, 1), MICA_TYPE_UINT8, 0.29219913f, 110);

    assert_int_equal(graph->ops[28].kind, MICA_OP_CONV_2D);
    assert_int_equal(graph->ops[27].kind, MICA_OP_AVERAGE_POOL_2D);
    assert_int_equal(graph->ops[27].window.kernel_x, 7);
    assert_int_equal(graph->ops[29].kind, MICA_OP_RESHAPE);
    assert_int_equal(graph->ops[30].kind, MICA_OP_SOFTMAX);
    assert_true(graph->ops[30].beta == 1);
    mica_graph_destroy(graph);
    test_file_free(&file);
}

static void activations_are_read(void **state)
{
    const char *path = MICA_SHARED_DIR "/models/mobilenet_v1_0.25_128_quant.tflite";
    struct test_file file = test_file_read(path);
    struct mica_graph *graph = read_file(&file, path);
    assert_int_equal(graph->ops[0].window.activation, MICA_ACT_RELU6);
    assert_int_equal(graph->ops[28].window.activation, MICA_ACT_NONE);
    mica_graph_destroy(graph);
    test_file_free(&file);
}

static void detection_parameters_are_read(void **state)
{
    const char *path = MICA_SHARED_DIR "/models/coco_ssd_mobilenet_v1_1.0_quant.tflite";
    struct test_file file = test_file_read(path);
    struct mica_graph *graph = read_file(&file, path);
    const struct mica_op *op = &graph->ops[graph->op_count - 1];
    no_problems(graph, path);
    assert_int_equal(op->kind, MICA_OP_DETECTION_POSTPROCESS);
    assert_string_equal(op->type, "TFLite_Detection_PostProcess");
    assert_int_equal(op->detection.max_detections, 10);
    assert_int_equal(op->detection.max_classes_per_detection, 1);
    assert_int_equal(op->detection.classes, 90);
    assert_int_equal(op->detection.detections_per_class, 100); /* absent in the file: the default */
    assert_false(op->detection.regular_nms);
    assert_true(op->detection.scale_x == 10 && op->detection.scale_y == 10);
    assert_true(op->detection.scale_w == 5 && op->detection.scale_h == 5);
    assert_true(op->detection.iou_threshold == 0.6f && fabsf(op->detection.score_threshold - 1e-8f) < 1e-12f);
    assert_int_equal(mica_op_output(graph, op, 0)->bytes, 10 * 4 * sizeof(float));
    mica_graph_destroy(graph);
    test_file_free(&file);
}

/* This model's file has no shape for any computed tensor. */
static void missing_shapes_are_inferred(void **state)
{
    const char *path = MICA_SHARED_DIR "/models/mlperf_mobilenet_edgetpu_224_1.0_uint8.tflite";
    struct test_file file = test_file_read(path);
    struct mica_graph *graph = read_file(&file, path);
    no_problems(graph, path);
    const struct mica_tensor *output = &graph->tensors[graph->outputs[0]];
    assert_int_equal(output->rank, 2);
    assert_int_equal(output->dims[1], 1001);
    mica_graph_destroy(graph);
    test_file_free(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks_have_their_operations_and_macs),
        cmocka_unit_test(networks_are_understood),
        cmocka_unit_test(single_operations_are_understood),
        cmocka_unit_test(mobilenet_is_read_to_the_letter),
        cmocka_unit_test(detection_parameters_are_read),
        cmocka_unit_test(activations_are_read),
        cmocka_unit_test(missing_shapes_are_inferred),
    };
    if (!test_file_exists(MICA_SHARED_DIR "/models/models.csv"))
        return 77;
    return cmocka_run_group_tests_name("reader", tests, NULL, NULL);
}
