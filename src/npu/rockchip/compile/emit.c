/* SPDX-License-Identifier: MIT */
/* A plan to a program: buffers, register programs with their tails, relocations, submissions. */
#include "npu/rockchip/compile/emit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/checked.h"

#define TAIL_WORDS 4u     /* link, amount, barrier, start (specification, section 3) */
#define WORDS_PER_TASK 2u /* of a submission's stream */

struct emitter {
    struct rk_plan *plan;
    struct rk_schedule schedule;
    struct mica_program *program;
    uint32_t index[RK_BUFFER_EXTERNAL + 1]; /* in the program, RK_BUFFER_EXTERNAL: of the first */
    uint64_t programs;                      /* bytes of register programs so far */
};

static uint32_t word_count(const struct rk_task *task)
{
    return task->word_count + TAIL_WORDS;
}

static uint64_t program_bytes(const struct rk_plan *plan)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < plan->task_count; i++)
        bytes += mica_align((uint64_t)word_count(&plan->tasks[i]) * sizeof(uint64_t), RK_ALIGNMENT);
    return bytes;
}

/* Entries that the outputs need: one for each piece of their values. */
static size_t output_pieces(const struct rk_plan *plan)
{
    size_t count = 0;
    for (uint32_t i = 0; i < plan->partition->output_count; i++) {
        uint32_t pieces = plan->values[plan->partition->outputs[i]].piece_count;
        count += pieces ? pieces : 1;
    }
    return count;
}

static int allocate(struct emitter *emitter)
{
    const struct rk_plan *plan = emitter->plan;
    const struct mica_partition *partition = plan->partition;
    struct mica_program *program = emitter->program = calloc(1, sizeof(*program));
    if (!program)
        return mica_fail_nomem(plan->log);
    size_t relocs = plan->task_count; /* of the streams */
    for (uint32_t i = 0; i < plan->task_count; i++)
        relocs += plan->tasks[i].use_count;
    program->relocs = mica_new_array(relocs, sizeof(*program->relocs));
    program->inputs = mica_new_array(partition->input_count, sizeof(*program->inputs));
    program->outputs = mica_new_array(output_pieces(plan), sizeof(*program->outputs));
    program->jobs = mica_new_array(plan->task_count, sizeof(*program->jobs));
    program->submits = mica_new_array(emitter->schedule.batch_count, sizeof(*program->submits));
    program->buffers = mica_new_array((size_t)RK_BUFFER_EXTERNAL + plan->external_count, sizeof(*program->buffers));
    if (!program->relocs || !program->inputs || !program->outputs || !program->jobs || !program->submits ||
        !program->buffers)
        return mica_fail_nomem(plan->log);
    return 0;
}

/* ---- buffers ------------------------------------------------------------------ */

static int add_buffer(struct emitter *emitter, unsigned which, uint64_t size, bool data, unsigned access)
{
    emitter->index[which] = emitter->program->buffer_count;
    if (!size)
        return 0;
    struct mica_program_buffer *buffer = &emitter->program->buffers[emitter->program->buffer_count++];
    *buffer = (struct mica_program_buffer){.size = size, .access = access};
    if (data) {
        buffer->data = calloc(1, size);
        if (!buffer->data)
            return mica_fail_nomem(emitter->plan->log);
        buffer->data_size = size;
    }
    return 0;
}

static void fill_coefficients(const struct emitter *emitter)
{
    const struct rk_plan *plan = emitter->plan;
    for (uint32_t i = 0; i < plan->storage_count; i++) {
        const struct rk_storage *storage = &plan->storages[i];
        if (storage->parent != RK_NONE || storage->external || !storage->data || storage->first == RK_NONE)
            continue;
        memcpy(emitter->program->buffers[emitter->index[RK_BUFFER_COEFFICIENTS]].data + storage->offset, storage->data,
               storage->size);
    }
}

/* A constant that the host reads is in a buffer of its own, with its contents. */
static int add_external(struct emitter *emitter, const struct rk_storage *storage)
{
    struct mica_program_buffer *buffer = &emitter->program->buffers[emitter->program->buffer_count++];
    buffer->size = storage->size;
    buffer->access = storage->access ? storage->access : MICA_ACCESS_READ;
    if (!storage->data)
        return 0;
    buffer->data = malloc(storage->size);
    if (!buffer->data)
        return mica_fail_nomem(emitter->plan->log);
    memcpy(buffer->data, storage->data, storage->size);
    buffer->data_size = storage->size;
    return 0;
}

static int add_buffers(struct emitter *emitter)
{
    const struct rk_plan *plan = emitter->plan;
    int error = add_buffer(emitter, RK_BUFFER_COEFFICIENTS, plan->constant_bytes, true, MICA_ACCESS_READ);
    if (!error)
        error = add_buffer(emitter, RK_BUFFER_PROGRAMS, program_bytes(plan), true, MICA_ACCESS_READ);
    if (!error)
        error =
            add_buffer(emitter, RK_BUFFER_SCRATCH, plan->scratch_bytes, false, MICA_ACCESS_READ | MICA_ACCESS_WRITE);
    emitter->index[RK_BUFFER_EXTERNAL] = emitter->program->buffer_count;
    for (uint32_t i = 0; !error && i < plan->storage_count; i++)
        if (plan->storages[i].parent == RK_NONE && plan->storages[i].external)
            error = add_external(emitter, &plan->storages[i]);
    if (!error)
        fill_coefficients(emitter);
    return error;
}

/* Program buffer and offset of a byte of a storage. */
static uint32_t locate(const struct emitter *emitter, struct rk_ref ref, uint64_t *offset)
{
    struct rk_ref root = rk_plan_resolve(emitter->plan, ref);
    const struct rk_storage *storage = &emitter->plan->storages[root.storage];
    *offset = root.offset + storage->offset;
    return storage->buffer < RK_BUFFER_EXTERNAL
               ? emitter->index[storage->buffer]
               : emitter->index[RK_BUFFER_EXTERNAL] + storage->buffer - RK_BUFFER_EXTERNAL;
}

/* ---- tasks -------------------------------------------------------------------- */

static void add_reloc(struct emitter *emitter, struct mica_program_reloc reloc)
{
    emitter->program->relocs[emitter->program->reloc_count++] = reloc;
}

/* The kernel starts one task after the other: no link, nothing to fetch next. */
static void write_program(const struct rk_task *task, uint64_t *words)
{
    memcpy(words, task->words, task->word_count * sizeof(*words));
    words += task->word_count;
    words[0] = 0;
    words[1] = rk_word(rk_blocks[RK_PC].target, rk_fields[RK_PC_REGISTER_AMOUNTS_PC_DATA_AMOUNT].at[0].offset, 0);
    words[2] = RK_WORD_BARRIER;
    words[3] = rk_word(RK_TARGET_START, RK_START_OFFSET, task->start);
}

static void reloc_uses(struct emitter *emitter, const struct rk_task *task)
{
    for (uint32_t i = 0; i < task->use_count; i++) {
        struct mica_program_reloc reloc = {.where = emitter->index[RK_BUFFER_PROGRAMS]};
        reloc.offset = (uint32_t)(emitter->programs + task->uses[i].word * sizeof(uint64_t) + RK_WORD_VALUE_BYTE);
        reloc.target = locate(emitter, task->uses[i].ref, &reloc.addend);
        add_reloc(emitter, reloc);
    }
}

static void emit_task(struct emitter *emitter, const struct rk_task *task, struct mica_program_submit *submit)
{
    struct mica_program *program = emitter->program;
    struct mica_program_buffer *programs = &program->buffers[emitter->index[RK_BUFFER_PROGRAMS]];
    uint32_t at = submit->job_count * WORDS_PER_TASK;
    write_program(task, (uint64_t *)(void *)(programs->data + emitter->programs));
    reloc_uses(emitter, task);
    submit->stream[at + 1] = word_count(task);
    add_reloc(emitter, (struct mica_program_reloc){.in_stream = true,
                                                   .where = (uint32_t)(submit - program->submits),
                                                   .offset = at * (uint32_t)sizeof(uint32_t),
                                                   .target = emitter->index[RK_BUFFER_PROGRAMS],
                                                   .addend = emitter->programs});
    struct mica_program_job *job = &program->jobs[program->job_count++];
    *job = (struct mica_program_job){.op = task->op, .macs = task->macs};
    memcpy(job->unit, task->unit, sizeof(job->unit));
    submit->job_count++;
    emitter->programs += mica_align((uint64_t)word_count(task) * sizeof(uint64_t), RK_ALIGNMENT);
}

static int emit_batch(struct emitter *emitter, const struct rk_batch *batch)
{
    struct mica_program *program = emitter->program;
    struct mica_program_submit *submit = &program->submits[program->submit_count++];
    *submit = (struct mica_program_submit){.first_job = program->job_count, .core = batch->core, .stage = batch->stage};
    submit->words = batch->count * WORDS_PER_TASK;
    submit->stream = mica_new_array(submit->words, sizeof(uint32_t));
    if (!submit->stream)
        return mica_fail_nomem(emitter->plan->log);
    for (uint32_t i = 0; i < batch->count; i++)
        emit_task(emitter, &emitter->plan->tasks[emitter->schedule.order[batch->first + i]], submit);
    return 0;
}

/* ---- inputs and outputs ------------------------------------------------------- */

static struct mica_program_io io_of(const struct emitter *emitter, uint32_t tensor, const struct rk_cube *cube)
{
    const struct rk_plan *plan = emitter->plan;
    const struct mica_tensor *t = &plan->graph->tensors[tensor];
    struct mica_program_io io = {.tensor = tensor, .flip_sign = t->type == MICA_TYPE_UINT8};
    io.size = (uint64_t)cube->shape.w * cube->shape.h * cube->shape.c;
    io.buffer = locate(emitter, cube->at, &io.offset);
    if (!cube->packed)
        io.layout = (struct mica_program_layout){.block = plan->chip->atom,
                                                 .channels = cube->shape.c,
                                                 .pixels = cube->shape.w * cube->shape.h,
                                                 .padding = (uint8_t)rk_stored_zero(t),
                                                 .surface = cube->surface};
    return io;
}

/* The tensor's bytes are those of the pieces, one behind the other. */
static void add_output(struct emitter *emitter, uint32_t tensor)
{
    const struct rk_plan *plan = emitter->plan;
    const struct rk_value *value = &plan->values[tensor];
    struct mica_program *program = emitter->program;
    uint64_t first = 0;
    if (!value->piece_count)
        program->outputs[program->output_count++] = io_of(emitter, tensor, &value->cube);
    for (uint32_t i = 0; i < value->piece_count; i++) {
        struct mica_program_io io = io_of(emitter, tensor, &plan->pieces[value->first_piece + i]);
        io.first = first;
        first += io.size;
        program->outputs[program->output_count++] = io;
    }
}

static void add_ios(struct emitter *emitter)
{
    const struct mica_partition *partition = emitter->plan->partition;
    struct mica_program *program = emitter->program;
    for (uint32_t i = 0; i < partition->input_count; i++)
        program->inputs[program->input_count++] =
            io_of(emitter, partition->inputs[i], &emitter->plan->values[partition->inputs[i]].cube);
    for (uint32_t i = 0; i < partition->output_count; i++)
        add_output(emitter, partition->outputs[i]);
}

static int emit(struct emitter *emitter)
{
    struct rk_plan *plan = emitter->plan;
    if (plan->constant_bytes > UINT32_MAX || plan->scratch_bytes > UINT32_MAX || program_bytes(plan) > UINT32_MAX)
        return mica_fail(plan->log, -ENOTSUP, "the partition needs more than the device's 4 GiB of addresses");
    int error = allocate(emitter);
    if (!error)
        error = add_buffers(emitter);
    for (uint32_t i = 0; !error && i < emitter->schedule.batch_count; i++)
        error = emit_batch(emitter, &emitter->schedule.batches[i]);
    if (!error)
        add_ios(emitter);
    return error;
}

int rk_emit(struct rk_plan *plan, struct mica_program **program)
{
    struct emitter emitter = {.plan = plan};
    int error = rk_schedule_make(plan, &emitter.schedule);
    if (!error)
        error = emit(&emitter);
    rk_schedule_finish(&emitter.schedule);
    if (error) {
        mica_program_destroy(emitter.program);
        return error;
    }
    *program = emitter.program;
    return 0;
}
