/* SPDX-License-Identifier: MIT */
/*
 * Depthwise convolutions. The NPU's own has as many output as input channels and more than one; others are convolutions
 * over all channels whose weights are 0 but for one channel (specification, section 10).
 */
#include "npu/rockchip/compile/layer.h"
#include "npu/rockchip/compile/refuse.h"

const char *rk_describe_depthwise(const struct rk_chip *chip, const struct mica_graph *graph, const struct mica_op *op,
                                  struct rk_shape view, struct rk_layer *layer)
{
    (void)chip;
    rk_layer_begin(graph, op, 0, op->window.activation, layer);
    rk_layer_window(&op->window, &layer->weighted);
    layer->weighted.in.shape = view;
    if (rk_image_problem(layer->in) || rk_image_problem(layer->out))
        return "only images of batch size 1 are supported: the NPU's tasks have no batch";
    uint32_t inputs = view.c, outputs = layer->weighted.out.shape.c;
    layer->weighted.depthwise = inputs == outputs && inputs > 1;
    layer->multiplier = outputs / inputs;
    layer->order = layer->weighted.depthwise ? RK_WEIGHTS_AS_THEY_ARE : RK_WEIGHTS_DIAGONAL;
    return layer->multiplier * inputs == outputs ? NULL : "the weights don't fit the input's channels";
}

int rk_supports_depthwise(const struct rk_chip *chip, const struct mica_graph *graph, uint32_t op, char *reason,
                          size_t size)
{
    return rk_layer_supports(chip, graph, op, 0, rk_describe_depthwise, reason, size);
}

int rk_lower_depthwise(struct rk_plan *plan, uint32_t op)
{
    return rk_layer_lower(plan, op, 0, rk_describe_depthwise);
}
