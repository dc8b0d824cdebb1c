/* SPDX-License-Identifier: MIT */
/* What the device can't do ends in an error that names it: one field after the other set to what can't be. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs.h"

enum kind { CONV, DEPTHWISE, ELEMENTWISE, POOL, KINDS };

static void make(struct task *task, const struct mica_chip *chip, enum kind kind)
{
    struct shape shape = small_shape;
    shape.depthwise = kind == DEPTHWISE;
    shape.channels = shape.out_channels = kind == DEPTHWISE || kind == POOL ? 32 : shape.out_channels;
    if (kind == CONV)
        shape.channels = 16;
    if (kind <= DEPTHWISE)
        make_convolution(task, chip, &shape);
    else if (kind == ELEMENTWISE)
        make_elementwise(task, chip, &shape);
    else
        make_pool(task, chip, &shape);
}

static void open_with_rooms(struct bench *bench, const struct mica_chip *chip)
{
    struct random random = {11};
    bench_open(bench, chip, NULL);
    fill_rooms(bench, &random);
}

/* Undamaged, all run on both chips. */
static void sound_tasks_run(void **state)
{
    const struct mica_chip *chips[] = {&bench_rk3588, &bench_rk3566};
    for (size_t i = 0; i < 2; i++)
        for (int kind = 0; kind < KINDS; kind++) {
            struct bench bench;
            struct task task;
            open_with_rooms(&bench, chips[i]);
            make(&task, chips[i], (enum kind)kind);
            if (run_task(&bench, &task, NULL))
                fail_msg("kind %d: %s", kind, bench.log.last_error);
            bench_close(&bench);
        }
}

struct fault {
    enum kind kind;
    enum rk_field_id field;
    uint32_t value;
    const char *message;
    int error; /* 0: -EIO */
};

#define FAULT(kind, field, value, ...)       \
    {                                        \
        kind, RK_##field, value, __VA_ARGS__ \
    }

static const struct fault faults[] = {
    /* precisions */
    FAULT(CONV, CNA_CONV_CON1_PROC_PRECISION, 2, "CNA.CONV_CON1.PROC_PRECISION is 0x2: only int8"),
    FAULT(CONV, CNA_CONV_CON1_IN_PRECISION, 1, "only int8"),
    FAULT(CONV, CORE_MISC_CFG_PROC_PRECISION, 3, "only int8"),
    FAULT(CONV, DPU_DATA_FORMAT_OUT_PRECISION, 4, "only int8"),
    FAULT(CONV, DPU_DATA_FORMAT_IN_PRECISION, 1, "only int8"),
    FAULT(CONV, DPU_DATA_FORMAT_PROC_PRECISION, 1, "only int8"),
    FAULT(CONV, DPU_RDMA_RDMA_FEATURE_MODE_CFG_IN_PRECISION, 2, "only int8"),
    FAULT(CONV, DPU_RDMA_RDMA_FEATURE_MODE_CFG_PROC_PRECISION, 2, "only int8"),
    FAULT(POOL, PPU_DATA_FORMAT_PROC_PRECISION, 2, "only int8"),
    FAULT(POOL, PPU_RDMA_RDMA_DATA_FORMAT_IN_PRECISION, 2, "8 bits are"),
    /* blocks that disagree */
    FAULT(CONV, CNA_CONV_CON1_CONV_MODE, 1, "only 0 (direct) and 3 (depthwise)"),
    FAULT(CONV, CORE_MISC_CFG_DW_EN, 1, "CNA.CONV_CON1.CONV_MODE says: 0"),
    FAULT(DEPTHWISE, DPU_FEATURE_MODE_CFG_CONV_MODE, 0, "CNA's CONV_MODE is: 3"),
    FAULT(DEPTHWISE, DPU_RDMA_RDMA_FEATURE_MODE_CFG_CONV_MODE, 0, "CNA's CONV_MODE is: 3"),
    FAULT(CONV, CORE_MISC_CFG_QD_EN, 0, "8-bit results need it"),
    FAULT(CONV, CNA_DATA_SIZE2_DATAOUT_WIDTH, 8, "CORE's output"),
    FAULT(CONV, CNA_DATA_SIZE3_DATAOUT_ATOMICS, 53, "CORE's output"),
    FAULT(CONV, DPU_DATA_CUBE_WIDTH_WIDTH, 7, "CORE's output says: 8"),
    FAULT(CONV, DPU_DATA_CUBE_HEIGHT_HEIGHT, 6, "CORE's output says: 5"),
    FAULT(CONV, DPU_DATA_CUBE_CHANNEL_CHANNEL, 31, "CORE's output says"),
    FAULT(CONV, DPU_WDMA_SIZE_0_CHANNEL_WDMA, 31, "DPU's cube says"),
    FAULT(CONV, DPU_WDMA_SIZE_1_WIDTH_WDMA, 9, "DPU's cube says"),
    FAULT(CONV, DPU_WDMA_SIZE_1_HEIGHT_WDMA, 9, "DPU's cube says"),
    FAULT(CONV, DPU_RDMA_RDMA_DATA_CUBE_WIDTH_WIDTH, 9, "DPU's cube says"),
    FAULT(CONV, DPU_RDMA_RDMA_DATA_CUBE_HEIGHT_HEIGHT, 9, "DPU's cube says"),
    FAULT(CONV, DPU_RDMA_RDMA_DATA_CUBE_CHANNEL_CHANNEL, 9, "DPU's cube says"),
    FAULT(CONV, DPU_FEATURE_MODE_CFG_FLYING_MODE, 1, "the start word asks for: 0"),
    FAULT(CONV, DPU_RDMA_RDMA_FEATURE_MODE_CFG_FLYING_MODE, 1, "the start word asks for: 0"),
    FAULT(ELEMENTWISE, DPU_FEATURE_MODE_CFG_FLYING_MODE, 0, "the start word asks for: 1"),
    FAULT(POOL, PPU_DATA_CUBE_IN_CHANNEL_CUBE_IN_CHANNEL, 15, "PPU's cubes say"),
    FAULT(POOL, PPU_RDMA_RDMA_CUBE_IN_WIDTH_CUBE_IN_WIDTH, 15, "PPU's cubes say"),
    FAULT(POOL, PPU_RDMA_RDMA_CUBE_IN_HEIGHT_CUBE_IN_HEIGHT, 15, "PPU's cubes say"),
    /* the input */
    FAULT(CONV, CNA_FC_DATA_SIZE0_DMA_WIDTH, 0, "1 to 2047"),
    FAULT(CONV, CNA_FC_DATA_SIZE0_DMA_WIDTH, 2048, "1 to 2047"),
    FAULT(CONV, CNA_FC_DATA_SIZE0_DMA_HEIGHT, 0, "can't be 0"),
    FAULT(CONV, CNA_DATA_SIZE0_DATAIN_WIDTH, 8, "less than the columns"),
    FAULT(CONV, CNA_DATA_SIZE0_DATAIN_HEIGHT, 5, "DMA_HEIGHT says: 6"),
    FAULT(CONV, CNA_DATA_SIZE1_DATAIN_CHANNEL, 0, "multiple of the atom"),
    FAULT(CONV, CNA_DATA_SIZE1_DATAIN_CHANNEL, 24, "multiple of the atom"),
    FAULT(CONV, CNA_DATA_SIZE1_DATAIN_CHANNEL_REAL, 31, "doesn't go with DATAIN_CHANNEL"),
    FAULT(CONV, CNA_FC_DATA_SIZE1_DMA_CHANNEL, 32, "DATAIN_CHANNEL says: 16"),
    FAULT(CONV, CNA_CONV_CON1_ARGB_IN, 3, "only 8 to 11"),
    FAULT(CONV, CNA_CONV_CON1_ARGB_IN, 10, "CNA.CONV_CON1.ARGB_IN says: 2"),
    FAULT(CONV, CNA_DMA_CON1_LINE_STRIDE, 37, "a multiple of 4"),
    FAULT(CONV, CNA_DMA_CON2_SURF_STRIDE, (uint32_t)-100, "backwards"),
    FAULT(CONV, CNA_FEATURE_DATA_ADDR_FEATURE_BASE_ADDR, VECTOR_INPUT + 8, "multiple of the cube's atom"),
    FAULT(CONV, CNA_FEATURE_DATA_ADDR_FEATURE_BASE_ADDR, 0x00f00000, "may not read", -EFAULT),
    FAULT(CONV, CNA_FEATURE_DATA_ADDR_FEATURE_BASE_ADDR, 0xfffffff0, "may not read", -EFAULT),
    FAULT(CONV, CNA_CVT_CON0_CVT_BYPASS, 0, "a conversion of the input"),
    FAULT(CONV, CNA_CVT_CON0_DATA_SIGN, 0, "unsigned data needs the converter"),
    /* the kernel */
    FAULT(CONV, CNA_WEIGHT_SIZE2_WEIGHT_WIDTH, 0, "can't be 0"),
    FAULT(CONV, CNA_WEIGHT_SIZE2_WEIGHT_HEIGHT, 0, "can't be 0"),
    FAULT(CONV, CNA_WEIGHT_SIZE2_WEIGHT_KERNELS, 0, "can't be 0"),
    FAULT(CONV, CNA_WEIGHT_SIZE2_WEIGHT_KERNELS, 41, "in pairs"),
    FAULT(CONV, CNA_WEIGHT_SIZE2_WEIGHT_KERNELS, 66, "fewer output channels"),
    FAULT(CONV, CNA_WEIGHT_SIZE2_WEIGHT_KERNELS, 38, "the output has more channels"),
    FAULT(DEPTHWISE, CNA_WEIGHT_SIZE2_WEIGHT_KERNELS, 2, "has one kernel"),
    FAULT(DEPTHWISE, DPU_DATA_CUBE_CHANNEL_ORIG_CHANNEL, 60, "fewer input channels"),
    FAULT(CONV, CNA_CONV_CON3_CONV_X_STRIDE, 0, "can't be 0"),
    FAULT(CONV, CNA_CONV_CON3_CONV_Y_STRIDE, 0, "can't be 0"),
    FAULT(CONV, CNA_CONV_CON3_DECONV_X_STRIDE, 1, "deconvolution strides without it"),
    FAULT(CONV, CNA_CONV_CON3_NN_MODE, 1, "not simulated"),
    FAULT(CONV, CNA_WEIGHT_SIZE1_WEIGHT_BYTES_PER_KERNEL, 143, "its size and channels say: 144"),
    FAULT(CONV, CNA_WEIGHT_SIZE0_WEIGHT_BYTES, 5759, "all kernels say: 5760"),
    FAULT(CONV, CNA_DCOMP_ADDR0_DECOMPRESS_ADDR0, 0x00f00000, "may not read", -EFAULT),
    FAULT(CONV, CNA_DCOMP_CTRL_DECOMP_CONTROL, 1, "compressed weights"),
    FAULT(CONV, CNA_DCOMP_REGNUM_DCOMP_REGNUM, 1, "compressed weights"),
    /* the CBUF */
    FAULT(CONV, CNA_CBUF_CON0_DATA_BANK, 0, "make up all banks"),
    FAULT(CONV, CNA_CBUF_CON0_DATA_BANK, 3, "make up all banks"),
    FAULT(CONV, CNA_CBUF_CON0_WEIGHT_BANK, 0, "make up all banks"),
    FAULT(CONV, CNA_CBUF_CON0_FC_DATA_BANK, 1, "corrupts"),
    FAULT(CONV, CNA_CBUF_CON1_DATA_ENTRIES, 1, "a row of the input doesn't fit"),
    FAULT(CONV, CNA_CBUF_CON1_DATA_ENTRIES, 1000, "don't fit these banks"),
    FAULT(CONV, CNA_CBUF_CON0_WEIGHT_REUSE, 1, "didn't leave these weights"),
    FAULT(CONV, CNA_CBUF_CON0_DATA_REUSE, 1, "didn't leave this input"),
    /* what would hang or is not known */
    FAULT(CONV, CNA_CONV_CON2_CSC_WO_EN, 1, "hang"),
    FAULT(CONV, CNA_CONV_CON2_CSC_DO_EN, 1, "hang"),
    FAULT(CONV, CNA_CONV_CON2_CMD_FIFO_SRST, 1, "lose the task"),
    FAULT(CONV, CNA_FC_CON0_FC_SKIP_EN, 1, "not known"),
    FAULT(CONV, CNA_FC_CON1_DATA_OFFSET, 1, "not known"),
    FAULT(CONV, CNA_FC_CON2_WEIGHT_OFFSET, 1, "not known"),
    FAULT(CONV, CNA_DATA_SIZE3_SURF_MODE, 1, "not known"),
    FAULT(CONV, CORE_CLIP_TRUNCATE_ROUND_TYPE, 1, "not known"),
    FAULT(CONV, DPU_FEATURE_MODE_CFG_OUTPUT_MODE, 1, "go to memory"),
    FAULT(CONV, DPU_FEATURE_MODE_CFG_COMB_USE, 1, "not known"),
    FAULT(CONV, DPU_FEATURE_MODE_CFG_TP_EN, 1, "transposed"),
    FAULT(CONV, DPU_FEATURE_MODE_CFG_RGP_TYPE, 1, "not known"),
    FAULT(CONV, DPU_FEATURE_MODE_CFG_NONALIGN, 1, "isn't a cube"),
    FAULT(CONV, DPU_FEATURE_MODE_CFG_SURF_LEN, 1, "not known"),
    FAULT(CONV, DPU_DATA_FORMAT_EW_TRUNCATE_NEG, 1, "not known"),
    FAULT(CONV, DPU_DATA_FORMAT_MC_SURF_OUT, 1, "not known"),
    FAULT(CONV, DPU_OFFSET_PEND_OFFSET_PEND, 1, "not known"),
    FAULT(CONV, DPU_DATA_CUBE_HEIGHT_MINMAX_CTL, 1, "not known"),
    FAULT(CONV, DPU_BS_MUL_CFG_BS_TRUNCATE_SRC, 1, "not known"),
    FAULT(CONV, DPU_BN_MUL_CFG_BN_TRUNCATE_SRC, 1, "not known"),
    FAULT(CONV, DPU_BS_OW_CFG_RGP_CNTER, 1, "not known"),
    FAULT(CONV, DPU_BS_OW_CFG_TP_ORG_EN, 1, "transposed"),
    FAULT(CONV, DPU_WDMA_SIZE_0_TP_PRECISION, 1, "transposed"),
    FAULT(CONV, DPU_WDMA_SIZE_0_SIZE_C_WDMA, 1, "not known"),
    FAULT(CONV, DPU_EW_CFG_EW_BINARY_EN, 1, "not known"),
    FAULT(CONV, DPU_EW_CVT_SCALE_VALUE_EW_TRUNCATE, 1, "not known"),
    FAULT(CONV, DPU_OUT_CVT_SCALE_FP32TOFP16_EN, 1, "only int8"),
    FAULT(CONV, DPU_OUT_CVT_SHIFT_CVT_TYPE, 1, "integer conversion"),
    FAULT(CONV, DPU_OUT_CVT_SHIFT_MINUS_EXP, 1, "integer conversion"),
    FAULT(CONV, DPU_OUT_CVT_SHIFT_OUT_CVT_SHIFT, 64, "6 bits"),
    /* the output */
    FAULT(CONV, DPU_DATA_CUBE_CHANNEL_ORIG_CHANNEL, 64, "the output has more channels"),
    FAULT(ELEMENTWISE, DPU_DATA_CUBE_CHANNEL_ORIG_CHANNEL, 64, "more than CHANNEL"),
    FAULT(CONV, DPU_DST_BASE_ADDR_DST_BASE_ADDR, VECTOR_OUTPUT + 8, "multiple of the cube's atom"),
    FAULT(CONV, DPU_DST_BASE_ADDR_DST_BASE_ADDR, VECTOR_INPUT, "may not write", -EFAULT),
    FAULT(CONV, DPU_DST_BASE_ADDR_DST_BASE_ADDR, 0xfffffff0, "may not write", -EFAULT),
    FAULT(CONV, DPU_DST_SURF_STRIDE_DST_SURF_STRIDE, 53, "would overlap"),
    FAULT(CONV, DPU_DST_SURF_STRIDE_DST_SURF_STRIDE, 0, "would overlap"),
    FAULT(CONV, DPU_DATA_CUBE_NOTCH_ADDR_NOTCH_ADDR_1, 1, "would overlap"),
    FAULT(CONV, DPU_BS_OW_CFG_SIZE_E_1, 3, "tasks of this kind have: 1"),
    FAULT(CONV, DPU_SURFACE_ADD_SURF_ADD, 54, "DST_SURF_STRIDE times SIZE_E + 1"),
    FAULT(ELEMENTWISE, DPU_BS_OW_CFG_SIZE_E_0, 1, "tasks of this kind have: 0"),
    /* stages */
    FAULT(CONV, DPU_BS_CFG_BS_ALU_ALGO, 4, "only 0 (max), 1 (min) and 2 (add)"),
    FAULT(CONV, DPU_BS_CFG_BS_RELUX_EN, 1, "without its relu"),
    FAULT(ELEMENTWISE, DPU_EW_CFG_EW_RELUX_EN, 1, "without its relu"),
    FAULT(ELEMENTWISE, DPU_EW_CFG_EW_ALU_ALGO, 4, "only 0 (max), 1 (min) and 2 (add)"),
    FAULT(ELEMENTWISE, DPU_EW_CFG_EW_MUL_PRELU, 1, "only multiplies"),
    FAULT(ELEMENTWISE, DPU_EW_CFG_EW_CVT_TYPE, 0, "offset before the scale"),
    FAULT(ELEMENTWISE, DPU_EW_CFG_EW_DATA_MODE, 2, "EW_DATA_MODE says: 2"),
    FAULT(ELEMENTWISE, DPU_EW_CFG_EDATA_SIZE, 2, "ERDMA_DATA_SIZE says: 1"),
    FAULT(ELEMENTWISE, DPU_EW_CFG_EW_LUT_BYPASS, 0, "loaded both tables"),
    /* what is fetched */
    FAULT(CONV, DPU_RDMA_RDMA_BRDMA_CFG_BRDMA_DATA_USE, 3, "only 0, 1 and 7"),
    FAULT(CONV, DPU_RDMA_RDMA_BRDMA_CFG_BRDMA_DATA_USE, 1, "fetches no factors, and the task would hang"),
    FAULT(CONV, DPU_RDMA_RDMA_BRDMA_CFG_BRDMA_DATA_USE, 0, "BRDMA fetches nothing, and the task would hang"),
    FAULT(CONV, DPU_BS_CFG_BS_BYPASS, 1, "spoils it"),
    FAULT(CONV, DPU_RDMA_RDMA_BS_BASE_ADDR_BS_BASE_ADDR, 0x00f00000, "may not read", -EFAULT),
    FAULT(CONV, DPU_RDMA_RDMA_NRDMA_CFG_NRDMA_DATA_USE, 1, "not known to work"),
    FAULT(CONV, DPU_RDMA_RDMA_FEATURE_MODE_CFG_MRDMA_FP16TOFP32_EN, 1, "only int8"),
    FAULT(CONV, DPU_RDMA_RDMA_FEATURE_MODE_CFG_MRDMA_DISABLE, 0, "isn't fed, and the task would hang"),
    FAULT(CONV, DPU_RDMA_RDMA_FEATURE_MODE_CFG_COMB_USE, 5, "both units must fetch"),
    FAULT(CONV, DPU_RDMA_RDMA_ERDMA_CFG_ERDMA_DISABLE, 0, "nobody takes the operand"),
    FAULT(CONV, DPU_RDMA_RDMA_SRC_DMA_CFG_UNPOOLING_EN, 1, "unpooling"),
    FAULT(CONV, DPU_RDMA_RDMA_SRC_DMA_CFG_POOLING_METHOD, 1, "unpooling"),
    FAULT(CONV, DPU_RDMA_RDMA_ERDMA_CFG_ERDMA_SURF_MODE, 1, "not known"),
    FAULT(CONV, DPU_RDMA_RDMA_ERDMA_CFG_ERDMA_NONALIGN, 1, "not known"),
    FAULT(ELEMENTWISE, DPU_RDMA_RDMA_ERDMA_CFG_ERDMA_DISABLE, 1, "ERDMA fetches no operand"),
    FAULT(ELEMENTWISE, DPU_RDMA_RDMA_FEATURE_MODE_CFG_MRDMA_DISABLE, 1, "needs its main operand"),
    FAULT(ELEMENTWISE, DPU_RDMA_RDMA_FEATURE_MODE_CFG_COMB_USE, 1, "would hang"),
    FAULT(ELEMENTWISE, DPU_RDMA_RDMA_SRC_BASE_ADDR_SRC_BASE_ADDR, VECTOR_INPUT + 4, "multiple of the cube's atom"),
    FAULT(ELEMENTWISE, DPU_RDMA_RDMA_SRC_BASE_ADDR_SRC_BASE_ADDR, VECTOR_OUTPUT, "may not read", -EFAULT),
    FAULT(ELEMENTWISE, DPU_RDMA_RDMA_EW_BASE_ADDR_EW_BASE_ADDR, 0x00f00000, "may not read", -EFAULT),
    FAULT(ELEMENTWISE, DPU_RDMA_RDMA_EW_SURF_STRIDE_EW_SURF_STRIDE, 0x0fffffff, "may not read", -EFAULT),
    /* pooling */
    FAULT(POOL, PPU_OPERATION_MODE_CFG_POOLING_METHOD, 3, "only 0 (average)"),
    FAULT(POOL, PPU_OPERATION_MODE_CFG_POOLING_METHOD, 0, "the kernel's width makes it: 21845"),
    FAULT(POOL, PPU_OPERATION_MODE_CFG_FLYING_MODE, 0, "task of its own"),
    FAULT(POOL, PPU_OPERATION_MODE_CFG_INDEX_EN, 1, "not simulated"),
    FAULT(POOL, PPU_OPERATION_MODE_CFG_NOTCH_ADDR, 1, "not known"),
    FAULT(POOL, PPU_OPERATION_MODE_CFG_USE_CNT, 1, "not known"),
    FAULT(POOL, PPU_DATA_FORMAT_DPU_FLYIN, 1, "not simulated"),
    FAULT(POOL, PPU_MISC_CTRL_SURF_LEN, 1, "not known"),
    FAULT(POOL, PPU_MISC_CTRL_MC_SURF_OUT, 1, "not known"),
    FAULT(POOL, PPU_MISC_CTRL_NONALIGN, 1, "not known"),
    FAULT(POOL, PPU_POOLING_PADDING_CFG_PAD_RIGHT, 0, "right edge"),
    FAULT(POOL, PPU_POOLING_PADDING_CFG_PAD_BOTTOM, 0, "bottom"),
    FAULT(POOL, PPU_DST_SURF_STRIDE_DST_SURF_STRIDE, 53, "would overlap"),
    FAULT(POOL, PPU_DST_BASE_ADDR_DST_BASE_ADDR, VECTOR_INPUT / 16, "may not write", -EFAULT),
    FAULT(POOL, PPU_RDMA_RDMA_SRC_BASE_ADDR_SRC_BASE_ADDR, VECTOR_OUTPUT, "may not read", -EFAULT),
    FAULT(POOL, PPU_RDMA_RDMA_SRC_BASE_ADDR_SRC_BASE_ADDR, VECTOR_INPUT + 1, "multiple of the cube's atom"),
};

static void every_check_has_a_message(void **state)
{
    struct bench bench;
    open_with_rooms(&bench, &bench_rk3588);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct task task;
        make(&task, &bench_rk3588, faults[i].kind);
        set_field(&task, faults[i].field, faults[i].value);
        int expected = faults[i].error ? faults[i].error : -EIO, result = run_task(&bench, &task, NULL);
        if (result != expected || !strstr(bench.log.last_error, faults[i].message))
            fail_msg("%s = 0x%x: %d (%s), not %d (%s)", rk_fields[faults[i].field].name, faults[i].value, result,
                     bench.log.last_error, expected, faults[i].message);
    }
    bench_close(&bench);
}

/* Those that need two things wrong, or another chip. */
static void expect_refusal(struct bench *bench, const struct task *task, const char *message)
{
    assert_int_equal(run_task(bench, task, NULL), -EIO);
    if (!strstr(bench->log.last_error, message))
        fail_msg("%s", bench->log.last_error);
}

static void combinations(void **state)
{
    struct bench bench;
    struct task task;
    open_with_rooms(&bench, &bench_rk3588);
    make(&task, &bench_rk3588, CONV);
    set_field(&task, RK_DPU_RDMA_RDMA_BRDMA_CFG_BRDMA_DATA_USE, 1);
    set_field(&task, RK_DPU_BS_MUL_CFG_BS_MUL_SRC, 0);
    expect_refusal(&bench, &task, "fetches no zero points");
    make(&task, &bench_rk3588, CONV);
    set_field(&task, RK_DPU_BN_CFG_BN_BYPASS, 0);
    set_field(&task, RK_DPU_BN_CFG_BN_ALU_SRC, 1);
    expect_refusal(&bench, &task, "operand of BN");
    set_field(&task, RK_DPU_BN_CFG_BN_ALU_SRC, 0);
    set_field(&task, RK_DPU_BN_MUL_CFG_BN_MUL_SRC, 1);
    expect_refusal(&bench, &task, "operand of BN");
    set_field(&task, RK_DPU_BN_MUL_CFG_BN_MUL_SRC, 0);
    set_field(&task, RK_DPU_BN_CFG_BN_ALU_BYPASS, 0);
    set_field(&task, RK_DPU_BN_CFG_BN_ALU_ALGO, 5);
    expect_refusal(&bench, &task, "only 0 (max)");
    set_field(&task, RK_DPU_BN_CFG_BN_ALU_ALGO, 2);
    set_field(&task, RK_DPU_BN_CFG_BN_RELUX_EN, 1);
    expect_refusal(&bench, &task, "without its relu");
    make(&task, &bench_rk3588, ELEMENTWISE);
    set_field(&task, RK_DPU_EW_CFG_EDATA_SIZE, 2);
    set_field(&task, RK_DPU_RDMA_RDMA_ERDMA_CFG_ERDMA_DATA_SIZE, 2);
    expect_refusal(&bench, &task, "only operands of 8 bits");
    set_field(&task, RK_DPU_EW_CFG_EW_DATA_MODE, 2);
    set_field(&task, RK_DPU_RDMA_RDMA_ERDMA_CFG_ERDMA_DATA_MODE, 2);
    expect_refusal(&bench, &task, "only 0 (per channel) and 1 (per element)");
    set_field(&task, RK_DPU_EW_CFG_EW_DATA_MODE, 0);
    set_field(&task, RK_DPU_RDMA_RDMA_ERDMA_CFG_ERDMA_DATA_MODE, 0);
    set_field(&task, RK_DPU_EW_CFG_EDATA_SIZE, 0);
    set_field(&task, RK_DPU_RDMA_RDMA_ERDMA_CFG_ERDMA_DATA_SIZE, 0);
    expect_refusal(&bench, &task, "only 8, 16 and 32 bits");
    set_field(&task, RK_DPU_EW_CFG_EW_OP_SRC, 0);
    set_field(&task, RK_DPU_RDMA_RDMA_ERDMA_CFG_ERDMA_DISABLE, 1);
    task.registers.word[0x40a0 / 4] = 1;
    expect_refusal(&bench, &task, "register operands that differ");
    make(&task, &bench_rk3588, CONV); /* an operand by one unit alone */
    set_field(&task, RK_DPU_EW_CFG_EW_BYPASS, 0);
    set_field(&task, RK_DPU_EW_CFG_EW_OP_BYPASS, 0);
    set_field(&task, RK_DPU_EW_CFG_EW_CVT_TYPE, 1);
    set_field(&task, RK_DPU_EW_CFG_EW_OP_SRC, 1);
    set_field(&task, RK_DPU_EW_CFG_EW_DATA_MODE, 1);
    set_field(&task, RK_DPU_EW_CFG_EDATA_SIZE, 1);
    set_field(&task, RK_DPU_RDMA_RDMA_ERDMA_CFG_ERDMA_DATA_MODE, 1);
    set_field(&task, RK_DPU_RDMA_RDMA_ERDMA_CFG_ERDMA_DATA_SIZE, 1);
    set_field(&task, RK_DPU_RDMA_RDMA_ERDMA_CFG_ERDMA_DISABLE, 0);
    expect_refusal(&bench, &task, "only 5 is known");
    make(&task, &bench_rk3588, POOL);
    set_field(&task, RK_PPU_OPERATION_MODE_CFG_POOLING_METHOD, 0);
    set_field(&task, RK_PPU_RECIP_KERNEL_WIDTH_RECIP_KERNEL_WIDTH, 21845);
    expect_refusal(&bench, &task, "the kernel's height makes it");
    bench_close(&bench);
}

static void on_the_other_chip(void **state)
{
    struct bench bench;
    struct task task;
    open_with_rooms(&bench, &bench_rk3566);
    make(&task, &bench_rk3566, CONV);
    set_field(&task, RK_CSC_CONV_MODE_QD_EN, 0);
    expect_refusal(&bench, &task, "CSC.CONV_MODE.QD_EN is 0");
    make(&task, &bench_rk3566, DEPTHWISE);
    set_field(&task, RK_CSC_CONV_MODE_DW_EN, 0);
    expect_refusal(&bench, &task, "CSC.CONV_MODE.DW_EN is 0");
    make(&task, &bench_rk3566, CONV);
    set_field(&task, RK_CNA_CVT_CON0_RK356X_CVT_EN, 1);
    expect_refusal(&bench, &task, "a conversion of the input");
    make(&task, &bench_rk3566, CONV);
    set_field(&task, RK_CNA_CBUF_CON0_WEIGHT_BANK, 10);
    expect_refusal(&bench, &task, "make up all banks");
    make(&task, &bench_rk3566, CONV);
    set_field(&task, RK_DPU_RDMA_RDMA_BRDMA_CFG_RK356X_BRDMA_DISABLE, 1);
    expect_refusal(&bench, &task, "BRDMA fetches nothing");
    task.start = 0x1d;
    expect_refusal(&bench, &task, "can't work together");
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sound_tasks_run),
        cmocka_unit_test(every_check_has_a_message),
        cmocka_unit_test(combinations),
        cmocka_unit_test(on_the_other_chip),
    };
    return cmocka_run_group_tests_name("faults of tasks", tests, NULL, NULL);
}
