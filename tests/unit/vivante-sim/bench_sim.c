/* SPDX-License-Identifier: MIT */
/*
 * bench_sim [THREADS [VERSION [CHIP]]]: time of the NN jobs of MobileNetV1 (1.0,
 * 224 pixels) with random weights, depthwise layers in hardware or expanded.
 * Prints each job and the sum; steady state, coefficients decoded before.
 */
#include "encode.h"
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DESCRIPTOR 0x400000u
#define COEFFICIENTS 0x1000000u
#define INPUT 0x8000000u
#define OUTPUT 0x9000000u
#define ROOM 0x1000000u
#define ROUNDS 7

struct layer {
    uint32_t size, kernel, in, out; /* output columns and rows before pooling; kernel columns and rows; channels */
    bool depthwise, stride_2;
    uint32_t times;
};

static const struct layer layers[] = {
    {112, 2, 12, 32, false, false, 1},   {112, 3, 32, 32, true, false, 1},    {112, 1, 32, 64, false, false, 1},
    {112, 3, 64, 64, true, true, 1},     {56, 1, 64, 128, false, false, 1},   {56, 3, 128, 128, true, false, 1},
    {56, 1, 128, 128, false, false, 1},  {56, 3, 128, 128, true, true, 1},    {28, 1, 128, 256, false, false, 1},
    {28, 3, 256, 256, true, false, 1},   {28, 1, 256, 256, false, false, 1},  {28, 3, 256, 256, true, true, 1},
    {14, 1, 256, 512, false, false, 1},  {14, 3, 512, 512, true, false, 5},   {14, 1, 512, 512, false, false, 5},
    {14, 3, 512, 512, true, true, 1},    {7, 1, 512, 1024, false, false, 1},  {7, 3, 1024, 1024, true, false, 1},
    {7, 1, 1024, 1024, false, false, 1}, {1, 1, 1024, 1001, false, false, 1},
};

static void set(uint32_t *words, enum viv_nn_field field, uint32_t value)
{
    if (!viv_field_set(words, &viv_nn_fields[field], value))
        abort();
}

static void describe(const struct viv_chip *chip, const struct layer *layer, uint32_t *words)
{
    bool depthwise = layer->depthwise && chip->hardware_depthwise;
    uint32_t input = layer->kernel == 2 ? layer->size + 1 : layer->size, pad = layer->kernel == 3 ? ~0u : 0;
    uint32_t stored = layer->stride_2 ? layer->size / 2 : layer->size;
    viv_fields_idle(words, VIV_NN_WORDS, viv_nn_fields, VIV_NN_FIELD_COUNT);
    set(words, VIV_NN_KERNEL_X_SIZE, layer->kernel);
    set(words, VIV_NN_KERNEL_Y_SIZE, layer->kernel);
    set(words, VIV_NN_KERNEL_Z_SIZE, depthwise ? 1 : layer->in);
    set(words, VIV_NN_DEPTHWISE, depthwise);
    set(words, VIV_NN_NO_Z_OFFSET, !chip->z_offset_in_stream);
    set(words, VIV_NN_OUT_IMAGE_Y_STRIDE, stored);
    set(words, VIV_NN_KERNELS_PER_CORE, 16);
    set(words, VIV_NN_POOLING, layer->stride_2 ? 3 : 0);
    set(words, VIV_NN_IN_IMAGE_X_SIZE, input);
    set(words, VIV_NN_IN_IMAGE_Y_SIZE, input);
    set(words, VIV_NN_IN_IMAGE_X_STRIDE, input);
    set(words, VIV_NN_IN_IMAGE_Y_STRIDE, input);
    set(words, VIV_NN_IN_IMAGE_X_OFFSET, pad);
    set(words, VIV_NN_IN_IMAGE_Y_OFFSET, pad);
    set(words, VIV_NN_OUT_IMAGE_X_SIZE, layer->size);
    set(words, VIV_NN_OUT_IMAGE_Y_SIZE, layer->size);
    set(words, VIV_NN_OUT_IMAGE_Z_SIZE, layer->out);
    set(words, VIV_NN_OUT_IMAGE_X_STRIDE, stored);
    set(words, VIV_NN_OUT_IMAGE_TILE_X_SIZE, layer->size < 64 ? layer->size : 64);
    set(words, VIV_NN_OUT_IMAGE_TILE_Y_SIZE, layer->size < 10 ? layer->size : 10);
    set(words, VIV_NN_POST_MULTIPLIER, 1234);
    set(words, VIV_NN_POST_SHIFT, chip->multiplier_bits == 23 ? 11 : 26);
    set(words, VIV_NN_COEF_ZERO_POINT, 128);
    set(words, VIV_NN_KERNEL_ADDRESS, COEFFICIENTS >> 6);
    set(words, VIV_NN_IN_IMAGE_ADDRESS, INPUT);
    set(words, VIV_NN_OUT_IMAGE_ADDRESS, OUTPUT);
}

static size_t put_coefficients(const struct viv_chip *chip, const struct layer *layer, struct random *random,
                               uint8_t *out)
{
    bool depthwise = layer->depthwise && chip->hardware_depthwise;
    uint32_t stored = layer->stride_2 ? layer->size / 2 : layer->size;
    uint32_t pixels = layer->kernel * layer->kernel, taps = depthwise ? pixels : pixels * layer->in;
    uint8_t *weights = malloc((size_t)taps * layer->out);
    uint32_t *bias = calloc(layer->out, 4), *offset = calloc(layer->out, 4);
    for (uint32_t k = 0; k < layer->out; k++) {
        offset[k] = k * stored * stored;
        for (uint32_t i = 0; i < taps; i++)
            weights[(size_t)k * taps + i] =
                !layer->depthwise || depthwise || i / pixels == k ? (uint8_t)random_word(random) : 128;
    }
    const struct coefficients coefficients = {
        .w = layer->kernel,
        .h = layer->kernel,
        .z = depthwise ? 1 : layer->in,
        .depthwise = depthwise,
        .kernels = layer->out,
        .kernels_per_core = 16,
        .zero_point = 128,
        .run_bits = layer->depthwise ? 5 : 0,
        .weights = weights,
        .bias = bias,
        .offset = offset,
    };
    memset(out, 0, ROOM);
    size_t size = encode_coefficients(chip, &coefficients, random, out, ROOM);
    free(weights);
    free(bias);
    free(offset);
    return size;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

/* Milliseconds of one run, the least of several; *first gets that of the run that decodes. */
static double measure(struct bench *bench, struct mica_job_report *report, double *first)
{
    double best = 1e9;
    for (unsigned i = 0; i <= ROUNDS; i++) {
        double start = now();
        if (bench_run_nn(bench, DESCRIPTOR, report)) {
            fprintf(stderr, "%s\n", bench->log.last_error);
            exit(1);
        }
        double took = now() - start;
        if (i == 0)
            *first = took;
        else
            best = took < best ? took : best;
    }
    return best;
}

static const struct mica_chip *find_chip(const char *name)
{
    for (size_t i = 0; i < BENCH_CHIPS; i++)
        if (!strcmp(bench_chips[i]->name, name))
            return bench_chips[i];
    fprintf(stderr, "there is no chip %s\n", name);
    exit(2);
}

int main(int argc, char **argv)
{
    unsigned threads = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
    const struct mica_chip *tested = find_chip(argc > 3 ? argv[3] : "a311d");
    const struct viv_chip *chip = tested->parameters;
    double cycles_a_ms = tested->clock_mhz * 1e3;
    struct random random = {1};
    struct bench bench;
    double total = 0, total_first = 0, total_model = 0;
    bench_open_chip(&bench, tested, mica_threads_create(threads));
    if (argc > 2)
        bench.sim->kernels = viv_kernels_at((size_t)atoi(argv[2]));
    bench_map(&bench, DESCRIPTOR, 4096, MICA_ACCESS_READ);
    bench_map(&bench, COEFFICIENTS, ROOM, MICA_ACCESS_READ);
    bench_map(&bench, INPUT, ROOM, MICA_ACCESS_READ);
    bench_map(&bench, OUTPUT, ROOM, MICA_ACCESS_WRITE);
    for (size_t i = 0; i < ROOM; i++)
        bench_at(&bench, INPUT)[i] = (uint8_t)random_word(&random);
    printf("%s, %s, %u thread(s)\n", chip->name, bench.sim->kernels->name, threads);
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
        const struct layer *layer = &layers[i];
        uint32_t words[VIV_NN_WORDS];
        struct mica_job_report report;
        double first;
        size_t size = put_coefficients(chip, layer, &random, bench_at(&bench, COEFFICIENTS));
        describe(chip, layer, words);
        memcpy(bench_at(&bench, DESCRIPTOR), words, sizeof words);
        double ms = measure(&bench, &report, &first);
        printf("%3ux%-3u %ux%u %4u -> %-4u %s%s x%u: %6.3f ms, first %7.3f ms, %7zu bytes, model %6.3f ms\n",
               layer->size, layer->size, layer->kernel, layer->kernel, layer->in, layer->out,
               layer->depthwise ? "depthwise" : "dense", layer->stride_2 ? " s2" : "", layer->times, ms, first, size,
               (double)report.cycles / cycles_a_ms);
        total += ms * layer->times;
        total_first += first * layer->times;
        total_model += (double)report.cycles / cycles_a_ms * layer->times;
    }
    printf("sum %.2f ms, first run %.2f ms, modelled device %.2f ms\n", total, total_first, total_model);
    return 0;
}
