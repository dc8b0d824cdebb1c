/* SPDX-License-Identifier: MIT */
/*
 * TRANSPOSE_CONV. Output pixels whose coordinates leave the same remainder by
 * the stride see the same taps of the weights, one for each input pixel around
 * theirs: with every remainder apart it is an ordinary convolution of stride 1.
 */
#include <string.h>

#include "cpu/gemm.h"
#include "cpu/window.h"
#include "util/checked.h"

enum { DATA = 2 };

static int check_shapes(const struct mica_graph *graph, const struct mica_op *op, struct mica_cpu_reason *reason)
{
    const struct mica_tensor *weights = mica_op_input(graph, op, 1), *in = mica_op_input(graph, op, DATA);
    const struct mica_tensor *out = mica_op_output(graph, op, 0);
    const struct mica_window *window = &op->window;
    if (in->rank != 4 || out->rank != 4 || weights->rank != 4 || in->dims[0] != out->dims[0])
        return mica_cpu_refuse(reason, "input and output are not images of the same batch");
    if (weights->dims[0] != out->dims[3] || weights->dims[3] != in->dims[3] || weights->dims[1] != window->kernel_y ||
        weights->dims[2] != window->kernel_x)
        return mica_cpu_refuse(reason, "weights do not fit input, output or the window");
    if (window->stride_x < 1 || window->stride_y < 1 || window->dilation_x != 1 || window->dilation_y != 1 ||
        window->padding.left < 0 || window->padding.top < 0 || window->padding.left > MICA_MAX_WINDOW ||
        window->padding.top > MICA_MAX_WINDOW)
        return mica_cpu_refuse(reason, "stride, dilation or padding out of range");
    if (mica_cpu_elements(weights) / (size_t)weights->dims[0] > MICA_GEMM_MAX_TAPS)
        return mica_cpu_refuse(reason, "more than %zu weights for one output", MICA_GEMM_MAX_TAPS);
    return 0;
}

int mica_cpu_check_transpose_conv(const struct mica_graph *graph, const struct mica_op *op,
                                  struct mica_cpu_reason *reason)
{
    int result = mica_cpu_check_operands(graph, op, DATA + 1, 1, reason);
    if (!result)
        result = check_shapes(graph, op, reason);
    if (result)
        return result;
    const struct mica_tensor *weights = mica_op_input(graph, op, 1);
    if (weights->type == MICA_TYPE_INT8 && weights->quant.count == 1 && weights->quant.zero_point[0] != 0)
        return mica_cpu_refuse(reason, "int8 weights need a zero point of 0");
    result = mica_cpu_check_weighted(graph, op, weights->dims[0], 0, reason);
    return result ? result : mica_cpu_check_activation(op->window.activation, reason);
}

/* One axis of the outputs of one remainder. */
struct axis {
    int32_t stride, remainder;
    int32_t count; /* outputs */
    int32_t taps;  /* of the kernel, `first_tap` and every `stride` further on */
    int32_t first_tap;
    int32_t start; /* input position of the first output's first tap; later ones of the kernel come first */
    int32_t size;  /* of the input */
};

static struct axis axis_of(int32_t remainder, int32_t stride, int32_t before, int32_t kernel, int32_t in, int32_t out)
{
    struct axis axis = {.stride = stride, .remainder = remainder, .size = in};
    axis.count = (out - remainder + stride - 1) / stride;
    axis.first_tap = (remainder + before) % stride;
    axis.taps = axis.first_tap < kernel ? (kernel - axis.first_tap + stride - 1) / stride : 0;
    axis.start = (remainder + before - axis.first_tap) / stride - (axis.taps - 1);
    return axis;
}

/* Taps of output `i` that lie inside the input. */
static struct mica_span span_of(const struct axis *axis, int32_t i)
{
    int32_t start = axis->start + i, first = start < 0 ? -start : 0;
    int32_t end = axis->size - start < axis->taps ? axis->size - start : axis->taps;
    end = end < 0 ? 0 : end;
    return (struct mica_span){first < end ? first : end, end, start};
}

struct phase {
    struct axis y, x;
    const struct mica_tensor *in, *out;
    const uint8_t *data;
    size_t channels, depth;
    uint8_t flip;
    int32_t zero_point;
};

/* One output pixel: its batch, row and column among those of its phase, and the taps it sees. */
struct pixel {
    size_t batch, row, column;
    struct mica_span y, x;
};

static struct pixel pixel_at(const struct phase *phase, size_t index)
{
    size_t width = (size_t)phase->x.count, height = (size_t)phase->y.count;
    struct pixel pixel = {.column = index % width, .row = index / width % height, .batch = index / width / height};
    pixel.y = span_of(&phase->y, (int32_t)pixel.row);
    pixel.x = span_of(&phase->x, (int32_t)pixel.column);
    return pixel;
}

static size_t place(const void *user, size_t index)
{
    const struct phase *phase = user;
    struct pixel pixel = pixel_at(phase, index);
    size_t y = pixel.row * (size_t)phase->y.stride + (size_t)phase->y.remainder;
    size_t x = pixel.column * (size_t)phase->x.stride + (size_t)phase->x.remainder;
    return (pixel.batch * (size_t)phase->out->dims[1] + y) * (size_t)phase->out->dims[2] + x;
}

/* First element of the taps inside the input in tap row `tap`. */
static size_t source(const struct phase *phase, const struct pixel *pixel, int32_t tap)
{
    size_t y = pixel->batch * (size_t)phase->in->dims[1] + (size_t)(pixel->y.start + tap);
    return (y * (size_t)phase->in->dims[2] + (size_t)(pixel->x.start + pixel->x.first)) * phase->channels;
}

static void pack(const void *user, size_t row, int16_t *out)
{
    const struct phase *phase = user;
    struct pixel pixel = pixel_at(phase, row);
    size_t run = (size_t)(pixel.x.end - pixel.x.first) * phase->channels;
    memset(out, 0, phase->depth * sizeof *out);
    for (int32_t tap = pixel.y.first; tap < pixel.y.end && run; tap++)
        mica_gemm_widen(phase->data + source(phase, &pixel, tap), run, phase->flip, phase->zero_point,
                        out + (size_t)(tap * phase->x.taps + pixel.x.first) * phase->channels);
}

static void pack_float(const void *user, size_t row, float *out)
{
    const struct phase *phase = user;
    struct pixel pixel = pixel_at(phase, row);
    size_t run = (size_t)(pixel.x.end - pixel.x.first) * phase->channels;
    memset(out, 0, phase->depth * sizeof *out);
    for (int32_t tap = pixel.y.first; tap < pixel.y.end && run; tap++)
        memcpy(out + (size_t)(tap * phase->x.taps + pixel.x.first) * phase->channels,
               (const float *)(const void *)phase->data + source(phase, &pixel, tap), run * sizeof *out);
}

/* The phase's weights [out channels][taps y][taps x][in channels], as bytes; NULL when memory runs out. */
static uint8_t *choose_weights(const struct phase *phase, const struct mica_tensor *weights, const uint8_t *data)
{
    size_t run = phase->channels * mica_type_size(weights->type), columns = (size_t)weights->dims[0];
    size_t taps = (size_t)phase->y.taps * (size_t)phase->x.taps;
    uint8_t *chosen = mica_new_array(columns * taps, run), *to = chosen;
    for (size_t column = 0; chosen && column < columns; column++)
        for (int32_t y = phase->y.taps; y-- > 0;)
            for (int32_t x = phase->x.taps; x-- > 0; to += run) {
                size_t ky = (size_t)(phase->y.first_tap + y * phase->y.stride);
                size_t kx = (size_t)(phase->x.first_tap + x * phase->x.stride);
                size_t tap = (column * (size_t)weights->dims[1] + ky) * (size_t)weights->dims[2] + kx;
                memcpy(to, data + tap * run, run);
            }
    return chosen;
}

static int run_integer_phase(const struct mica_cpu_call *call, struct phase *phase, const uint8_t *weights,
                             const struct mica_requant *requant)
{
    size_t taps = (size_t)phase->y.taps * (size_t)phase->x.taps * phase->channels;
    struct mica_gemm gemm = {
        .rows = (size_t)phase->out->dims[0] * (size_t)phase->y.count * (size_t)phase->x.count,
        .columns = (size_t)phase->out->dims[3],
        .pack = pack,
        .place = place,
        .user = phase,
        .bias = mica_cpu_input_data(call, mica_cpu_bias_input(call->op)),
        .requant = requant,
        .output = mica_cpu_output_data(call, 0),
    };
    phase->depth = mica_gemm_depth(taps);
    return mica_gemm_run_part(&gemm, call, taps, mica_cpu_input(call, 1), weights);
}

static int run_float_phase(const struct mica_cpu_call *call, struct phase *phase, const uint8_t *weights)
{
    phase->depth = (size_t)phase->y.taps * (size_t)phase->x.taps * phase->channels;
    struct mica_gemm_float gemm = {
        .rows = (size_t)phase->out->dims[0] * (size_t)phase->y.count * (size_t)phase->x.count,
        .columns = (size_t)phase->out->dims[3],
        .taps = phase->depth,
        .pack = pack_float,
        .place = place,
        .user = phase,
        .weights = (const float *)(const void *)weights,
        .bias = mica_cpu_input_data(call, mica_cpu_bias_input(call->op)),
        .output = mica_cpu_output_data(call, 0),
    };
    mica_activation_range(call->op->window.activation, &gemm.min, &gemm.max);
    return mica_gemm_float_run(&gemm, call->threads, call->log);
}

static int run_phase(const struct mica_cpu_call *call, int32_t y, int32_t x, const struct mica_requant *requant)
{
    const struct mica_tensor *in = mica_cpu_input(call, DATA), *out = mica_cpu_output(call, 0);
    const struct mica_window *window = &call->op->window;
    struct phase phase = {
        .y = axis_of(y, window->stride_y, window->padding.top, window->kernel_y, in->dims[1], out->dims[1]),
        .x = axis_of(x, window->stride_x, window->padding.left, window->kernel_x, in->dims[2], out->dims[2]),
        .in = in,
        .out = out,
        .data = mica_cpu_input_data(call, DATA),
        .channels = (size_t)in->dims[3],
    };
    uint8_t *weights = choose_weights(&phase, mica_cpu_input(call, 1), mica_cpu_input_data(call, 1));
    int result = 0;
    if (!weights)
        return mica_fail_nomem(call->log);
    if (requant) {
        phase.flip = mica_cpu_flip(in);
        phase.zero_point = mica_cpu_zero_point(in);
        result = run_integer_phase(call, &phase, weights, requant);
    } else {
        result = run_float_phase(call, &phase, weights);
    }
    free(weights);
    return result;
}

int mica_cpu_transpose_conv(const struct mica_cpu_call *call)
{
    const struct mica_tensor *out = mica_cpu_output(call, 0);
    const struct mica_window *window = &call->op->window;
    bool is_float = out->type == MICA_TYPE_FLOAT32;
    struct mica_requant requant;
    int result = 0;
    if (!is_float)
        result = mica_requant_init(&requant, call, window->activation, (size_t)out->dims[3],
                                   out->type == MICA_TYPE_UINT8 ? MICA_TFLITE_TWICE_SINGLE : MICA_TFLITE_TWICE);
    if (result)
        return result;
    for (int32_t y = 0; y < window->stride_y && y < out->dims[1] && !result; y++)
        for (int32_t x = 0; x < window->stride_x && x < out->dims[2] && !result; x++)
            result = run_phase(call, y, x, is_float ? NULL : &requant);
    if (!is_float)
        mica_requant_finish(&requant);
    return result;
}
