/* SPDX-License-Identifier: MIT */
#include "programs.h"

#include <string.h>

#include "util/checked.h"

const struct shape small_shape = {
    .width = 9,
    .rows = 6,
    .channels = 16,
    .out_width = 9,
    .out_rows = 6,
    .out_channels = 40,
    .kernel_w = 3,
    .kernel_h = 3,
    .stride_x = 1,
    .stride_y = 1,
    .dilation_x = 1,
    .dilation_y = 1,
    .left = 1,
    .top = 1,
};

void shape_fit(struct shape *shape)
{
    uint32_t across = (shape->kernel_w - 1) * shape->dilation_x + 1,
             down = (shape->kernel_h - 1) * shape->dilation_y + 1;
    uint32_t width = shape->width + 2 * shape->left, rows = shape->rows + 2 * shape->top;
    shape->out_width = width > across ? (width - across) / shape->stride_x + 1 : 1;
    shape->out_rows = rows > down ? (rows - down) / shape->stride_y + 1 : 1;
}

static const struct rk_chip *chip_of(const struct task *task)
{
    return task->chip->parameters;
}

void set_field(struct task *task, enum rk_field_id field, uint32_t value)
{
    if (!rk_set(&task->registers, chip_of(task)->generation, field, value))
        fail_msg("%s can't be 0x%x", rk_fields[field].name, value);
}

uint32_t get_field(const struct task *task, enum rk_field_id field)
{
    return rk_get(&task->registers, chip_of(task)->generation, field);
}

void set_bytes(struct task *task, enum rk_field_id field, uint32_t bytes)
{
    uint32_t unit = 1u << rk_fields[field].at[chip_of(task)->generation].lsb;
    assert_int_equal(bytes % unit, 0);
    set_field(task, field, bytes / unit);
}

/* Sets what this chip has. */
static void set_if_there(struct task *task, enum rk_field_id field, uint32_t value)
{
    if (rk_fields[field].at[chip_of(task)->generation].width > 0)
        set_field(task, field, value);
}

static bool is_rk3588(const struct task *task)
{
    return chip_of(task)->generation == RK_GENERATION_RK3588;
}

/* ---- the parts ----------------------------------------------------------------- */

static uint32_t plane_bytes(const struct task *task, const struct shape *shape)
{
    return shape->out_width * shape->out_rows * chip_of(task)->atom;
}

static uint32_t padded(const struct task *task, const struct shape *shape)
{
    uint32_t group = is_rk3588(task) ? (shape->depthwise ? 64 : 32) : 16;
    return (uint32_t)mica_align(shape->out_channels, group);
}

static void set_input(struct task *task, const struct shape *shape)
{
    uint32_t atom = chip_of(task)->atom, plane = shape->width * shape->rows;
    uint32_t channels = (uint32_t)mica_align(shape->channels, 16);
    set_field(task, RK_CNA_DATA_SIZE0_DATAIN_WIDTH, shape->width);
    set_field(task, RK_CNA_DATA_SIZE0_DATAIN_HEIGHT, shape->rows);
    set_field(task, RK_CNA_DATA_SIZE1_DATAIN_CHANNEL, channels);
    set_field(task, RK_CNA_DATA_SIZE1_DATAIN_CHANNEL_REAL, shape->channels - 1);
    set_field(task, RK_CNA_FC_DATA_SIZE0_DMA_WIDTH, shape->width);
    set_field(task, RK_CNA_FC_DATA_SIZE0_DMA_HEIGHT, shape->rows);
    set_field(task, RK_CNA_FC_DATA_SIZE1_DMA_CHANNEL, channels);
    set_field(task, RK_CNA_FEATURE_DATA_ADDR_FEATURE_BASE_ADDR, VECTOR_INPUT);
    set_field(task, RK_CNA_DMA_CON1_LINE_STRIDE, is_rk3588(task) ? 4 * shape->width : shape->width);
    set_field(task, RK_CNA_DMA_CON2_SURF_STRIDE, is_rk3588(task) ? plane - 4 * shape->width : plane);
    set_field(task, RK_CNA_CBUF_CON1_DATA_ENTRIES,
              mica_cdiv(shape->width * (uint32_t)mica_align(shape->channels, atom), chip_of(task)->cbuf_entry));
    set_field(task, RK_CNA_CBUF_CON0_DATA_BANK, 2);
    set_field(task, RK_CNA_CBUF_CON0_WEIGHT_BANK, chip_of(task)->cbuf_banks - 2);
    set_if_there(task, RK_CNA_CVT_CON0_CVT_BYPASS, 1);
    set_field(task, RK_CNA_CVT_CON0_DATA_SIGN, 1);
    set_field(task, RK_CNA_CVT_CON0_CVT_TYPE, 1);
}

static void set_kernel(struct task *task, const struct shape *shape)
{
    uint32_t kernels = shape->depthwise ? 1 : (uint32_t)mica_align(shape->out_channels, 2);
    uint32_t bytes = shape->kernel_w * shape->kernel_h * (uint32_t)mica_align(shape->channels, 16);
    set_field(task, RK_CNA_CONV_CON1_CONV_MODE, shape->depthwise ? 3 : 0);
    set_field(task, RK_CNA_CONV_CON3_CONV_X_STRIDE, shape->stride_x);
    set_field(task, RK_CNA_CONV_CON3_CONV_Y_STRIDE, shape->stride_y);
    set_field(task, RK_CNA_CONV_CON3_ATROUS_X_DILATION, shape->dilation_x - 1);
    set_field(task, RK_CNA_CONV_CON3_ATROUS_Y_DILATION, shape->dilation_y - 1);
    set_field(task, RK_CNA_PAD_CON0_PAD_LEFT, shape->left);
    set_field(task, RK_CNA_PAD_CON0_PAD_TOP, shape->top);
    set_field(task, RK_CNA_PAD_CON1_PAD_VALUE, 0xfffff9f9);
    set_field(task, RK_CNA_WEIGHT_SIZE2_WEIGHT_WIDTH, shape->kernel_w);
    set_field(task, RK_CNA_WEIGHT_SIZE2_WEIGHT_HEIGHT, shape->kernel_h);
    set_field(task, RK_CNA_WEIGHT_SIZE2_WEIGHT_KERNELS, kernels);
    set_field(task, RK_CNA_WEIGHT_SIZE1_WEIGHT_BYTES_PER_KERNEL, bytes);
    set_field(task, RK_CNA_WEIGHT_SIZE0_WEIGHT_BYTES, bytes * kernels);
    set_field(task, RK_CNA_DCOMP_ADDR0_DECOMPRESS_ADDR0, VECTOR_WEIGHTS);
}

static void set_core(struct task *task, const struct shape *shape)
{
    set_field(task, RK_CNA_DATA_SIZE2_DATAOUT_WIDTH, shape->out_width);
    set_field(task, RK_CNA_DATA_SIZE3_DATAOUT_ATOMICS, shape->out_width * shape->out_rows);
    set_field(task, RK_CORE_MISC_CFG_DW_EN, shape->depthwise);
    set_if_there(task, RK_CORE_MISC_CFG_QD_EN, 1);
    set_if_there(task, RK_CSC_CONV_MODE_DW_EN, shape->depthwise);
    set_if_there(task, RK_CSC_CONV_MODE_QD_EN, 1);
    set_field(task, RK_CORE_DATAOUT_SIZE_0_DATAOUT_WIDTH, shape->out_width - 1);
    set_field(task, RK_CORE_DATAOUT_SIZE_0_DATAOUT_HEIGHT, shape->out_rows - 1);
    set_field(task, RK_CORE_DATAOUT_SIZE_1_DATAOUT_CHANNEL, padded(task, shape) - 1);
}

static void set_cube(struct task *task, const struct shape *shape, uint32_t channels, uint32_t size_e)
{
    set_field(task, RK_DPU_FEATURE_MODE_CFG_OUTPUT_MODE, 2);
    set_field(task, RK_DPU_FEATURE_MODE_CFG_CONV_MODE, size_e == 3 ? 3 : 0);
    set_field(task, RK_DPU_DST_BASE_ADDR_DST_BASE_ADDR, VECTOR_OUTPUT);
    set_bytes(task, RK_DPU_DST_SURF_STRIDE_DST_SURF_STRIDE, plane_bytes(task, shape));
    set_bytes(task, RK_DPU_SURFACE_ADD_SURF_ADD, (size_e + 1) * plane_bytes(task, shape));
    set_field(task, RK_DPU_DATA_CUBE_WIDTH_WIDTH, shape->out_width - 1);
    set_field(task, RK_DPU_DATA_CUBE_HEIGHT_HEIGHT, shape->out_rows - 1);
    set_field(task, RK_DPU_DATA_CUBE_CHANNEL_ORIG_CHANNEL, shape->out_channels - 1);
    set_field(task, RK_DPU_DATA_CUBE_CHANNEL_CHANNEL, channels - 1);
    set_if_there(task, RK_DPU_WDMA_SIZE_0_CHANNEL_WDMA, channels - 1);
    set_if_there(task, RK_DPU_WDMA_SIZE_1_WIDTH_WDMA, shape->out_width - 1);
    set_if_there(task, RK_DPU_WDMA_SIZE_1_HEIGHT_WDMA, shape->out_rows - 1);
    set_field(task, RK_DPU_BS_OW_CFG_SIZE_E_0, size_e);
    set_field(task, RK_DPU_BS_OW_CFG_SIZE_E_1, size_e);
    set_field(task, RK_DPU_BS_OW_CFG_SIZE_E_2, size_e);
    set_field(task, RK_DPU_RDMA_RDMA_DATA_CUBE_WIDTH_WIDTH, shape->out_width - 1);
    set_field(task, RK_DPU_RDMA_RDMA_DATA_CUBE_HEIGHT_HEIGHT, shape->out_rows - 1);
    set_field(task, RK_DPU_RDMA_RDMA_DATA_CUBE_CHANNEL_CHANNEL, channels - 1);
    set_field(task, RK_DPU_RDMA_RDMA_FEATURE_MODE_CFG_CONV_MODE, size_e == 3 ? 3 : 0);
}

/* Everything off that can be; the result is shifted to where it doesn't saturate. */
static void set_stages(struct task *task)
{
    set_field(task, RK_DPU_BS_CFG_BS_ALU_ALGO, 2);
    set_field(task, RK_DPU_BS_CFG_BS_RELU_BYPASS, 1);
    set_field(task, RK_DPU_BN_CFG_BN_BYPASS, 1);
    set_field(task, RK_DPU_BN_CFG_BN_ALU_BYPASS, 1);
    set_field(task, RK_DPU_BN_CFG_BN_MUL_BYPASS, 1);
    set_field(task, RK_DPU_BN_CFG_BN_RELU_BYPASS, 1);
    set_field(task, RK_DPU_EW_CFG_EW_RELU_BYPASS, 1);
    set_field(task, RK_DPU_EW_CFG_EW_LUT_BYPASS, 1);
    set_field(task, RK_DPU_OUT_CVT_SCALE_OUT_CVT_SCALE, 0x5123);
    set_field(task, RK_DPU_OUT_CVT_OFFSET_OUT_CVT_OFFSET, (uint32_t)-3);
}

/* ---- tasks ------------------------------------------------------------------- */

static void set_pointers(struct task *task)
{
    static const uint16_t blocks[] = {RK_CNA, RK_CSC, RK_CORE, RK_DPU, RK_DPU_RDMA, RK_PPU, RK_PPU_RDMA};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        task->registers.word[(rk_blocks[blocks[i]].first + 4) / 4] = 0x0e;
}

static void begin(struct task *task, const struct mica_chip *chip, enum rk_program_kind kind, uint32_t start)
{
    memset(task, 0, sizeof *task);
    task->chip = chip;
    task->kind = kind;
    task->start = start;
    set_pointers(task);
}

void make_convolution(struct task *task, const struct mica_chip *chip, const struct shape *shape)
{
    begin(task, chip, RK_PROGRAM_CONVOLUTION, chip == &bench_rk3588 ? 0x1d : 0x1f);
    set_input(task, shape);
    set_kernel(task, shape);
    set_core(task, shape);
    set_cube(task, shape, padded(task, shape), shape->depthwise ? 3 : 1);
    set_stages(task);
    set_field(task, RK_DPU_BS_CFG_BS_ALU_SRC, 1);
    set_field(task, RK_DPU_BS_OW_CFG_OW_SRC, 1);
    set_field(task, RK_DPU_BS_MUL_CFG_BS_MUL_SRC, 1);
    set_field(task, RK_DPU_BS_MUL_CFG_BS_MUL_SHIFT_VALUE, 14);
    set_field(task, RK_DPU_DATA_FORMAT_BS_MUL_SHIFT_VALUE_NEG, 14);
    set_field(task, RK_DPU_OUT_CVT_SHIFT_OUT_CVT_SHIFT, 30);
    set_field(task, RK_DPU_EW_CFG_EW_BYPASS, 1);
    set_field(task, RK_DPU_EW_CFG_EW_OP_BYPASS, 1);
    set_field(task, RK_DPU_RDMA_RDMA_BRDMA_CFG_BRDMA_DATA_USE, 7);
    set_field(task, RK_DPU_RDMA_RDMA_BS_BASE_ADDR_BS_BASE_ADDR, VECTOR_COEFFICIENTS);
    set_field(task, RK_DPU_RDMA_RDMA_ERDMA_CFG_ERDMA_DISABLE, 1);
    set_if_there(task, RK_DPU_RDMA_RDMA_FEATURE_MODE_CFG_MRDMA_DISABLE, 1);
}

void make_elementwise(struct task *task, const struct mica_chip *chip, const struct shape *shape)
{
    begin(task, chip, RK_PROGRAM_ELEMENTWISE, 0x18);
    set_cube(task, shape, shape->out_channels, 0);
    set_stages(task);
    set_field(task, RK_DPU_FEATURE_MODE_CFG_FLYING_MODE, 1);
    set_field(task, RK_DPU_RDMA_RDMA_FEATURE_MODE_CFG_FLYING_MODE, 1);
    set_field(task, RK_DPU_BS_ALU_CFG_BS_ALU_OPERAND, 5);
    set_field(task, RK_DPU_BS_MUL_CFG_BS_MUL_OPERAND, 0x6123);
    set_field(task, RK_DPU_BS_OW_CFG_OD_BYPASS, 1);
    set_field(task, RK_DPU_EW_CFG_EW_CVT_TYPE, 1);
    set_field(task, RK_DPU_EW_CFG_EW_DATA_MODE, 1);
    set_if_there(task, RK_DPU_EW_CFG_EDATA_SIZE, 1);
    set_field(task, RK_DPU_EW_CFG_EW_ALU_ALGO, 2);
    set_field(task, RK_DPU_EW_CFG_EW_OP_SRC, 1);
    set_field(task, RK_DPU_EW_CVT_OFFSET_VALUE_EW_OP_CVT_OFFSET, (uint32_t)-7);
    set_field(task, RK_DPU_EW_CVT_SCALE_VALUE_EW_OP_CVT_SCALE, 0x4000);
    set_field(task, RK_DPU_OUT_CVT_SHIFT_OUT_CVT_SHIFT, 29);
    set_field(task, RK_DPU_RDMA_RDMA_SRC_BASE_ADDR_SRC_BASE_ADDR, VECTOR_INPUT);
    set_field(task, RK_DPU_RDMA_RDMA_EW_BASE_ADDR_EW_BASE_ADDR, VECTOR_OPERAND);
    set_field(task, RK_DPU_RDMA_RDMA_ERDMA_CFG_ERDMA_DATA_MODE, 1);
    set_if_there(task, RK_DPU_RDMA_RDMA_ERDMA_CFG_ERDMA_DATA_SIZE, 1);
    set_bytes(task, RK_DPU_RDMA_RDMA_EW_SURF_STRIDE_EW_SURF_STRIDE, plane_bytes(task, shape));
}

void make_pool(struct task *task, const struct mica_chip *chip, const struct shape *shape)
{
    begin(task, chip, RK_PROGRAM_POOLING, 0x60);
    uint32_t atom = chip_of(task)->atom;
    set_field(task, RK_PPU_DATA_CUBE_IN_WIDTH_CUBE_IN_WIDTH, shape->width - 1);
    set_field(task, RK_PPU_DATA_CUBE_IN_HEIGHT_CUBE_IN_HEIGHT, shape->rows - 1);
    set_field(task, RK_PPU_DATA_CUBE_IN_CHANNEL_CUBE_IN_CHANNEL, shape->channels - 1);
    set_field(task, RK_PPU_DATA_CUBE_OUT_WIDTH_CUBE_OUT_WIDTH, shape->out_width - 1);
    set_field(task, RK_PPU_DATA_CUBE_OUT_HEIGHT_CUBE_OUT_HEIGHT, shape->out_rows - 1);
    set_field(task, RK_PPU_DATA_CUBE_OUT_CHANNEL_CUBE_OUT_CHANNEL, shape->channels - 1);
    set_field(task, RK_PPU_OPERATION_MODE_CFG_FLYING_MODE, 1);
    set_field(task, RK_PPU_OPERATION_MODE_CFG_POOLING_METHOD, 1);
    set_field(task, RK_PPU_POOLING_KERNEL_CFG_KERNEL_WIDTH, shape->kernel_w - 1);
    set_field(task, RK_PPU_POOLING_KERNEL_CFG_KERNEL_HEIGHT, shape->kernel_h - 1);
    set_field(task, RK_PPU_POOLING_KERNEL_CFG_KERNEL_STRIDE_WIDTH, shape->stride_x - 1);
    set_field(task, RK_PPU_POOLING_KERNEL_CFG_KERNEL_STRIDE_HEIGHT, shape->stride_y - 1);
    set_field(task, RK_PPU_POOLING_PADDING_CFG_PAD_LEFT, shape->left);
    set_field(task, RK_PPU_POOLING_PADDING_CFG_PAD_RIGHT, shape->left);
    set_field(task, RK_PPU_POOLING_PADDING_CFG_PAD_TOP, shape->top);
    set_field(task, RK_PPU_POOLING_PADDING_CFG_PAD_BOTTOM, shape->top);
    set_bytes(task, RK_PPU_DST_BASE_ADDR_DST_BASE_ADDR, VECTOR_OUTPUT);
    set_bytes(task, RK_PPU_DST_SURF_STRIDE_DST_SURF_STRIDE, plane_bytes(task, shape));
    set_field(task, RK_PPU_RDMA_RDMA_CUBE_IN_WIDTH_CUBE_IN_WIDTH, shape->width - 1);
    set_field(task, RK_PPU_RDMA_RDMA_CUBE_IN_HEIGHT_CUBE_IN_HEIGHT, shape->rows - 1);
    set_field(task, RK_PPU_RDMA_RDMA_CUBE_IN_CHANNEL_CUBE_IN_CHANNEL, shape->channels - 1);
    set_field(task, RK_PPU_RDMA_RDMA_SRC_BASE_ADDR_SRC_BASE_ADDR, VECTOR_INPUT);
    set_bytes(task, RK_PPU_RDMA_RDMA_SRC_LINE_STRIDE_SRC_LINE_STRIDE, shape->width * atom);
    set_bytes(task, RK_PPU_RDMA_RDMA_SRC_SURF_STRIDE_SRC_SURF_STRIDE, shape->width * shape->rows * atom);
    set_field(task, RK_PPU_RDMA_RDMA_DATA_FORMAT_IN_PRECISION, is_rk3588(task));
}

/* ---- running ------------------------------------------------------------------ */

void append_task(struct vector_program *program, const struct task *task)
{
    const struct rk_order *order = rk_program_order(chip_of(task)->generation, task->kind);
    uint32_t *length = &program->length[program->task_count];
    uint64_t *words = program->words + program->count;
    assert_true(program->task_count < MAX_TASKS && program->count + order->count + 2 <= MAX_WORDS);
    program->first[program->task_count++] = program->count;
    for (size_t i = 0; i < order->count; i++)
        words[(*length)++] = rk_word(rk_blocks[rk_block_at(order->offsets[i])].target, order->offsets[i],
                                     task->registers.word[order->offsets[i] / 4]);
    words[(*length)++] = RK_WORD_BARRIER;
    words[(*length)++] = rk_word(RK_TARGET_START, RK_START_OFFSET, task->start);
    program->count += *length;
}

int run_task(struct bench *bench, const struct task *task, struct mica_job_report *report)
{
    static struct vector_program program;
    struct mica_job_report reports[MAX_TASKS];
    memset(&program, 0, sizeof program);
    append_task(&program, task);
    int result = vector_run(bench, &program, VECTOR_PROGRAM, reports);
    if (report)
        *report = reports[0];
    return result;
}

void fill_rooms(struct bench *bench, struct random *random)
{
    static const uint32_t random_rooms[] = {VECTOR_INPUT, VECTOR_OPERAND, VECTOR_WEIGHTS, VECTOR_COEFFICIENTS};
    for (size_t i = 0; i < sizeof random_rooms / sizeof *random_rooms; i++) {
        uint8_t *room = bench_map(bench, random_rooms[i], VECTOR_ROOM, MICA_ACCESS_READ);
        for (size_t j = 0; j < VECTOR_ROOM / 16; j += 4) {
            uint32_t word = random_word(random);
            memcpy(room + j, &word, sizeof word);
        }
    }
    bench_map(bench, VECTOR_PROGRAM, VECTOR_ROOM, MICA_ACCESS_READ);
    bench_map(bench, VECTOR_OUTPUT, VECTOR_ROOM, MICA_ACCESS_WRITE);
}
