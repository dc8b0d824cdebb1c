/* SPDX-License-Identifier: MIT */
/*
 * Bilinear resizing: the outputs of each phase (resize.h) are a convolution of 2x2 neighbours, on an image whose
 * border is repeated once and, where inputs are stepped over, on lanes of it (window.h). One TP job puts the planes of
 * all phases between each other.
 */
#include "npu/vivante/compile/resize.h"

#include <errno.h>

#include "npu/vivante/compile/box.h"
#include "npu/vivante/compile/coef.h"
#include "npu/vivante/compile/compose.h"
#include "npu/vivante/compile/conv.h"
#include "npu/vivante/compile/tile.h"
#include "util/checked.h"

struct lowering {
    struct viv_plan *plan;
    uint32_t op;
    struct viv_resize resize;
    struct viv_shape shape; /* of the input */
    uint32_t lanes;         /* of each channel */
    struct viv_nn nn;
};

const char *viv_bilinear_refusal(const struct mica_graph *graph, const struct mica_op *op)
{
    struct viv_resize resize;
    return viv_resize_is_single(graph, op) ? NULL : viv_resize_make(graph, op, &resize);
}

/* ---- the input ------------------------------------------------------------------------- */

static int copy(const struct lowering *lowering, struct viv_shape area, const uint64_t *in_strides,
                const uint64_t *out_strides, struct viv_ref in, uint64_t from, struct viv_ref out, uint64_t to)
{
    struct viv_box box = {0};
    viv_box_add(&box, area.c, in_strides[0], out_strides[0]);
    viv_box_add(&box, area.h, in_strides[1], out_strides[1]);
    viv_box_add(&box, area.w, 1, 1);
    in.offset += from;
    out.offset += to;
    return viv_box_lower(lowering->plan, lowering->op, &box, in, out, 0);
}

/* The planes with a border of one pixel that repeats the outermost ones. */
static int repeat_border(const struct lowering *lowering, struct viv_ref in, struct viv_ref *out)
{
    struct viv_shape shape = lowering->shape;
    uint64_t w = shape.w + 2, h = shape.h + 2;
    const uint64_t from[] = {(uint64_t)shape.w * shape.h, shape.w}, to[] = {w * h, w};
    struct viv_shape column = {1, shape.h, shape.c}, row = {(uint32_t)w, 1, shape.c};
    int error = viv_plan_storage(lowering->plan, w * h * shape.c, out);
    if (!error)
        error = copy(lowering, shape, from, to, in, 0, *out, w + 1);
    if (!error)
        error = copy(lowering, column, from, to, in, 0, *out, w);
    if (!error)
        error = copy(lowering, column, from, to, in, shape.w - 1, *out, 2 * w - 1);
    if (!error)
        error = copy(lowering, row, to, to, *out, w, *out, 0);
    return error ? error : copy(lowering, row, to, to, *out, (h - 2) * w, *out, (h - 1) * w);
}

/* The job's input: the image with its border, from the first neighbour on; where it steps, as lanes. */
static int prepare(struct lowering *lowering, struct viv_ref planar)
{
    const struct viv_resize_axis *x = &lowering->resize.x, *y = &lowering->resize.y;
    struct viv_nn *nn = &lowering->nn;
    struct viv_ref bordered;
    struct viv_shape shape = {x->in + 2, y->in + 2, lowering->shape.c};
    uint32_t column = (uint32_t)(x->base + 1), row = (uint32_t)(y->base + 1), kernel = lowering->resize.kernel;
    int error = repeat_border(lowering, planar, &bordered);
    nn->in = bordered;
    nn->in.offset += (uint64_t)row * shape.w + column;
    nn->in_w = shape.w - column;
    nn->in_h = shape.h - row;
    nn->in_x_stride = shape.w;
    nn->in_y_stride = shape.h;
    lowering->lanes = x->step * y->step;
    if (error || lowering->lanes == 1)
        return error;
    struct viv_lanes across = {.stride = x->step, .step = kernel, .groups = 1, .padding = -(int32_t)column};
    struct viv_lanes down = {.stride = y->step, .step = kernel, .groups = 1, .padding = -(int32_t)row};
    nn->in_w = nn->in_x_stride = across.columns = x->count + kernel - 1;
    nn->in_h = nn->in_y_stride = down.columns = y->count + kernel - 1;
    error = viv_plan_storage(lowering->plan, (uint64_t)nn->in_w * nn->in_h * lowering->lanes * shape.c, &nn->in);
    return error ? error
                 : viv_tp_lanes(lowering->plan, lowering->op, shape, shape.w * shape.h, &across, &down, 0, bordered,
                                nn->in, nn->in_zero_point);
}

/* ---- the phases ------------------------------------------------------------------------ */

/* The weights of a phase, lane by lane; their sum. */
static int32_t fill(const struct lowering *lowering, uint32_t phase, double scale, uint8_t *data)
{
    const struct viv_resize_axis *x = &lowering->resize.x, *y = &lowering->resize.y;
    uint32_t kernel = lowering->resize.kernel;
    uint16_t order[VIV_MAX_TAPS];
    int32_t sum = 0;
    viv_tap_order(lowering->plan->chip, kernel, kernel, order);
    for (uint32_t lane = 0; lane < lowering->lanes; lane++)
        for (uint32_t i = 0; i < kernel * kernel; i++) {
            uint32_t across = order[i] % kernel * x->step + lane % x->step;
            uint32_t down = order[i] / kernel * y->step + lane / x->step;
            double weight =
                viv_resize_weight(x, phase % x->period, across) * viv_resize_weight(y, phase / x->period, down);
            *data = viv_resize_round(weight, scale);
            sum += *data++;
        }
    return sum;
}

/* For all phases and one channel, or for one phase (not VIV_NONE) and all channels. */
static struct viv_weights *make_weights(struct lowering *lowering, uint32_t phase, struct viv_nn *nn)
{
    struct viv_weights *weights = viv_plan_weights(lowering->plan, &nn->weights);
    bool all = phase == VIV_NONE;
    double error, scale = viv_resize_scale(&lowering->resize, phase, &error);
    struct viv_requant requant = {0};
    viv_requant_factor(lowering->plan->chip, 1 / scale, &requant); /* every chip has a factor of 1/255 to 1/1020 */
    nn->post_multiplier = requant.multiplier;
    nn->post_shift = requant.shift;
    if (!weights)
        return NULL;
    weights->kernels = all ? lowering->resize.x.period * lowering->resize.y.period : lowering->shape.c;
    weights->channels = all ? lowering->lanes : 1;
    weights->phases = all ? 1 : lowering->lanes;
    weights->taps = lowering->resize.kernel * lowering->resize.kernel;
    weights->diagonal = !all && (!lowering->plan->chip->hardware_depthwise || lowering->lanes > 1);
    weights->kernel_stride = (size_t)lowering->lanes * weights->taps;
    weights->channel_stride = weights->taps;
    weights->tap_stride = 1;
    weights->owned = mica_new_array(weights->kernels, weights->kernel_stride);
    weights->bias = mica_new_array(weights->kernels, sizeof(*weights->bias));
    weights->wide_map = mica_new_array(weights->kernel_stride, sizeof(*weights->wide_map)); /* all taps are in place */
    if (!weights->owned || !weights->bias || !weights->wide_map) {
        mica_fail_nomem(lowering->plan->log);
        return NULL;
    }
    weights->source = weights->data = weights->owned;
    for (uint32_t k = 0; k < weights->kernels; k++) {
        int32_t sum = fill(lowering, all ? k : phase, scale, weights->owned + k * weights->kernel_stride);
        weights->bias[k] = (uint32_t)(sum * ((int32_t)lowering->plan->chip->bias_input_zero - nn->in_zero_point));
    }
    return weights;
}

/* A job for each channel: its kernels are the phases. */
static int add_channels(struct lowering *lowering, struct viv_nn nn)
{
    struct viv_plan *plan = lowering->plan;
    const struct viv_weights *weights = make_weights(lowering, VIV_NONE, &nn);
    if (!weights)
        return -ENOMEM;
    nn.in_c = weights->channels;
    nn.out_c = weights->kernels;
    struct viv_weights_profile profile = viv_weights_profile(weights);
    viv_tile_choose(plan->chip, &nn, viv_coef_estimate(plan->chip, nn.out_c, nn.in_c, weights->taps, &profile),
                    profile.density);
    for (uint32_t c = 0; c < lowering->shape.c; c++) {
        struct viv_job *job = viv_plan_job(plan, lowering->op, true);
        if (!job)
            return -ENOMEM;
        job->nn = nn;
        nn.in.offset += (uint64_t)nn.in_x_stride * nn.in_y_stride * nn.in_c;
        nn.out.offset += (uint64_t)nn.out_w * nn.out_h * nn.out_c;
    }
    return 0;
}

static int add_phases(struct lowering *lowering, struct viv_nn nn)
{
    int error = 0;
    for (uint32_t i = 0; !error && i < lowering->resize.x.period * lowering->resize.y.period; i++) {
        struct viv_weights *weights = make_weights(lowering, i, &nn);
        if (!weights)
            return -ENOMEM;
        error = weights->diagonal ? viv_depthwise_groups(lowering->plan, lowering->op, weights, nn, 0)
                                  : viv_depthwise_job(lowering->plan, lowering->op, weights, nn, 0);
        nn.out.offset += (uint64_t)nn.out_w * nn.out_h * lowering->shape.c;
    }
    return error;
}

/* ---- the output ------------------------------------------------------------------------ */

/* What all phases have along an axis, and how many have one more output. */
struct ends {
    uint32_t common, longer;
};

static struct ends ends_of(const struct viv_resize_axis *axis)
{
    uint32_t rest = axis->out % axis->period;
    return (struct ends){rest ? axis->count - 1 : axis->count, rest};
}

/* Bytes from plane to plane of the phases' results. */
struct pitches {
    uint64_t column_phase, row_phase, channel, plane;
};

static struct pitches pitches_of(const struct lowering *lowering)
{
    const struct viv_resize_axis *x = &lowering->resize.x, *y = &lowering->resize.y;
    uint64_t plane = (uint64_t)x->count * y->count;
    bool inside = lowering->resize.by_channel;
    struct pitches pitches = {.plane = plane, .column_phase = inside ? plane : plane * lowering->shape.c};
    pitches.row_phase = pitches.column_phase * x->period;
    pitches.channel = inside ? plane * x->period * y->period : plane;
    return pitches;
}

/* Outputs [x, x + columns) and [y, y + rows) of the first phases, as boxes. */
static int spread_rest(const struct lowering *lowering, uint32_t first_column, uint32_t columns, uint32_t column_phases,
                       uint32_t first_row, uint32_t rows, uint32_t row_phases, struct viv_ref from, struct viv_ref to)
{
    const struct viv_resize_axis *x = &lowering->resize.x, *y = &lowering->resize.y;
    struct pitches pitches = pitches_of(lowering);
    struct viv_box box = {0};
    if (!columns || !rows || !column_phases || !row_phases)
        return 0;
    from.offset += (uint64_t)first_row * x->count + first_column;
    to.offset += (uint64_t)first_row * y->period * x->out + (uint64_t)first_column * x->period;
    viv_box_add(&box, lowering->shape.c, pitches.channel, (uint64_t)x->out * y->out);
    viv_box_add(&box, row_phases, pitches.row_phase, x->out);
    viv_box_add(&box, column_phases, pitches.column_phase, 1);
    viv_box_add(&box, rows, x->count, (uint64_t)y->period * x->out);
    viv_box_add(&box, columns, 1, x->period);
    return viv_box_lower(lowering->plan, lowering->op, &box, from, to, 0);
}

/* What all phases have is one job; last columns and rows that only some have are boxes. */
static int spread(const struct lowering *lowering, struct viv_ref from, struct viv_ref to)
{
    const struct viv_resize_axis *x = &lowering->resize.x, *y = &lowering->resize.y;
    struct ends columns = ends_of(x), rows = ends_of(y);
    struct pitches pitches = pitches_of(lowering);
    struct viv_box_loop channels = {lowering->shape.c, pitches.channel, (uint64_t)x->out * y->out};
    struct viv_box_loop down = {y->period, pitches.row_phase, x->out}, across = {x->period, pitches.column_phase, 1};
    struct viv_spread all = {.columns = {columns.common, 1, x->period},
                             .rows = {rows.common, x->count, (uint64_t)y->period * x->out}};
    bool inside = lowering->resize.by_channel;
    all.planes[0] = inside ? channels : down;
    all.planes[1] = inside ? down : across;
    all.planes[2] = inside ? across : channels;
    int error = columns.common && rows.common ? viv_tp_spread(lowering->plan, lowering->op, &all, from, to) : 0;
    if (!error)
        error = spread_rest(lowering, columns.common, columns.longer ? 1 : 0, columns.longer, 0, rows.common, y->period,
                            from, to);
    if (!error)
        error = spread_rest(lowering, 0, columns.common, x->period, rows.common, rows.longer ? 1 : 0, rows.longer, from,
                            to);
    return error ? error
                 : spread_rest(lowering, columns.common, columns.longer ? 1 : 0, columns.longer, rows.common,
                               rows.longer ? 1 : 0, rows.longer, from, to);
}

int viv_lower_bilinear(struct viv_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    const struct mica_tensor *in = mica_op_input(plan->graph, op, 0);
    struct lowering lowering = {.plan = plan, .op = op_index, .shape = viv_shape_of(in)};
    struct viv_nn *nn = &lowering.nn;
    struct viv_ref planar, to;
    const char *why = NULL;
    if (viv_resize_is_single(plan->graph, op))
        return viv_lower_single(plan, op_index);
    why = viv_resize_make(plan->graph, op, &lowering.resize);
    if (why)
        return mica_fail(plan->log, -ENOTSUP, "%s", why);
    nn->in_zero_point = nn->out_zero_point = viv_zero_point(in);
    nn->kernel_w = nn->kernel_h = lowering.resize.kernel;
    nn->out_w = nn->out_x_stride = lowering.resize.x.count;
    nn->out_h = nn->out_y_stride = lowering.resize.y.count;
    uint64_t phases = (uint64_t)lowering.resize.x.period * lowering.resize.y.period;
    int error = viv_need_planar(plan, (uint32_t)op->inputs[0], op_index, &planar);
    if (!error)
        error = viv_make_planar(plan, (uint32_t)op->outputs[0], &to);
    if (!error)
        error = prepare(&lowering, planar);
    if (!error && phases == 1)
        nn->out = to;
    else if (!error)
        error = viv_plan_storage(plan, nn->out_w * (uint64_t)nn->out_h * phases * lowering.shape.c, &nn->out);
    if (!error)
        error = lowering.resize.by_channel ? add_channels(&lowering, *nn) : add_phases(&lowering, *nn);
    return error || phases == 1 ? error : spread(&lowering, nn->out, to);
}
