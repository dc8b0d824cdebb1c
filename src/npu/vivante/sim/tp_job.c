/* SPDX-License-Identifier: MIT */
#include "npu/vivante/sim/tp_job.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define LUT_ENTRIES 1024u
#define LUT_HALF 512u /* positive arguments, then negative ones */

/* Values that a field must have: what else there is was never seen, or is not simulated. */
static const struct {
    enum viv_tp_field field;
    uint32_t value;
    const char *why;
} required[] = {
    {VIV_TP_IN_TILE_SEQUENCE, 0, "fully connected jobs are not simulated"},
    {VIV_TP_IN_TILE_GLOBAL_MEM, 0, "tile lists are not simulated"},
    {VIV_TP_IN_TILE_LIST_ADDRESS, 0, "tile lists are not simulated"},
    {VIV_TP_IN_IMAGE_GLOBAL_MEM, 1, "input from on-chip memory is not simulated"},
    {VIV_TP_OUT_IMAGE_GLOBAL_MEM, 1, "output to on-chip memory is not simulated"},
    {VIV_TP_ALU_I2F_ENABLE, 1, "jobs without input conversion are not simulated"},
    {VIV_TP_ALU_F2I_ENABLE, 1, "jobs without output conversion are not simulated"},
    {VIV_TP_ALU_SQUARE_ENABLE, 0, "squaring is not simulated"},
    {VIV_TP_ALU_NMS_ENABLE, 0, "non-maximum suppression is not simulated"},
    {VIV_TP_ALU_MULT_ENABLE, 0, "multiplication is not simulated"},
    {VIV_TP_OUT_TILE_SKIP_AT_BORDER, 0, "skipping at the border is not simulated"},
    {VIV_TP_OUT_BRICK_MODE, 0, "brick layouts are not simulated"},
    {VIV_TP_ALU_Z_FILTER_MODE, 0, "filtering over slices is not simulated"},
    {VIV_TP_IN_IMAGE_DATA_TYPE, 0, "only uint8 is simulated"},
    {VIV_TP_OUT_IMAGE_DATA_TYPE, 0, "only uint8 is simulated"},
    {VIV_TP_ALU_INPUT_PRESHIFT, 0, "a shift of the input is not simulated"},
    {VIV_TP_ALU_FILTER_PWL_SWAP, 0, "tables before filters are not simulated"},
    {VIV_TP_IN_CIRC_SIZE, 0, "circular buffers are not simulated"},
    {VIV_TP_OUT_CIRC_SIZE, 0, "circular buffers are not simulated"},
};

static int refuse(struct viv_sim *sim, uint32_t address, enum viv_tp_field field, uint32_t value, const char *why)
{
    return mica_fail(sim->log, -EIO, "TP job 0x%08x: field %s = %u: %s", address, viv_tp_fields[field].name, value,
                     why);
}

static int check_required(struct viv_sim *sim, uint32_t address, const uint32_t *words)
{
    for (size_t i = 0; i < sizeof required / sizeof required[0]; i++) {
        uint32_t value = viv_tp_get(words, required[i].field);
        if (value != required[i].value)
            return refuse(sim, address, required[i].field, value, required[i].why);
    }
    return 0;
}

/* ---- where elements come from and go to ------------------------------- */

static void parse_scan(const uint32_t *words, struct viv_tp *job)
{
    job->in_w = viv_tp_get(words, VIV_TP_IN_IMAGE_X_SIZE);
    job->in_h = viv_tp_get(words, VIV_TP_IN_IMAGE_Y_SIZE);
    job->in_slices = viv_tp_get(words, VIV_TP_IN_IMAGE_Z_SIZE);
    job->in_row_bytes = viv_tp_get(words, VIV_TP_IN_IMAGE_STRIDE);
    job->in_slice_bytes = viv_tp_get(words, VIV_TP_IN_IMAGE_SLICE);
    job->x_start = viv_field_get_signed(words, &viv_tp_fields[VIV_TP_IN_WINDOW_X_START], 16);
    job->y_start = viv_field_get_signed(words, &viv_tp_fields[VIV_TP_IN_WINDOW_Y_START], 16);
    job->x_end = viv_field_get_signed(words, &viv_tp_fields[VIV_TP_IN_WINDOW_X_END], 16);
    job->y_end = viv_field_get_signed(words, &viv_tp_fields[VIV_TP_IN_WINDOW_Y_END], 16);
    job->slices_before = viv_tp_get(words, VIV_TP_IN_WINDOW_Z_START_OVERFETCH);
    job->slices_after = viv_tp_get(words, VIV_TP_IN_WINDOW_Z_END_OVERFETCH);
    job->tile_w = viv_tp_get(words, VIV_TP_IN_TILE_X_SIZE);
    job->tile_h = viv_tp_get(words, VIV_TP_IN_TILE_Y_SIZE);
    job->tile_x_step = viv_tp_get(words, VIV_TP_IN_TILE_X_INC);
    job->tile_y_step = viv_tp_get(words, VIV_TP_IN_TILE_Y_INC);
    job->in_address = viv_tp_get(words, VIV_TP_IN_IMAGE_BASE_ADDRESS);
}

static int check_scan(struct viv_sim *sim, const struct viv_tp *job)
{
    if (!job->in_w || !job->in_h || !job->in_slices)
        return mica_fail(sim->log, -EIO, "TP job 0x%08x: the input image is empty", job->descriptor);
    if (job->x_end < job->x_start || job->y_end < job->y_start)
        return mica_fail(sim->log, -EIO, "TP job 0x%08x: the scan window is empty", job->descriptor);
    if (!job->tile_w || !job->tile_h || !job->tile_x_step || !job->tile_y_step)
        return mica_fail(sim->log, -EIO, "TP job 0x%08x: tiles of no size never end", job->descriptor);
    return 0;
}

static void parse_loops(const uint32_t *words, struct viv_tp *job)
{
    static const enum viv_tp_field steps[VIV_TP_LOOPS] = {
        VIV_TP_OUT_LOOP_0_INC, VIV_TP_OUT_LOOP_1_INC, VIV_TP_OUT_LOOP_2_INC, VIV_TP_OUT_LOOP_3_INC,
        VIV_TP_OUT_LOOP_4_INC, VIV_TP_OUT_LOOP_5_INC, VIV_TP_OUT_LOOP_6_INC,
    };
    static const enum viv_tp_field counts[VIV_TP_LOOPS - 1] = {
        VIV_TP_OUT_LOOP_0_COUNT, VIV_TP_OUT_LOOP_1_COUNT, VIV_TP_OUT_LOOP_2_COUNT,
        VIV_TP_OUT_LOOP_3_COUNT, VIV_TP_OUT_LOOP_4_COUNT, VIV_TP_OUT_LOOP_5_COUNT,
    };
    for (size_t i = 0; i < VIV_TP_LOOPS; i++)
        job->step[i] = viv_tp_get(words, steps[i]);
    for (size_t i = 0; i < VIV_TP_LOOPS - 1; i++) {
        job->count[i] = viv_tp_get(words, counts[i]);
        /* Only loops 1 and 2 can be ended by a tile instead of a count; elsewhere 0 is what unused loops hold. */
        if (job->count[i] == 0 && i != 1 && i != 2)
            job->count[i] = 1;
    }
    job->reset_row = viv_tp_get(words, VIV_TP_OUT_LOOP_1_RESET);
    job->reset_tile_2 = viv_tp_get(words, VIV_TP_OUT_LOOP_2_RESET);
    job->reset_tile_3 = viv_tp_get(words, VIV_TP_OUT_LOOP_3_RESET);
    job->out_address = viv_tp_get(words, VIV_TP_OUT_IMAGE_BASE_ADDRESS);
}

static int parse_pool(struct viv_sim *sim, const struct viv_tp *job, uint32_t processing, uint32_t count,
                      struct viv_tp_pool *pool)
{
    *pool = (struct viv_tp_pool){1, 1};
    if (processing == 0)
        return 0;
    if (processing != 1 && processing != 3)
        return mica_fail(sim->log, -EIO, "TP job 0x%08x: reduction %u is not simulated, only maxima (1 and 3) are",
                         job->descriptor, processing);
    if (count < 1 || count > 2)
        return mica_fail(sim->log, -EIO, "TP job 0x%08x: maxima of %u neighbours are not simulated, only 2 and 3 are",
                         job->descriptor, count + 1);
    *pool = (struct viv_tp_pool){count + 1, processing == 3 ? 2 : 1};
    return 0;
}

uint64_t viv_tp_elements(const struct viv_tp *job)
{
    uint64_t columns = 0, rows = 0;
    for (int64_t x = job->x_start; x <= job->x_end; x += job->tile_x_step)
        columns += job->x_end - x + 1 < job->tile_w ? (uint64_t)(job->x_end - x + 1) : job->tile_w;
    for (int64_t y = job->y_start; y <= job->y_end; y += job->tile_y_step)
        rows += job->y_end - y + 1 < job->tile_h ? (uint64_t)(job->y_end - y + 1) : job->tile_h;
    uint64_t elements;
    uint64_t slices = (uint64_t)job->in_slices + job->slices_before + job->slices_after;
    if (__builtin_mul_overflow(columns, rows, &elements) || __builtin_mul_overflow(elements, slices, &elements))
        return UINT64_MAX;
    return elements;
}

/* ---- what becomes of a value ------------------------------------------ */

/* A table's 21-bit float: sign, 5 bits of exponent with bias 15, 15 bits of mantissa. */
static double from_float21(uint32_t bits)
{
    int exponent = (int)(bits >> 15 & 31);
    double mantissa = (double)(bits & 0x7fff) / 0x8000 + (exponent ? 1 : 0);
    double value = ldexp(mantissa, exponent ? exponent - 15 : -14);
    return bits >> 20 & 1 ? -value : value;
}

/* The same of a whole number up to 255, which is exact. */
static uint32_t to_float21(int32_t value)
{
    uint32_t magnitude = (uint32_t)(value < 0 ? -value : value);
    if (magnitude == 0)
        return 0;
    uint32_t exponent = 31u - (uint32_t)__builtin_clz(magnitude);
    uint32_t mantissa = (magnitude << (15 - exponent)) & 0x7fff;
    return (value < 0 ? 1u << 20 : 0) | (exponent + 15) << 15 | mantissa;
}

/* Indexed with the number's upper ten bits, the lower eleven interpolate (inferred; specification, section 4.4). */
static double look_up(const uint32_t *table, int32_t value)
{
    uint32_t bits = to_float21(value), index = bits >> 11;
    double here = from_float21(table[index]);
    if (index % LUT_HALF == LUT_HALF - 1)
        return here;
    return here + (from_float21(table[index + 1]) - here) * (bits & 0x7ff) / 0x800;
}

/* Codes as in NN jobs (inferred). */
static double round_value(double value, uint32_t mode)
{
    switch (mode) {
    case 0:
        return floor(value + 0.5);
    case 1:
        return nearbyint(value);
    case 2:
        return trunc(value);
    default:
        return floor(value);
    }
}

/* Everything that happens to one byte, tabulated: it depends on nothing else. */
static void tabulate(const uint32_t *words, const uint32_t *table, struct viv_tp *job)
{
    int32_t in_zero = (int32_t)viv_tp_get(words, VIV_TP_IN_ZP), out_zero = (int32_t)viv_tp_get(words, VIV_TP_OUT_ZP);
    uint32_t rounding = viv_tp_get(words, VIV_TP_INTEGER_ROUNDING_MODE);
    bool relu = viv_tp_get(words, VIV_TP_ALU_RELU_ENABLE);
    double mantissa = 1 + (double)viv_tp_get(words, VIV_TP_ALU_OUTPUT_POST_MULTIPLIER) / 0x8000;
    double scale = ldexp(mantissa, -viv_field_get_signed(words, &viv_tp_fields[VIV_TP_ALU_OUTPUT_POSTSHIFT], 7));
    for (int32_t i = 0; i < 256; i++) {
        double real = table ? look_up(table, i - in_zero) : i - in_zero;
        double value = round_value((relu && real < 0 ? 0 : real) * scale, rounding) + out_zero;
        job->values[i] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
    }
}

static int parse_values(struct viv_sim *sim, const uint32_t *words, struct viv_tp *job)
{
    uint32_t copy[LUT_ENTRIES];
    bool has_table = viv_tp_get(words, VIV_TP_ALU_PWL_ENABLE);
    if (has_table) {
        if (!viv_tp_get(words, VIV_TP_ALU_LOAD_PWL_LUT) || !viv_tp_get(words, VIV_TP_ALU_LOAD_PWL_LUT_GLOBAL_MEM))
            return refuse(sim, job->descriptor, VIV_TP_ALU_PWL_ENABLE, 1, "a table that isn't loaded is not simulated");
        if (!viv_tp_get(words, VIV_TP_ALU_PWL_SIGN_SUPPORT))
            return refuse(sim, job->descriptor, VIV_TP_ALU_PWL_SIGN_SUPPORT, 0,
                          "tables without sign are not simulated");
        const void *table = viv_sim_at(sim, viv_tp_get(words, VIV_TP_ALU_LOAD_PWL_LUT_ADDRESS), sizeof copy,
                                       MICA_ACCESS_READ, "TP table");
        if (!table)
            return -EFAULT;
        memcpy(copy, table, sizeof copy);
    }
    tabulate(words, has_table ? copy : NULL, job);
    /* Padding is the real zero; where maxima are taken, it never wins. */
    bool pooled = job->across.window > 1 || job->down.window > 1;
    job->outside =
        pooled && viv_tp_get(words, VIV_TP_IN_IMAGE_BORDER_MODE) ? 0 : (uint8_t)viv_tp_get(words, VIV_TP_IN_ZP);
    return 0;
}

int viv_tp_parse(struct viv_sim *sim, uint32_t address, const uint32_t *words, struct viv_tp *job)
{
    *job = (struct viv_tp){.descriptor = address};
    viv_sim_note_unknown(sim, "TP", address, words, viv_tp_fields, VIV_TP_FIELD_COUNT);
    int result = check_required(sim, address, words);
    if (result)
        return result;
    parse_scan(words, job);
    parse_loops(words, job);
    result = check_scan(sim, job);
    if (!result)
        result = parse_pool(sim, job, viv_tp_get(words, VIV_TP_ALU_HORZ_PROCESSING),
                            viv_tp_get(words, VIV_TP_ALU_HORZ_PROC_COUNT), &job->across);
    if (!result)
        result = parse_pool(sim, job, viv_tp_get(words, VIV_TP_ALU_VERT_PROCESSING),
                            viv_tp_get(words, VIV_TP_ALU_VERT_PROC_COUNT), &job->down);
    return result ? result : parse_values(sim, words, job);
}
