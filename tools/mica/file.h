/* SPDX-License-Identifier: MIT */
/* Reading and writing whole files. Functions return 0 or an exit code, and say what failed. */
#ifndef MICA_CLI_FILE_H
#define MICA_CLI_FILE_H

#include <stddef.h>
#include <stdint.h>

struct cli;

/* Reads up to `capacity` bytes of the file from `offset` on. */
int cli_file_part(struct cli *cli, const char *path, uint64_t offset, void *part, size_t capacity, size_t *size);

/*
 * Reads the file into *data, to be freed, but at most `limit` + 1 bytes: *size
 * above `limit` means that the file is longer. The byte after the last is 0.
 */
int cli_file_read(struct cli *cli, const char *path, size_t limit, void **data, size_t *size);

int cli_file_write(struct cli *cli, const char *path, const void *data, size_t size);

#endif
