/* SPDX-License-Identifier: MIT */
/*
 * Bilinear enlargement by whole factors: all outputs at the same place of
 * their block weigh four neighbours alike, a depthwise convolution a place, on
 * an image whose border is repeated once. A move puts the results in between.
 */
#include <errno.h>

#include "npu/vivante/compile/box.h"
#include "npu/vivante/compile/compose.h"
#include "npu/vivante/compile/conv.h"
#include "util/checked.h"

/* Output factor * i + place lies `part` of `whole` behind input i + first, on the way to the next. */
struct place {
    int32_t first, part, whole;
};

static struct place place_of(int32_t place, int32_t factor, bool half_pixels)
{
    if (factor == 1)
        return (struct place){0, 0, 1};
    if (!half_pixels)
        return (struct place){0, place, factor};
    int32_t part = 2 * place + 1 - factor;
    return part < 0 ? (struct place){-1, part + 2 * factor, 2 * factor} : (struct place){0, part, 2 * factor};
}

static uint32_t whole_of(int32_t out, int32_t in, bool half_pixels)
{
    return (uint32_t)place_of(0, out / in, half_pixels).whole;
}

static bool power_of_two(int32_t value)
{
    return (value & (value - 1)) == 0;
}

const char *viv_bilinear_refusal(const struct mica_graph *graph, const struct mica_op *op)
{
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *out = mica_op_output(graph, op, 0);
    if (out->dims[1] % in->dims[1] || out->dims[2] % in->dims[2] || op->resize.align_corners)
        return "images are only enlarged by whole factors, without aligned corners: for others each row and column "
               "would have weights of its own";
    bool binary = power_of_two(out->dims[1] / in->dims[1]) && power_of_two(out->dims[2] / in->dims[2]);
    if (in->type == MICA_TYPE_INT8 && !binary)
        return "int8 images are only enlarged by powers of two: for others TFLite's own positions, of ten bits, drift "
               "by "
               "several steps";
    if (whole_of(out->dims[1], in->dims[1], op->resize.half_pixel_centers) *
            whole_of(out->dims[2], in->dims[2], op->resize.half_pixel_centers) >
        255)
        return "the factor is too large for 8-bit weights";
    return in->dims[1] < (int32_t)VIV_MAX_IMAGE - 2 && in->dims[2] < (int32_t)VIV_MAX_IMAGE - 2
               ? NULL
               : "the image is too large for the NN cores";
}

static int copy(struct viv_plan *plan, uint32_t op, struct viv_shape area, const uint64_t *in_strides,
                const uint64_t *out_strides, struct viv_ref in, uint64_t from, struct viv_ref out, uint64_t to)
{
    struct viv_box box = {0};
    viv_box_add(&box, area.c, in_strides[0], out_strides[0]);
    viv_box_add(&box, area.h, in_strides[1], out_strides[1]);
    viv_box_add(&box, area.w, 1, 1);
    in.offset += from;
    out.offset += to;
    return viv_box_lower(plan, op, &box, in, out, 0);
}

/* The planes with a border of one pixel that repeats the outermost ones. */
static int repeat_border(struct viv_plan *plan, uint32_t op, struct viv_shape shape, struct viv_ref in,
                         struct viv_ref *out)
{
    uint64_t w = shape.w + 2, h = shape.h + 2;
    const uint64_t from[] = {(uint64_t)shape.w * shape.h, shape.w}, to[] = {w * h, w};
    struct viv_shape column = {1, shape.h, shape.c}, row = {(uint32_t)w, 1, shape.c};
    int error = viv_plan_storage(plan, w * h * shape.c, out);
    if (!error)
        error = copy(plan, op, shape, from, to, in, 0, *out, w + 1);
    if (!error)
        error = copy(plan, op, column, from, to, in, 0, *out, w);
    if (!error)
        error = copy(plan, op, column, from, to, in, shape.w - 1, *out, 2 * w - 1);
    if (!error)
        error = copy(plan, op, row, to, to, *out, w, *out, 0);
    return error ? error : copy(plan, op, row, to, to, *out, (h - 2) * w, *out, (h - 1) * w);
}

static int make_weights(struct viv_plan *plan, const struct place *x, const struct place *y, uint32_t channels,
                        uint8_t zero, struct viv_weights *weights)
{
    weights->kernels = channels;
    weights->channels = weights->phases = 1;
    weights->taps = weights->kernel_stride = 4;
    weights->tap_stride = 1;
    weights->diagonal = !plan->chip->hardware_depthwise;
    weights->owned = mica_new_array(channels, 4);
    weights->bias = mica_new_array(channels, sizeof(*weights->bias));
    if (!weights->owned || !weights->bias)
        return mica_fail_nomem(plan->log);
    weights->source = weights->data = weights->owned;
    for (int32_t tap = 0; tap < 4; tap++) {
        int32_t value = (tap % 2 ? x->part : x->whole - x->part) * (tap / 2 ? y->part : y->whole - y->part);
        weights->map[0][tap] = (int16_t)tap;
        for (uint32_t k = 0; k < channels; k++) {
            weights->owned[4 * k + (uint32_t)tap] = (uint8_t)value;
            weights->bias[k] += (uint32_t)(value * ((int32_t)plan->chip->bias_input_zero - zero));
        }
    }
    return 0;
}

/* The outputs of one place, as planes of the input's size. */
static int add_place(struct viv_plan *plan, uint32_t op, struct viv_nn nn, const struct place *x, const struct place *y,
                     struct viv_shape shape)
{
    struct viv_weights *weights = viv_plan_weights(plan, &nn.weights);
    if (!weights)
        return -ENOMEM;
    nn.in.offset += (uint64_t)((y->first + 1) * (int32_t)nn.in_x_stride + x->first + 1);
    int error = make_weights(plan, x, y, shape.c, nn.in_zero_point, weights);
    if (error)
        return error;
    return weights->diagonal ? viv_depthwise_groups(plan, op, weights, nn, 0)
                             : viv_depthwise_job(plan, op, weights, nn, 0);
}

static int interleave(struct viv_plan *plan, uint32_t op, struct viv_shape shape, uint32_t rows, uint32_t columns,
                      uint32_t place, struct viv_ref in, struct viv_ref out)
{
    uint64_t row = (uint64_t)shape.w * columns, plane = row * shape.h * rows;
    struct viv_box box = {0};
    viv_box_add(&box, shape.c, (uint64_t)shape.w * shape.h, plane);
    viv_box_add(&box, shape.h, shape.w, row * rows);
    viv_box_add(&box, shape.w, 1, columns);
    out.offset += place / columns * row + place % columns;
    return viv_box_lower(plan, op, &box, in, out, 0);
}

int viv_lower_bilinear(struct viv_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    const struct mica_tensor *in = mica_op_input(plan->graph, op, 0), *out = mica_op_output(plan->graph, op, 0);
    struct viv_shape shape = viv_shape_of(in);
    uint32_t rows = (uint32_t)(out->dims[1] / in->dims[1]), columns = (uint32_t)(out->dims[2] / in->dims[2]);
    bool half = op->resize.half_pixel_centers;
    struct viv_nn nn = {.kernel_w = 2, .kernel_h = 2, .in_w = shape.w + 1, .in_h = shape.h + 1};
    struct viv_requant requant = {0};
    struct viv_ref planar, to;
    double whole = (double)whole_of(out->dims[1], in->dims[1], half) * whole_of(out->dims[2], in->dims[2], half);
    viv_requant_factor(plan->chip, 1 / whole, &requant); /* at least 1 / 255, which every chip has */
    nn.post_multiplier = requant.multiplier;
    nn.post_shift = requant.shift;
    nn.in_x_stride = shape.w + 2;
    nn.in_y_stride = shape.h + 2;
    nn.out_w = nn.out_x_stride = shape.w;
    nn.out_h = nn.out_y_stride = shape.h;
    nn.in_zero_point = nn.out_zero_point = viv_zero_point(in);
    int error = viv_need_planar(plan, (uint32_t)op->inputs[0], op_index, &planar);
    if (!error)
        error = viv_make_planar(plan, (uint32_t)op->outputs[0], &to);
    if (!error)
        error = repeat_border(plan, op_index, shape, planar, &nn.in);
    for (uint32_t i = 0; !error && i < rows * columns; i++) {
        struct place y = place_of((int32_t)(i / columns), (int32_t)rows, half);
        struct place x = place_of((int32_t)(i % columns), (int32_t)columns, half);
        error = viv_plan_storage(plan, in->bytes, &nn.out);
        if (!error)
            error = add_place(plan, op_index, nn, &x, &y, shape);
        if (!error)
            error = interleave(plan, op_index, shape, rows, columns, i, nn.out, to);
    }
    return error;
}
