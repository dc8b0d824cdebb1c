/* SPDX-License-Identifier: MIT */
/* Every rule: a good operation, and the same with one thing wrong. */
#include "sketch.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const float scale_third = 1.0f / 3, scale_huge = 3e38f, scale_tiny = 1e-30f;
static const int32_t zero_one = 1;

static void every_sketch_is_good(void **state)
{
    ACCEPTS(sketch_conv, );
    ACCEPTS(sketch_depthwise, );
    ACCEPTS(sketch_fully_connected, );
    ACCEPTS(sketch_pool, );
    ACCEPTS(sketch_pool, s.op.kind = MICA_OP_MAX_POOL_2D);
    ACCEPTS(sketch_add, );
    ACCEPTS(sketch_reshape, );
    ACCEPTS(sketch_softmax, );
    ACCEPTS(sketch_logistic, );
    ACCEPTS(sketch_concat, );
    ACCEPTS(sketch_pad, );
    ACCEPTS(sketch_quantize, );
    ACCEPTS(sketch_dequantize, );
    ACCEPTS(sketch_resize, );
    ACCEPTS(sketch_resize, s.op.kind = MICA_OP_RESIZE_NEAREST);
    ACCEPTS(sketch_detection, );
}

static void every_operation_checks_counts_and_presence(void **state)
{
    struct sketch all[] = {sketch_conv(),   sketch_depthwise(), sketch_fully_connected(), sketch_pool(),
                           sketch_add(),    sketch_reshape(),   sketch_softmax(),         sketch_logistic(),
                           sketch_concat(), sketch_pad(),       sketch_quantize(),        sketch_dequantize(),
                           sketch_resize(), sketch_detection()};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct sketch s = all[i];
        s.op.input_count = 0;
        expect_problem(&s, "inputs");
        s = all[i];
        s.op.output_count = 0;
        expect_problem(&s, "outputs");
        s = all[i];
        s.inputs[0] = MICA_NO_TENSOR;
        expect_problem(&s, "absent");
        s = all[i];
        s.outputs[0] = s.inputs[0];
        expect_problem(&s, "its own input");
        s = all[i];
        s.tensors[s.outputs[0]].data = &s;
        s.tensors[s.outputs[0]].type = MICA_TYPE_UINT8;
        s.tensors[s.outputs[0]].quant.count = 0;
        expect_problem(&s, "constant");
        for (uint32_t k = 0; k < s.tensor_count; k++) {
            s = all[i];
            s.tensors[k].dims[0] = 0;
            expect_problem(&s, "can't be used");
            s = all[i];
            s.tensors[k].type = MICA_TYPE_OTHER;
            expect_problem(&s, "can't be used");
            s = all[i];
            s.tensors[k].problem = "known before";
            expect_problem(&s, "known before");
        }
    }
}

/* Whatever one dimension becomes, the graph either finds it or it fits. The sketches check invariants. */
static void no_changed_dimension_breaks_an_invariant(void **state)
{
    static const int32_t values[] = {1, 2, 3, 5, 7, 9, 16, 91, 65536, 65537, 1 << 20, 1 << 27, INT32_MAX};
    struct sketch all[] = {sketch_conv(),   sketch_depthwise(), sketch_fully_connected(), sketch_pool(),
                           sketch_add(),    sketch_reshape(),   sketch_softmax(),         sketch_logistic(),
                           sketch_concat(), sketch_quantize(),  sketch_dequantize(),      sketch_detection()};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        for (uint32_t k = 0; k < all[i].tensor_count; k++)
            for (uint32_t d = 0; d < all[i].tensors[k].rank; d++)
                for (size_t v = 0; v < sizeof values / sizeof values[0]; v++) {
                    struct sketch s = all[i];
                    s.tensors[k].dims[d] = values[v];
                    mica_graph_destroy(sketch_build(&s));
                }
}

static void convolution_refuses_what_does_not_fit(void **state)
{
    REFUSES(sketch_conv, "4 dimensions", t[0].rank = 3);
    REFUSES(sketch_conv, "4 dimensions", t[1].rank = 3);
    REFUSES(sketch_conv, "4 dimensions", t[3].rank = 3);
    REFUSES(sketch_conv, "2 groups", t[1].dims[3] = 2);
    REFUSES(sketch_conv, "4 channels of the input", t[1].dims[3] = 3);
    REFUSES(sketch_conv, "channels of the output", t[1].dims[0] = 7);
    REFUSES(sketch_conv, "does not fit", t[3].dims[1] = 9);
    REFUSES(sketch_conv, "does not fit", t[3].dims[0] = 2);
    REFUSES(sketch_conv, "bias's shape", t[2].dims[0] = 5);
    REFUSES(sketch_conv, "bias is int16", t[2].type = MICA_TYPE_INT16);
    REFUSES(sketch_conv, "bias's scale", t[2].quant.scale = &scale_third);
    REFUSES(sketch_conv, "uint8 input with int8", (t[1].type = MICA_TYPE_INT8));
    REFUSES(sketch_conv, "input is uint8 but output is int8", t[3].type = MICA_TYPE_INT8);
    REFUSES(sketch_conv, "type int64 of the input", t[0].type = MICA_TYPE_INT64);
    REFUSES(sketch_conv, "int16 input with uint8 weights", t[0].type = MICA_TYPE_INT16);
    REFUSES(sketch_conv, "exactly one scale", t[0].quant.count = 0);
    REFUSES(sketch_conv, "need a scale", t[1].quant.count = 0);
    REFUSES(sketch_conv, "fused activation 9", s.op.window.activation = 9);
    REFUSES(sketch_conv, "rescaling factor", t[0].quant.scale = &scale_huge; t[2].quant.count = 0);
    ACCEPTS(sketch_conv, s.op.input_count = 2);
    ACCEPTS(sketch_conv, s.inputs[2] = MICA_NO_TENSOR);
    ACCEPTS(sketch_conv, s.op.window.kernel_x = 0); /* set from the weights */
}

/* All tensors become `type`, without quantization where it has none. */
static void retype(struct sketch *sketch, enum mica_type type)
{
    for (uint32_t i = 0; i < sketch->tensor_count; i++) {
        sketch->tensors[i].type = type;
        if (type == MICA_TYPE_FLOAT32 || type == MICA_TYPE_INT64)
            sketch->tensors[i].quant.count = 0;
    }
}

static void convolution_takes_float32(void **state)
{
    ACCEPTS(sketch_conv, retype(&s, MICA_TYPE_FLOAT32));
    REFUSES(sketch_conv, "bias is int32 instead of float32", retype(&s, MICA_TYPE_FLOAT32);
            t[2].type = MICA_TYPE_INT32);
}

static void windows_stay_in_range(void **state)
{
    REFUSES(sketch_conv, "stride of 0x1", s.op.window.stride_x = 0);
    REFUSES(sketch_conv, "stride of", s.op.window.stride_y = INT32_MAX);
    REFUSES(sketch_conv, "dilation of", s.op.window.dilation_y = -1);
    REFUSES(sketch_conv, "dilated window", s.op.window.dilation_y = 65536);
    REFUSES(sketch_conv, "padding", s.op.window.padding.left = -1);
    REFUSES(sketch_conv, "padding", s.op.window.padding.bottom = 3);
    REFUSES(sketch_conv, "padding", s.op.window.padding.right = INT32_MAX);
    REFUSES(sketch_pool, "window of", s.op.window.kernel_x = 0);
    REFUSES(sketch_pool, "window of", s.op.window.kernel_y = INT32_MAX);
    REFUSES(sketch_pool, "does not fit", s.op.window.kernel_y = 10);
    REFUSES(sketch_pool, "dilated pooling", s.op.window.dilation_x = s.op.window.dilation_y = 2;
            t[1].dims[1] = 3, t[1].dims[2] = 2);
    ACCEPTS(sketch_pool, s.op.window.dilation_x = s.op.window.dilation_y = 0);
}

static void per_channel_scales_run_along_output_channels(void **state)
{
    REFUSES(sketch_depthwise, "dimension 0", t[1].quant.axis = 0; t[1].dims[0] = 8);
    REFUSES(sketch_depthwise, "number of its scales", t[1].quant.count = 7);
    REFUSES(sketch_depthwise, "along a dimension", t[1].quant.axis = -1);
    REFUSES(sketch_depthwise, "along a dimension", t[1].quant.axis = 4);
    REFUSES(sketch_depthwise, "uint8 weights", retype(&s, MICA_TYPE_UINT8); t[0].quant.zero_point = &zero_one);
    REFUSES(sketch_depthwise, "zero point 0", t[1].quant.count = 1; t[1].quant.zero_point = &zero_one);
    ACCEPTS(sketch_depthwise, t[1].quant.count = 1);
}

static void depthwise_refuses_what_does_not_fit(void **state)
{
    REFUSES(sketch_depthwise, "multiplier 3", s.op.window.depth_multiplier = 3);
    REFUSES(sketch_depthwise, "do not fit", t[0].dims[3] = 3; s.op.window.depth_multiplier = 0);
    REFUSES(sketch_depthwise, "do not fit", t[0].dims[3] = 16);
    REFUSES(sketch_depthwise, "do not fit", t[1].dims[0] = 2);
    REFUSES(sketch_depthwise, "do not make", t[1].dims[3] = 4, t[1].quant.count = 1);
    ACCEPTS(sketch_depthwise, s.op.window.depth_multiplier = 0);
}

static void derived_parameters_are_stored(void **state)
{
    struct sketch sketch = sketch_depthwise();
    sketch.op.window.depth_multiplier = 0;
    sketch.op.window.kernel_x = -5;
    struct mica_graph *graph = sketch_build(&sketch);
    assert_null(graph->ops[0].problem);
    assert_int_equal(graph->ops[0].window.depth_multiplier, 2);
    assert_int_equal(graph->ops[0].window.kernel_x, 3);
    assert_int_equal(mica_op_macs(graph, &graph->ops[0]), 4 * 4 * 8 * 9);
    assert_true(graph->tensors[1].quant.largest_scale == 0.8f);
    assert_true(graph->tensors[1].quant.symmetric);
    mica_graph_destroy(graph);
}

static void fully_connected_refuses_what_does_not_fit(void **state)
{
    REFUSES(sketch_fully_connected, "2 dimensions", t[1].rank = 1);
    REFUSES(sketch_fully_connected, "does not fit weights", t[1].dims[1] = 15);
    REFUSES(sketch_fully_connected, "does not fit input", t[3].dims[1] = 11);
    REFUSES(sketch_fully_connected, "does not fit input", t[3].dims[0] = 3);
    REFUSES(sketch_fully_connected, "does not fit input", t[3].rank = 0);
    REFUSES(sketch_fully_connected, "fused activation", s.op.activation = 77);
    ACCEPTS(sketch_fully_connected, t[1].quant.zero_point = &zero_one); /* unlike in convolutions */
}

static void pools_do_not_rescale(void **state)
{
    REFUSES(sketch_pool, "quantized alike", t[0].quant.zero_point = &zero_one);
    REFUSES(sketch_pool, "quantized alike", t[0].quant.scale = &scale_third);
    REFUSES(sketch_pool, "channels", t[1].dims[3] = 4);
}

static void addition_broadcasts_like_tensorflow(void **state)
{
    ACCEPTS(sketch_add, t[1].dims[0] = 1);
    ACCEPTS(sketch_add, t[0].dims[0] = 1; t[1].rank = 4; t[1].dims[0] = 5; t[1].dims[1] = 1; t[1].dims[2] = 4;
            t[1].dims[3] = 1; t[2].dims[0] = 5);
    REFUSES(sketch_add, "do not make", t[1].dims[0] = 4);
    REFUSES(sketch_add, "do not make", t[2].dims[3] = 1);
    REFUSES(sketch_add, "do not make", t[2].rank = 3);
    REFUSES(sketch_add, "inputs are", t[1].type = MICA_TYPE_UINT8);
    REFUSES(sketch_add, "too small", t[2].quant.scale = &scale_tiny);
    REFUSES(sketch_add, "fused activation", s.op.activation = 4);
}

static void moving_operations_refuse_what_does_not_fit(void **state)
{
    REFUSES(sketch_reshape, "differ in size", t[1].dims[0] = 15);
    REFUSES(sketch_reshape, "input is", t[1].type = MICA_TYPE_INT8);
    REFUSES(sketch_concat, "no dimension", s.op.axis = 3);
    REFUSES(sketch_concat, "no dimension", s.op.axis = -1);
    REFUSES(sketch_concat, "does not fit", s.op.axis = 0);
    REFUSES(sketch_concat, "does not fit", t[1].rank = 2);
    REFUSES(sketch_concat, "inputs make 9", t[1].dims[1] = 6);
    REFUSES(sketch_concat, "absent", s.inputs[1] = MICA_NO_TENSOR);
    REFUSES(sketch_concat, "fused", s.op.activation = MICA_ACT_RELU);
    REFUSES(sketch_concat, "input is int8", t[1].type = MICA_TYPE_INT8);
    REFUSES(sketch_concat, "quantized alike", retype(&s, MICA_TYPE_INT8));
    ACCEPTS(sketch_concat, retype(&s, MICA_TYPE_INT64));
}

static void constant_parameters_are_checked(void **state)
{
    static const int32_t negative[] = {0, 0, -1, 4, 3, 0, 0, 0}, wrong[] = {8, 11};
    static const int32_t huge[] = {0, 0, INT32_MAX, INT32_MAX, 3, 0, 0, 0};
    static const char bytes[9];
    REFUSES(sketch_pad, "constant int32", t[1].data = NULL);
    REFUSES(sketch_pad, "constant int32", t[1].type = MICA_TYPE_FLOAT32);
    REFUSES(sketch_pad, "8 elements", t[1].dims[0] = 3);
    REFUSES(sketch_pad, "negative", t[1].data = negative);
    REFUSES(sketch_pad, "does not fit", t[1].data = huge);
    REFUSES(sketch_pad, "does not fit", t[2].dims[2] = 8);
    REFUSES(sketch_pad, "not aligned", t[1].data = bytes + ((uintptr_t)bytes % 4 == 0));
    REFUSES(sketch_pad, "size of its shape", t[1].bytes = 31);
    REFUSES(sketch_resize, "constant int32", t[1].data = NULL);
    REFUSES(sketch_resize, "2 elements", t[1].dims[0] = 1);
    REFUSES(sketch_resize, "does not fit", t[1].data = wrong);
    REFUSES(sketch_resize, "does not fit", t[2].dims[3] = 4);
    REFUSES(sketch_resize, "exclude", s.op.resize.align_corners = s.op.resize.half_pixel_centers = true);
}

static void value_operations_refuse_what_does_not_fit(void **state)
{
    REFUSES(sketch_softmax, "beta", s.op.beta = 0);
    REFUSES(sketch_softmax, "beta", s.op.beta = NAN);
    REFUSES(sketch_softmax, "beta", s.op.beta = INFINITY);
    REFUSES(sketch_softmax, "too small", s.op.beta = 1e-9f);
    REFUSES(sketch_softmax, "same shape", t[1].dims[1] = 11);
    REFUSES(sketch_softmax, "1/256", t[1].quant.scale = &scale_third);
    REFUSES(sketch_softmax, "scalar", t[0].rank = 0);
    REFUSES(sketch_logistic, "-128", t[1].quant.zero_point = &zero_one);
    REFUSES(sketch_logistic, "same shape", t[1].rank = 1);
    REFUSES(sketch_quantize, "not an integer", t[1].type = MICA_TYPE_FLOAT32);
    REFUSES(sketch_quantize, "exactly one scale", t[1].quant.count = 0);
    REFUSES(sketch_quantize, "same shape", t[0].dims[1] = 5);
    REFUSES(sketch_dequantize, "not supported", t[0].type = MICA_TYPE_FLOAT32);
    REFUSES(sketch_dequantize, "not supported", t[1].type = MICA_TYPE_INT32);
}

static void detection_refuses_what_does_not_fit(void **state)
{
    REFUSES(sketch_detection, "positive", s.op.detection.max_detections = 0);
    REFUSES(sketch_detection, "positive", s.op.detection.classes = -1);
    REFUSES(sketch_detection, "positive", s.op.detection.regular_nms = true; s.op.detection.detections_per_class = 0);
    REFUSES(sketch_detection, "threshold", s.op.detection.iou_threshold = 0);
    REFUSES(sketch_detection, "threshold", s.op.detection.score_threshold = NAN);
    REFUSES(sketch_detection, "box scale", s.op.detection.scale_h = 0);
    REFUSES(sketch_detection, "do not fit 80", s.op.detection.classes = 80);
    REFUSES(sketch_detection, "boxes", t[0].dims[2] = 5);
    REFUSES(sketch_detection, "scores", t[1].dims[1] = 49);
    REFUSES(sketch_detection, "anchors", t[2].dims[0] = 49);
    REFUSES(sketch_detection, "box output", t[3].dims[1] = 9);
    REFUSES(sketch_detection, "count output", t[6].dims[0] = 2);
    REFUSES(sketch_detection, "box output", s.op.detection.max_classes_per_detection = INT32_MAX);
    REFUSES(sketch_detection, "not float32", t[4].type = MICA_TYPE_INT32);
    REFUSES(sketch_detection, "twice", s.outputs[2] = s.outputs[1]);
    ACCEPTS(sketch_detection, s.op.detection.classes = 91);
}

static void unknown_operations_say_so(void **state)
{
    REFUSES(sketch_add, "FANCY_OP is not implemented", s.op.kind = MICA_OP_UNKNOWN; s.op.type = "FANCY_OP");
    REFUSES(sketch_add, "does not exist", s.op.kind = 1000);
    REFUSES(sketch_add, "said before", s.op.problem = "said before");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sketch_is_good),
        cmocka_unit_test(every_operation_checks_counts_and_presence),
        cmocka_unit_test(no_changed_dimension_breaks_an_invariant),
        cmocka_unit_test(convolution_refuses_what_does_not_fit),
        cmocka_unit_test(convolution_takes_float32),
        cmocka_unit_test(windows_stay_in_range),
        cmocka_unit_test(per_channel_scales_run_along_output_channels),
        cmocka_unit_test(depthwise_refuses_what_does_not_fit),
        cmocka_unit_test(derived_parameters_are_stored),
        cmocka_unit_test(fully_connected_refuses_what_does_not_fit),
        cmocka_unit_test(pools_do_not_rescale),
        cmocka_unit_test(addition_broadcasts_like_tensorflow),
        cmocka_unit_test(moving_operations_refuse_what_does_not_fit),
        cmocka_unit_test(constant_parameters_are_checked),
        cmocka_unit_test(value_operations_refuse_what_does_not_fit),
        cmocka_unit_test(detection_refuses_what_does_not_fit),
        cmocka_unit_test(unknown_operations_say_so),
    };
    return cmocka_run_group_tests_name("rules", tests, NULL, NULL);
}
