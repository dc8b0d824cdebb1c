/* SPDX-License-Identifier: MIT */
/* Executables of the public API: compiling, and what there is to ask. Files are in executable_file.c. */
#include <errno.h>
#include <stdlib.h>

#include "runtime/objects.h"
#include "util/checked.h"

static int compile_steps(mica_executable *executable)
{
    const struct mica_chip *chip = executable->device->opened.chip;
    struct mica_log *log = &executable->context->log;
    for (uint32_t i = 0; i < executable->plan.step_count; i++) {
        const struct mica_step *step = &executable->plan.steps[i];
        if (!step->npu)
            continue;
        int error = chip->family->compile(chip, &step->partition, &executable->device->options,
                                          executable->context->threads, log, &executable->programs[i]);
        if (error)
            return error;
    }
    return 0;
}

static int plan(mica_executable *executable)
{
    const struct mica_graph *graph = executable->model->graph;
    struct mica_log *log = &executable->context->log;
    bool *npu = mica_new_array(graph->op_count, sizeof *npu);
    int error = npu ? mica_place_model(executable->model, executable->device, npu, NULL, log) : mica_fail_nomem(log);
    if (!error)
        error = mica_plan_create_placed(graph, npu, log, &executable->plan);
    free(npu);
    return error;
}

static int compile(mica_executable *executable)
{
    struct mica_log *log = &executable->context->log;
    int error = plan(executable);
    if (!error)
        error = mica_executable_check_plan(executable);
    if (error)
        return error;
    executable->programs = mica_new_array(executable->plan.step_count, sizeof(struct mica_program *));
    if (!executable->programs)
        return mica_fail_nomem(log);
    error = compile_steps(executable);
    return error ? error : mica_executable_check_programs(executable);
}

int mica_executable_compile(mica_model *model, mica_device *device, mica_executable **result)
{
    MICA_CHECK_ARG(MICA_LOG_OF(device), model);
    MICA_CHECK_ARG(MICA_LOG_OF(model), device);
    MICA_CHECK_ARG(&model->context->log, result);
    MICA_CHECK_ARG(&model->context->log, model->context == device->context);
    mica_executable *executable = calloc(1, sizeof *executable);
    if (!executable)
        return mica_fail_nomem(&model->context->log);
    *executable = (mica_executable){.context = model->context, .device = device, .model = model};
    int error = compile(executable);
    if (error) {
        mica_executable_destroy(executable);
        return error;
    }
    *result = executable;
    return 0;
}

void mica_executable_destroy(mica_executable *executable)
{
    if (!executable)
        return;
    for (uint32_t i = 0; executable->programs && i < executable->plan.step_count; i++)
        mica_program_destroy(executable->programs[i]);
    free(executable->programs);
    mica_plan_finish(&executable->plan);
    mica_model_destroy(executable->owned_model);
    mica_mapping_close(&executable->mapping);
    free(executable);
}

const mica_model *mica_executable_model(const mica_executable *executable)
{
    return executable ? executable->model : NULL;
}

size_t mica_executable_partition_count(const mica_executable *executable)
{
    size_t count = 0;
    for (uint32_t i = 0; executable && i < executable->plan.step_count; i++)
        count += executable->plan.steps[i].npu;
    return count;
}

size_t mica_executable_npu_operation_count(const mica_executable *executable)
{
    size_t count = 0;
    for (uint32_t i = 0; executable && i < executable->plan.step_count; i++) {
        if (executable->plan.steps[i].npu)
            count += executable->plan.steps[i].partition.op_count;
    }
    return count;
}

static bool has_operation(const struct mica_partition *partition, size_t operation)
{
    for (uint32_t i = 0; i < partition->op_count; i++) {
        if (partition->ops[i] == operation)
            return true;
    }
    return false;
}

int mica_executable_partition_of(const mica_executable *executable, size_t operation)
{
    int partition = 0;
    for (uint32_t i = 0; executable && i < executable->plan.step_count; i++) {
        const struct mica_step *step = &executable->plan.steps[i];
        if (step->npu && has_operation(&step->partition, operation))
            return partition;
        partition += step->npu;
    }
    return -1;
}

unsigned mica_executable_split(const mica_executable *executable)
{
    unsigned most = 1;
    for (uint32_t i = 0; executable && i < executable->plan.step_count; i++) {
        unsigned own = mica_program_width(executable->programs[i]);
        most = own > most ? own : most;
    }
    return most;
}
