/* SPDX-License-Identifier: MIT */
/*
 * Means, sums, maxima and minima over any dimensions: a move puts these first, so that what belongs together lies in
 * rows of the same length. A 1x1 convolution with equal weights adds them, pooling finds the largest.
 */
#include <errno.h>

#include "npu/vivante/compile/box.h"
#include "npu/vivante/compile/coef.h"
#include "npu/vivante/compile/compose.h"
#include "npu/vivante/compile/elementwise.h"
#include "npu/vivante/compile/query.h"
#include "npu/vivante/compile/tile.h"
#include "util/checked.h"

#define MAX_JOBS 1024u /* of the move */
#define MAX_JOB_ROWS 65535u

/* `count` rows of `bytes`. */
struct reduction {
    uint64_t count, bytes;
};

static struct reduction reduction_of(const struct mica_graph *graph, const struct mica_op *op)
{
    const struct mica_tensor *in = mica_op_input(graph, op, 0);
    struct reduction reduction = {1, 1};
    for (uint32_t d = 0; d < in->rank; d++)
        *(op->axes >> d & 1 ? &reduction.count : &reduction.bytes) *= (uint32_t)in->dims[d];
    return reduction;
}

static bool is_sum(const struct mica_op *op)
{
    return op->kind == MICA_OP_MEAN || op->kind == MICA_OP_SUM;
}

/* Rows `pitch` bytes apart, from the tensor as it is outside. */
static struct viv_box gather(const struct mica_graph *graph, const struct mica_op *op, uint64_t pitch)
{
    const struct mica_tensor *in = mica_op_input(graph, op, 0);
    uint64_t in_strides[MICA_MAX_RANK], out_strides[MICA_MAX_RANK], stride = 1, row = 1;
    for (uint32_t d = in->rank; d-- > 0; stride *= (uint32_t)in->dims[d]) {
        bool reduced = op->axes >> d & 1;
        in_strides[d] = stride;
        out_strides[d] = reduced ? pitch : row;
        *(reduced ? &pitch : &row) *= (uint32_t)in->dims[d];
    }
    struct viv_box box = {0};
    for (unsigned reduced = 2; reduced-- > 0;)
        for (uint32_t d = 0; d < in->rank; d++)
            if ((op->axes >> d & 1) == reduced)
                viv_box_add(&box, (uint32_t)in->dims[d], in_strides[d], out_strides[d]);
    return box;
}

/* ---- sums ------------------------------------------------------------------------------ */

/* What the sum is multiplied with, as a weight of all and a multiplier. */
static bool arithmetic(const struct viv_chip *chip, const struct mica_graph *graph, const struct mica_op *op,
                       int32_t *weight, struct viv_requant *requant)
{
    struct reduction reduction = reduction_of(graph, op);
    double factor = (double)mica_op_input(graph, op, 0)->quant.scale[0] / mica_op_output(graph, op, 0)->quant.scale[0];
    factor /= op->kind == MICA_OP_MEAN ? (double)reduction.count : 1;
    return viv_unary_factor(chip, factor, weight, requant);
}

static struct viv_weights *make_weights(struct viv_plan *plan, uint64_t count, int32_t weight, uint8_t zero,
                                        uint32_t *index)
{
    struct viv_weights *weights = viv_plan_weights(plan, index);
    if (!weights)
        return NULL;
    weights->kernels = weights->phases = weights->taps = 1;
    weights->channels = (uint32_t)count;
    weights->kernel_stride = count;
    weights->channel_stride = weights->tap_stride = 1;
    weights->pointwise = true;
    weights->owned = mica_new_array(count, 1);
    weights->bias = mica_new_array(1, sizeof(*weights->bias));
    if (!weights->owned || !weights->bias) {
        mica_fail_nomem(plan->log);
        return NULL;
    }
    for (uint64_t i = 0; i < count; i++)
        weights->owned[i] = (uint8_t)weight;
    weights->bias[0] = (uint32_t)(count * (uint64_t)weight) * (plan->chip->bias_input_zero - zero);
    weights->source = weights->data = weights->owned;
    return weights;
}

/* Rows as planes of an image with any number of columns; what does not fill them is a job of its own. */
static int add_job(struct viv_plan *plan, uint32_t op, struct viv_nn nn, uint64_t start, uint32_t columns,
                   uint32_t rows)
{
    nn.in.offset += start;
    nn.out.offset += start;
    nn.in_w = nn.out_w = nn.out_x_stride = columns;
    nn.in_h = nn.out_h = nn.out_y_stride = rows;
    struct viv_weights_profile profile = viv_weights_profile(plan->weights[nn.weights]);
    viv_tile_choose(plan->chip, &nn, viv_coef_estimate(plan->chip, 1, nn.in_c, 1, &profile), 1);
    struct viv_job *job = viv_plan_job(plan, op, true);
    if (!job)
        return -ENOMEM;
    job->nn = nn;
    return 0;
}

static int lower_sum(struct viv_plan *plan, uint32_t op_index, struct viv_ref in, struct viv_ref out)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    struct reduction reduction = reduction_of(plan->graph, op);
    struct viv_elementwise one = {.inputs = 1};
    one.in_zero[0] = viv_zero_point(mica_op_input(plan->graph, op, 0));
    one.out_zero = viv_zero_point(mica_op_output(plan->graph, op, 0));
    arithmetic(plan->chip, plan->graph, op, &one.weight[0], &one.requant);
    if (reduction.count == 1)
        return viv_elementwise_jobs(plan, op_index, &one, in, out, reduction.bytes);
    struct viv_nn nn = {.in = in, .out = out, .kernel_w = 1, .kernel_h = 1, .out_c = 1};
    nn.in_c = (uint32_t)reduction.count;
    nn.in_zero_point = one.in_zero[0];
    nn.out_zero_point = one.out_zero;
    nn.post_multiplier = one.requant.multiplier;
    nn.post_shift = one.requant.shift;
    nn.in_x_stride = viv_add_columns(reduction.bytes);
    nn.in_y_stride = (uint32_t)(viv_elementwise_pitch(reduction.bytes) / nn.in_x_stride);
    if (!make_weights(plan, reduction.count, one.weight[0], nn.in_zero_point, &nn.weights))
        return -ENOMEM;
    uint32_t columns = nn.in_x_stride, rows = (uint32_t)(reduction.bytes / columns);
    uint32_t rest = (uint32_t)(reduction.bytes % columns);
    int error = 0;
    for (uint32_t row = 0; !error && row < rows; row += VIV_MAX_IMAGE)
        error = add_job(plan, op_index, nn, (uint64_t)row * columns, columns,
                        rows - row < VIV_MAX_IMAGE ? rows - row : VIV_MAX_IMAGE);
    if (!error && rest)
        error = add_job(plan, op_index, nn, (uint64_t)rows * columns, rest, 1);
    return error;
}

/* ---- extremes ---------------------------------------------------------------------------- */

/* 255 - x, exactly: the smallest becomes the largest. */
static int mirror(struct viv_plan *plan, uint32_t op, uint64_t bytes, struct viv_ref *ref)
{
    struct viv_elementwise mirror = {.inputs = 1, .weight = {-1}, .out_zero = 255};
    struct viv_ref in = *ref;
    viv_requant_factor(plan->chip, 1, &mirror.requant);
    int error = viv_plan_storage(plan, viv_maximum_room(bytes), ref);
    return error ? error : viv_elementwise_jobs(plan, op, &mirror, in, *ref, bytes);
}

static int lower_extreme(struct viv_plan *plan, uint32_t op_index, struct viv_ref ref, struct viv_ref out)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    struct reduction reduction = reduction_of(plan->graph, op);
    bool least = op->kind == MICA_OP_REDUCE_MIN;
    int error = least ? mirror(plan, op_index, reduction.count * reduction.bytes, &ref) : 0;
    if (!error)
        error = viv_lower_maximum_of(plan, op_index, reduction.count, reduction.bytes, &ref);
    if (!error && least)
        error = mirror(plan, op_index, reduction.bytes, &ref);
    return error ? error : viv_tp_copy(plan, op_index, reduction.bytes, ref, out, 0);
}

int viv_lower_reduce(struct viv_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    struct reduction reduction = reduction_of(plan->graph, op);
    bool sum = is_sum(op) && reduction.count > 1;
    uint64_t pitch = sum ? viv_elementwise_pitch(reduction.bytes) : reduction.bytes;
    struct viv_box box = gather(plan->graph, op, pitch);
    struct viv_ref in, rows, out;
    int error = viv_need_nhwc(plan, (uint32_t)op->inputs[0], op_index, &in);
    if (!error)
        error = viv_make_nhwc(plan, (uint32_t)op->outputs[0], &out);
    if (!error)
        error = viv_plan_storage(plan, viv_maximum_room(pitch * reduction.count), &rows);
    if (!error)
        error = viv_box_lower(plan, op_index, &box, in, rows, 0);
    if (error)
        return error;
    return is_sum(op) ? lower_sum(plan, op_index, rows, out) : lower_extreme(plan, op_index, rows, out);
}

/* ---- what is taken ------------------------------------------------------------------------ */

static bool check_sum(const struct viv_query *query, struct reduction reduction)
{
    const struct mica_tensor *in = mica_op_input(query->graph, query->op, 0);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    struct viv_requant requant;
    int32_t weight;
    if (query->op->kind == MICA_OP_SUM && in->type == MICA_TYPE_INT8)
        return viv_refuse(query, "TensorFlow Lite's sums of int8 differ from version to version: there is no right "
                                 "result");
    if (query->op->kind == MICA_OP_SUM && reduction.count > 1 && viv_same_quantization(in, out))
        return viv_refuse(query, "a sum in its input's own scale wraps around at eight bits, which the NN cores don't");
    if (reduction.count >= VIV_MAX_KERNEL_WEIGHTS) /* they are channels, counted by 20 bits */
        return viv_refuse(query, "%llu values are too many for one sum", (unsigned long long)reduction.count);
    if (!arithmetic(query->chip, query->graph, query->op, &weight, &requant))
        return viv_refuse(query, "the scales %g and %g give a factor outside the NN cores' range",
                          (double)in->quant.scale[0], (double)out->quant.scale[0]);
    return reduction.count * (uint64_t)weight * 255 <= INT32_MAX ||
           viv_refuse(query, "sums of %llu values times %d leave the NN cores' 32 bits",
                      (unsigned long long)reduction.count, weight);
}

bool viv_supports_reduce(const struct viv_query *query)
{
    const struct mica_tensor *in = mica_op_input(query->graph, query->op, 0);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    if (!viv_check_quantized(query, in, "input") || !viv_check_quantized(query, out, "output") ||
        !viv_check_same_type(query, in, out) || !viv_check_layouts(query, in, "input") ||
        !viv_check_layouts(query, out, "output"))
        return false;
    struct reduction reduction = reduction_of(query->graph, query->op);
    uint64_t columns = viv_add_columns(reduction.bytes);
    if (!columns || !viv_add_columns(in->bytes) ||
        reduction.count * viv_elementwise_pitch(reduction.bytes) > MICA_MAX_TENSOR_BYTES)
        return viv_refuse(query, "%zu values are too many for one job", in->bytes);
    struct viv_box box = gather(query->graph, query->op, viv_elementwise_pitch(reduction.bytes));
    if (viv_box_jobs(&box) > MAX_JOBS)
        return viv_refuse(query, "it would take more than %u TP jobs", MAX_JOBS);
    if (is_sum(query->op))
        return check_sum(query, reduction);
    return viv_same_quantization(in, out) || viv_refuse(query, "input and output are quantized differently");
}
