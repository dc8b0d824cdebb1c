/* SPDX-License-Identifier: MIT */
/* Operations that make one value of one: a table has all of it. */
#include <errno.h>

#include "cpu/table.h"
#include "npu/rockchip/compile/refuse.h"

int rk_supports_lookup(const struct rk_chip *chip, const struct mica_graph *graph, uint32_t op_index, char *reason,
                       size_t size)
{
    (void)chip;
    const struct mica_op *op = &graph->ops[op_index];
    uint8_t table[256];
    if (rk_check_tensors(graph, op, 0, 1, reason, size))
        return -ENOTSUP;
    if (mica_cpu_table(graph, op, table))
        return rk_refuse(reason, size, "%s is not defined for values of type %s", op->type,
                         mica_type_name(mica_op_input(graph, op, 0)->type));
    return 0;
}

/* From and to the stored domain, where the table counts from -128 up. */
static void to_stored(const struct mica_tensor *in, const struct mica_tensor *out, const uint8_t bytes[256],
                      int8_t table[256])
{
    uint8_t flip_in = in->type == MICA_TYPE_UINT8 ? 0x80 : 0, flip_out = out->type == MICA_TYPE_UINT8 ? 0x80 : 0;
    for (int32_t i = 0; i < 256; i++) {
        uint8_t stored = (uint8_t)(i - 128);
        table[i] = (int8_t)(uint8_t)(bytes[stored ^ flip_in] ^ flip_out);
    }
}

int rk_lower_lookup(struct rk_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    struct rk_cube in, out;
    uint8_t bytes[256];
    int8_t table[256];
    int error = rk_plan_value(plan, (uint32_t)op->inputs[0], &in);
    if (!error)
        error = rk_plan_result_like(plan, (uint32_t)op->outputs[0], (uint32_t)op->inputs[0], &out);
    if (!error)
        error = mica_cpu_table(plan->graph, op, bytes);
    if (error)
        return error;
    to_stored(mica_op_input(plan->graph, op, 0), mica_op_output(plan->graph, op, 0), bytes, table);
    return rk_lower_table(plan, op_index, in, out, table);
}
