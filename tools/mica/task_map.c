/* SPDX-License-Identifier: MIT */
/* Outputs that are pictures themselves: depth, and a picture with more pixels. */
#include "task.h"
#include "tensor.h"

#include <math.h>
#include <stdlib.h>

/* ---- depth ------------------------------------------------------------ */

static const char *depth_misfit(const struct cli *cli)
{
    struct mica_tensor_info input, tensor;
    if (mica_model_output_count(cli->model) == 1 && cli_task_input(cli, &input) && cli_task_is_map(&input, 3) &&
        cli_task_output(cli, 0, &tensor) && cli_task_is_map(&tensor, 1) && tensor.dims[1] > 1 && tensor.dims[2] > 1)
        return NULL;
    return "a picture as input and one output of 1 x height x width x 1";
}

static uint8_t to_byte(double value)
{
    return (uint8_t)(value >= 255 ? 255 : value > 0 ? value + 0.5 : 0);
}

/* Least is black, most white; as large as the user's picture, where there is one. */
static int draw_depth(struct cli *cli, struct cli_task_view *view, const struct cli_range *range)
{
    const int32_t *dims = view->outputs->items[0].tensor.dims;
    struct cli_pixels map = {(uint32_t)dims[2], (uint32_t)dims[1], 3, NULL};
    size_t count = (size_t)map.width * map.height;
    double scale = range->most > range->least ? 255 / (range->most - range->least) : 0;
    map.data = malloc(count * 3);
    if (!map.data)
        return cli_fail_nomem(cli);
    for (size_t i = 0; i < count * 3; i++)
        map.data[i] = to_byte((cli_task_value(view, 0, i / 3) - range->least) * scale);
    int failed = view->picture->data ? 0 : cli_task_new_picture(cli, view, map.width, map.height);
    if (!failed && cli_resize(&map, view->picture))
        failed = cli_fail_nomem(cli);
    free(map.data);
    return failed;
}

static int show_depth(struct cli *cli, struct cli_task_view *view)
{
    const struct cli_output *output = &view->outputs->items[0];
    struct cli_range range;
    if (!cli_range(&output->tensor, output->data, &range))
        return cli_fail(cli, "the model's output is empty");
    if (view->json) {
        cli_json_set_real(view->json, view->object, "least", range.least);
        cli_json_set_real(view->json, view->object, "most", range.most);
        cli_json_set_real(view->json, view->object, "mean", range.mean);
    } else {
        fprintf(cli->out, "a map of %d x %d: least %g (black), most %g (white), mean %g\n", (int)output->tensor.dims[2],
                (int)output->tensor.dims[1], range.least, range.most, range.mean);
    }
    return cli->options.picture ? draw_depth(cli, view, &range) : 0;
}

const struct cli_task cli_task_depth = {.name = "depth", .picture = true, .misfit = depth_misfit, .show = show_depth};

/* ---- super resolution ------------------------------------------------- */

static const char *resolution_misfit(const struct cli *cli)
{
    struct mica_tensor_info input, tensor;
    bool fits = mica_model_output_count(cli->model) == 1 && cli_task_input(cli, &input) && cli_task_is_map(&input, 3) &&
                cli_task_output(cli, 0, &tensor) && cli_task_is_map(&tensor, 3);
    if (fits && (tensor.type == MICA_TYPE_UINT8 || tensor.type == MICA_TYPE_INT8 || tensor.type == MICA_TYPE_FLOAT32))
        return NULL;
    return "a picture as input and one output of 1 x height x width x 3 of uint8, int8 or float32";
}

static bool resolution_obvious(const struct cli *cli)
{
    struct mica_tensor_info input, output;
    return cli_task_input(cli, &input) && cli_task_output(cli, 0, &output) && output.dims[1] > input.dims[1] &&
           output.dims[2] > input.dims[2];
}

/* The way back from what cli_image_load() makes of samples. */
static uint8_t sample_of(const struct cli_output *output, size_t index)
{
    double value = cli_raw_value(&output->tensor, output->data, index);
    if (output->tensor.type == MICA_TYPE_INT8)
        return to_byte(value + 128);
    return to_byte(output->tensor.type == MICA_TYPE_FLOAT32 ? value * 127.5 + 127.5 : value);
}

static int show_resolution(struct cli *cli, struct cli_task_view *view)
{
    const struct cli_output *output = &view->outputs->items[0];
    uint32_t width = (uint32_t)output->tensor.dims[2], height = (uint32_t)output->tensor.dims[1];
    if (view->json) {
        cli_json_set_integer(view->json, view->object, "width", width);
        cli_json_set_integer(view->json, view->object, "height", height);
    } else {
        fprintf(cli->out, "a picture of %u x %u%s\n", width, height,
                cli->options.picture ? "" : "; --picture FILE.png writes it");
    }
    if (!cli->options.picture)
        return 0;
    int failed = cli_task_new_picture(cli, view, width, height);
    for (size_t i = 0; !failed && i < (size_t)width * height * 3; i++)
        view->picture->data[i] = sample_of(output, i);
    return failed;
}

const struct cli_task cli_task_super_resolution = {.name = "super-resolution",
                                                   .picture = true,
                                                   .misfit = resolution_misfit,
                                                   .obvious = resolution_obvious,
                                                   .show = show_resolution};
