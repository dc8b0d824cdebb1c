/* SPDX-License-Identifier: MIT */
#include "listen.h"

#include "sound.h"
#include "table.h"
#include "task.h"
#include "tensor.h"

#include <stdlib.h>
#include <string.h>

struct listener {
    const struct cli_task *task;
    struct mica_tensor_info input, output;
    struct cli_sound sound;
    struct cli_labels labels;
    size_t window, step; /* samples */
    void *data, *scores;
    float *samples;
};

/* What the model hears in one window. */
struct heard {
    double seconds, score; /* where the window begins */
    size_t class;
};

bool cli_listens(const struct cli *cli)
{
    return cli->options.every > 0;
}

static int open_listener(struct cli *cli, struct listener *listener)
{
    if (!cli_task_input(cli, &listener->input) || !cli_task_output(cli, 0, &listener->output))
        return cli_fail(cli, "the model has no usable input");
    int failed = cli_sound_read(cli, cli->options.operands.items[1], &listener->sound);
    if (!failed)
        failed = cli_labels_load(cli, cli_element_count(&listener->output), &listener->labels);
    if (failed)
        return failed;
    double step = cli->options.every * CLI_SOUND_RATE + 0.5;
    listener->window = cli_sound_window(cli, &listener->input);
    listener->step = step < 1 ? 1 : (size_t)step;
    listener->data = malloc(listener->input.bytes);
    listener->scores = malloc(listener->output.bytes);
    listener->samples = malloc(listener->window * sizeof(*listener->samples));
    return listener->data && listener->scores && listener->samples ? 0 : cli_fail_nomem(cli);
}

static void close_listener(struct listener *listener)
{
    free(listener->sound.samples);
    free(listener->data);
    free(listener->scores);
    free(listener->samples);
    cli_labels_finish(&listener->labels);
}

/* Windows that lie in the sound; one, with silence behind it, where it is shorter. */
static size_t count_windows(const struct listener *listener)
{
    size_t count = listener->sound.count;
    return count > listener->window ? (count - listener->window) / listener->step + 1 : 1;
}

static int hear(struct cli *cli, const struct listener *listener, size_t index, struct heard *heard)
{
    size_t at = index * listener->step, left = listener->sound.count - at;
    memset(listener->samples, 0, listener->window * sizeof(*listener->samples));
    memcpy(listener->samples, listener->sound.samples + at,
           (left < listener->window ? left : listener->window) * sizeof(*listener->samples));
    cli_sound_put(cli, &listener->input, listener->samples, listener->data);
    int error = mica_session_set_input(cli->session, 0, listener->data, listener->input.bytes);
    if (!error)
        error = mica_session_invoke(cli->session);
    if (!error)
        error = mica_session_get_output(cli->session, 0, listener->scores, listener->output.bytes);
    if (error)
        return cli_fail_library(cli, error);
    *heard = (struct heard){.seconds = (double)at / CLI_SOUND_RATE};
    cli_top(&listener->output, listener->scores, &heard->class, 1);
    heard->score = cli_real_value(&listener->output, listener->scores, heard->class);
    return 0;
}

static int hear_all(struct cli *cli, const struct listener *listener, struct heard *heard, size_t count)
{
    int failed = 0;
    cli_progress_start(&cli->progress, cli->err, "listening", (unsigned)count);
    for (size_t i = 0; i < count && !failed; i++) {
        failed = hear(cli, listener, i, &heard[i]);
        cli_progress_step(&cli->progress);
    }
    cli_progress_stop(&cli->progress);
    return failed;
}

static int print(struct cli *cli, const struct listener *listener, const struct heard *heard, size_t count)
{
    static const char *const headers[] = {">from s", ">to s", ">score", ">class", "label"};
    double seconds = (double)listener->window / CLI_SOUND_RATE, threshold = cli_task_threshold(cli, 0);
    struct cli_table table;
    cli_table_init(&table, headers, listener->labels.count ? 5 : 4);
    for (size_t i = 0; i < count; i++) {
        const char *label = cli_label(&listener->labels, heard[i].class);
        if (heard[i].score < threshold)
            continue;
        cli_table_add(&table, "%.2f", heard[i].seconds);
        cli_table_add(&table, "%.2f", heard[i].seconds + seconds);
        cli_table_add(&table, "%.4f", heard[i].score);
        cli_table_add(&table, "%zu", heard[i].class);
        if (listener->labels.count)
            cli_table_add(&table, "%s", label ? label : "");
    }
    bool printed = cli_table_print(&table, cli->out);
    cli_table_finish(&table);
    return printed ? 0 : cli_fail_nomem(cli);
}

static json_t *json_windows(const struct cli *cli, struct cli_json *json, const struct listener *listener,
                            const struct heard *heard, size_t count)
{
    json_t *rows = cli_json_array(json);
    for (size_t i = 0; i < count; i++) {
        if (heard[i].score < cli_task_threshold(cli, 0))
            continue;
        json_t *row = cli_json_object(json);
        cli_json_set_real(json, row, "start", heard[i].seconds);
        cli_json_set_real(json, row, "seconds", (double)listener->window / CLI_SOUND_RATE);
        cli_json_set_integer(json, row, "class", heard[i].class);
        cli_json_set_text(json, row, "label", cli_label(&listener->labels, heard[i].class));
        cli_json_set_real(json, row, "score", heard[i].score);
        cli_json_append(json, rows, row);
    }
    return rows;
}

static int print_json(struct cli *cli, const struct listener *listener, const struct heard *heard, size_t count)
{
    struct cli_json json = {0};
    json_t *root = cli_json_object(&json), *task = cli_json_object(&json);
    cli_json_set_text(&json, root, "model", cli->options.operands.items[0]);
    cli_json_set_text(&json, root, "device", mica_device_name(cli->device));
    cli_json_set_text(&json, task, "name", listener->task->name);
    cli_json_set(&json, task, "windows", json_windows(cli, &json, listener, heard, count));
    cli_json_set(&json, root, "task", task);
    return cli_json_print(cli, &json, root);
}

int cli_listen(struct cli *cli, const struct cli_task *task)
{
    struct listener listener = {.task = task};
    struct heard *heard = NULL;
    int failed = open_listener(cli, &listener);
    size_t count = failed ? 0 : count_windows(&listener);
    if (!failed && !(heard = calloc(count, sizeof(*heard))))
        failed = cli_fail_nomem(cli);
    if (!failed)
        failed = hear_all(cli, &listener, heard, count);
    if (!failed)
        failed = (cli->options.json ? print_json : print)(cli, &listener, heard, count);
    free(heard);
    close_listener(&listener);
    return failed;
}
