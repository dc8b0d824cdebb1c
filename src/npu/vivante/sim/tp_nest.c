/* SPDX-License-Identifier: MIT */
/*
 * Fast way for jobs that are one loop nest: every byte of a box is read in one
 * nest of loops and written in another, with the same number of rounds.
 * Transposes, reshuffles, pads and plain copies are. Gives what tp.c gives, or
 * leaves the job to it.
 */
#include <errno.h>
#include <string.h>

#include "npu/vivante/sim/tp_job.h"

#define MAX_LEVELS 16u
#define MAX_BOX ((uint64_t)1 << 28)

/* Fastest level first. */
struct level {
    uint64_t count, in, out; /* byte steps */
};

struct nest {
    unsigned levels;
    struct level level[MAX_LEVELS];
};

/* Where the scan window's bytes are: in the image itself, or in a copy with padding. */
struct source {
    const uint8_t *data;
    uint64_t row_bytes, slice_bytes;
};

static uint64_t window_w(const struct viv_tp *job)
{
    return (uint64_t)((int64_t)job->x_end - job->x_start + 1);
}

static uint64_t window_h(const struct viv_tp *job)
{
    return (uint64_t)((int64_t)job->y_end - job->y_start + 1);
}

/* Do the tiles cut the window evenly, and would no reset cut a loop short? */
static bool regular(const struct viv_tp *job)
{
    uint64_t row = job->tile_w, tile = row * job->tile_h;
    uint64_t to_1 = (uint64_t)job->count[0] * job->count[1], to_2 = to_1 * job->count[2];
    if (job->across.window != 1 || job->down.window != 1 || job->tile_x_step != job->tile_w ||
        job->tile_y_step != job->tile_h || window_w(job) % job->tile_w || window_h(job) % job->tile_h)
        return false;
    if (to_2 == 0 || (job->reset_row && row % to_1) || (job->reset_tile_2 && tile % to_2))
        return false;
    uint64_t to_3;
    return !job->reset_tile_3 || (!__builtin_mul_overflow(to_2, job->count[3], &to_3) && tile % to_3 == 0);
}

static bool add_level(struct nest *nest, uint64_t count, uint64_t in, uint64_t out)
{
    struct level *last = nest->levels ? &nest->level[nest->levels - 1] : NULL;
    if (count == 1)
        return true;
    if (last && in == last->in * last->count && out == last->out * last->count) {
        last->count *= count;
        return true;
    }
    if (nest->levels == MAX_LEVELS)
        return false;
    nest->level[nest->levels++] = (struct level){count, in, out};
    return true;
}

/* Cuts the reading and the writing loops into common ones; false when their counts don't divide one another. */
static bool plan(const struct viv_tp *job, const struct source *source, struct nest *nest)
{
    struct level reads[] = {
        {job->tile_w, 1, 0},
        {job->tile_h, source->row_bytes, 0},
        {window_w(job) / job->tile_w, job->tile_w, 0},
        {window_h(job) / job->tile_h, job->tile_h * source->row_bytes, 0},
        {(uint64_t)job->in_slices + job->slices_before + job->slices_after, source->slice_bytes, 0},
    };
    uint64_t write_count = job->count[0], write_step = job->step[0];
    unsigned write = 0;
    *nest = (struct nest){0};
    for (size_t i = 0; i < sizeof reads / sizeof reads[0];) {
        struct level *read = &reads[i];
        bool last = write == VIV_TP_LOOPS - 1;
        uint64_t common = last || read->count < write_count ? read->count : write_count;
        if (read->count % common || (!last && write_count % common))
            return false;
        if (!add_level(nest, common, read->in, write_step))
            return false;
        read->count /= common;
        read->in *= common;
        write_step *= common;
        if (!last)
            write_count /= common;
        if (read->count == 1)
            i++;
        if (!last && write_count == 1) {
            write++;
            write_count = job->count[write];
            write_step = job->step[write];
        }
    }
    return true;
}

/* Bytes from the first element to the last; false when that doesn't fit the address space. */
static bool extents(const struct nest *nest, uint64_t *in, uint64_t *out)
{
    *in = *out = 1;
    for (unsigned i = 0; i < nest->levels; i++) {
        const struct level *level = &nest->level[i];
        uint64_t more_in, more_out;
        if (__builtin_mul_overflow(level->count - 1, level->in, &more_in) || more_in > MICA_DEVICE_SPACE ||
            __builtin_mul_overflow(level->count - 1, level->out, &more_out) || more_out > MICA_DEVICE_SPACE)
            return false;
        *in += more_in;
        *out += more_out;
    }
    return *in <= MICA_DEVICE_SPACE && *out <= MICA_DEVICE_SPACE;
}

static void run_line(uint8_t *out, const uint8_t *in, const struct level *level, const uint8_t *values, bool copy)
{
    if (copy && level->in == 1 && level->out == 1) {
        memcpy(out, in, level->count);
        return;
    }
    for (uint64_t i = 0; i < level->count; i++)
        out[i * level->out] = values[in[i * level->in]];
}

static void run_levels(uint8_t *out, const uint8_t *in, const struct nest *nest, const uint8_t *values, bool copy)
{
    uint64_t index[MAX_LEVELS] = {0};
    for (;;) {
        run_line(out, in, &nest->level[0], values, copy);
        unsigned k = 1;
        for (; k < nest->levels; k++) {
            const struct level *level = &nest->level[k];
            in += level->in;
            out += level->out;
            if (++index[k] < level->count)
                break;
            in -= level->count * level->in;
            out -= level->count * level->out;
            index[k] = 0;
        }
        if (k >= nest->levels)
            return;
    }
}

static bool padded(const struct viv_tp *job)
{
    return job->x_start < 0 || job->y_start < 0 || job->x_end >= (int64_t)job->in_w ||
           job->y_end >= (int64_t)job->in_h || job->slices_before || job->slices_after;
}

static bool overlap(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

static bool readable(const struct viv_sim *sim, uint64_t address, uint64_t bytes, unsigned access)
{
    uint64_t fault;
    return mica_device_at(sim->memory, address, bytes, access, &fault) != NULL;
}

/* Bytes of the image from its start to the end of what the window shows of it. */
static uint64_t image_bytes(const struct viv_tp *job)
{
    uint64_t columns = job->x_end < (int64_t)job->in_w ? (uint64_t)((int64_t)job->x_end + 1) : job->in_w;
    uint64_t rows = job->y_end < (int64_t)job->in_h ? (uint64_t)((int64_t)job->y_end + 1) : job->in_h;
    return (uint64_t)(job->in_slices - 1) * job->in_slice_bytes + (rows - 1) * job->in_row_bytes + columns;
}

static void copy_row(const struct viv_tp *job, uint8_t *out, const uint8_t *row)
{
    int64_t width = (int64_t)window_w(job), before = 0, inside = 0;
    if (row) {
        int64_t first = job->x_start < 0 ? 0 : job->x_start;
        int64_t end = job->x_end < (int64_t)job->in_w ? (int64_t)job->x_end + 1 : job->in_w;
        before = first - job->x_start < width ? first - job->x_start : width;
        inside = end > first ? end - first : 0;
        if (inside)
            memcpy(out + before, row + first, (size_t)inside);
    }
    memset(out, job->outside, (size_t)before);
    memset(out + before + inside, job->outside, (size_t)(width - before - inside));
}

/* Copies the scan window, padding included; false when that takes too much memory. */
static bool copy_window(struct viv_sim *sim, const struct viv_tp *job, struct source *source)
{
    uint64_t w = window_w(job), h = window_h(job);
    uint64_t slices = (uint64_t)job->in_slices + job->slices_before + job->slices_after;
    if (slices * w * h > MAX_BOX || !viv_buffer_reserve(&sim->image, slices * w * h))
        return false;
    uint8_t *out = sim->image.data;
    *source = (struct source){out, w, w * h};
    for (int64_t z = -(int64_t)job->slices_before; z < (int64_t)(slices - job->slices_before); z++)
        for (int64_t y = job->y_start; y <= job->y_end; y++, out += w) {
            bool inside = z >= 0 && z < job->in_slices && y >= 0 && y < job->in_h;
            const uint8_t *image = sim->memory->base + job->in_address;
            copy_row(job, out, inside ? image + z * job->in_slice_bytes + y * job->in_row_bytes : NULL);
        }
    return true;
}

/* The image lies in readable memory as a whole, so that no element needs a check of its own. */
static bool open_source(struct viv_sim *sim, const struct viv_tp *job, struct source *source)
{
    if (job->x_end < 0 || job->y_end < 0 || !readable(sim, job->in_address, image_bytes(job), MICA_ACCESS_READ))
        return false;
    if (padded(job))
        return copy_window(sim, job, source);
    const uint8_t *first = sim->memory->base + job->in_address + (uint64_t)job->y_start * job->in_row_bytes;
    *source = (struct source){first + job->x_start, job->in_row_bytes, job->in_slice_bytes};
    return true;
}

static bool identity(const uint8_t *values)
{
    for (unsigned i = 0; i < 256; i++)
        if (values[i] != i)
            return false;
    return true;
}

int viv_tp_run_nest(struct viv_sim *sim, const struct viv_tp *job)
{
    struct source source;
    struct nest nest;
    uint64_t in_bytes, out_bytes;
    if (!regular(job) || !open_source(sim, job, &source) || !plan(job, &source, &nest) ||
        !extents(&nest, &in_bytes, &out_bytes))
        return 0;
    if (!readable(sim, job->out_address, out_bytes, MICA_ACCESS_WRITE) ||
        overlap(job->in_address, image_bytes(job), job->out_address, out_bytes))
        return 0;
    if (nest.levels == 0)
        nest.level[nest.levels++] = (struct level){1, 1, 1};
    run_levels(sim->memory->base + job->out_address, source.data, &nest, job->values, identity(job->values));
    return 1;
}
