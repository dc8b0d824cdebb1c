/* SPDX-License-Identifier: MIT */
/* Values that go to other places, and what is computed over places. */
#include "npu/vivante/compile/compose.h"
#include "npu/vivante/compile/query.h"
#include "npu/vivante/compile/requant.h"
#include "npu/vivante/compile/window.h"

bool viv_supports_bilinear(const struct viv_query *query)
{
    const struct mica_tensor *in = mica_op_input(query->graph, query->op, 0);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    if (!viv_check_image4(query, in, "input") || !viv_check_image4(query, out, "output"))
        return false;
    if (!viv_same_quantization(in, out))
        return viv_refuse(query, "input and output are quantized differently");
    const char *why = viv_bilinear_refusal(query->graph, query->op);
    return why ? viv_refuse(query, "%s", why) : viv_check_channels(query, (uint32_t)in->dims[3], (uint32_t)in->dims[3]);
}

/* Bytes that only go somewhere else. */
bool viv_supports_move(const struct viv_query *query)
{
    const struct mica_op *op = query->op;
    bool several = op->kind == MICA_OP_CONCATENATION || op->kind == MICA_OP_PACK;
    uint32_t first = several ? 0 : mica_op_data_input(op), count = several ? op->input_count : 1;
    for (uint32_t i = first; i < first + count; i++) {
        const struct mica_tensor *in = mica_op_input(query->graph, op, i);
        if (!viv_check_quantized(query, in, "input"))
            return false;
        for (uint32_t j = 0; j < op->output_count; j++) {
            const struct mica_tensor *out = mica_op_output(query->graph, op, j);
            if (!viv_check_quantized(query, out, "output"))
                return false;
            if (!viv_same_quantization(in, out))
                return viv_refuse(query, "input %u is not quantized like the output", i);
            struct viv_shape shape = viv_shape_of(out);
            if (!viv_shape_flat(shape) && !viv_shape_transposable(shape))
                return viv_refuse(query, "the output has a dimension above %d, too large for the TP cores", INT16_MAX);
        }
    }
    return viv_move_supported(query->graph, op, query->reason, query->size);
}

bool viv_supports_concatenation(const struct viv_query *query)
{
    const struct mica_op *op = query->op;
    const struct mica_tensor *out = mica_op_output(query->graph, op, 0);
    if (op->activation != MICA_ACT_NONE)
        return viv_refuse(query, "a concatenation with an activation is not supported");
    if (op->axis != (int32_t)out->rank - 1)
        return viv_supports_move(query);
    if (!viv_check_quantized(query, out, "output") || !viv_check_image(query, out, "output"))
        return false;
    for (uint32_t i = 0; i < op->input_count; i++) {
        const struct mica_tensor *in = mica_op_input(query->graph, op, i);
        if (!viv_check_quantized(query, in, "input") || !viv_check_image(query, in, "input"))
            return false;
        if (!viv_same_quantization(in, out))
            return viv_refuse(query, "input %u is not quantized like the output", i);
    }
    return true;
}

bool viv_supports_pad(const struct viv_query *query)
{
    const struct mica_tensor *in = mica_op_input(query->graph, query->op, 0);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    struct mica_padding padding;
    if (!viv_check_image4(query, in, "input") || !viv_check_image4(query, out, "output"))
        return false;
    const struct mica_tensor *value = mica_op_input(query->graph, query->op, 2);
    if (value && (value->problem || !value->data || value->bytes != 1 || !viv_is_byte(value)))
        return viv_refuse(query, "the padding value is not a constant of one byte");
    if (!viv_pad_amounts(query->graph, query->op, &padding))
        return viv_refuse(query, "only constant padding of rows and columns is supported");
    if (out->dims[1] > (int32_t)VIV_MAX_IMAGE || out->dims[2] > (int32_t)VIV_MAX_IMAGE)
        return viv_refuse(query, "the padded image has more than %u rows or columns", VIV_MAX_IMAGE);
    return viv_same_quantization(in, out) || viv_refuse(query, "input and output are quantized differently");
}

bool viv_supports_reshape(const struct viv_query *query)
{
    const struct mica_tensor *in = mica_op_input(query->graph, query->op, 0);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    return viv_check_data(query, in, "input") && viv_check_data(query, out, "output") &&
           viv_check_same_type(query, in, out) &&
           (in->bytes == out->bytes || viv_refuse(query, "input and output have different sizes"));
}

static bool check_average_axes(const struct viv_query *query)
{
    const struct mica_tensor *in = mica_op_input(query->graph, query->op, 0);
    if (query->op->kind == MICA_OP_AVERAGE_POOL_2D)
        return true;
    return (in->rank == 4 && query->op->axes == 6) ||
           viv_refuse(query, "only rows and columns of images can be reduced (axes 1 and 2 of four)");
}

bool viv_supports_average(const struct viv_query *query)
{
    const struct mica_tensor *in = mica_op_input(query->graph, query->op, 0);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    if (!viv_check_image4(query, in, "input") || !viv_check_quantized(query, out, "output") ||
        !viv_check_image(query, out, "output") || !viv_check_same_type(query, in, out) || !check_average_axes(query))
        return false;
    struct mica_op average = viv_average_op(query->graph, query->op);
    const struct mica_padding *padding = &average.window.padding;
    if (padding->left || padding->top || padding->right > 0 || padding->bottom > 0)
        return viv_refuse(query,
                          "averages with padding are not supported: windows at the border have divisors of their own");
    struct viv_requant requant;
    if (!viv_requant_factor(query->chip, viv_average_factor(query->graph, query->op), &requant))
        return viv_refuse(query, "the scales %g and %g give a factor outside the NN cores' range",
                          (double)in->quant.scale[0], (double)out->quant.scale[0]);
    if (!viv_check_channels(query, (uint32_t)in->dims[3] * VIV_PHASES, (uint32_t)in->dims[3]))
        return false;
    uint64_t pixels = (uint64_t)in->dims[1] * (uint64_t)in->dims[2];
    if (viv_average_global(query->graph, &average))
        return pixels * 4 <= VIV_MAX_KERNEL_WEIGHTS ||
               viv_refuse(query, "%llu pixels are too many for one average", (unsigned long long)pixels);
    struct viv_window window;
    return viv_window_make(query->chip, query->graph, &average, &window, query->reason, query->size);
}

bool viv_supports_max_pool(const struct viv_query *query)
{
    const struct mica_tensor *in = mica_op_input(query->graph, query->op, 0);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    if (!viv_check_image4(query, in, "input") || !viv_check_quantized(query, out, "output") ||
        !viv_check_image(query, out, "output"))
        return false;
    if (query->op->kind == MICA_OP_REDUCE_MAX && !check_average_axes(query))
        return false;
    const struct mica_window window = viv_maximum_window(query->graph, query->op), *w = &window;
    bool one = out->bytes == (size_t)in->dims[3];
    if (!viv_same_quantization(in, out))
        return viv_refuse(query, "input and output are quantized differently");
    if (w->kernel_x != w->kernel_y || w->kernel_x < 2 || w->kernel_x > VIV_MAX_POOL)
        return viv_refuse(query, "windows of %dx%d are not supported, only squares from 2x2 to %dx%d", w->kernel_x,
                          w->kernel_y, VIV_MAX_POOL, VIV_MAX_POOL);
    if (!one && (w->stride_x != w->stride_y || w->stride_x > 2))
        return viv_refuse(query, "stride %dx%d is not supported, only 1x1 and 2x2", w->stride_x, w->stride_y);
    return (in->dims[1] < INT16_MAX / 2 && in->dims[2] < INT16_MAX / 2) ||
           viv_refuse(query, "the image is too large for the TP cores");
}
