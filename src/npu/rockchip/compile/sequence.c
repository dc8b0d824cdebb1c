/* SPDX-License-Identifier: MIT */
/* Concatenations whose result nobody looks at: the inputs as they are, one behind the other in one storage. */
#include "npu/rockchip/compile/move.h"
#include "npu/rockchip/compile/views.h"

/* Bytes of a storage that has nothing but the value. */
static uint64_t bytes_of(const struct rk_plan *plan, const struct rk_value *value)
{
    return value->piece_count ? value->cube.surface : rk_cube_bytes(plan, value->cube.shape);
}

/* The cubes of an input are pieces of the output from now on. */
static int add_pieces(struct rk_plan *plan, const struct rk_value *in, struct rk_cube place)
{
    int error = in->piece_count ? 0 : rk_plan_piece(plan, place);
    for (uint32_t i = 0; !error && i < in->piece_count; i++) {
        struct rk_cube piece = plan->pieces[in->first_piece + i];
        piece.at = (struct rk_ref){place.at.storage, place.at.offset + piece.at.offset};
        error = rk_plan_piece(plan, piece);
    }
    return error;
}

/* All inputs into one storage, each as it is. */
int rk_lower_sequence(struct rk_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    const struct mica_tensor *out = mica_op_output(plan->graph, op, 0);
    struct rk_value result = {.first_piece = plan->piece_count};
    uint64_t bytes = 0, at = 0;
    struct rk_cube cube;
    int error = 0;
    for (uint32_t i = 0; !error && i < op->input_count; i++) {
        error = rk_plan_value(plan, (uint32_t)op->inputs[i], &cube);
        bytes += error ? 0 : bytes_of(plan, &plan->values[op->inputs[i]]);
    }
    if (!error)
        error = rk_plan_storage(plan, bytes, &result.cube.at);
    for (uint32_t i = 0; !error && i < op->input_count; i++) {
        const struct mica_tensor *in = mica_op_input(plan->graph, op, i);
        const struct rk_value *value = &plan->values[op->inputs[i]];
        struct rk_cube place = rk_cube_dense(plan, (struct rk_ref){result.cube.at.storage, at}, value->cube.shape);
        at += bytes_of(plan, value);
        error = rk_lower_place(plan, op_index, value->cube, rk_stored_zero(in), place, rk_stored_zero(out),
                               (double)in->quant.scale[0] / (double)out->quant.scale[0]);
        if (!error)
            error = add_pieces(plan, value, place);
    }
    result.piece_count = plan->piece_count - result.first_piece;
    struct rk_shape row = {(uint32_t)(bytes / plan->chip->atom), 1, plan->chip->atom};
    result.cube = rk_cube_dense(plan, result.cube.at, row);
    if (!error)
        plan->values[op->outputs[0]] = result;
    return error;
}
