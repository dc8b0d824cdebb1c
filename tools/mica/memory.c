/* SPDX-License-Identifier: MIT */
#include "memory.h"

#include "estimate.h"

static double kib(uint64_t bytes)
{
    return (double)bytes / 1024;
}

static uint64_t on_chip_bytes(const struct cli *cli)
{
    struct mica_memory_info info;
    return mica_executable_memory(cli->executable, &info) ? 0 : info.on_chip_bytes;
}

int cli_memory_print(struct cli *cli)
{
    struct mica_memory_info info;
    int error = mica_executable_memory(cli->executable, &info);
    if (error)
        return cli_fail_library(cli, error);
    if (!mica_executable_partition_count(cli->executable))
        return 0;
    fprintf(cli->out,
            "NPU memory: coefficients %.1f KiB, commands %.1f KiB, intermediates %.1f KiB at most, inputs and outputs "
            "%.1f KiB\n",
            kib(info.coefficient_bytes), kib(info.command_bytes), kib(info.intermediate_bytes), kib(info.tensor_bytes));
    cli_on_chip_print(cli);
    cli_split_print(cli);
    return 0;
}

void cli_memory_json(struct cli *cli, struct cli_json *json, json_t *object)
{
    struct mica_memory_info info;
    if (mica_executable_memory(cli->executable, &info))
        return;
    json_t *memory = cli_json_object(json);
    cli_json_set_integer(json, memory, "coefficient_bytes", info.coefficient_bytes);
    cli_json_set_integer(json, memory, "command_bytes", info.command_bytes);
    cli_json_set_integer(json, memory, "intermediate_bytes", info.intermediate_bytes);
    cli_json_set_integer(json, memory, "tensor_bytes", info.tensor_bytes);
    cli_json_set_integer(json, memory, "on_chip_bytes", info.on_chip_bytes);
    cli_json_set(json, object, "memory", memory);
    cli_split_json(cli, json, object);
}

void cli_on_chip_print(struct cli *cli)
{
    uint64_t bytes = on_chip_bytes(cli);
    if (bytes)
        fprintf(cli->out, "on-chip memory: tensors in %.1f KiB of it, which is not verified on hardware\n", kib(bytes));
}

void cli_on_chip_json(struct cli *cli, struct cli_json *json, json_t *object)
{
    uint64_t bytes = on_chip_bytes(cli);
    if (bytes)
        cli_json_set_integer(json, object, "on_chip_bytes", bytes);
}
