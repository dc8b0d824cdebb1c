/* SPDX-License-Identifier: MIT */
/* Job descriptors from the plan's jobs. Address fields stay 0: they are relocations. */
#ifndef MICA_VIVANTE_COMPILE_DESCRIPTOR_H
#define MICA_VIVANTE_COMPILE_DESCRIPTOR_H

#include "npu/vivante/compile/plan.h"
#include "npu/vivante/hw/fields.h"

/* Words of the descriptors that hold addresses, and how far these are shifted right. */
#define VIV_NN_WORD_COEFFICIENTS 5
#define VIV_NN_COEFFICIENTS_SHIFT 6
#define VIV_NN_WORD_IN 6
#define VIV_NN_WORD_OUT 7
#define VIV_TP_WORD_IN 10
#define VIV_TP_WORD_OUT 13

/* `words` has VIV_NN_WORDS / VIV_TP_WORDS entries. -ENOTSUP when a value doesn't fit its field. */
int viv_descriptor_nn(const struct viv_plan *plan, const struct viv_nn *nn, uint32_t *words);
int viv_descriptor_tp(const struct viv_plan *plan, const struct viv_tp *tp, uint32_t part, uint32_t *words);

#endif
