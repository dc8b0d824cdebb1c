/* SPDX-License-Identifier: MIT */
/*
 * Maxima of values that lie anywhere: they are moved to blocks of 2x2 pixels, four at a time, which the TP cores pool
 * with step 2 (specification, section 4.4a).
 */
#include "npu/vivante/compile/maximum.h"

#include "npu/vivante/compile/box.h"
#include "npu/vivante/compile/compose.h"
#include "util/checked.h"

#define FLAT_COLUMNS 512u /* bytes without a shape as an image */
#define FLAT_ROWS 64u

struct viv_pixels viv_pixels_packed(struct viv_ref ref, struct viv_shape shape)
{
    return (struct viv_pixels){ref, shape, shape.w, (uint64_t)shape.w * shape.h};
}

/* ---- four at a time ---------------------------------------------------------------- */

/* What begins at `offset` of `in`, of the shape of `in`, to one pixel of each block. */
static int move_to_blocks(struct viv_plan *plan, uint32_t op, const struct viv_pixels *in, uint64_t offset,
                          uint32_t pixel, struct viv_ref blocks)
{
    struct viv_shape shape = in->shape;
    struct viv_box box = {0};
    viv_box_add(&box, shape.c, in->plane, 4 * (uint64_t)shape.w * shape.h);
    viv_box_add(&box, shape.h, in->row, 4 * (uint64_t)shape.w);
    viv_box_add(&box, shape.w, 1, 2);
    struct viv_ref from = {in->ref.storage, in->ref.offset + offset};
    blocks.offset += pixel / 2 * 2 * (uint64_t)shape.w + pixel % 2;
    return viv_box_lower(plan, op, &box, from, blocks, 0);
}

/* The maxima of up to four images like `in`, at these offsets of it. */
static int maximum_of(struct viv_plan *plan, uint32_t op, const struct viv_pixels *in, const uint64_t *offsets,
                      uint32_t count, struct viv_ref out)
{
    struct viv_shape shape = in->shape, doubled = {2 * shape.w, 2 * shape.h, shape.c};
    struct viv_ref blocks;
    int error = viv_plan_storage(plan, 4 * (uint64_t)shape.w * shape.h * shape.c, &blocks);
    for (uint32_t i = 0; !error && i < 4; i++)
        error = move_to_blocks(plan, op, in, offsets[i < count ? i : count - 1], i, blocks);
    return error ? error : viv_tp_max_pool(plan, op, doubled, 2, 2, blocks, out);
}

/*
 * The maxima of `count` images in `in`, by `offsets`, which are used up: four become one, which is put behind the
 * others' results, until one is left. `image` has the shape and becomes the result.
 */
int viv_maximum_reduce(struct viv_plan *plan, uint32_t op, uint64_t *offsets, uint32_t count, struct viv_pixels *image)
{
    struct viv_pixels in = *image;
    uint64_t bytes = (uint64_t)in.shape.w * in.shape.h * in.shape.c;
    int error = 0;
    while (!error && count > 1) {
        struct viv_ref results;
        uint32_t groups = mica_cdiv(count, 4);
        error = viv_plan_storage(plan, bytes * groups, &results);
        for (uint32_t i = 0; !error && i < groups; i++) {
            uint32_t left = count - 4 * i;
            struct viv_ref out = {results.storage, i * bytes};
            error = maximum_of(plan, op, &in, offsets + 4 * i, left < 4 ? left : 4, out);
        }
        for (uint32_t i = 0; i < groups; i++)
            offsets[i] = i * bytes;
        in = viv_pixels_packed(results, in.shape);
        count = groups;
    }
    *image = in;
    image->ref.offset += offsets[0];
    return error;
}

/* ---- of bytes that follow each other ---------------------------------------------------- */

/* As an image whose end may be behind the last byte. */
static struct viv_shape flat(uint64_t bytes)
{
    if (bytes <= FLAT_COLUMNS)
        return (struct viv_shape){(uint32_t)bytes, 1, 1};
    uint32_t rows = (uint32_t)((bytes + FLAT_COLUMNS - 1) / FLAT_COLUMNS);
    return (struct viv_shape){FLAT_COLUMNS, rows < FLAT_ROWS ? rows : FLAT_ROWS, mica_cdiv(rows, FLAT_ROWS)};
}

uint64_t viv_maximum_room(uint64_t bytes)
{
    return bytes + FLAT_COLUMNS * FLAT_ROWS;
}

int viv_lower_maximum_of(struct viv_plan *plan, uint32_t op, uint64_t count, uint64_t bytes, struct viv_ref *ref)
{
    int error = 0;
    while (!error && count > 1) {
        uint64_t next = (count + 3) / 4, offsets[4];
        for (uint32_t i = 0; i < 4; i++)
            offsets[i] = (i * next < count - next ? i * next : count - next) * bytes;
        struct viv_pixels image = viv_pixels_packed(*ref, flat(next * bytes));
        error = viv_plan_storage(plan, viv_maximum_room(next * bytes), ref);
        if (!error)
            error = maximum_of(plan, op, &image, offsets, 4, *ref);
        count = next;
    }
    return error;
}
