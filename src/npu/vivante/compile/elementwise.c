/* SPDX-License-Identifier: MIT */
/*
 * The tensors, neighbours in memory, are the channels of one image, folded to
 * rows of 64; what is left over is a second, short job. The kernel is the form
 * that drivers use for additions: 2x2 with one tap on V7, 1x1 on V8, which
 * needs two channels (specification, sections 7.4 and 7.5).
 */
#include "npu/vivante/compile/elementwise.h"

#include <errno.h>
#include <stdlib.h>

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

static uint32_t pitch_rows(uint64_t bytes)
{
    uint32_t columns = viv_add_columns(bytes);
    return (uint32_t)((bytes + columns - 1) / columns);
}

uint64_t viv_elementwise_pitch(uint64_t bytes)
{
    return (uint64_t)viv_add_columns(bytes) * pitch_rows(bytes);
}

static uint32_t kernel_size(const struct viv_chip *chip, uint32_t inputs)
{
    return chip->z_offset_in_stream || inputs == 1 ? 2 : 1;
}

/* A zero point only where weights are negative, so that positive ones have eight bits. */
static uint8_t weight_zero(const struct viv_elementwise *elementwise)
{
    bool negative = elementwise->weight[0] < 0 || (elementwise->inputs == 2 && elementwise->weight[1] < 0);
    return negative ? 128 : 0;
}

/* Channels of a kernel of which only the first tap counts. */
static int make_weights(struct viv_plan *plan, const struct viv_elementwise *elementwise, uint32_t *index)
{
    struct viv_weights *weights = viv_plan_weights(plan, index);
    if (!weights)
        return -ENOMEM;
    uint32_t size = kernel_size(plan->chip, elementwise->inputs);
    weights->kernels = weights->phases = 1;
    weights->channels = elementwise->inputs;
    weights->taps = size * size;
    weights->pointwise = size == 1;
    weights->zero_point = weight_zero(elementwise);
    weights->owned = malloc((size_t)weights->channels * weights->taps);
    weights->bias = calloc(1, sizeof(*weights->bias));
    if (!weights->owned || !weights->bias)
        return mica_fail_nomem(plan->log);
    for (uint32_t i = 0; i < weights->channels * weights->taps; i++)
        weights->owned[i] = weights->zero_point;
    for (uint32_t i = 0; i < weights->channels; i++) {
        int32_t weight = elementwise->weight[i];
        weights->owned[i * weights->taps] = (uint8_t)(weight + weights->zero_point);
        weights->bias[0] += (uint32_t)(weight * ((int32_t)plan->chip->bias_input_zero - elementwise->in_zero[i]));
    }
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

int viv_elementwise_jobs(struct viv_plan *plan, uint32_t op, const struct viv_elementwise *elementwise,
                         struct viv_ref in, struct viv_ref out, uint64_t bytes)
{
    struct viv_nn nn = {.in = in, .out = out, .in_c = elementwise->inputs, .out_c = 1, .relu = elementwise->relu};
    nn.kernel_w = nn.kernel_h = kernel_size(plan->chip, elementwise->inputs);
    nn.post_multiplier = elementwise->requant.multiplier;
    nn.post_shift = elementwise->requant.shift;
    nn.in_zero_point = elementwise->in_zero[0];
    nn.out_zero_point = elementwise->out_zero;
    nn.in_x_stride = nn.out_x_stride = viv_add_columns(bytes);
    nn.in_y_stride = pitch_rows(bytes);
    int error = make_weights(plan, elementwise, &nn.weights);
    return error ? error : add_jobs(plan, op, &nn, bytes);
}
