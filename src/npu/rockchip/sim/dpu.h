/* SPDX-License-Identifier: MIT */
/*
 * The output stage with everything that registers say about it resolved and
 * checked (specification, sections 8 and 9). What one stage hands to the next
 * is a 32-bit value, saturated: the default where nothing is known.
 */
#ifndef MICA_ROCKCHIP_SIM_DPU_H
#define MICA_ROCKCHIP_SIM_DPU_H

#include "npu/rockchip/sim/internal.h"

#define RK_MAX_ATOM 16u

enum rk_alu {
    RK_ALU_MAX,
    RK_ALU_MIN,
    RK_ALU_ADD,
    RK_ALU_NONE,
};

struct rk_multiply {
    bool on;
    bool prelu;                     /* negative values alone */
    uint32_t shift, shift_negative; /* by the sign of the product */
};

struct rk_relu {
    bool on;
    int32_t limit; /* INT32_MAX: none */
};

/* rne((x + offset) * scale, shift), as operands of EW and results are converted. */
struct rk_convert {
    int32_t offset, scale;
    uint32_t shift;
    bool away; /* ties go away from zero, not to the even number */
};

enum rk_ew {
    RK_EW_MAX, /* as enum rk_alu */
    RK_EW_MIN,
    RK_EW_ADD,
    RK_EW_MULTIPLY,
    RK_EW_NONE,
};

/* One cube in memory that an RDMA unit reads: surface k is at `base` + k * `step`. */
struct rk_operand {
    const uint8_t *base;
    uint64_t step, line;
};

/* The look-up table with its registers. */
struct rk_lookup {
    const struct rk_lut *lut;
    int32_t start, end;            /* first index of LE, last one of LO */
    uint32_t shift[RK_LUT_TABLES]; /* log2 of the index units of an entry */
    int32_t slope[RK_LUT_TABLES];  /* below LE, above LO */
    uint32_t slope_shift[RK_LUT_TABLES];
};

struct rk_dpu {
    uint32_t atom;
    uint32_t width, rows;
    uint32_t channels, surfaces; /* real channels, and surfaces that have them: what is written */
    uint32_t padded_channels;    /* as programmed */
    bool flying;                 /* the main operand comes from memory, not from CORE */
    bool depthwise;
    uint8_t *out;
    uint64_t surface_bytes;
    uint64_t line_bytes[2]; /* of even and odd surfaces */

    /* BS. Arrays have an entry for every channel of the written surfaces. */
    enum rk_alu bs_alu;
    struct rk_multiply bs_multiply;
    struct rk_relu bs_relu;
    const int32_t *bias, *minus_zero, *factor;

    enum rk_alu bn_alu;
    int32_t bn_operand, bn_factor;
    struct rk_multiply bn_multiply;
    struct rk_relu bn_relu;

    enum rk_ew ew;
    bool ew_prelu;
    bool convert_operand;
    struct rk_convert operand_convert;
    bool per_channel; /* operands are in `channel_operand`, converted */
    const int32_t *channel_operand;
    struct rk_operand operand[2]; /* of even and odd surfaces */
    bool two_units;               /* both are used, each for every other surface; else [0] for all */
    struct rk_relu ew_relu;
    bool use_lookup;
    struct rk_lookup lookup;

    struct rk_convert out_convert; /* offset comes after the shift */

    struct rk_operand main; /* of flying tasks */
    bool fast;              /* only what convolutions normally use: rk_dpu_fast() can do it */
};

/* Can rk_dpu_fast() do it? Called when everything is decoded. */
bool rk_dpu_is_fast(const struct rk_dpu *dpu);

/*
 * One run of pixels of one surface: `channel` is its first one; acc has `lanes` values a pixel, of which an atom
 * counts; sum, if not NULL, `sum_step` values a pixel (1: the same for all channels). Both give the same.
 */
struct rk_run {
    uint32_t channel, pixels, lanes, sum_step;
    const int32_t *acc, *sum;
    const uint8_t *operand; /* atoms in a row; NULL: none in memory */
    uint8_t *out;
};
void rk_dpu_fast(const struct rk_dpu *dpu, const struct rk_run *run);
void rk_dpu_general(const struct rk_dpu *dpu, const struct rk_run *run);

/* An element-wise operand as its converter leaves it. */
int32_t rk_dpu_convert_operand(const struct rk_dpu *dpu, int32_t operand);

/* What lanes past the last channel get (specification, section 4). */
uint8_t rk_dpu_padding(const struct rk_dpu *dpu);

/* y of an index. */
int32_t rk_lookup_value(const struct rk_lookup *lookup, int32_t index);

/* ---- arithmetic ------------------------------------------------------------ */

static inline int32_t rk_saturate32(int64_t value)
{
    return (int32_t)(value < INT32_MIN ? INT32_MIN : value > INT32_MAX ? INT32_MAX : value);
}

static inline int8_t rk_saturate8(int64_t value)
{
    return (int8_t)(value < INT8_MIN ? INT8_MIN : value > INT8_MAX ? INT8_MAX : value);
}

/* value / 2^shift to the nearest, ties to the even one; shift below 64. */
static inline int64_t rk_round_even(int64_t value, uint32_t shift)
{
    if (shift == 0)
        return value;
    int64_t down = value >> shift;
    uint64_t rest = (uint64_t)value & ((UINT64_C(1) << shift) - 1), half = UINT64_C(1) << (shift - 1);
    return down + (rest > half || (rest == half && (down & 1)));
}

static inline int64_t rk_round(int64_t value, uint32_t shift, bool away)
{
    if (!away || shift == 0)
        return rk_round_even(value, shift);
    int64_t down = value >> shift;
    uint64_t rest = (uint64_t)value & ((UINT64_C(1) << shift) - 1), half = UINT64_C(1) << (shift - 1);
    return down + (rest > half || (rest == half && value >= 0));
}

#endif
