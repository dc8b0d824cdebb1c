/* SPDX-License-Identifier: MIT */
/* mica sweep: a grid of models through a command that captures, and how the fields follow. */
#include <string.h>

#include "grid.h"

#define DEFAULT_FOLDER "mica-sweep"

static int read_capture(struct cli_sweep *sweep, size_t point, const char *path)
{
    struct mica_recording recording;
    struct mica_jobs jobs = {0};
    const struct mica_chip *chip = NULL;
    int failed = cli_analysis_load(sweep->cli, path, &sweep->log, &recording, &chip);
    if (!failed && sweep->chip && chip->family != sweep->chip->family)
        failed = cli_fail(sweep->cli, "%s is of another family than the captures before", path);
    if (!failed && (mica_jobs_load(&recording, chip, false, &sweep->log, &jobs) ||
                    mica_sweep_add(&sweep->sweep, point, &jobs, &sweep->log)))
        failed = cli_analysis_fail(sweep->cli, &sweep->log);
    sweep->chip = chip;
    mica_jobs_release(&jobs);
    mica_recording_release(&recording);
    return failed;
}

static int do_point(struct cli_sweep *sweep, size_t point)
{
    char path[1024];
    bool done = false;
    int failed = cli_sweep_point(sweep, point, &done);
    if (failed)
        return failed;
    snprintf(path, sizeof path, "%s/%04zu/capture", sweep->folder, point);
    if (done && read_capture(sweep, point, path))
        done = false; /* said */
    sweep->failed += !done;
    return 0;
}

static int run(struct cli_sweep *sweep)
{
    struct cli *cli = sweep->cli;
    size_t count = sweep->sweep.point_count;
    int failed = cli_sweep_folder(sweep);
    if (failed)
        return failed;
    cli_progress_start(&cli->progress, cli->err, "sweeping", (unsigned)count);
    for (size_t i = 0; !failed && i < count; i++) {
        failed = do_point(sweep, i);
        cli_progress_step(&cli->progress);
    }
    cli_progress_stop(&cli->progress);
    if (failed)
        return failed;
    if (sweep->failed == count)
        return cli_fail(cli,
                        "no point gave a capture: COMMAND is to write one into the folder that {capture} stands for");
    mica_sweep_analyse(&sweep->sweep);
    failed = cli_sweep_print(sweep);
    return failed ? failed : sweep->failed ? CLI_FAILED : CLI_OK;
}

/* A grid of one point shows nothing; a command without {capture} can't say where it captured to. */
static int check(struct cli *cli)
{
    bool captures = false;
    for (size_t i = 0; i < cli->options.operands.count; i++)
        captures |= strstr(cli->options.operands.items[i], "{capture}") != NULL;
    if (!cli->options.over.count)
        return cli_usage(cli, "--over NAME=V1,V2 is missing: which parameter is to change?");
    return captures ? 0 : cli_usage(cli, "COMMAND has no {capture}, the folder that it is to capture into");
}

int cli_sweep(struct cli *cli)
{
    struct cli_sweep sweep = {.cli = cli};
    int failed = check(cli);
    cli_analysis_log(cli, &sweep.log);
    sweep.folder = cli->options.executable ? cli->options.executable : DEFAULT_FOLDER;
    for (size_t i = 0; !failed && i < cli->options.over.count; i++)
        if (mica_sweep_add_axis(&sweep.sweep, cli->options.over.items[i], &sweep.log))
            failed = cli_usage(cli, "%s", sweep.log.last_error);
    if (!failed)
        failed = run(&sweep);
    mica_sweep_release(&sweep.sweep);
    return failed;
}
