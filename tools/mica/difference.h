/* SPDX-License-Identifier: MIT */
/* How far two values of a tensor are apart. */
#ifndef MICA_CLI_DIFFERENCE_H
#define MICA_CLI_DIFFERENCE_H

#include "json.h"

/*
 * Sums over elements; all zero is the start. `largest` and `sum` count what is stored, so steps of an integer tensor's
 * quantization; the other sums are of the real numbers.
 */
struct cli_difference {
    uint64_t count, differing;
    double largest, sum;
    double noise;       /* squares of differences */
    double product;     /* of the two values */
    double own, wanted; /* squares of the values */
};

/* Adds tensor `got` to what was added; nothing for a type that nobody computes with. Two NaNs are equal. */
void cli_difference_add(struct cli_difference *difference, const struct mica_tensor_info *tensor, const void *got,
                        const void *wanted);

double cli_difference_mean(const struct cli_difference *difference);
double cli_difference_share(const struct cli_difference *difference); /* of elements that differ, 0 to 1 */

/* Of the angle between the two: 1 is the same direction. 1 too when both are zero, 0 when one is. */
double cli_difference_cosine(const struct cli_difference *difference);

/* Root mean square of the difference, as a share of that of the wanted values; infinity when only these are zero. */
double cli_difference_error(const struct cli_difference *difference);

json_t *cli_difference_json(struct cli_json *json, const struct cli_difference *difference);

#endif
