/* SPDX-License-Identifier: MIT */
#include "npu/vivante/compile/compile.h"

#include <errno.h>
#include <stdlib.h>

#include "npu/vivante/compile/coef.h"
#include "npu/vivante/compile/emit.h"
#include "npu/vivante/compile/lower.h"
#include "npu/vivante/compile/schedule.h"
#include "util/checked.h"

/* A loop over weights or jobs whose bodies can run out of memory. */
struct loop {
    struct viv_plan *plan;
    bool *failed; /* per body */
};

static void prepare_weights(void *user, size_t index)
{
    struct loop *loop = user;
    loop->failed[index] = !viv_weights_prepare(loop->plan->weights[index]);
}

static struct viv_kernel_set kernel_set(const struct viv_plan *plan, const struct viv_nn *nn)
{
    const struct viv_weights *weights = plan->weights[nn->weights];
    struct viv_kernel_set set = {.count = nn->out_c, .channels = nn->in_c, .taps = weights->taps};
    set.stored_channels = weights->channels * weights->phases;
    if (nn->depthwise)
        set.channels = set.stored_channels;
    set.diagonal = weights->diagonal;
    set.pointwise = weights->pointwise;
    set.zero_point = weights->zero_point;
    set.data = weights->data + nn->first_kernel * viv_weights_per_kernel(weights);
    set.bias = weights->bias + nn->first_kernel;
    set.plane = nn->out_x_stride * nn->out_y_stride;
    set.order = weights->order ? weights->order + nn->first_kernel : NULL;
    set.first_place = nn->first_place;
    set.place = weights->place ? weights->place + nn->first_kernel : NULL;
    set.multiplier = weights->multiplier;
    return set;
}

static void encode_job(void *user, size_t index)
{
    struct loop *loop = user;
    struct viv_job *job = &loop->plan->jobs[index];
    if (!job->is_nn)
        return;
    struct viv_kernel_set set = kernel_set(loop->plan, &job->nn);
    struct viv_coef_job coef = {.kernels_per_core = job->nn.tile.kernels_per_core, .depthwise = job->nn.depthwise};
    coef.thorough = loop->plan->options.optimize_size;
    loop->failed[index] = !viv_coef_encode(loop->plan->chip, &set, &coef, &job->nn.coefficients);
}

static int run_loop(struct viv_plan *plan, uint32_t count, void (*body)(void *user, size_t index))
{
    struct loop loop = {plan, mica_new_array(count, sizeof(bool))};
    if (!loop.failed)
        return mica_fail_nomem(plan->log);
    mica_parallel_for(plan->threads, count, body, &loop);
    bool failed = false;
    for (uint32_t i = 0; i < count; i++)
        failed |= loop.failed[i];
    free(loop.failed);
    return failed ? mica_fail_nomem(plan->log) : 0;
}

/* The caller promised it; a promise is no reason to crash on weights that are not there. */
static int check_supported(const struct mica_chip *chip, const struct mica_partition *partition, struct mica_log *log)
{
    char reason[256];
    for (uint32_t i = 0; i < partition->op_count; i++) {
        int error = viv_supports(chip, partition->graph, partition->ops[i], reason, sizeof(reason));
        if (error == -ENOMEM)
            return mica_fail_nomem(log);
        if (error)
            return mica_fail(log, -ENOTSUP, "operation %u can't be compiled for the NPU: %s", partition->ops[i],
                             reason);
    }
    return 0;
}

int viv_compile(const struct mica_chip *chip, const struct mica_partition *partition,
                const struct mica_compile_options *options, struct mica_threads *threads, struct mica_log *log,
                struct mica_program **program)
{
    struct viv_plan plan;
    int error = check_supported(chip, partition, log);
    if (error)
        return error;
    error = viv_plan_init(&plan, chip->parameters, partition, threads, log);
    if (options)
        plan.options = *options;
    if (!error)
        error = viv_lower(&plan);
    if (!error)
        error = viv_schedule(&plan);
    if (!error)
        error = run_loop(&plan, plan.weights_count, prepare_weights);
    if (!error)
        error = run_loop(&plan, plan.job_count, encode_job);
    if (!error)
        error = viv_emit(&plan, program);
    viv_plan_finish(&plan);
    return error;
}
