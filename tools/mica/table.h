/* SPDX-License-Identifier: MIT */
/* Tables of text: cells are collected, then printed in columns as wide as they need. */
#ifndef MICA_CLI_TABLE_H
#define MICA_CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct cli_table {
    const char *const *headers; /* '>' in front: numbers, aligned to the right */
    size_t columns;
    char **cells;
    size_t count, capacity;
    bool failed; /* memory ran out; sticky */
};

/* `headers` are borrowed. */
void cli_table_init(struct cli_table *table, const char *const *headers, size_t columns);

/* The next cell, row by row. */
void cli_table_add(struct cli_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* False when memory ran out: then nothing is printed. */
bool cli_table_print(const struct cli_table *table, FILE *out);
void cli_table_finish(struct cli_table *table);

#endif
