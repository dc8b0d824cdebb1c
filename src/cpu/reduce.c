/* SPDX-License-Identifier: MIT */
/* MEAN, SUM, REDUCE_MAX, REDUCE_MIN over any dimensions, and ARG_MAX over one. */
#include <float.h>
#include <stdatomic.h>
#include <string.h>

#include "cpu/requant.h"
#include "cpu/rockchip.h"
#include "cpu/simd.h"
#include "util/checked.h"

/* One of the values, rather than something computed of all. */
static bool picks(enum mica_op_kind kind)
{
    return kind == MICA_OP_REDUCE_MAX || kind == MICA_OP_REDUCE_MIN;
}

int mica_cpu_check_reduce(const struct mica_graph *graph, const struct mica_op *op, struct mica_cpu_reason *reason)
{
    int result = mica_cpu_check_operands(graph, op, 1, 1, reason);
    if (result)
        return result;
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *out = mica_op_output(graph, op, 0);
    result = mica_cpu_check_value(in, "input", reason);
    if (!result)
        result = mica_cpu_check_value(out, "output", reason);
    if (result)
        return result;
    if (in->type != out->type)
        return mica_cpu_refuse(reason, "input and output have different types");
    size_t kept = 1;
    for (uint32_t i = 0; i < in->rank; i++)
        kept *= op->axes >> i & 1 ? 1 : (size_t)in->dims[i];
    if (kept != mica_cpu_elements(out))
        return mica_cpu_refuse(reason, "input and axes don't fit the output");
    if (picks(op->kind) && in->type != MICA_TYPE_FLOAT32 && !mica_cpu_same_quantization(in, out))
        return mica_cpu_refuse(reason, "input and output are quantized differently");
    return 0;
}

/* Neighbouring dimensions that are all kept or all reduced. */
struct group {
    size_t count, out_stride; /* out_stride: 0 where reduced */
    size_t in_stride;
};

struct reduce {
    enum mica_op_kind kind;
    struct group groups[MICA_MAX_RANK + 1];
    uint32_t group_count;
    uint8_t flip;
    const void *in;
    /* Sums or extremes so far, one for each output; 8-bit values in the unsigned domain. */
    int32_t *totals;
    float *floats;
};

static void set_groups(struct reduce *reduce, const struct mica_tensor *in, uint32_t axes)
{
    size_t in_stride = 1, out_stride = 1;
    struct group reversed[MICA_MAX_RANK + 1];
    uint32_t count = 0;
    for (uint32_t i = in->rank; i-- > 0;) {
        bool reduced = axes >> i & 1;
        size_t size = (size_t)in->dims[i];
        if (size == 1)
            continue;
        if (count && (reversed[count - 1].out_stride == 0) == reduced)
            reversed[count - 1].count *= size;
        else
            reversed[count++] = (struct group){size, reduced ? 0 : out_stride, in_stride};
        in_stride *= size;
        out_stride *= reduced ? 1 : size;
    }
    if (!count)
        reversed[count++] = (struct group){1, 1, 1};
    for (uint32_t i = 0; i < count; i++)
        reduce->groups[i] = reversed[count - 1 - i];
    reduce->group_count = count;
}

MICA_INLINE void take_bytes_body(const struct reduce *reduce, const uint8_t *in, size_t count, bool along,
                                 int32_t *totals)
{
    const uint8_t flip = reduce->flip;
    if (reduce->kind == MICA_OP_REDUCE_MAX) {
        for (size_t i = 0; i < count; i++) {
            int32_t *total = totals + (along ? 0 : i);
            *total = *total > (in[i] ^ flip) ? *total : in[i] ^ flip;
        }
    } else if (reduce->kind == MICA_OP_REDUCE_MIN) {
        for (size_t i = 0; i < count; i++) {
            int32_t *total = totals + (along ? 0 : i);
            *total = *total < (in[i] ^ flip) ? *total : in[i] ^ flip;
        }
    } else if (along) {
        int32_t sum = 0;
        for (size_t i = 0; i < count; i++)
            sum += in[i] ^ flip;
        *totals = (int32_t)((uint32_t)*totals + (uint32_t)sum);
    } else {
        for (size_t i = 0; i < count; i++)
            totals[i] = (int32_t)((uint32_t)totals[i] + (in[i] ^ flip));
    }
}

MICA_CPU_WIDE(take_bytes, (const struct reduce *reduce, const uint8_t *in, size_t count, bool along, int32_t *totals),
              (reduce, in, count, along, totals))

static void take_floats(const struct reduce *reduce, const float *in, size_t count, bool along, float *totals)
{
    for (size_t i = 0; i < count; i++) {
        float *total = totals + (along ? 0 : i);
        *total = reduce->kind == MICA_OP_REDUCE_MAX   ? (*total < in[i] ? in[i] : *total)
                 : reduce->kind == MICA_OP_REDUCE_MIN ? (in[i] < *total ? in[i] : *total)
                                                      : *total + in[i];
    }
}

/* Every element of groups [first, ...) in order, so that float sums are TFLite's. */
static void take(const struct reduce *reduce, uint32_t first, size_t in, size_t out)
{
    const struct group *group = &reduce->groups[first];
    if (first + 1 < reduce->group_count) {
        for (size_t i = 0; i < group->count; i++)
            take(reduce, first + 1, in + i * group->in_stride, out + i * group->out_stride);
    } else if (reduce->floats) {
        take_floats(reduce, (const float *)reduce->in + in, group->count, !group->out_stride, reduce->floats + out);
    } else {
        take_bytes(reduce, (const uint8_t *)reduce->in + in, group->count, !group->out_stride, reduce->totals + out);
    }
}

static void run_first(void *user, size_t index)
{
    const struct reduce *reduce = user;
    take(reduce, 1, index * reduce->groups[0].in_stride, index * reduce->groups[0].out_stride);
}

/* Outputs of different elements of a kept first group are different ones. */
static void take_all(const struct reduce *reduce, struct mica_threads *threads)
{
    if (reduce->group_count > 1 && reduce->groups[0].out_stride)
        mica_parallel_for(threads, reduce->groups[0].count, run_first, (void *)(uintptr_t)reduce);
    else
        take(reduce, 0, 0, 0);
}

/*
 * The factor of a sum of values without zero points. For a mean TFLite divides
 * the mantissa by their number, after shifting it up as far as the number has bits.
 */
static struct mica_multiplier multiplier_of(const struct mica_cpu_call *call, size_t summands)
{
    const struct mica_tensor *in = mica_cpu_input(call, 0), *out = mica_cpu_output(call, 0);
    struct mica_multiplier m = mica_multiplier_tflite((double)in->quant.scale[0] / (double)out->quant.scale[0]);
    if (mica_is_rockchip(call->arithmetic)) { /* a sum is so many times the mean */
        double times = call->op->kind == MICA_OP_SUM ? (double)summands : 1;
        return mica_multiplier_rockchip(1.0 / (double)summands *
                                        ((double)in->quant.scale[0] / (double)out->quant.scale[0] * times));
    }
    if (call->op->kind == MICA_OP_SUM)
        return m;
    int32_t shift = 63 - __builtin_clzll(summands);
    if (shift > 31 + m.shift)
        shift = 31 + m.shift;
    m.mantissa = (int32_t)(((int64_t)m.mantissa << shift) / (int64_t)summands);
    m.shift -= shift;
    return m;
}

static void finish_bytes(const struct mica_cpu_call *call, const struct reduce *reduce)
{
    const struct mica_tensor *in = mica_cpu_input(call, 0), *out = mica_cpu_output(call, 0);
    uint8_t *to = mica_cpu_output_data(call, 0);
    size_t summands = mica_cpu_elements(in) / out->bytes;
    uint32_t zeros = (uint32_t)mica_cpu_zero_point(in) * (uint32_t)summands;
    struct mica_multiplier m = multiplier_of(call, summands);
    struct mica_requant requant;
    bool rockchip = mica_is_rockchip(call->arithmetic) && !picks(reduce->kind);
    mica_requant_set_output(&requant, rockchip ? call->arithmetic : MICA_ARITHMETIC_TFLITE, out, MICA_ACT_NONE);
    for (size_t i = 0; i < out->bytes; i++) {
        if (picks(reduce->kind))
            to[i] = (uint8_t)reduce->totals[i] ^ reduce->flip;
        else
            to[i] = mica_requant_value(&requant, (int32_t)((uint32_t)reduce->totals[i] - zeros), m.mantissa, m.shift);
    }
}

static int run_bytes(const struct mica_cpu_call *call, struct reduce *reduce)
{
    size_t outputs = mica_cpu_elements(mica_cpu_output(call, 0));
    reduce->flip = mica_cpu_flip(mica_cpu_input(call, 0));
    reduce->totals = mica_new_array(outputs, sizeof *reduce->totals);
    if (!reduce->totals)
        return mica_fail_nomem(call->log);
    for (size_t i = 0; reduce->kind == MICA_OP_REDUCE_MIN && i < outputs; i++)
        reduce->totals[i] = UINT8_MAX;
    take_all(reduce, call->threads);
    finish_bytes(call, reduce);
    free(reduce->totals);
    return 0;
}

int mica_cpu_reduce(const struct mica_cpu_call *call)
{
    const struct mica_tensor *in = mica_cpu_input(call, 0), *out = mica_cpu_output(call, 0);
    struct reduce reduce = {.kind = call->op->kind, .in = mica_cpu_input_data(call, 0)};
    set_groups(&reduce, in, call->op->axes);
    if (in->type != MICA_TYPE_FLOAT32)
        return run_bytes(call, &reduce);
    size_t outputs = mica_cpu_elements(out);
    float summands = (float)(mica_cpu_elements(in) / outputs);
    reduce.floats = mica_cpu_output_data(call, 0);
    for (size_t i = 0; i < outputs; i++)
        reduce.floats[i] = reduce.kind == MICA_OP_REDUCE_MAX   ? -FLT_MAX
                           : reduce.kind == MICA_OP_REDUCE_MIN ? FLT_MAX
                                                               : 0;
    take_all(&reduce, call->threads);
    for (size_t i = 0; reduce.kind == MICA_OP_MEAN && i < outputs; i++)
        reduce.floats[i] /= summands;
    return 0;
}

/* ---- ARG_MAX ------------------------------------------------------------------- */

int mica_cpu_check_arg_max(const struct mica_graph *graph, const struct mica_op *op, struct mica_cpu_reason *reason)
{
    int result = mica_cpu_check_operands(graph, op, 1, 1, reason);
    if (result)
        return result;
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *out = mica_op_output(graph, op, 0);
    if (in->type != MICA_TYPE_FLOAT32 && !mica_cpu_is_8bit(in))
        return mica_cpu_refuse(reason, "input is %s, the CPU kernel takes float32, uint8 and int8",
                               mica_type_name(in->type));
    if (out->type != MICA_TYPE_INT32 && out->type != MICA_TYPE_INT64)
        return mica_cpu_refuse(reason, "the output is %s, not int32 or int64", mica_type_name(out->type));
    if (op->axis < 0 || (uint32_t)op->axis >= in->rank)
        return mica_cpu_refuse(reason, "axis %d is out of range", op->axis);
    if (mica_cpu_elements(out) * (size_t)in->dims[op->axis] != mica_cpu_elements(in))
        return mica_cpu_refuse(reason, "input and axis don't fit the output");
    return 0;
}

struct arg_max {
    enum mica_type type;
    uint8_t flip;
    const void *in;
    void *out;
    bool wide; /* int64 */
    size_t along, inner;
};

static bool larger(const struct arg_max *a, size_t left, size_t right)
{
    if (a->type == MICA_TYPE_FLOAT32)
        return ((const float *)a->in)[left] > ((const float *)a->in)[right];
    return (((const uint8_t *)a->in)[left] ^ a->flip) > (((const uint8_t *)a->in)[right] ^ a->flip);
}

/* The first of the largest, as in TFLite. */
static void arg_max_outer(void *user, size_t outer)
{
    const struct arg_max *a = user;
    for (size_t i = 0; i < a->inner; i++) {
        size_t first = outer * a->along * a->inner + i, best = 0;
        for (size_t j = 1; j < a->along; j++)
            if (larger(a, first + j * a->inner, first + best * a->inner))
                best = j;
        if (a->wide)
            ((int64_t *)a->out)[outer * a->inner + i] = (int64_t)best;
        else
            ((int32_t *)a->out)[outer * a->inner + i] = (int32_t)best;
    }
}

int mica_cpu_arg_max(const struct mica_cpu_call *call)
{
    const struct mica_tensor *in = mica_cpu_input(call, 0), *out = mica_cpu_output(call, 0);
    struct arg_max a = {.type = in->type,
                        .flip = mica_cpu_flip(in),
                        .in = mica_cpu_input_data(call, 0),
                        .out = mica_cpu_output_data(call, 0),
                        .wide = out->type == MICA_TYPE_INT64,
                        .along = (size_t)in->dims[call->op->axis],
                        .inner = 1};
    for (uint32_t i = (uint32_t)call->op->axis + 1; i < in->rank; i++)
        a.inner *= (size_t)in->dims[i];
    mica_parallel_for(call->threads, mica_cpu_elements(out) / a.inner, arg_max_outer, &a);
    return 0;
}
