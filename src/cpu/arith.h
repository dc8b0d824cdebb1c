/* SPDX-License-Identifier: MIT */
/* Arithmetic of two inputs. Between 8-bit tensors: what each byte contributes, and how the result becomes a byte. */
#ifndef MICA_CPU_ARITH_H
#define MICA_CPU_ARITH_H

#include <float.h>

#include "cpu/requant.h"

struct mica_arith {
    enum mica_op_kind kind;
    int32_t terms[2][256]; /* of each possible byte of either input; of a difference the second ones are negated */
    struct mica_requant requant;
    struct mica_multiplier multiplier;
    float min, max; /* activation of the types that are not quantized */
};

/* Terms are the values without their zero points. */
void mica_arith_set_values(struct mica_arith *arith, const struct mica_tensor *const inputs[2]);

/* The operation on float32, int32 or int64. -EINVAL for an integer divided by 0. */
int mica_arith_run_plain(const struct mica_arith *arith, const struct mica_cpu_call *call);

#endif
