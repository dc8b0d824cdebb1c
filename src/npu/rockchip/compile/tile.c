/* SPDX-License-Identifier: MIT */
/*
 * How a layer is cut into tasks (specification, section 7). The rows of a task must be in the convolution buffer as a
 * whole, beside at least one group of kernels, through whose banks the weights stream. Every further task costs more
 * than most layers take, so few tasks is what matters; among equals the timing model decides.
 */
#include "npu/rockchip/compile/weighted.h"

#include "npu/rockchip/hw/timing.h"
#include "util/checked.h"

#define CHANNEL_STEP 16u  /* input channels are counted in sixteens (section 5) */
#define PIXEL_RUN 16u     /* outputs that are computed together (section 18) */
#define PIXEL_COLUMNS 16u /* packed rows are counted in so many columns (section 11) */

#define LEAST_GAIN_US 1e-3

/* ---- rows ------------------------------------------------------------------------ */

static uint32_t extent(uint32_t kernel, uint32_t dilation)
{
    return (kernel - 1) * dilation + 1;
}

struct rk_rows rk_rows_of(const struct rk_weighted *weighted, uint32_t first, uint32_t end)
{
    struct rk_rows rows = {.first = first, .end = end};
    int64_t spread = weighted->spread_y, last_row = (int64_t)weighted->in.shape.h - 1;
    int64_t top = (int64_t)first * weighted->stride_y - weighted->pad_top; /* of the first window, in spread rows */
    int64_t bottom = (int64_t)(end - 1) * weighted->stride_y - weighted->pad_top +
                     extent(weighted->kernel_h, weighted->dilation_y) - 1;
    int64_t in_first = top <= 0 ? 0 : (top + spread - 1) / spread, in_last = bottom < 0 ? 0 : bottom / spread;
    if (in_last > last_row)
        in_last = last_row;
    if (in_first > in_last) /* no window reaches a row, but the engine reads one */
        in_first = in_first > last_row ? last_row : in_first;
    if (in_last < in_first)
        in_last = in_first;
    rows.in_first = (uint32_t)in_first;
    rows.in_count = (uint32_t)(in_last - in_first + 1);
    rows.pad_top = in_first * spread > top ? (uint32_t)(in_first * spread - top) : 0;
    return rows;
}

/* ---- sizes ----------------------------------------------------------------------- */

uint32_t rk_lanes(const struct rk_weighted *weighted, uint32_t tile_channels)
{
    uint32_t channels = weighted->depthwise ? tile_channels : weighted->in.shape.c;
    return (uint32_t)mica_align(channels, CHANNEL_STEP);
}

uint32_t rk_row_entries(const struct rk_chip *chip, const struct rk_weighted *weighted, uint32_t tile_channels)
{
    uint32_t channels = weighted->depthwise ? tile_channels : weighted->in.shape.c;
    uint64_t bytes = (uint64_t)weighted->in.shape.w * mica_align(channels, chip->atom);
    return (uint32_t)(mica_align(bytes, chip->cbuf_entry) / chip->cbuf_entry);
}

/* Packed pixels take a group of 16 lanes each in the buffer, in rows of whole sixteens: assumed, as the weights do. */
uint32_t rk_row_bytes(const struct rk_chip *chip, const struct rk_weighted *weighted, uint32_t tile_channels)
{
    if (weighted->in.packed)
        return (uint32_t)mica_align(weighted->in.shape.w, PIXEL_COLUMNS) * CHANNEL_STEP;
    return rk_row_entries(chip, weighted, tile_channels) * chip->cbuf_entry;
}

uint64_t rk_weight_bytes(const struct rk_weighted *weighted, uint32_t tile_channels)
{
    uint64_t kernels = weighted->depthwise ? 1 : mica_align(tile_channels, 2);
    return kernels * weighted->kernel_w * weighted->kernel_h * rk_lanes(weighted, tile_channels);
}

/* ---- cost ------------------------------------------------------------------------ */

uint64_t rk_compute_cycles(const struct rk_chip *chip, const struct rk_weighted *weighted, uint32_t tile_channels,
                           const struct rk_rows *rows)
{
    uint64_t pixels = (uint64_t)weighted->out.shape.w * (rows->end - rows->first);
    uint32_t taps = weighted->kernel_w * weighted->kernel_h;
    return weighted->depthwise ? rk_depthwise_cycles(chip, pixels, taps, tile_channels)
                               : rk_direct_cycles(chip, pixels, taps, weighted->in.shape.c, tile_channels);
}

uint64_t rk_traffic(const struct rk_chip *chip, const struct rk_weighted *weighted, uint32_t tile_channels,
                    const struct rk_rows *rows, bool weights)
{
    uint64_t channels = weighted->depthwise ? tile_channels : weighted->in.shape.c;
    if (!weighted->in.packed)
        channels = mica_align(channels, chip->atom);
    uint64_t out_channels = mica_align(tile_channels, chip->atom);
    uint64_t bytes = (uint64_t)weighted->in.shape.w * rows->in_count * channels;
    bytes += (uint64_t)weighted->out.shape.w * (rows->end - rows->first) * out_channels;
    if (weighted->addend)
        bytes += (uint64_t)weighted->out.shape.w * (rows->end - rows->first) * out_channels;
    bytes += 4ull * tile_channels;
    return bytes + (weights ? rk_weight_bytes(weighted, tile_channels) : 0);
}

static double task_us(const struct rk_chip *chip, const struct rk_weighted *weighted, uint32_t tile_channels,
                      const struct rk_rows *rows, bool weights)
{
    double compute = (double)rk_compute_cycles(chip, weighted, tile_channels, rows) / chip->clock_mhz;
    double memory = (double)rk_traffic(chip, weighted, tile_channels, rows, weights) / chip->bytes_per_ns / 1000.0;
    return chip->task_us + (compute > memory ? compute : memory);
}

/* ---- banks ----------------------------------------------------------------------- */

/*
 * With one column, the last rows were seen corrupted on boards when the last bank is nearly full: a bank more is
 * always safe (specification, section 7).
 */
static uint32_t spare_banks(const struct rk_weighted *weighted)
{
    return weighted->in.shape.w == 1 && weighted->in.shape.h > 1 ? 1 : 0;
}

static uint32_t row_capacity(const struct rk_chip *chip, const struct rk_weighted *weighted, uint32_t tile_channels,
                             uint32_t banks)
{
    uint32_t usable = banks > 1 ? banks - spare_banks(weighted) : banks;
    uint64_t rows = (uint64_t)usable * RK_CBUF_BANK_BYTES / rk_row_bytes(chip, weighted, tile_channels);
    if (weighted->in.packed) { /* the field counts all rows of the task there */
        uint8_t bits = rk_fields[RK_CNA_CBUF_CON1_DATA_ENTRIES].at[chip->generation].width;
        uint64_t most = ((1u << bits) - 1) / mica_align(weighted->in.shape.w, PIXEL_COLUMNS);
        rows = rows < most ? rows : most;
    }
    return (uint32_t)rows;
}

uint32_t rk_tiling_banks(const struct rk_chip *chip, const struct rk_weighted *weighted, const struct rk_tiling *tiling,
                         uint32_t tile_channels, uint32_t rows)
{
    uint64_t bytes = (uint64_t)rows * rk_row_bytes(chip, weighted, tile_channels);
    uint32_t banks = (uint32_t)((bytes + RK_CBUF_BANK_BYTES - 1) / RK_CBUF_BANK_BYTES) + spare_banks(weighted);
    return banks < tiling->data_banks ? banks : tiling->data_banks;
}

/* What must be in the weight banks at least: the kernels that are computed at once. */
static uint64_t resident_bytes(const struct rk_chip *chip, const struct rk_weighted *weighted, uint32_t channels)
{
    uint32_t group = weighted->depthwise ? chip->depthwise_group : chip->kernel_group;
    return rk_weight_bytes(weighted, channels < group ? channels : group);
}

/*
 * Outputs are computed in runs of 16 pixels, and a task's last may be short: where the rest is one task either way, it
 * gets rows that complete the runs of this one.
 */
static uint32_t whole_runs(const struct rk_weighted *weighted, const struct rk_tiling *tiling, uint32_t first,
                           uint32_t end, uint32_t most)
{
    uint32_t rows = most - first;
    while (rows > 1 && rows * weighted->out.shape.w % PIXEL_RUN)
        rows--;
    struct rk_rows rest = rk_rows_of(weighted, first + rows, end);
    bool whole = rows * weighted->out.shape.w % PIXEL_RUN == 0;
    return whole && rest.in_count <= tiling->row_capacity ? first + rows : most;
}

struct rk_rows rk_tiling_rows(const struct rk_weighted *weighted, const struct rk_tiling *tiling, uint32_t first,
                              uint32_t end)
{
    struct rk_rows rows = rk_rows_of(weighted, first, end);
    if (rows.in_count <= tiling->row_capacity)
        return rows;
    uint32_t low = first + 1, high = end; /* `low` fits, `high` does not */
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        rows = rk_rows_of(weighted, first, middle);
        if (rows.in_count <= tiling->row_capacity)
            low = middle;
        else
            high = middle;
    }
    return rk_rows_of(weighted, first, whole_runs(weighted, tiling, first, end, low));
}

/* Adds up the tasks of one tile; false when a row of output needs more input rows than fit. */
static bool measure_tile(const struct rk_chip *chip, const struct rk_weighted *weighted, struct rk_tiling *tiling,
                         uint32_t channels, uint32_t first, uint32_t end)
{
    for (uint32_t row = first; row < end;) {
        struct rk_rows rows = rk_tiling_rows(weighted, tiling, row, end);
        if (rows.in_count > tiling->row_capacity)
            return false;
        bool weights = row == first || !tiling->reuse;
        tiling->us += task_us(chip, weighted, channels, &rows, weights);
        tiling->bytes += rk_traffic(chip, weighted, channels, &rows, weights);
        tiling->tasks++;
        row = rows.end;
    }
    return true;
}

static bool measure(const struct rk_chip *chip, const struct rk_weighted *weighted, uint32_t channels, uint32_t first,
                    uint32_t end, struct rk_tiling *tiling)
{
    uint32_t full = channels / tiling->channels, rest = channels % tiling->channels;
    uint32_t largest = full ? tiling->channels : rest;
    uint64_t weight_room = (uint64_t)tiling->weight_banks * RK_CBUF_BANK_BYTES;
    if (resident_bytes(chip, weighted, largest) > weight_room)
        return false;
    tiling->reuse = rk_weight_bytes(weighted, largest) <= weight_room;
    tiling->row_capacity = row_capacity(chip, weighted, largest, tiling->data_banks);
    if (tiling->row_capacity == 0)
        return false;
    struct rk_tiling one = *tiling;
    if (full && !measure_tile(chip, weighted, &one, tiling->channels, first, end))
        return false;
    tiling->us = one.us * full;
    tiling->tasks = one.tasks * full;
    tiling->bytes = one.bytes * full;
    return !rest || measure_tile(chip, weighted, tiling, rest, first, end);
}

/* As quick and less traffic is better: at higher clocks it is quicker, and cores share the memory. */
static bool is_better(const struct rk_tiling *a, const struct rk_tiling *b)
{
    if (!b->tasks || a->us < b->us - LEAST_GAIN_US)
        return true;
    return a->us < b->us + LEAST_GAIN_US && a->bytes < b->bytes;
}

/* All divisions of banks between rows and kernels, for one size of tiles. Fewest data banks last: ties keep the most.
 */
static void try_channels(const struct rk_chip *chip, const struct rk_weighted *weighted, uint32_t channels,
                         uint32_t tile_channels, uint32_t first, uint32_t end, struct rk_tiling *best)
{
    for (uint32_t banks = chip->cbuf_banks - 1; banks >= 1; banks--) {
        struct rk_tiling tiling = {.channels = tile_channels, .data_banks = banks};
        tiling.weight_banks = chip->cbuf_banks - banks;
        if (measure(chip, weighted, channels, first, end, &tiling) && is_better(&tiling, best))
            *best = tiling;
    }
}

bool rk_tiling_choose(const struct rk_chip *chip, const struct rk_weighted *weighted, uint32_t channels, uint32_t first,
                      uint32_t end, struct rk_tiling *tiling)
{
    struct rk_tiling best = {0};
    uint32_t group = weighted->depthwise ? chip->depthwise_group : chip->kernel_group;
    uint32_t parts = mica_cdiv(channels, group), previous = 0;
    try_channels(chip, weighted, channels, channels, first, end, &best);
    /* Narrower tiles need more tasks: none can be better than what one task does. */
    for (uint32_t part = 2; part <= parts && (!best.tasks || best.tasks >= part); part++) {
        uint32_t tile = mica_cdiv(parts, part) * group;
        if (tile != previous)
            try_channels(chip, weighted, channels, tile, first, end, &best);
        previous = tile;
    }
    if (!best.tasks && channels > chip->atom)
        try_channels(chip, weighted, channels, chip->atom, first, end, &best);
    *tiling = best;
    return best.tasks != 0;
}
