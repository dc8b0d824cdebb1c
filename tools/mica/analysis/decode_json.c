/* SPDX-License-Identifier: MIT */
/* A decoding for tools: groups with their items, in order, everything of it. */
#include "common.h"

#define MOST_DEPTH 8u

static json_t *json_group(struct cli_json *json, const struct mica_decoding_item *item, json_t **items)
{
    json_t *object = cli_json_object(json);
    *items = cli_json_array(json);
    cli_json_set_text(json, object, "kind", item->name);
    cli_json_set_integer(json, object, "address", item->value);
    cli_json_set_text(json, object, "title", item->text);
    cli_json_set(json, object, "items", *items);
    return object;
}

static json_t *json_field(struct cli_json *json, const struct cli_decoded *decoded,
                          const struct mica_decoding_item *group, const struct mica_decoding_item *item)
{
    char place[64];
    json_t *object = cli_json_object(json);
    cli_decoded_place(decoded, group, item, place, sizeof place);
    cli_json_set_text(json, object, "name", item->name);
    if (item->is_signed)
        cli_json_set(json, object, "value", json_integer((json_int_t)item->value));
    else
        cli_json_set_integer(json, object, "value", item->value);
    if (*place)
        cli_json_set_text(json, object, "place", place);
    if (item->text)
        cli_json_set_text(json, object, "text", item->text);
    if (item->meaning && *item->meaning)
        cli_json_set_text(json, object, "meaning", item->meaning);
    if (item->unknown)
        cli_json_set(json, object, "unknown", json_true());
    if (item->idle)
        cli_json_set(json, object, "idle", json_true());
    return object;
}

json_t *cli_decoded_json(struct cli_json *json, const struct cli_decoded *decoded)
{
    json_t *lists[MOST_DEPTH + 1] = {cli_json_array(json)};
    const struct mica_decoding_item *groups[MOST_DEPTH + 1] = {NULL};
    for (size_t i = 0; i < decoded->decoding->count; i++) {
        const struct mica_decoding_item *item = &decoded->decoding->items[i];
        if (item->depth >= MOST_DEPTH)
            continue;
        json_t *made = item->group ? json_group(json, item, &lists[item->depth + 1])
                                   : json_field(json, decoded, groups[item->depth], item);
        if (item->group)
            groups[item->depth + 1] = item;
        cli_json_append(json, lists[item->depth], made);
    }
    return lists[0];
}
