/* SPDX-License-Identifier: MIT */
/*
 * The second stage of weights with a scale for each channel: adds up the planes of each channel, each times its factor
 * of 8 bits. Pixels don't know their neighbours here. Where kernels carry their output's place, planes are in the order
 * of channels, and each job takes some channels and the planes in between; the kernel is 1x1, stored and computed with
 * all its zeros, or 2x2 with one tap. Elsewhere it is one 1x1 job that also sorts the planes.
 */
#include <errno.h>
#include <stdlib.h>

#include "npu/vivante/compile/channels.h"
#include "npu/vivante/compile/coef.h"
#include "npu/vivante/compile/plan.h"
#include "npu/vivante/compile/tile.h"
#include "util/checked.h"

#define VECTOR 64u      /* lanes */
#define FACTOR_BITS 7.0 /* entropy of a factor, about */

static void choose_tile(const struct viv_chip *chip, struct viv_nn *nn, uint32_t channels, uint32_t planes)
{
    uint32_t taps = nn->kernel_w * nn->kernel_h;
    double density = 1.0 / channels / taps;
    struct viv_weights_profile profile = {.share = density, .density = density, .entropy = FACTOR_BITS};
    nn->in_c = planes;
    nn->out_c = channels;
    viv_tile_choose(chip, nn, viv_coef_estimate(chip, channels, planes, taps, &profile), density);
}

/*
 * A job on planes as they are in memory, gaps between them included. Planes that are whole vectors long are taken as
 * rows of one: nothing is read twice then.
 */
static struct viv_nn make_job(const struct viv_nn *nn, uint32_t kernel)
{
    struct viv_nn job = {.in = nn->out, .out = nn->out, .relu = nn->relu};
    uint32_t columns = nn->out_x_stride, rows = nn->out_y_stride;
    if (columns * rows % VECTOR == 0 && columns * rows / VECTOR <= VIV_MAX_IMAGE) {
        rows = columns * rows / VECTOR;
        columns = VECTOR;
    }
    job.kernel_w = job.kernel_h = kernel;
    job.in_w = job.in_x_stride = job.out_w = job.out_x_stride = columns;
    job.in_h = job.in_y_stride = job.out_h = job.out_y_stride = rows;
    job.in_zero_point = job.out_zero_point = nn->out_zero_point;
    return job;
}

void viv_channels_second_form(const struct viv_chip *chip, const struct viv_nn *nn, uint32_t count, uint32_t planes,
                              struct viv_second_form *form)
{
    static const uint32_t sizes[] = {0, 256, 128, 64, 32, 16};
    bool blocks = chip->z_offset_in_stream;
    *form = (struct viv_second_form){.cycles = -1};
    for (unsigned i = 0; i < (blocks ? sizeof(sizes) / sizeof(*sizes) : 1); i++)
        for (uint32_t kernel = 1; kernel <= (blocks ? 2 : 1); kernel++) {
            uint32_t size = i ? sizes[i] : count, jobs = mica_cdiv(count, size);
            if ((i && size >= count) || (kernel == 1 && planes < 2 * count / jobs && count / jobs < 2))
                continue;
            struct viv_nn job = make_job(nn, kernel);
            choose_tile(chip, &job, mica_cdiv(count, jobs), mica_cdiv(planes, jobs));
            double all = jobs * ((double)job.tile.cycles + VIV_EXTRA_JOB_US * chip->clock_mhz);
            if (form->cycles < 0 || all < form->cycles)
                *form = (struct viv_second_form){size, kernel, all};
        }
}

struct second {
    struct viv_plan *plan;
    uint32_t op;
    const struct viv_channels *channels;
    const uint32_t *places;
    struct viv_ref in;
    struct viv_nn job;
    uint32_t *list; /* channels that have a second stage */
    uint32_t count, planes;
};

static struct viv_weights *make_weights(struct second *second, uint32_t count, uint32_t planes, uint32_t *index)
{
    struct viv_weights *weights = viv_plan_weights(second->plan, index);
    if (!weights)
        return NULL;
    weights->kernels = count;
    weights->channels = planes;
    weights->phases = 1;
    weights->taps = second->job.kernel_w * second->job.kernel_h;
    weights->pointwise = weights->taps == 1;
    weights->owned = mica_new_array(count, (size_t)planes * weights->taps);
    weights->bias = mica_new_array(count, sizeof(*weights->bias));
    weights->order = mica_new_array(count, sizeof(*weights->order));
    if (!weights->owned || !weights->bias || !weights->order) {
        mica_fail_nomem(second->plan->log);
        return NULL;
    }
    weights->data = weights->owned;
    return weights;
}

static void fill_kernel(const struct second *second, struct viv_weights *weights, uint32_t kernel, uint32_t index,
                        uint32_t base)
{
    const struct viv_channel *channel = &second->channels->channels[index];
    uint8_t *data = weights->owned + kernel * viv_weights_per_kernel(weights);
    uint32_t sum = 0;
    for (uint32_t i = channel->first; i < channel->first + channel->planes; i++) {
        data[(size_t)(second->places[i] - base) * weights->taps] = second->channels->planes[i].factor;
        sum += second->channels->planes[i].factor;
    }
    weights->order[kernel] = index;
    weights->bias[kernel] = (uint32_t)channel->bias + sum * second->plan->chip->bias_input_zero;
}

/* Channels list[first, first + count), whose planes are [base, base + planes). */
static int add_job(struct second *second, uint32_t first, uint32_t count, uint32_t base, uint32_t planes)
{
    const struct viv_chip *chip = second->plan->chip;
    struct viv_nn nn = second->job;
    struct viv_weights *weights = make_weights(second, count, planes, &nn.weights);
    if (!weights)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        fill_kernel(second, weights, i, second->list[first + i], base);
    uint64_t pitch = (uint64_t)nn.in_x_stride * nn.in_y_stride;
    nn.first_place = chip->z_offset_in_stream ? second->list[first] : 0;
    nn.in.offset += base * pitch;
    nn.out.offset += nn.first_place * pitch;
    choose_tile(chip, &nn, count, planes);
    struct viv_job *job = viv_plan_job(second->plan, second->op, true);
    if (!job)
        return -ENOMEM;
    job->nn = nn;
    return 0;
}

static int add_jobs(struct second *second, const struct viv_nn *nn)
{
    const struct viv_chip *chip = second->plan->chip;
    struct viv_second_form form;
    viv_channels_second_form(chip, nn, second->count, second->planes, &form);
    uint32_t size = form.block;
    int error = 0;
    second->job = make_job(nn, form.kernel);
    second->job.in = second->in;
    second->job.post_multiplier = second->channels->correction.multiplier;
    second->job.post_shift = second->channels->correction.shift;
    for (uint32_t first = 0; !error && first < second->count; first += size) {
        uint32_t count = second->count - first < size ? second->count - first : size;
        const struct viv_channel *last = &second->channels->channels[second->list[first + count - 1]];
        uint32_t base =
            chip->z_offset_in_stream ? second->places[second->channels->channels[second->list[first]].first] : 0;
        uint32_t end = chip->z_offset_in_stream ? second->places[last->first + last->planes - 1] + 1 : second->planes;
        error = add_job(second, first, count, base, end - base);
    }
    return error;
}

int viv_channels_second(struct viv_plan *plan, uint32_t op, const struct viv_channels *channels, const uint32_t *places,
                        const struct viv_nn *first, const struct viv_nn *nn)
{
    struct second second = {.plan = plan, .op = op, .channels = channels, .places = places, .in = first->out};
    second.list = mica_new_array(channels->count, sizeof(*second.list));
    if (!second.list)
        return mica_fail_nomem(plan->log);
    for (uint32_t i = 0; i < channels->count; i++) {
        const struct viv_channel *channel = &channels->channels[i];
        if (!viv_channel_corrected(channels, channel))
            continue;
        second.list[second.count++] = i;
        second.planes += channel->planes;
    }
    int error = add_jobs(&second, nn);
    free(second.list);
    return error;
}
