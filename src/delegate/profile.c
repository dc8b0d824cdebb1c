/* SPDX-License-Identifier: MIT */
#include "delegate/profile.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "util/checked.h"

static void fill_row(const struct mica_graph *graph, const struct mica_program_job *job, uint32_t partition,
                     struct mica_profile_row *row)
{
    *row = (struct mica_profile_row){.partition = partition, .macs = job->macs};
    memcpy(row->unit, job->unit, sizeof row->unit - 1);
    if (job->op >= graph->op_count)
        return;
    const struct mica_op *op = &graph->ops[job->op];
    const struct mica_tensor *output = mica_op_output(graph, op, 0);
    snprintf(row->op, sizeof row->op, "%.24s %.64s", op->type, output ? output->name : "");
}

int mica_profile_add(struct mica_profile *profile, const struct mica_graph *graph, const struct mica_program *program,
                     struct mica_log *log, uint32_t *first)
{
    size_t count, bytes;
    struct mica_profile_row *rows = NULL;
    if (mica_add_size(profile->row_count, program->job_count, &count) && count < UINT32_MAX &&
        mica_mul_size(count + 1, sizeof *rows, &bytes))
        rows = realloc(profile->rows, bytes);
    if (!rows)
        return mica_fail_nomem(log);
    profile->rows = rows;
    *first = profile->row_count;
    profile->partition_count++;
    for (uint32_t i = 0; i < program->job_count; i++)
        fill_row(graph, &program->jobs[i], profile->partition_count, &rows[profile->row_count++]);
    return 0;
}

static void add_report(struct mica_job_report *sum, const struct mica_job_report *report)
{
    sum->cycles += report->cycles;
    sum->read_bytes += report->read_bytes;
    sum->write_bytes += report->write_bytes;
    sum->coefficient_bytes += report->coefficient_bytes;
    sum->dispatch_us += report->dispatch_us;
}

void mica_profile_count(struct mica_profile *profile, uint32_t first, const struct mica_job_report *reports,
                        size_t count, double seconds, double device_seconds)
{
    profile->invocations++;
    profile->host_seconds += seconds;
    profile->device_seconds += device_seconds;
    for (size_t i = 0; i < count && first + i < profile->row_count; i++) {
        profile->rows[first + i].runs++;
        add_report(&profile->rows[first + i].sum, &reports[i]);
    }
}

static double microseconds(double cycles, double clock_mhz)
{
    return clock_mhz > 0 ? cycles / clock_mhz : 0;
}

static void print_row(const struct mica_profile_row *row, double clock_mhz, FILE *file)
{
    double runs = row->runs ? (double)row->runs : 1;
    double cycles = (double)row->sum.cycles / runs;
    fprintf(file, "mica: %9" PRIu32 " %-4.4s %6" PRIu64 " %12" PRIu64 " %10.0f %10.1f %10.1f %10.1f  %s\n",
            row->partition, row->unit, row->runs, row->macs, cycles, microseconds(cycles, clock_mhz),
            (double)row->sum.read_bytes / runs / 1024, (double)row->sum.write_bytes / runs / 1024, row->op);
}

static void print_total(const struct mica_profile *profile, double clock_mhz, FILE *file)
{
    uint64_t macs = 0;
    double cycles = 0, read = 0, written = 0, dispatch = 0;
    for (uint32_t i = 0; i < profile->row_count; i++) {
        const struct mica_profile_row *row = &profile->rows[i];
        double runs = row->runs ? (double)row->runs : 1;
        macs += row->macs;
        cycles += (double)row->sum.cycles / runs;
        read += (double)row->sum.read_bytes / runs;
        written += (double)row->sum.write_bytes / runs;
        dispatch += row->sum.dispatch_us / runs;
    }
    if (dispatch > 0)
        fprintf(file, "mica: %9s %-4s %6s %12s %10s %10.1f %10s %10s  what starting the jobs costs\n", "dispatch", "",
                "", "", "", dispatch, "", "");
    fprintf(file, "mica: %9s %-4s %6s %12" PRIu64 " %10.0f %10.1f %10.1f %10.1f\n", "total", "", "", macs, cycles,
            microseconds(cycles, clock_mhz) + dispatch, read / 1024, written / 1024);
}

void mica_profile_print(const struct mica_profile *profile, const struct mica_chip *chip, double clock_mhz,
                        bool simulated, FILE *file)
{
    double milliseconds = profile->invocations ? 1000 / (double)profile->invocations : 0;
    fprintf(file,
            "mica: profile of %s: %" PRIu32 " partitions, %" PRIu64
            " invocations of them, %.3f ms each, %.3f ms of it waiting for the device\n",
            chip->name, profile->partition_count, profile->invocations, profile->host_seconds * milliseconds,
            profile->device_seconds * milliseconds);
    if (simulated)
        fprintf(file, "mica: cycles, time and traffic come from the simulator's timing model, not from silicon\n");
    fprintf(file, "mica: %9s %-4s %6s %12s %10s %10s %10s %10s  %s\n", "partition", "unit", "runs", "MACs", "cycles",
            "us", "read KiB", "write KiB", "operation");
    for (uint32_t i = 0; i < profile->row_count; i++)
        print_row(&profile->rows[i], clock_mhz, file);
    print_total(profile, clock_mhz, file);
}

void mica_profile_finish(struct mica_profile *profile)
{
    free(profile->rows);
    *profile = (struct mica_profile){0};
}
