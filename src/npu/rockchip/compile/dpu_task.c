/* SPDX-License-Identifier: MIT */
/* Register programs of the DPU alone; values as in the vendor's programs of the same kind (specification, section 9).
 */
#include "npu/rockchip/compile/dpu_task.h"

#include <errno.h>
#include <math.h>

#include "npu/rockchip/compile/builder.h"
#include "npu/rockchip/compile/requant.h"

/* Codes of EW_ALU_ALGO, BS_ALU_ALGO, BN_ALU_ALGO. */
enum {
    ALU_MAX = 0,
    ALU_MIN = 1,
    ALU_ADD = 2,
};

/* Longest bursts, as the vendor sets them. */
static const uint32_t write_burst[RK_GENERATION_COUNT] = {15, 4}, read_burst[RK_GENERATION_COUNT] = {15, 8};

#define OUTPUT_TO_MEMORY 2u
#define OPERAND_8_BIT 1u
#define MODE_PER_ELEMENT 1u
/* Index units a code, and the offset that puts a code's index into the middle of its flat piece of table (table.c). */
#define TABLE_STEP 64
#define TABLE_MIDDLE 16
#define TABLE_END 16384
#define TABLE_ENTRY_BITS 5u /* log2 of the index units of an entry */
/* Which table decides where both or none has an index; the vendor's programs. */
#define TABLE_BY_SIGN 2u

struct rk_scale rk_scale_of(double factor)
{
    uint32_t scale = 0, shift = 0;
    rk_scale_make(factor, &scale, &shift);
    return (struct rk_scale){(int32_t)scale, shift};
}

double rk_scale_value(struct rk_scale scale)
{
    return ldexp(scale.scale, -(int)scale.shift);
}

int64_t rk_scale_apply(int64_t value, struct rk_scale scale)
{
    return rk_round_shift(value * scale.scale, scale.shift);
}

struct rk_dpu_stages rk_dpu_copy(void)
{
    return (struct rk_dpu_stages){.out_scale = {1, 0}};
}

/* A field that one generation alone has. */
static void put_on(struct rk_builder *to, enum rk_generation generation, enum rk_field_id field, uint32_t value)
{
    if (to->generation == generation)
        rk_put(to, field, value);
}

/* The table task resets both pointers, all others flip them (specification, sections 3 and 9). */
static void set_pointers(struct rk_builder *to, bool reset)
{
    if (!reset) {
        rk_put_pointers(to, false);
        return;
    }
    rk_put(to, RK_DPU_S_POINTER_EXECUTER_PP_CLEAR, 1);
    rk_put(to, RK_DPU_S_POINTER_POINTER_PP_CLEAR, 1);
    rk_put(to, RK_DPU_RDMA_RDMA_S_POINTER_EXECUTER_PP_CLEAR, 1);
    rk_put(to, RK_DPU_RDMA_RDMA_S_POINTER_POINTER_PP_CLEAR, 1);
}

static void set_sizes(struct rk_builder *to, uint32_t w, uint32_t h, uint32_t channels)
{
    rk_put(to, RK_DPU_DATA_CUBE_WIDTH_WIDTH, w - 1);
    rk_put(to, RK_DPU_DATA_CUBE_HEIGHT_HEIGHT, h - 1);
    rk_put(to, RK_DPU_DATA_CUBE_CHANNEL_ORIG_CHANNEL, channels - 1);
    rk_put(to, RK_DPU_DATA_CUBE_CHANNEL_CHANNEL, channels - 1);
    put_on(to, RK_GENERATION_RK3588, RK_DPU_WDMA_SIZE_0_CHANNEL_WDMA, channels - 1);
    put_on(to, RK_GENERATION_RK3588, RK_DPU_WDMA_SIZE_1_HEIGHT_WDMA, h - 1);
    put_on(to, RK_GENERATION_RK3588, RK_DPU_WDMA_SIZE_1_WIDTH_WDMA, w - 1);
    rk_put(to, RK_DPU_RDMA_RDMA_DATA_CUBE_WIDTH_WIDTH, w - 1);
    rk_put(to, RK_DPU_RDMA_RDMA_DATA_CUBE_HEIGHT_HEIGHT, h - 1);
    rk_put(to, RK_DPU_RDMA_RDMA_DATA_CUBE_CHANNEL_CHANNEL, channels - 1);
}

static void set_first_stage(struct rk_builder *to, const struct rk_dpu_stages *stages)
{
    bool multiply = stages->a_scale.scale != 0,
         used = multiply || stages->combine != RK_DPU_NOTHING || stages->a_offset;
    rk_put(to, RK_DPU_BS_CFG_BS_BYPASS, !used);
    rk_put(to, RK_DPU_BS_CFG_BS_ALU_BYPASS, !used);
    rk_put(to, RK_DPU_BS_CFG_BS_MUL_BYPASS, !multiply);
    rk_put(to, RK_DPU_BS_CFG_BS_RELU_BYPASS, 1);
    rk_put(to, RK_DPU_BS_CFG_BS_ALU_ALGO, used ? ALU_ADD : 0);
    rk_put(to, RK_DPU_BS_ALU_CFG_BS_ALU_OPERAND, (uint32_t)stages->a_offset);
    rk_put(to, RK_DPU_BS_MUL_CFG_BS_MUL_OPERAND, (uint32_t)stages->a_scale.scale);
    rk_put(to, RK_DPU_BS_MUL_CFG_BS_MUL_SHIFT_VALUE, stages->a_scale.shift);
    rk_put(to, RK_DPU_DATA_FORMAT_BS_MUL_SHIFT_VALUE_NEG, stages->a_scale.shift);
    rk_put(to, RK_DPU_BS_OW_CFG_OD_BYPASS, 1);
}

/* Clamps what no second cube comes to, where the vendor has a convolution's ReLU. */
static void set_second_stage(struct rk_builder *to, const struct rk_dpu_stages *stages)
{
    bool relu = stages->relu && stages->combine == RK_DPU_NOTHING;
    rk_put(to, RK_DPU_BN_CFG_BN_BYPASS, !relu && !stages->table);
    rk_put(to, RK_DPU_BN_CFG_BN_ALU_BYPASS, !stages->table);
    rk_put(to, RK_DPU_BN_CFG_BN_MUL_BYPASS, !stages->table);
    rk_put(to, RK_DPU_BN_CFG_BN_RELU_BYPASS, !relu);
    rk_put(to, RK_DPU_BN_CFG_BN_RELUX_EN, relu && stages->relu_max != RK_NO_RELU_MAX);
    rk_put(to, RK_DPU_BN_RELUX_CMP_VALUE_BN_RELUX_CMP_DAT, relu ? (uint32_t)stages->relu_max : 0);
}

/* BN makes the table's index: it multiplies first, then adds. */
static void set_table(struct rk_builder *to)
{
    rk_put(to, RK_DPU_BN_CFG_BN_ALU_ALGO, ALU_ADD);
    rk_put(to, RK_DPU_BN_ALU_CFG_BN_ALU_OPERAND, TABLE_MIDDLE);
    rk_put(to, RK_DPU_BN_MUL_CFG_BN_MUL_OPERAND, TABLE_STEP);
    rk_put(to, RK_DPU_LUT_CFG_LUT_HYBRID_PRIORITY, 1);
    rk_put(to, RK_DPU_LUT_CFG_LUT_OFLOW_PRIORITY, 1);
    rk_put(to, RK_DPU_LUT_CFG_LUT_LO_LE_MUX, TABLE_BY_SIGN);
    rk_put(to, RK_DPU_LUT_INFO_LUT_LO_INDEX_SELECT, TABLE_ENTRY_BITS);
    rk_put(to, RK_DPU_LUT_INFO_LUT_LE_INDEX_SELECT, TABLE_ENTRY_BITS);
    rk_put(to, RK_DPU_LUT_LE_START_LUT_LE_START, (uint32_t)-TABLE_END);
    rk_put(to, RK_DPU_LUT_LO_END_LUT_LO_END, TABLE_END);
}

void rk_dpu_put_operand(struct rk_builder *to, const struct rk_dpu_stages *stages)
{
    static const uint32_t codes[] = {
        [RK_DPU_ALU_MAX] = ALU_MAX, [RK_DPU_ALU_MIN] = ALU_MIN, [RK_DPU_ALU_ADD] = ALU_ADD, [RK_DPU_MULTIPLY] = 0};
    rk_put(to, RK_DPU_EW_CFG_EW_CVT_TYPE, 1);
    rk_put(to, RK_DPU_EW_CFG_EW_DATA_MODE, MODE_PER_ELEMENT);
    put_on(to, RK_GENERATION_RK3588, RK_DPU_EW_CFG_EDATA_SIZE, OPERAND_8_BIT);
    rk_put(to, RK_DPU_EW_CFG_EW_ALU_ALGO, codes[stages->combine]);
    rk_put(to, RK_DPU_EW_CFG_EW_OP_TYPE, stages->combine == RK_DPU_MULTIPLY);
    rk_put(to, RK_DPU_EW_CFG_EW_OP_SRC, 1);
    rk_put(to, RK_DPU_EW_CVT_OFFSET_VALUE_EW_OP_CVT_OFFSET, (uint32_t)stages->b_offset);
    rk_put(to, RK_DPU_EW_CVT_SCALE_VALUE_EW_OP_CVT_SCALE, (uint32_t)stages->b_scale.scale);
    rk_put(to, RK_DPU_EW_CVT_SCALE_VALUE_EW_OP_CVT_SHIFT, stages->b_scale.shift);
    rk_put(to, RK_DPU_RDMA_RDMA_ERDMA_CFG_ERDMA_DATA_MODE, MODE_PER_ELEMENT);
    put_on(to, RK_GENERATION_RK3588, RK_DPU_RDMA_RDMA_ERDMA_CFG_ERDMA_DATA_SIZE, OPERAND_8_BIT);
}

static void set_operand(struct rk_builder *to, const struct rk_dpu_stages *stages, const struct rk_cube *b,
                        uint32_t atom, uint64_t plane)
{
    rk_dpu_put_operand(to, stages);
    rk_put(to, RK_DPU_RDMA_RDMA_EW_SURF_STRIDE_EW_SURF_STRIDE, (uint32_t)(b->surface / atom));
    /* "Plane less 8" in the vendor's programs, purpose unknown (specification, section 17). */
    put_on(to, RK_GENERATION_RK356X, RK_DPU_RDMA_RK356X_UNKNOWN_503C_VALUE, (uint32_t)plane - 8);
}

void rk_dpu_put_third_stage(struct rk_builder *to, const struct rk_dpu_stages *stages)
{
    bool operand = stages->combine != RK_DPU_NOTHING, relu = stages->relu && operand;
    rk_put(to, RK_DPU_EW_CFG_EW_BYPASS, !operand && !stages->table);
    rk_put(to, RK_DPU_EW_CFG_EW_OP_BYPASS, !operand);
    rk_put(to, RK_DPU_EW_CFG_EW_OP_CVT_BYPASS, !operand);
    rk_put(to, RK_DPU_EW_CFG_EW_LUT_BYPASS, !stages->table);
    rk_put(to, RK_DPU_EW_CFG_EW_RELU_BYPASS, !relu);
    rk_put(to, RK_DPU_EW_CFG_EW_RELUX_EN, relu && stages->relu_max != RK_NO_RELU_MAX);
    rk_put(to, RK_DPU_EW_RELUX_CMP_VALUE_EW_RELUX_CMP_DAT, relu ? (uint32_t)stages->relu_max : 0);
    rk_put(to, RK_DPU_EW_CVT_SCALE_VALUE_EW_OP_CVT_SCALE, 1);
    rk_put(to, RK_DPU_RDMA_RDMA_ERDMA_CFG_ERDMA_DISABLE, !operand);
}

static void set_reading(struct rk_builder *to)
{
    rk_put(to, RK_DPU_RDMA_RDMA_FEATURE_MODE_CFG_BURST_LEN, read_burst[to->generation]);
    rk_put(to, RK_DPU_RDMA_RDMA_FEATURE_MODE_CFG_FLYING_MODE, 1);
    put_on(to, RK_GENERATION_RK356X, RK_DPU_RDMA_RDMA_BRDMA_CFG_RK356X_BRDMA_DISABLE, 1);
    put_on(to, RK_GENERATION_RK356X, RK_DPU_RDMA_RDMA_NRDMA_CFG_RK356X_NRDMA_DISABLE, 1);
    rk_put_arbitration(to);
}

bool rk_dpu_registers(struct rk_registers *registers, const struct rk_chip *chip, const struct rk_dpu_task *task,
                      uint32_t w, uint32_t h, uint32_t channels)
{
    struct rk_builder builder = {.registers = registers, .generation = chip->generation}, *to = &builder;
    const struct rk_dpu_stages *stages = &task->stages;
    uint64_t plane = (uint64_t)w * h * chip->atom;
    set_pointers(to, stages->table);
    rk_put(to, RK_DPU_FEATURE_MODE_CFG_BURST_LEN, write_burst[chip->generation]);
    rk_put(to, RK_DPU_FEATURE_MODE_CFG_OUTPUT_MODE, OUTPUT_TO_MEMORY);
    rk_put(to, RK_DPU_FEATURE_MODE_CFG_FLYING_MODE, 1);
    set_sizes(to, w, h, channels);
    set_first_stage(to, stages);
    set_second_stage(to, stages);
    if (stages->table)
        set_table(to);
    rk_dpu_put_third_stage(to, stages);
    set_reading(to);
    if (stages->combine != RK_DPU_NOTHING)
        set_operand(to, stages, &task->b, chip->atom, plane);
    rk_put(to, RK_DPU_OUT_CVT_OFFSET_OUT_CVT_OFFSET, (uint32_t)stages->out_offset);
    rk_put(to, RK_DPU_OUT_CVT_SCALE_OUT_CVT_SCALE, (uint32_t)stages->out_scale.scale);
    rk_put(to, RK_DPU_OUT_CVT_SHIFT_OUT_CVT_SHIFT, stages->out_scale.shift);
    rk_put(to, RK_DPU_DST_SURF_STRIDE_DST_SURF_STRIDE, (uint32_t)(task->out.surface / chip->atom));
    rk_put(to, RK_DPU_SURFACE_ADD_SURF_ADD, (uint32_t)(task->out.surface / chip->atom));
    /* The main cube's surfaces follow each other but for a notch (section 9's surface stepping). */
    if (channels > chip->atom)
        rk_put(to, RK_DPU_RDMA_RDMA_SURF_NOTCH_SURF_NOTCH_ADDR, (uint32_t)((task->a.surface - plane) / chip->atom));
    return !builder.failed;
}

/* ---- cutting to what the fields hold ---------------------------------------- */

/* A rectangle of pixels that follow each other in memory. */
struct piece {
    uint32_t w, h;
};

/* The most of `pixels` pixels that one task does; everything, whenever some rectangle within the limits has it. */
static struct piece cut(uint64_t pixels)
{
    if (pixels <= RK_MAX_CUBE)
        return (struct piece){(uint32_t)pixels, 1};
    for (uint32_t h = (uint32_t)((pixels + RK_MAX_CUBE - 1) / RK_MAX_CUBE); h <= RK_MAX_CUBE && h <= pixels / h; h++)
        if (pixels % h == 0)
            return (struct piece){(uint32_t)(pixels / h), h};
    uint64_t rows = pixels / RK_MAX_CUBE;
    return (struct piece){RK_MAX_CUBE, rows < RK_MAX_CUBE ? (uint32_t)rows : RK_MAX_CUBE};
}

static struct rk_cube moved(struct rk_cube cube, uint64_t bytes)
{
    cube.at.offset += bytes;
    return cube;
}

/* One register program. */
static int append(struct rk_plan *plan, const struct rk_dpu_task *task, struct piece piece, uint32_t channels,
                  uint32_t layer)
{
    struct rk_registers registers = {0};
    struct rk_task *made;
    if (!rk_dpu_registers(&registers, plan->chip, task, piece.w, piece.h, channels))
        return mica_fail(plan->log, -ENOTSUP,
                         "an element-wise task over %ux%u pixels of %u channels is beyond the NPU's fields", piece.w,
                         piece.h, channels);
    const struct rk_field_place *places[] = {
        rk_fields[RK_DPU_DST_BASE_ADDR_DST_BASE_ADDR].at,
        rk_fields[RK_DPU_RDMA_RDMA_SRC_BASE_ADDR_SRC_BASE_ADDR].at,
        rk_fields[RK_DPU_RDMA_RDMA_EW_BASE_ADDR_EW_BASE_ADDR].at,
    };
    const struct rk_address addresses[] = {
        {places[0][plan->chip->generation].offset, task->out.at, MICA_ACCESS_WRITE},
        {places[1][plan->chip->generation].offset, task->a.at, MICA_ACCESS_READ},
        {places[2][plan->chip->generation].offset, task->b.at, MICA_ACCESS_READ},
    };
    int error = rk_plan_task(plan, task->op, task->unit, 0, RK_PROGRAM_ELEMENTWISE, RK_START_DPU | RK_START_DPU_RDMA,
                             &registers, addresses, task->stages.combine == RK_DPU_NOTHING ? 2 : 3, &made);
    if (error)
        return error;
    uint64_t cubes = task->stages.combine == RK_DPU_NOTHING ? 2 : 3;
    made->layer = layer;
    made->bytes = (uint64_t)piece.w * piece.h * channels * cubes;
    made->compute_cycles = made->bytes / plan->chip->atom;
    return 0;
}

/* All pixels of some channels. */
static int lower_channels(struct rk_plan *plan, const struct rk_dpu_task *task, uint32_t channels, uint32_t layer)
{
    uint64_t pixels = (uint64_t)task->out.shape.w * task->out.shape.h;
    struct piece piece = {task->out.shape.w, task->out.shape.h};
    if (piece.w > RK_MAX_CUBE || piece.h > RK_MAX_CUBE)
        piece = cut(pixels);
    int error = 0;
    for (uint64_t done = 0; !error && done < pixels; piece = cut(pixels - done)) {
        struct rk_dpu_task part = *task;
        part.a = moved(task->a, done * plan->chip->atom);
        part.b = moved(task->b, done * plan->chip->atom);
        part.out = moved(task->out, done * plan->chip->atom);
        error = append(plan, &part, piece, channels, layer);
        done += (uint64_t)piece.w * piece.h;
        if (done == pixels)
            break;
    }
    return error;
}

int rk_dpu_lower(struct rk_plan *plan, const struct rk_dpu_task *task)
{
    uint32_t atom = plan->chip->atom, most = RK_MAX_CUBE / atom * atom;
    uint32_t channels = (task->out.shape.c + atom - 1) / atom * atom, layer = plan->layer_count++;
    int error = 0;
    for (uint32_t done = 0; !error && done < channels; done += most) {
        struct rk_dpu_task part = *task;
        uint64_t surfaces = done / atom;
        part.a = moved(task->a, surfaces * task->a.surface);
        part.b = moved(task->b, surfaces * task->b.surface);
        part.out = moved(task->out, surfaces * task->out.surface);
        error = lower_channels(plan, &part, channels - done < most ? channels - done : most, layer);
    }
    return error;
}
