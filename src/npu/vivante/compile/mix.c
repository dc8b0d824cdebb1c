/* SPDX-License-Identifier: MIT */
#include "npu/vivante/compile/mix.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "npu/vivante/compile/tile.h"
#include "util/checked.h"

/* A 1x1 kernel needs two channels (specification, section 7.4). */
static uint32_t kernel_size(uint32_t inputs)
{
    return inputs == 1 ? 2 : 1;
}

/* Weights are stored above their zero point: the least that makes all of them positive. */
static uint8_t weight_zero(const struct viv_mix *mix)
{
    int least = 0;
    for (uint32_t k = 0; k < mix->outputs; k++)
        for (uint32_t i = 0; i < mix->inputs; i++)
            least = mix->weight[k][i] < least ? mix->weight[k][i] : least;
    return (uint8_t)-least;
}

/* Input planes of one group as planes of all groups; without blocks there is one group. */
struct grid {
    const struct viv_mix_block *blocks; /* NULL: none */
    uint32_t groups;
};

static uint32_t plane_of(const struct grid *grid, uint32_t group, uint32_t input)
{
    uint32_t first = 0;
    for (uint32_t i = 0; grid->blocks && i < VIV_MIX_BLOCKS; i++) {
        const struct viv_mix_block *block = &grid->blocks[i];
        if (input < block->count)
            return first + input + (block->shared ? 0 : group * block->count);
        input -= block->count;
        first += block->count * (block->shared ? 1 : grid->groups);
    }
    return first + input;
}

static void fill_kernel(const struct viv_plan *plan, const struct viv_mix *mix, const struct grid *grid,
                        struct viv_weights *weights, uint32_t kernel)
{
    uint32_t k = kernel % mix->outputs;
    uint8_t *data = weights->owned + (size_t)kernel * weights->channels * weights->taps;
    weights->bias[kernel] = (uint32_t)mix->bias[k];
    for (uint32_t i = 0; i < mix->inputs; i++) {
        int32_t weight = mix->weight[k][i];
        data[plane_of(grid, kernel / mix->outputs, i) * weights->taps] = (uint8_t)(weight + weights->zero_point);
        weights->bias[kernel] += (uint32_t)(weight * (int32_t)plan->chip->bias_input_zero);
    }
}

static int make_weights(struct viv_plan *plan, const struct viv_mix *mix, const struct grid *grid, uint32_t *index)
{
    struct viv_weights *weights = viv_plan_weights(plan, index);
    if (!weights)
        return -ENOMEM;
    uint32_t size = kernel_size(mix->inputs), last = mix->inputs - 1;
    weights->kernels = mix->outputs * grid->groups;
    weights->channels = plane_of(grid, grid->groups - 1, last) + 1;
    weights->phases = 1;
    weights->taps = size * size;
    weights->pointwise = size == 1;
    weights->zero_point = weight_zero(mix);
    size_t count = (size_t)weights->kernels * weights->channels * weights->taps;
    weights->owned = malloc(count);
    weights->bias = mica_new_array(weights->kernels, sizeof(*weights->bias));
    if (!weights->owned || !weights->bias)
        return mica_fail_nomem(plan->log);
    memset(weights->owned, weights->zero_point, count);
    for (uint32_t kernel = 0; kernel < weights->kernels; kernel++)
        fill_kernel(plan, mix, grid, weights, kernel);
    weights->data = weights->owned;
    return 0;
}

/* `rows` rows of `columns` bytes of each plane, from byte `start`. */
static int add_job(struct viv_plan *plan, uint32_t op, struct viv_nn nn, uint64_t start, uint32_t columns,
                   uint32_t rows)
{
    nn.in.offset += start;
    nn.out.offset += start;
    nn.in_w = nn.out_w = columns;
    nn.in_h = nn.out_h = rows;
    if (nn.out_c == 1) { /* nothing behind these bytes is the job's to write */
        nn.out_x_stride = columns;
        nn.out_y_stride = rows;
    }
    viv_tile_choose(plan->chip, &nn, 64 + nn.in_c * nn.out_c, 1.0 / (nn.kernel_w * nn.kernel_h));
    struct viv_job *job = viv_plan_job(plan, op, true);
    if (!job)
        return -ENOMEM;
    job->nn = nn;
    return 0;
}

static struct viv_nn new_job(const struct viv_mix *mix, struct viv_ref in, struct viv_ref out)
{
    struct viv_nn nn = {.in = in, .out = out, .in_c = mix->inputs, .out_c = mix->outputs, .relu = mix->relu};
    nn.kernel_w = nn.kernel_h = kernel_size(mix->inputs);
    nn.post_multiplier = mix->requant.multiplier;
    nn.post_shift = mix->requant.shift;
    nn.out_zero_point = mix->out_zero;
    return nn;
}

int viv_mix_jobs(struct viv_plan *plan, uint32_t op, const struct viv_mix *mix, struct viv_ref in, struct viv_ref out,
                 uint64_t bytes, bool exact)
{
    uint64_t pitch = viv_elementwise_pitch(bytes);
    uint32_t columns = viv_add_columns(bytes), pitch_rows = (uint32_t)(pitch / columns);
    uint32_t rows = exact ? (uint32_t)(bytes / columns) : pitch_rows, rest = exact ? (uint32_t)(bytes % columns) : 0;
    const struct grid one = {NULL, 1};
    struct viv_nn nn = new_job(mix, in, out);
    nn.in_x_stride = nn.out_x_stride = columns;
    nn.in_y_stride = nn.out_y_stride = pitch_rows;
    int error = make_weights(plan, mix, &one, &nn.weights);
    for (uint32_t row = 0; !error && row < rows; row += VIV_MAX_IMAGE)
        error = add_job(plan, op, nn, (uint64_t)row * columns, columns,
                        rows - row < VIV_MAX_IMAGE ? rows - row : VIV_MAX_IMAGE);
    if (!error && rest)
        error = add_job(plan, op, nn, bytes - rest, rest, 1);
    return error;
}

/* Columns of a rectangle of so many bytes, the longest; 0: there is none. */
static uint32_t rectangle(uint64_t bytes)
{
    for (uint32_t columns = bytes < VIV_MAX_IMAGE ? (uint32_t)bytes : VIV_MAX_IMAGE; columns; columns--)
        if (bytes % columns == 0)
            return bytes / columns <= VIV_MAX_IMAGE ? columns : 0;
    return 0;
}

bool viv_mix_foldable(uint64_t bytes)
{
    return rectangle(bytes) != 0;
}

int viv_mix_groups(struct viv_plan *plan, uint32_t op, const struct viv_mix *mix,
                   const struct viv_mix_block blocks[VIV_MIX_BLOCKS], uint32_t groups, struct viv_ref in,
                   struct viv_ref out, uint64_t bytes)
{
    const struct grid grid = {blocks, groups};
    struct viv_nn nn = new_job(mix, in, out);
    int error = make_weights(plan, mix, &grid, &nn.weights);
    if (error)
        return error;
    nn.in_c = plan->weights[nn.weights]->channels;
    nn.out_c = plan->weights[nn.weights]->kernels;
    nn.in_w = nn.out_w = nn.in_x_stride = nn.out_x_stride = rectangle(bytes);
    nn.in_h = nn.out_h = nn.in_y_stride = nn.out_y_stride = (uint32_t)(bytes / nn.in_w);
    viv_tile_choose(plan->chip, &nn, 64 + (uint64_t)nn.in_c * nn.out_c, (double)mix->inputs / nn.in_c);
    struct viv_job *job = viv_plan_job(plan, op, true);
    if (!job)
        return -ENOMEM;
    job->nn = nn;
    return 0;
}
