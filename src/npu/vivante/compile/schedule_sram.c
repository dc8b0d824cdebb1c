/* SPDX-License-Identifier: MIT */
/*
 * Tensors on chip. That jobs can address these memories is inferred from a
 * compiler's output and verified on no board; so is that the caches of VIP SRAM
 * keep to the ranges that descriptors give them. Tensors take VIP SRAM from its
 * end, and caches of jobs meanwhile what is left below.
 */
#include "npu/vivante/compile/schedule.h"

#include <math.h>
#include <stdlib.h>

#include "util/checked.h"

#define ALIGNMENT 64u
#define PASSES 3u /* over the tensors: each placed one changes what the others are worth */

struct candidate {
    uint32_t storage;
    enum viv_place place;
    double worth; /* cycles saved by the size to some power */
};

/* Which of two tensors goes first if only one can stay: no power of the size is always best, so three are tried. */
static const double powers[] = {1, 0.5, 0};

struct placer {
    struct viv_plan *plan;
    double power;
    struct viv_job_memo *memo;
    struct candidate *candidates;
    uint32_t count;
};

/* Bytes of a memory, 0: the chip has none. */
static uint64_t size_of(const struct viv_chip *chip, enum viv_place place)
{
    unsigned window = viv_place_window(chip, place);
    return window < MICA_ON_CHIP_WINDOWS ? chip->on_chip[window].size : 0;
}

static bool may_move(const struct viv_storage *storage)
{
    return storage->parent == VIV_NONE && !storage->external && !storage->is_input && storage->first != UINT32_MAX &&
           storage->size && storage->place == VIV_IN_DDR;
}

/* ---- what a place is worth ----------------------------------------------------- */

/* The job with the operands' places and the caches' share that the storages have now. */
static void set_places(const struct viv_plan *plan, struct viv_nn *nn)
{
    nn->in_place = plan->storages[viv_plan_resolve(plan, nn->in).storage].place;
    nn->out_place = plan->storages[viv_plan_resolve(plan, nn->out).storage].place;
}

/* Modelled cycles of the jobs while `storage` is alive, if its place were as it is now and caches ended at `end`. */
static uint64_t price(const struct placer *placer, const struct viv_storage *storage, uint32_t end)
{
    uint64_t cycles = 0;
    for (uint32_t i = storage->first; i <= storage->last; i++) {
        if (!placer->plan->jobs[i].is_nn)
            continue;
        struct viv_nn nn = placer->plan->jobs[i].nn;
        set_places(placer->plan, &nn);
        if (end && (!nn.sram_bytes || end < nn.sram_bytes))
            nn.sram_bytes = end;
        viv_job_shape(placer->plan->chip, placer->memo, &nn, true);
        cycles += nn.tile.cycles;
    }
    return cycles;
}

/* Cycles that `storage` at `offset` of `place` saves; negative where its jobs need the memory more for caches. */
static double gain(const struct placer *placer, uint32_t index, enum viv_place place, uint64_t offset)
{
    struct viv_storage *storage = &placer->plan->storages[index];
    uint64_t before = price(placer, storage, 0);
    storage->place = place;
    uint64_t after = price(placer, storage, place == VIV_IN_VIP_SRAM ? (uint32_t)offset : 0);
    storage->place = VIV_IN_DDR;
    return (double)before - (double)after;
}

/* ---- where there is room --------------------------------------------------------- */

static bool meet(const struct viv_storage *a, const struct viv_storage *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* The storage in `place`, alive together with `storage`, that overlaps [offset, offset + size); NULL: none does. */
static const struct viv_storage *obstacle(const struct viv_plan *plan, const struct viv_storage *storage,
                                          enum viv_place place, uint64_t offset)
{
    for (uint32_t i = 0; i < plan->storage_count; i++) {
        const struct viv_storage *other = &plan->storages[i];
        if (other != storage && other->parent == VIV_NONE && other->place == place && meet(storage, other) &&
            offset < other->offset + other->size && other->offset < offset + storage->size)
            return other;
    }
    return NULL;
}

/* AXI SRAM from the beginning on, VIP SRAM from the end down to where caches begin. */
static bool find_room(const struct viv_plan *plan, const struct viv_storage *storage, enum viv_place place,
                      uint64_t *offset)
{
    uint64_t end = size_of(plan->chip, place), size = mica_align(storage->size, ALIGNMENT);
    bool down = place == VIV_IN_VIP_SRAM;
    uint64_t low = down ? mica_align(VIV_SRAM_START + ALIGNMENT, MICA_DEVICE_PAGE) : 0;
    if (end < size + low)
        return false;
    *offset = down ? end - size : 0;
    for (;;) {
        const struct viv_storage *other = obstacle(plan, storage, place, *offset);
        if (!other)
            return true;
        if (down ? other->offset < low + size : other->offset + other->size + ALIGNMENT + size > end)
            return false;
        *offset =
            down ? (other->offset - size) / ALIGNMENT * ALIGNMENT : mica_align(other->offset + other->size, ALIGNMENT);
    }
}

/* ---- choosing -------------------------------------------------------------------- */

static void consider(struct placer *placer, uint32_t storage, enum viv_place place)
{
    uint64_t offset;
    if (!find_room(placer->plan, &placer->plan->storages[storage], place, &offset))
        return;
    double saved = gain(placer, storage, place, offset);
    if (saved > 0)
        placer->candidates[placer->count++] = (struct candidate){
            storage, place, saved / pow((double)placer->plan->storages[storage].size, placer->power)};
}

static int by_worth(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->worth != y->worth)
        return x->worth > y->worth ? -1 : 1;
    if (x->storage != y->storage)
        return x->storage < y->storage ? -1 : 1;
    return (int)x->place - (int)y->place;
}

static void settle(struct placer *placer, const struct candidate *candidate)
{
    struct viv_plan *plan = placer->plan;
    struct viv_storage *storage = &plan->storages[candidate->storage];
    uint64_t offset;
    if (storage->place != VIV_IN_DDR || !find_room(plan, storage, candidate->place, &offset) ||
        gain(placer, candidate->storage, candidate->place, offset) <= 0)
        return;
    storage->place = candidate->place;
    storage->offset = offset;
    for (uint32_t i = storage->first; storage->place == VIV_IN_VIP_SRAM && i <= storage->last; i++) {
        struct viv_nn *nn = &plan->jobs[i].nn;
        if (plan->jobs[i].is_nn && (!nn->sram_bytes || offset < nn->sram_bytes))
            nn->sram_bytes = (uint32_t)offset;
    }
}

static void place_tensors(struct placer *placer)
{
    const struct viv_plan *plan = placer->plan;
    placer->count = 0;
    for (uint32_t i = 0; i < plan->storage_count; i++)
        for (enum viv_place place = VIV_IN_AXI_SRAM; place < VIV_PLACES; place++)
            if (may_move(&plan->storages[i]))
                consider(placer, i, place);
    qsort(placer->candidates, placer->count, sizeof(*placer->candidates), by_worth);
    for (uint32_t i = 0; i < placer->count; i++)
        settle(placer, &placer->candidates[i]);
}

static void clear(struct viv_plan *plan)
{
    for (uint32_t i = 0; i < plan->storage_count; i++)
        plan->storages[i].place = VIV_IN_DDR;
    for (uint32_t i = 0; i < plan->job_count; i++)
        if (plan->jobs[i].is_nn)
            plan->jobs[i].nn.sram_bytes = 0;
}

/* From nothing on; returns the modelled cycles of all jobs. */
static uint64_t place_all(struct placer *placer, double power)
{
    const struct viv_storage everything = {.last = placer->plan->job_count - 1};
    placer->power = power;
    clear(placer->plan);
    for (unsigned i = 0; i < PASSES; i++)
        place_tensors(placer);
    return price(placer, &everything, 0);
}

int viv_schedule_on_chip(struct viv_plan *plan, struct viv_job_memo *memo)
{
    struct placer placer = {.plan = plan, .memo = memo};
    uint64_t least = UINT64_MAX;
    double best = 0;
    if (!plan->job_count)
        return 0;
    placer.candidates = mica_new_array((size_t)plan->storage_count * VIV_PLACES, sizeof(*placer.candidates));
    if (!placer.candidates)
        return mica_fail_nomem(plan->log);
    for (unsigned i = 0; i < sizeof(powers) / sizeof(powers[0]); i++) {
        uint64_t cycles = place_all(&placer, powers[i]);
        if (cycles < least) {
            least = cycles;
            best = powers[i];
        }
    }
    place_all(&placer, best);
    free(placer.candidates);
    for (uint32_t i = 0; i < plan->job_count; i++)
        if (plan->jobs[i].is_nn)
            set_places(plan, &plan->jobs[i].nn);
    return 0;
}
