/* SPDX-License-Identifier: MIT */
#include "json.h"

#include "cli.h"
#include "tensor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Digits that print: enough to tell any two float32 apart. */
#define DIGITS 9

json_t *cli_json_object(struct cli_json *json)
{
    json_t *object = json_object();
    json->failed |= !object;
    return object;
}

json_t *cli_json_array(struct cli_json *json)
{
    json_t *array = json_array();
    json->failed |= !array;
    return array;
}

void cli_json_set(struct cli_json *json, json_t *object, const char *key, json_t *value)
{
    json->failed |= json_object_set_new(object, key, value) != 0;
}

void cli_json_append(struct cli_json *json, json_t *array, json_t *value)
{
    json->failed |= json_array_append_new(array, value) != 0;
}

static json_t *ascii_only(const char *text)
{
    char *copy = strdup(text);
    if (!copy)
        return NULL;
    for (char *at = copy; *at; at++)
        if ((unsigned char)*at >= 0x80)
            *at = '?';
    json_t *value = json_string(copy);
    free(copy);
    return value;
}

void cli_json_set_text(struct cli_json *json, json_t *object, const char *key, const char *text)
{
    json_t *value = text ? json_string(text) : json_null();
    cli_json_set(json, object, key, value ? value : ascii_only(text));
}

void cli_json_set_integer(struct cli_json *json, json_t *object, const char *key, uint64_t value)
{
    cli_json_set(json, object, key, json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value));
}

void cli_json_set_real(struct cli_json *json, json_t *object, const char *key, double value)
{
    cli_json_set(json, object, key, isfinite(value) ? json_real(value) : json_null());
}

json_t *cli_json_tensor(struct cli_json *json, const struct mica_tensor_info *tensor)
{
    json_t *object = cli_json_object(json), *shape = cli_json_array(json);
    for (uint32_t i = 0; i < tensor->rank; i++)
        cli_json_append(json, shape, json_integer(tensor->dims[i]));
    cli_json_set_text(json, object, "name", tensor->name);
    cli_json_set_text(json, object, "type", cli_type_name(tensor->type));
    cli_json_set(json, object, "shape", shape);
    cli_json_set_integer(json, object, "bytes", tensor->bytes);
    if (tensor->scale != 0) {
        cli_json_set_real(json, object, "scale", (double)tensor->scale);
        cli_json_set(json, object, "zero_point", json_integer(tensor->zero_point));
    }
    return object;
}

/* json_dumps() would grow its text on the way and drop what fits nowhere when memory runs out; this asks first. */
static char *dump(const json_t *root, size_t *size)
{
    const size_t flags = JSON_INDENT(2) | JSON_REAL_PRECISION(DIGITS);
    *size = json_dumpb(root, NULL, 0, flags);
    char *text = *size ? malloc(*size) : NULL;
    if (text && json_dumpb(root, text, *size, flags) == *size)
        return text;
    free(text);
    return NULL;
}

int cli_json_print(struct cli *cli, struct cli_json *json, json_t *root)
{
    size_t size = 0;
    char *text = json->failed ? NULL : dump(root, &size);
    json_decref(root);
    if (!text)
        return cli_fail_nomem(cli);
    fwrite(text, 1, size, cli->out);
    fputc('\n', cli->out);
    free(text);
    return 0;
}
