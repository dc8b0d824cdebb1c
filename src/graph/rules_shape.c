/* SPDX-License-Identifier: MIT */
/* Operations that put values together anew: reshaping, concatenation, padding, resizing. */
#include "graph/check.h"

/* ---- moving values ---------------------------------------------------- */

bool mica_rule_reshape(struct mica_check *check)
{
    if (!mica_check_io(check, 1, 2, 1))
        return false;
    const struct mica_tensor *input = mica_check_input(check, 0), *output = mica_check_output(check, 0);
    if (input->type != output->type)
        return mica_reject(check, "input is %s but output is %s", mica_type_name(input->type),
                           mica_type_name(output->type));
    if (input->bytes != output->bytes)
        return mica_reject(check, "input %s and output %s differ in size", mica_shape_text(input).text,
                           mica_shape_text(output).text);
    return true;
}

/* Equal in all dimensions but `axis`; all but uint8 must be quantized alike, as TensorFlow Lite requires. */
static bool check_concat_input(struct mica_check *check, const struct mica_tensor *input,
                               const struct mica_tensor *output, uint32_t axis)
{
    bool fits = input->rank == output->rank;
    for (uint32_t i = 0; fits && i < input->rank; i++)
        fits = i == axis || input->dims[i] == output->dims[i];
    if (!fits)
        return mica_reject(check, "input %s does not fit output %s along dimension %u", mica_shape_text(input).text,
                           mica_shape_text(output).text, axis);
    if (input->type != output->type)
        return mica_reject(check, "input is %s but output is %s", mica_type_name(input->type),
                           mica_type_name(output->type));
    if (input->type != MICA_TYPE_UINT8 || output->quant.count == 0)
        return mica_check_moved(check, input, output);
    if (!mica_check_number(check, input, "input"))
        return false;
    return mica_check_factor(check, (double)input->quant.scale[0] / (double)output->quant.scale[0]);
}

bool mica_rule_concatenation(struct mica_check *check)
{
    const struct mica_op *op = check->op;
    if (!mica_check_io(check, op->input_count ? op->input_count : 1, INT32_MAX, 1))
        return false;
    const struct mica_tensor *output = mica_check_output(check, 0);
    if (op->axis < 0 || (uint32_t)op->axis >= output->rank)
        return mica_reject(check, "output %s has no dimension %d to concatenate along", mica_shape_text(output).text,
                           op->axis);
    if (op->activation != MICA_ACT_NONE)
        return mica_reject(check, "concatenation with a fused activation is not supported");
    if (mica_is_integer(output->type) && output->quant.count && !mica_check_number(check, output, "output"))
        return false;
    int64_t sum = 0;
    for (uint32_t i = 0; i < op->input_count; i++) {
        const struct mica_tensor *input = mica_check_input(check, i);
        if (!check_concat_input(check, input, output, (uint32_t)op->axis))
            return false;
        sum += input->dims[op->axis];
    }
    if (sum == output->dims[op->axis])
        return true;
    return mica_reject(check, "the inputs make %lld along dimension %d, output %s does not", (long long)sum, op->axis,
                       mica_shape_text(output).text);
}

/* ---- parameters that are constant tensors ----------------------------- */

/* A size that grows by the constant amounts `before` and `after`. */
static bool check_padded(struct mica_check *check)
{
    const struct mica_tensor *input = mica_check_input(check, 0), *paddings = mica_check_input(check, 1);
    const struct mica_tensor *output = mica_check_output(check, 0);
    if (!mica_check_constant(check, paddings, "paddings", 2 * (uint64_t)input->rank) ||
        !mica_check_rank(check, output, "output", input->rank))
        return false;
    const int32_t *amounts = paddings->data;
    for (uint32_t i = 0; i < input->rank; i++) {
        int64_t before = amounts[2 * i], after = amounts[2 * i + 1];
        if (before < 0 || after < 0)
            return mica_reject(check, "padding of dimension %u is negative", i);
        if (before + input->dims[i] + after != output->dims[i])
            return mica_reject(check, "output %s does not fit input %s padded by %lld and %lld in dimension %u",
                               mica_shape_text(output).text, mica_shape_text(input).text, (long long)before,
                               (long long)after, i);
    }
    return mica_check_moved(check, input, output);
}

bool mica_rule_pad(struct mica_check *check)
{
    if (!mica_check_io(check, 2, 3, 1) || !check_padded(check))
        return false;
    const struct mica_tensor *value = mica_check_input(check, 2);
    if (!value)
        return true;
    if (!value->data || mica_elements(value) != 1)
        return mica_reject(check, "the value to pad with should be a constant of one element");
    return mica_check_moved(check, value, mica_check_output(check, 0));
}

bool mica_rule_mirror_pad(struct mica_check *check)
{
    if (!mica_check_io(check, 2, 2, 1) || !check_padded(check))
        return false;
    const struct mica_tensor *input = mica_check_input(check, 0);
    const int32_t *amounts = mica_check_input(check, 1)->data;
    for (uint32_t i = 0; i < input->rank; i++) {
        int32_t most = input->dims[i] - !check->op->mirror_symmetric;
        if (amounts[2 * i] > most || amounts[2 * i + 1] > most)
            return mica_reject(check, "a mirror shows at most %d elements of dimension %u, not %d and %d", most, i,
                               amounts[2 * i], amounts[2 * i + 1]);
    }
    return true;
}

/* Beyond this the kernels' fixed-point coordinates (10 fraction bits) leave 32 bits. */
#define MAX_RESIZED 65536

static bool check_resize_size(struct mica_check *check, const struct mica_tensor *input,
                              const struct mica_tensor *output)
{
    const struct mica_tensor *size = mica_check_input(check, 1);
    if (!mica_check_constant(check, size, "size", 2))
        return false;
    const int32_t *rows_columns = size->data;
    if (output->dims[1] != rows_columns[0] || output->dims[2] != rows_columns[1] || output->dims[0] != input->dims[0] ||
        output->dims[3] != input->dims[3])
        return mica_reject(check, "output %s does not fit input %s resized to %dx%d", mica_shape_text(output).text,
                           mica_shape_text(input).text, rows_columns[0], rows_columns[1]);
    for (uint32_t i = 1; i <= 2; i++)
        if (input->dims[i] > MAX_RESIZED || output->dims[i] > MAX_RESIZED)
            return mica_reject(check, "images of more than %d rows or columns can't be resized", MAX_RESIZED);
    return true;
}

bool mica_rule_resize(struct mica_check *check)
{
    if (!mica_check_io(check, 2, 2, 1) || !mica_check_in_out(check))
        return false;
    const struct mica_tensor *input = mica_check_input(check, 0), *output = mica_check_output(check, 0);
    if (!mica_check_rank(check, input, "input", 4) || !mica_check_rank(check, output, "output", 4) ||
        !check_resize_size(check, input, output))
        return false;
    if (check->op->resize.align_corners && check->op->resize.half_pixel_centers)
        return mica_reject(check, "aligned corners and half-pixel centers exclude each other");
    return mica_check_same_quantization(check, input, output);
}
