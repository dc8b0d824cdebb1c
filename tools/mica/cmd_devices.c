/* SPDX-License-Identifier: MIT */
#include "cli.h"
#include "json.h"
#include "operations.h"
#include "table.h"

#include <string.h>

/* Bytes of the first line. */
static size_t line_length(const char *text)
{
    return strcspn(text, "\n");
}

static const char *next_line(const char *text)
{
    text += line_length(text);
    return *text ? text + 1 : text;
}

static json_t *json_notes(struct cli_json *json, const char *notes)
{
    json_t *lines = cli_json_array(json);
    for (; *notes; notes = next_line(notes))
        cli_json_append(json, lines, json_stringn(notes, line_length(notes)));
    return lines;
}

static void print_notes(struct cli *cli)
{
    struct mica_device_info info;
    for (size_t i = 0; mica_device_list(cli->context, i, &info) == 0; i++) {
        if (*info.notes)
            fprintf(cli->out, "\n%s, inferred rather than verified on hardware:\n", info.name);
        for (const char *notes = info.notes; *notes; notes = next_line(notes)) {
            fputs("- ", cli->out);
            fwrite(notes, 1, line_length(notes), cli->out);
            fputc('\n', cli->out);
        }
    }
}

static int print_json(struct cli *cli)
{
    struct cli_json json = {0};
    json_t *root = cli_json_object(&json), *rows = cli_json_array(&json);
    struct mica_device_info info;
    for (size_t i = 0; mica_device_list(cli->context, i, &info) == 0; i++) {
        json_t *row = cli_json_object(&json);
        cli_json_set_text(&json, row, "name", info.name);
        cli_json_set_text(&json, row, "description", info.description);
        cli_json_set(&json, row, "available", json_boolean(info.available));
        cli_json_set_text(&json, row, "reason", info.reason);
        cli_json_set(&json, row, "notes", json_notes(&json, info.notes));
        cli_json_append(&json, rows, row);
    }
    cli_json_set(&json, root, "devices", rows);
    return cli_json_print(cli, &json, root);
}

static int print_table(struct cli *cli)
{
    static const char *const headers[] = {"device", "available", "why not"};
    static const char *const verbose_headers[] = {"device", "available", "description", "why not"};
    bool verbose = cli->options.verbose;
    struct cli_table table;
    cli_table_init(&table, verbose ? verbose_headers : headers, verbose ? 4 : 3);
    struct mica_device_info info;
    for (size_t i = 0; mica_device_list(cli->context, i, &info) == 0; i++) {
        cli_table_add(&table, "%s", info.name);
        cli_table_add(&table, "%s", info.available ? "yes" : "no");
        if (verbose)
            cli_table_add(&table, "%s", info.description);
        cli_table_add(&table, "%s", info.reason);
    }
    bool printed = cli_table_print(&table, cli->out);
    cli_table_finish(&table);
    if (printed && verbose)
        print_notes(cli);
    return printed ? 0 : cli_fail_nomem(cli);
}

int cli_devices(struct cli *cli)
{
    int failed = cli_open_context(cli);
    if (failed)
        return failed;
    if (cli->options.operations)
        return cli_operations(cli);
    if (cli->options.device)
        return cli_usage(cli, "--device needs --operations here");
    return cli->options.json ? print_json(cli) : print_table(cli);
}
