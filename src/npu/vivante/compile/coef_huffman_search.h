/* SPDX-License-Identifier: MIT */
/* Choices for a stream from what its bytes look like. */
#ifndef MICA_VIVANTE_COMPILE_COEF_HUFFMAN_SEARCH_H
#define MICA_VIVANTE_COMPILE_COEF_HUFFMAN_SEARCH_H

#include "npu/vivante/compile/coef_huffman_code.h"

/* How often each byte occurs. */
struct viv_tally {
    uint32_t all[256];
    uint32_t field[256]; /* in the kernel count, biases and offsets */
    uint32_t runs[256];  /* stretches of this one byte between other bytes, fields and ends */
    uint32_t below[513]; /* sums of `all`, twice around the circle: set by viv_tally_sum() */
};

void viv_tally_add(struct viv_tally *tally, const struct viv_sequence *sequence);
void viv_tally_merge(struct viv_tally *tally, const struct viv_tally *other);
void viv_tally_sum(struct viv_tally *tally);

/* Whether coding differences is worth looking into: judged by the first bytes of a long sequence. */
bool viv_differences_may_pay(const struct viv_sequence *plain);

/* Stretches of one byte by length, longer ones than VIV_RUN_LIMIT as pieces of 256 and a rest. */
struct viv_run_lengths {
    uint32_t count[VIV_RUN_LIMIT + 1];
    uint32_t longest;
};

void viv_run_lengths_add(struct viv_run_lengths *lengths, const struct viv_sequence *sequence, uint8_t byte);

/* What the search looks at: all cores' bytes, and with precode their differences. */
struct viv_search {
    const struct viv_chip *chip;
    const struct viv_sequence *plain, *differences; /* [cores]; differences NULL: no precode */
    uint32_t cores;
    struct viv_tally tally[2]; /* of plain, of differences */
    uint8_t zero_point;        /* of the weights */
    enum viv_huffman_effort effort;
};

/* The choices that take fewest bits; returns the longest run that they were made for, at least 1. */
uint32_t viv_huffman_search(const struct viv_search *search, struct viv_huffman_choices *choices);

/* Bits that no choices can go below, paddings and dummies not counted. False when memory runs out. */
bool viv_huffman_least_bits(const struct viv_search *search, uint64_t *bits);

/* Order-0 entropy of the bytes, or of their differences where these have less. */
double viv_huffman_entropy_bits(const struct viv_search *search);

/* Sorts classes by falling count, equal ones as given; returns the bits that their symbols take. */
uint64_t viv_assign_symbols(uint32_t classes, const uint64_t *counts, const uint8_t *class_of, uint8_t *map);

/* How often each class of values occurs when `zero` is the byte that codes as 0; without and with zero runs. */
void viv_class_counts(const struct viv_tally *tally, uint8_t zero, bool runs, uint64_t counts[VIV_CLASSES]);

#endif
