/* SPDX-License-Identifier: MIT */
/* FULLY_CONNECTED: rows of inputs times the weights. */
#include <string.h>

#include "cpu/gemm.h"
#include "cpu/int16.h"

int mica_cpu_check_fully_connected(const struct mica_graph *graph, const struct mica_op *op,
                                   struct mica_cpu_reason *reason)
{
    int result = mica_cpu_check_operands(graph, op, 2, 1, reason);
    if (result)
        return result;
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *weights = mica_op_input(graph, op, 1);
    const struct mica_tensor *out = mica_op_output(graph, op, 0);
    if (weights->rank != 2)
        return mica_cpu_refuse(reason, "weights have rank %u, not 2", weights->rank);
    if ((size_t)weights->dims[1] > MICA_GEMM_MAX_TAPS)
        return mica_cpu_refuse(reason, "more than %zu weights for one output", MICA_GEMM_MAX_TAPS);
    size_t rows = mica_cpu_elements(in) / (size_t)weights->dims[1];
    if (rows * (size_t)weights->dims[1] != mica_cpu_elements(in) ||
        rows * (size_t)weights->dims[0] != mica_cpu_elements(out))
        return mica_cpu_refuse(reason, "weights do not fit input and output");
    result = mica_cpu_check_weighted(graph, op, weights->dims[0], 0, reason);
    return result ? result : mica_cpu_check_activation(op->activation, reason);
}

struct dense {
    const void *in;
    size_t taps, depth;
    uint8_t flip;
    int32_t zero_point;
};

static void pack(const void *user, size_t row, int16_t *out)
{
    const struct dense *dense = user;
    const uint8_t *in = dense->in;
    mica_gemm_widen(in + row * dense->taps, dense->taps, dense->flip, dense->zero_point, out);
    memset(out + dense->taps, 0, (dense->depth - dense->taps) * sizeof *out);
}

static void pack_float(const void *user, size_t row, float *out)
{
    const struct dense *dense = user;
    const float *in = dense->in;
    memcpy(out, in + row * dense->taps, dense->taps * sizeof *out);
}

static int run_float(const struct mica_cpu_call *call, const struct dense *dense, size_t rows, size_t columns)
{
    struct mica_gemm_float gemm = {
        .rows = rows,
        .columns = columns,
        .taps = dense->taps,
        .pack = pack_float,
        .user = dense,
        .weights = mica_cpu_input_data(call, 1),
        .bias = mica_cpu_input_data(call, 2),
        .output = mica_cpu_output_data(call, 0),
    };
    mica_activation_range(call->op->activation, &gemm.min, &gemm.max);
    return mica_gemm_float_run(&gemm, call->threads, call->log);
}

static int run_integer(const struct mica_cpu_call *call, struct dense *dense, size_t rows, size_t columns)
{
    const struct mica_tensor *in = mica_cpu_input(call, 0);
    struct mica_gemm gemm = {.rows = rows, .columns = columns, .pack = pack, .user = dense};
    dense->depth = mica_gemm_depth(dense->taps);
    dense->flip = mica_cpu_flip(in);
    dense->zero_point = mica_cpu_zero_point(in);
    return mica_gemm_run_call(&gemm, call, dense->taps, call->op->activation, MICA_TFLITE_ONCE);
}

int mica_cpu_fully_connected(const struct mica_cpu_call *call)
{
    const struct mica_tensor *in = mica_cpu_input(call, 0), *weights = mica_cpu_input(call, 1);
    if (in->type == MICA_TYPE_INT16)
        return mica_int16_fully_connected(call);
    size_t taps = (size_t)weights->dims[1], columns = (size_t)weights->dims[0];
    size_t rows = mica_cpu_elements(in) / taps;
    struct dense dense = {.in = mica_cpu_input_data(call, 0), .taps = taps};
    return in->type == MICA_TYPE_FLOAT32 ? run_float(call, &dense, rows, columns)
                                         : run_integer(call, &dense, rows, columns);
}
