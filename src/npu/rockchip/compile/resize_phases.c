/* SPDX-License-Identifier: MIT */
/* RESIZE with columns as channels: see resize.h. */
#include <math.h>

#include "npu/rockchip/compile/resize.h"
#include "npu/rockchip/compile/weighted.h"
#include "util/checked.h"

/* The column that kernel column `k` of the transposed convolution has at output column `r`; false: a zero. */
static bool column_of(const struct rk_resize_axis *x, uint32_t r, uint32_t k, int32_t *column)
{
    int32_t distance = (int32_t)(r + k) - (int32_t)x->pad, spread = (int32_t)x->spread;
    *column = distance / spread;
    return distance % spread == 0;
}

static struct rk_phases phases_of(const struct rk_resize_pass *pass, struct rk_cube in)
{
    const struct rk_resize_axis *x = &pass->x;
    struct rk_phases phases = {.weigh = rk_resize_spreading(pass, in), .move = rk_resize_spreading(pass, in)};
    int32_t low = 0, high = 0, column;
    for (uint32_t r = 0; r < x->spread; r++)
        for (uint32_t k = 0; k < x->kernel; k++)
            if (column_of(x, r, k, &column)) {
                low = column < low ? column : low;
                high = column > high ? column : high;
            }
    phases.lowest = low;
    struct rk_weighted *weigh = &phases.weigh, *move = &phases.move;
    weigh->out.shape = (struct rk_shape){mica_cdiv(x->out, x->spread), pass->y.out, pass->channels * x->spread};
    weigh->kernel_w = (uint32_t)(high - low + 1);
    weigh->pad_left = -low;
    weigh->spread_x = 1;
    move->in = weigh->out;
    move->kernel_h = move->spread_y = 1;
    move->kernel_w = x->spread;
    move->pad_left = (int32_t)x->spread - 1;
    move->pad_top = 0;
    return phases;
}

static double us_of(const struct rk_chip *chip, const struct rk_weighted *weighted)
{
    struct rk_tiling tiling;
    if (rk_matrix_problem(chip, weighted) ||
        !rk_tiling_choose(chip, weighted, weighted->out.shape.c, 0, weighted->out.shape.h, &tiling))
        return INFINITY;
    return tiling.us;
}

static int lower_weighing(struct rk_plan *plan, const struct rk_resize_pass *pass, const struct rk_phases *phases)
{
    const struct rk_resize_axis *x = &pass->x, *y = &pass->y;
    struct rk_matrix matrix;
    int32_t column;
    int error = rk_matrix_new(plan, &phases->weigh, &matrix);
    if (error)
        return error;
    for (uint32_t r = 0; r < x->spread; r++)
        for (uint32_t k = 0; k < x->kernel; k++) {
            if (!column_of(x, r, k, &column))
                continue;
            for (uint32_t row = 0; row < y->kernel; row++)
                for (uint32_t c = 0; c < pass->channels; c++)
                    rk_matrix_set(&matrix, r * pass->channels + c, row, (uint32_t)(column - phases->lowest), c,
                                  (int8_t)(y->weights[row] * x->weights[k]));
        }
    return rk_lower_matrix(plan, &matrix, 1.0 / ((double)x->unit * y->unit));
}

static int lower_moving(struct rk_plan *plan, const struct rk_resize_pass *pass, const struct rk_phases *phases)
{
    struct rk_matrix matrix;
    int error = rk_matrix_new(plan, &phases->move, &matrix);
    if (error)
        return error;
    for (uint32_t r = 0; r < pass->x.spread; r++)
        for (uint32_t c = 0; c < pass->channels; c++)
            rk_matrix_set(&matrix, c, 0, pass->x.spread - 1 - r, r * pass->channels + c, 1);
    return rk_lower_matrix(plan, &matrix, 1);
}

bool rk_resize_phases(const struct rk_chip *chip, const struct rk_resize_pass *pass, struct rk_cube in,
                      struct rk_phases *phases)
{
    struct rk_weighted plain = rk_resize_spreading(pass, in);
    if (pass->x.spread == 1)
        return false;
    *phases = phases_of(pass, in);
    return us_of(chip, &phases->weigh) + us_of(chip, &phases->move) < us_of(chip, &plain);
}

int rk_lower_phases(struct rk_plan *plan, const struct rk_resize_pass *pass, struct rk_phases *phases,
                    struct rk_cube out)
{
    int error = rk_plan_cube(plan, phases->weigh.out.shape, &phases->weigh.out);
    phases->move.in = phases->weigh.out;
    phases->move.out = out;
    if (!error)
        error = lower_weighing(plan, pass, phases);
    return error ? error : lower_moving(plan, pass, phases);
}
