/* SPDX-License-Identifier: MIT */
/*
 * Weights of sums and differences, and how far from TFLite's results they may be. In steps of the output:
 *
 *     the job's rounding               0.5
 *     8-bit weights                    |what they stand for - the input's scale| * its largest value, of both inputs
 *     the multiplier's 16 or 24 bits   |M / factor - 1| * 256
 *     TFLite's rounding                0.5, and 4 * 2 * larger scale / (2^20 * output scale) for its steps before that
 *
 * Two whole numbers closer than 2 differ by at most 1, so weights are taken where
 * the sum stays below 1.998. Drivers' weights come first; where they are too
 * coarse, those whose quotient is nearest to the scales', also of several copies
 * of the inputs, which is a weight of more than 8 bits.
 */
#ifndef MICA_VIVANTE_COMPILE_SUM_H
#define MICA_VIVANTE_COMPILE_SUM_H

#include "npu/vivante/compile/lower.h"
#include "npu/vivante/compile/requant.h"

#define VIV_SUM_COPIES 8u

struct viv_sum {
    uint32_t copies; /* of both inputs; 0: drivers' weights, `add` */
    struct viv_add add;
    int32_t weight[2]; /* of an input, all copies together */
    struct viv_requant requant;
    double bound; /* largest distance from TFLite's result before it becomes a whole number */
};

/* The first way that is near enough. False: none is, `sum` has the nearest one's bound, 0 when no multiplier fits. */
bool viv_sum_choose(const struct viv_chip *chip, const struct mica_tensor *a, const struct mica_tensor *b,
                    const struct mica_tensor *out, bool subtract, struct viv_sum *sum);

#endif
