/* SPDX-License-Identifier: MIT */
/* Operations that combine or move values: addition, concatenation, padding, reshaping, resizing. */
#include "graph/check.h"

#include <math.h>

/* ---- addition --------------------------------------------------------- */

/* Size of dimension `i`, counted from the last one; missing leading dimensions are 1. */
static int32_t dim_from_end(const struct mica_tensor *tensor, uint32_t i)
{
    return i < tensor->rank ? tensor->dims[tensor->rank - 1 - i] : 1;
}

static bool check_broadcast(struct mica_check *check)
{
    const struct mica_tensor *a = mica_check_input(check, 0), *b = mica_check_input(check, 1);
    const struct mica_tensor *output = mica_check_output(check, 0);
    bool fits = output->rank == (a->rank > b->rank ? a->rank : b->rank);
    for (uint32_t i = 0; fits && i < output->rank; i++) {
        int32_t x = dim_from_end(a, i), y = dim_from_end(b, i);
        fits = (x == y || x == 1 || y == 1) && dim_from_end(output, i) == (x == 1 ? y : x);
    }
    if (fits)
        return true;
    return mica_reject(check, "inputs %s and %s do not make output %s", mica_shape_text(a).text,
                       mica_shape_text(b).text, mica_shape_text(output).text);
}

/*
 * TensorFlow Lite adds integers at a scale of twice the larger input's, 20 bits finer, and
 * then rescales to the output's by a factor that must be below 1.
 */
static bool check_add_scales(struct mica_check *check)
{
    const struct mica_tensor *a = mica_check_input(check, 0), *b = mica_check_input(check, 1);
    const struct mica_tensor *output = mica_check_output(check, 0);
    if (!mica_is_integer(a->type))
        return true;
    double larger = fmax((double)a->quant.scale[0], (double)b->quant.scale[0]);
    double factor = 2 * larger / ((double)(1 << 20) * (double)output->quant.scale[0]);
    if (factor < 1)
        return true;
    return mica_reject(check, "the output's scale %g is too small for inputs of scale %g and %g",
                       (double)output->quant.scale[0], (double)a->quant.scale[0], (double)b->quant.scale[0]);
}

bool mica_rule_add(struct mica_check *check)
{
    if (!mica_check_io(check, 2, 2, 1) || !mica_check_in_out(check))
        return false;
    const struct mica_tensor *a = mica_check_input(check, 0), *b = mica_check_input(check, 1);
    if (!mica_check_number(check, b, "second input"))
        return false;
    if (a->type != b->type)
        return mica_reject(check, "inputs are %s and %s", mica_type_name(a->type), mica_type_name(b->type));
    return check_broadcast(check) && check_add_scales(check) && mica_check_activation(check, check->op->activation);
}

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

/* Equal in all dimensions but `axis`; int8 must be quantized alike, as TensorFlow Lite requires. */
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
    if (!mica_is_integer(input->type))
        return true;
    if (!mica_check_number(check, input, "input"))
        return false;
    if (input->type == MICA_TYPE_INT8)
        return mica_check_same_quantization(check, input, output);
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
    if (mica_is_integer(output->type) && !mica_check_number(check, output, "output"))
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

static bool check_constant(struct mica_check *check, const struct mica_tensor *tensor, const char *what,
                           uint64_t elements)
{
    if (!tensor->data || tensor->type != MICA_TYPE_INT32)
        return mica_reject(check, "the %s should be a constant int32 tensor", what);
    if (mica_elements(tensor) == elements)
        return true;
    return mica_reject(check, "shape %s of the %s should have %llu elements", mica_shape_text(tensor).text, what,
                       (unsigned long long)elements);
}

bool mica_rule_pad(struct mica_check *check)
{
    if (!mica_check_io(check, 2, 2, 1) || !mica_check_in_out(check))
        return false;
    const struct mica_tensor *input = mica_check_input(check, 0), *paddings = mica_check_input(check, 1);
    const struct mica_tensor *output = mica_check_output(check, 0);
    if (!check_constant(check, paddings, "paddings", 2 * (uint64_t)input->rank) ||
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
    return mica_check_same_quantization(check, input, output);
}

/* Beyond this the kernels' fixed-point coordinates (10 fraction bits) leave 32 bits. */
#define MAX_RESIZED 65536

static bool check_resize_size(struct mica_check *check, const struct mica_tensor *input,
                              const struct mica_tensor *output)
{
    const struct mica_tensor *size = mica_check_input(check, 1);
    if (!check_constant(check, size, "size", 2))
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
