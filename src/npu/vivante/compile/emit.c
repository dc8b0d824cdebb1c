/* SPDX-License-Identifier: MIT */
#include "npu/vivante/compile/emit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "npu/vivante/compile/descriptor.h"
#include "npu/vivante/compile/lower.h"
#include "npu/vivante/compile/memory.h"
#include "npu/vivante/compile/stream.h"
#include "util/checked.h"

/* Buffers while placing; those that stay empty are then left out. */
enum { COEFFICIENTS, DESCRIPTORS, SCRATCH, ON_CHIP, EXTERNAL = ON_CHIP + MICA_ON_CHIP_WINDOWS };

struct emitter {
    struct viv_plan *plan;
    struct mica_program *program;
    uint32_t index[EXTERNAL + 1]; /* in the program, EXTERNAL: of the first */
    uint64_t coefficients, descriptors;
    struct mica_program_submit *submit; /* under construction */
    struct viv_stream stream;
};

static uint32_t parts_of(const struct viv_job *job)
{
    return job->is_nn ? 1 : job->tp.part_count;
}

static uint32_t words_of(const struct viv_job *job)
{
    return job->is_nn ? VIV_STREAM_NN_WORDS : job->tp.part_count * VIV_STREAM_TP_WORDS + VIV_STREAM_TP_END_WORDS;
}

static uint32_t slot_of(const struct viv_job *job)
{
    return job->is_nn ? VIV_NN_SLOT : VIV_TP_SLOT;
}

/* ---- batches ---------------------------------------------------------------- */

/* Kernels give a submission some time, half a second or a second: half of the shorter one, by the timing model. */
#define BATCH_US 250000.0

/* What one submission has so far. */
struct batch {
    uint32_t words, jobs;
    double us;
};

/* Adds a job, unless the stream or the kernel's time is too short for one more. */
static bool batch_takes(const struct viv_plan *plan, const struct viv_job *job, struct batch *batch)
{
    double us = viv_job_cycles(plan->chip, job) / plan->chip->clock_mhz;
    uint32_t words = batch->jobs ? words_of(job) : VIV_STREAM_BATCH_WORDS + words_of(job);
    if (batch->jobs && (batch->words + words > VIV_STREAM_MAX_WORDS || batch->us + us > BATCH_US))
        return false;
    *batch = (struct batch){batch->words + words, batch->jobs + 1, batch->us + us};
    return true;
}

/* ---- sizes ------------------------------------------------------------------ */

struct totals {
    uint64_t coefficients, descriptors;
    uint32_t jobs, relocs, batches;
};

static struct totals count(const struct viv_plan *plan)
{
    struct totals totals = {0};
    struct batch batch = {0};
    for (uint32_t i = 0; i < plan->job_count; i++) {
        const struct viv_job *job = &plan->jobs[i];
        if (!batch_takes(plan, job, &batch)) {
            batch = (struct batch){0};
            batch_takes(plan, job, &batch);
        }
        totals.batches += batch.jobs == 1;
        totals.coefficients += job->is_nn ? job->nn.coefficients.size : 0;
        totals.descriptors += (uint64_t)slot_of(job) * parts_of(job);
        totals.jobs += parts_of(job);
        totals.relocs += job->is_nn ? 4 : 3 * parts_of(job); /* descriptor addresses and the stream's */
    }
    return totals;
}

static int allocate(struct emitter *emitter, const struct totals *totals)
{
    const struct mica_partition *partition = emitter->plan->partition;
    struct mica_program *program = emitter->program = calloc(1, sizeof(*program));
    if (!program)
        return mica_fail_nomem(emitter->plan->log);
    program->relocs = mica_new_array(totals->relocs, sizeof(*program->relocs));
    program->inputs = mica_new_array(partition->input_count, sizeof(*program->inputs));
    program->outputs = mica_new_array(partition->output_count, sizeof(*program->outputs));
    program->jobs = mica_new_array(totals->jobs, sizeof(*program->jobs));
    program->submits = mica_new_array((size_t)totals->batches + 1, sizeof(*program->submits));
    if (!program->relocs || !program->inputs || !program->outputs || !program->jobs || !program->submits)
        return mica_fail_nomem(emitter->plan->log);
    return 0;
}

/* ---- buffers ---------------------------------------------------------------- */

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

/* Program buffer and offset of a byte of a storage. */
static uint32_t locate(const struct emitter *emitter, struct viv_ref ref, uint64_t *offset)
{
    struct viv_ref root = viv_plan_resolve(emitter->plan, ref);
    const struct viv_storage *storage = &emitter->plan->storages[root.storage];
    *offset = root.offset + storage->offset;
    return storage->buffer < EXTERNAL ? emitter->index[storage->buffer]
                                      : emitter->index[EXTERNAL] + storage->buffer - EXTERNAL;
}

/* Constants, inside the buffers of what they lie in. */
static int fill_constants(struct emitter *emitter)
{
    const struct viv_plan *plan = emitter->plan;
    for (uint32_t i = 0; i < plan->storage_count; i++) {
        uint64_t offset;
        if (!plan->storages[i].data)
            continue;
        uint32_t index = locate(emitter, (struct viv_ref){i, 0}, &offset);
        struct mica_program_buffer *buffer = &emitter->program->buffers[index];
        if (!buffer->data)
            buffer->data = calloc(1, buffer->size);
        if (!buffer->data)
            return mica_fail_nomem(plan->log);
        buffer->data_size = buffer->size;
        memcpy(buffer->data + offset, plan->storages[i].data, plan->storages[i].size);
    }
    return 0;
}

static int add_buffers(struct emitter *emitter, const struct totals *totals, uint32_t external)
{
    struct viv_plan *plan = emitter->plan;
    emitter->program->buffers = mica_new_array((size_t)EXTERNAL + external, sizeof(struct mica_program_buffer));
    if (!emitter->program->buffers)
        return mica_fail_nomem(plan->log);
    int error = add_buffer(emitter, COEFFICIENTS, totals->coefficients, true, MICA_ACCESS_READ);
    if (!error)
        error = add_buffer(emitter, DESCRIPTORS, totals->descriptors, true, MICA_ACCESS_READ);
    if (!error)
        error = add_buffer(emitter, SCRATCH, plan->scratch_bytes, false, MICA_ACCESS_READ | MICA_ACCESS_WRITE);
    for (unsigned i = 0; !error && i < MICA_ON_CHIP_WINDOWS; i++) {
        error = add_buffer(emitter, ON_CHIP + i, plan->on_chip[i].size, false, MICA_ACCESS_READ | MICA_ACCESS_WRITE);
        if (plan->on_chip[i].size)
            emitter->program->buffers[emitter->index[ON_CHIP + i]].fixed_address = plan->on_chip[i].address;
    }
    emitter->index[EXTERNAL] = emitter->program->buffer_count;
    for (uint32_t i = 0; i < plan->storage_count; i++) {
        const struct viv_storage *storage = &plan->storages[i];
        if (storage->parent == VIV_NONE && storage->external)
            emitter->program->buffers[emitter->program->buffer_count++] = (struct mica_program_buffer){
                .size = storage->size, .access = storage->access ? storage->access : MICA_ACCESS_READ};
    }
    return error ? error : fill_constants(emitter);
}

static void add_reloc(struct emitter *emitter, struct mica_program_reloc reloc)
{
    emitter->program->relocs[emitter->program->reloc_count++] = reloc;
}

/* Word `word` of the descriptor under construction gets an address. */
static void reloc_word(struct emitter *emitter, uint32_t word, uint32_t target, uint64_t addend, uint32_t shift)
{
    add_reloc(emitter, (struct mica_program_reloc){.where = emitter->index[DESCRIPTORS],
                                                   .offset = (uint32_t)emitter->descriptors + 4 * word,
                                                   .target = target,
                                                   .shift = shift,
                                                   .addend = addend});
}

static void reloc_ref(struct emitter *emitter, uint32_t word, struct viv_ref ref, uint64_t more)
{
    uint64_t offset;
    uint32_t buffer = locate(emitter, ref, &offset);
    reloc_word(emitter, word, buffer, offset + more, 0);
}

/* The stream's word `word` gets the address of the descriptor under construction. */
static void reloc_stream(struct emitter *emitter, uint32_t word)
{
    add_reloc(emitter, (struct mica_program_reloc){.in_stream = true,
                                                   .where = (uint32_t)(emitter->submit - emitter->program->submits),
                                                   .offset = 4 * word,
                                                   .target = emitter->index[DESCRIPTORS],
                                                   .addend = emitter->descriptors});
}

/* ---- jobs ------------------------------------------------------------------- */

static void add_report(struct emitter *emitter, const struct viv_job *job)
{
    struct mica_program_job *entry = &emitter->program->jobs[emitter->program->job_count++];
    *entry = (struct mica_program_job){.op = job->op, .macs = job->macs};
    memcpy(entry->unit, job->is_nn ? "NN" : "TP", 3);
    emitter->submit->job_count++;
}

static uint8_t *descriptor(struct emitter *emitter)
{
    return emitter->program->buffers[emitter->index[DESCRIPTORS]].data + emitter->descriptors;
}

static int emit_nn(struct emitter *emitter, const struct viv_job *job)
{
    const struct viv_nn *nn = &job->nn;
    uint32_t words[VIV_NN_WORDS];
    int error = viv_descriptor_nn(emitter->plan, nn, words);
    if (error)
        return error;
    memcpy(descriptor(emitter), words, sizeof(words));
    struct mica_program_buffer *coefficients = &emitter->program->buffers[emitter->index[COEFFICIENTS]];
    memcpy(coefficients->data + emitter->coefficients, nn->coefficients.data, nn->coefficients.size);
    reloc_word(emitter, VIV_NN_WORD_COEFFICIENTS, emitter->index[COEFFICIENTS], emitter->coefficients,
               VIV_NN_COEFFICIENTS_SHIFT);
    reloc_ref(emitter, VIV_NN_WORD_IN, nn->in, 0);
    reloc_ref(emitter, VIV_NN_WORD_OUT, nn->out, 0);
    reloc_stream(emitter, viv_stream_nn(&emitter->stream));
    add_report(emitter, job);
    emitter->coefficients += nn->coefficients.size;
    emitter->descriptors += VIV_NN_SLOT;
    return 0;
}

static int emit_tp(struct emitter *emitter, const struct viv_job *job)
{
    const struct viv_tp *tp = &job->tp;
    for (uint32_t i = 0; i < tp->part_count; i++) {
        uint32_t words[VIV_TP_WORDS];
        int error = viv_descriptor_tp(emitter->plan, tp, i, words);
        if (error)
            return error;
        memcpy(descriptor(emitter), words, sizeof(words));
        reloc_ref(emitter, VIV_TP_WORD_IN, tp->in, tp->parts[i].in_offset);
        reloc_ref(emitter, VIV_TP_WORD_OUT, tp->out, tp->parts[i].out_offset);
        reloc_stream(emitter, viv_stream_tp(&emitter->stream, i + 1 < tp->part_count, !tp->reshuffle));
        add_report(emitter, job);
        emitter->descriptors += VIV_TP_SLOT;
    }
    return 0;
}

/* ---- submissions ------------------------------------------------------------ */

static int begin_submit(struct emitter *emitter, uint32_t words)
{
    struct mica_program *program = emitter->program;
    emitter->submit = &program->submits[program->submit_count++];
    *emitter->submit = (struct mica_program_submit){.first_job = program->job_count, .words = words};
    emitter->submit->stream = mica_new_array(words, sizeof(uint32_t));
    emitter->stream = (struct viv_stream){emitter->submit->stream, 0};
    return emitter->submit->stream ? 0 : mica_fail_nomem(emitter->plan->log);
}

/* The initialisation goes alone and first: it counts for everything that follows in the process. */
static int emit_init(struct emitter *emitter)
{
    int error = begin_submit(emitter, VIV_STREAM_INIT_WORDS);
    if (!error)
        viv_stream_init(&emitter->stream);
    return error;
}

/* As many jobs from `first` on as one submission takes; *next gets the first that is left. */
static int emit_batch(struct emitter *emitter, uint32_t first, uint32_t *next)
{
    const struct viv_plan *plan = emitter->plan;
    struct batch batch = {0};
    uint32_t end = first;
    while (end < plan->job_count && batch_takes(plan, &plan->jobs[end], &batch))
        end++;
    int error = begin_submit(emitter, batch.words);
    if (!error)
        viv_stream_begin(&emitter->stream);
    for (uint32_t i = first; !error && i < end; i++)
        error = plan->jobs[i].is_nn ? emit_nn(emitter, &plan->jobs[i]) : emit_tp(emitter, &plan->jobs[i]);
    if (!error)
        viv_stream_end(&emitter->stream);
    *next = end;
    return error;
}

/* ---- inputs and outputs -------------------------------------------------------- */

static struct mica_program_io io_of(const struct emitter *emitter, uint32_t tensor)
{
    const struct mica_tensor *t = &emitter->plan->graph->tensors[tensor];
    struct mica_program_io io = {.tensor = tensor, .size = t->bytes, .flip_sign = t->type == MICA_TYPE_INT8};
    io.buffer = locate(emitter, emitter->plan->values[tensor].nhwc, &io.offset);
    return io;
}

static void add_ios(struct emitter *emitter)
{
    const struct mica_partition *partition = emitter->plan->partition;
    struct mica_program *program = emitter->program;
    for (uint32_t i = 0; i < partition->input_count; i++)
        program->inputs[program->input_count++] = io_of(emitter, partition->inputs[i]);
    for (uint32_t i = 0; i < partition->output_count; i++)
        program->outputs[program->output_count++] = io_of(emitter, partition->outputs[i]);
}

int viv_emit(struct viv_plan *plan, struct mica_program **program)
{
    struct emitter emitter = {.plan = plan};
    uint32_t external = 0, next = 0;
    int error = viv_memory_place(plan, SCRATCH, ON_CHIP, EXTERNAL, &external);
    struct totals totals = count(plan);
    if (!error && (totals.descriptors > UINT32_MAX || totals.coefficients > UINT32_MAX))
        error = mica_fail(plan->log, -ENOTSUP, "the coefficients exceed the device's 4 GiB address space");
    if (!error)
        error = allocate(&emitter, &totals);
    if (!error)
        error = add_buffers(&emitter, &totals, external);
    if (!error)
        error = emit_init(&emitter);
    while (!error && next < plan->job_count)
        error = emit_batch(&emitter, next, &next);
    if (error) {
        mica_program_destroy(emitter.program);
        return error;
    }
    add_ios(&emitter);
    *program = emitter.program;
    return 0;
}
