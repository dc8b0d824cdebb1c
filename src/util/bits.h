/* SPDX-License-Identifier: MIT */
/*
 * The one pair of bit cursors, least significant bit first. Errors are sticky:
 * a reader never touches a byte outside its buffer and a writer never writes
 * one; past the end the reader returns zeros and `error` is set, so callers
 * check once, at the end.
 */
#ifndef MICA_UTIL_BITS_H
#define MICA_UTIL_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct mica_bit_reader {
    const uint8_t *data;
    uint64_t size;     /* bits */
    uint64_t position; /* bits consumed, never above size */
    bool error;        /* something past the end was asked for */
};

static inline void mica_bit_reader_init(struct mica_bit_reader *reader, const void *data, uint64_t bits)
{
    *reader = (struct mica_bit_reader){.data = data, .size = bits};
}

/* Next `count` bits, 0..32. */
static inline uint32_t mica_bits_read(struct mica_bit_reader *reader, unsigned count)
{
    if (count > reader->size - reader->position) {
        reader->error = true;
        reader->position = reader->size;
        return 0;
    }
    uint64_t first = reader->position >> 3, bytes = (reader->size + 7) >> 3;
    uint64_t window = 0;
    memcpy(&window, reader->data + first, bytes - first < 8 ? (size_t)(bytes - first) : 8);
    window >>= reader->position & 7;
    reader->position += count;
    return (uint32_t)(window & ((UINT64_C(1) << count) - 1));
}

struct mica_bit_writer {
    uint8_t *data;     /* may be NULL: then bits are only counted */
    uint64_t size;     /* bits available in data */
    uint64_t position; /* bits written so far; goes on counting after an error */
    bool error;        /* something did not fit */
};

/* `data` must be zeroed, `bits` its size in bits; data NULL counts bits without writing. */
static inline void mica_bit_writer_init(struct mica_bit_writer *writer, void *data, uint64_t bits)
{
    *writer = (struct mica_bit_writer){.data = data, .size = data ? bits : UINT64_MAX};
}

/* Appends the low `count` bits of `value`, count 0..32; higher bits must be zero. */
static inline void mica_bits_write(struct mica_bit_writer *writer, uint32_t value, unsigned count)
{
    if (count > writer->size || writer->position > writer->size - count) {
        writer->error = true;
    } else if (writer->data && count) {
        uint64_t window = (uint64_t)value << (writer->position & 7);
        uint8_t *byte = writer->data + (writer->position >> 3);
        if ((writer->size >> 3) - (writer->position >> 3) >= 8) { /* what follows is still zero: one store will do */
            window |= *byte;
            memcpy(byte, &window, 8);
        } else {
            for (; window; window >>= 8)
                *byte++ |= (uint8_t)window;
        }
    }
    writer->position += count;
}

#endif
