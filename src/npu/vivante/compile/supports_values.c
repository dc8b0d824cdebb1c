/* SPDX-License-Identifier: MIT */
/* Operations whose values depend on one place of each input. */
#include "npu/vivante/compile/compose.h"
#include "npu/vivante/compile/elementwise.h"
#include "npu/vivante/compile/query.h"
#include "npu/vivante/compile/requant.h"

#define MAX_FOLD_ERROR 0.7 /* with both roundings below 2 steps */

/* Two computed tensors of one shape and type, and the output likewise. */
static bool check_pair(const struct viv_query *query)
{
    const struct mica_tensor *a = mica_op_input(query->graph, query->op, 0);
    const struct mica_tensor *b = mica_op_input(query->graph, query->op, 1);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    if (!viv_check_quantized(query, a, "first input") || !viv_check_quantized(query, b, "second input") ||
        !viv_check_quantized(query, out, "output"))
        return false;
    if (!viv_check_same_type(query, a, b) || !viv_check_same_type(query, a, out))
        return false;
    if (!viv_same_shape(a, b) || !viv_same_shape(a, out))
        return viv_refuse(query, "the inputs have different shapes; broadcasting is not supported");
    return viv_add_columns(out->bytes) || viv_refuse(query, "%zu values are too many for one job", out->bytes);
}

bool viv_supports_add(const struct viv_query *query)
{
    const struct mica_tensor *a = mica_op_input(query->graph, query->op, 0);
    const struct mica_tensor *b = mica_op_input(query->graph, query->op, 1);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    if (!check_pair(query))
        return false;
    struct viv_add add = viv_add_weights(a, b, out, query->op->kind == MICA_OP_SUB);
    if (add.error >= 1)
        return viv_refuse(query,
                          "the inputs' scales %g and %g are too coarse for the output's %g: the NN cores' 8-bit "
                          "factors would be wrong by %.1f steps",
                          (double)a->quant.scale[0], (double)b->quant.scale[0], (double)out->quant.scale[0], add.error);
    return viv_check_scale(query, a->quant.scale[0], add.weight_scale, out->quant.scale[0]);
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
    return check_pair(query) && ((viv_same_quantization(mica_op_input(query->graph, query->op, 0), out) &&
                                  viv_same_quantization(mica_op_input(query->graph, query->op, 1), out)) ||
                                 viv_refuse(query, "inputs and output are quantized differently"));
}

/* One value from one. */
static bool check_unary(const struct viv_query *query)
{
    const struct mica_tensor *in = mica_op_input(query->graph, query->op, 0);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    return viv_check_quantized(query, in, "input") && viv_check_quantized(query, out, "output") &&
           (viv_add_columns(out->bytes) || viv_refuse(query, "%zu values are too many for one job", out->bytes));
}

/* TFLite has absolute values of int8 alone. */
static bool check_signed(const struct viv_query *query)
{
    return query->op->kind != MICA_OP_ABS || mica_op_input(query->graph, query->op, 0)->type == MICA_TYPE_INT8 ||
           viv_refuse(query, "%s of uint8 does not exist in TFLite", query->op->type);
}

bool viv_supports_unary(const struct viv_query *query)
{
    const struct mica_tensor *in = mica_op_input(query->graph, query->op, 0);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    if (!check_unary(query) || !check_signed(query))
        return false;
    struct viv_requant requant;
    int32_t weight;
    double factor = (double)in->quant.scale[0] / out->quant.scale[0];
    return viv_unary_factor(query->chip, factor, &weight, &requant) ||
           viv_refuse(query, "the scales %g and %g give a factor outside the NN cores' range",
                      (double)in->quant.scale[0], (double)out->quant.scale[0]);
}

bool viv_supports_fold(const struct viv_query *query)
{
    const struct mica_tensor *in = mica_op_input(query->graph, query->op, 0);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    if (!check_unary(query) || !check_signed(query))
        return false;
    struct viv_fold fold;
    if (!viv_fold_weights(query->chip, query->op, in, out, &fold))
        return viv_refuse(query, "the scales %g and %g give a factor outside the NN cores' range",
                          (double)in->quant.scale[0], (double)out->quant.scale[0]);
    return fold.error < MAX_FOLD_ERROR ||
           viv_refuse(query, "the NN cores' 8-bit factors would be wrong by %.2f steps", fold.error);
}
