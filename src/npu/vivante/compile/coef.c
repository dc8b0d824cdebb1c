/* SPDX-License-Identifier: MIT */
#include "npu/vivante/compile/coef.h"

#include "npu/vivante/compile/coef_huffman.h"

#define BLOCK_BYTES 64u
#define FIELD_BITS 64.0 /* bias and output offset of a kernel */
/* Measured on the networks at hand: what Huffman codes of eight symbols cost beyond entropy, and zeros in runs. */
#define CODE_OVERHEAD 1.04
#define RUN_BITS 0.035     /* of a zero, where nearly all are zero; */
#define MIXED_RUN_BITS 0.3 /* more, by the share of other weights */

bool viv_coef_encode(const struct viv_chip *chip, const struct viv_kernel_set *set, const struct viv_coef_job *job,
                     struct viv_coefficients *coefficients)
{
    if (chip->coef_format == VIV_COEF_V7)
        return viv_coef_v7_encode(chip, set, job->kernels_per_core, coefficients);
    struct viv_huffman_job huffman = {.kernels_per_core = job->kernels_per_core, .depthwise = job->depthwise};
    huffman.effort = job->thorough ? VIV_HUFFMAN_EXHAUSTIVE : VIV_HUFFMAN_QUICK;
    return viv_coef_huffman_encode(chip, set, &huffman, coefficients, NULL);
}

uint64_t viv_coef_estimate(const struct viv_chip *chip, uint32_t kernels, uint32_t channels, uint32_t taps,
                           const struct viv_weights_profile *profile)
{
    if (chip->coef_format == VIV_COEF_V7)
        return viv_coef_v7_estimate(chip, kernels, channels, taps, profile->density);
    double weights = (double)kernels * channels * taps, own = weights * profile->share;
    double bits =
        own * profile->entropy * CODE_OVERHEAD + (weights - own) * (RUN_BITS + MIXED_RUN_BITS * profile->share);
    if (chip->z_offset_in_stream)
        bits += kernels * FIELD_BITS;
    uint32_t cores = kernels < chip->nn_cores ? kernels : chip->nn_cores;
    return (uint64_t)(bits / 8) + cores * BLOCK_BYTES / 2;
}
