/* SPDX-License-Identifier: MIT */
/* Building JSON: jansson's calls return NULL when memory runs out or a value can't be said; here that is one flag. */
#ifndef MICA_CLI_JSON_H
#define MICA_CLI_JSON_H

#include "mica/mica.h"

#include <jansson.h>

struct cli;

/* Sticky: once something failed, cli_json_print() reports it. All tolerate NULL objects. */
struct cli_json {
    bool failed;
};

json_t *cli_json_object(struct cli_json *json);
json_t *cli_json_array(struct cli_json *json);

/* Each takes over `value`. */
void cli_json_set(struct cli_json *json, json_t *object, const char *key, json_t *value);
void cli_json_append(struct cli_json *json, json_t *array, json_t *value);

/* Text of any origin: bytes that are no UTF-8 become '?'. NULL becomes null. */
void cli_json_set_text(struct cli_json *json, json_t *object, const char *key, const char *text);
void cli_json_set_integer(struct cli_json *json, json_t *object, const char *key, uint64_t value);

/* Infinities and not-a-number, which JSON lacks, become null. */
void cli_json_set_real(struct cli_json *json, json_t *object, const char *key, double value);

/* name, type, shape, and scale and zero_point where there is quantization. */
json_t *cli_json_tensor(struct cli_json *json, const struct mica_tensor_info *tensor);

/* Prints `root` and releases it; 0 or an exit code. */
int cli_json_print(struct cli *cli, struct cli_json *json, json_t *root);

#endif
