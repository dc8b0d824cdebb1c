/* SPDX-License-Identifier: MIT */
/* Makes coefficient buffers for tests, in the ways that the specification's section 5 allows. */
#ifndef TESTS_VIVANTE_SIM_ENCODE_H
#define TESTS_VIVANTE_SIM_ENCODE_H

#include "support.h"

struct coefficients {
    uint32_t w, h, z, kernels; /* kernel size and channels, number of kernels */
    uint32_t kernels_per_core; /* of a superblock */
    uint8_t zero_point;
    unsigned run_bits;
    const uint8_t *weights;        /* [kernel][channel][row][column] */
    const uint32_t *bias, *offset; /* as the buffer has them; chips with a bias table have no offsets */
    bool depthwise;                /* in hardware: z is 1 */
};

/* One weight in stream order, and the fields that belong to it. */
struct coefficient_item {
    uint8_t value;
    bool first, last; /* of its kernel */
    uint32_t bias, offset;
};

/* The weights of `count` kernels from `first` on in V7's order; returns their number. */
size_t coefficient_items(const struct coefficients *coefficients, uint32_t first, uint32_t count,
                         struct coefficient_item *items);

/*
 * Writes a buffer at `out` (zeroed, `room` bytes) and returns its size. What the format leaves open is chosen at
 * random: where runs end, the symbol map, the average bias.
 */
size_t encode_v7(const struct viv_chip *chip, const struct coefficients *coefficients, struct random *random,
                 uint8_t *out, size_t room);
size_t encode_huffman(const struct viv_chip *chip, const struct coefficients *coefficients, struct random *random,
                      uint8_t *out, size_t room);

/* In the chip's own format. */
size_t encode_coefficients(const struct viv_chip *chip, const struct coefficients *coefficients, struct random *random,
                           uint8_t *out, size_t room);

#endif
