/* SPDX-License-Identifier: MIT */
/* Which vector versions this build has. */
#ifndef MICA_VIVANTE_SIM_KERNELS_VECTOR_H
#define MICA_VIVANTE_SIM_KERNELS_VECTOR_H

#include <stdbool.h>

#include "npu/vivante/sim/kernels.h"

/*
 * Is requantization exact in double precision, which has 53 bits? A sum of 32
 * bits times a multiplier of 16 needs 48. With a multiplier of 24 bits it is
 * exact where the result isn't clamped anyway: that is below 2^(shift + 8), and
 * so at 44 bits of shift or fewer.
 */
static inline bool viv_exact_in_double(const struct viv_post *post)
{
    return post->multiplier <= 0xffff || post->shift <= 44;
}

#ifdef __x86_64__
#define VIV_KERNELS_AVX2
extern const struct viv_kernels viv_kernels_avx2;
#endif

#ifdef __aarch64__
#define VIV_KERNELS_NEON
extern const struct viv_kernels viv_kernels_neon;
#endif

#endif
