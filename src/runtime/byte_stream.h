/* SPDX-License-Identifier: MIT */
/*
 * Little-endian numbers to a file that is summed up on the way, and from
 * untrusted memory. Errors are sticky: callers check once, at the end.
 */
#ifndef MICA_RUNTIME_BYTE_STREAM_H
#define MICA_RUNTIME_BYTE_STREAM_H

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "util/checked.h"

struct mica_byte_writer {
    FILE *file;
    XXH3_state_t sum; /* of all bytes so far */
    uint64_t position;
    bool error; /* errno has the reason of the first */
};

static inline void mica_put_bytes(struct mica_byte_writer *writer, const void *data, size_t size)
{
    if (writer->error || !size)
        return;
    writer->error = fwrite(data, 1, size, writer->file) != size;
    XXH3_64bits_update(&writer->sum, data, size);
    writer->position += size;
}

static inline void mica_put32(struct mica_byte_writer *writer, uint32_t value)
{
    mica_put_bytes(writer, &value, sizeof value);
}

static inline void mica_put64(struct mica_byte_writer *writer, uint64_t value)
{
    mica_put_bytes(writer, &value, sizeof value);
}

/* Zeros up to a multiple of 8. */
static inline void mica_put_padding(struct mica_byte_writer *writer)
{
    static const char zeros[8];
    mica_put_bytes(writer, zeros, -writer->position & 7);
}

struct mica_byte_reader {
    const uint8_t *data;
    size_t size, position;
    bool error;     /* something past the end was asked for */
    bool no_memory; /* an array could not be allocated */
};

static inline const uint8_t *mica_get_bytes(struct mica_byte_reader *reader, uint64_t size)
{
    if (!mica_range_inside(reader->position, size, reader->size)) {
        reader->error = true;
        reader->position = reader->size;
        return NULL;
    }
    const uint8_t *data = reader->data + reader->position;
    reader->position += (size_t)size;
    return data;
}

static inline uint32_t mica_get32(struct mica_byte_reader *reader)
{
    uint32_t value = 0;
    const uint8_t *data = mica_get_bytes(reader, sizeof value);
    if (data)
        memcpy(&value, data, sizeof value);
    return value;
}

static inline uint64_t mica_get64(struct mica_byte_reader *reader)
{
    uint64_t value = 0;
    const uint8_t *data = mica_get_bytes(reader, sizeof value);
    if (data)
        memcpy(&value, data, sizeof value);
    return value;
}

static inline void mica_get_padding(struct mica_byte_reader *reader)
{
    mica_get_bytes(reader, -reader->position & 7);
}

/*
 * A zeroed array of `count` elements that take `stored` bytes each in what is
 * still to be read, so that a false count can't ask for more memory than the
 * file is long. NULL on failure.
 */
static inline void *mica_get_array(struct mica_byte_reader *reader, uint32_t count, size_t stored, size_t element)
{
    if (reader->error || reader->no_memory || count > (reader->size - reader->position) / stored) {
        reader->error = true;
        return NULL;
    }
    void *array = mica_new_array(count, element);
    reader->no_memory |= !array;
    return array;
}

#endif
