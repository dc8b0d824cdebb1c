/* SPDX-License-Identifier: MIT */
/* QUANTIZE between 8-bit tensors: one job, with TFLite's very results where one can have them, else at most 1 off. */
#include <errno.h>

#include "npu/vivante/compile/compose.h"
#include "npu/vivante/compile/elementwise.h"
#include "npu/vivante/compile/query.h"

/* A whole weight and a multiplier of at most 1. */
bool viv_unary_factor(const struct viv_chip *chip, double factor, int32_t *weight, struct viv_requant *requant)
{
    for (*weight = 1; *weight < 128; *weight *= 2)
        if (factor / *weight <= 1)
            return viv_requant_factor(chip, factor / *weight, requant);
    return false;
}

static bool factor_of(const struct viv_chip *chip, const struct mica_graph *graph, const struct mica_op *op,
                      struct viv_elementwise *job)
{
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *out = mica_op_output(graph, op, 0);
    *job = (struct viv_elementwise){.inputs = 1, .in_zero = {viv_zero_point(in)}, .out_zero = viv_zero_point(out)};
    return viv_unary_factor(chip, (double)in->quant.scale[0] / out->quant.scale[0], &job->weight[0], &job->requant);
}

/* Neither one exact job nor a factor: two jobs do anything. */
static bool by_table(const struct viv_chip *chip, const struct mica_graph *graph, const struct mica_op *op)
{
    struct viv_elementwise job;
    return viv_table_is_one_job(chip, graph, op) || !factor_of(chip, graph, op, &job);
}

bool viv_supports_quantize(const struct viv_query *query)
{
    const struct mica_tensor *in = mica_op_input(query->graph, query->op, 0);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    if (!viv_check_quantized(query, in, "input") || !viv_check_quantized(query, out, "output"))
        return false;
    if (by_table(query->chip, query->graph, query->op))
        return viv_supports_table(query);
    return viv_add_columns(out->bytes) || viv_refuse(query, "%zu values are too many for one job", out->bytes);
}

static int lower_factor(struct viv_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    const struct mica_tensor *result = mica_op_output(plan->graph, op, 0);
    struct viv_elementwise job;
    struct viv_ref in, out;
    if (!factor_of(plan->chip, plan->graph, op, &job))
        return mica_fail(plan->log, -ENOTSUP, "the scales of %s \"%s\" do not fit the NN cores", op->type,
                         result->name);
    int error = viv_value_by_value(plan, op_index, 0, &in, &out);
    return error ? error : viv_elementwise_jobs(plan, op_index, &job, in, out, result->bytes);
}

int viv_lower_quantize(struct viv_plan *plan, uint32_t op)
{
    bool table = by_table(plan->chip, plan->graph, &plan->graph->ops[op]);
    return table ? viv_lower_table(plan, op) : lower_factor(plan, op);
}
