/* SPDX-License-Identifier: MIT */
#include "task.h"

#include "image.h"
#include "input.h"
#include "sound.h"
#include "tensor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* In the order in which they are tried. */
static const struct cli_task *const tasks[] = {
    &cli_task_detect,  &cli_task_pose,    &cli_task_segment,     &cli_task_super_resolution, &cli_task_depth,
    &cli_task_denoise, &cli_task_keyword, &cli_task_audio_event, &cli_task_classify,
};
#define TASKS (sizeof(tasks) / sizeof(tasks[0]))

static const char *source_path(const struct cli *cli)
{
    return cli->options.operands.count > 1 ? cli->options.operands.items[1] : NULL;
}

/* ---- choosing --------------------------------------------------------- */

static int fail_unknown(struct cli *cli, const char *name)
{
    const char *names[TASKS];
    for (size_t i = 0; i < TASKS; i++)
        names[i] = tasks[i]->name;
    const char *meant = cli_nearest(name, names, TASKS, sizeof(names[0]));
    if (meant)
        return cli_usage(cli, "unknown task '%s'; did you mean '%s'?", name, meant);
    return cli_usage(cli,
                     "unknown task '%s'; known are classify, detect, segment, pose, depth, super-resolution, "
                     "keyword, audio-event, denoise and none",
                     name);
}

static int take_named(struct cli *cli, const char *name, const struct cli_task **task)
{
    for (size_t i = 0; i < TASKS; i++) {
        if (strcmp(tasks[i]->name, name) != 0)
            continue;
        const char *misfit = tasks[i]->misfit(cli);
        if (misfit)
            return cli_fail(cli, "the model doesn't fit --task %s, which needs %s; 'mica info' shows what it has", name,
                            misfit);
        *task = tasks[i];
        return 0;
    }
    return fail_unknown(cli, name);
}

static void recognise(const struct cli *cli, bool sound, const struct cli_task **task)
{
    for (size_t i = 0; i < TASKS && !*task; i++)
        if (tasks[i]->sound == sound && !tasks[i]->misfit(cli) && (!tasks[i]->obvious || tasks[i]->obvious(cli)))
            *task = tasks[i];
}

int cli_task_choose(struct cli *cli, const struct cli_task **task)
{
    const char *name = cli->options.task;
    *task = NULL;
    bool sound = source_path(cli) && cli_sound_is(source_path(cli));
    if (name && strcmp(name, "none") != 0) {
        int failed = take_named(cli, name, task);
        if (failed)
            return failed;
    } else if (!name && source_path(cli)) {
        recognise(cli, sound, task);
    }
    if (*task && source_path(cli) && (*task)->sound != sound)
        return cli_fail(cli, "--task %s is for %s, '%s' is %s", (*task)->name, (*task)->sound ? "sounds" : "pictures",
                        source_path(cli), sound ? "a sound" : "no WAV file");
    if (sound && !*task && !name)
        return cli_fail(cli, "no task for sounds fits the model's inputs and outputs; 'mica info' shows them");
    if (cli->options.picture && !(*task && (*task)->picture))
        return cli_fail(cli, "nothing to draw for --picture: it is for the tasks detect, segment, pose, depth and "
                             "super-resolution");
    if (cli->options.sound && *task != &cli_task_denoise)
        return cli_fail(cli, "nothing to play for --sound: it is for the task denoise");
    if (cli->options.every > 0 && *task != &cli_task_keyword && *task != &cli_task_audio_event)
        return cli_fail(cli, "nothing to listen to for --every: it is for the tasks keyword and audio-event");
    if (cli->options.every > 0 && (!source_path(cli) || cli->options.outputs.count || cli->options.repeat > 1))
        return cli_usage(cli, "--every needs a sound, and goes with neither --output nor --repeat");
    return 0;
}

/* ---- running ---------------------------------------------------------- */

bool cli_task_drives(const struct cli *cli, const struct cli_task *task)
{
    return task && task->drive && (!task->drives || task->drives(cli));
}

int cli_task_set_input(struct cli *cli, const struct cli_task *task)
{
    struct mica_tensor_info tensor;
    const char *origin;
    void *data;
    if (!source_path(cli) || cli_task_drives(cli, task))
        return 0;
    int failed = cli_input_from_operand(cli, &data, &origin);
    if (failed)
        return failed;
    int error = mica_model_input(cli->model, 0, &tensor);
    if (!error)
        error = mica_session_set_input(cli->session, 0, data, tensor.bytes);
    free(data);
    return error ? cli_fail_library(cli, error) : 0;
}

/* A task that draws without having a picture of the user's gets none: raw tensors say nothing about it. */
static int load_picture(struct cli *cli, const struct cli_task *task, struct cli_pixels *picture)
{
    if (!task->picture || !source_path(cli))
        return 0;
    return cli_image_pixels(cli, source_path(cli), picture);
}

int cli_task_show(struct cli *cli, const struct cli_task *task, const struct cli_outputs *outputs,
                  struct cli_json *json, json_t *object)
{
    struct cli_pixels picture = {0};
    struct cli_task_view view = {outputs, &picture, json, object};
    int failed = load_picture(cli, task, &picture);
    if (!failed)
        failed = task->show(cli, &view);
    if (!failed && cli->options.picture)
        failed = picture.data ? cli_image_save(cli, cli->options.picture, &picture)
                              : cli_fail(cli, "--picture needs IMAGE to draw in");
    free(picture.data);
    return failed;
}

/* ---- for tasks -------------------------------------------------------- */

bool cli_task_input(const struct cli *cli, struct mica_tensor_info *tensor)
{
    return mica_model_input_count(cli->model) == 1 && !mica_model_input(cli->model, 0, tensor) &&
           cli_element_count(tensor);
}

bool cli_task_output(const struct cli *cli, size_t index, struct mica_tensor_info *tensor)
{
    return index < mica_model_output_count(cli->model) && !mica_model_output(cli->model, index, tensor) &&
           cli_element_count(tensor);
}

bool cli_task_is_map(const struct cli *cli, const struct mica_tensor_info *tensor, uint32_t channels,
                     struct cli_map *map)
{
    return cli_map_of(cli, tensor, map) && (!channels || map->channels == channels);
}

double cli_task_value(const struct cli_task_view *view, size_t output, size_t index)
{
    return cli_real_value(&view->outputs->items[output].tensor, view->outputs->items[output].data, index);
}

const char *cli_task_label(const struct cli_task_view *view, size_t index, char *text)
{
    const char *label = cli_label(&view->outputs->labels, index);
    snprintf(text, 16, "%u", (unsigned)index);
    return label && *label ? label : text;
}

double cli_task_threshold(const struct cli *cli, double usual)
{
    return cli->options.has_threshold ? cli->options.threshold : usual;
}

int cli_task_new_picture(struct cli *cli, struct cli_task_view *view, uint32_t width, uint32_t height)
{
    uint8_t *data = calloc((size_t)width * height, 3);
    if (!data)
        return cli_fail_nomem(cli);
    free(view->picture->data);
    *view->picture = (struct cli_pixels){width, height, 3, data};
    return 0;
}
