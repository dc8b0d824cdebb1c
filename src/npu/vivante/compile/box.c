/* SPDX-License-Identifier: MIT */
/*
 * A TP job scans columns that are neighbours in memory, rows a 16-bit stride
 * apart and slices any stride apart, and writes them at any strides: it does
 * three loops of a box. What is left of them are jobs of their own.
 */
#include "npu/vivante/compile/box.h"

#include <errno.h>

#include "util/checked.h"

#define LONGEST 16384u /* rounds of a loop of one job; fields have 15 bits where a window ends */

void viv_box_add(struct viv_box *box, uint32_t count, uint64_t in, uint64_t out)
{
    if (count == 1)
        return;
    if (box->loops) {
        struct viv_box_loop *outer = &box->loop[box->loops - 1];
        if (outer->in == in * count && outer->out == out * count && (uint64_t)outer->count * count < UINT32_MAX) {
            *outer = (struct viv_box_loop){outer->count * count, in, out};
            return;
        }
    }
    box->loop[box->loops++] = (struct viv_box_loop){count, in, out};
}

/* ---- which loops are the job's ---------------------------------------------------- */

struct choice {
    struct viv_box_loop columns, rows, slices;
};

static struct viv_box_loop take(struct viv_box *box, uint32_t index)
{
    struct viv_box_loop loop = box->loop[index];
    for (uint32_t i = index + 1; i < box->loops; i++)
        box->loop[i - 1] = box->loop[i];
    box->loops--;
    return loop;
}

/* The longest loop with a stride of at most `largest`, VIV_NONE: there is none. */
static uint32_t longest(const struct viv_box *box, uint64_t least, uint64_t largest)
{
    uint32_t best = VIV_NONE;
    for (uint32_t i = 0; i < box->loops; i++)
        if (box->loop[i].in >= least && box->loop[i].in <= largest &&
            (best == VIV_NONE || box->loop[i].count > box->loop[best].count))
            best = i;
    return best;
}

/* Takes the job's loops out of the box; those that stay are around the job. */
static struct choice choose(struct viv_box *box)
{
    struct choice choice = {{1, 1, 0}, {1, 0, 0}, {1, 0, 0}};
    uint32_t index = longest(box, 1, 1);
    if (index != VIV_NONE)
        choice.columns = take(box, index);
    index = longest(box, 0, UINT16_MAX);
    if (index != VIV_NONE)
        choice.rows = take(box, index);
    index = longest(box, 0, UINT32_MAX);
    if (index != VIV_NONE)
        choice.slices = take(box, index);
    return choice;
}

/* Loops too long for a job, cut in two. False: there are none. */
static bool cut(const struct viv_box *box, struct viv_box *main, struct viv_box *rest)
{
    for (uint32_t i = 0; i < box->loops; i++) {
        uint32_t count = box->loop[i].count, pieces = count / LONGEST;
        if (count <= LONGEST || box->loops == VIV_BOX_LOOPS)
            continue;
        *main = *rest = *box;
        rest->in_offset = pieces * LONGEST * box->loop[i].in;
        rest->out_offset = pieces * LONGEST * box->loop[i].out;
        rest->loop[i].count = count % LONGEST;
        main->in_offset = main->out_offset = 0;
        main->loop[i] = (struct viv_box_loop){LONGEST, box->loop[i].in, box->loop[i].out};
        if (pieces > 1)
            main->loop[main->loops++] =
                (struct viv_box_loop){pieces, LONGEST * box->loop[i].in, LONGEST * box->loop[i].out};
        return true;
    }
    return false;
}

static bool empty(const struct viv_box *box)
{
    for (uint32_t i = 0; i < box->loops; i++)
        if (!box->loop[i].count)
            return true;
    return false;
}

uint32_t viv_box_jobs(const struct viv_box *box)
{
    struct viv_box main, rest;
    if (empty(box))
        return 0;
    if (cut(box, &main, &rest))
        return viv_box_jobs(&main) + viv_box_jobs(&rest);
    uint64_t jobs = 1;
    struct viv_box around = *box;
    choose(&around);
    for (uint32_t i = 0; i < around.loops && jobs < UINT16_MAX; i++)
        jobs *= around.loop[i].count;
    return jobs < UINT16_MAX ? (uint32_t)jobs : UINT16_MAX;
}

/* ---- jobs --------------------------------------------------------------------------- */

static int add_jobs(struct viv_plan *plan, uint32_t op, const struct viv_box *around, const struct choice *choice,
                    struct viv_ref in, struct viv_ref out, uint8_t zero_point)
{
    if (!around->loops)
        return viv_tp_scatter(plan, op, &choice->columns, &choice->rows, &choice->slices, in, out, zero_point);
    struct viv_box inner = *around;
    struct viv_box_loop loop = take(&inner, 0);
    int error = 0;
    for (uint32_t i = 0; !error && i < loop.count; i++) {
        error = add_jobs(plan, op, &inner, choice, in, out, zero_point);
        in.offset += loop.in;
        out.offset += loop.out;
    }
    return error;
}

int viv_box_lower(struct viv_plan *plan, uint32_t op, const struct viv_box *box, struct viv_ref in, struct viv_ref out,
                  uint8_t zero_point)
{
    struct viv_box main, rest;
    if (empty(box))
        return 0;
    if (cut(box, &main, &rest)) {
        int error = viv_box_lower(plan, op, &main, in, out, zero_point);
        in.offset += rest.in_offset;
        out.offset += rest.out_offset;
        return error ? error : viv_box_lower(plan, op, &rest, in, out, zero_point);
    }
    struct viv_box around = *box;
    struct choice choice = choose(&around);
    return add_jobs(plan, op, &around, &choice, in, out, zero_point);
}
