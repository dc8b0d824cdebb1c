/* SPDX-License-Identifier: MIT */
/* Where rows, columns and channels of an image are in a tensor: channels last (NHWC) or first (NCHW). */
#ifndef MICA_CLI_LAYOUT_H
#define MICA_CLI_LAYOUT_H

#include "mica/mica.h"

struct cli;

/* An image, or a map of anything, of batch 1. */
struct cli_map {
    uint32_t height, width, channels;
    bool channels_first;
};

/* Decides, once a model is open: by --layout, or the one way in which the model's input has 1 or 3 channels, or as the
 * file's format has it. 0 or an exit code. */
int cli_layout_choose(struct cli *cli);
const char *cli_layout_name(const struct cli *cli); /* "NHWC" or "NCHW" */

/* False: the tensor is no such image. */
bool cli_map_of(const struct cli *cli, const struct mica_tensor_info *tensor, struct cli_map *map);

/* Pixels count from the upper left corner, row by row. */
size_t cli_map_pixels(const struct cli_map *map);
size_t cli_map_index(const struct cli_map *map, size_t pixel, size_t channel);

#endif
