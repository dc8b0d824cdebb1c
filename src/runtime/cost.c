/* SPDX-License-Identifier: MIT */
#include "runtime/cost.h"

#include <stdio.h>
#include <string.h>

#include "util/checked.h"

/*
 * Beside MACs, measured on the computer of docs/bench.md, one thread: operations that weigh nothing take a byte in 80
 * (ADD) to 3600 (MEAN) a microsecond; conversions at borders 2000 to 20000. They go with the CPU's rate.
 */
#define CPU_BYTES_PER_MAC (500.0 / MICA_CPU_MACS_PER_US)
#define BORDER_BYTES_PER_MAC (2500.0 / MICA_CPU_MACS_PER_US)
/* What an operation costs the CPU whatever its size. */
#define CPU_OPERATION_US 1.0
/* Each makes the plan better; the first ones by nearly all that can be gained. */
#define MAX_ROUNDS 16

struct model {
    const struct mica_graph *graph;
    const struct mica_chip *chip;
    const struct mica_compile_options *options;
    double cpu_macs;
    double *npu_us; /* per operation, of the NPU; negative: not asked for yet */
    int *failed;    /* the first error of a family that was asked */
};

static double cpu_us(const struct model *model, uint32_t index)
{
    const struct mica_op *op = &model->graph->ops[index];
    double bytes = 0;
    if (op->problem)
        return 0;
    for (uint32_t i = 0; i < op->output_count; i++)
        bytes += mica_op_output(model->graph, op, i) ? (double)mica_op_output(model->graph, op, i)->bytes : 0;
    return CPU_OPERATION_US + (double)mica_op_macs(model->graph, op) / model->cpu_macs +
           bytes / (CPU_BYTES_PER_MAC * model->cpu_macs);
}

static double copy_us(const struct model *model, uint32_t tensor)
{
    return (double)model->graph->tensors[tensor].bytes / (BORDER_BYTES_PER_MAC * model->cpu_macs);
}

static double ask_family(const struct model *model, uint32_t op)
{
    const struct mica_npu_family *family = model->chip->family;
    struct mica_way way = {.us = 0};
    int error = family->describe(model->chip, model->graph, op, model->options, &way);
    if (error && !*model->failed)
        *model->failed = error;
    return error || way.us < 0 ? 0 : way.us;
}

static double operation_us(const struct model *model, uint32_t op)
{
    if (model->npu_us[op] < 0)
        model->npu_us[op] = ask_family(model, op);
    return model->npu_us[op];
}

static bool model_create(const struct mica_graph *graph, const struct mica_chip *chip,
                         const struct mica_compile_options *options, int *failed, struct model *model)
{
    *failed = 0;
    *model = (struct model){graph, chip, options, options->cost_cpu_macs, NULL, failed};
    model->npu_us = mica_new_array(graph->op_count, sizeof *model->npu_us);
    for (uint32_t i = 0; model->npu_us && i < graph->op_count; i++)
        model->npu_us[i] = -1;
    return model->npu_us != NULL;
}

static double step_us(const struct model *model, const struct mica_step *step)
{
    const struct mica_partition *partition = &step->partition;
    double sum = step->npu ? model->chip->submit_us : 0;
    for (uint32_t i = 0; i < partition->op_count; i++)
        sum += step->npu ? operation_us(model, partition->ops[i]) : cpu_us(model, partition->ops[i]);
    for (uint32_t i = 0; step->npu && i < partition->input_count; i++)
        sum += copy_us(model, partition->inputs[i]);
    for (uint32_t i = 0; step->npu && i < partition->output_count; i++)
        sum += copy_us(model, partition->outputs[i]);
    return sum;
}

static double plan_us(const struct model *model, const struct mica_plan *plan)
{
    double sum = 0;
    for (uint32_t i = 0; i < plan->step_count; i++)
        sum += step_us(model, &plan->steps[i]);
    return sum;
}

double mica_plan_us(const struct mica_plan *plan, const struct mica_graph *graph, const struct mica_chip *chip,
                    const struct mica_compile_options *options)
{
    struct model model;
    int failed;
    double us = model_create(graph, chip, options, &failed, &model) ? plan_us(&model, plan) : -1;
    free(model.npu_us);
    return failed ? -1 : us;
}

/* ---- connected parts of a partition ------------------------------------------ */

#define NO_OWNER UINT32_MAX

/* Scratch of a search, reused for every partition. */
struct parts {
    uint32_t *parent;           /* per operation: union-find */
    uint32_t *owner;            /* per tensor: an operation of the partition that touches it, or NO_OWNER */
    struct mica_choice *totals; /* per operation, of those that stand for their part */
    bool *bound;                /* likewise: something of the part can run on the NPU only */
};

static void parts_finish(struct parts *parts)
{
    free(parts->parent);
    free(parts->owner);
    free(parts->totals);
    free(parts->bound);
}

static int parts_create(const struct mica_graph *graph, struct mica_log *log, struct parts *parts)
{
    *parts = (struct parts){
        .parent = mica_new_array(graph->op_count, sizeof *parts->parent),
        .owner = mica_new_array(graph->tensor_count, sizeof *parts->owner),
        .totals = mica_new_array(graph->op_count, sizeof *parts->totals),
        .bound = mica_new_array(graph->op_count, sizeof *parts->bound),
    };
    if (parts->parent && parts->owner && parts->totals && parts->bound)
        return 0;
    parts_finish(parts);
    return mica_fail_nomem(log);
}

static uint32_t find(const struct parts *parts, uint32_t op)
{
    while (parts->parent[op] != op) {
        parts->parent[op] = parts->parent[parts->parent[op]];
        op = parts->parent[op];
    }
    return op;
}

/* Operations that touch the same computed tensor belong together: its copy at the border is for all of them. */
static void touch(const struct mica_graph *graph, struct parts *parts, uint32_t op, const int32_t *tensors,
                  uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (tensors[i] == MICA_NO_TENSOR || graph->tensors[tensors[i]].data)
            continue;
        uint32_t *owner = &parts->owner[tensors[i]];
        if (*owner == NO_OWNER)
            *owner = op;
        else
            parts->parent[find(parts, op)] = find(parts, *owner);
    }
}

static void forget(struct parts *parts, const int32_t *tensors, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (tensors[i] != MICA_NO_TENSOR)
            parts->owner[tensors[i]] = NO_OWNER;
    }
}

static void connect(const struct mica_partition *partition, struct parts *parts)
{
    const struct mica_graph *graph = partition->graph;
    for (uint32_t i = 0; i < partition->op_count; i++) {
        uint32_t op = partition->ops[i];
        parts->parent[op] = op;
        parts->totals[op] = (struct mica_choice){0};
        parts->bound[op] = false;
        forget(parts, graph->ops[op].inputs, graph->ops[op].input_count);
        forget(parts, graph->ops[op].outputs, graph->ops[op].output_count);
    }
    for (uint32_t i = 0; i < partition->op_count; i++) {
        const struct mica_op *op = &graph->ops[partition->ops[i]];
        touch(graph, parts, partition->ops[i], op->inputs, op->input_count);
        touch(graph, parts, partition->ops[i], op->outputs, op->output_count);
    }
}

static void add_border(const struct model *model, struct parts *parts, const uint32_t *tensors, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct mica_choice *total = &parts->totals[find(parts, parts->owner[tensors[i]])];
        total->border_us += copy_us(model, tensors[i]);
        total->npu_us += copy_us(model, tensors[i]);
    }
}

static void add_up(const struct model *model, const struct mica_partition *partition, const bool *cpu_can,
                   struct parts *parts)
{
    for (uint32_t i = 0; i < partition->op_count; i++) {
        uint32_t op = partition->ops[i], part = find(parts, op);
        parts->totals[part].npu_us += operation_us(model, op);
        parts->totals[part].cpu_us += cpu_us(model, op);
        parts->bound[part] |= cpu_can && !cpu_can[op];
    }
    add_border(model, parts, partition->inputs, partition->input_count);
    add_border(model, parts, partition->outputs, partition->output_count);
}

static bool loses(const struct mica_choice *choice)
{
    return choice->npu_us > choice->cpu_us;
}

/* What stays of the partition when the parts that lose are gone, as one part with the submission that it needs. */
static struct mica_choice rest_of(const struct model *model, const struct mica_partition *partition,
                                  const struct parts *parts, bool *bound)
{
    struct mica_choice rest = {.npu_us = model->chip->submit_us};
    *bound = false;
    for (uint32_t i = 0; i < partition->op_count; i++) {
        uint32_t op = partition->ops[i];
        const struct mica_choice *total = &parts->totals[op];
        bool stays = parts->bound[op] || !loses(total);
        if (parts->parent[op] != op || !stays)
            continue;
        rest.npu_us += total->npu_us;
        rest.border_us += total->border_us;
        rest.cpu_us += total->cpu_us;
        *bound |= parts->bound[op];
    }
    return rest;
}

/* Takes what the CPU looks faster at off the NPU. Returns whether anything was. */
static bool choose(const struct model *model, const struct mica_partition *partition, const bool *cpu_can,
                   struct parts *parts, bool *npu, struct mica_choice *choices)
{
    bool changed = false, bound;
    connect(partition, parts);
    add_up(model, partition, cpu_can, parts);
    struct mica_choice rest = rest_of(model, partition, parts, &bound);
    bool none_stays = loses(&rest) && !bound;
    for (uint32_t i = 0; i < partition->op_count; i++) {
        uint32_t op = partition->ops[i], part = find(parts, op);
        bool leaves = loses(&parts->totals[part]) && !parts->bound[part];
        if (!leaves && !none_stays)
            continue;
        npu[op] = false;
        choices[op] = leaves ? parts->totals[part] : rest;
        changed = true;
    }
    return changed;
}

/* ---- rounds ------------------------------------------------------------------- */

/* The best placement so far; what leaves the NPU moves other operations to other partitions, so one may get worse. */
struct best {
    double us;
    bool *npu;
    struct mica_choice *choices;
};

static void keep(const struct model *model, double us, const bool *npu, const struct mica_choice *choices,
                 struct best *best)
{
    best->us = us;
    memcpy(best->npu, npu, model->graph->op_count * sizeof *npu);
    memcpy(best->choices, choices, model->graph->op_count * sizeof *choices);
}

/* One round: plans, keeps the plan if it is the best yet, and improves the placement. */
static int improve(const struct model *model, const bool *cpu_can, struct mica_log *log, struct parts *parts, bool *npu,
                   struct mica_choice *choices, struct best *best, bool *changed)
{
    struct mica_plan plan;
    int error = mica_plan_create_placed(model->graph, npu, log, &plan);
    if (error)
        return error;
    double us = plan_us(model, &plan);
    if (best->us < 0 || us < best->us)
        keep(model, us, npu, choices, best);
    *changed = false;
    for (uint32_t i = 0; i < plan.step_count; i++) {
        if (plan.steps[i].npu)
            *changed |= choose(model, &plan.steps[i].partition, cpu_can, parts, npu, choices);
    }
    mica_plan_finish(&plan);
    return 0;
}

static int search(const struct model *model, const bool *cpu_can, struct mica_log *log, bool *npu,
                  struct mica_choice *choices, struct best *best)
{
    struct parts parts;
    bool changed = true;
    int error = parts_create(model->graph, log, &parts);
    if (error)
        return error;
    for (int round = 0; !error && changed && round < MAX_ROUNDS; round++)
        error = improve(model, cpu_can, log, &parts, npu, choices, best, &changed);
    parts_finish(&parts);
    return error;
}

int mica_place_by_cost(const struct mica_graph *graph, const struct mica_chip *chip,
                       const struct mica_compile_options *options, const bool *cpu_can, struct mica_log *log, bool *npu,
                       struct mica_choice *choices)
{
    struct model model;
    int failed, error = mica_place_all(graph, chip, log, npu);
    if (choices)
        memset(choices, 0, graph->op_count * sizeof *choices);
    if (error || !chip || !options->cost_cpu_macs || !chip->family->describe)
        return error;
    if (!model_create(graph, chip, options, &failed, &model))
        return mica_fail_nomem(log);
    struct best best = {-1, mica_new_array(graph->op_count, sizeof *best.npu),
                        mica_new_array(graph->op_count, sizeof *best.choices)};
    struct mica_choice *tried = mica_new_array(graph->op_count, sizeof *tried);
    error = best.npu && best.choices && tried ? search(&model, cpu_can, log, npu, tried, &best) : mica_fail_nomem(log);
    if (!error && failed)
        error = mica_fail(log, failed, "the cost model can't price what the NPU takes");
    if (!error) {
        memcpy(npu, best.npu, graph->op_count * sizeof *npu);
        if (choices)
            memcpy(choices, best.choices, graph->op_count * sizeof *choices);
    }
    free(tried);
    free(best.choices);
    free(best.npu);
    free(model.npu_us);
    return error;
}

bool mica_choice_reason(const struct mica_choice *choice, char *reason, size_t size)
{
    if (choice->npu_us <= 0)
        return false;
    snprintf(reason, size,
             "the NPU could, but the cost model has this part of the graph at %.0f us there (%.0f us of it copies) and "
             "%.0f us on the CPU",
             choice->npu_us, choice->border_us, choice->cpu_us);
    return true;
}
