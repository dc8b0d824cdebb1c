/* SPDX-License-Identifier: MIT */
/* The container: what is added is copied, sized and checked; ownership is in one arena and two arrays. */
#include "graph/graph.h"

#include "graph/arena.h"
#include "graph/check.h"
#include "util/checked.h"

#include <errno.h>
#include <math.h>
#include <string.h>

struct owner {
    struct mica_graph graph;
    struct mica_arena arena;
    uint32_t tensor_capacity, op_capacity;
};

static struct owner *owner_of(struct mica_graph *graph)
{
    return (struct owner *)graph; /* its first member */
}

int mica_graph_create(struct mica_log *log, struct mica_graph **graph)
{
    struct owner *owner = calloc(1, sizeof *owner);
    if (!owner)
        return mica_fail_nomem(log);
    owner->graph.arena = &owner->arena;
    *graph = &owner->graph;
    return 0;
}

void mica_graph_destroy(struct mica_graph *graph)
{
    if (!graph)
        return;
    mica_arena_finish(graph->arena);
    free(graph->tensors);
    free(graph->ops);
    free(owner_of(graph));
}

const char *mica_graph_strdup(struct mica_graph *graph, const char *string)
{
    return mica_arena_copy(graph->arena, string, strlen(string) + 1);
}

/* Room for one more element; the array moves. Tensor indices are int32, so the count stays below 2^31. */
static int grow(void **array, uint32_t count, uint32_t *capacity, size_t size, struct mica_log *log)
{
    if (count < *capacity)
        return 0;
    if (count >= INT32_MAX / 2)
        return mica_fail(log, -EINVAL, "the graph has too many tensors or operations");
    uint32_t larger = *capacity ? *capacity * 2 : 16;
    size_t bytes;
    void *moved = mica_mul_size(larger, size, &bytes) ? realloc(*array, bytes) : NULL;
    if (!moved)
        return mica_fail_nomem(log);
    *array = moved;
    *capacity = larger;
    return 0;
}

/* ---- tensors ---------------------------------------------------------- */

/* The reason why a shape is unusable; else NULL and its size. */
static const char *shape_problem(enum mica_type type, uint32_t rank, const int32_t *dims, size_t *bytes)
{
    size_t product = mica_type_size(type);
    if (!product)
        return "its element type is not supported";
    if (rank > MICA_MAX_RANK)
        return "it has more than 8 dimensions";
    for (uint32_t i = 0; i < rank; i++) {
        if (dims[i] < 1)
            return "its shape is dynamic or empty: a dimension is not positive";
        if (!mica_mul_size(product, (size_t)dims[i], &product) || product > MICA_MAX_TENSOR_BYTES)
            return "it is larger than 256 MiB";
    }
    *bytes = product;
    return NULL;
}

/* Constant data that don't fit the tensor; `given` is the size that the caller knows, 0 if none. */
static const char *data_problem(const struct mica_tensor *tensor, size_t given)
{
    if (!tensor->data)
        return NULL;
    if (given && given != tensor->bytes)
        return "its constant data do not have the size of its shape";
    if ((uintptr_t)tensor->data % mica_type_size(tensor->type))
        return "its constant data are not aligned to its elements";
    return NULL;
}

static bool zero_point_fits(enum mica_type type, int32_t zero_point)
{
    switch (type) {
    case MICA_TYPE_UINT8:
        return zero_point >= 0 && zero_point <= UINT8_MAX;
    case MICA_TYPE_INT8:
        return zero_point >= INT8_MIN && zero_point <= INT8_MAX;
    case MICA_TYPE_INT16:
        return zero_point >= INT16_MIN && zero_point <= INT16_MAX;
    default:
        return true;
    }
}

static const char *quantization_problem(const struct mica_tensor *tensor)
{
    const struct mica_quantization *quant = &tensor->quant;
    if (quant->count > 1) {
        if (quant->axis < 0 || (uint32_t)quant->axis >= tensor->rank)
            return "its scales run along a dimension that it does not have";
        if (quant->count != (uint32_t)tensor->dims[quant->axis])
            return "the number of its scales does not fit its shape";
    }
    for (uint32_t i = 0; i < quant->count; i++) {
        if (!isfinite(quant->scale[i]) || quant->scale[i] <= 0)
            return "a scale is not a positive number";
        if (!zero_point_fits(tensor->type, quant->zero_point[i]))
            return "a zero point is outside of the element type's range";
    }
    return NULL;
}

static bool copy_quantization(struct mica_arena *arena, struct mica_quantization *quant)
{
    quant->symmetric = true;
    quant->largest_scale = 0;
    for (uint32_t i = 0; i < quant->count; i++) {
        quant->symmetric = quant->symmetric && quant->zero_point[i] == 0;
        quant->largest_scale = fmaxf(quant->largest_scale, quant->scale[i]);
    }
    quant->scale = mica_arena_copy(arena, quant->scale, quant->count * sizeof *quant->scale);
    quant->zero_point = mica_arena_copy(arena, quant->zero_point, quant->count * sizeof *quant->zero_point);
    return quant->scale && quant->zero_point;
}

/* What is left of a tensor that nothing can use: name, type and shape, to show them. */
static void make_unusable(struct mica_tensor *tensor)
{
    tensor->bytes = 0;
    tensor->data = NULL;
    tensor->quant.count = 0;
    if (tensor->rank > MICA_MAX_RANK)
        tensor->rank = 0;
}

int mica_graph_add_tensor(struct mica_graph *graph, const struct mica_tensor *tensor, struct mica_log *log)
{
    struct owner *owner = owner_of(graph);
    int error =
        grow((void **)&graph->tensors, graph->tensor_count, &owner->tensor_capacity, sizeof *graph->tensors, log);
    if (error)
        return error;
    struct mica_tensor copy = *tensor;
    if (!copy.problem)
        copy.problem = shape_problem(copy.type, copy.rank, copy.dims, &copy.bytes);
    if (!copy.problem)
        copy.problem = data_problem(&copy, tensor->bytes);
    if (!copy.problem)
        copy.problem = quantization_problem(&copy);
    if (copy.problem) {
        make_unusable(&copy);
        copy.problem = mica_graph_strdup(graph, copy.problem);
        if (!copy.problem)
            return mica_fail_nomem(log);
    }
    copy.name = mica_graph_strdup(graph, copy.name ? copy.name : "");
    if (!copy.name || !copy_quantization(graph->arena, &copy.quant))
        return mica_fail_nomem(log);
    graph->tensors[graph->tensor_count++] = copy;
    return 0;
}

static int check_index(const struct mica_graph *graph, int32_t index, struct mica_log *log)
{
    if (index >= 0 && (uint32_t)index < graph->tensor_count)
        return 0;
    return mica_fail(log, -EINVAL, "tensor %d does not exist: the model has %u tensors", index, graph->tensor_count);
}

int mica_graph_set_shape(struct mica_graph *graph, int32_t index, uint32_t rank, const int32_t *dims,
                         struct mica_log *log)
{
    int error = check_index(graph, index, log);
    if (error || graph->tensors[index].problem)
        return error;
    struct mica_tensor *tensor = &graph->tensors[index];
    tensor->rank = rank <= MICA_MAX_RANK ? rank : 0;
    memcpy(tensor->dims, dims, tensor->rank * sizeof *dims);
    tensor->problem = shape_problem(tensor->type, rank, dims, &tensor->bytes);
    if (!tensor->problem)
        tensor->problem = quantization_problem(tensor);
    if (tensor->problem)
        make_unusable(tensor);
    return 0;
}

/* ---- operations ------------------------------------------------------- */

static int check_indices(const struct mica_graph *graph, const struct mica_op *op, struct mica_log *log)
{
    int error = 0;
    for (uint32_t i = 0; i < op->input_count && !error; i++)
        if (op->inputs[i] != MICA_NO_TENSOR)
            error = check_index(graph, op->inputs[i], log);
    for (uint32_t i = 0; i < op->output_count && !error; i++)
        error = check_index(graph, op->outputs[i], log);
    return error;
}

static bool copy_op(struct mica_graph *graph, struct mica_op *op)
{
    op->inputs = mica_arena_copy(graph->arena, op->inputs, op->input_count * sizeof *op->inputs);
    op->outputs = mica_arena_copy(graph->arena, op->outputs, op->output_count * sizeof *op->outputs);
    op->type = mica_graph_strdup(graph, op->type ? op->type : "");
    return op->inputs && op->outputs && op->type;
}

int mica_graph_add_op(struct mica_graph *graph, const struct mica_op *op, struct mica_log *log)
{
    int error = check_indices(graph, op, log);
    if (!error)
        error = grow((void **)&graph->ops, graph->op_count, &owner_of(graph)->op_capacity, sizeof *graph->ops, log);
    if (error)
        return error;
    struct mica_op copy = *op;
    if (!copy_op(graph, &copy))
        return mica_fail_nomem(log);
    struct mica_check check = {.graph = graph, .op = &copy};
    if (!copy.problem && !mica_check_op(&check))
        copy.problem = check.problem;
    if (copy.problem)
        copy.problem = mica_graph_strdup(graph, copy.problem);
    if (!copy.problem && check.problem[0])
        return mica_fail_nomem(log);
    graph->ops[graph->op_count++] = copy;
    return 0;
}

/* ---- the graph's own inputs and outputs ------------------------------- */

static int check_io(const struct mica_graph *graph, const int32_t *indices, uint32_t count, struct mica_log *log)
{
    int error = 0;
    for (uint32_t i = 0; i < count && !error; i++)
        error = check_index(graph, indices[i], log);
    return error;
}

int mica_graph_set_io(struct mica_graph *graph, const int32_t *inputs, uint32_t input_count, const int32_t *outputs,
                      uint32_t output_count, struct mica_log *log)
{
    int error = check_io(graph, inputs, input_count, log);
    if (!error)
        error = check_io(graph, outputs, output_count, log);
    if (error)
        return error;
    for (uint32_t i = 0; i < input_count; i++)
        if (graph->tensors[inputs[i]].data)
            return mica_fail(log, -EINVAL, "graph input \"%.100s\" is a constant", graph->tensors[inputs[i]].name);
    const int32_t *in = mica_arena_copy(graph->arena, inputs, input_count * sizeof *inputs);
    const int32_t *out = mica_arena_copy(graph->arena, outputs, output_count * sizeof *outputs);
    if (!in || !out)
        return mica_fail_nomem(log);
    graph->inputs = in;
    graph->outputs = out;
    graph->input_count = input_count;
    graph->output_count = output_count;
    return 0;
}
