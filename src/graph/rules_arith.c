/* SPDX-License-Identifier: MIT */
/* Operations on two tensors that broadcast: sums, products and their like, PRELU; and products of matrices. */
#include "graph/check.h"

#include <math.h>

static double scale_of(const struct mica_tensor *tensor)
{
    return (double)tensor->quant.scale[0];
}

/* ---- what the inputs may be ------------------------------------------- */

static bool takes_int32(enum mica_op_kind kind)
{
    return kind != MICA_OP_PRELU && kind != MICA_OP_BATCH_MATMUL;
}

static bool check_operand(struct mica_check *check, const struct mica_tensor *tensor, const char *what)
{
    if (tensor->type == MICA_TYPE_INT32 && takes_int32(check->op->kind))
        return true;
    return mica_check_number(check, tensor, what);
}

static bool check_operands(struct mica_check *check)
{
    const struct mica_tensor *a = mica_check_input(check, 0), *b = mica_check_input(check, 1);
    const struct mica_tensor *output = mica_check_output(check, 0);
    if (!check_operand(check, a, "input") || !check_operand(check, b, "second input") ||
        !check_operand(check, output, "output"))
        return false;
    if ((a->type == MICA_TYPE_FLOAT32) != (b->type == MICA_TYPE_FLOAT32) && (a->quant.count || b->quant.count))
        return mica_reject(check,
                           "inputs are %s and %s: hybrid operations (dynamic-range quantization) are not supported",
                           mica_type_name(a->type), mica_type_name(b->type));
    if (a->type != b->type)
        return mica_reject(check, "inputs are %s and %s", mica_type_name(a->type), mica_type_name(b->type));
    if (a->type != output->type)
        return mica_reject(check, "input is %s but output is %s", mica_type_name(a->type),
                           mica_type_name(output->type));
    return true;
}

static bool check_broadcast(struct mica_check *check)
{
    const struct mica_tensor *a = mica_check_input(check, 0), *b = mica_check_input(check, 1);
    const struct mica_tensor *output = mica_check_output(check, 0);
    bool fits = output->rank == (a->rank > b->rank ? a->rank : b->rank);
    for (uint32_t i = 0; fits && i < output->rank; i++) {
        int32_t x = mica_dim_from_end(a, i), y = mica_dim_from_end(b, i);
        fits = (x == y || x == 1 || y == 1) && mica_dim_from_end(output, i) == (x == 1 ? y : x);
    }
    if (fits)
        return true;
    return mica_reject(check, "inputs %s and %s do not make output %s", mica_shape_text(a).text,
                       mica_shape_text(b).text, mica_shape_text(output).text);
}

/* ---- how they are rescaled -------------------------------------------- */

/*
 * TensorFlow Lite adds, subtracts and squares integers at a scale of twice the larger input's, `bits` finer, and
 * then rescales to the output's by a factor that must be below 1.
 */
static bool check_common_scale(struct mica_check *check, bool squared, int bits)
{
    const struct mica_tensor *a = mica_check_input(check, 0), *b = mica_check_input(check, 1);
    const struct mica_tensor *output = mica_check_output(check, 0);
    double twice = 2 * fmax(scale_of(a), scale_of(b));
    double factor = (squared ? twice * twice : twice) / (ldexp(1, bits) * scale_of(output));
    if (factor < 1)
        return true;
    return mica_reject(check, "the output's scale %g is too small for inputs of scale %g and %g", scale_of(output),
                       scale_of(a), scale_of(b));
}

static bool check_scales(struct mica_check *check)
{
    const struct mica_tensor *a = mica_check_input(check, 0), *b = mica_check_input(check, 1);
    const struct mica_tensor *output = mica_check_output(check, 0);
    switch (check->op->kind) {
    case MICA_OP_ADD:
    case MICA_OP_SUB:
        return check_common_scale(check, false, 20);
    case MICA_OP_SQUARED_DIFFERENCE:
        return check_common_scale(check, true, 14);
    case MICA_OP_MUL:
        return mica_check_factor(check, scale_of(a) * scale_of(b) / scale_of(output));
    case MICA_OP_DIV:
        return mica_check_factor(check, scale_of(a) / (scale_of(b) * scale_of(output)));
    case MICA_OP_MAXIMUM:
    case MICA_OP_MINIMUM:
        return mica_check_same_quantization(check, a, output) && mica_check_same_quantization(check, b, output);
    default:
        return mica_reject(check, "type %s of the input is not supported", mica_type_name(a->type));
    }
}

static bool has_activation(enum mica_op_kind kind)
{
    return kind == MICA_OP_ADD || kind == MICA_OP_SUB || kind == MICA_OP_MUL || kind == MICA_OP_DIV;
}

/* ---- rules ------------------------------------------------------------ */

bool mica_rule_binary(struct mica_check *check)
{
    const struct mica_op *op = check->op;
    if (!mica_check_io(check, 2, 2, 1) || !check_operands(check) || !check_broadcast(check))
        return false;
    if (mica_is_integer(mica_check_input(check, 0)->type) && !check_scales(check))
        return false;
    return !has_activation(op->kind) || mica_check_activation(check, op->activation);
}

bool mica_rule_prelu(struct mica_check *check)
{
    if (!mica_check_io(check, 2, 2, 1) || !check_operands(check) || !check_broadcast(check))
        return false;
    const struct mica_tensor *input = mica_check_input(check, 0), *slopes = mica_check_input(check, 1);
    const struct mica_tensor *output = mica_check_output(check, 0);
    if (!slopes->data)
        return mica_reject(check, "the slopes should be constant");
    if (!mica_check_same_shape(check, input, output))
        return false;
    if (!mica_is_integer(input->type))
        return true;
    return mica_check_factor(check, scale_of(input) / scale_of(output)) &&
           mica_check_factor(check, scale_of(input) * scale_of(slopes) / scale_of(output));
}

/* Leading dimensions broadcast; the last two are matrices. */
static bool check_matrices(struct mica_check *check)
{
    const struct mica_tensor *x = mica_check_input(check, 0), *y = mica_check_input(check, 1);
    const struct mica_tensor *output = mica_check_output(check, 0);
    bool turn_x = check->op->matmul.adjoint_x, turn_y = check->op->matmul.adjoint_y;
    bool fits = x->rank >= 2 && y->rank >= 2 && output->rank == (x->rank > y->rank ? x->rank : y->rank);
    fits = fits && mica_dim_from_end(x, turn_x) == mica_dim_from_end(y, !turn_y) &&
           mica_dim_from_end(output, 1) == mica_dim_from_end(x, !turn_x) &&
           mica_dim_from_end(output, 0) == mica_dim_from_end(y, turn_y);
    for (uint32_t i = 2; fits && i < output->rank; i++) {
        int32_t a = mica_dim_from_end(x, i), b = mica_dim_from_end(y, i);
        fits = (a == b || a == 1 || b == 1) && mica_dim_from_end(output, i) == (a == 1 ? b : a);
    }
    if (fits)
        return true;
    return mica_reject(check, "matrices %s%s and %s%s do not make output %s", mica_shape_text(x).text,
                       turn_x ? " (transposed)" : "", mica_shape_text(y).text, turn_y ? " (transposed)" : "",
                       mica_shape_text(output).text);
}

bool mica_rule_matmul(struct mica_check *check)
{
    if (!mica_check_io(check, 2, 2, 1) || !check_operands(check) || !check_matrices(check))
        return false;
    const struct mica_tensor *x = mica_check_input(check, 0), *y = mica_check_input(check, 1);
    return !mica_is_integer(x->type) ||
           mica_check_factor(check, scale_of(x) * scale_of(y) / scale_of(mica_check_output(check, 0)));
}
