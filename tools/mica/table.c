/* SPDX-License-Identifier: MIT */
#include "table.h"

#include "cli.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void cli_table_init(struct cli_table *table, const char *const *headers, size_t columns)
{
    *table = (struct cli_table){.headers = headers, .columns = columns};
}

static bool make_room(struct cli_table *table)
{
    if (table->count < table->capacity)
        return true;
    size_t capacity = table->capacity ? table->capacity * 2 : 64;
    char **cells = realloc(table->cells, capacity * sizeof(*cells));
    if (!cells)
        return false;
    table->cells = cells;
    table->capacity = capacity;
    return true;
}

void cli_table_add(struct cli_table *table, const char *format, ...)
{
    char *cell = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (table->failed || !make_room(table) || vasprintf(&cell, format, arguments) < 0)
        table->failed = true;
    else
        table->cells[table->count++] = cell;
    va_end(arguments);
    if (!table->failed)
        cli_clean(cell);
}

static bool is_number(const struct cli_table *table, size_t column)
{
    return table->headers[column][0] == '>';
}

static const char *header(const struct cli_table *table, size_t column)
{
    return table->headers[column] + is_number(table, column);
}

static size_t width_of(const struct cli_table *table, size_t column)
{
    size_t width = strlen(header(table, column));
    for (size_t i = column; i < table->count; i += table->columns)
        if (strlen(table->cells[i]) > width)
            width = strlen(table->cells[i]);
    return width;
}

/* Nothing may trail the last text of a row. */
static void print_cell(const struct cli_table *table, size_t column, size_t width, const char *text, bool last,
                       FILE *out)
{
    size_t fill = width - strlen(text);
    if (column)
        fputs("  ", out);
    if (is_number(table, column))
        fprintf(out, "%*s", (int)width, text);
    else
        fprintf(out, "%s%*s", text, last ? 0 : (int)fill, "");
    if (last)
        fputc('\n', out);
}

static void print_row(const struct cli_table *table, const size_t *widths, const char *const *row, FILE *out)
{
    size_t used = table->columns;
    while (used > 1 && !*row[used - 1])
        used--;
    for (size_t column = 0; column < used; column++)
        print_cell(table, column, widths[column], row[column], column + 1 == used, out);
}

bool cli_table_print(const struct cli_table *table, FILE *out)
{
    size_t *widths = calloc(table->columns, sizeof(*widths));
    const char **headers = calloc(table->columns, sizeof(*headers));
    bool done = !table->failed && widths && headers;
    if (done) {
        for (size_t column = 0; column < table->columns; column++) {
            widths[column] = width_of(table, column);
            headers[column] = header(table, column);
        }
        print_row(table, widths, headers, out);
        for (size_t i = 0; i + table->columns <= table->count; i += table->columns)
            print_row(table, widths, (const char *const *)table->cells + i, out);
    }
    free(widths);
    free(headers);
    return done;
}

void cli_table_finish(struct cli_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        free(table->cells[i]);
    free(table->cells);
    *table = (struct cli_table){0};
}
