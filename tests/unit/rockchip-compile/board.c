/* SPDX-License-Identifier: MIT */
/* A program's buffers in device memory with a gap behind each, relocated, run by the simulator. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "npu/rockchip/compile/plan.h"
#include "npu/rockchip/sim/sim.h"

#define MAX_REPORTS 20000

static const struct mica_npu_family family = {
    .name = "rockchip",
    .supports = rk_supports,
    .compile = rk_compile,
    .sim_create = rk_sim_create,
    .sim_destroy = rk_sim_destroy,
    .sim_set_clock = rk_sim_set_clock,
    .sim_run = rk_sim_run,
};

const struct mica_chip test_rk3588 = {
    .name = "rk3588", .clock_mhz = 200, .family = &family, .parameters = &rk_chip_rk3588, .cores = 3};
const struct mica_chip test_rk3566 = {
    .name = "rk3566", .clock_mhz = 1000, .family = &family, .parameters = &rk_chip_rk3566, .cores = 1};

struct board {
    struct mica_device_memory memory;
    uint64_t *address; /* per buffer */
    struct mica_log log;
    void *sim;
};

static void load(struct board *board, const struct mica_program *program)
{
    uint64_t next = MICA_DEVICE_PAGE;
    for (uint32_t i = 0; i < program->buffer_count; i++) {
        const struct mica_program_buffer *buffer = &program->buffers[i];
        uint64_t size = (buffer->size + MICA_DEVICE_PAGE - 1) / MICA_DEVICE_PAGE * MICA_DEVICE_PAGE;
        assert_int_equal(mica_device_memory_map(&board->memory, next, size), 0);
        mica_device_memory_protect(&board->memory, next, size, buffer->access);
        /* What nobody wrote must not matter. */
        memset(board->memory.base + next, buffer->data ? 0 : 0x5b, size);
        if (buffer->data)
            memcpy(board->memory.base + next, buffer->data, buffer->data_size);
        board->address[i] = next;
        next += size + MICA_DEVICE_PAGE;
    }
}

static void relocate(struct board *board, const struct mica_program *program, uint32_t **streams)
{
    for (uint32_t i = 0; i < program->reloc_count; i++) {
        const struct mica_program_reloc *reloc = &program->relocs[i];
        uint8_t *at =
            reloc->in_stream ? (uint8_t *)streams[reloc->where] : board->memory.base + board->address[reloc->where];
        uint32_t word, value = (uint32_t)((board->address[reloc->target] + reloc->addend) >> reloc->shift);
        memcpy(&word, at + reloc->offset, sizeof(word));
        assert_int_equal(word, 0);
        memcpy(at + reloc->offset, &value, sizeof(value));
    }
}

/* Element `i` of the host's bytes on the device. */
static uint8_t *element(const struct board *board, const struct mica_program_io *io, uint64_t i)
{
    uint8_t *base = board->memory.base + board->address[io->buffer] + io->offset;
    const struct mica_program_layout *layout = &io->layout;
    if (!layout->block)
        return base + i;
    uint64_t pixel = i / layout->channels, c = i % layout->channels;
    return base + c / layout->block * layout->surface + pixel * layout->block + c % layout->block;
}

static void write_input(const struct board *board, const struct mica_program_io *io, const uint8_t *data)
{
    for (uint64_t i = 0; i < io->size; i++)
        *element(board, io, i) = data[i] ^ (io->flip_sign ? 0x80 : 0);
}

static uint64_t run(struct board *board, const struct mica_program *program, uint32_t **streams, bool backwards)
{
    static struct mica_job_report reports[MAX_REPORTS];
    uint64_t cycles = 0;
    for (uint32_t first = 0, end; first < program->submit_count; first = end) {
        for (end = first; end < program->submit_count && program->submits[end].stage == program->submits[first].stage;)
            end++;
        for (uint32_t n = first; n < end; n++) {
            uint32_t i = backwards ? first + end - 1 - n : n;
            size_t count = 0;
            int error = rk_sim_run(board->sim, streams[i], program->submits[i].words, reports, MAX_REPORTS, &count);
            if (error)
                fail_msg("%s", board->log.last_error);
            assert_int_equal(count, program->submits[i].job_count);
            for (size_t job = 0; job < count; job++)
                cycles += reports[job].cycles;
        }
    }
    return cycles;
}

uint64_t board_run(const struct mica_chip *chip, const struct mica_program *program, uint8_t **data, bool backwards)
{
    struct board board = {0};
    assert_true(mica_program_valid(program));
    board.address = calloc(program->buffer_count + 1, sizeof(*board.address));
    uint32_t **streams = calloc(program->submit_count + 1, sizeof(*streams));
    assert_true(board.address && streams);
    assert_int_equal(mica_device_memory_create(&board.memory), 0);
    load(&board, program);
    for (uint32_t i = 0; i < program->submit_count; i++) {
        size_t size = program->submits[i].words * sizeof(uint32_t);
        streams[i] = malloc(size);
        assert_non_null(streams[i]);
        memcpy(streams[i], program->submits[i].stream, size);
    }
    relocate(&board, program, streams);
    for (uint32_t i = 0; i < program->input_count; i++)
        write_input(&board, &program->inputs[i], data[program->inputs[i].tensor]);
    assert_int_equal(rk_sim_create(chip, &board.memory, NULL, &board.log, &board.sim), 0);
    uint64_t cycles = run(&board, program, streams, backwards);
    rk_sim_destroy(board.sim);
    for (uint32_t i = 0; i < program->output_count; i++) {
        const struct mica_program_io *io = &program->outputs[i];
        for (uint64_t b = 0; b < io->size; b++)
            data[io->tensor][io->first + b] = *element(&board, io, b) ^ (io->flip_sign ? 0x80 : 0);
    }
    for (uint32_t i = 0; i < program->submit_count; i++)
        free(streams[i]);
    free(streams);
    free(board.address);
    mica_device_memory_destroy(&board.memory);
    return cycles;
}
