/* SPDX-License-Identifier: MIT */
/* One NN job from its descriptor to its output in memory. */
#include <errno.h>
#include <string.h>

#include "npu/vivante/sim/conv.h"
#include "npu/vivante/sim/internal.h"
#include "npu/vivante/sim/nn_job.h"

#define DESCRIPTOR_BYTES 128u /* what the hardware is known to read; mainline writes two words more */

static int read_descriptor(struct viv_sim *sim, uint32_t address, uint32_t *words)
{
    const void *host = viv_sim_at(sim, address, DESCRIPTOR_BYTES, MICA_ACCESS_READ, "NN descriptor");
    if (!host)
        return -EFAULT;
    memset(words, 0, 4 * VIV_NN_WORDS);
    memcpy(words, host, DESCRIPTOR_BYTES);
    if (sim->registers.ocb_start != sim->registers.ocb_end)
        return mica_fail(sim->log, -EIO, "NN job 0x%08x: the on-chip buffer window is not simulated", address);
    return 0;
}

static int get_weights(struct viv_sim *sim, const struct viv_nn *job, const struct viv_weights **weights)
{
    struct viv_weights_source source = {
        .address = job->coefficients,
        .format = sim->coef_format,
        .shape =
            {
                .chip = sim->chip,
                .kernels_per_core = job->cost.kernels_per_core,
                .kernel_w = job->cost.kernel_w,
                .kernel_h = job->cost.kernel_h,
                .channels = job->cost.in_channels,
                .depthwise = job->cost.depthwise,
                .zero_point = job->weight_zero_point,
                .kernels = job->cost.out_channels,
                .plane = job->out_plane_bytes,
            },
    };
    size_t header_bytes = viv_weights_header_bytes(&source);
    const uint8_t *header = viv_sim_at(sim, source.address, header_bytes, MICA_ACCESS_READ, "coefficients");
    if (!header)
        return -EFAULT;
    int result = viv_weights_size(&source, header, sim->log, &source.size);
    if (result)
        return result;
    if (!viv_sim_at(sim, source.address, source.size, MICA_ACCESS_READ, "coefficients"))
        return -EFAULT;
    return viv_weights_get(&sim->weights, header, &source, sim->threads, sim->log, weights);
}

/* Is the circular buffer off, or large enough for it never to wrap? */
static bool stays_linear(uint64_t size, uint64_t end, uint64_t address, uint64_t bytes)
{
    return size == 0 || (size >= bytes && address + bytes <= end);
}

static int check_circular(struct viv_sim *sim, const struct viv_nn *job)
{
    const struct viv_nn_job *cost = &job->cost;
    uint64_t in = (uint64_t)cost->in_plane_bytes * (cost->in_channels - 1) +
                  (uint64_t)cost->in_row_bytes * (cost->in_h - 1) + cost->in_w;
    uint64_t out = (uint64_t)job->out_plane_bytes * (cost->out_channels - 1) +
                   (uint64_t)job->out_row_bytes * (job->stored_h - 1) + job->stored_w;
    if (!stays_linear(job->in_circular, job->in_end, job->in_address, in))
        return mica_fail(sim->log, -EIO, "NN job 0x%08x: a circular input buffer that wraps is not simulated",
                         job->descriptor);
    if (!stays_linear(job->out_circular, job->out_end, job->out_address, out))
        return mica_fail(sim->log, -EIO, "NN job 0x%08x: a circular output buffer that wraps is not simulated",
                         job->descriptor);
    return 0;
}

/* Every kernel of the stream takes its time, also those beyond the last channel. */
static struct viv_cost estimate(const struct viv_sim *sim, const struct viv_nn *job, const struct viv_weights *weights)
{
    struct viv_nn_job cost = job->cost;
    cost.coefficient_bytes = weights->stream_bytes;
    cost.density = weights->density;
    cost.out_row_bytes = job->out_row_bytes;
    cost.out_plane_bytes = job->out_plane_bytes;
    cost.in_place = viv_sim_place(sim, job->in_address);
    cost.out_place = viv_sim_place(sim, job->out_address);
    cost.coefficient_place = viv_sim_place(sim, job->coefficients);
    if (cost.out_channels < weights->kernels)
        cost.out_channels = weights->kernels;
    return viv_nn_cost(sim->chip, &viv_default_memory, &cost);
}

int viv_nn_run(struct viv_sim *sim, uint32_t address, struct viv_cost *cost)
{
    uint32_t words[VIV_NN_WORDS];
    struct viv_nn job;
    const struct viv_weights *weights;
    int result = read_descriptor(sim, address, words);
    if (!result)
        result = viv_nn_parse(sim, address, words, &job);
    if (!result)
        result = check_circular(sim, &job);
    if (!result)
        result = get_weights(sim, &job, &weights);
    if (result)
        return result;
    *cost = estimate(sim, &job, weights);
    result = viv_sim_spend(sim, "NN", address, cost->cycles);
    return result ? result : viv_conv_run(sim, &job, weights);
}
