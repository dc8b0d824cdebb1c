/* SPDX-License-Identifier: MIT */
#include "delegate/kernel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "delegate/delegate.h"
#include "runtime/device_options.h"
#include "runtime/instance.h"
#include "runtime/partition.h"
#include "util/checked.h"
#include "util/clock.h"

struct kernel {
    struct mica_delegate *delegate;
    struct mica_program *program;
    struct mica_core *core;         /* that it runs on */
    struct mica_instance *instance; /* NULL: init failed */
    const void **inputs;            /* room for one invocation's pointers */
    void **outputs;
    uint32_t first_row; /* in the profile */
    char error[sizeof((struct mica_log *)0)->last_error];
};

/* ---- init ------------------------------------------------------------- */

static bool contains(const struct tfl_int_array *array, int value)
{
    for (int i = 0; i < array->size; i++) {
        if (array->data[i] == value)
            return true;
    }
    return false;
}

/* The graph's operations that the host wants replaced, in execution order. */
static uint32_t list_ops(const struct mica_context_graph *preparing, const struct tfl_int_array *nodes, uint32_t *ops)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < preparing->graph->op_count; i++) {
        if (contains(nodes, preparing->nodes[i]))
            ops[count++] = i;
    }
    return count;
}

static int compile_ops(struct kernel *kernel, const uint32_t *ops, uint32_t count)
{
    struct mica_delegate *delegate = kernel->delegate;
    const struct mica_chip *chip = delegate->device.chip;
    struct mica_partition partition;
    int error = mica_partition_create(delegate->preparing.graph, ops, count, &delegate->log, &partition);
    if (error)
        return error;
    error = chip->family->compile(chip, &partition, &delegate->options.compile, delegate->threads, &delegate->log,
                                  &kernel->program);
    mica_partition_finish(&partition);
    if (!error)
        mica_warn_on_chip(kernel->program, chip, &delegate->log);
    return error;
}

static int compile(struct kernel *kernel, const struct tfl_delegate_params *params)
{
    struct mica_delegate *delegate = kernel->delegate;
    const struct tfl_int_array *nodes = params->nodes_to_replace, *outputs = params->output_tensors;
    struct mica_graph *graph = delegate->preparing.graph;
    if (!graph || !nodes || !outputs || nodes->size < 0 || outputs->size < 0)
        return mica_fail(&delegate->log, -EINVAL, "the interpreter started a kernel outside of delegation");
    /* Whoever reads them, an operation or the user, these must leave the partition. */
    int error = mica_graph_set_io(graph, graph->inputs, graph->input_count, outputs->data, (uint32_t)outputs->size,
                                  &delegate->log);
    if (error)
        return error;
    uint32_t *ops = mica_new_array(graph->op_count, sizeof *ops);
    if (!ops)
        return mica_fail_nomem(&delegate->log);
    error = compile_ops(kernel, ops, list_ops(&delegate->preparing, nodes, ops));
    free(ops);
    return error;
}

/* All partitions of an interpreter run on one core: they follow each other anyway. */
static int choose_core(struct kernel *kernel)
{
    struct mica_delegate *delegate = kernel->delegate;
    if (delegate->preparing_core) {
        kernel->core = delegate->preparing_core;
        mica_cores_join(&delegate->cores, kernel->core);
        return 0;
    }
    int error = mica_cores_take(&delegate->cores, mica_program_width(kernel->program), &delegate->log, &kernel->core);
    if (!error)
        delegate->preparing_core = kernel->core;
    return error;
}

static int start(struct kernel *kernel, const struct tfl_delegate_params *params)
{
    struct mica_delegate *delegate = kernel->delegate;
    int error = compile(kernel, params);
    if (error)
        return error;
    kernel->inputs = mica_new_array(kernel->program->input_count, sizeof *kernel->inputs);
    kernel->outputs = mica_new_array(kernel->program->output_count, sizeof *kernel->outputs);
    if (!kernel->inputs || !kernel->outputs)
        return mica_fail_nomem(&delegate->log);
    if (delegate->options.profile)
        error = mica_profile_add(&delegate->profile, delegate->preparing.graph, kernel->program, &delegate->log,
                                 &kernel->first_row);
    if (error)
        return error;
    error = choose_core(kernel);
    if (error)
        return error;
    mica_core_lock(kernel->core, &delegate->log);
    error = mica_instance_create(kernel->core->winsys, kernel->program, &kernel->core->log, &kernel->instance);
    mica_core_unlock(kernel->core);
    return error;
}

/* A failure waits in the kernel for prepare(), the first call that can return one. */
static void *kernel_init(struct tfl_context *context, const char *buffer, size_t length)
{
    const struct tfl_delegate_params *params = (const void *)buffer;
    if (!params || !params->delegate || !params->delegate->data)
        return NULL;
    struct kernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel)
        return NULL;
    struct mica_delegate *delegate = params->delegate->data;
    kernel->delegate = delegate;
    atomic_fetch_add(&delegate->references, 1);
    pthread_mutex_lock(&delegate->lock);
    if (start(kernel, params))
        memcpy(kernel->error, delegate->log.last_error, sizeof kernel->error);
    pthread_mutex_unlock(&delegate->lock);
    return kernel;
}

static void kernel_free(struct tfl_context *context, void *user_data)
{
    struct kernel *kernel = user_data;
    if (!kernel)
        return;
    struct mica_delegate *delegate = kernel->delegate;
    pthread_mutex_lock(&delegate->lock);
    if (kernel->core) {
        mica_core_lock(kernel->core, &delegate->log);
        mica_instance_destroy(kernel->instance);
        mica_core_unlock(kernel->core);
        mica_cores_give(&delegate->cores, kernel->core);
    }
    mica_program_destroy(kernel->program);
    free(kernel->inputs);
    free(kernel->outputs);
    free(kernel);
    pthread_mutex_unlock(&delegate->lock);
    mica_delegate_release(delegate);
}

/* ---- prepare and invoke ----------------------------------------------- */

static int report(struct tfl_context *context, const char *message)
{
    if (context->ReportError)
        context->ReportError(context, "Mica: %s", message);
    return TFL_ERROR;
}

static const struct tfl_tensor *tensor_at(const struct tfl_context *context, uint32_t index)
{
    return index < context->tensors_size ? &context->tensors[index] : NULL;
}

/* Do all tensors still have the size that was compiled for? */
static bool sizes_hold(const struct tfl_context *context, const struct mica_program_io *ios, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct tfl_tensor *tensor = tensor_at(context, ios[i].tensor);
        if (i + 1 < count && ios[i + 1].tensor == ios[i].tensor)
            continue; /* its last piece tells */
        if (!tensor || tensor->bytes != ios[i].first + ios[i].size)
            return false;
    }
    return true;
}

/* Runs up to three times when another delegate follows: it changes nothing. */
static int kernel_prepare(struct tfl_context *context, struct tfl_node *node)
{
    const struct kernel *kernel = node->user_data;
    if (!kernel)
        return report(context, "out of memory");
    if (!kernel->instance)
        return report(context, kernel->error);
    const struct mica_program *program = kernel->program;
    if (!sizes_hold(context, program->inputs, program->input_count) ||
        !sizes_hold(context, program->outputs, program->output_count))
        return report(context, "a tensor changed its size after delegation");
    return TFL_OK;
}

/* Pointers of this invocation: the host may move tensors between two. */
static bool collect(struct tfl_context *context, const struct kernel *kernel)
{
    const struct mica_program *program = kernel->program;
    bool all = true;
    for (uint32_t i = 0; i < program->input_count; i++) {
        kernel->inputs[i] = tensor_at(context, program->inputs[i].tensor)->data;
        all = all && kernel->inputs[i];
    }
    for (uint32_t i = 0; i < program->output_count; i++) {
        kernel->outputs[i] = tensor_at(context, program->outputs[i].tensor)->data;
        all = all && kernel->outputs[i];
    }
    return all;
}

/* What an invocation costs, if anyone wants to know. */
static void count(const struct kernel *kernel, double seconds)
{
    struct mica_delegate *delegate = kernel->delegate;
    size_t count;
    const struct mica_job_report *reports = mica_instance_reports(kernel->instance, &count);
    if (!delegate->options.profile)
        return;
    pthread_mutex_lock(&delegate->lock);
    mica_profile_count(&delegate->profile, kernel->first_row, reports, count, seconds,
                       mica_instance_device_seconds(kernel->instance));
    pthread_mutex_unlock(&delegate->lock);
}

/*
 * Holds the core's lock only, so that interpreters in several threads run on their cores at the same time; the
 * messages of a run go to a log of its own.
 */
static int kernel_invoke(struct tfl_context *context, struct tfl_node *node)
{
    if (kernel_prepare(context, node) != TFL_OK)
        return TFL_ERROR;
    struct kernel *kernel = node->user_data;
    if (!collect(context, kernel))
        return report(context, "a tensor has no memory; allocate tensors before invoking");
    struct mica_log log = {.sink = kernel->delegate->log.sink, .level = kernel->delegate->log.level};
    double begin = mica_clock_seconds();
    mica_core_lock(kernel->core, &log);
    int error = mica_instance_invoke(kernel->instance, kernel->inputs, kernel->outputs);
    mica_core_unlock(kernel->core);
    if (error)
        return report(context, log.last_error);
    count(kernel, mica_clock_seconds() - begin);
    return TFL_OK;
}

const struct tfl_registration mica_delegate_kernel = {
    .init = kernel_init,
    .free = kernel_free,
    .prepare = kernel_prepare,
    .invoke = kernel_invoke,
    .builtin_code = TFL_BUILTIN_DELEGATE,
    .custom_name = "MicaDelegate",
    .version = 1,
};
