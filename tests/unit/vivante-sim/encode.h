/* SPDX-License-Identifier: MIT */
/* Makes V7 coefficient buffers for tests, in the ways that the specification's section 5.1 allows. */
#ifndef TESTS_VIVANTE_SIM_ENCODE_H
#define TESTS_VIVANTE_SIM_ENCODE_H

#include "support.h"

struct coefficients {
    uint32_t w, h, z, kernels; /* kernel size and channels, number of kernels */
    uint32_t kernels_per_core; /* of a superblock */
    uint8_t zero_point;
    unsigned run_bits;
    const uint8_t *weights; /* [kernel][channel][row][column] */
    const uint32_t *bias, *offset;
};

/* Writes a buffer for eight cores at `out` (zeroed, `room` bytes) and returns its size; runs end at random where they
 * may. */
size_t encode_coefficients(const struct coefficients *coefficients, struct random *random, uint8_t *out, size_t room);

#endif
