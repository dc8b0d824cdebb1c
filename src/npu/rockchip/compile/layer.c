/* SPDX-License-Identifier: MIT */
#include "npu/rockchip/compile/layer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "npu/rockchip/compile/refuse.h"
#include "npu/rockchip/compile/requant.h"
#include "npu/rockchip/compile/select.h"
#include "npu/rockchip/compile/weighted.h"
#include "util/checked.h"

#define MAX_EXPANDED_BYTES (64u << 20) /* of depthwise weights written as direct ones */

/* ---- description ------------------------------------------------------------------ */

void rk_layer_begin(const struct mica_graph *graph, const struct mica_op *op, uint32_t data,
                    enum mica_activation activation, struct rk_layer *layer)
{
    *layer = (struct rk_layer){.in = mica_op_input(graph, op, data), .weights = mica_op_input(graph, op, 1)};
    layer->bias = mica_op_input(graph, op, data ? data + 1 : 2);
    layer->out = mica_op_output(graph, op, 0);
    layer->activation = activation;
    struct rk_weighted *weighted = &layer->weighted;
    struct rk_cube in = {.shape = rk_shape_of(layer->in)}, out = {.shape = rk_shape_of(layer->out)};
    *weighted = rk_weighted_plain(0, in, out);
    weighted->in_zero = rk_stored_zero(layer->in);
    weighted->out_zero = rk_stored_zero(layer->out);
    rk_activation_range(activation, layer->out, &weighted->min, &weighted->max);
}

void rk_layer_window(const struct mica_window *window, struct rk_weighted *weighted)
{
    weighted->kernel_w = (uint32_t)window->kernel_x;
    weighted->kernel_h = (uint32_t)window->kernel_y;
    weighted->stride_x = (uint32_t)window->stride_x;
    weighted->stride_y = (uint32_t)window->stride_y;
    weighted->dilation_x = weighted->kernel_w > 1 ? (uint32_t)window->dilation_x : 1;
    weighted->dilation_y = weighted->kernel_h > 1 ? (uint32_t)window->dilation_y : 1;
    weighted->pad_left = window->padding.left;
    weighted->pad_top = window->padding.top;
}

/* ---- constants --------------------------------------------------------------------- */

struct constants {
    int8_t *weights; /* owned, all three */
    int32_t *zero;
    double *factor;
};

static void constants_finish(struct constants *constants)
{
    free(constants->weights);
    free(constants->zero);
    free(constants->factor);
}

static size_t taps_of(const struct rk_weighted *weighted)
{
    return (size_t)weighted->kernel_w * weighted->kernel_h;
}

static size_t weight_count(const struct rk_layer *layer)
{
    const struct rk_weighted *weighted = &layer->weighted;
    return taps_of(weighted) * weighted->out.shape.c * (weighted->depthwise ? 1 : weighted->in.shape.c);
}

static void turn_weights(const struct rk_layer *layer, const uint8_t *from, uint8_t flip, int8_t *to)
{
    size_t taps = taps_of(&layer->weighted), channels = layer->weighted.in.shape.c;
    for (uint32_t o = 0; o < layer->weighted.out.shape.c; o++)
        for (size_t tap = 0; tap < taps; tap++)
            for (size_t i = 0; i < channels; i++)
                to[(o * taps + tap) * channels + i] = (int8_t)(from[(o * taps + taps - 1 - tap) * channels + i] ^ flip);
}

static void spread_weights(const struct rk_layer *layer, const struct constants *constants, const uint8_t *from,
                           uint8_t flip, int8_t *to)
{
    size_t taps = taps_of(&layer->weighted), channels = layer->weighted.in.shape.c;
    uint32_t outputs = layer->weighted.out.shape.c;
    for (uint32_t o = 0; o < outputs; o++) {
        memset(to + o * taps * channels, constants->zero[o], taps * channels);
        for (size_t tap = 0; tap < taps; tap++)
            to[(o * taps + tap) * channels + o / layer->multiplier] = (int8_t)(from[tap * outputs + o] ^ flip);
    }
}

static void fold_weights(const struct rk_layer *layer, const struct constants *constants, const uint8_t *from,
                         uint8_t flip, int8_t *to)
{
    const struct rk_weighted *weighted = &layer->weighted;
    size_t lanes = weighted->in.shape.c, channels = lanes / layer->fold;
    for (uint32_t o = 0; o < weighted->out.shape.c; o++)
        for (uint32_t y = 0; y < weighted->kernel_h; y++) {
            int8_t *row = to + ((size_t)o * weighted->kernel_h + y) * weighted->kernel_w * lanes;
            memset(row, constants->zero[o], weighted->kernel_w * lanes);
            row += layer->fold_offset * channels;
            for (size_t i = 0; i < layer->columns * channels; i++)
                row[i] = (int8_t)(*from++ ^ flip);
        }
}

static void order_weights(const struct rk_layer *layer, const struct constants *constants)
{
    const uint8_t *from = layer->weights->data, flip = layer->weights->type == MICA_TYPE_UINT8 ? 0x80 : 0;
    size_t count = weight_count(layer);
    if (layer->order == RK_WEIGHTS_TURNED)
        turn_weights(layer, from, flip, constants->weights);
    else if (layer->order == RK_WEIGHTS_DIAGONAL)
        spread_weights(layer, constants, from, flip, constants->weights);
    else if (layer->order == RK_WEIGHTS_FOLDED)
        fold_weights(layer, constants, from, flip, constants->weights);
    else
        for (size_t i = 0; i < count; i++)
            constants->weights[i] = (int8_t)(from[i] ^ flip);
}

/* Zero points and factors of all output channels. */
static bool make_scales(const struct rk_layer *layer, struct constants *constants)
{
    uint32_t outputs = layer->weighted.out.shape.c;
    const struct mica_quantization *quant = &layer->weights->quant;
    int32_t offset = layer->weights->type == MICA_TYPE_UINT8 ? 128 : 0;
    constants->zero = mica_new_array(outputs, sizeof(*constants->zero));
    constants->factor = mica_new_array(outputs, sizeof(*constants->factor));
    if (!constants->zero || !constants->factor)
        return false;
    for (uint32_t o = 0; o < outputs; o++) {
        uint32_t i = quant->count > 1 ? o : 0;
        constants->zero[o] = quant->zero_point[i] - offset;
        constants->factor[o] =
            (double)layer->in->quant.scale[0] * (double)quant->scale[i] / (double)layer->out->quant.scale[0];
    }
    return true;
}

/* Lets the layer's arrays be these, whose scales may be made already. False when memory runs out. */
static bool attach_constants(struct rk_layer *layer, struct constants *constants)
{
    if (!constants->zero && !make_scales(layer, constants))
        return false;
    constants->weights = malloc(weight_count(layer));
    if (!constants->weights)
        return false;
    order_weights(layer, constants);
    layer->weighted.weights = constants->weights;
    layer->weighted.weight_zero = constants->zero;
    layer->weighted.factor = constants->factor;
    layer->weighted.bias = layer->bias ? layer->bias->data : NULL;
    return true;
}

/* ---- support ----------------------------------------------------------------------- */

static const char *constants_problem(const struct rk_layer *layer)
{
    const struct mica_tensor *weights = layer->weights, *bias = layer->bias;
    uint32_t outputs = layer->weighted.out.shape.c;
    if (!weights || weights->problem)
        return "the weights can't be used";
    if (!weights->data)
        return "the weights are not constant: the NPU reads them in an order of its own, which is made ahead of time";
    if (weights->type != MICA_TYPE_UINT8 && weights->type != MICA_TYPE_INT8)
        return "the weights are not uint8 or int8";
    if (weights->quant.count != 1 && weights->quant.count != outputs)
        return "the weights need one scale, or one for every output channel";
    if (bias && (bias->problem || bias->type != MICA_TYPE_INT32 || bias->bytes != (size_t)outputs * sizeof(int32_t)))
        return "the bias is not one int32 for every output channel";
    if (bias && !bias->data)
        return "the bias is not constant";
    if (layer->order == RK_WEIGHTS_DIAGONAL && weight_count(layer) > MAX_EXPANDED_BYTES)
        return "a depth multiplier above 1 is computed as a convolution over all channels, whose weights are too large";
    return NULL;
}

/* -ENOMEM, or 0 with NULL or a sentence in *problem. */
static int measured_problem(const struct rk_chip *chip, struct rk_layer *layer, struct constants *constants,
                            const char **problem)
{
    uint32_t outputs = layer->weighted.out.shape.c;
    if (!attach_constants(layer, constants))
        return -ENOMEM;
    struct rk_channel *channels = rk_channels_measure(&layer->weighted);
    struct rk_factor *factors = mica_new_array(outputs, sizeof(*factors));
    uint8_t *class_of = malloc(outputs);
    int error = channels && factors && class_of ? 0 : -ENOMEM;
    if (!error) {
        for (uint32_t o = 0; o < outputs; o++)
            factors[o] = (struct rk_factor){constants->factor[o], channels[o].reach};
        bool sortable = rk_channels_sortable(&layer->weighted, channels);
        *problem = rk_requant_problem(factors, outputs, chip->atom, sortable ? class_of : NULL, NULL);
    }
    free(class_of);
    free(channels);
    free(factors);
    return error;
}

/* Most models are fine whatever their weights; only the others have these looked at. */
static int scales_problem(const struct rk_chip *chip, struct rk_layer *layer, const char **problem)
{
    struct constants constants = {0};
    int error = make_scales(layer, &constants) ? 0 : -ENOMEM;
    if (!error)
        *problem = rk_factors_problem(constants.factor, layer->weighted.out.shape.c, NULL);
    if (!error && *problem)
        error = measured_problem(chip, layer, &constants, problem);
    constants_finish(&constants);
    return error;
}

int rk_layer_supports(const struct rk_chip *chip, const struct mica_graph *graph, uint32_t op_index, uint32_t data,
                      rk_describe_layer *describe, char *reason, size_t size)
{
    const struct mica_op *op = &graph->ops[op_index];
    struct rk_layer layer;
    const char *problem = rk_tensor_problem(mica_op_input(graph, op, data));
    if (problem)
        return rk_refuse(reason, size, "the input can't be used: %s", problem);
    problem = rk_tensor_problem(mica_op_output(graph, op, 0));
    if (problem)
        return rk_refuse(reason, size, "the output can't be used: %s", problem);
    problem = describe(chip, graph, op, rk_shape_of(mica_op_input(graph, op, data)), &layer);
    if (!problem)
        problem = constants_problem(&layer);
    if (!problem)
        problem = rk_weighted_problem(chip, &layer.weighted);
    if (!problem && scales_problem(chip, &layer, &problem)) {
        rk_refuse(reason, size, "memory ran out while the scales were looked at");
        return -ENOMEM;
    }
    return problem ? rk_refuse(reason, size, "%s", problem) : 0;
}

/* ---- lowering ---------------------------------------------------------------------- */

/* A result that is another shape's pixels in the same order, as a fully connected layer's rows. */
static void fit_output(const struct rk_plan *plan, struct rk_cube cube, struct rk_weighted *weighted)
{
    struct rk_shape shape = weighted->out.shape;
    weighted->out = cube;
    weighted->out.shape = shape;
    if (shape.w != cube.shape.w)
        weighted->out.line = (uint64_t)shape.w * plan->chip->atom;
}

int rk_layer_lower_added(struct rk_plan *plan, uint32_t op_index, uint32_t data, rk_describe_layer *describe,
                         const struct rk_addend *addend, uint32_t result)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    struct rk_layer layer;
    struct rk_cube in, out;
    int error = rk_plan_value(plan, (uint32_t)op->inputs[data], &in);
    if (!error)
        error = rk_plan_result(plan, result, &out);
    if (error)
        return error;
    const char *problem = describe(plan->chip, plan->graph, op, in.shape, &layer);
    if (problem)
        return mica_fail(plan->log, -ENOTSUP, "%s", problem);
    layer.weighted.op = op_index;
    layer.weighted.macs = mica_op_macs(plan->graph, op);
    layer.weighted.in = in;
    layer.weighted.addend = addend;
    fit_output(plan, out, &layer.weighted);
    struct constants constants = {0};
    error =
        attach_constants(&layer, &constants) ? rk_lower_weighted(plan, &layer.weighted) : mica_fail_nomem(plan->log);
    constants_finish(&constants);
    return error;
}

int rk_layer_lower(struct rk_plan *plan, uint32_t op_index, uint32_t data, rk_describe_layer *describe)
{
    uint32_t result = (uint32_t)plan->graph->ops[op_index].outputs[0];
    return rk_layer_lower_added(plan, op_index, data, describe, NULL, result);
}
