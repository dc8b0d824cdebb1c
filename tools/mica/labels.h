/* SPDX-License-Identifier: MIT */
/* Names of classes. */
#ifndef MICA_CLI_LABELS_H
#define MICA_CLI_LABELS_H

#include <stddef.h>

struct cli;

/* Line k is the name of class k. */
struct cli_labels {
    char *text;
    const char **lines;
    size_t count;
};

/*
 * Loads the file of --labels, or else the one that lies beside the model:
 * NAME.labels.txt where the model is NAME.tflite, or labels.txt. Without any,
 * there are no labels. `classes` is how many the model has: a file beside the
 * model that has another number of lines isn't about it; 0: nobody knows. 0 or an
 * exit code.
 */
int cli_labels_load(struct cli *cli, size_t classes, struct cli_labels *labels);
void cli_labels_finish(struct cli_labels *labels);

/* NULL when there is none. */
const char *cli_label(const struct cli_labels *labels, size_t index);

#endif
