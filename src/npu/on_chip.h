/* SPDX-License-Identifier: MIT */
/* On-chip memory that a device's jobs can address like any other. */
#ifndef MICA_NPU_ON_CHIP_H
#define MICA_NPU_ON_CHIP_H

#include <stdint.h>

#define MICA_ON_CHIP_WINDOWS 2

/*
 * Device addresses behind which on-chip memory stands; page aligned. All that
 * use the device share it, one submission after the other: what a submission
 * leaves there is gone when another program's comes between, so only what is
 * written and read inside one partition may live there.
 */
struct mica_on_chip {
    uint64_t address, size; /* size 0: there is none */
};

#endif
