/* SPDX-License-Identifier: MIT */
#include "layers.h"

#include <string.h>

static int check_usage(struct cli *cli)
{
    const struct cli_options *options = &cli->options;
    if (options->operands.count > 1 && options->inputs.count)
        return cli_usage(cli, "either IMAGE or --input, not both");
    if (options->order && strcmp(options->order, "worst") != 0 && strcmp(options->order, "model") != 0)
        return cli_usage(cli, "--order must be worst or model, not '%s'", options->order);
    return 0;
}

static int open_all(struct cli *cli)
{
    int failed = cli_open_executable(cli);
    if (failed)
        return failed;
    cli_note(cli, "device %s", mica_device_name(cli->device));
    size_t count = mica_model_input_count(cli->model), given = cli->options.inputs.count;
    if (given && given != count)
        return cli_fail(cli, "the model has %zu input%s, --input is given %zu time%s", count, count == 1 ? "" : "s",
                        given, given == 1 ? "" : "s");
    return 0;
}

static int report(struct cli *cli, struct cli_layers *layers, const char *input)
{
    const char *plot = cli->options.plot;
    int failed = plot ? cli_layers_plot(cli, layers, plot) : 0;
    if (failed)
        return failed;
    if (!cli->options.order || strcmp(cli->options.order, "worst") == 0)
        cli_layers_sort(layers);
    return cli->options.json ? cli_layers_json(cli, layers, input) : cli_layers_print(cli, layers, input);
}

int cli_compare(struct cli *cli)
{
    struct cli_layers layers = {0};
    const char *input;
    int failed = check_usage(cli);
    if (!failed)
        failed = open_all(cli);
    if (!failed)
        failed = cli_layers_measure(cli, &layers, &input);
    if (!failed)
        failed = report(cli, &layers, input);
    cli_layers_finish(&layers);
    return failed;
}
