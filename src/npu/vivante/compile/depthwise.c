/* SPDX-License-Identifier: MIT */
/*
 * Depthwise convolutions on chips without hardware for them: dense kernels
 * that are zero except for one channel. What that costs grows with the square
 * of the channels, so they are cut in groups, a job each, on planes that are
 * neighbours in memory (timing.md, section 7, item 2).
 */
#include "npu/vivante/compile/conv.h"

#include <errno.h>

#include "npu/vivante/compile/tile.h"
#include "util/checked.h"

/*
 * What another job costs beyond the model's own fixed cycles, in microseconds.
 * The true figure is unknown: the model has 3.1, published whole-network times
 * bound it by 40 (timing.md, section 6); 10 is the middle of the studied cases.
 */
#define EXTRA_JOB_US 10.0

/*
 * What a byte of coefficients costs beyond the time of reading it, in cycles:
 * zeros between the channels of a group are most of a depthwise stream, and
 * each has to be written, stored and loaded. At this price groups of 64 win
 * over larger ones whose modelled time is the same within 1 %.
 */
#define BYTE_CYCLES 3.0

static uint64_t group_bytes(const struct viv_chip *chip, const struct viv_weights *weights, uint32_t group)
{
    return viv_coef_v7_estimate(chip, group, group * weights->phases, weights->taps, 1.0 / group);
}

static void choose_group_tile(const struct viv_chip *chip, const struct viv_weights *weights, struct viv_nn *nn,
                              uint32_t group)
{
    nn->in_c = group * weights->phases;
    nn->out_c = group;
    viv_tile_choose(chip, nn, group_bytes(chip, weights, group), 1.0 / group);
}

/* Channels of a group: all, or about a multiple of the cores, the groups of about equal size. */
static uint32_t choose_group(const struct viv_chip *chip, const struct viv_weights *weights, const struct viv_nn *nn)
{
    static const uint32_t per_core[] = {64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1};
    uint32_t best = 0;
    double best_cycles = 0;
    for (unsigned i = 0; i <= sizeof(per_core) / sizeof(per_core[0]); i++) {
        uint32_t wanted = i == 0 ? weights->kernels : per_core[i - 1] * chip->nn_cores;
        if (i && wanted >= weights->kernels)
            continue;
        uint32_t count = mica_cdiv(weights->kernels, wanted);
        uint32_t group = (uint32_t)mica_align(mica_cdiv(weights->kernels, count), chip->nn_cores);
        group = group < weights->kernels ? group : weights->kernels;
        struct viv_nn trial = *nn;
        choose_group_tile(chip, weights, &trial, group);
        double cycles = (double)trial.tile.cycles + EXTRA_JOB_US * chip->clock_mhz;
        cycles = count * (cycles + BYTE_CYCLES * (double)group_bytes(chip, weights, group));
        if (!best || cycles < best_cycles) {
            best = group;
            best_cycles = cycles;
        }
    }
    return best;
}

static int add_groups(struct viv_plan *plan, uint32_t op, const struct viv_weights *weights, struct viv_nn nn)
{
    uint32_t group = choose_group(plan->chip, weights, &nn), kernels = weights->kernels;
    uint64_t macs = mica_op_macs(plan->graph, &plan->graph->ops[op]) / kernels;
    uint64_t in_pitch = (uint64_t)nn.in_x_stride * nn.in_y_stride * weights->phases;
    uint64_t out_pitch = (uint64_t)nn.out_x_stride * nn.out_y_stride;
    struct viv_ref in = nn.in, out = nn.out;
    for (uint32_t first = 0; first < kernels; first += group) {
        uint32_t count = kernels - first < group ? kernels - first : group;
        if (count != nn.out_c)
            choose_group_tile(plan->chip, weights, &nn, count);
        nn.first_kernel = first;
        nn.in.offset = in.offset + first * in_pitch;
        nn.out.offset = out.offset + first * out_pitch;
        struct viv_job *job = viv_plan_job(plan, op, true);
        if (!job)
            return -ENOMEM;
        job->nn = nn;
        job->macs = macs * count;
    }
    return 0;
}

int viv_lower_depthwise(struct viv_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    struct viv_nn nn = {0};
    struct viv_window window;
    char reason[128];
    if (!viv_window_make(plan->chip, plan->graph, op, &window, reason, sizeof(reason)))
        return mica_fail(plan->log, -ENOTSUP, "%s", reason);
    int error = viv_conv_geometry(plan, op, &window, &nn);
    if (!error)
        error = viv_conv_input(plan, op_index, &window, &nn.in);
    if (!error)
        error = viv_make_planar(plan, (uint32_t)op->outputs[0], &nn.out);
    if (error)
        return error;
    struct viv_weights *weights = viv_conv_weights(plan, op, &nn.weights);
    if (!weights)
        return -ENOMEM;
    weights->kernels = (uint32_t)mica_op_input(plan->graph, op, 1)->dims[3];
    weights->channels = 1;
    weights->tap_stride = weights->kernels;
    weights->kernel_stride = 1;
    weights->diagonal = true;
    viv_window_map(&window, &op->window, weights);
    return add_groups(plan, op_index, weights, nn);
}
