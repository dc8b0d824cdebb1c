/* SPDX-License-Identifier: MIT */
/*
 * How small the coefficients of a compiled model are, as one JSON object:
 *
 *     coefficients MODEL CHIP [--size] [--no-floor]
 *
 * Each buffer is decoded by the simulator's decoder, and what comes out is
 * measured again for the format's floor. Nothing is believed of the compiler
 * but the bytes it stored.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "floor.h"
#include "program.h"
#include "util/checked.h"

/* What the jobs of one operation take together. */
struct layer {
    uint64_t bytes, jobs;
    struct bench_floor floor;
};

struct report {
    const struct mica_chip *chip;
    struct mica_threads *threads;
    bool floor;
    struct layer *layers; /* per operation */
};

static const struct mica_tensor *weights_of(const struct mica_graph *graph, const struct mica_op *op)
{
    bool weighted =
        op->kind == MICA_OP_CONV_2D || op->kind == MICA_OP_DEPTHWISE_CONV_2D || op->kind == MICA_OP_FULLY_CONNECTED;
    const struct mica_tensor *weights = weighted ? mica_op_input(graph, op, 1) : NULL;
    return weights && weights->data && mica_type_size(weights->type) == 1 ? weights : NULL;
}

static bool begin(void *user, const struct mica_graph *graph)
{
    struct report *report = user;
    report->layers = mica_new_array(graph->op_count, sizeof *report->layers);
    return report->layers;
}

static bool add_job(void *user, const struct bench_job *job, struct mica_log *log)
{
    struct report *report = user;
    struct layer *layer = &report->layers[job->op];
    struct bench_floor floor;
    layer->jobs++;
    layer->bytes += job->stored;
    if (!report->floor)
        return true;
    if (!bench_floor(report->chip->parameters, job->words, job->coefficients, job->stored, report->threads, log,
                     &floor))
        return false;
    layer->floor.format += floor.format;
    layer->floor.padded += floor.padded;
    return true;
}

/* An addition's weights are the compiler's own: it has no raw ones. */
static void print_layer(const struct mica_graph *graph, uint32_t op, const struct layer *layer, bool first)
{
    const struct mica_tensor *weights = weights_of(graph, &graph->ops[op]);
    uint64_t raw = weights ? weights->bytes : 0;
    printf("%s\n  {\"operation\": %u, \"type\": \"%s\", \"shape\": \"", first ? "" : ",", op, graph->ops[op].type);
    for (uint32_t i = 0; weights && i < weights->rank; i++)
        printf("%s%d", i ? "x" : "", weights->dims[i]);
    printf("\", \"raw\": %" PRIu64 ", \"entropy\": %.0f, \"jobs\": %" PRIu64 ", \"bytes\": %" PRIu64, raw,
           weights ? bench_entropy(weights->data, raw) : 0, layer->jobs, layer->bytes);
    printf(", \"floor\": %" PRIu64 ", \"padded_floor\": %" PRIu64 "}", layer->floor.format, layer->floor.padded);
}

static void print(void *user, const struct mica_graph *graph)
{
    const struct report *report = user;
    bool first = true;
    printf("{\"chip\": \"%s\", \"layers\": [", report->chip->name);
    for (uint32_t i = 0; i < graph->op_count; i++)
        if (report->layers[i].jobs) {
            print_layer(graph, i, &report->layers[i], first);
            first = false;
        }
    printf("]}\n");
}

int main(int argc, char **argv)
{
    struct report report = {.chip = argc > 2 ? bench_chip(argv[2]) : NULL, .floor = true};
    struct bench_visitor visitor = {.begin = begin, .job = add_job, .end = print, .user = &report};
    for (int i = 3; i < argc; i++) {
        visitor.options.optimize_size |= !strcmp(argv[i], "--size");
        report.floor &= strcmp(argv[i], "--no-floor") != 0;
    }
    if (!report.chip) {
        fprintf(stderr, "usage: coefficients MODEL a311d|s905d3|imx8mp [--size] [--no-floor]\n");
        return 2;
    }
    visitor.chip = report.chip;
    visitor.threads = report.threads = mica_threads_create(mica_threads_default());
    bool done = bench_visit(argv[1], &visitor);
    mica_threads_destroy(report.threads);
    free(report.layers);
    return !done;
}
