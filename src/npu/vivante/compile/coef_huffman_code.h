/* SPDX-License-Identifier: MIT */
/* From bytes to bits (specification, sections 5.2.3, 5.2.4 and 5.2.7). */
#ifndef MICA_VIVANTE_COMPILE_COEF_HUFFMAN_CODE_H
#define MICA_VIVANTE_COMPILE_COEF_HUFFMAN_CODE_H

#include "npu/vivante/compile/coef_huffman_sequence.h"

#define VIV_RUN_LIMIT 1024u /* longer runs of zeros are cut into pieces first */
#define VIV_RUN_RAW 255u    /* "a raw zero", where an entry of the run table is named */
#define VIV_CODE_BITS 13u   /* of the longest code: a raw byte under symbol 6 or 7 */

/* Classes of values: bit lengths, and with zero runs: */
enum {
    VIV_CLASS_RUN_SHORT = 0, /* table entries 0 and 1 */
    VIV_CLASS_RAW = 7,
    VIV_CLASS_RUN_LONG = 8, /* the other entries */
    VIV_CLASSES = 9,
};

/* Bits of each symbol besides its value's: what of them is in the 3-bit part counts here too. */
extern const uint8_t viv_symbol_bits[8];

/* Bits of the value of a class; `runs` are the table's entries, 0: none. */
uint32_t viv_class_bits(uint32_t class, uint32_t runs);

/* Which entry a run of r zeros begins with, r up to `limit`. */
struct viv_run_plan {
    uint8_t entry[VIV_RUN_LIMIT + 1];
    uint32_t limit, piece; /* longer runs are cut into pieces first */
};

void viv_run_plan_vendor(const struct viv_huffman_choices *choices, struct viv_run_plan *plan);

/* Bits of a code of entries 0 and 1, of the others, of a raw zero. */
struct viv_run_costs {
    uint32_t shorter, longer, raw;
};

/* Fewest bits for runs up to `longest`, which is at least 1. */
void viv_run_plan_cheapest(const struct viv_huffman_choices *choices, const struct viv_run_costs *costs,
                           uint32_t longest, struct viv_run_plan *plan);

/* Costs under a symbol map. */
struct viv_run_costs viv_run_costs_of(const struct viv_huffman_choices *choices);

/*
 * Codes `sequence` into `out`, zeroed memory of `size` bytes that must hold VIV_CODE_BITS for each byte and one
 * more, and 12 bits; returns the number of bits. `zero_point` is what the bytes have on top (coef_centred).
 */
uint64_t viv_huffman_code(const struct viv_sequence *sequence, const struct viv_huffman_choices *choices,
                          const struct viv_run_plan *plan, uint8_t zero_point, uint8_t *out, size_t size);

#endif
