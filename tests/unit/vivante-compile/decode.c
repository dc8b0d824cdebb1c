/* SPDX-License-Identifier: MIT */
/*
 * A decoder of V7 streams written from the specification, section 5.1, bit by
 * bit: slow, simple, and with no line in common with the encoder or the
 * simulator.
 */
#include "support.h"

#include <stdlib.h>
#include <string.h>

#define CORES 8
#define HEADER 64

struct reader {
    const uint8_t *data;
    uint64_t bits, position;
    bool past_end;
    uint32_t run_bits;
    uint32_t zeros; /* left in the current token */
    bool value_left;
    uint8_t value;
};

static uint32_t read_bits(struct reader *reader, uint32_t count)
{
    uint32_t result = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (reader->position == reader->bits) {
            reader->past_end = true;
            return 0;
        }
        uint32_t bit = reader->data[reader->position / 8] >> reader->position % 8 & 1;
        result |= bit << i;
        reader->position++;
    }
    return result;
}

static uint8_t next_weight(struct reader *reader, uint8_t zero_point)
{
    if (!reader->zeros && !reader->value_left) {
        reader->zeros = read_bits(reader, reader->run_bits);
        reader->value = (uint8_t)read_bits(reader, 8);
        reader->value_left = true;
    }
    if (reader->zeros) {
        reader->zeros--;
        return zero_point;
    }
    reader->value_left = false;
    return reader->value;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* The kernels of one superblock of one core. */
static const char *decode_superblock(struct reader *reader, const struct shape *shape, struct kernel *kernels,
                                     uint32_t count)
{
    uint32_t width = shape->pointwise ? 6 : 1;
    for (uint32_t z = 0; z < shape->channels; z += width)
        for (uint32_t k = 0; k < count; k++) {
            uint32_t channels = smaller(width, shape->channels - z), weights = channels * shape->taps;
            for (uint32_t i = 0; i < weights; i++) {
                kernels[k].weights[(size_t)z * shape->taps + i] = next_weight(reader, shape->zero_point);
                if (z == 0 && i == 0)
                    kernels[k].bias = read_bits(reader, 32);
            }
            if (z + channels < shape->channels)
                continue;
            if (reader->zeros || reader->value_left)
                return "a token reaches past a kernel's last weight";
            kernels[k].offset = read_bits(reader, 32);
        }
    return NULL;
}

static const char *decode_core(const uint8_t *data, uint32_t size, const struct shape *shape, struct decoded *decoded)
{
    struct reader reader = {.data = data, .bits = (uint64_t)size * 8};
    reader.run_bits = read_bits(&reader, 8);
    uint32_t count = read_bits(&reader, 16), done = 0;
    if (reader.run_bits > 5 || (shape->pointwise && reader.run_bits))
        return "zero-run width";
    decoded->zero_run_bits = reader.run_bits;
    decoded->kernels = realloc(decoded->kernels, (decoded->count + count + 1) * sizeof(struct kernel));
    if (!decoded->kernels)
        return "memory";
    struct kernel *kernels = decoded->kernels + decoded->count;
    for (uint32_t k = 0; k < count; k++, decoded->count++)
        kernels[k] = (struct kernel){.weights = calloc(shape->channels, shape->taps)};
    while (done < count) {
        uint32_t now = smaller(shape->kernels_per_core, count - done);
        const char *wrong = decode_superblock(&reader, shape, kernels + done, now);
        if (wrong)
            return wrong;
        done += now;
    }
    if (reader.past_end)
        return "the stream ends early";
    if ((reader.position + 511) / 512 * 64 != size)
        return "the stream is padded more than to 64 bytes";
    while (reader.position < reader.bits)
        if (read_bits(&reader, 1))
            return "the padding is not zero";
    return NULL;
}

static int by_offset(const void *a, const void *b)
{
    const struct kernel *x = a, *y = b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

const char *decode_v7(const uint8_t *data, size_t size, const struct shape *shape, struct decoded *decoded)
{
    memset(decoded, 0, sizeof(*decoded));
    uint64_t position = HEADER;
    for (uint32_t core = 0; core < CORES; core++) {
        uint32_t bytes;
        memcpy(&bytes, data + 4 * core, 4);
        if (bytes % 64 || position + bytes > size)
            return "a core's size";
        const char *wrong = bytes ? decode_core(data + position, bytes, shape, decoded) : NULL;
        if (wrong)
            return wrong;
        position += bytes;
    }
    decoded->size = position;
    if (decoded->count)
        qsort(decoded->kernels, decoded->count, sizeof(struct kernel), by_offset);
    return NULL;
}

void decoded_finish(struct decoded *decoded)
{
    for (uint32_t i = 0; i < decoded->count; i++)
        free(decoded->kernels[i].weights);
    free(decoded->kernels);
}
