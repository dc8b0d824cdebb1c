/* SPDX-License-Identifier: MIT */
#include "encode.h"

#include <stdlib.h>
#include <string.h>

#include "util/bits.h"
#include "util/checked.h"

/* Tap of a step's i-th weight: blocks of three columns by two rows. */
static uint32_t tap_of(uint32_t w, uint32_t h, uint32_t n)
{
    for (uint32_t row = 0; row < h; row += 2)
        for (uint32_t column = 0; column < w; column += 3)
            for (uint32_t i = 0; i < 6; i++)
                if (row + i / 3 < h && column + i % 3 < w && n-- == 0)
                    return (row + i / 3) * w + column + i % 3;
    return 0;
}

size_t coefficient_items(const struct coefficients *c, uint32_t first, uint32_t count, struct coefficient_item *items)
{
    uint32_t pixels = c->w * c->h, taps = pixels * c->z, step = pixels == 1 ? 6 : pixels;
    size_t n = 0;
    for (uint32_t block = 0; block < count; block += c->kernels_per_core)
        for (uint32_t start = 0; start < taps; start += step)
            for (uint32_t k = block; k < block + c->kernels_per_core && k < count; k++)
                for (uint32_t i = start; i < start + step && i < taps; i++) {
                    uint32_t tap = pixels == 1 ? i : i / pixels * pixels + tap_of(c->w, c->h, i % pixels);
                    uint32_t kernel = first + k;
                    items[n++] = (struct coefficient_item){
                        .value = c->weights[(size_t)kernel * taps + tap],
                        .first = i == 0,
                        .last = i == taps - 1,
                        .bias = c->bias[kernel],
                        .offset = c->offset[kernel],
                    };
                }
    return n;
}

/* Number of weights that the token starting at `items` takes: a run of the zero point and the weight that ends it. */
static size_t token_length(const struct coefficients *c, struct random *random, const struct coefficient_item *items,
                           size_t left)
{
    size_t length = 1;
    while (length < left && length < (size_t)1 << c->run_bits && items[length - 1].value == c->zero_point &&
           !items[length - 1].last && random_below(random, 50))
        length++;
    return length;
}

static void write_items(const struct coefficients *c, struct random *random, const struct coefficient_item *items,
                        size_t count, struct mica_bit_writer *bits)
{
    for (size_t i = 0, length; i < count; i += length) {
        length = token_length(c, random, items + i, count - i);
        mica_bits_write(bits, (uint32_t)length - 1, c->run_bits);
        mica_bits_write(bits, items[i + length - 1].value, 8);
        for (size_t j = i; j < i + length; j++) {
            if (items[j].first)
                mica_bits_write(bits, items[j].bias, 32);
            if (items[j].last)
                mica_bits_write(bits, items[j].offset, 32);
        }
    }
}

size_t encode_v7(const struct viv_chip *chip, const struct coefficients *c, struct random *random, uint8_t *out,
                 size_t room)
{
    uint32_t cores = chip->nn_cores;
    size_t at = 64;
    struct coefficient_item *items = calloc((size_t)c->kernels * c->w * c->h * c->z, sizeof *items);
    for (uint32_t core = 0, first = 0; core < cores && first < c->kernels; core++) {
        uint32_t count = (c->kernels - first + cores - core - 1) / (cores - core);
        size_t item_count = coefficient_items(c, first, count, items);
        struct mica_bit_writer bits;
        mica_bit_writer_init(&bits, out + at, 8 * (room - at));
        mica_bits_write(&bits, c->run_bits, 8);
        mica_bits_write(&bits, count, 16);
        write_items(c, random, items, item_count, &bits);
        assert_false(bits.error);
        uint32_t bytes = (uint32_t)(mica_align(bits.position, 512) / 8);
        memcpy(out + 4 * (size_t)core, &bytes, 4);
        at += bytes;
        first += count;
    }
    free(items);
    return at;
}

size_t encode_coefficients(const struct viv_chip *chip, const struct coefficients *c, struct random *random,
                           uint8_t *out, size_t room)
{
    return chip->coef_format == VIV_COEF_V7 ? encode_v7(chip, c, random, out, room)
                                            : encode_huffman(chip, c, random, out, room);
}
