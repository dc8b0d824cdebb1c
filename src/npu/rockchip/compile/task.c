/* SPDX-License-Identifier: MIT */
/* Register files to the words of a program. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "npu/rockchip/compile/plan.h"
#include "util/checked.h"

static uint32_t count_uses(const uint64_t *words, uint32_t word_count, const struct rk_address *addresses,
                           uint32_t address_count)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < word_count; i++)
        for (uint32_t a = 0; a < address_count; a++)
            count += rk_word_offset(words[i]) == addresses[a].offset;
    return count;
}

/* An address register's word holds 0: the address is ORed in when memory has one. */
static void find_uses(struct rk_task *task, const struct rk_address *addresses, uint32_t address_count)
{
    for (uint32_t i = 0; i < task->word_count; i++)
        for (uint32_t a = 0; a < address_count; a++) {
            uint64_t word = task->words[i];
            if (rk_word_offset(word) != addresses[a].offset)
                continue;
            task->words[i] = rk_word(rk_word_target(word), addresses[a].offset, 0);
            task->uses[task->use_count++] = (struct rk_use){i, addresses[a].ref, addresses[a].access};
        }
}

int rk_plan_raw_task(struct rk_plan *plan, uint32_t op, const char *unit, uint64_t macs, uint32_t start,
                     const uint64_t *words, uint32_t word_count, const struct rk_address *addresses,
                     uint32_t address_count, struct rk_task **task)
{
    struct rk_task new = {.op = op, .macs = macs, .start = start, .layer = plan->layer_count};
    uint32_t uses = count_uses(words, word_count, addresses, address_count);
    if (uses < address_count)
        return mica_fail(plan->log, -EINVAL, "a register program lacks one of its address registers");
    struct rk_task *tasks = rk_plan_grow(plan->tasks, plan->task_count, &plan->task_capacity, sizeof(*tasks));
    if (!tasks)
        return mica_fail_nomem(plan->log);
    plan->tasks = tasks;
    new.words = mica_new_array(word_count, sizeof(*new.words));
    new.uses = mica_new_array(uses, sizeof(*new.uses));
    if (!new.words || !new.uses) {
        free(new.words);
        free(new.uses);
        return mica_fail_nomem(plan->log);
    }
    memcpy(new.words, words, word_count * sizeof(*words));
    new.word_count = word_count;
    strncpy(new.unit, unit, sizeof(new.unit) - 1);
    find_uses(&new, addresses, address_count);
    plan->layer_count++;
    tasks[plan->task_count] = new;
    if (task)
        *task = &tasks[plan->task_count];
    plan->task_count++;
    return 0;
}

int rk_plan_task(struct rk_plan *plan, uint32_t op, const char *unit, uint64_t macs, enum rk_program_kind kind,
                 uint32_t start, const struct rk_registers *registers, const struct rk_address *addresses,
                 uint32_t address_count, struct rk_task **task)
{
    const struct rk_order *order = rk_program_order(plan->chip->generation, kind);
    uint64_t *words = mica_new_array(order->count, sizeof(*words));
    if (!words)
        return mica_fail_nomem(plan->log);
    for (size_t i = 0; i < order->count; i++) {
        uint16_t offset = order->offsets[i];
        words[i] = rk_word(rk_blocks[rk_block_at(offset)].target, offset, registers->word[offset / 4]);
    }
    int error =
        rk_plan_raw_task(plan, op, unit, macs, start, words, (uint32_t)order->count, addresses, address_count, task);
    free(words);
    return error;
}
