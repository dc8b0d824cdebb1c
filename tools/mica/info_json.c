/* SPDX-License-Identifier: MIT */
#include "info.h"
#include "json.h"
#include "memory.h"

static json_t *json_way(struct cli_json *json, const struct cli_info_operation *operation)
{
    json_t *object = cli_json_object(json);
    cli_json_set_text(json, object, "how", operation->way.text);
    if (cli_info_estimated(operation)) {
        cli_json_set_integer(json, object, "jobs", operation->way.jobs);
        cli_json_set_real(json, object, "us", operation->way.us);
    } else {
        cli_json_set(json, object, "jobs", json_null());
        cli_json_set(json, object, "us", json_null());
    }
    cli_json_set_integer(json, object, "off", operation->way.off);
    return object;
}

static json_t *json_operation(struct cli_json *json, size_t index, const struct cli_info_operation *operation)
{
    json_t *row = cli_json_object(json), *shape = cli_json_array(json);
    for (uint32_t k = 0; k < operation->info.rank; k++)
        cli_json_append(json, shape, json_integer(operation->info.dims[k]));
    cli_json_set_integer(json, row, "index", index);
    cli_json_set_text(json, row, "type", operation->info.type);
    cli_json_set_text(json, row, "output", operation->info.output);
    cli_json_set(json, row, "shape", shape);
    cli_json_set_integer(json, row, "macs", operation->info.macs);
    cli_json_set_text(json, row, "runs_on", cli_info_place(operation));
    if (operation->partition >= 0)
        cli_json_set_integer(json, row, "partition", (uint64_t)operation->partition);
    cli_json_set_text(json, row, "reason", operation->reason);
    if (operation->has_way)
        cli_json_set(json, row, "way", json_way(json, operation));
    return row;
}

static json_t *json_operations(struct cli_json *json, const struct cli_info *info)
{
    json_t *rows = cli_json_array(json);
    for (size_t i = 0; i < info->count; i++)
        cli_json_append(json, rows, json_operation(json, i, &info->items[i]));
    return rows;
}

typedef int (*tensor_getter)(const mica_model *model, size_t index, struct mica_tensor_info *info);

static json_t *json_tensors(struct cli *cli, struct cli_json *json, tensor_getter get, size_t count)
{
    json_t *rows = cli_json_array(json);
    struct mica_tensor_info tensor;
    for (size_t i = 0; i < count && get(cli->model, i, &tensor) == 0; i++)
        cli_json_append(json, rows, cli_json_tensor(json, &tensor));
    return rows;
}

static json_t *json_summary(struct cli *cli, struct cli_json *json, const struct cli_info *info)
{
    json_t *object = cli_json_object(json);
    cli_json_set_integer(json, object, "operations", info->count);
    cli_json_set_integer(json, object, "npu_operations", info->npu_operations);
    cli_json_set_integer(json, object, "nowhere_operations", info->nowhere);
    cli_json_set_integer(json, object, "macs", info->macs);
    cli_json_set_integer(json, object, "npu_macs", info->npu_macs);
    if (cli->executable)
        cli_json_set_integer(json, object, "partitions", mica_executable_partition_count(cli->executable));
    else
        cli_json_set(json, object, "partitions", json_null());
    return object;
}

int cli_info_json(struct cli *cli, const struct cli_info *info)
{
    struct cli_json json = {0};
    json_t *root = cli_json_object(&json);
    cli_json_set_text(&json, root, "model", cli->options.operands.items[0]);
    cli_json_set_text(&json, root, "device", mica_device_name(cli->device));
    cli_json_set(&json, root, "inputs", json_tensors(cli, &json, mica_model_input, mica_model_input_count(cli->model)));
    cli_json_set(&json, root, "outputs",
                 json_tensors(cli, &json, mica_model_output, mica_model_output_count(cli->model)));
    cli_json_set(&json, root, "operations", json_operations(&json, info));
    cli_json_set(&json, root, "summary", json_summary(cli, &json, info));
    if (cli->executable)
        cli_memory_json(cli, &json, root);
    else
        cli_json_set_text(&json, root, "not_compiled", info->not_compiled);
    return cli_json_print(cli, &json, root);
}
