/* SPDX-License-Identifier: MIT */
/*
 * Every vector version against the plain one, bit for bit, edges included.
 * Without the unit tests' library, so that a cross build can run it too.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "npu/vivante/sim/kernels.h"

#define IMAGE 4096u
#define MAX_PAIRS 300u
#define GUARD 0x5a
#define ROUNDINGS 5u

#define EXPECT(condition)                                                   \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                        \
        }                                                                   \
    } while (0)

/* A small fixed generator, so that failures repeat. */
struct random {
    uint64_t state;
};

static uint32_t random_word(struct random *random)
{
    random->state = random->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint64_t x = random->state ^ random->state >> 33;
    return (uint32_t)(x * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

static uint32_t random_below(struct random *random, uint32_t bound)
{
    return (uint32_t)((uint64_t)random_word(random) * bound >> 32);
}

struct input {
    uint8_t image[IMAGE + VIV_IMAGE_SLACK];
    uint32_t taps[2 * MAX_PAIRS];
    int16_t weights[2 * VIV_ROWS * MAX_PAIRS], panel[2 * VIV_WIDE * MAX_PAIRS];
    int32_t sums[512];
};

/* Random bytes, with many of the extreme ones. */
static uint8_t random_byte(struct random *random)
{
    uint32_t kind = random_below(random, 4);
    return kind == 0 ? 0 : kind == 1 ? 255 : (uint8_t)random_word(random);
}

static void fill(struct input *input, struct random *random)
{
    for (size_t i = 0; i < sizeof input->image; i++)
        input->image[i] = random_byte(random);
    for (size_t i = 0; i < 2 * MAX_PAIRS; i++)
        input->taps[i] = random_below(random, IMAGE - 512);
    for (size_t i = 0; i < 2 * VIV_ROWS * MAX_PAIRS; i++)
        input->weights[i] = (int16_t)(random_byte(random) - random_byte(random));
    for (size_t i = 0; i < 512; i++)
        input->sums[i] = (int32_t)random_word(random) >> random_below(random, 32);
}

static void check_pack(const struct viv_kernels *kernels, const struct input *input, size_t pairs, unsigned width)
{
    int16_t expected[2 * VIV_WIDE * MAX_PAIRS + 8], panel[2 * VIV_WIDE * MAX_PAIRS + 8];
    memset(expected, GUARD, sizeof expected);
    memset(panel, GUARD, sizeof panel);
    viv_kernels_portable.pack(expected, input->image, input->taps, pairs, width);
    kernels->pack(panel, input->image, input->taps, pairs, width);
    EXPECT(!memcmp(expected, panel, sizeof panel));
}

static void check_dense(const struct viv_kernels *kernels, const struct input *input, size_t pairs, unsigned width)
{
    int32_t expected[VIV_ROWS * VIV_WIDE + 8], sums[VIV_ROWS * VIV_WIDE + 8];
    memset(expected, GUARD, sizeof expected);
    memset(sums, GUARD, sizeof sums);
    viv_kernels_portable.dense(expected, input->weights, input->panel, pairs, width);
    kernels->dense(sums, input->weights, input->panel, pairs, width);
    EXPECT(!memcmp(expected, sums, sizeof sums));
}

static void check_sparse(const struct viv_kernels *kernels, const struct input *input, size_t pairs, size_t pixels)
{
    int32_t expected[256 + 8], sums[256 + 8];
    memset(expected, GUARD, sizeof expected);
    memset(sums, GUARD, sizeof sums);
    viv_kernels_portable.sparse(expected, input->image, input->taps, input->weights, pairs, pixels);
    kernels->sparse(sums, input->image, input->taps, input->weights, pairs, pixels);
    EXPECT(!memcmp(expected, sums, sizeof sums));
}

static void multiplications(void)
{
    struct random random = {3};
    struct input *input = malloc(sizeof *input);
    EXPECT(input);
    for (size_t i = 1; viv_kernels_at(i); i++)
        for (unsigned round = 0; round < 200; round++) {
            const struct viv_kernels *kernels = viv_kernels_at(i);
            fill(input, &random);
            size_t pairs = round < 4 ? round : 1 + random_below(&random, MAX_PAIRS);
            unsigned width = round % 2 ? VIV_WIDE : VIV_NARROW;
            viv_kernels_portable.pack(input->panel, input->image, input->taps, MAX_PAIRS, VIV_WIDE);
            check_pack(kernels, input, pairs, width);
            check_dense(kernels, input, pairs, width);
            check_sparse(kernels, input, pairs, 32 * (1 + random_below(&random, 8)));
        }
    free(input);
}

/* Sums beyond 32 bits wrap in every version. */
static void overflowing_sums_wrap(void)
{
    enum { PAIRS = 20000 };
    int16_t *weights = malloc(sizeof *weights * 2 * VIV_ROWS * PAIRS);
    int16_t *panel = malloc(sizeof *panel * 2 * VIV_WIDE * PAIRS);
    uint32_t *taps = calloc(2 * PAIRS, sizeof *taps);
    uint8_t image[32 + VIV_IMAGE_SLACK];
    EXPECT(weights && panel && taps);
    memset(image, 255, sizeof image);
    for (size_t i = 0; i < 2 * VIV_ROWS * PAIRS; i++)
        weights[i] = 255;
    for (size_t i = 0; i < 2 * VIV_WIDE * PAIRS; i++)
        panel[i] = 255;
    int32_t wrapped = (int32_t)(uint32_t)(UINT64_C(2) * PAIRS * 255 * 255);
    EXPECT(wrapped < 0);
    for (size_t i = 0; viv_kernels_at(i); i++) {
        int32_t sums[VIV_ROWS * VIV_WIDE];
        viv_kernels_at(i)->dense(sums, weights, panel, PAIRS, VIV_WIDE);
        for (size_t j = 0; j < VIV_ROWS * VIV_WIDE; j++)
            EXPECT(sums[j] == wrapped);
        viv_kernels_at(i)->sparse(sums, image, taps, weights, PAIRS, 32);
        for (size_t j = 0; j < 32; j++)
            EXPECT(sums[j] == wrapped);
    }
    free(weights);
    free(panel);
    free(taps);
}

static void check_requantize(const struct viv_kernels *kernels, const int32_t *sums, size_t count, uint32_t bias,
                             const struct viv_post *post)
{
    uint8_t expected[512 + 16], out[512 + 16];
    memset(expected, GUARD, sizeof expected);
    memset(out, GUARD, sizeof out);
    viv_kernels_portable.requantize(expected, sums, count, bias, post);
    kernels->requantize(out, sums, count, bias, post);
    EXPECT(!memcmp(expected, out, sizeof out));
}

static struct viv_post random_post(struct random *random)
{
    int32_t zero_point = (int32_t)random_below(random, 256);
    uint32_t bits = random_below(random, 2) ? 15 : 23;
    return (struct viv_post){
        .multiplier = (int32_t)((1u << bits) + random_below(random, 1u << bits)),
        .shift = random_below(random, 4) ? bits + random_below(random, 18) : random_below(random, 128),
        .rounding = (enum viv_rounding)random_below(random, ROUNDINGS),
        .zero_point = zero_point,
        .lowest = random_below(random, 2) ? zero_point : 0,
    };
}

static void requantization(void)
{
    struct random random = {5};
    struct input *input = malloc(sizeof *input);
    EXPECT(input);
    for (size_t i = 1; viv_kernels_at(i); i++)
        for (unsigned round = 0; round < 3000; round++) {
            struct viv_post post = random_post(&random);
            fill(input, &random);
            uint32_t bias = random_below(&random, 2) ? random_word(&random) : random_below(&random, 100);
            check_requantize(viv_kernels_at(i), input->sums, random_below(&random, 513), bias, &post);
        }
    free(input);
}

/* Exact halves and their neighbours, where rounding modes and inexact arithmetic show. */
static void ties_of(uint32_t bits)
{
    int32_t sums[512];
    for (size_t version = 1; viv_kernels_at(version); version++)
        for (uint32_t shift = bits; shift < bits + 32; shift++)
            for (uint32_t rounding = 0; rounding < ROUNDINGS; rounding++) {
                const struct viv_post post = {1 << bits, shift, (enum viv_rounding)rounding, 100, 0};
                for (int32_t i = 0; i < 512; i++) {
                    int64_t half = shift > bits ? (INT64_C(1) << (shift - bits - 1)) * (i / 3 - 85) : i - 256;
                    sums[i] = (int32_t)(uint32_t)(half + i % 3 - 1);
                }
                check_requantize(viv_kernels_at(version), sums, 512, 0, &post);
            }
}

static void ties(void)
{
    ties_of(15);
    ties_of(23);
}

/* Products of more bits than a double has, one away from a whole number or a half of what they are divided by. */
static void products_of_56_bits(void)
{
    const struct {
        int32_t multiplier, sum;
        uint32_t shift;
    } cases[] = {{11445977, 790005399, 46},  {10073329, 998947857, 47}, {8606899, 1177322885, 49},
                 {10271765, 986500291, 51},  {8921653, 1261985763, 52}, {12897757, 1047530891, 53},
                 {11599063, 1553090841, 54}, {14913081, 1207959543, 55}};
    for (size_t version = 1; viv_kernels_at(version); version++)
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
            for (uint32_t rounding = 0; rounding < ROUNDINGS; rounding++) {
                const struct viv_post post = {cases[i].multiplier, cases[i].shift, (enum viv_rounding)rounding, 100, 0};
                const int32_t sum = cases[i].sum, sums[8] = {sum, -sum, sum, -sum, sum, -sum, sum, -sum};
                check_requantize(viv_kernels_at(version), sums, 8, 0, &post);
            }
}

/* The plain version itself, against numbers worked out by hand from the specification's section 6.1. */
static void plain_rounding(void)
{
    const int32_t sums[] = {-3, -2, -1, 0, 1, 2, 3, 5};
    const uint8_t expected[ROUNDINGS][8] = {
        {99, 99, 100, 100, 101, 101, 102, 103}, /* half up */
        {98, 99, 100, 100, 100, 101, 102, 102}, /* half to even */
        {99, 99, 100, 100, 100, 101, 101, 102}, /* toward zero */
        {98, 99, 99, 100, 100, 101, 101, 102},  /* down */
        {98, 99, 99, 100, 101, 101, 102, 103},  /* half away from zero */
    };
    for (uint32_t rounding = 0; rounding < ROUNDINGS; rounding++)
        for (uint32_t bits = 15; bits <= 23; bits += 8) {
            const struct viv_post post = {1 << bits, bits + 1, (enum viv_rounding)rounding, 100, 0};
            uint8_t out[8];
            viv_kernels_portable.requantize(out, sums, 8, 0, &post);
            EXPECT(!memcmp(out, expected[rounding], 8));
        }
}

int main(void)
{
    for (size_t i = 0; viv_kernels_at(i); i++)
        printf("version: %s\n", viv_kernels_at(i)->name);
    printf("used: %s\n", viv_kernels_best()->name);
    multiplications();
    overflowing_sums_wrap();
    requantization();
    ties();
    products_of_56_bits();
    plain_rounding();
    return 0;
}
