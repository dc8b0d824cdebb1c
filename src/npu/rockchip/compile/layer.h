/* SPDX-License-Identifier: MIT */
/* What graph operations with weights share: from tensors to struct rk_weighted. */
#ifndef MICA_ROCKCHIP_COMPILE_LAYER_H
#define MICA_ROCKCHIP_COMPILE_LAYER_H

#include "npu/rockchip/compile/plan.h"

/* How the weights of the tensor become those of a struct rk_weighted. */
enum rk_weight_order {
    RK_WEIGHTS_AS_THEY_ARE,
    RK_WEIGHTS_TURNED,   /* each kernel by half a turn */
    RK_WEIGHTS_DIAGONAL, /* depthwise ones as direct: channel o looks at input o / multiplier alone */
    RK_WEIGHTS_FOLDED,   /* for several columns of the input as one with more channels */
};

/* An operation's tensors, and the convolution that it is: all but cubes' addresses and arrays is set. */
struct rk_layer {
    const struct mica_tensor *in, *weights, *bias, *out;
    enum mica_activation activation;
    enum rk_weight_order order;
    uint32_t multiplier;        /* RK_WEIGHTS_DIAGONAL: output channels an input channel makes */
    uint32_t fold, fold_offset; /* RK_WEIGHTS_FOLDED: columns that are one, and those left of the kernel in its first */
    uint32_t columns;           /* of the kernel before */
    struct rk_weighted weighted;
};

/* NULL with the layer filled in, or a sentence why the operation is none for the chip. `view` is the shape in which
 * the input's value is there, mostly its own. */
typedef const char *rk_describe_layer(const struct rk_chip *chip, const struct mica_graph *graph,
                                      const struct mica_op *op, struct rk_shape view, struct rk_layer *layer);

rk_describe_layer rk_describe_conv, rk_describe_depthwise, rk_describe_fully_connected, rk_describe_transpose_conv;

/* Tensors, activation and defaults of an operation whose data is input `data`, its weights 1. */
void rk_layer_begin(const struct mica_graph *graph, const struct mica_op *op, uint32_t data,
                    enum mica_activation activation, struct rk_layer *layer);
/* Strides, dilation, kernel and padding of a window, not transposed. */
void rk_layer_window(const struct mica_window *window, struct rk_weighted *weighted);

int rk_layer_supports(const struct rk_chip *chip, const struct mica_graph *graph, uint32_t op, uint32_t data,
                      rk_describe_layer *describe, char *reason, size_t size);
int rk_layer_lower(struct rk_plan *plan, uint32_t op, uint32_t data, rk_describe_layer *describe);
/* With an addend, and another tensor for the result; RK_UNFUSED: it can't be. */
int rk_layer_lower_added(struct rk_plan *plan, uint32_t op, uint32_t data, rk_describe_layer *describe,
                         const struct rk_addend *addend, uint32_t result);

/* In which form a convolution reads its input: see conv.c. */
struct rk_form {
    uint32_t fold; /* so many columns stand side by side as the channels of one; 1: as the tensor says */
    bool packed;   /* pixels as the host has them */
};

/* The quickest form for an input of the partition that the host can write and all that read it inside can take. */
struct rk_form rk_choose_form(const struct rk_plan *plan, uint32_t tensor);

/* Could a fully connected layer read its input in the form of another tensor with the same bytes? */
bool rk_fully_connected_takes(const struct rk_chip *chip, const struct mica_graph *graph, const struct mica_op *op,
                              struct rk_shape view);

#endif
