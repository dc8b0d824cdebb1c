/* SPDX-License-Identifier: MIT */
/* DPU: registers to an output stage, and what can't be (specification, sections 4, 8, 9, 14, 17). */
#include "npu/rockchip/sim/dpu.h"

#include <errno.h>
#include <string.h>

#include "npu/rockchip/sim/job.h"
#include "util/checked.h"

#define DIRECT 0u
#define DEPTHWISE 3u
#define INT8 0u
#define TO_MEMORY 2u
#define MAX_SHIFT 63u
#define MUX_BY_SIGN 2u /* LUT_LO_LE_MUX: LE for negative indices, LO for the others */
#define MAX_LUT_SHIFT 31u

static const struct rk_rule rules[] = {
    {RK_DPU_FEATURE_MODE_CFG_OUTPUT_MODE, TO_MEMORY, "only results that go to memory are simulated"},
    {RK_DPU_FEATURE_MODE_CFG_COMB_USE, 0, "what it does is not known"},
    {RK_DPU_FEATURE_MODE_CFG_TP_EN, 0, "transposed output is not simulated"},
    {RK_DPU_FEATURE_MODE_CFG_RGP_TYPE, 0, "what it does is not known"},
    {RK_DPU_FEATURE_MODE_CFG_NONALIGN, 0, "output that isn't a cube is not simulated"},
    {RK_DPU_FEATURE_MODE_CFG_SURF_LEN, 0, "what it does is not known"},
    {RK_DPU_DATA_FORMAT_OUT_PRECISION, INT8, "only int8 is simulated"},
    {RK_DPU_DATA_FORMAT_IN_PRECISION, INT8, "only int8 is simulated"},
    {RK_DPU_DATA_FORMAT_PROC_PRECISION, INT8, "only int8 is simulated"},
    {RK_DPU_DATA_FORMAT_EW_TRUNCATE_NEG, 0, "what it does is not known"},
    {RK_DPU_DATA_FORMAT_MC_SURF_OUT, 0, "what it does is not known"},
    {RK_DPU_OFFSET_PEND_OFFSET_PEND, 0, "what it does is not known"},
    {RK_DPU_DATA_CUBE_HEIGHT_MINMAX_CTL, 0, "what it does is not known"},
    {RK_DPU_BS_MUL_CFG_BS_TRUNCATE_SRC, 0, "what it does is not known"},
    {RK_DPU_BN_MUL_CFG_BN_TRUNCATE_SRC, 0, "what it does is not known"},
    {RK_DPU_BS_OW_CFG_RGP_CNTER, 0, "what it does is not known"},
    {RK_DPU_BS_OW_CFG_TP_ORG_EN, 0, "transposed output is not simulated"},
    {RK_DPU_WDMA_SIZE_0_TP_PRECISION, 0, "transposed output is not simulated"},
    {RK_DPU_WDMA_SIZE_0_SIZE_C_WDMA, 0, "what it does is not known"},
    {RK_DPU_EW_CFG_EW_BINARY_EN, 0, "what it does is not known"},
    {RK_DPU_EW_CVT_SCALE_VALUE_EW_TRUNCATE, 0, "what it does is not known"},
    {RK_DPU_OUT_CVT_SCALE_FP32TOFP16_EN, 0, "only int8 is simulated"},
    {RK_DPU_OUT_CVT_SHIFT_CVT_TYPE, 0, "only the integer conversion is simulated"},
    {RK_DPU_OUT_CVT_SHIFT_MINUS_EXP, 0, "only the integer conversion is simulated"},
};

/* ---- shape and destination -------------------------------------------------- */

static int decode_shape(const struct rk_task *task, struct rk_dpu *dpu)
{
    bool rdma = task->start & RK_START_DPU_RDMA, wdma = task->generation == RK_GENERATION_RK3588;
    dpu->atom = task->sim->chip->atom;
    dpu->width = RK_GET(task, DPU_DATA_CUBE_WIDTH_WIDTH) + 1;
    dpu->rows = RK_GET(task, DPU_DATA_CUBE_HEIGHT_HEIGHT) + 1;
    dpu->channels = RK_GET(task, DPU_DATA_CUBE_CHANNEL_ORIG_CHANNEL) + 1;
    dpu->padded_channels = RK_GET(task, DPU_DATA_CUBE_CHANNEL_CHANNEL) + 1;
    dpu->surfaces = mica_cdiv(dpu->channels, dpu->atom);
    if (dpu->channels > dpu->padded_channels)
        return rk_task_refuse(task, RK_DPU_DATA_CUBE_CHANNEL_ORIG_CHANNEL, "more than CHANNEL");
    const struct {
        bool there;
        enum rk_field_id field;
        uint32_t value;
    } same[] = {
        {wdma, RK_DPU_WDMA_SIZE_1_WIDTH_WDMA, dpu->width - 1},
        {wdma, RK_DPU_WDMA_SIZE_1_HEIGHT_WDMA, dpu->rows - 1},
        {wdma, RK_DPU_WDMA_SIZE_0_CHANNEL_WDMA, dpu->padded_channels - 1},
        {rdma, RK_DPU_RDMA_RDMA_DATA_CUBE_WIDTH_WIDTH, dpu->width - 1},
        {rdma, RK_DPU_RDMA_RDMA_DATA_CUBE_HEIGHT_HEIGHT, dpu->rows - 1},
        {rdma, RK_DPU_RDMA_RDMA_DATA_CUBE_CHANNEL_CHANNEL, dpu->padded_channels - 1},
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (same[i].there && rk_task_expect(task, same[i].field, same[i].value, "DPU's cube says"))
            return -EIO;
    return 0;
}

static int decode_mode(const struct rk_task *task, struct rk_dpu *dpu)
{
    bool convolution = task->start & RK_START_CNA, rdma = task->start & RK_START_DPU_RDMA;
    uint32_t mode = convolution ? RK_GET(task, CNA_CONV_CON1_CONV_MODE) : DIRECT;
    dpu->flying = !convolution;
    dpu->depthwise = mode == DEPTHWISE;
    int result = rk_task_expect(task, RK_DPU_FEATURE_MODE_CFG_FLYING_MODE, dpu->flying, "the start word asks for");
    result = result ? result : rk_task_expect(task, RK_DPU_FEATURE_MODE_CFG_CONV_MODE, mode, "CNA's CONV_MODE is");
    if (!result && rdma)
        result = rk_task_expect(task, RK_DPU_RDMA_RDMA_FEATURE_MODE_CFG_CONV_MODE, mode, "CNA's CONV_MODE is");
    if (!result && rdma)
        result =
            rk_task_expect(task, RK_DPU_RDMA_RDMA_FEATURE_MODE_CFG_FLYING_MODE, dpu->flying, "the start word asks for");
    return result;
}

/* How surfaces follow each other is said three times (specification, sections 14 and 19). */
static int check_surface_step(const struct rk_task *task, const struct rk_dpu *dpu)
{
    static const enum rk_field_id sizes[] = {RK_DPU_BS_OW_CFG_SIZE_E_0, RK_DPU_BS_OW_CFG_SIZE_E_1,
                                             RK_DPU_BS_OW_CFG_SIZE_E_2};
    uint32_t code = dpu->flying ? 0 : dpu->depthwise ? 3 : 1;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (rk_task_expect(task, sizes[i], code, "tasks of this kind have"))
            return -EIO;
    if (RK_GET_BYTES(task, DPU_SURFACE_ADD_SURF_ADD) != dpu->surface_bytes * (code + 1))
        return rk_task_refuse(task, RK_DPU_SURFACE_ADD_SURF_ADD, "it must be DST_SURF_STRIDE times SIZE_E + 1");
    return 0;
}

static int decode_destination(struct rk_task *task, struct rk_dpu *dpu)
{
    struct rk_sim *sim = task->sim;
    uint64_t base = RK_GET(task, DPU_DST_BASE_ADDR_DST_BASE_ADDR), longest = 0;
    dpu->surface_bytes = RK_GET_BYTES(task, DPU_DST_SURF_STRIDE_DST_SURF_STRIDE);
    dpu->line_bytes[0] = (uint64_t)(dpu->width + RK_GET(task, DPU_DATA_CUBE_NOTCH_ADDR_NOTCH_ADDR_0)) * dpu->atom;
    dpu->line_bytes[1] = (uint64_t)(dpu->width + RK_GET(task, DPU_DATA_CUBE_NOTCH_ADDR_NOTCH_ADDR_1)) * dpu->atom;
    for (uint32_t i = 0; i < dpu->surfaces; i++) {
        uint64_t bytes = (dpu->rows - 1) * dpu->line_bytes[i & 1] + (uint64_t)dpu->width * dpu->atom;
        longest = bytes > longest ? bytes : longest;
        if (!rk_sim_at(sim, base + i * dpu->surface_bytes, bytes, MICA_ACCESS_WRITE, "output of the DPU"))
            return -EFAULT;
    }
    dpu->out = sim->memory->base + base;
    task->write_bytes += (uint64_t)dpu->width * dpu->rows * dpu->surfaces * dpu->atom;
    int result = rk_task_aligned(task, RK_DPU_DST_BASE_ADDR_DST_BASE_ADDR);
    if (result || dpu->surfaces == 1)
        return result;
    if (dpu->surface_bytes < longest)
        return rk_task_refuse(task, RK_DPU_DST_SURF_STRIDE_DST_SURF_STRIDE, "surfaces of the output would overlap");
    return check_surface_step(task, dpu);
}

/* ---- the stages ------------------------------------------------------------- */

/* The clamp is only known behind a relu. */
static int decode_relu(const struct rk_task *task, enum rk_field_id clamp, bool on, uint32_t limit,
                       struct rk_relu *relu)
{
    bool clamps = rk_get(task->registers, task->generation, clamp) != 0;
    *relu = (struct rk_relu){.on = on, .limit = clamps ? (int32_t)limit : INT32_MAX};
    return clamps && !on ? rk_task_refuse(task, clamp, "the clamp without its relu is not known") : 0;
}

static int decode_alu(const struct rk_task *task, enum rk_field_id field, bool on, enum rk_alu *alu)
{
    uint32_t code = rk_get(task->registers, task->generation, field);
    *alu = on ? (enum rk_alu)code : RK_ALU_NONE;
    return on && code > RK_ALU_ADD ? rk_task_refuse(task, field, "only 0 (max), 1 (min) and 2 (add) are known") : 0;
}

static int decode_bs(const struct rk_task *task, struct rk_dpu *dpu)
{
    bool live = !RK_GET(task, DPU_BS_CFG_BS_BYPASS);
    bool multiply = live && !RK_GET(task, DPU_BS_CFG_BS_MUL_BYPASS);
    dpu->bs_multiply = (struct rk_multiply){
        .on = multiply,
        .prelu = multiply && RK_GET(task, DPU_BS_CFG_BS_MUL_PRELU),
        .shift = RK_GET(task, DPU_BS_MUL_CFG_BS_MUL_SHIFT_VALUE),
        .shift_negative = RK_GET(task, DPU_DATA_FORMAT_BS_MUL_SHIFT_VALUE_NEG),
    };
    int result =
        decode_alu(task, RK_DPU_BS_CFG_BS_ALU_ALGO, live && !RK_GET(task, DPU_BS_CFG_BS_ALU_BYPASS), &dpu->bs_alu);
    if (!live) {
        dpu->bs_relu = (struct rk_relu){.limit = INT32_MAX};
        return result;
    }
    return result ? result
                  : decode_relu(task, RK_DPU_BS_CFG_BS_RELUX_EN, !RK_GET(task, DPU_BS_CFG_BS_RELU_BYPASS),
                                RK_GET(task, DPU_BS_RELUX_CMP_VALUE_BS_RELUX_CMP_DAT), &dpu->bs_relu);
}

static int decode_bn(const struct rk_task *task, struct rk_dpu *dpu)
{
    static const struct rk_rule from_memory[] = {
        {RK_DPU_BN_CFG_BN_ALU_SRC, 0, "an operand of BN from memory is not known to work"},
        {RK_DPU_BN_MUL_CFG_BN_MUL_SRC, 0, "an operand of BN from memory is not known to work"},
    };
    dpu->bn_alu = RK_ALU_NONE;
    dpu->bn_relu = (struct rk_relu){.limit = INT32_MAX};
    if (RK_GET(task, DPU_BN_CFG_BN_BYPASS))
        return 0;
    bool multiply = !RK_GET(task, DPU_BN_CFG_BN_MUL_BYPASS);
    dpu->bn_multiply = (struct rk_multiply){
        .on = multiply,
        .prelu = multiply && RK_GET(task, DPU_BN_CFG_BN_MUL_PRELU),
        .shift = RK_GET(task, DPU_BN_MUL_CFG_BN_MUL_SHIFT_VALUE),
        .shift_negative = RK_GET(task, DPU_DATA_FORMAT_BN_MUL_SHIFT_VALUE_NEG),
    };
    dpu->bn_operand = (int32_t)RK_GET(task, DPU_BN_ALU_CFG_BN_ALU_OPERAND);
    dpu->bn_factor = (int32_t)RK_GET(task, DPU_BN_MUL_CFG_BN_MUL_OPERAND);
    int result = RK_CHECK(task, from_memory);
    result = result
                 ? result
                 : decode_alu(task, RK_DPU_BN_CFG_BN_ALU_ALGO, !RK_GET(task, DPU_BN_CFG_BN_ALU_BYPASS), &dpu->bn_alu);
    return result ? result
                  : decode_relu(task, RK_DPU_BN_CFG_BN_RELUX_EN, !RK_GET(task, DPU_BN_CFG_BN_RELU_BYPASS),
                                RK_GET(task, DPU_BN_RELUX_CMP_VALUE_BN_RELUX_CMP_DAT), &dpu->bn_relu);
}

static int decode_lookup(const struct rk_task *task, struct rk_dpu *dpu)
{
    static const struct rk_rule known[] = {
        {RK_DPU_LUT_CFG_LUT_LO_LE_MUX, MUX_BY_SIGN, "only 2, LE for negative indices and LO for others, is known"},
        {RK_DPU_LUT_CFG_LUT_ROAD_SEL, 0, "what it does is not known"},
        {RK_DPU_LUT_CFG_LUT_EXPAND_EN, 0, "what it does is not known"},
        {RK_DPU_LUT_CFG_LUT_CAL_SEL, 0, "what it does is not known"},
        {RK_DPU_LUT_LE_END_LUT_LE_END, 0, "tables that don't meet at index 0 are not known"},
        {RK_DPU_LUT_LO_START_LUT_LO_START, 0, "tables that don't meet at index 0 are not known"},
    };
    const struct rk_lut *lut = &task->sim->lut;
    dpu->lookup = (struct rk_lookup){
        .lut = lut,
        .start = (int32_t)RK_GET(task, DPU_LUT_LE_START_LUT_LE_START),
        .end = (int32_t)RK_GET(task, DPU_LUT_LO_END_LUT_LO_END),
        .shift = {RK_GET(task, DPU_LUT_INFO_LUT_LE_INDEX_SELECT), RK_GET(task, DPU_LUT_INFO_LUT_LO_INDEX_SELECT)},
        .slope = {(int32_t)RK_GET(task, DPU_LUT_LE_SLOPE_SCALE_LUT_LE_SLOPE_UFLOW_SCALE),
                  (int32_t)RK_GET(task, DPU_LUT_LO_SLOPE_SCALE_LUT_LO_SLOPE_OFLOW_SCALE)},
        .slope_shift = {RK_GET(task, DPU_LUT_LE_SLOPE_SHIFT_LUT_LE_SLOPE_UFLOW_SHIFT),
                        RK_GET(task, DPU_LUT_LO_SLOPE_SHIFT_LUT_LO_SLOPE_OFLOW_SHIFT)},
    };
    if (!lut->loaded[RK_LUT_LE] || !lut->loaded[RK_LUT_LO])
        return rk_task_refuse(task, RK_DPU_EW_CFG_EW_LUT_BYPASS, "no task of the job has loaded both tables");
    if (dpu->lookup.shift[RK_LUT_LE] > MAX_LUT_SHIFT || dpu->lookup.shift[RK_LUT_LO] > MAX_LUT_SHIFT)
        return rk_task_refuse(task, RK_DPU_LUT_INFO_LUT_LE_INDEX_SELECT, "steps of the tables can't be that large");
    return RK_CHECK(task, known);
}

static int decode_operation(const struct rk_task *task, struct rk_dpu *dpu)
{
    bool multiply = RK_GET(task, DPU_EW_CFG_EW_OP_TYPE) != 0;
    uint32_t code = RK_GET(task, DPU_EW_CFG_EW_ALU_ALGO);
    dpu->ew_prelu = RK_GET(task, DPU_EW_CFG_EW_MUL_PRELU) != 0;
    dpu->ew = multiply ? RK_EW_MULTIPLY : (enum rk_ew)code;
    dpu->convert_operand = !RK_GET(task, DPU_EW_CFG_EW_OP_CVT_BYPASS);
    dpu->operand_convert = (struct rk_convert){
        .offset = (int32_t)RK_GET(task, DPU_EW_CVT_OFFSET_VALUE_EW_OP_CVT_OFFSET),
        .scale = (int32_t)RK_GET(task, DPU_EW_CVT_SCALE_VALUE_EW_OP_CVT_SCALE),
        .shift = RK_GET(task, DPU_EW_CVT_SCALE_VALUE_EW_OP_CVT_SHIFT),
        .away = RK_GET(task, DPU_EW_CFG_EW_CVT_ROUND) != 0,
    };
    if (!multiply && code > RK_EW_ADD)
        return rk_task_refuse(task, RK_DPU_EW_CFG_EW_ALU_ALGO, "only 0 (max), 1 (min) and 2 (add) are known");
    if (!multiply && dpu->ew_prelu)
        return rk_task_refuse(task, RK_DPU_EW_CFG_EW_MUL_PRELU, "only multiplies have this form");
    if (dpu->convert_operand && !RK_GET(task, DPU_EW_CFG_EW_CVT_TYPE))
        return rk_task_refuse(task, RK_DPU_EW_CFG_EW_CVT_TYPE, "only 1, the offset before the scale, is known");
    return 0;
}

static int decode_ew(const struct rk_task *task, struct rk_dpu *dpu)
{
    dpu->ew = RK_EW_NONE;
    dpu->ew_relu = (struct rk_relu){.limit = INT32_MAX};
    if (RK_GET(task, DPU_EW_CFG_EW_BYPASS))
        return 0;
    bool from_memory = RK_GET(task, DPU_EW_CFG_EW_OP_SRC) != 0;
    dpu->use_lookup = !RK_GET(task, DPU_EW_CFG_EW_LUT_BYPASS);
    int result = dpu->use_lookup ? decode_lookup(task, dpu) : 0;
    if (!result && dpu->use_lookup && from_memory)
        return rk_task_refuse(task, RK_DPU_EW_CFG_EW_OP_SRC, "a second operand beside the tables is not known");
    /* With the tables, vendor programs leave the operation on or off: it does nothing. */
    if (!result && !dpu->use_lookup && !RK_GET(task, DPU_EW_CFG_EW_OP_BYPASS))
        result = decode_operation(task, dpu);
    return result ? result
                  : decode_relu(task, RK_DPU_EW_CFG_EW_RELUX_EN, !RK_GET(task, DPU_EW_CFG_EW_RELU_BYPASS),
                                RK_GET(task, DPU_EW_RELUX_CMP_VALUE_EW_RELUX_CMP_DAT), &dpu->ew_relu);
}

static int decode_out(const struct rk_task *task, struct rk_dpu *dpu)
{
    dpu->out_convert = (struct rk_convert){
        .offset = (int32_t)RK_GET(task, DPU_OUT_CVT_OFFSET_OUT_CVT_OFFSET),
        .scale = (int32_t)RK_GET(task, DPU_OUT_CVT_SCALE_OUT_CVT_SCALE),
        .shift = RK_GET(task, DPU_OUT_CVT_SHIFT_OUT_CVT_SHIFT),
        .away = RK_GET(task, DPU_OUT_CVT_SHIFT_CVT_ROUND) != 0,
    };
    if (dpu->out_convert.shift > MAX_SHIFT)
        return rk_task_refuse(task, RK_DPU_OUT_CVT_SHIFT_OUT_CVT_SHIFT, "only 6 bits of the shift work");
    return 0;
}

int rk_dpu_decode(struct rk_task *task, struct rk_dpu *dpu)
{
    *dpu = (struct rk_dpu){0};
    int result = RK_CHECK(task, rules);
    result = result ? result : decode_mode(task, dpu);
    result = result ? result : decode_shape(task, dpu);
    result = result ? result : decode_bs(task, dpu);
    result = result ? result : decode_bn(task, dpu);
    result = result ? result : decode_ew(task, dpu);
    result = result ? result : decode_out(task, dpu);
    result = result ? result : decode_destination(task, dpu);
    result = result ? result : rk_rdma_decode(task, dpu);
    dpu->fast = rk_dpu_is_fast(dpu);
    return result;
}
