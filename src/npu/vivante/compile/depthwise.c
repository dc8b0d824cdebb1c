/* SPDX-License-Identifier: MIT */
/*
 * Depthwise convolutions. On chips with hardware for them: one job. On others:
 * dense kernels that are zero except for one channel. What that costs grows
 * with the square of the channels, so they are cut in groups, a job each, on
 * planes that are neighbours in memory (timing.md, section 7, item 2).
 */
#include "npu/vivante/compile/conv.h"

#include <errno.h>

#include "npu/vivante/compile/channels.h"
#include "npu/vivante/compile/coef.h"
#include "npu/vivante/compile/depthwise_size.h"
#include "npu/vivante/compile/tile.h"
#include "util/checked.h"

/*
 * What a byte of coefficients costs beyond the time of reading it, in cycles:
 * zeros between the channels of a group are most of a V7 depthwise stream.
 * This decides between groups whose modelled time is the same within 1 %.
 */
#define BYTE_CYCLES 0.25

#define HEADER_BYTES 64u /* of a coefficient buffer */

/* What groups are chosen for. */
struct grouping {
    const struct viv_chip *chip;
    const struct viv_weights *weights;
    struct viv_weights_profile profile; /* of one channel's weights */
};

static uint64_t group_bytes(const struct grouping *grouping, uint32_t group)
{
    const struct viv_weights *weights = grouping->weights;
    struct viv_weights_profile profile = {.share = grouping->profile.share / group, .density = 1.0 / group};
    profile.entropy = grouping->profile.entropy;
    return viv_coef_estimate(grouping->chip, group, group * viv_weights_planes(weights), weights->taps, &profile);
}

static void choose_group_tile(const struct grouping *grouping, struct viv_nn *nn, uint32_t group)
{
    nn->in_c = group / viv_weights_multiplier(grouping->weights) * viv_weights_planes(grouping->weights);
    nn->out_c = group;
    viv_tile_choose(grouping->chip, nn, group_bytes(grouping, group), 1.0 / group);
}

/* Channels of a group: all, or about a multiple of the cores, the groups of about equal size. */
static uint32_t choose_group(const struct grouping *grouping, const struct viv_nn *nn)
{
    const struct viv_chip *chip = grouping->chip;
    const struct viv_weights *weights = grouping->weights;
    static const uint32_t per_core[] = {256, 192, 128, 96, 80, 64, 56, 48, 40, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1};
    uint32_t best = 0, previous = 0;
    double best_cycles = 0;
    for (unsigned i = 0; i <= sizeof(per_core) / sizeof(per_core[0]); i++) {
        uint32_t wanted = i == 0 ? weights->kernels : per_core[i - 1] * chip->nn_cores;
        uint64_t seen = (uint64_t)wanted / viv_weights_multiplier(weights) * viv_weights_planes(weights);
        bool too_large = seen * weights->taps > VIV_MAX_KERNEL_WEIGHTS;
        if (too_large || (i && (wanted >= weights->kernels || weights->multiplier > 1)))
            continue;
        uint32_t count = mica_cdiv(weights->kernels, wanted);
        uint32_t group = (uint32_t)mica_align(mica_cdiv(weights->kernels, count), chip->nn_cores);
        group = group < weights->kernels ? group : weights->kernels;
        if (group == previous)
            continue;
        previous = group;
        struct viv_nn trial = *nn;
        choose_group_tile(grouping, &trial, group);
        double cycles = (double)trial.tile.cycles + VIV_EXTRA_JOB_US * chip->clock_mhz;
        cycles += BYTE_CYCLES * (double)(HEADER_BYTES + group_bytes(grouping, group));
        cycles *= mica_cdiv(weights->kernels, group);
        if (!best || cycles < best_cycles) {
            best = group;
            best_cycles = cycles;
        }
    }
    /* Kernels so large that a job for each core's one is too much: as many as one job may have. */
    uint64_t kernel = (uint64_t)viv_weights_planes(weights) * weights->taps;
    return best || weights->multiplier > 1 ? best : (uint32_t)(VIV_MAX_KERNEL_WEIGHTS / kernel);
}

/* Where the scheduler will have tensors of so many planes, as far as one can know before. */
static void assume_on_chip(const struct viv_chip *chip, struct viv_nn *nn, uint32_t in_planes, uint32_t out_planes)
{
    uint64_t in_bytes = (uint64_t)nn->in_x_stride * nn->in_y_stride * in_planes;
    uint64_t out_bytes = (uint64_t)nn->out_x_stride * nn->out_y_stride * out_planes;
    for (enum viv_place place = VIV_IN_AXI_SRAM; place < VIV_PLACES; place++) {
        unsigned window = viv_place_window(chip, place);
        uint64_t size = window < MICA_ON_CHIP_WINDOWS ? chip->on_chip[window].size : 0;
        if (nn->in_place == VIV_IN_DDR && in_bytes < size)
            nn->in_place = place;
        if (nn->out_place == VIV_IN_DDR && out_bytes < size)
            nn->out_place = place;
    }
}

int viv_depthwise_groups(struct viv_plan *plan, uint32_t op, struct viv_weights *weights, struct viv_nn nn,
                         uint64_t macs)
{
    struct grouping grouping = {plan->chip, weights, viv_weights_profile(weights)};
    uint32_t kernels = weights->kernels;
    if (plan->options.on_chip)
        assume_on_chip(plan->chip, &nn, kernels * viv_weights_planes(weights), kernels);
    uint32_t group = 0;
    int error = 0;
    if (plan->options.optimize_size && weights->multiplier < 2 && weights->channels == 1 &&
        plan->chip->coef_format == VIV_COEF_V7)
        error = viv_depthwise_smallest_group(plan, weights, &group);
    else
        group = choose_group(&grouping, &nn);
    if (error)
        return error;
    if (!group)
        return mica_fail(plan->log, -ENOTSUP, "operation %u has kernels that are too large for the NN cores", op);
    uint64_t in_pitch = (uint64_t)nn.in_x_stride * nn.in_y_stride * viv_weights_planes(weights);
    uint64_t out_pitch = (uint64_t)nn.out_x_stride * nn.out_y_stride;
    struct viv_ref in = nn.in, out = nn.out;
    for (uint32_t first = 0; first < kernels; first += group) {
        uint32_t count = kernels - first < group ? kernels - first : group;
        if (count != nn.out_c)
            choose_group_tile(&grouping, &nn, count);
        nn.first_kernel = first;
        nn.in.offset = in.offset + first * in_pitch;
        nn.out.offset = out.offset + first * out_pitch;
        struct viv_job *job = viv_plan_job(plan, op, true);
        if (!job)
            return -ENOMEM;
        job->nn = nn;
        job->macs = macs / kernels * count;
    }
    return 0;
}

int viv_depthwise_job(struct viv_plan *plan, uint32_t op, const struct viv_weights *weights, struct viv_nn nn,
                      uint64_t macs)
{
    struct viv_weights_profile profile = viv_weights_profile(weights);
    nn.depthwise = true;
    nn.in_c = nn.out_c = weights->kernels;
    viv_tile_choose(plan->chip, &nn, viv_coef_estimate(plan->chip, nn.out_c, 1, weights->taps, &profile),
                    profile.density);
    struct viv_job *job = viv_plan_job(plan, op, true);
    if (!job)
        return -ENOMEM;
    job->nn = nn;
    job->macs = macs;
    return 0;
}

int viv_lower_depthwise(struct viv_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    struct viv_nn nn = {0};
    struct viv_window window;
    struct viv_weights *weights;
    int error = viv_conv_begin(plan, op_index, &window, &nn, &weights);
    if (error)
        return error;
    weights->kernels = (uint32_t)mica_op_input(plan->graph, op, 1)->dims[3];
    weights->channels = 1;
    weights->tap_stride = weights->kernels;
    weights->kernel_stride = 1;
    bool differ = viv_channels_differ(mica_op_input(plan->graph, op, 1));
    weights->multiplier = (uint32_t)op->window.depth_multiplier;
    if (!viv_window_map(plan->chip, &window, &op->window, weights))
        return mica_fail_nomem(plan->log);
    weights->diagonal =
        !plan->chip->hardware_depthwise || differ || weights->multiplier > 1 || window.lowering == VIV_LANES;
    if (differ)
        return viv_channels_lower(plan, op_index, 0, weights, &nn);
    if (weights->diagonal)
        return viv_depthwise_groups(plan, op_index, weights, nn, mica_op_macs(plan->graph, op));
    return viv_depthwise_job(plan, op_index, weights, nn, mica_op_macs(plan->graph, op));
}
