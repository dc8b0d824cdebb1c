/* SPDX-License-Identifier: MIT */
/*
 * What one operation costs and how it is computed: found out by lowering it alone. Its inputs are there in both
 * layouts, as they are inside a partition; coefficients are estimated and nothing is encoded.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "npu/vivante/compile/batch.h"
#include "npu/vivante/compile/compile.h"
#include "npu/vivante/compile/lower.h"
#include "npu/vivante/compile/schedule.h"
#include "npu/vivante/compile/supports.h"
#include "npu/vivante/compile/window.h"
#include "npu/vivante/hw/timing.h"

static int make_inputs(struct viv_plan *plan, const struct mica_op *op)
{
    int error = 0;
    for (uint32_t i = 0; !error && i < op->input_count; i++) {
        struct viv_ref ref;
        int32_t tensor = op->inputs[i];
        if (tensor == MICA_NO_TENSOR || plan->graph->tensors[tensor].data || viv_has_nhwc(plan, (uint32_t)tensor))
            continue;
        error = viv_make_nhwc(plan, (uint32_t)tensor, &ref);
        if (!error && !viv_has_planar(plan, (uint32_t)tensor))
            error = viv_make_planar(plan, (uint32_t)tensor, &ref);
    }
    return error;
}

static int lower_alone(struct viv_plan *plan, uint32_t index)
{
    const struct mica_op *op = &plan->graph->ops[index];
    const struct viv_operation *operation = viv_operation_of(op->kind);
    int error = operation ? make_inputs(plan, op) : -ENOTSUP;
    if (!error)
        error = viv_is_batched(plan->graph, op) ? viv_lower_batch(plan, index, operation->lower)
                                                : operation->lower(plan, index);
    return error ? error : viv_clamp_finish(plan, index);
}

/* The cores of the TP work side by side. */
static double tp_cycles(const struct viv_chip *chip, const struct viv_tp *tp)
{
    double longest = 0;
    for (uint32_t i = 0; i < tp->part_count; i++) {
        const struct viv_tp_part *part = &tp->parts[i];
        uint64_t elements = (uint64_t)(part->window_x_end - part->window_x + 1) *
                            (uint64_t)(part->window_y_end - part->window_y + 1) * part->z_size;
        struct viv_tp_job job = {.elements = elements, .in_bytes = elements, .out_bytes = elements};
        double cycles = (double)viv_tp_cost(chip, &job).cycles;
        longest = cycles > longest ? cycles : longest;
    }
    return longest;
}

double viv_job_cycles(const struct viv_chip *chip, const struct viv_job *job)
{
    return job->is_nn ? (double)job->nn.tile.cycles : tp_cycles(chip, &job->tp);
}

static void add_up(struct viv_plan *plan, struct viv_job_memo *memo, double clock_mhz, struct mica_way *way)
{
    double cycles = 0;
    for (uint32_t i = 0; i < plan->job_count; i++) {
        struct viv_job *job = &plan->jobs[i];
        if (job->is_nn)
            viv_job_shape(plan->chip, memo, &job->nn, true);
        cycles += viv_job_cycles(plan->chip, job);
    }
    way->jobs = plan->job_count;
    way->us = cycles / clock_mhz + (plan->job_count > 1 ? (plan->job_count - 1) * VIV_EXTRA_JOB_US : 0);
}

/* How its window becomes a job, where that is one of several ways. */
static const char *window_text(const struct viv_plan *plan, const struct mica_op *op)
{
    struct viv_window window;
    char reason[1];
    if ((op->kind != MICA_OP_CONV_2D && op->kind != MICA_OP_DEPTHWISE_CONV_2D) ||
        !viv_window_make(plan->chip, plan->graph, op, &window, reason, sizeof(reason)))
        return "";
    switch (window.lowering) {
    case VIV_FIRST_PIXEL:
        return ", first-pixel pooling";
    case VIV_SPACE_TO_DEPTH:
        return ", space-to-depth";
    case VIV_LANES:
        return ", shifted copies";
    default:
        return "";
    }
}

/* Of the table's text, which is about all operations of that name, what is about this one. */
static void tell(const struct viv_plan *plan, const struct mica_op *op, struct mica_way *way)
{
    if (plan->way[0]) {
        snprintf(way->text, sizeof(way->text), "%s", plan->way);
        way->off = plan->off;
    }
    way->text[strcspn(way->text, ";")] = 0;
    size_t used = strlen(way->text);
    snprintf(way->text + used, sizeof(way->text) - used, "%s", window_text(plan, op));
}

int viv_describe(const struct mica_chip *chip, const struct mica_graph *graph, uint32_t op,
                 const struct mica_compile_options *options, struct mica_way *way)
{
    struct viv_plan plan;
    struct mica_partition partition = {.graph = graph, .op_count = 1, .ops = &op};
    struct viv_job_memo *memo = viv_job_memo_create();
    int error = memo ? viv_plan_init(&plan, chip->parameters, &partition, NULL, NULL) : -ENOMEM;
    if (error) {
        viv_job_memo_destroy(memo);
        return error;
    }
    if (options)
        plan.options = *options;
    plan.options.optimize_size = false; /* looks for smaller streams by encoding them */
    error = lower_alone(&plan, op);
    if (!error) {
        add_up(&plan, memo, chip->clock_mhz, way);
        tell(&plan, &graph->ops[op], way);
    }
    viv_plan_finish(&plan);
    viv_job_memo_destroy(memo);
    return error;
}
