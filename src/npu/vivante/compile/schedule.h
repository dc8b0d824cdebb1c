/* SPDX-License-Identifier: MIT */
/*
 * What the lowered jobs leave open and the timing model decides: how planes
 * lie in memory, which tensors stay on chip, the shape and tiles of each job.
 */
#ifndef MICA_VIVANTE_COMPILE_SCHEDULE_H
#define MICA_VIVANTE_COMPILE_SCHEDULE_H

#include "npu/vivante/compile/plan.h"

/* Between viv_lower() and the encoding of coefficients. */
int viv_schedule(struct viv_plan *plan);

/* ---- schedule_job.c: one job, its operands' strides and places given ------ */

struct viv_job_memo; /* what equal jobs were given before */

struct viv_job_memo *viv_job_memo_create(void); /* NULL when memory runs out */
void viv_job_memo_destroy(struct viv_job_memo *memo);

/* The cheapest shape and tile: pointwise jobs may be folded to other widths. `quick`: from fewer candidates. */
void viv_job_shape(const struct viv_chip *chip, struct viv_job_memo *memo, struct viv_nn *nn, bool quick);

/* ---- schedule_split.c: jobs cut so that their tensors fit on chip ------------ */

/* Lifetimes must be known, and are afterwards. */
int viv_schedule_split(struct viv_plan *plan, struct viv_job_memo *memo);

/* ---- schedule_layout.c: how planes lie in memory --------------------------- */

/* Of the tensors that only NN jobs use: planes on burst borders, rows at a pitch, where both ends of them gain. */
int viv_schedule_layouts(struct viv_plan *plan, struct viv_job_memo *memo);

/* ---- schedule_sram.c: tensors on chip -------------------------------------- */

/* Gives tensors on-chip places while that saves time. Lifetimes must be known. */
int viv_schedule_on_chip(struct viv_plan *plan, struct viv_job_memo *memo);

#endif
