/* SPDX-License-Identifier: MIT */
/* Operations whose values depend on one place of each input. */
#include "npu/vivante/compile/compose.h"
#include "npu/vivante/compile/elementwise.h"
#include "npu/vivante/compile/query.h"
#include "npu/vivante/compile/requant.h"
#include "npu/vivante/compile/sum.h"

bool viv_supports_add(const struct viv_query *query)
{
    const struct mica_tensor *a = mica_op_input(query->graph, query->op, 0);
    const struct mica_tensor *b = mica_op_input(query->graph, query->op, 1);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    if (!viv_check_pair(query))
        return false;
    struct viv_sum sum;
    if (!viv_sum_choose(query->chip, a, b, out, query->op->kind == MICA_OP_SUB, &sum))
        return viv_refuse(query,
                          "the inputs' scales %g and %g and the output's %g have no weights of the NN cores that are "
                          "near enough",
                          (double)a->quant.scale[0], (double)b->quant.scale[0], (double)out->quant.scale[0]);
    return 2 * sum.copies * (uint64_t)out->bytes <= VIV_MAX_COPIES ||
           viv_refuse(query, "%u copies of inputs of %zu values, for finer weights, are too large", sum.copies,
                      out->bytes);
}

/* With one constant operand. */
bool viv_supports_constant(const struct viv_query *query)
{
    int index = viv_constant_input(query->graph, query->op);
    const struct mica_tensor *constant = mica_op_input(query->graph, query->op, (uint32_t)index);
    const struct mica_tensor *data = mica_op_input(query->graph, query->op, 1 - (uint32_t)index);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    if (!viv_check_quantized(query, data, "input") || !viv_check_quantized(query, out, "output") ||
        !viv_check_same_type(query, data, out) || !viv_check_same_type(query, data, constant) ||
        !viv_check_image(query, data, "input"))
        return false;
    if (constant->problem || constant->quant.count != 1)
        return viv_refuse(query, "the constant needs one scale and zero point");
    if (!viv_same_shape(data, out))
        return viv_refuse(query,
                          "input and output have different shapes; broadcasting computed values is not supported");
    struct viv_shape shape = viv_shape_of(out);
    if (shape.w > VIV_MAX_IMAGE || shape.h > VIV_MAX_IMAGE)
        return viv_refuse(query, "images of more than %u columns or rows do not fit the NN descriptor", VIV_MAX_IMAGE);
    const char *why = viv_constant_refusal(query->chip, query->graph, query->op);
    return why ? viv_refuse(query, "%s", why) : viv_check_channels(query, shape.c, shape.c);
}

bool viv_supports_maximum(const struct viv_query *query)
{
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    return viv_check_pair(query) && ((viv_same_quantization(mica_op_input(query->graph, query->op, 0), out) &&
                                      viv_same_quantization(mica_op_input(query->graph, query->op, 1), out)) ||
                                     viv_refuse(query, "inputs and output are quantized differently"));
}
