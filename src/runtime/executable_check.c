/* SPDX-License-Identifier: MIT */
/* What must hold before an executable runs, whether it was compiled here or read from a file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device_options.h"
#include "runtime/objects.h"
#include "util/checked.h"

struct check {
    const struct mica_graph *graph;
    struct mica_log *log;
    bool *has_value; /* per tensor: constant, input, or written by a step so far */
    bool *done;      /* per operation */
};

static int check_border(const struct check *check)
{
    const struct mica_graph *graph = check->graph;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const struct mica_tensor *tensor = &graph->tensors[graph->inputs[i]];
        if (tensor->problem)
            return mica_fail(check->log, -ENOTSUP, "model input \"%.80s\" can't be used: %s", tensor->name,
                             tensor->problem);
        if (tensor->data)
            return mica_fail(check->log, -EINVAL, "model input \"%.80s\" is a constant", tensor->name);
        check->has_value[graph->inputs[i]] = true;
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const struct mica_tensor *tensor = &graph->tensors[graph->outputs[i]];
        if (tensor->problem)
            return mica_fail(check->log, -ENOTSUP, "model output \"%.80s\" can't be used: %s", tensor->name,
                             tensor->problem);
    }
    return 0;
}

static int check_values(const struct check *check, const struct mica_op *op, uint32_t index)
{
    for (uint32_t i = 0; i < op->input_count; i++) {
        int32_t tensor = op->inputs[i];
        if (tensor != MICA_NO_TENSOR && !check->graph->tensors[tensor].data && !check->has_value[tensor])
            return mica_fail(check->log, -EINVAL, "operation %u (%.40s) reads \"%.80s\", which has no value by then",
                             index, op->type, check->graph->tensors[tensor].name);
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        int32_t tensor = op->outputs[i];
        if (tensor == MICA_NO_TENSOR)
            continue;
        if (check->graph->tensors[tensor].data || check->has_value[tensor])
            return mica_fail(check->log, -EINVAL,
                             "operation %u (%.40s) writes \"%.80s\", which is an input or a constant", index, op->type,
                             check->graph->tensors[tensor].name);
        check->has_value[tensor] = true;
    }
    return 0;
}

static int check_placement(const struct check *check, const struct mica_chip *chip, bool npu, uint32_t index)
{
    char reason[512];
    const struct mica_op *op = &check->graph->ops[index];
    int place = mica_place_operation(check->graph, chip, index, reason, sizeof reason);
    if (place >= 0 && place >= npu)
        return 0;
    if (place == -ENOMEM)
        return mica_fail_nomem(check->log);
    const struct mica_tensor *output = mica_op_output(check->graph, op, 0);
    return mica_fail(check->log, -ENOTSUP, "operation %u (%.40s, output \"%.80s\") can't run %s: %s", index, op->type,
                     output ? output->name : "", npu ? "on the NPU" : "anywhere", reason);
}

static int check_op(const struct check *check, const struct mica_chip *chip, bool npu, uint32_t index)
{
    if (index >= check->graph->op_count || check->done[index])
        return mica_fail(check->log, -EINVAL, "the plan has operation %u twice, or too many", index);
    check->done[index] = true;
    int error = check_placement(check, chip, npu, index);
    return error ? error : check_values(check, &check->graph->ops[index], index);
}

static int check_all_done(const struct check *check)
{
    const struct mica_graph *graph = check->graph;
    for (uint32_t i = 0; i < graph->op_count; i++) {
        if (!check->done[i])
            return mica_fail(check->log, -EINVAL, "the plan lacks operation %u", i);
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const struct mica_tensor *tensor = &graph->tensors[graph->outputs[i]];
        if (!tensor->data && !check->has_value[graph->outputs[i]])
            return mica_fail(check->log, -EINVAL, "nothing gives the model's output \"%.80s\" a value", tensor->name);
    }
    return 0;
}

static int check_steps(const mica_executable *executable, const struct check *check)
{
    int error = check_border(check);
    for (uint32_t i = 0; !error && i < executable->plan.step_count; i++) {
        const struct mica_step *step = &executable->plan.steps[i];
        for (uint32_t k = 0; !error && k < step->partition.op_count; k++)
            error = check_op(check, executable->device->opened.chip, step->npu, step->partition.ops[k]);
    }
    return error ? error : check_all_done(check);
}

int mica_executable_check_plan(const mica_executable *executable)
{
    const struct mica_graph *graph = executable->model->graph;
    struct check check = {
        .graph = graph,
        .log = &executable->context->log,
        .has_value = mica_new_array(graph->tensor_count, sizeof(bool)),
        .done = mica_new_array(graph->op_count, sizeof(bool)),
    };
    int error = check.has_value && check.done ? check_steps(executable, &check) : mica_fail_nomem(check.log);
    free(check.has_value);
    free(check.done);
    return error;
}

/* Sets `marks` of the listed tensors. */
static void mark(uint8_t *marks, const uint32_t *tensors, uint32_t count, uint8_t value)
{
    for (uint32_t i = 0; i < count; i++)
        marks[tensors[i]] = value;
}

/* How many of `ios` make the tensor of the first one, piece by piece; 0: they don't. */
static uint32_t count_pieces(const struct mica_program_io *ios, uint32_t count, uint64_t bytes)
{
    uint64_t done = 0;
    uint32_t i = 0;
    for (; i < count && ios[i].tensor == ios[0].tensor && done < bytes; i++) {
        if (ios[i].first != done || ios[i].size > bytes - done)
            return 0;
        done += ios[i].size;
    }
    return done == bytes ? i : 0;
}

/* Each of `ios` is a marked tensor, whole; those marked 1 become 2. */
static bool ios_match(const struct mica_graph *graph, const struct mica_program_io *ios, uint32_t count, uint8_t *marks)
{
    for (uint32_t i = 0, pieces; i < count; i += pieces) {
        uint32_t tensor = ios[i].tensor;
        if (tensor >= graph->tensor_count || !marks[tensor])
            return false;
        pieces = count_pieces(ios + i, count - i, graph->tensors[tensor].bytes);
        if (!pieces)
            return false;
        marks[tensor] = 2;
    }
    return true;
}

static bool all_written(const struct mica_partition *partition, const uint8_t *marks)
{
    for (uint32_t i = 0; i < partition->output_count; i++) {
        if (marks[partition->outputs[i]] != 2)
            return false;
    }
    return true;
}

static bool jobs_match(const struct mica_graph *graph, const struct mica_program *program)
{
    for (uint32_t i = 0; i < program->job_count; i++) {
        const struct mica_program_job *job = &program->jobs[i];
        if (job->op >= graph->op_count || !memchr(job->unit, 0, sizeof job->unit))
            return false;
    }
    return true;
}

/* `marks` has a zero per tensor, before and after. */
static bool program_fits(const struct mica_partition *partition, const struct mica_program *program, uint8_t *marks)
{
    const struct mica_graph *graph = partition->graph;
    if (!program || !mica_program_valid(program) || !jobs_match(graph, program))
        return false;
    mark(marks, partition->inputs, partition->input_count, 1);
    bool fits = ios_match(graph, program->inputs, program->input_count, marks);
    mark(marks, partition->inputs, partition->input_count, 0);
    mark(marks, partition->outputs, partition->output_count, 1);
    fits = fits && ios_match(graph, program->outputs, program->output_count, marks) && all_written(partition, marks);
    mark(marks, partition->outputs, partition->output_count, 0);
    return fits;
}

int mica_executable_check_programs(const mica_executable *executable)
{
    struct mica_log *log = &executable->context->log;
    uint8_t *marks = mica_new_array(executable->model->graph->tensor_count, sizeof *marks);
    if (!marks)
        return mica_fail_nomem(log);
    int error = 0;
    for (uint32_t i = 0; !error && i < executable->plan.step_count; i++) {
        const struct mica_step *step = &executable->plan.steps[i];
        bool fits =
            step->npu ? program_fits(&step->partition, executable->programs[i], marks) : !executable->programs[i];
        if (!fits)
            error = mica_fail(log, -EINVAL, "the program of step %u does not fit its operations", i);
    }
    free(marks);
    const mica_device *device = executable->device;
    if (!error && device->options.on_chip && !(device->opened.chip && device->opened.chip->on_chip))
        mica_log(log, MICA_LOG_WARNING,
                 "on-chip: %s has no on-chip memory for tensors, so that the option changes nothing",
                 device->opened.name);
    for (uint32_t i = 0; !error && i < executable->plan.step_count; i++) {
        if (mica_warn_on_chip(executable->programs[i], device->opened.chip, log))
            break; /* saying it once is enough */
    }
    return error;
}
