/* SPDX-License-Identifier: MIT */
/* The jobs for weights with a scale for each channel: the first stage, and what it is chosen by. */
#include "npu/vivante/compile/channels.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "npu/vivante/compile/coef.h"
#include "npu/vivante/compile/lower.h"
#include "npu/vivante/compile/tile.h"
#include "util/checked.h"

struct lowering {
    struct viv_plan *plan;
    uint32_t op;
    struct viv_channel_layer layer;
    struct viv_channels channels;
    struct viv_weights *weights;
    struct viv_weights_profile profile;
    uint32_t block;   /* channels that a job looks at: all, or with a diagonal as many as are cheap */
    uint32_t *places; /* of each plane in the second stage's input */
};

/* ---- what it costs --------------------------------------------------------------- */

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

static double job_cycles(const struct lowering *lowering, const struct viv_nn *nn, uint32_t kernels)
{
    struct viv_nn trial = *nn;
    choose_tile(lowering, &trial, kernels);
    return (double)trial.tile.cycles;
}

/* A straight line through two sizes of a job. */
static struct viv_channel_costs find_costs(const struct lowering *lowering, const struct viv_nn *nn)
{
    const struct viv_chip *chip = lowering->plan->chip;
    uint32_t count = lowering->weights->kernels;
    uint32_t many = lowering->block < count ? lowering->block : count, few = mica_cdiv(many, 4);
    double most = job_cycles(lowering, nn, many), least = job_cycles(lowering, nn, few);
    struct viv_channel_costs costs = {.blocks = mica_cdiv(count, lowering->block)};
    costs.kernel = many > few ? fmax(0, (most - least) / (many - few)) : 0;
    costs.job = fmax(0, most - costs.kernel * many) + VIV_EXTRA_JOB_US * chip->clock_mhz;
    return costs;
}

static void add_second_costs(const struct lowering *lowering, const struct viv_nn *nn, struct viv_channel_costs *costs)
{
    struct viv_second_form form;
    uint32_t count = lowering->weights->kernels;
    viv_channels_second_form(lowering->plan->chip, nn, count, count, &form);
    costs->second_job = fmin(form.cycles, VIV_EXTRA_JOB_US * lowering->plan->chip->clock_mhz);
    costs->second_kernel = (form.cycles - costs->second_job) / count;
}

/* Chooses groups, and with a diagonal how many channels a job looks at. */
static int choose(struct lowering *lowering, const struct viv_nn *nn)
{
    static const uint32_t sizes[] = {256, 128, 64, 32};
    const struct viv_weights *weights = lowering->weights;
    uint32_t blocks[8], count = 0, all = weights->kernels, kernel = weights->phases * weights->taps;
    bool whole = !weights->diagonal || viv_weights_multiplier(weights) > 1; /* then supports.c has looked at the size */
    struct viv_channel_costs costs[8];
    if (whole || (uint64_t)all * kernel <= VIV_MAX_KERNEL_WEIGHTS)
        blocks[count++] = all;
    for (unsigned i = 0; !whole && i < sizeof(sizes) / sizeof(*sizes); i++)
        if (sizes[i] < all && sizes[i] * kernel <= VIV_MAX_KERNEL_WEIGHTS)
            blocks[count++] = sizes[i];
    if (!count) /* few enough, for kernels that are that large */
        blocks[count++] = VIV_MAX_KERNEL_WEIGHTS / kernel;
    for (uint32_t i = 0; i < count; i++) {
        lowering->block = blocks[i];
        costs[i] = find_costs(lowering, nn);
        add_second_costs(lowering, nn, &costs[i]);
    }
    int error = viv_channels_choose(&lowering->layer, costs, count, &lowering->channels);
    lowering->block = blocks[lowering->channels.costs];
    return error;
}

/* ---- kernels in the order of jobs --------------------------------------------------- */

static int allocate(struct lowering *lowering)
{
    uint32_t planes = lowering->channels.plane_count;
    struct viv_weights *weights = lowering->weights;
    weights->kernels = planes;
    weights->order = mica_new_array(planes, sizeof(*weights->order));
    weights->place = mica_new_array(planes, sizeof(*weights->place));
    weights->changes = mica_new_array(planes, sizeof(*weights->changes));
    lowering->places = mica_new_array(planes, sizeof(*lowering->places));
    bool all = weights->order && weights->place && weights->changes && lowering->places;
    return all ? 0 : mica_fail_nomem(lowering->plan->log);
}

/* Where planes go: to the channel's own place, or to the second stage's input, in the order of channels. */
static void place_planes(struct lowering *lowering)
{
    const struct viv_channels *channels = &lowering->channels;
    uint32_t next = 0;
    for (uint32_t k = 0; k < channels->count; k++) {
        const struct viv_channel *channel = &channels->channels[k];
        bool corrected = viv_channel_corrected(channels, channel);
        for (uint32_t i = channel->first; i < channel->first + channel->planes; i++)
            lowering->places[i] = corrected ? next++ : k;
    }
}

static void add_kernels(struct lowering *lowering, uint32_t index, uint32_t *at)
{
    struct viv_weights *weights = lowering->weights;
    const struct viv_channel *channel = &lowering->channels.channels[index];
    for (uint32_t i = channel->first; i < channel->first + channel->planes; i++, ++*at) {
        weights->order[*at] = index;
        weights->changes[*at] = lowering->channels.planes[i].change;
        if (!lowering->plan->chip->z_offset_in_stream)
            lowering->places[i] = *at;
        weights->place[*at] = lowering->places[i];
    }
}

/* Channels by block, in it by group, in it in order. */
static void sort_kernels(struct lowering *lowering)
{
    const struct viv_channels *channels = &lowering->channels;
    uint32_t at = 0;
    for (uint32_t first = 0; first < channels->count; first += lowering->block)
        for (uint32_t group = 0; group < channels->group_count; group++)
            for (uint32_t k = first; k < channels->count && k < first + lowering->block; k++)
                if (channels->channels[k].group == group)
                    add_kernels(lowering, k, &at);
}

/* Kernels from position `first` on that make one job. */
static uint32_t run_length(const struct lowering *lowering, uint32_t first)
{
    const struct viv_channel *channels = lowering->channels.channels;
    const uint32_t *order = lowering->weights->order;
    uint32_t count = 1, group = channels[order[first]].group, block = order[first] / lowering->block;
    while (first + count < lowering->weights->kernels && channels[order[first + count]].group == group &&
           order[first + count] / lowering->block == block)
        count++;
    return count;
}

/* ---- jobs ------------------------------------------------------------------------- */

/* `nn` writes to the result, or to the second stage's input; so does `planes`. */
static int add_job(const struct lowering *lowering, const struct viv_nn *result, const struct viv_nn *planes,
                   uint32_t first, uint32_t count)
{
    const struct viv_weights *weights = lowering->weights;
    const struct viv_channel *channel = &lowering->channels.channels[weights->order[first]];
    struct viv_nn nn = viv_channel_corrected(&lowering->channels, channel) ? *planes : *result;
    uint32_t base = weights->order[first] / lowering->block * lowering->block, all = lowering->channels.count;
    const struct viv_requant *requant = &lowering->channels.groups[channel->group].requant;
    nn.post_multiplier = requant->multiplier;
    nn.post_shift = requant->shift;
    nn.first_kernel = first;
    nn.first_place = base;
    nn.in.offset += weights->diagonal ? (uint64_t)base * nn.in_x_stride * nn.in_y_stride * weights->phases : 0;
    if (!lowering->plan->chip->z_offset_in_stream)
        nn.out.offset += (uint64_t)first * nn.out_x_stride * nn.out_y_stride;
    choose_tile(lowering, &nn, count);
    if (weights->diagonal && all - base < lowering->block) /* the last block; without a multiplier */
        nn.in_c = (all - base) * weights->phases;
    struct viv_job *job = viv_plan_job(lowering->plan, lowering->op, true);
    if (!job)
        return -ENOMEM;
    job->nn = nn;
    job->macs = mica_op_macs(lowering->plan->graph, &lowering->plan->graph->ops[lowering->op]) / all * count;
    return 0;
}

static int lower(struct lowering *lowering, const struct viv_nn *nn)
{
    const struct viv_channels *channels = &lowering->channels;
    struct viv_plan *plan = lowering->plan;
    struct viv_nn first = *nn;
    uint32_t planes = 0;
    int error = 0;
    for (uint32_t k = 0; k < channels->count; k++)
        if (viv_channel_corrected(channels, &channels->channels[k]))
            planes += channels->channels[k].planes;
    first.relu = false;
    if (channels->corrected)
        error = viv_plan_storage(plan, (uint64_t)nn->out_x_stride * nn->out_y_stride * planes, &first.out);
    for (uint32_t at = 0, count; !error && at < lowering->weights->kernels; at += count) {
        count = run_length(lowering, at);
        error = add_job(lowering, nn, &first, at, count);
    }
    if (error || !channels->corrected)
        return error;
    return viv_channels_second(plan, lowering->op, channels, lowering->places, &first, nn);
}

static void tell(const struct lowering *lowering)
{
    struct viv_plan *plan = lowering->plan;
    const struct mica_op *op = &plan->graph->ops[lowering->op];
    const struct viv_channels *channels = &lowering->channels;
    viv_channels_describe(channels, plan->way, sizeof(plan->way));
    plan->off = channels->bound < 2 ? 1 : (uint32_t)fmin(ceil(channels->bound) - 1, 255);
    mica_log(
        plan->log, MICA_LOG_INFO,
        "%s \"%s\": scales per channel: %s; at most %.3f from TFLite's result before rounding, so at most %u after",
        op->type, mica_op_output(plan->graph, op, 0)->name, plan->way, channels->bound, plan->off);
}

static int begin(struct lowering *lowering, const struct viv_nn *nn)
{
    const struct mica_op *op = &lowering->plan->graph->ops[lowering->op];
    lowering->profile = viv_weights_profile(lowering->weights);
    int error = choose(lowering, nn);
    if (error == -ENOTSUP)
        return mica_fail(lowering->plan->log, error, "%s \"%s\": there is no way for all of its scales per channel",
                         op->type, lowering->layer.out->name);
    if (error)
        return mica_fail_nomem(lowering->plan->log);
    error = allocate(lowering);
    if (error)
        return error;
    place_planes(lowering);
    sort_kernels(lowering);
    tell(lowering);
    return 0;
}

int viv_channels_lower(struct viv_plan *plan, uint32_t op_index, uint32_t data, struct viv_weights *weights,
                       const struct viv_nn *nn)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    struct lowering lowering = {.plan = plan, .op = op_index, .weights = weights};
    lowering.layer = (struct viv_channel_layer){
        .chip = plan->chip,
        .in = mica_op_input(plan->graph, op, data),
        .weights = mica_op_input(plan->graph, op, 1),
        .bias = mica_op_input(plan->graph, op, data == 0 ? 2 : 3),
        .out = mica_op_output(plan->graph, op, 0),
        .zero = nn->out_zero_point,
        .relu = nn->relu,
        .fold = plan->options.fold_scales,
    };
    int error = begin(&lowering, nn);
    if (!error)
        error = lower(&lowering, nn);
    viv_channels_finish(&lowering.channels);
    free(lowering.places);
    return error;
}
