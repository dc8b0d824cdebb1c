/* SPDX-License-Identifier: MIT */
/* Each allocation of encoder and decoder fails once: they say so and give everything back. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void __libc_free(void *pointer);

static long countdown = -1; /* allocations until one fails; below 0: none does */
static long living;         /* blocks not yet freed */

static int fails(void)
{
    return countdown >= 0 && countdown-- == 0;
}

void *malloc(size_t size)
{
    void *pointer = fails() ? NULL : __libc_malloc(size);
    living += pointer != NULL;
    return pointer;
}

void *calloc(size_t count, size_t size)
{
    void *pointer = fails() ? NULL : __libc_calloc(count, size);
    living += pointer != NULL;
    return pointer;
}

void free(void *pointer)
{
    living -= pointer != NULL;
    __libc_free(pointer);
}

static int encode(const struct kernels *kernels, struct viv_coefficients *coefficients)
{
    return viv_coef_huffman_encode(kernels->chip, &kernels->set, &kernels->job, coefficients, NULL) ? 0 : -ENOMEM;
}

static int decode(const struct kernels *kernels, const struct viv_coefficients *coefficients)
{
    struct viv_coefs coefs;
    struct mica_log log = {.sink = NULL};
    int result =
        viv_coef_huffman_decode(coefficients->data, coefficients->size, &kernels->shape, 0, NULL, &log, &coefs);
    if (!result)
        viv_coefs_release(&coefs);
    return result;
}

static int measure(const struct kernels *kernels)
{
    struct viv_huffman_floor bounds;
    return viv_coef_huffman_floor(kernels->chip, &kernels->set, &kernels->job, &bounds) ? 0 : -ENOMEM;
}

/* Fails one allocation after the other until none is left; returns how many there were, or -1. */
static long sweep(const struct kernels *kernels, const struct viv_coefficients *coefficients, int what)
{
    for (long at = 0; at < 10000; at++) {
        struct viv_coefficients made = {0};
        long before = living;
        countdown = at;
        int result = what == 0 ? encode(kernels, &made) : what == 1 ? decode(kernels, coefficients) : measure(kernels);
        bool done = countdown >= 0;
        countdown = -1;
        if (what == 0 && !result)
            free(made.data);
        if (living != before || (result && result != -ENOMEM) || (done && result) || (!done && !result))
            return -1;
        if (done)
            return at;
    }
    return -1;
}

int main(void)
{
    int bad = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct random random = {seed};
        struct kernels kernels;
        struct viv_coefficients coefficients;
        if (!kernels_random(&kernels, &random, 3000) || encode(&kernels, &coefficients))
            return 1;
        for (int what = 0; what < 3; what++)
            if (sweep(&kernels, &coefficients, what) < 1) {
                fprintf(stderr, "kernels %llu: %s does not survive\n", (unsigned long long)seed,
                        what == 0   ? "the encoder"
                        : what == 1 ? "the decoder"
                                    : "the floor");
                bad = 1;
            }
        free(coefficients.data);
        kernels_finish(&kernels);
    }
    return bad;
}
