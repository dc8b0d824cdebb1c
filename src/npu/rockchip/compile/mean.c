/* SPDX-License-Identifier: MIT */
/*
 * MEAN over rows and columns: a depthwise convolution with the image as its window; SUM is so many times the mean.
 * Windows end at 31 pixels; larger images are reduced by an even divisor first, to the same scale. That step rounds by
 * half a step at most, the mean of such values is at most as far off, so that the result is within 1 of the exact one's
 * rounding as long as half a step of the input is less than TWO_STEPS of the output.
 */
#include "npu/rockchip/compile/mean.h"

#include <errno.h>

#include "npu/rockchip/compile/move.h"
#include "npu/rockchip/compile/refuse.h"
#include "npu/rockchip/compile/relayout.h"
#include "npu/rockchip/compile/select.h"

#define TWO_STEPS 0.75

/* What one axis is divided by in the first step: 1 when one step does it all; 0: nothing does. */
static uint32_t first_step(uint32_t size)
{
    for (uint32_t divisor = 1; divisor <= RK_MAX_STRIDE; divisor++)
        if (size % divisor == 0 && size / divisor <= RK_MAX_KERNEL)
            return divisor;
    return 0;
}

/* Windows of w x h pixels side by side. */
static struct rk_ones windows_of(const struct rk_mean *mean, struct rk_cube in, uint32_t w, uint32_t h)
{
    struct rk_cube out = {.shape = {in.shape.w / w, in.shape.h / h, in.shape.c}};
    struct rk_ones ones = rk_ones_identity(mean->op, in, out);
    ones.kernel_w = w;
    ones.kernel_h = h;
    ones.stride_x = out.shape.w == 1 ? 1 : w;
    ones.stride_y = out.shape.h == 1 ? 1 : h;
    ones.factor = 1.0 / ((double)w * h);
    ones.in_zero = ones.out_zero = mean->in_zero;
    return ones;
}

struct steps {
    uint32_t w, h; /* the first step's windows */
    bool two;
};

static bool find_steps(const struct rk_mean *mean, struct steps *steps)
{
    steps->w = mean->columns ? first_step(mean->in.shape.w) : 1;
    steps->h = mean->rows ? first_step(mean->in.shape.h) : 1;
    steps->two = steps->w > 1 || steps->h > 1;
    return steps->w && steps->h;
}

static struct rk_ones last_step(const struct rk_mean *mean, struct rk_cube in)
{
    /* Axes that stay are gone through pixel by pixel. */
    struct rk_ones ones = windows_of(mean, in, mean->columns ? in.shape.w : 1, mean->rows ? in.shape.h : 1);
    ones.factor *= mean->factor;
    ones.out_zero = mean->out_zero;
    ones.min = mean->min;
    ones.max = mean->max;
    return ones;
}

const char *rk_mean_problem(const struct rk_chip *chip, const struct rk_mean *mean)
{
    struct steps steps;
    struct rk_cube in = mean->in;
    if (!find_steps(mean, &steps))
        return "the NPU's windows end at 31 pixels, and the image can't be divided evenly into 2 to 7 such windows";
    if (steps.two) {
        struct rk_ones ones = windows_of(mean, in, steps.w, steps.h);
        const char *problem = rk_ones_problem(chip, &ones);
        if (problem)
            return problem;
        if (mean->factor / 2 > TWO_STEPS)
            return "the image needs two steps, and the output's scale is too fine for the rounding between them";
        in.shape = ones.out.shape;
    }
    struct rk_ones ones = last_step(mean, in);
    return rk_ones_problem(chip, &ones);
}

/* ---- surfaces as rows -------------------------------------------------------------- */

/* Rows of pixels that all of them make, each as wide as a window; as few as there are. 0: too many either way. */
static uint32_t rows_of(uint32_t pixels)
{
    for (uint32_t rows = 1; rows <= RK_MAX_STRIDE; rows++)
        if (pixels % rows == 0 && pixels / rows <= RK_MAX_KERNEL)
            return rows;
    return 0;
}

/* Surfaces side by side that a depthwise group of channels has room for: a divisor of all. */
static uint32_t abreast(const struct rk_chip *chip, uint32_t surfaces)
{
    uint32_t most = chip->depthwise_group / chip->atom;
    while (surfaces % most || most * chip->atom % RK_CHANNEL_STEP)
        if (--most == 0)
            return 0;
    return most;
}

/*
 * One mean a channel leaves most of the engine idle, which computes runs of 16 pixels. Surfaces stand behind each
 * other, so the image is as well one of fewer channels and more rows, and a pixel for every few surfaces comes out, in
 * the very places that the channels have. False: it is not, or not dense.
 */
static bool stack(const struct rk_plan *plan, struct rk_ones *ones)
{
    struct rk_shape in = ones->in.shape;
    uint32_t atom = plan->chip->atom, pixels = in.w * in.h, surfaces = in.c / atom, rows = rows_of(pixels);
    uint32_t lanes = in.c % atom ? 0 : abreast(plan->chip, surfaces);
    if (ones->out.shape.w * ones->out.shape.h != 1 || !rows || !lanes || !rk_cube_is_flat(plan, &ones->in) ||
        ones->in.surface != (uint64_t)pixels * atom || ones->out.surface != atom)
        return false;
    uint32_t windows = surfaces / lanes;
    struct rk_shape shape = {pixels / rows, rows * windows, lanes * atom}, out = {1, windows, lanes * atom};
    ones->in = rk_cube_dense(plan, ones->in.at, shape);
    ones->out = rk_cube_dense(plan, ones->out.at, out);
    ones->kernel_w = shape.w;
    ones->kernel_h = ones->stride_y = rows;
    return true;
}

static int lower_last(struct rk_plan *plan, const struct rk_ones *ones)
{
    struct rk_ones stacked = *ones;
    bool better = stack(plan, &stacked) && rk_ones_us(plan->chip, &stacked) < rk_ones_us(plan->chip, ones);
    return rk_lower_ones(plan, better ? &stacked : ones);
}

int rk_lower_the_mean(struct rk_plan *plan, const struct rk_mean *mean)
{
    struct steps steps;
    struct rk_cube in = mean->in;
    if (!find_steps(mean, &steps))
        return mica_fail(plan->log, -ENOTSUP, "a mean over %ux%u pixels can't run", in.shape.w, in.shape.h);
    int error = 0;
    if (steps.two) {
        struct rk_ones ones = windows_of(mean, in, steps.w, steps.h);
        error = rk_plan_cube(plan, ones.out.shape, &ones.out);
        if (!error)
            error = rk_lower_ones(plan, &ones);
        in = ones.out;
    }
    struct rk_ones ones = last_step(mean, in);
    ones.out = mean->out;
    return error ? error : lower_last(plan, &ones);
}

/* ---- channels ---------------------------------------------------------------------- */

/* All channels, and the pixels that are reduced too, by one convolution. */
static struct rk_weighted sum_of(const struct rk_mean *mean)
{
    struct rk_weighted weighted = rk_weighted_plain(mean->op, mean->in, mean->out);
    weighted.kernel_w = mean->columns ? mean->in.shape.w : 1;
    weighted.kernel_h = mean->rows ? mean->in.shape.h : 1;
    weighted.in_zero = mean->in_zero;
    weighted.out_zero = mean->out_zero;
    return weighted;
}

static double sum_factor(const struct rk_weighted *weighted, const struct rk_mean *mean)
{
    return 1.0 / ((double)weighted->kernel_w * weighted->kernel_h * weighted->in.shape.c) * mean->factor;
}

static const char *channels_problem(const struct rk_chip *chip, const struct rk_mean *mean, uint32_t channels)
{
    struct rk_weighted weighted = sum_of(mean);
    double factor = sum_factor(&weighted, mean);
    const char *problem = rk_matrix_problem(chip, &weighted);
    if (!problem)
        problem = rk_factors_problem(&factor, 1, NULL);
    return problem || channels == 1 ? problem : rk_relayout_problem(chip, mean->out.shape, channels);
}

static int lower_channels(struct rk_plan *plan, const struct rk_mean *mean, struct rk_cube out)
{
    struct rk_weighted weighted = sum_of(mean);
    struct rk_matrix matrix;
    bool last = out.shape.c == 1;
    weighted.out = rk_cube_reshaped(plan, out, mean->out.shape.w, mean->out.shape.h);
    int error = last ? 0 : rk_plan_cube(plan, mean->out.shape, &weighted.out);
    if (!error)
        error = rk_matrix_new(plan, &weighted, &matrix);
    if (error)
        return error;
    for (uint32_t y = 0; y < weighted.kernel_h; y++)
        for (uint32_t x = 0; x < weighted.kernel_w; x++)
            for (uint32_t c = 0; c < weighted.in.shape.c; c++)
                rk_matrix_set(&matrix, 0, y, x, c, 1);
    error = rk_lower_matrix(plan, &matrix, sum_factor(&weighted, mean));
    return error || last ? error : rk_lower_relayout(plan, mean->op, weighted.out, out);
}

/* ---- of the graph ------------------------------------------------------------------ */

/* Rows are all dimensions before the columns': reduced all, or none but those of size 1. */
const char *rk_sides_of(const struct mica_tensor *in, uint32_t axes, struct rk_sides *sides)
{
    uint32_t rank = in->rank, reduced = 0, kept = 0;
    sides->channels = rank > 0 && axes >> (rank - 1) & 1 && in->dims[rank - 1] != 1;
    sides->columns = rank > 1 && axes >> (rank - 2) & 1;
    for (uint32_t i = 0; i + 2 < rank; i++)
        if (in->dims[i] != 1) {
            reduced += axes >> i & 1;
            kept += !(axes >> i & 1);
        }
    sides->rows = reduced > 0;
    return reduced && kept ? "it reduces some of the dimensions before the columns and keeps others" : NULL;
}

static const char *describe(const struct mica_graph *graph, uint32_t op_index, struct rk_mean *mean, bool *channels)
{
    const struct mica_op *op = &graph->ops[op_index];
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *out = mica_op_output(graph, op, 0);
    *mean = (struct rk_mean){
        .op = op_index,
        .in = {.shape = rk_shape_of(in)},
        .factor = (double)in->quant.scale[0] / (double)out->quant.scale[0],
        .in_zero = rk_stored_zero(in),
        .out_zero = rk_stored_zero(out),
        .min = INT8_MIN,
        .max = INT8_MAX,
    };
    struct rk_sides sides = {false};
    const char *problem = rk_sides_of(in, op->axes, &sides);
    struct rk_shape shape = mean->in.shape;
    mean->columns = sides.columns;
    mean->rows = sides.rows;
    if (op->kind == MICA_OP_SUM)
        mean->factor *=
            (double)(mean->columns ? shape.w : 1) * (mean->rows ? shape.h : 1) * (sides.channels ? shape.c : 1);
    mean->out.shape = (struct rk_shape){mean->columns ? 1 : shape.w, mean->rows ? 1 : shape.h, shape.c};
    *channels = sides.channels;
    if (sides.channels)
        mean->out.shape.c = 1;
    if (!problem && !sides.channels && rk_shape_of(out).c != shape.c)
        problem = "the output has lost its channel dimension";
    if (!problem && op->kind == MICA_OP_SUM && in->type == MICA_TYPE_INT8)
        problem = "TensorFlow Lite's sums of int8 differ from version to version: there is no right result";
    return problem;
}

int rk_supports_mean(const struct rk_chip *chip, const struct mica_graph *graph, uint32_t op_index, char *reason,
                     size_t size)
{
    const struct mica_op *op = &graph->ops[op_index];
    struct rk_mean mean;
    if (rk_check_tensors(graph, op, 0, 1, reason, size))
        return -ENOTSUP;
    bool channels;
    const char *problem = describe(graph, op_index, &mean, &channels);
    if (!problem)
        problem = channels ? channels_problem(chip, &mean, rk_shape_of(mica_op_output(graph, op, 0)).c)
                           : rk_mean_problem(chip, &mean);
    return problem ? rk_refuse(reason, size, "%s", problem) : 0;
}

int rk_lower_mean(struct rk_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    struct rk_mean mean;
    struct rk_cube out;
    bool channels;
    const char *problem = describe(plan->graph, op_index, &mean, &channels);
    if (problem)
        return mica_fail(plan->log, -ENOTSUP, "%s can't run: %s", op->type, problem);
    int error = rk_plan_value(plan, (uint32_t)op->inputs[0], &mean.in);
    if (!error)
        error = rk_plan_result(plan, (uint32_t)op->outputs[0], &out);
    if (error)
        return error;
    if (channels)
        return lower_channels(plan, &mean, out);
    mean.out = rk_cube_reshaped(plan, out, mean.out.shape.w, mean.out.shape.h);
    return rk_lower_the_mean(plan, &mean);
}
