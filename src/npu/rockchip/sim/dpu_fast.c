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
    bool saturates; /* leaving 32 bits on the way may show in the result */
};

static double limit(const struct rk_relu *relu)
{
    return relu->on ? relu->limit : INT32_MAX;
}

/*
 * Saturated at 32 bits or not, a value of 2^31 and more ends at the result's bound, if the factors are neither so small
 * that it comes back nor so large that 2^47, which nothing exceeds, is more than the rounding takes.
 */
static bool may_saturate(const struct rk_dpu *dpu, const struct lanes *lanes)
{
    double furthest = fmax(fabs(lanes->low), fabs(lanes->high)) + 1;
    bool any = !(lanes->scale <= 1 && lanes->scale * INT32_MAX > furthest);
    for (uint32_t i = 0; dpu->bs_multiply.on && i < dpu->atom; i++)
        if (lanes->factor[i] != 0)
            any |= !(lanes->factor[i] <= 1 && lanes->factor[i] * lanes->scale * INT32_MAX > furthest);
    return any;
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
    lanes->saturates = may_saturate(dpu, lanes);
}

static inline double clamp(double value, double low, double high)
{
    value = value < low ? low : value;
    return value > high ? high : value;
}

/* What differs from task to task; constants at every call, so that each has code of its own. */
struct form {
    uint32_t atom;
    bool multiply, clamps, zero;
};

static inline __attribute__((always_inline)) void one_pixel(const struct lanes *lanes, struct form form,
                                                            const int32_t *acc, const double *sum, uint8_t *out)
{
    uint32_t atom = form.atom;
    int32_t y[RK_MAX_ATOM];
    for (uint32_t i = 0; i < atom; i++) {
        double v = acc[i] + lanes->bias[i];
        if (form.zero)
            v += lanes->zero[i] * sum[i];
        if (form.clamps)
            v = clamp(v, INT32_MIN, INT32_MAX);
        if (form.multiply)
            v = v * lanes->factor[i] + ROUNDER - ROUNDER;
        if (form.clamps)
            v = clamp(v, lanes->relu_low, lanes->relu_high);
        v = clamp(v * lanes->scale + ROUNDER - ROUNDER, lanes->low, lanes->high) + lanes->offset;
        y[i] = (int32_t)v;
    }
    for (uint32_t i = 0; i < atom; i++)
        out[i] = (uint8_t)y[i];
}

static inline __attribute__((always_inline)) void all_pixels(const struct rk_run *run, const struct lanes *lanes,
                                                             struct form form)
{
    double sum[RK_MAX_ATOM];
    for (uint32_t pixel = 0; pixel < run->pixels; pixel++) {
        if (form.zero) {
            const int32_t *from = run->sum + (size_t)pixel * run->sum_step;
            for (uint32_t i = 0; i < form.atom; i++)
                sum[i] = from[run->sum_step > 1 ? i : 0];
        }
        one_pixel(lanes, form, run->acc + (size_t)pixel * run->lanes, sum, run->out + (size_t)pixel * form.atom);
    }
}

static inline __attribute__((always_inline)) void choose_form(const struct rk_run *run, const struct lanes *lanes,
                                                              uint32_t atom, bool multiply, bool clamps)
{
    if (run->sum)
        all_pixels(run, lanes, (struct form){atom, multiply, clamps, true});
    else
        all_pixels(run, lanes, (struct form){atom, multiply, clamps, false});
}

static inline __attribute__((always_inline)) void choose_stages(const struct rk_dpu *dpu, const struct rk_run *run,
                                                                const struct lanes *lanes, uint32_t atom)
{
    bool clamps = dpu->bs_relu.on || dpu->bn_relu.on || lanes->saturates;
    if (dpu->bs_multiply.on && clamps)
        choose_form(run, lanes, atom, true, true);
    else if (dpu->bs_multiply.on)
        choose_form(run, lanes, atom, true, false);
    else if (clamps)
        choose_form(run, lanes, atom, false, true);
    else
        choose_form(run, lanes, atom, false, false);
}

static inline __attribute__((always_inline)) void choose(const struct rk_dpu *dpu, const struct rk_run *run)
{
    struct lanes lanes;
    prepare(dpu, run, &lanes);
    if (dpu->atom == RK_MAX_ATOM)
        choose_stages(dpu, run, &lanes, RK_MAX_ATOM);
    else
        choose_stages(dpu, run, &lanes, RK_MAX_ATOM / 2);
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
