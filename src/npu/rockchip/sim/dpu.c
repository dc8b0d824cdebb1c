/* SPDX-License-Identifier: MIT */
/* The output stage, whatever its registers ask for, and the way of accumulators through it into memory. */
#include "npu/rockchip/sim/dpu.h"

#include <string.h>

static void relu(const struct rk_relu *relu, uint32_t lanes, int32_t *v)
{
    if (!relu->on)
        return;
    for (uint32_t i = 0; i < lanes; i++) {
        v[i] = v[i] < 0 ? 0 : v[i];
        v[i] = v[i] > relu->limit ? relu->limit : v[i];
    }
}

static int64_t combine(enum rk_alu alu, int64_t value, int64_t operand)
{
    switch (alu) {
    case RK_ALU_MAX:
        return value > operand ? value : operand;
    case RK_ALU_MIN:
        return value < operand ? value : operand;
    case RK_ALU_ADD:
        return value + operand;
    default:
        return value;
    }
}

static int64_t shift_product(const struct rk_multiply *multiply, int64_t product)
{
    return rk_round_even(product, product >= 0 ? multiply->shift : multiply->shift_negative);
}

/* acc + ow * S + A, the multiply, the clamp. */
static void bias_and_scale(const struct rk_dpu *dpu, const struct rk_run *run, const int32_t *acc, const int32_t *sum,
                           int32_t *v)
{
    const int32_t *bias = dpu->bias + run->channel, *zero = dpu->minus_zero + run->channel,
                  *factor = dpu->factor + run->channel;
    for (uint32_t i = 0; i < dpu->atom; i++) {
        int64_t of_zero = sum ? (int64_t)zero[i] * sum[run->sum_step > 1 ? i : 0] : 0;
        if (dpu->bs_alu == RK_ALU_ADD)
            v[i] = rk_saturate32(acc[i] + of_zero + bias[i]);
        else
            v[i] = rk_saturate32(combine(dpu->bs_alu, rk_saturate32(acc[i] + of_zero), bias[i]));
        if (dpu->bs_multiply.on && !(dpu->bs_multiply.prelu && v[i] >= 0))
            v[i] = rk_saturate32(shift_product(&dpu->bs_multiply, (int64_t)v[i] * factor[i]));
    }
    relu(&dpu->bs_relu, dpu->atom, v);
}

/* Multiplies, then adds, rounds once: default, silicon unproven (specification, section 8). */
static void batch_norm(const struct rk_dpu *dpu, int32_t *v)
{
    const struct rk_multiply *multiply = &dpu->bn_multiply;
    for (uint32_t i = 0; i < dpu->atom; i++) {
        bool spared = multiply->prelu && v[i] >= 0;
        int64_t product =
            combine(dpu->bn_alu, multiply->on && !spared ? (int64_t)v[i] * dpu->bn_factor : v[i], dpu->bn_operand);
        v[i] = rk_saturate32(spared ? product : shift_product(multiply, product));
    }
    relu(&dpu->bn_relu, dpu->atom, v);
}

int32_t rk_dpu_convert_operand(const struct rk_dpu *dpu, int32_t operand)
{
    const struct rk_convert *convert = &dpu->operand_convert;
    if (!dpu->convert_operand)
        return operand;
    return rk_saturate32(
        rk_round(((int64_t)operand + convert->offset) * convert->scale, convert->shift, convert->away));
}

static int32_t operate(const struct rk_dpu *dpu, int32_t v, int32_t operand)
{
    if (dpu->ew != RK_EW_MULTIPLY)
        return rk_saturate32(combine((enum rk_alu)dpu->ew, v, operand));
    return dpu->ew_prelu && v >= 0 ? v : rk_saturate32((int64_t)v * operand);
}

static void element_wise(const struct rk_dpu *dpu, const struct rk_run *run, const uint8_t *operand, int32_t *v)
{
    if (dpu->ew != RK_EW_NONE)
        for (uint32_t i = 0; i < dpu->atom; i++)
            v[i] = operate(dpu, v[i],
                           dpu->per_channel ? dpu->channel_operand[run->channel + i]
                                            : rk_dpu_convert_operand(dpu, (int8_t)operand[i]));
    if (dpu->use_lookup)
        for (uint32_t i = 0; i < dpu->atom; i++)
            v[i] = rk_lookup_value(&dpu->lookup, v[i]);
    relu(&dpu->ew_relu, dpu->atom, v);
}

static void convert_out(const struct rk_dpu *dpu, const int32_t *v, uint8_t *out)
{
    const struct rk_convert *convert = &dpu->out_convert;
    for (uint32_t i = 0; i < dpu->atom; i++)
        out[i] = (uint8_t)rk_saturate8(rk_round((int64_t)v[i] * convert->scale, convert->shift, convert->away) +
                                       convert->offset);
}

void rk_dpu_general(const struct rk_dpu *dpu, const struct rk_run *run)
{
    for (uint32_t pixel = 0; pixel < run->pixels; pixel++) {
        int32_t v[RK_MAX_ATOM];
        const int32_t *sum = run->sum ? run->sum + (size_t)pixel * run->sum_step : NULL;
        bias_and_scale(dpu, run, run->acc + (size_t)pixel * run->lanes, sum, v);
        batch_norm(dpu, v);
        element_wise(dpu, run, run->operand ? run->operand + (size_t)pixel * dpu->atom : NULL, v);
        convert_out(dpu, v, run->out + (size_t)pixel * dpu->atom);
    }
}

uint8_t rk_dpu_padding(const struct rk_dpu *dpu)
{
    return (uint8_t)rk_saturate8(dpu->out_convert.offset);
}

static void pad_lanes(const struct rk_dpu *dpu, const struct rk_run *run)
{
    uint32_t real = dpu->channels - run->channel;
    if (real >= dpu->atom)
        return;
    for (uint32_t pixel = 0; pixel < run->pixels; pixel++)
        memset(run->out + (size_t)pixel * dpu->atom + real, rk_dpu_padding(dpu), dpu->atom - real);
}

/* Where the pixel is in a cube whose rows are `line` bytes apart. */
static uint64_t place(const struct rk_dpu *dpu, uint32_t row, uint32_t column, uint64_t line)
{
    return row * line + (uint64_t)column * dpu->atom;
}

/* The first row of the EW operand's atoms for a surface, NULL: none in memory. */
static const struct rk_operand *operand_of(const struct rk_dpu *dpu, uint32_t surface, uint64_t *offset)
{
    if (dpu->ew == RK_EW_NONE || dpu->per_channel)
        return NULL;
    const struct rk_operand *operand = &dpu->operand[dpu->two_units ? surface & 1 : 0];
    *offset = (dpu->two_units ? surface / 2 : surface) * operand->step;
    return operand;
}

/* A run of pixels in one row of the output, for one surface. */
static void run_surface(const struct rk_dpu *dpu, uint32_t row, uint32_t column, struct rk_run *run)
{
    uint32_t surface = run->channel / dpu->atom;
    uint64_t offset = 0;
    const struct rk_operand *operand = operand_of(dpu, surface, &offset);
    run->operand = operand ? operand->base + offset + place(dpu, row, column, operand->line) : NULL;
    run->out = dpu->out + surface * dpu->surface_bytes + place(dpu, row, column, dpu->line_bytes[surface & 1]);
    if (dpu->fast)
        rk_dpu_fast(dpu, run);
    else
        rk_dpu_general(dpu, run);
    pad_lanes(dpu, run);
}

void rk_dpu_block(const struct rk_dpu *dpu, uint32_t first_pixel, uint32_t pixels, uint32_t first_channel,
                  uint32_t lanes, const int32_t *acc, const int32_t *sum)
{
    uint32_t sum_step = dpu->depthwise ? lanes : 1;
    while (pixels > 0) {
        uint32_t row = first_pixel / dpu->width, column = first_pixel % dpu->width;
        uint32_t count = pixels < dpu->width - column ? pixels : dpu->width - column;
        for (uint32_t lane = 0; lane < lanes && first_channel + lane < dpu->channels; lane += dpu->atom) {
            struct rk_run run = {.channel = first_channel + lane,
                                 .pixels = count,
                                 .lanes = lanes,
                                 .sum_step = sum_step,
                                 .acc = acc + lane,
                                 .sum = sum && dpu->depthwise ? sum + lane : sum};
            run_surface(dpu, row, column, &run);
        }
        acc += (size_t)count * lanes;
        sum = sum ? sum + (size_t)count * sum_step : NULL;
        first_pixel += count;
        pixels -= count;
    }
}
