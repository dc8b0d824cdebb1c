/* SPDX-License-Identifier: MIT */
/* What every command works with: where to print, what was asked for, and the library's objects. */
#ifndef MICA_CLI_CLI_H
#define MICA_CLI_CLI_H

#include "mica/mica.h"
#include "mica_cli.h"
#include "options.h"
#include "progress.h"

struct cli {
    FILE *out, *err;
    const struct cli_command *command; /* NULL before one is known */
    struct cli_options options;
    struct cli_progress progress;

    mica_context *context;
    mica_device *device;
    mica_model *loaded; /* ours to destroy; NULL when the model came inside an executable */
    const mica_model *model;
    mica_executable *executable;
    mica_session *session;
    bool onnx;                 /* what the model's file is */
    bool channels_first;       /* how its images are, see layout.h */
    const char *normalization; /* what was made of the picture's samples; NULL: there was none */
};

/* The commands; each returns an exit code. */
int cli_run(struct cli *cli);
int cli_info(struct cli *cli);
int cli_compare(struct cli *cli);
int cli_compile(struct cli *cli);
int cli_devices(struct cli *cli);
int cli_profile(struct cli *cli);
int cli_decode(struct cli *cli);
int cli_diff(struct cli *cli);
int cli_replay(struct cli *cli);
int cli_sweep(struct cli *cli);
int cli_vnpu(struct cli *cli);
int cli_capture(struct cli *cli);

/* ---- messages (message.c) --------------------------------------------- */

/* Print one line to err and return CLI_FAILED, or CLI_USAGE with a pointer to the help. */
int cli_fail(struct cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));
int cli_usage(struct cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));
int cli_fail_nomem(struct cli *cli);

/* Reports what the library said about `error` (a negative errno); returns CLI_FAILED. */
int cli_fail_library(struct cli *cli, int error);

/* One line to err that is no failure. */
void cli_note(struct cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Replaces control characters: names in files are a stranger's and must not steer the terminal. */
void cli_clean(char *text);

/* Which of `count` names, every `stride` bytes a pointer to one, is `text` most likely meant to be? NULL: none. */
const char *cli_nearest(const char *text, const void *names, size_t count, size_t stride);

/* ---- library objects (objects.c) -------------------------------------- */

/* Each returns 0 or an exit code; cli_close() releases all of them. */
int cli_open_context(struct cli *cli);
int cli_open_device(struct cli *cli); /* --device, else MICA_DEVICE, else "auto"; opens the context too */

/* The first operand, .tflite, .onnx or saved executable; opens the device too: for an executable that of its chip,
 * unless the user names one. Sets `model`. */
int cli_open_model(struct cli *cli);

/* The same, and compiles a .tflite. Sets `model` and `executable`. */
int cli_open_executable(struct cli *cli);

/* Makes the session and sets its inputs from --input files; without any they stay zero. */
int cli_open_session(struct cli *cli);
void cli_close(struct cli *cli);

#endif
