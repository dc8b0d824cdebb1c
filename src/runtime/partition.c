/* SPDX-License-Identifier: MIT */
#include "runtime/partition.h"

#include <errno.h>
#include <string.h>

#include "util/checked.h"

/* What is known of a tensor while partitions are cut. */
struct uses {
    uint32_t reads;             /* by operations */
    uint32_t inside;            /* scratch: reads by the partition at hand */
    uint32_t written, accessed; /* phases of the latest operation that writes it, that reads or writes it */
    bool made, listed;          /* scratch: made by the partition at hand; stands in its inputs already */
    bool graph_output;
};

static int uses_create(const struct mica_graph *graph, struct mica_log *log, struct uses **result)
{
    struct uses *uses = mica_new_array(graph->tensor_count, sizeof *uses);
    if (!uses)
        return mica_fail_nomem(log);
    for (uint32_t i = 0; i < graph->output_count; i++)
        uses[graph->outputs[i]].graph_output = true;
    for (uint32_t k = 0; k < graph->op_count; k++) {
        const struct mica_op *op = &graph->ops[k];
        for (uint32_t i = 0; i < op->input_count; i++) {
            if (op->inputs[i] != MICA_NO_TENSOR)
                uses[op->inputs[i]].reads++;
        }
    }
    *result = uses;
    return 0;
}

/* Marks what the partition makes and reads, or takes the marks away again. */
static void mark(const struct mica_partition *partition, struct uses *uses, bool set)
{
    for (uint32_t k = 0; k < partition->op_count; k++) {
        const struct mica_op *op = &partition->graph->ops[partition->ops[k]];
        for (uint32_t i = 0; i < op->output_count; i++) {
            if (op->outputs[i] != MICA_NO_TENSOR)
                uses[op->outputs[i]].made = set;
        }
        for (uint32_t i = 0; i < op->input_count; i++) {
            if (op->inputs[i] == MICA_NO_TENSOR)
                continue;
            struct uses *use = &uses[op->inputs[i]];
            use->inside = set ? use->inside + 1 : 0;
            use->listed = false;
        }
    }
}

/* Writes the border's tensors to the two arrays, or only counts them where those are NULL. */
static void list_border(struct mica_partition *partition, struct uses *uses, uint32_t *inputs, uint32_t *outputs)
{
    const struct mica_graph *graph = partition->graph;
    partition->input_count = partition->output_count = 0;
    for (uint32_t k = 0; k < partition->op_count; k++) {
        const struct mica_op *op = &graph->ops[partition->ops[k]];
        for (uint32_t i = 0; i < op->input_count; i++) {
            int32_t tensor = op->inputs[i];
            if (tensor == MICA_NO_TENSOR || graph->tensors[tensor].data || uses[tensor].made || uses[tensor].listed)
                continue;
            uses[tensor].listed = inputs != NULL;
            if (inputs)
                inputs[partition->input_count] = (uint32_t)tensor;
            partition->input_count++;
        }
        for (uint32_t i = 0; i < op->output_count; i++) {
            int32_t tensor = op->outputs[i];
            if (tensor == MICA_NO_TENSOR || (!uses[tensor].graph_output && uses[tensor].reads == uses[tensor].inside))
                continue;
            if (outputs)
                outputs[partition->output_count] = (uint32_t)tensor;
            partition->output_count++;
        }
    }
}

static int build(const struct mica_graph *graph, const uint32_t *ops, uint32_t op_count, struct uses *uses,
                 struct mica_log *log, struct mica_partition *partition)
{
    *partition = (struct mica_partition){.graph = graph, .op_count = op_count};
    uint32_t *own = mica_new_array(op_count, sizeof *own);
    if (!own)
        return mica_fail_nomem(log);
    memcpy(own, ops, op_count * sizeof *own);
    partition->ops = own;
    mark(partition, uses, true);
    list_border(partition, uses, NULL, NULL); /* an upper bound for inputs: duplicates are counted */
    uint32_t *inputs = mica_new_array(partition->input_count, sizeof *inputs);
    uint32_t *outputs = mica_new_array(partition->output_count, sizeof *outputs);
    if (inputs && outputs)
        list_border(partition, uses, inputs, outputs);
    mark(partition, uses, false);
    partition->inputs = inputs;
    partition->outputs = outputs;
    if (inputs && outputs)
        return 0;
    mica_partition_finish(partition);
    return mica_fail_nomem(log);
}

int mica_partition_create(const struct mica_graph *graph, const uint32_t *ops, uint32_t op_count, struct mica_log *log,
                          struct mica_partition *partition)
{
    struct uses *uses;
    *partition = (struct mica_partition){0};
    for (uint32_t i = 0; i < op_count; i++) {
        if (ops[i] >= graph->op_count)
            return mica_fail(log, -EINVAL, "operation %u does not exist: the graph has %u", ops[i], graph->op_count);
    }
    int error = uses_create(graph, log, &uses);
    if (error)
        return error;
    error = build(graph, ops, op_count, uses, log, partition);
    free(uses);
    return error;
}

void mica_partition_finish(struct mica_partition *partition)
{
    free((void *)partition->ops);
    free((void *)partition->inputs);
    free((void *)partition->outputs);
    *partition = (struct mica_partition){0};
}

/* 1: it does, 0: it doesn't, -ENOMEM. */
static int chip_takes(const struct mica_graph *graph, const struct mica_chip *chip, uint32_t op, struct mica_log *log)
{
    char reason[256] = "";
    if (!chip || graph->ops[op].problem)
        return 0;
    int answer = chip->family->supports(chip, graph, op, reason, sizeof reason);
    if (answer == -ENOMEM)
        return mica_fail_nomem(log);
    if (answer)
        mica_log(log, MICA_LOG_DEBUG, "operation %u (%.40s) is not for the NPU: %s", op, graph->ops[op].type, reason);
    return !answer;
}

int mica_place_all(const struct mica_graph *graph, const struct mica_chip *chip, struct mica_log *log, bool *npu)
{
    for (uint32_t i = 0; i < graph->op_count; i++) {
        int takes = chip_takes(graph, chip, i, log);
        if (takes < 0)
            return takes;
        npu[i] = takes;
    }
    return 0;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* The first phase in which the operation finds its inputs, and overwrites nothing that is still to be read. */
static uint32_t earliest_phase(const struct mica_op *op, const struct uses *uses)
{
    uint32_t phase = 0;
    for (uint32_t i = 0; i < op->input_count; i++) {
        if (op->inputs[i] != MICA_NO_TENSOR)
            phase = larger(phase, uses[op->inputs[i]].written);
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        if (op->outputs[i] != MICA_NO_TENSOR)
            phase = larger(phase, uses[op->outputs[i]].accessed);
    }
    return phase;
}

static void note_phase(const struct mica_op *op, struct uses *uses, uint32_t phase)
{
    for (uint32_t i = 0; i < op->input_count; i++) {
        if (op->inputs[i] != MICA_NO_TENSOR)
            uses[op->inputs[i]].accessed = larger(uses[op->inputs[i]].accessed, phase);
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        if (op->outputs[i] != MICA_NO_TENSOR)
            uses[op->outputs[i]].written = uses[op->outputs[i]].accessed = phase;
    }
}

/*
 * CPU operations get even phases and NPU operations odd ones: the lowest that
 * the operations before them in the graph allow. Phases run in order, so all
 * dependencies hold, and since each phase takes everything that can run by
 * then, no other order that starts on the CPU needs fewer phases, and none that
 * starts on the NPU has fewer partitions. Returns the number of phases.
 */
static uint32_t assign_phases(const struct mica_graph *graph, const bool *npu, struct uses *uses, uint32_t *phases)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < graph->op_count; i++) {
        uint32_t phase = earliest_phase(&graph->ops[i], uses);
        phase += (phase & 1) != npu[i];
        note_phase(&graph->ops[i], uses, phase);
        phases[i] = phase;
        count = larger(count, phase + 1);
    }
    return count;
}

/* Operations of one phase, in the graph's order, to one step. */
static int add_step(const struct mica_graph *graph, struct uses *uses, bool npu, const uint32_t *ops, uint32_t op_count,
                    struct mica_log *log, struct mica_plan *plan)
{
    if (!op_count)
        return 0;
    struct mica_step *step = &plan->steps[plan->step_count];
    int error = build(graph, ops, op_count, uses, log, &step->partition);
    if (error)
        return error;
    step->npu = npu;
    plan->step_count++;
    return 0;
}

/* `starts` has phase_count + 1 zeros, `sorted` room for every operation. */
static int make_steps(const struct mica_graph *graph, struct uses *uses, const uint32_t *phases, uint32_t phase_count,
                      uint32_t *starts, uint32_t *sorted, struct mica_log *log, struct mica_plan *plan)
{
    for (uint32_t i = 0; i < graph->op_count; i++)
        starts[phases[i] + 1]++;
    for (uint32_t i = 0; i < phase_count; i++)
        starts[i + 1] += starts[i];
    for (uint32_t i = 0; i < graph->op_count; i++)
        sorted[starts[phases[i]]++] = i;
    /* Filling moved every start to its end, which is the next one's start. */
    for (uint32_t i = 0, first = 0; i < phase_count; first = starts[i++]) {
        int error = add_step(graph, uses, i & 1, sorted + first, starts[i] - first, log, plan);
        if (error)
            return error;
    }
    return 0;
}

/* `phases` and `sorted` have room for every operation. */
static int plan_phases(const struct mica_graph *graph, const bool *npu, struct uses *uses, uint32_t *phases,
                       uint32_t *sorted, struct mica_log *log, struct mica_plan *plan)
{
    uint32_t count = assign_phases(graph, npu, uses, phases);
    uint32_t *starts = mica_new_array((size_t)count + 1, sizeof *starts);
    plan->steps = mica_new_array(count, sizeof *plan->steps);
    int error = starts && plan->steps ? make_steps(graph, uses, phases, count, starts, sorted, log, plan)
                                      : mica_fail_nomem(log);
    free(starts);
    return error;
}

int mica_plan_create_placed(const struct mica_graph *graph, const bool *npu, struct mica_log *log,
                            struct mica_plan *plan)
{
    struct uses *uses;
    *plan = (struct mica_plan){0};
    int error = uses_create(graph, log, &uses);
    if (error)
        return error;
    uint32_t *phases = mica_new_array(graph->op_count, sizeof *phases);
    uint32_t *sorted = mica_new_array(graph->op_count, sizeof *sorted);
    error = phases && sorted ? plan_phases(graph, npu, uses, phases, sorted, log, plan) : mica_fail_nomem(log);
    free(sorted);
    free(phases);
    free(uses);
    if (error)
        mica_plan_finish(plan);
    return error;
}

int mica_plan_create(const struct mica_graph *graph, const struct mica_chip *chip, struct mica_log *log,
                     struct mica_plan *plan)
{
    *plan = (struct mica_plan){0};
    bool *npu = mica_new_array(graph->op_count, sizeof *npu);
    int error = npu ? mica_place_all(graph, chip, log, npu) : mica_fail_nomem(log);
    if (!error)
        error = mica_plan_create_placed(graph, npu, log, plan);
    free(npu);
    return error;
}

/* Is `ops` a permutation of the graph's operations, and do the steps take all of them? */
static bool layout_complete(const struct mica_graph *graph, const struct mica_plan_layout *layout, bool *seen)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < layout->step_count; i++) {
        if (!layout->op_counts[i])
            return false;
        total += layout->op_counts[i];
    }
    for (uint32_t i = 0; i < graph->op_count; i++) {
        if (layout->ops[i] >= graph->op_count || seen[layout->ops[i]])
            return false;
        seen[layout->ops[i]] = true;
    }
    return total == graph->op_count;
}

static int restore_steps(const struct mica_graph *graph, const struct mica_plan_layout *layout, struct uses *uses,
                         struct mica_log *log, struct mica_plan *plan)
{
    int error = 0;
    const uint32_t *ops = layout->ops;
    for (uint32_t i = 0; !error && i < layout->step_count; i++) {
        error = add_step(graph, uses, layout->npu[i], ops, layout->op_counts[i], log, plan);
        ops += layout->op_counts[i];
    }
    if (error)
        mica_plan_finish(plan);
    return error;
}

int mica_plan_restore(const struct mica_graph *graph, const struct mica_plan_layout *layout, struct mica_log *log,
                      struct mica_plan *plan)
{
    struct uses *uses = NULL;
    *plan = (struct mica_plan){0};
    bool *seen = mica_new_array(graph->op_count, sizeof *seen);
    if (!seen)
        return mica_fail_nomem(log);
    bool complete = layout_complete(graph, layout, seen);
    free(seen);
    if (!complete)
        return mica_fail(log, -EINVAL, "the plan does not have every operation exactly once");
    int error = uses_create(graph, log, &uses);
    if (error)
        return error;
    plan->steps = mica_new_array(layout->step_count, sizeof *plan->steps);
    error = plan->steps ? restore_steps(graph, layout, uses, log, plan) : mica_fail_nomem(log);
    free(uses);
    return error;
}

void mica_plan_finish(struct mica_plan *plan)
{
    for (uint32_t i = 0; i < plan->step_count; i++)
        mica_partition_finish(&plan->steps[i].partition);
    free(plan->steps);
    *plan = (struct mica_plan){0};
}
