/* SPDX-License-Identifier: MIT */
/* The outputs of a run: written to files, as text, as JSON. */
#ifndef MICA_CLI_OUTPUTS_H
#define MICA_CLI_OUTPUTS_H

#include "json.h"
#include "labels.h"

struct cli_output {
    struct mica_tensor_info tensor;
    void *data;
    bool classes; /* see cli_is_classes() */
};

struct cli_outputs {
    struct cli_output *items;
    size_t count;
    struct cli_labels labels; /* for outputs that are classes */
};

/* Copies the outputs of the last run and loads labels if they are needed: by outputs that are classes, or, with
 * `labels`, anyway. 0 or an exit code; so the others. */
int cli_outputs_get(struct cli *cli, bool labels, struct cli_outputs *outputs);
void cli_outputs_finish(struct cli_outputs *outputs);

/* To the files of --output. */
int cli_outputs_write(struct cli *cli, const struct cli_outputs *outputs);
int cli_outputs_print(struct cli *cli, const struct cli_outputs *outputs);
int cli_outputs_json(struct cli *cli, const struct cli_outputs *outputs, struct cli_json *json, json_t *array);

#endif
