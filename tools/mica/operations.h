/* SPDX-License-Identifier: MIT */
#ifndef MICA_CLI_OPERATIONS_H
#define MICA_CLI_OPERATIONS_H

struct cli;

/* Prints which operations the NPU of --device takes, or each chip's without it; the context is open. */
int cli_operations(struct cli *cli);

#endif
