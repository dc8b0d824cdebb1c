/* SPDX-License-Identifier: MIT */
#include "runtime/run.h"

#include <errno.h>
#include <stdlib.h>

#include "cpu/cpu.h"
#include "runtime/objects.h"
#include "util/checked.h"
#include "util/clock.h"

static bool list_values(const struct mica_program *program, const struct mica_tensor_memory *memory,
                        struct mica_run_step *step)
{
    step->inputs = mica_new_array(program->input_count, sizeof *step->inputs);
    step->outputs = mica_new_array(program->output_count, sizeof *step->outputs);
    if (!step->inputs || !step->outputs)
        return false;
    for (uint32_t i = 0; i < program->input_count; i++)
        step->inputs[i] = memory->data[program->inputs[i].tensor];
    for (uint32_t i = 0; i < program->output_count; i++)
        step->outputs[i] = memory->data[program->outputs[i].tensor];
    return true;
}

static int create_step(struct mica_run *run, uint32_t index, struct mica_log *log)
{
    const struct mica_program *program = run->executable->programs[index];
    if (!program)
        return 0;
    if (!list_values(program, &run->memory, &run->steps[index]))
        return mica_fail_nomem(log);
    mica_core_lock(run->core, log);
    int error = mica_instance_create(run->core->winsys, program, &run->core->log, &run->steps[index].instance);
    mica_core_unlock(run->core);
    return error;
}

static size_t job_capacity(const mica_executable *executable)
{
    size_t count = 0;
    for (uint32_t i = 0; i < executable->plan.step_count; i++) {
        const struct mica_program *program = executable->programs[i];
        count += program ? program->job_count : executable->plan.steps[i].partition.op_count;
    }
    return count;
}

int mica_run_create(const mica_executable *executable, struct mica_log *log, struct mica_run *run)
{
    const struct mica_plan *plan = &executable->plan;
    *run = (struct mica_run){.executable = executable};
    int error = mica_tensor_memory_create(executable->model->graph, plan, log, &run->memory);
    if (error)
        return error;
    run->steps = mica_new_array(plan->step_count, sizeof *run->steps);
    run->jobs = mica_new_array(job_capacity(executable), sizeof *run->jobs);
    run->reports = mica_new_array(job_capacity(executable), sizeof *run->reports);
    if (!run->steps || !run->jobs || !run->reports)
        error = mica_fail_nomem(log);
    if (!error && executable->device->opened.chip)
        error = mica_cores_take(&executable->device->cores, mica_executable_split(executable), log, &run->core);
    for (uint32_t i = 0; !error && i < plan->step_count; i++)
        error = create_step(run, i, log);
    if (error)
        mica_run_finish(run);
    else
        mica_run_place(run);
    return error;
}

static void finish_step(struct mica_run *run, struct mica_run_step *step)
{
    if (step->instance) {
        mica_core_lock(run->core, NULL);
        mica_instance_destroy(step->instance);
        mica_core_unlock(run->core);
    }
    free(step->inputs);
    free(step->outputs);
}

void mica_run_finish(struct mica_run *run)
{
    for (uint32_t i = 0; run->steps && i < run->executable->plan.step_count; i++)
        finish_step(run, &run->steps[i]);
    free(run->steps);
    free(run->jobs);
    free(run->reports);
    if (run->core)
        mica_cores_give(&run->executable->device->cores, run->core);
    mica_tensor_memory_finish(&run->memory);
    *run = (struct mica_run){0};
}

void mica_run_start(struct mica_run *run)
{
    run->job_count = run->report_count = 0;
    run->next_stage = 0;
}

static int run_cpu_step(struct mica_run *run, const struct mica_partition *ops, struct mica_log *log)
{
    struct mica_cpu_options options = {.threads = run->executable->context->threads};
    for (uint32_t i = 0; i < ops->op_count; i++) {
        uint32_t op = ops->ops[i];
        double start = mica_clock_seconds();
        int error = mica_cpu_run(ops->graph, op, run->memory.data, &options, log);
        if (error)
            return error;
        run->jobs[run->job_count++] = (struct mica_job_info){
            .unit = "CPU",
            .operation = op,
            .macs = mica_op_macs(ops->graph, &ops->graph->ops[op]),
            .us = (mica_clock_seconds() - start) * 1e6,
            .stage = run->next_stage++,
        };
    }
    return 0;
}

static struct mica_job_info row_of(const struct mica_run *run, const struct mica_program_job *job,
                                   const struct mica_job_report *report)
{
    return (struct mica_job_info){
        .unit = job->unit,
        .operation = job->op,
        .macs = job->macs,
        .cycles = report->cycles,
        .us = (double)report->cycles / run->clock_mhz,
        .read_bytes = report->read_bytes,
        .write_bytes = report->write_bytes,
        .coefficient_bytes = report->coefficient_bytes,
        .estimate = run->core->winsys->simulated,
        .compute_cycles = report->compute_cycles,
        .memory_cycles = report->memory_cycles,
        .dispatch_us = report->dispatch_us,
        .stage = run->next_stage,
    };
}

/* Where the submissions say that their jobs run. */
static void place_rows(struct mica_run *run, const struct mica_program *program, struct mica_job_info *rows)
{
    uint32_t stages = 0;
    for (uint32_t i = 0; i < program->submit_count; i++) {
        const struct mica_program_submit *submit = &program->submits[i];
        for (uint32_t k = 0; k < submit->job_count; k++) {
            rows[submit->first_job + k].core = submit->core;
            rows[submit->first_job + k].stage = run->next_stage + submit->stage;
        }
        stages = submit->stage;
    }
    run->next_stage += stages + 1;
}

/* A device that reports nothing still has rows: which jobs ran is known, what they cost is not. */
static void add_rows(struct mica_run *run, const struct mica_program *program, const struct mica_instance *instance)
{
    static const struct mica_job_report unknown;
    size_t count;
    const struct mica_job_report *reports = mica_instance_reports(instance, &count);
    struct mica_job_info *rows = &run->jobs[run->job_count];
    run->clock_mhz = run->core->clock_mhz;
    for (uint32_t i = 0; i < program->job_count; i++) {
        rows[i] = row_of(run, &program->jobs[i], i < count ? &reports[i] : &unknown);
        if (i < count)
            run->reports[run->report_count++] = reports[i];
    }
    run->job_count += program->job_count;
    place_rows(run, program, rows);
}

int mica_run_step(struct mica_run *run, uint32_t index, mica_instance_watch *before, void *user, struct mica_log *log)
{
    const mica_executable *executable = run->executable;
    const struct mica_program *program = executable->programs[index];
    if (!program)
        return run_cpu_step(run, &executable->plan.steps[index].partition, log);
    const struct mica_run_step *step = &run->steps[index];
    mica_core_lock(run->core, log);
    int error = mica_instance_invoke_watched(step->instance, step->inputs, step->outputs, before, user);
    if (!error)
        add_rows(run, program, step->instance);
    mica_core_unlock(run->core);
    return error;
}
