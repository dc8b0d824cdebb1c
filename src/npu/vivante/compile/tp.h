/* SPDX-License-Identifier: MIT */
/* What TP jobs are built with: parts for the cores, their scans and loops. */
#ifndef MICA_VIVANTE_COMPILE_TP_H
#define MICA_VIVANTE_COMPILE_TP_H

#include "npu/vivante/compile/lower.h"
#include "util/checked.h"

/* Below this many elements a job's fixed 1512 cycles outweigh what another core saves. */
#define VIV_SPLIT_ELEMENTS 2048u

static inline struct viv_tp *viv_tp_new(struct viv_plan *plan, uint32_t op, struct viv_ref in, struct viv_ref out,
                                        uint8_t zero_point)
{
    struct viv_job *job = viv_plan_job(plan, op, false);
    if (!job)
        return NULL;
    job->tp.in = in;
    job->tp.out = out;
    job->tp.zero_point = zero_point;
    return &job->tp;
}

/* The next part, with every loop once around. */
static inline struct viv_tp_part *viv_tp_add_part(struct viv_tp *tp)
{
    struct viv_tp_part *part = &tp->parts[tp->part_count++];
    for (unsigned i = 0; i < 6; i++)
        part->loop[i].count = 1;
    return part;
}

static inline void viv_tp_set_loop(struct viv_tp_part *part, unsigned loop, uint32_t inc, uint32_t count)
{
    part->loop[loop].inc = inc;
    part->loop[loop].count = count;
}

/* Window and tile: the whole of [0, w) x [0, h). */
static inline void viv_tp_scan_all(struct viv_tp_part *part, uint32_t w, uint32_t h)
{
    part->x_size = part->tile_x = w;
    part->y_size = part->tile_y = h;
    part->window_x_end = (int32_t)w - 1;
    part->window_y_end = (int32_t)h - 1;
}

/* A walk over [0, count) in as many pieces as there are cores to use. */
struct viv_split {
    uint32_t count, parts, start, size, index;
};

static inline struct viv_split viv_split_over(const struct viv_plan *plan, uint32_t count, uint64_t elements)
{
    uint32_t cores = elements < VIV_SPLIT_ELEMENTS ? 1 : plan->chip->tp_cores;
    return (struct viv_split){.count = count, .parts = count < cores ? count : cores};
}

static inline bool viv_split_next(struct viv_split *split)
{
    split->start += split->size;
    if (split->index == split->parts)
        return false;
    split->size = mica_cdiv(split->count - split->start, split->parts - split->index++);
    return true;
}

static inline uint64_t viv_elements_of(struct viv_shape shape)
{
    return (uint64_t)shape.w * shape.h * shape.c;
}

#endif
