/* SPDX-License-Identifier: MIT */
/*
 * What is encoded comes back: random small tensors of all shapes, sparsities
 * and parameters, on both chips. The argument is how many; a million:
 * `test_huffman_identity 1000000`.
 */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_WEIGHTS 600u
#define LARGE_WEIGHTS 30000u

static const char *try_one(const struct kernels *kernels, const struct viv_huffman_choices *choices)
{
    struct viv_coefficients coefficients;
    struct mica_log log = {.sink = NULL};
    static char message[600];
    bool done = choices
                    ? viv_coef_huffman_write(kernels->chip, &kernels->set, &kernels->job, choices, NULL, &coefficients)
                    : viv_coef_huffman_encode(kernels->chip, &kernels->set, &kernels->job, &coefficients, NULL);
    if (!done)
        return "no memory";
    const char *problem = kernels_decode(kernels, &coefficients, &log);
    free(coefficients.data);
    if (!problem)
        return NULL;
    snprintf(message, sizeof message, "%s", problem);
    return message;
}

/* Most with parameters of any kind, which the decoder must take; some as the search finds them. */
static const char *try_tensor(uint64_t number)
{
    struct random random = {number};
    struct kernels kernels;
    struct viv_huffman_choices choices;
    uint32_t kind = (uint32_t)(number % 16);
    if (!kernels_random(&kernels, &random, number % 256 == 255 ? LARGE_WEIGHTS : MOST_WEIGHTS))
        return "no memory";
    choices_random(&choices, &kernels, &random);
    kernels.job.effort = kind == 15 && number % 512 == 15 ? VIV_HUFFMAN_EXHAUSTIVE : VIV_HUFFMAN_QUICK;
    const char *problem = try_one(&kernels, kind >= 12 ? NULL : &choices);
    if (problem)
        fprintf(stderr, "tensor %llu (%s, %u kernels of %ux%ux%u): %s\n", (unsigned long long)number,
                kernels.chip->name, kernels.set.count, kernels.shape.kernel_w, kernels.shape.kernel_h,
                kernels.set.channels, problem);
    kernels_finish(&kernels);
    return problem;
}

int main(int argc, char **argv)
{
    uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : 20000, bad = 0;
    for (uint64_t number = 0; number < count && bad < 10; number++)
        bad += try_tensor(number) != NULL;
    printf("%llu tensors, %llu came back wrong\n", (unsigned long long)count, (unsigned long long)bad);
    return bad != 0;
}
