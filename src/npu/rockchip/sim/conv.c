/* SPDX-License-Identifier: MIT */
/*
 * Convolutions from a checked task to accumulators: blocks of a few pixels by
 * up to 64 channels, which go to the output stage as they are made.
 */
#include "npu/rockchip/sim/conv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/checked.h"

#define BLOCK_PIXELS (9 * RK_PIXELS)
#define BLOCK_LANES 64u
/* Larger numbers can't come from registers; up to here no sum and no size overflows. */
#define MAX_EXTENT 65536u
#define MAX_TRUNCATE 31u
/* Accumulators have 34 bits and saturate (NVDLA). When is not known: here once, at the end. */
#define MAX_ACCUMULATOR ((INT64_C(1) << 33) - 1)

struct run {
    struct rk_sim *sim;
    const struct rk_kernels *kernels;
    const struct rk_conv *conv;
    const struct rk_dpu *dpu;
    struct rk_image image;
    struct rk_taps taps;
    const uint32_t *tap_pixels; /* direct: where each tap's total lies */
    const int8_t *weights;
    size_t pixel_blocks;
};

/* Some pixels by some channels, on their way to the output stage. */
struct block {
    const struct run *run;
    uint32_t first_pixel, pixels, channel, lanes;
    size_t stride;           /* lanes, rounded up to RK_COLUMNS */
    size_t at[BLOCK_PIXELS]; /* pixels of the image; past the last: the last again */
    int32_t sums[BLOCK_PIXELS * BLOCK_LANES], totals[BLOCK_PIXELS * BLOCK_LANES];
};

/* ---- where taps are --------------------------------------------------------- */

void rk_taps_plan(const struct rk_conv *conv, struct rk_taps *taps)
{
    size_t count = (size_t)conv->kernel_w * conv->kernel_h;
    size_t lanes = rk_image_lanes(conv);
    *taps = (struct rk_taps){0};
    taps->merged = !conv->depthwise && conv->dilation_x == 1 && count * (lanes + 1) <= RK_MAX_TERMS;
    taps->terms = conv->depthwise ? 1 : taps->merged ? lanes * conv->kernel_w : lanes;
    taps->runs.pairs = (taps->terms + 1) / 2;
    taps->runs.count = conv->depthwise ? mica_align(count, 2) : taps->merged ? conv->kernel_h : count;
    taps->runs_at_once = RK_MAX_TERMS / (2 * taps->runs.pairs);
    taps->columns_bytes = taps->runs.count * taps->runs.pairs * (conv->depthwise ? 1 : 2) * RK_COLUMNS;
}

/* Pixels from the first tap to tap `index`. */
static uint32_t tap_pixel(const struct rk_image *image, uint32_t index)
{
    const struct rk_conv *conv = image->conv;
    return index / conv->kernel_w * conv->dilation_y * image->columns + index % conv->kernel_w * conv->dilation_x;
}

void rk_taps_offsets(const struct rk_taps *taps, const struct rk_image *image, uint32_t *offsets)
{
    uint32_t last = image->conv->kernel_w * image->conv->kernel_h - 1;
    for (uint32_t run = 0; run < taps->runs.count; run++) {
        uint32_t tap = taps->merged ? run * image->conv->kernel_w : run;
        offsets[run] = tap_pixel(image, tap < last ? tap : last) * image->lanes;
    }
}

/* ---- accumulators ----------------------------------------------------------- */

static int64_t clamp(int64_t value, int64_t most)
{
    return value > most ? most : value < -most - 1 ? -most - 1 : value;
}

/* Are there more products than a sum of 32 bits takes? */
static bool in_parts(const struct run *run)
{
    return run->taps.runs.count > run->taps.runs_at_once;
}

/* What leaves CORE: halves go away from zero (specification, section 8). */
static int32_t truncate(int64_t sum, uint32_t shift)
{
    int64_t value = clamp(sum, MAX_ACCUMULATOR), half = shift ? INT64_C(1) << (shift - 1) : 0;
    value = value < 0 ? -((-value + half) >> shift) : (value + half) >> shift;
    return (int32_t)clamp(value, INT32_MAX);
}

/* Sums in parts are done already. */
static void truncate_all(struct block *block)
{
    uint32_t shift = in_parts(block->run) ? 0 : block->run->conv->truncate;
    for (size_t i = 0; shift && i < (size_t)block->pixels * block->lanes; i++)
        block->sums[i] = truncate(block->sums[i], shift);
}

/* Sums of as many products as 32 bits take, added up wider. */
static void direct_in_parts(const struct run *run, int32_t *sums, size_t stride, const int16_t *const *pixels,
                            unsigned count, const int8_t *weights)
{
    int64_t wide[RK_PIXELS * RK_COLUMNS] = {0};
    struct rk_runs part = run->taps.runs;
    for (size_t done = 0; done < run->taps.runs.count; done += part.count) {
        int32_t some[RK_PIXELS * RK_COLUMNS];
        size_t left = run->taps.runs.count - done;
        part.count = left < run->taps.runs_at_once ? left : run->taps.runs_at_once;
        part.offsets = run->taps.runs.offsets + done;
        run->kernels->direct(some, RK_COLUMNS, pixels, count, &part, weights + done * part.pairs * 2 * RK_COLUMNS);
        for (unsigned i = 0; i < count * RK_COLUMNS; i++)
            wide[i] += some[i];
    }
    for (unsigned i = 0; i < count * RK_COLUMNS; i++)
        sums[i / RK_COLUMNS * stride + i % RK_COLUMNS] = truncate(wide[i], run->conv->truncate);
}

static void direct_pixels(struct block *block, uint32_t pixel, unsigned count, uint32_t column, const int8_t *weights)
{
    const struct run *run = block->run;
    const int16_t *pixels[RK_PIXELS];
    int32_t *sums = block->sums + pixel * block->stride + column;
    for (unsigned i = 0; i < count; i++)
        pixels[i] = run->image.data + block->at[pixel + i] * run->image.lanes;
    if (in_parts(run))
        direct_in_parts(run, sums, block->stride, pixels, count, weights);
    else
        run->kernels->direct(sums, block->stride, pixels, count, &run->taps.runs, weights);
}

/* One or two pixels at the end are quicker one by one. */
static void direct_columns(struct block *block, uint32_t column, const int8_t *weights)
{
    uint32_t pixel = 0;
    for (; pixel + 2 < block->pixels; pixel += RK_PIXELS)
        direct_pixels(block, pixel, RK_PIXELS, column, weights);
    for (; pixel < block->pixels; pixel++)
        direct_pixels(block, pixel, 1, column, weights);
}

static void depthwise_columns(struct block *block, uint32_t column, const int8_t *weights)
{
    const struct run *run = block->run;
    unsigned odd = run->conv->kernel_w * run->conv->kernel_h % 2;
    for (uint32_t i = 0; i < block->pixels; i++) {
        size_t to = i * block->stride + column;
        const int16_t *pixel = run->image.data + block->at[i] * run->image.lanes + block->channel + column;
        run->kernels->depthwise(block->sums + to, run->conv->window_sums ? block->totals + to : NULL, pixel,
                                &run->taps.runs, odd, weights);
    }
}

/* Channels that have no weights have weights of 0, depthwise ones no inputs either. */
static void no_columns(struct block *block, uint32_t column)
{
    for (size_t i = 0; i < block->pixels; i++) {
        memset(block->sums + i * block->stride + column, 0, RK_COLUMNS * sizeof *block->sums);
        memset(block->totals + i * block->stride + column, 0, RK_COLUMNS * sizeof *block->totals);
    }
}

static void make_columns(struct block *block)
{
    const struct run *run = block->run;
    const struct rk_conv *conv = run->conv;
    for (uint32_t column = 0; column < block->lanes; column += RK_COLUMNS) {
        uint32_t channel = block->channel + column;
        const int8_t *weights = run->weights + channel / RK_COLUMNS * run->taps.columns_bytes;
        if (channel >= (conv->depthwise ? conv->channels : conv->kernels))
            no_columns(block, column);
        else if (conv->depthwise)
            depthwise_columns(block, column, weights);
        else
            direct_columns(block, column, weights);
    }
}

/* ---- blocks ----------------------------------------------------------------- */

/* Atoms of 8 channels may leave half of the last columns unused. */
static void close_gaps(const struct block *block, int32_t *sums)
{
    for (size_t i = 1; block->stride != block->lanes && i < block->pixels; i++)
        memmove(sums + i * block->lanes, sums + i * block->stride, block->lanes * sizeof *sums);
}

static void find_pixels(struct block *block)
{
    const struct rk_conv *conv = block->run->conv;
    for (uint32_t i = 0; i < BLOCK_PIXELS; i++) {
        uint32_t pixel = block->first_pixel + (i < block->pixels ? i : block->pixels - 1);
        block->at[i] = (size_t)(pixel / conv->out_w) * conv->stride_y * block->run->image.columns +
                       (size_t)(pixel % conv->out_w) * conv->stride_x;
    }
}

/* Of direct convolutions: one for all channels. */
static void window_totals(struct block *block)
{
    const struct run *run = block->run;
    uint32_t taps = run->conv->kernel_w * run->conv->kernel_h;
    for (uint32_t i = 0; i < block->pixels; i++) {
        const int32_t *totals = run->image.totals + block->at[i];
        int32_t total = 0;
        for (uint32_t tap = 0; tap < taps; tap++)
            total += totals[run->tap_pixels[tap]];
        block->totals[i] = total;
    }
}

static void run_block(void *user, size_t index)
{
    const struct run *run = user;
    const struct rk_conv *conv = run->conv;
    struct block block;
    uint32_t pixels = conv->out_w * conv->out_h;
    block.run = run;
    block.first_pixel = (uint32_t)(index % run->pixel_blocks) * BLOCK_PIXELS;
    block.channel = (uint32_t)(index / run->pixel_blocks) * BLOCK_LANES;
    block.pixels = pixels - block.first_pixel < BLOCK_PIXELS ? pixels - block.first_pixel : BLOCK_PIXELS;
    block.lanes = conv->out_channels - block.channel < BLOCK_LANES ? conv->out_channels - block.channel : BLOCK_LANES;
    block.stride = mica_align(block.lanes, RK_COLUMNS);
    find_pixels(&block);
    make_columns(&block);
    close_gaps(&block, block.sums);
    truncate_all(&block);
    if (conv->window_sums && conv->depthwise)
        close_gaps(&block, block.totals);
    else if (conv->window_sums)
        window_totals(&block);
    rk_dpu_block(run->dpu, block.first_pixel, block.pixels, block.channel, block.lanes, block.sums,
                 conv->window_sums ? block.totals : NULL);
}

/* ---- a task ----------------------------------------------------------------- */

static bool within(uint32_t value, uint32_t most)
{
    return value >= 1 && value <= most;
}

/* job.c checks what registers say; this is what the code here relies on. */
static int check(struct rk_sim *sim, const struct rk_conv *conv)
{
    uint32_t atom = sim->chip->atom;
    bool sane = within(conv->kernel_w, RK_MAX_KERNEL) && within(conv->kernel_h, RK_MAX_KERNEL) &&
                within(conv->stride_x, MAX_EXTENT) && within(conv->stride_y, MAX_EXTENT) &&
                within(conv->dilation_x, MAX_EXTENT) && within(conv->dilation_y, MAX_EXTENT) &&
                within(conv->spread_x, MAX_EXTENT) && within(conv->spread_y, MAX_EXTENT) &&
                within(conv->out_w, MAX_EXTENT / 2) && within(conv->out_h, MAX_EXTENT / 2) &&
                within(conv->channels, RK_MAX_CHANNELS + 1) && within(conv->out_channels, MAX_EXTENT) &&
                conv->kernels <= MAX_EXTENT && conv->in_w <= MAX_EXTENT && conv->in_h <= MAX_EXTENT &&
                conv->line_bytes < MICA_DEVICE_SPACE && conv->truncate <= MAX_TRUNCATE && conv->channels % atom == 0 &&
                conv->out_channels % atom == 0 &&
                (!conv->packed || (within(conv->real_channels, conv->channels) && !conv->depthwise));
    return sane ? 0
                : mica_fail(sim->log, -EIO, "features at 0x%08llx: no convolution has such a shape",
                            (unsigned long long)conv->feature);
}

static int place_taps(struct run *run)
{
    struct rk_sim *sim = run->sim;
    const struct rk_conv *conv = run->conv;
    uint32_t taps = conv->kernel_w * conv->kernel_h;
    if (!rk_buffer_reserve(&sim->lanes, (run->taps.runs.count + taps) * sizeof(uint32_t)))
        return mica_fail_nomem(sim->log);
    uint32_t *offsets = (uint32_t *)(void *)sim->lanes.data, *tap_pixels = offsets + run->taps.runs.count;
    rk_taps_offsets(&run->taps, &run->image, offsets);
    for (uint32_t i = 0; i < taps; i++)
        tap_pixels[i] = tap_pixel(&run->image, i);
    run->taps.runs.offsets = offsets;
    run->tap_pixels = tap_pixels;
    return 0;
}

int rk_conv_run_with(struct rk_sim *sim, const struct rk_kernels *kernels, const struct rk_conv *conv,
                     const struct rk_dpu *dpu)
{
    struct run run = {.sim = sim, .kernels = kernels, .conv = conv, .dpu = dpu};
    int result = check(sim, conv);
    if (result)
        return result;
    rk_taps_plan(conv, &run.taps);
    result = rk_weights_get(sim, conv, &run.taps, &run.weights);
    if (!result)
        result = rk_image_fetch(sim, kernels, conv, &run.image);
    if (!result)
        result = place_taps(&run);
    if (result)
        return result;
    run.pixel_blocks = mica_cdiv(conv->out_w * conv->out_h, BLOCK_PIXELS);
    mica_parallel_for(sim->threads, run.pixel_blocks * mica_cdiv(conv->out_channels, BLOCK_LANES), run_block, &run);
    return 0;
}

int rk_conv_run(struct rk_sim *sim, const struct rk_conv *conv, const struct rk_dpu *dpu)
{
    return rk_conv_run_with(sim, rk_kernels_best(), conv, dpu);
}

void rk_conv_finish(struct rk_sim *sim)
{
    rk_weights_clear(sim);
    free(sim->image.data);
    free(sim->lanes.data);
    sim->image = sim->lanes = (struct rk_buffer){0};
}
