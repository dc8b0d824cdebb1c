/* SPDX-License-Identifier: MIT */
/* What is refused, and that the reason names the fact. */
#include "support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BYTES 300000

/* A layer with weights whose parts the tests change. */
struct question {
    enum mica_op_kind kind;
    int32_t in[4], out[4], weights[4];
    struct mica_window window;
    float in_scale, out_scale, weight_scale;
    const float *weight_scales;
    bool computed_weights;
};

static struct question conv_question(int32_t size, int32_t channels, int32_t kernel, int32_t outputs)
{
    struct question q = {.kind = MICA_OP_CONV_2D, .in_scale = 0.05f, .out_scale = 0.1f, .weight_scale = 0.01f};
    int32_t rest = size - kernel + 1;
    int32_t in[] = {1, size, size, channels}, out[] = {1, rest, rest, outputs};
    int32_t weights[] = {outputs, kernel, kernel, channels};
    memcpy(q.in, in, sizeof(in));
    memcpy(q.out, out, sizeof(out));
    memcpy(q.weights, weights, sizeof(weights));
    q.window = (struct mica_window){.stride_x = 1, .stride_y = 1, .dilation_x = 1, .dilation_y = 1};
    return q;
}

/* "" when it is supported. */
static void ask(const struct mica_chip *chip, const struct question *q, char reason[256])
{
    static uint8_t bytes[BYTES];
    struct random random = {3};
    random_bytes(&random, bytes, sizeof(bytes));
    struct net net;
    net_open(&net);
    struct spec spec = {.type = MICA_TYPE_INT8, .scale = q->in_scale, .zero_point = 3, .rank = 4};
    memcpy(spec.dims, q->in, sizeof(spec.dims));
    int32_t inputs[2], out;
    inputs[0] = net_tensor(&net, &spec, NULL);
    spec = (struct spec){.type = MICA_TYPE_INT8, .scale = q->weight_scale, .scales = q->weight_scales, .rank = 4};
    memcpy(spec.dims, q->weights, sizeof(spec.dims));
    assert_true((int64_t)spec.dims[0] * spec.dims[1] * spec.dims[2] * spec.dims[3] <= BYTES);
    inputs[1] = net_tensor(&net, &spec, q->computed_weights ? NULL : bytes);
    spec = (struct spec){.type = MICA_TYPE_INT8, .scale = q->out_scale, .zero_point = -5, .rank = 4};
    memcpy(spec.dims, q->out, sizeof(spec.dims));
    out = net_tensor(&net, &spec, NULL);
    net_op(&net, (struct mica_op){.kind = q->kind, .window = q->window}, "CONV_2D", inputs, 2, out);
    if (net.graph->ops[0].problem)
        fail_msg("the test made a bad operation: %s", net.graph->ops[0].problem);
    reason[0] = 0;
    int answer = chip->family->supports(chip, net.graph, 0, reason, 256);
    assert_true((answer == 0) == (reason[0] == 0));
    net_close(&net);
}

static void expect(const struct question *q, const char *part)
{
    static const struct mica_chip *const chips[] = {&test_rk3588, &test_rk3566};
    for (unsigned i = 0; i < 2; i++) {
        char reason[256];
        ask(chips[i], q, reason);
        if (part[0] ? !strstr(reason, part) : reason[0])
            fail_msg("%s said \"%s\" where \"%s\" was expected", chips[i]->name, reason, part);
    }
}

static void ordinary_layers_are_taken(void **state)
{
    (void)state;
    struct question q = conv_question(8, 16, 3, 16);
    expect(&q, "");
    q = conv_question(40, 1, 31, 2);
    expect(&q, "");
}

static void fields_that_overflow_are_named(void **state)
{
    (void)state;
    struct question q = conv_question(40, 1, 32, 2);
    expect(&q, "31 rows or columns");
    q = conv_question(16, 4, 1, 4);
    q.window.stride_x = q.window.stride_y = 8;
    q.out[1] = q.out[2] = 2;
    expect(&q, "stride is above 7");
    q = conv_question(40, 4, 3, 4);
    q.window.dilation_x = q.window.dilation_y = 18;
    q.out[1] = q.out[2] = 4;
    expect(&q, "dilation is above 17");
    q = conv_question(24, 4, 17, 4);
    q.window.padding = (struct mica_padding){16, 16, 0, 0};
    q.out[1] = q.out[2] = 24;
    expect(&q, "padding is above 15");
    q = conv_question(1, 8192, 1, 2);
    expect(&q, "8191 channels");
    q = conv_question(1, 4, 1, 4);
    q.in[2] = q.out[2] = 2048;
    expect(&q, "2047 rows or columns");
}

static void rows_and_kernels_too_large_for_the_buffer_are_named(void **state)
{
    (void)state;
    struct question q = conv_question(1, 128, 1, 4);
    q.in[2] = q.out[2] = 2047;
    q.in[3] = q.weights[3] = 1024;
    expect(&q, "convolution buffer");
}

static void scales_out_of_reach_are_named(void **state)
{
    (void)state;
    float scales[16];
    struct question q = conv_question(8, 16, 3, 16);
    q.out_scale = 1e-8f;
    expect(&q, "2^15 or more");
    q.out_scale = 0.1f;
    q.weight_scales = scales;
    for (int i = 0; i < 16; i++)
        scales[i] = i % 2 ? 0.5f : 0.00005f;
    expect(&q, "");                   /* two classes of channels */
    q = conv_question(8, 256, 8, 16); /* whose accumulators get far enough for five */
    q.weight_scales = scales;
    for (int i = 0; i < 16; i++)
        scales[i] = (float)(10000 * (double)(q.out_scale / q.in_scale) * exp2(-8.1 * (i % 5)));
    expect(&q, "too far apart");
    for (int i = 0; i < 16; i++)
        scales[i] = (float)(10000 * (double)(q.out_scale / q.in_scale) * exp2(-8.1 * (i % 4)));
    expect(&q, "");
    q = conv_question(8, 16, 3, 16);
    q.weight_scales = scales;
    for (int i = 0; i < 16; i++)
        scales[i] = 0.01f / (float)(1 + i);
    expect(&q, "");
}

static void batches_and_computed_weights_are_named(void **state)
{
    (void)state;
    struct question q = conv_question(8, 16, 3, 16);
    q.in[0] = q.out[0] = 2;
    expect(&q, "batch size 1");
    q = conv_question(8, 16, 3, 16);
    q.computed_weights = true;
    expect(&q, "not constant");
}

/* One reshape to a single pixel, what reads its result, and mostly nothing else that reads its input. */
struct reshape {
    bool fully_connected, watched;
    int32_t columns, channels;
};

static void add_watcher(struct net *net, int32_t in, struct spec spec)
{
    spec.scale = 1.0f / 256;
    spec.zero_point = INT8_MIN;
    net_op(net, (struct mica_op){.kind = MICA_OP_LOGISTIC}, "LOGISTIC", &in, 1, net_tensor(net, &spec, NULL));
}

static void ask_reshape(struct reshape reshape, char reason[256])
{
    bool fully_connected = reshape.fully_connected;
    int32_t values = 4 * reshape.columns * reshape.channels;
    static uint8_t bytes[BYTES];
    struct net net;
    net_open(&net);
    struct spec spec = {.type = MICA_TYPE_INT8, .scale = 0.1f, .zero_point = 0, .rank = 4, .dims = {1, 4}};
    spec.dims[2] = reshape.columns;
    spec.dims[3] = reshape.channels;
    int32_t in = net_tensor(&net, &spec, NULL);
    struct spec input = spec;
    spec.dims[1] = spec.dims[2] = 1;
    spec.dims[3] = values;
    int32_t flat = net_tensor(&net, &spec, NULL);
    net_op(&net, (struct mica_op){.kind = MICA_OP_RESHAPE}, "RESHAPE", &in, 1, flat);
    spec = (struct spec){.type = MICA_TYPE_INT8, .scale = 0.01f, .rank = fully_connected ? 2 : 4, .dims = {4, 1, 1}};
    spec.dims[fully_connected ? 1 : 3] = values;
    int32_t inputs[] = {flat, net_tensor(&net, &spec, bytes)};
    spec = (struct spec){.type = MICA_TYPE_INT8, .scale = 1.0f, .rank = fully_connected ? 2 : 4, .dims = {1, 1, 1, 4}};
    if (fully_connected)
        spec.dims[1] = 4;
    int32_t out = net_tensor(&net, &spec, NULL);
    struct mica_op op = {.kind = fully_connected ? MICA_OP_FULLY_CONNECTED : MICA_OP_CONV_2D};
    if (!fully_connected)
        op.window = (struct mica_window){.stride_x = 1, .stride_y = 1, .dilation_x = 1, .dilation_y = 1};
    net_op(&net, op, fully_connected ? "FULLY_CONNECTED" : "CONV_2D", inputs, 2, out);
    if (reshape.watched)
        add_watcher(&net, in, input);
    assert_null(net.graph->ops[1].problem);
    reason[0] = 0;
    assert_int_equal(test_rk3588.family->supports(&test_rk3588, net.graph, 1, reason, 256), 0);
    test_rk3588.family->supports(&test_rk3588, net.graph, 0, reason, 256);
    net_close(&net);
}

static void reshapes_are_free_computed_or_refused(void **state)
{
    (void)state;
    char reason[256];
    ask_reshape((struct reshape){true, true, 6, 10}, reason); /* nobody looks */
    assert_string_equal(reason, "");
    ask_reshape((struct reshape){false, false, 37, 2}, reason); /* the host writes it so */
    assert_string_equal(reason, "");
    ask_reshape((struct reshape){false, true, 6, 10}, reason); /* convolutions */
    assert_string_equal(reason, "");
    ask_reshape((struct reshape){false, true, 37, 2}, reason); /* which have no 37 columns */
    assert_non_null(strstr(reason, "another memory layout"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ordinary_layers_are_taken),
        cmocka_unit_test(fields_that_overflow_are_named),
        cmocka_unit_test(rows_and_kernels_too_large_for_the_buffer_are_named),
        cmocka_unit_test(scales_out_of_reach_are_named),
        cmocka_unit_test(batches_and_computed_weights_are_named),
        cmocka_unit_test(reshapes_are_free_computed_or_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
