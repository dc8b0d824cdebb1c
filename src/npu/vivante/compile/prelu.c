/* SPDX-License-Identifier: MIT */
/*
 * PRELU with a constant slope for each channel or for all: x, and what of it is
 * above zero, are the channels of a 1x1 convolution; kernel c weighs its two:
 *
 *     unit * above + weight * (x - above)    weight / unit is the slope
 *
 * The slopes' rounding to weights is all that is lost. Where it is too much, x
 * and what is above zero are there several times: finer weights.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "npu/vivante/compile/compose.h"
#include "npu/vivante/compile/elementwise.h"
#include "npu/vivante/compile/query.h"
#include "npu/vivante/compile/tile.h"
#include "util/checked.h"

#define LIMIT 1.998             /* steps of the output from TFLite's result: below 2, they differ by at most 1 */
#define REFERENCE_ROUNDING 0.75 /* TFLite's: it rounds twice for factors below 1/2 */
#define MOST_COPIES 8u          /* of the input */
#define MOST_WEIGHTS (1u << 22) /* of all kernels: zeros, but for two a kernel and copy */
#define LARGEST_WEIGHT 255      /* from the least to the largest */

struct prelu {
    uint32_t copies;
    int32_t unit;
    struct viv_requant requant;
    double bound;
};

static double slope_of(const struct mica_tensor *alpha, uint32_t channel)
{
    const uint8_t *bytes = alpha->data;
    int32_t value = bytes[alpha->bytes == 1 ? 0 : channel] ^ viv_flip(alpha);
    return (value - viv_zero_point(alpha)) * (double)alpha->quant.scale[0];
}

/* The weight of x, all copies together; that of what is above zero is the unit less this. */
static int32_t weight_of(const struct mica_tensor *alpha, uint32_t channel, int32_t unit)
{
    return (int32_t)lround(slope_of(alpha, channel) * unit);
}

/* Do weights of such a unit fit, and how far are results from TFLite's then? */
static bool try_unit(const struct viv_chip *chip, const struct mica_tensor *in, const struct mica_tensor *alpha,
                     double factor, struct prelu *prelu)
{
    double least = 0, largest = 0, off = 0, unit = prelu->unit;
    if (!viv_requant_factor(chip, factor / unit, &prelu->requant))
        return false;
    for (uint32_t c = 0; c < alpha->bytes; c++) {
        double weight = weight_of(alpha, c, prelu->unit), above = unit - weight;
        least = fmin(least, fmin(weight, above));
        largest = fmax(largest, fmax(weight, above));
        off = fmax(off, fabs(weight / unit - slope_of(alpha, c)));
    }
    double multiplier = fabs(viv_requant_exact(chip, &prelu->requant) * unit / factor - 1) * 256;
    prelu->bound = 0.5 + off * factor * viv_zero_point(in) + multiplier + REFERENCE_ROUNDING;
    return ceil(largest / prelu->copies) - floor(least / prelu->copies) <= LARGEST_WEIGHT;
}

/* The largest unit that fits, with the fewest copies that are near enough. */
static bool choose(const struct viv_chip *chip, const struct mica_graph *graph, const struct mica_op *op,
                   struct prelu *prelu)
{
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *alpha = mica_op_input(graph, op, 1);
    double factor = (double)in->quant.scale[0] / (double)mica_op_output(graph, op, 0)->quant.scale[0];
    for (uint32_t copies = 1; copies <= MOST_COPIES; copies++)
        for (int32_t unit = (int32_t)(LARGEST_WEIGHT * copies); unit > 0; unit--) {
            *prelu = (struct prelu){.copies = copies, .unit = unit};
            if (!try_unit(chip, in, alpha, factor, prelu))
                continue;
            if (prelu->bound < LIMIT)
                return true;
            break; /* smaller ones are coarser */
        }
    return false;
}

/* ---- lowering ------------------------------------------------------------------- */

/* Copy `copy` of x or, `above`, of what is above zero has its share of the weight. */
static int32_t share_of(int32_t weight, uint32_t copies, uint32_t copy)
{
    int32_t all = (int32_t)copies, before = (int32_t)copy;
    return weight * (before + 1) / all - weight * before / all;
}

static int make_weights(struct viv_plan *plan, const struct mica_op *op, const struct prelu *prelu, uint32_t *index)
{
    struct viv_weights *weights = viv_plan_weights(plan, index);
    if (!weights)
        return -ENOMEM;
    const struct mica_tensor *in = mica_op_input(plan->graph, op, 0), *alpha = mica_op_input(plan->graph, op, 1);
    uint32_t channels = viv_shape_of(in).c;
    int32_t least = 0, zero = (int32_t)plan->chip->bias_input_zero;
    weights->kernels = channels;
    weights->channels = 2 * channels * prelu->copies;
    weights->phases = weights->taps = 1;
    weights->pointwise = true;
    weights->owned = mica_new_array(channels, weights->channels);
    weights->bias = mica_new_array(channels, sizeof(*weights->bias));
    if (!weights->owned || !weights->bias)
        return mica_fail_nomem(plan->log);
    for (uint32_t i = 0; i < channels * 2 * prelu->copies; i++) {
        int32_t x = weight_of(alpha, i / 2 / prelu->copies, prelu->unit);
        int32_t share = share_of(i % 2 ? prelu->unit - x : x, prelu->copies, i / 2 % prelu->copies);
        least = share < least ? share : least;
    }
    weights->zero_point = (uint8_t)-least;
    memset(weights->owned, weights->zero_point, (size_t)channels * weights->channels);
    for (uint32_t c = 0; c < channels; c++) {
        int32_t x = weight_of(alpha, c, prelu->unit), above = prelu->unit - x;
        uint8_t *kernel = weights->owned + (size_t)c * weights->channels;
        for (uint32_t copy = 0; copy < prelu->copies; copy++) {
            kernel[2 * copy * channels + c] = (uint8_t)(share_of(x, prelu->copies, copy) - least);
            kernel[(2 * copy + 1) * channels + c] = (uint8_t)(share_of(above, prelu->copies, copy) - least);
        }
        weights->bias[c] = (uint32_t)(x * (zero - viv_zero_point(in)) + above * zero);
    }
    weights->data = weights->owned;
    return 0;
}

/* x and what is above zero, as often as there are copies. */
static int place(struct viv_plan *plan, uint32_t op_index, const struct prelu *prelu, struct viv_ref *ref)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    const struct mica_tensor *in = mica_op_input(plan->graph, op, 0);
    struct viv_elementwise above = {.inputs = 1, .weight = {1}, .in_zero = {viv_zero_point(in)}};
    struct viv_ref x, to;
    viv_requant_factor(plan->chip, 1, &above.requant);
    int error = viv_need_planar(plan, (uint32_t)op->inputs[0], op_index, &x);
    if (!error)
        error = viv_plan_storage(plan, 2 * prelu->copies * (uint64_t)in->bytes, ref);
    if (!error)
        error = viv_place(plan, x, in->bytes, *ref, 0, 0, op_index);
    to = (struct viv_ref){ref->storage, in->bytes};
    if (!error)
        error = viv_elementwise_jobs(plan, op_index, &above, *ref, to, in->bytes);
    for (uint32_t copy = 1; !error && copy < prelu->copies; copy++) {
        to.offset = 2 * copy * (uint64_t)in->bytes;
        error = viv_tp_copy(plan, op_index, 2 * in->bytes, *ref, to, 0);
    }
    return error;
}

int viv_lower_prelu(struct viv_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    const struct mica_tensor *out = mica_op_output(plan->graph, op, 0);
    struct viv_shape shape = viv_shape_of(out);
    struct prelu prelu;
    struct viv_nn nn = {.kernel_w = 1, .kernel_h = 1, .out_zero_point = viv_zero_point(out)};
    if (!choose(plan->chip, plan->graph, op, &prelu))
        return mica_fail(plan->log, -ENOTSUP, "the slopes of %s \"%s\" do not fit the NN cores", op->type, out->name);
    nn.post_multiplier = prelu.requant.multiplier;
    nn.post_shift = prelu.requant.shift;
    nn.in_w = nn.in_x_stride = nn.out_w = nn.out_x_stride = shape.w;
    nn.in_h = nn.in_y_stride = nn.out_h = nn.out_y_stride = shape.h;
    nn.in_c = 2 * prelu.copies * shape.c;
    nn.out_c = shape.c;
    int error = place(plan, op_index, &prelu, &nn.in);
    if (!error)
        error = viv_make_planar(plan, (uint32_t)op->outputs[0], &nn.out);
    if (!error)
        error = make_weights(plan, op, &prelu, &nn.weights);
    if (error)
        return error;
    viv_tile_choose(plan->chip, &nn, 64 + (uint64_t)nn.in_c * nn.out_c, 1.0 / shape.c);
    struct viv_job *job = viv_plan_job(plan, op_index, true);
    if (!job)
        return -ENOMEM;
    job->nn = nn;
    return 0;
}

static bool weights_fit(const struct viv_query *query, uint32_t channels, uint32_t copies)
{
    return 2 * copies * (uint64_t)channels * channels <= MOST_WEIGHTS ||
           viv_refuse(query, "%u channels take too many weights, two for each kernel and the rest zeros", channels);
}

bool viv_supports_prelu(const struct viv_query *query)
{
    const struct mica_tensor *in = mica_op_input(query->graph, query->op, 0);
    const struct mica_tensor *alpha = mica_op_input(query->graph, query->op, 1);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    if (!viv_check_quantized(query, in, "input") || !viv_check_quantized(query, out, "output") ||
        !viv_check_same_type(query, in, out) || !viv_check_layouts(query, in, "input"))
        return false;
    if (!alpha || alpha->problem || !alpha->data || !viv_is_byte(alpha) || alpha->quant.count != 1)
        return viv_refuse(query, "the slopes are not a constant with one scale and zero point");
    struct viv_shape shape = viv_shape_of(in);
    if (!viv_same_shape(in, out) ||
        (alpha->bytes != 1 && (alpha->bytes != shape.c || viv_shape_of(alpha).c != shape.c)))
        return viv_refuse(query, "slopes must be one value, or one for each channel");
    if (shape.w > VIV_MAX_IMAGE || shape.h > VIV_MAX_IMAGE)
        return viv_refuse(query, "images of more than %u columns or rows do not fit the NN descriptor", VIV_MAX_IMAGE);
    struct prelu prelu = {.copies = 1};
    if (!weights_fit(query, shape.c, prelu.copies))
        return false;
    if (!choose(query->chip, query->graph, query->op, &prelu))
        return viv_refuse(query,
                          "the slopes up to %g and the scales %g and %g have no weights of the NN cores that are near "
                          "enough",
                          127 * (double)alpha->quant.scale[0], (double)in->quant.scale[0], (double)out->quant.scale[0]);
    if (2 * prelu.copies * (uint64_t)in->bytes > VIV_MAX_COPIES)
        return viv_refuse(query, "%u copies of %zu values, for finer weights, are too large", prelu.copies, in->bytes);
    return weights_fit(query, shape.c, prelu.copies) &&
           (viv_add_columns(in->bytes) || viv_refuse(query, "%zu values are too many for one job", in->bytes));
}
