/* SPDX-License-Identifier: MIT */
/*
 * The model of `timing.md` (in the hardware specification), sections 1 to 4.
 * Everything is closed form: tiles come in at most three kinds a direction
 * (first, inner, last), so no loop depends on the size of the image.
 */
#include "npu/vivante/hw/timing.h"

#include <math.h>
#include <stddef.h>

#define LANES 64.0
#define MAX_KERNEL 16u
#define BLOCK_COLUMNS 3.0
/* Read once a job whatever its coefficients (section 4). */
#define HEADER_BYTES 128.0
/* Share of the coefficients whose loading shows before the first tile starts (section 3). */
#define EXPOSED_COEFFICIENTS 0.88
/* Planes of small images that share their bursts in 1x1 jobs (section 4). */
#define SHARING_PLANES 6.0
/* Outputs smaller than this are combined before they are written, at this overhead at most (section 4). */
#define COMBINING_BYTES 8192.0
#define COMBINED_OVERHEAD 1.2
#define WHOLE_PLANE_OVERHEAD 1.05

/* One row a chip (section 1). */
struct constants {
    uint32_t customer;      /* the chip's */
    double fixed;           /* cycles of a job that doesn't wait for memory */
    double fixed_memory;    /* cycles added to one that does */
    double decode;          /* cycles per coded coefficient and core */
    double decode_floor;    /* least share of coefficients that take decoding time */
    double output_bytes;    /* a cycle, all cores */
    double bus_bytes;       /* a cycle, reads plus writes */
    bool point_skips_zeros; /* zero weights of 1x1 kernels take no time */
    double tp_fixed, tp_element;
    /* Cycles per vector, kernel and channel, by kernel size: dense, and when all weights are zero. */
    double steps[MAX_KERNEL], floor[MAX_KERNEL];
};

static const struct constants known[] = {
    {
        .customer = 0x88, /* A311D */
        .fixed = 2452,
        .fixed_memory = 1200,
        .decode = 1.0,
        .decode_floor = 0.1936,
        .output_bytes = 8,
        .bus_bytes = 16,
        .tp_fixed = 1512,
        .tp_element = 1.0,
        /* 1 to 7 and 9 were fitted (9 within 10.9..13.3), the others continue them. */
        .steps = {0, 0.40, 2.0, 2.0, 4.77, 4.77, 4.77, 8.2, 10.1, 12.1, 15.0, 18.0},
        .floor = {0, 0.40, 0.44, 0.70, 1.40, 1.335, 1.5, 1.784, 2.1, 2.5, 2.9, 3.3},
    },
};

const struct viv_memory_model viv_default_memory = {.ddr_bytes_per_cycle = 8, .burst_bytes = 64};

static const struct constants *constants_of(const struct viv_chip *chip)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].customer == chip->customer)
            return &known[i];
    return &known[0];
}

uint32_t viv_interleave(uint32_t tile_x, uint32_t kernel_w, uint32_t kernel_h)
{
    uint32_t reach = tile_x + (kernel_w > kernel_h ? kernel_w : kernel_h) - 1;
    return reach <= 18 ? 4 : reach <= 36 ? 2 : 1;
}

static double cdiv(double a, double b)
{
    return ceil(a / b);
}

static uint64_t whole(double value)
{
    return value < 0x1p62 ? (uint64_t)value : UINT64_C(1) << 62;
}

/* ---- cycles ----------------------------------------------------------- */

struct work {
    const struct constants *k;
    const struct viv_nn_job *job;
    uint32_t taps, interleave;
    double decode, step, out;    /* cycles: of a kernel's coefficients; of a vector and kernel; of a vector's output */
    double kernels, superblocks; /* of a core */
    double columns, full_rows;   /* tiles in a row of tiles, rows of full tiles */
    uint32_t rest;               /* image rows in the last row of tiles, 0: none */
};

/* Share of the coefficients that take time when a share `density` of them is not zero and `count` go together. */
static double busy(double density, double count)
{
    return density >= 1 ? 1 : 1 - pow(1 - density, count);
}

static void set_work(struct work *work, const struct viv_chip *chip, const struct viv_nn_job *job)
{
    const struct constants *k = constants_of(chip);
    uint32_t size = job->kernel_w > job->kernel_h ? job->kernel_w : job->kernel_h;
    *work = (struct work){.k = k, .job = job, .taps = job->kernel_w * job->kernel_h};
    size = size < MAX_KERNEL ? size : MAX_KERNEL - 1;
    work->interleave = viv_interleave(job->tile_x, job->kernel_w, job->kernel_h);
    bool small = work->taps <= 9, dense_point = work->taps == 1 && !k->point_skips_zeros;
    double skip = dense_point ? 1 : fmax(k->decode_floor, busy(job->density, small ? 4.2 : 4));
    work->decode = k->decode * skip * work->taps * job->in_channels;
    double steps = dense_point ? k->steps[1] : fmax(k->floor[size], k->steps[size] * busy(job->density, small ? 8 : 4));
    /* The table is of square kernels; narrower ones have fewer blocks of three columns (inferred). */
    work->step = steps * cdiv(job->kernel_w, BLOCK_COLUMNS) / cdiv(size, BLOCK_COLUMNS) * job->in_channels;
    work->out = LANES * job->out_channels / k->output_bytes * (job->first_pixel_pooling ? 0.25 : 1);
    work->kernels = cdiv(job->out_channels, chip->nn_cores);
    work->superblocks = cdiv(job->out_channels, (double)chip->nn_cores * job->kernels_per_core);
    work->columns = cdiv(job->out_w, job->tile_x);
    work->full_rows = job->out_h / job->tile_y;
    work->rest = job->out_h % job->tile_y;
}

static double tiles(const struct work *work)
{
    return work->columns * (work->full_rows + (work->rest != 0));
}

/* Every tile decodes the whole stream again, however few vectors it has. */
static double tile_cycles(const struct work *work, uint32_t rows)
{
    double vectors = cdiv(rows, work->interleave);
    double compute = work->kernels * vectors * work->step;
    return fmax(fmax(compute, work->kernels * work->decode), vectors * work->out);
}

static double core_cycles(const struct work *work)
{
    double cycles = work->full_rows * tile_cycles(work, work->job->tile_y);
    if (work->rest)
        cycles += tile_cycles(work, work->rest);
    return cycles * work->columns;
}

/* How often the coefficients are read. */
static double coefficient_passes(const struct work *work)
{
    return work->job->kernel_cached ? 1 : tiles(work);
}

/* Loading that nothing hides. */
static double lead_cycles(const struct work *work, double ddr, double core, double image_bytes)
{
    const struct viv_nn_job *job = work->job;
    double coefficients = EXPOSED_COEFFICIENTS * (double)job->coefficient_bytes / ddr, lead = 0;
    bool one_tile = tiles(work) == 1;
    if (job->kernel_cached && !one_tile)
        lead = fmax(0, coefficients - tile_cycles(work, job->tile_y < job->out_h ? job->tile_y : job->out_h));
    if (job->image_cached && work->superblocks > 1) {
        double image = image_bytes / ddr + (one_tile ? coefficients / work->superblocks : 0);
        lead = fmax(lead, image - core / work->superblocks);
    }
    return lead;
}

static double cycles_of(const struct work *work, const struct viv_memory_model *memory, double read, double write)
{
    double core = core_cycles(work), ddr = memory->ddr_bytes_per_cycle;
    double image = fmax(0, read - coefficient_passes(work) * (double)work->job->coefficient_bytes);
    double bytes = (read + write) / fmin(ddr, work->k->bus_bytes);
    return fmax(core + lead_cycles(work, ddr, core, image) + work->k->fixed, bytes + work->k->fixed_memory);
}

/* ---- bytes ------------------------------------------------------------ */

static uint32_t gcd(uint32_t a, uint32_t b)
{
    while (b) {
        uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/*
 * Bytes of the bursts that `length` bytes touch, averaged over the places
 * start + i * step. Those places reach every multiple of gcd(step, burst)
 * within a burst equally often, and the sum of the floors over them has a
 * closed form.
 */
static double run_bytes(uint32_t burst, uint64_t start, uint32_t step, double length)
{
    uint32_t grain = gcd(burst, step);
    if (length <= 0)
        return 0;
    return burst + floor(((double)(start % grain) + length - 1) / grain) * grain;
}

/* The same for `rows` rows of `length` bytes, `pitch` apart, in planes `plane` bytes apart. */
static double rectangle_bytes(uint32_t burst, uint64_t start, uint32_t plane, uint32_t pitch, uint32_t rows,
                              double length)
{
    if (rows == 0 || length <= 0)
        return 0;
    /* A gap shorter than a burst holds no whole one: the rows are as good as contiguous. */
    if (pitch < length + burst)
        return run_bytes(burst, start, plane, (double)(rows - 1) * pitch + length);
    return rows * run_bytes(burst, start, gcd(plane, pitch), length);
}

/* Tiles of one direction that are alike: `count` of them, `size` long, the first at `start`. */
struct span {
    uint32_t start, size, count;
};

/* First, inner and last tiles; returns how many kinds there are. */
static unsigned split(uint32_t size, uint32_t tile, struct span spans[3])
{
    uint32_t count = size / tile + (size % tile != 0), last = size - (count - 1) * tile;
    unsigned kinds = 0;
    if (count > 1)
        spans[kinds++] = (struct span){0, tile, 1};
    if (count > 2)
        spans[kinds++] = (struct span){tile, tile, count - 2};
    spans[kinds++] = (struct span){(count - 1) * tile, last, 1};
    return kinds;
}

/* Pixels of the input that a span of outputs reads, clipped to the image. */
static struct span reach(const struct span *outputs, int32_t offset, uint32_t kernel, uint32_t size)
{
    int64_t first = (int64_t)outputs->start + offset, end = first + outputs->size + kernel - 1;
    first = first < 0 ? 0 : first;
    end = end > size ? size : end;
    return end > first ? (struct span){(uint32_t)first, (uint32_t)(end - first), outputs->count}
                       : (struct span){0, 0, outputs->count};
}

/* 1x1 jobs fetch each vector of a tile on its own. */
static double point_bytes(const struct work *work, uint32_t burst, uint64_t start, const struct span *x,
                          const struct span *y)
{
    const struct viv_nn_job *job = work->job;
    if (x->size == 0 || y->size == 0)
        return 0;
    if (x->size == job->in_w && y->size == job->in_h && (double)x->size * y->size <= LANES)
        return (double)x->size * y->size + (burst - 1) / SHARING_PLANES;
    uint32_t rows = work->interleave < y->size ? work->interleave : y->size;
    uint32_t step = gcd(job->in_plane_bytes, rows * job->in_row_bytes);
    double bytes = y->size / rows * rectangle_bytes(burst, start, step, job->in_row_bytes, rows, x->size);
    if (y->size % rows)
        bytes += rectangle_bytes(burst, start, step, job->in_row_bytes, y->size % rows, x->size);
    return bytes;
}

static double image_bytes(const struct work *work, uint32_t burst)
{
    const struct viv_nn_job *job = work->job;
    struct span across[3], down[3];
    unsigned columns = split(job->out_w, job->tile_x, across), rows = split(job->out_h, job->tile_y, down);
    double bytes = 0;
    for (unsigned i = 0; i < rows; i++)
        for (unsigned j = 0; j < columns; j++) {
            struct span x = reach(&across[j], job->x_offset, job->kernel_w, job->in_w);
            struct span y = reach(&down[i], job->y_offset, job->kernel_h, job->in_h);
            uint64_t start = job->in_address + (uint64_t)y.start * job->in_row_bytes + x.start;
            double tile = work->taps == 1
                              ? point_bytes(work, burst, start, &x, &y)
                              : rectangle_bytes(burst, start, job->in_plane_bytes, job->in_row_bytes, y.size, x.size);
            bytes += tile * x.count * y.count;
        }
    return bytes * job->in_channels * (job->image_cached ? 1 : work->superblocks);
}

static double output_bytes(const struct work *work, uint32_t burst)
{
    const struct viv_nn_job *job = work->job;
    uint32_t shrink = job->first_pixel_pooling ? 2 : 1;
    uint32_t width = (job->out_w + shrink - 1) / shrink, height = (job->out_h + shrink - 1) / shrink;
    uint32_t tile_x = (job->tile_x + shrink - 1) / shrink, tile_y = (job->tile_y + shrink - 1) / shrink;
    uint32_t plane = width * height;
    struct span across[3], down[3];
    unsigned columns = split(width, tile_x, across), rows = split(height, tile_y, down);
    double bytes = 0, payload = (double)plane * job->out_channels;
    if (columns == 1 && rows == 1)
        return WHOLE_PLANE_OVERHEAD * payload;
    for (unsigned i = 0; i < rows; i++)
        for (unsigned j = 0; j < columns; j++)
            bytes += rectangle_bytes(burst, (uint64_t)down[i].start * width + across[j].start, plane, width,
                                     down[i].size, across[j].size) *
                     across[j].count * down[i].count;
    bytes *= job->out_channels;
    double lines = cdiv((double)tile_x * tile_y, burst);
    if (job->out_channels * lines * burst < COMBINING_BYTES)
        bytes = fmin(bytes, COMBINED_OVERHEAD * payload);
    return bytes;
}

/* ---- results ---------------------------------------------------------- */

uint64_t viv_nn_cycles(const struct viv_chip *chip, const struct viv_memory_model *memory, const struct viv_nn_job *job,
                       double read_bytes, double write_bytes)
{
    struct work work;
    set_work(&work, chip, job);
    return whole(cycles_of(&work, memory, read_bytes, write_bytes));
}

struct viv_cost viv_nn_cost(const struct viv_chip *chip, const struct viv_memory_model *memory,
                            const struct viv_nn_job *job)
{
    struct work work;
    set_work(&work, chip, job);
    double coefficients = coefficient_passes(&work) * (double)job->coefficient_bytes;
    double read = coefficients + HEADER_BYTES + image_bytes(&work, memory->burst_bytes);
    double write = output_bytes(&work, memory->burst_bytes);
    return (struct viv_cost){
        .cycles = whole(cycles_of(&work, memory, read, write)),
        .read_bytes = whole(read),
        .write_bytes = whole(write),
        .coefficient_bytes = whole(coefficients),
    };
}

struct viv_cost viv_tp_cost(const struct viv_chip *chip, const struct viv_tp_job *job)
{
    const struct constants *k = constants_of(chip);
    return (struct viv_cost){
        .cycles = whole(k->tp_fixed + k->tp_element * (double)job->elements),
        .read_bytes = job->in_bytes,
        .write_bytes = job->out_bytes,
    };
}
