/* SPDX-License-Identifier: MIT */
/* Loops over bytes of two tensors, as TP jobs. */
#ifndef MICA_VIVANTE_COMPILE_BOX_H
#define MICA_VIVANTE_COMPILE_BOX_H

#include "npu/vivante/compile/lower.h"

#define VIV_BOX_LOOPS 16u

struct viv_box_loop {
    uint32_t count;
    uint64_t in, out; /* bytes from one round to the next */
};

/* Outermost loop first. */
struct viv_box {
    uint32_t loops;
    uint64_t in_offset, out_offset;
    struct viv_box_loop loop[VIV_BOX_LOOPS];
};

/* Another loop, inside those before it; those that are one with it are joined. */
void viv_box_add(struct viv_box *box, uint32_t count, uint64_t in, uint64_t out);

/* How many TP jobs it takes, and those jobs; the offsets are the caller's to add. */
uint32_t viv_box_jobs(const struct viv_box *box);
int viv_box_lower(struct viv_plan *plan, uint32_t op, const struct viv_box *box, struct viv_ref in, struct viv_ref out,
                  uint8_t zero_point);

/* tp.c: one job of three loops, of which `columns` has an input stride of 1 and `rows` one of 16 bits. */
int viv_tp_scatter(struct viv_plan *plan, uint32_t op, const struct viv_box_loop *columns,
                   const struct viv_box_loop *rows, const struct viv_box_loop *slices, struct viv_ref in,
                   struct viv_ref out, uint8_t zero_point);

/* Columns and rows of many planes that follow each other evenly: three loops more, outermost first. */
struct viv_spread {
    struct viv_box_loop columns, rows, planes[3];
};

int viv_tp_spread(struct viv_plan *plan, uint32_t op, const struct viv_spread *spread, struct viv_ref in,
                  struct viv_ref out);

#endif
