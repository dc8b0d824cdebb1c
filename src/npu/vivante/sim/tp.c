/* SPDX-License-Identifier: MIT */
/* One TP job, element by element in the order of the hardware (specification, section 4.1). */
#include <errno.h>
#include <string.h>

#include "npu/vivante/sim/internal.h"
#include "npu/vivante/sim/tp_job.h"

/* The seven output loops as a counter of mixed radix; addresses wrap as the hardware's 32-bit ones. */
struct odometer {
    const struct viv_tp *job;
    uint32_t index[VIV_TP_LOOPS];
    uint32_t address;
};

struct scan {
    struct viv_sim *sim;
    const struct viv_tp *job;
    struct odometer out;
    bool stopped, at_write; /* by a fault */
    uint64_t fault;
};

static void stop(struct scan *scan, uint64_t address, bool write)
{
    if (scan->stopped)
        return;
    scan->stopped = true;
    scan->at_write = write;
    scan->fault = address;
}

/* Loop `k` makes one step, with carries. */
static void advance(struct odometer *out, unsigned k)
{
    for (;; k++) {
        const struct viv_tp *job = out->job;
        out->address += job->step[k];
        out->index[k]++;
        if (k == VIV_TP_LOOPS - 1 || job->count[k] == 0 || out->index[k] < job->count[k])
            return;
        out->address -= out->index[k] * job->step[k];
        out->index[k] = 0;
    }
}

/* Loops 0 to `k` end here, unless they have just ended by their counts. */
static void restart(struct odometer *out, unsigned k)
{
    bool under_way = false;
    for (unsigned i = 0; i <= k; i++) {
        under_way |= out->index[i] != 0;
        out->address -= out->index[i] * out->job->step[i];
        out->index[i] = 0;
    }
    if (under_way)
        advance(out, k + 1);
}

static bool may(const struct viv_sim *sim, uint64_t address, unsigned access)
{
    return address < MICA_DEVICE_SPACE && (sim->memory->pages[address / MICA_DEVICE_PAGE] & access) == access;
}

static uint8_t read_element(struct scan *scan, int64_t x, int64_t y, int64_t z)
{
    const struct viv_tp *job = scan->job;
    if (x < 0 || x >= job->in_w || y < 0 || y >= job->in_h || z < 0 || z >= job->in_slices)
        return job->outside;
    uint64_t address =
        (uint64_t)job->in_address + (uint64_t)z * job->in_slice_bytes + (uint64_t)y * job->in_row_bytes + (uint64_t)x;
    if (may(scan->sim, address, MICA_ACCESS_READ))
        return scan->sim->memory->base[address];
    stop(scan, address, false);
    return 0;
}

static void write_element(struct scan *scan, uint8_t raw)
{
    uint32_t address = scan->out.address;
    advance(&scan->out, 0);
    if (scan->stopped)
        return;
    if (may(scan->sim, address, MICA_ACCESS_WRITE))
        scan->sim->memory->base[address] = scan->job->values[raw];
    else
        stop(scan, address, true);
}

static uint8_t window_maximum(struct scan *scan, int64_t x, int64_t y, int64_t z)
{
    uint8_t most = 0;
    for (uint32_t j = 0; j < scan->job->down.window; j++)
        for (uint32_t i = 0; i < scan->job->across.window; i++) {
            uint8_t value = read_element(scan, x + i, y + j, z);
            most = value > most ? value : most;
        }
    return most;
}

/* Results that a line of `size` scanned elements gives. */
static uint32_t results(const struct viv_tp_pool *pool, int64_t size)
{
    return size < pool->window ? 0 : (uint32_t)((size - pool->window) / pool->step + 1);
}

static void scan_tile(struct scan *scan, int64_t x, int64_t y, int64_t z)
{
    const struct viv_tp *job = scan->job;
    int64_t width = job->x_end - x + 1 < job->tile_w ? job->x_end - x + 1 : job->tile_w;
    int64_t height = job->y_end - y + 1 < job->tile_h ? job->y_end - y + 1 : job->tile_h;
    uint32_t columns = results(&job->across, width), rows = results(&job->down, height);
    bool plain = job->across.window == 1 && job->down.window == 1;
    for (uint32_t j = 0; j < rows && !scan->stopped; j++) {
        for (uint32_t i = 0; i < columns; i++) {
            int64_t at_x = x + (int64_t)i * job->across.step, at_y = y + (int64_t)j * job->down.step;
            write_element(scan, plain ? read_element(scan, at_x, at_y, z) : window_maximum(scan, at_x, at_y, z));
        }
        if (job->reset_row)
            restart(&scan->out, 1);
    }
    if (job->reset_tile_2)
        restart(&scan->out, 2);
    if (job->reset_tile_3)
        restart(&scan->out, 3);
}

static int run_elements(struct viv_sim *sim, const struct viv_tp *job)
{
    struct scan scan = {.sim = sim, .job = job, .out = {.job = job, .address = job->out_address}};
    int64_t first = -(int64_t)job->slices_before, end = (int64_t)job->in_slices + job->slices_after;
    for (int64_t z = first; z < end; z++)
        for (int64_t y = job->y_start; y <= job->y_end; y += job->tile_y_step)
            for (int64_t x = job->x_start; x <= job->x_end && !scan.stopped; x += job->tile_x_step)
                scan_tile(&scan, x, y, z);
    if (scan.stopped)
        return mica_fail(sim->log, -EFAULT,
                         "TP job 0x%08x: the device may not %s 0x%08llx; is its buffer in the "
                         "submission?",
                         job->descriptor, scan.at_write ? "write" : "read", (unsigned long long)scan.fault);
    return 0;
}

static void estimate(const struct viv_sim *sim, const struct viv_tp *job, struct viv_cost *cost)
{
    uint64_t elements = viv_tp_elements(job);
    struct viv_tp_job sizes = {
        .elements = elements,
        .in_place = viv_sim_place(sim, job->in_address),
        .out_place = viv_sim_place(sim, job->out_address),
    };
    uint64_t across = results(&job->across, job->x_end - (int64_t)job->x_start + 1);
    uint64_t down = results(&job->down, job->y_end - (int64_t)job->y_start + 1);
    sizes.in_bytes = (uint64_t)job->in_w * job->in_h * job->in_slices;
    sizes.out_bytes = across * down * ((uint64_t)job->in_slices + job->slices_before + job->slices_after);
    sizes.in_bytes = sizes.in_bytes < elements ? sizes.in_bytes : elements;
    *cost = viv_tp_cost(sim->chip, &sizes);
}

int viv_tp_run(struct viv_sim *sim, uint32_t address, struct viv_cost *cost)
{
    uint32_t words[VIV_TP_WORDS];
    struct viv_tp job;
    const void *host = viv_sim_at(sim, address, sizeof words, MICA_ACCESS_READ, "TP descriptor");
    if (!host)
        return -EFAULT;
    memcpy(words, host, sizeof words);
    int result = viv_tp_parse(sim, address, words, &job);
    if (result)
        return result;
    estimate(sim, &job, cost);
    result = viv_sim_spend(sim, "TP", address, cost->cycles);
    if (result)
        return result;
    result = sim->element_wise ? 0 : viv_tp_run_nest(sim, &job);
    if (result)
        return result < 0 ? result : 0;
    return run_elements(sim, &job);
}
