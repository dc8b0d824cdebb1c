/* SPDX-License-Identifier: MIT */
#include "runtime/instance.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "util/checked.h"

/* A job that runs this long on hardware hangs. Simulators are slower, and can't hang. */
#define HARDWARE_TIMEOUT_NS INT64_C(10000000000)

struct mica_instance {
    struct mica_winsys *winsys;
    const struct mica_program *program;
    struct mica_log *log;
    struct mica_bo **bos;      /* one per program buffer */
    struct mica_bo_use *uses;  /* what every submission names */
    struct mica_submit *calls; /* one per program submission */
    uint32_t **streams;        /* relocated copies */
    size_t *report_counts;     /* of the submissions */
    struct mica_job_report *reports;
    size_t report_count;
    double device_seconds; /* of the last run, from submission to the end of the wait */
};

/* ORs the relocated word into the 4 bytes at `word`. */
static int apply_reloc(const struct mica_instance *instance, const struct mica_program_reloc *reloc, uint8_t *word)
{
    uint64_t value = (instance->bos[reloc->target]->address + reloc->addend) >> reloc->shift;
    if (value > UINT32_MAX)
        return mica_fail(instance->log, -EINVAL, "a relocation does not fit its word: 0x%" PRIx64, value);
    uint32_t old;
    memcpy(&old, word, sizeof old);
    old |= (uint32_t)value;
    memcpy(word, &old, sizeof old);
    return 0;
}

/* The word a relocation patches, NULL when it lies outside. */
static uint8_t *reloc_word(const struct mica_instance *instance, const struct mica_program_reloc *reloc)
{
    const struct mica_program *program = instance->program;
    if (reloc->in_stream) {
        bool inside = reloc->where < program->submit_count &&
                      mica_range_inside(reloc->offset, 4, program->submits[reloc->where].words * UINT64_C(4));
        return inside ? (uint8_t *)instance->streams[reloc->where] + reloc->offset : NULL;
    }
    bool inside = reloc->where < program->buffer_count &&
                  mica_range_inside(reloc->offset, 4, program->buffers[reloc->where].size);
    return inside ? instance->bos[reloc->where]->map + reloc->offset : NULL;
}

static int relocate(struct mica_instance *instance, bool streams)
{
    const struct mica_program *program = instance->program;
    for (uint32_t i = 0; i < program->reloc_count; i++) {
        const struct mica_program_reloc *reloc = &program->relocs[i];
        if (reloc->in_stream != streams)
            continue;
        uint8_t *word = reloc_word(instance, reloc);
        if (!word || reloc->target >= program->buffer_count || reloc->shift > 31)
            return mica_fail(instance->log, -EINVAL, "relocation %u is out of bounds", i);
        int error = apply_reloc(instance, reloc, word);
        if (error)
            return error;
    }
    return 0;
}

static int begin_all(struct mica_instance *instance)
{
    for (uint32_t i = 0; i < instance->program->buffer_count; i++) {
        int error = instance->winsys->bo_begin_cpu(instance->winsys, instance->bos[i], MICA_ACCESS_WRITE);
        while (error && i-- > 0)
            instance->winsys->bo_end_cpu(instance->winsys, instance->bos[i]);
        if (error)
            return error;
    }
    return 0;
}

static int upload(struct mica_instance *instance)
{
    const struct mica_program *program = instance->program;
    int error = begin_all(instance);
    if (error)
        return error;
    for (uint32_t i = 0; i < program->buffer_count; i++) {
        const struct mica_program_buffer *buffer = &program->buffers[i];
        if (buffer->data)
            memcpy(instance->bos[i]->map, buffer->data, (size_t)buffer->data_size);
    }
    error = relocate(instance, false);
    for (uint32_t i = 0; i < program->buffer_count; i++)
        instance->winsys->bo_end_cpu(instance->winsys, instance->bos[i]);
    return error;
}

static int create_buffers(struct mica_instance *instance)
{
    const struct mica_program *program = instance->program;
    for (uint32_t i = 0; i < program->buffer_count; i++) {
        int error = instance->winsys->bo_create(instance->winsys, program->buffers[i].size, &instance->bos[i]);
        if (error)
            return error;
    }
    return upload(instance);
}

/* All buffers: a program has what its jobs need, and no more. */
static uint32_t list_uses(struct mica_instance *instance)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < instance->program->buffer_count; i++) {
        unsigned access = instance->program->buffers[i].access;
        if (access)
            instance->uses[count++] = (struct mica_bo_use){instance->bos[i], access};
    }
    return count;
}

/* A stream without an address (an initialisation) reaches no buffer and names none. */
static void name_buffers(struct mica_instance *instance)
{
    uint32_t use_count = list_uses(instance);
    for (uint32_t i = 0; i < instance->program->reloc_count; i++) {
        const struct mica_program_reloc *reloc = &instance->program->relocs[i];
        if (reloc->in_stream)
            instance->calls[reloc->where].bo_count = use_count;
    }
}

static int prepare_submits(struct mica_instance *instance)
{
    const struct mica_program *program = instance->program;
    for (uint32_t i = 0; i < program->submit_count; i++) {
        const struct mica_program_submit *submit = &program->submits[i];
        instance->streams[i] = mica_new_array(submit->words, sizeof(uint32_t));
        if (!instance->streams[i])
            return mica_fail_nomem(instance->log);
        memcpy(instance->streams[i], submit->stream, submit->words * sizeof(uint32_t));
        instance->calls[i] = (struct mica_submit){
            .stream = instance->streams[i],
            .words = submit->words,
            .bos = instance->uses,
            .reports = instance->reports + submit->first_job,
            .report_capacity = submit->job_count,
            .report_count = &instance->report_counts[i],
        };
    }
    name_buffers(instance);
    return relocate(instance, true);
}

static bool allocate_arrays(struct mica_instance *instance, const struct mica_program *program)
{
    instance->bos = mica_new_array(program->buffer_count, sizeof *instance->bos);
    instance->uses = mica_new_array(program->buffer_count, sizeof *instance->uses);
    instance->calls = mica_new_array(program->submit_count, sizeof *instance->calls);
    instance->streams = mica_new_array(program->submit_count, sizeof *instance->streams);
    instance->report_counts = mica_new_array(program->submit_count, sizeof *instance->report_counts);
    instance->reports = mica_new_array(program->job_count, sizeof *instance->reports);
    return instance->bos && instance->uses && instance->calls && instance->streams && instance->report_counts &&
           instance->reports;
}

int mica_instance_create(struct mica_winsys *winsys, const struct mica_program *program, struct mica_log *log,
                         struct mica_instance **result)
{
    if (!mica_program_valid(program))
        return mica_fail(log, -EINVAL, "the compiled program is damaged: something in it is out of bounds");
    struct mica_instance *instance = calloc(1, sizeof *instance);
    if (!instance)
        return mica_fail_nomem(log);
    instance->winsys = winsys;
    instance->program = program;
    instance->log = log;
    int error = allocate_arrays(instance, program) ? 0 : mica_fail_nomem(log);
    if (!error)
        error = create_buffers(instance);
    if (!error)
        error = prepare_submits(instance);
    if (error) {
        mica_instance_destroy(instance);
        return error;
    }
    *result = instance;
    return 0;
}

void mica_instance_destroy(struct mica_instance *instance)
{
    if (!instance)
        return;
    for (uint32_t i = 0; instance->bos && i < instance->program->buffer_count; i++)
        instance->winsys->bo_destroy(instance->winsys, instance->bos[i]);
    for (uint32_t i = 0; instance->streams && i < instance->program->submit_count; i++)
        free(instance->streams[i]);
    free(instance->bos);
    free(instance->uses);
    free(instance->calls);
    free(instance->streams);
    free(instance->report_counts);
    free(instance->reports);
    free(instance);
}

static void copy(uint8_t *restrict to, const uint8_t *restrict from, size_t size, bool flip_sign)
{
    if (!flip_sign) {
        memcpy(to, from, size);
        return;
    }
    for (size_t i = 0; i < size; i++)
        to[i] = from[i] ^ 0x80;
}

static int write_inputs(struct mica_instance *instance, const void *const *inputs)
{
    struct mica_winsys *winsys = instance->winsys;
    for (uint32_t i = 0; i < instance->program->input_count; i++) {
        const struct mica_program_io *io = &instance->program->inputs[i];
        struct mica_bo *bo = instance->bos[io->buffer];
        int error = winsys->bo_begin_cpu(winsys, bo, MICA_ACCESS_WRITE);
        if (error)
            return error;
        copy(bo->map + io->offset, inputs[i], (size_t)io->size, io->flip_sign);
        winsys->bo_end_cpu(winsys, bo);
    }
    return 0;
}

static int read_outputs(struct mica_instance *instance, void *const *outputs)
{
    struct mica_winsys *winsys = instance->winsys;
    for (uint32_t i = 0; i < instance->program->output_count; i++) {
        const struct mica_program_io *io = &instance->program->outputs[i];
        struct mica_bo *bo = instance->bos[io->buffer];
        int error = winsys->bo_begin_cpu(winsys, bo, MICA_ACCESS_READ);
        if (error)
            return error;
        copy(outputs[i], bo->map + io->offset, (size_t)io->size, io->flip_sign);
        winsys->bo_end_cpu(winsys, bo);
    }
    return 0;
}

/* Reports count only when the device reported each job of the program. */
static void collect_reports(struct mica_instance *instance)
{
    const struct mica_program *program = instance->program;
    instance->report_count = program->job_count;
    for (uint32_t i = 0; i < program->submit_count; i++) {
        if (instance->report_counts[i] != program->submits[i].job_count)
            instance->report_count = 0;
    }
}

static double seconds_since(const struct timespec *begin)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - begin->tv_sec) + (double)(now.tv_nsec - begin->tv_nsec) * 1e-9;
}

static int run_submit(struct mica_instance *instance, uint32_t index)
{
    struct mica_winsys *winsys = instance->winsys;
    uint64_t fence = 0;
    struct timespec begin;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    instance->report_counts[index] = 0;
    int error = winsys->submit(winsys, &instance->calls[index], &fence);
    if (!error)
        error = winsys->wait(winsys, fence, winsys->simulated ? INT64_MAX : HARDWARE_TIMEOUT_NS);
    instance->device_seconds += seconds_since(&begin);
    return error;
}

int mica_instance_invoke_watched(struct mica_instance *instance, const void *const *inputs, void *const *outputs,
                                 mica_instance_watch *before, void *user)
{
    instance->report_count = 0;
    instance->device_seconds = 0;
    int error = write_inputs(instance, inputs);
    for (uint32_t i = 0; !error && i < instance->program->submit_count; i++) {
        if (before)
            error = before(user, &instance->calls[i]);
        if (!error)
            error = run_submit(instance, i);
    }
    if (error)
        return error;
    collect_reports(instance);
    return read_outputs(instance, outputs);
}

int mica_instance_invoke(struct mica_instance *instance, const void *const *inputs, void *const *outputs)
{
    return mica_instance_invoke_watched(instance, inputs, outputs, NULL, NULL);
}

const struct mica_job_report *mica_instance_reports(const struct mica_instance *instance, size_t *count)
{
    *count = instance->report_count;
    return instance->reports;
}

double mica_instance_device_seconds(const struct mica_instance *instance)
{
    return instance->device_seconds;
}

int mica_instance_visit(struct mica_instance *instance, const void *const *inputs, mica_instance_watch *visit,
                        void *user)
{
    int error = write_inputs(instance, inputs);
    for (uint32_t i = 0; !error && i < instance->program->submit_count; i++)
        error = visit(user, &instance->calls[i]);
    return error;
}
