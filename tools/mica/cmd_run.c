/* SPDX-License-Identifier: MIT */
#include "cli.h"
#include "clock.h"
#include "estimate.h"
#include "layout.h"
#include "memory.h"
#include "outputs.h"
#include "stream.h"
#include "task.h"

#include <stdlib.h>

struct timing {
    double least, median; /* ms on this computer's clock */
    double estimate;      /* ms of the chip, by the simulator's timing model */
    bool simulated;       /* there is an estimate */
    double stream;        /* ms of all runs of a stream, 0: there was none */
    double stream_estimate;
};

static const char *image_path(const struct cli *cli)
{
    return cli->options.operands.count > 1 ? cli->options.operands.items[1] : NULL;
}

static int check_usage(struct cli *cli)
{
    const struct cli_options *options = &cli->options;
    if (image_path(cli) && options->inputs.count)
        return cli_usage(cli, "either IMAGE or --input, not both");
    if (!image_path(cli) && !options->inputs.count)
        return cli_usage(cli, "no input: give an IMAGE, or raw tensors with --input");
    if (options->cores && options->repeat < 2)
        return cli_usage(cli, "--cores is for a stream of inferences: say how many with --repeat");
    return 0;
}

static int open_all(struct cli *cli, const struct cli_task **task)
{
    int failed = cli_open_executable(cli);
    if (failed)
        return failed;
    cli_note(cli, "device %s", mica_device_name(cli->device));
    size_t count = mica_model_output_count(cli->model);
    if (cli->options.outputs.count > count)
        return cli_fail(cli, "the model has %zu output%s, --output is given %zu times", count, count == 1 ? "" : "s",
                        cli->options.outputs.count);
    failed = cli_task_choose(cli, task);
    if (!failed)
        failed = cli_open_session(cli);
    return failed ? failed : cli_task_set_input(cli, *task);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int measure(struct cli *cli, double *times, size_t count)
{
    int error = 0;
    cli_progress_start(&cli->progress, cli->err, "running", (unsigned)count);
    for (size_t i = 0; i < count && !error; i++) {
        double start = cli_clock_ms();
        error = mica_session_invoke(cli->session);
        times[i] = cli_clock_ms() - start;
        cli_progress_step(&cli->progress);
    }
    cli_progress_stop(&cli->progress);
    return error ? cli_fail_library(cli, error) : 0;
}

/* Operations on the CPU are left out: on the board they run on its processor, which nobody models. */
static void add_estimate(struct cli *cli, struct timing *timing)
{
    double us;
    timing->estimate = cli_estimate_us(cli, 0) / 1e3;
    timing->simulated = timing->estimate > 0;
    if (timing->stream > 0 && !mica_session_stream_us(cli->session, 0, cli->options.repeat, cli->options.cores, &us))
        timing->stream_estimate = us / 1e3;
}

static int run_stream(struct cli *cli, struct timing *timing)
{
    int failed = cli_stream_run(cli, &timing->stream);
    if (!failed)
        add_estimate(cli, timing);
    return failed;
}

static int run(struct cli *cli, struct timing *timing)
{
    size_t count = cli->options.repeat;
    if (cli->options.cores)
        return run_stream(cli, timing);
    double *times = calloc(count, sizeof(*times));
    if (!times)
        return cli_fail_nomem(cli);
    int failed = measure(cli, times, count);
    if (!failed) {
        qsort(times, count, sizeof(*times), compare);
        *timing = (struct timing){.least = times[0], .median = (times[(count - 1) / 2] + times[count / 2]) / 2};
        add_estimate(cli, timing);
    }
    free(times);
    return failed;
}

static void print_measured(struct cli *cli, const struct timing *timing)
{
    unsigned count = cli->options.repeat;
    fprintf(cli->out, "\ntime: ");
    if (timing->stream > 0)
        fprintf(cli->out, "%.2f ms, %.2f inferences a second: %u on %u core%s", timing->stream,
                count / timing->stream * 1e3, count, cli->options.cores, cli->options.cores == 1 ? "" : "s");
    else if (count > 1)
        fprintf(cli->out, "minimum %.2f ms, median %.2f ms of %u runs", timing->least, timing->median, count);
    else
        fprintf(cli->out, "%.2f ms", timing->least);
    fprintf(cli->out, "%s\n", timing->simulated ? " for the simulation on this computer" : "");
}

static void print_timing(struct cli *cli, const struct timing *timing)
{
    print_measured(cli, timing);
    if (timing->simulated)
        fprintf(cli->out, "the chip's NPU: about %.2f ms, an estimate of the timing model\n", timing->estimate);
    if (timing->stream_estimate > 0)
        fprintf(cli->out,
                "the stream on it: about %.2f ms, %.2f inferences a second, an estimate of the timing model\n",
                timing->stream_estimate, cli->options.repeat / timing->stream_estimate * 1e3);
    cli_estimate_print(cli);
    cli_on_chip_print(cli);
    cli_split_print(cli);
}

static json_t *json_stream(struct cli *cli, struct cli_json *json, const struct timing *timing)
{
    json_t *stream = cli_json_object(json);
    unsigned count = cli->options.repeat;
    cli_json_set_integer(json, stream, "cores", cli->options.cores);
    cli_json_set_real(json, stream, "ms", timing->stream);
    cli_json_set_real(json, stream, "per_second", count / timing->stream * 1e3);
    if (timing->stream_estimate > 0) {
        cli_json_set_real(json, stream, "npu_estimate", timing->stream_estimate);
        cli_json_set_real(json, stream, "npu_estimate_per_second", count / timing->stream_estimate * 1e3);
    }
    return stream;
}

static int print_json(struct cli *cli, const struct cli_task *task, const struct cli_outputs *outputs,
                      const struct timing *timing)
{
    struct cli_json json = {0};
    json_t *root = cli_json_object(&json), *ms = cli_json_object(&json), *array = cli_json_array(&json);
    int failed = cli_outputs_json(cli, outputs, &json, array);
    if (timing->stream <= 0) {
        cli_json_set_real(&json, ms, "min", timing->least);
        cli_json_set_real(&json, ms, "median", timing->median);
    }
    if (timing->simulated)
        cli_json_set_real(&json, ms, "npu_estimate", timing->estimate);
    cli_json_set_text(&json, root, "model", cli->options.operands.items[0]);
    cli_json_set_text(&json, root, "image", image_path(cli));
    if (cli->normalization) {
        cli_json_set_text(&json, root, "layout", cli_layout_name(cli));
        cli_json_set_text(&json, root, "normalization", cli->normalization);
    }
    cli_json_set_text(&json, root, "device", mica_device_name(cli->device));
    cli_json_set_integer(&json, root, "runs", cli->options.repeat);
    cli_json_set(&json, root, "ms", ms);
    if (timing->stream > 0)
        cli_json_set(&json, root, "stream", json_stream(cli, &json, timing));
    cli_estimate_json(cli, &json, root);
    cli_on_chip_json(cli, &json, root);
    cli_split_json(cli, &json, root);
    if (task) {
        json_t *object = cli_json_object(&json);
        cli_json_set_text(&json, object, "name", task->name);
        if (!failed && task->show)
            failed = cli_task_show(cli, task, outputs, &json, object);
        cli_json_set(&json, root, "task", object);
    }
    cli_json_set(&json, root, "outputs", array);
    if (!failed)
        return cli_json_print(cli, &json, root);
    json_decref(root);
    return failed;
}

static int print_text(struct cli *cli, const struct cli_task *task, const struct cli_outputs *outputs,
                      const struct timing *timing)
{
    int failed = task && task->show ? cli_task_show(cli, task, outputs, NULL, NULL) : cli_outputs_print(cli, outputs);
    if (!failed)
        print_timing(cli, timing);
    return failed;
}

static int report(struct cli *cli, const struct cli_task *task, const struct timing *timing)
{
    struct cli_outputs outputs;
    int failed = cli_outputs_get(cli, task && task->show, &outputs);
    if (!failed)
        failed = cli_outputs_write(cli, &outputs);
    if (!failed)
        failed = (cli->options.json ? print_json : print_text)(cli, task, &outputs, timing);
    cli_outputs_finish(&outputs);
    return failed;
}

int cli_run(struct cli *cli)
{
    const struct cli_task *task = NULL;
    struct timing timing = {0};
    int failed = check_usage(cli);
    if (!failed)
        failed = open_all(cli, &task);
    if (!failed && cli_task_drives(cli, task))
        return task->drive(cli, task);
    if (!failed)
        failed = run(cli, &timing);
    return failed ? failed : report(cli, task, &timing);
}
