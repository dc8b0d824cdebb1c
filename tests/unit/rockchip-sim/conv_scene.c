/* SPDX-License-Identifier: MIT */
#include "conv_scene.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "npu/rockchip/sim/kernels.h"
#include "util/checked.h"

const struct rk_chip scene_chips[SCENE_CHIPS] = {
    {.name = "rk3588", .generation = RK_GENERATION_RK3588, .atom = 16, .kernel_group = 32, .depthwise_group = 64},
    {.name = "rk3566", .generation = RK_GENERATION_RK356X, .atom = 8, .kernel_group = 16, .depthwise_group = 32},
};

/* ---- memory that runs out ------------------------------------------------------ */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);

long scene_countdown = -1;

static bool fails_now(void)
{
    return scene_countdown >= 0 && scene_countdown-- == 0;
}

void *__wrap_malloc(size_t size)
{
    return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails_now() ? NULL : __real_calloc(count, size);
}

/* ---- the rest of a simulator ------------------------------------------------- */

bool rk_buffer_reserve(struct rk_buffer *buffer, size_t size)
{
    if (buffer->size >= size)
        return true;
    free(buffer->data);
    buffer->data = malloc(size);
    buffer->size = buffer->data ? size : 0;
    return buffer->data != NULL;
}

void *rk_sim_at(struct rk_sim *sim, uint64_t address, uint64_t size, unsigned access, const char *what)
{
    uint64_t fault = 0;
    void *host = mica_device_at(sim->memory, address, size, access, &fault);
    if (!host)
        mica_fail(sim->log, -EFAULT, "%s: bad address 0x%08llx", what, (unsigned long long)fault);
    return host;
}

void rk_dpu_block(const struct rk_dpu *dpu, uint32_t first_pixel, uint32_t pixels, uint32_t first_channel,
                  uint32_t lanes, const int32_t *acc, const int32_t *sum)
{
    for (uint32_t i = 0; i < pixels; i++)
        for (uint32_t lane = 0; lane < lanes; lane++) {
            size_t at = (size_t)(first_pixel + i) * dpu->channels + first_channel + lane;
            dpu->seen[at]++;
            dpu->acc[at] = acc[i * lanes + lane];
            dpu->sum[at] = sum ? sum[dpu->depthwise ? i * lanes + lane : i] : NOTHING;
        }
}

/* ---- random tasks ------------------------------------------------------------ */

static uint32_t random_word(struct random *random)
{
    random->state = random->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint64_t x = random->state ^ random->state >> 33;
    return (uint32_t)(x * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

/* In [first, last]. */
static uint32_t pick(struct random *random, uint32_t first, uint32_t last)
{
    return first + random_word(random) % (last - first + 1);
}

static int8_t random_byte(struct random *random)
{
    uint32_t kind = pick(random, 0, 5);
    return kind == 0 ? -128 : kind == 1 ? 127 : (int8_t)random_word(random);
}

void open_scene(struct scene *scene, const struct rk_chip *chip, struct mica_threads *threads)
{
    *scene = (struct scene){.sim = calloc(1, sizeof *scene->sim)};
    assert_non_null(scene->sim);
    assert_int_equal(mica_device_memory_create(&scene->memory), 0);
    assert_int_equal(mica_device_memory_map(&scene->memory, FEATURES, MAPPED), 0);
    assert_int_equal(mica_device_memory_map(&scene->memory, WEIGHTS, MAPPED), 0);
    mica_device_memory_protect(&scene->memory, FEATURES, MAPPED, MICA_ACCESS_READ);
    mica_device_memory_protect(&scene->memory, WEIGHTS, MAPPED, MICA_ACCESS_READ);
    scene->sim->chip = chip;
    scene->sim->memory = &scene->memory;
    scene->sim->threads = threads;
    scene->sim->log = &scene->log;
}

void close_scene(struct scene *scene)
{
    rk_conv_finish(scene->sim);
    free(scene->sim);
    free(scene->dpu.acc);
    free(scene->dpu.sum);
    free(scene->dpu.seen);
    free(scene->logical);
    mica_device_memory_destroy(&scene->memory);
}

static uint32_t extent(uint32_t in, uint32_t kernel, uint32_t dilation, uint32_t stride, uint32_t pads)
{
    int64_t room = (int64_t)in + pads - (int64_t)(kernel - 1) * dilation - 1;
    return room < 0 ? 1 : (uint32_t)(room / stride + 1);
}

static void choose_shape(struct rk_conv *conv, const struct rk_chip *chip, enum mode mode, struct random *random)
{
    bool packed = mode == PACKED, depthwise = mode == DEPTHWISE;
    /* Direct lanes come in sixteens, also where atoms have 8. */
    uint32_t unit = depthwise ? chip->atom : 16;
    *conv = (struct rk_conv){
        .depthwise = depthwise,
        .packed = packed,
        .in_w = pick(random, 1, 14),
        .in_h = pick(random, 1, 14),
        .channels = packed ? chip->atom : pick(random, 1, 9) * unit,
        .kernel_w = pick(random, 1, 5),
        .kernel_h = pick(random, 1, 5),
        .stride_x = pick(random, 1, 3),
        .stride_y = pick(random, 1, 3),
        .dilation_x = pick(random, 0, 2) ? 1 : pick(random, 1, 4),
        .dilation_y = pick(random, 0, 2) ? 1 : pick(random, 1, 4),
        .spread_x = mode == TRANSPOSED ? pick(random, 1, 4) : 1,
        .spread_y = mode == TRANSPOSED ? pick(random, 1, 4) : 1,
        .pad_left = (int32_t)pick(random, 0, 4),
        .pad_top = (int32_t)pick(random, 0, 4),
        .pad = {random_byte(random), random_byte(random)},
        .real_channels = packed ? pick(random, 1, 4) : 0,
        .flip = pick(random, 0, 3) ? 0 : 0x80,
        .out_channels = pick(random, 1, 12) * chip->atom,
        .window_sums = pick(random, 0, 2) != 0,
        .truncate = pick(random, 0, 3) ? 0 : pick(random, 1, 9),
    };
    conv->out_w = extent((conv->in_w - 1) * conv->spread_x + 1, conv->kernel_w, conv->dilation_x, conv->stride_x,
                         (uint32_t)conv->pad_left + pick(random, 0, 4));
    conv->out_h = extent((conv->in_h - 1) * conv->spread_y + 1, conv->kernel_h, conv->dilation_y, conv->stride_y,
                         (uint32_t)conv->pad_top + pick(random, 0, 4));
    conv->kernels = depthwise ? 1 : pick(random, 1, conv->out_channels + 8);
    if (depthwise && pick(random, 0, 1))
        conv->out_channels = (uint32_t)mica_align(conv->channels, 64);
}

static void choose_memory(struct scene *scene, struct random *random)
{
    struct rk_conv *conv = &scene->conv;
    uint32_t atom = conv->packed ? conv->real_channels : scene->sim->chip->atom;
    conv->line_bytes = (uint64_t)conv->in_w * atom + atom * pick(random, 0, 2);
    conv->surface_bytes = conv->line_bytes * (conv->in_h + pick(random, 0, 2));
    conv->feature = FEATURES + 16 * pick(random, 0, 5);
    conv->weights = WEIGHTS + 16 * pick(random, 0, 5);
    int8_t *features = (int8_t *)scene->memory.base + FEATURES;
    for (size_t i = 0; i < 300000; i++)
        features[i] = random_byte(random);
}

/* ---- weights in memory, written in the order that the specification says ------ */

static uint32_t weight_lanes(const struct rk_conv *conv)
{
    return conv->depthwise ? 1 : conv->channels;
}

int8_t *logical_weight(const struct scene *scene, uint32_t kernel, uint32_t tap, uint32_t lane)
{
    const struct rk_conv *conv = &scene->conv;
    size_t taps = conv->kernel_w * conv->kernel_h;
    return scene->logical + (kernel * taps + tap) * weight_lanes(conv) + lane;
}

static uint32_t weight_kernels(const struct rk_conv *conv)
{
    return conv->depthwise ? conv->channels : conv->kernels;
}

static void make_weights(struct scene *scene, struct random *random)
{
    const struct rk_conv *conv = &scene->conv;
    size_t count = (size_t)weight_kernels(conv) * conv->kernel_w * conv->kernel_h * weight_lanes(conv);
    free(scene->logical);
    scene->logical = malloc(count);
    assert_non_null(scene->logical);
    for (size_t i = 0; i < count; i++)
        scene->logical[i] = random_byte(random);
}

static int8_t *write_depthwise(const struct scene *scene, int8_t *out)
{
    const struct rk_conv *conv = &scene->conv;
    uint32_t group = scene->sim->chip->depthwise_group;
    for (uint32_t first = 0; first < conv->channels; first += group)
        for (uint32_t tap = 0; tap < conv->kernel_w * conv->kernel_h; tap++)
            for (uint32_t c = first; c < first + group && c < conv->channels; c++)
                *out++ = *logical_weight(scene, c, tap, 0);
    return out;
}

static int8_t *write_direct(const struct scene *scene, int8_t *out)
{
    const struct rk_conv *conv = &scene->conv;
    uint32_t group = scene->sim->chip->kernel_group;
    for (uint32_t first = 0; first < conv->kernels; first += group)
        for (uint32_t lane = 0; lane < conv->channels; lane += 32)
            for (uint32_t tap = 0; tap < conv->kernel_w * conv->kernel_h; tap++)
                for (uint32_t o = first; o < first + group && o < conv->kernels; o++)
                    for (uint32_t c = lane; c < lane + 32 && c < conv->channels; c++)
                        *out++ = *logical_weight(scene, o, tap, c);
    return out;
}

static void write_weights(struct scene *scene)
{
    struct rk_conv *conv = &scene->conv;
    int8_t *start = (int8_t *)scene->memory.base + conv->weights;
    int8_t *end = conv->depthwise ? write_depthwise(scene, start) : write_direct(scene, start);
    conv->weight_bytes = (uint64_t)(end - start);
}

void change_weights(struct scene *scene, struct random *random)
{
    make_weights(scene, random);
    write_weights(scene);
}

void choose_task(struct scene *scene, enum mode mode, struct random *random)
{
    choose_shape(&scene->conv, scene->sim->chip, mode, random);
    choose_memory(scene, random);
    change_weights(scene, random);
}

/* ---- the obviously right loop ------------------------------------------------- */

static int8_t feature(const struct scene *scene, int32_t vx, int32_t vy, uint32_t channel)
{
    const struct rk_conv *conv = &scene->conv;
    uint32_t atom = scene->sim->chip->atom;
    int32_t sx = (int32_t)conv->spread_x, sy = (int32_t)conv->spread_y;
    const int8_t *memory = (const int8_t *)scene->memory.base + conv->feature;
    bool outside =
        vx < 0 || vy < 0 || vx % sx || vy % sy || vx / sx >= (int32_t)conv->in_w || vy / sy >= (int32_t)conv->in_h;
    if (outside)
        return conv->pad[conv->depthwise && channel % 64 < 32 && channel % 2];
    size_t x = (size_t)(vx / sx), y = (size_t)(vy / sy);
    size_t at = y * conv->line_bytes + x * conv->real_channels + channel;
    if (!conv->packed)
        at = channel / atom * conv->surface_bytes + y * conv->line_bytes + x * atom + channel % atom;
    return (int8_t)(conv->flip ? memory[at] - 128 : memory[at]);
}

static int64_t shifted(int64_t sum, uint32_t shift)
{
    if (!shift)
        return sum;
    int64_t half = INT64_C(1) << (shift - 1), whole = INT64_C(1) << shift;
    return sum < 0 ? -((-sum + half) / whole) : (sum + half) / whole;
}

/* One output; lanes that pixel mode has no bytes for are zeros. */
static void expected(const struct scene *scene, uint32_t pixel, uint32_t channel, int64_t *acc, int64_t *sum)
{
    const struct rk_conv *conv = &scene->conv;
    uint32_t lanes = conv->packed ? conv->real_channels : weight_lanes(conv);
    *acc = *sum = 0;
    for (uint32_t tap = 0; tap < conv->kernel_w * conv->kernel_h; tap++)
        for (uint32_t lane = 0; lane < lanes; lane++) {
            uint32_t x = pixel % conv->out_w * conv->stride_x + tap % conv->kernel_w * conv->dilation_x;
            uint32_t y = pixel / conv->out_w * conv->stride_y + tap / conv->kernel_w * conv->dilation_y;
            uint32_t c = conv->depthwise ? channel : lane;
            if (c >= conv->channels)
                continue;
            int8_t value = feature(scene, (int32_t)x - conv->pad_left, (int32_t)y - conv->pad_top, c);
            *sum += value;
            if (channel < weight_kernels(conv))
                *acc += value * *logical_weight(scene, channel, tap, lane);
        }
    *acc = shifted(*acc, conv->truncate);
}

void prepare_record(struct scene *scene)
{
    struct rk_dpu *dpu = &scene->dpu;
    size_t count = (size_t)scene->conv.out_w * scene->conv.out_h * scene->conv.out_channels;
    free(dpu->acc);
    free(dpu->sum);
    free(dpu->seen);
    *dpu = (struct rk_dpu){
        .pixels = scene->conv.out_w * scene->conv.out_h,
        .channels = scene->conv.out_channels,
        .depthwise = scene->conv.depthwise,
        .acc = malloc(count * sizeof *dpu->acc),
        .sum = malloc(count * sizeof *dpu->sum),
        .seen = calloc(count, sizeof *dpu->seen),
    };
    assert_true(dpu->acc && dpu->sum && dpu->seen);
}

static void check_record(const struct scene *scene, const char *version)
{
    const struct rk_conv *conv = &scene->conv;
    for (uint32_t pixel = 0; pixel < scene->dpu.pixels; pixel++)
        for (uint32_t channel = 0; channel < conv->out_channels; channel++) {
            size_t at = (size_t)pixel * conv->out_channels + channel;
            int64_t acc, sum;
            expected(scene, pixel, channel, &acc, &sum);
            if (scene->dpu.seen[at] != 1 || scene->dpu.acc[at] != acc ||
                scene->dpu.sum[at] != (conv->window_sums ? sum : NOTHING))
                fail_msg("%s %s: pixel %u of %ux%u, channel %u: %u times, %d (%d), not %lld (%lld)",
                         scene->sim->chip->name, version, pixel, conv->out_w, conv->out_h, channel, scene->dpu.seen[at],
                         scene->dpu.acc[at], scene->dpu.sum[at], (long long)acc, (long long)sum);
        }
}

void run_all_versions(struct scene *scene)
{
    for (size_t i = 0; rk_kernels_at(i); i++) {
        prepare_record(scene);
        int result = rk_conv_run_with(scene->sim, rk_kernels_at(i), &scene->conv, &scene->dpu);
        if (result)
            fail_msg("%d: %s", result, scene->log.last_error);
        check_record(scene, rk_kernels_at(i)->name);
    }
}
