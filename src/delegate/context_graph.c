/* SPDX-License-Identifier: MIT */
#include "delegate/context_graph.h"

#include <errno.h>
#include <string.h>

#include "delegate/op_names.h"
#include "delegate/op_params.h"
#include "util/checked.h"

struct builder {
    struct tfl_context *context;
    struct mica_graph *graph;
    struct mica_log *log;
};

/* ---- tensors ---------------------------------------------------------- */

static enum mica_type to_type(int type)
{
    switch (type) {
    case TFL_TYPE_FLOAT32:
        return MICA_TYPE_FLOAT32;
    case TFL_TYPE_INT32:
        return MICA_TYPE_INT32;
    case TFL_TYPE_UINT8:
        return MICA_TYPE_UINT8;
    case TFL_TYPE_INT64:
        return MICA_TYPE_INT64;
    case TFL_TYPE_BOOL:
        return MICA_TYPE_BOOL;
    case TFL_TYPE_INT16:
        return MICA_TYPE_INT16;
    case TFL_TYPE_INT8:
        return MICA_TYPE_INT8;
    default:
        return MICA_TYPE_OTHER;
    }
}

static const char *check_quantization(const struct tfl_affine_quantization *affine, const struct tfl_int_array *dims)
{
    const struct tfl_float_array *scale = affine->scale;
    const struct tfl_int_array *zero_point = affine->zero_point;
    if (!scale || !zero_point)
        return "its quantization has no scales or no zero points";
    if (scale->size == 1 && zero_point->size == 1)
        return NULL;
    int axis = affine->quantized_dimension;
    if (axis < 0 || axis >= dims->size || scale->size < 1 || scale->size != dims->data[axis])
        return "the number of its scales does not fit its shape";
    if (zero_point->size != scale->size && zero_point->size != 1)
        return "it has different numbers of scales and zero points";
    return NULL;
}

/* Per-channel scales may come with one zero point for all: repeated in the graph's memory. */
static int read_quantization(const struct builder *builder, const struct tfl_affine_quantization *affine,
                             struct mica_tensor *tensor, int32_t **repeated)
{
    int32_t count = affine->scale->size;
    const int32_t *zero_points = affine->zero_point->data;
    if (affine->zero_point->size != count) {
        *repeated = mica_new_array((size_t)count, sizeof **repeated);
        if (!*repeated)
            return mica_fail_nomem(builder->log);
        for (int32_t i = 0; i < count; i++)
            (*repeated)[i] = zero_points[0];
        zero_points = *repeated;
    }
    tensor->quant = (struct mica_quantization){
        .count = (uint32_t)count,
        .scale = affine->scale->data,
        .zero_point = zero_points,
        .axis = count > 1 ? affine->quantized_dimension : 0,
    };
    return 0;
}

/* What keeps a tensor from being described at all, or from being used. */
static const char *check_tensor(const struct tfl_tensor *tensor)
{
    if (!tensor->dims || tensor->dims->size < 0 || tensor->dims->size > MICA_MAX_RANK)
        return "it has no shape, or more than 8 dimensions";
    if (tensor->allocation_type == TFL_ALLOCATION_DYNAMIC)
        return "its shape is known only while running";
    if (tensor->is_variable)
        return "it is a variable";
    if (tensor->sparsity)
        return "it is stored sparsely";
    if (tensor->quantization.type != TFL_QUANTIZATION_AFFINE)
        return tensor->quantization.type ? "its quantization is of a kind newer than this delegate" : NULL;
    if (!tensor->quantization.params)
        return NULL;
    return check_quantization(tensor->quantization.params, tensor->dims);
}

/* Constants are borrowed; everything else the host may still move. */
static void borrow_data(const struct tfl_tensor *source, struct mica_tensor *tensor)
{
    if (source->allocation_type != TFL_ALLOCATION_MMAP_RO || tensor->problem)
        return;
    if (!source->data || source->bytes != tensor->bytes)
        tensor->problem = "its constant data does not have the size of its shape";
    else if ((uintptr_t)source->data % mica_type_size(tensor->type))
        tensor->problem = "its constant data is not aligned";
    else
        tensor->data = source->data;
}

static int add_tensor(const struct builder *builder, const struct tfl_tensor *source)
{
    struct mica_tensor tensor = {.name = source->name ? source->name : ""};
    int32_t *repeated = NULL;
    int error = 0;
    tensor.problem = check_tensor(source);
    if (!tensor.problem) {
        tensor.type = to_type(source->type);
        tensor.rank = (uint32_t)source->dims->size;
        memcpy(tensor.dims, source->dims->data, tensor.rank * sizeof tensor.dims[0]);
        if (source->quantization.type == TFL_QUANTIZATION_AFFINE && source->quantization.params)
            error = read_quantization(builder, source->quantization.params, &tensor, &repeated);
    }
    if (!error)
        error = mica_graph_add_tensor(builder->graph, &tensor, builder->log);
    free(repeated);
    if (error)
        return error;
    borrow_data(source, &builder->graph->tensors[builder->graph->tensor_count - 1]);
    return 0;
}

/* ---- nodes ------------------------------------------------------------ */

static uint32_t array_size(const struct tfl_int_array *array)
{
    return array && array->size > 0 ? (uint32_t)array->size : 0;
}

static bool is_tensor(const struct builder *builder, int index)
{
    return index >= 0 && (uint32_t)index < builder->graph->tensor_count;
}

/* True when all are tensors of the interpreter, or absent where that is `optional`. */
static bool indices_hold(const struct builder *builder, const struct tfl_int_array *array, bool optional)
{
    for (uint32_t i = 0; i < array_size(array); i++) {
        if (!is_tensor(builder, array->data[i]) && !(optional && array->data[i] == TFL_OPTIONAL_TENSOR))
            return false;
    }
    return true;
}

/* The valid indices only, so that even a malformed operation counts as reader and writer of its tensors. */
static uint32_t copy_valid(const struct builder *builder, const struct tfl_int_array *array, int32_t *copy)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < array_size(array); i++) {
        if (is_tensor(builder, array->data[i]))
            copy[count++] = array->data[i];
    }
    return count;
}

static uint32_t copy_all(const struct tfl_int_array *array, int32_t *copy)
{
    for (uint32_t i = 0; i < array_size(array); i++)
        copy[i] = array->data[i] < 0 ? MICA_NO_TENSOR : array->data[i];
    return array_size(array);
}

static const char *node_type(const struct tfl_registration *registration)
{
    bool named = registration->builtin_code == TFL_BUILTIN_CUSTOM || registration->builtin_code == TFL_BUILTIN_DELEGATE;
    return named && registration->custom_name ? registration->custom_name
                                              : mica_builtin_name(registration->builtin_code);
}

/* Fills in what the operation is. `op` has its valid indices; `room` takes as many as the node has. */
static const char *describe_op(const struct builder *builder, const struct tfl_node *node,
                               const struct tfl_registration *registration, int32_t *room, struct mica_op *op)
{
    if (node->delegate)
        return "it belongs to another delegate";
    if (!indices_hold(builder, node->inputs, true) || !indices_hold(builder, node->outputs, false))
        return "it names a tensor that does not exist";
    struct mica_op known = *op;
    known.input_count = copy_all(node->inputs, room);
    known.inputs = room;
    *op = known;
    return mica_op_read_params(builder->graph, registration->builtin_code, registration->version, node->builtin_data,
                               op);
}

static int add_op(const struct builder *builder, const struct tfl_node *node,
                  const struct tfl_registration *registration)
{
    size_t inputs = array_size(node->inputs), outputs = array_size(node->outputs);
    int32_t *indices = mica_new_array(2 * inputs + outputs, sizeof *indices);
    if (!indices)
        return mica_fail_nomem(builder->log);
    struct mica_op op = {.kind = MICA_OP_UNKNOWN, .type = node_type(registration)};
    op.inputs = indices;
    op.input_count = copy_valid(builder, node->inputs, indices);
    op.outputs = indices + inputs;
    op.output_count = copy_valid(builder, node->outputs, indices + inputs);
    op.problem = describe_op(builder, node, registration, indices + inputs + outputs, &op);
    int error = mica_graph_add_op(builder->graph, &op, builder->log);
    free(indices);
    return error;
}

static int add_node(const struct builder *builder, int index)
{
    struct tfl_node *node = NULL;
    struct tfl_registration *registration = NULL;
    int status = builder->context->GetNodeAndRegistration(builder->context, index, &node, &registration);
    if (status != TFL_OK || !node || !registration)
        return mica_fail(builder->log, -EINVAL, "the interpreter has no node %d, which its execution plan names",
                         index);
    return add_op(builder, node, registration);
}

/* The plan is copied, since it dies with the host's next call. */
static int copy_plan(const struct builder *builder, int **nodes, uint32_t *count)
{
    struct tfl_int_array *plan = NULL;
    if (builder->context->GetExecutionPlan(builder->context, &plan) != TFL_OK || !plan)
        return mica_fail(builder->log, -EINVAL, "the interpreter gives no execution plan");
    *count = array_size(plan);
    *nodes = mica_new_array(*count, sizeof **nodes);
    if (!*nodes)
        return mica_fail_nomem(builder->log);
    memcpy(*nodes, plan->data, *count * sizeof **nodes);
    return 0;
}

static uint32_t list_unwritten(const struct mica_graph *graph, bool *written, int32_t *list)
{
    for (uint32_t i = 0; i < graph->op_count; i++) {
        for (uint32_t k = 0; k < graph->ops[i].output_count; k++)
            written[graph->ops[i].outputs[k]] = true;
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        if (!written[i] && !graph->tensors[i].data)
            list[count++] = (int32_t)i;
    }
    return count;
}

/* The host tells no graph inputs: they are what no operation writes. */
static int check_flow(const struct builder *builder)
{
    struct mica_graph *graph = builder->graph;
    bool *written = mica_new_array(graph->tensor_count, sizeof *written);
    int32_t *inputs = mica_new_array(graph->tensor_count, sizeof *inputs);
    int error = written && inputs ? 0 : mica_fail_nomem(builder->log);
    if (!error) {
        uint32_t count = list_unwritten(graph, written, inputs);
        error = mica_graph_set_io(graph, inputs, count, NULL, 0, builder->log);
    }
    if (!error)
        error = mica_graph_check_flow(graph, builder->log);
    free(written);
    free(inputs);
    return error;
}

static int fill_graph(const struct builder *builder, struct mica_context_graph *result)
{
    for (size_t i = 0; i < builder->context->tensors_size; i++) {
        int error = add_tensor(builder, &builder->context->tensors[i]);
        if (error)
            return error;
    }
    uint32_t count = 0;
    int error = copy_plan(builder, &result->nodes, &count);
    for (uint32_t i = 0; !error && i < count; i++)
        error = add_node(builder, result->nodes[i]);
    return error ? error : check_flow(builder);
}

int mica_context_graph_create(struct tfl_context *context, struct mica_log *log, struct mica_context_graph *result)
{
    *result = (struct mica_context_graph){0};
    int error = mica_graph_create(log, &result->graph);
    if (error)
        return error;
    struct builder builder = {context, result->graph, log};
    error = fill_graph(&builder, result);
    if (error)
        mica_context_graph_finish(result);
    return error;
}

void mica_context_graph_finish(struct mica_context_graph *result)
{
    mica_graph_destroy(result->graph);
    free(result->nodes);
    *result = (struct mica_context_graph){0};
}
