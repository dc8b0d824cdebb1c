/* SPDX-License-Identifier: MIT */
#include "info.h"
#include "memory.h"
#include "table.h"
#include "tensor.h"

#include <inttypes.h>
#include <string.h>

typedef int (*tensor_getter)(const mica_model *model, size_t index, struct mica_tensor_info *info);

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

/* ---- operations --------------------------------------------------------- */

/* Which columns have something to say: without an NPU, and for a saved executable, not all have. */
struct columns {
    bool ways, estimates;
};

static struct columns columns_of(const struct cli_info *info)
{
    struct columns columns = {0};
    for (size_t i = 0; i < info->count; i++) {
        columns.ways |= info->items[i].has_way;
        columns.estimates |= cli_info_estimated(&info->items[i]);
    }
    return columns;
}

/* How the NPU does it, or why it doesn't. */
static void add_way(struct cli_table *table, const struct cli_info_operation *operation, struct columns columns)
{
    const struct mica_way *way = &operation->way;
    if (columns.estimates && cli_info_estimated(operation)) {
        cli_table_add(table, "%u", (unsigned)way->jobs);
        cli_table_add(table, "%.1f", way->us);
    } else if (columns.estimates) {
        cli_table_add(table, "%s", "");
        cli_table_add(table, "%s", "");
    }
    if (columns.ways && operation->has_way)
        cli_table_add(table, "%u", (unsigned)way->off);
    else if (columns.ways)
        cli_table_add(table, "%s", "");
    const char *text = operation->has_way ? way->text : operation->reason;
    /* Behind a semicolon are cases and conditions of the operation in general: in JSON they are all there. */
    cli_table_add(table, "%.*s", (int)(operation->has_way ? strcspn(text, ";") : strlen(text)), text);
}

static void add_operations(struct cli_table *table, const struct cli_info *info, struct columns columns)
{
    char shape[CLI_SHAPE_SIZE];
    for (size_t i = 0; i < info->count; i++) {
        const struct cli_info_operation *operation = &info->items[i];
        cli_dims_text(operation->info.dims, operation->info.rank, shape);
        cli_table_add(table, "%zu", i);
        cli_table_add(table, "%s", operation->info.type);
        cli_table_add(table, "%s", shape);
        cli_table_add(table, "%.2f", (double)operation->info.macs / 1e6);
        cli_table_add(table, "%s", cli_info_place(operation));
        add_way(table, operation, columns);
    }
}

static int print_operations(struct cli *cli, const struct cli_info *info)
{
    const char *headers[9] = {">#", "operation", "output", ">MMACs", "runs on"};
    size_t count = 5;
    struct columns columns = columns_of(info);
    struct cli_table table;
    if (columns.estimates) {
        headers[count++] = ">jobs";
        headers[count++] = ">us";
    }
    if (columns.ways)
        headers[count++] = ">off";
    headers[count++] = columns.ways ? "how, or why not on the NPU" : "why not on the NPU";
    cli_table_init(&table, headers, count);
    add_operations(&table, info, columns);
    bool printed = cli_table_print(&table, cli->out);
    cli_table_finish(&table);
    return printed ? 0 : cli_fail_nomem(cli);
}

static int print_summary(struct cli *cli, const struct cli_info *info)
{
    fprintf(cli->out, "\n%" PRIu64 " of %zu operations", info->npu_operations, info->count);
    if (info->macs)
        fprintf(cli->out, ", %.1f %% of %.2f MMACs", 100.0 * (double)info->npu_macs / (double)info->macs,
                (double)info->macs / 1e6);
    fputs(" on the NPU", cli->out);
    size_t partitions = cli->executable ? mica_executable_partition_count(cli->executable) : 0;
    if (partitions)
        fprintf(cli->out, " in %zu partition%s", partitions, partitions == 1 ? "" : "s");
    fputc('\n', cli->out);
    if (info->nowhere)
        fprintf(cli->out,
                "%" PRIu64 " operation%s can run nowhere here: 'mica run' refuses the model. With the delegate they "
                "are the host's.\n",
                info->nowhere, info->nowhere == 1 ? "" : "s");
    if (cli->executable)
        return cli_memory_print(cli);
    fprintf(cli->out, "not compiled: %s\n", info->not_compiled);
    return 0;
}

int cli_info_print(struct cli *cli, const struct cli_info *info)
{
    fprintf(cli->out, "device: %s\n\n", mica_device_name(cli->device));
    int failed = print_tensors(cli);
    if (!failed)
        fputc('\n', cli->out);
    if (!failed)
        failed = print_operations(cli, info);
    return failed ? failed : print_summary(cli, info);
}
