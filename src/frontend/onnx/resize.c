/* SPDX-License-Identifier: MIT */
/*
 * Resize and Upsample. ONNX has many ways to say which pixel of the input a
 * pixel of the output comes from, the graph three. For the nearest pixel all of
 * them are tried along the whole image; for linear ones the rules are compared.
 */
#include "frontend/onnx/internal.h"

#include <math.h>

struct resize {
    int32_t in[2], out[2]; /* rows, columns */
    double scale[2];
    struct onnx_bytes mode, coordinates, rounding;
};

static const struct mica_resize ways[] = {{false, false}, {true, false}, {false, true}};

static double position(const struct resize *resize, int axis, int32_t x)
{
    double in = resize->in[axis], out = resize->out[axis], scale = resize->scale[axis];
    if (onnx_is(resize->coordinates, "asymmetric"))
        return x / scale;
    if (onnx_is(resize->coordinates, "align_corners"))
        return out > 1 ? x * (in - 1) / (out - 1) : 0;
    if (onnx_is(resize->coordinates, "pytorch_half_pixel") && resize->out[axis] <= 1)
        return 0;
    return (x + 0.5) / scale - 0.5;
}

static int32_t nearest(const struct resize *resize, int axis, int32_t x)
{
    double at = position(resize, axis, x), chosen;
    if (onnx_is(resize->rounding, "floor"))
        chosen = floor(at);
    else if (onnx_is(resize->rounding, "ceil"))
        chosen = ceil(at);
    else if (onnx_is(resize->rounding, "round_prefer_ceil"))
        chosen = floor(at + 0.5);
    else
        chosen = ceil(at - 0.5);
    return (int32_t)fmin(fmax(chosen, 0), resize->in[axis] - 1);
}

/* What the graph's operation takes. */
static int32_t graph_nearest(const struct resize *resize, int axis, int32_t x, const struct mica_resize *way)
{
    int32_t in = resize->in[axis], out = resize->out[axis];
    float step = way->align_corners && out > 1 ? (float)(in - 1) / (float)(out - 1) : (float)in / (float)out;
    float at = ((float)x + (way->half_pixel_centers ? 0.5f : 0.0f)) * step;
    return (int32_t)fminf(fmaxf(way->align_corners ? roundf(at) : floorf(at), 0), (float)(in - 1));
}

static bool nearest_is(const struct resize *resize, const struct mica_resize *way)
{
    for (int axis = 0; axis < 2; axis++)
        for (int32_t x = 0; x < resize->out[axis]; x++)
            if (nearest(resize, axis, x) != graph_nearest(resize, axis, x, way))
                return false;
    return true;
}

static bool choose(const struct resize *resize, struct mica_resize *way)
{
    for (int i = 0; i < 3 && onnx_is(resize->mode, "nearest"); i++)
        if (nearest_is(resize, &ways[i])) {
            *way = ways[i];
            return true;
        }
    if (!onnx_is(resize->mode, "linear"))
        return false;
    for (int axis = 0; axis < 2; axis++) /* the graph's scale is that of the sizes */
        if (fabs(resize->scale[axis] * resize->in[axis] / resize->out[axis] - 1) > 1e-6)
            return false;
    bool pytorch = onnx_is(resize->coordinates, "pytorch_half_pixel") && resize->out[0] > 1 && resize->out[1] > 1;
    *way = (struct mica_resize){
        .align_corners = onnx_is(resize->coordinates, "align_corners"),
        .half_pixel_centers = onnx_is(resize->coordinates, "half_pixel") || pytorch,
    };
    return way->align_corners || way->half_pixel_centers || onnx_is(resize->coordinates, "asymmetric");
}

/* Sizes or scales, of all four dimensions; Upsample's scales are its second input. */
static int read_size(struct onnx_reader *reader, const struct onnx_value *value, int kind, struct resize *resize)
{
    const struct onnx_node *node = reader->node;
    const uint32_t place = kind || node->inputs == 2 ? 1 : 2;
    int64_t sizes[4];
    float scales[4] = {1, 1, 1, 1};
    uint32_t size_count, scale_count;
    struct onnx_bytes attribute;
    if (onnx_attribute(reader, "axes", &attribute) || onnx_int(reader, "antialias", 0))
        return onnx_refuse(reader, "attributes axes and antialias are not supported");
    int result = onnx_integers(reader, node->inputs > 3 ? node->in[3] : ONNX_NONE, sizes, 4, &size_count);
    if (!result)
        result = onnx_floats(reader, node->inputs > place ? node->in[place] : ONNX_NONE, scales, 4, &scale_count);
    if (!result && size_count != 4 && scale_count != 4)
        result = onnx_refuse(reader, "it has neither sizes nor scales of four dimensions");
    for (int i = 0; i < 4 && !result; i++) {
        double size = size_count ? (double)sizes[i] : floor((double)value->dims[i] * (double)scales[i]);
        if (!(size >= 1 && size <= MICA_MAX_WINDOW) || (i < 2 && (int32_t)size != value->dims[i]))
            return onnx_refuse(reader, "its output's size is out of range, or not that of an image");
        if (i < 2)
            continue;
        resize->in[i - 2] = value->dims[i];
        resize->out[i - 2] = (int32_t)size;
        resize->scale[i - 2] = size_count ? size / value->dims[i] : (double)scales[i];
    }
    return result;
}

int onnx_resize(struct onnx_reader *reader, int kind)
{
    struct resize resize = {
        .mode = onnx_string(reader, "mode", "nearest"),
        .coordinates = onnx_string(reader, "coordinate_transformation_mode", kind ? "asymmetric" : "half_pixel"),
        .rounding = onnx_string(reader, "nearest_mode", kind ? "floor" : "round_prefer_floor"),
    };
    struct onnx_call call;
    int32_t inputs[2];
    const int32_t two = 2;
    int error = onnx_call_moving(reader, 1, &call);
    if (error)
        return error;
    const struct onnx_value *value = &reader->values[call.in[0]];
    if (value->rank != 4)
        return onnx_refuse(reader, "only images (4 dimensions) can be resized");
    error = read_size(reader, value, kind, &resize);
    if (error)
        return error;
    bool is_nearest = onnx_is(resize.mode, "nearest");
    struct mica_op op = {.kind = is_nearest ? MICA_OP_RESIZE_NEAREST : MICA_OP_RESIZE_BILINEAR};
    if (!choose(&resize, &op.resize))
        return onnx_refuse(reader, "no way to resize an image here takes the pixels that its attributes ask for");
    struct onnx_result result = onnx_call_result(reader, &call, ONNX_IMAGE);
    error = onnx_add_int32(reader, resize.out, 1, &two, &inputs[1]);
    if (!error)
        error = onnx_tensor(reader, call.in[0], ONNX_IMAGE, &inputs[0]);
    return error ? error : onnx_emit(reader, &op, inputs, 2, &result);
}
