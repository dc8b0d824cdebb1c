/* SPDX-License-Identifier: MIT */
/*
 * What tensors that are joined have beside their move: constants are laid down,
 * and uint8 parts with a scale of their own go through a table, TFLite's very
 * steps (its int8 kernels know one scale only).
 */
#include "npu/vivante/compile/compose.h"
#include "npu/vivante/compile/pair.h"
#include "npu/vivante/compile/query.h"
#include "npu/vivante/compile/table_fit.h"

/* In float32, as TFLite does. */
static void make_table(const struct mica_tensor *in, const struct mica_tensor *out, uint8_t table[256])
{
    float inverse = 1.0f / out->quant.scale[0], scale = in->quant.scale[0] * inverse;
    float bias = (float)-in->quant.zero_point[0] * scale;
    for (uint32_t x = 0; x < 256; x++) {
        float value = roundf((float)x * scale + bias) + (float)out->quant.zero_point[0];
        table[x] = viv_byte(value);
    }
}

bool viv_check_part(const struct viv_query *query, uint32_t index)
{
    const struct mica_tensor *in = mica_op_input(query->graph, query->op, index);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    struct viv_table_fit fit;
    uint8_t table[256];
    bool joins = query->op->kind == MICA_OP_CONCATENATION || query->op->kind == MICA_OP_PACK;
    if (in && in->data && joins) {
        if (in->problem || !viv_is_byte(in) || in->quant.count != 1)
            return viv_refuse(query, "input %u is a constant without one scale and zero point", index);
    } else if (!viv_check_quantized(query, in, "input")) {
        return false;
    }
    if (viv_same_quantization(in, out))
        return true;
    if (query->op->kind != MICA_OP_CONCATENATION || in->type != MICA_TYPE_UINT8 || out->type != MICA_TYPE_UINT8)
        return viv_refuse(query, "input %u is not quantized like the output", index);
    make_table(in, out, table);
    return viv_table_fit(query->chip, table, &fit) ||
           viv_refuse(query, "the scales %g of input %u and %g of the output give a factor outside the NN cores' range",
                      (double)in->quant.scale[0], index, (double)out->quant.scale[0]);
}

int viv_join_part(struct viv_plan *plan, uint32_t op_index, uint32_t index, bool planar, struct viv_ref *ref)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    const struct mica_tensor *in = mica_op_input(plan->graph, op, index), *out = mica_op_output(plan->graph, op, 0);
    struct viv_ref from;
    uint8_t table[256];
    int error = viv_pair_source(plan, op_index, (uint32_t)op->inputs[index], planar, ref);
    if (error || viv_same_quantization(in, out))
        return error;
    from = *ref;
    make_table(in, out, table);
    if (in->data) { /* its bytes are a copy of the program's */
        uint8_t *data = plan->storages[from.storage].data;
        for (size_t i = 0; i < in->bytes; i++)
            data[i] = table[data[i]];
        return 0;
    }
    error = viv_plan_storage(plan, in->bytes, ref);
    return error ? error : viv_table_jobs(plan, op_index, table, from, *ref, in->bytes);
}
