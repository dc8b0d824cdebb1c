/* SPDX-License-Identifier: MIT */
#include "cpu/int16.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "cpu/requant.h"
#include "cpu/window.h"
#include "util/checked.h"

static bool is_symmetric(const struct mica_tensor *tensor)
{
    return mica_cpu_per_tensor(tensor) && tensor->quant.zero_point[0] == 0;
}

int mica_int16_check_weighted(const struct mica_graph *graph, const struct mica_op *op, int32_t channels,
                              int32_t channel_axis, struct mica_cpu_reason *reason)
{
    const struct mica_tensor *weights = mica_op_input(graph, op, 1), *bias = mica_op_input(graph, op, 2);
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *out = mica_op_output(graph, op, 0);
    uint32_t count = weights->quant.count;
    if (op->kind == MICA_OP_TRANSPOSE_CONV)
        return mica_cpu_refuse(reason, "there is no CPU kernel for transposed convolutions of int16");
    if (weights->type != MICA_TYPE_INT8 || out->type != MICA_TYPE_INT16)
        return mica_cpu_refuse(reason, "input int16, weights %s and output %s do not go together",
                               mica_type_name(weights->type), mica_type_name(out->type));
    if (!is_symmetric(in) || !is_symmetric(out))
        return mica_cpu_refuse(reason, "int16 tensors need one scale and a zero point of 0");
    if (count != 1 && (count != (uint32_t)channels || weights->quant.axis != channel_axis))
        return mica_cpu_refuse(reason, "weights are quantized neither with one scale nor with one for each channel");
    for (uint32_t i = 0; i < count; i++)
        if (weights->quant.zero_point[i] != 0)
            return mica_cpu_refuse(reason, "weights for int16 values need zero points of 0");
    if (bias && (bias->problem || bias->type != MICA_TYPE_INT64 || mica_cpu_elements(bias) != (size_t)channels))
        return mica_cpu_refuse(reason, "the bias is not one int64 for each output channel");
    return 0;
}

/* What a sum is multiplied with: by convolutions, and by fully connected layers. */
struct channel {
    struct mica_multiplier multiplier;
    double factor;
};

/* Sums are kept inside 48 bits, so that products with a mantissa fit 64; those of real models stay far below. */
#define SUM_LIMIT (INT64_C(1) << 47)

struct layer {
    const struct mica_cpu_call *call;
    const int16_t *in;
    const int8_t *weights;
    const int64_t *bias;
    int16_t *out;
    size_t channels;
    struct channel *scales; /* of every channel; owned */
    int32_t min, max;
    struct mica_image image; /* convolutions */
    size_t taps;             /* fully connected */
    atomic_bool out_of_memory;
};

/* round(sum * factor), of whose mantissa TFLite keeps 15 bits here; halves go up. */
static int16_t finish(const struct layer *layer, size_t channel, int64_t sum)
{
    struct mica_multiplier m = layer->scales[channel].multiplier;
    int32_t mantissa = m.mantissa < 0x7fff0000 ? (m.mantissa + (1 << 15)) >> 16 : 0x7fff;
    int32_t shift = 15 - m.shift;
    /* Sums have 48 bits at most, so that products fit; what goes beyond has saturated long before. */
    const int64_t limit = SUM_LIMIT;
    sum = sum > limit ? limit : sum < -limit ? -limit : sum;
    /* Without a shift the factor is 2^14 or more, with a negative one anything but 0 saturates. */
    int64_t value = shift > 0    ? (sum * mantissa + (INT64_C(1) << (shift - 1))) >> shift
                    : shift == 0 ? sum * mantissa
                    : sum < 0    ? INT16_MIN
                                 : (sum > 0 ? INT16_MAX : 0);
    return (int16_t)(value < layer->min ? layer->min : value > layer->max ? layer->max : value);
}

/* As LiteRT has it since 2.3: rounded once, halves away from zero. */
static int16_t finish_dense(const struct layer *layer, size_t channel, int64_t sum)
{
    double value = round((double)sum * layer->scales[channel].factor);
    return (int16_t)(value < layer->min ? layer->min : value > layer->max ? layer->max : value);
}

static int32_t limit_of(float value, float scale)
{
    return (int32_t)mica_clamp_float(roundf(value / scale), -65536.0f, 65536.0f);
}

static void set_range(struct layer *layer, enum mica_activation activation, float scale)
{
    layer->min = activation == MICA_ACT_RELU || activation == MICA_ACT_RELU6 ? 0 : INT16_MIN;
    layer->max = activation == MICA_ACT_RELU6 ? limit_of(6, scale) : INT16_MAX;
    if (activation == MICA_ACT_RELU_N1_TO_1) {
        layer->min = limit_of(-1, scale);
        layer->max = limit_of(1, scale);
    }
    layer->min = layer->min < INT16_MIN ? INT16_MIN : layer->min;
    layer->max = layer->max > INT16_MAX ? INT16_MAX : layer->max;
}

static int begin(struct layer *layer, const struct mica_cpu_call *call, size_t channels,
                 enum mica_activation activation)
{
    const struct mica_tensor *in = mica_cpu_input(call, 0), *weights = mica_cpu_input(call, 1);
    const struct mica_tensor *out = mica_cpu_output(call, 0);
    *layer = (struct layer){
        .call = call,
        .in = mica_cpu_input_data(call, 0),
        .weights = mica_cpu_input_data(call, 1),
        .bias = mica_cpu_input_data(call, 2),
        .out = mica_cpu_output_data(call, 0),
        .channels = channels,
        .scales = mica_new_array(channels, sizeof *layer->scales),
    };
    if (!layer->scales)
        return mica_fail_nomem(call->log);
    for (size_t i = 0; i < channels; i++) {
        double weight_scale = (double)weights->quant.scale[weights->quant.count > 1 ? i : 0];
        double product = (double)in->quant.scale[0] * weight_scale;
        layer->scales[i].factor = product / (double)out->quant.scale[0];
        layer->scales[i].multiplier = mica_multiplier_tflite(layer->scales[i].factor);
    }
    set_range(layer, activation, out->quant.scale[0]);
    return 0;
}

static int end(struct layer *layer)
{
    free(layer->scales);
    return layer->out_of_memory ? mica_fail_nomem(layer->call->log) : 0;
}

/* Products have 23 bits: 256 of them fit 32. */
static int64_t dot(const int16_t *a, const int8_t *b, size_t count)
{
    int64_t total = 0;
    for (size_t first = 0; first < count; first += 256) {
        int32_t sum = 0;
        size_t last = count - first < 256 ? count : first + 256;
        for (size_t i = first; i < last; i++)
            sum += a[i] * b[i];
        total += sum;
    }
    return total;
}

static const int16_t *pixel_at(const struct layer *layer, size_t batch, int32_t y, int32_t x)
{
    const struct mica_image *image = &layer->image;
    size_t line = batch * (size_t)image->height + (size_t)y;
    return layer->in + (line * (size_t)image->width + (size_t)x) * (size_t)image->channels;
}

static int64_t conv_sum(const struct layer *layer, size_t batch, struct mica_span rows, struct mica_span columns,
                        const int8_t *weights)
{
    const struct mica_window *window = layer->image.window;
    size_t channels = (size_t)layer->image.channels;
    int64_t sum = 0;
    for (int32_t ky = rows.first; ky < rows.end; ky++)
        for (int32_t kx = columns.first; kx < columns.end; kx++)
            sum += dot(
                pixel_at(layer, batch, rows.start + ky * window->dilation_y, columns.start + kx * window->dilation_x),
                weights + (size_t)(ky * window->kernel_x + kx) * channels, channels);
    return sum;
}

/* A file's bias may be anything: beyond the limit of what is rescaled, the result is the same, and sums can't wrap. */
static int64_t bias_of(const struct layer *layer, size_t i)
{
    int64_t bias = layer->bias ? layer->bias[i] : 0;
    return bias > SUM_LIMIT ? SUM_LIMIT : bias < -SUM_LIMIT ? -SUM_LIMIT : bias;
}

static void conv_line(void *user, size_t line)
{
    const struct layer *layer = user;
    const struct mica_image *image = &layer->image;
    size_t taps = mica_cpu_elements(mica_cpu_input(layer->call, 1)) / layer->channels;
    size_t batch = line / (size_t)image->out_height;
    struct mica_span rows = mica_image_rows(image, (int32_t)(line % (size_t)image->out_height));
    int16_t *out = layer->out + line * (size_t)image->out_width * layer->channels;
    for (int32_t x = 0; x < image->out_width; x++, out += layer->channels) {
        struct mica_span columns = mica_image_columns(image, x);
        for (size_t i = 0; i < layer->channels; i++) {
            int64_t sum = conv_sum(layer, batch, rows, columns, layer->weights + i * taps);
            out[i] = finish(layer, i, sum + bias_of(layer, i));
        }
    }
}

static void depthwise_tap(const struct layer *layer, const int16_t *in, const int8_t *weights, int64_t *sums)
{
    int32_t multiplier = layer->image.window->depth_multiplier;
    for (int32_t i = 0; i < layer->image.channels; i++)
        for (int32_t j = 0; j < multiplier; j++)
            *sums++ += in[i] * *weights++;
}

static void depthwise_line(void *user, size_t line)
{
    struct layer *layer = user;
    const struct mica_image *image = &layer->image;
    const struct mica_window *window = image->window;
    size_t batch = line / (size_t)image->out_height;
    struct mica_span rows = mica_image_rows(image, (int32_t)(line % (size_t)image->out_height));
    int16_t *out = layer->out + line * (size_t)image->out_width * layer->channels;
    int64_t *sums = mica_new_array(layer->channels, sizeof *sums);
    if (!sums) {
        atomic_store(&layer->out_of_memory, true);
        return;
    }
    for (int32_t x = 0; x < image->out_width; x++, out += layer->channels) {
        struct mica_span columns = mica_image_columns(image, x);
        for (size_t i = 0; i < layer->channels; i++)
            sums[i] = bias_of(layer, i);
        for (int32_t ky = rows.first; ky < rows.end; ky++)
            for (int32_t kx = columns.first; kx < columns.end; kx++)
                depthwise_tap(layer,
                              pixel_at(layer, batch, rows.start + ky * window->dilation_y,
                                       columns.start + kx * window->dilation_x),
                              layer->weights + (size_t)(ky * window->kernel_x + kx) * layer->channels, sums);
        for (size_t i = 0; i < layer->channels; i++)
            out[i] = finish(layer, i, sums[i]);
    }
    free(sums);
}

static int run_window(const struct mica_cpu_call *call, void (*run_line)(void *user, size_t line))
{
    const struct mica_tensor *out = mica_cpu_output(call, 0);
    struct layer layer;
    int result = begin(&layer, call, (size_t)out->dims[3], call->op->window.activation);
    if (result)
        return result;
    layer.image = mica_image_of(mica_cpu_input(call, 0), out, &call->op->window);
    mica_parallel_for(call->threads, (size_t)out->dims[0] * (size_t)out->dims[1], run_line, &layer);
    return end(&layer);
}

int mica_int16_conv(const struct mica_cpu_call *call)
{
    return run_window(call, conv_line);
}

int mica_int16_depthwise(const struct mica_cpu_call *call)
{
    return run_window(call, depthwise_line);
}

static void dense_row(void *user, size_t row)
{
    const struct layer *layer = user;
    int16_t *out = layer->out + row * layer->channels;
    for (size_t i = 0; i < layer->channels; i++) {
        int64_t sum = dot(layer->in + row * layer->taps, layer->weights + i * layer->taps, layer->taps);
        out[i] = finish_dense(layer, i, sum + bias_of(layer, i));
    }
}

int mica_int16_fully_connected(const struct mica_cpu_call *call)
{
    const struct mica_tensor *weights = mica_cpu_input(call, 1);
    struct layer layer;
    int result = begin(&layer, call, (size_t)weights->dims[0], call->op->activation);
    if (result)
        return result;
    layer.taps = (size_t)weights->dims[1];
    mica_parallel_for(call->threads, mica_cpu_elements(mica_cpu_input(call, 0)) / layer.taps, dense_row, &layer);
    return end(&layer);
}
