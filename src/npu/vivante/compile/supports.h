/* SPDX-License-Identifier: MIT */
/* What each kind of operation is checked and lowered by. */
#ifndef MICA_VIVANTE_COMPILE_SUPPORTS_H
#define MICA_VIVANTE_COMPILE_SUPPORTS_H

#include "npu/vivante/compile/query.h"

struct viv_operation {
    bool (*supports)(const struct viv_query *query);
    int (*lower)(struct viv_plan *plan, uint32_t op);
};

/* NULL: the compiler does not know the operation. */
const struct viv_operation *viv_operation_of(enum mica_op_kind kind);

#endif
