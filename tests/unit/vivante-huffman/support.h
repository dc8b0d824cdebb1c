/* SPDX-License-Identifier: MIT */
/* Kernel sets made up for the tests, and what must come back of them. */
#ifndef TESTS_VIVANTE_HUFFMAN_SUPPORT_H
#define TESTS_VIVANTE_HUFFMAN_SUPPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "npu/vivante/compile/coef_huffman.h"
#include "npu/vivante/sim/coef_huffman.h"

/* A small fixed generator, so that failures repeat. */
struct random {
    uint64_t state;
};
uint32_t random_word(struct random *random);
uint32_t random_below(struct random *random, uint32_t bound);

/* The kernels of one job, as encoder and decoder see them. */
struct kernels {
    const struct viv_chip *chip;
    struct viv_kernel_set set;
    struct viv_huffman_job job;
    struct viv_huffman_shape shape;
    uint8_t *data;    /* behind set.data */
    uint32_t *bias;   /* behind set.bias */
    uint8_t *weights; /* what must be decoded, [kernel][channel][row][column] */
};

/*
 * Allocates set.data, set.bias and weights for kernels of the shape, the chip's own depthwise ones (`depthwise`)
 * or expanded ones (`diagonal`). False when memory runs out.
 */
bool kernels_make(struct kernels *kernels, const struct viv_chip *chip, uint32_t count, uint32_t channels,
                  uint32_t width, uint32_t height, bool depthwise, bool diagonal);
void kernels_finish(struct kernels *kernels);

/* Fills set.data from `weights`: taps in the order that the chip's stream has. */
void kernels_order(struct kernels *kernels);

/* Kernels in channel order from what was decoded; offsets must be multiples of a plane. */
bool kernels_from(struct kernels *kernels, const struct viv_huffman_shape *shape, const struct viv_coefs *coefs);

/* Bytes of the streams that a buffer's header announces. */
size_t recorded_bytes(const struct viv_chip *chip, const uint8_t *buffer);

/* Kernels of any shape, sparsity and distribution that stay below `most` weights. */
bool kernels_random(struct kernels *kernels, struct random *random, uint32_t most);

/* Choices that the format allows, good or bad. */
void choices_random(struct viv_huffman_choices *choices, const struct kernels *kernels, struct random *random);

/* NULL, or what differs between what was encoded and what the decoder makes of it. */
const char *kernels_compare(const struct kernels *kernels, const struct viv_coefs *coefs);

/* Decodes a buffer of exactly its size; NULL or what is wrong. */
const char *kernels_decode(const struct kernels *kernels, const struct viv_coefficients *coefficients,
                           struct mica_log *log);

#endif
