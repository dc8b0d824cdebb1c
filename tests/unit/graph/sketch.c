/* SPDX-License-Identifier: MIT */
#include "sketch.h"

#include "invariants.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Quantization outlives the sketch, which is copied around. */
static float scales[1024];
static int32_t zero_points[1024];
static uint32_t used;

int32_t sketch_tensor(struct sketch *sketch, enum mica_type type, float scale, int32_t zero_point, uint32_t rank,
                      const int32_t *dims)
{
    struct mica_tensor *tensor = &sketch->tensors[sketch->tensor_count];
    *tensor = (struct mica_tensor){.name = "t", .type = type, .rank = rank};
    memcpy(tensor->dims, dims, rank * sizeof *dims);
    if (scale != 0) {
        used = (used + 1) % 1024;
        scales[used] = scale;
        zero_points[used] = zero_point;
        tensor->quant =
            (struct mica_quantization){.count = 1, .scale = &scales[used], .zero_point = &zero_points[used]};
    }
    return (int32_t)sketch->tensor_count++;
}

struct sketch sketch_finish(struct sketch sketch, enum mica_op_kind kind, const char *type)
{
    sketch.op.kind = kind;
    sketch.op.type = type;
    sketch.op.input_count = sketch.tensor_count - 1;
    sketch.op.output_count = 1;
    for (uint32_t i = 0; i < sketch.op.input_count; i++)
        sketch.inputs[i] = (int32_t)i;
    sketch.outputs[0] = (int32_t)sketch.tensor_count - 1;
    return sketch;
}

static const struct mica_window window3x3 = {.kernel_x = 3,
                                             .kernel_y = 3,
                                             .stride_x = 1,
                                             .stride_y = 1,
                                             .dilation_x = 1,
                                             .dilation_y = 1,
                                             .padding = {1, 1, 1, 1}};

struct sketch sketch_conv(void)
{
    struct sketch sketch = {.op.window = window3x3};
    sketch_tensor(&sketch, MICA_TYPE_UINT8, 0.5f, 128, DIMS(1, 8, 8, 4));
    sketch_tensor(&sketch, MICA_TYPE_UINT8, 0.25f, 100, DIMS(6, 3, 3, 4));
    sketch_tensor(&sketch, MICA_TYPE_INT32, 0.125f, 0, DIMS(6));
    sketch_tensor(&sketch, MICA_TYPE_UINT8, 1.0f, 0, DIMS(1, 8, 8, 6));
    return sketch_finish(sketch, MICA_OP_CONV_2D, "CONV_2D");
}

struct sketch sketch_depthwise(void)
{
    static const float scale[] = {0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f, 0.7f, 0.8f};
    static const int32_t zero[8];
    struct sketch sketch = {.op.window = window3x3};
    sketch.op.window.stride_x = sketch.op.window.stride_y = 2;
    sketch.op.window.padding = (struct mica_padding){0, 0, 1, 1};
    sketch.op.window.depth_multiplier = 2;
    sketch_tensor(&sketch, MICA_TYPE_INT8, 0.5f, -1, DIMS(1, 8, 8, 4));
    sketch_tensor(&sketch, MICA_TYPE_INT8, 1, 0, DIMS(1, 3, 3, 8));
    sketch.tensors[1].quant = (struct mica_quantization){.count = 8, .scale = scale, .zero_point = zero, .axis = 3};
    sketch_tensor(&sketch, MICA_TYPE_INT32, 0, 0, DIMS(8));
    sketch_tensor(&sketch, MICA_TYPE_INT8, 1.0f, 5, DIMS(1, 4, 4, 8));
    return sketch_finish(sketch, MICA_OP_DEPTHWISE_CONV_2D, "DEPTHWISE_CONV_2D");
}

struct sketch sketch_fully_connected(void)
{
    struct sketch sketch = {.op.activation = MICA_ACT_RELU};
    sketch_tensor(&sketch, MICA_TYPE_INT8, 0.5f, 3, DIMS(2, 2, 2, 4));
    sketch_tensor(&sketch, MICA_TYPE_INT8, 0.25f, 0, DIMS(10, 16));
    sketch_tensor(&sketch, MICA_TYPE_INT32, 0.125f, 0, DIMS(10));
    sketch_tensor(&sketch, MICA_TYPE_INT8, 1.0f, 0, DIMS(2, 10));
    return sketch_finish(sketch, MICA_OP_FULLY_CONNECTED, "FULLY_CONNECTED");
}

struct sketch sketch_pool(void)
{
    struct sketch sketch = {.op.window = window3x3};
    sketch.op.window.stride_x = sketch.op.window.stride_y = 2;
    sketch.op.window.padding = (struct mica_padding){0, 0, 0, 0};
    sketch_tensor(&sketch, MICA_TYPE_UINT8, 0.5f, 7, DIMS(2, 9, 7, 5));
    sketch_tensor(&sketch, MICA_TYPE_UINT8, 0.5f, 7, DIMS(2, 4, 3, 5));
    return sketch_finish(sketch, MICA_OP_AVERAGE_POOL_2D, "AVERAGE_POOL_2D");
}

struct sketch sketch_add(void)
{
    struct sketch sketch = {.op.activation = MICA_ACT_NONE};
    sketch_tensor(&sketch, MICA_TYPE_INT8, 0.5f, 1, DIMS(1, 4, 4, 8));
    sketch_tensor(&sketch, MICA_TYPE_INT8, 0.25f, 2, DIMS(8));
    sketch_tensor(&sketch, MICA_TYPE_INT8, 0.7f, 3, DIMS(1, 4, 4, 8));
    return sketch_finish(sketch, MICA_OP_ADD, "ADD");
}

struct sketch sketch_reshape(void)
{
    struct sketch sketch = {.op.kind = MICA_OP_RESHAPE};
    sketch_tensor(&sketch, MICA_TYPE_UINT8, 0.5f, 1, DIMS(1, 4, 4, 8));
    sketch_tensor(&sketch, MICA_TYPE_UINT8, 0.5f, 1, DIMS(16, 8));
    return sketch_finish(sketch, MICA_OP_RESHAPE, "RESHAPE");
}

struct sketch sketch_softmax(void)
{
    struct sketch sketch = {.op.beta = 1};
    sketch_tensor(&sketch, MICA_TYPE_UINT8, 0.1f, 100, DIMS(1, 10));
    sketch_tensor(&sketch, MICA_TYPE_UINT8, 1.0f / 256, 0, DIMS(1, 10));
    return sketch_finish(sketch, MICA_OP_SOFTMAX, "SOFTMAX");
}

struct sketch sketch_logistic(void)
{
    struct sketch sketch = {.op.kind = MICA_OP_LOGISTIC};
    sketch_tensor(&sketch, MICA_TYPE_INT8, 0.1f, 100, DIMS(3, 10));
    sketch_tensor(&sketch, MICA_TYPE_INT8, 1.0f / 256, -128, DIMS(3, 10));
    return sketch_finish(sketch, MICA_OP_LOGISTIC, "LOGISTIC");
}

struct sketch sketch_concat(void)
{
    struct sketch sketch = {.op.axis = 1};
    sketch_tensor(&sketch, MICA_TYPE_UINT8, 0.5f, 1, DIMS(2, 3, 4));
    sketch_tensor(&sketch, MICA_TYPE_UINT8, 0.25f, 2, DIMS(2, 5, 4));
    sketch_tensor(&sketch, MICA_TYPE_UINT8, 0.5f, 1, DIMS(2, 8, 4));
    return sketch_finish(sketch, MICA_OP_CONCATENATION, "CONCATENATION");
}

struct sketch sketch_pad(void)
{
    static const int32_t amounts[] = {0, 0, 1, 2, 3, 0, 0, 0};
    struct sketch sketch = {.op.kind = MICA_OP_PAD};
    sketch_tensor(&sketch, MICA_TYPE_INT8, 0.5f, 1, DIMS(1, 4, 4, 8));
    sketch_tensor(&sketch, MICA_TYPE_INT32, 0, 0, DIMS(4, 2));
    sketch.tensors[1].data = amounts;
    sketch_tensor(&sketch, MICA_TYPE_INT8, 0.5f, 1, DIMS(1, 7, 7, 8));
    return sketch_finish(sketch, MICA_OP_PAD, "PAD");
}

struct sketch sketch_quantize(void)
{
    struct sketch sketch = {.op.kind = MICA_OP_QUANTIZE};
    sketch_tensor(&sketch, MICA_TYPE_FLOAT32, 0, 0, DIMS(1, 4));
    sketch_tensor(&sketch, MICA_TYPE_UINT8, 0.5f, 1, DIMS(1, 4));
    return sketch_finish(sketch, MICA_OP_QUANTIZE, "QUANTIZE");
}

struct sketch sketch_dequantize(void)
{
    struct sketch sketch = {.op.kind = MICA_OP_DEQUANTIZE};
    sketch_tensor(&sketch, MICA_TYPE_INT8, 0.5f, 1, DIMS(1, 4));
    sketch_tensor(&sketch, MICA_TYPE_FLOAT32, 0, 0, DIMS(1, 4));
    return sketch_finish(sketch, MICA_OP_DEQUANTIZE, "DEQUANTIZE");
}

struct sketch sketch_resize(void)
{
    static const int32_t size[] = {8, 10};
    struct sketch sketch = {.op.kind = MICA_OP_RESIZE_BILINEAR};
    sketch_tensor(&sketch, MICA_TYPE_UINT8, 0.5f, 1, DIMS(1, 4, 5, 3));
    sketch_tensor(&sketch, MICA_TYPE_INT32, 0, 0, DIMS(2));
    sketch.tensors[1].data = size;
    sketch_tensor(&sketch, MICA_TYPE_UINT8, 0.5f, 1, DIMS(1, 8, 10, 3));
    return sketch_finish(sketch, MICA_OP_RESIZE_BILINEAR, "RESIZE_BILINEAR");
}

struct sketch sketch_detection(void)
{
    struct sketch sketch = {.op.detection = {.max_detections = 10,
                                             .max_classes_per_detection = 1,
                                             .detections_per_class = 100,
                                             .classes = 90,
                                             .score_threshold = 0,
                                             .iou_threshold = 0.6f,
                                             .scale_x = 10,
                                             .scale_y = 10,
                                             .scale_w = 5,
                                             .scale_h = 5}};
    sketch_tensor(&sketch, MICA_TYPE_UINT8, 0.1f, 100, DIMS(1, 50, 4));
    sketch_tensor(&sketch, MICA_TYPE_UINT8, 1.0f / 256, 0, DIMS(1, 50, 91));
    sketch_tensor(&sketch, MICA_TYPE_UINT8, 0.01f, 0, DIMS(50, 4));
    sketch_tensor(&sketch, MICA_TYPE_FLOAT32, 0, 0, DIMS(1, 10, 4));
    sketch = sketch_finish(sketch, MICA_OP_DETECTION_POSTPROCESS, "TFLite_Detection_PostProcess");
    sketch.outputs[1] = sketch_tensor(&sketch, MICA_TYPE_FLOAT32, 0, 0, DIMS(1, 10));
    sketch.outputs[2] = sketch_tensor(&sketch, MICA_TYPE_FLOAT32, 0, 0, DIMS(1, 10));
    sketch.outputs[3] = sketch_tensor(&sketch, MICA_TYPE_FLOAT32, 0, 0, DIMS(1));
    sketch.op.output_count = 4;
    return sketch;
}

struct mica_graph *sketch_build(const struct sketch *sketch)
{
    struct mica_graph *graph = NULL;
    assert_int_equal(mica_graph_create(NULL, &graph), 0);
    for (uint32_t i = 0; i < sketch->tensor_count; i++)
        assert_int_equal(mica_graph_add_tensor(graph, &sketch->tensors[i], NULL), 0);
    struct mica_op op = sketch->op;
    op.inputs = sketch->inputs;
    op.outputs = sketch->outputs;
    assert_int_equal(mica_graph_add_op(graph, &op, NULL), 0);
    const char *broken = graph_invariants(graph);
    if (broken)
        fail_msg("does not hold: %s", broken);
    return graph;
}

void expect_good(const struct sketch *sketch)
{
    struct mica_graph *graph = sketch_build(sketch);
    if (graph->ops[0].problem)
        fail_msg("%s: %s", graph->ops[0].type, graph->ops[0].problem);
    mica_graph_destroy(graph);
}

void expect_problem(const struct sketch *sketch, const char *part)
{
    struct mica_graph *graph = sketch_build(sketch);
    const char *problem = graph->ops[0].problem;
    if (!problem || !strstr(problem, part))
        fail_msg("%s should complain about \"%s\", not: %s", graph->ops[0].type, part, problem ? problem : "nothing");
    mica_graph_destroy(graph);
}
