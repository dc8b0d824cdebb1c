/* SPDX-License-Identifier: MIT */
/* Pictures as model inputs. */
#ifndef MICA_CLI_IMAGE_H
#define MICA_CLI_IMAGE_H

#include "mica/mica.h"
#include "resize.h"

struct cli;

/*
 * Reads the PNG, JPEG or BMP at `path` and makes the value of `tensor` from
 * it: *data, tensor->bytes long, to be freed. 0 or an exit code.
 */
int cli_image_load(struct cli *cli, const char *path, const struct mica_tensor_info *tensor, void **data);

/* The whole picture as red, green and blue, its data to be freed. 0 or an exit code; so the other. */
int cli_image_pixels(struct cli *cli, const char *path, struct cli_pixels *pixels);

/* Writes red, green and blue as a PNG. */
int cli_image_save(struct cli *cli, const char *path, const struct cli_pixels *pixels);

#endif
