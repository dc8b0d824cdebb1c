/* SPDX-License-Identifier: MIT */
#include "cli.h"
#include "estimate.h"
#include "json.h"
#include "memory.h"
#include "table.h"

#include <inttypes.h>

static void add_up(struct mica_job_info *total, const struct mica_job_info *job)
{
    total->macs += job->macs;
    total->cycles += job->cycles;
    total->us += job->us;
    total->read_bytes += job->read_bytes;
    total->write_bytes += job->write_bytes;
    total->coefficient_bytes += job->coefficient_bytes;
    total->estimate |= job->estimate;
    total->compute_cycles += job->compute_cycles;
    total->memory_cycles += job->memory_cycles;
    total->dispatch_us += job->dispatch_us;
}

/* Does the timing model tell what bounds a job? */
static bool is_split_up(const struct mica_job_info *job)
{
    return job->compute_cycles || job->memory_cycles || job->dispatch_us > 0;
}

static void json_figures(struct cli_json *json, json_t *object, const struct mica_job_info *job)
{
    cli_json_set_integer(json, object, "macs", job->macs);
    cli_json_set_integer(json, object, "cycles", job->cycles);
    cli_json_set_real(json, object, "us", job->us);
    cli_json_set_integer(json, object, "read_bytes", job->read_bytes);
    cli_json_set_integer(json, object, "write_bytes", job->write_bytes);
    cli_json_set_integer(json, object, "coefficient_bytes", job->coefficient_bytes);
    cli_json_set(json, object, "estimate", json_boolean(job->estimate));
    if (!is_split_up(job))
        return;
    cli_json_set_integer(json, object, "compute_cycles", job->compute_cycles);
    cli_json_set_integer(json, object, "memory_cycles", job->memory_cycles);
    cli_json_set_real(json, object, "dispatch_us", job->dispatch_us);
}

static int print_json(struct cli *cli)
{
    struct cli_json json = {0};
    struct mica_job_info job, sum = {0};
    json_t *root = cli_json_object(&json), *jobs = cli_json_array(&json), *total = cli_json_object(&json);
    for (size_t i = 0; mica_session_job(cli->session, i, &job) == 0; i++) {
        json_t *row = cli_json_object(&json);
        cli_json_set_integer(&json, row, "index", i);
        cli_json_set_text(&json, row, "unit", job.unit);
        cli_json_set_integer(&json, row, "operation", job.operation);
        json_figures(&json, row, &job);
        if (mica_executable_split(cli->executable) > 1) {
            cli_json_set_integer(&json, row, "core", job.core);
            cli_json_set_integer(&json, row, "stage", job.stage);
        }
        cli_json_append(&json, jobs, row);
        add_up(&sum, &job);
    }
    json_figures(&json, total, &sum);
    if (sum.dispatch_us > 0)
        cli_json_set_real(&json, total, "total_us", sum.us + sum.dispatch_us);
    cli_json_set_text(&json, root, "device", mica_device_name(cli->device));
    cli_on_chip_json(cli, &json, root);
    cli_split_json(cli, &json, root);
    cli_estimate_json(cli, &json, root);
    cli_json_set(&json, root, "jobs", jobs);
    cli_json_set(&json, root, "total", total);
    return cli_json_print(cli, &json, root);
}

static void add_figures(struct cli_table *table, const struct mica_job_info *job)
{
    cli_table_add(table, "%.2f", (double)job->macs / 1e6);
    cli_table_add(table, "%" PRIu64, job->cycles);
    cli_table_add(table, "%.1f", job->us);
    cli_table_add(table, "%" PRIu64, job->read_bytes);
    cli_table_add(table, "%" PRIu64, job->write_bytes);
    cli_table_add(table, "%" PRIu64, job->coefficient_bytes);
}

/* A line of its own: it belongs to no unit of the NPU. */
static void add_dispatch(struct cli_table *table, const struct mica_job_info *total)
{
    for (int i = 0; i < 2; i++)
        cli_table_add(table, "%s", "");
    cli_table_add(table, "starting the jobs");
    for (int i = 0; i < 2; i++)
        cli_table_add(table, "%s", "");
    cli_table_add(table, "%.1f", total->dispatch_us);
    for (int i = 0; i < 3; i++)
        cli_table_add(table, "%s", "");
}

static void add_jobs(struct cli *cli, struct cli_table *table, struct mica_job_info *total)
{
    struct mica_job_info job;
    struct mica_operation_info operation;
    for (size_t i = 0; mica_session_job(cli->session, i, &job) == 0; i++) {
        bool known = mica_model_operation(cli->model, job.operation, &operation) == 0;
        cli_table_add(table, "%zu", i);
        cli_table_add(table, "%s", job.unit);
        cli_table_add(table, "%zu %s", job.operation, known ? operation.type : "?");
        add_figures(table, &job);
        add_up(total, &job);
    }
    if (total->dispatch_us > 0)
        add_dispatch(table, total);
    cli_table_add(table, "%s", "");
    cli_table_add(table, "%s", "");
    cli_table_add(table, "total");
    struct mica_job_info shown = *total;
    shown.us += total->dispatch_us;
    add_figures(table, &shown);
}

static int print_table(struct cli *cli)
{
    static const char *const headers[] = {">#",  "unit",        "operation",    ">MMACs",       ">cycles",
                                          ">us", ">read bytes", ">write bytes", ">coefficients"};
    struct mica_job_info total = {0};
    struct cli_table table;
    cli_table_init(&table, headers, sizeof(headers) / sizeof(headers[0]));
    add_jobs(cli, &table, &total);
    bool printed = cli_table_print(&table, cli->out);
    cli_table_finish(&table);
    if (!printed)
        return cli_fail_nomem(cli);
    fprintf(cli->out, "\ndevice: %s. Coefficients are bytes, part of those read.\n", mica_device_name(cli->device));
    if (total.estimate)
        fputs("The figures of NPU jobs are estimates of a timing model, not measurements; those of CPU operations\n"
              "are measured on this computer.\n",
              cli->out);
    if (total.dispatch_us > 0)
        fprintf(cli->out,
                "Cycles are of %.0f MHz. The total contains what kernel and interrupts take to start the jobs.\n",
                mica_device_clock(cli->device, NULL, NULL));
    cli_estimate_print(cli);
    cli_split_print(cli);
    cli_on_chip_print(cli);
    return 0;
}

int cli_profile(struct cli *cli)
{
    int failed = cli_open_executable(cli);
    if (!failed)
        failed = cli_open_session(cli);
    if (failed)
        return failed;
    cli_progress_start(&cli->progress, cli->err, "running", 0);
    int error = mica_session_invoke(cli->session);
    cli_progress_stop(&cli->progress);
    if (error)
        return cli_fail_library(cli, error);
    return cli->options.json ? print_json(cli) : print_table(cli);
}
