/* SPDX-License-Identifier: MIT */
/*
 * SPACE_TO_DEPTH as a strided convolution, DEPTH_TO_SPACE as a transposed one: each output value has one weight of 1.
 * Exact.
 */
#include <errno.h>

#include "npu/rockchip/compile/refuse.h"
#include "npu/rockchip/compile/select.h"

static struct rk_weighted describe(const struct mica_graph *graph, uint32_t op_index)
{
    const struct mica_op *op = &graph->ops[op_index];
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *out = mica_op_output(graph, op, 0);
    struct rk_cube from = {.shape = rk_shape_of(in)}, to = {.shape = rk_shape_of(out)};
    struct rk_weighted weighted = rk_weighted_plain(op_index, from, to);
    uint32_t block = (uint32_t)op->block;
    weighted.kernel_w = weighted.kernel_h = block;
    weighted.in_zero = weighted.out_zero = rk_stored_zero(out);
    if (op->kind == MICA_OP_SPACE_TO_DEPTH) {
        weighted.stride_x = weighted.stride_y = block;
    } else {
        weighted.spread_x = weighted.spread_y = block;
        weighted.pad_left = weighted.pad_top = (int32_t)block - 1;
    }
    return weighted;
}

int rk_supports_depth_space(const struct rk_chip *chip, const struct mica_graph *graph, uint32_t op_index, char *reason,
                            size_t size)
{
    const struct mica_op *op = &graph->ops[op_index];
    if (rk_check_tensors(graph, op, 0, 1, reason, size))
        return -ENOTSUP;
    const struct mica_tensor *in = mica_op_input(graph, op, 0);
    const char *problem = rk_image_problem(in);
    if (!problem && !rk_same_quantization(in, mica_op_output(graph, op, 0)))
        problem = "input and output are quantized differently";
    struct rk_weighted weighted = describe(graph, op_index);
    if (!problem && weighted.kernel_w > RK_MAX_KERNEL)
        problem = "the blocks have more than 31 rows and columns";
    if (!problem)
        problem = rk_matrix_problem(chip, &weighted);
    return problem ? rk_refuse(reason, size, "%s", problem) : 0;
}

/* Channel i of the deep image is channel i % narrow of pixel i / narrow of a block of the wide one. */
static void fill(struct rk_matrix *matrix, bool deepen)
{
    const struct rk_weighted *w = &matrix->weighted;
    uint32_t block = w->kernel_w, deep = deepen ? w->out.shape.c : w->in.shape.c, narrow = deep / (block * block);
    for (uint32_t i = 0; i < deep; i++) {
        uint32_t y = i / narrow / block, x = i / narrow % block;
        if (deepen)
            rk_matrix_set(matrix, i, y, x, i % narrow, 1);
        else /* the window of an output pixel ends at it: its block's pixel stands so far before */
            rk_matrix_set(matrix, i % narrow, block - 1 - y, block - 1 - x, i, 1);
    }
}

int rk_lower_depth_space(struct rk_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    struct rk_weighted weighted = describe(plan->graph, op_index);
    struct rk_matrix matrix;
    int error = rk_plan_value(plan, (uint32_t)op->inputs[0], &weighted.in);
    if (!error)
        error = rk_plan_result(plan, (uint32_t)op->outputs[0], &weighted.out);
    if (!error)
        error = rk_matrix_new(plan, &weighted, &matrix);
    if (error)
        return error;
    fill(&matrix, op->kind == MICA_OP_SPACE_TO_DEPTH);
    return rk_lower_matrix(plan, &matrix, 1);
}
