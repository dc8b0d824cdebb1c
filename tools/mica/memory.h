/* SPDX-License-Identifier: MIT */
/* What a compiled model takes on the device. */
#ifndef MICA_CLI_MEMORY_H
#define MICA_CLI_MEMORY_H

#include "cli.h"
#include "json.h"

/* Of cli->executable; prints nothing where nothing runs on an NPU. 0 or an exit code. */
int cli_memory_print(struct cli *cli);
void cli_memory_json(struct cli *cli, struct cli_json *json, json_t *object);

/* A line, or a key, that says so if the executable keeps tensors in on-chip memory; otherwise nothing. */
void cli_on_chip_print(struct cli *cli);
void cli_on_chip_json(struct cli *cli, struct cli_json *json, json_t *object);

#endif
