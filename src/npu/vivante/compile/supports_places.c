/* SPDX-License-Identifier: MIT */
/* Values that go to other places, and what is computed over places. */
#include "npu/vivante/compile/compose.h"
#include "npu/vivante/compile/query.h"
#include "npu/vivante/compile/requant.h"
#include "npu/vivante/compile/window.h"

#define MAX_AREAS 256u /* of the outputs of an average, by divisor */

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
        for (uint32_t j = 0; j < op->output_count; j++) {
            const struct mica_tensor *out = mica_op_output(query->graph, op, j);
            if (!viv_check_quantized(query, out, "output"))
                return false;
            if (!(j ? viv_same_quantization(in, out) || viv_refuse(query, "the outputs are quantized differently")
                    : viv_check_part(query, i)))
                return false;
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
    if (!viv_check_quantized(query, out, "output") || !viv_check_layouts(query, out, "output"))
        return false;
    for (uint32_t i = 0; i < op->input_count; i++) {
        const struct mica_tensor *in = mica_op_input(query->graph, op, i);
        if (!viv_check_part(query, i) || !viv_check_layouts(query, in, "input"))
            return false;
    }
    return true;
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

/* Boxes of outputs with a divisor of their own are jobs of their own. */
static bool check_areas(const struct viv_query *query, const struct mica_op *average)
{
    const struct mica_tensor *in = mica_op_input(query->graph, average, 0);
    const struct mica_tensor *out = mica_op_output(query->graph, average, 0);
    struct viv_average_area area = {0};
    uint32_t areas = 0;
    while (viv_average_next(query->graph, average, &area)) {
        struct viv_requant requant;
        if (area.pixels == 0)
            return viv_refuse(query, "a window lies wholly outside of the image");
        if (!viv_requant_factor(query->chip, viv_average_factor(query->graph, average, area.pixels), &requant))
            return viv_refuse(query, "the scales %g and %g give a factor outside the NN cores' range",
                              (double)in->quant.scale[0], (double)out->quant.scale[0]);
        if (++areas > MAX_AREAS)
            return viv_refuse(query, "windows at the border have more than %u different divisors, a job each",
                              MAX_AREAS);
    }
    return true;
}

bool viv_supports_average(const struct viv_query *query)
{
    const struct mica_tensor *in = mica_op_input(query->graph, query->op, 0);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    if (!viv_check_image4(query, in, "input") || !viv_check_quantized(query, out, "output") ||
        !viv_check_image(query, out, "output") || !viv_check_same_type(query, in, out) || !check_average_axes(query))
        return false;
    struct mica_op average = viv_average_op(query->graph, query->op);
    if (!viv_check_channels(query, (uint32_t)in->dims[3], (uint32_t)in->dims[3]) || !check_areas(query, &average))
        return false;
    uint64_t pixels = (uint64_t)in->dims[1] * (uint64_t)in->dims[2];
    if (viv_average_global(query->graph, &average))
        return pixels * 4 <= VIV_MAX_KERNEL_WEIGHTS ||
               viv_refuse(query, "%llu pixels are too many for one average", (unsigned long long)pixels);
    struct viv_window window;
    return viv_window_make(query->chip, query->graph, &average, &window, query->reason, query->size);
}
