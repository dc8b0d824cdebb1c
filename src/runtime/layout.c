/* SPDX-License-Identifier: MIT */
/*
 * Blocked layouts move the 8 or 16 channels of a pixel at once, in words of 8. Pixels are taken in tiles that
 * stay in the first level of the cache: one side goes through memory in order, the other in short runs that
 * come back to the same lines before they leave.
 */
#include "runtime/layout.h"

#include <string.h>

/* Bytes of a tile on the host's side: half of a small first-level cache. */
#define TILE_BYTES 16384u
/* `block` is a number the compiler knows wherever these are called from, or they are slow. */
#define INLINE static inline __attribute__((always_inline))
/* A byte in every lane of a word. */
#define LANES(byte) ((byte)*UINT64_C(0x0101010101010101))

/* One tensor on its way. */
struct move {
    const struct mica_program_layout *layout;
    size_t size;   /* of the host's value */
    uint64_t flip; /* what every lane is XORed with */
};

/* Pixels [first, end) of one surface, or of all. */
struct range {
    uint32_t first, end;
};

INLINE uint64_t load(const uint8_t *from)
{
    uint64_t word;
    memcpy(&word, from, sizeof word);
    return word;
}

INLINE void store(uint8_t *to, uint64_t word)
{
    memcpy(to, &word, sizeof word);
}

INLINE void move_block(uint8_t *to, const uint8_t *from, uint64_t flip, uint32_t block)
{
    for (uint32_t i = 0; i < block; i += 8)
        store(to + i, load(from + i) ^ flip);
}

/* The next tile behind `range`; false: there is none. */
static bool next_tile(const struct mica_program_layout *layout, struct range *range)
{
    uint32_t step = TILE_BYTES / layout->channels, left = layout->pixels - range->end;
    step = step ? step : 1;
    range->first = range->end;
    range->end += step < left ? step : left;
    return left > 0;
}

/* Channels of the last surface. */
static uint32_t last_lanes(const struct mica_program_layout *layout)
{
    return (layout->channels - 1) % layout->block + 1;
}

/* Words with 0xff in the first `count` lanes of a block. */
static void set_mask(uint64_t mask[2], uint32_t count)
{
    uint8_t lanes[16] = {0};
    memset(lanes, 0xff, count);
    memcpy(mask, lanes, sizeof lanes);
}

/* ---- to the device ---------------------------------------------------- */

/* `first` is the first channel of a full surface. */
INLINE void write_full(const struct move *move, const uint8_t *host, uint8_t *device, struct range range,
                       uint32_t first, uint32_t block)
{
    const struct mica_program_layout *layout = move->layout;
    for (size_t p = range.first; p < range.end; p++)
        move_block(device + first / block * layout->surface + p * block, host + p * layout->channels + first,
                   move->flip, block);
}

/* A block is read whole where the tensor goes on that far, and lanes past the channels are replaced. */
INLINE void write_last(const struct move *move, const uint8_t *host, uint8_t *device, struct range range,
                       uint32_t first, uint32_t block)
{
    const struct mica_program_layout *layout = move->layout;
    uint32_t count = last_lanes(layout);
    uint64_t mask[2], padding = LANES(layout->padding);
    uint8_t end[16] = {0};
    set_mask(mask, count);
    for (size_t p = range.first; p < range.end; p++) {
        size_t at = p * layout->channels + first;
        const uint8_t *from = host + at;
        uint8_t *to = device + first / block * layout->surface + p * block;
        if (move->size - at < block)
            from = memcpy(end, from, count);
        for (uint32_t i = 0; i < block; i += 8)
            store(to + i, ((load(from + i) ^ move->flip) & mask[i / 8]) | (padding & ~mask[i / 8]));
    }
}

INLINE void write_blocks(const struct move *move, const uint8_t *host, uint8_t *device, uint32_t block)
{
    struct range range = {0, 0};
    uint32_t last = (move->layout->channels - 1) / block * block;
    while (next_tile(move->layout, &range)) {
        for (uint32_t first = 0; first < last; first += block)
            write_full(move, host, device, range, first, block);
        write_last(move, host, device, range, last, block);
    }
}

/* ---- and back --------------------------------------------------------- */

INLINE void read_full(const struct move *move, uint8_t *host, const uint8_t *device, struct range range, uint32_t first,
                      uint32_t block)
{
    const struct mica_program_layout *layout = move->layout;
    for (size_t p = range.first; p < range.end; p++)
        move_block(host + p * layout->channels + first, device + first / block * layout->surface + p * block,
                   move->flip, block);
}

/*
 * A block is written whole where the tensor goes on that far: over the first channels of the pixels that
 * follow, which get their own values later, from here or from the first surface.
 */
INLINE void read_last(const struct move *move, uint8_t *host, const uint8_t *device, struct range range, uint32_t first,
                      uint32_t block)
{
    const struct mica_program_layout *layout = move->layout;
    uint8_t end[16];
    for (size_t p = range.first; p < range.end; p++) {
        size_t at = p * layout->channels + first;
        const uint8_t *from = device + first / block * layout->surface + p * block;
        bool inside = move->size - at >= block;
        move_block(inside ? host + at : end, from, move->flip, block);
        if (!inside)
            memcpy(host + at, end, last_lanes(layout));
    }
}

INLINE void read_blocks(const struct move *move, uint8_t *host, const uint8_t *device, uint32_t block)
{
    struct range range = {0, 0};
    uint32_t last = (move->layout->channels - 1) / block * block;
    while (next_tile(move->layout, &range)) {
        read_last(move, host, device, range, last, block);
        for (uint32_t first = 0; first < last; first += block)
            read_full(move, host, device, range, first, block);
    }
}

/* ---- any layout ------------------------------------------------------- */

static struct move move_of(const struct mica_program_io *io)
{
    return (struct move){&io->layout, (size_t)io->size, io->flip_sign ? LANES(0x80) : 0};
}

/* As the host has them, but for the sign bits. */
static void copy(uint8_t *to, const uint8_t *from, size_t size, bool flip_sign)
{
    if (!flip_sign) {
        memcpy(to, from, size);
        return;
    }
    for (size_t i = 0; i < size; i++)
        to[i] = from[i] ^ 0x80;
}

void mica_layout_write(const struct mica_program_io *io, const uint8_t *host, uint8_t *device)
{
    struct move move = move_of(io);
    if (host == device)
        return;
    if (!io->layout.block)
        copy(device, host, move.size, io->flip_sign);
    else if (io->layout.block == 8)
        write_blocks(&move, host, device, 8);
    else
        write_blocks(&move, host, device, 16);
}

void mica_layout_read(const struct mica_program_io *io, uint8_t *host, const uint8_t *device)
{
    struct move move = move_of(io);
    if (host == device)
        return;
    if (!io->layout.block)
        copy(host, device, move.size, io->flip_sign);
    else if (io->layout.block == 8)
        read_blocks(&move, host, device, 8);
    else
        read_blocks(&move, host, device, 16);
}
