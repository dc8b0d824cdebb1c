/* SPDX-License-Identifier: MIT */
/* Where the values of tensors are: cubes, for inputs and constants too. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "npu/rockchip/compile/plan.h"
#include "util/checked.h"

/* The CNA counts a cube's channels in sixteens whatever the atom: reads may touch so many (specification, section 17).
 */
#define CHANNEL_STEP 16u

struct rk_shape rk_shape_of(const struct mica_tensor *tensor)
{
    struct rk_shape shape = {1, 1, 1};
    uint32_t rank = tensor->rank;
    if (rank > 0)
        shape.c = (uint32_t)tensor->dims[rank - 1];
    if (rank > 1)
        shape.w = (uint32_t)tensor->dims[rank - 2];
    for (uint32_t i = 0; i + 2 < rank; i++)
        shape.h *= (uint32_t)tensor->dims[i];
    return shape;
}

int32_t rk_stored_zero(const struct mica_tensor *tensor)
{
    int32_t zero = tensor->quant.count ? tensor->quant.zero_point[0] : 0;
    return tensor->type == MICA_TYPE_UINT8 ? zero - 128 : zero;
}

struct rk_cube rk_cube_dense(const struct rk_plan *plan, struct rk_ref at, struct rk_shape shape)
{
    uint64_t line = (uint64_t)shape.w * plan->chip->atom;
    return (struct rk_cube){.at = at, .shape = shape, .line = line, .surface = line * shape.h};
}

uint64_t rk_cube_bytes(const struct rk_plan *plan, struct rk_shape shape)
{
    uint64_t channels = mica_align(shape.c, CHANNEL_STEP);
    return (uint64_t)shape.w * shape.h * channels / plan->chip->atom * plan->chip->atom;
}

int rk_plan_cube(struct rk_plan *plan, struct rk_shape shape, struct rk_cube *cube)
{
    struct rk_ref at;
    int error = rk_plan_storage(plan, rk_cube_bytes(plan, shape), &at);
    if (!error)
        *cube = rk_cube_dense(plan, at, shape);
    return error;
}

/* A constant's cube; lanes past the channels get the zero point. */
static int make_constant(struct rk_plan *plan, const struct mica_tensor *tensor, struct rk_cube *cube)
{
    struct rk_shape shape = rk_shape_of(tensor);
    uint64_t size = rk_cube_bytes(plan, shape), pixels = (uint64_t)shape.w * shape.h;
    uint8_t *data = malloc(size ? size : 1);
    struct rk_ref at;
    if (!data)
        return mica_fail_nomem(plan->log);
    memset(data, rk_stored_zero(tensor), size);
    const uint8_t *from = tensor->data, flip = tensor->type == MICA_TYPE_UINT8 ? 0x80 : 0;
    uint32_t atom = plan->chip->atom;
    for (uint64_t p = 0; p < pixels; p++)
        for (uint32_t c = 0; c < shape.c; c++)
            data[c / atom * pixels * atom + p * atom + c % atom] = *from++ ^ flip;
    int error = rk_plan_constant(plan, data, size, &at);
    if (!error)
        *cube = rk_cube_dense(plan, at, shape);
    return error;
}

int rk_plan_value(struct rk_plan *plan, uint32_t tensor, struct rk_cube *cube)
{
    struct rk_value *value = &plan->values[tensor];
    const struct mica_tensor *t = &plan->graph->tensors[tensor];
    if (value->cube.at.storage == RK_NONE) {
        if (!t->data)
            return mica_fail(plan->log, -EINVAL, "tensor \"%s\" is read before anything computes it", t->name);
        int error = make_constant(plan, t, &value->cube);
        if (error)
            return error;
    }
    *cube = value->cube;
    return 0;
}

int rk_plan_result(struct rk_plan *plan, uint32_t tensor, struct rk_cube *cube)
{
    struct rk_value *value = &plan->values[tensor];
    if (value->cube.at.storage == RK_NONE) {
        int error = rk_plan_cube(plan, rk_shape_of(&plan->graph->tensors[tensor]), &value->cube);
        if (error)
            return error;
    }
    *cube = value->cube;
    return 0;
}

int rk_plan_piece(struct rk_plan *plan, struct rk_cube cube)
{
    void *pieces = rk_plan_grow(plan->pieces, plan->piece_count, &plan->piece_capacity, sizeof(*plan->pieces));
    if (!pieces)
        return mica_fail_nomem(plan->log);
    plan->pieces = pieces;
    plan->pieces[plan->piece_count++] = cube;
    return 0;
}

/* A storage as large as that of the pieces of a value, and the same pieces of it. */
static int copy_pieces(struct rk_plan *plan, const struct rk_value *from, struct rk_value *to)
{
    struct rk_value value = {.cube = from->cube, .first_piece = plan->piece_count, .piece_count = from->piece_count};
    int error = rk_plan_storage(plan, from->cube.surface, &value.cube.at);
    for (uint32_t i = 0; !error && i < from->piece_count; i++) {
        struct rk_cube piece = plan->pieces[from->first_piece + i];
        piece.at = (struct rk_ref){value.cube.at.storage, piece.at.offset};
        error = rk_plan_piece(plan, piece);
    }
    if (!error)
        *to = value;
    return error;
}

int rk_plan_result_like(struct rk_plan *plan, uint32_t tensor, uint32_t other, struct rk_cube *cube)
{
    struct rk_value *value = &plan->values[tensor], *like = &plan->values[other];
    int error = 0;
    if (value->cube.at.storage == RK_NONE && like->piece_count)
        error = copy_pieces(plan, like, value);
    else if (value->cube.at.storage == RK_NONE && like->cube.shape.c != rk_shape_of(&plan->graph->tensors[tensor]).c)
        error = rk_plan_cube(plan, like->cube.shape, &value->cube);
    return error ? error : rk_plan_result(plan, tensor, cube);
}

int rk_plan_input(struct rk_plan *plan, uint32_t tensor, struct rk_shape shape, bool packed)
{
    const struct mica_tensor *t = &plan->graph->tensors[tensor];
    struct rk_cube *cube = &plan->values[tensor].cube;
    int error = packed ? rk_plan_storage(plan, t->bytes, &cube->at) : rk_plan_cube(plan, shape, cube);
    if (error)
        return error;
    if (packed)
        *cube = (struct rk_cube){.at = cube->at,
                                 .shape = shape,
                                 .line = (uint64_t)shape.w * shape.c,
                                 .surface = (uint64_t)shape.w * shape.h * shape.c,
                                 .packed = true};
    plan->storages[cube->at.storage].external = true;
    return 0;
}

struct rk_cube rk_cube_channels(const struct rk_plan *plan, struct rk_cube cube, uint32_t first, uint32_t count)
{
    cube.at.offset += first / plan->chip->atom * cube.surface;
    cube.shape.c = count;
    return cube;
}

struct rk_cube rk_cube_rows(const struct rk_plan *plan, struct rk_cube cube, uint32_t first, uint32_t count)
{
    (void)plan;
    cube.at.offset += first * cube.line;
    cube.shape.h = count;
    return cube;
}
