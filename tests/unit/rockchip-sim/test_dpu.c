/* SPDX-License-Identifier: MIT */
/*
 * The output stage: its fast path against the general one, and whole
 * convolutions and element-wise tasks with random registers against the
 * reference, which has its own idea of where fields are.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "npu/rockchip/sim/dpu.h"
#include "programs.h"
#include "reference.h"
#include "util/checked.h"

/* ---- fast against general ------------------------------------------------------ */

#define LANES 64u
#define PIXELS 17u

static int32_t strange_value(struct random *random)
{
    static const int32_t known[] = {0, 1, -1, INT32_MAX, INT32_MIN, 0x40000000, -0x40000000, 255, -256};
    uint32_t word = random_word(random);
    switch (word % 4) {
    case 0:
        return known[random_below(random, sizeof known / sizeof *known)];
    case 1:
        return (int32_t)random_word(random);
    default:
        return (int32_t)random_word(random) >> random_below(random, 32);
    }
}

static void fill(struct random *random, int32_t *values, size_t count, unsigned width)
{
    for (size_t i = 0; i < count; i++) {
        values[i] = strange_value(random);
        if (width == 16)
            values[i] = (int16_t)values[i];
    }
}

struct arrays {
    int32_t bias[LANES], zero[LANES], factor[LANES], acc[PIXELS * LANES], sum[PIXELS * LANES];
};

static void random_stage(struct random *random, struct rk_dpu *dpu, struct arrays *arrays)
{
    uint32_t shift = random_below(random, 64);
    fill(random, arrays->bias, LANES, 32);
    fill(random, arrays->zero, LANES, 16);
    fill(random, arrays->factor, LANES, 16);
    fill(random, arrays->acc, PIXELS * LANES, 32);
    fill(random, arrays->sum, PIXELS * LANES, 32);
    *dpu = (struct rk_dpu){
        .atom = random_below(random, 2) ? 16 : 8,
        .bs_alu = random_below(random, 2) ? RK_ALU_ADD : RK_ALU_NONE,
        .bs_multiply = {.on = random_below(random, 2), .shift = shift, .shift_negative = shift},
        .bs_relu = {.on = random_below(random, 2), .limit = INT32_MAX},
        .bias = arrays->bias,
        .minus_zero = arrays->zero,
        .factor = arrays->factor,
        .bn_alu = RK_ALU_NONE,
        .bn_relu = {.on = random_below(random, 2), .limit = random_below(random, 2) ? INT32_MAX : 1000},
        .ew = RK_EW_NONE,
        .out_convert = {.offset = strange_value(random),
                        .scale = (int16_t)strange_value(random),
                        .shift = random_below(random, 48)},
    };
    if (random_below(random, 2))
        dpu->out_convert.offset = (int32_t)random_below(random, 256) - 128;
}

static void fast_is_general(void **state)
{
    struct random random = {1};
    static struct arrays arrays;
    bool seen[256] = {false};
    size_t distinct = 0;
    for (unsigned round = 0; round < 20000; round++) {
        struct rk_dpu dpu;
        uint8_t fast[PIXELS * RK_MAX_ATOM], general[PIXELS * RK_MAX_ATOM];
        random_stage(&random, &dpu, &arrays);
        assert_true(rk_dpu_is_fast(&dpu));
        struct rk_run run = {.channel = 16 * random_below(&random, 3),
                             .pixels = 1 + random_below(&random, PIXELS),
                             .lanes = LANES,
                             .sum_step = random_below(&random, 2) ? LANES : 1,
                             .acc = arrays.acc,
                             .sum = random_below(&random, 4) ? arrays.sum : NULL,
                             .out = fast};
        rk_dpu_fast(&dpu, &run);
        run.out = general;
        rk_dpu_general(&dpu, &run);
        assert_memory_equal(fast, general, (size_t)run.pixels * dpu.atom);
        for (size_t i = 0; i < (size_t)run.pixels * dpu.atom; i++) {
            distinct += !seen[fast[i]];
            seen[fast[i]] = true;
        }
    }
    assert_int_equal(distinct, 256);
}

static void rounding(void **state)
{
    assert_int_equal(rk_round_even(5, 1), 2);
    assert_int_equal(rk_round_even(7, 1), 4);
    assert_int_equal(rk_round_even(-5, 1), -2);
    assert_int_equal(rk_round_even(-7, 1), -4);
    assert_int_equal(rk_round(5, 1, true), 3);
    assert_int_equal(rk_round(-5, 1, true), -3);
    assert_int_equal(rk_round(-6, 2, true), -2);
    assert_int_equal(rk_round_even(6, 2), 2);
    assert_int_equal(rk_round_even(10, 2), 2);
    assert_int_equal(rk_round_even(INT64_MAX, 63), 1);
    assert_int_equal(rk_round_even(INT64_C(1) << 62, 63), 0);
    assert_int_equal(rk_round_even(-9, 0), -9);
}

/* ---- whole tasks against the reference ------------------------------------------ */

static struct reference_registers registers;

static void random_bs(struct random *random, struct task *task)
{
    uint32_t use = (uint32_t[]){0, 1, 7}[random_below(random, 3)];
    bool per_channel = use == 7 && random_below(random, 2);
    set_field(task, RK_DPU_RDMA_RDMA_BRDMA_CFG_BRDMA_DATA_USE, use);
    set_field(task, RK_DPU_BS_CFG_BS_BYPASS, use != 7 && !random_below(random, 5));
    set_field(task, RK_DPU_BS_CFG_BS_ALU_BYPASS, !random_below(random, 5));
    set_field(task, RK_DPU_BS_CFG_BS_ALU_SRC, use && random_below(random, 2));
    set_field(task, RK_DPU_BS_CFG_BS_ALU_ALGO, random_below(random, 3) ? 2 : random_below(random, 3));
    set_field(task, RK_DPU_BS_ALU_CFG_BS_ALU_OPERAND, (uint32_t)strange_value(random) >> 12);
    set_field(task, RK_DPU_BS_CFG_BS_MUL_BYPASS, random_below(random, 2));
    set_field(task, RK_DPU_BS_CFG_BS_MUL_PRELU, !random_below(random, 4));
    set_field(task, RK_DPU_BS_MUL_CFG_BS_MUL_SRC, per_channel);
    set_field(task, RK_DPU_BS_MUL_CFG_BS_MUL_OPERAND, (uint32_t)(int16_t)random_word(random));
    set_field(task, RK_DPU_BS_MUL_CFG_BS_MUL_SHIFT_VALUE, random_below(random, 20));
    set_field(task, RK_DPU_DATA_FORMAT_BS_MUL_SHIFT_VALUE_NEG, random_below(random, 20));
    set_field(task, RK_DPU_BS_CFG_BS_RELU_BYPASS, random_below(random, 4) != 0);
    set_field(task, RK_DPU_BS_CFG_BS_RELUX_EN,
              !get_field(task, RK_DPU_BS_CFG_BS_RELU_BYPASS) && random_below(random, 2));
    set_field(task, RK_DPU_BS_RELUX_CMP_VALUE_BS_RELUX_CMP_DAT, (uint32_t)strange_value(random));
    set_field(task, RK_DPU_BS_OW_CFG_OW_SRC, use == 7 && random_below(random, 2));
    set_field(task, RK_DPU_BS_OW_OP_OW_OP, (uint32_t)(int32_t)(int8_t)random_word(random));
}

static void random_bn(struct random *random, struct task *task)
{
    set_field(task, RK_DPU_BN_CFG_BN_BYPASS, random_below(random, 2));
    set_field(task, RK_DPU_BN_CFG_BN_ALU_BYPASS, random_below(random, 2));
    set_field(task, RK_DPU_BN_CFG_BN_ALU_ALGO, random_below(random, 3));
    set_field(task, RK_DPU_BN_ALU_CFG_BN_ALU_OPERAND, (uint32_t)strange_value(random));
    set_field(task, RK_DPU_BN_CFG_BN_MUL_BYPASS, random_below(random, 2));
    set_field(task, RK_DPU_BN_CFG_BN_MUL_PRELU, !random_below(random, 3));
    set_field(task, RK_DPU_BN_MUL_CFG_BN_MUL_OPERAND, (uint32_t)(int16_t)random_word(random));
    set_field(task, RK_DPU_BN_MUL_CFG_BN_MUL_SHIFT_VALUE, random_below(random, 16));
    set_field(task, RK_DPU_DATA_FORMAT_BN_MUL_SHIFT_VALUE_NEG, random_below(random, 16));
    set_field(task, RK_DPU_BN_CFG_BN_RELU_BYPASS, random_below(random, 2));
    set_field(task, RK_DPU_BN_CFG_BN_RELUX_EN,
              !get_field(task, RK_DPU_BN_CFG_BN_RELU_BYPASS) && random_below(random, 2));
    set_field(task, RK_DPU_BN_RELUX_CMP_VALUE_BN_RELUX_CMP_DAT, (uint32_t)strange_value(random));
}

static void random_operation(struct random *random, struct task *task)
{
    bool multiply = random_below(random, 2);
    set_field(task, RK_DPU_EW_CFG_EW_OP_TYPE, multiply);
    set_field(task, RK_DPU_EW_CFG_EW_ALU_ALGO, random_below(random, 3));
    set_field(task, RK_DPU_EW_CFG_EW_MUL_PRELU, multiply && random_below(random, 2));
    set_field(task, RK_DPU_EW_CFG_EW_OP_CVT_BYPASS, !random_below(random, 4));
    set_field(task, RK_DPU_EW_CFG_EW_CVT_ROUND, random_below(random, 2));
    set_field(task, RK_DPU_EW_CFG_EW_RELU_BYPASS, random_below(random, 2));
    set_field(task, RK_DPU_EW_CFG_EW_RELUX_EN,
              !get_field(task, RK_DPU_EW_CFG_EW_RELU_BYPASS) && random_below(random, 2));
    set_field(task, RK_DPU_EW_RELUX_CMP_VALUE_EW_RELUX_CMP_DAT, (uint32_t)strange_value(random));
    set_field(task, RK_DPU_EW_CVT_OFFSET_VALUE_EW_OP_CVT_OFFSET, (uint32_t)(int32_t)(int8_t)random_word(random));
    set_field(task, RK_DPU_EW_CVT_SCALE_VALUE_EW_OP_CVT_SCALE, (uint32_t)(int16_t)random_word(random));
    set_field(task, RK_DPU_EW_CVT_SCALE_VALUE_EW_OP_CVT_SHIFT, random_below(random, 16));
}

static void random_out(struct random *random, struct task *task)
{
    set_field(task, RK_DPU_OUT_CVT_SHIFT_OUT_CVT_SHIFT, 8 + random_below(random, 26));
    set_field(task, RK_DPU_OUT_CVT_SHIFT_CVT_ROUND, random_below(random, 2));
    set_field(task, RK_DPU_OUT_CVT_SCALE_OUT_CVT_SCALE, (uint32_t)(int16_t)random_word(random));
    set_field(task, RK_DPU_OUT_CVT_OFFSET_OUT_CVT_OFFSET, (uint32_t)(int32_t)(int8_t)random_word(random));
}

static struct shape random_shape(struct random *random)
{
    struct shape shape = {
        .width = 1 + random_below(random, 10),
        .rows = 1 + random_below(random, 7),
        .channels = 1 + random_below(random, 80),
        .kernel_w = 1 + random_below(random, 3),
        .kernel_h = 1 + random_below(random, 3),
        .stride_x = 1 + random_below(random, 2),
        .stride_y = 1 + random_below(random, 2),
        .dilation_x = 1 + random_below(random, 2),
        .dilation_y = 1 + random_below(random, 2),
        .left = random_below(random, 3),
        .top = random_below(random, 3),
        .depthwise = random_below(random, 2),
    };
    shape.out_channels = shape.depthwise ? shape.channels : 1 + random_below(random, 80);
    shape_fit(&shape);
    return shape;
}

/* A fused operand: both units, each for every other surface. */
static void fuse(struct task *task, const struct shape *shape)
{
    uint32_t plane = shape->out_width * shape->out_rows * 16;
    set_field(task, RK_DPU_EW_CFG_EW_BYPASS, 0);
    set_field(task, RK_DPU_EW_CFG_EW_OP_BYPASS, 0);
    set_field(task, RK_DPU_EW_CFG_EW_CVT_TYPE, 1);
    set_field(task, RK_DPU_EW_CFG_EW_DATA_MODE, 1);
    set_field(task, RK_DPU_EW_CFG_EDATA_SIZE, 1);
    set_field(task, RK_DPU_EW_CFG_EW_OP_SRC, 1);
    set_field(task, RK_DPU_RDMA_RDMA_FEATURE_MODE_CFG_COMB_USE, 5);
    set_field(task, RK_DPU_RDMA_RDMA_FEATURE_MODE_CFG_MRDMA_DISABLE, 0);
    set_field(task, RK_DPU_RDMA_RDMA_ERDMA_CFG_ERDMA_DISABLE, 0);
    set_field(task, RK_DPU_RDMA_RDMA_ERDMA_CFG_ERDMA_DATA_MODE, 1);
    set_field(task, RK_DPU_RDMA_RDMA_ERDMA_CFG_ERDMA_DATA_SIZE, 1);
    set_field(task, RK_DPU_RDMA_RDMA_SRC_BASE_ADDR_SRC_BASE_ADDR, VECTOR_OPERAND);
    set_field(task, RK_DPU_RDMA_RDMA_EW_BASE_ADDR_EW_BASE_ADDR, VECTOR_OPERAND + plane);
    set_bytes(task, RK_DPU_RDMA_RDMA_SURF_NOTCH_SURF_NOTCH_ADDR, plane);
    set_bytes(task, RK_DPU_RDMA_RDMA_EW_SURF_NOTCH_EW_SURF_NOTCH, plane);
}

static void check_convolution(struct bench *bench, const struct task *task, const struct shape *shape)
{
    size_t bytes = (size_t)shape->out_width * shape->out_rows * mica_align(shape->out_channels, 16);
    memset(bench_at(bench, VECTOR_OUTPUT), 0x55, bytes + 4096);
    if (run_task(bench, task, NULL))
        fail_msg("%s", bench->log.last_error);
    uint8_t *got = malloc(bytes + 4096);
    assert_non_null(got);
    memcpy(got, bench_at(bench, VECTOR_OUTPUT), bytes + 4096);
    memset(bench_at(bench, VECTOR_OUTPUT), 0x55, bytes + 4096);
    memcpy(registers.word, task->registers.word, sizeof registers.word);
    reference_convolution(&registers, bench->memory.base);
    assert_memory_equal(got, bench_at(bench, VECTOR_OUTPUT), bytes + 4096);
    free(got);
}

static void random_convolutions(void **state)
{
    struct random random = {2};
    struct bench bench;
    unsigned without_rdma = 0;
    bench_open(&bench, &bench_rk3588, NULL);
    fill_rooms(&bench, &random);
    for (unsigned round = 0; round < 1500; round++) {
        struct shape shape = random_shape(&random);
        struct task task;
        make_convolution(&task, &bench_rk3588, &shape);
        if (round % 3 == 0) { /* what the fast path is for */
            set_field(&task, RK_DPU_OUT_CVT_SHIFT_OUT_CVT_SHIFT, 24 + random_below(&random, 12));
            check_convolution(&bench, &task, &shape);
            continue;
        }
        random_bs(&random, &task);
        random_bn(&random, &task);
        if (random_below(&random, 2)) {
            fuse(&task, &shape);
            random_operation(&random, &task);
        } else if (get_field(&task, RK_DPU_RDMA_RDMA_BRDMA_CFG_BRDMA_DATA_USE) == 0) {
            task.start = 0x0d; /* nothing to fetch */
            without_rdma++;
        }
        random_out(&random, &task);
        check_convolution(&bench, &task, &shape);
    }
    assert_true(without_rdma > 50);
    bench_close(&bench);
}

static int reference_of_byte(const struct bench *bench, int value, uint32_t channel, int operand)
{
    const uint8_t *coefficients = bench->memory.base + VECTOR_COEFFICIENTS;
    bool all = registers.word[0x501c / 4] >> 1 == 7;
    int32_t a;
    int16_t b, c;
    memcpy(&a, coefficients + (all ? channel / 8 * 64 + channel % 8 * 4 : channel * 4), sizeof a);
    memcpy(&b, coefficients + channel / 8 * 64 + 32 + channel % 8 * 2, sizeof b);
    memcpy(&c, coefficients + channel / 8 * 64 + 48 + channel % 8 * 2, sizeof c);
    return reference_output(&registers, value, 0, a, b, c, operand);
}

static void check_elementwise(struct bench *bench, const struct task *task, const struct shape *shape, bool per_channel)
{
    uint32_t pixels = shape->out_width * shape->out_rows;
    const uint8_t *out = bench_at(bench, VECTOR_OUTPUT), *in = bench_at(bench, VECTOR_INPUT),
                  *operand = bench_at(bench, VECTOR_OPERAND);
    if (run_task(bench, task, NULL))
        fail_msg("%s", bench->log.last_error);
    memcpy(registers.word, task->registers.word, sizeof registers.word);
    for (uint32_t c = 0; c < mica_align(shape->out_channels, 16); c++)
        for (uint32_t p = 0; p < pixels; p++) {
            size_t at = (size_t)(c / 16) * pixels * 16 + p * 16 + c % 16;
            int e = (int8_t)operand[per_channel ? c : at];
            int offset = (int32_t)registers.word[0x4080 / 4];
            int expected = c < shape->out_channels ? reference_of_byte(bench, (int8_t)in[at], c, e)
                                                   : (offset < -128  ? -128
                                                      : offset > 127 ? 127
                                                                     : offset);
            assert_int_equal((int8_t)out[at], expected);
        }
}

static void random_elementwise(void **state)
{
    struct random random = {3};
    struct bench bench;
    bench_open(&bench, &bench_rk3588, NULL);
    fill_rooms(&bench, &random);
    for (unsigned round = 0; round < 1500; round++) {
        struct shape shape = random_shape(&random);
        bool per_channel = random_below(&random, 2);
        struct task task;
        make_elementwise(&task, &bench_rk3588, &shape);
        set_field(&task, RK_DPU_RDMA_RDMA_BS_BASE_ADDR_BS_BASE_ADDR, VECTOR_COEFFICIENTS);
        random_bs(&random, &task);
        random_bn(&random, &task);
        random_operation(&random, &task);
        random_out(&random, &task);
        if (per_channel) {
            set_field(&task, RK_DPU_EW_CFG_EW_DATA_MODE, 0);
            set_field(&task, RK_DPU_RDMA_RDMA_ERDMA_CFG_ERDMA_DATA_MODE, 0);
        }
        if (!random_below(&random, 3)) { /* nothing but the byte: by table */
            set_field(&task, RK_DPU_EW_CFG_EW_BYPASS, 1);
            set_field(&task, RK_DPU_RDMA_RDMA_ERDMA_CFG_ERDMA_DISABLE, 1);
        }
        check_elementwise(&bench, &task, &shape, per_channel);
    }
    bench_close(&bench);
}

/* Operands of 16 and 32 bits a channel, and one in registers. */
static void wide_operands_of_channels(void **state)
{
    struct random random = {4};
    struct bench bench;
    struct task task;
    bench_open(&bench, &bench_rk3588, NULL);
    fill_rooms(&bench, &random);
    for (uint32_t code = 1; code <= 4; code++) {
        make_elementwise(&task, &bench_rk3588, &small_shape);
        set_field(&task, RK_DPU_EW_CFG_EW_DATA_MODE, 0);
        set_field(&task, RK_DPU_EW_CFG_EW_OP_CVT_BYPASS, 1);
        set_field(&task, RK_DPU_RDMA_RDMA_ERDMA_CFG_ERDMA_DATA_MODE, 0);
        set_field(&task, RK_DPU_EW_CFG_EDATA_SIZE, code & 3);
        set_field(&task, RK_DPU_RDMA_RDMA_ERDMA_CFG_ERDMA_DATA_SIZE, code & 3);
        if (code == 4) {
            set_field(&task, RK_DPU_EW_CFG_EW_OP_SRC, 0);
            set_field(&task, RK_DPU_RDMA_RDMA_ERDMA_CFG_ERDMA_DISABLE, 1);
            for (uint16_t offset = 0x4090; offset <= 0x40ac; offset += 4)
                task.registers.word[offset / 4] = 123456789;
        }
        if (run_task(&bench, &task, NULL))
            fail_msg("%s", bench.log.last_error);
        memcpy(registers.word, task.registers.word, sizeof registers.word);
        for (uint32_t c = 0; c < small_shape.out_channels; c++) {
            const uint8_t *operands = bench_at(&bench, VECTOR_OPERAND);
            int16_t half;
            int32_t whole;
            memcpy(&half, operands + 2 * c, sizeof half);
            memcpy(&whole, operands + 4 * c, sizeof whole);
            int32_t operand = code == 1 ? (int8_t)operands[c] : code == 2 ? half : code == 3 ? whole : 123456789;
            size_t at = (size_t)(c / 16) * 54 * 16 + c % 16;
            int expected =
                reference_output(&registers, (int8_t)bench_at(&bench, VECTOR_INPUT)[at], 0, 0, 0, 0, operand);
            assert_int_equal((int8_t)bench_at(&bench, VECTOR_OUTPUT)[at], expected);
        }
    }
    bench_close(&bench);
}

/* Rows and surfaces apart, in all three cubes. */
static void notches(void **state)
{
    enum { PIXEL = 16, WIDTH = 9, ROWS = 6 };
    struct random random = {5};
    struct bench bench;
    struct task task;
    bench_open(&bench, &bench_rk3588, NULL);
    fill_rooms(&bench, &random);
    make_elementwise(&task, &bench_rk3588, &small_shape);
    set_field(&task, RK_DPU_DATA_CUBE_NOTCH_ADDR_NOTCH_ADDR_0, 2);
    set_field(&task, RK_DPU_DATA_CUBE_NOTCH_ADDR_NOTCH_ADDR_1, 3);
    set_bytes(&task, RK_DPU_DST_SURF_STRIDE_DST_SURF_STRIDE, 0x1000);
    set_bytes(&task, RK_DPU_SURFACE_ADD_SURF_ADD, 0x1000);
    set_field(&task, RK_DPU_RDMA_RDMA_SRC_DMA_CFG_LINE_NOTCH_ADDR, 5);
    set_bytes(&task, RK_DPU_RDMA_RDMA_SURF_NOTCH_SURF_NOTCH_ADDR, 7 * PIXEL);
    set_field(&task, RK_DPU_RDMA_RDMA_DATA_CUBE_HEIGHT_EW_LINE_NOTCH_ADDR, 1);
    set_bytes(&task, RK_DPU_RDMA_RDMA_EW_SURF_STRIDE_EW_SURF_STRIDE, 0x2000);
    if (run_task(&bench, &task, NULL))
        fail_msg("%s", bench.log.last_error);
    memcpy(registers.word, task.registers.word, sizeof registers.word);
    for (uint32_t c = 0; c < small_shape.out_channels; c++)
        for (uint32_t y = 0; y < ROWS; y++)
            for (uint32_t x = 0; x < WIDTH; x++) {
                uint32_t surface = c / 16, step = ROWS * (WIDTH + 5) * PIXEL + 7 * PIXEL;
                uint32_t in = surface * step + (y * (WIDTH + 5) + x) * PIXEL + c % 16;
                uint32_t operand = surface * 0x2000 + (y * (WIDTH + 1) + x) * PIXEL + c % 16;
                uint32_t out = surface * 0x1000 + (y * (WIDTH + 2 + surface % 2) + x) * PIXEL + c % 16;
                int expected = reference_output(&registers, (int8_t)bench_at(&bench, VECTOR_INPUT)[in], 0, 0, 0, 0,
                                                (int8_t)bench_at(&bench, VECTOR_OPERAND)[operand]);
                assert_int_equal((int8_t)bench_at(&bench, VECTOR_OUTPUT)[out], expected);
            }
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounding),
        cmocka_unit_test(fast_is_general),
        cmocka_unit_test(random_convolutions),
        cmocka_unit_test(random_elementwise),
        cmocka_unit_test(wide_operands_of_channels),
        cmocka_unit_test(notches),
    };
    return cmocka_run_group_tests_name("output stage", tests, NULL, NULL);
}
