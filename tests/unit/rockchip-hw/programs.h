/* SPDX-License-Identifier: MIT */
/* The register programs that the specification comes with. */
#ifndef TESTS_ROCKCHIP_HW_PROGRAMS_H
#define TESTS_ROCKCHIP_HW_PROGRAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "npu/rockchip/hw/registers.h"

struct program {
    char name[64];
    enum rk_generation generation;
    uint64_t *words; /* one or more programs, each with its tail */
    size_t count;
};

struct programs {
    struct program *list;
    size_t count;
};

/* Ends the process with 77 where the specification isn't on this machine. */
struct programs programs_load(void);
void programs_release(struct programs *programs);

#endif
