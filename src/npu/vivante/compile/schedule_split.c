/* SPDX-License-Identifier: MIT */
/*
 * A tensor that no on-chip memory holds, written by one job and read by
 * depthwise groups: each group needs its own channels only. The writer is cut
 * into jobs for the same channels, each right before its group, so that a part
 * of the tensor at a time can stay on chip. The writer's input is read more often.
 */
#include "npu/vivante/compile/schedule.h"

#include <errno.h>
#include <string.h>

#include "npu/vivante/compile/memory.h"
#include "util/checked.h"

/* Jobs [writer + 1, writer + 1 + groups) read what job `writer` writes. */
struct cut {
    struct viv_plan *plan;
    struct viv_job_memo *memo;
    uint32_t writer, groups;
    enum viv_place place; /* that the largest part fits in */
};

static bool is_convolution(const struct viv_plan *plan, const struct viv_job *job)
{
    return job->is_nn && !job->nn.depthwise && !job->nn.first_pixel && !plan->weights[job->nn.weights]->diagonal &&
           !plan->weights[job->nn.weights]->order && plan->graph->ops[job->op].kind == MICA_OP_CONV_2D;
}

/* Do the groups read the writer's channels in order, each once, and nobody else any? */
static bool find_groups(struct cut *cut)
{
    const struct viv_plan *plan = cut->plan;
    const struct viv_nn *writer = &plan->jobs[cut->writer].nn;
    const struct viv_storage *storage = &plan->storages[writer->out.storage];
    uint64_t plane = (uint64_t)writer->out_x_stride * writer->out_y_stride, channel = 0;
    for (cut->groups = 0; cut->writer + 1 + cut->groups < plan->job_count; cut->groups++) {
        const struct viv_job *job = &plan->jobs[cut->writer + 1 + cut->groups];
        if (!job->is_nn || job->nn.in.storage != writer->out.storage)
            break;
        if (!plan->weights[job->nn.weights]->diagonal || job->nn.in.offset != channel * plane ||
            (uint64_t)job->nn.in_x_stride * job->nn.in_y_stride != plane)
            return false;
        channel += job->nn.in_c;
    }
    return cut->groups > 1 && channel == writer->out_c && channel * plane == storage->size && writer->out.offset == 0 &&
           storage->parent == VIV_NONE && !storage->external && storage->first == cut->writer &&
           storage->last == cut->writer + cut->groups;
}

static bool is_parent(const struct viv_plan *plan, uint32_t storage)
{
    bool found = false;
    for (uint32_t i = 0; i < plan->storage_count; i++)
        found |= plan->storages[i].parent == storage;
    return found;
}

/* A memory for the parts, where none holds the whole. */
static bool find_place(struct cut *cut)
{
    const struct viv_plan *plan = cut->plan;
    const struct viv_nn *writer = &plan->jobs[cut->writer].nn, *group = &plan->jobs[cut->writer + 1].nn;
    uint64_t size = plan->storages[writer->out.storage].size;
    uint64_t part = (uint64_t)writer->out_x_stride * writer->out_y_stride * group->in_c; /* the first is the largest */
    cut->place = VIV_IN_DDR;
    for (enum viv_place place = VIV_IN_AXI_SRAM; place < VIV_PLACES; place++) {
        unsigned window = viv_place_window(plan->chip, place);
        uint64_t room = window < MICA_ON_CHIP_WINDOWS ? plan->chip->on_chip[window].size : 0;
        if (room >= size)
            return false;
        if (room > part + VIV_SRAM_START)
            cut->place = place;
    }
    return cut->place != VIV_IN_DDR;
}

/* The writer's part for a group: `first` is the first of its channels. */
static struct viv_nn part_of(const struct viv_nn *writer, uint32_t first, uint32_t count)
{
    struct viv_nn part = *writer;
    part.first_kernel += first;
    part.out_c = count;
    part.stream_bytes = writer->stream_bytes * count / writer->out_c;
    return part;
}

static uint64_t cycles(const struct cut *cut, struct viv_nn nn)
{
    viv_job_shape(cut->plan->chip, cut->memo, &nn, true);
    return nn.tile.cycles;
}

static bool pays(const struct cut *cut)
{
    const struct viv_plan *plan = cut->plan;
    const struct viv_nn *writer = &plan->jobs[cut->writer].nn;
    double before = (double)cycles(cut, *writer), after = 0;
    for (uint32_t i = 0, first = 0; i < cut->groups; i++) {
        struct viv_nn group = plan->jobs[cut->writer + 1 + i].nn, part = part_of(writer, first, group.in_c);
        before += (double)cycles(cut, group);
        group.in_place = part.out_place = cut->place;
        uint64_t size = (uint64_t)group.in_x_stride * group.in_y_stride * group.in_c;
        if (cut->place == VIV_IN_VIP_SRAM)
            group.sram_bytes = part.sram_bytes = plan->chip->sram_bytes - (uint32_t)size;
        after += (double)cycles(cut, group) + (double)cycles(cut, part) + VIV_EXTRA_JOB_US * plan->chip->clock_mhz;
        first += group.in_c;
    }
    return after - VIV_EXTRA_JOB_US * plan->chip->clock_mhz < before;
}

/* Makes room for the parts behind the writer and deals them out, last first. */
static int apply(const struct cut *cut)
{
    struct viv_plan *plan = cut->plan;
    uint32_t op = plan->jobs[cut->writer].op, end = cut->writer + 1 + cut->groups;
    for (uint32_t i = 1; i < cut->groups; i++)
        if (!viv_plan_job(plan, op, true))
            return -ENOMEM;
    struct viv_job *jobs = plan->jobs, writer = jobs[cut->writer];
    memmove(&jobs[end + cut->groups - 1], &jobs[end], (plan->job_count - cut->groups + 1 - end) * sizeof(*jobs));
    uint32_t first = writer.nn.out_c;
    for (uint32_t i = cut->groups; i-- > 0;) {
        struct viv_job group = jobs[cut->writer + 1 + i], part = writer;
        first -= group.nn.in_c;
        part.nn = part_of(&writer.nn, first, group.nn.in_c);
        part.macs = writer.macs / writer.nn.out_c * group.nn.in_c;
        uint64_t size = (uint64_t)group.nn.in_x_stride * group.nn.in_y_stride * group.nn.in_c;
        if (viv_plan_storage(plan, size, &part.nn.out))
            return -ENOMEM;
        group.nn.in = part.nn.out;
        jobs[cut->writer + 2 * i] = part;
        jobs[cut->writer + 2 * i + 1] = group;
    }
    return 0;
}

int viv_schedule_split(struct viv_plan *plan, struct viv_job_memo *memo)
{
    for (uint32_t i = 0; i < plan->job_count; i++) {
        struct cut cut = {.plan = plan, .memo = memo, .writer = i};
        if (!is_convolution(plan, &plan->jobs[i]) || !find_groups(&cut) || !find_place(&cut) ||
            is_parent(plan, plan->jobs[i].nn.out.storage) || !pays(&cut))
            continue;
        int error = apply(&cut);
        if (error)
            return error;
        viv_memory_lifetimes(plan);
        i += 2 * cut.groups - 1;
    }
    return 0;
}
