/* SPDX-License-Identifier: MIT */
/* 'mica devices --operations': the table of what the NPUs take, a chip after the other. */
#include "operations.h"

#include <string.h>

#include "cli.h"
#include "json.h"
#include "table.h"

#define LIMITS_SIZE 400

/* Calls `each` with every row of the device that is open. */
typedef void each_operation(const struct mica_operation_support *operation, void *user);

static void for_operations(const struct cli *cli, each_operation *each, void *user)
{
    struct mica_operation_support operation;
    for (size_t i = 0; mica_device_operation(cli->device, i, &operation) == 0; i++)
        each(&operation, user);
}

/* One limit as words: "stride 1 to 2", "without dilation", "batch 1". */
static int limit_text(const struct mica_operation_limit *limit, char *text, size_t size)
{
    if (limit->kind == MICA_LIMIT_FLAG)
        return snprintf(text, size, "%s %s", limit->most ? "with or without" : "without", limit->name);
    if (limit->least == limit->most)
        return snprintf(text, size, "%s %d", limit->name, (int)limit->least);
    if (limit->most == INT32_MAX)
        return snprintf(text, size, "%s from %d on", limit->name, (int)limit->least);
    return snprintf(text, size, "%s %d to %d%s", limit->name, (int)limit->least, (int)limit->most,
                    limit->kind == MICA_LIMIT_POWERS_OF_TWO ? " (powers of two)" : "");
}

static void limits_text(const struct mica_operation_support *operation, char text[LIMITS_SIZE])
{
    size_t used = 0;
    text[0] = 0;
    for (size_t i = 0; i < MICA_OPERATION_LIMITS && operation->limits[i].name; i++) {
        char limit[80];
        limit_text(&operation->limits[i], limit, sizeof(limit));
        used += (size_t)snprintf(text + used, LIMITS_SIZE - used, "%s%s", used ? ", " : "", limit);
        if (used >= LIMITS_SIZE)
            return;
    }
    if (*operation->conditions)
        snprintf(text + used, LIMITS_SIZE - used, "%s%s", used ? "; " : "", operation->conditions);
}

/* ---- text ---------------------------------------------------------------- */

static void add_row(const struct mica_operation_support *operation, void *user)
{
    struct cli_table *table = user;
    char limits[LIMITS_SIZE];
    limits_text(operation, limits);
    cli_table_add(table, "%s", operation->name);
    cli_table_add(table, "%s", operation->types);
    cli_table_add(table, "%s", operation->how);
    if (operation->off)
        cli_table_add(table, "at most %u off", (unsigned)operation->off);
    else
        cli_table_add(table, "exact");
    cli_table_add(table, "%s", limits);
}

static int print_device(struct cli *cli)
{
    static const char *const headers[] = {"operation", "types", "how", "exactness", "limits"};
    struct cli_table table;
    cli_table_init(&table, headers, 5);
    for_operations(cli, add_row, &table);
    fprintf(cli->out, "device: %s\n\n", mica_device_name(cli->device));
    bool printed = cli_table_print(&table, cli->out);
    cli_table_finish(&table);
    return printed ? 0 : cli_fail_nomem(cli);
}

/* ---- JSON ---------------------------------------------------------------- */

struct json_rows {
    struct cli_json *json;
    json_t *array;
};

static json_t *json_limit(struct cli_json *json, const struct mica_operation_limit *limit)
{
    static const char *const kinds[] = {"range", "powers of two", "flag"};
    json_t *object = cli_json_object(json);
    cli_json_set_text(json, object, "name", limit->name);
    cli_json_set_integer(json, object, "least", (uint64_t)limit->least);
    cli_json_set(json, object, "most", limit->most == INT32_MAX ? json_null() : json_integer(limit->most));
    cli_json_set_text(json, object, "kind", kinds[limit->kind]);
    return object;
}

/* The words of a text with one space between. */
static json_t *json_words(struct cli_json *json, const char *text)
{
    json_t *words = cli_json_array(json);
    for (size_t length; *text; text += length + (text[length] == ' ')) {
        length = strcspn(text, " ");
        cli_json_append(json, words, json_stringn(text, length));
    }
    return words;
}

static void append_row(const struct mica_operation_support *operation, void *user)
{
    const struct json_rows *rows = user;
    struct cli_json *json = rows->json;
    json_t *row = cli_json_object(json), *limits = cli_json_array(json);
    char text[LIMITS_SIZE];
    limits_text(operation, text);
    for (size_t i = 0; i < MICA_OPERATION_LIMITS && operation->limits[i].name; i++)
        cli_json_append(json, limits, json_limit(json, &operation->limits[i]));
    cli_json_set_text(json, row, "name", operation->name);
    cli_json_set(json, row, "types", json_words(json, operation->types));
    cli_json_set_text(json, row, "how", operation->how);
    cli_json_set_integer(json, row, "off", operation->off);
    cli_json_set_text(json, row, "conditions", operation->conditions);
    cli_json_set(json, row, "limits", limits);
    cli_json_set_text(json, row, "limits_text", text);
    cli_json_append(json, rows->array, row);
}

static void append_device(struct cli *cli, struct cli_json *json, json_t *devices)
{
    json_t *device = cli_json_object(json);
    struct json_rows rows = {json, cli_json_array(json)};
    for_operations(cli, append_row, &rows);
    cli_json_set_text(json, device, "name", mica_device_name(cli->device));
    cli_json_set(json, device, "operations", rows.array);
    cli_json_append(json, devices, device);
}

/* ---- devices --------------------------------------------------------------- */

/* The chips are those that have simulators: what drives the real ones makes no difference. */
static bool is_chip(const char *name)
{
    return strncmp(name, "sim:", 4) == 0;
}

static int show_device(struct cli *cli, const char *name, struct cli_json *json, json_t *devices)
{
    int error = mica_device_open(cli->context, name, &cli->device), failed = 0;
    if (error)
        return cli_fail_library(cli, error);
    if (cli->options.json)
        append_device(cli, json, devices);
    else
        failed = print_device(cli);
    mica_device_close(cli->device);
    cli->device = NULL;
    return failed;
}

static int show_all(struct cli *cli, struct cli_json *json, json_t *devices)
{
    struct mica_device_info info;
    int failed = 0;
    for (size_t i = 0, shown = 0; !failed && mica_device_list(cli->context, i, &info) == 0; i++) {
        if (!is_chip(info.name))
            continue;
        if (shown++ && !cli->options.json)
            fputc('\n', cli->out);
        failed = show_device(cli, info.name, json, devices);
    }
    return failed;
}

int cli_operations(struct cli *cli)
{
    struct cli_json json = {0};
    json_t *root = cli_json_object(&json), *devices = cli_json_array(&json);
    int failed =
        cli->options.device ? show_device(cli, cli->options.device, &json, devices) : show_all(cli, &json, devices);
    cli_json_set(&json, root, "devices", devices);
    if (!failed && cli->options.json)
        return cli_json_print(cli, &json, root);
    json_decref(root);
    return failed;
}
