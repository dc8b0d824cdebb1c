/* SPDX-License-Identifier: MIT */
#include "runtime/tensor_memory.h"

#include <errno.h>
#include <string.h>

#include "util/checked.h"

#define ALIGNMENT 64 /* a cache line, and more than any vector load asks for */
#define MAX_TOTAL ((size_t)1 << 30)
#define NOWHERE SIZE_MAX
#define MAX_RANGES 256 /* several times what real models have alive at once; keeps planning linear for others */

/* Time counts operations of CPU steps and whole NPU steps, from 1. */
struct life {
    uint32_t first, last; /* written at, last read at; first 0: needs no memory */
    size_t offset;        /* NOWHERE: not placed */
};

/* Memory in use up to a time: one tensor's, or that of neighbours which are too many to tell apart. */
struct range {
    size_t start, end;
    uint32_t last;
};

struct planner {
    const struct mica_graph *graph;
    struct life *lives;
    uint32_t *made; /* tensors by the time they are written */
    uint32_t made_count, range_count;
    struct range ranges[MAX_RANGES]; /* in use now, by address */
    size_t start;                    /* of the shared part; what lives for good is below */
    size_t total;
};

static size_t padded_size(const struct mica_graph *graph, uint32_t tensor)
{
    return (size_t)mica_align(graph->tensors[tensor].bytes, ALIGNMENT);
}

static void note_write(struct planner *planner, int32_t tensor, uint32_t now)
{
    if (tensor == MICA_NO_TENSOR || planner->graph->tensors[tensor].data)
        return;
    struct life *life = &planner->lives[tensor];
    if (life->first || life->offset != NOWHERE)
        return;
    *life = (struct life){now, now, NOWHERE};
    planner->made[planner->made_count++] = (uint32_t)tensor;
}

static void note_read(struct planner *planner, int32_t tensor, uint32_t now)
{
    if (tensor != MICA_NO_TENSOR && planner->lives[tensor].first)
        planner->lives[tensor].last = now;
}

static void note_cpu_step(struct planner *planner, const struct mica_partition *step, uint32_t *now)
{
    for (uint32_t k = 0; k < step->op_count; k++, ++*now) {
        const struct mica_op *op = &planner->graph->ops[step->ops[k]];
        for (uint32_t i = 0; i < op->output_count; i++)
            note_write(planner, op->outputs[i], *now);
        for (uint32_t i = 0; i < op->input_count; i++)
            note_read(planner, op->inputs[i], *now);
    }
}

static void note_npu_step(struct planner *planner, const struct mica_partition *step, uint32_t *now)
{
    for (uint32_t i = 0; i < step->output_count; i++)
        note_write(planner, (int32_t)step->outputs[i], *now);
    for (uint32_t i = 0; i < step->input_count; i++)
        note_read(planner, (int32_t)step->inputs[i], *now);
    ++*now;
}

/* Inputs and outputs lie one behind the other, ahead of all that is shared. False: too large. */
static bool place_for_good(struct planner *planner, const int32_t *tensors, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t tensor = (uint32_t)tensors[i];
        if (planner->graph->tensors[tensor].data || planner->lives[tensor].offset != NOWHERE)
            continue;
        planner->lives[tensor].offset = planner->start;
        planner->start += padded_size(planner->graph, tensor);
        if (planner->start > MAX_TOTAL)
            return false;
    }
    planner->total = planner->start;
    return true;
}

static void forget_dead(struct planner *planner, uint32_t now)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < planner->range_count; i++) {
        if (planner->ranges[i].last >= now)
            planner->ranges[kept++] = planner->ranges[i];
    }
    planner->range_count = kept;
}

/* Makes room by joining neighbours in pairs: what is between them is lost until both are dead. */
static void join_ranges(struct planner *planner)
{
    for (uint32_t i = 0; i < MAX_RANGES / 2; i++) {
        const struct range *low = &planner->ranges[2 * i], *high = low + 1;
        planner->ranges[i] = (struct range){low->start, high->end, low->last > high->last ? low->last : high->last};
    }
    planner->range_count = MAX_RANGES / 2;
}

/* Puts the tensor into the first gap that takes it. False: too large. */
static bool place(struct planner *planner, uint32_t tensor)
{
    size_t size = padded_size(planner->graph, tensor), offset = planner->start;
    uint32_t at = 0;
    if (planner->range_count == MAX_RANGES)
        join_ranges(planner);
    for (; at < planner->range_count && planner->ranges[at].start - offset < size; at++)
        offset = planner->ranges[at].end;
    struct range *place = &planner->ranges[at];
    memmove(place + 1, place, (planner->range_count - at) * sizeof *place);
    planner->range_count++;
    *place = (struct range){offset, offset + size, planner->lives[tensor].last};
    planner->lives[tensor].offset = offset;
    if (offset + size > planner->total)
        planner->total = offset + size;
    return planner->total <= MAX_TOTAL;
}

static bool place_all(struct planner *planner)
{
    for (uint32_t i = 0; i < planner->made_count; i++) {
        uint32_t tensor = planner->made[i];
        forget_dead(planner, planner->lives[tensor].first);
        if (!place(planner, tensor))
            return false;
    }
    return true;
}

static int plan_offsets(struct planner *planner, const struct mica_plan *plan, struct mica_log *log)
{
    const struct mica_graph *graph = planner->graph;
    for (uint32_t i = 0; i < graph->tensor_count; i++)
        planner->lives[i].offset = NOWHERE;
    bool fits = place_for_good(planner, graph->inputs, graph->input_count) &&
                place_for_good(planner, graph->outputs, graph->output_count);
    uint32_t now = 1;
    for (uint32_t i = 0; i < plan->step_count; i++)
        (plan->steps[i].npu ? note_npu_step : note_cpu_step)(planner, &plan->steps[i].partition, &now);
    if (fits && place_all(planner))
        return 0;
    return mica_fail(log, -EFBIG, "the model's tensors need more than %zu MiB at once", MAX_TOTAL >> 20);
}

static int allocate(const struct planner *planner, struct mica_log *log, struct mica_tensor_memory *memory)
{
    const struct mica_graph *graph = planner->graph;
    memory->size = planner->total;
    memory->allocation = calloc(1, planner->total + ALIGNMENT);
    memory->data = mica_new_array(graph->tensor_count, sizeof *memory->data);
    if (!memory->allocation || !memory->data)
        return mica_fail_nomem(log);
    uint8_t *base = (uint8_t *)mica_align((uintptr_t)memory->allocation, ALIGNMENT);
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        if (graph->tensors[i].data)
            memory->data[i] = (void *)graph->tensors[i].data;
        else if (planner->lives[i].offset != NOWHERE)
            memory->data[i] = base + planner->lives[i].offset;
    }
    return 0;
}

int mica_tensor_memory_create(const struct mica_graph *graph, const struct mica_plan *plan, struct mica_log *log,
                              struct mica_tensor_memory *memory)
{
    *memory = (struct mica_tensor_memory){0};
    struct planner planner = {
        .graph = graph,
        .lives = mica_new_array(graph->tensor_count, sizeof *planner.lives),
        .made = mica_new_array(graph->tensor_count, sizeof *planner.made),
    };
    int error = planner.lives && planner.made ? 0 : mica_fail_nomem(log);
    if (!error)
        error = plan_offsets(&planner, plan, log);
    if (!error)
        error = allocate(&planner, log, memory);
    free(planner.lives);
    free(planner.made);
    if (error)
        mica_tensor_memory_finish(memory);
    return error;
}

void mica_tensor_memory_finish(struct mica_tensor_memory *memory)
{
    free(memory->allocation);
    free(memory->data);
    *memory = (struct mica_tensor_memory){0};
}
