/* SPDX-License-Identifier: MIT */
#include "npu/rockchip/compile/select.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "npu/rockchip/compile/weighted.h"
#include "util/checked.h"

/* Direct convolutions that only move are dense matrices: no larger ones. */
#define MAX_MATRIX ((size_t)1 << 26)

/* Arrays of one convolution, per output channel; and its weights. */
struct arrays {
    int8_t *weights;
    int32_t *weight_zero, *bias;
    double *factor;
};

static void free_arrays(struct arrays *arrays)
{
    free(arrays->weights);
    free(arrays->weight_zero);
    free(arrays->bias);
    free(arrays->factor);
}

static int new_arrays(struct rk_plan *plan, struct arrays *arrays, uint32_t channels, size_t weights)
{
    *arrays = (struct arrays){
        .weights = mica_new_array(weights, 1),
        .weight_zero = mica_new_array(channels, sizeof(int32_t)),
        .bias = mica_new_array(channels, sizeof(int32_t)),
        .factor = mica_new_array(channels, sizeof(double)),
    };
    if (arrays->weights && arrays->weight_zero && arrays->bias && arrays->factor)
        return 0;
    free_arrays(arrays);
    return mica_fail_nomem(plan->log);
}

struct rk_weighted rk_weighted_plain(uint32_t op, struct rk_cube in, struct rk_cube out)
{
    return (struct rk_weighted){
        .op = op,
        .in = in,
        .out = out,
        .kernel_w = 1,
        .kernel_h = 1,
        .stride_x = 1,
        .stride_y = 1,
        .dilation_x = 1,
        .dilation_y = 1,
        .spread_x = 1,
        .spread_y = 1,
        .min = INT8_MIN,
        .max = INT8_MAX,
    };
}

/* Lowers, and frees the arrays. */
static int lower(struct rk_plan *plan, struct rk_weighted *weighted, struct arrays *arrays)
{
    weighted->weights = arrays->weights;
    weighted->weight_zero = arrays->weight_zero;
    weighted->bias = arrays->bias;
    weighted->factor = arrays->factor;
    int error = rk_lower_weighted(plan, weighted);
    free_arrays(arrays);
    return error;
}

/* ---- ones ----------------------------------------------------------------------- */

struct rk_ones rk_ones_identity(uint32_t op, struct rk_cube in, struct rk_cube out)
{
    return (struct rk_ones){.op = op,
                            .in = in,
                            .out = out,
                            .kernel_w = 1,
                            .kernel_h = 1,
                            .stride_x = 1,
                            .stride_y = 1,
                            .factor = 1,
                            .min = INT8_MIN,
                            .max = INT8_MAX};
}

static struct rk_weighted weighted_of_ones(const struct rk_ones *ones)
{
    struct rk_weighted weighted = rk_weighted_plain(ones->op, ones->in, ones->out);
    weighted.macs = ones->macs;
    weighted.depthwise = true;
    weighted.kernel_w = ones->kernel_w;
    weighted.kernel_h = ones->kernel_h;
    weighted.stride_x = ones->stride_x;
    weighted.stride_y = ones->stride_y;
    weighted.pad_left = ones->pad_left;
    weighted.pad_top = ones->pad_top;
    weighted.in_zero = ones->in_zero;
    weighted.out_zero = ones->out_zero;
    weighted.min = ones->min;
    weighted.max = ones->max;
    return weighted;
}

const char *rk_ones_problem(const struct rk_chip *chip, const struct rk_ones *ones)
{
    struct rk_weighted weighted = weighted_of_ones(ones);
    const char *problem = rk_weighted_problem(chip, &weighted);
    return problem ? problem : rk_factors_problem(&ones->factor, 1, NULL);
}

double rk_ones_us(const struct rk_chip *chip, const struct rk_ones *ones)
{
    struct rk_weighted weighted = weighted_of_ones(ones);
    struct rk_tiling tiling;
    if (rk_ones_problem(chip, ones) ||
        !rk_tiling_choose(chip, &weighted, weighted.out.shape.c, 0, weighted.out.shape.h, &tiling))
        return INFINITY;
    return tiling.us;
}

int rk_lower_ones(struct rk_plan *plan, const struct rk_ones *ones)
{
    struct rk_weighted weighted = weighted_of_ones(ones);
    struct arrays arrays;
    uint32_t channels = ones->out.shape.c;
    size_t weights = (size_t)ones->kernel_w * ones->kernel_h * channels;
    int error = new_arrays(plan, &arrays, channels, weights);
    if (error)
        return error;
    memset(arrays.weights, 1, weights);
    for (uint32_t c = 0; c < channels; c++)
        arrays.factor[c] = ones->factor;
    return lower(plan, &weighted, &arrays);
}

/* ---- selection ------------------------------------------------------------------- */

static struct rk_weighted weighted_of_select(const struct rk_select *select)
{
    struct rk_weighted weighted = rk_weighted_plain(select->op, select->in, select->out);
    weighted.pad_left = select->pad_left;
    weighted.pad_top = select->pad_top;
    weighted.in_zero = select->in_zero;
    weighted.out_zero = select->out_zero;
    return weighted;
}

static const char *matrix_problem(uint64_t in, uint64_t out, uint64_t positions)
{
    if (in * out > MAX_MATRIX || in * out * positions > MAX_MATRIX)
        return "moving so many channels takes more weights than it is worth";
    return NULL;
}

const char *rk_select_problem(const struct rk_chip *chip, const struct rk_select *select)
{
    struct rk_weighted weighted = weighted_of_select(select);
    const char *problem = matrix_problem(select->in.shape.c, select->out.shape.c, 1);
    return problem ? problem : rk_weighted_problem(chip, &weighted);
}

int rk_lower_select(struct rk_plan *plan, const struct rk_select *select)
{
    struct rk_weighted weighted = weighted_of_select(select);
    struct arrays arrays;
    uint32_t in = select->in.shape.c, out = select->out.shape.c;
    int error = new_arrays(plan, &arrays, out, (size_t)in * out);
    if (error)
        return error;
    for (uint32_t o = 0; o < out; o++) {
        arrays.factor[o] = select->factor[o];
        if (select->source[o] == RK_NO_CHANNEL)
            continue;
        arrays.weights[(size_t)o * in + select->source[o]] = 1;
        arrays.bias[o] = select->in_zero - select->zero[o];
    }
    return lower(plan, &weighted, &arrays);
}

/* ---- matrices -------------------------------------------------------------------- */

const char *rk_matrix_problem(const struct rk_chip *chip, const struct rk_weighted *weighted)
{
    uint64_t positions = (uint64_t)weighted->kernel_w * weighted->kernel_h;
    const char *problem = matrix_problem(weighted->in.shape.c, weighted->out.shape.c, positions);
    return problem ? problem : rk_weighted_problem(chip, weighted);
}

int rk_matrix_new(struct rk_plan *plan, const struct rk_weighted *weighted, struct rk_matrix *matrix)
{
    size_t row = (size_t)weighted->kernel_w * weighted->kernel_h * weighted->in.shape.c;
    matrix->weighted = *weighted;
    matrix->weights = mica_new_array(weighted->out.shape.c, row);
    return matrix->weights ? 0 : mica_fail_nomem(plan->log);
}

void rk_matrix_set(struct rk_matrix *matrix, uint32_t o, uint32_t y, uint32_t x, uint32_t i, int8_t weight)
{
    const struct rk_weighted *w = &matrix->weighted;
    size_t position = ((size_t)o * w->kernel_h + y) * w->kernel_w + x;
    matrix->weights[position * w->in.shape.c + i] = weight;
}

int rk_lower_matrix(struct rk_plan *plan, struct rk_matrix *matrix, double factor)
{
    struct arrays arrays;
    uint32_t channels = matrix->weighted.out.shape.c;
    int error = new_arrays(plan, &arrays, channels, 0);
    if (error) {
        free(matrix->weights);
        return error;
    }
    free(arrays.weights);
    arrays.weights = matrix->weights;
    for (uint32_t c = 0; c < channels; c++)
        arrays.factor[c] = factor;
    return lower(plan, &matrix->weighted, &arrays);
}
