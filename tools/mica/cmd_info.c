/* SPDX-License-Identifier: MIT */
#include "cli.h"
#include "json.h"
#include "memory.h"
#include "table.h"
#include "tensor.h"

#include <inttypes.h>

struct operation {
    struct mica_operation_info info;
    int placement; /* as mica_model_placement() returns it */
    char reason[256];
};

struct summary {
    uint64_t operations, npu_operations, macs, npu_macs;
};

static int get_operation(struct cli *cli, size_t index, struct operation *operation)
{
    operation->reason[0] = 0;
    int error = mica_model_operation(cli->model, index, &operation->info);
    if (error)
        return cli_fail_library(cli, error);
    operation->placement =
        mica_model_placement(cli->model, cli->device, index, operation->reason, sizeof(operation->reason));
    /* A compiled one has its plan already. */
    if (operation->placement > 0 && !cli->loaded && mica_executable_partition_of(cli->executable, index) < 0) {
        operation->placement = 0;
        snprintf(operation->reason, sizeof(operation->reason), "it was left to the CPU when the model was compiled");
    }
    if (operation->placement > 0)
        operation->reason[0] = 0;
    return 0;
}

static void count_operation(struct summary *summary, const struct operation *operation)
{
    summary->operations++;
    summary->macs += operation->info.macs;
    if (operation->placement <= 0)
        return;
    summary->npu_operations++;
    summary->npu_macs += operation->info.macs;
}

static const char *place_name(int placement)
{
    return placement > 0 ? "NPU" : placement == 0 ? "CPU" : "nowhere";
}

static int json_operations(struct cli *cli, struct cli_json *json, json_t *rows, struct summary *summary)
{
    struct operation operation;
    for (size_t i = 0; i < mica_model_operation_count(cli->model); i++) {
        int failed = get_operation(cli, i, &operation);
        if (failed)
            return failed;
        count_operation(summary, &operation);
        json_t *row = cli_json_object(json), *shape = cli_json_array(json);
        for (uint32_t k = 0; k < operation.info.rank; k++)
            cli_json_append(json, shape, json_integer(operation.info.dims[k]));
        cli_json_set_integer(json, row, "index", i);
        cli_json_set_text(json, row, "type", operation.info.type);
        cli_json_set_text(json, row, "output", operation.info.output);
        cli_json_set(json, row, "shape", shape);
        cli_json_set_integer(json, row, "macs", operation.info.macs);
        cli_json_set_text(json, row, "runs_on", place_name(operation.placement));
        cli_json_set_text(json, row, "reason", operation.reason);
        cli_json_append(json, rows, row);
    }
    return 0;
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

static json_t *json_summary(struct cli_json *json, const struct summary *summary)
{
    json_t *object = cli_json_object(json);
    cli_json_set_integer(json, object, "operations", summary->operations);
    cli_json_set_integer(json, object, "npu_operations", summary->npu_operations);
    cli_json_set_integer(json, object, "macs", summary->macs);
    cli_json_set_integer(json, object, "npu_macs", summary->npu_macs);
    return object;
}

/* For what it takes on the device. A model that can't be compiled is no failure of this command. */
static bool try_to_compile(struct cli *cli)
{
    if (!cli->executable && mica_executable_compile(cli->loaded, cli->device, &cli->executable))
        cli_note(cli, "the model can't be compiled: %s", mica_last_error(cli->context));
    return cli->executable != NULL;
}

static int print_json(struct cli *cli)
{
    struct cli_json json = {0};
    struct summary summary = {0};
    json_t *root = cli_json_object(&json), *rows = cli_json_array(&json);
    int failed = json_operations(cli, &json, rows, &summary);
    cli_json_set_text(&json, root, "model", cli->options.operands.items[0]);
    cli_json_set_text(&json, root, "device", mica_device_name(cli->device));
    cli_json_set(&json, root, "inputs", json_tensors(cli, &json, mica_model_input, mica_model_input_count(cli->model)));
    cli_json_set(&json, root, "outputs",
                 json_tensors(cli, &json, mica_model_output, mica_model_output_count(cli->model)));
    cli_json_set(&json, root, "operations", rows);
    cli_json_set(&json, root, "summary", json_summary(&json, &summary));
    if (try_to_compile(cli))
        cli_memory_json(cli, &json, root);
    if (!failed)
        return cli_json_print(cli, &json, root);
    json_decref(root);
    return failed;
}

static void add_tensors(struct cli *cli, struct cli_table *table, const char *kind, tensor_getter get, size_t count)
{
    struct mica_tensor_info tensor;
    char shape[CLI_SHAPE_SIZE];
    for (size_t i = 0; i < count && get(cli->model, i, &tensor) == 0; i++) {
        cli_shape_text(&tensor, shape);
        cli_table_add(table, "%s %zu", kind, i);
        cli_table_add(table, "%s", tensor.name);
        cli_table_add(table, "%s", shape);
        if (tensor.scale != 0)
            cli_table_add(table, "scale %.9g, zero point %d", (double)tensor.scale, (int)tensor.zero_point);
        else
            cli_table_add(table, "not quantized");
    }
}

static int print_tensors(struct cli *cli)
{
    static const char *const headers[] = {"tensor", "name", "type", "quantization"};
    struct cli_table table;
    cli_table_init(&table, headers, 4);
    add_tensors(cli, &table, "input", mica_model_input, mica_model_input_count(cli->model));
    add_tensors(cli, &table, "output", mica_model_output, mica_model_output_count(cli->model));
    bool printed = cli_table_print(&table, cli->out);
    cli_table_finish(&table);
    return printed ? 0 : cli_fail_nomem(cli);
}

static int add_operations(struct cli *cli, struct cli_table *table, struct summary *summary)
{
    struct operation operation;
    char shape[CLI_SHAPE_SIZE];
    for (size_t i = 0; i < mica_model_operation_count(cli->model); i++) {
        int failed = get_operation(cli, i, &operation);
        if (failed)
            return failed;
        count_operation(summary, &operation);
        cli_dims_text(operation.info.dims, operation.info.rank, shape);
        cli_table_add(table, "%zu", i);
        cli_table_add(table, "%s", operation.info.type);
        cli_table_add(table, "%s", shape);
        cli_table_add(table, "%.2f", (double)operation.info.macs / 1e6);
        cli_table_add(table, "%s", place_name(operation.placement));
        cli_table_add(table, "%s", operation.reason);
    }
    return 0;
}

static int print_operations(struct cli *cli, struct summary *summary)
{
    static const char *const headers[] = {">#", "operation", "output", ">MMACs", "runs on", "why not on the NPU"};
    struct cli_table table;
    cli_table_init(&table, headers, 6);
    int failed = add_operations(cli, &table, summary);
    if (!failed && !cli_table_print(&table, cli->out))
        failed = cli_fail_nomem(cli);
    cli_table_finish(&table);
    return failed;
}

static int print_tables(struct cli *cli)
{
    struct summary summary = {0};
    fprintf(cli->out, "device: %s\n\n", mica_device_name(cli->device));
    int failed = print_tensors(cli);
    if (failed)
        return failed;
    fputc('\n', cli->out);
    failed = print_operations(cli, &summary);
    if (failed)
        return failed;
    fprintf(cli->out, "\n%" PRIu64 " of %" PRIu64 " operations", summary.npu_operations, summary.operations);
    if (summary.macs)
        fprintf(cli->out, ", %.1f %% of %.2f MMACs", 100.0 * (double)summary.npu_macs / (double)summary.macs,
                (double)summary.macs / 1e6);
    fputs(" on the NPU\n", cli->out);
    return try_to_compile(cli) ? cli_memory_print(cli) : 0;
}

int cli_info(struct cli *cli)
{
    int failed = cli_open_model(cli);
    if (failed)
        return failed;
    return cli->options.json ? print_json(cli) : print_tables(cli);
}
