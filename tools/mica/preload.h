/* SPDX-License-Identifier: MIT */
/* Running another program with a library of ours in front of its own. */
#ifndef MICA_CLI_PRELOAD_H
#define MICA_CLI_PRELOAD_H

#include "cli.h"

/* Where a library is, in a path of PATH_MAX: beside the build in `room` ("vnpu"), or installed. False: nowhere. */
bool cli_find_library(const char *room, const char *name, char *path);

/*
 * Runs the operands as a command line with `library` preloaded, before what is preloaded already or `last`, and
 * `variable` ("NAME=VALUE") in its environment. The program's exit code, as a shell tells it, or CLI_FAILED.
 */
int cli_run_preloaded(struct cli *cli, const char *library, bool last, char *variable);

#endif
