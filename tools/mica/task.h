/* SPDX-License-Identifier: MIT */
/* What a model is for: its outputs as people want to see them. */
#ifndef MICA_CLI_TASK_H
#define MICA_CLI_TASK_H

#include "canvas.h"
#include "cli.h"
#include "layout.h"
#include "outputs.h"

/* What a task decodes, and where it shows it. */
struct cli_task_view {
    const struct cli_outputs *outputs;
    struct cli_pixels
        *picture;          /* the user's picture as it was, to draw in or to replace; its data NULL: there is none */
    struct cli_json *json; /* NULL: text */
    json_t *object;        /* for results */
};

struct cli_task {
    const char *name;
    bool sound;   /* reads a sound, not a picture */
    bool picture; /* has something for --picture */

    /* Do the model's inputs and outputs fit? NULL, or what the task needs. */
    const char *(*misfit)(const struct cli *cli);
    /* Is it the obvious reading of a model that fits? NULL: yes. */
    bool (*obvious)(const struct cli *cli);
    int (*show)(struct cli *cli, struct cli_task_view *view); /* 0 or an exit code; NULL: outputs as they are */
    /* Instead of one inference: runs all by itself. NULL for most. */
    int (*drive)(struct cli *cli, const struct cli_task *task);
    bool (*drives)(const struct cli *cli); /* does it, as the options are? NULL: always */
};

/*
 * The one of --task, or the one that the model's signature tells, once a model is open. *task gets NULL where outputs
 * are printed as they are. 0 or an exit code.
 */
int cli_task_choose(struct cli *cli, const struct cli_task **task);

/* Does it run by itself? Tasks that don't, and no task at all, run once on one input. */
bool cli_task_drives(const struct cli *cli, const struct cli_task *task);

/* Sets the session's input from the second operand, where there is one. */
int cli_task_set_input(struct cli *cli, const struct cli_task *task);

/* What the model's only input is of a sound, by the front end that its shape tells: *data is to be freed. */
int cli_sound_input(struct cli *cli, const char *path, void **data);

/* Shows the outputs as text, or in `object`, and writes --picture. */
int cli_task_show(struct cli *cli, const struct cli_task *task, const struct cli_outputs *outputs,
                  struct cli_json *json, json_t *object);

/* ---- for tasks -------------------------------------------------------- */

/* Input 0 and output `index`; false where there is no such, or it is of a type nobody computes with. */
bool cli_task_input(const struct cli *cli, struct mica_tensor_info *tensor);
bool cli_task_output(const struct cli *cli, size_t index, struct mica_tensor_info *tensor);

/* Is it an image of so many channels (0: any)? */
bool cli_task_is_map(const struct cli *cli, const struct mica_tensor_info *tensor, uint32_t channels,
                     struct cli_map *map);
double cli_task_value(const struct cli_task_view *view, size_t output, size_t index);

/* A name for a class: its label, or its number in `text` of 16 bytes. */
const char *cli_task_label(const struct cli_task_view *view, size_t index, char *text);

/* The user's choice, or `usual`. */
double cli_task_threshold(const struct cli *cli, double usual);

/* The picture becomes one of this size, black; 0 or an exit code. */
int cli_task_new_picture(struct cli *cli, struct cli_task_view *view, uint32_t width, uint32_t height);

extern const struct cli_task cli_task_classify, cli_task_detect, cli_task_segment, cli_task_pose, cli_task_depth,
    cli_task_super_resolution, cli_task_keyword, cli_task_audio_event, cli_task_denoise;

#endif
