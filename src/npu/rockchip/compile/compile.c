/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "npu/rockchip/compile/plan.h"

/* The caller promised it; a promise is no reason to crash on weights that are not there. */
static int check_supported(const struct mica_chip *chip, const struct mica_partition *partition, struct mica_log *log)
{
    char reason[256];
    for (uint32_t i = 0; i < partition->op_count; i++) {
        int error = rk_supports(chip, partition->graph, partition->ops[i], reason, sizeof(reason));
        if (error)
            return mica_fail(log, error, "operation %u can't be compiled for the NPU: %s", partition->ops[i], reason);
    }
    return partition->op_count ? 0 : mica_fail(log, -EINVAL, "a partition without operations can't be compiled");
}

int rk_compile(const struct mica_chip *chip, const struct mica_partition *partition,
               const struct mica_compile_options *options, struct mica_threads *threads, struct mica_log *log,
               struct mica_program **program)
{
    struct rk_plan plan;
    int error = check_supported(chip, partition, log);
    if (error)
        return error;
    error = rk_plan_init(&plan, chip, partition, options, threads, log);
    if (!error)
        error = rk_lower(&plan);
    if (!error)
        error = rk_memory_place(&plan);
    if (!error)
        error = rk_emit(&plan, program);
    rk_plan_finish(&plan);
    return error;
}
