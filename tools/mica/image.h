/* SPDX-License-Identifier: MIT */
/* Pictures as model inputs. */
#ifndef MICA_CLI_IMAGE_H
#define MICA_CLI_IMAGE_H

#include "mica/mica.h"

struct cli;

/*
 * Reads the PNG, JPEG or BMP at `path` and makes the value of `tensor` from
 * it: *data, tensor->bytes long, to be freed. 0 or an exit code.
 */
int cli_image_load(struct cli *cli, const char *path, const struct mica_tensor_info *tensor, void **data);

#endif
