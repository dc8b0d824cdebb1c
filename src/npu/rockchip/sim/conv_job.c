/* SPDX-License-Identifier: MIT */
/* CNA and CORE: registers to a convolution, and what can't be (specification, sections 4, 5, 7, 8, 11, 14, 17). */
#include <string.h>

#include "npu/rockchip/sim/job.h"
#include "util/checked.h"

#define DIRECT 0u
#define DEPTHWISE 3u
#define FIRST_PACKED 8u /* ARGB_IN of one channel */
#define REAL_CHANNELS_MODULUS 64u
#define LINES_OF_A_GROUP 4u
#define INT8 0u
#define SIGN_FLIP 0x80u

static const struct rk_rule rules[] = {
    {RK_CNA_CONV_CON1_PROC_PRECISION, INT8, "only int8 is simulated"},
    {RK_CNA_CONV_CON1_IN_PRECISION, INT8, "only int8 is simulated"},
    {RK_CORE_MISC_CFG_PROC_PRECISION, INT8, "only int8 is simulated"},
    {RK_CNA_CONV_CON2_CSC_WO_EN, 0, "no weights would be loaded, and the task would hang"},
    {RK_CNA_CONV_CON2_CSC_DO_EN, 0, "no data would be loaded, and the task would hang"},
    {RK_CNA_CONV_CON2_CMD_FIFO_SRST, 0, "the reset would lose the task"},
    {RK_CNA_CONV_CON3_NN_MODE, 0, "cores working together are not simulated"},
    {RK_CNA_CBUF_CON0_FC_DATA_BANK, 0, "anything but 0 corrupts convolutions"},
    {RK_CNA_FC_CON0_FC_SKIP_EN, 0, "what it does is not known"},
    {RK_CNA_FC_CON1_DATA_OFFSET, 0, "what it does is not known"},
    {RK_CNA_FC_CON2_WEIGHT_OFFSET, 0, "what it does is not known"},
    {RK_CNA_DATA_SIZE3_SURF_MODE, 0, "what it does is not known"},
    {RK_CNA_DCOMP_CTRL_DECOMP_CONTROL, 0, "the format of compressed weights is not known"},
    {RK_CNA_DCOMP_REGNUM_DCOMP_REGNUM, 0, "the format of compressed weights is not known"},
    {RK_CORE_CLIP_TRUNCATE_ROUND_TYPE, 0, "what it does is not known"},
};

static int decode_mode(const struct rk_task *task, struct rk_conv *conv)
{
    uint32_t mode = RK_GET(task, CNA_CONV_CON1_CONV_MODE);
    if (mode != DIRECT && mode != DEPTHWISE)
        return rk_task_refuse(task, RK_CNA_CONV_CON1_CONV_MODE, "only 0 (direct) and 3 (depthwise) are known");
    conv->depthwise = mode == DEPTHWISE;
    int result = rk_task_expect(task, RK_CORE_MISC_CFG_DW_EN, conv->depthwise, "CNA.CONV_CON1.CONV_MODE says");
    bool csc = rk_fields[RK_CSC_CONV_MODE_DW_EN].at[task->generation].width > 0;
    if (!result && csc)
        result = rk_task_expect(task, RK_CSC_CONV_MODE_DW_EN, conv->depthwise, "CNA.CONV_CON1.CONV_MODE says");
    enum rk_field_id sums = csc ? RK_CSC_CONV_MODE_QD_EN : RK_CORE_MISC_CFG_QD_EN;
    result = result ? result : rk_task_expect(task, sums, 1, "8-bit results need it");
    conv->window_sums = true;
    conv->truncate = RK_GET(task, CORE_CLIP_TRUNCATE_CLIP_TRUNCATE);
    return result;
}

static int decode_kernel(const struct rk_task *task, struct rk_conv *conv)
{
    static const enum rk_field_id not_zero[] = {RK_CNA_WEIGHT_SIZE2_WEIGHT_WIDTH, RK_CNA_WEIGHT_SIZE2_WEIGHT_HEIGHT,
                                                RK_CNA_CONV_CON3_CONV_X_STRIDE, RK_CNA_CONV_CON3_CONV_Y_STRIDE,
                                                RK_CNA_WEIGHT_SIZE2_WEIGHT_KERNELS};
    for (size_t i = 0; i < sizeof not_zero / sizeof *not_zero; i++)
        if (rk_get(task->registers, task->generation, not_zero[i]) == 0)
            return rk_task_refuse(task, not_zero[i], "it can't be 0");
    bool spread = RK_GET(task, CNA_CONV_CON1_DECONV) != 0;
    conv->kernel_w = RK_GET(task, CNA_WEIGHT_SIZE2_WEIGHT_WIDTH);
    conv->kernel_h = RK_GET(task, CNA_WEIGHT_SIZE2_WEIGHT_HEIGHT);
    conv->stride_x = RK_GET(task, CNA_CONV_CON3_CONV_X_STRIDE);
    conv->stride_y = RK_GET(task, CNA_CONV_CON3_CONV_Y_STRIDE);
    conv->dilation_x = RK_GET(task, CNA_CONV_CON3_ATROUS_X_DILATION) + 1;
    conv->dilation_y = RK_GET(task, CNA_CONV_CON3_ATROUS_Y_DILATION) + 1;
    conv->spread_x = spread ? RK_GET(task, CNA_CONV_CON3_DECONV_X_STRIDE) + 1 : 1;
    conv->spread_y = spread ? RK_GET(task, CNA_CONV_CON3_DECONV_Y_STRIDE) + 1 : 1;
    if (!spread && RK_GET(task, CNA_CONV_CON3_DECONV_X_STRIDE) | RK_GET(task, CNA_CONV_CON3_DECONV_Y_STRIDE))
        return rk_task_refuse(task, RK_CNA_CONV_CON1_DECONV, "CONV_CON3 has deconvolution strides without it");
    conv->pad_left = (int32_t)RK_GET(task, CNA_PAD_CON0_PAD_LEFT);
    conv->pad_top = (int32_t)RK_GET(task, CNA_PAD_CON0_PAD_TOP);
    uint32_t pad = RK_GET(task, CNA_PAD_CON1_PAD_VALUE);
    memcpy(conv->pad, &pad, sizeof conv->pad); /* the two low bytes */
    return 0;
}

/* A converter that changes nothing but the sign bit is as good as none; others are not known well enough. */
static int decode_converter(const struct rk_task *task, struct rk_conv *conv)
{
    static const enum rk_field_id fields[4][3] = {
        {RK_CNA_CVT_CON1_CVT_SCALE0, RK_CNA_CVT_CON0_CVT_TRUNCATE_0, RK_CNA_CVT_CON1_CVT_OFFSET0},
        {RK_CNA_CVT_CON2_CVT_SCALE1, RK_CNA_CVT_CON0_CVT_TRUNCATE_1, RK_CNA_CVT_CON2_CVT_OFFSET1},
        {RK_CNA_CVT_CON3_CVT_SCALE2, RK_CNA_CVT_CON0_CVT_TRUNCATE_2, RK_CNA_CVT_CON3_CVT_OFFSET2},
        {RK_CNA_CVT_CON4_CVT_SCALE3, RK_CNA_CVT_CON0_CVT_TRUNCATE_3, RK_CNA_CVT_CON4_CVT_OFFSET3},
    };
    bool is_signed = RK_GET(task, CNA_CVT_CON0_DATA_SIGN) != 0;
    bool off = task->generation == RK_GENERATION_RK3588 ? RK_GET(task, CNA_CVT_CON0_CVT_BYPASS) != 0
                                                        : !RK_GET(task, CNA_CVT_CON0_RK356X_CVT_EN);
    conv->flip = off || is_signed ? 0 : SIGN_FLIP;
    if (off)
        return is_signed ? 0 : rk_task_refuse(task, RK_CNA_CVT_CON0_DATA_SIGN, "unsigned data needs the converter");
    uint32_t lanes = conv->packed ? conv->real_channels : 4;
    for (uint32_t i = 0; i < lanes; i++) {
        uint32_t scale = rk_get(task->registers, task->generation, fields[i][0]);
        uint32_t shift = rk_get(task->registers, task->generation, fields[i][1]);
        uint32_t offset = rk_get(task->registers, task->generation, fields[i][2]);
        if (shift > 31 || scale != UINT32_C(1) << shift || offset != (uint32_t) - (int32_t)conv->flip)
            return rk_task_refuse(task, fields[i][0], "a conversion of the input that isn't plain is not simulated");
    }
    return 0;
}

static int decode_channels(const struct rk_task *task, struct rk_conv *conv)
{
    uint32_t packed = RK_GET(task, CNA_CONV_CON1_ARGB_IN), atom = task->sim->chip->atom;
    uint32_t programmed = RK_GET(task, CNA_DATA_SIZE1_DATAIN_CHANNEL_REAL) + 1;
    conv->packed = packed != 0;
    conv->channels = RK_GET(task, CNA_DATA_SIZE1_DATAIN_CHANNEL);
    if (conv->channels == 0 || conv->channels % atom != 0 || conv->channels > RK_MAX_CHANNELS + 1)
        return rk_task_refuse(task, RK_CNA_DATA_SIZE1_DATAIN_CHANNEL, "it must be a multiple of the atom");
    if (conv->packed && (packed < FIRST_PACKED || packed >= FIRST_PACKED + 4))
        return rk_task_refuse(task, RK_CNA_CONV_CON1_ARGB_IN, "only 8 to 11 (1 to 4 channels) are known");
    if (conv->packed) {
        conv->real_channels = packed - FIRST_PACKED + 1;
        return rk_task_expect(task, RK_CNA_DATA_SIZE1_DATAIN_CHANNEL_REAL, conv->real_channels - 1,
                              "CNA.CONV_CON1.ARGB_IN says");
    }
    /* The vendor has it modulo 64, mainline's user doesn't. */
    uint32_t missing = (conv->channels - programmed) % REAL_CHANNELS_MODULUS;
    if (missing >= conv->channels)
        return rk_task_refuse(task, RK_CNA_DATA_SIZE1_DATAIN_CHANNEL_REAL, "it doesn't go with DATAIN_CHANNEL");
    conv->real_channels = conv->channels - missing;
    return rk_task_expect(task, RK_CNA_FC_DATA_SIZE1_DMA_CHANNEL, conv->channels, "DATAIN_CHANNEL says");
}

/* Rows and surfaces of the cube from strides that count groups of lines (specification, section 4). */
static int decode_strides(const struct rk_task *task, struct rk_conv *conv)
{
    uint32_t atom = task->sim->chip->atom, line = RK_GET(task, CNA_DMA_CON1_LINE_STRIDE);
    int64_t plane = (int32_t)RK_GET(task, CNA_DMA_CON2_SURF_STRIDE);
    uint32_t group = 1;
    if (task->generation == RK_GENERATION_RK3588) {
        group = RK_GET(task, CNA_CONV_CON1_GROUP_LINE_OFF) ? 1 : LINES_OF_A_GROUP;
        plane += (int64_t)group * conv->in_w;
    }
    if (line % group != 0)
        return rk_task_refuse(task, RK_CNA_DMA_CON1_LINE_STRIDE, "groups of four lines need a multiple of 4");
    if (!conv->packed && plane < 0)
        return rk_task_refuse(task, RK_CNA_DMA_CON2_SURF_STRIDE, "surfaces would go backwards");
    /* Packed lines count pixels on RK3588, 8 bytes on RK356x. */
    bool pixels = conv->packed && task->generation == RK_GENERATION_RK3588;
    conv->line_bytes = (uint64_t)(line / group) * (pixels ? conv->real_channels : atom);
    conv->surface_bytes = conv->packed ? 0 : (uint64_t)plane * atom;
    return conv->packed ? 0 : rk_task_aligned(task, RK_CNA_FEATURE_DATA_ADDR_FEATURE_BASE_ADDR);
}

static int decode_input(const struct rk_task *task, struct rk_conv *conv)
{
    conv->feature = RK_GET(task, CNA_FEATURE_DATA_ADDR_FEATURE_BASE_ADDR);
    conv->in_w = RK_GET(task, CNA_FC_DATA_SIZE0_DMA_WIDTH);
    conv->in_h = RK_GET(task, CNA_FC_DATA_SIZE0_DMA_HEIGHT);
    if (conv->in_w == 0 || conv->in_w > RK_MAX_IMAGE)
        return rk_task_refuse(task, RK_CNA_FC_DATA_SIZE0_DMA_WIDTH, "the width must be 1 to 2047");
    if (conv->in_h == 0)
        return rk_task_refuse(task, RK_CNA_FC_DATA_SIZE0_DMA_HEIGHT, "the height can't be 0");
    if (RK_GET(task, CNA_DATA_SIZE0_DATAIN_WIDTH) < conv->in_w)
        return rk_task_refuse(task, RK_CNA_DATA_SIZE0_DATAIN_WIDTH, "less than the columns that are fetched");
    int result = rk_task_expect(task, RK_CNA_DATA_SIZE0_DATAIN_HEIGHT, conv->in_h, "DMA_HEIGHT says");
    result = result ? result : decode_channels(task, conv);
    result = result ? result : decode_strides(task, conv);
    return result ? result : decode_converter(task, conv);
}

static int decode_output(const struct rk_task *task, struct rk_conv *conv)
{
    conv->out_w = RK_GET(task, CORE_DATAOUT_SIZE_0_DATAOUT_WIDTH) + 1;
    conv->out_h = RK_GET(task, CORE_DATAOUT_SIZE_0_DATAOUT_HEIGHT) + 1;
    uint64_t pixels = (uint64_t)conv->out_w * conv->out_h;
    uint32_t padded = RK_GET(task, CORE_DATAOUT_SIZE_1_DATAOUT_CHANNEL) + 1;
    uint32_t real = RK_GET(task, DPU_DATA_CUBE_CHANNEL_ORIG_CHANNEL) + 1;
    conv->out_channels = (uint32_t)mica_align(real, task->sim->chip->atom);
    int result = rk_task_expect(task, RK_CNA_DATA_SIZE2_DATAOUT_WIDTH, conv->out_w, "CORE's output has another width");
    result = result ? result
                    : rk_task_expect(task, RK_CNA_DATA_SIZE3_DATAOUT_ATOMICS, pixels, "CORE's output has other pixels");
    result =
        result ? result : rk_task_expect(task, RK_DPU_DATA_CUBE_WIDTH_WIDTH, conv->out_w - 1, "CORE's output says");
    result =
        result ? result : rk_task_expect(task, RK_DPU_DATA_CUBE_HEIGHT_HEIGHT, conv->out_h - 1, "CORE's output says");
    result = result ? result : rk_task_expect(task, RK_DPU_DATA_CUBE_CHANNEL_CHANNEL, padded - 1, "CORE's output says");
    if (!result && conv->depthwise && conv->out_channels > mica_align(conv->channels, task->sim->chip->atom))
        result = rk_task_refuse(task, RK_DPU_DATA_CUBE_CHANNEL_ORIG_CHANNEL, "there are fewer input channels");
    return result;
}

static int decode_weights(const struct rk_task *task, struct rk_conv *conv)
{
    uint64_t kernel = (uint64_t)conv->kernel_w * conv->kernel_h * conv->channels;
    uint32_t kernels = RK_GET(task, CNA_WEIGHT_SIZE2_WEIGHT_KERNELS);
    conv->weights = RK_GET(task, CNA_DCOMP_ADDR0_DECOMPRESS_ADDR0);
    conv->weight_bytes = kernel * kernels;
    conv->kernels = conv->depthwise ? conv->channels : kernels;
    if (conv->depthwise && kernels != 1)
        return rk_task_refuse(task, RK_CNA_WEIGHT_SIZE2_WEIGHT_KERNELS, "a depthwise convolution has one kernel");
    if (!conv->depthwise && kernels % 2 != 0)
        return rk_task_refuse(task, RK_CNA_WEIGHT_SIZE2_WEIGHT_KERNELS, "kernels come in pairs");
    if (kernels > RK_GET(task, CORE_DATAOUT_SIZE_1_DATAOUT_CHANNEL) + 1)
        return rk_task_refuse(task, RK_CNA_WEIGHT_SIZE2_WEIGHT_KERNELS, "CORE has fewer output channels");
    if (!conv->depthwise && kernels < RK_GET(task, DPU_DATA_CUBE_CHANNEL_ORIG_CHANNEL) + 1)
        return rk_task_refuse(task, RK_CNA_WEIGHT_SIZE2_WEIGHT_KERNELS, "the output has more channels");
    int result = rk_task_expect(task, RK_CNA_WEIGHT_SIZE1_WEIGHT_BYTES_PER_KERNEL, kernel, "its size and channels say");
    return result ? result
                  : rk_task_expect(task, RK_CNA_WEIGHT_SIZE0_WEIGHT_BYTES, conv->weight_bytes, "all kernels say");
}

static int check_reuse(const struct rk_task *task, const struct rk_conv *conv)
{
    const struct rk_cbuf *cbuf = &task->sim->cbuf;
    uint32_t weight_banks = RK_GET(task, CNA_CBUF_CON0_WEIGHT_BANK), data_banks = RK_GET(task, CNA_CBUF_CON0_DATA_BANK);
    bool banks = cbuf->valid && cbuf->weight_banks == weight_banks && cbuf->data_banks == data_banks;
    bool weights = banks && cbuf->weights == conv->weights && cbuf->weight_bytes == conv->weight_bytes &&
                   conv->weight_bytes <= (uint64_t)weight_banks * RK_CBUF_BANK_BYTES;
    bool data = banks && cbuf->feature == conv->feature && cbuf->width == conv->in_w && cbuf->rows == conv->in_h &&
                cbuf->channels == conv->channels;
    if (RK_GET(task, CNA_CBUF_CON0_WEIGHT_REUSE) && !weights)
        return rk_task_refuse(task, RK_CNA_CBUF_CON0_WEIGHT_REUSE, "the task before didn't leave these weights there");
    if (RK_GET(task, CNA_CBUF_CON0_DATA_REUSE) && !data)
        return rk_task_refuse(task, RK_CNA_CBUF_CON0_DATA_REUSE, "the task before didn't leave this input there");
    return 0;
}

static int check_cbuf(const struct rk_task *task, const struct rk_conv *conv)
{
    const struct rk_chip *chip = task->sim->chip;
    uint32_t data = RK_GET(task, CNA_CBUF_CON0_DATA_BANK), weights = RK_GET(task, CNA_CBUF_CON0_WEIGHT_BANK);
    if (data == 0 || weights == 0 || data + weights != chip->cbuf_banks)
        return rk_task_refuse(task, RK_CNA_CBUF_CON0_DATA_BANK, "with WEIGHT_BANK it must make up all banks");
    int result = check_reuse(task, conv);
    if (result || conv->packed) /* how much packed data takes is not known */
        return result;
    uint64_t entries = RK_GET(task, CNA_CBUF_CON1_DATA_ENTRIES);
    uint64_t row = (uint64_t)RK_GET(task, CNA_DATA_SIZE0_DATAIN_WIDTH) * mica_align(conv->real_channels, chip->atom);
    if (entries * chip->cbuf_entry < row)
        return rk_task_refuse(task, RK_CNA_CBUF_CON1_DATA_ENTRIES, "a row of the input doesn't fit");
    if (entries * chip->cbuf_entry * conv->in_h > (uint64_t)data * RK_CBUF_BANK_BYTES)
        return rk_task_refuse(task, RK_CNA_CBUF_CON0_DATA_BANK, "the rows of the task don't fit these banks");
    return 0;
}

static void add_cost(struct rk_task *task, const struct rk_conv *conv)
{
    const struct rk_chip *chip = task->sim->chip;
    uint64_t pixels = (uint64_t)conv->out_w * conv->out_h;
    uint32_t taps = conv->kernel_w * conv->kernel_h, out = RK_GET(task, DPU_DATA_CUBE_CHANNEL_ORIG_CHANNEL) + 1;
    task->compute_cycles = conv->depthwise ? rk_depthwise_cycles(chip, pixels, taps, out)
                                           : rk_direct_cycles(chip, pixels, taps, conv->real_channels, out);
    uint64_t in_channels = conv->packed ? conv->real_channels : mica_align(conv->real_channels, chip->atom);
    if (!RK_GET(task, CNA_CBUF_CON0_DATA_REUSE))
        task->read_bytes += (uint64_t)conv->in_w * conv->in_h * in_channels;
    if (!RK_GET(task, CNA_CBUF_CON0_WEIGHT_REUSE)) {
        task->read_bytes += conv->weight_bytes;
        task->coefficient_bytes += conv->weight_bytes;
    }
}

int rk_conv_decode(struct rk_task *task, struct rk_conv *conv)
{
    *conv = (struct rk_conv){0};
    int result = RK_CHECK(task, rules);
    result = result ? result : decode_mode(task, conv);
    result = result ? result : decode_kernel(task, conv);
    result = result ? result : decode_input(task, conv);
    result = result ? result : decode_output(task, conv);
    result = result ? result : decode_weights(task, conv);
    result = result ? result : check_cbuf(task, conv);
    if (!result)
        add_cost(task, conv);
    return result;
}

void rk_conv_keep(struct rk_task *task, const struct rk_conv *conv)
{
    task->sim->cbuf = (struct rk_cbuf){
        .valid = true,
        .weights = conv->weights,
        .weight_bytes = conv->weight_bytes,
        .weight_banks = RK_GET(task, CNA_CBUF_CON0_WEIGHT_BANK),
        .data_banks = RK_GET(task, CNA_CBUF_CON0_DATA_BANK),
        .feature = conv->feature,
        .width = conv->in_w,
        .rows = conv->in_h,
        .channels = conv->channels,
    };
}
