/* SPDX-License-Identifier: MIT */
/* Values of a model's inputs, as the command line gives them. */
#ifndef MICA_CLI_INPUT_H
#define MICA_CLI_INPUT_H

#include <stddef.h>

struct cli;

/* Reads the file of one --input: *data is to be freed. 0 or an exit code; so the other. */
int cli_input_read(struct cli *cli, size_t index, void **data);

/* The model's only input from the picture or sound that is the second operand. *origin: see below. */
int cli_input_from_operand(struct cli *cli, void **data, const char **origin);

/*
 * Input `index` from the --input files, from the second operand, or, without either, made up:
 * pseudo-random, the same each time. *origin gets what it is, for people.
 */
int cli_input_make(struct cli *cli, size_t index, void **data, const char **origin);

#endif
