/* SPDX-License-Identifier: MIT */
/* Values in another form than their tensors' shapes say: who would notice. */
#ifndef MICA_ROCKCHIP_COMPILE_VIEWS_H
#define MICA_ROCKCHIP_COMPILE_VIEWS_H

#include "npu/rockchip/compile/plan.h"

/*
 * 1: all that read a tensor take its bytes, in order, from the cube of another shape (`view`; NULL: from several cubes,
 * one behind the other, see rk_value). 0: somebody looks at its shape. -ENOMEM.
 */
int rk_nobody_looks(const struct rk_chip *chip, const struct mica_graph *graph, int32_t tensor,
                    const struct rk_shape *view);

/* RESHAPE, or a TRANSPOSE that moves dimensions of 1 alone. */
bool rk_is_reshape(const struct mica_graph *graph, const struct mica_op *op);

/* A concatenation whose inputs follow each other in its output, byte by byte. */
bool rk_is_sequence(const struct mica_graph *graph, const struct mica_op *op);

/* 0, or why a concatenation can't be done: with its inputs one behind the other in memory, or in any other way. */
int rk_check_concatenation(const struct rk_chip *chip, const struct mica_graph *graph, uint32_t op_index,
                           bool in_sequence, char *reason, size_t size);

/* One that is done so. */
int rk_lower_sequence(struct rk_plan *plan, uint32_t op_index);

/* How a RESHAPE is done. */
enum rk_reshape_way {
    RK_RESHAPE_REFUSED,
    RK_RESHAPE_UNSEEN,   /* the value stays as it is */
    RK_RESHAPE_PIXELS,   /* the same channels: an address */
    RK_RESHAPE_WRITTEN,  /* the host writes its input, and writes it as the output */
    RK_RESHAPE_RELAYOUT, /* by convolutions */
    RK_RESHAPE_NOMEM,
};

enum rk_reshape_way rk_reshape_way(const struct rk_chip *chip, const struct mica_graph *graph, uint32_t op_index);

/* The shape in which the host writes a tensor of the partition's border: its own, or that of the RESHAPE behind it. */
int rk_written_shape(const struct rk_plan *plan, uint32_t tensor, struct rk_shape *shape);

#endif
