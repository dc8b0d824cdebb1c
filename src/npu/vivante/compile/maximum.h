/* SPDX-License-Identifier: MIT */
/* Maxima of several images, place by place. */
#ifndef MICA_VIVANTE_COMPILE_MAXIMUM_H
#define MICA_VIVANTE_COMPILE_MAXIMUM_H

#include "npu/vivante/compile/lower.h"

/* An image, or values of any meaning as one: planes of rows of bytes. */
struct viv_pixels {
    struct viv_ref ref;
    struct viv_shape shape;
    uint64_t row, plane; /* bytes from one to the next */
};

/* Without gaps. */
struct viv_pixels viv_pixels_packed(struct viv_ref ref, struct viv_shape shape);

/*
 * The maxima of `count` images in `pixels`, at `offsets` bytes, which are used up. `pixels` has the shape and becomes
 * the result.
 */
int viv_maximum_reduce(struct viv_plan *plan, uint32_t op, uint64_t *offsets, uint32_t count,
                       struct viv_pixels *pixels);

#endif
