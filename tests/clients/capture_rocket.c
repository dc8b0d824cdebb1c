/* SPDX-License-Identifier: MIT */
/* What of captures only the Rockchip family's tables tell. */
#include <string.h>

#include "capture.h"
#include "npu/program.h"
#include "npu/rockchip/hw/registers.h"

/* Where a register program has DPU write, false when it doesn't say. */
static bool destination(const struct mica_device_memory *memory, const uint32_t *task, uint32_t *address)
{
    uint64_t fault, bytes = (uint64_t)task[1] * sizeof(uint64_t);
    const uint8_t *program = mica_device_at(memory, task[0], bytes, MICA_ACCESS_READ, &fault);
    const struct rk_field *field = &rk_fields[RK_DPU_DST_BASE_ADDR_DST_BASE_ADDR];
    bool found = false;
    for (uint64_t at = 0; program && at < bytes; at += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, program + at, sizeof word);
        if (rk_word_target(word) != rk_blocks[RK_DPU].target ||
            rk_word_offset(word) != field->at[RK_GENERATION_RK3588].offset)
            continue;
        *address = rk_word_value(word);
        found = true;
    }
    return found;
}

/* A layer may be several tasks, one a stripe of rows: the lowest address is its first row. */
static bool last_tasks_output(const struct capture *capture, const struct mica_device_memory *memory, uint32_t *address)
{
    const struct capture_submit *submit = &capture->submits[capture->submit_count - 1];
    size_t words;
    bool found = false;
    if (!submit->job_count)
        return false;
    const uint32_t *tasks = capture_job(submit, submit->job_count - 1, &words);
    for (size_t i = 0; i + 2 <= words; i += 2) {
        uint32_t output;
        if (!destination(memory, tasks + i, &output))
            continue;
        *address = found && *address < output ? *address : output;
        found = true;
    }
    return found;
}

bool capture_rocket_output_address(const struct capture *capture, const struct mica_device_memory *memory,
                                   uint32_t *address)
{
    *address = capture->output_address;
    return capture->output_known || last_tasks_output(capture, memory, address);
}
