/* SPDX-License-Identifier: MIT */
/* Which vector versions this build has. */
#ifndef MICA_VIVANTE_SIM_KERNELS_VECTOR_H
#define MICA_VIVANTE_SIM_KERNELS_VECTOR_H

#include "npu/vivante/sim/kernels.h"

#ifdef __x86_64__
#define VIV_KERNELS_AVX2
extern const struct viv_kernels viv_kernels_avx2;
#endif

#ifdef __aarch64__
#define VIV_KERNELS_NEON
extern const struct viv_kernels viv_kernels_neon;
#endif

#endif
