/* SPDX-License-Identifier: MIT */
/* A tensor times itself: a function of one value, whose squares are exact before they are rounded. */
#include <math.h>

#include "npu/vivante/compile/compose.h"
#include "npu/vivante/compile/multiply.h"
#include "npu/vivante/compile/table_fit.h"

bool viv_square_table(const struct viv_chip *chip, const struct mica_graph *graph, const struct mica_op *op,
                      uint8_t table[256])
{
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *out = mica_op_output(graph, op, 0);
    double factor = (double)in->quant.scale[0] * (double)in->quant.scale[0] / (double)out->quant.scale[0];
    struct viv_bounds bounds = viv_bounds_of(op->activation, out);
    struct viv_table_fit fit;
    if (op->inputs[0] != op->inputs[1])
        return false;
    for (int32_t x = 0; x < 256; x++) {
        int32_t difference = x - viv_zero_point(in);
        double value = round(difference * difference * factor) + viv_zero_point(out);
        table[x] = value < bounds.low ? bounds.low : value > bounds.high ? bounds.high : (uint8_t)value;
    }
    return viv_table_fit(chip, table, &fit);
}

int viv_lower_square(struct viv_plan *plan, uint32_t op_index, const uint8_t table[256])
{
    struct viv_ref in, out;
    uint32_t tensor = (uint32_t)plan->graph->ops[op_index].inputs[0];
    bool planar = viv_pair_planar(plan, &plan->graph->ops[op_index]);
    int error = viv_pair_source(plan, op_index, tensor, planar, &in);
    if (!error)
        error = viv_pair_output(plan, op_index, planar, &out);
    return error ? error : viv_table_jobs(plan, op_index, table, in, out, plan->graph->tensors[tensor].bytes);
}
