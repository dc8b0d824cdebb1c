/* SPDX-License-Identifier: MIT */
/* What memory.c and emit.c agree on. */
#ifndef MICA_ROCKCHIP_COMPILE_EMIT_H
#define MICA_ROCKCHIP_COMPILE_EMIT_H

#include "npu/rockchip/compile/plan.h"

#define RK_ALIGNMENT 64u /* of everything that has an address: a burst, and what programs begin at (section 3) */

#define RK_MAX_CORES 8u /* more than any chip has */

/* Buffers while placing; those that stay empty are left out of the program. */
enum { RK_BUFFER_COEFFICIENTS, RK_BUFFER_PROGRAMS, RK_BUFFER_SCRATCH, RK_BUFFER_EXTERNAL };

/* What a task takes by the timing model, in microseconds at the chip's clock, without its dispatch. */
double rk_task_us(const struct rk_plan *plan, const struct rk_task *task);

/* One submission as a list of tasks: schedule.c. */
struct rk_batch {
    uint32_t first, count; /* in rk_schedule.order */
    uint32_t core, stage;
};

struct rk_schedule {
    uint32_t *order; /* task indices */
    struct rk_batch *batches;
    uint32_t batch_count;
};

/* Cuts the tasks into submissions. */
int rk_schedule_make(struct rk_plan *plan, struct rk_schedule *schedule);
void rk_schedule_finish(struct rk_schedule *schedule);

#endif
