/* SPDX-License-Identifier: MIT */
/* Operations on a batch of images, one image at a time. */
#ifndef MICA_VIVANTE_COMPILE_BATCH_H
#define MICA_VIVANTE_COMPILE_BATCH_H

#include "npu/vivante/compile/elementwise.h"
#include "npu/vivante/compile/lower.h"

#define VIV_MAX_BATCH 64 /* images, jobs of their own each */

/* Is the operation to be lowered image by image? */
bool viv_is_batched(const struct mica_graph *graph, const struct mica_op *op);

/* A copy of the graph with room for an image. -ENOMEM: finish it all the same. */
int viv_batch_graph_make(const struct mica_graph *graph, struct viv_batch_graph *batch);
void viv_batch_graph_finish(struct viv_batch_graph *batch);

/* The operation on one image, and its tensors, become the last of the graph; its index. */
uint32_t viv_batch_select(struct viv_batch_graph *batch, uint32_t op);

int viv_lower_batch(struct viv_plan *plan, uint32_t op, int (*lower)(struct viv_plan *plan, uint32_t op));

/* One image's operation and nothing else, to ask whether it is supported: not a copy of the graph for each question. */
struct viv_batch_image {
    struct mica_graph graph;
    struct mica_op op;
    struct mica_tensor tensors[VIV_BATCH_INPUTS + 1];
    int32_t inputs[VIV_BATCH_INPUTS], output;
};

void viv_batch_image(const struct mica_graph *graph, const struct mica_op *op, struct viv_batch_image *image);

#endif
