/* SPDX-License-Identifier: MIT */
#include "npu/program.h"

#include <stdlib.h>
#include <string.h>

#include "npu/device_memory.h"
#include "util/checked.h"

void mica_program_destroy(struct mica_program *program)
{
    if (!program)
        return;
    for (uint32_t i = 0; program->buffers && i < program->buffer_count; i++)
        free(program->buffers[i].data);
    for (uint32_t i = 0; program->submits && i < program->submit_count; i++)
        free(program->submits[i].stream);
    free(program->buffers);
    free(program->relocs);
    free(program->inputs);
    free(program->outputs);
    free(program->jobs);
    free(program->submits);
    free(program);
}

/* More than any compiler makes; all pairs of them are looked at. */
#define MAX_ON_CHIP 64

static bool on_chip_valid(const struct mica_program_buffer *buffer)
{
    return buffer->fixed_address % MICA_DEVICE_PAGE == 0 && !buffer->data_size &&
           mica_range_inside(buffer->fixed_address, buffer->size, MICA_DEVICE_SPACE);
}

/* Does any on-chip buffer before number `index` overlap it? */
static bool overlaps(const struct mica_program *program, uint32_t index)
{
    const struct mica_program_buffer *a = &program->buffers[index];
    for (uint32_t i = 0; i < index; i++) {
        const struct mica_program_buffer *b = &program->buffers[i];
        if (b->fixed_address && a->fixed_address < b->fixed_address + b->size &&
            b->fixed_address < a->fixed_address + a->size)
            return true;
    }
    return false;
}

/* Only for buffers that are valid one by one. */
static bool places_valid(const struct mica_program *program)
{
    unsigned count = 0;
    for (uint32_t i = 0; i < program->buffer_count; i++) {
        if (program->buffers[i].fixed_address && (++count > MAX_ON_CHIP || overlaps(program, i)))
            return false;
    }
    return true;
}

static bool buffer_valid(const struct mica_program_buffer *buffer)
{
    return (!buffer->fixed_address || on_chip_valid(buffer)) && buffer->size > 0 && buffer->data_size <= buffer->size &&
           (buffer->data || !buffer->data_size) && buffer->access &&
           !(buffer->access & ~(unsigned)(MICA_ACCESS_READ | MICA_ACCESS_WRITE));
}

static bool reloc_valid(const struct mica_program *program, const struct mica_program_reloc *reloc)
{
    uint64_t size;
    if (reloc->in_stream) {
        if (reloc->where >= program->submit_count)
            return false;
        size = (uint64_t)program->submits[reloc->where].words * 4;
    } else {
        if (reloc->where >= program->buffer_count || program->buffers[reloc->where].fixed_address)
            return false;
        size = program->buffers[reloc->where].size;
    }
    return mica_range_inside(reloc->offset, 4, size) && reloc->target < program->buffer_count && reloc->shift <= 31 &&
           reloc->addend < program->buffers[reloc->target].size;
}

uint32_t mica_program_width(const struct mica_program *program)
{
    uint32_t most = 0;
    for (uint32_t i = 0; program && i < program->submit_count; i++) {
        if (program->submits[i].core > most)
            most = program->submits[i].core;
    }
    return most < UINT32_MAX ? most + 1 : most;
}

uint64_t mica_program_io_extent(const struct mica_program_io *io)
{
    const struct mica_program_layout *layout = &io->layout;
    uint64_t before, extent;
    if (!layout->block)
        return io->size;
    if (!layout->channels)
        return 0;
    uint64_t surfaces = mica_cdiv(layout->channels, layout->block);
    if (__builtin_mul_overflow(surfaces - 1, layout->surface, &before) ||
        __builtin_add_overflow(before, (uint64_t)layout->pixels * layout->block, &extent))
        return 0;
    return extent;
}

static bool layout_valid(const struct mica_program_io *io)
{
    const struct mica_program_layout *layout = &io->layout;
    if (!layout->block)
        return !layout->channels && !layout->pixels && !layout->padding && !layout->surface;
    return (layout->block == 8 || layout->block == 16) && layout->channels && layout->pixels &&
           (uint64_t)layout->channels * layout->pixels == io->size &&
           layout->surface >= (uint64_t)layout->pixels * layout->block && mica_program_io_extent(io);
}

static bool io_valid(const struct mica_program *program, const struct mica_program_io *io)
{
    return io->buffer < program->buffer_count && !program->buffers[io->buffer].fixed_address && layout_valid(io) &&
           mica_range_inside(io->offset, mica_program_io_extent(io), program->buffers[io->buffer].size);
}

static bool submit_valid(const struct mica_program *program, const struct mica_program_submit *submit)
{
    return submit->words > 0 && submit->stream &&
           mica_range_inside(submit->first_job, submit->job_count, program->job_count);
}

/* Each starts jobs behind those of the one before, in its stage or a later one. */
static bool submits_valid(const struct mica_program *program)
{
    uint32_t stage = 0, jobs = 0;
    for (uint32_t i = 0; i < program->submit_count; i++) {
        const struct mica_program_submit *submit = &program->submits[i];
        if (!submit_valid(program, submit) || submit->stage < stage || submit->first_job < jobs)
            return false;
        stage = submit->stage;
        jobs = submit->first_job + submit->job_count;
    }
    return true;
}

/* Arrays that have entries exist. */
static bool arrays_valid(const struct mica_program *program)
{
    return (program->buffers || !program->buffer_count) && (program->relocs || !program->reloc_count) &&
           (program->inputs || !program->input_count) && (program->outputs || !program->output_count) &&
           (program->jobs || !program->job_count) && (program->submits || !program->submit_count);
}

bool mica_program_valid(const struct mica_program *program)
{
    bool valid = arrays_valid(program);
    for (uint32_t i = 0; valid && i < program->buffer_count; i++)
        valid = buffer_valid(&program->buffers[i]);
    valid = valid && places_valid(program);
    valid = valid && submits_valid(program);
    for (uint32_t i = 0; valid && i < program->reloc_count; i++)
        valid = reloc_valid(program, &program->relocs[i]);
    for (uint32_t i = 0; valid && i < program->input_count; i++)
        valid = io_valid(program, &program->inputs[i]);
    for (uint32_t i = 0; valid && i < program->output_count; i++)
        valid = io_valid(program, &program->outputs[i]);
    for (uint32_t i = 0; valid && i < program->job_count; i++)
        valid = memchr(program->jobs[i].unit, 0, sizeof(program->jobs[i].unit)) != NULL;
    return valid;
}
