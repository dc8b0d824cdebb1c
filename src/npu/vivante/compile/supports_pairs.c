/* SPDX-License-Identifier: MIT */
/* Operations on two tensors that broadcast. */
#include "npu/vivante/compile/pair.h"
#include "npu/vivante/compile/query.h"

/* An operand: a computed tensor, or a constant. */
static bool check_operand(const struct viv_query *query, const struct mica_tensor *tensor, const char *what)
{
    if (!tensor || !tensor->data)
        return viv_check_quantized(query, tensor, what);
    if (tensor->problem || !viv_is_byte(tensor) || tensor->quant.count != 1)
        return viv_refuse(query, "the %s is a constant that isn't uint8 or int8 with one scale and zero point", what);
    return true;
}

/* Each dimension of an operand has one element, or as many as the output's. */
static bool broadcasts(const struct mica_tensor *tensor, const struct mica_tensor *out)
{
    bool does = tensor->rank <= out->rank;
    for (uint32_t i = 0; does && i < tensor->rank; i++) {
        int32_t size = tensor->dims[tensor->rank - 1 - i];
        does = size == 1 || size == out->dims[out->rank - 1 - i];
    }
    return does;
}

static bool check_repeats(const struct viv_query *query, const struct mica_tensor *tensor)
{
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    if (!broadcasts(tensor, out))
        return viv_refuse(query, "the inputs don't broadcast to the output");
    uint32_t planar = viv_repeat_jobs(tensor, out, true), nhwc = viv_repeat_jobs(tensor, out, false);
    if (planar > VIV_MAX_REPEAT_JOBS || nhwc > VIV_MAX_REPEAT_JOBS)
        return viv_refuse(query, "broadcasting an input would take more than %u TP jobs", VIV_MAX_REPEAT_JOBS);
    if (tensor->data || tensor->bytes == out->bytes)
        return true;
    struct viv_shape shape = viv_shape_of(tensor);
    return viv_shape_flat(shape) || viv_shape_transposable(shape) ||
           viv_refuse(query, "an input has a dimension above %d, too large for the TP cores", INT16_MAX);
}

bool viv_check_pair(const struct viv_query *query)
{
    const struct mica_tensor *a = mica_op_input(query->graph, query->op, 0);
    const struct mica_tensor *b = mica_op_input(query->graph, query->op, 1);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    if (!check_operand(query, a, "first input") || !check_operand(query, b, "second input") ||
        !viv_check_quantized(query, out, "output"))
        return false;
    if (a->data && b->data)
        return viv_refuse(query, "both inputs are constants");
    if (!viv_check_same_type(query, a, b) || !viv_check_same_type(query, a, out) || !check_repeats(query, a) ||
        !check_repeats(query, b))
        return false;
    return viv_add_columns(out->bytes) || viv_refuse(query, "%zu values are too many for one job", out->bytes);
}
