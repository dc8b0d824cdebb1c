/* SPDX-License-Identifier: MIT */
/*
 * How a convolution becomes an NN job: directly, with first-pixel pooling, or
 * on the space-to-depth form of its input (specification, section 7.2).
 */
#ifndef MICA_VIVANTE_COMPILE_WINDOW_H
#define MICA_VIVANTE_COMPILE_WINDOW_H

#include "graph/graph.h"
#include "npu/vivante/compile/weights.h"
#include "npu/vivante/hw/chips.h"

enum viv_lowering {
    VIV_DIRECT,
    VIV_FIRST_PIXEL,
    VIV_SPACE_TO_DEPTH,
};

struct viv_window {
    enum viv_lowering lowering;
    uint32_t in_w, in_h;         /* the operation's input */
    uint32_t out_w, out_h;       /* the operation's output */
    uint32_t job_w, job_h;       /* the job's input: halved (rounded up) after space-to-depth */
    uint32_t kernel_w, kernel_h; /* the job's kernel */
    int32_t x_offset, y_offset;  /* column and row of the job's input under its tap (0,0) at output (0,0) */
    int32_t column, row; /* original tap at lowered tap (0,0) of phase 0, usually 0; negative where taps were added */
    uint32_t step;       /* original taps between lowered ones, 1 or 2 */
};

/* Describes `op`, a convolution or depthwise convolution; false, and the reason, when the chip has no job for it. */
bool viv_window_make(const struct viv_chip *chip, const struct mica_graph *graph, const struct mica_op *op,
                     struct viv_window *window, char *reason, size_t size);

/* Fills in taps, phases and map of the weights of an op with such a window. */
void viv_window_map(const struct viv_chip *chip, const struct viv_window *window, const struct mica_window *op,
                    struct viv_weights *weights);

#endif
