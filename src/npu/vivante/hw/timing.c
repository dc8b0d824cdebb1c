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
#define SMALL_TAPS 9u
#define VIP_LINE_BYTES 32u
#define AXI_LINE_BYTES 64u
/* Read once a job whatever its coefficients (section 4). */
#define HEADER_BYTES 128.0
/* Share of the coefficients whose loading shows before the first tile starts (section 3). */
#define EXPOSED_COEFFICIENTS 0.88
/* Outputs smaller than this are combined before they are written, at this overhead at most (section 4). */
#define COMBINING_BYTES 8192.0
#define COMBINED_OVERHEAD 1.2
#define WHOLE_PLANE_OVERHEAD 1.05
/* What a plane costs beyond itself where planes merge (section 4). */
#define MERGED_PLANE_BYTES 8.0
/* Lanes are packed in eighths where tiles have at most 8 columns (section 2). */
#define PACKED_COLUMNS 8u

/* Cycles of a tile in the chip's own depthwise mode, per channel and tap (section 3). */
struct depthwise_constants {
    double least, vector;
};

/* One row a chip (section 1). */
struct constants {
    uint32_t customer;             /* the chip's */
    double fixed;                  /* cycles of a job that doesn't wait for memory */
    double fixed_memory;           /* cycles added to one that does */
    double decode;                 /* cycles per coded coefficient and core */
    double decode_floor;           /* least share of coefficients that take decoding time */
    double vector_out;             /* cycles to put out a vector of a channel, all cores together */
    double narrow_out;             /* the same into VIP SRAM where at most two rows share a vector */
    double bus_bytes;              /* a cycle, reads plus writes */
    double sram_bytes[VIV_PLACES]; /* a cycle and on-chip memory */
    double sharing_planes;         /* of small images, that share their bursts in 1x1 jobs (section 4) */
    double step_share;             /* coefficients that are skipped together, kernels of up to 9 taps */
    bool point_skips_zeros;        /* zero weights of 1x1 kernels take no time */
    bool whole_vectors;            /* a partly filled vector costs a full one */
    bool packs_lanes;              /* see PACKED_COLUMNS */
    bool combines_writes;          /* see COMBINING_BYTES */
    bool merges_planes;            /* of tiles that cover their plane, kernels larger than 1x1 */
    double tp_fixed, tp_element;
    struct depthwise_constants depthwise_3x3, depthwise_larger;
    double taps_a_cycle; /* 0: the tables say */
    /* Cycles per vector, kernel and channel, by kernel size: dense, and when all weights are zero. */
    double steps[MAX_KERNEL], floor[MAX_KERNEL];
};

/* 1 to 7 and 9 were fitted (9 within 10.9..13.3), the others continue them. */
#define V7_STEPS                                                         \
    {                                                                    \
        0, 0.40, 2.0, 2.0, 4.77, 4.77, 4.77, 8.2, 10.1, 12.1, 15.0, 18.0 \
    }

static const struct constants known[] = {
    {
        .customer = 0x88, /* A311D */
        .fixed = 2452,
        .fixed_memory = 1200,
        .decode = 1.0,
        .decode_floor = 0.1936,
        .vector_out = 8,
        .narrow_out = 8,
        .bus_bytes = 16,
        .sram_bytes = {0, 16, 16}, /* VIP inferred */
        .sharing_planes = 6,
        .step_share = 8,
        .whole_vectors = true,
        .combines_writes = true,
        .tp_fixed = 1512,
        .tp_element = 1.0,
        .steps = V7_STEPS,
        .floor = {0, 0.40, 0.44, 0.70, 1.40, 1.335, 1.5, 1.784, 2.1, 2.5, 2.9, 3.3},
    },
    {
        .customer = 0x99, /* S905D3 */
        .fixed = 2452,
        .fixed_memory = 2200,
        .decode = 1.0,
        .decode_floor = 0.023,
        .vector_out = 8,
        .narrow_out = 8,
        .bus_bytes = 16,
        .sram_bytes = {0, 32, 32}, /* inferred; it has no AXI SRAM */
        .sharing_planes = 6,
        .step_share = 8,
        .point_skips_zeros = true,
        .whole_vectors = true,
        .combines_writes = true,
        .tp_fixed = 1512,
        .tp_element = 1.0,
        .steps = V7_STEPS,
        /* From 4 on inferred, but for 5; beyond 9 continued. */
        .floor = {0, 0.19, 0.12, 0.124, 0.25, 0.28, 0.3, 0.4, 0.45, 0.5, 0.6, 0.7},
    },
    {
        .customer = 0x9f, /* i.MX 8M Plus */
        .fixed = 1173,
        .fixed_memory = 1100, /* the page says 1400 +- 800; this fits its points better */
        .decode = 0.5,
        .decode_floor = 0.111,
        .vector_out = 5,
        .narrow_out = 12.3,
        .bus_bytes = 16,
        .sram_bytes = {0, 32, 32}, /* inferred; it has no AXI SRAM */
        .sharing_planes = 9,
        .step_share = 4,
        .point_skips_zeros = true,
        .packs_lanes = true,
        .merges_planes = true,
        .tp_fixed = 2407,
        .tp_element = 1.5,
        .depthwise_3x3 = {1.11, 1.27},
        .depthwise_larger = {1.18, 0.95},
        .taps_a_cycle = 3,
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
    double rows_a_vector;        /* of a tile, what a vector costs being shared by so many */
    double decode, step, out;    /* cycles: of a kernel's coefficients; of a vector and kernel; of a vector's output */
    double kernels, superblocks; /* of a core */
    double columns, full_rows;   /* tiles in a row of tiles, rows of full tiles */
    uint32_t rest;               /* image rows in the last row of tiles, 0: none */
};

/* Bytes of a job by memory. */
struct traffic {
    double read, write;         /* device memory */
    double coefficients, image; /* parts of `read` */
    double sram[VIV_PLACES];
};

/* Share of the coefficients that take time when a share `density` of them is not zero and `count` go together. */
static double busy(double density, double count)
{
    double zeros = 1 - density, four = zeros * zeros * zeros * zeros;
    if (density >= 1)
        return 1;
    /* Those of most jobs, without the price of pow(): tile searches ask for thousands. */
    return 1 - (count == 4 ? four : count == 8 ? four * four : pow(zeros, count));
}

/*
 * Cycles of a vector, kernel and channel where a share of the weights is not
 * zero. The tables are of square kernels; narrower ones have fewer blocks of
 * three columns (inferred).
 */
static double step_cycles(const struct constants *k, const struct viv_nn_job *job, uint32_t taps)
{
    uint32_t size = job->kernel_w > job->kernel_h ? job->kernel_w : job->kernel_h;
    double share = busy(job->density, taps <= SMALL_TAPS ? k->step_share : 4);
    if (taps == 1 && !k->point_skips_zeros)
        return k->steps[1];
    if (k->taps_a_cycle)
        return fmax(taps == 1 ? 0.12 : 0.8 * (0.65 + taps / 24.0), taps / k->taps_a_cycle * share);
    size = size < MAX_KERNEL ? size : MAX_KERNEL - 1;
    double step = fmax(k->floor[size], k->steps[size] * share);
    return step * cdiv(job->kernel_w, BLOCK_COLUMNS) / cdiv(size, BLOCK_COLUMNS);
}

static double decode_cycles(const struct constants *k, const struct viv_nn_job *job, uint32_t taps)
{
    if (taps == 1 && !k->point_skips_zeros)
        return k->decode;
    return k->decode * fmax(k->decode_floor, busy(job->density, taps <= SMALL_TAPS ? 4.2 : 4)) * taps;
}

static double out_cycles(const struct work *work)
{
    const struct viv_nn_job *job = work->job;
    bool narrow = job->out_place == VIV_IN_VIP_SRAM && work->interleave <= 2;
    double cycles = (narrow ? work->k->narrow_out : work->k->vector_out) * job->out_channels;
    return job->first_pixel_pooling ? cycles / 4 : cycles;
}

static void set_work(struct work *work, const struct viv_chip *chip, const struct viv_nn_job *job)
{
    const struct constants *k = constants_of(chip);
    *work = (struct work){.k = k, .job = job, .taps = job->kernel_w * job->kernel_h};
    work->interleave = job->interleave ? job->interleave : viv_interleave(job->tile_x, job->kernel_w, job->kernel_h);
    work->rows_a_vector = k->packs_lanes && job->tile_x <= PACKED_COLUMNS ? PACKED_COLUMNS : work->interleave;
    if (!job->depthwise) {
        work->decode = decode_cycles(k, job, work->taps) * job->in_channels;
        work->step = step_cycles(k, job, work->taps) * job->in_channels;
    }
    work->out = out_cycles(work);
    work->kernels = cdiv(job->out_channels, chip->nn_cores);
    work->superblocks = job->depthwise ? 1 : cdiv(job->out_channels, (double)chip->nn_cores * job->kernels_per_core);
    work->columns = cdiv(job->out_w, job->tile_x);
    work->full_rows = job->out_h / job->tile_y;
    work->rest = job->out_h % job->tile_y;
}

static double tiles(const struct work *work)
{
    return work->columns * (work->full_rows + (work->rest != 0));
}

static double depthwise_cycles(const struct work *work, double vectors)
{
    const struct depthwise_constants *k =
        work->taps <= SMALL_TAPS ? &work->k->depthwise_3x3 : &work->k->depthwise_larger;
    return (double)work->job->out_channels * work->taps * fmax(k->least, k->vector * vectors);
}

/* Every tile decodes the whole stream again, however few vectors it has. */
static double tile_cycles(const struct work *work, uint32_t rows)
{
    double vectors = rows / work->rows_a_vector;
    if (work->job->depthwise)
        return depthwise_cycles(work, vectors);
    vectors = work->k->whole_vectors ? ceil(vectors) : vectors;
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

/* Loading from device memory that nothing hides. */
static double lead_cycles(const struct work *work, double ddr, double core, double image_bytes)
{
    const struct viv_nn_job *job = work->job;
    double loaded = job->coefficient_place == VIV_IN_DDR ? (double)job->coefficient_bytes : 0;
    double coefficients = EXPOSED_COEFFICIENTS * loaded / ddr, lead = 0;
    bool one_tile = tiles(work) == 1;
    if (job->kernel_cached && !one_tile)
        lead = fmax(0, coefficients - tile_cycles(work, job->tile_y < job->out_h ? job->tile_y : job->out_h));
    if (job->image_cached && work->superblocks > 1 && job->in_place == VIV_IN_DDR) {
        double image = image_bytes / ddr + (one_tile ? coefficients / work->superblocks : 0);
        lead = fmax(lead, image - core / work->superblocks);
    }
    return lead;
}

static double cycles_of(const struct work *work, const struct viv_memory_model *memory, const struct traffic *bytes)
{
    double core = core_cycles(work), ddr = memory->ddr_bytes_per_cycle;
    double waiting = (bytes->read + bytes->write) / fmin(ddr, work->k->bus_bytes);
    for (unsigned place = VIV_IN_DDR + 1; place < VIV_PLACES; place++)
        waiting = fmax(waiting, bytes->sram[place] / work->k->sram_bytes[place]);
    return fmax(core + lead_cycles(work, ddr, core, bytes->image) + work->k->fixed, waiting + work->k->fixed_memory);
}

/* ---- bytes ------------------------------------------------------------ */

/*
 * Bytes of the bursts that `length` bytes touch, averaged over the places
 * start + i * a + j * b + ..., `steps` being a | b | ... Those places reach every
 * multiple of the steps' common power of two within a burst equally often, and
 * the sum over them has a closed form. Bursts are powers of two.
 */
static uint64_t run_bytes(uint32_t burst, uint64_t start, uint64_t steps, uint64_t length)
{
    uint64_t places = steps | burst, grain = places & -places;
    if (length == 0)
        return 0;
    return burst + (((start & (grain - 1)) + length - 1) & -grain);
}

/* The same for `rows` rows of `length` bytes, `pitch` apart. */
static uint64_t rectangle_bytes(uint32_t burst, uint64_t start, uint64_t steps, uint32_t pitch, uint32_t rows,
                                uint32_t length)
{
    if (rows == 0 || length == 0)
        return 0;
    /* A gap shorter than a burst holds no whole one: the rows are as good as contiguous. */
    if (pitch < (uint64_t)length + burst)
        return run_bytes(burst, start, steps, (uint64_t)(rows - 1) * pitch + length);
    return rows * run_bytes(burst, start, steps | pitch, length);
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
        return (double)x->size * y->size + (burst - 1) / work->k->sharing_planes;
    uint32_t rows = work->interleave < y->size ? work->interleave : y->size;
    uint64_t steps = job->in_plane_bytes | (uint64_t)rows * job->in_row_bytes;
    uint64_t bytes = y->size / rows * rectangle_bytes(burst, start, steps, job->in_row_bytes, rows, x->size);
    if (y->size % rows)
        bytes += rectangle_bytes(burst, start, steps, job->in_row_bytes, y->size % rows, x->size);
    return (double)bytes;
}

/* Planes that are read: depthwise descriptors may name one input channel a kernel. */
static double image_planes(const struct viv_nn_job *job)
{
    return job->depthwise ? job->out_channels : job->in_channels;
}

static double image_bytes(const struct work *work, uint32_t burst)
{
    const struct viv_nn_job *job = work->job;
    bool whole_plane = job->tile_x >= job->out_w && job->tile_y >= job->out_h;
    double passes = job->image_cached ? 1 : work->superblocks;
    if (work->k->merges_planes && whole_plane && (work->taps > 1 || job->depthwise))
        return ((double)job->in_w * job->in_h + MERGED_PLANE_BYTES) * image_planes(job) * passes;
    struct span across[3], down[3];
    unsigned columns = split(job->out_w, job->tile_x, across), rows = split(job->out_h, job->tile_y, down);
    double bytes = 0;
    for (unsigned i = 0; i < rows; i++)
        for (unsigned j = 0; j < columns; j++) {
            struct span x = reach(&across[j], job->x_offset, job->kernel_w, job->in_w);
            struct span y = reach(&down[i], job->y_offset, job->kernel_h, job->in_h);
            uint64_t start = job->in_address + (uint64_t)y.start * job->in_row_bytes + x.start;
            double tile = work->taps == 1 ? point_bytes(work, burst, start, &x, &y)
                                          : (double)rectangle_bytes(burst, start, job->in_plane_bytes,
                                                                    job->in_row_bytes, y.size, x.size);
            bytes += tile * x.count * y.count;
        }
    return bytes * image_planes(job) * passes;
}

static double output_bytes(const struct work *work, uint32_t burst)
{
    const struct viv_nn_job *job = work->job;
    uint32_t shrink = job->first_pixel_pooling ? 2 : 1;
    uint32_t width = (job->out_w + shrink - 1) / shrink, height = (job->out_h + shrink - 1) / shrink;
    uint32_t tile_x = (job->tile_x + shrink - 1) / shrink, tile_y = (job->tile_y + shrink - 1) / shrink;
    uint32_t pitch = job->out_row_bytes ? job->out_row_bytes : width;
    uint32_t plane = job->out_plane_bytes ? job->out_plane_bytes : pitch * height;
    struct span across[3], down[3];
    unsigned columns = split(width, tile_x, across), rows = split(height, tile_y, down);
    double bytes = 0, payload = (double)width * height * job->out_channels;
    /* Bursts that two planes share are written once; gaps between planes or rows leave none to share. */
    if (columns == 1 && rows == 1 && plane == width * height)
        return WHOLE_PLANE_OVERHEAD * payload;
    for (unsigned i = 0; i < rows; i++)
        for (unsigned j = 0; j < columns; j++)
            bytes += rectangle_bytes(burst, (uint64_t)down[i].start * pitch + across[j].start, plane, pitch,
                                     down[i].size, across[j].size) *
                     across[j].count * down[i].count;
    bytes *= job->out_channels;
    double lines = cdiv((double)tile_x * tile_y, burst);
    if (work->k->combines_writes && job->out_channels * lines * burst < COMBINING_BYTES)
        bytes = fmin(bytes, COMBINED_OVERHEAD * payload);
    return bytes;
}

/* Smallest piece that moves between a job and a memory. */
static uint32_t line_bytes(enum viv_place place, const struct viv_memory_model *memory)
{
    return place == VIV_IN_DDR ? memory->burst_bytes : place == VIV_IN_AXI_SRAM ? AXI_LINE_BYTES : VIP_LINE_BYTES;
}

static void add_traffic(struct traffic *traffic, double *ddr, enum viv_place place, double bytes)
{
    if (place == VIV_IN_DDR)
        *ddr += bytes;
    else
        traffic->sram[place] += bytes;
}

static struct traffic traffic_of(const struct work *work, const struct viv_memory_model *memory)
{
    const struct viv_nn_job *job = work->job;
    struct traffic traffic = {0};
    add_traffic(&traffic, &traffic.coefficients, job->coefficient_place,
                coefficient_passes(work) * (double)job->coefficient_bytes);
    add_traffic(&traffic, &traffic.image, job->in_place, image_bytes(work, line_bytes(job->in_place, memory)));
    add_traffic(&traffic, &traffic.write, job->out_place, output_bytes(work, line_bytes(job->out_place, memory)));
    traffic.image += HEADER_BYTES;
    traffic.read = traffic.coefficients + traffic.image;
    return traffic;
}

/* ---- results ---------------------------------------------------------- */

uint64_t viv_nn_cycles(const struct viv_chip *chip, const struct viv_memory_model *memory, const struct viv_nn_job *job,
                       double read_bytes, double write_bytes)
{
    struct work work;
    set_work(&work, chip, job);
    struct traffic traffic = {.read = read_bytes, .write = write_bytes};
    if (job->coefficient_place == VIV_IN_DDR)
        traffic.coefficients = fmin(read_bytes, coefficient_passes(&work) * (double)job->coefficient_bytes);
    traffic.image = read_bytes - traffic.coefficients;
    if (job->image_cached && work.superblocks > 1)
        traffic.image = fmin(traffic.image, image_bytes(&work, memory->burst_bytes));
    return whole(cycles_of(&work, memory, &traffic));
}

struct viv_cost viv_nn_cost(const struct viv_chip *chip, const struct viv_memory_model *memory,
                            const struct viv_nn_job *job)
{
    struct work work;
    set_work(&work, chip, job);
    struct traffic traffic = traffic_of(&work, memory);
    return (struct viv_cost){
        .cycles = whole(cycles_of(&work, memory, &traffic)),
        .read_bytes = whole(traffic.read),
        .write_bytes = whole(traffic.write),
        .coefficient_bytes = whole(traffic.coefficients),
        .sram_bytes = whole(traffic.sram[VIV_IN_AXI_SRAM] + traffic.sram[VIV_IN_VIP_SRAM]),
    };
}

struct viv_cost viv_tp_cost(const struct viv_chip *chip, const struct viv_tp_job *job)
{
    const struct constants *k = constants_of(chip);
    uint64_t read = job->in_place == VIV_IN_DDR ? job->in_bytes : 0;
    uint64_t written = job->out_place == VIV_IN_DDR ? job->out_bytes : 0;
    return (struct viv_cost){
        .cycles = whole(k->tp_fixed + k->tp_element * (double)job->elements),
        .read_bytes = read,
        .write_bytes = written,
        .sram_bytes = job->in_bytes - read + job->out_bytes - written,
    };
}
