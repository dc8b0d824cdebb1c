/* SPDX-License-Identifier: MIT */
/* A task: which blocks work together, what it costs, and running it. */
#include "npu/rockchip/sim/job.h"

#include <errno.h>

#include "npu/rockchip/sim/dpu.h"

uint64_t rk_task_bytes(const struct rk_task *task, enum rk_field_id field)
{
    return (uint64_t)rk_get(task->registers, task->generation, field) << rk_fields[field].at[task->generation].lsb;
}

static const char *register_name(const struct rk_task *task, enum rk_field_id field)
{
    const struct rk_register *found = rk_register_of(task->generation, rk_fields[field].at[task->generation].offset);
    return found ? found->name : "";
}

int rk_task_refuse(const struct rk_task *task, enum rk_field_id field, const char *why)
{
    uint32_t value = rk_get(task->registers, task->generation, field);
    return mica_fail(task->sim->log, -EIO, "register program 0x%08x: %s.%s.%s is 0x%x: %s", task->program,
                     rk_blocks[rk_fields[field].block].name, register_name(task, field), rk_fields[field].name, value,
                     why);
}

int rk_task_expect(const struct rk_task *task, enum rk_field_id field, uint64_t expected, const char *what)
{
    uint32_t value = rk_get(task->registers, task->generation, field);
    if (value == expected)
        return 0;
    return mica_fail(task->sim->log, -EIO, "register program 0x%08x: %s.%s.%s is %u, but %s: %llu", task->program,
                     rk_blocks[rk_fields[field].block].name, register_name(task, field), rk_fields[field].name, value,
                     what, (unsigned long long)expected);
}

int rk_task_check(const struct rk_task *task, const struct rk_rule *rules, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (rk_fields[rules[i].field].at[task->generation].width > 0 &&
            rk_get(task->registers, task->generation, rules[i].field) != rules[i].value)
            return rk_task_refuse(task, rules[i].field, rules[i].why);
    return 0;
}

int rk_task_aligned(const struct rk_task *task, enum rk_field_id field)
{
    if (rk_task_bytes(task, field) % task->sim->chip->atom == 0)
        return 0;
    return rk_task_refuse(task, field, "the address must be a multiple of the cube's atom");
}

int rk_task_spend(struct rk_task *task, struct mica_job_report *report)
{
    struct rk_sim *sim = task->sim;
    uint64_t memory = rk_memory_cycles(sim->chip, task->read_bytes + task->write_bytes, sim->clock_mhz);
    *report = (struct mica_job_report){
        .cycles = task->compute_cycles > memory ? task->compute_cycles : memory,
        .read_bytes = task->read_bytes,
        .write_bytes = task->write_bytes,
        .coefficient_bytes = task->coefficient_bytes,
        .compute_cycles = task->compute_cycles,
        .memory_cycles = memory,
        .dispatch_us = task->dispatch_us,
    };
    uint64_t dispatch = (uint64_t)(task->dispatch_us * sim->chip->clock_mhz);
    if (report->cycles > sim->cycles_left || dispatch > sim->cycles_left - report->cycles)
        return mica_fail(sim->log, -EIO,
                         "register program 0x%08x: at %llu cycles the job would run longer than the kernel's timeout",
                         task->program, (unsigned long long)report->cycles);
    sim->cycles_left -= report->cycles + dispatch;
    return 0;
}

static int run_convolution(struct rk_task *task, struct mica_job_report *report)
{
    struct rk_conv conv;
    struct rk_dpu dpu;
    int result = rk_conv_decode(task, &conv);
    result = result ? result : rk_dpu_decode(task, &dpu);
    result = result ? result : rk_task_spend(task, report);
    result = result ? result : rk_conv_run(task->sim, &conv, &dpu);
    if (!result)
        rk_conv_keep(task, &conv);
    return result;
}

static int run_elementwise(struct rk_task *task, struct mica_job_report *report)
{
    struct rk_dpu dpu;
    int result = rk_dpu_decode(task, &dpu);
    result = result ? result : rk_task_spend(task, report);
    if (!result)
        rk_elementwise_run(task->sim, &dpu);
    return result;
}

int rk_task_run(struct rk_task *task, struct mica_job_report *report)
{
    if (task->start & RK_START_PPU)
        return rk_pool_task(task, report);
    return task->start & RK_START_CNA ? run_convolution(task, report) : run_elementwise(task, report);
}
