/* SPDX-License-Identifier: MIT */
/* Values to other places: what concatenation, split, slice, padding and pooling share. */
#ifndef MICA_ROCKCHIP_COMPILE_MOVE_H
#define MICA_ROCKCHIP_COMPILE_MOVE_H

#include "npu/rockchip/compile/plan.h"

/* Channel slices begin at multiples of this on every chip: convolutions count channels in sixteens. */
#define RK_CHANNEL_STEP 16u

/* Do all pixels of a surface follow each other in memory? */
bool rk_cube_is_flat(const struct rk_plan *plan, const struct rk_cube *cube);

/* The same pixels, in order, as an image of another width and height; the cube must be flat. */
struct rk_cube rk_cube_reshaped(const struct rk_plan *plan, struct rk_cube cube, uint32_t w, uint32_t h);

/* A row of `count` pixels from pixel `first` on of a flat cube. */
struct rk_cube rk_cube_run(const struct rk_plan *plan, struct rk_cube cube, uint64_t first, uint64_t count);

/*
 * Has the value of a tensor that is `in` be at `place` too, a part of another cube: by address when its storage can
 * move there, else by a copy. Values that must change (factor and zero points) are always copied.
 */
int rk_lower_place(struct rk_plan *plan, uint32_t op, struct rk_cube in, int32_t in_zero, struct rk_cube place,
                   int32_t place_zero, double factor);

/* May another tensor's value be this memory, for good? Not what the host writes, and no constants. */
bool rk_can_alias(const struct rk_plan *plan, const struct rk_cube *cube);

/* a[p] = a[p] combined with b[p]; for MAX, MIN and sums of which one is zero: nothing is rescaled. */
int rk_lower_combine(struct rk_plan *plan, uint32_t op, enum rk_elementwise_kind kind, struct rk_cube a,
                     struct rk_cube b, struct rk_cube out, int32_t zero);

/* A constant cube that is 127 at the pixels that `shows` names, else -128: MIN with it blanks all others. */
typedef bool rk_shows_pixel(const void *user, uint32_t x, uint32_t y);
int rk_plan_mask(struct rk_plan *plan, struct rk_shape shape, rk_shows_pixel *shows, const void *user,
                 struct rk_cube *mask);

#endif
