/* SPDX-License-Identifier: MIT */
/* Reads what the open driver submitted to rocket for a recorded model. */
#ifndef TESTS_ROCKCHIP_SIM_CAPTURES_H
#define TESTS_ROCKCHIP_SIM_CAPTURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "npu/device_memory.h"

#define MAX_CAPTURED_TASKS 16u

struct captured {
    uint32_t job_count, task_count;
    uint32_t tasks[2 * MAX_CAPTURED_TASKS]; /* of all jobs: address, count */
    uint32_t job_tasks[MAX_CAPTURED_TASKS]; /* of each job */
    uint8_t *expected;                      /* the CPU's output 0, free() it */
    size_t expected_size;
    bool is_signed; /* int8 */
};

/* Maps all buffers of submission 0 of `folder`/rk3588 with their contents; false: something isn't as it should be. */
bool captured_load(const char *folder, struct mica_device_memory *memory, struct captured *captured);

#endif
