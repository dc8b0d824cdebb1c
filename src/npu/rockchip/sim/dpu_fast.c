/* SPDX-License-Identifier: MIT */
/*
 * The output stage for what convolutions normally ask for, in double
 * precision, which compilers vectorise: every product has at most 32 + 16
 * bits, so it is exact, and adding 1.5 * 2^52 rounds it to a whole number as
 * the hardware does, to the nearest, ties to the even one.
 */
#include <float.h>
#include <math.h>

#include "npu/rockchip/sim/dpu.h"

#define ROUNDER 6755399441055744.0 /* 1.5 * 2^52 */

_Static_assert(DBL_MANT_DIG == 53, "double must have 53 bits");

static bool plain(const struct rk_multiply *multiply)
{
    return !multiply->prelu && (!multiply->on || multiply->shift == multiply->shift_negative);
}

bool rk_dpu_is_fast(const struct rk_dpu *dpu)
{
    bool bs = (dpu->bs_alu == RK_ALU_ADD || dpu->bs_alu == RK_ALU_NONE) && plain(&dpu->bs_multiply);
    bool bn = dpu->bn_alu == RK_ALU_NONE && !dpu->bn_multiply.on && dpu->bn_multiply.shift == 0 &&
              dpu->bn_multiply.shift_negative == 0;
    bool ew = dpu->ew == RK_EW_NONE && !dpu->use_lookup && !dpu->ew_relu.on;
    return bs && bn && ew && dpu->bs_relu.limit >= 0 && dpu->bn_relu.limit >= 0 && !dpu->out_convert.away;
}

/* What a surface's channels need, as doubles. */
struct lanes {
    double bias[RK_MAX_ATOM], zero[RK_MAX_ATOM], factor[RK_MAX_ATOM];
    double scale, low, high, offset;
    double relu_low, relu_high;
};

static double limit(const struct rk_relu *relu)
{
    return relu->on ? relu->limit : INT32_MAX;
}

static void prepare(const struct rk_dpu *dpu, const struct rk_run *run, struct lanes *lanes)
{
    double unit = ldexp(1, -(int)dpu->bs_multiply.shift);
    for (uint32_t i = 0; i < dpu->atom; i++) {
        lanes->bias[i] = dpu->bs_alu == RK_ALU_ADD ? dpu->bias[run->channel + i] : 0;
        lanes->zero[i] = run->sum ? dpu->minus_zero[run->channel + i] : 0;
        lanes->factor[i] = dpu->factor[run->channel + i] * unit;
    }
    lanes->scale = dpu->out_convert.scale * ldexp(1, -(int)dpu->out_convert.shift);
    lanes->offset = dpu->out_convert.offset;
    lanes->low = INT8_MIN - lanes->offset;
    lanes->high = INT8_MAX - lanes->offset;
    lanes->relu_low = dpu->bs_relu.on || dpu->bn_relu.on ? 0 : INT32_MIN;
    double bs = limit(&dpu->bs_relu), bn = limit(&dpu->bn_relu);
    lanes->relu_high = bs < bn ? bs : bn;
}

static inline double clamp(double value, double low, double high)
{
    value = value < low ? low : value;
    return value > high ? high : value;
}

/* One pixel: everything but the multiply is the same for all. `atom` and `multiply` are constants at every call. */
static inline __attribute__((always_inline)) void one_pixel(const struct lanes *lanes, uint32_t atom, bool multiply,
                                                            const int32_t *acc, const double *sum, uint8_t *out)
{
    int32_t y[RK_MAX_ATOM];
    for (uint32_t i = 0; i < atom; i++) {
        double v = clamp(acc[i] + lanes->zero[i] * sum[i] + lanes->bias[i], INT32_MIN, INT32_MAX);
        if (multiply)
            v = v * lanes->factor[i] + ROUNDER - ROUNDER;
        v = clamp(v, lanes->relu_low, lanes->relu_high);
        v = clamp(v * lanes->scale + ROUNDER - ROUNDER, lanes->low, lanes->high) + lanes->offset;
        y[i] = (int32_t)v;
    }
    for (uint32_t i = 0; i < atom; i++)
        out[i] = (uint8_t)y[i];
}

static inline __attribute__((always_inline)) void all_pixels(const struct rk_run *run, const struct lanes *lanes,
                                                             uint32_t atom, bool multiply)
{
    double sum[RK_MAX_ATOM] = {0};
    for (uint32_t pixel = 0; pixel < run->pixels; pixel++) {
        if (run->sum) {
            const int32_t *from = run->sum + (size_t)pixel * run->sum_step;
            for (uint32_t i = 0; i < atom; i++)
                sum[i] = from[run->sum_step > 1 ? i : 0];
        }
        one_pixel(lanes, atom, multiply, run->acc + (size_t)pixel * run->lanes, sum, run->out + (size_t)pixel * atom);
    }
}

static inline __attribute__((always_inline)) void choose(const struct rk_dpu *dpu, const struct rk_run *run)
{
    struct lanes lanes;
    prepare(dpu, run, &lanes);
    if (dpu->atom == 16 && dpu->bs_multiply.on)
        all_pixels(run, &lanes, 16, true);
    else if (dpu->atom == 16)
        all_pixels(run, &lanes, 16, false);
    else if (dpu->bs_multiply.on)
        all_pixels(run, &lanes, 8, true);
    else
        all_pixels(run, &lanes, 8, false);
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static void choose_avx2(const struct rk_dpu *dpu, const struct rk_run *run)
{
    choose(dpu, run);
}
#endif

void rk_dpu_fast(const struct rk_dpu *dpu, const struct rk_run *run)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) {
        choose_avx2(dpu, run);
        return;
    }
#endif
    choose(dpu, run);
}
