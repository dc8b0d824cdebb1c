/* SPDX-License-Identifier: MIT */
/*
 * Convolutions, and the form in which a first one reads what the host writes. Few channels leave most of the 32 lanes
 * idle. Where the stride is 2, two columns of c channels are as well one column of 2c: the same bytes for the host, and
 * a kernel of 3 columns becomes one of 2, which takes two thirds of the time.
 */
#include "npu/rockchip/compile/fusion.h"
#include "npu/rockchip/compile/layer.h"
#include "npu/rockchip/compile/refuse.h"
#include "npu/rockchip/compile/weighted.h"

#include <math.h>

#define MAX_PIXEL_CHANNELS 4u   /* specification, section 11 */
#define MAX_FOLDED_CHANNELS 32u /* lanes that are computed at once */

/* Lets the convolution run over an image whose columns are `fold` columns of the input. */
static void fold_columns(uint32_t fold, struct rk_layer *layer)
{
    struct rk_weighted *weighted = &layer->weighted;
    uint32_t left = (uint32_t)weighted->pad_left, columns = (left + fold - 1) / fold;
    layer->order = RK_WEIGHTS_FOLDED;
    layer->fold = fold;
    layer->fold_offset = columns * fold - left;
    layer->columns = weighted->kernel_w;
    weighted->kernel_w = (layer->fold_offset + weighted->kernel_w - 1) / fold + 1;
    weighted->pad_left = (int32_t)columns;
    weighted->stride_x /= fold;
}

const char *rk_describe_conv(const struct rk_chip *chip, const struct mica_graph *graph, const struct mica_op *op,
                             struct rk_shape view, struct rk_layer *layer)
{
    (void)chip;
    rk_layer_begin(graph, op, 0, op->window.activation, layer);
    rk_layer_window(&op->window, &layer->weighted);
    uint32_t fold = view.c / layer->weighted.in.shape.c;
    layer->weighted.in.shape = view;
    if (rk_image_problem(layer->in) || rk_image_problem(layer->out))
        return "only images of batch size 1 are supported: the NPU's tasks have no batch";
    if (layer->weights->rank != 4 || layer->weights->dims[3] != layer->in->dims[3])
        return "grouped convolutions are not supported";
    if (fold > 1)
        fold_columns(fold, layer);
    return NULL;
}

/* ---- forms ------------------------------------------------------------------------- */

/*
 * RK356x has a converter for packed pixels whose settings nobody knows (specification, section 20). What padding reads
 * then is not known for RK3588 and 0 on a sister chip: so either there is none, or it is to be 0 (section 11).
 */
static bool takes_packed(const struct rk_chip *chip, const struct mica_op *op, const struct mica_tensor *in)
{
    const struct mica_padding *pad = &op->window.padding;
    bool padded = pad->left > 0 || pad->top > 0 || pad->right > 0 || pad->bottom > 0;
    return chip->generation == RK_GENERATION_RK3588 && (uint32_t)in->dims[3] <= MAX_PIXEL_CHANNELS &&
           (!padded || rk_stored_zero(in) == 0);
}

static bool takes_fold(const struct mica_op *op, const struct mica_tensor *in, uint32_t fold)
{
    const struct mica_window *window = &op->window;
    return (uint32_t)window->stride_x % fold == 0 && window->padding.left >= 0 &&
           (window->dilation_x == 1 || window->kernel_x == 1) && (uint32_t)in->dims[2] % fold == 0 &&
           (uint32_t)in->dims[3] * fold <= MAX_FOLDED_CHANNELS;
}

/* What a convolution takes with its input in a form, infinity: it can't read that. */
static double form_us(const struct rk_plan *plan, const struct mica_op *op, struct rk_form form)
{
    const struct mica_tensor *in = mica_op_input(plan->graph, op, 0);
    if (op->kind != MICA_OP_CONV_2D || in->rank != 4)
        return form.packed || form.fold > 1 ? INFINITY : 0;
    if ((form.packed && !takes_packed(plan->chip, op, in)) || (form.fold > 1 && !takes_fold(op, in, form.fold)))
        return INFINITY;
    struct rk_shape view = rk_shape_of(in);
    view.w /= form.fold;
    view.c *= form.fold;
    struct rk_layer layer;
    struct rk_tiling tiling;
    if (rk_describe_conv(plan->chip, plan->graph, op, view, &layer))
        return INFINITY;
    struct rk_weighted *weighted = &layer.weighted;
    weighted->in.packed = form.packed;
    if (rk_weighted_problem(plan->chip, weighted) ||
        !rk_tiling_choose(plan->chip, weighted, weighted->out.shape.c, 0, weighted->out.shape.h, &tiling))
        return INFINITY;
    return tiling.us;
}

/* Of all that read the tensor inside; *stride gets the horizontal stride of one of them. */
static double readers_us(const struct rk_plan *plan, uint32_t tensor, struct rk_form form, uint32_t *stride)
{
    const struct mica_partition *partition = plan->partition;
    double us = 0;
    for (uint32_t i = 0; i < partition->op_count; i++) {
        const struct mica_op *op = &plan->graph->ops[partition->ops[i]];
        for (uint32_t n = 0; n < op->input_count; n++) {
            if (op->inputs[n] != (int32_t)tensor)
                continue;
            us += n == 0 ? form_us(plan, op, form) : form.packed || form.fold > 1 ? INFINITY : 0;
            if (op->kind == MICA_OP_CONV_2D)
                *stride = (uint32_t)op->window.stride_x;
        }
    }
    return us;
}

struct rk_form rk_choose_form(const struct rk_plan *plan, uint32_t tensor)
{
    struct rk_form best = {1, false}, packed = {1, true};
    uint32_t stride = 0;
    double us = readers_us(plan, tensor, best, &stride);
    if (!stride)
        return best;
    double packed_us = readers_us(plan, tensor, packed, &stride);
    if (packed_us <= us + plan->chip->task_us) { /* the host has less to do: worth a little */
        best = packed;
        us = packed_us - plan->chip->task_us;
    }
    struct rk_form folded = {stride, false};
    if (stride > 1 && readers_us(plan, tensor, folded, &stride) < us)
        best = folded;
    return best;
}

/* ---- the operation ------------------------------------------------------------------ */

int rk_supports_conv(const struct rk_chip *chip, const struct mica_graph *graph, uint32_t op, char *reason, size_t size)
{
    return rk_layer_supports(chip, graph, op, 0, rk_describe_conv, reason, size);
}

int rk_lower_conv_added(struct rk_plan *plan, uint32_t op, const struct rk_addend *addend, uint32_t out)
{
    return rk_layer_lower_added(plan, op, 0, rk_describe_conv, addend, out);
}

int rk_lower_conv(struct rk_plan *plan, uint32_t op)
{
    if (rk_is_fused(plan, op)) /* the addition sees to it */
        return 0;
    return rk_layer_lower(plan, op, 0, rk_describe_conv);
}
