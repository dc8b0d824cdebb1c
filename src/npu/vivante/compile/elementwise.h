/* SPDX-License-Identifier: MIT */
/*
 * Values made from the values at the same place of one or two tensors, by a
 * convolution that weighs them: out = clamp(round(M * (w0 * (a - a_zero) + w1 *
 * (b - b_zero))) + out_zero). The bytes' order does not matter, so any layout
 * will do that all tensors share. Several such jobs make what one can't: each
 * passes 8-bit values on, without rounding where M is 1 and w is 1 or -1.
 */
#ifndef MICA_VIVANTE_COMPILE_ELEMENTWISE_H
#define MICA_VIVANTE_COMPILE_ELEMENTWISE_H

#include "npu/vivante/compile/lower.h"
#include "npu/vivante/compile/requant.h"

struct viv_elementwise {
    uint32_t inputs; /* 1, or 2: the second is viv_elementwise_pitch() behind the first */
    int32_t weight[2];
    uint8_t in_zero[2], out_zero;
    struct viv_requant requant;
    bool relu; /* nothing below out_zero */
};

/* Bytes from the first input to the second, at least `bytes`. */
uint64_t viv_elementwise_pitch(uint64_t bytes);

int viv_elementwise_jobs(struct viv_plan *plan, uint32_t op, const struct viv_elementwise *elementwise,
                         struct viv_ref in, struct viv_ref out, uint64_t bytes);

/* ---- clamp.c ------------------------------------------------------------------- */

/* Zero point and clamp of the job that computes results which are then clamped to `bounds`. */
void viv_clamp_first(struct viv_bounds bounds, uint8_t zero, uint8_t *first_zero, bool *relu);

/* `*out` is where the operation's result must be; becomes another place, if jobs that clamp follow. */
int viv_clamp_begin(struct viv_plan *plan, const struct mica_op *op, struct viv_bounds bounds, struct viv_ref *out);
/* These jobs, if any. */
int viv_clamp_finish(struct viv_plan *plan, uint32_t op);

#endif
