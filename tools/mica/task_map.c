/* SPDX-License-Identifier: MIT */
/* Outputs that are pictures themselves: depth, and a picture with more pixels. */
#include "samples.h"
#include "task.h"
#include "tensor.h"

#include <math.h>
#include <stdlib.h>

/* ---- depth ------------------------------------------------------------ */

/* 1 x height x width without channels, where every pixel is as many of the picture's. */
static bool is_flat_map(const struct mica_tensor_info *tensor, const struct cli_map *picture, struct cli_map *map)
{
    const int32_t *dims = tensor->dims;
    if (tensor->rank != 3 || dims[0] != 1 || dims[1] < 1 || dims[2] < 1)
        return false;
    *map = (struct cli_map){(uint32_t)dims[1], (uint32_t)dims[2], 1, false};
    return picture->height % map->height == 0 && picture->width % map->width == 0 &&
           picture->height / map->height == picture->width / map->width;
}

static bool find_depth(const struct cli *cli, struct cli_map *map)
{
    struct mica_tensor_info input, tensor;
    struct cli_map picture;
    return mica_model_output_count(cli->model) == 1 && cli_task_input(cli, &input) &&
           cli_task_is_map(cli, &input, 3, &picture) && cli_task_output(cli, 0, &tensor) &&
           (cli_task_is_map(cli, &tensor, 1, map) || is_flat_map(&tensor, &picture, map)) && map->height > 1 &&
           map->width > 1;
}

static const char *depth_misfit(const struct cli *cli)
{
    struct cli_map map;
    return find_depth(cli, &map) ? NULL
                                 : "a picture as input and one output of 1 x height x width x 1, 1 x 1 x height x "
                                   "width or 1 x height x width";
}

static uint8_t to_byte(double value)
{
    return (uint8_t)(value >= 255 ? 255 : value > 0 ? value + 0.5 : 0);
}

/* Least is black, most white; as large as the user's picture, where there is one. */
static int draw_depth(struct cli *cli, struct cli_task_view *view, const struct cli_map *map,
                      const struct cli_range *range)
{
    struct cli_pixels pixels = {map->width, map->height, 3, malloc(cli_map_pixels(map) * 3)};
    double scale = range->most > range->least ? 255 / (range->most - range->least) : 0;
    if (!pixels.data)
        return cli_fail_nomem(cli);
    for (size_t i = 0; i < cli_map_pixels(map) * 3; i++)
        pixels.data[i] = to_byte((cli_task_value(view, 0, i / 3) - range->least) * scale);
    int failed = view->picture->data ? 0 : cli_task_new_picture(cli, view, map->width, map->height);
    if (!failed && cli_resize(&pixels, view->picture))
        failed = cli_fail_nomem(cli);
    free(pixels.data);
    return failed;
}

static int show_depth(struct cli *cli, struct cli_task_view *view)
{
    const struct cli_output *output = &view->outputs->items[0];
    struct cli_range range;
    struct cli_map map;
    if (!find_depth(cli, &map) || !cli_range(&output->tensor, output->data, &range))
        return cli_fail(cli, "the model's output is empty");
    if (view->json) {
        cli_json_set_real(view->json, view->object, "least", range.least);
        cli_json_set_real(view->json, view->object, "most", range.most);
        cli_json_set_real(view->json, view->object, "mean", range.mean);
    } else {
        fprintf(cli->out, "a map of %u x %u: least %g (black), most %g (white), mean %g\n", map.width, map.height,
                range.least, range.most, range.mean);
    }
    return cli->options.picture ? draw_depth(cli, view, &map, &range) : 0;
}

const struct cli_task cli_task_depth = {.name = "depth", .picture = true, .misfit = depth_misfit, .show = show_depth};

/* ---- super resolution ------------------------------------------------- */

static bool is_samples(const struct mica_tensor_info *tensor)
{
    return tensor->type == MICA_TYPE_UINT8 || tensor->type == MICA_TYPE_INT8 || tensor->type == MICA_TYPE_FLOAT32;
}

/* The same one or three channels on both sides. */
static bool find_pictures(const struct cli *cli, struct mica_tensor_info *input, struct cli_map *from,
                          struct cli_map *to)
{
    struct mica_tensor_info tensor;
    return mica_model_output_count(cli->model) == 1 && cli_task_input(cli, input) &&
           cli_task_is_map(cli, input, 0, from) && (from->channels == 1 || from->channels == 3) &&
           cli_task_output(cli, 0, &tensor) && cli_task_is_map(cli, &tensor, from->channels, to) && is_samples(input) &&
           is_samples(&tensor);
}

static const char *resolution_misfit(const struct cli *cli)
{
    struct mica_tensor_info input;
    struct cli_map from, to;
    if (find_pictures(cli, &input, &from, &to))
        return NULL;
    return "a picture as input and one as output, 1 x height x width x 3 (or 1 x 3 x height x width) of uint8, int8 or "
           "float32, or both with one channel";
}

static bool resolution_obvious(const struct cli *cli)
{
    struct mica_tensor_info input;
    struct cli_map from, to;
    return find_pictures(cli, &input, &from, &to) && to.height > from.height && to.width > from.width;
}

static int draw_samples(struct cli *cli, struct cli_task_view *view, const struct mica_tensor_info *input,
                        const struct cli_map *from, const struct cli_map *to)
{
    const struct cli_output *output = &view->outputs->items[0];
    struct cli_samples samples;
    int failed = cli_samples_choose(cli, input, from, false, &samples);
    if (!failed)
        failed = cli_task_new_picture(cli, view, to->width, to->height);
    for (size_t i = 0; !failed && i < cli_map_pixels(to) * 3; i++) {
        size_t channel = to->channels == 3 ? i % 3 : 0;
        view->picture->data[i] =
            cli_samples_get(&samples, &output->tensor, output->data, cli_map_index(to, i / 3, channel), channel);
    }
    return failed;
}

static int show_resolution(struct cli *cli, struct cli_task_view *view)
{
    struct mica_tensor_info input;
    struct cli_map from, to;
    if (!find_pictures(cli, &input, &from, &to))
        return cli_fail(cli, "the model has no usable input");
    if (view->json) {
        cli_json_set_integer(view->json, view->object, "width", to.width);
        cli_json_set_integer(view->json, view->object, "height", to.height);
    } else {
        fprintf(cli->out, "a picture of %u x %u%s\n", to.width, to.height,
                cli->options.picture ? "" : "; --picture FILE.png writes it");
    }
    return cli->options.picture ? draw_samples(cli, view, &input, &from, &to) : 0;
}

const struct cli_task cli_task_super_resolution = {.name = "super-resolution",
                                                   .picture = true,
                                                   .misfit = resolution_misfit,
                                                   .obvious = resolution_obvious,
                                                   .show = show_resolution};
