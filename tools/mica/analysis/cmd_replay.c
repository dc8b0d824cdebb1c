/* SPDX-License-Identifier: MIT */
/* mica replay: a capture executed on the simulator of its chip. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common.h"

static bool progress(void *user, size_t submit, size_t count)
{
    struct cli *cli = user;
    if (submit)
        cli_progress_step(&cli->progress);
    else
        cli_progress_start(&cli->progress, cli->err, "replaying", count < 1000000 ? (unsigned)count : 0);
    return true;
}

/* ---- for people -------------------------------------------------------------------------- */

static void print_jobs(struct cli *cli, const struct mica_replay *replay, const struct mica_chip *chip)
{
    uint64_t cycles = 0;
    for (size_t i = 0; i < replay->job_count; i++) {
        const struct mica_job_report *report = &replay->jobs[i].report;
        cycles += report->cycles;
        fprintf(cli->out,
                "  submit %zu, job %zu: %s, %" PRIu64 " cycles (%.1f us), %" PRIu64 " bytes read (%" PRIu64
                " coefficients), %" PRIu64 " written\n",
                replay->jobs[i].submit, i, replay->jobs[i].unit, report->cycles,
                (double)report->cycles / chip->clock_mhz, report->read_bytes, report->coefficient_bytes,
                report->write_bytes);
    }
    fprintf(cli->out, "  together %" PRIu64 " cycles: %.3f ms at %.0f MHz, an estimate\n", cycles,
            (double)cycles / chip->clock_mhz / 1000, chip->clock_mhz);
}

static void print_histogram(struct cli *cli, const struct mica_replay_comparison *comparison)
{
    fprintf(cli->out, "    the first at %zu; ours minus the recorded:", comparison->first);
    for (int i = 0; i < 511; i++)
        if (i != 255 && comparison->histogram[i])
            fprintf(cli->out, " %+d x%zu", i - 255, comparison->histogram[i]);
    fputc('\n', cli->out);
}

static void print_comparison(struct cli *cli, const struct mica_replay_comparison *comparison)
{
    bool output = comparison->what == MICA_REPLAY_OUTPUT;
    if (comparison->absent) {
        fprintf(cli->out, "  output %u: %s\n", comparison->index, comparison->absent);
        return;
    }
    if (output)
        fprintf(cli->out, "  output %u at 0x%08" PRIx64, comparison->index, comparison->address);
    else
        fprintf(cli->out, "  buffer of handle %u after submission %zu", comparison->index, comparison->submit);
    fprintf(cli->out, ": %zu of %zu bytes differ from the %s, by %u at most\n", comparison->different,
            comparison->bytes, output ? "CPU's" : "device's", comparison->largest);
    if (comparison->different && (cli->options.compare || cli->options.verbose))
        print_histogram(cli, comparison);
}

static int print_text(struct cli *cli, const struct mica_replay *replay, const struct mica_chip *chip)
{
    print_jobs(cli, replay, chip);
    for (size_t i = 0; i < replay->comparison_count; i++)
        print_comparison(cli, &replay->comparisons[i]);
    if (!replay->comparison_count)
        fputs("  nothing is recorded to compare with\n", cli->out);
    return 0;
}

/* ---- for tools ----------------------------------------------------------------------------- */

static json_t *json_job(struct cli_json *json, const struct mica_replayed_job *job, const struct mica_chip *chip)
{
    const struct mica_job_report *report = &job->report;
    json_t *object = cli_json_object(json);
    cli_json_set_integer(json, object, "submit", job->submit);
    cli_json_set_text(json, object, "unit", job->unit);
    cli_json_set_integer(json, object, "cycles", report->cycles);
    cli_json_set_real(json, object, "us", (double)report->cycles / chip->clock_mhz);
    cli_json_set_integer(json, object, "read_bytes", report->read_bytes);
    cli_json_set_integer(json, object, "write_bytes", report->write_bytes);
    cli_json_set_integer(json, object, "coefficient_bytes", report->coefficient_bytes);
    return object;
}

static json_t *json_comparison(struct cli_json *json, const struct mica_replay_comparison *comparison)
{
    bool output = comparison->what == MICA_REPLAY_OUTPUT;
    json_t *object = cli_json_object(json), *histogram = cli_json_object(json);
    cli_json_set_text(json, object, "what", output ? "output" : "buffer");
    cli_json_set_integer(json, object, output ? "index" : "handle", comparison->index);
    if (!output)
        cli_json_set_integer(json, object, "submit", comparison->submit);
    cli_json_set_text(json, object, "absent", comparison->absent);
    cli_json_set_integer(json, object, "address", comparison->address);
    cli_json_set_integer(json, object, "bytes", comparison->bytes);
    cli_json_set_integer(json, object, "different", comparison->different);
    cli_json_set_integer(json, object, "largest", comparison->largest);
    for (int i = 0; i < 511; i++) {
        char key[8];
        snprintf(key, sizeof key, "%d", i - 255);
        if (comparison->histogram[i])
            cli_json_set_integer(json, histogram, key, comparison->histogram[i]);
    }
    cli_json_set(json, object, "histogram", histogram);
    return object;
}

static int print_json(struct cli *cli, const struct mica_replay *replay, const struct mica_chip *chip)
{
    struct cli_json json = {0};
    json_t *root = cli_json_object(&json), *jobs = cli_json_array(&json), *comparisons = cli_json_array(&json);
    for (size_t i = 0; i < replay->job_count; i++)
        cli_json_append(&json, jobs, json_job(&json, &replay->jobs[i], chip));
    for (size_t i = 0; i < replay->comparison_count; i++)
        cli_json_append(&json, comparisons, json_comparison(&json, &replay->comparisons[i]));
    cli_json_set_text(&json, root, "chip", chip->name);
    cli_json_set_real(&json, root, "clock_mhz", chip->clock_mhz);
    cli_json_set(&json, root, "estimate", json_true());
    cli_json_set(&json, root, "jobs", jobs);
    cli_json_set(&json, root, "comparisons", comparisons);
    return cli_json_print(cli, &json, root);
}

/* ---- the command ----------------------------------------------------------------------------- */

static int check_options(struct cli *cli)
{
    const char *coefficients = cli->options.coefficients, *device = cli->options.device;
    if (coefficients && strcmp(coefficients, "v7") != 0)
        return cli_usage(cli, "--coefficients takes v7, not '%s'", coefficients);
    if (!device || strncmp(device, "sim:", 4) == 0)
        return 0;
    return cli_usage(cli, "replaying on a device is not supported yet; --device sim:CHIP names a simulator");
}

static int run(struct cli *cli, const struct mica_recording *recording, const struct mica_chip *chip,
               struct mica_log *log)
{
    struct mica_replay_options options = {
        .chip = chip, .read_v7 = cli->options.coefficients != NULL, .progress = progress, .user = cli};
    struct mica_replay replay;
    int error = mica_replay_run(recording, &options, log, &replay);
    cli_progress_stop(&cli->progress);
    int result =
        error ? cli_analysis_fail(cli, log) : (cli->options.json ? print_json : print_text)(cli, &replay, chip);
    result = result ? CLI_USAGE : replay.failed ? CLI_USAGE : replay.different ? CLI_FAILED : CLI_OK;
    mica_replay_release(&replay);
    return result;
}

/* 1 is a difference, 2 whatever goes wrong. */
int cli_replay(struct cli *cli)
{
    struct mica_recording recording;
    const struct mica_chip *chip;
    struct mica_log log;
    int failed = check_options(cli);
    if (failed)
        return failed;
    cli_analysis_log(cli, &log);
    if (cli->options.device)
        cli->options.chip = cli->options.device + strlen("sim:");
    failed = cli_analysis_load(cli, cli->options.operands.items[0], &log, &recording, &chip);
    int result = failed ? CLI_USAGE : run(cli, &recording, chip, &log);
    mica_recording_release(&recording);
    return result;
}
