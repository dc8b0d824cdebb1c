/* SPDX-License-Identifier: MIT */
/*
 * Fully connected layers: a kernel as large as the pixels that make one row of inputs, put at each row. An image that
 * was reshaped to rows is taken as the image that it is, since its bytes in memory are ordered so.
 */
#include "npu/rockchip/compile/layer.h"

/* Columns and rows of the kernel for rows of `inputs` values in an image; false: they are no rectangles. */
static bool find_kernel(struct rk_shape view, uint32_t inputs, struct rk_weighted *weighted)
{
    uint32_t pixels = inputs / view.c;
    if (inputs % view.c || pixels == 0)
        return false;
    if (pixels <= view.w) {
        weighted->kernel_w = pixels;
        return view.w % pixels == 0;
    }
    weighted->kernel_w = view.w;
    weighted->kernel_h = pixels / view.w;
    return pixels % view.w == 0 && view.h % weighted->kernel_h == 0;
}

const char *rk_describe_fully_connected(const struct rk_chip *chip, const struct mica_graph *graph,
                                        const struct mica_op *op, struct rk_shape view, struct rk_layer *layer)
{
    (void)chip;
    rk_layer_begin(graph, op, 0, op->activation, layer);
    struct rk_weighted *weighted = &layer->weighted;
    if (layer->weights->rank != 2)
        return "the weights don't have two dimensions";
    if (!find_kernel(view, (uint32_t)layer->weights->dims[1], weighted))
        return "the rows of the input are no rectangles of pixels in the NPU's memory layout";
    weighted->in.shape = view;
    weighted->out.shape.w = view.w / weighted->kernel_w;
    weighted->out.shape.h = view.h / weighted->kernel_h;
    /* The strides only matter where there is more than one row. */
    weighted->stride_x = weighted->out.shape.w > 1 ? weighted->kernel_w : 1;
    weighted->stride_y = weighted->out.shape.h > 1 ? weighted->kernel_h : 1;
    return NULL;
}

bool rk_fully_connected_takes(const struct rk_chip *chip, const struct mica_graph *graph, const struct mica_op *op,
                              struct rk_shape view)
{
    struct rk_layer layer;
    return !rk_describe_fully_connected(chip, graph, op, view, &layer) && !rk_weighted_problem(chip, &layer.weighted);
}

int rk_supports_fully_connected(const struct rk_chip *chip, const struct mica_graph *graph, uint32_t op, char *reason,
                                size_t size)
{
    return rk_layer_supports(chip, graph, op, 0, rk_describe_fully_connected, reason, size);
}

int rk_lower_fully_connected(struct rk_plan *plan, uint32_t op)
{
    return rk_layer_lower(plan, op, 0, rk_describe_fully_connected);
}
