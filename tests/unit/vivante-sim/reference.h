/* SPDX-License-Identifier: MIT */
/*
 * A slow second reading of the specification (sections 2, 4.1, 5.1 and 6.1),
 * to hold the simulator against. It shares the descriptor and chip tables with
 * it and nothing else, checks little, and is for streams that tests trust.
 */
#ifndef TESTS_VIVANTE_SIM_REFERENCE_H
#define TESTS_VIVANTE_SIM_REFERENCE_H

#include <stddef.h>
#include <stdint.h>

#include "encode.h"
#include "npu/vivante/hw/chips.h"

/* Executes a stream with V7 coefficients on memory whose device address 0 is `base`; returns the number of jobs. */
size_t reference_run(const struct viv_chip *chip, uint8_t *base, const uint32_t *stream, size_t words);

/* Where the kernels of an NN job start to write, in stream order; returns how many there are. */
size_t reference_planes(const struct viv_chip *chip, const uint8_t *base, uint32_t descriptor, uint32_t *addresses,
                        size_t room);

/* With the V7 coefficients that the descriptor points to, or with other coefficients, whatever it points to. */
void reference_nn(const struct viv_chip *chip, uint8_t *base, uint32_t descriptor);
void reference_nn_with(const struct viv_chip *chip, uint8_t *base, uint32_t descriptor,
                       const struct coefficients *coefficients);
void reference_tp(uint8_t *base, uint32_t descriptor);

#endif
