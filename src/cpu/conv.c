/* SPDX-License-Identifier: MIT */
/* CONV_2D: the taps of every output pixel in a row, times the weights. */
#include <string.h>

#include "cpu/gemm.h"
#include "cpu/int16.h"
#include "cpu/window.h"

int mica_cpu_check_conv(const struct mica_graph *graph, const struct mica_op *op, struct mica_cpu_reason *reason)
{
    int result = mica_cpu_check_weighted_window(graph, op, 0, reason);
    if (result)
        return result;
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *weights = mica_op_input(graph, op, 1);
    if (weights->dims[3] != in->dims[3])
        return mica_cpu_refuse(reason, "weights for %d input channels on %d (grouped convolution is not supported)",
                               weights->dims[3], in->dims[3]);
    if (mica_cpu_elements(weights) / (size_t)weights->dims[0] > MICA_GEMM_MAX_TAPS)
        return mica_cpu_refuse(reason, "more than %zu weights for one output", MICA_GEMM_MAX_TAPS);
    return 0;
}

struct conv {
    struct mica_image image;
    const uint8_t *in;
    size_t depth; /* of a packed row */
    uint8_t flip;
    int32_t zero_point;
};

struct pixel {
    size_t batch;
    struct mica_span rows, columns;
};

static struct pixel pixel_at(const struct mica_image *image, size_t row)
{
    size_t x = row % (size_t)image->out_width, line = row / (size_t)image->out_width;
    int32_t y = (int32_t)(line % (size_t)image->out_height);
    return (struct pixel){line / (size_t)image->out_height, mica_image_rows(image, y),
                          mica_image_columns(image, (int32_t)x)};
}

/* Offset in elements of tap (ky, kx) of the pixel. */
static size_t tap_offset(const struct mica_image *image, const struct pixel *pixel, int32_t ky, int32_t kx)
{
    size_t y = (size_t)(pixel->rows.start + ky * image->window->dilation_y);
    size_t x = (size_t)(pixel->columns.start + kx * image->window->dilation_x);
    size_t line = pixel->batch * (size_t)image->height + y;
    return (line * (size_t)image->width + x) * (size_t)image->channels;
}

/* Taps outside the image count as zero points, that is as 0 here. */
static void pack(const void *user, size_t row, int16_t *out)
{
    const struct conv *conv = user;
    const struct mica_image *image = &conv->image;
    const struct mica_window *window = image->window;
    struct pixel pixel = pixel_at(image, row);
    size_t channels = (size_t)image->channels;
    /* Without dilation the taps of a kernel row lie side by side. */
    int32_t run = window->dilation_x == 1 ? pixel.columns.end - pixel.columns.first : 1;
    memset(out, 0, conv->depth * sizeof *out);
    for (int32_t ky = pixel.rows.first; ky < pixel.rows.end; ky++)
        for (int32_t kx = pixel.columns.first; kx < pixel.columns.end; kx += run)
            mica_gemm_widen(conv->in + tap_offset(image, &pixel, ky, kx), (size_t)run * channels, conv->flip,
                            conv->zero_point, out + (size_t)(ky * window->kernel_x + kx) * channels);
}

static void pack_float(const void *user, size_t row, float *out)
{
    const struct conv *conv = user;
    const struct mica_image *image = &conv->image;
    struct pixel pixel = pixel_at(image, row);
    size_t channels = (size_t)image->channels;
    memset(out, 0, conv->depth * sizeof *out);
    for (int32_t ky = pixel.rows.first; ky < pixel.rows.end; ky++)
        for (int32_t kx = pixel.columns.first; kx < pixel.columns.end; kx++)
            memcpy(out + (size_t)(ky * image->window->kernel_x + kx) * channels,
                   (const float *)(const void *)conv->in + tap_offset(image, &pixel, ky, kx), channels * sizeof *out);
}

static size_t pixels_of(const struct mica_tensor *tensor)
{
    return mica_cpu_elements(tensor) / (size_t)tensor->dims[3];
}

static int run_float(const struct mica_cpu_call *call, struct conv *conv, size_t taps)
{
    const struct mica_tensor *out = mica_cpu_output(call, 0);
    struct mica_gemm_float gemm = {
        .rows = pixels_of(out),
        .columns = (size_t)out->dims[3],
        .taps = taps,
        .pack = pack_float,
        .user = conv,
        .weights = mica_cpu_input_data(call, 1),
        .bias = mica_cpu_input_data(call, 2),
        .output = mica_cpu_output_data(call, 0),
    };
    conv->depth = taps;
    mica_activation_range(call->op->window.activation, &gemm.min, &gemm.max);
    return mica_gemm_float_run(&gemm, call->threads, call->log);
}

static int run_integer(const struct mica_cpu_call *call, struct conv *conv, size_t taps)
{
    const struct mica_tensor *in = mica_cpu_input(call, 0), *out = mica_cpu_output(call, 0);
    struct mica_gemm gemm = {.rows = pixels_of(out), .columns = (size_t)out->dims[3], .pack = pack, .user = conv};
    conv->depth = mica_gemm_depth(taps);
    conv->flip = mica_cpu_flip(in);
    conv->zero_point = mica_cpu_zero_point(in);
    return mica_gemm_run_call(&gemm, call, taps, call->op->window.activation,
                              in->type == MICA_TYPE_UINT8 ? MICA_TFLITE_TWICE_SINGLE : MICA_TFLITE_TWICE);
}

int mica_cpu_conv(const struct mica_cpu_call *call)
{
    const struct mica_tensor *in = mica_cpu_input(call, 0), *weights = mica_cpu_input(call, 1);
    if (in->type == MICA_TYPE_INT16)
        return mica_int16_conv(call);
    size_t taps = mica_cpu_elements(weights) / (size_t)weights->dims[0];
    struct conv conv = {
        .image = mica_image_of(in, mica_cpu_output(call, 0), &call->op->window),
        .in = mica_cpu_input_data(call, 0),
    };
    return in->type == MICA_TYPE_FLOAT32 ? run_float(call, &conv, taps) : run_integer(call, &conv, taps);
}
