/* SPDX-License-Identifier: MIT */
/* The registers of a convolution task (specification, sections 4 to 11, 14 and 17). */
#include "npu/rockchip/compile/weighted.h"

#include <errno.h>
#include <stdlib.h>

#include "npu/rockchip/compile/builder.h"
#include "npu/rockchip/compile/fusion.h"
#include "util/checked.h"

#define LINES_PER_GROUP 4u /* the RK3588 fetches cubes in groups of so many lines; packed pixels line by line */
#define PIXEL_CODE 8u      /* ARGB_IN: this and the channels - 1 */
#define PIXEL_CHANNELS 16u /* lanes that weights have for a packed pixel */
#define REAL_CHANNELS 64u  /* RK3588 counts the input's real channels modulo this (vendor programs) */
#define DEPTHWISE_MODE 3u
#define TO_MEMORY 2u
#define ADD 2u
#define TWO_UNITS 5u
#define MAX_GRAINS 1023u /* 10 bits */
#define LEAST_GRAINS 3u
#define GRAIN_BYTES 65536u /* of input that the vendor has fetched before computing starts */

enum { BIAS_ALONE = 1, BIAS_ZERO_MULTIPLIER = 7 }; /* what BRDMA fetches a channel */

uint32_t rk_padded_channels(const struct rk_chip *chip, bool depthwise, uint32_t channels)
{
    /* The vendor pads to whole groups; a depthwise group that is not whole may never end (section 10). */
    return (uint32_t)mica_align(channels, depthwise ? chip->depthwise_group : chip->kernel_group);
}

/* What all functions here look at. */
struct job {
    const struct rk_plan *plan;
    const struct rk_chip *chip;
    const struct rk_weighted_task *task;
    const struct rk_weighted *weighted;
    uint32_t rows;     /* of output */
    uint32_t lanes;    /* input channels that the weights have lanes for */
    uint32_t channels; /* padded output channels */
    bool rk3588;
};

static uint32_t grains(const struct job *job)
{
    const struct rk_weighted *weighted = job->weighted;
    uint32_t row_bytes = rk_row_bytes(job->chip, weighted, job->task->count);
    uint32_t wanted = (uint32_t)mica_align(mica_cdiv(GRAIN_BYTES, row_bytes), 2);
    uint32_t most = job->task->rows.in_count + job->task->rows.pad_top + weighted->kernel_h;
    most = most < MAX_GRAINS ? most : MAX_GRAINS;
    if (!job->rk3588) { /* seen there: 3 for one row, 4 for three (section 17) */
        wanted = weighted->kernel_h + weighted->stride_y;
        return wanted < LEAST_GRAINS ? LEAST_GRAINS : wanted;
    }
    return wanted < most ? wanted : most;
}

static void set_mode(struct rk_builder *b, const struct job *job)
{
    const struct rk_weighted *weighted = job->weighted;
    bool spread = weighted->spread_x > 1 || weighted->spread_y > 1;
    if (weighted->in.packed) {
        rk_put(b, RK_CNA_CONV_CON1_NONALIGN_DMA, 1);
        rk_put(b, RK_CNA_CONV_CON1_GROUP_LINE_OFF, 1);
        rk_put(b, RK_CNA_CONV_CON1_ARGB_IN, PIXEL_CODE + weighted->in.shape.c - 1);
    }
    rk_put(b, RK_CNA_CONV_CON1_DECONV, spread);
    rk_put(b, RK_CNA_CONV_CON1_CONV_MODE, weighted->depthwise ? DEPTHWISE_MODE : 0);
    rk_put(b, RK_CNA_CONV_CON2_FEATURE_GRAINS, grains(job));
    rk_put(b, RK_CNA_CONV_CON3_CONV_X_STRIDE, weighted->stride_x);
    rk_put(b, RK_CNA_CONV_CON3_CONV_Y_STRIDE, weighted->stride_y);
    rk_put(b, RK_CNA_CONV_CON3_ATROUS_X_DILATION, weighted->dilation_x - 1);
    rk_put(b, RK_CNA_CONV_CON3_ATROUS_Y_DILATION, weighted->dilation_y - 1);
    rk_put(b, RK_CNA_CONV_CON3_DECONV_X_STRIDE, weighted->spread_x - 1);
    rk_put(b, RK_CNA_CONV_CON3_DECONV_Y_STRIDE, weighted->spread_y - 1);
}

static void set_sizes(struct rk_builder *b, const struct job *job)
{
    const struct rk_weighted *weighted = job->weighted;
    uint32_t width = weighted->in.shape.w, rows = job->task->rows.in_count;
    uint32_t real = weighted->depthwise ? job->task->count : weighted->in.shape.c;
    rk_put(b, RK_CNA_DATA_SIZE0_DATAIN_WIDTH, width);
    rk_put(b, RK_CNA_DATA_SIZE0_DATAIN_HEIGHT, rows);
    rk_put(b, RK_CNA_DATA_SIZE1_DATAIN_CHANNEL_REAL, job->rk3588 ? (real - 1) % REAL_CHANNELS : real - 1);
    rk_put(b, RK_CNA_DATA_SIZE1_DATAIN_CHANNEL, job->lanes);
    rk_put(b, RK_CNA_DATA_SIZE2_DATAOUT_WIDTH, weighted->out.shape.w);
    rk_put(b, RK_CNA_DATA_SIZE3_DATAOUT_ATOMICS, weighted->out.shape.w * job->rows);
    rk_put(b, RK_CNA_FC_DATA_SIZE0_DMA_WIDTH, width);
    rk_put(b, RK_CNA_FC_DATA_SIZE0_DMA_HEIGHT, rows);
    rk_put(b, RK_CNA_FC_DATA_SIZE1_DMA_CHANNEL, job->lanes);
}

static void set_weights(struct rk_builder *b, const struct job *job)
{
    const struct rk_weighted *weighted = job->weighted;
    uint32_t kernels = weighted->depthwise ? 1 : (uint32_t)mica_align(job->task->count, 2);
    uint64_t bytes = rk_weight_bytes(weighted, job->task->count);
    rk_put(b, RK_CNA_WEIGHT_SIZE0_WEIGHT_BYTES, (uint32_t)bytes);
    rk_put(b, RK_CNA_WEIGHT_SIZE1_WEIGHT_BYTES_PER_KERNEL, (uint32_t)(bytes / kernels));
    rk_put(b, RK_CNA_WEIGHT_SIZE2_WEIGHT_WIDTH, weighted->kernel_w);
    rk_put(b, RK_CNA_WEIGHT_SIZE2_WEIGHT_HEIGHT, weighted->kernel_h);
    rk_put(b, RK_CNA_WEIGHT_SIZE2_WEIGHT_KERNELS, kernels);
}

static void set_buffer(struct rk_builder *b, const struct job *job)
{
    const struct rk_weighted *weighted = job->weighted;
    uint32_t entries = rk_row_entries(job->chip, weighted, job->task->count);
    if (weighted->in.packed) /* all rows of the task, in columns of whole sixteens (section 11) */
        entries = (uint32_t)mica_align(weighted->in.shape.w, 16) * job->task->rows.in_count;
    rk_put(b, RK_CNA_CBUF_CON0_DATA_BANK, job->task->data_banks);
    rk_put(b, RK_CNA_CBUF_CON0_WEIGHT_BANK, job->chip->cbuf_banks - job->task->data_banks);
    rk_put(b, RK_CNA_CBUF_CON0_WEIGHT_REUSE, job->task->reuse);
    rk_put(b, RK_CNA_CBUF_CON1_DATA_ENTRIES, entries);
    if (!job->rk3588)
        rk_put(b, RK_CNA_CBUF_CON1_RK356X_WIDTH, weighted->in.shape.w);
}

/* The input is taken as it is: scale 1, offset 0, signed. */
static void set_input_converter(struct rk_builder *b, const struct job *job)
{
    rk_put(b, RK_CNA_CVT_CON0_DATA_SIGN, 1);
    rk_put(b, RK_CNA_CVT_CON0_CVT_TYPE, 1);
    if (job->rk3588)
        rk_put(b, RK_CNA_CVT_CON0_CVT_BYPASS, 1);
    rk_put(b, RK_CNA_CVT_CON1_CVT_SCALE0, 1);
    rk_put(b, RK_CNA_CVT_CON2_CVT_SCALE1, 1);
    rk_put(b, RK_CNA_CVT_CON3_CVT_SCALE2, 1);
    rk_put(b, RK_CNA_CVT_CON4_CVT_SCALE3, 1);
}

static void set_padding(struct rk_builder *b, const struct job *job)
{
    int32_t value = job->weighted->in_zero;
    if (job->weighted->depthwise) /* some lanes take the second byte (section 8) */
        value = (int16_t)((uint8_t)value * 0x101u);
    rk_put(b, RK_CNA_PAD_CON0_PAD_LEFT, (uint32_t)job->weighted->pad_left);
    rk_put(b, RK_CNA_PAD_CON0_PAD_TOP, job->task->rows.pad_top);
    rk_put(b, RK_CNA_PAD_CON1_PAD_VALUE, (uint32_t)value);
}

static void set_fetch(struct rk_builder *b, const struct job *job)
{
    const struct rk_cube *in = &job->weighted->in;
    uint32_t atom = in->packed ? in->shape.c : job->chip->atom;
    uint32_t line = (uint32_t)(in->line / atom), plane = (uint32_t)(in->surface / atom);
    if (job->rk3588) {
        uint32_t group = in->packed ? 1 : LINES_PER_GROUP;
        rk_put(b, RK_CNA_DMA_CON0_WEIGHT_BURST_LEN, 15);
        rk_put(b, RK_CNA_DMA_CON0_DATA_BURST_LEN, 15);
        rk_put(b, RK_CNA_DMA_CON1_LINE_STRIDE, group * line);
        rk_put(b, RK_CNA_DMA_CON2_SURF_STRIDE, plane - group * in->shape.w);
        return;
    }
    rk_put(b, RK_CNA_DMA_CON0_WEIGHT_BURST_LEN, 0x17);
    rk_put(b, RK_CNA_DMA_CON0_RK356X_BURST_LEN_1, 7);
    rk_put(b, RK_CNA_DMA_CON0_DATA_BURST_LEN, 7);
    rk_put(b, RK_CNA_DMA_CON1_LINE_STRIDE, line);
    rk_put(b, RK_CNA_DMA_CON2_SURF_STRIDE, plane);
}

static void set_core(struct rk_builder *b, const struct job *job)
{
    bool depthwise = job->weighted->depthwise;
    if (job->rk3588) {
        rk_put(b, RK_CORE_MISC_CFG_QD_EN, 1);
    } else {
        rk_put(b, RK_CSC_CONV_MODE_QD_EN, 1);
        rk_put(b, RK_CSC_CONV_MODE_DW_EN, depthwise);
    }
    rk_put(b, RK_CORE_MISC_CFG_DW_EN, depthwise);
    rk_put(b, RK_CORE_DATAOUT_SIZE_0_DATAOUT_HEIGHT, job->rows - 1);
    rk_put(b, RK_CORE_DATAOUT_SIZE_0_DATAOUT_WIDTH, job->weighted->out.shape.w - 1);
    rk_put(b, RK_CORE_DATAOUT_SIZE_1_DATAOUT_CHANNEL, job->channels - 1);
}

static void set_output(struct rk_builder *b, const struct job *job)
{
    const struct rk_cube *out = &job->weighted->out;
    uint32_t mode = job->weighted->depthwise ? DEPTHWISE_MODE : 0, plane = (uint32_t)(out->surface / job->chip->atom);
    uint32_t notch = (uint32_t)(out->line / job->chip->atom) - out->shape.w;
    rk_put(b, RK_DPU_FEATURE_MODE_CFG_BURST_LEN, job->rk3588 ? 15 : 4);
    rk_put(b, RK_DPU_FEATURE_MODE_CFG_CONV_MODE, mode);
    rk_put(b, RK_DPU_FEATURE_MODE_CFG_OUTPUT_MODE, TO_MEMORY);
    rk_put(b, RK_DPU_DST_SURF_STRIDE_DST_SURF_STRIDE, plane);
    rk_put(b, RK_DPU_DATA_CUBE_WIDTH_WIDTH, out->shape.w - 1);
    rk_put(b, RK_DPU_DATA_CUBE_HEIGHT_HEIGHT, job->rows - 1);
    rk_put(b, RK_DPU_DATA_CUBE_NOTCH_ADDR_NOTCH_ADDR_0, notch);
    rk_put(b, RK_DPU_DATA_CUBE_NOTCH_ADDR_NOTCH_ADDR_1, notch);
    rk_put(b, RK_DPU_DATA_CUBE_CHANNEL_ORIG_CHANNEL, job->task->count - 1);
    rk_put(b, RK_DPU_DATA_CUBE_CHANNEL_CHANNEL, job->channels - 1);
    if (job->rk3588) {
        rk_put(b, RK_DPU_WDMA_SIZE_0_CHANNEL_WDMA, job->channels - 1);
        rk_put(b, RK_DPU_WDMA_SIZE_1_HEIGHT_WDMA, job->rows - 1);
        rk_put(b, RK_DPU_WDMA_SIZE_1_WIDTH_WDMA, out->shape.w - 1);
    }
    rk_put(b, RK_DPU_SURFACE_ADD_SURF_ADD, plane * (mode ? 4 : 2));
}

/* BS: bias, weight zero points, multipliers. */
static void set_bias(struct rk_builder *b, const struct job *job)
{
    const struct rk_requant *requant = job->task->requant;
    uint32_t size = job->weighted->depthwise ? 3 : 1;
    rk_put(b, RK_DPU_BS_CFG_BS_ALU_ALGO, ADD);
    rk_put(b, RK_DPU_BS_CFG_BS_ALU_SRC, 1);
    rk_put(b, RK_DPU_BS_CFG_BS_RELU_BYPASS, !requant->fusion);
    if (requant->fusion) { /* the convolution's own clamps, lifted to where they are at 0 */
        rk_put(b, RK_DPU_BS_CFG_BS_RELUX_EN, 1);
        rk_put(b, RK_DPU_BS_RELUX_CMP_VALUE_BS_RELUX_CMP_DAT, (uint32_t)requant->fusion->upper);
    }
    rk_put(b, RK_DPU_BS_CFG_BS_MUL_BYPASS, !requant->per_channel);
    rk_put(b, RK_DPU_BS_OW_CFG_SIZE_E_0, size);
    rk_put(b, RK_DPU_BS_OW_CFG_SIZE_E_1, size);
    rk_put(b, RK_DPU_BS_OW_CFG_SIZE_E_2, size);
    if (requant->per_channel) {
        rk_put(b, RK_DPU_BS_MUL_CFG_BS_MUL_SHIFT_VALUE, requant->mul_shift);
        rk_put(b, RK_DPU_DATA_FORMAT_BS_MUL_SHIFT_VALUE_NEG, requant->mul_shift);
        rk_put(b, RK_DPU_BS_MUL_CFG_BS_MUL_SRC, 1);
        rk_put(b, RK_DPU_BS_OW_CFG_OW_SRC, 1);
    } else {
        rk_put(b, RK_DPU_BS_OW_OP_OW_OP, (uint32_t)-job->weighted->weight_zero[job->task->first]);
    }
}

/* BN takes the lift back, EW adds the second cube. */
static void set_sum(struct rk_builder *b, const struct rk_fusion *fusion)
{
    rk_put(b, RK_DPU_BN_CFG_BN_ALU_ALGO, ADD);
    rk_put(b, RK_DPU_BN_CFG_BN_MUL_BYPASS, 1);
    rk_put(b, RK_DPU_BN_CFG_BN_RELU_BYPASS, 1);
    rk_put(b, RK_DPU_BN_ALU_CFG_BN_ALU_OPERAND, (uint32_t)-fusion->lift);
    rk_dpu_put_third_stage(b, &fusion->stages);
    rk_dpu_put_operand(b, &fusion->stages);
    rk_put(b, RK_DPU_OUT_CVT_OFFSET_OUT_CVT_OFFSET, (uint32_t)fusion->stages.out_offset);
    rk_put(b, RK_DPU_OUT_CVT_SCALE_OUT_CVT_SCALE, (uint32_t)fusion->stages.out_scale.scale);
    rk_put(b, RK_DPU_OUT_CVT_SHIFT_OUT_CVT_SHIFT, fusion->stages.out_scale.shift);
}

/* BN clamps if anything does; EW is off; then the output conversion. */
static void set_conversion(struct rk_builder *b, const struct job *job)
{
    const struct rk_requant *requant = job->task->requant;
    rk_put(b, RK_DPU_BN_CFG_BN_BYPASS, !requant->relu);
    rk_put(b, RK_DPU_BN_CFG_BN_ALU_BYPASS, 1);
    rk_put(b, RK_DPU_BN_CFG_BN_MUL_BYPASS, 1);
    rk_put(b, RK_DPU_BN_CFG_BN_RELU_BYPASS, !requant->relu);
    rk_put(b, RK_DPU_BN_CFG_BN_RELUX_EN, requant->relux);
    rk_put(b, RK_DPU_BN_RELUX_CMP_VALUE_BN_RELUX_CMP_DAT, requant->relux ? (uint32_t)requant->upper : 0);
    rk_put(b, RK_DPU_EW_CFG_EW_BYPASS, 1);
    rk_put(b, RK_DPU_EW_CFG_EW_OP_BYPASS, 1);
    rk_put(b, RK_DPU_EW_CFG_EW_LUT_BYPASS, 1);
    rk_put(b, RK_DPU_EW_CFG_EW_OP_CVT_BYPASS, 1);
    rk_put(b, RK_DPU_EW_CFG_EW_RELU_BYPASS, 1);
    rk_put(b, RK_DPU_EW_CVT_SCALE_VALUE_EW_OP_CVT_SCALE, 1);
    rk_put(b, RK_DPU_OUT_CVT_OFFSET_OUT_CVT_OFFSET, (uint32_t)job->weighted->out_zero);
    rk_put(b, RK_DPU_OUT_CVT_SCALE_OUT_CVT_SCALE, requant->scale);
    rk_put(b, RK_DPU_OUT_CVT_SHIFT_OUT_CVT_SHIFT, requant->shift);
}

/* Both reading units take turns at the addend's surfaces (specification, section 9). */
static void set_addend(struct rk_builder *b, const struct job *job)
{
    const struct rk_cube *cube = &job->weighted->addend->cube;
    uint32_t plane = (uint32_t)(cube->surface / job->chip->atom), pixels = job->weighted->out.shape.w * job->rows;
    rk_put(b, RK_DPU_RDMA_RDMA_FEATURE_MODE_CFG_COMB_USE, TWO_UNITS);
    rk_put(b, RK_DPU_RDMA_RDMA_FEATURE_MODE_CFG_MRDMA_DISABLE, 0);
    rk_put(b, RK_DPU_RDMA_RDMA_EW_SURF_STRIDE_EW_SURF_STRIDE, plane);
    rk_put(b, RK_DPU_RDMA_RDMA_SURF_NOTCH_SURF_NOTCH_ADDR, 2 * plane - pixels);
    rk_put(b, RK_DPU_RDMA_RDMA_EW_SURF_NOTCH_EW_SURF_NOTCH, 2 * plane - pixels);
}

static void set_operands(struct rk_builder *b, const struct job *job)
{
    rk_put(b, RK_DPU_RDMA_RDMA_DATA_CUBE_WIDTH_WIDTH, job->weighted->out.shape.w - 1);
    rk_put(b, RK_DPU_RDMA_RDMA_DATA_CUBE_HEIGHT_HEIGHT, job->rows - 1);
    rk_put(b, RK_DPU_RDMA_RDMA_DATA_CUBE_CHANNEL_CHANNEL, job->channels - 1);
    rk_put(b, RK_DPU_RDMA_RDMA_BRDMA_CFG_BRDMA_DATA_USE,
           job->task->requant->per_channel ? BIAS_ZERO_MULTIPLIER : BIAS_ALONE);
    rk_put(b, RK_DPU_RDMA_RDMA_ERDMA_CFG_ERDMA_DISABLE, !job->weighted->addend);
    rk_put(b, RK_DPU_RDMA_RDMA_FEATURE_MODE_CFG_BURST_LEN, job->rk3588 ? 15 : 8);
    rk_put(b, RK_DPU_RDMA_RDMA_FEATURE_MODE_CFG_CONV_MODE, job->weighted->depthwise ? DEPTHWISE_MODE : 0);
    if (job->rk3588) {
        rk_put(b, RK_DPU_RDMA_RDMA_FEATURE_MODE_CFG_MRDMA_DISABLE, 1);
    } else {
        rk_put(b, RK_DPU_RDMA_RK356X_CHANNEL_CHANNEL, job->channels - 1);
        rk_put(b, RK_DPU_RDMA_RDMA_NRDMA_CFG_RK356X_NRDMA_DISABLE, 1);
    }
}

static bool fill(struct rk_registers *registers, const struct job *job)
{
    struct rk_builder b = {registers, job->chip->generation, false};
    rk_put_pointers(&b, true);
    set_mode(&b, job);
    set_sizes(&b, job);
    set_weights(&b, job);
    set_buffer(&b, job);
    set_input_converter(&b, job);
    set_padding(&b, job);
    set_fetch(&b, job);
    set_core(&b, job);
    set_output(&b, job);
    set_bias(&b, job);
    if (job->task->requant->fusion)
        set_sum(&b, job->task->requant->fusion);
    else
        set_conversion(&b, job);
    set_operands(&b, job);
    if (job->weighted->addend)
        set_addend(&b, job);
    rk_put_arbitration(&b);
    return !b.failed;
}

static uint16_t register_of(const struct rk_chip *chip, enum rk_field_id field)
{
    return rk_fields[field].at[chip->generation].offset;
}

/* Lanes come in sixteens also where surfaces have 8: the last surface that is fetched may be none of the tensor's. */
static uint64_t fetched_bytes(const struct job *job, const struct rk_cube *in)
{
    uint32_t surfaces = in->packed ? 1 : job->lanes / job->chip->atom;
    uint64_t row = (uint64_t)in->shape.w * (in->packed ? in->shape.c : job->chip->atom);
    return (surfaces - 1) * in->surface + (in->shape.h - 1) * in->line + row;
}

int rk_weighted_task(struct rk_plan *plan, const struct rk_weighted_task *task, struct rk_task **result)
{
    const struct rk_chip *chip = plan->chip;
    const struct rk_weighted *weighted = task->weighted;
    struct job job = {.plan = plan, .chip = chip, .task = task, .weighted = weighted};
    job.rows = task->rows.end - task->rows.first;
    job.lanes = rk_lanes(weighted, task->count);
    job.channels = rk_padded_channels(chip, weighted->depthwise, task->count);
    job.rk3588 = chip->generation == RK_GENERATION_RK3588;
    struct rk_registers *registers = calloc(1, sizeof(*registers));
    if (!registers)
        return mica_fail_nomem(plan->log);
    struct rk_cube in = weighted->in,
                   out = rk_cube_channels(plan, weighted->out, task->first - task->cube_first, task->count);
    if (weighted->depthwise)
        in = rk_cube_channels(plan, in, task->first, task->count);
    in = rk_cube_rows(plan, in, task->rows.in_first, task->rows.in_count);
    out = rk_cube_rows(plan, out, task->rows.first, job.rows);
    int error = rk_plan_reach(plan, in.at, fetched_bytes(&job, &in));
    struct rk_address addresses[] = {
        {register_of(chip, RK_CNA_FEATURE_DATA_ADDR_FEATURE_BASE_ADDR), in.at, MICA_ACCESS_READ},
        {register_of(chip, RK_CNA_DCOMP_ADDR0_DECOMPRESS_ADDR0), task->weights, MICA_ACCESS_READ},
        {register_of(chip, RK_DPU_RDMA_RDMA_BS_BASE_ADDR_BS_BASE_ADDR), task->coefficients, MICA_ACCESS_READ},
        {register_of(chip, RK_DPU_DST_BASE_ADDR_DST_BASE_ADDR), out.at, MICA_ACCESS_WRITE},
        {register_of(chip, RK_DPU_RDMA_RDMA_SRC_BASE_ADDR_SRC_BASE_ADDR), {0}, MICA_ACCESS_READ},
        {register_of(chip, RK_DPU_RDMA_RDMA_EW_BASE_ADDR_EW_BASE_ADDR), {0}, MICA_ACCESS_READ},
    };
    if (weighted->addend) {
        struct rk_cube addend = rk_cube_channels(plan, weighted->addend->cube, task->first, task->count);
        addend = rk_cube_rows(plan, addend, task->rows.first, job.rows);
        addresses[4].ref = addresses[5].ref = addend.at;
        addresses[5].ref.offset += addend.surface;
    }
    uint32_t start = RK_START_CNA | RK_START_CORE | RK_START_DPU | RK_START_DPU_RDMA | (job.rk3588 ? 0 : RK_START_CSC);
    if (!error && !fill(registers, &job))
        error = mica_fail(plan->log, -ENOTSUP, "a convolution's sizes don't fit the registers of %s", chip->name);
    if (!error)
        error = rk_plan_task(plan, weighted->op, weighted->depthwise ? "DW" : "CNV", task->macs, RK_PROGRAM_CONVOLUTION,
                             start, registers, addresses, weighted->addend ? 6 : 4, result);
    free(registers);
    return error;
}
