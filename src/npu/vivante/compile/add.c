/* SPDX-License-Identifier: MIT */
/*
 * Additions as convolutions (specification, section 7.5): the two tensors,
 * neighbours in memory, are the two channels of one image. Any bytes will do,
 * so they are folded to rows of 64; what is left over is a second, short job.
 * The kernel is the form that drivers use: 2x2 with one tap on V7, 1x1 on V8,
 * there with the image as a single channel.
 */
#include "npu/vivante/compile/lower.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "npu/vivante/compile/requant.h"
#include "npu/vivante/compile/tile.h"
#include "util/checked.h"

#define COLUMNS 64u      /* of a vector of lanes */
#define MAX_PITCH 65535u /* rows per plane, 16 bits */

uint32_t viv_add_columns(uint64_t bytes)
{
    uint32_t columns = COLUMNS;
    while (columns <= VIV_MAX_IMAGE && (bytes + columns - 1) / columns > MAX_PITCH)
        columns *= 2;
    return columns <= VIV_MAX_IMAGE ? columns : 0;
}

struct viv_add viv_add_weights(const struct mica_tensor *a, const struct mica_tensor *b, const struct mica_tensor *out)
{
    float s0 = a->quant.scale[0], s1 = b->quant.scale[0], ratio = s1 / s0;
    struct viv_add add = {.weight_scale = (ratio > 1.0f ? ratio : 1.0f) / 255.0f};
    const struct mica_tensor *inputs[] = {a, b};
    const float wanted[] = {1.0f / add.weight_scale, ratio / add.weight_scale};
    for (unsigned i = 0; i < 2; i++) {
        float rounded = roundf(wanted[i]);
        add.weight[i] = rounded >= 255.0f ? 255 : rounded > 0 ? (uint32_t)rounded : 0;
        uint32_t zero = viv_zero_point(inputs[i]), reach = zero > 127 ? zero : 255 - zero;
        double exact = (double)inputs[i]->quant.scale[0], got = (double)add.weight_scale * s0 * add.weight[i];
        add.error += fabs(got - exact) * reach / out->quant.scale[0];
    }
    return add;
}

static uint32_t kernel_size(const struct viv_chip *chip)
{
    return chip->z_offset_in_stream ? 2 : 1;
}

/* Two channels of a kernel of which only the first tap counts. */
static int make_weights(struct viv_plan *plan, const struct viv_add *add, const uint8_t *zero_points, uint32_t *index)
{
    struct viv_weights *weights = viv_plan_weights(plan, index);
    if (!weights)
        return -ENOMEM;
    uint32_t size = kernel_size(plan->chip);
    weights->kernels = weights->phases = 1;
    weights->channels = 2;
    weights->taps = size * size;
    weights->pointwise = size == 1;
    weights->owned = calloc(2, weights->taps);
    weights->bias = calloc(1, sizeof(*weights->bias));
    if (!weights->owned || !weights->bias)
        return mica_fail_nomem(plan->log);
    weights->owned[0] = (uint8_t)add->weight[0];
    weights->owned[weights->taps] = (uint8_t)add->weight[1];
    for (unsigned i = 0; i < 2; i++)
        weights->bias[0] += add->weight[i] * (plan->chip->bias_input_zero - zero_points[i]);
    weights->data = weights->owned;
    return 0;
}

/* `rows` rows of `columns` bytes each, from byte `start`. */
static int add_job(struct viv_plan *plan, uint32_t op, struct viv_nn nn, uint64_t start, uint32_t columns,
                   uint32_t rows)
{
    nn.in.offset += start;
    nn.out.offset += start;
    nn.in_w = nn.out_w = nn.out_x_stride = columns; /* nothing behind these bytes is the job's to write */
    nn.in_h = nn.out_h = nn.out_y_stride = rows;
    viv_tile_choose(plan->chip, &nn, 64, 1.0 / (nn.kernel_w * nn.kernel_h));
    struct viv_job *job = viv_plan_job(plan, op, true);
    if (!job)
        return -ENOMEM;
    job->nn = nn;
    return 0;
}

static int add_jobs(struct viv_plan *plan, uint32_t op, const struct viv_nn *nn, uint64_t bytes)
{
    uint32_t columns = nn->in_x_stride, rows = (uint32_t)(bytes / columns), rest = (uint32_t)(bytes % columns);
    int error = 0;
    for (uint32_t row = 0; !error && row < rows; row += VIV_MAX_IMAGE)
        error = add_job(plan, op, *nn, (uint64_t)row * columns, columns,
                        rows - row < VIV_MAX_IMAGE ? rows - row : VIV_MAX_IMAGE);
    if (!error && rest)
        error = add_job(plan, op, *nn, bytes - rest, rest, 1);
    return error;
}

/* Both inputs in one layout, one behind the other; *out gets the output in the same. */
static int place_operands(struct viv_plan *plan, uint32_t op_index, uint64_t pitch, struct viv_ref *pair,
                          struct viv_ref *out)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    uint32_t a = (uint32_t)op->inputs[0], b = (uint32_t)op->inputs[1];
    const struct mica_tensor *t = &plan->graph->tensors[a];
    struct viv_shape shape = viv_shape_of(t);
    bool free_nhwc = viv_has_nhwc(plan, a) && viv_has_nhwc(plan, b);
    bool free_planar = viv_has_planar(plan, a) && viv_has_planar(plan, b);
    bool planar = viv_shape_transposable(shape) && (free_planar || !free_nhwc);
    struct viv_ref in[2];
    int error = planar ? viv_need_planar(plan, a, op_index, &in[0]) : viv_need_nhwc(plan, a, op_index, &in[0]);
    if (!error)
        error = planar ? viv_need_planar(plan, b, op_index, &in[1]) : viv_need_nhwc(plan, b, op_index, &in[1]);
    if (!error)
        error = viv_plan_storage(plan, pitch + t->bytes, pair);
    for (unsigned i = 0; !error && i < 2; i++)
        error = viv_place(plan, in[i], t->bytes, *pair, i * pitch,
                          viv_tensor_zero(&plan->graph->tensors[op->inputs[i]]), op_index);
    if (!error)
        error = planar ? viv_make_planar(plan, (uint32_t)op->outputs[0], out)
                       : viv_make_nhwc(plan, (uint32_t)op->outputs[0], out);
    return error;
}

int viv_lower_add(struct viv_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    const struct mica_tensor *a = mica_op_input(plan->graph, op, 0), *b = mica_op_input(plan->graph, op, 1);
    const struct mica_tensor *out = mica_op_output(plan->graph, op, 0);
    struct viv_add add = viv_add_weights(a, b, out);
    struct viv_requant requant;
    struct viv_nn nn = {.in_c = 2, .out_c = 1};
    nn.kernel_w = nn.kernel_h = kernel_size(plan->chip);
    if (!viv_requant_make(plan->chip, a->quant.scale[0], add.weight_scale, out->quant.scale[0], &requant) ||
        !viv_activation_free(op->activation, out, &nn.relu))
        return mica_fail(plan->log, -ENOTSUP, "the scales of addition \"%s\" do not fit the NN cores", out->name);
    nn.post_multiplier = requant.multiplier;
    nn.post_shift = requant.shift;
    uint8_t zero_points[] = {viv_zero_point(a), viv_zero_point(b)};
    nn.in_zero_point = zero_points[0];
    nn.out_zero_point = viv_zero_point(out);
    nn.in_x_stride = nn.out_x_stride = viv_add_columns(out->bytes);
    nn.in_y_stride = (uint32_t)((out->bytes + nn.in_x_stride - 1) / nn.in_x_stride);
    int error = place_operands(plan, op_index, (uint64_t)nn.in_x_stride * nn.in_y_stride, &nn.in, &nn.out);
    if (!error)
        error = make_weights(plan, &add, zero_points, &nn.weights);
    return error ? error : add_jobs(plan, op_index, &nn, out->bytes);
}
