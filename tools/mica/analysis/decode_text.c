/* SPDX-License-Identifier: MIT */
/* A decoding for people: what a driver wrote on purpose, aligned; with --verbose all of it. */
#include <inttypes.h>
#include <string.h>

#include "common.h"

#define MOST_DEPTH 8u
#define PER_LINE 8u /* of a histogram */
#define SHORT_HISTOGRAM 40u

struct printer {
    FILE *out;
    const struct cli_decoded *decoded;
    const struct mica_decoding_item *items;
    size_t count;
    const struct mica_decoding_item *groups[MOST_DEPTH];
};

static bool is_kind(const struct mica_decoding_item *group, const char *kind)
{
    return group && !strcmp(group->name, kind);
}

/* States are written on purpose, whatever the value. */
static bool is_state(const struct mica_decoding_item *group)
{
    return is_kind(group, "command") && !strncmp(group->text, "LOAD_STATE", 10);
}

static bool is_shown(const struct printer *printer, const struct mica_decoding_item *group,
                     const struct mica_decoding_item *item)
{
    if (printer->decoded->verbose || item->unknown || is_state(group))
        return true;
    return !item->idle && (item->value || item->text);
}

static void indent(const struct printer *printer, uint32_t depth)
{
    fprintf(printer->out, "%*s", (int)(2 * depth + 2), "");
}

/* Of the fields of the group that begins at `first`, of those shown. */
static int name_width(const struct printer *printer, size_t first, uint32_t depth,
                      const struct mica_decoding_item *group)
{
    size_t width = 0;
    for (size_t i = first; i < printer->count && printer->items[i].depth >= depth; i++) {
        const struct mica_decoding_item *item = &printer->items[i];
        if (item->depth != depth || item->group || !is_shown(printer, group, item))
            continue;
        width = strlen(item->name) > width ? strlen(item->name) : width;
    }
    return (int)(width < 40 ? width : 40);
}

static void print_value(const struct mica_decoding_item *item, const char *place, char *text, size_t size)
{
    if (*place)
        snprintf(text, size, "0x%08" PRIx64 " %s", item->value, place);
    else if (item->text && !item->value)
        snprintf(text, size, "%s", item->text);
    else if (item->is_signed)
        snprintf(text, size, "%" PRId64, (int64_t)item->value);
    else if (item->value < 10)
        snprintf(text, size, "%" PRIu64, item->value);
    else
        snprintf(text, size, "%" PRIu64 " 0x%" PRIx64, item->value, item->value);
}

static void print_field(const struct printer *printer, const struct mica_decoding_item *group,
                        const struct mica_decoding_item *item, int width)
{
    char place[64], value[256];
    cli_decoded_place(printer->decoded, group, item, place, sizeof place);
    print_value(item, place, value, sizeof value);
    indent(printer, is_state(group) ? item->depth - 1 : item->depth);
    const char *text = item->text && item->value ? item->text : "";
    const char *meaning = item->meaning ? item->meaning : "";
    const char *bits = printer->decoded->verbose ? NULL : strstr(meaning, "; bits: "); /* a line's worth is enough */
    int length = bits ? (int)(bits - meaning) : (int)strlen(meaning);
    fprintf(printer->out, "%-*s  %s", width, item->name, value);
    int gap = 28 - (int)strlen(value);
    if (*text || *meaning)
        fprintf(printer->out, "%*s%s%s%.*s", gap > 2 ? gap : 2, "", text, *text && *meaning ? "; " : "", length,
                meaning);
    fputs(item->unknown ? "  UNKNOWN\n" : "\n", printer->out);
}

static size_t group_end(const struct printer *printer, size_t first, uint32_t depth)
{
    while (first < printer->count && printer->items[first].depth > depth)
        first++;
    return first;
}

/* In rows of "value x count"; a long one only on request. */
static size_t print_histogram(const struct printer *printer, size_t first, uint32_t depth)
{
    size_t i = first, shown = 0, end = group_end(printer, first, depth);
    if (end - first > SHORT_HISTOGRAM && !printer->decoded->verbose) {
        indent(printer, depth + 1);
        fprintf(printer->out, "%zu different ones; -v lists them\n", end - first);
        return end;
    }
    for (; i < end; i++, shown++) {
        if (shown % PER_LINE == 0 && shown)
            fputc('\n', printer->out);
        if (shown % PER_LINE == 0)
            indent(printer, depth + 1);
        fprintf(printer->out, "%5s x%-6" PRIu64, printer->items[i].name, printer->items[i].value);
    }
    if (shown)
        fputc('\n', printer->out);
    return i;
}

/* Fillers, and registers that get 0, matter to nobody but --verbose. */
static bool is_silent(const struct printer *printer, const struct mica_decoding_item *group)
{
    size_t length = strlen(group->text);
    if (is_kind(group, "command") && !strcmp(group->text, "filler"))
        return !printer->decoded->verbose;
    return !printer->decoded->verbose && is_kind(group, "register") && length > 10 &&
           !strcmp(group->text + length - 10, "0x00000000");
}

static void print_group(const struct printer *printer, const struct mica_decoding_item *group)
{
    uint64_t offset;
    indent(printer, group->depth);
    if (is_kind(group, "register") || is_kind(group, "kernel") || is_kind(group, "histogram")) {
        fprintf(printer->out, "%s\n", group->text);
        return;
    }
    fprintf(printer->out, "%s at 0x%" PRIx64, group->name, group->value);
    const struct cli_decoded *decoded = printer->decoded;
    bool is_address = !is_kind(group, "command") && decoded->submit;
    uint32_t number = is_address ? mica_place_find(decoded->places, decoded->submit, group->value, &offset) : 0;
    if (number)
        fprintf(printer->out, ", buffer %u + 0x%" PRIx64, number, offset);
    fprintf(printer->out, ": %s\n", group->text);
}

void cli_decoded_print(struct cli *cli, const struct cli_decoded *decoded)
{
    struct printer printer = {cli->out, decoded, decoded->decoding->items, decoded->decoding->count, {NULL}};
    int widths[MOST_DEPTH + 1] = {0};
    for (size_t i = 0; i < printer.count;) {
        const struct mica_decoding_item *item = &printer.items[i++];
        const struct mica_decoding_item *group =
            item->depth && item->depth <= MOST_DEPTH ? printer.groups[item->depth - 1] : NULL;
        if (!item->group) {
            if (is_shown(&printer, group, item))
                print_field(&printer, group, item, is_state(group) ? 22 : widths[item->depth]);
            continue;
        }
        if (item->depth >= MOST_DEPTH - 1)
            continue;
        printer.groups[item->depth] = item;
        widths[item->depth + 1] = name_width(&printer, i, item->depth + 1, item);
        if (is_kind(item, "padding") && !decoded->verbose)
            continue;
        if (!is_state(item) && !is_silent(&printer, item))
            print_group(&printer, item);
        if (is_kind(item, "histogram"))
            i = print_histogram(&printer, i, item->depth);
    }
}
