/* SPDX-License-Identifier: MIT */
/* Resizing: positions that repeat, bilinear ones as windows with weights. */
#ifndef MICA_VIVANTE_COMPILE_RESIZE_H
#define MICA_VIVANTE_COMPILE_RESIZE_H

#include "npu/vivante/compile/lower.h"

/*
 * Along one axis output `period` * i + phase lies at input `step` * i + phase * step / period + offset, between two
 * neighbours: all outputs of one phase weigh them alike.
 */
struct viv_resize_axis {
    uint32_t in, out, period, step;
    uint32_t count; /* outputs of phase 0, the most of all */
    double offset;
    bool single;      /* one input: every output is it */
    int32_t base;     /* input of phase 0 */
    uint32_t kernel;  /* places of `step` inputs that the phases' windows need */
    double deviation; /* of TFLite's own positions from these, in inputs */
};

struct viv_resize {
    struct viv_resize_axis x, y;
    uint32_t kernel; /* columns and rows of the jobs' kernels */
    bool by_channel; /* a job for each channel makes all phases; else a job for each phase all channels */
};

/* NULL, or why not. */
const char *viv_resize_make(const struct mica_graph *graph, const struct mica_op *op, struct viv_resize *resize);

/* Weight of an input `distance` behind `base` for a phase. */
double viv_resize_weight(const struct viv_resize_axis *axis, uint32_t phase, uint32_t distance);

/* What a whole weight stands for: of one phase, or one for all with VIV_NONE; *error gets the worst case in steps. */
double viv_resize_scale(const struct viv_resize *resize, uint32_t phase, double *error);

/* A weight as the chip has it. */
uint8_t viv_resize_round(double weight, double scale);

/* ---- resize_single.c --------------------------------------------------------------- */

/* One pixel: whatever the positions, it is everywhere. */
bool viv_resize_is_single(const struct mica_graph *graph, const struct mica_op *op);
int viv_lower_single(struct viv_plan *plan, uint32_t op);

/* ---- nearest neighbours ---------------------------------------------------------- */

#define VIV_MAX_NEAREST 1024u

/* Along one axis output `period` * i + phase is input `step` * i + first[phase]. */
struct viv_nearest {
    uint32_t period, step;
    int32_t first[VIV_MAX_NEAREST];
};

/* The shortest period; else each output is a phase of its own. False: they are too many. */
bool viv_nearest_make(const struct mica_resize *resize, int32_t in, int32_t out, struct viv_nearest *nearest);

#endif
