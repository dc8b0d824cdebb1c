/* SPDX-License-Identifier: MIT */
/* TP jobs that deal an image's pixels to planes, and planes' pixels to an image. */
#include <errno.h>

#include "npu/vivante/compile/box.h"
#include "npu/vivante/compile/tp.h"
#include "npu/vivante/compile/window.h"

/* The scan of space-to-depth with any block, from a place that may be outside of the image. */
static void scan_lanes(struct viv_tp_part *part, const struct viv_lanes *x, const struct viv_lanes *y, int32_t column,
                       int32_t row)
{
    part->window_x = column;
    part->window_y = row;
    part->window_x_end = column + (int32_t)(x->columns * x->stride) - 1;
    part->window_y_end = row + (int32_t)(y->columns * y->stride) - 1;
    part->tile_x = x->columns * x->stride;
    part->tile_y = y->columns * y->stride;
}

int viv_tp_lanes(struct viv_plan *plan, uint32_t op, struct viv_shape shape, uint32_t pitch, const struct viv_lanes *x,
                 const struct viv_lanes *y, uint32_t group, struct viv_ref in, struct viv_ref out, uint8_t zero_point)
{
    struct viv_tp *tp = viv_tp_new(plan, op, in, out, zero_point);
    if (!tp)
        return -ENOMEM;
    uint32_t phases = x->stride * y->stride, plane = x->columns * y->columns;
    uint32_t lanes = phases * x->groups * y->groups;
    tp->reshuffle = phases > 1;
    struct viv_split split = viv_split_over(plan, shape.c, (uint64_t)plane * phases * shape.c);
    while (viv_split_next(&split)) {
        struct viv_tp_part *part = viv_tp_add_part(tp);
        viv_tp_scan_all(part, shape.w, shape.h);
        scan_lanes(part, x, y, (int32_t)(group % x->groups * x->step * x->stride) - x->padding,
                   (int32_t)(group / x->groups * y->step * y->stride) - y->padding);
        part->z_size = split.size;
        part->stride = shape.w;
        part->slice = pitch;
        part->in_offset = (uint64_t)split.start * pitch;
        part->out_offset = ((uint64_t)split.start * lanes + group * phases) * plane;
        viv_tp_set_loop(part, 0, plane, x->stride);
        viv_tp_set_loop(part, 1, 1, x->columns);
        viv_tp_set_loop(part, 2, x->stride * plane, y->stride);
        viv_tp_set_loop(part, 3, x->columns, y->columns);
        part->loop_6_inc = lanes * plane;
    }
    return 0;
}

/* Columns are channels, rows are columns, slices are rows: none of these can be padding. */
int viv_tp_lanes_nhwc(struct viv_plan *plan, uint32_t op, struct viv_shape shape, const struct viv_lanes *x,
                      const struct viv_lanes *y, struct viv_ref in, struct viv_ref out, uint8_t zero_point)
{
    struct viv_tp *tp = viv_tp_new(plan, op, in, out, zero_point);
    if (!tp)
        return -ENOMEM;
    uint32_t phases = x->stride * y->stride, plane = x->columns * y->columns;
    struct viv_split split = viv_split_over(plan, y->columns, (uint64_t)plane * phases * shape.c);
    while (viv_split_next(&split)) {
        struct viv_tp_part *part = viv_tp_add_part(tp);
        viv_tp_scan_all(part, shape.c, shape.w);
        part->window_y = -x->padding;
        part->window_y_end = (int32_t)(x->columns * x->stride) - x->padding - 1;
        part->tile_x = 1;
        part->tile_y = x->columns * x->stride;
        part->z_size = y->stride * split.size;
        part->stride = shape.c;
        part->slice = shape.w * shape.c;
        part->in_offset = (uint64_t)split.start * y->stride * part->slice;
        part->out_offset = (uint64_t)split.start * x->columns;
        viv_tp_set_loop(part, 0, plane, x->stride);
        viv_tp_set_loop(part, 1, 1, x->columns);
        viv_tp_set_loop(part, 2, phases * plane, shape.c);
        viv_tp_set_loop(part, 3, x->stride * plane, y->stride);
        viv_tp_set_loop(part, 4, x->columns, split.size);
    }
    return 0;
}

static int spread_planes(struct viv_plan *plan, uint32_t op, const struct viv_spread *spread, struct viv_ref in,
                         struct viv_ref out)
{
    const struct viv_box_loop *planes = spread->planes;
    struct viv_tp *tp = viv_tp_new(plan, op, in, out, 0);
    if (!tp)
        return -ENOMEM;
    uint32_t inner = planes[1].count * planes[2].count;
    struct viv_split split = viv_split_over(
        plan, planes[0].count, (uint64_t)spread->columns.count * spread->rows.count * planes[0].count * inner);
    while (viv_split_next(&split)) {
        struct viv_tp_part *part = viv_tp_add_part(tp);
        viv_tp_scan_all(part, spread->columns.count, spread->rows.count);
        part->z_size = split.size * inner;
        part->stride = (uint32_t)spread->rows.in;
        part->slice = (uint32_t)planes[2].in;
        part->in_offset = split.start * planes[0].in;
        part->out_offset = split.start * planes[0].out;
        viv_tp_set_loop(part, 0, (uint32_t)spread->columns.out, spread->columns.count);
        viv_tp_set_loop(part, 1, (uint32_t)spread->rows.out, spread->rows.count);
        for (unsigned i = 0; i < 3; i++)
            viv_tp_set_loop(part, 2 + i, (uint32_t)planes[2 - i].out, i == 2 ? split.size : planes[2 - i].count);
    }
    return 0;
}

/* As many of the outer planes a job as its slices can be counted. */
int viv_tp_spread(struct viv_plan *plan, uint32_t op, const struct viv_spread *spread, struct viv_ref in,
                  struct viv_ref out)
{
    uint64_t inner = (uint64_t)spread->planes[1].count * spread->planes[2].count;
    struct viv_spread part = *spread;
    bool outer = inner > UINT16_MAX; /* then a job for each of the middle loop's rounds */
    uint32_t most = outer ? 1 : (uint32_t)(UINT16_MAX / inner);
    int error = 0;
    for (uint32_t i = 0; !error && i < spread->planes[0].count; i += most)
        for (uint32_t j = 0; !error && j < (outer ? spread->planes[1].count : 1); j++) {
            uint32_t left = spread->planes[0].count - i;
            struct viv_ref from = in, to = out;
            from.offset += i * spread->planes[0].in + j * spread->planes[1].in;
            to.offset += i * spread->planes[0].out + j * spread->planes[1].out;
            part.planes[0].count = left < most ? left : most;
            part.planes[1].count = outer ? 1 : spread->planes[1].count;
            error = spread_planes(plan, op, &part, from, to);
        }
    return error;
}
