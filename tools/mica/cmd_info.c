/* SPDX-License-Identifier: MIT */
#include "info.h"

#include <stdlib.h>

/* For partitions and memory. A model that can't be compiled is no failure of this command, which says why at its end.
 */
static void try_to_compile(struct cli *cli, struct cli_info *info)
{
    bool failed = !cli->executable && mica_executable_compile(cli->loaded, cli->device, &cli->executable);
    snprintf(info->not_compiled, sizeof(info->not_compiled), "%s", failed ? mica_last_error(cli->context) : "");
    cli_clean(info->not_compiled);
}

static int get_operation(struct cli *cli, size_t index, struct cli_info_operation *operation)
{
    int error = mica_model_operation(cli->model, index, &operation->info);
    if (error)
        return cli_fail_library(cli, error);
    operation->placement =
        mica_model_placement(cli->model, cli->device, index, operation->reason, sizeof(operation->reason));
    operation->partition = cli->executable ? mica_executable_partition_of(cli->executable, index) : -1;
    /* The plan has the last word: one that was saved may be another than today's. */
    if (operation->placement > 0 && cli->executable && operation->partition < 0) {
        operation->placement = 0;
        snprintf(operation->reason, sizeof(operation->reason), "it was left to the CPU when the model was compiled");
    }
    if (operation->placement > 0)
        operation->reason[0] = 0;
    /* A saved executable may have been compiled in another way than today's. */
    operation->has_way =
        operation->placement > 0 && cli->loaded && !mica_model_way(cli->model, cli->device, index, &operation->way);
    return 0;
}

static void count_operation(struct cli_info *info, const struct cli_info_operation *operation)
{
    info->nowhere += operation->placement < 0;
    info->macs += operation->info.macs;
    if (operation->placement <= 0)
        return;
    info->npu_operations++;
    info->npu_macs += operation->info.macs;
}

static int list_operations(struct cli *cli, struct cli_info *info)
{
    info->count = mica_model_operation_count(cli->model);
    info->items = calloc(info->count + 1, sizeof(*info->items));
    if (!info->items)
        return cli_fail_nomem(cli);
    for (size_t i = 0; i < info->count; i++) {
        int failed = get_operation(cli, i, &info->items[i]);
        if (failed)
            return failed;
        count_operation(info, &info->items[i]);
    }
    return 0;
}

int cli_info(struct cli *cli)
{
    struct cli_info info = {0};
    int failed = cli_open_model(cli);
    if (failed)
        return failed;
    try_to_compile(cli, &info);
    failed = list_operations(cli, &info);
    if (!failed)
        failed = (cli->options.json ? cli_info_json : cli_info_print)(cli, &info);
    free(info.items);
    return failed;
}
