/* SPDX-License-Identifier: MIT */
/* AVERAGE_POOL_2D, MAX_POOL_2D. Taps outside the image count neither in sums nor in their number. */
#include <float.h>
#include <stdatomic.h>
#include <string.h>

#include "cpu/requant.h"
#include "cpu/rockchip.h"
#include "cpu/window.h"
#include "util/checked.h"

int mica_cpu_check_pool(const struct mica_graph *graph, const struct mica_op *op, struct mica_cpu_reason *reason)
{
    int result = mica_cpu_check_operands(graph, op, 1, 1, reason);
    if (result)
        return result;
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *out = mica_op_output(graph, op, 0);
    result = mica_cpu_check_window(in, out, &op->window, reason);
    if (!result)
        result = mica_cpu_check_value(in, "input", reason);
    if (result)
        return result;
    if (out->type != in->type || out->dims[3] != in->dims[3])
        return mica_cpu_refuse(reason, "input and output differ in type or channels");
    if ((int64_t)op->window.kernel_x * op->window.kernel_y > 1 << 22)
        return mica_cpu_refuse(reason, "the window is too large");
    if (in->type != MICA_TYPE_FLOAT32 && !mica_cpu_same_quantization(in, out))
        return mica_cpu_refuse(reason, "input and output are quantized differently");
    return 0;
}

struct pool {
    struct mica_image image;
    const void *in;
    void *out;
    bool average;
    struct mica_requant requant; /* only limits and flip are used */
    float min, max;
    atomic_bool out_of_memory;
};

/* The taps of one output pixel that lie inside the image. */
struct taps {
    const struct pool *pool;
    size_t batch;
    int32_t top, bottom, left, right;
};

static struct taps taps_of(const struct pool *pool, size_t line, int32_t x)
{
    const struct mica_image *image = &pool->image;
    struct mica_span rows = mica_image_rows(image, (int32_t)(line % (size_t)image->out_height));
    struct mica_span columns = mica_image_columns(image, x);
    return (struct taps){pool,
                         line / (size_t)image->out_height,
                         rows.start + rows.first,
                         rows.start + rows.end,
                         columns.start + columns.first,
                         columns.start + columns.end};
}

static size_t tap_offset(const struct taps *taps, int32_t y, int32_t x)
{
    const struct mica_image *image = &taps->pool->image;
    size_t line = taps->batch * (size_t)image->height + (size_t)y;
    return (line * (size_t)image->width + (size_t)x) * (size_t)image->channels;
}

static void sum_pixel(const struct taps *taps, uint8_t flip, int32_t *sums)
{
    size_t channels = (size_t)taps->pool->image.channels;
    memset(sums, 0, channels * sizeof *sums);
    for (int32_t y = taps->top; y < taps->bottom; y++)
        for (int32_t x = taps->left; x < taps->right; x++) {
            const uint8_t *in = (const uint8_t *)taps->pool->in + tap_offset(taps, y, x);
            for (size_t i = 0; i < channels; i++)
                sums[i] += (int32_t)(in[i] ^ flip);
        }
}

static void max_pixel(const struct taps *taps, uint8_t flip, int32_t *sums)
{
    size_t channels = (size_t)taps->pool->image.channels;
    memset(sums, 0, channels * sizeof *sums);
    for (int32_t y = taps->top; y < taps->bottom; y++)
        for (int32_t x = taps->left; x < taps->right; x++) {
            const uint8_t *in = (const uint8_t *)taps->pool->in + tap_offset(taps, y, x);
            for (size_t i = 0; i < channels; i++)
                sums[i] = (in[i] ^ flip) > sums[i] ? (in[i] ^ flip) : sums[i];
        }
}

/* A depthwise convolution with equal weights, whose multiplier divides (Rockchip's specification, section 12). */
static void convolved_average_pixel(const struct mica_requant *requant, int32_t count, size_t channels, int32_t *sums)
{
    struct mica_multiplier m = mica_is_rockchip(requant->arithmetic)
                                   ? mica_multiplier_rockchip(1.0 / count)
                                   : mica_multiplier_vivante((float)(1.0 / count), requant->arithmetic);
    for (size_t i = 0; i < channels; i++) {
        int32_t sum = sums[i] - requant->zero_point * count;
        sums[i] = (int32_t)mica_scale_even(sum, m.mantissa, m.shift) + requant->zero_point;
    }
}

/* Sums to rounded means: halves go up for uint8, away from zero for int8, whose sum is without the 128 of each tap. */
static void average_pixel(const struct taps *taps, const struct mica_requant *requant, size_t channels, int32_t *sums)
{
    int32_t count = (taps->bottom - taps->top) * (taps->right - taps->left);
    if (count < 1)
        count = 1;
    if (requant->arithmetic != MICA_ARITHMETIC_TFLITE) {
        convolved_average_pixel(requant, count, channels, sums);
        return;
    }
    int32_t shift = requant->flip ? 128 : 0;
    for (size_t i = 0; i < channels; i++) {
        int32_t sum = sums[i] - shift * count;
        sums[i] = (sum < 0 ? sum - count / 2 : sum + count / 2) / count + shift;
    }
}

static void run_line(void *user, size_t line)
{
    struct pool *pool = user;
    const struct mica_requant *requant = &pool->requant;
    size_t channels = (size_t)pool->image.channels;
    int32_t *sums = mica_new_array(channels, sizeof *sums);
    if (!sums) {
        atomic_store(&pool->out_of_memory, true);
        return;
    }
    uint8_t *out = (uint8_t *)pool->out + line * (size_t)pool->image.out_width * channels;
    for (int32_t x = 0; x < pool->image.out_width; x++, out += channels) {
        struct taps taps = taps_of(pool, line, x);
        if (pool->average) {
            sum_pixel(&taps, requant->flip, sums);
            average_pixel(&taps, requant, channels, sums);
        } else {
            max_pixel(&taps, requant->flip, sums);
        }
        for (size_t i = 0; i < channels; i++)
            out[i] = (uint8_t)mica_clamp_int(sums[i], requant->min, requant->max) ^ requant->flip;
    }
    free(sums);
}

static void pixel_float(const struct taps *taps, float *out)
{
    const struct pool *pool = taps->pool;
    size_t channels = (size_t)pool->image.channels;
    float count = (float)((taps->bottom - taps->top) * (taps->right - taps->left));
    for (size_t i = 0; i < channels; i++)
        out[i] = pool->average ? 0 : -FLT_MAX;
    for (int32_t y = taps->top; y < taps->bottom; y++)
        for (int32_t x = taps->left; x < taps->right; x++) {
            const float *in = (const float *)pool->in + tap_offset(taps, y, x);
            for (size_t i = 0; i < channels; i++)
                out[i] = pool->average ? out[i] + in[i] : out[i] < in[i] ? in[i] : out[i];
        }
    for (size_t i = 0; i < channels; i++)
        out[i] = mica_clamp_float(pool->average && count > 0 ? out[i] / count : out[i], pool->min, pool->max);
}

static void run_line_float(void *user, size_t line)
{
    const struct pool *pool = user;
    size_t channels = (size_t)pool->image.channels, width = (size_t)pool->image.out_width;
    for (size_t x = 0; x < width; x++) {
        struct taps taps = taps_of(pool, line, (int32_t)x);
        pixel_float(&taps, (float *)pool->out + (line * width + x) * channels);
    }
}

static int run(const struct mica_cpu_call *call, bool average)
{
    const struct mica_tensor *in = mica_cpu_input(call, 0), *out = mica_cpu_output(call, 0);
    const struct mica_window *window = &call->op->window;
    struct pool pool = {
        .image = mica_image_of(in, out, window),
        .in = mica_cpu_input_data(call, 0),
        .out = mica_cpu_output_data(call, 0),
        .average = average,
    };
    bool is_float = in->type == MICA_TYPE_FLOAT32;
    if (is_float)
        mica_activation_range(window->activation, &pool.min, &pool.max);
    else
        mica_requant_set_output(&pool.requant, call->arithmetic, out, window->activation);
    mica_parallel_for(call->threads, (size_t)out->dims[0] * (size_t)out->dims[1], is_float ? run_line_float : run_line,
                      &pool);
    return pool.out_of_memory ? mica_fail_nomem(call->log) : 0;
}

int mica_cpu_average_pool(const struct mica_cpu_call *call)
{
    return run(call, true);
}

int mica_cpu_max_pool(const struct mica_cpu_call *call)
{
    return run(call, false);
}
