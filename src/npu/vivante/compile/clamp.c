/* SPDX-License-Identifier: MIT */
/*
 * Jobs clamp at 0, at 255 and, if told so, at their zero point from below. An
 * activation's bound somewhere else is moved to one of these: the job before
 * computes with a zero point that puts the upper bound at 255, the next moves
 * the lower one to 0, the last moves all back. Moving rounds nothing.
 */
#include "npu/vivante/compile/elementwise.h"

static bool low_needs_job(struct viv_bounds bounds, uint8_t zero)
{
    return bounds.low > 0 && bounds.low != zero;
}

void viv_clamp_first(struct viv_bounds bounds, uint8_t zero, uint8_t *first_zero, bool *relu)
{
    *relu = bounds.low == zero && bounds.low > 0;
    *first_zero = (uint8_t)(zero + 255 - (bounds.high > zero ? bounds.high : zero));
}

int viv_clamp_begin(struct viv_plan *plan, const struct mica_op *op, struct viv_bounds bounds, struct viv_ref *out)
{
    const struct mica_tensor *tensor = mica_op_output(plan->graph, op, 0);
    uint8_t zero = viv_zero_point(tensor);
    if (bounds.high == 255 && !low_needs_job(bounds, zero))
        return 0;
    struct viv_clamp *clamp = &plan->clamp;
    *clamp = (struct viv_clamp){.pending = true, .to = *out, .bytes = tensor->bytes, .zero = zero};
    clamp->low = bounds.low;
    clamp->high = bounds.high;
    int error = viv_plan_storage(plan, tensor->bytes, &clamp->from);
    *out = clamp->from;
    return error;
}

static int move(struct viv_plan *plan, uint32_t op, struct viv_ref from, struct viv_ref to, uint8_t zero,
                uint8_t next_zero)
{
    struct viv_elementwise same = {.inputs = 1, .weight = {1}, .in_zero = {zero}, .out_zero = next_zero};
    viv_requant_factor(plan->chip, 1, &same.requant);
    return viv_elementwise_jobs(plan, op, &same, from, to, plan->clamp.bytes);
}

int viv_clamp_finish(struct viv_plan *plan, uint32_t op)
{
    struct viv_clamp *clamp = &plan->clamp;
    struct viv_bounds bounds = {clamp->low, clamp->high};
    uint8_t zero;
    bool relu;
    int error = 0;
    if (!clamp->pending)
        return 0;
    clamp->pending = false;
    viv_clamp_first(bounds, clamp->zero, &zero, &relu);
    struct viv_ref from = clamp->from;
    if (low_needs_job(bounds, clamp->zero)) {
        uint8_t low_zero = (uint8_t)(clamp->zero - clamp->low);
        error = viv_plan_storage(plan, clamp->bytes, &from);
        if (!error)
            error = move(plan, op, clamp->from, from, zero, low_zero);
        zero = low_zero;
    }
    return error ? error : move(plan, op, from, clamp->to, zero, clamp->zero);
}
