/* SPDX-License-Identifier: MIT */
/*
 * What the NN jobs of a model would cost if they were made as mainline makes
 * them, by our timing model, as one JSON object:
 *
 *     mainline MODEL CHIP [--no-image-cache]
 *
 * One job an operation, every tensor in device memory, tiles and caches by
 * mainline's rules (specification, sections 9.1 and 9.2; on i.MX 8M Plus it
 * uses no caches). The shapes of the jobs are taken from our own programs;
 * groups of depthwise channels are put together again. Stream sizes are those
 * of our encoder where its jobs are the same, else estimates: this prices
 * mainline's schedules, not its coefficient coder.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "npu/vivante/compile/coef_v7.h"
#include "npu/vivante/hw/fields.h"
#include "npu/vivante/hw/timing.h"
#include "program.h"
#include "util/checked.h"

#define SRAM_START 0x800u
#define LANES 64u
#define V8_TILE_ROWS 4u

/* An operation's job; `jobs` 0: it has none, else as many as ours. */
struct whole {
    struct viv_nn_job job;
    uint32_t kernels, jobs;
};

struct report {
    const struct viv_chip *chip;
    bool no_image_cache;
    struct whole *ops;
};

static bool begin(void *user, const struct mica_graph *graph)
{
    struct report *report = user;
    report->ops = mica_new_array(graph->op_count, sizeof *report->ops);
    return report->ops;
}

/* Our jobs of an operation, as many as there are, add up to one. */
static bool add_job(void *user, const struct bench_job *job, struct mica_log *log)
{
    struct report *report = user;
    const uint32_t *words = job->words;
    struct whole *whole = &report->ops[job->op];
    uint32_t kernels = viv_nn_get(words, VIV_NN_OUT_IMAGE_Z_SIZE);
    struct viv_nn_job one = {
        .in_w = viv_nn_get(words, VIV_NN_IN_IMAGE_X_SIZE),
        .in_h = viv_nn_get(words, VIV_NN_IN_IMAGE_Y_SIZE),
        .in_channels = viv_nn_get(words, VIV_NN_KERNEL_Z_SIZE),
        .x_offset = viv_field_get_signed(words, &viv_nn_fields[VIV_NN_IN_IMAGE_X_OFFSET], report->chip->offset_bits),
        .y_offset = viv_field_get_signed(words, &viv_nn_fields[VIV_NN_IN_IMAGE_Y_OFFSET], report->chip->offset_bits),
        .kernel_w = viv_nn_get(words, VIV_NN_LAYER_TYPE) ? 1 : viv_nn_get(words, VIV_NN_KERNEL_X_SIZE),
        .kernel_h = viv_nn_get(words, VIV_NN_KERNEL_Y_SIZE),
        .out_w = viv_nn_get(words, VIV_NN_OUT_IMAGE_X_SIZE),
        .out_h = viv_nn_get(words, VIV_NN_OUT_IMAGE_Y_SIZE),
        .first_pixel_pooling = viv_nn_get(words, VIV_NN_POOLING) == 3,
        .depthwise = viv_nn_get(words, VIV_NN_DEPTHWISE),
        .density = 1,
    };
    if (!whole->jobs++)
        whole->job = one;
    else if (one.in_channels > whole->job.in_channels)
        whole->job.in_channels = one.in_channels;
    whole->kernels += kernels;
    whole->job.coefficient_bytes += job->stored;
    return true;
}

/* ---- mainline's rules ----------------------------------------------------------- */

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t interleave_of(const struct viv_chip *chip, uint32_t tile_x, uint32_t kernel_h)
{
    bool v8 = chip->bias_place == VIV_BIAS_TABLE;
    uint32_t reach = kernel_h - 1 + tile_x, base = tile_x > 32 ? 1 : tile_x > 16 ? 2 : tile_x > 8 || v8 ? 4 : 8;
    if (reach > 36)
        return 1;
    if (v8)
        return reach > 18 ? least(base, 2) : base;
    return reach > 18 ? least(base, 4) : least(base, 2);
}

static uint32_t most_kernels(const struct viv_chip *chip, const struct viv_nn_job *job, uint32_t interleave,
                             uint32_t stride)
{
    uint32_t depth = chip->accumulator_depth, most;
    if (chip->bias_place != VIV_BIAS_TABLE) {
        most = depth * interleave / job->tile_y;
        most = job->kernel_w == 1 ? least(most, depth / 3) : most;
    } else {
        uint32_t vectors = mica_cdiv(mica_cdiv(job->tile_x * job->tile_y, stride), LANES) * stride;
        most = depth / (job->kernel_w == 1 ? mica_cdiv(job->tile_y, interleave) : vectors);
        most = least(most, depth * 6 / 9);
    }
    most = least(least(most, mica_cdiv(job->out_channels, chip->nn_cores)), 127);
    return most ? most : 1;
}

/* Additions always have 64 columns. */
static void tile(const struct viv_chip *chip, struct viv_nn_job *job, uint32_t stride, bool addition)
{
    bool v8 = chip->bias_place == VIV_BIAS_TABLE;
    job->tile_x = addition ? LANES : least(job->out_w, LANES);
    uint32_t interleave = interleave_of(chip, job->tile_x, job->kernel_h), lines = chip->input_depth * interleave;
    job->interleave = interleave;
    uint32_t rows = lines >= job->kernel_h ? lines - job->kernel_h + 1 : 1;
    rows = least(least(rows, interleave * chip->accumulator_depth), job->out_h);
    rows = v8 ? least(rows, V8_TILE_ROWS) : rows;
    rows -= stride > 1 && rows % 2 && rows > 1;
    job->tile_y = rows;
    uint32_t most = most_kernels(chip, job, interleave, stride), cores = chip->nn_cores;
    uint32_t blocks = mica_cdiv(job->out_channels, cores * most);
    job->kernels_per_core = mica_cdiv(job->out_channels, blocks * cores);
}

/* Partial caching of kernels is counted as none: what it saves is not known. */
static void cache(const struct report *report, struct viv_nn_job *job)
{
    if (report->chip->bias_place == VIV_BIAS_TABLE)
        return;
    uint32_t sram = report->chip->sram_bytes;
    uint64_t plane = (uint64_t)(job->tile_x + job->kernel_w - 1) * (job->tile_y + job->kernel_w - 1);
    uint64_t image = mica_align(mica_align(plane, 16) * job->in_channels, 128);
    if (mica_cdiv(job->out_channels, report->chip->nn_cores) <= job->kernels_per_core || report->no_image_cache)
        image = 0;
    job->kernel_cached = SRAM_START + job->coefficient_bytes + image < sram;
    if (!job->kernel_cached && (SRAM_START + job->coefficient_bytes >= sram || image > sram))
        image = 0;
    job->image_cached = image > 0;
}

/* The operation's own shape where ours is folded: 1x1 jobs on all pixels of a plane. */
static void unfold(const struct mica_graph *graph, uint32_t op, struct viv_nn_job *job)
{
    const struct mica_tensor *out = &graph->tensors[graph->ops[op].outputs[0]];
    if (graph->ops[op].kind != MICA_OP_CONV_2D || job->kernel_w * job->kernel_h != 1 || out->rank != 4)
        return;
    uint32_t size = job->first_pixel_pooling ? 2 : 1;
    job->in_w = job->out_w = (uint32_t)out->dims[2] * size;
    job->in_h = job->out_h = (uint32_t)out->dims[1] * size;
}

/* One dense job of all groups of channels; stride 2 makes four channels of one. */
static void expand(struct whole *whole)
{
    struct viv_nn_job *job = &whole->job;
    uint32_t group = mica_cdiv(whole->kernels, whole->jobs), phases = job->in_channels / group >= 4 ? 4 : 1;
    job->in_channels = whole->kernels * phases;
    job->density = 1.0 / whole->kernels;
    job->coefficient_bytes =
        viv_coef_v7_estimate(&viv_a311d, whole->kernels, job->in_channels, job->kernel_w * job->kernel_h, job->density);
}

static double price(const struct report *report, const struct mica_graph *graph, uint32_t op, struct whole *whole)
{
    struct viv_nn_job *job = &whole->job;
    enum mica_op_kind kind = graph->ops[op].kind;
    bool expanded = kind == MICA_OP_DEPTHWISE_CONV_2D && !job->depthwise;
    uint32_t stride =
        kind == MICA_OP_CONV_2D || kind == MICA_OP_DEPTHWISE_CONV_2D ? (uint32_t)graph->ops[op].window.stride_x : 1;
    job->out_channels = whole->kernels;
    if (expanded)
        expand(whole);
    unfold(graph, op, job);
    job->in_row_bytes = job->in_w;
    job->in_plane_bytes = job->in_w * job->in_h;
    tile(report->chip, job, stride, kind == MICA_OP_ADD);
    cache(report, job);
    return (double)viv_nn_cost(report->chip, &viv_default_memory, job).cycles / report->chip->clock_mhz;
}

/* What mainline's user space takes of what Mica takes: the other operations it leaves to the CPU. */
static bool taken(enum mica_op_kind kind)
{
    return kind == MICA_OP_CONV_2D || kind == MICA_OP_DEPTHWISE_CONV_2D || kind == MICA_OP_FULLY_CONNECTED ||
           kind == MICA_OP_ADD || kind == MICA_OP_CONCATENATION || kind == MICA_OP_PAD || kind == MICA_OP_RESHAPE;
}

static void print(void *user, const struct mica_graph *graph)
{
    struct report *report = user;
    double sum = 0;
    const char *separator = "";
    printf("{\"chip\": \"%s\", \"jobs\": [", report->chip->name);
    for (uint32_t i = 0; i < graph->op_count; i++) {
        if (!report->ops[i].jobs || !taken(graph->ops[i].kind))
            continue;
        double us = price(report, graph, i, &report->ops[i]);
        const struct viv_nn_job *job = &report->ops[i].job;
        printf("%s\n  {\"operation\": %u, \"type\": \"%s\", \"us\": %.3f, \"tile_x\": %u, \"tile_y\": %u}", separator,
               i, graph->ops[i].type, us, job->tile_x, job->tile_y);
        separator = ",";
        sum += us;
    }
    printf("], \"nn_ms\": %.4f}\n", sum / 1e3);
}

int main(int argc, char **argv)
{
    struct report report = {.no_image_cache = argc > 3 && !strcmp(argv[3], "--no-image-cache")};
    struct bench_visitor visitor = {.begin = begin, .job = add_job, .end = print, .user = &report};
    visitor.chip = argc > 2 ? bench_chip(argv[2]) : NULL;
    if (!visitor.chip) {
        fprintf(stderr, "usage: mainline MODEL a311d|s905d3|imx8mp [--no-image-cache]\n");
        return 2;
    }
    report.chip = visitor.chip->parameters;
    bool done = bench_visit(argv[1], &visitor);
    free(report.ops);
    return !done;
}
