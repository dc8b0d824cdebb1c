/* SPDX-License-Identifier: MIT */
#include "npu/vivante/sim/coef_huffman_bits.h"

#include <string.h>

#include "util/bits.h"

/*
 * A code is named by its 3-bit part, or, where that is 2, by 8 + its 2-bit part.
 * For some, the prefix holds the lowest bit of the value.
 */
static const struct {
    uint8_t symbol, low_bits, low;
} codes[12] = {
    {0, 1, 0}, {1, 1, 0}, {0},       {3, 0, 0}, {0, 1, 1}, {1, 1, 1}, {4, 0, 0}, {2, 0, 0}, /* 2 has a 2-bit part */
    {7, 0, 0}, {5, 1, 0}, {6, 0, 0}, {5, 1, 1},
};

#define ESCAPE 2u /* the 3-bit part that a 2-bit part follows */

static uint32_t log2_of(uint32_t power)
{
    uint32_t bits = 0;
    while (power > 1u << bits)
        bits++;
    return bits;
}

/* Bits of a value of class `class`, those in the prefix included. */
static uint32_t value_bits(const struct viv_huffman_header *header, uint32_t class)
{
    if (!header->runs)
        return class ? class : 1;
    switch (class) {
    case 0:
        return 1;
    case 7:
        return 8;
    case 8:
        return log2_of(header->runs - 2);
    default:
        return class;
    }
}

/* The byte (average bias not yet added) or run that a value stands for. */
static uint16_t meaning(const struct viv_huffman_header *header, uint32_t class, uint32_t value)
{
    uint32_t sign = value & 1, low = value >> 1;
    if (header->runs && class == 7)
        return (uint16_t)value;
    if (header->runs && (class == 0 || class == 8))
        return (uint16_t)(VIV_HUFFMAN_RUN + header->run[class == 0 ? value : 2 + value]);
    uint32_t magnitude = class ? low | 1u << (class - 1) : 0;
    if (!sign)
        return (uint16_t)magnitude;
    return (uint16_t)(header->runs ? 256 - magnitude : ~magnitude & 255);
}

void viv_huffman_table_make(const struct viv_huffman_header *header, struct viv_huffman_table *table)
{
    uint16_t *next = table->values;
    table->average_bias = header->average_bias;
    for (uint32_t i = 0; i < 12; i++) {
        uint32_t class = header->symbol_map[codes[i].symbol], bits = value_bits(header, class) - codes[i].low_bits;
        table->code[i].field_bits = (uint8_t)bits;
        table->code[i].values = next;
        for (uint32_t field = 0; field < 1u << bits; field++) {
            uint16_t value = meaning(header, class, field << codes[i].low_bits | codes[i].low);
            *next++ = value < VIV_HUFFMAN_RUN ? (uint8_t)(value + header->average_bias) : value;
        }
    }
}

/* A pair of codes on its way: first only the 3-bit parts are known, one step later which codes they are. */
struct pair {
    uint32_t parts;   /* both 3-bit parts */
    uint8_t codes[2]; /* when known */
    uint32_t bits;    /* that it takes in the next step: 2-bit parts, or value fields */
};

static inline uint32_t escape_bits(uint32_t parts)
{
    return ((parts & 7) == ESCAPE) * 2u + (parts >> 3 == ESCAPE) * 2u;
}

static inline void name_codes(const struct viv_huffman_table *table, struct pair *pair, uint32_t two)
{
    uint32_t a = pair->parts & 7, b = pair->parts >> 3;
    if (a == ESCAPE) {
        a = 8 + (two & 3);
        two >>= 2;
    }
    b = b == ESCAPE ? 8 + (two & 3) : b;
    pair->codes[0] = (uint8_t)a;
    pair->codes[1] = (uint8_t)b;
    pair->bits = (uint32_t)table->code[a].field_bits + table->code[b].field_bits;
}

static inline uint8_t *put(const struct viv_huffman_table *table, uint8_t code, uint32_t field, uint8_t *out)
{
    uint16_t value = table->code[code].values[field];
    if (value < VIV_HUFFMAN_RUN) {
        *out = (uint8_t)value;
        return out + 1;
    }
    memset(out, table->average_bias, value - VIV_HUFFMAN_RUN);
    return out + (value - VIV_HUFFMAN_RUN);
}

static inline uint8_t *put_pair(const struct viv_huffman_table *table, const struct pair *pair, uint32_t fields,
                                uint8_t *out)
{
    uint32_t first = table->code[pair->codes[0]].field_bits;
    out = put(table, pair->codes[0], fields & ((1u << first) - 1), out);
    return put(table, pair->codes[1], fields >> first, out);
}

/* The two pairs at the end are all 0, or all 4 to say that the last code before them is a dummy. */
static enum viv_huffman_end check_end(const struct pair *before, const struct pair *last, bool *dummy)
{
    *dummy = before->parts == (4 | 4 << 3);
    return last->parts == before->parts && (before->parts == 0 || *dummy) ? VIV_HUFFMAN_ENDED : VIV_HUFFMAN_MARK;
}

enum viv_huffman_end viv_huffman_bytes(const struct viv_huffman_table *table, const uint8_t *stream, uint64_t bits,
                                       uint8_t *out, size_t limit, size_t *count)
{
    struct mica_bit_reader reader;
    struct pair old = {0}, young = {0};
    uint8_t *next = out;
    bool dummy;
    *count = 0;
    mica_bit_reader_init(&reader, stream, bits);
    for (uint64_t step = 0; reader.position < bits; step++) {
        /* Three parts: this pair's first bits, the last pair's 2-bit parts, the fields of the one before that. */
        uint32_t word = mica_bits_read(&reader, 6 + young.bits + old.bits);
        uint32_t escapes = word >> 6 & ((1u << young.bits) - 1), fields = word >> (6 + young.bits);
        if (reader.error)
            return VIV_HUFFMAN_CUT;
        if (step >= 2) {
            next = put_pair(table, &old, fields, next);
            if ((size_t)(next - out) >= limit && reader.position < bits) {
                *count = (size_t)(next - out);
                return VIV_HUFFMAN_LIMIT;
            }
        }
        if (step >= 1) {
            old = young;
            name_codes(table, &old, escapes);
        }
        young.parts = word & 63;
        young.bits = escape_bits(young.parts);
        if (step < 2 && reader.position == bits)
            return VIV_HUFFMAN_NO_PAIR;
    }
    if (bits == 0)
        return VIV_HUFFMAN_NO_PAIR;
    enum viv_huffman_end end = check_end(&old, &young, &dummy);
    *count = (size_t)(next - out) - (end == VIV_HUFFMAN_ENDED && dummy);
    return end;
}
