/* SPDX-License-Identifier: MIT */
/*
 * Operations that make one value from one: TFLite's own results for all 256
 * bytes (cpu/table.h) are fitted, so that nothing is known here about any of
 * these functions.
 */
#include <errno.h>

#include "cpu/table.h"
#include "npu/vivante/compile/compose.h"
#include "npu/vivante/compile/query.h"
#include "npu/vivante/compile/table_fit.h"

/* ---- which function --------------------------------------------------------------- */

static bool of_two(const struct mica_op *op)
{
    return op->kind == MICA_OP_MAXIMUM || op->kind == MICA_OP_MINIMUM;
}

/* The input that is not a constant. */
static uint32_t data_input(const struct mica_graph *graph, const struct mica_op *op)
{
    return of_two(op) && viv_constant_input(graph, op) == 0 ? 1 : 0;
}

bool viv_table_bounds(const struct mica_graph *graph, const struct mica_op *op)
{
    int index = of_two(op) ? viv_constant_input(graph, op) : -1;
    if (index < 0)
        return false;
    const struct mica_tensor *bound = mica_op_input(graph, op, (uint32_t)index), *out = mica_op_output(graph, op, 0);
    const struct mica_tensor *data = mica_op_input(graph, op, data_input(graph, op));
    bool quantized = bound->quant.count == 1 && data->quant.count == 1 && out->quant.count == 1;
    return bound->bytes == 1 && !bound->problem && quantized && data->bytes == out->bytes &&
           viv_same_quantization(data, out) && viv_same_quantization(bound, out);
}

static void fill_bounded(enum mica_op_kind kind, uint8_t bound, uint8_t table[256])
{
    bool maximum = kind == MICA_OP_MAXIMUM;
    for (uint32_t x = 0; x < 256; x++)
        table[x] = (x > bound) == maximum ? (uint8_t)x : bound;
}

/* Between bytes as the device has them; false: TFLite has no such function. */
static bool function_of(const struct mica_graph *graph, const struct mica_op *op, uint8_t table[256])
{
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *out = mica_op_output(graph, op, 0);
    if (of_two(op)) {
        const struct mica_tensor *bound = mica_op_input(graph, op, 1 - data_input(graph, op));
        fill_bounded(op->kind, *(const uint8_t *)bound->data ^ viv_flip(bound), table);
        return true;
    }
    uint8_t stored[256];
    if (mica_cpu_table(graph, op, stored))
        return false;
    for (uint32_t x = 0; x < 256; x++)
        table[x] = stored[x ^ viv_flip(in)] ^ viv_flip(out);
    return true;
}

/* ---- checked and lowered ------------------------------------------------------------ */

bool viv_supports_table(const struct viv_query *query)
{
    const struct mica_tensor *in = mica_op_input(query->graph, query->op, data_input(query->graph, query->op));
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    uint8_t table[256];
    if (!viv_check_quantized(query, in, "input") || !viv_check_quantized(query, out, "output"))
        return false;
    if (!function_of(query->graph, query->op, table))
        return viv_refuse(query, "TFLite has no %s from %s to %s with the scales %g and %g", query->op->type,
                          mica_type_name(in->type), mica_type_name(out->type), (double)in->quant.scale[0],
                          (double)out->quant.scale[0]);
    return viv_table_fits(query->chip, table) ||
           viv_refuse(query, "%s with the scales %g and %g takes more than %u ramps", query->op->type,
                      (double)in->quant.scale[0], (double)out->quant.scale[0], VIV_TABLE_RAMPS);
}

bool viv_table_is_one_job(const struct viv_chip *chip, const struct mica_graph *graph, const struct mica_op *op)
{
    struct viv_table_fit fit;
    uint8_t table[256];
    return function_of(graph, op, table) && viv_table_fit_single(chip, table, &fit);
}

int viv_value_by_value(struct viv_plan *plan, uint32_t op_index, uint32_t input, struct viv_ref *in,
                       struct viv_ref *out)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    uint32_t tensor = (uint32_t)op->inputs[input], result = (uint32_t)op->outputs[0];
    bool planar = viv_has_planar(plan, tensor) || !viv_has_nhwc(plan, tensor);
    planar = planar && viv_shape_transposable(viv_shape_of(&plan->graph->tensors[tensor]));
    int error = planar ? viv_need_planar(plan, tensor, op_index, in) : viv_need_nhwc(plan, tensor, op_index, in);
    if (error)
        return error;
    return planar ? viv_make_planar(plan, result, out) : viv_make_nhwc(plan, result, out);
}

int viv_lower_table(struct viv_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    const struct mica_tensor *result = mica_op_output(plan->graph, op, 0);
    struct viv_ref in, out;
    uint8_t table[256];
    if (!function_of(plan->graph, op, table))
        return mica_fail(plan->log, -ENOTSUP, "%s \"%s\" is no function of bytes", op->type, result->name);
    int error = viv_value_by_value(plan, op_index, data_input(plan->graph, op), &in, &out);
    return error ? error : viv_table_jobs(plan, op_index, table, in, out, result->bytes);
}
