/* SPDX-License-Identifier: MIT */
/* What the ways to multiply have in common. */
#ifndef MICA_VIVANTE_COMPILE_MULTIPLY_H
#define MICA_VIVANTE_COMPILE_MULTIPLY_H

#include "npu/vivante/compile/pair.h"
#include "npu/vivante/compile/product.h"

#define VIV_MULTIPLY_PIECE (UINT64_C(256) << 10) /* bytes of a tensor that are multiplied at once */

/* Which operand's bits mask the other: a constant one's, the smaller one's, else the second's. */
uint32_t viv_multiply_y(const struct mica_graph *graph, const struct mica_op *op);

/* y as it is, and its bits, an elementwise pitch of its own size apart. */
int viv_multiply_bits(struct viv_plan *plan, uint32_t op, uint32_t tensor, bool planar, struct viv_ref *ref);

/* `size` of `bytes` to their plane: all of a small tensor may be made there. */
int viv_multiply_load(struct viv_plan *plan, uint32_t op, uint64_t bytes, uint64_t size, struct viv_ref from,
                      struct viv_ref to);

/* ---- square.c ------------------------------------------------------------------------ */

/* Is it a tensor times itself, and do ramps make that function? The function. */
bool viv_square_table(const struct viv_chip *chip, const struct mica_graph *graph, const struct mica_op *op,
                      uint8_t table[256]);
int viv_lower_square(struct viv_plan *plan, uint32_t op, const uint8_t table[256]);

/* ---- multiply_groups.c ------------------------------------------------------------- */

/* How an output that is y again and again is cut: so many groups, each so many times y, are one job. */
struct viv_cut {
    uint32_t groups, repeats; /* groups 0: it can't be */
    double cost;
};

/* In which of the layouts does it go in groups? `*planar` is the one to try first, and gets it. */
struct viv_cut viv_multiply_cut(const struct viv_plan *plan, const struct mica_op *op, bool *planar);

int viv_multiply_in_groups(struct viv_plan *plan, uint32_t op, bool planar, const struct viv_cut *cut,
                           const struct viv_product *product, struct viv_ref out);

#endif
