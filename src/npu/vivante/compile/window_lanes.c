/* SPDX-License-Identifier: MIT */
/* Windows that no plain job has, on lanes (window.h). */
#include <stdio.h>

#include "npu/vivante/compile/lower.h"
#include "npu/vivante/compile/window.h"
#include "util/checked.h"

#define MAX_GROUPS 64u /* of lanes along an axis; each pair of them is a TP job */
#define MAX_LANES 1024u
#define LANES_OF_A_CORE 64u
#define DIAGONAL_GROUP 16u /* channels of a group without hardware for depthwise convolutions, about */
#define TP_FIXED 1512.0    /* cycles of a TP job */

/* A window along one axis. */
struct axis {
    int32_t size, taps, dilation, stride, padding;
    uint32_t outputs;
};

/* Taps that meet nothing but padding wherever the window is add nothing: they are left out. */
static void trim(struct axis *axis, uint32_t *first)
{
    int32_t last = (axis->size - 1 + axis->padding) / axis->dilation;
    int32_t before = axis->padding - axis->stride * ((int32_t)axis->outputs - 1);
    *first = before > 0 ? (uint32_t)((before + axis->dilation - 1) / axis->dilation) : 0;
    if ((int32_t)*first > last)
        *first = (uint32_t)(last < axis->taps ? last : axis->taps - 1);
    axis->taps = (last < axis->taps - 1 ? last + 1 : axis->taps) - (int32_t)*first;
    axis->padding -= (int32_t)*first * axis->dilation;
}

/*
 * The taps dealt to `groups` lanes of each phase. With stride 1 a lane has whole taps and the gaps between
 * them, else any places. Returns the kernel's size, 0: no better than fewer groups.
 */
static uint32_t deal(const struct axis *axis, uint32_t groups, struct viv_lanes *lanes)
{
    bool whole = axis->stride == 1;
    uint32_t reach = (uint32_t)(axis->taps - 1) * (uint32_t)axis->dilation / (uint32_t)axis->stride + 1;
    uint32_t count = whole ? (uint32_t)axis->taps : reach, share = mica_cdiv(count, groups);
    if (mica_cdiv(count, share) != groups)
        return 0;
    lanes->stride = (uint32_t)axis->stride;
    lanes->step = whole ? share * (uint32_t)axis->dilation : share;
    lanes->groups = groups;
    lanes->padding = axis->padding;
    return whole ? (share - 1) * (uint32_t)axis->dilation + 1 : share;
}

static struct axis axis_of(int32_t kernel, int32_t stride, int32_t dilation, int32_t padding, uint32_t in, uint32_t out)
{
    return (struct axis){(int32_t)in, kernel, dilation, stride, padding, out};
}

/* Kernels are square, but for one column, or one row on some chips; diagonal ones have more than one tap. */
static void set_kernel(const struct viv_chip *chip, uint32_t w, uint32_t h, bool depthwise, uint32_t planes,
                       struct viv_window *window)
{
    uint32_t size = w > h ? w : h;
    if (size == 1 && (depthwise || planes == 1))
        size = 2;
    bool thin = size > 1 && ((w == 1 && h > 1) || (h == 1 && w > 1 && chip->thin_kernels && !depthwise));
    window->kernel_w = thin ? w : size;
    window->kernel_h = thin ? h : size;
    window->job_w = window->x.columns = window->out_w + window->kernel_w - 1;
    window->job_h = window->y.columns = window->out_h + window->kernel_h - 1;
}

/* The scans of the first and of the last group are where the TP descriptor's fields reach. */
static bool scannable(const struct viv_lanes *lanes, uint32_t size)
{
    int64_t start = (int64_t)(lanes->groups - 1) * lanes->step * lanes->stride - lanes->padding;
    uint64_t length = (uint64_t)lanes->columns * lanes->stride;
    return size <= INT16_MAX && length <= INT16_MAX && -lanes->padding >= INT16_MIN &&
           start + (int64_t)length <= INT16_MAX;
}

static bool fits(const struct viv_chip *chip, const struct viv_window *window, uint32_t channels)
{
    uint64_t lanes = (uint64_t)window->x.stride * window->x.groups * window->y.stride * window->y.groups;
    uint64_t bytes = (uint64_t)window->job_w * window->job_h * channels;
    return window->kernel_w <= chip->max_kernel && window->kernel_h <= chip->max_kernel &&
           window->job_w <= VIV_MAX_IMAGE && window->job_h <= VIV_MAX_IMAGE && scannable(&window->x, window->in_w) &&
           scannable(&window->y, window->in_h) && channels <= UINT16_MAX && lanes <= MAX_LANES &&
           bytes <= MICA_MAX_TENSOR_BYTES / lanes &&
           lanes * window->kernel_w * window->kernel_h <= VIV_MAX_KERNEL_WEIGHTS;
}

double viv_window_cost(const struct viv_chip *chip, const struct viv_window *window, bool depthwise, uint32_t channels,
                       uint32_t outputs)
{
    uint32_t phases = viv_window_phases(window),
             seen = depthwise && channels > DIAGONAL_GROUP ? DIAGONAL_GROUP : channels;
    double taps = (double)window->kernel_w * window->kernel_h, inputs = (double)seen * phases, steps;
    if (chip->coef_blocks_of_nine)
        steps = taps * inputs / 3;
    else if (taps == 1)
        steps = inputs / 3;
    else
        steps = inputs * mica_cdiv(window->kernel_h, 2) * mica_cdiv(window->kernel_w, 3);
    double vectors = mica_cdiv(window->out_w * window->out_h, LANES_OF_A_CORE);
    double cycles = vectors * mica_cdiv(outputs, chip->nn_cores) * steps;
    if (window->lowering != VIV_LANES)
        return cycles;
    double elements = (double)window->job_w * window->job_h * phases * channels;
    return cycles + elements / chip->tp_cores + TP_FIXED * window->x.groups * window->y.groups;
}

/* The cheapest way to deal both axes' taps. */
static bool choose(const struct viv_chip *chip, const struct axis *x, const struct axis *y, bool depthwise,
                   uint32_t channels, struct viv_window *window)
{
    struct viv_window trial = *window;
    double best = 0;
    bool found = false;
    for (uint32_t i = 1; i <= MAX_GROUPS; i++)
        for (uint32_t j = 1; j <= MAX_GROUPS; j++) {
            uint32_t kernel_w = deal(x, i, &trial.x), kernel_h = deal(y, j, &trial.y);
            if (!kernel_w || !kernel_h || kernel_w > chip->max_kernel || kernel_h > chip->max_kernel)
                continue;
            set_kernel(chip, kernel_w, kernel_h, depthwise, viv_window_phases(&trial) * channels, &trial);
            double cost = viv_window_cost(chip, &trial, depthwise, channels, channels);
            if (!fits(chip, &trial, channels) || (found && cost >= best))
                continue;
            best = cost;
            *window = trial;
            found = true;
        }
    return found;
}

bool viv_lanes_make(const struct viv_chip *chip, const struct mica_op *op, uint32_t channels, struct viv_window *window,
                    char *reason, size_t size)
{
    const struct mica_window *w = &op->window;
    struct axis x = axis_of(w->kernel_x, w->stride_x, w->dilation_x, w->padding.left, window->in_w, window->out_w);
    struct axis y = axis_of(w->kernel_y, w->stride_y, w->dilation_y, w->padding.top, window->in_h, window->out_h);
    window->lowering = VIV_LANES;
    trim(&x, &window->x.first);
    trim(&y, &window->y.first);
    if (w->kernel_x > VIV_MAX_TAPS_ALONG || w->kernel_y > VIV_MAX_TAPS_ALONG)
        snprintf(reason, size, "a window of %dx%d is larger than %dx%d", w->kernel_x, w->kernel_y, VIV_MAX_TAPS_ALONG,
                 VIV_MAX_TAPS_ALONG);
    else if (window->out_w > VIV_MAX_IMAGE || window->out_h > VIV_MAX_IMAGE)
        snprintf(reason, size, "images of more than %u columns or rows do not fit the NN descriptor", VIV_MAX_IMAGE);
    else if (choose(chip, &x, &y, op->kind == MICA_OP_DEPTHWISE_CONV_2D, channels, window))
        return true;
    else
        snprintf(reason, size,
                 "a window of %dx%d with stride %dx%d, dilation %dx%d and this padding would take more than %u shifted "
                 "copies of the image, or larger ones than the NN cores can read",
                 w->kernel_x, w->kernel_y, w->stride_x, w->stride_y, w->dilation_x, w->dilation_y, MAX_LANES);
    return false;
}

/* The original tap along an axis at a place of a lane, -1: none. */
static int32_t tap_at(const struct viv_lanes *lanes, uint32_t group, uint32_t phase, uint32_t place, int32_t taps,
                      int32_t dilation)
{
    uint32_t distance = (group * lanes->step + place) * lanes->stride + phase;
    uint32_t tap = lanes->first + distance / (uint32_t)dilation;
    return place < lanes->step && distance % (uint32_t)dilation == 0 && tap < (uint32_t)taps ? (int32_t)tap : -1;
}

bool viv_lanes_map(const struct viv_chip *chip, const struct viv_window *window, const struct mica_window *op,
                   struct viv_weights *weights)
{
    const struct viv_lanes *x = &window->x, *y = &window->y;
    uint16_t order[VIV_MAX_TAPS];
    weights->taps = window->kernel_w * window->kernel_h;
    weights->phases = viv_window_phases(window);
    weights->wide_map = mica_new_array((size_t)weights->phases * weights->taps, sizeof(*weights->wide_map));
    if (!weights->wide_map)
        return false;
    viv_tap_order(chip, window->kernel_w, window->kernel_h, order);
    for (uint32_t lane = 0; lane < weights->phases; lane++)
        for (uint32_t i = 0; i < weights->taps; i++) {
            uint32_t phase_x = lane % x->stride, phase_y = lane / x->stride % y->stride;
            uint32_t group = lane / (x->stride * y->stride);
            int32_t column =
                tap_at(x, group % x->groups, phase_x, order[i] % window->kernel_w, op->kernel_x, op->dilation_x);
            int32_t row =
                tap_at(y, group / x->groups, phase_y, order[i] / window->kernel_w, op->kernel_y, op->dilation_y);
            bool real = row >= 0 && column >= 0;
            weights->wide_map[lane * weights->taps + i] = real ? (int16_t)(row * op->kernel_x + column) : -1;
        }
    return true;
}
