/* SPDX-License-Identifier: MIT */
#include "input.h"

#include "cli.h"
#include "file.h"
#include "image.h"
#include "sound.h"
#include "task.h"
#include "tensor.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int cli_input_read(struct cli *cli, size_t index, void **data)
{
    const char *path = cli->options.inputs.items[index];
    struct mica_tensor_info tensor;
    size_t size;
    int error = mica_model_input(cli->model, index, &tensor);
    if (error)
        return cli_fail_library(cli, error);
    int failed = cli_file_read(cli, path, tensor.bytes, data, &size);
    if (failed || size == tensor.bytes)
        return failed;
    free(*data);
    *data = NULL;
    char shape[CLI_SHAPE_SIZE];
    cli_shape_text(&tensor, shape);
    return cli_fail(cli, "'%s' has %s%zu bytes; input %zu, '%s' (%s), needs %zu", path,
                    size > tensor.bytes ? "more than " : "", size > tensor.bytes ? tensor.bytes : size, index,
                    tensor.name, shape, tensor.bytes);
}

/* Marsaglia's xorshift, 64 bits. */
static uint64_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Codes of quantized types over their whole range, floats from -1 to 1; other types stay zero: often indices. */
static void make_up(const struct mica_tensor_info *tensor, uint64_t seed, void *data)
{
    uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    size_t count = cli_element_count(tensor);
    bool codes = tensor->type == MICA_TYPE_UINT8 || tensor->type == MICA_TYPE_INT8 || tensor->type == MICA_TYPE_INT16;
    memset(data, 0, tensor->bytes);
    if (tensor->type == MICA_TYPE_FLOAT32)
        for (size_t i = 0; i < count; i++)
            ((float *)data)[i] = (float)(next(&state) >> 40) / (float)(1 << 23) - 1;
    else if (codes)
        for (size_t i = 0; i < tensor->bytes; i++)
            ((uint8_t *)data)[i] = (uint8_t)(next(&state) >> 56);
}

int cli_input_from_operand(struct cli *cli, void **data, const char **origin)
{
    const char *path = cli->options.operands.items[1];
    size_t count = mica_model_input_count(cli->model);
    bool sound = cli_sound_is(path);
    struct mica_tensor_info tensor;
    *origin = sound ? "a sound" : "a picture";
    if (count != 1)
        return cli_fail(cli, "the model has %zu inputs, %s is for one; use --input", count, *origin);
    if (sound)
        return cli_sound_input(cli, path, data);
    int error = mica_model_input(cli->model, 0, &tensor);
    return error ? cli_fail_library(cli, error) : cli_image_load(cli, path, &tensor, data);
}

int cli_input_make(struct cli *cli, size_t index, void **data, const char **origin)
{
    struct mica_tensor_info tensor;
    int error = mica_model_input(cli->model, index, &tensor);
    if (error)
        return cli_fail_library(cli, error);
    *origin = "the files of --input";
    if (cli->options.inputs.count)
        return cli_input_read(cli, index, data);
    if (cli->options.operands.count > 1)
        return cli_input_from_operand(cli, data, origin);
    *origin = "made up: pseudo-random values, the same each time";
    *data = malloc(tensor.bytes + 1);
    if (!*data)
        return cli_fail_nomem(cli);
    make_up(&tensor, index + 1, *data);
    return 0;
}
