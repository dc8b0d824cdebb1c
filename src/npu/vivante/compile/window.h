/* SPDX-License-Identifier: MIT */
/*
 * How a convolution becomes an NN job: directly, with first-pixel pooling, on
 * the space-to-depth form of its input (specification, section 7.2), or on lanes.
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
    VIV_LANES,
};

/*
 * Lanes: copies of the input with `stride` columns from one to the next, each
 * beginning at another column, that a kernel of stride 1 sees as channels of their own. Lane
 * group * stride + phase holds column (place + group * step) * stride + phase - padding
 * at its place; padding is written out. So that any stride, kernel, dilation and padding becomes more
 * channels under a kernel that the chip has; rows likewise. Accumulators stay whole.
 */
struct viv_lanes {
    uint32_t stride, step, groups;
    uint32_t first;   /* tap that is the first to meet the image */
    int32_t padding;  /* before that tap */
    uint32_t columns; /* of a lane */
};

struct viv_window {
    enum viv_lowering lowering;
    uint32_t in_w, in_h;         /* the operation's input */
    uint32_t out_w, out_h;       /* the operation's output */
    uint32_t job_w, job_h;       /* the job's input: halved (rounded up) after space-to-depth */
    uint32_t kernel_w, kernel_h; /* the job's kernel */
    int32_t x_offset, y_offset;  /* column and row of the job's input under its tap (0,0) at output (0,0) */
    int32_t column, row;   /* original tap at lowered tap (0,0) of phase 0, usually 0; negative where taps were added */
    uint32_t step;         /* original taps between lowered ones, 1 or 2 */
    struct viv_lanes x, y; /* VIV_LANES: along columns and rows */
};

/* Channels of the job for each of the operation. */
static inline uint32_t viv_window_phases(const struct viv_window *window)
{
    if (window->lowering == VIV_LANES)
        return window->x.stride * window->x.groups * window->y.stride * window->y.groups;
    return window->step * window->step;
}

/* Describes `op`, a convolution or depthwise convolution; false, and the reason, when the chip has no job for it. */
bool viv_window_make(const struct viv_chip *chip, const struct mica_graph *graph, const struct mica_op *op,
                     struct viv_window *window, char *reason, size_t size);

/* Columns or rows of taps of the largest windows. Larger ones would only be slower: it is what is tested. */
#define VIV_MAX_TAPS_ALONG 96

/* Fills in taps, phases and map of the weights of an op with such a window. False when memory runs out. */
bool viv_window_map(const struct viv_chip *chip, const struct viv_window *window, const struct mica_window *op,
                    struct viv_weights *weights);

/* ---- window_lanes.c --------------------------------------------------------------- */

/* The cheapest lanes; false and the reason where there are none. Sizes of input and output are set. */
bool viv_lanes_make(const struct viv_chip *chip, const struct mica_op *op, uint32_t channels, struct viv_window *window,
                    char *reason, size_t size);

/* About what the job and the lanes cost, in cycles, to compare one with another. */
double viv_window_cost(const struct viv_chip *chip, const struct viv_window *window, bool depthwise, uint32_t channels,
                       uint32_t outputs);

bool viv_lanes_map(const struct viv_chip *chip, const struct viv_window *window, const struct mica_window *op,
                   struct viv_weights *weights);

#endif
