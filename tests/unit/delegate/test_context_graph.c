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
        cmocka_unit_test(an_empty_interpreter_is_an_empty_graph),
        cmocka_unit_test(odd_nodes_are_refused_with_a_reason),
        cmocka_unit_test(valid_indices_of_an_odd_node_are_kept),
        cmocka_unit_test(two_writers_of_a_tensor_are_not_both_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
