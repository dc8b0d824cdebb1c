/* SPDX-License-Identifier: MIT */
/*
 * Coefficient bytes of whole models on the Huffman chips, beside what the
 * bytes' entropy and the format's floor say:
 *
 *   huffman_report [--layers] [--no-floor] [--exhaustive] [--groups N] MODEL.tflite...
 *
 * Every buffer is decoded and compared. Convolutions of stride 2 are counted
 * as space-to-depth ones; depthwise ones are the chip's own, or expanded in
 * groups of N channels (default: 16) where it has none. Additions and
 * per-channel quantized operations are left out.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "frontend/tflite/reader.h"
#include "graph/graph.h"
#include "support.h"
#include "util/checked.h"

struct options {
    bool layers, no_floor;
    enum viv_huffman_effort effort;
    uint32_t groups;
};

struct totals {
    uint64_t weights, bytes, floor, padded, jobs;
    double entropy, encode_ms, decode_ms;
    uint32_t layers, skipped;
};

static double now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

/* One operation's weights, in whatever order the model has them. */
struct layer {
    const struct mica_tensor *weights, *bias;
    uint32_t kernels, channels, width, height;
    size_t kernel_stride, channel_stride, tap_stride;
    bool depthwise, folded; /* folded: space-to-depth, two by two pixels become four channels */
    uint8_t flip, zero_point, input_zero_point;
};

static bool layer_of(const struct mica_graph *graph, const struct mica_op *op, struct layer *layer)
{
    const struct mica_tensor *input = mica_op_input(graph, op, 0), *weights = mica_op_input(graph, op, 1);
    if (op->problem || !weights || !weights->data || weights->quant.count != 1 || input->quant.count != 1 ||
        mica_type_size(weights->type) != 1)
        return false;
    *layer = (struct layer){.weights = weights, .bias = mica_op_input(graph, op, 2), .width = 1, .height = 1};
    layer->flip = weights->type == MICA_TYPE_INT8 ? 0x80 : 0;
    layer->zero_point = (uint8_t)weights->quant.zero_point[0] ^ layer->flip;
    layer->input_zero_point = (uint8_t)input->quant.zero_point[0] ^ (input->type == MICA_TYPE_INT8 ? 0x80 : 0);
    const int32_t *dims = weights->dims;
    if (op->kind == MICA_OP_FULLY_CONNECTED) {
        layer->kernels = (uint32_t)dims[0];
        layer->channels = (uint32_t)dims[1];
    } else {
        layer->depthwise = op->kind == MICA_OP_DEPTHWISE_CONV_2D;
        layer->height = (uint32_t)dims[1];
        layer->width = (uint32_t)dims[2];
        layer->kernels = (uint32_t)(layer->depthwise ? dims[3] : dims[0]);
        layer->channels = (uint32_t)(layer->depthwise ? 1 : dims[3]);
        layer->folded = !layer->depthwise && op->window.stride_x == 2 && layer->width * layer->height > 1;
    }
    layer->tap_stride = layer->depthwise ? layer->kernels : layer->channels;
    layer->kernel_stride = layer->depthwise ? 1 : (size_t)layer->channels * layer->width * layer->height;
    layer->channel_stride = 1;
    return true;
}

static bool is_weighted(const struct mica_op *op)
{
    return op->kind == MICA_OP_CONV_2D || op->kind == MICA_OP_DEPTHWISE_CONV_2D || op->kind == MICA_OP_FULLY_CONNECTED;
}

/* Row and column of the model's kernel behind a tap of the job's; false: none is. */
static bool source_tap(const struct layer *layer, uint32_t phase, uint32_t row, uint32_t column, uint32_t *tap)
{
    if (layer->folded) {
        row = 2 * row + phase / 2;
        column = 2 * column + phase % 2;
    }
    *tap = row * layer->width + column;
    return row < layer->height && column < layer->width;
}

static void fill_kernel(const struct layer *layer, struct kernels *kernels, uint32_t k, uint32_t source)
{
    const uint8_t *data = (const uint8_t *)layer->weights->data + source * layer->kernel_stride;
    const struct viv_huffman_shape *shape = &kernels->shape;
    uint32_t phases = layer->folded ? 4 : 1, channels = kernels->set.channels, sum = 0, tap;
    uint8_t *out = kernels->weights + (size_t)k * channels * kernels->set.taps;
    for (uint32_t z = 0; z < channels; z++)
        for (uint32_t row = 0; row < shape->kernel_h; row++)
            for (uint32_t column = 0; column < shape->kernel_w; column++, out++) {
                *out = layer->zero_point;
                if (source_tap(layer, z % phases, row, column, &tap) && (!kernels->set.diagonal || z == k))
                    *out = data[tap * layer->tap_stride + (kernels->set.diagonal ? 0 : z / phases)] ^ layer->flip;
                sum += (uint32_t)*out - layer->zero_point;
            }
    uint32_t bias = layer->bias && layer->bias->data ? ((const uint32_t *)layer->bias->data)[source] : 0;
    kernels->bias[k] = bias + (kernels->chip->bias_input_zero - layer->input_zero_point) * sum;
}

/* Kernels [first, first + count) of a layer as one job. */
static bool make_job(const struct layer *layer, const struct viv_chip *chip, uint32_t first, uint32_t count,
                     struct kernels *kernels)
{
    bool own = layer->depthwise && chip->hardware_depthwise, expanded = layer->depthwise && !own;
    uint32_t channels = expanded ? count : layer->channels * (layer->folded ? 4 : 1);
    uint32_t width = layer->folded ? mica_cdiv(layer->width, 2) : layer->width;
    uint32_t height = layer->folded ? mica_cdiv(layer->height, 2) : layer->height;
    if (!kernels_make(kernels, chip, count, channels, width, height, own, expanded))
        return false;
    uint32_t per_core = mica_cdiv(count, chip->nn_cores);
    kernels->job.kernels_per_core = kernels->shape.kernels_per_core = per_core < 21 ? per_core : 21;
    kernels->set.zero_point = kernels->shape.zero_point = layer->zero_point;
    kernels->set.plane = kernels->shape.plane = 196;
    for (uint32_t k = 0; k < count; k++)
        fill_kernel(layer, kernels, k, first + k);
    kernels_order(kernels);
    return true;
}

static bool run_job(struct kernels *kernels, const struct options *options, struct totals *totals)
{
    struct viv_coefficients coefficients;
    struct viv_huffman_floor bounds;
    struct mica_log log = {.sink = NULL};
    kernels->job.effort = options->effort;
    double start = now_ms();
    if (!viv_coef_huffman_encode(kernels->chip, &kernels->set, &kernels->job, &coefficients, NULL))
        return false;
    double middle = now_ms();
    const char *problem = kernels_decode(kernels, &coefficients, &log);
    totals->encode_ms += middle - start;
    totals->decode_ms += now_ms() - middle;
    if (problem)
        fprintf(stderr, "does not come back: %s\n", problem);
    totals->bytes += coefficients.size;
    free(coefficients.data);
    totals->jobs++;
    if (options->no_floor)
        return !problem;
    if (problem || !viv_coef_huffman_floor(kernels->chip, &kernels->set, &kernels->job, &bounds))
        return false;
    totals->floor += bounds.format;
    totals->padded += bounds.padded;
    totals->entropy += bounds.entropy;
    return true;
}

static bool run_layer(const struct layer *layer, const struct viv_chip *chip, const struct options *options,
                      struct totals *totals)
{
    bool expanded = layer->depthwise && !chip->hardware_depthwise;
    uint32_t step = expanded ? options->groups : layer->kernels;
    totals->layers++;
    totals->weights += (uint64_t)layer->kernels * layer->channels * layer->width * layer->height;
    for (uint32_t first = 0; first < layer->kernels; first += step) {
        struct kernels kernels;
        uint32_t left = layer->kernels - first;
        if (!make_job(layer, chip, first, left < step ? left : step, &kernels))
            return false;
        bool done = run_job(&kernels, options, totals);
        kernels_finish(&kernels);
        if (!done)
            return false;
    }
    return true;
}

static void print_totals(const char *name, const struct viv_chip *chip, const struct totals *totals)
{
    printf("%-48s %-7s %4u layers %5" PRIu64 " jobs %9" PRIu64 " weights", name, chip->name, totals->layers,
           totals->jobs, totals->weights);
    if (totals->floor)
        printf("  entropy %8.0f  floor %8" PRIu64 "  padded %8" PRIu64, totals->entropy, totals->floor, totals->padded);
    printf("  bytes %8" PRIu64, totals->bytes);
    if (totals->floor)
        printf("  +%.2f %% of the floor, +%.2f %% padded", 100.0 * ((double)totals->bytes / (double)totals->floor - 1),
               100.0 * ((double)totals->bytes / (double)totals->padded - 1));
    printf("  %.1f ms coding %.1f ms decoding\n", totals->encode_ms, totals->decode_ms);
    if (totals->skipped)
        printf("%-48s %-7s %4u layers left out\n", name, chip->name, totals->skipped);
}

static void add_totals(struct totals *sum, const struct totals *more)
{
    sum->weights += more->weights;
    sum->bytes += more->bytes;
    sum->floor += more->floor;
    sum->padded += more->padded;
    sum->jobs += more->jobs;
    sum->entropy += more->entropy;
    sum->encode_ms += more->encode_ms;
    sum->decode_ms += more->decode_ms;
    sum->layers += more->layers;
}

static bool run_model(const struct mica_graph *graph, const char *name, const struct viv_chip *chip,
                      const struct options *options)
{
    struct totals sum = {0};
    for (uint32_t i = 0; i < graph->op_count; i++) {
        struct layer layer;
        struct totals one = {0};
        char label[64];
        if (!is_weighted(&graph->ops[i]))
            continue;
        if (!layer_of(graph, &graph->ops[i], &layer)) {
            sum.skipped++;
            continue;
        }
        if (!run_layer(&layer, chip, options, &one))
            return false;
        snprintf(label, sizeof label, "  %u %s %ux%ux%u-%u", i, graph->ops[i].type, layer.width, layer.height,
                 layer.channels, layer.kernels);
        if (options->layers)
            print_totals(label, chip, &one);
        add_totals(&sum, &one);
    }
    if (sum.layers)
        print_totals(name, chip, &sum);
    return true;
}

static void *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    void *data = NULL;
    if (!file)
        return NULL;
    if (!fseek(file, 0, SEEK_END) && (*size = (size_t)ftell(file)) > 0 && !posix_memalign(&data, 16, *size)) {
        rewind(file);
        if (fread(data, 1, *size, file) != *size) {
            free(data);
            data = NULL;
        }
    }
    fclose(file);
    return data;
}

static bool run_file(const char *path, const struct options *options)
{
    struct mica_log log = {.sink = NULL};
    struct mica_graph *graph;
    size_t size = 0;
    void *data = read_file(path, &size);
    const char *slash = strrchr(path, '/');
    if (!data || mica_tflite_read(data, size, &log, &graph)) {
        fprintf(stderr, "%s: %s\n", path, data ? log.last_error : "cannot be read");
        free(data);
        return false;
    }
    bool done = run_model(graph, slash ? slash + 1 : path, &viv_imx8mp, options) &&
                run_model(graph, slash ? slash + 1 : path, &viv_s905d3, options);
    mica_graph_destroy(graph);
    free(data);
    return done;
}

int main(int argc, char **argv)
{
    struct options options = {.groups = 16};
    int bad = 0;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--layers"))
            options.layers = true;
        else if (!strcmp(argv[i], "--no-floor"))
            options.no_floor = true;
        else if (!strcmp(argv[i], "--exhaustive"))
            options.effort = VIV_HUFFMAN_EXHAUSTIVE;
        else if (!strcmp(argv[i], "--groups") && i + 1 < argc)
            options.groups = (uint32_t)strtoul(argv[++i], NULL, 10);
        else
            bad |= !options.groups || !run_file(argv[i], &options);
    }
    return bad;
}
