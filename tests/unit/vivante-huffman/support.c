/* SPDX-License-Identifier: MIT */
#include "support.h"

#include <stdlib.h>
#include <string.h>

uint32_t random_word(struct random *random)
{
    uint64_t z = random->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)(z >> 32);
}

uint32_t random_below(struct random *random, uint32_t bound)
{
    return (uint32_t)((uint64_t)random_word(random) * bound >> 32);
}

/* ---- kernels ------------------------------------------------------------ */

bool kernels_make(struct kernels *kernels, const struct viv_chip *chip, uint32_t count, uint32_t channels,
                  uint32_t width, uint32_t height, bool depthwise, bool diagonal)
{
    uint32_t stored = depthwise || diagonal ? 1 : channels, taps = width * height;
    size_t per_kernel = (size_t)(depthwise ? 1 : channels) * taps;
    *kernels = (struct kernels){.chip = chip};
    kernels->data = calloc(count, (size_t)stored * taps);
    kernels->bias = calloc(count, sizeof *kernels->bias);
    kernels->weights = calloc(count, per_kernel);
    kernels->set = (struct viv_kernel_set){
        .count = count,
        .channels = depthwise ? 1 : channels,
        .stored_channels = stored,
        .taps = taps,
        .diagonal = diagonal,
        .pointwise = taps == 1,
        .data = kernels->data,
        .bias = kernels->bias,
        .plane = 64,
    };
    kernels->job = (struct viv_huffman_job){.kernels_per_core = 1, .depthwise = depthwise};
    kernels->shape = (struct viv_huffman_shape){
        .chip = chip,
        .kernels_per_core = 1,
        .kernel_w = width,
        .kernel_h = height,
        .channels = channels,
        .depthwise = depthwise,
        .kernels = count,
        .plane = 64,
    };
    if (kernels->data && kernels->bias && kernels->weights)
        return true;
    kernels_finish(kernels);
    return false;
}

void kernels_finish(struct kernels *kernels)
{
    free(kernels->data);
    free(kernels->bias);
    free(kernels->weights);
    *kernels = (struct kernels){0};
}

/* Where the i-th tap of V7's order is: pairs of rows, in blocks of three columns (specification, section 5.1). */
static void v7_order(uint32_t width, uint32_t height, uint32_t *order)
{
    for (uint32_t row = 0; row < height; row += 2)
        for (uint32_t column = 0; column < width; column += 3)
            for (uint32_t r = row; r < row + 2 && r < height; r++)
                for (uint32_t q = column; q < column + 3 && q < width; q++)
                    *order++ = r * width + q;
}

void kernels_order(struct kernels *kernels)
{
    const struct viv_kernel_set *set = &kernels->set;
    uint32_t order[225], taps = set->taps;
    if (kernels->chip->coef_blocks_of_nine)
        for (uint32_t i = 0; i < taps; i++)
            order[i] = i;
    else
        v7_order(kernels->shape.kernel_w, kernels->shape.kernel_h, order);
    for (uint32_t k = 0; k < set->count; k++)
        for (uint32_t z = 0; z < set->stored_channels; z++) {
            uint32_t channel = set->diagonal ? k * set->stored_channels + z : z;
            const uint8_t *from = kernels->weights + ((size_t)k * set->channels + channel) * taps;
            uint8_t *to = kernels->data + ((size_t)k * set->stored_channels + z) * taps;
            for (uint32_t i = 0; i < taps; i++)
                to[i] = from[order[i]];
        }
}

bool kernels_from(struct kernels *kernels, const struct viv_huffman_shape *shape, const struct viv_coefs *coefs)
{
    uint32_t plane = 0, count = coefs->kernels;
    for (uint32_t i = 0; i < count; i++)
        plane = coefs->offset[i] > plane ? coefs->offset[i] : plane;
    plane = count > 1 ? plane / (count - 1) : 1;
    if (!plane || !kernels_make(kernels, shape->chip, count, shape->channels, shape->kernel_w, shape->kernel_h,
                                shape->depthwise, false))
        return false;
    kernels->shape = *shape;
    kernels->set.plane = kernels->shape.plane = plane;
    kernels->set.zero_point = shape->zero_point;
    kernels->job.kernels_per_core = shape->kernels_per_core;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t kernel = coefs->offset[i] / plane;
        if (kernel * plane != coefs->offset[i] || kernel >= count)
            return false;
        kernels->bias[kernel] = coefs->bias[i];
        memcpy(kernels->weights + (size_t)kernel * coefs->taps, coefs->weights + (size_t)i * coefs->taps, coefs->taps);
    }
    kernels_order(kernels);
    return true;
}

size_t recorded_bytes(const struct viv_chip *chip, const uint8_t *buffer)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < chip->nn_cores; i++) {
        uint32_t bits;
        memcpy(&bits, buffer + 28 + 4 * i, 4);
        bytes += ((size_t)bits + 511) / 512 * 64;
    }
    return bytes;
}

/* ---- random ones -------------------------------------------------------- */

struct distribution {
    uint32_t zeros; /* of 256 weights */
    uint32_t kind, spread;
    uint8_t zero, last;
};

static uint8_t random_weight(struct distribution *distribution, struct random *random)
{
    if (random_below(random, 256) < distribution->zeros)
        return distribution->zero;
    switch (distribution->kind) {
    case 0: /* anything */
        return (uint8_t)random_word(random);
    case 1: /* near the zero point */
        return (uint8_t)(distribution->zero + random_below(random, distribution->spread) -
                         random_below(random, distribution->spread));
    case 2: /* few values */
        return (uint8_t)(random_below(random, 3) * distribution->spread);
    case 3: /* a slope, on which precode thrives */
        return distribution->last = (uint8_t)(distribution->last + distribution->spread % 5);
    default:
        return (uint8_t)distribution->spread;
    }
}

static void fill(struct kernels *kernels, struct random *random)
{
    struct viv_kernel_set *set = &kernels->set;
    static const uint32_t densities[] = {0, 0, 30, 128, 200, 245, 256};
    struct distribution distribution = {
        .zeros = densities[random_below(random, 7)],
        .kind = random_below(random, 5),
        .spread = 1 + random_below(random, 1u << random_below(random, 8)),
        .zero = (uint8_t)(random_below(random, 4) ? 128 : random_word(random)),
    };
    uint8_t own = (uint8_t)(random_below(random, 8) ? distribution.zero : random_word(random));
    set->zero_point = kernels->shape.zero_point = own;
    for (uint32_t k = 0; k < set->count; k++) {
        uint32_t bits = random_below(random, 33);
        kernels->bias[k] = bits ? random_word(random) >> (32 - bits) : 0;
        if (random_below(random, 2))
            kernels->bias[k] = -kernels->bias[k];
        for (uint32_t z = 0; z < set->channels; z++)
            for (uint32_t i = 0; i < set->taps; i++)
                kernels->weights[((size_t)k * set->channels + z) * set->taps + i] =
                    set->diagonal && z != k ? own : random_weight(&distribution, random);
    }
}

static uint32_t random_size(struct random *random, uint32_t most)
{
    uint32_t bound = 1 + random_below(random, most);
    return 1 + random_below(random, bound);
}

bool kernels_random(struct kernels *kernels, struct random *random, uint32_t most)
{
    static const struct viv_chip *const chips[] = {&viv_imx8mp, &viv_s905d3};
    const struct viv_chip *chip = chips[random_below(random, 2)];
    uint32_t kind = random_below(random, 4), width = 1, height = 1, count, channels;
    bool depthwise = kind == 0 && chip->hardware_depthwise, diagonal = kind == 0 && !depthwise;
    do {
        if (kind != 1) {
            width = random_size(random, kind == 0 ? 5 : chip->max_kernel);
            height = random_below(random, 3) ? width : random_size(random, chip->max_kernel);
        }
        count = random_size(random, 40);
        channels = diagonal ? count : random_size(random, 40);
    } while (width * height * count * (depthwise ? 1 : channels) > most);
    if (!kernels_make(kernels, chip, count, channels, width, height, depthwise, diagonal))
        return false;
    kernels->job.kernels_per_core = kernels->shape.kernels_per_core = random_size(random, 24);
    kernels->set.plane = kernels->shape.plane = 1 + random_below(random, 1u << random_below(random, 17));
    fill(kernels, random);
    kernels_order(kernels);
    return true;
}

static void shuffle(uint8_t *items, uint32_t count, struct random *random)
{
    for (uint32_t i = count; i > 1; i--) {
        uint32_t j = random_below(random, i);
        uint8_t item = items[j];
        items[j] = items[i - 1];
        items[i - 1] = item;
    }
}

void choices_random(struct viv_huffman_choices *choices, const struct kernels *kernels, struct random *random)
{
    static const uint8_t sizes[] = {0, 4, 6, 10, 18};
    uint8_t classes[9] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
    *choices = (struct viv_huffman_choices){.runs = sizes[random_below(random, 5)]};
    choices->precode = kernels->chip->coef_precode && random_below(random, 3) == 0;
    if (!choices->precode)
        choices->average_bias = (uint8_t)(random_below(random, 2) ? random_word(random) : 0);
    if (choices->runs) { /* one of 1..6 is missing */
        uint32_t missing = 1 + random_below(random, 6);
        for (uint32_t i = missing; i < 8; i++)
            classes[i] = classes[i + 1];
    }
    shuffle(classes, 8, random);
    memcpy(choices->symbol_map, classes, 8);
    for (uint32_t i = 0; i < choices->runs; i++)
        choices->run[i] = (uint16_t)random_size(random, random_below(random, 2) ? 256 : 12);
    choices->split = random_below(random, 2) ? VIV_SPLIT_CHEAPEST : VIV_SPLIT_VENDOR;
}

/* ---- and back ----------------------------------------------------------- */

static const char *compare_kernel(const struct kernels *kernels, const struct viv_coefs *coefs, uint32_t index)
{
    uint32_t plane = kernels->set.plane, kernel = coefs->offset[index] / plane;
    size_t size = coefs->taps;
    if (coefs->offset[index] % plane || kernel >= kernels->set.count)
        return "an offset";
    if (coefs->bias[index] != kernels->bias[kernel])
        return "a bias";
    return memcmp(coefs->weights + index * size, kernels->weights + kernel * size, size) ? "a weight" : NULL;
}

const char *kernels_compare(const struct kernels *kernels, const struct viv_coefs *coefs)
{
    bool seen[16384] = {false};
    uint64_t nonzero = 0;
    if (coefs->kernels != kernels->set.count || coefs->taps != kernels->set.channels * kernels->set.taps)
        return "the number of kernels or taps";
    for (uint32_t i = 0; i < coefs->kernels; i++) {
        const char *problem = compare_kernel(kernels, coefs, i);
        uint32_t kernel = coefs->offset[i] / kernels->set.plane;
        if (problem)
            return problem;
        if (seen[kernel])
            return "a kernel is there twice";
        seen[kernel] = true;
    }
    for (size_t i = 0; i < (size_t)coefs->kernels * coefs->taps; i++)
        nonzero += coefs->weights[i] != kernels->set.zero_point;
    return nonzero == coefs->nonzero ? NULL : "the number of weights that aren't zero";
}

const char *kernels_decode(const struct kernels *kernels, const struct viv_coefficients *coefficients,
                           struct mica_log *log)
{
    struct viv_coefs coefs;
    uint64_t size;
    const char *problem;
    if (viv_coef_huffman_size(coefficients->data, &kernels->shape, 0, log, &size))
        return log->last_error;
    if (size > coefficients->size)
        return "the buffer is too small";
    /* Exactly as many bytes as there are, so that a sanitizer sees the first that is read too far. */
    uint8_t *copy = malloc(size);
    if (!copy)
        return "no memory";
    memcpy(copy, coefficients->data, size);
    if (viv_coef_huffman_decode(copy, size, &kernels->shape, 0, NULL, log, &coefs)) {
        problem = log->last_error;
    } else {
        problem = kernels_compare(kernels, &coefs);
        viv_coefs_release(&coefs);
    }
    free(copy);
    return problem;
}
