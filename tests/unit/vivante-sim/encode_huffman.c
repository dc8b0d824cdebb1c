/* SPDX-License-Identifier: MIT */
/*
 * Huffman buffers without zero runs (specification, sections 5.2 and 5.3), by a
 * second writer: the product's own encoder and this one share nothing.
 */
#include "encode.h"

#include <stdlib.h>
#include <string.h>

#include "util/bits.h"
#include "util/checked.h"

#define HEADER 64u
#define BLOCK 9u /* taps that go together where kernels are flattened */

/* What one core's stream says, byte by byte. */
struct bytes {
    uint8_t *data;
    size_t count;
};

static void put(struct bytes *bytes, uint8_t value)
{
    bytes->data[bytes->count++] = value;
}

static void put32(struct bytes *bytes, uint32_t value)
{
    for (unsigned shift = 0; shift < 32; shift += 8)
        put(bytes, (uint8_t)(value >> shift));
}

/* ---- the order of the bytes ------------------------------------------- */

/* Kernels of a core, and of a core in one superblock. */
static uint32_t kernels_of(const struct viv_chip *chip, const struct coefficients *c, uint32_t core)
{
    uint32_t used = c->kernels < chip->nn_cores ? c->kernels : chip->nn_cores;
    return core < used ? c->kernels / used + (core < c->kernels % used) : 0;
}

static uint32_t kernels_in(const struct viv_chip *chip, const struct coefficients *c, uint32_t core, uint32_t block)
{
    uint32_t all = kernels_of(chip, c, core), start = block * c->kernels_per_core;
    uint32_t left = all > start ? all - start : 0;
    return left < c->kernels_per_core ? left : c->kernels_per_core;
}

/* The channel of kernel `k` of a core in superblock `block`: superblock by superblock, core by core. */
static uint32_t channel_of(const struct viv_chip *chip, const struct coefficients *c, uint32_t core, uint32_t block,
                           uint32_t k)
{
    uint32_t before = 0;
    if (c->depthwise) {
        uint32_t group = block * c->kernels_per_core + k, start = group * chip->nn_cores;
        uint32_t members = c->kernels - start < chip->nn_cores ? c->kernels - start : chip->nn_cores;
        return start + members - 1 - core;
    }
    for (uint32_t earlier = 0; earlier < block; earlier++)
        for (uint32_t i = 0; i < chip->nn_cores; i++)
            before += kernels_in(chip, c, i, earlier);
    for (uint32_t i = 0; i < core; i++)
        before += kernels_in(chip, c, i, block);
    return before + k;
}

static void list_flattened(const struct viv_chip *chip, const struct coefficients *c, uint32_t core,
                           struct bytes *bytes)
{
    uint32_t taps = c->w * c->h * c->z, size = c->depthwise ? (uint32_t)mica_align(taps, BLOCK) : BLOCK;
    uint32_t superblocks = (kernels_of(chip, c, core) + c->kernels_per_core - 1) / c->kernels_per_core;
    for (uint32_t block = 0; block < superblocks; block++)
        for (uint32_t start = 0; start < taps; start += size)
            for (uint32_t k = 0; k < kernels_in(chip, c, core, block); k++) {
                const uint8_t *weights = c->weights + (size_t)channel_of(chip, c, core, block, k) * taps;
                for (uint32_t i = start; i < start + size; i++)
                    put(bytes, i < taps ? (uint8_t)(weights[i] - c->zero_point) : 0);
            }
}

static void list_in_steps(const struct coefficients *c, uint32_t first, uint32_t count, struct bytes *bytes)
{
    struct coefficient_item *items = calloc((size_t)count * c->w * c->h * c->z, sizeof *items);
    size_t n = coefficient_items(c, first, count, items);
    for (size_t i = 0; i < n; i++) {
        if (items[i].first)
            put32(bytes, items[i].bias);
        put(bytes, items[i].value);
        if (items[i].last)
            put32(bytes, items[i].offset);
    }
    free(items);
}

static void list_bytes(const struct viv_chip *chip, const struct coefficients *c, uint32_t core, struct bytes *bytes)
{
    uint32_t count = kernels_of(chip, c, core), first = 0;
    for (uint32_t i = 0; i < core; i++)
        first += kernels_of(chip, c, i);
    bytes->count = 0;
    put(bytes, (uint8_t)count);
    put(bytes, (uint8_t)(count >> 8));
    if (chip->coef_blocks_of_nine)
        list_flattened(chip, c, core, bytes);
    else
        list_in_steps(c, first, count, bytes);
}

/* ---- codes ------------------------------------------------------------ */

struct code {
    uint32_t three, two, two_bits, value, value_bits;
};

static struct code code_of(uint8_t byte, const uint8_t *map)
{
    static const uint8_t three[] = {0, 1, 7, 3, 6, 2, 2, 2}, two[] = {0, 0, 0, 0, 0, 1, 2, 0};
    uint32_t sign = byte >> 7, magnitude = sign ? 255u - byte : byte, length = 0, symbol = 0;
    while (magnitude >> length)
        length++;
    while (map[symbol] != length)
        symbol++;
    uint32_t low = length ? magnitude - (1u << (length - 1)) : 0;
    struct code code = {three[symbol], two[symbol], symbol >= 5 ? 2 : 0, low << 1 | sign, length ? length : 1};
    if (symbol < 2)
        code.three |= (code.value & 1) << 2;
    if (symbol == 5)
        code.two |= (code.value & 1) << 1;
    if (symbol < 2 || symbol == 5) {
        code.value >>= 1;
        code.value_bits--;
    }
    return code;
}

/* Pairs of codes in three stages, each two codes behind the one before it. */
static void write_codes(const struct bytes *bytes, uint8_t average, const uint8_t *map, struct mica_bit_writer *bits)
{
    size_t count = mica_align(bytes->count, 2);
    bool odd = bytes->count % 2;
    struct code *codes = calloc(count, sizeof *codes);
    for (size_t i = 0; i < count; i++)
        codes[i] = code_of(i < bytes->count ? (uint8_t)(bytes->data[i] - average) : 0, map);
    for (size_t i = 0; i < count + 4; i += 2) {
        for (size_t j = i; j < i + 2; j++)
            mica_bits_write(bits, j < count ? codes[j].three : odd ? 4 : 0, 3);
        for (size_t j = i; j < i + 2; j++)
            if (j >= 2 && j < count + 2)
                mica_bits_write(bits, codes[j - 2].two, codes[j - 2].two_bits);
        for (size_t j = i; j < i + 2; j++)
            if (j >= 4)
                mica_bits_write(bits, codes[j - 4].value, codes[j - 4].value_bits);
    }
    free(codes);
}

/* ---- the buffer ------------------------------------------------------- */

static void shuffle_map(struct random *random, uint8_t *map)
{
    for (uint8_t i = 0; i < 8; i++) {
        uint32_t j = random_below(random, i + 1u);
        map[i] = map[j];
        map[j] = i;
    }
}

size_t encode_huffman(const struct viv_chip *chip, const struct coefficients *c, struct random *random, uint8_t *out,
                      size_t room)
{
    uint8_t map[8], average = chip->coef_average_bias ? (uint8_t)random_word(random) : 0;
    size_t at = HEADER, taps = (size_t)c->w * c->h * c->z;
    struct bytes bytes = {.data = malloc(c->kernels * (taps + 16) + 2)};
    shuffle_map(random, map);
    out[0] = 0x10;
    for (size_t i = 0; i < 8; i++)
        out[20 + i / 2] |= (uint8_t)(map[i] << 4 * (i % 2));
    out[24] = average;
    for (uint32_t core = 0; core < chip->nn_cores && kernels_of(chip, c, core); core++) {
        struct mica_bit_writer bits;
        list_bytes(chip, c, core, &bytes);
        mica_bit_writer_init(&bits, out + at, 8 * (room - at));
        write_codes(&bytes, average, map, &bits);
        assert_false(bits.error);
        uint32_t size = (uint32_t)bits.position;
        memcpy(out + 28 + 4 * (size_t)core, &size, 4);
        at += mica_align(size, 512) / 8;
    }
    free(bytes.data);
    if (chip->bias_place != VIV_BIAS_TABLE)
        return at;
    assert_true(at + 4 * (size_t)c->kernels <= room);
    memcpy(out + at, c->bias, 4 * (size_t)c->kernels);
    return at + 4 * (size_t)c->kernels;
}
