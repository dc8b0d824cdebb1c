/* SPDX-License-Identifier: MIT */
/* mica diff: two captures, job by job. */
#include <string.h>

#include "common.h"
#include "table.h"

#define VALUE_BYTES 256u

struct side {
    struct mica_recording recording;
    const struct mica_chip *chip;
    struct mica_jobs jobs;
};

static int load_side(struct cli *cli, const char *path, struct mica_log *log, struct side *side)
{
    int failed = cli_analysis_load(cli, path, log, &side->recording, &side->chip);
    if (!failed && mica_jobs_load(&side->recording, side->chip, cli->options.weights, log, &side->jobs))
        failed = cli_analysis_fail(cli, log);
    return failed;
}

static void release_side(struct side *side)
{
    mica_jobs_release(&side->jobs);
    mica_recording_release(&side->recording);
}

static void field_name(const struct mica_diff_field *field, char *text, size_t size)
{
    const struct mica_job_field *side = field->a ? field->a : field->b;
    if (side->repeat)
        snprintf(text, size, "%s (%u)", side->path, side->repeat + 1);
    else
        snprintf(text, size, "%s", side->path);
}

static void field_value(const struct mica_job_field *field, char *text, size_t size)
{
    snprintf(text, size, "-");
    if (field)
        mica_job_field_print(field, text, size);
}

/* ---- for people -------------------------------------------------------------------------- */

static bool print_fields(struct cli *cli, const struct mica_diff *diff, const struct mica_diff_job *job)
{
    static const char *const headers[] = {"  field", "A", "B", "meaning"};
    struct cli_table table;
    cli_table_init(&table, headers, 4);
    for (size_t i = 0; i < job->count; i++) {
        const struct mica_diff_field *field = &diff->fields[job->first + i];
        char name[VALUE_BYTES], a[VALUE_BYTES], b[VALUE_BYTES];
        const struct mica_job_field *side = field->a ? field->a : field->b;
        field_name(field, name, sizeof name);
        field_value(field->a, a, sizeof a);
        field_value(field->b, b, sizeof b);
        cli_table_add(&table, "  %s", name);
        cli_table_add(&table, "%s", a);
        cli_table_add(&table, "%s", b);
        cli_table_add(&table, "%s", side->meaning ? side->meaning : "");
    }
    bool printed = cli_table_print(&table, cli->out);
    cli_table_finish(&table);
    return printed;
}

static bool print_job(struct cli *cli, const struct mica_diff *diff, size_t number)
{
    const struct mica_diff_job *job = &diff->jobs[number];
    if (job->a && job->b && !job->count)
        return true;
    if (!job->a || !job->b) {
        const struct mica_submitted_job *there = job->a ? job->a : job->b;
        fprintf(cli->out, "job %zu (%s, submission %zu): only in %s\n\n", number, there->unit, there->submit,
                job->a ? "A" : "B");
        return true;
    }
    fprintf(cli->out, "job %zu (%s, submission %zu): %zu field%s\n", number, job->a->unit, job->a->submit, job->count,
            job->count == 1 ? "" : "s");
    bool printed = print_fields(cli, diff, job);
    fputc('\n', cli->out);
    return printed;
}

static int print_text(struct cli *cli, const struct mica_diff *diff)
{
    for (size_t i = 0; i < diff->job_count; i++)
        if (!print_job(cli, diff, i))
            return cli_fail_nomem(cli);
    fprintf(cli->out, "%zu of %zu jobs differ\n", diff->different, diff->job_count);
    if (diff->total_count)
        fputs("fields that differ, and in how many jobs:\n", cli->out);
    for (size_t i = 0; i < diff->total_count; i++)
        fprintf(cli->out, "  %4zu  %s\n", diff->totals[i].jobs, diff->totals[i].path);
    return 0;
}

/* ---- for tools ----------------------------------------------------------------------------- */

static json_t *json_value(struct cli_json *json, const struct mica_job_field *field)
{
    if (!field)
        return json_null();
    json_t *object = cli_json_object(json);
    if (field->is_signed)
        cli_json_set(json, object, "value", json_integer((json_int_t)field->value));
    else
        cli_json_set_integer(json, object, "value", field->value);
    if (field->is_address)
        cli_json_set_integer(json, object, "buffer", field->buffer);
    if (field->text)
        cli_json_set_text(json, object, "text", field->text);
    return object;
}

static json_t *json_job(struct cli_json *json, const struct mica_diff *diff, size_t number)
{
    const struct mica_diff_job *job = &diff->jobs[number];
    const struct mica_submitted_job *there = job->a ? job->a : job->b;
    json_t *object = cli_json_object(json), *fields = cli_json_array(json);
    cli_json_set_integer(json, object, "job", number);
    cli_json_set_text(json, object, "unit", there->unit);
    cli_json_set(json, object, "submit_a", job->a ? json_integer((json_int_t)job->a->submit) : json_null());
    cli_json_set(json, object, "submit_b", job->b ? json_integer((json_int_t)job->b->submit) : json_null());
    for (size_t i = 0; i < job->count; i++) {
        const struct mica_diff_field *field = &diff->fields[job->first + i];
        const struct mica_job_field *side = field->a ? field->a : field->b;
        json_t *row = cli_json_object(json);
        cli_json_set_text(json, row, "field", side->path);
        cli_json_set_integer(json, row, "repeat", side->repeat);
        cli_json_set(json, row, "a", json_value(json, field->a));
        cli_json_set(json, row, "b", json_value(json, field->b));
        cli_json_append(json, fields, row);
    }
    cli_json_set(json, object, "fields", fields);
    return object;
}

static int print_json(struct cli *cli, const struct mica_diff *diff)
{
    struct cli_json json = {0};
    json_t *root = cli_json_object(&json), *jobs = cli_json_array(&json), *totals = cli_json_array(&json);
    for (size_t i = 0; i < diff->job_count; i++) {
        const struct mica_diff_job *job = &diff->jobs[i];
        if (!job->a || !job->b || job->count)
            cli_json_append(&json, jobs, json_job(&json, diff, i));
    }
    for (size_t i = 0; i < diff->total_count; i++) {
        json_t *row = cli_json_object(&json);
        cli_json_set_text(&json, row, "field", diff->totals[i].path);
        cli_json_set_integer(&json, row, "jobs", diff->totals[i].jobs);
        cli_json_append(&json, totals, row);
    }
    cli_json_set_integer(&json, root, "jobs", diff->job_count);
    cli_json_set_integer(&json, root, "different", diff->different);
    cli_json_set(&json, root, "differences", jobs);
    cli_json_set(&json, root, "fields", totals);
    return cli_json_print(cli, &json, root);
}

/* ---- the command ----------------------------------------------------------------------------- */

static int compare(struct cli *cli, struct side *a, struct side *b, struct mica_log *log, bool *different)
{
    struct mica_diff diff = {0};
    int failed = 0;
    if (a->chip->family != b->chip->family)
        return cli_fail(cli, "%s and %s are of different families: they have no field in common", a->chip->name,
                        b->chip->name);
    if (mica_diff_make(&a->jobs, &b->jobs, log, &diff))
        failed = cli_analysis_fail(cli, log);
    else
        failed = cli->options.json ? print_json(cli, &diff) : print_text(cli, &diff);
    *different = diff.different != 0;
    mica_diff_release(&diff);
    if (a->jobs.full || b->jobs.full)
        cli_note(cli, "not everything is compared: there is more than a million fields or 256 MiB of it");
    return failed;
}

/* As diff has it: 1 is a difference, 2 whatever goes wrong. */
int cli_diff(struct cli *cli)
{
    struct side a = {0}, b = {0};
    struct mica_log log;
    bool different = false;
    cli_analysis_log(cli, &log);
    a.recording.folder.fd = b.recording.folder.fd = -1;
    int failed = load_side(cli, cli->options.operands.items[0], &log, &a);
    if (!failed)
        failed = load_side(cli, cli->options.operands.items[1], &log, &b);
    if (!failed)
        failed = compare(cli, &a, &b, &log, &different);
    release_side(&a);
    release_side(&b);
    return failed ? CLI_USAGE : different ? CLI_FAILED : CLI_OK;
}
