/* SPDX-License-Identifier: MIT */
/* RESIZE_BILINEAR, RESIZE_NEAREST_NEIGHBOR; the output tensor's shape counts, the size input is ignored. */
#include <math.h>
#include <string.h>

#include "cpu/requant.h"

int mica_cpu_check_resize(const struct mica_graph *graph, const struct mica_op *op, struct mica_cpu_reason *reason)
{
    int result = mica_cpu_check_operands(graph, op, 1, 1, reason);
    if (result)
        return result;
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *out = mica_op_output(graph, op, 0);
    result = mica_cpu_check_value(in, "input", reason);
    if (result)
        return result;
    if (in->type != out->type || in->rank != 4 || out->rank != 4 || in->dims[0] != out->dims[0] ||
        in->dims[3] != out->dims[3])
        return mica_cpu_refuse(reason, "input and output differ in type, batch or channels, or are no images");
    for (int i = 1; i < 3; i++)
        if (in->dims[i] > 1 << 20 || out->dims[i] > 1 << 20)
            return mica_cpu_refuse(reason, "image sides above 2^20 are not supported");
    if (in->type != MICA_TYPE_FLOAT32 && !mica_cpu_same_quantization(in, out))
        return mica_cpu_refuse(reason, "input and output are quantized differently");
    if (op->resize.align_corners && op->resize.half_pixel_centers)
        return mica_cpu_refuse(reason, "align_corners and half_pixel_centers exclude each other");
    return 0;
}

struct resize {
    const struct mica_cpu_call *call;
    const struct mica_tensor *in, *out;
    bool align_corners, half_pixel_centers;
};

/* Steps of the input for one of the output, along one axis. */
static float step_of(const struct resize *resize, int axis)
{
    int32_t in = resize->in->dims[axis], out = resize->out->dims[axis];
    if (resize->align_corners && out > 1)
        return (float)(in - 1) / (float)(out - 1);
    return (float)in / (float)out;
}

static size_t offset_of(const struct mica_tensor *image, size_t batch, int32_t y, int32_t x)
{
    size_t line = batch * (size_t)image->dims[1] + (size_t)y;
    return (line * (size_t)image->dims[2] + (size_t)x) * (size_t)image->dims[3];
}

/* ---- nearest ---- */

static int32_t nearest(const struct resize *resize, int axis, int32_t position)
{
    int32_t last = resize->in->dims[axis] - 1;
    float value = ((float)position + (resize->half_pixel_centers ? 0.5f : 0.0f)) * step_of(resize, axis);
    return mica_clamp_int((int32_t)(resize->align_corners ? roundf(value) : floorf(value)), 0, last);
}

static void nearest_line(void *user, size_t line)
{
    const struct resize *resize = user;
    const struct mica_tensor *in = resize->in, *out = resize->out;
    const uint8_t *from = mica_cpu_input_data(resize->call, 0);
    uint8_t *to = mica_cpu_output_data(resize->call, 0);
    size_t batch = line / (size_t)out->dims[1], size = mica_type_size(in->type);
    int32_t y = (int32_t)(line % (size_t)out->dims[1]), from_y = nearest(resize, 1, y);
    for (int32_t x = 0; x < out->dims[2]; x++)
        memcpy(to + offset_of(out, batch, y, x) * size,
               from + offset_of(in, batch, from_y, nearest(resize, 2, x)) * size, (size_t)in->dims[3] * size);
}

/* ---- bilinear ---- */

/* Position between two input elements, in float32 as TFLite computes it for float32 and uint8. */
struct between {
    int32_t low, high;
    float weight; /* of high; of low it is 1 - weight */
};

static struct between between_of(const struct resize *resize, int axis, int32_t position)
{
    float step = step_of(resize, axis), value = (float)position * step;
    int32_t last = resize->in->dims[axis] - 1;
    if (resize->half_pixel_centers)
        value = ((float)position + 0.5f) * step - 0.5f;
    int32_t low = mica_clamp_int((int32_t)floorf(value), 0, last);
    return (struct between){low, mica_clamp_int((int32_t)ceilf(value), 0, last), value - (float)low};
}

/* The same with 10 fraction bits, for int8. */
struct between_10 {
    int32_t low, high, weight;
};

static int32_t step_10_of(const struct resize *resize, int axis)
{
    int64_t in = resize->in->dims[axis], out = resize->out->dims[axis];
    if (resize->align_corners && out > 1) {
        in--;
        out--;
    }
    return (int32_t)((in * 1024 + out / 2) / out);
}

static struct between_10 between_10_of(const struct resize *resize, int axis, int32_t position)
{
    int64_t step = step_10_of(resize, axis), value = position * step;
    int32_t last = resize->in->dims[axis] - 1;
    if (resize->half_pixel_centers)
        value += step / 2 - 512;
    int32_t low = mica_clamp_int((int32_t)(value / 1024), 0, last);
    int32_t high = mica_clamp_int((int32_t)((value + 1023) / 1024), 0, last);
    return (struct between_10){low, high, (int32_t)(value - (int64_t)low * 1024)};
}

/* Offsets of the four neighbours: [row][column]. */
struct corners {
    size_t at[2][2];
};

static struct corners corners_of(const struct mica_tensor *in, size_t batch, const int32_t y[2], const int32_t x[2])
{
    struct corners corners;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            corners.at[i][j] = offset_of(in, batch, y[i], x[j]);
    return corners;
}

static float mix(float low_low, float high_low, float low_high, float high_high, float y, float x)
{
    return low_low * (1 - y) * (1 - x) + high_low * y * (1 - x) + low_high * (1 - y) * x + high_high * y * x;
}

static void bilinear_pixel(const struct resize *resize, size_t out, const struct corners *corners, float y, float x)
{
    const size_t(*at)[2] = corners->at;
    const void *from = mica_cpu_input_data(resize->call, 0);
    void *to = mica_cpu_output_data(resize->call, 0);
    size_t channels = (size_t)resize->in->dims[3];
    if (resize->in->type == MICA_TYPE_FLOAT32) {
        const float *in = from;
        for (size_t c = 0; c < channels; c++)
            ((float *)to)[out + c] = mix(in[at[0][0] + c], in[at[1][0] + c], in[at[0][1] + c], in[at[1][1] + c], y, x);
        return;
    }
    const uint8_t *in = from;
    for (size_t c = 0; c < channels; c++) {
        float value = mix(in[at[0][0] + c], in[at[1][0] + c], in[at[0][1] + c], in[at[1][1] + c], y, x) + 0.5f;
        ((uint8_t *)to)[out + c] = (uint8_t)mica_clamp_int((int32_t)value, 0, 255);
    }
}

static void bilinear_line(void *user, size_t line)
{
    const struct resize *resize = user;
    size_t batch = line / (size_t)resize->out->dims[1];
    int32_t y = (int32_t)(line % (size_t)resize->out->dims[1]);
    struct between row = between_of(resize, 1, y);
    for (int32_t x = 0; x < resize->out->dims[2]; x++) {
        struct between column = between_of(resize, 2, x);
        struct corners corners = corners_of(resize->in, batch, (const int32_t[]){row.low, row.high},
                                            (const int32_t[]){column.low, column.high});
        bilinear_pixel(resize, offset_of(resize->out, batch, y, x), &corners, row.weight, column.weight);
    }
}

/* Ties away from zero, from the sum with 20 fraction bits. */
static int32_t round_20(int64_t sum)
{
    return (int32_t)((sum > 0 ? sum + (1 << 19) : sum - (1 << 19)) / (1 << 20));
}

static void bilinear_line_int8(void *user, size_t line)
{
    const struct resize *resize = user;
    const int8_t *in = mica_cpu_input_data(resize->call, 0);
    int8_t *out = mica_cpu_output_data(resize->call, 0);
    size_t batch = line / (size_t)resize->out->dims[1], channels = (size_t)resize->in->dims[3];
    int32_t y = (int32_t)(line % (size_t)resize->out->dims[1]);
    struct between_10 row = between_10_of(resize, 1, y);
    for (int32_t x = 0; x < resize->out->dims[2]; x++) {
        struct between_10 column = between_10_of(resize, 2, x);
        struct corners corners = corners_of(resize->in, batch, (const int32_t[]){row.low, row.high},
                                            (const int32_t[]){column.low, column.high});
        const size_t(*at)[2] = (const size_t(*)[2])corners.at;
        int8_t *to = out + offset_of(resize->out, batch, y, x);
        for (size_t c = 0; c < channels; c++) {
            int64_t low =
                in[at[0][0] + c] * (int64_t)(1024 - column.weight) + in[at[0][1] + c] * (int64_t)column.weight;
            int64_t high =
                in[at[1][0] + c] * (int64_t)(1024 - column.weight) + in[at[1][1] + c] * (int64_t)column.weight;
            to[c] = (int8_t)mica_clamp_int(round_20(low * (1024 - row.weight) + high * row.weight), -128, 127);
        }
    }
}

static int run(const struct mica_cpu_call *call, void (*body)(void *user, size_t line))
{
    struct resize resize = {
        .call = call,
        .in = mica_cpu_input(call, 0),
        .out = mica_cpu_output(call, 0),
        .align_corners = call->op->resize.align_corners,
        .half_pixel_centers = call->op->resize.half_pixel_centers,
    };
    mica_parallel_for(call->threads, (size_t)resize.out->dims[0] * (size_t)resize.out->dims[1], body, &resize);
    return 0;
}

int mica_cpu_resize_nearest(const struct mica_cpu_call *call)
{
    return run(call, nearest_line);
}

int mica_cpu_resize_bilinear(const struct mica_cpu_call *call)
{
    bool is_int8 = mica_cpu_input(call, 0)->type == MICA_TYPE_INT8;
    return run(call, is_int8 ? bilinear_line_int8 : bilinear_line);
}
