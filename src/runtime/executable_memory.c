/* SPDX-License-Identifier: MIT */
/* mica_executable_memory(): what the programs take on the device, by what it is for. */
#include "runtime/objects.h"
#include "util/checked.h"

/* Descriptors are what holds addresses; contents without any are coefficients. */
static bool has_addresses(const struct mica_program *program, uint32_t buffer)
{
    for (uint32_t i = 0; i < program->reloc_count; i++) {
        if (!program->relocs[i].in_stream && program->relocs[i].where == buffer)
            return true;
    }
    return false;
}

static bool holds_tensor(const struct mica_program *program, uint32_t buffer)
{
    for (uint32_t i = 0; i < program->input_count; i++) {
        if (program->inputs[i].buffer == buffer)
            return true;
    }
    for (uint32_t i = 0; i < program->output_count; i++) {
        if (program->outputs[i].buffer == buffer)
            return true;
    }
    return false;
}

static uint64_t *counter_of(const struct mica_program *program, uint32_t index, struct mica_memory_info *info)
{
    const struct mica_program_buffer *buffer = &program->buffers[index];
    if (buffer->fixed_address)
        return &info->on_chip_bytes;
    if (holds_tensor(program, index))
        return &info->tensor_bytes;
    if (!buffer->data)
        return &info->intermediate_bytes;
    return has_addresses(program, index) ? &info->command_bytes : &info->coefficient_bytes;
}

static void add(uint64_t *sum, uint64_t size)
{
    if (__builtin_add_overflow(*sum, size, sum)) /* sizes may come from a file */
        *sum = UINT64_MAX;
}

/* On-chip memory is one and the same for all partitions. */
static void add_program(const struct mica_program *program, struct mica_memory_info *info)
{
    uint64_t on_chip = info->on_chip_bytes;
    info->on_chip_bytes = 0;
    for (uint32_t i = 0; i < program->buffer_count; i++)
        add(counter_of(program, i, info), program->buffers[i].size);
    for (uint32_t i = 0; i < program->submit_count; i++)
        add(&info->command_bytes, program->submits[i].words * UINT64_C(4));
    if (on_chip > info->on_chip_bytes)
        info->on_chip_bytes = on_chip;
}

int mica_executable_memory(const mica_executable *executable, struct mica_memory_info *info)
{
    MICA_CHECK_ARG(NULL, executable);
    MICA_CHECK_ARG(MICA_LOG_OF(executable), info);
    *info = (struct mica_memory_info){0};
    for (uint32_t i = 0; i < executable->plan.step_count; i++) {
        if (executable->programs[i])
            add_program(executable->programs[i], info);
    }
    return 0;
}
