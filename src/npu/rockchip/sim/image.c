/* SPDX-License-Identifier: MIT */
/* From feature cubes, or packed pixels, to the image that the kernels multiply. */
#include <errno.h>
#include <string.h>

#include "npu/rockchip/sim/conv.h"
#include "util/checked.h"

/* The CBUF of a core has 384 KiB; padding and the gaps of transposed convolutions make images larger, not without end.
 */
#define MAX_IMAGE_BYTES ((uint64_t)1 << 29)

struct fetch {
    const struct rk_image *image;
    const struct rk_kernels *kernels;
    const uint8_t *base; /* device address 0 */
    const int16_t *pad;  /* one pixel of padding */
    uint32_t atom;
};

/* Every surface that is fetched, rows and all. */
static int check_source(struct rk_sim *sim, const struct rk_conv *conv)
{
    uint32_t atom = sim->chip->atom, surfaces = conv->packed ? 1 : conv->channels / atom;
    if (!conv->in_w || !conv->in_h)
        return 0;
    uint64_t row = (uint64_t)conv->in_w * (conv->packed ? conv->real_channels : atom);
    for (uint64_t i = 0; i < surfaces; i++)
        if (!rk_sim_at(sim, conv->feature + i * conv->surface_bytes, (conv->in_h - 1) * conv->line_bytes + row,
                       MICA_ACCESS_READ, "features"))
            return -EFAULT;
    return 0;
}

static void fill(const struct rk_image *image, int16_t *out, const int16_t *pad, size_t count)
{
    for (; count; count--, out += image->lanes)
        memcpy(out, pad, image->lanes * sizeof *out);
}

/* The part of a line of memory that the image has: `count` pixels from `first` on, put at column `column`. */
struct part {
    uint32_t first, count, column;
};

static struct part inside(const struct rk_image *image)
{
    const struct rk_conv *conv = image->conv;
    int64_t step = conv->spread_x, start = conv->pad_left;
    int64_t first = start < 0 ? (-start + step - 1) / step : 0;
    int64_t column = start + first * step, left = (int64_t)image->columns - column;
    int64_t count = left > 0 ? (left + step - 1) / step : 0;
    if (count > (int64_t)conv->in_w - first)
        count = (int64_t)conv->in_w - first;
    return count > 0 ? (struct part){(uint32_t)first, (uint32_t)count, (uint32_t)column} : (struct part){0};
}

/* Lanes that only the image has are 0. */
static void finish_lanes(const struct rk_image *image, int16_t *out, size_t step, size_t count)
{
    const struct rk_conv *conv = image->conv;
    size_t spare = image->lanes - conv->channels;
    for (; count && (spare || conv->flip); count--, out += step) {
        for (uint32_t lane = 0; conv->flip && lane < conv->channels; lane++)
            out[lane] = (int8_t)(out[lane] ^ conv->flip);
        memset(out + conv->channels, 0, spare * sizeof *out);
    }
}

static void fetch_packed(const struct fetch *fetch, int16_t *out, const int8_t *in, const struct part *part)
{
    uint32_t lanes = fetch->image->lanes;
    uint8_t flip = fetch->image->conv->flip;
    size_t gap = (size_t)(fetch->image->conv->spread_x - 1) * lanes;
    for (uint32_t x = 0; x < part->count; x++, out += gap)
        for (uint32_t lane = 0; lane < lanes; lane++)
            *out++ = (int8_t)(*in++ ^ flip);
}

/* `row`: address in surface 0. */
static void fetch_pixels(const struct fetch *fetch, int16_t *out, uint64_t row, const struct part *part)
{
    const struct rk_image *image = fetch->image;
    const struct rk_conv *conv = image->conv;
    size_t step = (size_t)conv->spread_x * image->lanes;
    out += (size_t)part->column * image->lanes;
    row += (uint64_t)part->first * (conv->packed ? conv->real_channels : fetch->atom);
    if (conv->packed) {
        fetch_packed(fetch, out, (const int8_t *)fetch->base + row, part);
        return;
    }
    for (uint32_t lane = 0; lane < conv->channels; lane += fetch->atom, row += conv->surface_bytes)
        fetch->kernels->widen(out + lane, step, (const int8_t *)fetch->base + row, part->count, fetch->atom);
    finish_lanes(image, out, step, part->count);
}

static void add_up(const struct rk_image *image, const int16_t *in, int32_t *totals)
{
    for (uint32_t x = 0; x < image->columns; x++, in += image->lanes) {
        int32_t total = 0;
        for (uint32_t lane = 0; lane < image->lanes; lane++)
            total += in[lane];
        totals[x] = total;
    }
}

static void fetch_row(void *user, size_t index)
{
    const struct fetch *fetch = user;
    const struct rk_image *image = fetch->image;
    const struct rk_conv *conv = image->conv;
    int16_t *out = image->data + index * image->columns * image->lanes;
    int64_t y = (int64_t)index - conv->pad_top;
    bool real = y >= 0 && y % conv->spread_y == 0 && y / conv->spread_y < conv->in_h;
    struct part part = real ? inside(image) : (struct part){0};
    size_t after = part.column + part.count;
    if (!part.count || conv->spread_x > 1) {
        fill(image, out, fetch->pad, image->columns);
    } else {
        fill(image, out, fetch->pad, part.column);
        fill(image, out + after * image->lanes, fetch->pad, image->columns - after);
    }
    if (part.count)
        fetch_pixels(fetch, out, conv->feature + (uint64_t)y / conv->spread_y * conv->line_bytes, &part);
    if (image->totals)
        add_up(image, out, image->totals + index * image->columns);
}

/*
 * Odd channels of the first half of each 64 take the second byte of the padding value (specification, section 8).
 * Lanes that pixel mode has no bytes for are 0, as are those that only the image has.
 */
static void make_pad(const struct rk_conv *conv, uint32_t lanes, int16_t *pad)
{
    for (uint32_t lane = 0; lane < lanes; lane++) {
        bool second = conv->depthwise && lane % 64 < 32 && lane % 2;
        pad[lane] = conv->packed || lane < conv->channels ? conv->pad[second] : 0;
    }
}

uint32_t rk_image_lanes(const struct rk_conv *conv)
{
    return conv->packed ? conv->real_channels : (uint32_t)mica_align(conv->channels, RK_COLUMNS);
}

static void plan(const struct rk_conv *conv, struct rk_image *image)
{
    *image = (struct rk_image){
        .conv = conv,
        .columns = (conv->out_w - 1) * conv->stride_x + (conv->kernel_w - 1) * conv->dilation_x + 1,
        .rows = (conv->out_h - 1) * conv->stride_y + (conv->kernel_h - 1) * conv->dilation_y + 1,
        .lanes = rk_image_lanes(conv),
    };
}

/* Parts the simulator's buffer: totals, the image, a pixel of padding, which *pad gets. */
static int reserve(struct rk_sim *sim, struct rk_image *image, int16_t **pad)
{
    const struct rk_conv *conv = image->conv;
    uint64_t pixels = (uint64_t)image->columns * image->rows, elements = 0, totals = 0;
    if (pixels <= MAX_IMAGE_BYTES) {
        elements = pixels * image->lanes + RK_IMAGE_SLACK;
        totals = conv->window_sums && !conv->depthwise ? pixels : 0;
    }
    uint64_t bytes = totals * sizeof(int32_t) + (elements + image->lanes) * sizeof(int16_t);
    if (!elements || bytes > MAX_IMAGE_BYTES)
        return mica_fail(sim->log, -EIO,
                         "features at 0x%08llx: a padded image of %u x %u pixels is more than any device "
                         "buffers",
                         (unsigned long long)conv->feature, image->columns, image->rows);
    if (!rk_buffer_reserve(&sim->image, bytes))
        return mica_fail_nomem(sim->log);
    image->totals = totals ? (int32_t *)(void *)sim->image.data : NULL;
    image->data = (int16_t *)(void *)(sim->image.data + totals * sizeof(int32_t));
    *pad = image->data + elements;
    memset(*pad - RK_IMAGE_SLACK, 0, RK_IMAGE_SLACK * sizeof **pad);
    return 0;
}

int rk_image_fetch(struct rk_sim *sim, const struct rk_kernels *kernels, const struct rk_conv *conv,
                   struct rk_image *image)
{
    int16_t *pad = NULL;
    plan(conv, image);
    int result = check_source(sim, conv);
    if (!result)
        result = reserve(sim, image, &pad);
    if (result)
        return result;
    make_pad(conv, image->lanes, pad);
    struct fetch fetch = {image, kernels, sim->memory->base, pad, sim->chip->atom};
    mica_parallel_for(sim->threads, image->rows, fetch_row, &fetch);
    return 0;
}
