/* SPDX-License-Identifier: MIT */
#include "host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NODES 4096
#define MAX_TENSOR_BYTES ((size_t)1 << 28)

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory)
        abort();
    return memory;
}

struct tfl_int_array *host_ints(int count, const int *values)
{
    struct tfl_int_array *array = allocate(1, sizeof *array + (size_t)count * sizeof(int));
    array->size = count;
    if (count)
        memcpy(array->data, values, (size_t)count * sizeof(int));
    return array;
}

struct tfl_float_array *host_floats(int count, const float *values)
{
    struct tfl_float_array *array = allocate(1, sizeof *array + (size_t)count * sizeof(float));
    array->size = count;
    if (count)
        memcpy(array->data, values, (size_t)count * sizeof(float));
    return array;
}

static struct host *self(struct tfl_context *context)
{
    return (struct host *)context;
}

/* ---- what the delegate calls ------------------------------------------ */

static int get_execution_plan(struct tfl_context *context, struct tfl_int_array **plan)
{
    if (self(context)->fail_plan)
        return TFL_ERROR;
    *plan = self(context)->plan;
    return TFL_OK;
}

static int get_node(struct tfl_context *context, int index, struct tfl_node **node,
                    struct tfl_registration **registration)
{
    struct host *host = self(context);
    if (host->fail_nodes || index < 0 || index >= host->node_count)
        return TFL_ERROR;
    *node = host->nodes[index];
    *registration = &host->registrations[index];
    return TFL_OK;
}

static void report_error(struct tfl_context *context, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(self(context)->error, sizeof self(context)->error, format, args);
    va_end(args);
}

static bool holds(const struct tfl_int_array *array, int value)
{
    for (int i = 0; array && i < array->size; i++) {
        if (array->data[i] == value)
            return true;
    }
    return false;
}

static void append(struct tfl_int_array *array, int value)
{
    if (!holds(array, value))
        array->data[array->size++] = value;
}

static bool is_tensor(const struct host *host, int index)
{
    return index >= 0 && (size_t)index < host->context.tensors_size;
}

/* Tensors of all nodes of the plan on one side (inputs or outputs), those of [first, last) only or all others. */
static struct tfl_int_array *gather(const struct host *host, int first, int last, bool inside, bool outputs)
{
    int none = 0;
    struct tfl_int_array *result = host_ints(0, &none);
    result = realloc(result, sizeof *result + host->context.tensors_size * sizeof(int));
    if (!result)
        abort();
    for (int i = 0; i < host->plan->size; i++) {
        const struct tfl_node *node = host->nodes[host->plan->data[i]];
        const struct tfl_int_array *array = outputs ? node->outputs : node->inputs;
        if ((i >= first && i < last) != inside)
            continue;
        for (int k = 0; array && k < array->size; k++) {
            if (is_tensor(host, array->data[k]))
                append(result, array->data[k]);
        }
    }
    return result;
}

/* `a` without what `b` has (keep = false), or only that (keep = true). */
static void filter(struct tfl_int_array *a, const struct tfl_int_array *b, const struct tfl_int_array *c, bool keep)
{
    int count = 0;
    for (int i = 0; i < a->size; i++) {
        if ((holds(b, a->data[i]) || holds(c, a->data[i])) == keep)
            a->data[count++] = a->data[i];
    }
    a->size = count;
}

static int new_node(struct host *host)
{
    if (host->node_count >= MAX_NODES)
        abort();
    host->nodes[host->node_count] = allocate(1, sizeof **host->nodes);
    host->registrations[host->node_count] = (struct tfl_registration){0};
    host->owners[host->node_count] = -1;
    return host->node_count++;
}

/* Replaces plan entries [first, last) by one kernel. */
static void replace_run(struct host *host, int first, int last, const struct tfl_registration *registration,
                        struct tfl_delegate *delegate)
{
    struct tfl_int_array *made = gather(host, first, last, true, true);
    struct tfl_int_array *read_outside = gather(host, first, last, false, false);
    struct tfl_delegate_params params = {
        .delegate = delegate,
        .nodes_to_replace = host_ints(last - first, host->plan->data + first),
        .input_tensors = gather(host, first, last, true, false),
        .output_tensors = gather(host, first, last, true, true),
    };
    filter(params.input_tensors, made, NULL, false);
    filter(params.output_tensors, read_outside, host->outputs, true);
    int index = new_node(host);
    struct tfl_node *node = host->nodes[index];
    node->delegate = delegate;
    node->inputs = host_ints(params.input_tensors->size, params.input_tensors->data);
    node->outputs = host_ints(params.output_tensors->size, params.output_tensors->data);
    host->registrations[index] = *registration;
    for (int i = first; i < last; i++)
        host->owners[host->plan->data[i]] = index;
    node->user_data = registration->init(&host->context, (const char *)&params, 0);
    free(made);
    free(read_outside);
    free(params.nodes_to_replace);
    free(params.input_tensors);
    free(params.output_tensors);
}

/* Runs of neighbours become one kernel each. Real interpreters also reorder; conformance tests use those. */
static int replace(struct tfl_context *context, struct tfl_registration registration, const struct tfl_int_array *nodes,
                   struct tfl_delegate *delegate)
{
    struct host *host = self(context);
    if (host->fail_replace)
        return TFL_ERROR;
    struct tfl_int_array *plan = host_ints(host->plan->size, host->plan->data);
    plan->size = 0;
    for (int i = 0; i < host->plan->size;) {
        int last = i;
        while (last < host->plan->size && holds(nodes, host->plan->data[last]))
            last++;
        if (last > i) {
            replace_run(host, i, last, &registration, delegate);
            plan->data[plan->size++] = host->node_count - 1;
            i = last;
        } else {
            plan->data[plan->size++] = host->plan->data[i++];
        }
    }
    free(host->plan);
    host->plan = plan;
    return TFL_OK;
}

static struct tfl_tensor *get_tensor(const struct tfl_context *context, int index)
{
    return &context->tensors[index];
}

/* ---- building --------------------------------------------------------- */

struct host *host_create(int tensors)
{
    struct host *host = allocate(1, sizeof *host);
    int none = 0;
    host->context = (struct tfl_context){
        .tensors_size = (size_t)tensors,
        .GetExecutionPlan = get_execution_plan,
        .tensors = allocate((size_t)tensors, sizeof(struct tfl_tensor)),
        .ReportError = report_error,
        .GetNodeAndRegistration = get_node,
        .ReplaceNodeSubsetsWithDelegateKernels = replace,
        .recommended_num_threads = 1,
        .GetTensor = get_tensor,
    };
    host->nodes = allocate(MAX_NODES, sizeof *host->nodes);
    host->registrations = allocate(MAX_NODES, sizeof *host->registrations);
    host->owners = allocate(MAX_NODES, sizeof *host->owners);
    host->plan = host_ints(0, &none);
    host->outputs = host_ints(0, &none);
    host->prepares = 1;
    return host;
}

static void free_tensor(struct tfl_tensor *tensor)
{
    struct tfl_affine_quantization *affine = tensor->quantization.params;
    if (affine) {
        free(affine->scale);
        free(affine->zero_point);
    }
    free(affine);
    free(tensor->dims);
    free((char *)tensor->name);
    if (tensor->allocation) /* set by host_allocate(): the memory is ours */
        free((void *)tensor->allocation);
}

static void free_node(struct host *host, int index)
{
    struct tfl_node *node = host->nodes[index];
    const struct tfl_registration *registration = &host->registrations[index];
    if (node->delegate && registration->free)
        registration->free(&host->context, node->user_data);
    free(node->inputs);
    free(node->outputs);
    free(node->builtin_data);
    free(node);
}

void host_destroy(struct host *host)
{
    if (!host)
        return;
    for (int i = 0; i < host->node_count; i++)
        free_node(host, i);
    for (size_t i = 0; i < host->context.tensors_size; i++)
        free_tensor(&host->context.tensors[i]);
    free(host->context.tensors);
    free(host->nodes);
    free(host->registrations);
    free(host->owners);
    free(host->plan);
    free(host->outputs);
    free(host);
}

static size_t element_size(int type)
{
    switch (type) {
    case TFL_TYPE_INT64:
        return 8;
    case TFL_TYPE_FLOAT32:
    case TFL_TYPE_INT32:
        return 4;
    case TFL_TYPE_INT16:
        return 2;
    default:
        return 1;
    }
}

void host_set_tensor(struct host *host, int index, int type, int rank, const int *dims, const char *name)
{
    struct tfl_tensor *tensor = &host->context.tensors[index];
    size_t bytes = element_size(type);
    for (int i = 0; i < rank; i++)
        bytes *= (size_t)dims[i];
    tensor->type = type;
    tensor->dims = host_ints(rank, dims);
    tensor->bytes = bytes;
    tensor->name = strdup(name);
    tensor->allocation_type = 2; /* the arena */
    tensor->buffer_handle = -1;
}

void host_set_quantization(struct host *host, int index, int count, const float *scales, const int *zero_points,
                           int axis)
{
    struct tfl_tensor *tensor = &host->context.tensors[index];
    struct tfl_affine_quantization *affine = allocate(1, sizeof *affine);
    affine->scale = host_floats(count, scales);
    affine->zero_point = host_ints(count, zero_points);
    affine->quantized_dimension = axis;
    tensor->quantization.type = TFL_QUANTIZATION_AFFINE;
    tensor->quantization.params = affine;
    if (count == 1) {
        tensor->params.scale = scales[0];
        tensor->params.zero_point = zero_points[0];
    }
}

void host_set_constant(struct host *host, int index, const void *data)
{
    host->context.tensors[index].allocation_type = TFL_ALLOCATION_MMAP_RO;
    host->context.tensors[index].data = (void *)data;
}

int host_add_node(struct host *host, int builtin_code, const void *builtin_data, size_t size, int input_count,
                  const int *inputs, int output_count, const int *outputs)
{
    int index = new_node(host);
    struct tfl_node *node = host->nodes[index];
    node->inputs = host_ints(input_count, inputs);
    node->outputs = host_ints(output_count, outputs);
    if (builtin_data) {
        node->builtin_data = allocate(1, size);
        memcpy(node->builtin_data, builtin_data, size);
    }
    host->registrations[index].builtin_code = builtin_code;
    host->registrations[index].version = 1;
    host->plan = realloc(host->plan, sizeof *host->plan + (size_t)(host->plan->size + 1) * sizeof(int));
    if (!host->plan)
        abort();
    host->plan->data[host->plan->size++] = index;
    return index;
}

void host_set_outputs(struct host *host, int count, const int *outputs)
{
    free(host->outputs);
    host->outputs = host_ints(count, outputs);
}

/* ---- running ---------------------------------------------------------- */

static int prepare_kernels(struct host *host)
{
    for (int i = 0; i < host->plan->size; i++) {
        int index = host->plan->data[i];
        if (!host->nodes[index]->delegate || !host->registrations[index].prepare)
            continue;
        for (int k = 0; k < host->prepares; k++) {
            if (host->registrations[index].prepare(&host->context, host->nodes[index]) != TFL_OK)
                return TFL_ERROR;
        }
    }
    return TFL_OK;
}

int host_delegate(struct host *host, struct tfl_delegate *delegate)
{
    host->error[0] = '\0';
    int status = delegate->Prepare(&host->context, delegate);
    return status == TFL_OK ? prepare_kernels(host) : status;
}

bool host_allocate(struct host *host)
{
    for (size_t i = 0; i < host->context.tensors_size; i++) {
        struct tfl_tensor *tensor = &host->context.tensors[i];
        if (tensor->data)
            continue;
        if (tensor->bytes > MAX_TENSOR_BYTES)
            return false;
        tensor->allocation = tensor->data = allocate(1, tensor->bytes + 1);
    }
    return true;
}

static int run_node(struct host *host, int index)
{
    if (host->nodes[index]->delegate)
        return host->registrations[index].invoke(&host->context, host->nodes[index]);
    if (!host->cpu || host->cpu(host->cpu_user, host, index)) {
        report_error(&host->context, "the host can't run node %d", index);
        return TFL_ERROR;
    }
    return TFL_OK;
}

int host_invoke(struct host *host)
{
    host->error[0] = '\0';
    for (int i = 0; i < host->plan->size; i++) {
        int status = run_node(host, host->plan->data[i]);
        if (status != TFL_OK)
            return status;
    }
    return TFL_OK;
}

int host_kernel_count(const struct host *host)
{
    int count = 0;
    for (int i = 0; i < host->plan->size; i++)
        count += host->nodes[host->plan->data[i]]->delegate != NULL;
    return count;
}
