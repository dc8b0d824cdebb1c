/* SPDX-License-Identifier: MIT */
#ifndef MICA_ROCKCHIP_COMPILE_OPERATIONS_H
#define MICA_ROCKCHIP_COMPILE_OPERATIONS_H

#include "npu/rockchip/compile/plan.h"

struct rk_operation {
    rk_supports_op *supports;
    rk_lower_op *lower;
};

/* NULL: the compiler does not know the operation. */
const struct rk_operation *rk_operation_of(enum mica_op_kind kind);

#endif
