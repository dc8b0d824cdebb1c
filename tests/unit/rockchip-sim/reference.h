/* SPDX-License-Identifier: MIT */
/*
 * The specification's sections 4 to 11 for RK3588, one value after the other and with its own idea of where fields
 * are: what the simulator is checked against. Right for well-formed convolutions only.
 */
#ifndef TESTS_ROCKCHIP_SIM_REFERENCE_H
#define TESTS_ROCKCHIP_SIM_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

/* Register values by offset / 4, as one program writes them. */
struct reference_registers {
    uint32_t word[0x2000];
};

void reference_read(struct reference_registers *registers, const uint64_t *words, uint32_t count);

/* Runs the convolution in a whole address space. */
void reference_convolution(const struct reference_registers *registers, uint8_t *memory);

/* v through BS, BN, EW with operand `e` (as it is in memory) and OUT; a: BRDMA's A, b: B, c: C, s: the window's sum. */
int reference_output(const struct reference_registers *registers, int64_t acc, int64_t s, int64_t a, int64_t b,
                     int64_t c, int64_t e);

#endif
