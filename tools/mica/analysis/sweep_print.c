/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "file.h"
#include "grid.h"
#include "table.h"

#define MOST_SHOWN 12u /* points of a grid that a table has columns for */

static size_t count_varying(const struct mica_sweep *sweep)
{
    size_t count = 0;
    for (size_t i = 0; i < sweep->column_count; i++)
        count += sweep->columns[i].varies;
    return count;
}

static size_t count_partial(const struct mica_sweep *sweep)
{
    size_t count = 0;
    for (size_t i = 0; i < sweep->column_count; i++)
        count += sweep->columns[i].partial;
    return count;
}

/* "= kernel - 1", or the names of what it follows. */
static void describe(const struct mica_sweep *sweep, const struct mica_sweep_column *column, char *text, size_t size)
{
    size_t used = 0;
    snprintf(text, size, "%s", column->rule);
    for (size_t i = 0; !column->rule[0] && i < sweep->axis_count && used < size; i++)
        if (column->follows >> i & 1)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", sweep->axes[i].name);
}

/* ---- for people ----------------------------------------------------------------------- */

static void append(char *text, size_t size, const char *between, const char *more)
{
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%s", between, more);
}

/* "size/kernel", when the columns' heads are values of several. */
static void print_axes(const struct cli_sweep *sweep)
{
    char text[256] = "";
    for (size_t i = 0; i < sweep->sweep.axis_count; i++)
        append(text, sizeof text, i ? "/" : "", sweep->sweep.axes[i].name);
    fprintf(sweep->cli->out, "points: %s\n", text);
}

/* Few points: all of them; many: the first ones. */
static bool print_table(const struct cli_sweep *sweep)
{
    const struct mica_sweep *grid = &sweep->sweep;
    size_t shown = grid->point_count < MOST_SHOWN ? grid->point_count : MOST_SHOWN;
    char names[MOST_SHOWN][64];
    const char *headers[MOST_SHOWN + 2] = {"field", "follows"};
    struct cli_table table;
    for (size_t i = 0; i < shown; i++) {
        snprintf(names[i], sizeof names[i], ">");
        for (size_t k = 0; k < grid->axis_count; k++)
            append(names[i], sizeof names[i], k ? "/" : "", mica_sweep_value(grid, k, i));
        headers[i + 2] = names[i];
    }
    cli_table_init(&table, headers, shown + 2);
    for (size_t i = 0; i < grid->column_count; i++) {
        char text[256];
        if (!grid->columns[i].varies)
            continue;
        describe(grid, &grid->columns[i], text, sizeof text);
        cli_table_add(&table, "%s", grid->columns[i].name);
        cli_table_add(&table, "%s", text);
        for (size_t k = 0; k < shown; k++) {
            mica_sweep_print(&grid->columns[i].cells[k], text, sizeof text);
            cli_table_add(&table, "%s", *text ? text : "-");
        }
    }
    bool printed = cli_table_print(&table, sweep->cli->out);
    cli_table_finish(&table);
    return printed;
}

static int print_text(const struct cli_sweep *sweep)
{
    const struct mica_sweep *grid = &sweep->sweep;
    print_axes(sweep);
    if (!print_table(sweep))
        return cli_fail_nomem(sweep->cli);
    fprintf(sweep->cli->out, "\n%zu of %zu fields vary over %zu points", count_varying(grid), grid->column_count,
            grid->point_count);
    if (grid->point_count > MOST_SHOWN)
        fprintf(sweep->cli->out, ", of which the first %u are shown; --csv writes all", MOST_SHOWN);
    fputc('\n', sweep->cli->out);
    if (count_partial(grid))
        fprintf(sweep->cli->out, "%zu are there at some points only (-): jobs come and go\n", count_partial(grid));
    return 0;
}

/* ---- for tools ---------------------------------------------------------------------------- */

static json_t *json_cell(const struct mica_sweep_cell *cell)
{
    if (!cell->there)
        return json_null();
    if (cell->text)
        return json_string(cell->text);
    double whole = cell->number;
    return whole == (double)(json_int_t)whole ? json_integer((json_int_t)whole) : json_real(whole);
}

static json_t *json_column(struct cli_json *json, const struct mica_sweep *sweep,
                           const struct mica_sweep_column *column)
{
    json_t *object = cli_json_object(json), *follows = cli_json_array(json), *values = cli_json_array(json);
    cli_json_set_text(json, object, "field", column->name);
    if (column->meaning && *column->meaning)
        cli_json_set_text(json, object, "meaning", column->meaning);
    for (size_t i = 0; i < sweep->axis_count; i++)
        if (column->follows >> i & 1)
            cli_json_append(json, follows, json_string(sweep->axes[i].name));
    cli_json_set(json, object, "follows", follows);
    if (column->rule[0])
        cli_json_set_text(json, object, "rule", column->rule);
    for (size_t i = 0; i < sweep->point_count; i++)
        cli_json_append(json, values, json_cell(&column->cells[i]));
    cli_json_set(json, object, "values", values);
    return object;
}

static int print_json(const struct cli_sweep *sweep)
{
    struct cli_json json = {0};
    const struct mica_sweep *grid = &sweep->sweep;
    json_t *root = cli_json_object(&json), *points = cli_json_array(&json), *fields = cli_json_array(&json);
    for (size_t i = 0; i < grid->point_count; i++) {
        json_t *point = cli_json_object(&json);
        for (size_t k = 0; k < grid->axis_count; k++)
            cli_json_set_text(&json, point, grid->axes[k].name, mica_sweep_value(grid, k, i));
        cli_json_append(&json, points, point);
    }
    for (size_t i = 0; i < grid->column_count; i++)
        if (grid->columns[i].varies)
            cli_json_append(&json, fields, json_column(&json, grid, &grid->columns[i]));
    cli_json_set(&json, root, "points", points);
    cli_json_set_integer(&json, root, "failed", sweep->failed);
    cli_json_set_integer(&json, root, "constant", grid->column_count - count_varying(grid));
    cli_json_set_integer(&json, root, "partial", count_partial(grid));
    cli_json_set(&json, root, "fields", fields);
    return cli_json_print(sweep->cli, &json, root);
}

/* ---- files ----------------------------------------------------------------------------------- */

static int write_file(const struct cli_sweep *sweep, const char *path,
                      void (*write)(const struct mica_sweep *sweep, FILE *out))
{
    char *data = NULL;
    size_t size = 0;
    FILE *stream = path ? open_memstream(&data, &size) : NULL;
    if (!path)
        return 0;
    if (!stream)
        return cli_fail_nomem(sweep->cli);
    write(&sweep->sweep, stream);
    bool failed = ferror(stream);
    failed |= fclose(stream) != 0;
    int result = failed ? cli_fail_nomem(sweep->cli) : cli_file_write(sweep->cli, path, data, size);
    free(data);
    return result;
}

int cli_sweep_print(struct cli_sweep *sweep)
{
    int failed = write_file(sweep, sweep->cli->options.csv, mica_sweep_write_csv);
    if (!failed)
        failed = write_file(sweep, sweep->cli->options.plot, mica_sweep_write_svg);
    if (failed)
        return failed;
    return sweep->cli->options.json ? print_json(sweep) : print_text(sweep);
}
