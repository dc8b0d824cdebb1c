/* SPDX-License-Identifier: MIT */
/* CAST: numbers to another type as they are, quantization apart. */
#include <math.h>

#include "cpu/kernels.h"

int mica_cpu_check_cast(const struct mica_graph *graph, const struct mica_op *op, struct mica_cpu_reason *reason)
{
    int result = mica_cpu_check_operands(graph, op, 1, 1, reason);
    if (!result && mica_cpu_elements(mica_op_input(graph, op, 0)) != mica_cpu_elements(mica_op_output(graph, op, 0)))
        result = mica_cpu_refuse(reason, "input and output differ in size");
    return result;
}

static int64_t integer_at(enum mica_type type, const void *data, size_t i)
{
    switch (type) {
    case MICA_TYPE_INT32:
        return ((const int32_t *)data)[i];
    case MICA_TYPE_INT16:
        return ((const int16_t *)data)[i];
    case MICA_TYPE_INT8:
        return ((const int8_t *)data)[i];
    case MICA_TYPE_INT64:
        return ((const int64_t *)data)[i];
    default:
        return ((const uint8_t *)data)[i];
    }
}

/* The low bits, as conversions between integers take them. */
static void put_integer(enum mica_type type, void *data, size_t i, int64_t value)
{
    switch (type) {
    case MICA_TYPE_FLOAT32:
        ((float *)data)[i] = (float)value;
        break;
    case MICA_TYPE_INT32:
        ((int32_t *)data)[i] = (int32_t)(uint32_t)value;
        break;
    case MICA_TYPE_INT16:
        ((int16_t *)data)[i] = (int16_t)(uint16_t)value;
        break;
    case MICA_TYPE_INT64:
        ((int64_t *)data)[i] = value;
        break;
    case MICA_TYPE_BOOL:
        ((uint8_t *)data)[i] = value != 0;
        break;
    default:
        ((uint8_t *)data)[i] = (uint8_t)value;
        break;
    }
}

static void range_of(enum mica_type type, float *low, float *high)
{
    bool is_signed = type != MICA_TYPE_UINT8;
    int bits = (int)mica_type_size(type) * 8 - (is_signed ? 1 : 0);
    *low = is_signed ? -ldexpf(1, bits) : 0;
    *high = ldexpf(1, bits);
}

/* Towards zero; what the type can't hold, which C leaves open, becomes its nearest value, no number 0. */
static int64_t truncated(float value, enum mica_type type)
{
    float low, high;
    if (type == MICA_TYPE_BOOL)
        return value != 0;
    if (isnan(value))
        return 0;
    range_of(type, &low, &high);
    if (value <= low)
        return type == MICA_TYPE_INT64 ? INT64_MIN : (int64_t)low;
    if (value >= high)
        return type == MICA_TYPE_INT64 ? INT64_MAX : (int64_t)high - 1;
    return (int64_t)value;
}

int mica_cpu_cast(const struct mica_cpu_call *call)
{
    const struct mica_tensor *in = mica_cpu_input(call, 0), *out = mica_cpu_output(call, 0);
    const void *from = mica_cpu_input_data(call, 0);
    void *to = mica_cpu_output_data(call, 0);
    bool from_float = in->type == MICA_TYPE_FLOAT32, both = from_float && out->type == MICA_TYPE_FLOAT32;
    for (size_t i = 0; i < mica_cpu_elements(in); i++) {
        if (both)
            ((float *)to)[i] = ((const float *)from)[i];
        else
            put_integer(out->type, to, i,
                        from_float ? truncated(((const float *)from)[i], out->type) : integer_at(in->type, from, i));
    }
    return 0;
}
