/* SPDX-License-Identifier: MIT */
/*
 * Any function of one 8-bit value, exactly, through the DPU's look-up tables (specification, section 9). A code x has
 * index 64 x + 16; entries stand every 32 units, so that the index lies in the middle between two entries, which both
 * hold the result: however the hardware rounds index or interpolation, it can't miss.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "npu/rockchip/compile/dpu_task.h"
#include "util/checked.h"

#define ENTRIES 513u
#define ENTRIES_A_CODE 2
#define TABLE_LE 0u /* negative indices */
#define TABLE_LO 1u

/* Entry `i` of a table: the value at index 32 i of LO, 32 i - 16384 of LE; codes beyond the type's repeat its ends. */
static int8_t entry(const int8_t table[256], uint32_t which, uint32_t i)
{
    int32_t code = (int32_t)i / ENTRIES_A_CODE - (which == TABLE_LE ? (int32_t)(ENTRIES - 1) / ENTRIES_A_CODE : 0);
    code = code < INT8_MIN ? INT8_MIN : code > INT8_MAX ? INT8_MAX : code;
    return table[code + 128];
}

static uint64_t word_of(enum rk_field_id any, enum rk_generation generation, const struct rk_registers *registers)
{
    uint16_t offset = rk_fields[any].at[generation].offset;
    return rk_word(rk_blocks[RK_DPU].target, offset, registers->word[offset / 4]);
}

/* The words that write one table; returns how many. */
static uint32_t write_table(enum rk_generation generation, const int8_t table[256], uint32_t which, uint64_t *words)
{
    struct rk_registers registers = {0};
    uint32_t count = 0;
    rk_set(&registers, generation, RK_DPU_LUT_ACCESS_CFG_LUT_ACCESS_TYPE, 1);
    rk_set(&registers, generation, RK_DPU_LUT_ACCESS_CFG_LUT_TABLE_ID, which);
    words[count++] = word_of(RK_DPU_LUT_ACCESS_CFG_LUT_ACCESS_TYPE, generation, &registers);
    for (uint32_t i = 0; i < ENTRIES; i++) {
        int32_t value = entry(table, which, i);
        rk_set(&registers, generation, RK_DPU_LUT_ACCESS_DATA_LUT_ACCESS_DATA, (uint32_t)value);
        rk_set(&registers, generation, RK_DPU_LUT_ACCESS_DATA_LUT_ACCESS_SIGN, value < 0 ? UINT16_MAX : 0);
        words[count++] = word_of(RK_DPU_LUT_ACCESS_DATA_LUT_ACCESS_DATA, generation, &registers);
    }
    return count;
}

/* Appends words to the newest task. */
static int extend(struct rk_plan *plan, const uint64_t *words, uint32_t count)
{
    struct rk_task *task = &plan->tasks[plan->task_count - 1];
    uint64_t *all = realloc(task->words, ((size_t)task->word_count + count) * sizeof(*all));
    if (!all)
        return mica_fail_nomem(plan->log);
    memcpy(all + task->word_count, words, count * sizeof(*words));
    task->words = all;
    task->word_count += count;
    return 0;
}

/* A program that does nothing but load must do something: it copies one atom to where nobody reads it. */
static int load_task(struct rk_plan *plan, uint32_t op, struct rk_cube in, const uint64_t *words, uint32_t count)
{
    struct rk_cube scratch;
    struct rk_shape one = {1, 1, plan->chip->atom};
    int error = rk_plan_cube(plan, one, &scratch);
    if (error)
        return error;
    in.shape = one;
    error = rk_lower_copy(plan, op, in, scratch);
    if (!error) {
        memcpy(plan->tasks[plan->task_count - 1].unit, "LUT", sizeof("LUT"));
        error = extend(plan, words, count);
    }
    return error;
}

/* RK356x loads the tables in two tasks (specification, section 9). */
static int load(struct rk_plan *plan, uint32_t op, struct rk_cube in, const int8_t table[256])
{
    uint64_t *words = mica_new_array(2 * (ENTRIES + 1), sizeof(*words));
    if (!words)
        return mica_fail_nomem(plan->log);
    enum rk_generation generation = plan->chip->generation;
    uint32_t count = write_table(generation, table, TABLE_LE, words);
    count += write_table(generation, table, TABLE_LO, words + count);
    uint32_t pieces = generation == RK_GENERATION_RK356X ? 2 : 1;
    int error = 0;
    for (uint32_t i = 0; !error && i < pieces; i++) {
        error = load_task(plan, op, in, words + count / pieces * i, count / pieces);
        if (!error)
            plan->tasks[plan->task_count - 1].follows = i > 0;
    }
    free(words);
    return error;
}

/* Does a table only cut off what is below `*min` or above `*max`? Then the stages do it without a table. */
static bool only_clamps(const int8_t table[256], int32_t *min, int32_t *max)
{
    *min = table[0];
    *max = table[255];
    for (int32_t i = 0; i < 256; i++) {
        int32_t code = i - 128, clamped = code < *min ? *min : code > *max ? *max : code;
        if (table[i] != clamped)
            return false;
    }
    return *min < *max;
}

static int lower_clamp(struct rk_plan *plan, struct rk_dpu_task *task, int32_t min, int32_t max)
{
    task->stages.relu = min > INT8_MIN || max < INT8_MAX;
    task->stages.a_offset = task->stages.relu ? -min : 0;
    task->stages.out_offset = -task->stages.a_offset;
    task->stages.relu_max = max < INT8_MAX ? max - min : RK_NO_RELU_MAX;
    return rk_dpu_lower(plan, task);
}

/*
 * The tables are loaded every time: they survive from task to task, but between two jobs of ours the device may run
 * somebody else's.
 */
int rk_lower_table(struct rk_plan *plan, uint32_t op, struct rk_cube in, struct rk_cube out, const int8_t table[256])
{
    struct rk_dpu_task task = {.op = op, .unit = "EW", .a = in, .b = in, .out = out, .stages = rk_dpu_copy()};
    int32_t min, max;
    if (only_clamps(table, &min, &max))
        return lower_clamp(plan, &task, min, max);
    int error = load(plan, op, in, table);
    uint32_t first = plan->task_count;
    task.stages.table = true;
    if (!error)
        error = rk_dpu_lower(plan, &task);
    for (uint32_t i = first; !error && i < plan->task_count; i++)
        plan->tasks[i].follows = true;
    return error;
}
