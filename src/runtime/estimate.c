/* SPDX-License-Identifier: MIT */
/* mica_session_stream_us(): what the timing model says of many runs, of several cores, at another clock. */
#include "runtime/objects.h"

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* Memory keeps its speed whatever the NPU's clock is. */
static double memory_us(const struct mica_job_info *job, double counted_mhz)
{
    return (double)job->memory_cycles / counted_mhz;
}

/* A job counted at one clock, at another: what is neither computing nor memory goes with the clock. */
static double job_us(const struct mica_job_info *job, double counted_mhz, double mhz)
{
    double rest = (double)job->cycles - larger((double)job->compute_cycles, (double)job->memory_cycles);
    double bound = larger((double)job->compute_cycles / mhz, memory_us(job, counted_mhz));
    return bound + larger(rest, 0) / mhz + job->dispatch_us;
}

/* The jobs [first, end) of one stage: cores side by side, that share the memory. */
static double stage_us(const struct mica_run *run, size_t first, size_t end, double mhz)
{
    double cores[MICA_MAX_CORES] = {0}, memory = 0, longest = 0;
    for (size_t i = first; i < end; i++) {
        const struct mica_job_info *job = &run->jobs[i];
        double *core = &cores[job->core % MICA_MAX_CORES];
        *core += job_us(job, run->clock_mhz, mhz);
        memory += memory_us(job, run->clock_mhz);
        longest = larger(longest, *core);
    }
    return larger(longest, memory);
}

static double run_us(const struct mica_run *run, double mhz)
{
    double sum = 0;
    for (size_t first = 0, end; first < run->job_count; first = end) {
        for (end = first + 1; end < run->job_count && run->jobs[end].stage == run->jobs[first].stage; end++)
            ;
        if (run->jobs[first].estimate)
            sum += stage_us(run, first, end, mhz);
    }
    return sum;
}

int mica_run_stream_us(const struct mica_run *run, double mhz, uint32_t inferences, uint32_t cores,
                       struct mica_log *log, double *us)
{
    const mica_executable *executable = run->executable;
    const struct mica_chip *chip = executable->device->opened.chip;
    if (!run->report_count)
        return mica_fail(log, -ENOTSUP, "there is no estimate: nothing of the run came from a timing model");
    uint32_t width = mica_executable_split(executable), lanes = cores / width ? cores / width : 1;
    mhz = mhz > 0 ? mhz : run->clock_mhz;
    if (width == 1 && chip->family->stream_us)
        *us = chip->family->stream_us(chip, mhz, run->reports, run->report_count, inferences, cores);
    else
        *us = (inferences / lanes + (inferences % lanes != 0)) * run_us(run, mhz);
    return *us < 0 ? mica_fail_nomem(log) : 0;
}
