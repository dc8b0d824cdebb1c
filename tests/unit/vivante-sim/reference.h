/* SPDX-License-Identifier: MIT */
/*
 * A slow second reading of the specification (sections 2, 4.1, 5.1 and 6.1),
 * to hold the simulator against. It shares the descriptor tables with it and
 * nothing else, checks little, and is for streams that tests trust.
 */
#ifndef TESTS_VIVANTE_SIM_REFERENCE_H
#define TESTS_VIVANTE_SIM_REFERENCE_H

#include <stddef.h>
#include <stdint.h>

/* Executes a stream on memory whose device address 0 is `base`; returns the number of jobs. */
size_t reference_run(uint8_t *base, const uint32_t *stream, size_t words);

/* Where the kernels of an NN job start to write, in stream order; returns how many there are. */
size_t reference_planes(const uint8_t *base, uint32_t descriptor, uint32_t *addresses, size_t room);

void reference_nn(uint8_t *base, uint32_t descriptor);
void reference_tp(uint8_t *base, uint32_t descriptor);

#endif
