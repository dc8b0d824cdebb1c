/* SPDX-License-Identifier: MIT */
#include "npu/vivante/compile/schedule.h"

#include "npu/vivante/compile/memory.h"

static void shape_jobs(struct viv_plan *plan, struct viv_job_memo *memo)
{
    for (uint32_t i = 0; i < plan->job_count; i++)
        if (plan->jobs[i].is_nn)
            viv_job_shape(plan->chip, memo, &plan->jobs[i].nn, false);
}

int viv_schedule(struct viv_plan *plan)
{
    struct viv_job_memo *memo = viv_job_memo_create();
    if (!memo)
        return mica_fail_nomem(plan->log);
    viv_memory_lifetimes(plan);
    int error = plan->options.on_chip ? viv_schedule_split(plan, memo) : 0;
    if (!error && plan->options.on_chip)
        error = viv_schedule_on_chip(plan, memo);
    if (!error)
        error = viv_schedule_layouts(plan, memo);
    if (!error)
        shape_jobs(plan, memo);
    viv_job_memo_destroy(memo);
    return error;
}
