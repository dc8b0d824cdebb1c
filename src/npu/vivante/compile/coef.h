/* SPDX-License-Identifier: MIT */
/* Coefficient buffers in the chip's own format (hw/chips.h). */
#ifndef MICA_VIVANTE_COMPILE_COEF_H
#define MICA_VIVANTE_COMPILE_COEF_H

#include "npu/vivante/compile/coef_v7.h"
#include "npu/vivante/compile/weights.h"

/* What a job says about its kernels besides themselves. */
struct viv_coef_job {
    uint32_t kernels_per_core; /* of a superblock */
    bool depthwise;            /* in hardware */
    bool thorough;             /* search longer for a smaller buffer */
};

/* The smallest buffer that the encoder finds. False when memory runs out. */
bool viv_coef_encode(const struct viv_chip *chip, const struct viv_kernel_set *set, const struct viv_coef_job *job,
                     struct viv_coefficients *coefficients);

/* About how many bytes the streams of kernels with such weights take. */
uint64_t viv_coef_estimate(const struct viv_chip *chip, uint32_t kernels, uint32_t channels, uint32_t taps,
                           const struct viv_weights_profile *profile);

#endif
