/* SPDX-License-Identifier: MIT */
/* Nodes whose requests are only written down byte by byte. */
#include <stdlib.h>

#include "intercept/intercept.h"
#include "uapi/galcore.h"

#define MOST_INTERFACE 4096u /* bytes; the structure has some hundred */

static size_t argument_size(unsigned long request)
{
    bool known = request == MICA_GALCORE_INTERFACE || request == MICA_GALCORE_PROFILER;
    return known ? sizeof(struct mica_galcore_arguments) : 0;
}

static void put_structure(struct ic_call *call, const char *name, uint64_t pointer, uint64_t size)
{
    static uint8_t bytes[MOST_INTERFACE];
    size_t used = size < sizeof bytes ? (size_t)size : sizeof bytes;
    if (!used || !ic_copy(bytes, pointer, used))
        return;
    ic_text_put(&call->note, ",\"%s\":\"", name);
    ic_text_hex(&call->note, bytes, used);
    ic_text_put(&call->note, "\"");
}

static bool has_structure(const struct ic_call *call, struct mica_galcore_arguments *arguments)
{
    ic_argument(call, arguments, sizeof *arguments);
    return argument_size(call->request) != 0;
}

static void before(struct ic_call *call)
{
    struct mica_galcore_arguments arguments;
    if (has_structure(call, &arguments))
        put_structure(call, "interface", arguments.input, arguments.input_size);
}

static void after(struct ic_call *call)
{
    struct mica_galcore_arguments arguments;
    if (has_structure(call, &arguments))
        put_structure(call, "interface_out", arguments.output, arguments.output_size);
}

const struct ic_driver ic_galcore = {
    .name = "galcore", .argument_size = argument_size, .before = before, .after = after};
const struct ic_driver ic_other = {.name = "other"};
