/* SPDX-License-Identifier: MIT */
/*
 * Jobs of the tensor processor that move bytes: a scan of the input and an
 * odometer of output addresses (specification, sections 4.1 and 4.2). They are
 * cut over the TP cores along whole slices or rows only, so that no part
 * leaves the image (section 4.3).
 */
#include "npu/vivante/compile/lower.h"

#include <errno.h>

#include "npu/vivante/compile/box.h"
#include "npu/vivante/compile/tp.h"
#include "util/checked.h"

/* Columns are channels, rows are columns, slices are rows: tiles of one channel of one image row. */
int viv_tp_transpose(struct viv_plan *plan, uint32_t op, struct viv_shape shape, struct viv_ref in, struct viv_ref out,
                     uint8_t zero_point)
{
    struct viv_tp *tp = viv_tp_new(plan, op, in, out, zero_point);
    if (!tp)
        return -ENOMEM;
    struct viv_split split = viv_split_over(plan, shape.h, viv_elements_of(shape));
    while (viv_split_next(&split)) {
        struct viv_tp_part *part = viv_tp_add_part(tp);
        viv_tp_scan_all(part, shape.c, shape.w);
        part->tile_x = 1;
        part->z_size = split.size;
        part->stride = shape.c;
        part->slice = shape.w * shape.c;
        part->in_offset = (uint64_t)split.start * part->slice;
        part->out_offset = (uint64_t)split.start * shape.w;
        viv_tp_set_loop(part, 0, 1, shape.w);
        viv_tp_set_loop(part, 1, shape.w * shape.h, shape.c);
        viv_tp_set_loop(part, 2, shape.w, split.size);
    }
    return 0;
}

/* Planes below each other as one tall image; too tall ones as slices. */
int viv_tp_detranspose(struct viv_plan *plan, uint32_t op, struct viv_shape shape, struct viv_ref in,
                       struct viv_ref out, uint8_t zero_point)
{
    struct viv_tp *tp = viv_tp_new(plan, op, in, out, zero_point);
    if (!tp)
        return -ENOMEM;
    struct viv_split split = viv_split_over(plan, shape.c, viv_elements_of(shape));
    while (viv_split_next(&split)) {
        struct viv_tp_part *part = viv_tp_add_part(tp);
        bool tall = (uint64_t)shape.h * split.size <= INT16_MAX;
        viv_tp_scan_all(part, shape.w, tall ? shape.h * split.size : shape.h);
        part->z_size = tall ? 1 : split.size;
        if (tall)
            part->tile_x = part->tile_y = 1;
        part->stride = shape.w;
        part->slice = tall ? shape.w * shape.h * shape.c : shape.w * shape.h;
        part->in_offset = (uint64_t)split.start * shape.w * shape.h;
        part->out_offset = split.start;
        viv_tp_set_loop(part, 0, shape.c, shape.w);
        viv_tp_set_loop(part, 2, shape.w * shape.c, shape.h);
        viv_tp_set_loop(part, 3, 1, split.size);
        viv_tp_set_loop(part, 4, shape.w * shape.h * shape.c, 1);
    }
    return 0;
}

/* Bytes [start, start + rows * columns) as an image. */
static void copy_part(struct viv_tp *tp, uint64_t start, uint32_t columns, uint32_t rows)
{
    struct viv_tp_part *part = viv_tp_add_part(tp);
    viv_tp_scan_all(part, columns, rows);
    part->z_size = 1;
    part->stride = columns;
    part->slice = columns * rows;
    part->in_offset = part->out_offset = start;
    viv_tp_set_loop(part, 0, 0, 1);
    viv_tp_set_loop(part, 1, 1, columns);
    viv_tp_set_loop(part, 2, columns, rows);
    part->loop_6_inc = part->slice;
}

int viv_tp_copy(struct viv_plan *plan, uint32_t op, uint64_t size, struct viv_ref in, struct viv_ref out,
                uint8_t zero_point)
{
    struct viv_tp *tp = viv_tp_new(plan, op, in, out, zero_point);
    if (!tp)
        return -ENOMEM;
    uint32_t columns = size > UINT64_C(1) << 24 ? 16384 : 512; /* rows stay below 2^15 up to the largest tensor */
    struct viv_split split = viv_split_over(plan, (uint32_t)(size / columns), size);
    while (viv_split_next(&split))
        copy_part(tp, (uint64_t)split.start * columns, columns, split.size);
    uint32_t rest = (uint32_t)(size % columns);
    if (rest)
        copy_part(tp, size - rest, rest, 1);
    return 0;
}

int viv_tp_pad(struct viv_plan *plan, uint32_t op, struct viv_shape shape, const struct mica_padding *padding,
               struct viv_ref in, struct viv_ref out, uint8_t zero_point)
{
    struct viv_tp *tp = viv_tp_new(plan, op, in, out, zero_point);
    if (!tp)
        return -ENOMEM;
    uint32_t w = shape.w + (uint32_t)(padding->left + padding->right);
    uint32_t h = shape.h + (uint32_t)(padding->top + padding->bottom);
    struct viv_split split = viv_split_over(plan, shape.c, (uint64_t)w * h * shape.c);
    while (viv_split_next(&split)) {
        struct viv_tp_part *part = viv_tp_add_part(tp);
        viv_tp_scan_all(part, shape.w, shape.h);
        part->window_x = -padding->left;
        part->window_y = -padding->top;
        part->window_x_end += padding->right;
        part->window_y_end += padding->bottom;
        part->tile_x = w;
        part->tile_y = h;
        part->z_size = split.size;
        part->stride = shape.w;
        part->slice = shape.w * shape.h;
        part->in_offset = (uint64_t)split.start * part->slice;
        part->out_offset = (uint64_t)split.start * w * h;
        viv_tp_set_loop(part, 0, 0, 1);
        viv_tp_set_loop(part, 1, 1, w);
        viv_tp_set_loop(part, 2, w, h);
        part->loop_6_inc = w * h;
    }
    return 0;
}

int viv_tp_space_to_depth(struct viv_plan *plan, uint32_t op, struct viv_shape shape, struct viv_ref in,
                          struct viv_ref out, uint8_t zero_point)
{
    struct viv_tp *tp = viv_tp_new(plan, op, in, out, zero_point);
    if (!tp)
        return -ENOMEM;
    tp->reshuffle = true;
    uint32_t w = mica_cdiv(shape.w, 2), h = mica_cdiv(shape.h, 2);
    struct viv_split split = viv_split_over(plan, shape.c, viv_elements_of(shape));
    while (viv_split_next(&split)) {
        struct viv_tp_part *part = viv_tp_add_part(tp);
        viv_tp_scan_all(part, shape.w, shape.h);
        part->window_x_end = (int32_t)(2 * w) - 1;
        part->window_y_end = (int32_t)(2 * h) - 1;
        part->tile_x = 2 * w;
        part->tile_y = 2 * h;
        part->z_size = split.size;
        part->stride = shape.w;
        part->slice = shape.w * shape.h;
        part->in_offset = (uint64_t)split.start * part->slice;
        part->out_offset = (uint64_t)split.start * 4 * w * h;
        viv_tp_set_loop(part, 0, w * h, 2);
        viv_tp_set_loop(part, 1, 1, w);
        viv_tp_set_loop(part, 2, 2 * w * h, 2);
        viv_tp_set_loop(part, 3, w, h);
        part->loop_6_inc = 4 * w * h;
    }
    return 0;
}

/* The scan of a transpose, with the columns' and rows' parities as loops of their own. */
int viv_tp_space_to_depth_nhwc(struct viv_plan *plan, uint32_t op, struct viv_shape shape, struct viv_ref in,
                               struct viv_ref out, uint8_t zero_point)
{
    struct viv_tp *tp = viv_tp_new(plan, op, in, out, zero_point);
    if (!tp)
        return -ENOMEM;
    uint32_t w = mica_cdiv(shape.w, 2), h = shape.h / 2;
    struct viv_split split = viv_split_over(plan, h, viv_elements_of(shape));
    while (viv_split_next(&split)) {
        struct viv_tp_part *part = viv_tp_add_part(tp);
        viv_tp_scan_all(part, shape.c, shape.w);
        part->window_y_end = (int32_t)(2 * w) - 1;
        part->tile_x = 1;
        part->tile_y = 2 * w;
        part->z_size = 2 * split.size;
        part->stride = shape.c;
        part->slice = shape.w * shape.c;
        part->in_offset = (uint64_t)split.start * 2 * part->slice;
        part->out_offset = (uint64_t)split.start * w;
        viv_tp_set_loop(part, 0, w * h, 2);
        viv_tp_set_loop(part, 1, 1, w);
        viv_tp_set_loop(part, 2, 4 * w * h, shape.c);
        viv_tp_set_loop(part, 3, 2 * w * h, 2);
        viv_tp_set_loop(part, 4, w, split.size);
    }
    return 0;
}

int viv_tp_scatter(struct viv_plan *plan, uint32_t op, const struct viv_box_loop *columns,
                   const struct viv_box_loop *rows, const struct viv_box_loop *slices, struct viv_ref in,
                   struct viv_ref out, uint8_t zero_point)
{
    struct viv_tp *tp = viv_tp_new(plan, op, in, out, zero_point);
    if (!tp)
        return -ENOMEM;
    struct viv_split split =
        viv_split_over(plan, slices->count, (uint64_t)columns->count * rows->count * slices->count);
    while (viv_split_next(&split)) {
        struct viv_tp_part *part = viv_tp_add_part(tp);
        viv_tp_scan_all(part, columns->count, rows->count);
        part->z_size = split.size;
        part->stride = (uint32_t)rows->in;
        part->slice = (uint32_t)slices->in;
        part->in_offset = split.start * slices->in;
        part->out_offset = split.start * slices->out;
        viv_tp_set_loop(part, 0, (uint32_t)columns->out, columns->count);
        viv_tp_set_loop(part, 1, (uint32_t)rows->out, rows->count);
        viv_tp_set_loop(part, 2, (uint32_t)slices->out, split.size);
    }
    return 0;
}

/*
 * Outputs of a tile in one direction. Where windows overlap, a tile could begin behind the last output and give
 * nothing; whether the output's loops count it is unknown, so there is none. Of 16 rows 9 are left at worst.
 */
static uint32_t pool_tile(uint32_t most, uint32_t outputs, uint32_t step, uint32_t over)
{
    if (over && outputs > most)
        while ((outputs * step + over - 1) / (most * step) + 1 > mica_cdiv(outputs, most))
            most--;
    return most;
}

/* Tiles of 64 columns and, with windows that go on in the next, what these need too (specification, section 4.4a). */
int viv_tp_max_pool(struct viv_plan *plan, uint32_t op, struct viv_shape shape, uint32_t size, uint32_t step,
                    struct viv_ref in, struct viv_ref out)
{
    struct viv_tp *tp = viv_tp_new(plan, op, in, out, 0);
    if (!tp)
        return -ENOMEM;
    tp->pool_size = size;
    tp->pool_step = step;
    uint32_t over = size > step ? size - step : 0;
    uint32_t w = (shape.w - size) / step + 1, h = (shape.h - size) / step + 1;
    uint32_t columns = pool_tile((64 - over) / step, w, step, over), rows = pool_tile(16, h, step, over);
    struct viv_split split = viv_split_over(plan, shape.c, viv_elements_of(shape));
    while (viv_split_next(&split)) {
        struct viv_tp_part *part = viv_tp_add_part(tp);
        viv_tp_scan_all(part, shape.w, shape.h);
        part->window_x_end = (int32_t)((w - 1) * step + size) - 1;
        part->window_y_end = (int32_t)((h - 1) * step + size) - 1;
        part->tile_x = columns * step + over;
        part->tile_y = rows * step + over;
        part->tile_x_step = w > columns ? columns * step : 0;
        part->tile_y_step = h > rows ? rows * step : 0;
        part->z_size = split.size;
        part->stride = shape.w;
        part->slice = shape.w * shape.h;
        part->in_offset = (uint64_t)split.start * part->slice;
        part->out_offset = (uint64_t)split.start * w * h;
        viv_tp_set_loop(part, 0, 0, 1);
        viv_tp_set_loop(part, 1, 1, 0);
        viv_tp_set_loop(part, 2, w, 0);
        viv_tp_set_loop(part, 3, columns, mica_cdiv(w, columns));
        viv_tp_set_loop(part, 4, rows * w, mica_cdiv(h, rows));
        part->loop_6_inc = w * h;
    }
    return 0;
}
