/* SPDX-License-Identifier: MIT */
/*
 * Tasks to submissions. One inference on one core: all tasks in order, in as few submissions as the kernel's limits
 * allow. Spread over cores: layer by layer, the pieces of a layer on different cores; layers of one piece stay
 * together.
 */
#include "npu/rockchip/compile/emit.h"

#include <stdlib.h>

#include "util/checked.h"

#define MAX_TASKS 16384u /* two words each; 32768 words are what a submission's stream may have */
/*
 * The kernel resets a core whose job runs for 500 ms (specification, section 2), at the slowest clock that it may run
 * at, and the model is a lower bound: a fifth of that.
 */
#define MAX_BATCH_US 100000.0

static double us_of(const struct rk_plan *plan, uint64_t compute_cycles, uint64_t bytes)
{
    double mhz = plan->chip->clock_mhz, slowest = mhz < 200 ? mhz : 200;
    double compute = (double)compute_cycles / slowest, memory = (double)bytes / plan->chip->bytes_per_ns / 1000.0;
    return compute > memory ? compute : memory;
}

/* What element-wise tasks move at most: all of every storage that they touch. */
static uint64_t touched_bytes(const struct rk_plan *plan, const struct rk_task *task)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < task->use_count; i++)
        bytes += plan->storages[task->uses[i].ref.storage].size;
    return bytes;
}

double rk_task_us(const struct rk_plan *plan, const struct rk_task *task)
{
    if (task->compute_cycles || task->bytes)
        return us_of(plan, task->compute_cycles, task->bytes);
    uint64_t bytes = touched_bytes(plan, task);
    return us_of(plan, bytes / plan->chip->atom, bytes);
}

/* End of the run of tasks from order[first] on that must stay together. */
static uint32_t chain_end(const struct rk_plan *plan, const uint32_t *order, uint32_t first, uint32_t end)
{
    uint32_t next = first + 1;
    while (next < end && plan->tasks[order[next]].follows)
        next++;
    return next;
}

/* Batches of order[first, end), all on one core; *stage rises with each. */
static void cut(const struct rk_plan *plan, struct rk_schedule *schedule, uint32_t first, uint32_t end, uint32_t core,
                uint32_t *stage)
{
    double us = 0;
    struct rk_batch *batch = NULL;
    for (uint32_t next; first < end; first = next) {
        double more = 0;
        next = chain_end(plan, schedule->order, first, end);
        for (uint32_t i = first; i < next; i++)
            more += rk_task_us(plan, &plan->tasks[schedule->order[i]]);
        if (!batch || us + more > MAX_BATCH_US || batch->count + (next - first) > MAX_TASKS) {
            batch = &schedule->batches[schedule->batch_count++];
            *batch = (struct rk_batch){.first = first, .core = core, .stage = (*stage)++};
            us = 0;
        }
        batch->count += next - first;
        us += more;
    }
}

/* ---- several cores ------------------------------------------------------------ */

/* Chains of the layer's tasks go, in order, to the core that has least to do. Appends to schedule->order. */
static uint32_t spread_layer(const struct rk_plan *plan, struct rk_schedule *schedule, uint32_t first, uint32_t end,
                             uint32_t cores, uint32_t *chain_core, uint32_t *stage)
{
    double load[RK_MAX_CORES] = {0};
    uint32_t used = 0, at = first, last_stage = *stage;
    for (uint32_t task = first; task < end; task++) {
        uint32_t best = 0;
        for (uint32_t core = 1; core < cores; core++)
            if (load[core] < load[best])
                best = core;
        chain_core[task] = plan->tasks[task].follows && task > first ? chain_core[task - 1] : best;
        load[chain_core[task]] += rk_task_us(plan, &plan->tasks[task]) + plan->chip->task_us;
        used |= 1u << chain_core[task];
    }
    for (uint32_t core = 0; core < cores; core++) {
        uint32_t begin = at, core_stage = *stage;
        for (uint32_t task = first; task < end; task++)
            if (chain_core[task] == core)
                schedule->order[at++] = task;
        if (used >> core & 1)
            cut(plan, schedule, begin, at, core, &core_stage);
        if (core_stage > last_stage)
            last_stage = core_stage;
    }
    *stage = last_stage;
    return at;
}

static int by_stage(const void *a, const void *b)
{
    const struct rk_batch *x = a, *y = b;
    if (x->stage != y->stage)
        return x->stage < y->stage ? -1 : 1;
    return (x->core > y->core) - (x->core < y->core);
}

static uint32_t layer_end(const struct rk_plan *plan, uint32_t first)
{
    uint32_t end = first + 1;
    while (end < plan->task_count && plan->tasks[end].layer == plan->tasks[first].layer)
        end++;
    return end;
}

static bool is_chain(const struct rk_plan *plan, uint32_t first, uint32_t end)
{
    for (uint32_t i = first + 1; i < end; i++)
        if (!plan->tasks[i].follows)
            return false;
    return true;
}

static int spread(struct rk_plan *plan, struct rk_schedule *schedule, uint32_t cores)
{
    uint32_t *chain_core = mica_new_array(plan->task_count, sizeof(*chain_core)), stage = 0;
    if (!chain_core)
        return mica_fail_nomem(plan->log);
    for (uint32_t first = 0, end; first < plan->task_count; first = end) {
        end = layer_end(plan, first);
        if (!is_chain(plan, first, end)) {
            spread_layer(plan, schedule, first, end, cores, chain_core, &stage);
            continue;
        }
        for (uint32_t next = end; next < plan->task_count; end = next) {
            next = layer_end(plan, end);
            if (!is_chain(plan, end, next))
                break;
        }
        cut(plan, schedule, first, end, 0, &stage);
    }
    free(chain_core);
    qsort(schedule->batches, schedule->batch_count, sizeof(*schedule->batches), by_stage);
    return 0;
}

int rk_schedule_make(struct rk_plan *plan, struct rk_schedule *schedule)
{
    *schedule = (struct rk_schedule){0};
    schedule->order = mica_new_array(plan->task_count, sizeof(*schedule->order));
    schedule->batches = mica_new_array(plan->task_count, sizeof(*schedule->batches));
    if (!schedule->order || !schedule->batches)
        return mica_fail_nomem(plan->log);
    for (uint32_t i = 0; i < plan->task_count; i++)
        schedule->order[i] = i;
    uint32_t cores = plan->options.split < plan->chip->cores ? plan->options.split : plan->chip->cores, stage = 0;
    if (cores > 1)
        return spread(plan, schedule, cores < RK_MAX_CORES ? cores : RK_MAX_CORES);
    cut(plan, schedule, 0, plan->task_count, 0, &stage);
    return 0;
}

void rk_schedule_finish(struct rk_schedule *schedule)
{
    free(schedule->order);
    free(schedule->batches);
}
