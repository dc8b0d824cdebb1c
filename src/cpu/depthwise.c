/* SPDX-License-Identifier: MIT */
/* DEPTHWISE_CONV_2D: every channel on its own, so that vectors run along the channels. */
#include <stdatomic.h>
#include <string.h>

#include "cpu/int16.h"
#include "cpu/requant.h"
#include "cpu/simd.h"
#include "cpu/window.h"
#include "util/checked.h"

int mica_cpu_check_depthwise(const struct mica_graph *graph, const struct mica_op *op, struct mica_cpu_reason *reason)
{
    int result = mica_cpu_check_weighted_window(graph, op, 3, reason);
    if (result)
        return result;
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *weights = mica_op_input(graph, op, 1);
    const struct mica_tensor *out = mica_op_output(graph, op, 0);
    if (weights->dims[0] != 1)
        return mica_cpu_refuse(reason, "weights do not fit the output or the window");
    if ((int64_t)in->dims[3] * op->window.depth_multiplier != out->dims[3])
        return mica_cpu_refuse(reason, "the depth multiplier does not fit input and output channels");
    return 0;
}

struct depthwise {
    const struct mica_cpu_call *call;
    struct mica_image image;
    const void *in, *bias;
    void *out;
    size_t channels; /* of the output */
    int32_t multiplier;
    /* 8 bits */
    uint8_t flip;
    int32_t zero_point;
    int16_t *weights; /* [kernel_y][kernel_x][channels], zero point subtracted; owned */
    struct mica_requant requant;
    /* float32 */
    float min, max;
    atomic_bool out_of_memory;
};

/* Offset in elements of an input pixel. */
MICA_INLINE size_t input_offset(const struct mica_image *image, size_t batch, int32_t y, int32_t x)
{
    size_t line = batch * (size_t)image->height + (size_t)y;
    return (line * (size_t)image->width + (size_t)x) * (size_t)image->channels;
}

MICA_INLINE void accumulate(const struct depthwise *d, const uint8_t *in, const int16_t *weights, int32_t *sums)
{
    const uint8_t flip = d->flip;
    const int32_t zero_point = d->zero_point;
    if (d->multiplier == 1) {
        for (size_t i = 0; i < d->channels; i++)
            sums[i] = (int32_t)((uint32_t)sums[i] + (uint32_t)(((in[i] ^ flip) - zero_point) * weights[i]));
        return;
    }
    for (int32_t i = 0; i < d->image.channels; i++)
        for (int32_t j = 0; j < d->multiplier; j++, sums++, weights++)
            *sums = (int32_t)((uint32_t)*sums + (uint32_t)(((in[i] ^ flip) - zero_point) * *weights));
}

/* One line of output; `sums` has room for one pixel. */
MICA_INLINE void line_integer_body(const struct depthwise *d, size_t line, int32_t *sums)
{
    const struct mica_image *image = &d->image;
    const struct mica_window *window = image->window;
    size_t batch = line / (size_t)image->out_height;
    struct mica_span rows = mica_image_rows(image, (int32_t)(line % (size_t)image->out_height));
    uint8_t *out = (uint8_t *)d->out + line * (size_t)image->out_width * d->channels;
    for (int32_t x = 0; x < image->out_width; x++, out += d->channels) {
        struct mica_span columns = mica_image_columns(image, x);
        if (d->bias)
            memcpy(sums, d->bias, d->channels * sizeof *sums);
        else
            memset(sums, 0, d->channels * sizeof *sums);
        for (int32_t ky = rows.first; ky < rows.end; ky++)
            for (int32_t kx = columns.first; kx < columns.end; kx++)
                accumulate(d,
                           (const uint8_t *)d->in + input_offset(image, batch, rows.start + ky * window->dilation_y,
                                                                 columns.start + kx * window->dilation_x),
                           d->weights + (size_t)(ky * window->kernel_x + kx) * d->channels, sums);
        mica_requant_row(&d->requant, sums, 0, d->channels, out);
    }
}

MICA_CPU_WIDE(line_integer, (const struct depthwise *d, size_t line, int32_t *sums), (d, line, sums))

static void run_line(void *user, size_t line)
{
    struct depthwise *d = user;
    int32_t *sums = mica_new_array(d->channels, sizeof *sums);
    if (sums)
        line_integer(d, line, sums);
    else
        atomic_store(&d->out_of_memory, true);
    free(sums);
}

MICA_INLINE void accumulate_float(const struct depthwise *d, const float *in, const float *weights, float *out)
{
    if (d->multiplier == 1) {
        for (size_t i = 0; i < d->channels; i++)
            out[i] += in[i] * weights[i];
        return;
    }
    for (int32_t i = 0; i < d->image.channels; i++)
        for (int32_t j = 0; j < d->multiplier; j++)
            *out++ += in[i] * *weights++;
}

/* The taps in order, then the bias, as in TFLite's reference kernels. */
static void run_line_float(void *user, size_t line)
{
    const struct depthwise *d = user;
    const struct mica_image *image = &d->image;
    const struct mica_window *window = image->window;
    const float *weights = mica_cpu_input_data(d->call, 1), *bias = d->bias;
    size_t batch = line / (size_t)image->out_height;
    struct mica_span rows = mica_image_rows(image, (int32_t)(line % (size_t)image->out_height));
    float *out = (float *)d->out + line * (size_t)image->out_width * d->channels;
    for (int32_t x = 0; x < image->out_width; x++, out += d->channels) {
        struct mica_span columns = mica_image_columns(image, x);
        memset(out, 0, d->channels * sizeof *out);
        for (int32_t ky = rows.first; ky < rows.end; ky++)
            for (int32_t kx = columns.first; kx < columns.end; kx++)
                accumulate_float(d,
                                 (const float *)d->in + input_offset(image, batch, rows.start + ky * window->dilation_y,
                                                                     columns.start + kx * window->dilation_x),
                                 weights + (size_t)(ky * window->kernel_x + kx) * d->channels, out);
        for (size_t i = 0; i < d->channels; i++)
            out[i] = mica_clamp_float(out[i] + (bias ? bias[i] : 0.0f), d->min, d->max);
    }
}

static int run_integer(struct depthwise *d, size_t lines)
{
    const struct mica_cpu_call *call = d->call;
    const struct mica_tensor *in = mica_cpu_input(call, 0), *weights = mica_cpu_input(call, 1);
    const uint8_t *bytes = mica_cpu_input_data(call, 1);
    enum mica_tflite_rounding rounding = in->type == MICA_TYPE_UINT8 ? MICA_TFLITE_TWICE_SINGLE : MICA_TFLITE_TWICE;
    int result = mica_requant_init(&d->requant, call, call->op->window.activation, d->channels, rounding);
    if (result)
        return result;
    d->flip = mica_cpu_flip(in);
    d->zero_point = mica_cpu_zero_point(in);
    d->weights = mica_new_array(weights->bytes, sizeof *d->weights);
    if (d->weights) {
        for (size_t i = 0; i < weights->bytes; i++)
            d->weights[i] = (int16_t)((bytes[i] ^ mica_cpu_flip(weights)) - mica_cpu_zero_point(weights));
        mica_parallel_for(call->threads, lines, run_line, d);
    }
    bool failed = !d->weights || d->out_of_memory;
    free(d->weights);
    mica_requant_finish(&d->requant);
    return failed ? mica_fail_nomem(call->log) : 0;
}

int mica_cpu_depthwise(const struct mica_cpu_call *call)
{
    const struct mica_tensor *in = mica_cpu_input(call, 0), *out = mica_cpu_output(call, 0);
    if (in->type == MICA_TYPE_INT16)
        return mica_int16_depthwise(call);
    const struct mica_window *window = &call->op->window;
    struct depthwise d = {
        .call = call,
        .image = mica_image_of(in, out, window),
        .in = mica_cpu_input_data(call, 0),
        .bias = mica_cpu_input_data(call, 2),
        .out = mica_cpu_output_data(call, 0),
        .channels = (size_t)out->dims[3],
        .multiplier = window->depth_multiplier,
    };
    size_t lines = (size_t)out->dims[0] * (size_t)out->dims[1];
    if (in->type != MICA_TYPE_FLOAT32)
        return run_integer(&d, lines);
    mica_activation_range(window->activation, &d.min, &d.max);
    mica_parallel_for(call->threads, lines, run_line_float, &d);
    return 0;
}
