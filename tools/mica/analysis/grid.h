/* SPDX-License-Identifier: MIT */
/* A grid that is being swept: what to run where. */
#ifndef MICA_CLI_ANALYSIS_GRID_H
#define MICA_CLI_ANALYSIS_GRID_H

#include "common.h"

struct cli_sweep {
    struct cli *cli;
    struct mica_log log;
    struct mica_sweep sweep;
    const char *folder;
    const struct mica_chip *chip; /* of the first capture; NULL: none yet */
    size_t failed;                /* points without a capture */
};

/* Makes the folder, or takes an empty one. 0 or an exit code; so are the others. */
int cli_sweep_folder(struct cli_sweep *sweep);

/* Writes the point's model and runs COMMAND on it. What goes wrong with the command is noted, and *done false. */
int cli_sweep_point(struct cli_sweep *sweep, size_t point, bool *done);

/* "kernel=3 stride=2" */
void cli_sweep_name(const struct mica_sweep *sweep, size_t point, char *text, size_t size);

/* The table, for people or for tools, and the files of --csv and --plot. */
int cli_sweep_print(struct cli_sweep *sweep);

#endif
