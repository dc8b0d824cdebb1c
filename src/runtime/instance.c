/* SPDX-License-Identifier: MIT */
#include "runtime/instance.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "runtime/layout.h"
#include "util/checked.h"
#include "util/clock.h"

/* A job that runs this long on hardware hangs. Simulators are slower, and can't hang. */
#define HARDWARE_TIMEOUT_NS INT64_C(10000000000)

/* Where a program buffer is. */
struct place {
    struct mica_bo *bo;
    uint64_t offset;     /* in bo, page aligned */
    struct mica_bo *own; /* what bo is when no one else's memory is bound */
};

struct mica_instance {
    struct mica_winsys *winsys;
    const struct mica_program *program;
    struct mica_log *log;
    struct place *places;      /* one per program buffer */
    struct mica_bo_use *uses;  /* what every submission names */
    struct mica_submit *calls; /* one per program submission */
    uint32_t **streams;        /* relocated copies */
    size_t *report_counts;     /* of the submissions */
    struct mica_job_report *reports;
    size_t report_count;
    double device_seconds; /* of the last run, from submission to the end of the wait */
};

/* The host's view of a program buffer that is not on chip. */
static uint8_t *buffer_map(const struct mica_instance *instance, uint32_t buffer)
{
    return instance->places[buffer].bo->map + instance->places[buffer].offset;
}

/* ORs the relocated word into the 4 bytes at `word`. */
static int apply_reloc(const struct mica_instance *instance, const struct mica_program_reloc *reloc, uint8_t *word)
{
    const struct place *target = &instance->places[reloc->target];
    uint64_t value = (target->bo->address + target->offset + reloc->addend) >> reloc->shift;
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
    return inside ? buffer_map(instance, reloc->where) + reloc->offset : NULL;
}

/* What stands in the program where a relocation goes. */
static uint32_t original_word(const struct mica_program *program, const struct mica_program_reloc *reloc)
{
    uint8_t bytes[4] = {0};
    const uint8_t *from =
        reloc->in_stream ? (const uint8_t *)program->submits[reloc->where].stream : program->buffers[reloc->where].data;
    uint64_t size = reloc->in_stream ? program->submits[reloc->where].words * UINT64_C(4)
                                     : program->buffers[reloc->where].data_size;
    for (unsigned i = 0; i < 4 && from && reloc->offset + i < size; i++)
        bytes[i] = from[reloc->offset + i];
    uint32_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

/* All over again from the program's words: several relocations may share one. */
static int relocate(struct mica_instance *instance)
{
    const struct mica_program *program = instance->program;
    for (uint32_t i = 0; i < program->reloc_count; i++) {
        uint8_t *word = reloc_word(instance, &program->relocs[i]);
        if (!word || program->relocs[i].target >= program->buffer_count || program->relocs[i].shift > 31)
            return mica_fail(instance->log, -EINVAL, "relocation %u is out of bounds", i);
        uint32_t original = original_word(program, &program->relocs[i]);
        memcpy(word, &original, sizeof original);
    }
    for (uint32_t i = 0; i < program->reloc_count; i++) {
        int error = apply_reloc(instance, &program->relocs[i], reloc_word(instance, &program->relocs[i]));
        if (error)
            return error;
    }
    return 0;
}

/* Brackets around all buffers that the host can see, up to number `count`. */
static void end_first(struct mica_instance *instance, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (instance->places[i].bo->map)
            instance->winsys->bo_end_cpu(instance->winsys, instance->places[i].bo);
    }
}

static int begin_all(struct mica_instance *instance)
{
    for (uint32_t i = 0; i < instance->program->buffer_count; i++) {
        struct mica_bo *bo = instance->places[i].bo;
        int error = bo->map ? instance->winsys->bo_begin_cpu(instance->winsys, bo, MICA_ACCESS_WRITE) : 0;
        if (error) {
            end_first(instance, i);
            return error;
        }
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
            memcpy(buffer_map(instance, i), buffer->data, (size_t)buffer->data_size);
    }
    error = relocate(instance);
    end_first(instance, program->buffer_count);
    return error;
}

static int create_on_chip(struct mica_instance *instance, const struct mica_program_buffer *buffer, struct mica_bo **bo)
{
    struct mica_winsys *winsys = instance->winsys;
    if (!winsys->bo_create_on_chip)
        return mica_fail(instance->log, -ENOTSUP,
                         "this device's kernel interface can't reach on-chip memory: compile without on-chip");
    return winsys->bo_create_on_chip(winsys, buffer->fixed_address, buffer->size, bo);
}

static int create_buffers(struct mica_instance *instance)
{
    const struct mica_program *program = instance->program;
    for (uint32_t i = 0; i < program->buffer_count; i++) {
        const struct mica_program_buffer *buffer = &program->buffers[i];
        struct place *place = &instance->places[i];
        int error = buffer->fixed_address ? create_on_chip(instance, buffer, &place->own)
                                          : instance->winsys->bo_create(instance->winsys, buffer->size, &place->own);
        if (error)
            return error;
        place->bo = place->own;
    }
    return 0;
}

/* All buffers: a program has what its jobs need, and no more. */
static uint32_t list_uses(struct mica_instance *instance)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < instance->program->buffer_count; i++) {
        unsigned access = instance->program->buffers[i].access;
        if (access)
            instance->uses[count++] = (struct mica_bo_use){instance->places[i].bo, access};
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
    return 0;
}

/* Only a simulator has several cores behind one connection. */
static int check_cores(const struct mica_winsys *winsys, const struct mica_program *program, struct mica_log *log)
{
    uint32_t width = mica_program_width(program), cores = winsys->chip->cores ? winsys->chip->cores : 1;
    if (width > cores)
        return mica_fail(log, -EINVAL, "the program is for %u cores and %s has %u", width, winsys->chip->name, cores);
    if (width > 1 && !winsys->simulated)
        return mica_fail(log, -ENOTSUP,
                         "the program is split over %u cores, which no kernel interface allows: compile without split",
                         width);
    return 0;
}

static bool allocate_arrays(struct mica_instance *instance, const struct mica_program *program)
{
    instance->places = mica_new_array(program->buffer_count, sizeof *instance->places);
    instance->uses = mica_new_array(program->buffer_count, sizeof *instance->uses);
    instance->calls = mica_new_array(program->submit_count, sizeof *instance->calls);
    instance->streams = mica_new_array(program->submit_count, sizeof *instance->streams);
    instance->report_counts = mica_new_array(program->submit_count, sizeof *instance->report_counts);
    instance->reports = mica_new_array(program->job_count, sizeof *instance->reports);
    return instance->places && instance->uses && instance->calls && instance->streams && instance->report_counts &&
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
    int error = check_cores(winsys, program, log);
    if (!error && !allocate_arrays(instance, program))
        error = mica_fail_nomem(log);
    if (!error)
        error = create_buffers(instance);
    if (!error)
        error = prepare_submits(instance);
    if (!error)
        error = upload(instance);
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
    for (uint32_t i = 0; instance->places && i < instance->program->buffer_count; i++) {
        struct place *place = &instance->places[i];
        if (place->bo != place->own)
            instance->winsys->bo_destroy(instance->winsys, place->bo);
        instance->winsys->bo_destroy(instance->winsys, place->own);
    }
    for (uint32_t i = 0; instance->streams && i < instance->program->submit_count; i++)
        free(instance->streams[i]);
    free(instance->places);
    free(instance->uses);
    free(instance->calls);
    free(instance->streams);
    free(instance->report_counts);
    free(instance->reports);
    free(instance);
}

static int write_inputs(struct mica_instance *instance, const void *const *inputs)
{
    struct mica_winsys *winsys = instance->winsys;
    for (uint32_t i = 0; i < instance->program->input_count; i++) {
        const struct mica_program_io *io = &instance->program->inputs[i];
        struct mica_bo *bo = instance->places[io->buffer].bo;
        int error = winsys->bo_begin_cpu(winsys, bo, MICA_ACCESS_WRITE);
        if (error)
            return error;
        const uint8_t *from = (const uint8_t *)inputs[i] + io->first;
        mica_layout_write(io, from, buffer_map(instance, io->buffer) + io->offset);
        winsys->bo_end_cpu(winsys, bo);
    }
    return 0;
}

static int read_outputs(struct mica_instance *instance, void *const *outputs)
{
    struct mica_winsys *winsys = instance->winsys;
    for (uint32_t i = 0; i < instance->program->output_count; i++) {
        const struct mica_program_io *io = &instance->program->outputs[i];
        struct mica_bo *bo = instance->places[io->buffer].bo;
        int error = winsys->bo_begin_cpu(winsys, bo, MICA_ACCESS_READ);
        if (error)
            return error;
        uint8_t *to = (uint8_t *)outputs[i] + io->first;
        mica_layout_read(io, to, buffer_map(instance, io->buffer) + io->offset);
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

static int run_submit(struct mica_instance *instance, uint32_t index)
{
    struct mica_winsys *winsys = instance->winsys;
    uint64_t fence = 0;
    double begin = mica_clock_seconds();
    instance->report_counts[index] = 0;
    int error = winsys->submit(winsys, &instance->calls[index], &fence);
    if (!error)
        error = winsys->wait(winsys, fence, winsys->simulated ? INT64_MAX : HARDWARE_TIMEOUT_NS);
    instance->device_seconds += mica_clock_seconds() - begin;
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

/* ---- tensors in place --------------------------------------------------- */

/* How many tensors of the border lie in `buffer`. */
static unsigned tensors_in(const struct mica_program *program, uint32_t buffer)
{
    unsigned count = 0;
    for (uint32_t i = 0; i < program->input_count; i++)
        count += program->inputs[i].buffer == buffer;
    for (uint32_t i = 0; i < program->output_count; i++)
        count += program->outputs[i].buffer == buffer;
    return count;
}

static const struct mica_program_io *io_at(const struct mica_instance *instance, bool output, uint32_t index)
{
    return output ? &instance->program->outputs[index] : &instance->program->inputs[index];
}

const char *mica_instance_why_not_in_place(const struct mica_instance *instance, bool output, uint32_t index)
{
    const struct mica_program_io *io = io_at(instance, output, index);
    const struct mica_program_buffer *buffer = &instance->program->buffers[io->buffer];
    if (io->layout.block)
        return "this NPU has its channels in blocks, in another order than the model";
    if (io->flip_sign)
        return "this NPU takes it with the sign bit flipped";
    if (tensors_in(instance->program, io->buffer) > 1 || buffer->data || io->offset)
        return "it shares its device memory with something else";
    if (!output && (buffer->access & MICA_ACCESS_WRITE))
        return "the NPU writes to its memory";
    return NULL;
}

struct mica_tensor_place mica_instance_locate(const struct mica_instance *instance, bool output, uint32_t index)
{
    const struct mica_program_io *io = io_at(instance, output, index);
    const struct place *place = &instance->places[io->buffer];
    return (struct mica_tensor_place){
        .bo = place->bo->handle,
        .address = place->bo->address,
        .offset = place->offset + io->offset,
        .flip_sign = io->flip_sign,
        .layout = &io->layout,
    };
}

void *mica_instance_map(const struct mica_instance *instance, bool output, uint32_t index)
{
    const struct mica_program_io *io = io_at(instance, output, index);
    return buffer_map(instance, io->buffer) + io->offset;
}

static int use_place(struct mica_instance *instance, struct place *place, struct mica_bo *bo, uint64_t offset)
{
    struct mica_bo *before = place->bo;
    place->bo = bo;
    place->offset = offset;
    list_uses(instance);
    int error = begin_all(instance);
    if (!error) {
        error = relocate(instance);
        end_first(instance, instance->program->buffer_count);
    }
    if (before != place->own)
        instance->winsys->bo_destroy(instance->winsys, before);
    return error;
}

/* The device may touch the whole buffer, which can be more than the tensor. */
static int check_import(const struct mica_instance *instance, const struct mica_program_io *io,
                        const struct mica_bo *bo, uint64_t offset)
{
    const struct mica_program_buffer *buffer = &instance->program->buffers[io->buffer];
    if (!mica_range_inside(offset, buffer->size, bo->size))
        return mica_fail(instance->log, -EINVAL,
                         "the memory to bind is too small: %" PRIu64 " bytes from offset %" PRIu64
                         " on, and it ends at %zu",
                         buffer->size, offset, bo->size);
    return 0;
}

int mica_instance_bind(struct mica_instance *instance, bool output, uint32_t index, int fd, uint64_t offset)
{
    struct mica_winsys *winsys = instance->winsys;
    const struct mica_program_io *io = io_at(instance, output, index);
    struct place *place = &instance->places[io->buffer];
    if (fd < 0)
        return use_place(instance, place, place->own, 0);
    if (!winsys->bo_import)
        return mica_fail(instance->log, -ENOTSUP, "this device's kernel interface can't use memory of others");
    if (offset % MICA_DEVICE_PAGE)
        return mica_fail(instance->log, -EINVAL, "offset %" PRIu64 " is no multiple of %u, the device's page", offset,
                         MICA_DEVICE_PAGE);
    struct mica_bo *bo;
    int error = winsys->bo_import(winsys, fd, &bo);
    if (error)
        return error;
    error = check_import(instance, io, bo, offset);
    if (error) {
        winsys->bo_destroy(winsys, bo);
        return error;
    }
    return use_place(instance, place, bo, offset);
}
