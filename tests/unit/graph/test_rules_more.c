/* SPDX-License-Identifier: MIT */
/* The rules of what broadcasts, reduces, moves and chooses: a good operation, and the same with one thing wrong. */
#include "sketch.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const float scale_third = 1.0f / 3, scale_huge = 3e38f, scale_tiny = 1e-30f;
static const int32_t one = 1;

static const enum mica_op_kind binaries[] = {
    MICA_OP_ADD, MICA_OP_SUB, MICA_OP_MUL, MICA_OP_MAXIMUM, MICA_OP_MINIMUM, MICA_OP_SQUARED_DIFFERENCE, MICA_OP_DIV};
static const enum mica_op_kind unaries[] = {
    MICA_OP_RELU, MICA_OP_RELU6, MICA_OP_RELU_N1_TO_1, MICA_OP_RELU_0_TO_1, MICA_OP_LEAKY_RELU,
    MICA_OP_TANH, MICA_OP_ELU,   MICA_OP_HARD_SWISH,   MICA_OP_ABS,         MICA_OP_NEG,
    MICA_OP_EXP,  MICA_OP_SQRT,  MICA_OP_RSQRT,        MICA_OP_LOG,
};
static const enum mica_op_kind reductions[] = {MICA_OP_MEAN, MICA_OP_SUM, MICA_OP_REDUCE_MAX, MICA_OP_REDUCE_MIN};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Every sketch of this file. */
#define MOST 64
static struct sketch all[MOST];
static size_t count;

static int draw_all(void **state)
{
    const struct sketch single[] = {
        sketch_transpose_conv(),
        sketch_prelu(),
        sketch_matmul(),
        sketch_arg_max(),
        sketch_slice(),
        sketch_split(),
        sketch_split_v(),
        sketch_transpose(),
        sketch_mirror_pad(),
        sketch_pad_value(),
        sketch_pack(),
        sketch_unpack(),
        sketch_gather(),
        sketch_gather_nd(),
        sketch_reverse(),
        sketch_cast(),
        sketch_wide_conv(),
        sketch_block(MICA_OP_SPACE_TO_DEPTH),
        sketch_block(MICA_OP_DEPTH_TO_SPACE),
    };
    for (size_t i = 0; i < COUNT(single); i++)
        all[count++] = single[i];
    for (size_t i = 0; i < COUNT(binaries); i++)
        all[count++] = sketch_binary(binaries[i]);
    for (size_t i = 0; i < COUNT(unaries); i++)
        all[count++] = sketch_unary(unaries[i]);
    for (size_t i = 0; i < COUNT(reductions); i++)
        all[count++] = sketch_reduce(reductions[i]);
    return 0;
}

static void retype(struct sketch *sketch, enum mica_type type)
{
    for (uint32_t i = 0; i < sketch->tensor_count; i++) {
        if (sketch->tensors[i].data && sketch->tensors[i].type == MICA_TYPE_INT32)
            continue;
        sketch->tensors[i].type = type;
        if (type != MICA_TYPE_UINT8 && type != MICA_TYPE_INT16)
            sketch->tensors[i].quant.count = 0;
    }
}

static void every_sketch_is_good(void **state)
{
    for (size_t i = 0; i < count; i++)
        expect_good(&all[i]);
}

/* What TensorFlow Lite fixes for tanh depends on the type; the rest only on the numbers. */
static void bytes_of_either_sign_and_floats_are_taken(void **state)
{
    for (size_t i = 0; i < count; i++) {
        enum mica_op_kind kind = all[i].op.kind;
        if (kind == MICA_OP_CONV_2D || kind == MICA_OP_GATHER || kind == MICA_OP_GATHER_ND || kind == MICA_OP_ARG_MAX ||
            kind == MICA_OP_TRANSPOSE_CONV || kind == MICA_OP_TANH || kind == MICA_OP_CAST || kind == MICA_OP_PRELU ||
            all[i].op.input_count == 3)
            continue;
        struct sketch s = all[i];
        retype(&s, MICA_TYPE_FLOAT32);
        expect_good(&s);
        s = all[i];
        retype(&s, MICA_TYPE_UINT8);
        expect_good(&s);
    }
}

static void every_operation_checks_counts_and_presence(void **state)
{
    for (size_t i = 0; i < count; i++) {
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
        s.tensors[s.outputs[0]].data = &s;
        s.tensors[s.outputs[0]].type = MICA_TYPE_UINT8;
        s.tensors[s.outputs[0]].quant.count = 0;
        expect_problem(&s, "constant");
        for (uint32_t k = 0; k < s.tensor_count; k++) {
            s = all[i];
            s.tensors[k].dims[0] = 0;
            expect_problem(&s, "can't be used");
        }
    }
}

/* Whatever one dimension becomes, the graph either finds it or it fits. The sketches check invariants. */
static void no_changed_dimension_breaks_an_invariant(void **state)
{
    static const int32_t values[] = {1, 2, 3, 5, 7, 9, 16, 65536, 65537, 1 << 20, 1 << 27, INT32_MAX};
    for (size_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < all[i].tensor_count; k++)
            for (uint32_t d = 0; d < all[i].tensors[k].rank && !all[i].tensors[k].data; d++)
                for (size_t v = 0; v < COUNT(values); v++) {
                    struct sketch s = all[i];
                    s.tensors[k].dims[d] = values[v];
                    mica_graph_destroy(sketch_build(&s));
                }
}

static void no_changed_scale_breaks_an_invariant(void **state)
{
    static const float values[] = {1e-38f, 1e-20f, 1e-10f, 1e-6f, 1e6f, 1e10f, 1e20f, 1e38f};
    for (size_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < all[i].tensor_count; k++)
            for (size_t v = 0; v < COUNT(values) && all[i].tensors[k].quant.count == 1; v++) {
                struct sketch s = all[i];
                s.tensors[k].quant.scale = &values[v];
                mica_graph_destroy(sketch_build(&s));
            }
}

static void inferred_shapes_are_what_the_rules_want(void **state)
{
    for (size_t i = 0; i < count; i++) {
        if (all[i].op.kind == MICA_OP_SLICE)
            continue; /* this one has lost a dimension, which only its masks tell */
        struct mica_graph *built = sketch_build(&all[i]);
        for (uint32_t k = 0; k < built->ops[0].output_count; k++) {
            const struct mica_tensor *output = mica_op_output(built, built->ops, k);
            uint32_t rank;
            int32_t dims[MICA_MAX_RANK];
            if (!mica_op_infer_output_shape(built, built->ops, k, &rank, dims))
                fail_msg("%s: no shape", built->ops[0].type);
            assert_int_equal(rank, output->rank);
            assert_memory_equal(dims, output->dims, rank * sizeof *dims);
        }
        mica_graph_destroy(built);
    }
}

/* ---- kind by kind ----------------------------------------------------- */

static void binary_operations_refuse_what_does_not_fit(void **state)
{
    for (size_t i = 0; i < COUNT(binaries); i++) {
        enum mica_op_kind kind = binaries[i];
        bool alike = kind == MICA_OP_MAXIMUM || kind == MICA_OP_MINIMUM;
        REFUSES_KIND(sketch_binary(kind), "do not make", t[1].dims[0] = 3);
        REFUSES_KIND(sketch_binary(kind), "do not make", t[2].rank = 3);
        REFUSES_KIND(sketch_binary(kind), "inputs are", t[1].type = MICA_TYPE_UINT8);
        REFUSES_KIND(sketch_binary(kind), "but output is", t[2].type = MICA_TYPE_UINT8);
        REFUSES_KIND(sketch_binary(kind), "hybrid", t[0].type = MICA_TYPE_FLOAT32; t[0].quant.count = 0);
        REFUSES_KIND(sketch_binary(kind), "type int64", t[0].type = MICA_TYPE_INT64);
        REFUSES_KIND(sketch_binary(kind), "exactly one scale", t[0].quant.count = 0);
        REFUSES_KIND(sketch_binary(kind), alike ? "quantized alike" : "", t[2].quant.scale = &scale_tiny);
        ACCEPTS_KIND(sketch_binary(kind), retype(&s, MICA_TYPE_INT32));
    }
    enum mica_op_kind kind = MICA_OP_MUL;
    REFUSES_KIND(sketch_binary(kind), "fused activation 9", s.op.activation = 9);
    REFUSES_KIND(sketch_binary(kind), "rescaling factor", t[0].quant.scale = &scale_huge);
    kind = MICA_OP_SQUARED_DIFFERENCE;
    ACCEPTS_KIND(sketch_binary(kind), s.op.activation = 9); /* it has none */
    REFUSES_KIND(sketch_binary(kind), "too small", t[2].quant.scale = &scale_tiny);
    kind = MICA_OP_FLOOR_DIV;
    REFUSES_KIND(sketch_binary(kind), "not supported", );
    ACCEPTS_KIND(sketch_binary(kind), retype(&s, MICA_TYPE_INT32));
}

static void prelu_refuses_what_does_not_fit(void **state)
{
    REFUSES(sketch_prelu, "slopes should be constant", t[1].data = NULL);
    REFUSES(sketch_prelu, "do not make", t[1].dims[2] = 4);
    REFUSES(sketch_prelu, "same shape", t[0].dims[1] = 1; t[1].dims[1] = 1; t[1].dims[0] = 4;
            t[1].data = "0123456789012345678901234567890");
    REFUSES(sketch_prelu, "rescaling factor", t[2].quant.scale = &scale_tiny);
    REFUSES(sketch_prelu, "rescaling factor", t[1].quant.scale = &scale_huge);
}

static void matrices_have_to_fit(void **state)
{
    REFUSES(sketch_matmul, "do not make", t[1].dims[1] = 3);
    REFUSES(sketch_matmul, "(transposed)", t[2].dims[1] = 5);
    REFUSES(sketch_matmul, "do not make", t[1].rank = 1);
    REFUSES(sketch_matmul, "do not make", s.op.matmul.adjoint_y = false);
    REFUSES(sketch_matmul, "type int32", retype(&s, MICA_TYPE_INT32));
    REFUSES(sketch_matmul, "rescaling factor", t[2].quant.scale = &scale_tiny);
    REFUSES(sketch_matmul, "hybrid", t[0].type = MICA_TYPE_FLOAT32; t[0].quant.count = 0);
    ACCEPTS(sketch_matmul, s.op.matmul.adjoint_x = true; t[0].dims[1] = 4; t[0].dims[2] = 3);
    ACCEPTS(sketch_matmul, s.op.matmul.adjoint_y = false; t[1].dims[0] = 4; t[1].dims[1] = 5);
}

static void macs_are_counted(void **state)
{
    struct sketch sketches[] = {sketch_matmul(), sketch_transpose_conv(), sketch_matmul()};
    static const uint64_t expected[] = {2 * 3 * 4 * 5, 4 * 4 * 3 * 3 * 3 * 2, 2 * 3 * 4 * 5};
    sketches[2].op.matmul.adjoint_x = true;
    sketches[2].tensors[0].dims[1] = 4;
    sketches[2].tensors[0].dims[2] = 3;
    for (size_t i = 0; i < COUNT(sketches); i++) {
        struct mica_graph *graph = sketch_build(&sketches[i]);
        assert_null(graph->ops[0].problem);
        assert_int_equal(mica_op_macs(graph, graph->ops), expected[i]);
        mica_graph_destroy(graph);
    }
}

static void transposed_convolution_refuses_what_does_not_fit(void **state)
{
    static const int32_t other[] = {1, 8, 7, 2};
    REFUSES(sketch_transpose_conv, "4 dimensions", t[2].rank = 3);
    REFUSES(sketch_transpose_conv, "constant int32", t[0].data = NULL);
    REFUSES(sketch_transpose_conv, "that input 0 asks for", t[0].data = other);
    REFUSES(sketch_transpose_conv, "does not fit", t[2].dims[1] = 5);
    REFUSES(sketch_transpose_conv, "channels of the input", t[2].dims[3] = 4);
    REFUSES(sketch_transpose_conv, "do not make", t[1].dims[0] = 1; t[1].quant.count = 1);
    REFUSES(sketch_transpose_conv, "padding", s.op.window.padding.left = 3);
    REFUSES(sketch_transpose_conv, "stride", s.op.window.stride_x = 0);
    REFUSES(sketch_transpose_conv, "dilated", s.op.window.dilation_x = s.op.window.dilation_y = 2;
            s.op.window.padding = (struct mica_padding){1, 1, 2, 2});
    REFUSES(sketch_transpose_conv, "fused activation", s.op.window.activation = 5);
    REFUSES(sketch_transpose_conv, "bias's shape", t[3].dims[0] = 3);
    REFUSES(sketch_transpose_conv, "bias is int64", t[3].type = MICA_TYPE_INT64);
    REFUSES(sketch_transpose_conv, "zero point 0", t[1].quant.count = 1; t[1].quant.zero_point = &one);
    REFUSES(sketch_transpose_conv, "type int16", t[2].type = t[4].type = MICA_TYPE_INT16);
    REFUSES(sketch_transpose_conv, "hybrid", t[2].type = t[4].type = MICA_TYPE_FLOAT32);
    ACCEPTS(sketch_transpose_conv, s.inputs[3] = MICA_NO_TENSOR);
    ACCEPTS(sketch_transpose_conv, s.op.input_count = 3);
    ACCEPTS(sketch_transpose_conv, s.op.window.dilation_x = 0);
}

static void wide_values_have_narrow_weights(void **state)
{
    REFUSES(sketch_wide_conv, "zero point 0", t[0].quant.zero_point = &one);
    REFUSES(sketch_wide_conv, "zero point 0", t[3].quant.zero_point = &one);
    REFUSES(sketch_wide_conv, "zero point 0", t[1].quant.zero_point = &one);
    REFUSES(sketch_wide_conv, "one scale", t[3].quant.count = 0);
    REFUSES(sketch_wide_conv, "int16 weights", t[1].type = MICA_TYPE_INT16);
    REFUSES(sketch_wide_conv, "int8 output", t[3].type = MICA_TYPE_INT8);
    REFUSES(sketch_wide_conv, "bias is int16", t[2].type = MICA_TYPE_INT16);
    REFUSES(sketch_wide_conv, "rescaling factor", t[0].quant.scale = &scale_huge; t[2].quant.count = 0);
    ACCEPTS(sketch_wide_conv, t[2].type = MICA_TYPE_INT32);
}

static void unary_operations_refuse_what_does_not_fit(void **state)
{
    for (size_t i = 0; i < COUNT(unaries); i++) {
        enum mica_op_kind kind = unaries[i];
        REFUSES_KIND(sketch_unary(kind), "same shape", t[1].dims[1] = 5);
        REFUSES_KIND(sketch_unary(kind), "but output is", t[1].type = MICA_TYPE_UINT8);
        REFUSES_KIND(sketch_unary(kind), "type int16", t[0].type = MICA_TYPE_INT16);
        REFUSES_KIND(sketch_unary(kind), "scale", t[1].quant.scale = &scale_tiny);
    }
    enum mica_op_kind kind = MICA_OP_TANH;
    REFUSES_KIND(sketch_unary(kind), "1/128", t[1].quant.scale = &scale_third);
    REFUSES_KIND(sketch_unary(kind), "zero point 0", t[1].quant.zero_point = &one);
    REFUSES_KIND(sketch_unary(kind), "zero point 128", t[0].type = t[1].type = MICA_TYPE_UINT8);
    kind = MICA_OP_HARD_SWISH;
    REFUSES_KIND(sketch_unary(kind), "too small", t[1].quant.scale = &scale_tiny);
    kind = MICA_OP_LEAKY_RELU;
    REFUSES_KIND(sketch_unary(kind), "slope", s.op.alpha = NAN);
    REFUSES_KIND(sketch_unary(kind), "slope", s.op.alpha = INFINITY);
    REFUSES_KIND(sketch_unary(kind), "rescaling factor", s.op.alpha = -1e30f);
    ACCEPTS_KIND(sketch_unary(kind), s.op.alpha = 0);
    ACCEPTS_KIND(sketch_unary(kind), s.op.alpha = -2);
}

static void reductions_refuse_what_does_not_fit(void **state)
{
    static const int32_t outside[] = {1, 4}, far[] = {-5, 1}, last[] = {3, 3};
    for (size_t i = 0; i < COUNT(reductions); i++) {
        enum mica_op_kind kind = reductions[i];
        REFUSES_KIND(sketch_reduce(kind), "axes", t[1].data = NULL);
        REFUSES_KIND(sketch_reduce(kind), "axes", t[1].data = outside);
        REFUSES_KIND(sketch_reduce(kind), "axes", t[1].data = far);
        REFUSES_KIND(sketch_reduce(kind), "axes", t[1].type = MICA_TYPE_FLOAT32);
        REFUSES_KIND(sketch_reduce(kind), "does not fit", t[1].data = last);
        REFUSES_KIND(sketch_reduce(kind), "does not fit", s.op.keep_dims = true);
        REFUSES_KIND(sketch_reduce(kind), "does not fit", t[2].dims[1] = 4);
        REFUSES_KIND(sketch_reduce(kind), "", t[2].quant.scale = &scale_tiny);
        ACCEPTS_KIND(sketch_reduce(kind), s.op.keep_dims = true; t[2].rank = 4; t[2].dims[1] = t[2].dims[2] = 1;
                     t[2].dims[3] = 3);
        ACCEPTS_KIND(sketch_reduce(kind), t[1].data = last; t[2].rank = 3; t[2].dims[1] = 5; t[2].dims[2] = 6);
    }
    enum mica_op_kind kind = MICA_OP_REDUCE_MAX;
    REFUSES_KIND(sketch_reduce(kind), "quantized alike", t[2].quant.scale = &scale_third);
    kind = MICA_OP_REDUCE_MIN;
    REFUSES_KIND(sketch_reduce(kind), "quantized alike", t[2].quant.scale = &scale_third);
    kind = MICA_OP_SUM;
    REFUSES_KIND(sketch_reduce(kind), "adds up more", t[0].dims[1] = 2000000);
}

static void axes_are_stored_as_bits(void **state)
{
    struct sketch sketch = sketch_reduce(MICA_OP_MEAN);
    struct mica_graph *graph = sketch_build(&sketch);
    assert_int_equal(graph->ops[0].axes, 1 << 1 | 1 << 2);
    mica_graph_destroy(graph);
    sketch = sketch_arg_max();
    graph = sketch_build(&sketch);
    assert_int_equal(graph->ops[0].axis, 2);
    mica_graph_destroy(graph);
    sketch = sketch_split();
    graph = sketch_build(&sketch);
    assert_int_equal(graph->ops[0].axis, 1);
    assert_int_equal(mica_op_data_input(graph->ops), 1);
    mica_graph_destroy(graph);
    sketch = sketch_split_v();
    assert_int_equal(mica_op_data_input(&sketch.op), 0);
}

static void arg_max_refuses_what_does_not_fit(void **state)
{
    static const int32_t axes[] = {0, 1};
    REFUSES(sketch_arg_max, "not int32 or int64", t[2].type = MICA_TYPE_INT8);
    REFUSES(sketch_arg_max, "type int32", t[0].type = MICA_TYPE_INT32);
    REFUSES(sketch_arg_max, "axes", t[1].data = NULL);
    REFUSES(sketch_arg_max, "1 element", t[1].data = axes; t[1].dims[0] = 2);
    REFUSES(sketch_arg_max, "does not fit", t[2].dims[1] = 6);
    ACCEPTS(sketch_arg_max, t[2].type = MICA_TYPE_INT32);
    ACCEPTS(sketch_arg_max, t[0].quant.count = 0);
}

static void slices_stay_inside(void **state)
{
    REFUSES(sketch_slice, "not inside", s.op.slice.step[0] = 0);
    REFUSES(sketch_slice, "not inside", s.op.slice.count[0] = 0);
    REFUSES(sketch_slice, "not inside", s.op.slice.begin[1] = -1);
    REFUSES(sketch_slice, "not inside", s.op.slice.begin[1] = 2);
    REFUSES(sketch_slice, "not inside", s.op.slice.begin[2] = 3);
    REFUSES(sketch_slice, "not inside", s.op.slice.count[2] = INT32_MAX; s.op.slice.step[2] = INT32_MAX);
    REFUSES(sketch_slice, "not inside", s.op.slice.count[2] = INT32_MAX; s.op.slice.step[2] = INT32_MIN);
    REFUSES(sketch_slice, "what it takes", t[1].dims[1] = 3);
    REFUSES(sketch_slice, "what it takes", t[1].dims[0] = 2);
    REFUSES(sketch_slice, "what it takes", t[1].dims[1] = 5; t[1].dims[2] = 2);
    REFUSES(sketch_slice, "quantized alike", t[1].quant.zero_point = &(const int32_t){9});
    REFUSES(sketch_slice, "but output is", t[1].type = MICA_TYPE_UINT8);
    ACCEPTS(sketch_slice, t[1].rank = 5; t[1].dims[3] = t[1].dims[4] = 1);
    ACCEPTS(sketch_slice, retype(&s, MICA_TYPE_BOOL));
}

static void splits_use_all_of_their_input(void **state)
{
    static const int32_t sizes[] = {2, 3}, outside[] = {3};
    REFUSES(sketch_split, "axes", t[0].data = NULL);
    REFUSES(sketch_split, "axes", t[0].data = outside);
    REFUSES(sketch_split, "can't be split into 2", t[1].dims[1] = 5);
    REFUSES(sketch_split, "should have size 3", t[2].dims[1] = 4);
    REFUSES(sketch_split, "does not fit", t[3].dims[2] = 4);
    REFUSES(sketch_split, "quantized alike", t[3].quant.scale = &scale_third);
    REFUSES(sketch_split, "should have size 6", s.op.output_count = 1);
    REFUSES(sketch_split_v, "should have size 3", t[1].data = sizes);
    REFUSES(sketch_split_v, "as many constant integers", t[1].data = NULL);
    REFUSES(sketch_split_v, "as many constant integers", t[1].dims[0] = 1);
    REFUSES(sketch_split_v, "make 7", t[4].dims[1] = 5);
    REFUSES(sketch_split_v, "absent", s.inputs[2] = MICA_NO_TENSOR);
    ACCEPTS(sketch_split, retype(&s, MICA_TYPE_INT64));
}

static void stacks_have_equal_slices(void **state)
{
    REFUSES(sketch_pack, "no dimension", s.op.axis = 3);
    REFUSES(sketch_pack, "no dimension", s.op.axis = -1);
    REFUSES(sketch_pack, "2 slices", s.op.axis = 2);
    REFUSES(sketch_pack, "do not fit", t[1].dims[0] = 3);
    REFUSES(sketch_pack, "quantized alike", t[1].quant.scale = &scale_third);
    REFUSES(sketch_unpack, "no dimension", s.op.axis = -3);
    REFUSES(sketch_unpack, "1 slices", s.op.output_count = 1);
    REFUSES(sketch_unpack, "do not fit", t[2].dims[0] = 3);
    ACCEPTS(sketch_pack, retype(&s, MICA_TYPE_INT32));
    ACCEPTS(sketch_unpack, retype(&s, MICA_TYPE_BOOL));
}

static void moves_refuse_what_does_not_fit(void **state)
{
    static const int32_t twice[] = {0, 0, 1}, outside[] = {0, 1, 3}, negative[] = {0, -2, -1}, three[] = {3};
    REFUSES(sketch_transpose, "permutation should be a constant", t[1].data = NULL);
    REFUSES(sketch_transpose, "each of 3 dimensions once", t[1].data = twice; t[2].dims[0] = t[2].dims[1] = 2);
    REFUSES(sketch_transpose, "once", t[1].data = outside; t[2].dims[0] = 2; t[2].dims[1] = 3);
    REFUSES(sketch_transpose, "once", t[1].data = negative; t[2].dims[0] = 2);
    REFUSES(sketch_transpose, "does not fit", t[2].dims[1] = 3);
    ACCEPTS(sketch_transpose, retype(&s, MICA_TYPE_INT16));
    REFUSES(sketch_reverse, "axes", t[1].data = three);
    REFUSES(sketch_reverse, "same shape", t[2].dims[1] = 4);
    REFUSES(sketch_cast, "same shape", t[1].dims[1] = 6);
    for (int i = 0; i < 2; i++) {
        enum mica_op_kind kind = i ? MICA_OP_SPACE_TO_DEPTH : MICA_OP_DEPTH_TO_SPACE;
        REFUSES_KIND(sketch_block(kind), "out of range", s.op.block = 0);
        REFUSES_KIND(sketch_block(kind), "out of range", s.op.block = INT32_MAX);
        REFUSES_KIND(sketch_block(kind), "does not fit", s.op.block = 3);
        REFUSES_KIND(sketch_block(kind), "4 dimensions", t[0].rank = 3);
        REFUSES_KIND(sketch_block(kind), "does not fit", t[1].dims[1]++);
        ACCEPTS_KIND(sketch_block(kind), retype(&s, MICA_TYPE_INT32));
    }
}

static void paddings_refuse_what_does_not_fit(void **state)
{
    static const int32_t wide[] = {0, 0, 4, 1}, symmetric[] = {0, 0, 4, 1};
    static const int8_t values[2];
    REFUSES(sketch_mirror_pad, "at most 3", t[1].data = wide);
    REFUSES(sketch_mirror_pad, "constant int32", t[1].data = NULL);
    ACCEPTS(sketch_mirror_pad, s.op.mirror_symmetric = true; t[1].data = symmetric);
    REFUSES(sketch_pad_value, "constant of one element", t[2].data = NULL);
    REFUSES(sketch_pad_value, "constant of one element", t[2].data = values; t[2].dims[0] = 2);
    REFUSES(sketch_pad_value, "quantized alike", t[2].quant.scale = &scale_third);
    REFUSES(sketch_pad_value, "but output is", t[2].type = MICA_TYPE_UINT8);
    ACCEPTS(sketch_pad_value, s.op.input_count = 2);
    ACCEPTS(sketch_pad, retype(&s, MICA_TYPE_INT64));
}

static void choices_refuse_what_does_not_fit(void **state)
{
    REFUSES(sketch_gather, "no dimension", s.op.axis = 3);
    REFUSES(sketch_gather, "no dimension", s.op.axis = -1);
    REFUSES(sketch_gather, "does not fit", s.op.axis = 0);
    REFUSES(sketch_gather, "does not fit", t[2].dims[2] = 6);
    REFUSES(sketch_gather, "does not fit", t[2].rank = 5; t[2].dims[4] = 1);
    REFUSES(sketch_gather, "not int32 or int64", t[1].type = MICA_TYPE_INT16);
    REFUSES(sketch_gather_nd, "do not fit input", t[1].dims[1] = 4);
    REFUSES(sketch_gather_nd, "do not fit input", t[1].rank = 0);
    REFUSES(sketch_gather_nd, "does not fit", t[1].dims[1] = 3);
    REFUSES(sketch_gather_nd, "not int32 or int64", t[1].type = MICA_TYPE_INT8);
    ACCEPTS(sketch_gather_nd, t[1].dims[1] = 3; t[2].rank = 1);
    ACCEPTS(sketch_gather, t[0].type = t[2].type = MICA_TYPE_BOOL; t[0].quant.count = t[2].quant.count = 0);
}

static void what_will_not_be_implemented_says_what_it_is(void **state)
{
    REFUSES(sketch_add, "LSTM is not implemented: it is recurrent", s.op.kind = MICA_OP_UNKNOWN; s.op.type = "LSTM");
    REFUSES(sketch_add, "control flow", s.op.kind = MICA_OP_UNKNOWN; s.op.type = "CALL_ONCE");
    REFUSES(sketch_add, "control flow", s.op.kind = MICA_OP_UNKNOWN; s.op.type = "IF");
    REFUSES(sketch_add, "LIFT is not implemented", s.op.kind = MICA_OP_UNKNOWN; s.op.type = "LIFT");
    REFUSES(sketch_add, "variables", s.op.kind = MICA_OP_UNKNOWN; s.op.type = "ASSIGN_VARIABLE");
    REFUSES(sketch_add, "complex numbers", s.op.kind = MICA_OP_UNKNOWN; s.op.type = "RFFT2D");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sketch_is_good),
        cmocka_unit_test(bytes_of_either_sign_and_floats_are_taken),
        cmocka_unit_test(every_operation_checks_counts_and_presence),
        cmocka_unit_test(no_changed_dimension_breaks_an_invariant),
        cmocka_unit_test(no_changed_scale_breaks_an_invariant),
        cmocka_unit_test(inferred_shapes_are_what_the_rules_want),
        cmocka_unit_test(binary_operations_refuse_what_does_not_fit),
        cmocka_unit_test(prelu_refuses_what_does_not_fit),
        cmocka_unit_test(matrices_have_to_fit),
        cmocka_unit_test(macs_are_counted),
        cmocka_unit_test(transposed_convolution_refuses_what_does_not_fit),
        cmocka_unit_test(wide_values_have_narrow_weights),
        cmocka_unit_test(unary_operations_refuse_what_does_not_fit),
        cmocka_unit_test(reductions_refuse_what_does_not_fit),
        cmocka_unit_test(axes_are_stored_as_bits),
        cmocka_unit_test(arg_max_refuses_what_does_not_fit),
        cmocka_unit_test(slices_stay_inside),
        cmocka_unit_test(splits_use_all_of_their_input),
        cmocka_unit_test(stacks_have_equal_slices),
        cmocka_unit_test(moves_refuse_what_does_not_fit),
        cmocka_unit_test(paddings_refuse_what_does_not_fit),
        cmocka_unit_test(choices_refuse_what_does_not_fit),
        cmocka_unit_test(what_will_not_be_implemented_says_what_it_is),
    };
    return cmocka_run_group_tests_name("more rules", tests, draw_all, NULL);
}
