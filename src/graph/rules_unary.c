/* SPDX-License-Identifier: MIT */
/* Operations that make one value from one; and those that make one from many: reductions, ARG_MAX. */
#include "graph/check.h"

#include <math.h>

/* ---- one from one ----------------------------------------------------- */

/* TensorFlow Lite fixes how an integer says -1..1. */
static bool check_tanh_output(struct mica_check *check, const struct mica_tensor *output)
{
    int32_t zero_point = output->type == MICA_TYPE_UINT8 ? 128 : 0;
    const float scale = 1.0f / 128;
    if (output->quant.zero_point[0] == zero_point && fabsf(output->quant.scale[0] - scale) <= 0.001f * scale)
        return true;
    return mica_reject(check, "the %s output should have scale 1/128 and zero point %d", mica_type_name(output->type),
                       zero_point);
}

/* TensorFlow Lite computes with 7 bits more than the input has, and can only scale down from there. */
static bool check_hard_swish(struct mica_check *check, double in, double out)
{
    if (in / 128 / out >= 1)
        return mica_reject(check, "the output's scale %g is too small for an input of scale %g", out, in);
    return mica_check_factor(check, in / 128 * 32768 / 3) && mica_check_factor(check, in / 128 / out);
}

static bool check_unary_scales(struct mica_check *check)
{
    const struct mica_op *op = check->op;
    const struct mica_tensor *input = mica_check_input(check, 0), *output = mica_check_output(check, 0);
    double in = (double)input->quant.scale[0], out = (double)output->quant.scale[0];
    switch (op->kind) {
    case MICA_OP_TANH:
        return check_tanh_output(check, output) && mica_check_factor(check, in);
    case MICA_OP_HARD_SWISH:
        return check_hard_swish(check, in, out);
    case MICA_OP_RSQRT:
        return mica_check_factor(check, 1 / (sqrt(in) * out));
    case MICA_OP_SQRT:
        return mica_check_factor(check, sqrt(in) / out);
    case MICA_OP_LEAKY_RELU:
        return mica_check_factor(check, in / out) &&
               (op->alpha == 0 || mica_check_factor(check, fabs((double)op->alpha) * in / out));
    default:
        return mica_check_factor(check, in / out);
    }
}

bool mica_rule_unary(struct mica_check *check)
{
    const struct mica_op *op = check->op;
    if (!mica_check_io(check, 1, 1, 1) || !mica_check_in_out(check))
        return false;
    const struct mica_tensor *input = mica_check_input(check, 0);
    if (!mica_check_same_shape(check, input, mica_check_output(check, 0)))
        return false;
    if (op->kind == MICA_OP_LEAKY_RELU && !isfinite(op->alpha))
        return mica_reject(check, "slope %g should be a number", (double)op->alpha);
    return !mica_is_integer(input->type) || check_unary_scales(check);
}

/* ---- one from many ---------------------------------------------------- */

/* What is left of `input` without the dimensions in `axes`; with `keep` they are 1. */
static bool check_reduced(struct mica_check *check, const struct mica_tensor *input, uint32_t axes, bool keep)
{
    const struct mica_tensor *output = mica_check_output(check, 0);
    uint32_t rank = 0;
    bool fits = true;
    for (uint32_t i = 0; fits && i < input->rank; i++) {
        bool reduced = axes >> i & 1;
        if (reduced && !keep)
            continue;
        fits = rank < output->rank && output->dims[rank] == (reduced ? 1 : input->dims[i]);
        rank++;
    }
    if (fits && rank == output->rank)
        return true;
    return mica_reject(check, "output %s does not fit input %s", mica_shape_text(output).text,
                       mica_shape_text(input).text);
}

/* So many bytes add up to 31 bits at most. */
#define MAX_SUMMANDS (1 << 23)

static bool check_reduce_scales(struct mica_check *check)
{
    const struct mica_tensor *input = mica_check_input(check, 0), *output = mica_check_output(check, 0);
    if (check->op->kind == MICA_OP_REDUCE_MAX || check->op->kind == MICA_OP_REDUCE_MIN)
        return mica_check_same_quantization(check, input, output);
    if (mica_elements(input) / mica_elements(output) > MAX_SUMMANDS)
        return mica_reject(check, "it adds up more than %d values", MAX_SUMMANDS);
    return mica_check_factor(check, (double)input->quant.scale[0] / (double)output->quant.scale[0]);
}

bool mica_rule_reduce(struct mica_check *check)
{
    struct mica_op *op = check->op;
    if (!mica_check_io(check, 2, 2, 1) || !mica_check_in_out(check))
        return false;
    const struct mica_tensor *input = mica_check_input(check, 0);
    return mica_check_axes(check, mica_check_input(check, 1), input, &op->axes) &&
           check_reduced(check, input, op->axes, op->keep_dims) &&
           (!mica_is_integer(input->type) || check_reduce_scales(check));
}

bool mica_rule_arg_max(struct mica_check *check)
{
    struct mica_op *op = check->op;
    if (!mica_check_io(check, 2, 2, 1))
        return false;
    const struct mica_tensor *input = mica_check_input(check, 0), *output = mica_check_output(check, 0);
    if (input->type != MICA_TYPE_FLOAT32 && !mica_is_integer(input->type))
        return mica_reject(check, "type %s of the input is not supported: uint8, int8 and float32 are",
                           mica_type_name(input->type));
    if (output->type != MICA_TYPE_INT32 && output->type != MICA_TYPE_INT64)
        return mica_reject(check, "the output is %s, not int32 or int64", mica_type_name(output->type));
    return mica_check_axis(check, mica_check_input(check, 1), input, &op->axis) &&
           check_reduced(check, input, 1u << op->axis, false);
}
