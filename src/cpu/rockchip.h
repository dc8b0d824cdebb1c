/* SPDX-License-Identifier: MIT */
/* What Rockchip's NPU computes, from its specification (sections 8 and 9) and without any of its compiler. */
#ifndef MICA_CPU_ROCKCHIP_H
#define MICA_CPU_ROCKCHIP_H

#include "cpu/arith.h"

static inline bool mica_is_rockchip(enum mica_arithmetic arithmetic)
{
    return arithmetic == MICA_ARITHMETIC_ROCKCHIP || arithmetic == MICA_ARITHMETIC_ROCKCHIP_RK356X;
}

/* factor = mantissa / 2^shift, mantissa in [0x4000, 0x7fff], shift in [0, 63]. */
struct mica_multiplier mica_multiplier_rockchip(double factor);

/* Sets the multipliers of a weighted operation; their arrays are there. -ENOMEM or 0. */
int mica_rockchip_set_channels(struct mica_requant *requant, const struct mica_cpu_call *call, size_t channels);

/* Sets terms and multiplier of ADD, SUB, MUL. */
void mica_rockchip_prepare_arith(struct mica_arith *arith, const struct mica_tensor *const inputs[2],
                                 const struct mica_tensor *out);

#endif
