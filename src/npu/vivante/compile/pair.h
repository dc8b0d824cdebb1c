/* SPDX-License-Identifier: MIT */
/*
 * Operands of operations on two tensors: each is brought to the output's shape,
 * in a layout that both have, so that place by place arithmetic can follow. A
 * computed operand is repeated by TP moves, as a constant is that would be large then; others are laid down repeated.
 */
#ifndef MICA_VIVANTE_COMPILE_PAIR_H
#define MICA_VIVANTE_COMPILE_PAIR_H

#include "npu/vivante/compile/box.h"
#include "npu/vivante/compile/lower.h"

/* TP jobs that repeating an operand may take. */
#define VIV_MAX_REPEAT_JOBS 256u

/* Jobs that bring `tensor` to the shape of `out` in a layout, 0 when it has that shape already or is laid down. */
uint32_t viv_repeat_jobs(const struct mica_tensor *tensor, const struct mica_tensor *out, bool planar);

/* Several tensors of one shape, so many bytes apart before and after. */
struct viv_layers {
    uint32_t count;
    uint64_t in_pitch, out_pitch;
};

/* The same jobs, from `in` to `to`; layers NULL: one tensor. */
int viv_repeat_lower(struct viv_plan *plan, uint32_t op, const struct mica_tensor *tensor,
                     const struct mica_tensor *out, bool planar, const struct viv_layers *layers, struct viv_ref in,
                     struct viv_ref to);

/* Is the output, in that layout, nothing but the tensor again and again? How often, or 0. */
uint32_t viv_pair_rounds(const struct mica_tensor *tensor, const struct mica_tensor *out, bool planar);

/* The layout of the operation's output in which less is to be moved. Constants have any. */
bool viv_pair_planar(const struct viv_plan *plan, const struct mica_op *op);

/* A constant's bytes as the device has them, in the shape of `out`. */
void viv_pair_lay_down(const struct mica_tensor *constant, const struct mica_tensor *out, bool planar, uint8_t *data);

/* The tensor as it is, in that layout of its own shape; a constant becomes a storage. */
int viv_pair_source(struct viv_plan *plan, uint32_t op, uint32_t tensor, bool planar, struct viv_ref *ref);

/* The tensor in the shape of the operation's output. */
int viv_pair_value(struct viv_plan *plan, uint32_t op, uint32_t tensor, bool planar, struct viv_ref *ref);

/* The same at `offset` of `parent`. */
int viv_pair_place(struct viv_plan *plan, uint32_t op, uint32_t tensor, bool planar, struct viv_ref parent,
                   uint64_t offset);

int viv_pair_output(struct viv_plan *plan, uint32_t op, bool planar, struct viv_ref *ref);

#endif
