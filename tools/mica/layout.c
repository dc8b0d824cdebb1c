/* SPDX-License-Identifier: MIT */
#include "layout.h"

#include "cli.h"

#include <strings.h>

#define SIDE_MAX 65535

static void read_dims(const struct mica_tensor_info *tensor, bool channels_first, int32_t *height, int32_t *width,
                      int32_t *channels)
{
    const int32_t *dims = tensor->dims + 1;
    *height = dims[channels_first ? 1 : 0];
    *width = dims[channels_first ? 2 : 1];
    *channels = dims[channels_first ? 0 : 2];
}

static bool is_image(const struct mica_tensor_info *tensor)
{
    return tensor->rank == 4 && tensor->dims[0] == 1;
}

static bool has_colors(const struct mica_tensor_info *tensor, bool channels_first)
{
    int32_t height, width, channels;
    read_dims(tensor, channels_first, &height, &width, &channels);
    return channels == 1 || channels == 3;
}

int cli_layout_choose(struct cli *cli)
{
    const char *name = cli->options.layout;
    struct mica_tensor_info tensor;
    cli->channels_first = cli->onnx;
    if (name) {
        cli->channels_first = strcasecmp(name, "NCHW") == 0;
        if (!cli->channels_first && strcasecmp(name, "NHWC") != 0)
            return cli_usage(cli, "--layout must be NHWC (channels last) or NCHW (channels first), not '%s'", name);
        return 0;
    }
    if (mica_model_input_count(cli->model) && !mica_model_input(cli->model, 0, &tensor) && is_image(&tensor) &&
        has_colors(&tensor, true) != has_colors(&tensor, false))
        cli->channels_first = has_colors(&tensor, true);
    return 0;
}

const char *cli_layout_name(const struct cli *cli)
{
    return cli->channels_first ? "NCHW" : "NHWC";
}

bool cli_map_of(const struct cli *cli, const struct mica_tensor_info *tensor, struct cli_map *map)
{
    int32_t height, width, channels;
    if (!is_image(tensor))
        return false;
    read_dims(tensor, cli->channels_first, &height, &width, &channels);
    if (height < 1 || width < 1 || channels < 1 || height > SIDE_MAX || width > SIDE_MAX)
        return false;
    *map = (struct cli_map){(uint32_t)height, (uint32_t)width, (uint32_t)channels, cli->channels_first};
    return true;
}

size_t cli_map_pixels(const struct cli_map *map)
{
    return (size_t)map->height * map->width;
}

size_t cli_map_index(const struct cli_map *map, size_t pixel, size_t channel)
{
    return map->channels_first ? channel * cli_map_pixels(map) + pixel : pixel * map->channels + channel;
}
