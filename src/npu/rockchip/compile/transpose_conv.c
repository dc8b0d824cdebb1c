/* SPDX-License-Identifier: MIT */
/*
 * Transposed convolutions: the input's pixels stand `stride` apart with the zero point between them, and kernels turned
 * by half a turn run over that (specification, section 12).
 */
#include "npu/rockchip/compile/layer.h"
#include "npu/rockchip/compile/refuse.h"

const char *rk_describe_transpose_conv(const struct rk_chip *chip, const struct mica_graph *graph,
                                       const struct mica_op *op, struct rk_shape view, struct rk_layer *layer)
{
    (void)chip;
    rk_layer_begin(graph, op, 2, op->window.activation, layer);
    struct rk_weighted *weighted = &layer->weighted;
    rk_layer_window(&op->window, weighted);
    weighted->in.shape = view;
    if (rk_image_problem(layer->in) || rk_image_problem(layer->out))
        return "only images of batch size 1 are supported: the NPU's tasks have no batch";
    weighted->spread_x = weighted->stride_x;
    weighted->spread_y = weighted->stride_y;
    weighted->stride_x = weighted->stride_y = 1;
    weighted->pad_left = (int32_t)weighted->kernel_w - 1 - op->window.padding.left;
    weighted->pad_top = (int32_t)weighted->kernel_h - 1 - op->window.padding.top;
    layer->order = RK_WEIGHTS_TURNED;
    return NULL;
}

int rk_supports_transpose_conv(const struct rk_chip *chip, const struct mica_graph *graph, uint32_t op, char *reason,
                               size_t size)
{
    return rk_layer_supports(chip, graph, op, 2, rk_describe_transpose_conv, reason, size);
}

int rk_lower_transpose_conv(struct rk_plan *plan, uint32_t op)
{
    return rk_layer_lower(plan, op, 2, rk_describe_transpose_conv);
}
