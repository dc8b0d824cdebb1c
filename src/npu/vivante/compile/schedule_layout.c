/* SPDX-License-Identifier: MIT */
/*
 * Memory moves in bursts of 64 bytes. Planes that do not begin on a burst's
 * border cost 1x1 jobs, which fetch every vector on its own, nearly twice their
 * bytes; rows of more than a tile that do not, cost both tiles the burst they
 * share. A gap behind each plane or row then pays, if it does for the job that
 * writes a tensor and those that read it together.
 */
#include "npu/vivante/compile/schedule.h"

#include <stdlib.h>

#include "util/checked.h"

#define BURST 64u
#define LAYOUTS 4u
#define SWEEPS 2u

/* Bytes from row to row and from plane to plane. */
struct layout {
    uint32_t row, plane;
};

/* One operand of one job. */
struct use {
    uint32_t job;
    bool writes;
    uint32_t next; /* of the same storage, VIV_NONE: the last */
};

struct tensor {
    uint32_t first;       /* use */
    uint32_t w, h, plane; /* packed */
    bool fixed;           /* something else than NN jobs on planes uses it */
    struct layout layouts[LAYOUTS];
    uint32_t count, chosen;
};

struct scheduler {
    struct viv_plan *plan;
    struct viv_job_memo *memo;
    struct tensor *tensors; /* per storage */
    struct use *uses;
    uint32_t use_count;
};

/* ---- who uses what ----------------------------------------------------------- */

static struct viv_ref *operand(struct viv_job *job, bool writes)
{
    if (job->is_nn)
        return writes ? &job->nn.out : &job->nn.in;
    return writes ? &job->tp.out : &job->tp.in;
}

/* Columns and rows of the operand of an NN job, as stored. */
static void extent(const struct viv_nn *nn, bool writes, uint32_t *w, uint32_t *h)
{
    uint32_t shrink = nn->first_pixel && writes ? 2 : 1;
    *w = writes ? mica_cdiv(nn->out_w, shrink) : nn->in_w;
    *h = writes ? mica_cdiv(nn->out_h, shrink) : nn->in_h;
}

static void add_use(struct scheduler *scheduler, uint32_t index, bool writes)
{
    struct viv_job *job = &scheduler->plan->jobs[index];
    struct viv_ref ref = *operand(job, writes);
    const struct viv_storage *storage = &scheduler->plan->storages[ref.storage];
    struct tensor *tensor = &scheduler->tensors[ref.storage];
    uint32_t w = 0, h = 0, row = 0, plane = 0, channels = 0;
    if (job->is_nn) {
        extent(&job->nn, writes, &w, &h);
        row = writes ? job->nn.out_x_stride : job->nn.in_x_stride;
        plane = row * (writes ? job->nn.out_y_stride : job->nn.in_y_stride);
        channels = writes ? job->nn.out_c : job->nn.in_c;
    }
    bool packed = row == w && plane && plane == w * h && ref.offset % plane == 0 && storage->size % plane == 0 &&
                  ref.offset / plane + channels <= storage->size / plane;
    if (tensor->first == VIV_NONE && packed) {
        tensor->w = w;
        tensor->h = h;
        tensor->plane = plane;
    }
    if (!packed || w != tensor->w || h != tensor->h)
        tensor->fixed = true;
    scheduler->uses[scheduler->use_count] = (struct use){index, writes, tensor->first};
    tensor->first = scheduler->use_count++;
}

static void find_uses(struct scheduler *scheduler)
{
    const struct viv_plan *plan = scheduler->plan;
    for (uint32_t i = 0; i < plan->storage_count; i++) {
        const struct viv_storage *storage = &plan->storages[i];
        struct tensor *tensor = &scheduler->tensors[i];
        tensor->first = VIV_NONE;
        tensor->fixed |= storage->external || storage->is_input || storage->parent != VIV_NONE || storage->place;
        if (storage->parent != VIV_NONE)
            scheduler->tensors[storage->parent].fixed = true;
    }
    for (uint32_t i = 0; i < plan->job_count; i++) {
        add_use(scheduler, i, false);
        add_use(scheduler, i, true);
    }
}

/* ---- layouts ------------------------------------------------------------------- */

static uint32_t gcd(uint32_t a, uint32_t b)
{
    return b ? gcd(b, a % b) : a;
}

static void add_layout(struct tensor *tensor, uint32_t row)
{
    uint64_t unit = (uint64_t)row / gcd(row, BURST) * BURST, plane = mica_align((uint64_t)row * tensor->h, unit);
    bool known = plane > UINT32_MAX || plane / row > UINT16_MAX || row > UINT16_MAX;
    for (uint32_t i = 0; i < tensor->count; i++)
        known |= tensor->layouts[i].row == row && tensor->layouts[i].plane == plane;
    if (!known)
        tensor->layouts[tensor->count++] = (struct layout){row, (uint32_t)plane};
}

/* Rows that begin with a vector: several of them share one, or each is longer. */
static uint32_t aligned_row(uint32_t w)
{
    uint32_t row = BURST / 4;
    while (row < w && row < BURST)
        row *= 2;
    return (uint32_t)mica_align(w, row);
}

/* Packed first, then packed planes on borders. Planes smaller than a burst share bursts and are best packed. */
static void list_layouts(struct tensor *tensor)
{
    tensor->layouts[0] = (struct layout){tensor->w, tensor->plane};
    tensor->count = 1;
    if (tensor->plane <= BURST)
        return;
    add_layout(tensor, tensor->w);
    add_layout(tensor, aligned_row(tensor->w));
    add_layout(tensor, (uint32_t)mica_align(tensor->w, BURST));
}

static void set_operand(struct viv_nn *nn, bool writes, const struct layout *layout)
{
    if (writes) {
        nn->out_x_stride = layout->row;
        nn->out_y_stride = layout->plane / layout->row;
    } else {
        nn->in_x_stride = layout->row;
        nn->in_y_stride = layout->plane / layout->row;
    }
}

static void set_layout(struct scheduler *scheduler, uint32_t storage, uint32_t choice)
{
    struct tensor *tensor = &scheduler->tensors[storage];
    tensor->chosen = choice;
    for (uint32_t i = tensor->first; i != VIV_NONE; i = scheduler->uses[i].next) {
        const struct use *use = &scheduler->uses[i];
        set_operand(&scheduler->plan->jobs[use->job].nn, use->writes, &tensor->layouts[choice]);
    }
}

/* Modelled cycles of the jobs on the tensor. */
static uint64_t price(const struct scheduler *scheduler, const struct tensor *tensor)
{
    uint64_t cycles = 0;
    for (uint32_t i = tensor->first; i != VIV_NONE; i = scheduler->uses[i].next) {
        struct viv_nn nn = scheduler->plan->jobs[scheduler->uses[i].job].nn;
        viv_job_shape(scheduler->plan->chip, scheduler->memo, &nn, true);
        cycles += nn.tile.cycles;
    }
    return cycles;
}

static uint64_t price_all(const struct scheduler *scheduler)
{
    uint64_t cycles = 0;
    for (uint32_t i = 0; i < scheduler->plan->job_count; i++) {
        struct viv_nn nn = scheduler->plan->jobs[i].nn;
        if (!scheduler->plan->jobs[i].is_nn)
            continue;
        viv_job_shape(scheduler->plan->chip, scheduler->memo, &nn, true);
        cycles += nn.tile.cycles;
    }
    return cycles;
}

static void choose_layout(struct scheduler *scheduler, uint32_t storage)
{
    struct tensor *tensor = &scheduler->tensors[storage];
    uint32_t best = 0;
    uint64_t best_cycles = 0;
    for (uint32_t i = 0; i < tensor->count; i++) {
        set_layout(scheduler, storage, i);
        uint64_t cycles = price(scheduler, tensor);
        if (i == 0 || cycles < best_cycles) {
            best = i;
            best_cycles = cycles;
        }
    }
    set_layout(scheduler, storage, best);
}

static bool open(const struct tensor *tensor)
{
    return !tensor->fixed && tensor->first != VIV_NONE && tensor->count > 1;
}

/*
 * A 1x1 job can only be folded when both its operands allow it: so all tensors
 * begin with packed rows and planes on borders, and leave that where another
 * layout is better.
 */
static void choose_layouts(struct scheduler *scheduler)
{
    const struct viv_plan *plan = scheduler->plan;
    uint64_t packed = price_all(scheduler);
    for (uint32_t i = 0; i < plan->storage_count; i++) {
        const struct tensor *tensor = &scheduler->tensors[i];
        if (open(tensor) && tensor->layouts[1].row == tensor->w)
            set_layout(scheduler, i, 1);
    }
    for (uint32_t sweep = 0; sweep < SWEEPS; sweep++)
        for (uint32_t i = 0; i < plan->storage_count; i++)
            if (open(&scheduler->tensors[i]))
                choose_layout(scheduler, i);
    if (price_all(scheduler) < packed)
        return;
    for (uint32_t i = 0; i < plan->storage_count; i++)
        if (open(&scheduler->tensors[i]))
            set_layout(scheduler, i, 0);
}

/* References and sizes follow the strides. */
static void move_planes(struct scheduler *scheduler, uint32_t storage)
{
    const struct tensor *tensor = &scheduler->tensors[storage];
    uint32_t plane = tensor->layouts[tensor->chosen].plane;
    for (uint32_t i = tensor->first; i != VIV_NONE; i = scheduler->uses[i].next) {
        const struct use *use = &scheduler->uses[i];
        struct viv_ref *ref = operand(&scheduler->plan->jobs[use->job], use->writes);
        ref->offset = ref->offset / tensor->plane * plane;
    }
    scheduler->plan->storages[storage].size = scheduler->plan->storages[storage].size / tensor->plane * plane;
}

int viv_schedule_layouts(struct viv_plan *plan, struct viv_job_memo *memo)
{
    struct scheduler scheduler = {.plan = plan, .memo = memo};
    scheduler.tensors = mica_new_array(plan->storage_count, sizeof(*scheduler.tensors));
    scheduler.uses = mica_new_array(2 * (size_t)plan->job_count, sizeof(*scheduler.uses));
    bool failed = !scheduler.tensors || !scheduler.uses;
    if (!failed) {
        find_uses(&scheduler);
        for (uint32_t i = 0; i < plan->storage_count; i++)
            if (!scheduler.tensors[i].fixed && scheduler.tensors[i].first != VIV_NONE)
                list_layouts(&scheduler.tensors[i]);
        choose_layouts(&scheduler);
        for (uint32_t i = 0; i < plan->storage_count; i++)
            if (open(&scheduler.tensors[i]) && scheduler.tensors[i].chosen)
                move_planes(&scheduler, i);
    }
    free(scheduler.tensors);
    free(scheduler.uses);
    return failed ? mica_fail_nomem(plan->log) : 0;
}
