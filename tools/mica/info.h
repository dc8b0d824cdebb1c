/* SPDX-License-Identifier: MIT */
/* A model operation by operation: what 'mica info' prints. */
#ifndef MICA_CLI_INFO_H
#define MICA_CLI_INFO_H

#include "cli.h"

struct cli_info_operation {
    struct mica_operation_info info;
    int placement; /* as mica_model_placement() returns it */
    int partition; /* -1: none, or nobody knows as the model can't be compiled */
    bool has_way;  /* it is known how the NPU computes it */
    struct mica_way way;
    char reason[256]; /* why it isn't on the NPU */
};

struct cli_info {
    struct cli_info_operation *items;
    size_t count;
    uint64_t npu_operations, nowhere, macs, npu_macs;
    char not_compiled[512]; /* why not; "" where it is */
};

static inline const char *cli_info_place(const struct cli_info_operation *operation)
{
    return operation->placement > 0 ? "NPU" : operation->placement == 0 ? "CPU" : "nowhere";
}

/* Does the chip's compiler tell jobs and time? */
static inline bool cli_info_estimated(const struct cli_info_operation *operation)
{
    return operation->has_way && operation->way.us >= 0;
}

int cli_info_print(struct cli *cli, const struct cli_info *info);
int cli_info_json(struct cli *cli, const struct cli_info *info);

#endif
