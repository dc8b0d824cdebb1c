/* SPDX-License-Identifier: MIT */
/* Evaluation of the DPU's look-up tables (specification, section 9). */
#include "npu/rockchip/sim/dpu.h"

/* `offset` index units into a table: a straight line between neighbouring entries. */
static int64_t interpolate(const int16_t *table, uint32_t shift, int64_t offset)
{
    int64_t entry = offset >> shift;
    if (entry > RK_LUT_ENTRIES - 2)
        entry = RK_LUT_ENTRIES - 2;
    int64_t rest = offset - entry * (INT64_C(1) << shift);
    return table[entry] + rk_round_even((table[entry + 1] - table[entry]) * rest, shift);
}

/* Beyond the last entry: a line of its own, which goes down to the next whole number. */
static int64_t extrapolate(const struct rk_lookup *lookup, int which, int16_t last, int64_t distance)
{
    return last + ((distance * lookup->slope[which]) >> lookup->slope_shift[which]);
}

int32_t rk_lookup_value(const struct rk_lookup *lookup, int32_t index)
{
    const struct rk_lut *lut = lookup->lut;
    const int16_t *le = lut->table[RK_LUT_LE], *lo = lut->table[RK_LUT_LO];
    if (index < lookup->start)
        return rk_saturate32(extrapolate(lookup, RK_LUT_LE, le[0], (int64_t)index - lookup->start));
    if (index < 0)
        return rk_saturate32(interpolate(le, lookup->shift[RK_LUT_LE], (int64_t)index - lookup->start));
    if (index <= lookup->end)
        return rk_saturate32(interpolate(lo, lookup->shift[RK_LUT_LO], index));
    return rk_saturate32(extrapolate(lookup, RK_LUT_LO, lo[RK_LUT_ENTRIES - 1], (int64_t)index - lookup->end));
}
