/* SPDX-License-Identifier: MIT */
#include "npu/vivante/compile/tile.h"

#include "npu/vivante/hw/timing.h"
#include "util/checked.h"

#define SRAM_IDLE_KERNEL_END 0xa00u /* smallest kernel range ever written (specification, section 9.2) */
/* Per core and superblock of 1x1 jobs (timing.md, section 2), on V8 of all (specification, section 9.1). */
#define MAX_FEW_KERNELS 21u
#define MAX_TILE_ROWS 127u /* 7 bits */
#define LANES 64u
#define MAX_CANDIDATES 96u /* widths or heights: twice the root of the largest image, and some */

static bool pointwise(const struct viv_nn *nn)
{
    return nn->kernel_w == 1 && nn->kernel_h == 1;
}

static uint32_t kernels_of_a_core(const struct viv_chip *chip, const struct viv_nn *nn)
{
    return mica_cdiv(nn->out_c, chip->nn_cores);
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* ---- on-chip memory -------------------------------------------------------- */

/* A depthwise job in hardware needs a channel at a time and has one superblock's worth of kernels (inferred). */
static uint64_t image_bytes(const struct viv_chip *chip, const struct viv_nn *nn, const struct viv_tile *tile)
{
    uint64_t plane = (uint64_t)(tile->x + nn->kernel_w - 1) * (tile->y + nn->kernel_h - 1);
    return mica_align(mica_align(plane, 16) * nn->in_c, chip->sram_align);
}

/* The image's range comes first, as in the vendor's jobs (specification, section 12.6). */
struct viv_sram viv_sram_plan(const struct viv_chip *chip, const struct viv_nn *nn, const struct viv_tile *tile,
                              uint64_t kernel_bytes)
{
    struct viv_sram sram = {.image_end = VIV_SRAM_START};
    uint64_t free = VIV_SRAM_START, end = nn->sram_bytes ? nn->sram_bytes : chip->sram_bytes;
    uint64_t image = image_bytes(chip, nn, tile), kernel = mica_align(kernel_bytes, chip->sram_align);
    bool superblocks = !nn->depthwise && tile->kernels_per_core < kernels_of_a_core(chip, nn);
    if (superblocks && free + image <= end) {
        sram.image = true;
        sram.image_start = (uint32_t)free;
        free += image;
        sram.image_end = (uint32_t)free;
    }
    if (free + kernel <= end) {
        sram.kernel = true;
        sram.kernel_start = (uint32_t)free;
        sram.kernel_end = (uint32_t)(free + kernel);
        if (sram.kernel_end < SRAM_IDLE_KERNEL_END)
            sram.kernel_end = SRAM_IDLE_KERNEL_END;
    }
    return sram;
}

/* ---- what a tile may be (timing.md, section 2) ------------------------------ */

/* Accumulators that one kernel takes: vectors of rows; V8 counts vectors of pixels too, which can be more. */
static uint32_t accumulators(const struct viv_chip *chip, uint32_t columns, uint32_t rows, uint32_t interleave)
{
    uint32_t vectors = mica_cdiv(rows, interleave), full = mica_cdiv(columns * rows, LANES);
    return !chip->z_offset_in_stream && full > vectors ? full : vectors;
}

/* Rows that the buffers hold with one kernel a core; 0: none with so many columns. */
static uint32_t most_rows(const struct viv_chip *chip, const struct viv_nn *nn, uint32_t columns)
{
    uint32_t interleave = viv_interleave(columns, nn->kernel_w, nn->kernel_h), lines = chip->input_depth * interleave;
    uint32_t rows = lines >= nn->kernel_h ? least(lines - nn->kernel_h + 1, MAX_TILE_ROWS) : 0;
    rows = least(rows, chip->accumulator_depth * interleave);
    return chip->z_offset_in_stream ? rows : least(rows, chip->accumulator_depth * LANES / columns);
}

static uint32_t most_kernels(const struct viv_chip *chip, const struct viv_nn *nn, uint32_t columns, uint32_t rows)
{
    uint32_t interleave = viv_interleave(columns, nn->kernel_w, nn->kernel_h);
    uint32_t most = chip->accumulator_depth / accumulators(chip, columns, rows, interleave);
    bool few = pointwise(nn) || !chip->z_offset_in_stream;
    return least(most, few ? MAX_FEW_KERNELS : VIV_MAX_KERNELS_PER_CORE);
}

bool viv_tile_fits(const struct viv_chip *chip, const struct viv_nn *nn, const struct viv_tile *tile)
{
    uint32_t even = nn->first_pixel ? 2 : 1;
    return tile->x && tile->y && tile->kernels_per_core && tile->x <= chip->max_tile && tile->x <= nn->out_w &&
           tile->y <= nn->out_h && tile->x % even == 0 && tile->y % even == 0 &&
           tile->y <= most_rows(chip, nn, tile->x) &&
           tile->kernels_per_core <= most_kernels(chip, nn, tile->x, tile->y);
}

/*
 * Kernels a core takes in one superblock: as many as the accumulators hold,
 * evenly cut. Where cores have unequal counts, a last superblock that some of
 * them would find empty is avoided.
 */
static uint32_t choose_kernels(const struct viv_chip *chip, const struct viv_nn *nn, uint32_t columns, uint32_t rows)
{
    uint32_t kernels = kernels_of_a_core(chip, nn), most = most_kernels(chip, nn, columns, rows);
    uint32_t count = mica_cdiv(kernels, mica_cdiv(kernels, most));
    bool uneven = nn->out_c > chip->nn_cores && nn->out_c % chip->nn_cores;
    while (uneven && count > 1 && count < kernels && (kernels - 1) % count == 0)
        count--;
    return count;
}

/* ---- pricing ----------------------------------------------------------------- */

struct viv_nn_job viv_tile_job(const struct viv_nn *nn)
{
    return (struct viv_nn_job){
        .in_w = nn->in_w,
        .in_h = nn->in_h,
        .in_channels = nn->in_c,
        .in_row_bytes = nn->in_x_stride,
        .in_plane_bytes = nn->in_x_stride * nn->in_y_stride,
        .x_offset = nn->x_offset,
        .y_offset = nn->y_offset,
        .kernel_w = nn->kernel_w,
        .kernel_h = nn->kernel_h,
        .out_w = nn->out_w,
        .out_h = nn->out_h,
        .out_channels = nn->out_c,
        .first_pixel_pooling = nn->first_pixel,
        .out_row_bytes = nn->out_x_stride,
        .out_plane_bytes = nn->out_x_stride * nn->out_y_stride,
        .tile_x = nn->tile.x,
        .tile_y = nn->tile.y,
        .kernels_per_core = nn->tile.kernels_per_core,
        .image_cached = nn->tile.image_cached,
        .kernel_cached = nn->tile.kernel_cached,
        .coefficient_bytes = nn->stream_bytes,
        .density = nn->density,
        .depthwise = nn->depthwise,
        .in_place = nn->in_place,
        .out_place = nn->out_place,
    };
}

struct search {
    const struct viv_chip *chip;
    struct viv_nn *nn;
    struct viv_nn_job job;
};

static void consider(struct search *search, uint32_t columns, uint32_t rows)
{
    struct viv_nn *nn = search->nn;
    struct viv_tile tile = {.x = columns, .y = rows};
    tile.kernels_per_core = choose_kernels(search->chip, nn, columns, rows);
    struct viv_sram sram = viv_sram_plan(search->chip, nn, &tile, nn->stream_bytes);
    struct viv_nn_job *job = &search->job;
    job->tile_x = tile.x;
    job->tile_y = tile.y;
    job->kernels_per_core = tile.kernels_per_core;
    job->image_cached = tile.image_cached = sram.image;
    job->kernel_cached = tile.kernel_cached = sram.kernel;
    tile.cycles = viv_nn_cost(search->chip, &viv_default_memory, job).cycles;
    if (!nn->tile.x || tile.cycles < nn->tile.cycles)
        nn->tile = tile;
}

/* ---- candidates ------------------------------------------------------------ */

struct list {
    uint32_t values[MAX_CANDIDATES];
    uint32_t count;
};

static void add_value(struct list *list, uint32_t value, uint32_t most)
{
    bool known = value == 0 || value > most || list->count == MAX_CANDIDATES;
    for (uint32_t i = 0; i < list->count; i++)
        known |= list->values[i] == value;
    if (!known)
        list->values[list->count++] = value;
}

/* Rows: whole vectors of `interleave` rows, cut evenly in the fewest tiles and a few more. */
static void quick_rows(const struct viv_nn *nn, uint32_t most, uint32_t unit, uint32_t even, struct list *rows)
{
    uint32_t fewest = mica_cdiv(nn->out_h, most);
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t count = mica_cdiv(nn->out_h, i < 3 ? fewest + i : 2 * fewest);
        uint32_t whole = (uint32_t)mica_align(count, unit);
        count = whole <= most ? whole : (uint32_t)mica_align(count, even);
        add_value(rows, least(count, nn->out_h), most);
    }
}

/* Rows: as many as fit, and every even cut, as it is and in whole vectors. */
static void all_rows(const struct viv_nn *nn, uint32_t most, uint32_t unit, uint32_t even, struct list *rows)
{
    add_value(rows, least(most, nn->out_h), most);
    for (uint32_t high = least(most, nn->out_h); high; high--) {
        high = mica_cdiv(nn->out_h, mica_cdiv(nn->out_h, high)); /* the lowest with as few tiles */
        add_value(rows, least((uint32_t)mica_align(high, unit), nn->out_h), most);
        add_value(rows, least((uint32_t)mica_align(high, even), nn->out_h), most);
    }
}

static void consider_columns(struct search *search, uint32_t columns, bool all)
{
    const struct viv_nn *nn = search->nn;
    uint32_t interleave = viv_interleave(columns, nn->kernel_w, nn->kernel_h), even = nn->first_pixel ? 2 : 1;
    uint32_t most = most_rows(search->chip, nn, columns), unit = interleave > even ? interleave : even;
    struct list rows = {.count = 0};
    most -= most % even;
    if (!most) /* a narrower tile has more rows to a vector */
        return;
    if (all)
        all_rows(nn, most, unit, even, &rows);
    else
        quick_rows(nn, most, unit, even, &rows);
    for (uint32_t i = 0; i < rows.count; i++)
        consider(search, columns, rows.values[i]);
}

/* Pixels to keep are counted from the tile's corner. */
static void add_columns(const struct viv_nn *nn, struct list *columns, uint32_t width)
{
    add_value(columns, width + (nn->first_pixel && width % 2), nn->out_w);
}

/* Columns: the widths at which more rows share a vector, evenly cut, and the round ones. */
static void list_columns(const struct viv_chip *chip, const struct viv_nn *nn, bool all, struct list *columns)
{
    uint32_t size = nn->kernel_w > nn->kernel_h ? nn->kernel_w : nn->kernel_h;
    const uint32_t edges[] = {chip->max_tile, 37 - size, 19 - size}, plain[] = {chip->max_tile, 48, 32, 24, 16, 8};
    for (unsigned i = 0; i < 3; i++)
        add_columns(nn, columns, mica_cdiv(nn->out_w, mica_cdiv(nn->out_w, edges[i])));
    for (unsigned i = 0; i < 6; i++)
        add_columns(nn, columns, plain[i]);
    if (!all)
        return;
    for (unsigned i = 0; i < 3; i++) /* one column less and the next tile begins in this one's last burst */
        for (uint32_t less = 0; less < nn->kernel_w && less < edges[i]; less++)
            add_columns(nn, columns, edges[i] - less);
    for (uint32_t count = 2; count <= 8; count++)
        if (mica_cdiv(nn->out_w, count) <= chip->max_tile)
            add_columns(nn, columns, mica_cdiv(nn->out_w, count));
}

static void choose(const struct viv_chip *chip, struct viv_nn *nn, bool all)
{
    struct search search = {chip, nn, viv_tile_job(nn)};
    struct list columns = {.count = 0};
    list_columns(chip, nn, all, &columns);
    nn->tile = (struct viv_tile){0};
    for (uint32_t i = 0; i < columns.count; i++)
        consider_columns(&search, columns.values[i], all);
}

void viv_tile_choose(const struct viv_chip *chip, struct viv_nn *nn, uint64_t stream_bytes, double density)
{
    nn->stream_bytes = stream_bytes;
    nn->density = density;
    choose(chip, nn, false);
}

void viv_tile_refine(const struct viv_chip *chip, struct viv_nn *nn)
{
    choose(chip, nn, true);
}
