/* SPDX-License-Identifier: MIT */
#include "npu/vivante/compile/tile.h"

#include "npu/vivante/hw/timing.h"
#include "util/checked.h"

#define SRAM_ALIGN 128u
#define SRAM_IDLE_KERNEL_END 0xa00u /* smallest kernel range ever written (specification, section 9.2) */
#define MAX_POINTWISE_KERNELS 21u   /* per core and superblock (timing.md, section 2) */
#define MAX_TILE_ROWS 127u          /* 7 bits */

static bool pointwise(const struct viv_nn *nn)
{
    return nn->kernel_w == 1 && nn->kernel_h == 1;
}

static uint32_t kernels_of_a_core(const struct viv_chip *chip, const struct viv_nn *nn)
{
    return mica_cdiv(nn->out_c, chip->nn_cores);
}

/* ---- on-chip memory -------------------------------------------------------- */

static uint64_t image_bytes(const struct viv_nn *nn, const struct viv_tile *tile)
{
    uint64_t plane = (uint64_t)(tile->x + nn->kernel_w - 1) * (tile->y + nn->kernel_h - 1);
    return mica_align(mica_align(plane, 16) * nn->in_c, SRAM_ALIGN);
}

/* The image's range comes first, as in the vendor's jobs (specification, section 12.6). */
struct viv_sram viv_sram_plan(const struct viv_chip *chip, const struct viv_nn *nn, const struct viv_tile *tile,
                              uint64_t kernel_bytes)
{
    struct viv_sram sram = {.image_end = VIV_SRAM_START};
    uint64_t free = VIV_SRAM_START, image = image_bytes(nn, tile), kernel = mica_align(kernel_bytes, SRAM_ALIGN);
    bool superblocks = tile->kernels_per_core < kernels_of_a_core(chip, nn);
    if (superblocks && free + image <= chip->sram_bytes) {
        sram.image = true;
        sram.image_start = (uint32_t)free;
        free += image;
        sram.image_end = (uint32_t)free;
    }
    if (free + kernel <= chip->sram_bytes) {
        sram.kernel = true;
        sram.kernel_start = (uint32_t)free;
        sram.kernel_end = (uint32_t)(free + kernel);
        if (sram.kernel_end < SRAM_IDLE_KERNEL_END)
            sram.kernel_end = SRAM_IDLE_KERNEL_END;
    }
    return sram;
}

/* ---- candidates ------------------------------------------------------------ */

struct search {
    const struct viv_chip *chip;
    struct viv_nn *nn;
    uint64_t stream_bytes;
    struct viv_nn_job job;
};

static void consider(struct search *search, struct viv_tile tile)
{
    struct viv_sram sram = viv_sram_plan(search->chip, search->nn, &tile, search->stream_bytes);
    tile.image_cached = sram.image;
    tile.kernel_cached = sram.kernel;
    struct viv_nn_job *job = &search->job;
    job->tile_x = tile.x;
    job->tile_y = tile.y;
    job->kernels_per_core = tile.kernels_per_core;
    job->image_cached = tile.image_cached;
    job->kernel_cached = tile.kernel_cached;
    tile.cycles = viv_nn_cost(search->chip, &viv_default_memory, job).cycles;
    if (!search->nn->tile.x || tile.cycles < search->nn->tile.cycles)
        search->nn->tile = tile;
}

/*
 * Kernels a core takes in one superblock: as many as the accumulators hold,
 * evenly cut. Where cores have unequal counts, a last superblock that some of
 * them would find empty is avoided.
 */
static uint32_t choose_kernels(const struct viv_chip *chip, const struct viv_nn *nn, uint32_t vectors)
{
    uint32_t kernels = kernels_of_a_core(chip, nn), most = chip->accumulator_depth / vectors;
    most = pointwise(nn) && most > MAX_POINTWISE_KERNELS ? MAX_POINTWISE_KERNELS : most;
    most = most > VIV_MAX_KERNELS_PER_CORE ? VIV_MAX_KERNELS_PER_CORE : most;
    uint32_t count = mica_cdiv(kernels, mica_cdiv(kernels, most));
    bool uneven = nn->out_c > chip->nn_cores && nn->out_c % chip->nn_cores;
    while (uneven && count > 1 && count < kernels && (kernels - 1) % count == 0)
        count--;
    return count;
}

/* Rows: whole vectors of `interleave` rows, cut evenly in the fewest tiles and a few more. */
static void consider_columns(struct search *search, uint32_t columns)
{
    const struct viv_nn *nn = search->nn;
    const struct viv_chip *chip = search->chip;
    uint32_t interleave = viv_interleave(columns, nn->kernel_w, nn->kernel_h), even = nn->first_pixel ? 2 : 1;
    uint32_t most = chip->input_depth * interleave - nn->kernel_h + 1;
    most = most > MAX_TILE_ROWS ? MAX_TILE_ROWS : most;
    most = most > chip->accumulator_depth * interleave ? chip->accumulator_depth * interleave : most;
    most -= most % even;
    uint32_t fewest = mica_cdiv(nn->out_h, most), previous = 0;
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t rows = mica_cdiv(nn->out_h, i < 3 ? fewest + i : 2 * fewest);
        uint32_t unit = interleave > even ? interleave : even, whole = (uint32_t)mica_align(rows, unit);
        rows = whole <= most ? whole : (uint32_t)mica_align(rows, even);
        rows = rows > nn->out_h ? nn->out_h : rows;
        if (rows == previous)
            continue;
        previous = rows;
        uint32_t kernels = choose_kernels(chip, nn, mica_cdiv(rows, interleave));
        consider(search, (struct viv_tile){.x = columns, .y = rows, .kernels_per_core = kernels});
    }
}

/* Columns: the widths at which more rows share a vector, evenly cut, and the round ones. */
void viv_tile_choose(const struct viv_chip *chip, struct viv_nn *nn, uint64_t stream_bytes, double density)
{
    struct search search = {chip, nn, stream_bytes, {0}};
    uint32_t size = nn->kernel_w > nn->kernel_h ? nn->kernel_w : nn->kernel_h;
    search.job = (struct viv_nn_job){
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
        .coefficient_bytes = stream_bytes,
        .density = density,
    };
    const uint32_t limits[] = {chip->max_tile, 37 - size, 19 - size, 32, 16, chip->max_tile, 48, 24, 8};
    uint32_t tried[9];
    nn->tile = (struct viv_tile){0};
    for (unsigned i = 0; i < 9; i++) {
        uint32_t columns = i < 3 ? mica_cdiv(nn->out_w, mica_cdiv(nn->out_w, limits[i])) : limits[i];
        columns += nn->first_pixel && columns % 2;
        bool useless = columns > nn->out_w;
        for (unsigned j = 0; j < i; j++)
            useless |= tried[j] == columns;
        tried[i] = columns;
        if (!useless)
            consider_columns(&search, columns);
    }
}
