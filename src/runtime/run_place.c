/* SPDX-License-Identifier: MIT */
/* Tensors of the model's border that live in the device's own memory, so that nobody copies them. */
#include <errno.h>

#include "runtime/objects.h"

/* What touches a tensor, constants aside. */
struct uses {
    unsigned npu, cpu; /* ends of programs, operations */
    bool pieces;
    struct mica_tensor_use last;
};

static bool lists(const int32_t *tensors, uint32_t count, uint32_t tensor)
{
    for (uint32_t i = 0; i < count; i++) {
        if (tensors[i] == (int32_t)tensor)
            return true;
    }
    return false;
}

static void note_cpu_step(const struct mica_partition *step, uint32_t tensor, struct uses *uses)
{
    for (uint32_t k = 0; k < step->op_count; k++) {
        const struct mica_op *op = &step->graph->ops[step->ops[k]];
        uses->cpu += lists(op->inputs, op->input_count, tensor) || lists(op->outputs, op->output_count, tensor);
    }
}

static void note_ios(const struct mica_program_io *ios, uint32_t count, uint32_t tensor, struct mica_tensor_use use,
                     struct uses *uses)
{
    for (use.io = 0; use.io < count; use.io++) {
        if (ios[use.io].tensor != tensor)
            continue;
        uses->npu++;
        uses->pieces |= ios[use.io].first != 0;
        uses->last = use;
    }
}

static struct uses find_uses(const struct mica_run *run, uint32_t tensor)
{
    const struct mica_executable *executable = run->executable;
    struct uses uses = {0};
    for (uint32_t i = 0; i < executable->plan.step_count; i++) {
        const struct mica_program *program = executable->programs[i];
        if (!program) {
            note_cpu_step(&executable->plan.steps[i].partition, tensor, &uses);
            continue;
        }
        note_ios(program->inputs, program->input_count, tensor, (struct mica_tensor_use){i, 0, false}, &uses);
        note_ios(program->outputs, program->output_count, tensor, (struct mica_tensor_use){i, 0, true}, &uses);
    }
    return uses;
}

const char *mica_run_why_not_in_place(const struct mica_run *run, uint32_t tensor, bool output,
                                      struct mica_tensor_use *use)
{
    struct uses uses = find_uses(run, tensor);
    *use = uses.last;
    if (run->executable->model->graph->tensors[tensor].data)
        return "it is a constant of the model";
    if (uses.cpu)
        return "an operation on the CPU uses it";
    if (uses.pieces)
        return "the NPU has it in pieces";
    if (uses.npu != 1 || use->output != output)
        return uses.npu > 1 ? "several NPU partitions use it" : "no NPU partition uses it";
    return mica_instance_why_not_in_place(run->steps[use->step].instance, output, use->io);
}

bool mica_run_locate(const struct mica_run *run, uint32_t tensor, bool output, struct mica_tensor_place *place)
{
    for (uint32_t i = 0; i < run->executable->plan.step_count; i++) {
        const struct mica_program *program = run->executable->programs[i];
        const struct mica_program_io *ios = !program ? NULL : output ? program->outputs : program->inputs;
        uint32_t count = !program ? 0 : output ? program->output_count : program->input_count;
        for (uint32_t k = 0; k < count; k++) {
            if (ios[k].tensor != tensor || ios[k].size != run->executable->model->graph->tensors[tensor].bytes)
                continue; /* a piece is no place for all of it */
            *place = mica_instance_locate(run->steps[i].instance, output, k);
            return true;
        }
    }
    return false;
}

static void take_map(struct mica_run *run, uint32_t tensor, const struct mica_tensor_use *use)
{
    struct mica_run_step *step = &run->steps[use->step];
    void *map = mica_instance_map(step->instance, use->output, use->io);
    run->memory.data[tensor] = map;
    if (use->output)
        step->outputs[use->io] = map;
    else
        step->inputs[use->io] = map;
}

static void place_tensors(struct mica_run *run, const int32_t *tensors, uint32_t count, bool output)
{
    struct mica_tensor_use use;
    for (uint32_t i = 0; i < count; i++) {
        if (!mica_run_why_not_in_place(run, (uint32_t)tensors[i], output, &use))
            take_map(run, (uint32_t)tensors[i], &use);
    }
}

void mica_run_place(struct mica_run *run)
{
    const struct mica_graph *graph = run->executable->model->graph;
    place_tensors(run, graph->inputs, graph->input_count, false);
    place_tensors(run, graph->outputs, graph->output_count, true);
}

int mica_run_bind(struct mica_run *run, uint32_t tensor, bool output, int fd, uint64_t offset, struct mica_log *log)
{
    struct mica_tensor_use use;
    const char *reason = mica_run_why_not_in_place(run, tensor, output, &use);
    if (reason)
        return mica_fail(log, -ENOTSUP, "tensor \"%.80s\" can't be used in place: %s",
                         run->executable->model->graph->tensors[tensor].name, reason);
    mica_core_lock(run->core, log);
    int error = mica_instance_bind(run->steps[use.step].instance, output, use.io, fd, offset);
    mica_core_unlock(run->core);
    if (!error)
        take_map(run, tensor, &use);
    return error;
}
