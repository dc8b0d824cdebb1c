/* SPDX-License-Identifier: MIT */
/*
 * Convolutions fused with the addition behind them, run on RK3588's simulator: near the exact sum of the clamped
 * convolution's real value, and within 1 of what TFLite makes in two steps.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"
#include "rig.h"

struct pair {
    struct rig rig;
    int32_t in, weights, bias, conv, addend, out;
    int32_t kernel, h, w, c, out_c;
    enum mica_activation conv_activation, activation;
    bool per_channel;
    bool first; /* the convolution's result is the addition's first operand */
};

#define MOST_CHANNELS 96

static struct spec result(struct pair *p, double scale)
{
    return rig_image(&p->rig, scale, p->h, p->w, p->out_c);
}

static int32_t new_bias(struct pair *p)
{
    int32_t values[MOST_CHANNELS];
    for (int32_t o = 0; o < p->out_c; o++)
        values[o] = rig_between(&p->rig, -9000, 9000);
    return rig_numbers(&p->rig, values, p->out_c);
}

static int32_t new_weights(struct pair *p)
{
    static float scales[MOST_CHANNELS];
    struct spec spec = rig_spec(&p->rig, 0.01, 4, p->out_c, p->kernel, p->kernel, p->c);
    if (p->per_channel) {
        for (int32_t o = 0; o < p->out_c; o++)
            scales[o] = (float)(0.01 * exp2(-rig_between(&p->rig, 0, 2000) / 1000.0));
        spec.scales = scales;
    }
    if (p->rig.type == MICA_TYPE_INT8)
        spec.zero_point = 0;
    return rig_constant(&p->rig, &spec);
}

/* A convolution that keeps the image's size, results that often saturate, and something to add. */
static void open_pair(struct pair *p, uint64_t seed, double finer)
{
    static const enum mica_activation activations[] = {MICA_ACT_NONE, MICA_ACT_NONE, MICA_ACT_RELU, MICA_ACT_RELU6,
                                                       MICA_ACT_RELU_N1_TO_1};
    struct rig *rig = &p->rig;
    rig_open(rig, &test_rk3588, seed);
    rig->fuse = true;
    p->kernel = rig_between(rig, 0, 2) ? 1 : 3;
    p->h = rig_between(rig, 3, 12);
    p->w = rig_between(rig, 4, 20);
    p->c = rig_channels(rig);
    p->out_c = 16 + rig_between(rig, 1, 16) + 32 * rig_between(rig, 0, 2);
    p->per_channel = rig->type == MICA_TYPE_INT8 && rig_between(rig, 0, 3);
    p->conv_activation = activations[rig_between(rig, 0, 4)];
    p->activation = activations[rig_between(rig, 0, 4)];
    p->first = rig_between(rig, 0, 1);
    struct spec image = rig_image(rig, 0.03, p->h, p->w, p->c), conv, addend, out;
    conv = result(p, 0.03 * 0.006 * 75 * 40 * p->kernel * sqrt(p->c) / 60 / finer);
    addend = result(p, (double)conv.scale);
    out = result(p, (double)conv.scale * 1.6);
    p->in = rig_input(rig, &image);
    p->addend = rig_input(rig, &addend);
    p->weights = new_weights(p);
    p->bias = new_bias(p);
    p->conv = net_tensor(&rig->net, &conv, NULL);
    p->out = rig_output(rig, &out);
    struct mica_op op = {.kind = MICA_OP_CONV_2D};
    int32_t pad = p->kernel / 2, inputs[] = {p->in, p->weights, p->bias};
    op.window = (struct mica_window){.stride_x = 1, .stride_y = 1, .dilation_x = 1, .dilation_y = 1};
    op.window.padding = (struct mica_padding){.left = pad, .right = pad, .top = pad, .bottom = pad};
    op.window.activation = p->conv_activation;
    rig_op(rig, op, "CONV_2D", inputs, 3, &p->conv, 1);
    int32_t operands[] = {p->first ? p->conv : p->addend, p->first ? p->addend : p->conv};
    struct mica_op add = {.kind = MICA_OP_ADD, .activation = p->activation};
    rig_op(rig, add, "ADD", operands, 2, &p->out, 1);
}

/* ---- the real value ------------------------------------------------------------- */

static const struct mica_tensor *tensor_of(const struct pair *p, int32_t tensor)
{
    return &p->rig.net.graph->tensors[tensor];
}

/* Within the type and the activation: bounds are whole steps. */
static double bounded(const struct mica_tensor *t, enum mica_activation activation, double real)
{
    double scale = (double)t->quant.scale[0], zero = t->quant.zero_point[0];
    double low = ((t->type == MICA_TYPE_INT8 ? -128 : 0) - zero) * scale, high = low + 255 * scale;
    if (activation == MICA_ACT_RELU || activation == MICA_ACT_RELU6)
        low = fmax(low, 0);
    if (activation == MICA_ACT_RELU6)
        high = fmin(high, round(6 / scale) * scale);
    if (activation == MICA_ACT_RELU_N1_TO_1) {
        low = fmax(low, round(-1 / scale) * scale);
        high = fmin(high, round(1 / scale) * scale);
    }
    return fmin(fmax(real, low), high);
}

static double convolve(const struct pair *p, int32_t y, int32_t x, int32_t o)
{
    const struct mica_tensor *in = tensor_of(p, p->in), *weights = tensor_of(p, p->weights);
    int32_t pad = p->kernel / 2, slice = weights->quant.count > 1 ? o : 0;
    int64_t sum = ((const int32_t *)tensor_of(p, p->bias)->data)[o];
    for (int32_t ky = 0; ky < p->kernel; ky++)
        for (int32_t kx = 0; kx < p->kernel; kx++)
            for (int32_t c = 0; c < p->c; c++) {
                int32_t row = y + ky - pad, column = x + kx - pad;
                if (row < 0 || row >= p->h || column < 0 || column >= p->w)
                    continue;
                size_t at = ((size_t)(o * p->kernel + ky) * (size_t)p->kernel + (size_t)kx) * (size_t)p->c + (size_t)c;
                sum += (int64_t)(rig_pixel(&p->rig, p->in, row, column, c) - in->quant.zero_point[0]) *
                       (rig_value(&p->rig, p->weights, at) - weights->quant.zero_point[slice]);
            }
    return (double)sum * (double)in->quant.scale[0] * (double)weights->quant.scale[slice];
}

/* What the task may be off before its last rounding: a few roundings of 15-bit factors. */
#define EXACT 0.56

static void check_real(const struct pair *p)
{
    for (int32_t y = 0; y < p->h; y++)
        for (int32_t x = 0; x < p->w; x++)
            for (int32_t o = 0; o < p->out_c; o++) {
                double real = bounded(tensor_of(p, p->conv), p->conv_activation, convolve(p, y, x, o));
                real += rig_real(&p->rig, p->addend, y, x, o);
                rig_check(&p->rig, p->out, y, x, o, bounded(tensor_of(p, p->out), p->activation, real), EXACT);
            }
}

/* ---- the reference -------------------------------------------------------------- */

static void check_reference(struct pair *p)
{
    struct mica_cpu_options options = {.arithmetic = MICA_ARITHMETIC_TFLITE};
    struct rig *rig = &p->rig;
    size_t size = tensor_of(p, p->out)->bytes;
    void *values[RIG_TENSORS];
    for (uint32_t i = 0; i < rig->net.graph->tensor_count; i++)
        values[i] = rig->data[i] ? rig->data[i] : (void *)rig->net.graph->tensors[i].data;
    values[p->conv] = malloc(size);
    values[p->out] = malloc(size);
    assert_true(values[p->conv] && values[p->out]);
    for (uint32_t op = 0; op < 2; op++)
        if (mica_cpu_run(rig->net.graph, op, values, &options, &rig->net.log))
            fail_msg("%s", rig->net.log.last_error);
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = ((uint8_t *)values[p->out])[i];
        int32_t expected = rig->type == MICA_TYPE_INT8 ? (int8_t)byte : byte;
        int32_t distance = abs(rig_value(rig, p->out, i) - expected);
        if (distance > 1)
            fail_msg("byte %zu: %d instead of %d", i, rig_value(rig, p->out, i), expected);
    }
    free(values[p->conv]);
    free(values[p->out]);
}

/* ---- tests ---------------------------------------------------------------------- */

#define PAIRS 60

static void sums_are_within_one(void **state)
{
    (void)state;
    uint32_t fused = 0;
    for (uint64_t seed = 1; seed <= PAIRS; seed++) {
        struct pair p = {0};
        open_pair(&p, seed, seed % 4 ? 1 : 3);
        if (!rig_run(&p.rig))
            fail_msg("pair %u: %s", (unsigned)seed, p.rig.reason);
        if (p.rig.fused) { /* others are tested one by one, and two steps are off by one each */
            check_reference(&p);
            check_real(&p);
            fused++;
        }
        rig_close(&p.rig);
    }
    print_message("%u of %u pairs are one task\n", fused, PAIRS);
    assert_true(fused > PAIRS / 2);
}

/* A step of the convolution that is large beside one of the sum: what the reference rounds away would show. */
static void coarse_convolutions_stay_alone(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct pair p = {0};
        open_pair(&p, seed, 0.02);
        struct mica_tensor *out = &p.rig.net.graph->tensors[p.out];
        ((float *)out->quant.scale)[0] = (float)((double)tensor_of(&p, p.conv)->quant.scale[0] / 3);
        if (rig_run(&p.rig))
            assert_false(p.rig.fused);
        rig_close(&p.rig);
    }
}

/* Somebody else wants the convolution's result: it has to be there. */
static void shared_results_are_not_fused(void **state)
{
    (void)state;
    struct pair p = {0};
    open_pair(&p, 3, 1);
    p.rig.data[p.conv] = malloc(tensor_of(&p, p.conv)->bytes);
    assert_non_null(p.rig.data[p.conv]);
    p.rig.outputs[p.rig.output_count++] = p.conv;
    assert_true(rig_run(&p.rig));
    assert_false(p.rig.fused);
    rig_close(&p.rig);
}

static void nothing_is_fused_unasked(void **state)
{
    (void)state;
    struct pair p = {0};
    open_pair(&p, 3, 1);
    p.rig.fuse = false;
    assert_true(rig_run(&p.rig));
    assert_false(p.rig.fused);
    rig_close(&p.rig);
}

static void rk356x_fuses_nothing(void **state)
{
    (void)state;
    struct pair p = {0};
    open_pair(&p, 3, 1);
    p.rig.chip = &test_rk3566;
    assert_true(rig_run(&p.rig));
    assert_false(p.rig.fused);
    rig_close(&p.rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_within_one),          cmocka_unit_test(coarse_convolutions_stay_alone),
        cmocka_unit_test(shared_results_are_not_fused), cmocka_unit_test(nothing_is_fused_unasked),
        cmocka_unit_test(rk356x_fuses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
