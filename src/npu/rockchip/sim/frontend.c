/* SPDX-License-Identifier: MIT */
/* The program controller: fetches each task's register program and starts the blocks (specification, sections 2, 3). */
#include <errno.h>
#include <string.h>

#include "npu/rockchip/hw/registers.h"
#include "npu/rockchip/sim/job.h"
#include "npu/rockchip/sim/sim.h"

#define PROGRAM_ALIGNMENT 16u  /* PC.BASE_ADDRESS */
#define POINTER_PER_TASK 0x0eu /* what the kernel writes into the pointer registers of CNA and CORE */
#define AMOUNT_LIMIT 0x10000u  /* of PC.REGISTER_AMOUNTS + 1 */
#define LUT_ACCESS RK_DPU_LUT_ACCESS_CFG_LUT_ADDR
#define LUT_DATA RK_DPU_LUT_ACCESS_DATA_LUT_ACCESS_DATA

/* One register program on its way. */
struct program {
    struct rk_sim *sim;
    uint32_t address, count, position; /* words */
    uint64_t word;
    bool barrier, started;
    double dispatch_us;
    struct mica_job_report *report;
};

static int illegal(const struct program *program, const char *why)
{
    return mica_fail(program->sim->log, -EIO, "register program 0x%08x, word %u (0x%016llx): %s", program->address,
                     program->position, (unsigned long long)program->word, why);
}

static uint16_t offset_of(const struct rk_sim *sim, enum rk_field_id field)
{
    return rk_fields[field].at[sim->chip->generation].offset;
}

/* ---- registers ------------------------------------------------------------ */

/* The pointer register of a block; all blocks have the same. */
static void set_pointer(struct rk_sim *sim, enum rk_block block, uint32_t value)
{
    enum rk_generation generation = sim->chip->generation;
    struct rk_pointer *pointer = &sim->pointer[block];
    pointer->write_flips = rk_field_extract(value, generation, RK_DPU_S_POINTER_POINTER_PP_EN);
    pointer->execute_flips = rk_field_extract(value, generation, RK_DPU_S_POINTER_EXECUTER_PP_EN);
    if (rk_field_extract(value, generation, RK_DPU_S_POINTER_POINTER_PP_CLEAR))
        pointer->write = 0;
    else if (!pointer->write_flips)
        pointer->write = (uint8_t)rk_field_extract(value, generation, RK_DPU_S_POINTER_POINTER);
    if (rk_field_extract(value, generation, RK_DPU_S_POINTER_EXECUTER_PP_CLEAR))
        pointer->execute = 0;
}

static int access_lut(struct program *program, uint32_t value)
{
    struct rk_lut *lut = &program->sim->lut;
    enum rk_generation generation = program->sim->chip->generation;
    lut->writing = rk_field_extract(value, generation, RK_DPU_LUT_ACCESS_CFG_LUT_ACCESS_TYPE);
    lut->id = rk_field_extract(value, generation, RK_DPU_LUT_ACCESS_CFG_LUT_TABLE_ID);
    lut->next = rk_field_extract(value, generation, LUT_ACCESS);
    return lut->next < RK_LUT_ENTRIES ? 0 : illegal(program, "a look-up table has 513 entries");
}

static int write_lut(struct program *program, uint32_t value)
{
    struct rk_lut *lut = &program->sim->lut;
    if (!lut->writing)
        return 0;
    if (lut->next >= RK_LUT_ENTRIES)
        return illegal(program, "a look-up table has 513 entries");
    lut->table[lut->id][lut->next++] = (int16_t)rk_field_extract(value, program->sim->chip->generation, LUT_DATA);
    lut->loaded[lut->id] = lut->loaded[lut->id] || lut->next == RK_LUT_ENTRIES;
    return 0;
}

/* Offsets in a block that programs have no business at: S_STATUS and OPERATION_ENABLE stand around S_POINTER. */
static bool is_status_or_enable(const struct rk_sim *sim, enum rk_block block, uint16_t offset)
{
    uint16_t pointer = (uint16_t)(offset_of(sim, RK_DPU_S_POINTER_POINTER) - rk_blocks[RK_DPU].first);
    uint16_t inside = (uint16_t)(offset - rk_blocks[block].first);
    return inside + 4 == pointer || inside == pointer + 4;
}

static int write_pointer(struct program *program, enum rk_block block, uint32_t value)
{
    bool kernels_own = program->sim->chip->generation == RK_GENERATION_RK3588 && (block == RK_CNA || block == RK_CORE);
    if (kernels_own)
        return illegal(program, "the kernel writes this pointer, with the core's number: a core without it hangs");
    set_pointer(program->sim, block, value);
    return 0;
}

static int write_block(struct program *program, enum rk_block block, uint16_t offset, uint32_t value)
{
    struct rk_sim *sim = program->sim;
    if (!rk_register_of(sim->chip->generation, offset))
        return illegal(program, "this chip has no such register");
    if (value & ~sim->known[offset / 4])
        return illegal(program, "reserved bits are set");
    if (is_status_or_enable(sim, block, offset))
        return illegal(program, "programs can't write status and enable registers");
    if (offset - rk_blocks[block].first == offset_of(sim, RK_DPU_S_POINTER_POINTER) - rk_blocks[RK_DPU].first)
        return write_pointer(program, block, value);
    sim->group[sim->pointer[block].write].word[offset / 4] = value;
    if (offset == offset_of(sim, LUT_ACCESS))
        return access_lut(program, value);
    return offset == offset_of(sim, LUT_DATA) ? write_lut(program, value) : 0;
}

static int write_register(struct program *program)
{
    uint16_t offset = rk_word_offset(program->word);
    enum rk_block block = rk_block_of_target(rk_word_target(program->word));
    program->barrier = false;
    if (block == RK_BLOCK_COUNT)
        return illegal(program, "no block has this target");
    if (rk_block_at(offset) != block || offset % 4 != 0)
        return illegal(program, "the register isn't one of the target's block");
    if (block != RK_PC)
        return write_block(program, block, offset, rk_word_value(program->word));
    /* The link to the next program: never followed, as the kernel starts each task by itself. */
    if (offset == offset_of(program->sim, RK_PC_BASE_ADDRESS_PC_SOURCE_ADDR) ||
        offset == offset_of(program->sim, RK_PC_REGISTER_AMOUNTS_PC_DATA_AMOUNT))
        return 0;
    return illegal(program, "programs can write PC's link registers alone");
}

/* ---- starting -------------------------------------------------------------- */

static bool works_together(const struct rk_sim *sim, uint32_t mask)
{
    bool csc = sim->chip->generation == RK_GENERATION_RK356X;
    uint32_t convolution = RK_START_CNA | RK_START_CORE | RK_START_DPU | (csc ? RK_START_CSC : 0);
    return mask == convolution || mask == (convolution | RK_START_DPU_RDMA) ||
           mask == (RK_START_DPU | RK_START_DPU_RDMA) || mask == (RK_START_PPU | RK_START_PPU_RDMA);
}

static bool takes_part(enum rk_block block, uint32_t mask)
{
    return rk_blocks[block].start_bit >= 0 && mask >> rk_blocks[block].start_bit & 1;
}

/* What each block executes: the registers of its group. */
static int gather(struct program *program, uint32_t mask)
{
    struct rk_sim *sim = program->sim;
    memset(&sim->registers, 0, sizeof sim->registers);
    for (unsigned block = 0; block < RK_BLOCK_COUNT; block++) {
        if (!takes_part((enum rk_block)block, mask))
            continue;
        const struct rk_pointer *pointer = &sim->pointer[block];
        if (pointer->write != pointer->execute)
            return mica_fail(sim->log, -EIO,
                             "register program 0x%08x: %s would execute register group %u, but the program wrote group "
                             "%u, and the task would hang",
                             program->address, rk_blocks[block].name, pointer->execute, pointer->write);
        size_t first = rk_blocks[block].first / 4, end = rk_blocks[block].end / 4;
        memcpy(&sim->registers.word[first], &sim->group[pointer->execute].word[first], (end - first) * 4);
    }
    return 0;
}

static void flip_groups(struct rk_sim *sim, uint32_t mask)
{
    for (unsigned block = 0; block < RK_BLOCK_COUNT; block++) {
        struct rk_pointer *pointer = &sim->pointer[block];
        if (!takes_part((enum rk_block)block, mask))
            continue;
        pointer->write ^= pointer->write_flips;
        pointer->execute ^= pointer->execute_flips;
    }
}

/* Runs on the simulator, but no interrupt that mainline waits for comes of it (specification, section 2.1). */
static void note_pool(struct program *program)
{
    struct rk_sim *sim = program->sim;
    if (sim->pool_noted || sim->chip->generation != RK_GENERATION_RK3588)
        return;
    sim->pool_noted = true;
    mica_log(sim->log, MICA_LOG_WARNING,
             "register program 0x%08x starts the pooling unit alone: mainline's kernel masks its interrupt and would "
             "time out",
             program->address);
}

static int start(struct program *program)
{
    struct rk_sim *sim = program->sim;
    uint32_t mask = rk_word_value(program->word);
    if (rk_word_offset(program->word) != RK_START_OFFSET)
        return illegal(program, "a start has offset 8");
    if (!program->barrier)
        return illegal(program, "a start without a barrier before it may overtake register writes");
    if (!works_together(sim, mask))
        return illegal(program, "these blocks can't work together");
    int result = gather(program, mask);
    if (result)
        return result;
    struct rk_task task = {
        .sim = sim,
        .registers = &sim->registers,
        .generation = sim->chip->generation,
        .program = program->address,
        .start = mask,
        .dispatch_us = program->dispatch_us,
    };
    if (mask & RK_START_PPU)
        note_pool(program);
    result = rk_task_run(&task, program->report);
    flip_groups(sim, mask);
    program->started = true;
    return result;
}

/* ---- words and tasks -------------------------------------------------------- */

static int step(struct program *program)
{
    if (program->word == 0)
        return 0;
    if (program->started)
        return illegal(program, "nothing can follow the start");
    if (program->word == RK_WORD_BARRIER) {
        program->barrier = true;
        return 0;
    }
    return rk_word_target(program->word) == RK_TARGET_START ? start(program) : write_register(program);
}

static int check_program(const struct program *program)
{
    uint32_t words = program->count;
    uint64_t limit = (uint64_t)AMOUNT_LIMIT << program->sim->chip->count_shift;
    const char *why = NULL;
    if (words == 0 || words > limit)
        why = "its count of words doesn't go into PC.REGISTER_AMOUNTS";
    else if (program->address % PROGRAM_ALIGNMENT != 0)
        why = "it must begin at a multiple of 16 bytes";
    return why ? mica_fail(program->sim->log, -EIO, "register program 0x%08x of %u words: %s", program->address, words,
                           why)
               : 0;
}

static int run_program(struct program *program)
{
    struct rk_sim *sim = program->sim;
    int result = check_program(program);
    if (result)
        return result;
    const uint8_t *words = rk_sim_at(sim, program->address, (uint64_t)program->count * sizeof program->word,
                                     MICA_ACCESS_READ, "register program");
    if (!words)
        return -EFAULT;
    if (sim->chip->generation == RK_GENERATION_RK3588) {
        set_pointer(sim, RK_CNA, POINTER_PER_TASK);
        set_pointer(sim, RK_CORE, POINTER_PER_TASK);
    }
    for (; program->position < program->count && !result; program->position++) {
        memcpy(&program->word, words + (size_t)program->position * sizeof program->word, sizeof program->word);
        result = step(program);
    }
    if (!result && !program->started)
        result =
            mica_fail(sim->log, -EIO, "register program 0x%08x starts nothing: the task would hang", program->address);
    return result;
}

/* Nothing lasts: missing set-up shows. */
static void forget(struct rk_sim *sim)
{
    memset(sim->group, 0, sizeof sim->group);
    memset(sim->pointer, 0, sizeof sim->pointer);
    sim->lut = (struct rk_lut){0};
    sim->cbuf = (struct rk_cbuf){0};
    sim->cycles_left = sim->cycle_limit;
}

int rk_sim_run(void *opaque, const uint32_t *stream, size_t words, struct mica_job_report *reports, size_t capacity,
               size_t *count)
{
    struct rk_sim *sim = opaque;
    *count = 0;
    if (words % 2 != 0)
        return mica_fail(sim->log, -EIO, "a stream of %zu words: a task has two", words);
    forget(sim);
    for (size_t i = 0; i < words; i += 2) {
        struct mica_job_report report;
        struct program program = {
            .sim = sim,
            .address = stream[i],
            .count = stream[i + 1],
            .dispatch_us = i == 0 ? sim->chip->job_us : sim->chip->task_us,
            .report = &report,
        };
        int result = run_program(&program);
        if (result)
            return result;
        if (*count < capacity)
            reports[*count] = report;
        ++*count;
    }
    return 0;
}
