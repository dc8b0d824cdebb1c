/* SPDX-License-Identifier: MIT */
/* From bits to bytes (specification, sections 5.2.3, 5.2.4 and 5.2.7). */
#ifndef MICA_VIVANTE_SIM_COEF_HUFFMAN_BITS_H
#define MICA_VIVANTE_SIM_COEF_HUFFMAN_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VIV_HUFFMAN_SLACK 512u /* bytes that viv_huffman_bytes() may write past `limit` */
#define VIV_HUFFMAN_LONGEST_RUN 256u

/* What a header says about coding. */
struct viv_huffman_header {
    bool precode;
    uint8_t average_bias;
    uint32_t runs; /* entries of the run table, 0: no zero runs */
    uint16_t run[18];
    uint8_t symbol_map[8];
};

/* Values of all codes. */
struct viv_huffman_table {
    struct {
        uint8_t field_bits; /* that follow in the value field */
        uint16_t *values;   /* by value field: a byte, or VIV_HUFFMAN_RUN + length of a run of zeros */
    } code[12];
    uint16_t values[12 * 256];
    uint8_t average_bias;
};
#define VIV_HUFFMAN_RUN 0x1000u

void viv_huffman_table_make(const struct viv_huffman_header *header, struct viv_huffman_table *table);

enum viv_huffman_end {
    VIV_HUFFMAN_ENDED,   /* bits and codes end together, as they should */
    VIV_HUFFMAN_LIMIT,   /* there are at least `limit` bytes */
    VIV_HUFFMAN_CUT,     /* the bits end within a step */
    VIV_HUFFMAN_NO_PAIR, /* too few bits for any code */
    VIV_HUFFMAN_MARK,    /* what the stream ends with is not the end's pattern */
};

/*
 * Decodes a stream of `bits` bits until its end or until `out` has `limit` bytes, where it has `limit` +
 * VIV_HUFFMAN_SLACK. *count: bytes decoded; the dummy at the end is not among them. Average bias is added,
 * precode not undone.
 */
enum viv_huffman_end viv_huffman_bytes(const struct viv_huffman_table *table, const uint8_t *stream, uint64_t bits,
                                       uint8_t *out, size_t limit, size_t *count);

#endif
