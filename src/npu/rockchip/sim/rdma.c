/* SPDX-License-Identifier: MIT */
/* DPU_RDMA: coefficients of channels, main operands, element-wise operands (specification, sections 4, 6, 9, 17). */
#include <errno.h>
#include <string.h>

#include "npu/rockchip/sim/dpu.h"
#include "npu/rockchip/sim/job.h"
#include "util/checked.h"

#define USE_NONE 0u
#define USE_BIAS 1u
#define USE_ALL 7u
#define COMB_NONE 0u
#define COMB_TWO_UNITS 5u
#define PER_CHANNEL 0u
#define PER_ELEMENT 1u
#define SIZE_8_BIT 1u
#define INT8 0u

static const struct rk_rule rules[] = {
    {RK_DPU_RDMA_RDMA_FEATURE_MODE_CFG_IN_PRECISION, INT8, "only int8 is simulated"},
    {RK_DPU_RDMA_RDMA_FEATURE_MODE_CFG_PROC_PRECISION, INT8, "only int8 is simulated"},
    {RK_DPU_RDMA_RDMA_FEATURE_MODE_CFG_MRDMA_FP16TOFP32_EN, 0, "only int8 is simulated"},
    {RK_DPU_RDMA_RDMA_NRDMA_CFG_NRDMA_DATA_USE, 0, "an operand of BN from memory is not known to work"},
    {RK_DPU_RDMA_RDMA_SRC_DMA_CFG_UNPOOLING_EN, 0, "unpooling is not simulated"},
    {RK_DPU_RDMA_RDMA_SRC_DMA_CFG_POOLING_METHOD, 0, "unpooling is not simulated"},
    {RK_DPU_RDMA_RDMA_ERDMA_CFG_ERDMA_SURF_MODE, 0, "what it does is not known"},
    {RK_DPU_RDMA_RDMA_ERDMA_CFG_ERDMA_NONALIGN, 0, "what it does is not known"},
};

static bool has_rdma(const struct rk_task *task)
{
    return task->start & RK_START_DPU_RDMA;
}

/* ---- coefficients ------------------------------------------------------------- */

enum { BIAS, MINUS_ZERO, FACTOR, OPERAND, ARRAYS };

static int32_t *array_of(const struct rk_task *task, const struct rk_dpu *dpu, unsigned which)
{
    return (int32_t *)(void *)task->sim->coefficients.data + (size_t)which * dpu->surfaces * dpu->atom;
}

static void fill(int32_t *array, uint32_t count, uint32_t value)
{
    for (uint32_t i = 0; i < count; i++)
        array[i] = (int32_t)value;
}

static uint32_t brdma_use(const struct rk_task *task)
{
    bool off = !has_rdma(task) || RK_GET(task, DPU_RDMA_RDMA_BRDMA_CFG_RK356X_BRDMA_DISABLE);
    return off ? USE_NONE : RK_GET(task, DPU_RDMA_RDMA_BRDMA_CFG_BRDMA_DATA_USE);
}

/* What the stages want must be fetched, and the other way round. */
static int check_use(const struct rk_task *task, const struct rk_dpu *dpu, uint32_t use)
{
    bool bypassed = RK_GET(task, DPU_BS_CFG_BS_BYPASS) != 0;
    bool zeros = !RK_GET(task, DPU_BS_OW_CFG_OD_BYPASS) && RK_GET(task, DPU_BS_OW_CFG_OW_SRC);
    if (use != USE_NONE && use != USE_BIAS && use != USE_ALL)
        return rk_task_refuse(task, RK_DPU_RDMA_RDMA_BRDMA_CFG_BRDMA_DATA_USE, "only 0, 1 and 7 are known");
    if (use == USE_NONE && dpu->bs_alu != RK_ALU_NONE && RK_GET(task, DPU_BS_CFG_BS_ALU_SRC))
        return rk_task_refuse(task, RK_DPU_BS_CFG_BS_ALU_SRC, "BRDMA fetches nothing, and the task would hang");
    if (use != USE_ALL && dpu->bs_multiply.on && RK_GET(task, DPU_BS_MUL_CFG_BS_MUL_SRC))
        return rk_task_refuse(task, RK_DPU_BS_MUL_CFG_BS_MUL_SRC, "BRDMA fetches no factors, and the task would hang");
    if (use != USE_ALL && zeros)
        return rk_task_refuse(task, RK_DPU_BS_OW_CFG_OW_SRC, "BRDMA fetches no zero points, and the task would hang");
    if (use == USE_ALL && bypassed)
        return rk_task_refuse(task, RK_DPU_BS_CFG_BS_BYPASS, "it leaves coefficients to a later task, and spoils it");
    return 0;
}

/* int32 A of a group's channels, int16 B of them, int16 C. */
static void unpack(const struct rk_task *task, const struct rk_dpu *dpu, const uint8_t *from)
{
    uint32_t group = task->sim->chip->coef_group, count = dpu->surfaces * dpu->atom;
    int32_t *bias = array_of(task, dpu, BIAS), *zero = array_of(task, dpu, MINUS_ZERO),
            *factor = array_of(task, dpu, FACTOR);
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *start = from + (size_t)(i / group) * group * 8;
        int16_t b, c;
        memcpy(&b, start + group * 4 + i % group * 2, sizeof b);
        memcpy(&c, start + group * 6 + i % group * 2, sizeof c);
        if (RK_GET(task, DPU_BS_CFG_BS_ALU_SRC))
            memcpy(&bias[i], start + i % group * 4, sizeof bias[i]);
        if (RK_GET(task, DPU_BS_OW_CFG_OW_SRC))
            zero[i] = b;
        if (RK_GET(task, DPU_BS_MUL_CFG_BS_MUL_SRC))
            factor[i] = c;
    }
}

static int decode_coefficients(struct rk_task *task, struct rk_dpu *dpu)
{
    uint32_t use = brdma_use(task), count = dpu->surfaces * dpu->atom;
    int result = check_use(task, dpu, use);
    if (result)
        return result;
    if (!rk_buffer_reserve(&task->sim->coefficients, (size_t)ARRAYS * count * sizeof(int32_t)))
        return mica_fail_nomem(task->sim->log);
    bool zeros = !dpu->flying && !RK_GET(task, DPU_BS_OW_CFG_OD_BYPASS);
    fill(array_of(task, dpu, BIAS), count, RK_GET(task, DPU_BS_ALU_CFG_BS_ALU_OPERAND));
    fill(array_of(task, dpu, MINUS_ZERO), count, RK_GET(task, DPU_BS_OW_OP_OW_OP));
    fill(array_of(task, dpu, FACTOR), count, RK_GET(task, DPU_BS_MUL_CFG_BS_MUL_OPERAND));
    dpu->bias = array_of(task, dpu, BIAS);
    dpu->minus_zero = array_of(task, dpu, MINUS_ZERO);
    dpu->factor = array_of(task, dpu, FACTOR);
    if (use != USE_NONE) {
        uint32_t group = use == USE_ALL ? task->sim->chip->coef_group : 1;
        uint64_t channels = mica_align(dpu->padded_channels > count ? dpu->padded_channels : count, group);
        uint64_t bytes = channels * (use == USE_ALL ? 8 : 4);
        const uint8_t *from = rk_sim_at(task->sim, RK_GET(task, DPU_RDMA_RDMA_BS_BASE_ADDR_BS_BASE_ADDR), bytes,
                                        MICA_ACCESS_READ, "coefficients of channels");
        if (!from)
            return -EFAULT;
        if (use == USE_ALL)
            unpack(task, dpu, from);
        else if (RK_GET(task, DPU_BS_CFG_BS_ALU_SRC))
            memcpy(array_of(task, dpu, BIAS), from, count * sizeof(int32_t));
        task->read_bytes += dpu->channels * bytes / channels;
        task->coefficient_bytes += dpu->channels * bytes / channels;
    }
    if (!zeros)
        fill(array_of(task, dpu, MINUS_ZERO), count, 0);
    return 0;
}

/* ---- cubes -------------------------------------------------------------------- */

/* Surfaces `first`, `first` + `every`, ... of the output's cube; the unit counts them from 0. */
static int check_operand(struct rk_task *task, const struct rk_dpu *dpu, struct rk_operand *operand,
                         enum rk_field_id address, uint32_t first, uint32_t every, const char *what)
{
    uint64_t base = rk_get(task->registers, task->generation, address);
    uint64_t bytes = (dpu->rows - 1) * operand->line + (uint64_t)dpu->width * dpu->atom;
    uint64_t payload = (uint64_t)dpu->rows * dpu->width * dpu->atom;
    for (uint32_t i = 0; first + i * every < dpu->surfaces; i++) {
        if (!rk_sim_at(task->sim, base + i * operand->step, bytes, MICA_ACCESS_READ, what))
            return -EFAULT;
        task->read_bytes += payload;
    }
    operand->base = task->sim->memory->base + base;
    return rk_task_aligned(task, address);
}

static uint64_t line_of(const struct rk_dpu *dpu, uint32_t notch)
{
    return (uint64_t)(dpu->width + notch) * dpu->atom;
}

/* The main unit: surfaces follow each other after a notch. */
static struct rk_operand main_unit(const struct rk_task *task, const struct rk_dpu *dpu)
{
    uint64_t line = line_of(dpu, RK_GET(task, DPU_RDMA_RDMA_SRC_DMA_CFG_LINE_NOTCH_ADDR));
    return (struct rk_operand){.line = line,
                               .step = dpu->rows * line + RK_GET_BYTES(task, DPU_RDMA_RDMA_SURF_NOTCH_SURF_NOTCH_ADDR)};
}

static int decode_main(struct rk_task *task, struct rk_dpu *dpu)
{
    if (RK_GET(task, DPU_RDMA_RDMA_FEATURE_MODE_CFG_MRDMA_DISABLE))
        return rk_task_refuse(task, RK_DPU_RDMA_RDMA_FEATURE_MODE_CFG_MRDMA_DISABLE,
                              "an element-wise task needs its main operand, and would hang");
    if (RK_GET(task, DPU_RDMA_RDMA_FEATURE_MODE_CFG_COMB_USE) != COMB_NONE)
        return rk_task_refuse(task, RK_DPU_RDMA_RDMA_FEATURE_MODE_CFG_COMB_USE, "an element-wise task would hang");
    dpu->main = main_unit(task, dpu);
    return check_operand(task, dpu, &dpu->main, RK_DPU_RDMA_RDMA_SRC_BASE_ADDR_SRC_BASE_ADDR, 0, 1,
                         "main operand of the DPU");
}

/* One value a channel, dense; converted here. */
static int decode_channel_operand(struct rk_task *task, struct rk_dpu *dpu)
{
    /* RK356x has no size: 8 bits. */
    bool sized = rk_fields[RK_DPU_RDMA_RDMA_ERDMA_CFG_ERDMA_DATA_SIZE].at[task->generation].width > 0;
    uint32_t code = sized ? RK_GET(task, DPU_RDMA_RDMA_ERDMA_CFG_ERDMA_DATA_SIZE) : SIZE_8_BIT;
    if (code == 0)
        return rk_task_refuse(task, RK_DPU_RDMA_RDMA_ERDMA_CFG_ERDMA_DATA_SIZE, "only 8, 16 and 32 bits are known");
    uint32_t bytes = 1u << (code - 1), shift = 32 - 8 * bytes, count = dpu->surfaces * dpu->atom;
    uint64_t size = (uint64_t)bytes * (dpu->padded_channels > count ? dpu->padded_channels : count);
    const uint8_t *from = rk_sim_at(task->sim, RK_GET(task, DPU_RDMA_RDMA_EW_BASE_ADDR_EW_BASE_ADDR), size,
                                    MICA_ACCESS_READ, "operands of channels");
    if (!from)
        return -EFAULT;
    int32_t *to = array_of(task, dpu, OPERAND);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t value = 0;
        memcpy(&value, from + (size_t)i * bytes, bytes);
        to[i] = rk_dpu_convert_operand(dpu, (int32_t)(value << shift) >> shift);
    }
    dpu->per_channel = true;
    dpu->channel_operand = to;
    task->read_bytes += (uint64_t)bytes * dpu->channels;
    return 0;
}

/* Operands in registers: what happens when they differ is not known. */
static int decode_register_operand(const struct rk_task *task, struct rk_dpu *dpu)
{
    static const enum rk_field_id values[] = {RK_DPU_EW_OP_VALUE_0_EW_OPERAND_0, RK_DPU_EW_OP_VALUE_1_EW_OPERAND_1,
                                              RK_DPU_EW_OP_VALUE_2_EW_OPERAND_2, RK_DPU_EW_OP_VALUE_3_EW_OPERAND_3,
                                              RK_DPU_EW_OP_VALUE_4_EW_OPERAND_4, RK_DPU_EW_OP_VALUE_5_EW_OPERAND_5,
                                              RK_DPU_EW_OP_VALUE_6_EW_OPERAND_6, RK_DPU_EW_OP_VALUE_7_EW_OPERAND_7};
    uint32_t value = RK_GET(task, DPU_EW_OP_VALUE_0_EW_OPERAND_0);
    for (size_t i = 1; i < sizeof values / sizeof *values; i++)
        if (rk_get(task->registers, task->generation, values[i]) != value)
            return rk_task_refuse(task, values[i], "register operands that differ are not known");
    fill(array_of(task, dpu, OPERAND), dpu->surfaces * dpu->atom,
         (uint32_t)rk_dpu_convert_operand(dpu, (int32_t)value));
    dpu->per_channel = true;
    dpu->channel_operand = array_of(task, dpu, OPERAND);
    return 0;
}

/* The two units of a convolution fused with an addition take turns (specification, section 9). */
static int decode_two_units(struct rk_task *task, struct rk_dpu *dpu)
{
    dpu->two_units = true;
    dpu->operand[0] = main_unit(task, dpu);
    uint64_t line = line_of(dpu, RK_GET(task, DPU_RDMA_RDMA_DATA_CUBE_HEIGHT_EW_LINE_NOTCH_ADDR));
    dpu->operand[1] = (struct rk_operand){
        .line = line, .step = dpu->rows * line + RK_GET_BYTES(task, DPU_RDMA_RDMA_EW_SURF_NOTCH_EW_SURF_NOTCH)};
    int result = check_operand(task, dpu, &dpu->operand[0], RK_DPU_RDMA_RDMA_SRC_BASE_ADDR_SRC_BASE_ADDR, 0, 2,
                               "element-wise operand");
    return result ? result
                  : check_operand(task, dpu, &dpu->operand[1], RK_DPU_RDMA_RDMA_EW_BASE_ADDR_EW_BASE_ADDR, 1, 2,
                                  "element-wise operand");
}

static int decode_one_unit(struct rk_task *task, struct rk_dpu *dpu)
{
    dpu->operand[0] = (struct rk_operand){
        .line = line_of(dpu, RK_GET(task, DPU_RDMA_RDMA_DATA_CUBE_HEIGHT_EW_LINE_NOTCH_ADDR)),
        .step = RK_GET_BYTES(task, DPU_RDMA_RDMA_EW_SURF_STRIDE_EW_SURF_STRIDE),
    };
    return check_operand(task, dpu, &dpu->operand[0], RK_DPU_RDMA_RDMA_EW_BASE_ADDR_EW_BASE_ADDR, 0, 1,
                         "element-wise operand");
}

static int decode_cube_operand(struct rk_task *task, struct rk_dpu *dpu)
{
    uint32_t comb = RK_GET(task, DPU_RDMA_RDMA_FEATURE_MODE_CFG_COMB_USE);
    bool sized = rk_fields[RK_DPU_RDMA_RDMA_ERDMA_CFG_ERDMA_DATA_SIZE].at[task->generation].width > 0;
    bool combined = rk_fields[RK_DPU_RDMA_RDMA_FEATURE_MODE_CFG_COMB_USE].at[task->generation].width > 0;
    if (sized && RK_GET(task, DPU_RDMA_RDMA_ERDMA_CFG_ERDMA_DATA_SIZE) != SIZE_8_BIT)
        return rk_task_refuse(task, RK_DPU_RDMA_RDMA_ERDMA_CFG_ERDMA_DATA_SIZE,
                              "only operands of 8 bits are simulated");
    if (dpu->flying || !combined)
        return decode_one_unit(task, dpu);
    if (comb != COMB_TWO_UNITS)
        return rk_task_refuse(task, RK_DPU_RDMA_RDMA_FEATURE_MODE_CFG_COMB_USE,
                              "only 5 is known to give a convolution an element-wise operand");
    return decode_two_units(task, dpu);
}

/* A unit that fetches what nobody takes never ends; one that is waited for neither. */
static int check_feeding(const struct rk_task *task, const struct rk_dpu *dpu, bool wanted)
{
    bool fetched = has_rdma(task) && !RK_GET(task, DPU_RDMA_RDMA_ERDMA_CFG_ERDMA_DISABLE);
    uint32_t comb = has_rdma(task) ? RK_GET(task, DPU_RDMA_RDMA_FEATURE_MODE_CFG_COMB_USE) : COMB_NONE;
    bool can_disable = rk_fields[RK_DPU_RDMA_RDMA_FEATURE_MODE_CFG_MRDMA_DISABLE].at[task->generation].width > 0;
    bool fetches_main = has_rdma(task) && can_disable && !RK_GET(task, DPU_RDMA_RDMA_FEATURE_MODE_CFG_MRDMA_DISABLE);
    if (wanted && !fetched)
        return rk_task_refuse(task, RK_DPU_EW_CFG_EW_OP_SRC, "ERDMA fetches no operand, and the task would hang");
    if (fetched && !wanted)
        return rk_task_refuse(task, RK_DPU_RDMA_RDMA_ERDMA_CFG_ERDMA_DISABLE,
                              "nobody takes the operand, and the task would hang");
    if (!dpu->flying && fetches_main && comb != COMB_TWO_UNITS)
        return rk_task_refuse(task, RK_DPU_RDMA_RDMA_FEATURE_MODE_CFG_MRDMA_DISABLE,
                              "the main unit isn't fed, and the task would hang");
    if (comb == COMB_TWO_UNITS && !(fetches_main && fetched))
        return rk_task_refuse(task, RK_DPU_RDMA_RDMA_FEATURE_MODE_CFG_COMB_USE,
                              "both units must fetch, or the task would hang");
    return 0;
}

static int decode_operand(struct rk_task *task, struct rk_dpu *dpu)
{
    bool wanted = dpu->ew != RK_EW_NONE && RK_GET(task, DPU_EW_CFG_EW_OP_SRC);
    int result = check_feeding(task, dpu, wanted);
    if (result || dpu->ew == RK_EW_NONE)
        return result;
    if (!wanted)
        return decode_register_operand(task, dpu);
    uint32_t mode = RK_GET(task, DPU_EW_CFG_EW_DATA_MODE);
    result = rk_task_expect(task, RK_DPU_RDMA_RDMA_ERDMA_CFG_ERDMA_DATA_MODE, mode, "DPU.EW_CFG.EW_DATA_MODE says");
    if (!result && rk_fields[RK_DPU_EW_CFG_EDATA_SIZE].at[task->generation].width > 0)
        result = rk_task_expect(task, RK_DPU_EW_CFG_EDATA_SIZE, RK_GET(task, DPU_RDMA_RDMA_ERDMA_CFG_ERDMA_DATA_SIZE),
                                "ERDMA_DATA_SIZE says");
    if (result)
        return result;
    if (mode == PER_CHANNEL)
        return decode_channel_operand(task, dpu);
    if (mode != PER_ELEMENT)
        return rk_task_refuse(task, RK_DPU_EW_CFG_EW_DATA_MODE, "only 0 (per channel) and 1 (per element) are known");
    return decode_cube_operand(task, dpu);
}

int rk_rdma_decode(struct rk_task *task, struct rk_dpu *dpu)
{
    int result = has_rdma(task) ? RK_CHECK(task, rules) : 0;
    result = result ? result : decode_coefficients(task, dpu);
    if (!result && dpu->flying)
        result = decode_main(task, dpu);
    return result ? result : decode_operand(task, dpu);
}
