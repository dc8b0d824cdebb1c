/* SPDX-License-Identifier: MIT */
/*
 * Every vector version against the plain one, bit for bit, edges included.
 * Without the unit tests' library, so that a cross build can run it too.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "npu/rockchip/sim/kernels.h"

#define IMAGE 4096u
#define MAX_RUNS 40u
#define MAX_WEIGHTS 16384u
#define GUARD 0x5a
#define STRIDE 48u

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

static uint32_t random_below(struct random *random, uint32_t bound)
{
    random->state = random->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint64_t x = random->state ^ random->state >> 33;
    return (uint32_t)((x * UINT64_C(0x9e3779b97f4a7c15) >> 32) * bound >> 32);
}

/* Many of the extreme ones. */
static int8_t random_byte(struct random *random)
{
    uint32_t kind = random_below(random, 4);
    return (int8_t)(kind == 0 ? -128 : kind == 1 ? 127 : (int)random_below(random, 256) - 128);
}

struct input {
    int16_t image[IMAGE + RK_IMAGE_SLACK];
    int8_t weights[MAX_WEIGHTS];
    uint32_t offsets[MAX_RUNS];
    const int16_t *pixels[RK_PIXELS];
};

/* All runs begin where `longest` elements are left. */
static void fill(struct input *input, struct random *random, uint32_t longest)
{
    for (size_t i = 0; i < IMAGE + RK_IMAGE_SLACK; i++)
        input->image[i] = random_byte(random);
    for (size_t i = 0; i < MAX_WEIGHTS; i++)
        input->weights[i] = random_byte(random);
    for (size_t i = 0; i < MAX_RUNS; i++)
        input->offsets[i] = random_below(random, (IMAGE - longest) / 2);
    for (size_t i = 0; i < RK_PIXELS; i++)
        input->pixels[i] = input->image + random_below(random, (IMAGE - longest) / 2);
}

static void check_direct(const struct rk_kernels *kernels, const struct input *input, const struct rk_runs *runs,
                         unsigned count)
{
    int32_t expected[RK_PIXELS * STRIDE], sums[RK_PIXELS * STRIDE];
    memset(expected, GUARD, sizeof expected);
    memset(sums, GUARD, sizeof sums);
    rk_kernels_portable.direct(expected, STRIDE, input->pixels, count, runs, input->weights);
    kernels->direct(sums, STRIDE, input->pixels, count, runs, input->weights);
    EXPECT(!memcmp(expected, sums, sizeof sums));
}

static void direct(void)
{
    struct random random = {3};
    static struct input input;
    for (size_t version = 1; rk_kernels_at(version); version++)
        for (unsigned round = 0; round < 300; round++) {
            uint32_t pairs = 1 + random_below(&random, 30);
            uint32_t most = MAX_WEIGHTS / (pairs * 2 * RK_COLUMNS);
            struct rk_runs runs = {input.offsets, random_below(&random, (most < MAX_RUNS ? most : MAX_RUNS) + 1),
                                   pairs};
            fill(&input, &random, 2 * pairs);
            check_direct(rk_kernels_at(version), &input, &runs, round % 3 ? RK_PIXELS : 1);
        }
}

static void check_depthwise(const struct rk_kernels *kernels, const struct input *input, const struct rk_runs *runs,
                            unsigned odd, bool totals)
{
    int32_t expected[2][RK_COLUMNS + 8], sums[2][RK_COLUMNS + 8];
    memset(expected, GUARD, sizeof expected);
    memset(sums, GUARD, sizeof sums);
    rk_kernels_portable.depthwise(expected[0], totals ? expected[1] : NULL, input->pixels[0], runs, odd,
                                  input->weights);
    kernels->depthwise(sums[0], totals ? sums[1] : NULL, input->pixels[0], runs, odd, input->weights);
    EXPECT(!memcmp(expected, sums, sizeof sums));
}

static void depthwise(void)
{
    struct random random = {5};
    static struct input input;
    for (size_t version = 1; rk_kernels_at(version); version++)
        for (unsigned round = 0; round < 300; round++) {
            struct rk_runs runs = {input.offsets, 2 * (1 + random_below(&random, MAX_RUNS / 2)), 1};
            fill(&input, &random, RK_COLUMNS);
            check_depthwise(rk_kernels_at(version), &input, &runs, round % 2, round % 4 < 2);
        }
}

static void widen(void)
{
    struct random random = {7};
    for (size_t version = 1; rk_kernels_at(version); version++)
        for (unsigned round = 0; round < 300; round++) {
            int8_t in[16 * 20];
            int16_t expected[80 * 20 + 16], out[80 * 20 + 16];
            unsigned lanes = round % 2 ? 16 : 8;
            size_t count = random_below(&random, 21), step = lanes + random_below(&random, 80 - lanes + 1);
            for (size_t i = 0; i < sizeof in; i++)
                in[i] = random_byte(&random);
            memset(expected, GUARD, sizeof expected);
            memset(out, GUARD, sizeof out);
            rk_kernels_portable.widen(expected, step, in, count, lanes);
            rk_kernels_at(version)->widen(out, step, in, count, lanes);
            EXPECT(!memcmp(expected, out, sizeof out));
        }
}

/* The plain version itself, against numbers worked out by hand. */
static void plain(void)
{
    const int16_t image[] = {1, 2, 3, -4, 5, -128, 7, 8};
    const int16_t *pixels[] = {image, image + 1};
    const uint32_t offsets[] = {0, 4};
    const struct rk_runs runs = {offsets, 2, 1};
    int8_t weights[4 * RK_COLUMNS] = {0};
    int32_t sums[2 * RK_COLUMNS];
    weights[2 * 3] = 10; /* column 3: first of the first run, second of the second */
    weights[2 * RK_COLUMNS + 2 * 3 + 1] = -128;
    rk_kernels_portable.direct(sums, RK_COLUMNS, pixels, 2, &runs, weights);
    EXPECT(sums[3] == 10 * 1 + 128 * 128 && sums[RK_COLUMNS + 3] == 10 * 2 - 128 * 7 && sums[0] == 0);
}

static void plain_depthwise(void)
{
    int16_t image[2 * RK_COLUMNS];
    const uint32_t offsets[] = {0, RK_COLUMNS};
    const struct rk_runs runs = {offsets, 2, 1};
    int8_t weights[2 * RK_COLUMNS];
    int32_t sums[RK_COLUMNS], totals[RK_COLUMNS];
    for (int i = 0; i < (int)RK_COLUMNS; i++) {
        image[i] = (int16_t)i;
        image[RK_COLUMNS + i] = 100;
    }
    for (uint32_t place = 0; place < RK_COLUMNS; place++) {
        weights[2 * place] = (int8_t)rk_depthwise_channel(place);
        weights[2 * place + 1] = 1;
    }
    for (unsigned odd = 0; odd < 2; odd++) {
        rk_kernels_portable.depthwise(sums, totals, image, &runs, odd, weights);
        for (int i = 0; i < (int)RK_COLUMNS; i++)
            EXPECT(sums[i] == i * i + 100 && totals[i] == i + (odd ? 0 : 100));
    }
}

int main(void)
{
    for (size_t i = 0; rk_kernels_at(i); i++)
        printf("version: %s\n", rk_kernels_at(i)->name);
    printf("used: %s\n", rk_kernels_best()->name);
    plain();
    plain_depthwise();
    direct();
    depthwise();
    widen();
    return 0;
}
