/* SPDX-License-Identifier: MIT */
/* A model compared layer by layer: what 'mica compare' prints. */
#ifndef MICA_CLI_LAYERS_H
#define MICA_CLI_LAYERS_H

#include "cli.h"
#include "difference.h"

struct cli_layer {
    size_t operation;
    struct mica_operation_info info;
    int partition;                        /* -1: on the CPU */
    char reason[256];                     /* why, then */
    struct cli_difference alone, chained; /* alone: of layers on the NPU only */
    struct cli_difference border;         /* of outputs that leave a partition as it runs, or come from the CPU */
    bool at_border;
    bool consistent; /* at the border the device's values are the same whether or not all others come out too */
};

/* An output of the model, as it runs. */
struct cli_final {
    struct mica_tensor_info tensor;
    struct cli_difference difference;
    double peak; /* what the tensor's values can be apart, or, of floats, are; 0: it has no values to measure */
};

struct cli_layers {
    struct cli_layer *items; /* in the model's order */
    size_t count;
    struct cli_final *finals;
    size_t final_count;
};

/* Runs everything on cli->executable with the inputs of the command line. *input gets what they are, for people. 0 or
 * an exit code; so the others. */
int cli_layers_measure(struct cli *cli, struct cli_layers *layers, const char **input);
void cli_layers_finish(struct cli_layers *layers);

/* Peak signal-to-noise ratio in dB; infinity where nothing differs, not a number where there is no peak. */
double cli_final_psnr(const struct cli_final *final);

/* Worst first: by the error of layers alone, then by that of the chain. */
void cli_layers_sort(struct cli_layers *layers);

int cli_layers_print(struct cli *cli, const struct cli_layers *layers, const char *input);
int cli_layers_json(struct cli *cli, const struct cli_layers *layers, const char *input);

/* Writes the plot, a picture in SVG. */
int cli_layers_plot(struct cli *cli, const struct cli_layers *layers, const char *path);

#endif
