/* SPDX-License-Identifier: MIT */
/* The jobs for weights with a scale for each channel. */
#include "npu/vivante/compile/channels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "npu/vivante/compile/coef.h"
#include "npu/vivante/compile/conv.h"
#include "npu/vivante/compile/tile.h"
#include "util/checked.h"

#define EXTRA_JOB_US 10.0 /* beyond the model, as for depthwise groups */

struct lowering {
    struct viv_plan *plan;
    uint32_t op;
    struct viv_channels channels;
    struct viv_weights *weights;
    struct viv_weights_profile profile;
    uint32_t block; /* channels that a job looks at: all, or with a diagonal as many as are cheap */
};

/* ---- who is in which job --------------------------------------------------------- */

/* Channels by block, in it by group, in it in order. */
static void sort_kernels(const struct lowering *lowering, uint32_t *order)
{
    const struct viv_channels *channels = &lowering->channels;
    for (uint32_t first = 0; first < channels->kernels; first += lowering->block)
        for (uint32_t group = 0; group < channels->group_count; group++)
            for (uint32_t k = first; k < channels->kernels && k < first + lowering->block; k++)
                if (channels->group[k] == group)
                    *order++ = k;
}

/* Kernels from position `first` on that make one job. */
static uint32_t run_length(const struct lowering *lowering, uint32_t first)
{
    const struct viv_channels *channels = &lowering->channels;
    const uint32_t *order = lowering->weights->order;
    uint32_t count = 1, group = channels->group[order[first]], block = order[first] / lowering->block;
    while (first + count < channels->kernels && channels->group[order[first + count]] == group &&
           order[first + count] / lowering->block == block)
        count++;
    return count;
}

static uint32_t count_jobs(const struct lowering *lowering)
{
    uint32_t jobs = 0;
    sort_kernels(lowering, lowering->weights->order);
    for (uint32_t first = 0; first < lowering->channels.kernels; first += run_length(lowering, first))
        jobs++;
    return jobs;
}

static void choose_tile(const struct lowering *lowering, struct viv_nn *nn, uint32_t kernels)
{
    const struct viv_weights *weights = lowering->weights;
    struct viv_weights_profile profile = lowering->profile;
    uint32_t seen = weights->diagonal ? lowering->block / viv_weights_multiplier(weights) : weights->channels;
    if (weights->diagonal) {
        profile.share /= lowering->block;
        profile.density /= lowering->block;
    }
    nn->in_c = seen * weights->phases;
    nn->out_c = kernels;
    viv_tile_choose(lowering->plan->chip, nn,
                    viv_coef_estimate(lowering->plan->chip, kernels, nn->in_c, weights->taps, &profile),
                    profile.density);
}

/* The cheapest of some sizes, by a job of average size. */
static void choose_block(struct lowering *lowering, const struct viv_nn *nn)
{
    static const uint32_t sizes[] = {0, 512, 256, 128, 64, 32, 16};
    const struct viv_weights *weights = lowering->weights;
    uint32_t best = 0;
    double best_cycles = 0;
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        uint32_t size = i ? sizes[i] : weights->kernels;
        if ((uint64_t)size * weights->phases * weights->taps > VIV_MAX_KERNEL_WEIGHTS ||
            (i && size >= weights->kernels))
            continue;
        struct viv_nn trial = *nn;
        lowering->block = size;
        uint32_t jobs = count_jobs(lowering);
        choose_tile(lowering, &trial, mica_cdiv(weights->kernels, jobs));
        double cycles = jobs * ((double)trial.tile.cycles + EXTRA_JOB_US * lowering->plan->chip->clock_mhz);
        if (!best || cycles < best_cycles) {
            best = size;
            best_cycles = cycles;
        }
    }
    lowering->block = best ? best : 16;
}

/* ---- the first stage -------------------------------------------------------------- */

static int add_job(const struct lowering *lowering, struct viv_nn nn, uint32_t first, uint32_t count)
{
    const struct viv_weights *weights = lowering->weights;
    const struct viv_chip *chip = lowering->plan->chip;
    uint32_t base = weights->order[first] / lowering->block * lowering->block;
    uint64_t in_pitch = (uint64_t)nn.in_x_stride * nn.in_y_stride * weights->phases;
    uint64_t out_pitch = (uint64_t)nn.out_x_stride * nn.out_y_stride;
    const struct viv_requant *requant = &lowering->channels.requants[lowering->channels.group[weights->order[first]]];
    nn.post_multiplier = requant->multiplier;
    nn.post_shift = requant->shift;
    nn.first_kernel = first;
    nn.first_place = base;
    nn.in.offset += weights->diagonal ? base * in_pitch : 0;
    nn.out.offset += (chip->z_offset_in_stream ? base : first) * out_pitch;
    choose_tile(lowering, &nn, count);
    if (weights->diagonal && weights->kernels - base < lowering->block) /* the last block; without a multiplier */
        nn.in_c = (weights->kernels - base) * weights->phases;
    uint64_t macs = mica_op_macs(lowering->plan->graph, &lowering->plan->graph->ops[lowering->op]);
    struct viv_job *job = viv_plan_job(lowering->plan, lowering->op, true);
    if (!job)
        return -ENOMEM;
    job->nn = nn;
    job->macs = macs / weights->kernels * count;
    return 0;
}

static int add_jobs(struct lowering *lowering, const struct viv_nn *nn)
{
    int error = 0;
    for (uint32_t first = 0, count; !error && first < lowering->channels.kernels; first += count) {
        count = run_length(lowering, first);
        error = add_job(lowering, *nn, first, count);
    }
    return error;
}

/* ---- the second stage ------------------------------------------------------------- */

/* A job on the first stage's results, without weights: planes as they are in memory, each pixel by itself. */
static struct viv_nn second_job(const struct lowering *lowering, const struct viv_nn *first, struct viv_ref in)
{
    struct viv_nn nn = {.in = in, .out = first->out, .relu = first->relu};
    nn.in_w = nn.in_x_stride = nn.out_w = nn.out_x_stride = first->out_x_stride;
    nn.in_h = nn.in_y_stride = nn.out_h = nn.out_y_stride = first->out_y_stride;
    nn.in_zero_point = nn.out_zero_point = first->out_zero_point;
    nn.post_multiplier = lowering->channels.correction.multiplier;
    nn.post_shift = lowering->channels.correction.shift;
    return nn;
}

static struct viv_weights *second_weights(const struct lowering *lowering, uint32_t channels, uint32_t taps,
                                          uint8_t zero_point, uint32_t *index)
{
    struct viv_weights *weights = viv_plan_weights(lowering->plan, index);
    if (!weights)
        return NULL;
    weights->kernels = lowering->channels.kernels;
    weights->channels = channels;
    weights->phases = 1;
    weights->taps = taps;
    weights->kernel_stride = (size_t)channels * taps;
    weights->channel_stride = taps;
    weights->tap_stride = 1;
    for (uint32_t i = 0; i < taps; i++)
        weights->map[0][i] = (int16_t)i;
    weights->owned = mica_new_array(weights->kernels, weights->kernel_stride);
    weights->bias = mica_new_array(weights->kernels, sizeof(*weights->bias));
    if (!weights->owned || !weights->bias) {
        mica_fail_nomem(lowering->plan->log);
        return NULL;
    }
    weights->source = weights->data = weights->owned;
    for (uint32_t k = 0; k < weights->kernels; k++)
        weights->bias[k] = lowering->channels.factor[k] * (lowering->plan->chip->bias_input_zero - zero_point);
    return weights;
}

/* Planes are in channel order: a depthwise job, whose kernels are of the smallest size that is none of a 1x1 job. */
static int correct_in_order(const struct lowering *lowering, struct viv_nn nn)
{
    struct viv_weights *weights = second_weights(lowering, 1, 4, nn.in_zero_point, &nn.weights);
    if (!weights)
        return -ENOMEM;
    nn.kernel_w = nn.kernel_h = 2;
    weights->diagonal = true;
    for (uint32_t k = 0; k < weights->kernels; k++)
        weights->owned[4 * k] = lowering->channels.factor[k];
    return viv_depthwise_groups(lowering->plan, lowering->op, weights, nn, 0);
}

/* Planes are in the order of the jobs: a 1x1 job that sorts them. */
static int correct_and_sort(const struct lowering *lowering, struct viv_nn nn)
{
    uint32_t kernels = lowering->channels.kernels;
    struct viv_weights *weights = second_weights(lowering, kernels, 1, nn.in_zero_point, &nn.weights);
    if (!weights)
        return -ENOMEM;
    nn.kernel_w = nn.kernel_h = 1;
    nn.in_c = nn.out_c = kernels;
    weights->pointwise = true;
    for (uint32_t i = 0; i < kernels; i++) {
        uint32_t k = lowering->weights->order[i];
        weights->owned[(size_t)k * kernels + i] = lowering->channels.factor[k];
    }
    struct viv_weights_profile profile = viv_weights_profile(weights);
    viv_tile_choose(lowering->plan->chip, &nn, viv_coef_estimate(lowering->plan->chip, kernels, kernels, 1, &profile),
                    1.0 / kernels);
    struct viv_job *job = viv_plan_job(lowering->plan, lowering->op, true);
    if (!job)
        return -ENOMEM;
    job->nn = nn;
    return 0;
}

/* ---- both ------------------------------------------------------------------------- */

static int lower(struct lowering *lowering, const struct viv_nn *nn)
{
    struct viv_nn first = *nn;
    struct viv_plan *plan = lowering->plan;
    uint64_t bytes = (uint64_t)nn->out_x_stride * nn->out_y_stride * lowering->channels.kernels;
    if (!lowering->channels.corrected)
        return add_jobs(lowering, nn);
    int error = viv_plan_storage(plan, bytes, &first.out);
    if (!error)
        error = add_jobs(lowering, &first);
    if (error)
        return error;
    struct viv_nn second = second_job(lowering, nn, first.out);
    return plan->chip->z_offset_in_stream ? correct_in_order(lowering, second) : correct_and_sort(lowering, second);
}

static int begin(struct lowering *lowering, uint32_t data, const struct viv_nn *nn)
{
    struct viv_plan *plan = lowering->plan;
    const struct mica_op *op = &plan->graph->ops[lowering->op];
    const struct mica_tensor *in = mica_op_input(plan->graph, op, data), *filter = mica_op_input(plan->graph, op, 1);
    const struct mica_tensor *out = mica_op_output(plan->graph, op, 0);
    const struct mica_tensor *bias = mica_op_input(plan->graph, op, data == 0 ? 2 : 3);
    char reason[192];
    struct viv_reach reach = {nn->out_zero_point, nn->relu};
    int error =
        viv_channels_choose(plan->chip, in, filter, bias, out, &reach, &lowering->channels, reason, sizeof(reason));
    if (error)
        return mica_fail(plan->log, error, "%s \"%s\": %s", op->type, out->name, reason);
    lowering->weights->idle = lowering->channels.idle;
    lowering->channels.idle = NULL;
    lowering->weights->order = mica_new_array(lowering->weights->kernels, sizeof(*lowering->weights->order));
    if (!lowering->weights->order)
        return mica_fail_nomem(plan->log);
    lowering->profile = viv_weights_profile(lowering->weights);
    lowering->block = lowering->weights->kernels;
    if (lowering->weights->diagonal)
        choose_block(lowering, nn);
    sort_kernels(lowering, lowering->weights->order);
    mica_log(plan->log, MICA_LOG_INFO,
             "%s \"%s\": weights per channel in %u groups of about equal scale%s; at most %.3f from TFLite's result "
             "before rounding, so at most 1 after",
             op->type, out->name, lowering->channels.group_count,
             lowering->channels.corrected ? " and a second stage with a factor a channel" : "",
             lowering->channels.bound);
    return 0;
}

int viv_channels_lower(struct viv_plan *plan, uint32_t op, uint32_t data, struct viv_weights *weights,
                       const struct viv_nn *nn)
{
    struct lowering lowering = {.plan = plan, .op = op, .weights = weights};
    int error = begin(&lowering, data, nn);
    if (!error)
        error = lower(&lowering, nn);
    viv_channels_finish(&lowering.channels);
    return error;
}
