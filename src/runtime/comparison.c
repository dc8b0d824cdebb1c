/* SPDX-License-Identifier: MIT */
/*
 * A device against TFLite's reference arithmetic: two values of every tensor, side by side. Nothing here is in place
 * or shares memory: every value stays until the comparison ends.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"
#include "runtime/objects.h"
#include "util/checked.h"

#define ALIGNMENT 64
/* Of each of the two sets; reserved, and taken only where values are written. */
#define MAX_TOTAL ((size_t)2 << 30)

struct mica_comparison {
    mica_context *context;
    const mica_executable *executable;
    struct mica_core *core; /* NULL without an NPU */
    void *memory;
    /* Per tensor, both sets with the same constants; NULL for what no operation reads or writes. */
    void **reference, **device;
    bool *on_device; /* per tensor: the last run gave it a value */
    bool has_reference;
};

static const struct mica_graph *graph_of(const mica_comparison *comparison)
{
    return comparison->executable->model->graph;
}

static struct mica_log *log_of(const mica_comparison *comparison)
{
    return &comparison->context->log;
}

/* ---- memory ----------------------------------------------------------- */

/* Marks tensors that need memory: 1; others: 0. */
static void mark_used(const struct mica_graph *graph, bool *used)
{
    for (uint32_t i = 0; i < graph->input_count; i++)
        used[graph->inputs[i]] = true;
    for (uint32_t k = 0; k < graph->op_count; k++) {
        const struct mica_op *op = &graph->ops[k];
        for (uint32_t i = 0; i < op->output_count; i++) {
            if (op->outputs[i] != MICA_NO_TENSOR)
                used[op->outputs[i]] = true;
        }
    }
}

/* Sum of the sizes of used tensors, 0: too large. */
static size_t total_size(const struct mica_graph *graph, const bool *used)
{
    size_t total = ALIGNMENT;
    for (uint32_t i = 0; i < graph->tensor_count && total <= MAX_TOTAL; i++) {
        if (used[i])
            total += (size_t)mica_align(graph->tensors[i].bytes, ALIGNMENT);
    }
    return total <= MAX_TOTAL ? total : 0;
}

static void place_set(const struct mica_graph *graph, const bool *used, uint8_t *base, void **set)
{
    base = (uint8_t *)mica_align((uintptr_t)base, ALIGNMENT);
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        if (graph->tensors[i].data)
            set[i] = (void *)graph->tensors[i].data;
        else if (used[i]) {
            set[i] = base;
            base += mica_align(graph->tensors[i].bytes, ALIGNMENT);
        }
    }
}

static int allocate(mica_comparison *comparison)
{
    const struct mica_graph *graph = graph_of(comparison);
    comparison->reference = mica_new_array(graph->tensor_count, sizeof(void *));
    comparison->device = mica_new_array(graph->tensor_count, sizeof(void *));
    comparison->on_device = mica_new_array(graph->tensor_count, sizeof(bool));
    if (!comparison->reference || !comparison->device || !comparison->on_device)
        return mica_fail_nomem(log_of(comparison));
    bool *used = comparison->on_device; /* scratch for now */
    mark_used(graph, used);
    size_t total = total_size(graph, used);
    if (!total)
        return mica_fail(log_of(comparison), -EFBIG,
                         "all of the model's tensors take more than %zu MiB: too much to compare", MAX_TOTAL >> 20);
    comparison->memory = calloc(2, total);
    if (!comparison->memory)
        return mica_fail_nomem(log_of(comparison));
    place_set(graph, used, comparison->memory, comparison->reference);
    place_set(graph, used, (uint8_t *)comparison->memory + total, comparison->device);
    memset(used, 0, graph->tensor_count * sizeof *used);
    return 0;
}

int mica_comparison_create(const mica_executable *executable, mica_comparison **result)
{
    MICA_CHECK_ARG(NULL, executable);
    MICA_CHECK_ARG(MICA_LOG_OF(executable), result);
    mica_comparison *comparison = calloc(1, sizeof *comparison);
    if (!comparison)
        return mica_fail_nomem(&executable->context->log);
    *comparison = (mica_comparison){.context = executable->context, .executable = executable};
    int error = allocate(comparison);
    if (!error && executable->device->opened.chip)
        error = mica_cores_take(&executable->device->cores, mica_executable_split(executable), log_of(comparison),
                                &comparison->core);
    if (error) {
        mica_comparison_destroy(comparison);
        return error;
    }
    *result = comparison;
    return 0;
}

void mica_comparison_destroy(mica_comparison *comparison)
{
    if (!comparison)
        return;
    if (comparison->core)
        mica_cores_give(&comparison->executable->device->cores, comparison->core);
    free(comparison->memory);
    free(comparison->reference);
    free(comparison->device);
    free(comparison->on_device);
    free(comparison);
}

int mica_comparison_set_input(mica_comparison *comparison, size_t index, const void *data, size_t size)
{
    MICA_CHECK_ARG(NULL, comparison);
    MICA_CHECK_ARG(MICA_LOG_OF(comparison), data);
    MICA_CHECK_ARG(MICA_LOG_OF(comparison), index < graph_of(comparison)->input_count);
    int32_t tensor = graph_of(comparison)->inputs[index];
    MICA_CHECK_ARG(MICA_LOG_OF(comparison), size == graph_of(comparison)->tensors[tensor].bytes);
    memcpy(comparison->reference[tensor], data, size);
    memcpy(comparison->device[tensor], data, size);
    comparison->has_reference = false;
    return 0;
}

/* ---- runs ------------------------------------------------------------- */

static void forget_device(mica_comparison *comparison)
{
    memset(comparison->on_device, 0, graph_of(comparison)->tensor_count * sizeof *comparison->on_device);
}

static int run_on_cpu(mica_comparison *comparison, uint32_t op, void *const *set)
{
    struct mica_cpu_options options = {.threads = comparison->context->threads};
    return mica_cpu_run(graph_of(comparison), op, set, &options, log_of(comparison));
}

int mica_comparison_run_reference(mica_comparison *comparison)
{
    MICA_CHECK_ARG(NULL, comparison);
    const struct mica_plan *plan = &comparison->executable->plan;
    comparison->has_reference = false;
    forget_device(comparison);
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const struct mica_partition *step = &plan->steps[i].partition;
        for (uint32_t k = 0; k < step->op_count; k++) {
            int error = run_on_cpu(comparison, step->ops[k], comparison->reference);
            if (error)
                return error;
        }
    }
    comparison->has_reference = true;
    return 0;
}

static int check_reference(mica_comparison *comparison)
{
    return comparison->has_reference
               ? 0
               : mica_fail(log_of(comparison), -EINVAL, "mica_comparison_run_reference() comes first");
}

static int invoke(mica_comparison *comparison, const struct mica_program *program, const void **inputs, void **outputs)
{
    struct mica_core *core = comparison->core;
    struct mica_instance *instance;
    mica_core_lock(core, log_of(comparison));
    int error = mica_instance_create(core->winsys, program, &core->log, &instance);
    if (!error) {
        error = mica_instance_invoke(instance, inputs, outputs);
        mica_instance_destroy(instance);
    }
    mica_core_unlock(core);
    return error;
}

/* Inputs from one set, outputs to the device's. */
static int run_program(mica_comparison *comparison, const struct mica_program *program, void *const *from)
{
    const void **inputs = mica_new_array(program->input_count, sizeof *inputs);
    void **outputs = mica_new_array(program->output_count, sizeof *outputs);
    int error = inputs && outputs ? 0 : mica_fail_nomem(log_of(comparison));
    for (uint32_t i = 0; !error && i < program->input_count; i++)
        inputs[i] = from[program->inputs[i].tensor];
    for (uint32_t i = 0; !error && i < program->output_count; i++)
        outputs[i] = comparison->device[program->outputs[i].tensor];
    if (!error)
        error = invoke(comparison, program, inputs, outputs);
    for (uint32_t i = 0; !error && i < program->output_count; i++)
        comparison->on_device[program->outputs[i].tensor] = true;
    free(inputs);
    free(outputs);
    return error;
}

/* Has everything that the partition makes come out of it. */
static bool expose(struct mica_partition *partition)
{
    uint32_t capacity = 0, count = 0;
    for (uint32_t k = 0; k < partition->op_count; k++)
        capacity += partition->graph->ops[partition->ops[k]].output_count;
    uint32_t *outputs = mica_new_array(capacity, sizeof *outputs);
    if (!outputs)
        return false;
    for (uint32_t k = 0; k < partition->op_count; k++) {
        const struct mica_op *op = &partition->graph->ops[partition->ops[k]];
        for (uint32_t i = 0; i < op->output_count; i++) {
            if (op->outputs[i] != MICA_NO_TENSOR)
                outputs[count++] = (uint32_t)op->outputs[i];
        }
    }
    free((void *)partition->outputs);
    partition->outputs = outputs;
    partition->output_count = count;
    return true;
}

/* Compiles operations so that all they make can be seen, and runs them. */
static int run_exposed(mica_comparison *comparison, const uint32_t *ops, uint32_t op_count, void *const *from)
{
    const mica_device *device = comparison->executable->device;
    const struct mica_chip *chip = device->opened.chip;
    struct mica_log *log = log_of(comparison);
    struct mica_partition partition;
    struct mica_program *program = NULL;
    int error = mica_partition_create(graph_of(comparison), ops, op_count, log, &partition);
    if (error)
        return error;
    if (!expose(&partition))
        error = mica_fail_nomem(log);
    if (!error)
        error = chip->family->compile(chip, &partition, &device->options, comparison->context->threads, log, &program);
    if (!error)
        error = run_program(comparison, program, from);
    mica_program_destroy(program);
    mica_partition_finish(&partition);
    return error;
}

int mica_comparison_run_alone(mica_comparison *comparison, size_t operation)
{
    MICA_CHECK_ARG(NULL, comparison);
    MICA_CHECK_ARG(MICA_LOG_OF(comparison), operation < graph_of(comparison)->op_count);
    MICA_CHECK_ARG(MICA_LOG_OF(comparison), mica_executable_partition_of(comparison->executable, operation) >= 0);
    int error = check_reference(comparison);
    if (error)
        return error;
    forget_device(comparison);
    uint32_t op = (uint32_t)operation;
    return run_exposed(comparison, &op, 1, comparison->reference);
}

static int run_cpu_step(mica_comparison *comparison, const struct mica_partition *step)
{
    for (uint32_t k = 0; k < step->op_count; k++) {
        int error = run_on_cpu(comparison, step->ops[k], comparison->device);
        if (error)
            return error;
        const struct mica_op *op = &graph_of(comparison)->ops[step->ops[k]];
        for (uint32_t i = 0; i < op->output_count; i++) {
            if (op->outputs[i] != MICA_NO_TENSOR)
                comparison->on_device[op->outputs[i]] = true;
        }
    }
    return 0;
}

int mica_comparison_run_chained(mica_comparison *comparison, bool every)
{
    MICA_CHECK_ARG(NULL, comparison);
    const mica_executable *executable = comparison->executable;
    int error = check_reference(comparison);
    forget_device(comparison);
    for (uint32_t i = 0; !error && i < executable->plan.step_count; i++) {
        const struct mica_partition *step = &executable->plan.steps[i].partition;
        if (!executable->programs[i])
            error = run_cpu_step(comparison, step);
        else if (every)
            error = run_exposed(comparison, step->ops, step->op_count, comparison->device);
        else
            error = run_program(comparison, executable->programs[i], comparison->device);
    }
    return error;
}

/* ---- values ----------------------------------------------------------- */

const void *mica_comparison_reference(const mica_comparison *comparison, size_t tensor)
{
    if (!comparison || tensor >= graph_of(comparison)->tensor_count || !comparison->has_reference)
        return NULL;
    return comparison->reference[tensor];
}

const void *mica_comparison_device(const mica_comparison *comparison, size_t tensor)
{
    if (!comparison || tensor >= graph_of(comparison)->tensor_count || !comparison->on_device[tensor])
        return NULL;
    return comparison->device[tensor];
}
