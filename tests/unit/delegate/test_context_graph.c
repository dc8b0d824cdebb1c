/* SPDX-License-Identifier: MIT */
/* What the delegate makes of an interpreter's nodes, and of those that no interpreter should have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "delegate/context_graph.h"
#include "delegate/op_params.h"
#include "models.h"

static struct tfl_tensor *tensor(struct host *host, int index)
{
    return &host->context.tensors[index];
}

static struct tfl_affine_quantization *affine(struct host *host, int index)
{
    return tensor(host, index)->quantization.params;
}

static struct tfl_conv_params *conv_params(struct host *host)
{
    return host->nodes[0]->builtin_data;
}

/* ---- well-formed nodes ------------------------------------------------ */

static void a_conv_arrives_whole(void **state)
{
    struct host *host = model_conv();
    struct mica_context_graph result;
    assert_int_equal(mica_context_graph_create(&host->context, NULL, &result), 0);
    const struct mica_graph *graph = result.graph;
    assert_int_equal(graph->tensor_count, CONV_TENSORS);
    assert_int_equal(graph->op_count, 1);
    assert_int_equal(result.nodes[0], 0);
    const struct mica_op *op = &graph->ops[0];
    assert_null(op->problem);
    assert_int_equal(op->kind, MICA_OP_CONV_2D);
    assert_int_equal(op->window.kernel_x, 3);
    assert_int_equal(op->window.padding.left, 1);
    assert_int_equal(op->window.padding.bottom, 1);
    assert_ptr_equal(graph->tensors[CONV_WEIGHTS].data, tensor(host, CONV_WEIGHTS)->data);
    assert_int_equal(graph->tensors[CONV_WEIGHTS].quant.count, 8);
    assert_int_equal(graph->tensors[CONV_WEIGHTS].quant.axis, 0);
    assert_null(graph->tensors[CONV_INPUT].data);
    mica_context_graph_finish(&result);
    host_destroy(host);
}

static void an_absent_bias_stays_absent(void **state)
{
    struct host *host = model_conv();
    struct mica_context_graph result;
    host->nodes[0]->inputs->data[2] = TFL_OPTIONAL_TENSOR;
    assert_int_equal(mica_context_graph_create(&host->context, NULL, &result), 0);
    assert_null(result.graph->ops[0].problem);
    assert_int_equal(result.graph->ops[0].inputs[2], MICA_NO_TENSOR);
    mica_context_graph_finish(&result);
    host_destroy(host);
}

static void one_zero_point_may_serve_all_channels(void **state)
{
    struct host *host = model_conv();
    struct mica_context_graph result;
    affine(host, CONV_WEIGHTS)->zero_point->size = 1;
    assert_int_equal(mica_context_graph_create(&host->context, NULL, &result), 0);
    assert_null(result.graph->ops[0].problem);
    assert_int_equal(result.graph->tensors[CONV_WEIGHTS].quant.zero_point[7], 0);
    mica_context_graph_finish(&result);
    host_destroy(host);
}

static void same_padding_puts_the_odd_row_last(void **state)
{
    struct host *host = model_conv();
    struct mica_context_graph result;
    conv_params(host)->stride_width = conv_params(host)->stride_height = 2;
    tensor(host, CONV_OUTPUT)->dims->data[1] = tensor(host, CONV_OUTPUT)->dims->data[2] = 3;
    assert_int_equal(mica_context_graph_create(&host->context, NULL, &result), 0);
    const struct mica_op *op = &result.graph->ops[0];
    assert_null(op->problem);
    assert_int_equal(op->window.padding.top, 0);
    assert_int_equal(op->window.padding.bottom, 1);
    mica_context_graph_finish(&result);
    host_destroy(host);
}

static void negative_axes_count_from_the_end(void **state)
{
    static const struct tfl_concatenation_params params = {.axis = -1};
    static const int half[] = {1, 2, 2, 3}, whole[] = {1, 2, 2, 6}, inputs[] = {0, 1}, outputs[] = {2};
    const float scale = 1;
    const int zero = 0;
    struct host *host = host_create(3);
    for (int i = 0; i < 3; i++) {
        host_set_tensor(host, i, TFL_TYPE_INT8, 4, i == 2 ? whole : half, "part");
        host_set_quantization(host, i, 1, &scale, &zero, 0);
    }
    host_add_node(host, TFL_BUILTIN_CONCATENATION, &params, sizeof params, 2, inputs, 1, outputs);
    struct mica_context_graph result;
    assert_int_equal(mica_context_graph_create(&host->context, NULL, &result), 0);
    assert_null(result.graph->ops[0].problem);
    assert_int_equal(result.graph->ops[0].axis, 3);
    mica_context_graph_finish(&result);
    ((struct tfl_concatenation_params *)host->nodes[0]->builtin_data)->axis = INT_MIN;
    assert_int_equal(mica_context_graph_create(&host->context, NULL, &result), 0);
    assert_non_null(strstr(result.graph->ops[0].problem, "axis"));
    mica_context_graph_finish(&result);
    host_destroy(host);
}

/* ---- parameters, kind by kind ----------------------------------------- */

/* One node with int8 tensors of given shapes, the last of which is its output. */
struct plan {
    int code, version;
    int count;                   /* of tensors */
    int dims[4][5];              /* rank, sizes */
    const int32_t *constants[4]; /* makes an int32 constant of the tensor */
};

static struct host *host_of(const struct plan *plan, const void *params, size_t size)
{
    struct host *host = host_create(plan->count);
    const float scale = 0.5f;
    const int zero = 0;
    int inputs[4] = {0, 1, 2, 3}, output = plan->count - 1;
    for (int i = 0; i < plan->count; i++) {
        bool constant = plan->constants[i] != NULL;
        host_set_tensor(host, i, constant ? TFL_TYPE_INT32 : TFL_TYPE_INT8, plan->dims[i][0], plan->dims[i] + 1, "t");
        if (constant)
            host_set_constant(host, i, plan->constants[i]);
        else
            host_set_quantization(host, i, 1, &scale, &zero, 0);
    }
    int node = host_add_node(host, plan->code, params, size, output, inputs, 1, &output);
    host->registrations[node].version = plan->version;
    return host;
}

/* The operation of `plan`; `result` is to be finished. Without parameters it must have a problem. */
static const struct mica_op *op_of(const struct plan *plan, const void *params, size_t size,
                                   struct mica_context_graph *result)
{
    struct host *host = host_of(plan, NULL, 0);
    assert_int_equal(mica_context_graph_create(&host->context, NULL, result), 0);
    assert_non_null(strstr(result->graph->ops[0].problem, "parameters are missing"));
    mica_context_graph_finish(result);
    host_destroy(host);
    host = host_of(plan, params, size);
    assert_int_equal(mica_context_graph_create(&host->context, NULL, result), 0);
    host_destroy(host);
    return &result->graph->ops[0];
}

#define PARAMS(type, ...) &(const struct type){__VA_ARGS__}, sizeof(struct type)

static void parameters_of_two_inputs_arrive(void **state)
{
    static const struct plan plan = {.code = TFL_BUILTIN_SUB, .count = 3, .dims = {{2, 2, 3}, {1, 3}, {2, 2, 3}}};
    struct mica_context_graph result;
    static const struct {
        int code;
        enum mica_op_kind kind;
    } all[] = {{TFL_BUILTIN_SUB, MICA_OP_SUB}, {TFL_BUILTIN_MUL, MICA_OP_MUL}, {TFL_BUILTIN_DIV, MICA_OP_DIV}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        struct plan one = plan;
        one.code = all[i].code;
        const struct mica_op *op = op_of(&one, PARAMS(tfl_add_params, TFL_ACT_RELU6), &result);
        assert_null(op->problem);
        assert_int_equal(op->kind, all[i].kind);
        assert_int_equal(op->activation, MICA_ACT_RELU6);
        mica_context_graph_finish(&result);
    }
    struct plan matrices = {.code = TFL_BUILTIN_BATCH_MATMUL, .count = 3, .dims = {{2, 4, 3}, {2, 4, 5}, {2, 3, 5}}};
    const struct mica_op *op = op_of(&matrices, PARAMS(tfl_batch_matmul_params, true, false), &result);
    assert_null(op->problem);
    assert_true(op->matmul.adjoint_x && !op->matmul.adjoint_y);
    mica_context_graph_finish(&result);
}

static void a_transposed_convolution_is_resolved(void **state)
{
    static const int32_t shape[] = {1, 8, 8, 2};
    static const struct plan plan = {.code = TFL_BUILTIN_TRANSPOSE_CONV,
                                     .version = 3,
                                     .count = 4,
                                     .dims = {{1, 4}, {4, 2, 3, 3, 3}, {4, 1, 4, 4, 3}, {4, 1, 8, 8, 2}},
                                     .constants = {shape}};
    struct mica_context_graph result;
    const struct mica_op *op =
        op_of(&plan, PARAMS(tfl_transpose_conv_params, TFL_PADDING_SAME, 2, 2, TFL_ACT_RELU), &result);
    assert_null(op->problem);
    assert_int_equal(op->window.padding.left, 0);
    assert_int_equal(op->window.padding.right, 1);
    assert_int_equal(op->window.stride_y, 2);
    assert_int_equal(op->window.activation, MICA_ACT_NONE); /* version 3 has none, whatever is in memory there */
    mica_context_graph_finish(&result);
    struct plan newer = plan;
    newer.version = 4;
    op = op_of(&newer, PARAMS(tfl_transpose_conv_params, TFL_PADDING_SAME, 2, 2, TFL_ACT_RELU), &result);
    assert_int_equal(op->window.activation, MICA_ACT_RELU);
    mica_context_graph_finish(&result);
    op = op_of(&plan, PARAMS(tfl_transpose_conv_params, 7, 2, 2, TFL_ACT_NONE), &result);
    assert_non_null(strstr(op->problem, "SAME nor VALID"));
    mica_context_graph_finish(&result);
}

static void a_strided_slice_is_resolved(void **state)
{
    static const int32_t begin[] = {1, -1}, end[] = {3, 0}, step[] = {1, -2};
    static const struct plan plan = {.code = TFL_BUILTIN_STRIDED_SLICE,
                                     .version = 2,
                                     .count = 5 - 1,
                                     .dims = {{2, 4, 5}, {1, 2}, {1, 2}, {1, 2}},
                                     .constants = {NULL, begin, end, step}};
    const struct tfl_strided_slice_params params = {.end_mask = 2, .offset = true};
    struct mica_slice_masks masks = {.end = 2};
    struct host *host = host_create(5);
    const float scale = 0.5f;
    const int zero = 0, inputs[] = {0, 1, 2, 3}, output = 4, taken[] = {2, 3};
    for (int i = 1; i < plan.count; i++) {
        host_set_tensor(host, i, TFL_TYPE_INT32, 1, plan.dims[i] + 1, "t");
        host_set_constant(host, i, plan.constants[i]);
    }
    host_set_tensor(host, 0, TFL_TYPE_INT8, 2, plan.dims[0] + 1, "t");
    host_set_tensor(host, 4, TFL_TYPE_INT8, 2, taken, "t");
    host_set_quantization(host, 0, 1, &scale, &zero, 0);
    host_set_quantization(host, 4, 1, &scale, &zero, 0);
    int node = host_add_node(host, plan.code, &params, sizeof params, 4, inputs, 1, &output);
    host->registrations[node].version = plan.version;
    struct mica_context_graph result;
    assert_int_equal(mica_context_graph_create(&host->context, NULL, &result), 0);
    const struct mica_op *op = &result.graph->ops[0];
    struct mica_slice slice;
    uint32_t rank;
    int32_t dims[MICA_MAX_RANK];
    assert_null(op->problem);
    assert_null(mica_slice_resolve(result.graph, op, &masks, &slice, &rank, dims)); /* no offset before version 8 */
    assert_memory_equal(&op->slice, &slice, sizeof slice);
    assert_int_equal(op->slice.begin[1], 4);
    assert_int_equal(op->slice.step[1], -2);
    assert_int_equal(op->slice.count[1], 3);
    mica_context_graph_finish(&result);
    host->registrations[node].version = 8;
    assert_int_equal(mica_context_graph_create(&host->context, NULL, &result), 0);
    assert_non_null(result.graph->ops[0].problem); /* now its rows end behind the second */
    mica_context_graph_finish(&result);
    host_destroy(host);
}

static void parameters_of_one_number_arrive(void **state)
{
    static const int32_t axes[] = {-1};
    struct mica_context_graph result;
    struct plan plan = {.code = TFL_BUILTIN_LEAKY_RELU, .count = 2, .dims = {{1, 4}, {1, 4}}};
    const struct mica_op *op = op_of(&plan, PARAMS(tfl_leaky_relu_params, 0.25f), &result);
    assert_null(op->problem);
    assert_true(op->alpha == 0.25f);
    mica_context_graph_finish(&result);
    plan = (struct plan){.code = TFL_BUILTIN_SPACE_TO_DEPTH, .count = 2, .dims = {{4, 1, 4, 6, 3}, {4, 1, 2, 3, 12}}};
    op = op_of(&plan, PARAMS(tfl_block_params, 2), &result);
    assert_null(op->problem);
    assert_int_equal(op->block, 2);
    mica_context_graph_finish(&result);
    plan = (struct plan){
        .code = TFL_BUILTIN_MEAN, .count = 3, .dims = {{2, 4, 6}, {1, 1}, {2, 4, 1}}, .constants = {NULL, axes}};
    op = op_of(&plan, PARAMS(tfl_reducer_params, true), &result);
    assert_null(op->problem);
    assert_true(op->keep_dims && op->axes == 2);
    mica_context_graph_finish(&result);
}

static void a_mirror_has_two_modes(void **state)
{
    static const int32_t amounts[] = {4, 0};
    static const struct plan plan = {
        .code = TFL_BUILTIN_MIRROR_PAD, .count = 3, .dims = {{1, 4}, {2, 1, 2}, {1, 8}}, .constants = {NULL, amounts}};
    struct mica_context_graph result;
    const struct mica_op *op = op_of(&plan, PARAMS(tfl_mirror_pad_params, TFL_MIRROR_SYMMETRIC), &result);
    assert_null(op->problem);
    assert_true(op->mirror_symmetric);
    mica_context_graph_finish(&result);
    op = op_of(&plan, PARAMS(tfl_mirror_pad_params, TFL_MIRROR_REFLECT), &result);
    assert_non_null(strstr(op->problem, "at most 3"));
    mica_context_graph_finish(&result);
    op = op_of(&plan, PARAMS(tfl_mirror_pad_params, 0), &result);
    assert_non_null(strstr(op->problem, "neither REFLECT"));
    mica_context_graph_finish(&result);
}

static void axes_count_from_either_end(void **state)
{
    static const int32_t indices[] = {0, 1, 1};
    struct mica_context_graph result;
    struct plan plan = {.code = TFL_BUILTIN_PACK, .count = 3, .dims = {{1, 4}, {1, 4}, {2, 4, 2}}};
    const struct mica_op *op = op_of(&plan, PARAMS(tfl_pack_params, 2, -1), &result);
    assert_null(op->problem);
    assert_int_equal(op->axis, 1);
    mica_context_graph_finish(&result);
    plan = (struct plan){.code = TFL_BUILTIN_UNPACK, .count = 2, .dims = {{2, 1, 4}, {1, 4}}};
    op = op_of(&plan, PARAMS(tfl_unpack_params, 1, -2), &result);
    assert_null(op->problem);
    assert_int_equal(op->axis, 0);
    mica_context_graph_finish(&result);
    plan = (struct plan){
        .code = TFL_BUILTIN_GATHER, .count = 3, .dims = {{2, 4, 2}, {1, 3}, {2, 4, 3}}, .constants = {NULL, indices}};
    op = op_of(&plan, PARAMS(tfl_gather_params, -1, 0), &result);
    assert_null(op->problem);
    assert_int_equal(op->axis, 1);
    mica_context_graph_finish(&result);
    op = op_of(&plan, PARAMS(tfl_gather_params, -1, 1), &result);
    assert_non_null(strstr(op->problem, "batches"));
    mica_context_graph_finish(&result);
    op = op_of(&plan, PARAMS(tfl_gather_params, INT_MIN, 0), &result);
    assert_non_null(strstr(op->problem, "axis"));
    mica_context_graph_finish(&result);
}

static void codes_have_their_kinds(void **state)
{
    assert_int_equal(mica_builtin_kind(TFL_BUILTIN_ADD), MICA_OP_ADD);
    assert_int_equal(mica_builtin_kind(TFL_BUILTIN_SPLIT_V), MICA_OP_SPLIT);
    assert_int_equal(mica_builtin_kind(TFL_BUILTIN_PADV2), MICA_OP_PAD);
    assert_int_equal(mica_builtin_kind(TFL_BUILTIN_REVERSE_V2), MICA_OP_REVERSE);
    assert_int_equal(mica_builtin_kind(INT32_MAX), MICA_OP_UNKNOWN);
    assert_int_equal(mica_builtin_kind(INT32_MIN), MICA_OP_UNKNOWN);
}

static void an_empty_interpreter_is_an_empty_graph(void **state)
{
    struct host *host = host_create(0);
    struct mica_context_graph result;
    assert_int_equal(mica_context_graph_create(&host->context, NULL, &result), 0);
    assert_int_equal(result.graph->op_count, 0);
    mica_context_graph_finish(&result);
    host_destroy(host);
}

/* ---- malformed ones --------------------------------------------------- */

static void no_scales(struct host *host)
{
    free(affine(host, CONV_WEIGHTS)->scale);
    affine(host, CONV_WEIGHTS)->scale = NULL;
}

static void no_zero_points(struct host *host)
{
    free(affine(host, CONV_INPUT)->zero_point);
    affine(host, CONV_INPUT)->zero_point = NULL;
}

static void too_few_scales(struct host *host)
{
    affine(host, CONV_WEIGHTS)->scale->size = 7;
}

static void empty_scales(struct host *host)
{
    affine(host, CONV_INPUT)->scale->size = 0;
}

static void negative_scale_count(struct host *host)
{
    affine(host, CONV_WEIGHTS)->scale->size = -8;
}

static void too_few_zero_points(struct host *host)
{
    affine(host, CONV_WEIGHTS)->zero_point->size = 5;
}

static void bad_axis(struct host *host)
{
    affine(host, CONV_WEIGHTS)->quantized_dimension = 4;
}

static void negative_axis(struct host *host)
{
    affine(host, CONV_WEIGHTS)->quantized_dimension = -1;
}

static void nan_scale(struct host *host)
{
    affine(host, CONV_WEIGHTS)->scale->data[3] = NAN;
}

static void infinite_scale(struct host *host)
{
    affine(host, CONV_INPUT)->scale->data[0] = INFINITY;
}

static void zero_scale(struct host *host)
{
    affine(host, CONV_OUTPUT)->scale->data[0] = 0;
}

static void negative_scale(struct host *host)
{
    affine(host, CONV_OUTPUT)->scale->data[0] = -1;
}

static void zero_point_out_of_range(struct host *host)
{
    affine(host, CONV_INPUT)->zero_point->data[0] = 128;
}

static void no_quantization(struct host *host)
{
    tensor(host, CONV_INPUT)->quantization.type = 0;
}

static void no_quantization_params(struct host *host)
{
    struct tfl_affine_quantization *params = affine(host, CONV_OUTPUT);
    free(params->scale);
    free(params->zero_point);
    free(params);
    tensor(host, CONV_OUTPUT)->quantization.params = NULL;
}

static void newer_quantization(struct host *host)
{
    tensor(host, CONV_WEIGHTS)->quantization.type = 2;
}

static void no_dims(struct host *host)
{
    free(tensor(host, CONV_INPUT)->dims);
    tensor(host, CONV_INPUT)->dims = NULL;
}

static void negative_rank(struct host *host)
{
    tensor(host, CONV_INPUT)->dims->size = -4;
}

static void huge_rank(struct host *host)
{
    tensor(host, CONV_INPUT)->dims->size = INT_MAX;
}

static void wrong_rank(struct host *host)
{
    tensor(host, CONV_WEIGHTS)->dims->size = 3;
}

static void zero_dimension(struct host *host)
{
    tensor(host, CONV_INPUT)->dims->data[1] = 0;
}

static void negative_dimension(struct host *host)
{
    tensor(host, CONV_INPUT)->dims->data[2] = -6;
}

static void huge_dimension(struct host *host)
{
    tensor(host, CONV_INPUT)->dims->data[2] = INT_MAX;
}

static void huge_product(struct host *host)
{
    int *dims = tensor(host, CONV_OUTPUT)->dims->data;
    dims[0] = dims[1] = dims[2] = dims[3] = 65536;
}

static void dynamic_input(struct host *host)
{
    tensor(host, CONV_INPUT)->allocation_type = TFL_ALLOCATION_DYNAMIC;
}

static void variable_input(struct host *host)
{
    tensor(host, CONV_INPUT)->is_variable = true;
}

static void sparse_weights(struct host *host)
{
    tensor(host, CONV_WEIGHTS)->sparsity = host;
}

static void short_constant(struct host *host)
{
    tensor(host, CONV_WEIGHTS)->bytes = 8;
}

static void constant_without_data(struct host *host)
{
    tensor(host, CONV_BIAS)->data = NULL;
}

static void misaligned_constant(struct host *host)
{
    tensor(host, CONV_BIAS)->data = (char *)tensor(host, CONV_BIAS)->data + 1;
}

static void string_input(struct host *host)
{
    tensor(host, CONV_INPUT)->type = 5;
}

static void unknown_type(struct host *host)
{
    tensor(host, CONV_OUTPUT)->type = -77;
}

static void no_builtin_data(struct host *host)
{
    free(host->nodes[0]->builtin_data);
    host->nodes[0]->builtin_data = NULL;
}

static void zero_stride(struct host *host)
{
    conv_params(host)->stride_width = 0;
}

static void negative_stride(struct host *host)
{
    conv_params(host)->stride_height = -2;
}

static void huge_stride(struct host *host)
{
    conv_params(host)->stride_width = INT_MAX;
}

static void zero_dilation(struct host *host)
{
    conv_params(host)->dilation_width = 0;
}

static void huge_dilation(struct host *host)
{
    conv_params(host)->dilation_height = INT_MAX;
}

static void unknown_padding(struct host *host)
{
    conv_params(host)->padding = 0;
}

static void unknown_activation(struct host *host)
{
    conv_params(host)->activation = 4;
}

static void input_out_of_range(struct host *host)
{
    host->nodes[0]->inputs->data[0] = CONV_TENSORS;
}

static void very_negative_input(struct host *host)
{
    host->nodes[0]->inputs->data[2] = INT_MIN;
}

static void output_out_of_range(struct host *host)
{
    host->nodes[0]->outputs->data[0] = INT_MAX;
}

static void absent_output(struct host *host)
{
    host->nodes[0]->outputs->data[0] = TFL_OPTIONAL_TENSOR;
}

static void absent_weights(struct host *host)
{
    host->nodes[0]->inputs->data[1] = TFL_OPTIONAL_TENSOR;
}

static void no_inputs(struct host *host)
{
    free(host->nodes[0]->inputs);
    host->nodes[0]->inputs = NULL;
}

static void no_outputs(struct host *host)
{
    host->nodes[0]->outputs->size = 0;
}

static void negative_input_count(struct host *host)
{
    host->nodes[0]->inputs->size = -3;
}

static void output_is_an_input(struct host *host)
{
    host->nodes[0]->outputs->data[0] = CONV_INPUT;
}

static void output_is_a_constant(struct host *host)
{
    host->nodes[0]->outputs->data[0] = CONV_WEIGHTS;
}

static void another_delegate(struct host *host)
{
    host->nodes[0]->delegate = (struct tfl_delegate *)host;
}

static void custom_operation(struct host *host)
{
    host->registrations[0].builtin_code = TFL_BUILTIN_CUSTOM;
    host->registrations[0].custom_name = NULL;
}

static void unknown_operation(struct host *host)
{
    host->registrations[0].builtin_code = INT_MIN;
}

#define ODD(function, words)       \
    {                              \
#function, function, words \
    }

/* What is done to the convolution, and words of the reason for refusing it. */
static const struct {
    const char *name;
    void (*bend)(struct host *host);
    const char *words;
} odd[] = {
    ODD(no_scales, "no scales"),
    ODD(no_zero_points, "no zero points"),
    ODD(too_few_scales, "number of its scales"),
    ODD(empty_scales, "number of its scales"),
    ODD(negative_scale_count, "number of its scales"),
    ODD(too_few_zero_points, "different numbers"),
    ODD(bad_axis, "scales"),
    ODD(negative_axis, "scales"),
    ODD(nan_scale, "scale is not a positive number"),
    ODD(infinite_scale, "scale is not a positive number"),
    ODD(zero_scale, "scale is not a positive number"),
    ODD(negative_scale, "scale is not a positive number"),
    ODD(zero_point_out_of_range, "zero point"),
    ODD(no_quantization, ""),
    ODD(no_quantization_params, ""),
    ODD(newer_quantization, "newer"),
    ODD(no_dims, "no shape"),
    ODD(negative_rank, "no shape"),
    ODD(huge_rank, "no shape"),
    ODD(wrong_rank, ""),
    ODD(zero_dimension, "not positive"),
    ODD(negative_dimension, "not positive"),
    ODD(huge_dimension, "larger"),
    ODD(huge_product, "larger"),
    ODD(dynamic_input, "known only while running"),
    ODD(variable_input, "variable"),
    ODD(sparse_weights, "sparse"),
    ODD(short_constant, "size of its shape"),
    ODD(constant_without_data, "size of its shape"),
    ODD(misaligned_constant, "aligned"),
    ODD(string_input, "type"),
    ODD(unknown_type, "type"),
    ODD(no_builtin_data, "parameters are missing"),
    ODD(zero_stride, "stride"),
    ODD(negative_stride, "stride"),
    ODD(huge_stride, ""),
    ODD(zero_dilation, "dilation"),
    ODD(huge_dilation, ""),
    ODD(unknown_padding, "SAME nor VALID"),
    ODD(unknown_activation, "activation"),
    ODD(input_out_of_range, "does not exist"),
    ODD(very_negative_input, "does not exist"),
    ODD(output_out_of_range, "does not exist"),
    ODD(absent_output, "does not exist"),
    ODD(absent_weights, ""),
    ODD(no_inputs, ""),
    ODD(no_outputs, ""),
    ODD(negative_input_count, ""),
    ODD(output_is_an_input, ""),
    ODD(output_is_a_constant, ""),
    ODD(another_delegate, "another delegate"),
    ODD(custom_operation, ""),
    ODD(unknown_operation, ""),
};

/* sparsity and delegate point at things the host must not free or call. */
static void unbend(struct host *host)
{
    host->nodes[0]->delegate = NULL;
    tensor(host, CONV_WEIGHTS)->sparsity = NULL;
}

static void odd_nodes_are_refused_with_a_reason(void **state)
{
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        struct host *host = model_conv();
        odd[i].bend(host);
        struct mica_context_graph result;
        assert_int_equal(mica_context_graph_create(&host->context, NULL, &result), 0);
        const char *problem = result.graph->ops[0].problem;
        if (!problem || !strstr(problem, odd[i].words))
            fail_msg("%s: \"%s\" does not say \"%s\"", odd[i].name, problem ? problem : "(taken)", odd[i].words);
        mica_context_graph_finish(&result);
        unbend(host);
        host_destroy(host);
    }
}

/* A malformed node still counts as the reader of what it reads. */
static void valid_indices_of_an_odd_node_are_kept(void **state)
{
    struct host *host = model_conv();
    struct mica_context_graph result;
    host->nodes[0]->inputs->data[1] = 1000;
    assert_int_equal(mica_context_graph_create(&host->context, NULL, &result), 0);
    assert_int_equal(result.graph->ops[0].input_count, 2);
    assert_int_equal(result.graph->ops[0].inputs[0], CONV_INPUT);
    mica_context_graph_finish(&result);
    host_destroy(host);
}

static void two_writers_of_a_tensor_are_not_both_taken(void **state)
{
    struct host *host = model_chain(2);
    struct mica_context_graph result;
    host->nodes[1]->outputs->data[0] = 1;
    assert_int_equal(mica_context_graph_create(&host->context, NULL, &result), 0);
    assert_non_null(result.graph->ops[1].problem);
    mica_context_graph_finish(&result);
    host_destroy(host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_conv_arrives_whole),
        cmocka_unit_test(an_absent_bias_stays_absent),
        cmocka_unit_test(one_zero_point_may_serve_all_channels),
        cmocka_unit_test(same_padding_puts_the_odd_row_last),
        cmocka_unit_test(negative_axes_count_from_the_end),
        cmocka_unit_test(parameters_of_two_inputs_arrive),
        cmocka_unit_test(a_transposed_convolution_is_resolved),
        cmocka_unit_test(a_strided_slice_is_resolved),
        cmocka_unit_test(parameters_of_one_number_arrive),
        cmocka_unit_test(a_mirror_has_two_modes),
        cmocka_unit_test(axes_count_from_either_end),
        cmocka_unit_test(codes_have_their_kinds),
        cmocka_unit_test(an_empty_interpreter_is_an_empty_graph),
        cmocka_unit_test(odd_nodes_are_refused_with_a_reason),
        cmocka_unit_test(valid_indices_of_an_odd_node_are_kept),
        cmocka_unit_test(two_writers_of_a_tensor_are_not_both_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
