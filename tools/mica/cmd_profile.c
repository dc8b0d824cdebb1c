/* SPDX-License-Identifier: MIT */
#include "cli.h"
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
        cli_json_append(&json, jobs, row);
        add_up(&sum, &job);
    }
    json_figures(&json, total, &sum);
    cli_json_set_text(&json, root, "device", mica_device_name(cli->device));
    cli_on_chip_json(cli, &json, root);
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
    cli_table_add(table, "%s", "");
    cli_table_add(table, "%s", "");
    cli_table_add(table, "total");
    add_figures(table, total);
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
