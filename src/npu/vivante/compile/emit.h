/* SPDX-License-Identifier: MIT */
/* The plan as a mica_program. */
#ifndef MICA_VIVANTE_COMPILE_EMIT_H
#define MICA_VIVANTE_COMPILE_EMIT_H

#include "npu/vivante/compile/plan.h"

/* Needs a lowered plan with encoded coefficients; places its memory. */
int viv_emit(struct viv_plan *plan, struct mica_program **program);

#endif
