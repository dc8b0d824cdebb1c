/* SPDX-License-Identifier: MIT */
/* SQUARED_DIFFERENCE of all pairs of codes. */
#include <errno.h>
#include <math.h>

#include "cpu/fixed.h"
#include "cpu/table.h"

/* TFLite keeps so many bits below half of the larger scale. */
#define BITS 7

static bool is_int8(const struct mica_tensor *tensor)
{
    return tensor && !tensor->problem && tensor->quant.count == 1 && tensor->type == MICA_TYPE_INT8;
}

static void scale_terms(const struct mica_tensor *in, double twice, int32_t terms[256])
{
    struct mica_multiplier m = mica_multiplier_tflite((double)in->quant.scale[0] / twice);
    for (int32_t code = INT8_MIN; code <= INT8_MAX; code++)
        terms[(uint8_t)code] = mica_scale_tflite((code - in->quant.zero_point[0]) * (1 << BITS), m.mantissa, m.shift);
}

int mica_cpu_squares(const struct mica_graph *graph, const struct mica_op *op, uint8_t table[MICA_CPU_PAIRS])
{
    const struct mica_tensor *a = mica_op_input(graph, op, 0), *b = mica_op_input(graph, op, 1);
    const struct mica_tensor *out = mica_op_output(graph, op, 0);
    int32_t terms[2][256];
    if (op->kind != MICA_OP_SQUARED_DIFFERENCE || !is_int8(a) || !is_int8(b) || !is_int8(out))
        return -ENOTSUP;
    double twice = 2 * (double)fmaxf(a->quant.scale[0], b->quant.scale[0]);
    struct mica_multiplier m =
        mica_multiplier_tflite(twice * twice / ((double)(1 << 2 * BITS) * (double)out->quant.scale[0]));
    scale_terms(a, twice, terms[0]);
    scale_terms(b, twice, terms[1]);
    for (uint32_t i = 0; i < MICA_CPU_PAIRS; i++) {
        int32_t difference = terms[0][i >> 8] - terms[1][i & 255];
        int32_t value = mica_scale_tflite(difference * difference, m.mantissa, m.shift) + out->quant.zero_point[0];
        table[i] = (uint8_t)mica_clamp_int(value, INT8_MIN, INT8_MAX);
    }
    return 0;
}
