/* SPDX-License-Identifier: MIT */
/* A register file that is being filled, and what every program has. */
#ifndef MICA_ROCKCHIP_COMPILE_BUILDER_H
#define MICA_ROCKCHIP_COMPILE_BUILDER_H

#include "npu/rockchip/hw/registers.h"

/* The error is sticky: a value that does not fit its field is left out, and callers check once. */
struct rk_builder {
    struct rk_registers *registers;
    enum rk_generation generation;
    bool failed;
};

/* Signed values are passed cast. */
static inline void rk_put(struct rk_builder *builder, enum rk_field_id field, uint32_t value)
{
    builder->failed |= !rk_set(builder->registers, builder->generation, field, value);
}

/*
 * Register groups alternate from task to task, writing and running (specification, section 3). On RK3588 the kernel
 * writes CNA's and CORE's pointers itself and programs must not.
 */
static inline void rk_put_pointers(struct rk_builder *b, bool convolution)
{
#define RK_PUT_POINTER(prefix)                  \
    do {                                        \
        rk_put(b, prefix##_POINTER_PP_MODE, 1); \
        rk_put(b, prefix##_EXECUTER_PP_EN, 1);  \
        rk_put(b, prefix##_POINTER_PP_EN, 1);   \
    } while (0)
    RK_PUT_POINTER(RK_DPU_S_POINTER);
    RK_PUT_POINTER(RK_DPU_RDMA_RDMA_S_POINTER);
    if (convolution && b->generation == RK_GENERATION_RK356X) {
        RK_PUT_POINTER(RK_CNA_S_POINTER);
        RK_PUT_POINTER(RK_CSC_S_POINTER);
        RK_PUT_POINTER(RK_CORE_S_POINTER);
    }
#undef RK_PUT_POINTER
}

/* All operand readers have the same share of the bus. */
static inline void rk_put_arbitration(struct rk_builder *b)
{
    rk_put(b, RK_DPU_RDMA_RDMA_WEIGHT_E_WEIGHT, 1);
    rk_put(b, RK_DPU_RDMA_RDMA_WEIGHT_N_WEIGHT, 1);
    rk_put(b, RK_DPU_RDMA_RDMA_WEIGHT_B_WEIGHT, 1);
    rk_put(b, RK_DPU_RDMA_RDMA_WEIGHT_M_WEIGHT, 1);
}

#endif
