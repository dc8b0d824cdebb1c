/* SPDX-License-Identifier: MIT */
#include "npu/rockchip/compile/move.h"

#include <stdlib.h>
#include <string.h>

#include "npu/rockchip/compile/dpu_task.h"
#include "util/checked.h"

bool rk_cube_is_flat(const struct rk_plan *plan, const struct rk_cube *cube)
{
    return !cube->packed && (cube->line == (uint64_t)cube->shape.w * plan->chip->atom || cube->shape.h == 1);
}

struct rk_cube rk_cube_reshaped(const struct rk_plan *plan, struct rk_cube cube, uint32_t w, uint32_t h)
{
    cube.shape.w = w;
    cube.shape.h = h;
    cube.line = (uint64_t)w * plan->chip->atom;
    return cube;
}

struct rk_cube rk_cube_run(const struct rk_plan *plan, struct rk_cube cube, uint64_t first, uint64_t count)
{
    cube.at.offset += first * plan->chip->atom;
    return rk_cube_reshaped(plan, cube, (uint32_t)count, 1);
}

static uint64_t dense_bytes(const struct rk_cube *cube)
{
    return (uint64_t)cube->shape.w * cube->shape.h * mica_align(cube->shape.c, RK_CHANNEL_STEP);
}

/* The storage as a whole may move: it is nothing but this cube, and surfaces are as far apart as they have to be. */
static bool moves_as_a_whole(const struct rk_plan *plan, const struct rk_cube *in, const struct rk_cube *place)
{
    const struct rk_storage *storage = &plan->storages[in->at.storage];
    bool one_surface = mica_align(in->shape.c, RK_CHANNEL_STEP) == plan->chip->atom;
    return rk_cube_is_flat(plan, in) && in->at.offset == 0 && !storage->external && storage->size == dense_bytes(in) &&
           (one_surface || in->surface == place->surface);
}

int rk_lower_place(struct rk_plan *plan, uint32_t op, struct rk_cube in, int32_t in_zero, struct rk_cube place,
                   int32_t place_zero, double factor)
{
    bool same = factor == 1 && in_zero == place_zero;
    if (same && moves_as_a_whole(plan, &in, &place) &&
        rk_plan_claim(plan, in.at.storage, place.at.storage, place.at.offset))
        return 0;
    return rk_lower_requantize(plan, op, in, in_zero, place, place_zero, factor);
}

bool rk_can_alias(const struct rk_plan *plan, const struct rk_cube *cube)
{
    const struct rk_storage *root = &plan->storages[rk_plan_resolve(plan, cube->at).storage];
    return !cube->packed && !root->external && !root->data;
}

int rk_lower_combine(struct rk_plan *plan, uint32_t op, enum rk_elementwise_kind kind, struct rk_cube a,
                     struct rk_cube b, struct rk_cube out, int32_t zero)
{
    struct rk_elementwise e = {
        .op = op,
        .kind = kind,
        .a = a,
        .b = b,
        .out = out,
        .scale_a = 1,
        .scale_b = 1,
        .scale_out = 1,
        .zero_a = zero,
        .zero_b = zero,
        .zero_out = zero,
        .min = INT8_MIN,
        .max = INT8_MAX,
    };
    return rk_lower_elementwise(plan, &e);
}

int rk_plan_mask(struct rk_plan *plan, struct rk_shape shape, rk_shows_pixel *shows, const void *user,
                 struct rk_cube *mask)
{
    uint32_t atom = plan->chip->atom;
    uint64_t plane = (uint64_t)shape.w * shape.h * atom, size = (uint64_t)shape.w * shape.h;
    size *= mica_align(shape.c, RK_CHANNEL_STEP);
    uint8_t *data = malloc(size), *to = data;
    struct rk_ref at;
    if (!data)
        return mica_fail_nomem(plan->log);
    for (uint32_t y = 0; y < shape.h; y++)
        for (uint32_t x = 0; x < shape.w; x++, to += atom)
            memset(to, shows(user, x, y) ? INT8_MAX : INT8_MIN, atom);
    for (uint64_t done = plane; done < size; done += plane)
        memcpy(data + done, data, plane);
    int error = rk_plan_constant(plan, data, size, &at);
    if (!error)
        *mask = rk_cube_dense(plan, at, shape);
    return error;
}
