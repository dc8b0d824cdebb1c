/* SPDX-License-Identifier: MIT */
/* BATCH_MATMUL: products of matrices, whose leading dimensions broadcast. */
#include <string.h>

#include "cpu/gemm.h"
#include "util/checked.h"

static int32_t dim_from_end(const struct mica_tensor *tensor, uint32_t i)
{
    return i < tensor->rank ? tensor->dims[tensor->rank - 1 - i] : 1;
}

static int check_shapes(const struct mica_graph *graph, const struct mica_op *op, struct mica_cpu_reason *reason)
{
    const struct mica_tensor *x = mica_op_input(graph, op, 0), *y = mica_op_input(graph, op, 1);
    const struct mica_tensor *out = mica_op_output(graph, op, 0);
    bool turn_x = op->matmul.adjoint_x, turn_y = op->matmul.adjoint_y;
    bool fits = x->rank >= 2 && y->rank >= 2 && out->rank >= x->rank && out->rank >= y->rank &&
                dim_from_end(x, turn_x) == dim_from_end(y, !turn_y) &&
                dim_from_end(out, 1) == dim_from_end(x, !turn_x) && dim_from_end(out, 0) == dim_from_end(y, turn_y);
    for (uint32_t i = 2; fits && i < out->rank; i++) {
        int32_t a = dim_from_end(x, i), b = dim_from_end(y, i), c = dim_from_end(out, i);
        fits = (a == c || a == 1) && (b == c || b == 1);
    }
    if (!fits)
        return mica_cpu_refuse(reason, "the matrices' shapes don't fit the output's");
    if ((size_t)dim_from_end(x, turn_x) > MICA_GEMM_MAX_TAPS)
        return mica_cpu_refuse(reason, "more than %zu products for one output", MICA_GEMM_MAX_TAPS);
    return 0;
}

int mica_cpu_check_matmul(const struct mica_graph *graph, const struct mica_op *op, struct mica_cpu_reason *reason)
{
    static const char *const what[] = {"first input", "second input", "output"};
    int result = mica_cpu_check_operands(graph, op, 2, 1, reason);
    for (int i = 0; i < 3 && !result; i++) {
        const struct mica_tensor *tensor = i < 2 ? mica_op_input(graph, op, (uint32_t)i) : mica_op_output(graph, op, 0);
        result = mica_cpu_check_value(tensor, what[i], reason);
        if (!result && tensor->type != mica_op_input(graph, op, 0)->type)
            result = mica_cpu_refuse(reason, "inputs and output have different types");
        if (!result && tensor->type == MICA_TYPE_UINT8)
            result = mica_cpu_refuse(reason, "BATCH_MATMUL is not defined for uint8");
    }
    return result ? result : check_shapes(graph, op, reason);
}

struct product {
    size_t rows, columns, taps;
    bool turn_x, turn_y;
    /* Of this batch. */
    const void *x, *y;
    size_t depth;
    uint8_t flip;
    int32_t zero_point;
};

static void pack(const void *user, size_t row, int16_t *out)
{
    const struct product *p = user;
    const uint8_t *x = p->x;
    memset(out + p->taps, 0, (p->depth - p->taps) * sizeof *out);
    if (!p->turn_x)
        mica_gemm_widen(x + row * p->taps, p->taps, p->flip, p->zero_point, out);
    for (size_t i = 0; p->turn_x && i < p->taps; i++)
        out[i] = (int16_t)((x[i * p->rows + row] ^ p->flip) - p->zero_point);
}

static void pack_float(const void *user, size_t row, float *out)
{
    const struct product *p = user;
    const float *x = p->x;
    for (size_t i = 0; i < p->taps; i++)
        out[i] = p->turn_x ? x[i * p->rows + row] : x[row * p->taps + i];
}

/* The right side with the columns' taps side by side, as products want it. */
static void turn(const struct product *p, size_t size, uint8_t *out)
{
    const uint8_t *y = p->y;
    if (p->turn_y) {
        memcpy(out, y, p->columns * p->taps * size);
        return;
    }
    for (size_t tap = 0; tap < p->taps; tap++)
        for (size_t column = 0; column < p->columns; column++)
            memcpy(out + (column * p->taps + tap) * size, y + (tap * p->columns + column) * size, size);
}

static int run_float(const struct mica_cpu_call *call, struct product *p, const uint8_t *weights, size_t batch)
{
    struct mica_gemm_float gemm = {
        .rows = p->rows,
        .columns = p->columns,
        .taps = p->taps,
        .pack = pack_float,
        .user = p,
        .weights = (const float *)(const void *)weights,
        .output = (float *)mica_cpu_output_data(call, 0) + batch * p->rows * p->columns,
    };
    mica_activation_range(MICA_ACT_NONE, &gemm.min, &gemm.max);
    return mica_gemm_float_run(&gemm, call->threads, call->log);
}

static int run_integer(const struct mica_cpu_call *call, struct product *p, const uint8_t *weights, size_t batch,
                       const struct mica_requant *requant)
{
    const struct mica_tensor *x = mica_cpu_input(call, 0);
    struct mica_gemm gemm = {
        .rows = p->rows,
        .columns = p->columns,
        .pack = pack,
        .user = p,
        .requant = requant,
        .output = (uint8_t *)mica_cpu_output_data(call, 0) + batch * p->rows * p->columns,
    };
    p->depth = mica_gemm_depth(p->taps);
    p->flip = mica_cpu_flip(x);
    p->zero_point = mica_cpu_zero_point(x);
    return mica_gemm_run_part(&gemm, call, p->taps, mica_cpu_input(call, 1), weights);
}

/* Bytes before the matrix of `tensor` that goes into batch `batch` of the output. */
static size_t batch_offset(const struct mica_tensor *tensor, const struct mica_tensor *out, size_t batch)
{
    size_t offset = 0, stride = (size_t)dim_from_end(tensor, 0) * (size_t)dim_from_end(tensor, 1);
    for (uint32_t i = 2; i < out->rank; i++) {
        size_t size = (size_t)dim_from_end(out, i);
        offset += dim_from_end(tensor, i) == 1 ? 0 : batch % size * stride;
        stride *= (size_t)dim_from_end(tensor, i);
        batch /= size;
    }
    return offset * mica_type_size(tensor->type);
}

static int run_batches(const struct mica_cpu_call *call, struct product *p, uint8_t *weights,
                       const struct mica_requant *requant)
{
    const struct mica_tensor *x = mica_cpu_input(call, 0), *y = mica_cpu_input(call, 1),
                             *out = mica_cpu_output(call, 0);
    int result = 0;
    for (size_t batch = 0; batch < mica_cpu_elements(out) / (p->rows * p->columns) && !result; batch++) {
        p->x = (const uint8_t *)mica_cpu_input_data(call, 0) + batch_offset(x, out, batch);
        p->y = (const uint8_t *)mica_cpu_input_data(call, 1) + batch_offset(y, out, batch);
        turn(p, mica_type_size(y->type), weights);
        result = requant ? run_integer(call, p, weights, batch, requant) : run_float(call, p, weights, batch);
    }
    return result;
}

int mica_cpu_matmul(const struct mica_cpu_call *call)
{
    const struct mica_tensor *x = mica_cpu_input(call, 0), *out = mica_cpu_output(call, 0);
    struct product p = {.turn_x = call->op->matmul.adjoint_x, .turn_y = call->op->matmul.adjoint_y};
    bool is_float = out->type == MICA_TYPE_FLOAT32;
    struct mica_requant requant;
    p.rows = (size_t)dim_from_end(out, 1);
    p.columns = (size_t)dim_from_end(out, 0);
    p.taps = (size_t)dim_from_end(x, p.turn_x);
    /* No NPU runs it. */
    struct mica_cpu_call tflite = *call;
    tflite.arithmetic = MICA_ARITHMETIC_TFLITE;
    int result =
        is_float ? 0 : mica_requant_init(&requant, &tflite, MICA_ACT_NONE, p.columns, MICA_TFLITE_TWICE_SINGLE);
    if (result)
        return result;
    uint8_t *weights = mica_new_array(p.columns * p.taps, mica_type_size(x->type));
    result = weights ? run_batches(call, &p, weights, is_float ? NULL : &requant) : mica_fail_nomem(call->log);
    free(weights);
    if (!is_float)
        mica_requant_finish(&requant);
    return result;
}
