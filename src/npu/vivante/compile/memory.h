/* SPDX-License-Identifier: MIT */
/* Places the plan's storages: which program buffer, and where in it. */
#ifndef MICA_VIVANTE_COMPILE_MEMORY_H
#define MICA_VIVANTE_COMPILE_MEMORY_H

#include "npu/vivante/compile/plan.h"

/* Finds which jobs use each storage, and how. */
void viv_memory_lifetimes(struct viv_plan *plan);

/*
 * Storages that live at the same time do not overlap in the scratch buffer;
 * those on chip get buffers `on_chip` and following, one a window, whose ranges
 * are plan->on_chip; external ones get buffers `first_external` and following in order. Sets
 * `buffer` and `offset` of every used storage, plan->scratch_bytes, and
 * *external_count.
 */
int viv_memory_place(struct viv_plan *plan, uint32_t scratch, uint32_t on_chip, uint32_t first_external,
                     uint32_t *external_count);

#endif
