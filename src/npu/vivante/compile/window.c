/* SPDX-License-Identifier: MIT */
#include "npu/vivante/compile/window.h"

#include <stdio.h>

#include "util/checked.h"

/* First-pixel pooling computes four times the outputs; the rules are those that run on boards (section 7.2). */
static bool takes_first_pixel(const struct viv_chip *chip, const struct mica_op *op, uint32_t in_w, uint32_t channels)
{
    bool depthwise = op->kind == MICA_OP_DEPTHWISE_CONV_2D;
    bool pointwise = op->window.kernel_x == 1 && op->window.kernel_y == 1;
    if (chip->hardware_depthwise)
        return depthwise || (pointwise && in_w >= 3 && channels > 1);
    return pointwise || (depthwise && (in_w >= 8 || in_w <= 2));
}

static int32_t half_down(int32_t value)
{
    return value >= 0 ? value / 2 : -((1 - value) / 2);
}

/*
 * One axis of space-to-depth: tap k reads input 2*o + k - pad, which is phase
 * (k - pad) mod 2 of lowered place o + floor((k - pad) / 2). No padding has to
 * be written: places outside the lowered image read as the border.
 */
static void halve_axis(int32_t kernel, int32_t pad, uint32_t *lowered, int32_t *offset, int32_t *tap)
{
    *offset = half_down(-pad);
    *lowered = (uint32_t)(half_down(kernel - 1 - pad) - *offset + 1);
    *tap = 2 * *offset + pad;
}

/* Adds taps around the real ones to make an axis `size` long. */
static void widen_axis(uint32_t size, uint32_t *kernel, int32_t *offset, int32_t *tap, uint32_t step)
{
    int32_t leading = (int32_t)(size - *kernel) / 2;
    *kernel = size;
    *offset -= leading;
    *tap -= leading * (int32_t)step;
}

/*
 * Kernels are square, except that one column of several rows is known on all
 * chips and one row of several columns on some. A 1x1 kernel needs two
 * channels, and a depthwise one is not a pointwise stream: they become 2x2
 * (sections 3.2, 5.1 and 7.4).
 */
static void make_square(const struct viv_chip *chip, const struct mica_op *op, uint32_t channels,
                        struct viv_window *window)
{
    uint32_t size = window->kernel_w > window->kernel_h ? window->kernel_w : window->kernel_h;
    bool depthwise = op->kind == MICA_OP_DEPTHWISE_CONV_2D;
    if (size == 1 && (depthwise || channels == 1))
        size = 2;
    else if (window->kernel_w == 1 && !(depthwise && chip->hardware_depthwise))
        return;
    else if (window->kernel_h == 1 && chip->thin_kernels && !depthwise)
        return;
    widen_axis(size, &window->kernel_w, &window->x_offset, &window->column, window->step);
    widen_axis(size, &window->kernel_h, &window->y_offset, &window->row, window->step);
}

static bool check_limits(const struct viv_chip *chip, const struct viv_window *window, char *reason, size_t size)
{
    uint32_t factor = window->lowering == VIV_FIRST_PIXEL ? 2 : 1;
    int32_t low = -(1 << (chip->offset_bits - 1)), high = -low - 1;
    if (window->in_w > VIV_MAX_IMAGE || window->in_h > VIV_MAX_IMAGE || window->out_w * factor > VIV_MAX_IMAGE ||
        window->out_h * factor > VIV_MAX_IMAGE)
        snprintf(reason, size, "images of more than %u columns or rows do not fit the NN descriptor", VIV_MAX_IMAGE);
    else if (window->kernel_w > chip->max_kernel || window->kernel_h > chip->max_kernel)
        snprintf(reason, size, "kernels larger than %ux%u are not supported by the NN cores", chip->max_kernel,
                 chip->max_kernel);
    else if (window->x_offset < low || window->x_offset > high || window->y_offset < low || window->y_offset > high)
        snprintf(reason, size, "padding of more than %d columns or rows is not supported by the NN cores", -low);
    else
        return true;
    return false;
}

/* As one job on the input, or on its space-to-depth form. */
static bool make_plain(const struct viv_chip *chip, const struct mica_op *op, uint32_t channels,
                       struct viv_window *window, char *reason, size_t size)
{
    const struct mica_window *w = &op->window;
    /* A dilated kernel is one with zeros between its taps. */
    int32_t kernel_x = (w->kernel_x - 1) * w->dilation_x + 1, kernel_y = (w->kernel_y - 1) * w->dilation_y + 1;
    window->job_w = window->in_w;
    window->job_h = window->in_h;
    window->kernel_w = (uint32_t)kernel_x;
    window->kernel_h = (uint32_t)kernel_y;
    window->x_offset = -w->padding.left;
    window->y_offset = -w->padding.top;
    if (w->stride_x > 1)
        window->lowering = takes_first_pixel(chip, op, window->in_w, channels) ? VIV_FIRST_PIXEL : VIV_SPACE_TO_DEPTH;
    if (window->lowering == VIV_SPACE_TO_DEPTH) {
        halve_axis(kernel_x, w->padding.left, &window->kernel_w, &window->x_offset, &window->column);
        halve_axis(kernel_y, w->padding.top, &window->kernel_h, &window->y_offset, &window->row);
        window->job_w = mica_cdiv(window->in_w, 2);
        window->job_h = mica_cdiv(window->in_h, 2);
        window->step = 2;
        channels *= VIV_PHASES;
    }
    make_square(chip, op, channels, window);
    return check_limits(chip, window, reason, size);
}

/* Strides that plain jobs have, and kernels that are not too large before they are made smaller. */
static bool is_plain(const struct viv_chip *chip, const struct mica_window *w)
{
    return w->stride_x == w->stride_y && w->stride_x <= 2 &&
           (w->kernel_x - 1) * w->dilation_x < (int32_t)chip->max_kernel &&
           (w->kernel_y - 1) * w->dilation_y < (int32_t)chip->max_kernel;
}

bool viv_window_make(const struct viv_chip *chip, const struct mica_graph *graph, const struct mica_op *op,
                     struct viv_window *window, char *reason, size_t size)
{
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *out = mica_op_output(graph, op, 0);
    uint32_t channels = (uint32_t)in->dims[3], outputs = (uint32_t)out->dims[3];
    bool depthwise = op->kind == MICA_OP_DEPTHWISE_CONV_2D;
    struct viv_window begin = {.in_w = (uint32_t)in->dims[2], .in_h = (uint32_t)in->dims[1], .step = 1};
    struct mica_op same = *op;
    struct mica_window *w = &same.window;
    begin.out_w = (uint32_t)out->dims[2];
    begin.out_h = (uint32_t)out->dims[1];
    if (begin.out_w == 1 && begin.out_h == 1) /* then the stride has nothing to step over */
        w->stride_x = w->stride_y = 1;
    *window = begin;
    bool plain = is_plain(chip, w) && make_plain(chip, &same, channels, window, reason, size);
    bool dilated = w->dilation_x > 1 || w->dilation_y > 1, hardware = depthwise && chip->hardware_depthwise;
    if (plain && (!dilated || hardware))
        return true;
    bool lanes = viv_lanes_make(chip, &same, channels, &begin, reason, size);
    if (lanes && (!plain || viv_window_cost(chip, &begin, depthwise, channels, outputs) <
                                viv_window_cost(chip, window, depthwise, channels, outputs)))
        *window = begin;
    return plain || lanes;
}

bool viv_window_map(const struct viv_chip *chip, const struct viv_window *window, const struct mica_window *op,
                    struct viv_weights *weights)
{
    uint16_t order[VIV_MAX_TAPS];
    if (window->lowering == VIV_LANES)
        return viv_lanes_map(chip, window, op, weights);
    weights->taps = window->kernel_w * window->kernel_h;
    weights->phases = window->step * window->step;
    viv_tap_order(chip, window->kernel_w, window->kernel_h, order);
    for (uint32_t phase = 0; phase < weights->phases; phase++)
        for (uint32_t i = 0; i < weights->taps; i++) {
            int32_t row = window->row + (int32_t)(window->step * (order[i] / window->kernel_w) + phase / 2);
            int32_t column = window->column + (int32_t)(window->step * (order[i] % window->kernel_w) + phase % 2);
            bool real = row >= 0 && row % op->dilation_y == 0 && row / op->dilation_y < op->kernel_y && column >= 0 &&
                        column % op->dilation_x == 0 && column / op->dilation_x < op->kernel_x;
            int32_t tap = row / op->dilation_y * op->kernel_x + column / op->dilation_x;
            weights->map[phase][i] = real ? (int16_t)tap : -1;
        }
    return true;
}
