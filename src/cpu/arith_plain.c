/* SPDX-License-Identifier: MIT */
/* Arithmetic of two inputs that are not quantized: float32, int32, int64. */
#include <errno.h>
#include <math.h>

#include "cpu/arith.h"
#include "cpu/broadcast.h"

static float combine_float(const struct mica_arith *arith, float a, float b)
{
    switch (arith->kind) {
    case MICA_OP_SUB:
        return mica_clamp_float(a - b, arith->min, arith->max);
    case MICA_OP_MUL:
        return mica_clamp_float(a * b, arith->min, arith->max);
    case MICA_OP_DIV:
        return mica_clamp_float(a / b, arith->min, arith->max);
    case MICA_OP_FLOOR_DIV:
        return floorf(a / b);
    case MICA_OP_MAXIMUM:
        return a > b ? a : b;
    case MICA_OP_MINIMUM:
        return a < b ? a : b;
    case MICA_OP_SQUARED_DIFFERENCE:
        return (a - b) * (a - b);
    default:
        return mica_clamp_float(a + b, arith->min, arith->max);
    }
}

static void line_float(const void *user, const void *a, const void *b, void *out, size_t count, const size_t *steps)
{
    const float *left = a, *right = b;
    float *result = out;
    for (size_t i = 0; i < count; i++)
        result[i] = combine_float(user, left[i * steps[0]], right[i * steps[1]]);
}

/* Towards zero or down; the one quotient that does not fit wraps. */
static uint64_t quotient(int64_t a, int64_t b, bool down)
{
    if (b == -1)
        return -(uint64_t)a;
    return (uint64_t)(a / b - (down && a % b != 0 && (a < 0) != (b < 0)));
}

/* Modulo 2^64, which is modulo 2^32 for the narrow type as well. */
static uint64_t combine_integer(const struct mica_arith *arith, uint64_t a, uint64_t b)
{
    switch (arith->kind) {
    case MICA_OP_SUB:
        return a - b;
    case MICA_OP_MUL:
        return a * b;
    case MICA_OP_DIV:
        return quotient((int64_t)a, (int64_t)b, false);
    case MICA_OP_FLOOR_DIV:
        return quotient((int64_t)a, (int64_t)b, true);
    case MICA_OP_MAXIMUM:
        return (int64_t)a > (int64_t)b ? a : b;
    case MICA_OP_MINIMUM:
        return (int64_t)a < (int64_t)b ? a : b;
    case MICA_OP_SQUARED_DIFFERENCE:
        return (a - b) * (a - b);
    default:
        return a + b;
    }
}

/* Activations clamp integers as they are. */
static int64_t clamp_integer(const struct mica_arith *arith, int64_t value)
{
    if (arith->min > -FLT_MAX && value < (int64_t)arith->min)
        value = (int64_t)arith->min;
    return arith->max < FLT_MAX && value > (int64_t)arith->max ? (int64_t)arith->max : value;
}

static void line_int32(const void *user, const void *a, const void *b, void *out, size_t count, const size_t *steps)
{
    const int32_t *left = a, *right = b;
    int32_t *result = out;
    for (size_t i = 0; i < count; i++) {
        uint64_t value = combine_integer(user, (uint64_t)left[i * steps[0]], (uint64_t)right[i * steps[1]]);
        result[i] = (int32_t)clamp_integer(user, (int32_t)(uint32_t)value);
    }
}

static void line_int64(const void *user, const void *a, const void *b, void *out, size_t count, const size_t *steps)
{
    const int64_t *left = a, *right = b;
    int64_t *result = out;
    for (size_t i = 0; i < count; i++) {
        uint64_t value = combine_integer(user, (uint64_t)left[i * steps[0]], (uint64_t)right[i * steps[1]]);
        result[i] = clamp_integer(user, (int64_t)value);
    }
}

static bool has_zero(const struct mica_tensor *tensor, const void *data)
{
    for (size_t i = 0; i < mica_cpu_elements(tensor); i++)
        if (tensor->type == MICA_TYPE_INT32 ? ((const int32_t *)data)[i] == 0 : ((const int64_t *)data)[i] == 0)
            return true;
    return false;
}

int mica_arith_run_plain(const struct mica_arith *arith, const struct mica_cpu_call *call)
{
    const struct mica_tensor *second = mica_cpu_input(call, 1);
    bool divides = arith->kind == MICA_OP_DIV || arith->kind == MICA_OP_FLOOR_DIV;
    if (second->type == MICA_TYPE_FLOAT32)
        mica_broadcast_run(call, line_float, arith);
    else if (divides && has_zero(second, mica_cpu_input_data(call, 1)))
        return mica_fail(call->log, -EINVAL, "%s: the second input has a 0", call->op->type);
    else
        mica_broadcast_run(call, second->type == MICA_TYPE_INT32 ? line_int32 : line_int64, arith);
    return 0;
}
