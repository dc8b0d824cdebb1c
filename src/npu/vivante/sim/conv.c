/* SPDX-License-Identifier: MIT */
/*
 * Two ways to the same sums. Dense weights: the image is packed in panels of a
 * few pixels with all their taps, and panels are multiplied with four kernels
 * at a time. Sparse weights (depthwise layers, in hardware or expanded): each
 * kernel walks its list of non-zero taps over the image.
 */
#include "npu/vivante/sim/conv.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "npu/vivante/sim/image.h"
#include "util/checked.h"

#define SPARSE_BLOCK 256u  /* pixels whose sums are held at a time */
#define SPARSE_CHUNK 8192u /* pixels of one task */
#define FEW_PANELS 16u     /* from which on panels alone keep the threads busy */
#define KERNELS_A_TASK 64u /* dense, when there are few panels */
#define MAX_UNPOOLED ((uint64_t)1 << 29)

/* Work space of one thread. */
struct lane {
    atomic_bool taken;
    int16_t *panel; /* dense */
};

struct conv {
    struct viv_sim *sim;
    const struct viv_nn *job;
    const struct viv_weights *weights;
    struct viv_image image;
    size_t pairs;            /* dense: of every kernel */
    const uint32_t *offsets; /* dense: of all taps, an even number; sparse: parallel to weights->values */
    size_t panels, blocks;   /* dense: panels of the image, and blocks of kernels */
    size_t kernels_a_block;  /* multiple of VIV_ROWS */
    size_t chunks;           /* sparse: of a kernel's output */
    uint8_t *unpooled;       /* NULL: results go to device memory */
    uint32_t lane_count;
    struct lane lanes[MICA_MAX_THREADS];
};

/* ---- where results go ------------------------------------------------- */

/* Address of a kernel's output plane; false for kernels that stand for no output channel. */
static bool stored_at(const struct conv *conv, uint32_t kernel, uint64_t *address)
{
    const struct viv_nn *job = conv->job;
    uint32_t offset = conv->weights->offset[kernel];
    *address = (uint32_t)(job->out_address + offset);
    /* Mainline fills the cores up with kernels behind the last channel when the channels don't divide evenly. What the
     * hardware does with them is unknown (specification, section 12.2); here they write nothing. */
    bool surplus = conv->weights->kernels > job->cost.out_channels;
    return !surplus || offset < (uint64_t)job->out_plane_bytes * job->cost.out_channels;
}

static uint64_t stored_bytes(const struct viv_nn *job)
{
    return (uint64_t)job->out_row_bytes * (job->stored_h - 1) + job->stored_w;
}

/* Planes outside the tensor that the descriptor describes are legal, and hardly meant. */
static void note_stray_plane(const struct conv *conv, uint32_t kernel)
{
    uint64_t tensor = (uint64_t)conv->job->out_plane_bytes * conv->job->cost.out_channels;
    if (conv->weights->offset[kernel] + stored_bytes(conv->job) > tensor)
        mica_log(conv->sim->log, MICA_LOG_DEBUG, "NN job 0x%08x: kernel %u writes at offset %u, outside the output",
                 conv->job->descriptor, kernel, conv->weights->offset[kernel]);
}

static int check_output(const struct conv *conv)
{
    for (uint32_t kernel = 0; kernel < conv->weights->kernels; kernel++) {
        uint64_t address;
        if (!stored_at(conv, kernel, &address))
            continue;
        note_stray_plane(conv, kernel);
        if (!viv_sim_at(conv->sim, address, stored_bytes(conv->job), MICA_ACCESS_WRITE, "NN output"))
            return -EFAULT;
    }
    return 0;
}

/* Row 0 of where convolution results of a kernel go, NULL when nowhere; *row_bytes gets the pitch. */
static uint8_t *result_plane(const struct conv *conv, uint32_t kernel, size_t *row_bytes)
{
    uint64_t address;
    if (kernel >= conv->weights->kernels || !stored_at(conv, kernel, &address))
        return NULL;
    *row_bytes = conv->unpooled ? conv->image.columns : conv->job->out_row_bytes;
    if (conv->unpooled)
        return conv->unpooled + (size_t)kernel * conv->image.columns * conv->image.rows;
    return conv->sim->memory->base + address;
}

/* Stores `count` results that start at `position`; those between the end of a row and the next row's start are waste.
 */
static void store(const struct conv *conv, uint8_t *plane, size_t row_bytes, size_t position, const uint8_t *results,
                  size_t count)
{
    size_t pitch = conv->image.pitch, columns = conv->image.columns;
    if (count > conv->image.positions - position)
        count = conv->image.positions - position;
    for (size_t y = position / pitch, x = position % pitch; count; y++, x = 0) {
        size_t here = pitch - x < count ? pitch - x : count;
        if (x < columns)
            memcpy(plane + y * row_bytes + x, results, here < columns - x ? here : columns - x);
        results += here;
        count -= here;
    }
}

/* ---- dense ------------------------------------------------------------ */

static struct lane *take_lane(struct conv *conv)
{
    for (;; sched_yield())
        for (uint32_t i = 0; i < conv->lane_count; i++)
            if (!atomic_exchange(&conv->lanes[i].taken, true))
                return &conv->lanes[i];
}

/* Wide panels first; what is left after them, at most 16 pixels, in narrow ones. */
static size_t panel_count(size_t positions)
{
    size_t wide = positions / VIV_WIDE, rest = positions % VIV_WIDE;
    return rest > 2 * VIV_NARROW ? wide + 1 : wide + (rest + VIV_NARROW - 1) / VIV_NARROW;
}

static size_t panel_start(size_t positions, size_t panel, unsigned *width)
{
    size_t wide = positions / VIV_WIDE + (positions % VIV_WIDE > 2 * VIV_NARROW);
    *width = panel < wide ? VIV_WIDE : VIV_NARROW;
    return panel < wide ? panel * VIV_WIDE : wide * VIV_WIDE + (panel - wide) * VIV_NARROW;
}

static void dense_rows(const struct conv *conv, const int16_t *panel, uint32_t kernel, size_t position, unsigned width)
{
    const struct viv_kernels *kernels = conv->sim->kernels;
    int32_t sums[VIV_ROWS * VIV_WIDE];
    uint8_t results[VIV_WIDE];
    kernels->dense(sums, conv->weights->values + kernel * conv->pairs * 2, panel, conv->pairs, width);
    for (uint32_t row = 0; row < VIV_ROWS; row++) {
        size_t row_bytes;
        uint8_t *plane = result_plane(conv, kernel + row, &row_bytes);
        if (!plane)
            continue;
        kernels->requantize(results, sums + row * width, width, conv->weights->bias[kernel + row], &conv->job->post);
        store(conv, plane, row_bytes, position, results, width);
    }
}

static void dense_task(void *user, size_t index)
{
    struct conv *conv = user;
    unsigned width;
    size_t position = panel_start(conv->image.positions, index / conv->blocks, &width);
    size_t kernel = index % conv->blocks * conv->kernels_a_block, end = kernel + conv->kernels_a_block;
    struct lane *lane = take_lane(conv);
    conv->sim->kernels->pack(lane->panel, conv->image.data + position, conv->offsets, conv->pairs, width);
    for (; kernel < end && kernel < conv->weights->kernels; kernel += VIV_ROWS)
        dense_rows(conv, lane->panel, (uint32_t)kernel, position, width);
    atomic_store(&lane->taken, false);
}

static int run_dense(struct conv *conv)
{
    struct viv_sim *sim = conv->sim;
    uint32_t taps = conv->weights->taps;
    conv->pairs = ((size_t)taps + 1) / 2;
    conv->lane_count = mica_threads_count(sim->threads);
    size_t offsets_bytes = mica_align(conv->pairs * 2 * sizeof(uint32_t), 64);
    size_t panel_bytes = mica_align(conv->pairs * 2 * VIV_WIDE * sizeof(int16_t), 64);
    if (!viv_buffer_reserve(&sim->lanes, offsets_bytes + conv->lane_count * panel_bytes))
        return mica_fail_nomem(sim->log);
    uint32_t *offsets = (uint32_t *)sim->lanes.data;
    viv_image_tap_offsets(&conv->image, offsets);
    if (taps % 2)
        offsets[taps] = offsets[taps - 1];
    conv->offsets = offsets;
    for (uint32_t i = 0; i < conv->lane_count; i++)
        conv->lanes[i].panel = (int16_t *)(sim->lanes.data + offsets_bytes + i * panel_bytes);
    conv->panels = panel_count(conv->image.positions);
    bool few = conv->panels < FEW_PANELS && conv->lane_count > 1;
    conv->kernels_a_block = few ? KERNELS_A_TASK : mica_align(conv->weights->kernels, VIV_ROWS);
    conv->blocks = (conv->weights->kernels + conv->kernels_a_block - 1) / conv->kernels_a_block;
    mica_parallel_for(sim->threads, conv->panels * conv->blocks, dense_task, conv);
    return 0;
}

/* ---- sparse ----------------------------------------------------------- */

static void sparse_task(void *user, size_t index)
{
    const struct conv *conv = user;
    const struct viv_weights *weights = conv->weights;
    uint32_t kernel = (uint32_t)(index / conv->chunks);
    size_t position = index % conv->chunks * SPARSE_CHUNK, end = position + SPARSE_CHUNK, row_bytes;
    size_t first = weights->first[kernel], pairs = weights->first[kernel + 1] - first;
    uint8_t *plane = result_plane(conv, kernel, &row_bytes);
    int32_t sums[SPARSE_BLOCK];
    uint8_t results[SPARSE_BLOCK];
    if (!plane)
        return;
    for (; position < end && position < conv->image.positions; position += SPARSE_BLOCK) {
        size_t left = conv->image.positions - position, count = left < SPARSE_BLOCK ? left : SPARSE_BLOCK;
        conv->sim->kernels->sparse(sums, conv->image.data + position, conv->offsets + 2 * first,
                                   weights->values + 2 * first, pairs, (count + 31) & ~(size_t)31);
        conv->sim->kernels->requantize(results, sums, count, weights->bias[kernel], &conv->job->post);
        store(conv, plane, row_bytes, position, results, count);
    }
}

static int run_sparse(struct conv *conv)
{
    struct viv_sim *sim = conv->sim;
    const struct viv_weights *weights = conv->weights;
    size_t places = 2 * weights->first[weights->kernels];
    if (!viv_buffer_reserve(&sim->lanes, (places + weights->taps) * sizeof(uint32_t)))
        return mica_fail_nomem(sim->log);
    uint32_t *offsets = (uint32_t *)sim->lanes.data, *of_tap = offsets + places;
    viv_image_tap_offsets(&conv->image, of_tap);
    for (size_t i = 0; i < places; i++)
        offsets[i] = of_tap[weights->places[i]];
    conv->offsets = offsets;
    conv->chunks = (conv->image.positions + SPARSE_CHUNK - 1) / SPARSE_CHUNK;
    mica_parallel_for(sim->threads, weights->kernels * conv->chunks, sparse_task, conv);
    return 0;
}

/* ---- pooling ---------------------------------------------------------- */

static uint8_t window_maximum(const uint8_t *corner, size_t row_bytes, uint32_t size)
{
    uint8_t most = 0;
    for (uint32_t y = 0; y < size; y++)
        for (uint32_t x = 0; x < size; x++)
            most = corner[y * row_bytes + x] > most ? corner[y * row_bytes + x] : most;
    return most;
}

static void pool_task(void *user, size_t kernel)
{
    const struct conv *conv = user;
    const struct viv_nn *job = conv->job;
    size_t columns = conv->image.columns;
    uint64_t address;
    if (!stored_at(conv, (uint32_t)kernel, &address))
        return;
    const uint8_t *plane = conv->unpooled + kernel * columns * conv->image.rows;
    for (size_t y = 0; y < job->stored_h; y++) {
        uint8_t *out = conv->sim->memory->base + address + y * job->out_row_bytes;
        for (size_t x = 0; x < job->stored_w; x++)
            out[x] = window_maximum(plane + 2 * y * columns + 2 * x, columns, job->pool_size);
    }
}

static int reserve_unpooled(struct conv *conv)
{
    struct viv_sim *sim = conv->sim;
    uint64_t bytes = (uint64_t)conv->job->cost.out_w * conv->job->cost.out_h * conv->weights->kernels;
    if (bytes > MAX_UNPOOLED)
        return mica_fail(sim->log, -EIO, "NN job 0x%08x: %llu bytes before pooling are more than the simulator takes",
                         conv->job->descriptor, (unsigned long long)bytes);
    if (!viv_buffer_reserve(&sim->unpooled, bytes))
        return mica_fail_nomem(sim->log);
    conv->unpooled = sim->unpooled.data;
    return 0;
}

int viv_conv_run(struct viv_sim *sim, const struct viv_nn *job, const struct viv_weights *weights)
{
    struct conv conv = {.sim = sim, .job = job, .weights = weights};
    bool pooled = job->pooling == VIV_POOL_MAX;
    int result = check_output(&conv);
    if (!result && pooled)
        result = reserve_unpooled(&conv);
    if (!result)
        result = viv_image_fetch(sim, job, &conv.image);
    if (!result)
        result = weights->places ? run_sparse(&conv) : run_dense(&conv);
    if (!result && pooled)
        mica_parallel_for(sim->threads, weights->kernels, pool_task, &conv);
    return result;
}
