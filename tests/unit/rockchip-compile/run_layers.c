/* SPDX-License-Identifier: MIT */
/*
 * Random layers with weights, compiled, run on a simulated chip and compared with the same sum in real numbers.
 *
 *     run_layers CHIP [first seed [count]]
 */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_VALUES 60000 /* of one tensor */
#define MAX_WEIGHTS 60000

enum kind { CONV, DEPTHWISE, FULLY_CONNECTED, TRANSPOSED, KINDS };

/* One layer as its operation defines it, in numbers of the file. */
struct layer {
    enum kind kind;
    enum mica_type type;
    int32_t w, h, c, out_w, out_h, out_c, kernel_w, kernel_h, stride_x, stride_y, dilation_x, dilation_y, left, top;
    int32_t right, bottom;
    int32_t in_zero, out_zero, weight_zero;
    float in_scale, out_scale;
    float *weight_scale; /* one, or out_c */
    bool per_channel;
    uint8_t *weights, *in, *out;
    int32_t *bias; /* or NULL */
    enum mica_activation activation;
};

static int32_t any_zero(struct random *random, enum mica_type type)
{
    int32_t zero = random_below(random, 3) ? random_between(random, 0, 255) : random_below(random, 2) ? 0 : 128;
    return type == MICA_TYPE_INT8 ? zero - 128 : zero;
}

static float any_scale(struct random *random, double around)
{
    return (float)(around * exp2(random_between(random, -1000, 1000) / 1000.0));
}

/* ---- shapes ---------------------------------------------------------------------------- */

static int32_t any_size(struct random *random)
{
    switch (random_below(random, 8)) {
    case 0:
        return random_between(random, 1, 3);
    case 1:
        return random_between(random, 100, 400);
    default:
        return random_between(random, 4, 30);
    }
}

static int32_t any_channels(struct random *random)
{
    static const int32_t sizes[] = {1, 2, 3, 4, 8, 15, 16, 17, 24, 31, 32, 33, 48, 64, 65, 96, 128, 200, 513};
    return random_below(random, 3) ? sizes[random_below(random, 19)] : random_between(random, 1, 130);
}

static void any_window(struct random *random, struct layer *l)
{
    bool square = random_below(random, 3) > 0;
    l->kernel_w = random_below(random, 8) ? random_between(random, 1, 4) : random_between(random, 1, 31);
    l->kernel_h = square ? l->kernel_w : random_between(random, 1, 6);
    l->stride_x = random_below(random, 2) ? 1 : random_between(random, 1, 4);
    l->stride_y = random_below(random, 3) ? l->stride_x : random_between(random, 1, 7);
    bool dilated = random_below(random, 5) == 0;
    l->dilation_x = dilated ? random_between(random, 1, 4) : 1;
    l->dilation_y = dilated ? random_between(random, 1, 4) : 1;
}

static int32_t extent(int32_t kernel, int32_t dilation)
{
    return (kernel - 1) * dilation + 1;
}

static bool fit_axis(struct random *random, unsigned mode, int32_t size, int32_t reach, int32_t stride, int32_t *before,
                     int32_t *after, int32_t *out)
{
    *before = *after = 0;
    if (mode == 0) {
        *before = mica_same_padding(size, reach, stride, 1, after);
    } else if (mode == 1) {
        *before = random_between(random, 0, reach - 1 < 15 ? reach - 1 : 15);
        *after = random_between(random, 0, reach - 1 < 15 ? reach - 1 : 15);
    }
    int32_t room = size + *before + *after - reach;
    *out = room / stride + 1;
    return room >= 0 && *before <= 15;
}

static bool shape_window(struct random *random, struct layer *l)
{
    unsigned mode = random_below(random, 3);
    any_window(random, l);
    l->w = any_size(random);
    l->h = any_size(random);
    l->c = any_channels(random);
    l->out_c = l->kind == DEPTHWISE ? l->c * (random_below(random, 4) ? 1 : random_between(random, 1, 3))
                                    : any_channels(random);
    return fit_axis(random, mode, l->w, extent(l->kernel_w, l->dilation_x), l->stride_x, &l->left, &l->right,
                    &l->out_w) &&
           fit_axis(random, mode, l->h, extent(l->kernel_h, l->dilation_y), l->stride_y, &l->top, &l->bottom,
                    &l->out_h);
}

static bool shape_transposed(struct random *random, struct layer *l)
{
    l->w = random_between(random, 1, 24);
    l->h = random_between(random, 1, 24);
    l->c = any_channels(random);
    l->out_c = any_channels(random);
    l->kernel_w = random_between(random, 1, 5);
    l->kernel_h = random_between(random, 1, 5);
    l->stride_x = 1 << random_below(random, 3);
    l->stride_y = 1 << random_below(random, 3);
    l->dilation_x = l->dilation_y = 1;
    bool same = random_below(random, 2);
    l->out_w = same ? l->w * l->stride_x : (l->w - 1) * l->stride_x + l->kernel_w;
    l->out_h = same ? l->h * l->stride_y : (l->h - 1) * l->stride_y + l->kernel_h;
    if (same) { /* padding of the convolution from the output to the input */
        l->left = mica_same_padding(l->out_w, l->kernel_w, l->stride_x, 1, &l->right);
        l->top = mica_same_padding(l->out_h, l->kernel_h, l->stride_y, 1, &l->bottom);
    }
    return true;
}

static bool shape_rows(struct random *random, struct layer *l)
{
    l->w = l->out_w = random_below(random, 2) ? 1 : random_between(random, 1, 9);
    l->h = l->out_h = 1;
    l->c = random_below(random, 2) ? any_channels(random) : random_between(random, 1, 2000);
    l->out_c = any_channels(random);
    l->kernel_w = l->kernel_h = l->stride_x = l->stride_y = l->dilation_x = l->dilation_y = 1;
    return true;
}

static size_t in_count(const struct layer *l)
{
    return (size_t)l->w * l->h * l->c;
}

static size_t out_count(const struct layer *l)
{
    return (size_t)l->out_w * l->out_h * l->out_c;
}

static size_t weight_count(const struct layer *l)
{
    return (size_t)l->kernel_w * l->kernel_h * l->out_c * (l->kind == DEPTHWISE ? 1 : l->c);
}

static bool any_shape(struct random *random, struct layer *l)
{
    l->left = l->right = l->top = l->bottom = 0;
    bool fits = l->kind == FULLY_CONNECTED ? shape_rows(random, l)
                : l->kind == TRANSPOSED    ? shape_transposed(random, l)
                                           : shape_window(random, l);
    double macs = (double)out_count(l) * l->kernel_w * l->kernel_h * (l->kind == DEPTHWISE ? 1 : l->c);
    return fits && in_count(l) <= 4 * MAX_VALUES && out_count(l) <= MAX_VALUES && weight_count(l) <= MAX_WEIGHTS &&
           macs < 3e7;
}

/* ---- contents ---------------------------------------------------------------------------- */

static void fill(struct random *random, struct layer *l)
{
    static const enum mica_activation activations[] = {MICA_ACT_NONE, MICA_ACT_NONE, MICA_ACT_RELU, MICA_ACT_RELU6,
                                                       MICA_ACT_RELU_N1_TO_1};
    l->in = malloc(in_count(l));
    l->out = malloc(out_count(l));
    l->weights = malloc(weight_count(l));
    l->weight_scale = malloc((size_t)l->out_c * sizeof(float));
    l->bias = random_below(random, 6) ? malloc((size_t)l->out_c * sizeof(int32_t)) : NULL;
    assert_true(l->in && l->out && l->weights && l->weight_scale);
    random_bytes(random, l->in, in_count(l));
    random_bytes(random, l->weights, weight_count(l));
    l->in_zero = any_zero(random, l->type);
    l->out_zero = any_zero(random, l->type);
    l->weight_zero = l->type == MICA_TYPE_INT8 ? 0 : any_zero(random, l->type);
    l->per_channel = l->type == MICA_TYPE_INT8 && random_below(random, 3) > 0;
    l->in_scale = any_scale(random, 0.05);
    double span = random_below(random, 3) ? 1 : random_below(random, 2) ? 6 : random_between(random, 8, 24);
    for (int32_t o = 0; o < l->out_c; o++)
        l->weight_scale[o] = (float)(0.01 * exp2(-span * random_below(random, 1000) / 1000.0));
    double terms = (double)weight_count(l) / l->out_c;
    l->out_scale = any_scale(random, (double)l->in_scale * 0.008 * 75 * 75 * sqrt(terms) / 60);
    if (random_below(random, 12) == 0) /* far too fine */
        l->out_scale /= 500;
    for (int32_t o = 0; l->bias && o < l->out_c; o++)
        l->bias[o] = random_between(random, -20000, 20000);
    for (int32_t o = 0; l->bias && l->per_channel && span > 6 && o < l->out_c; o++) /* small scales count by it */
        l->bias[o] =
            (int32_t)(random_between(random, -40, 40) * fmin(l->out_scale / (l->in_scale * l->weight_scale[o]), 2e7));
    l->activation = activations[random_below(random, 5)];
}

static void release(struct layer *l)
{
    free(l->in);
    free(l->out);
    free(l->weights);
    free(l->weight_scale);
    free(l->bias);
}

/* ---- graph ------------------------------------------------------------------------------- */

static int32_t add_image(struct net *net, const struct layer *l, int32_t w, int32_t h, int32_t c, float scale,
                         int32_t zero)
{
    struct spec spec = {.type = l->type, .scale = scale, .zero_point = zero, .rank = 4, .dims = {1, h, w, c}};
    if (l->kind == FULLY_CONNECTED) {
        spec.rank = 2;
        spec.dims[0] = w;
        spec.dims[1] = c;
    }
    return net_tensor(net, &spec, NULL);
}

static int32_t add_weights(struct net *net, const struct layer *l)
{
    struct spec spec = {.type = l->type, .scale = l->weight_scale[0], .zero_point = l->weight_zero, .rank = 4};
    if (l->per_channel)
        spec.scales = l->weight_scale;
    if (l->kind == FULLY_CONNECTED) {
        spec.rank = 2;
        spec.dims[0] = l->out_c;
        spec.dims[1] = l->c;
    } else {
        bool depthwise = l->kind == DEPTHWISE;
        int32_t dims[] = {depthwise ? 1 : l->out_c, l->kernel_h, l->kernel_w, depthwise ? l->out_c : l->c};
        memcpy(spec.dims, dims, sizeof(dims));
        spec.axis = depthwise ? 3 : 0;
    }
    return net_tensor(net, &spec, l->weights);
}

/* Tensor 0 is the input, the returned one the output. */
static int32_t build(struct net *net, const struct layer *l)
{
    static const enum mica_op_kind kinds[] = {MICA_OP_CONV_2D, MICA_OP_DEPTHWISE_CONV_2D, MICA_OP_FULLY_CONNECTED,
                                              MICA_OP_TRANSPOSE_CONV};
    static const char *const names[] = {"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"};
    int32_t inputs[4], count = 0, in = add_image(net, l, l->w, l->h, l->c, l->in_scale, l->in_zero);
    if (l->kind == TRANSPOSED) {
        int32_t shape[] = {1, l->out_h, l->out_w, l->out_c};
        struct spec spec = {.type = MICA_TYPE_INT32, .rank = 1, .dims = {4}};
        inputs[count++] = net_tensor(net, &spec, shape);
        inputs[count++] = add_weights(net, l);
        inputs[count++] = in;
    } else {
        inputs[count++] = in;
        inputs[count++] = add_weights(net, l);
    }
    struct spec bias = {.type = MICA_TYPE_INT32, .rank = 1, .dims = {l->out_c}};
    inputs[count++] = l->bias ? net_tensor(net, &bias, l->bias) : MICA_NO_TENSOR;
    int32_t out = add_image(net, l, l->out_w, l->out_h, l->out_c, l->out_scale, l->out_zero);
    struct mica_op op = {.kind = kinds[l->kind]};
    if (l->kind == FULLY_CONNECTED)
        op.activation = l->activation;
    else
        op.window = (struct mica_window){l->kernel_w,
                                         l->kernel_h,
                                         l->stride_x,
                                         l->stride_y,
                                         l->dilation_x,
                                         l->dilation_y,
                                         {l->left, l->top, l->right, l->bottom},
                                         l->activation,
                                         0};
    net_op(net, op, names[l->kind], inputs, (uint32_t)count, out);
    if (net->graph->ops[0].problem)
        fail_msg("the test made a bad %s: %s", names[l->kind], net->graph->ops[0].problem);
    return out;
}

/* ---- what is right ------------------------------------------------------------------------- */

static int32_t value(const struct layer *l, uint8_t byte)
{
    return l->type == MICA_TYPE_INT8 ? (int8_t)byte : byte;
}

static int32_t in_at(const struct layer *l, int32_t x, int32_t y, int32_t c)
{
    if (x < 0 || y < 0 || x >= l->w || y >= l->h)
        return 0;
    return value(l, l->in[((size_t)y * l->w + x) * l->c + c]) - l->in_zero;
}

static int32_t weight_at(const struct layer *l, int32_t o, int32_t ky, int32_t kx, int32_t i)
{
    size_t tap = (size_t)ky * l->kernel_w + kx, taps = (size_t)l->kernel_w * l->kernel_h;
    size_t at = l->kind == DEPTHWISE ? tap * l->out_c + o : (o * taps + tap) * l->c + i;
    return value(l, l->weights[at]) - l->weight_zero;
}

static double sum_at(const struct layer *l, int32_t x, int32_t y, int32_t o)
{
    int64_t sum = l->bias ? l->bias[o] : 0;
    for (int32_t ky = 0; ky < l->kernel_h; ky++)
        for (int32_t kx = 0; kx < l->kernel_w; kx++) {
            int32_t ix = x * l->stride_x - l->left + kx * l->dilation_x;
            int32_t iy = y * l->stride_y - l->top + ky * l->dilation_y;
            if (l->kind == TRANSPOSED) { /* which pixel this tap takes here, if any */
                ix = x + l->left - kx;
                iy = y + l->top - ky;
                if (ix % l->stride_x || iy % l->stride_y)
                    continue;
                ix /= l->stride_x;
                iy /= l->stride_y;
            }
            if (l->kind == DEPTHWISE) {
                sum += (int64_t)in_at(l, ix, iy, o / (l->out_c / l->c)) * weight_at(l, o, ky, kx, 0);
                continue;
            }
            if (ix < 0 || iy < 0 || ix >= l->w || iy >= l->h)
                continue;
            for (int32_t i = 0; i < l->c; i++)
                sum += (int64_t)in_at(l, ix, iy, i) * weight_at(l, o, ky, kx, i);
        }
    return (double)sum;
}

/* The result in steps of the output, not rounded. */
static double exact_at(const struct layer *l, int32_t x, int32_t y, int32_t o)
{
    double low = l->type == MICA_TYPE_INT8 ? -128 : 0, high = low + 255;
    double factor = (double)l->in_scale * l->weight_scale[l->per_channel ? o : 0] / l->out_scale;
    double result = l->out_zero + sum_at(l, x, y, o) * factor;
    if (l->activation == MICA_ACT_RELU || l->activation == MICA_ACT_RELU6)
        low = fmax(low, l->out_zero);
    if (l->activation == MICA_ACT_RELU6)
        high = fmin(high, l->out_zero + round(6.0 / l->out_scale));
    if (l->activation == MICA_ACT_RELU_N1_TO_1) {
        low = fmax(low, l->out_zero + round(-1.0 / l->out_scale));
        high = fmin(high, l->out_zero + round(1.0 / l->out_scale));
    }
    return fmin(fmax(result, low), high);
}

/* No further off than rounding, plus what factors of 15 bits lose: 1 % of a step; per channel a step may be lost. */
static void compare(const struct layer *l, uint32_t seed, uint64_t *values, uint64_t *off)
{
    double allowed = l->per_channel ? 1.5 : 0.52;
    for (int32_t y = 0; y < l->out_h; y++)
        for (int32_t x = 0; x < l->out_w; x++)
            for (int32_t o = 0; o < l->out_c; o++) {
                double exact = exact_at(l, x, y, o);
                int32_t got = value(l, l->out[((size_t)y * l->out_w + x) * l->out_c + o]);
                if (fabs(got - exact) > allowed)
                    fail_msg("seed %u: kind %d, %dx%dx%d to %dx%dx%d, kernel %dx%d, stride %d %d, dilation %d %d, pad "
                             "%d %d, type %d, activation %d: at %d, %d, %d %d instead of %f",
                             seed, l->kind, l->w, l->h, l->c, l->out_w, l->out_h, l->out_c, l->kernel_w, l->kernel_h,
                             l->stride_x, l->stride_y, l->dilation_x, l->dilation_y, l->left, l->top, l->type,
                             l->activation, x, y, o, got, exact);
                ++*values;
                *off += fabs(got - exact) > 0.6;
            }
}

/* ---- the test -------------------------------------------------------------------------------- */

static const struct mica_chip *chip = &test_rk3588;
static uint32_t first_seed = 1, seed_count = 120;

static bool try_layer(uint32_t seed, uint64_t *values, uint64_t *off)
{
    struct random random = {seed};
    struct layer layer = {.kind = random_below(&random, KINDS)};
    layer.type = random_below(&random, 2) ? MICA_TYPE_INT8 : MICA_TYPE_UINT8;
    while (!any_shape(&random, &layer))
        ;
    fill(&random, &layer);
    struct net net;
    net_open(&net);
    int32_t out = build(&net, &layer), in = 0;
    char reason[256] = "";
    bool supported = !chip->family->supports(chip, net.graph, 0, reason, sizeof(reason));
    if (supported) {
        struct mica_partition partition;
        struct mica_program *program;
        struct mica_compile_options options = {.split = random_below(&random, 4)};
        partition_init(&partition, &net, &in, 1, &out, 1);
        if (chip->family->compile(chip, &partition, &options, NULL, &net.log, &program))
            fail_msg("seed %u: %s", seed, net.log.last_error);
        uint8_t **data = calloc(net.graph->tensor_count, sizeof(*data));
        assert_non_null(data);
        data[in] = layer.in;
        data[out] = layer.out;
        board_run(chip, program, data, random_below(&random, 2));
        compare(&layer, seed, values, off);
        free(data);
        mica_program_destroy(program);
        partition_finish(&partition);
    } else {
        assert_true(reason[0]);
        printf("seed %u is refused: %s\n", seed, reason);
    }
    net_close(&net);
    release(&layer);
    return supported;
}

static void layers_are_right(void **state)
{
    (void)state;
    uint64_t values = 0, off = 0;
    uint32_t supported = 0;
    for (uint32_t i = 0; i < seed_count; i++)
        supported += try_layer(first_seed + i, &values, &off);
    printf("%s: %u of %u layers, %llu values, %llu of them more than 0.6 off\n", chip->name, supported, seed_count,
           (unsigned long long)values, (unsigned long long)off);
    assert_true(supported * 10 >= seed_count * 8);
    assert_true(off * 100 <= values);
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "rk3566"))
        chip = &test_rk3566;
    if (argc > 2)
        first_seed = (uint32_t)strtoul(argv[2], NULL, 0);
    if (argc > 3)
        seed_count = (uint32_t)strtoul(argv[3], NULL, 0);
    const struct CMUnitTest tests[] = {cmocka_unit_test(layers_are_right)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
