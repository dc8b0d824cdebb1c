/* SPDX-License-Identifier: MIT */
#include "runtime/program_file.h"

/* Stored bytes of one element. */
#define BUFFER_BYTES 32
#define RELOC_BYTES 28
#define IO_BYTES 60
#define JOB_BYTES 16
#define SUBMIT_BYTES 20

static void write_io(struct mica_byte_writer *writer, const struct mica_program_io *ios, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        mica_put32(writer, ios[i].tensor);
        mica_put32(writer, ios[i].buffer);
        mica_put64(writer, ios[i].offset);
        mica_put64(writer, ios[i].size);
        mica_put32(writer, ios[i].flip_sign);
        mica_put32(writer, ios[i].layout.block);
        mica_put32(writer, ios[i].layout.channels);
        mica_put32(writer, ios[i].layout.pixels);
        mica_put32(writer, ios[i].layout.padding);
        mica_put64(writer, ios[i].layout.surface);
        mica_put64(writer, ios[i].first);
    }
}

static void write_tables(struct mica_byte_writer *writer, const struct mica_program *program)
{
    for (uint32_t i = 0; i < program->buffer_count; i++) {
        mica_put64(writer, program->buffers[i].size);
        mica_put64(writer, program->buffers[i].data ? program->buffers[i].data_size : 0);
        mica_put32(writer, program->buffers[i].access);
        mica_put32(writer, 0); /* keeps the next one aligned */
        mica_put64(writer, program->buffers[i].fixed_address);
    }
    for (uint32_t i = 0; i < program->reloc_count; i++) {
        mica_put32(writer, program->relocs[i].in_stream);
        mica_put32(writer, program->relocs[i].where);
        mica_put32(writer, program->relocs[i].offset);
        mica_put32(writer, program->relocs[i].target);
        mica_put32(writer, program->relocs[i].shift);
        mica_put64(writer, program->relocs[i].addend);
    }
    write_io(writer, program->inputs, program->input_count);
    write_io(writer, program->outputs, program->output_count);
    for (uint32_t i = 0; i < program->job_count; i++) {
        mica_put_bytes(writer, program->jobs[i].unit, sizeof program->jobs[i].unit);
        mica_put32(writer, program->jobs[i].op);
        mica_put64(writer, program->jobs[i].macs);
    }
    for (uint32_t i = 0; i < program->submit_count; i++) {
        mica_put32(writer, program->submits[i].words);
        mica_put32(writer, program->submits[i].first_job);
        mica_put32(writer, program->submits[i].job_count);
        mica_put32(writer, program->submits[i].core);
        mica_put32(writer, program->submits[i].stage);
    }
}

void mica_program_write(struct mica_byte_writer *writer, const struct mica_program *program)
{
    mica_put32(writer, program->buffer_count);
    mica_put32(writer, program->reloc_count);
    mica_put32(writer, program->input_count);
    mica_put32(writer, program->output_count);
    mica_put32(writer, program->job_count);
    mica_put32(writer, program->submit_count);
    write_tables(writer, program);
    for (uint32_t i = 0; i < program->buffer_count; i++) {
        if (program->buffers[i].data)
            mica_put_bytes(writer, program->buffers[i].data, (size_t)program->buffers[i].data_size);
        mica_put_padding(writer);
    }
    for (uint32_t i = 0; i < program->submit_count; i++) {
        mica_put_bytes(writer, program->submits[i].stream, program->submits[i].words * sizeof(uint32_t));
        mica_put_padding(writer);
    }
}

/* Sets data_size of what has contents; read_contents() allocates by it. */
static void read_buffers(struct mica_byte_reader *reader, struct mica_program *program, uint32_t count)
{
    program->buffers = mica_get_array(reader, count, BUFFER_BYTES, sizeof *program->buffers);
    if (!program->buffers)
        return;
    program->buffer_count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct mica_program_buffer *buffer = &program->buffers[i];
        buffer->size = mica_get64(reader);
        buffer->data_size = mica_get64(reader);
        buffer->access = mica_get32(reader);
        reader->error |= mica_get32(reader) != 0 || buffer->data_size > buffer->size;
        buffer->fixed_address = mica_get64(reader);
    }
}

static void read_relocs(struct mica_byte_reader *reader, struct mica_program *program, uint32_t count)
{
    program->relocs = mica_get_array(reader, count, RELOC_BYTES, sizeof *program->relocs);
    if (!program->relocs)
        return;
    program->reloc_count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct mica_program_reloc *reloc = &program->relocs[i];
        reloc->in_stream = mica_get32(reader);
        reloc->where = mica_get32(reader);
        reloc->offset = mica_get32(reader);
        reloc->target = mica_get32(reader);
        reloc->shift = mica_get32(reader);
        reloc->addend = mica_get64(reader);
    }
}

static void read_layout(struct mica_byte_reader *reader, struct mica_program_layout *layout)
{
    layout->block = mica_get32(reader);
    layout->channels = mica_get32(reader);
    layout->pixels = mica_get32(reader);
    uint32_t padding = mica_get32(reader);
    reader->error |= padding > UINT8_MAX;
    layout->padding = (uint8_t)padding;
    layout->surface = mica_get64(reader);
}

static struct mica_program_io *read_ios(struct mica_byte_reader *reader, uint32_t count, uint32_t *result)
{
    struct mica_program_io *ios = mica_get_array(reader, count, IO_BYTES, sizeof *ios);
    for (uint32_t i = 0; ios && i < count; i++) {
        ios[i].tensor = mica_get32(reader);
        ios[i].buffer = mica_get32(reader);
        ios[i].offset = mica_get64(reader);
        ios[i].size = mica_get64(reader);
        ios[i].flip_sign = mica_get32(reader);
        read_layout(reader, &ios[i].layout);
        ios[i].first = mica_get64(reader);
    }
    *result = ios ? count : 0;
    return ios;
}

static void read_jobs(struct mica_byte_reader *reader, struct mica_program *program, uint32_t count)
{
    program->jobs = mica_get_array(reader, count, JOB_BYTES, sizeof *program->jobs);
    if (!program->jobs)
        return;
    program->job_count = count;
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *unit = mica_get_bytes(reader, sizeof program->jobs[i].unit);
        if (unit)
            memcpy(program->jobs[i].unit, unit, sizeof program->jobs[i].unit);
        program->jobs[i].op = mica_get32(reader);
        program->jobs[i].macs = mica_get64(reader);
    }
}

static void read_submits(struct mica_byte_reader *reader, struct mica_program *program, uint32_t count)
{
    program->submits = mica_get_array(reader, count, SUBMIT_BYTES, sizeof *program->submits);
    if (!program->submits)
        return;
    program->submit_count = count;
    for (uint32_t i = 0; i < count; i++) {
        program->submits[i].words = mica_get32(reader);
        program->submits[i].first_job = mica_get32(reader);
        program->submits[i].job_count = mica_get32(reader);
        program->submits[i].core = mica_get32(reader);
        program->submits[i].stage = mica_get32(reader);
    }
}

/* An own copy of the next `count` elements of `element` bytes. */
static void *read_copy(struct mica_byte_reader *reader, uint64_t count, size_t element)
{
    const uint8_t *data = mica_get_bytes(reader, count * element);
    if (reader->error || reader->no_memory)
        return NULL;
    void *copy = mica_new_array((size_t)count, element);
    if (copy)
        memcpy(copy, data, (size_t)count * element);
    reader->no_memory |= !copy;
    return copy;
}

static void read_contents(struct mica_byte_reader *reader, struct mica_program *program)
{
    for (uint32_t i = 0; i < program->buffer_count; i++) {
        if (program->buffers[i].data_size)
            program->buffers[i].data = read_copy(reader, program->buffers[i].data_size, 1);
        mica_get_padding(reader);
    }
    for (uint32_t i = 0; i < program->submit_count; i++) {
        program->submits[i].stream = read_copy(reader, program->submits[i].words, sizeof(uint32_t));
        mica_get_padding(reader);
    }
}

struct mica_program *mica_program_read(struct mica_byte_reader *reader)
{
    struct mica_program *program = calloc(1, sizeof *program);
    if (!program) {
        reader->no_memory = true;
        return NULL;
    }
    uint32_t counts[6];
    for (unsigned i = 0; i < 6; i++)
        counts[i] = mica_get32(reader);
    read_buffers(reader, program, counts[0]);
    read_relocs(reader, program, counts[1]);
    program->inputs = read_ios(reader, counts[2], &program->input_count);
    program->outputs = read_ios(reader, counts[3], &program->output_count);
    read_jobs(reader, program, counts[4]);
    read_submits(reader, program, counts[5]);
    if (!reader->error && !reader->no_memory)
        read_contents(reader, program);
    if (!reader->error && !reader->no_memory)
        return program;
    mica_program_destroy(program);
    return NULL;
}
