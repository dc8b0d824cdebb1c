/* SPDX-License-Identifier: MIT */
/* Tiles inside what the hardware holds, tensors that do not meet, and never slower than a simple rule. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frontend/tflite/reader.h"
#include "npu/vivante/compile/lower.h"
#include "npu/vivante/compile/memory.h"
#include "npu/vivante/compile/schedule.h"
#include "npu/vivante/compile/tile.h"
#include "npu/vivante/hw/chips.h"
#include "runtime/partition.h"

static const struct mica_chip *const chips[] = {&mica_chip_a311d, &mica_chip_s905d3, &mica_chip_imx8mp};
#define CHIPS (sizeof(chips) / sizeof(chips[0]))

static uint32_t cdiv(uint32_t a, uint32_t b)
{
    return (a + b - 1) / b;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* ---- tiles ---------------------------------------------------------------------- */

static struct viv_nn random_job(struct random *random, const struct viv_chip *chip)
{
    uint32_t size = random_between(random, 1, chip->max_kernel);
    struct viv_nn nn = {.kernel_w = size, .kernel_h = size, .first_pixel = random_below(random, 3) == 0};
    nn.in_w = nn.in_x_stride = random_between(random, size, 300);
    nn.in_h = nn.in_y_stride = random_between(random, size, 300);
    nn.in_c = random_between(random, 1, 600);
    nn.out_c = random_between(random, 1, 600);
    nn.out_w = nn.in_w - size + 1;
    nn.out_h = nn.in_h - size + 1;
    nn.out_w += nn.first_pixel && nn.out_w % 2;
    nn.out_h += nn.first_pixel && nn.out_h % 2;
    nn.out_x_stride = nn.out_w / (nn.first_pixel ? 2 : 1);
    nn.out_y_stride = nn.out_h / (nn.first_pixel ? 2 : 1);
    nn.stream_bytes = (uint64_t)size * size * nn.in_c * nn.out_c;
    nn.density = 0.9;
    nn.depthwise = chip->hardware_depthwise && random_below(random, 4) == 0;
    nn.in_c = nn.depthwise ? nn.out_c : nn.in_c;
    return nn;
}

/* The limits in the words of the timing page, section 2, not in the compiler's. */
static void check_limits(const struct viv_chip *chip, const struct viv_nn *nn)
{
    const struct viv_tile *tile = &nn->tile;
    uint32_t reach = tile->x + nn->kernel_w - 1, shared = reach <= 18 ? 4 : reach <= 36 ? 2 : 1;
    uint32_t vectors = cdiv(tile->y, shared), pixels = cdiv(tile->x * tile->y, 64);
    assert_true(tile->x >= 1 && tile->x <= 64 && tile->x <= nn->out_w);
    assert_true(tile->y >= 1 && tile->y <= 127 && tile->y <= nn->out_h);
    assert_true(tile->y + nn->kernel_h - 1 <= chip->input_depth * shared);
    assert_true(tile->kernels_per_core >= 1 && tile->kernels_per_core * vectors <= chip->accumulator_depth);
    assert_true(tile->kernels_per_core <= (nn->kernel_w == 1 ? 21 : 127));
    if (!chip->z_offset_in_stream)
        assert_true(tile->kernels_per_core * pixels <= chip->accumulator_depth && tile->kernels_per_core <= 21);
    if (nn->first_pixel)
        assert_true(tile->x % 2 == 0 && tile->y % 2 == 0);
    assert_true(viv_tile_fits(chip, nn, tile));
}

static void check_caches(const struct viv_chip *chip, const struct viv_nn *nn)
{
    struct viv_sram sram = viv_sram_plan(chip, nn, &nn->tile, nn->stream_bytes);
    uint32_t end = nn->sram_bytes ? nn->sram_bytes : chip->sram_bytes;
    assert_true(sram.image == nn->tile.image_cached && sram.kernel == nn->tile.kernel_cached);
    assert_true(!sram.image || (sram.image_start >= VIV_SRAM_START && sram.image_end <= end));
    assert_true(!sram.kernel || (sram.kernel_start >= sram.image_end && sram.kernel_end <= end));
}

static void tiles_fit_the_buffers(void **state)
{
    (void)state;
    struct random random = {7};
    for (unsigned i = 0; i < 3000; i++) {
        const struct viv_chip *chip = chips[i % CHIPS]->parameters;
        struct viv_nn nn = random_job(&random, chip);
        if (random_below(&random, 3) == 0)
            nn.sram_bytes = random_between(&random, VIV_SRAM_START + 0x1000, chip->sram_bytes);
        viv_tile_choose(chip, &nn, nn.stream_bytes, nn.density);
        check_limits(chip, &nn);
        check_caches(chip, &nn);
        uint64_t quick = nn.tile.cycles;
        viv_tile_refine(chip, &nn);
        check_limits(chip, &nn);
        check_caches(chip, &nn);
        assert_true(nn.tile.cycles <= quick);
        struct viv_nn_job job = viv_tile_job(&nn);
        assert_int_equal(nn.tile.cycles, viv_nn_cost(chip, &viv_default_memory, &job).cycles);
    }
}

/* ---- whole plans ------------------------------------------------------------------ */

static int plan_for(struct viv_plan *plan, const struct mica_chip *chip, const struct mica_partition *partition,
                    bool on_chip)
{
    int error = viv_plan_init(plan, chip->parameters, partition, NULL, NULL);
    plan->options.on_chip = on_chip;
    return error ? error : viv_lower(plan);
}

/* Bytes [0, 2^32) and jobs as a plane: no two storages may share a point of it. */
static void check_storages(const struct viv_plan *plan)
{
    for (uint32_t i = 0; i < plan->storage_count; i++) {
        const struct viv_storage *a = &plan->storages[i];
        if (a->parent != VIV_NONE || a->first == UINT32_MAX)
            continue;
        if (a->external)
            assert_int_equal(a->place, VIV_IN_DDR);
        if (a->place != VIV_IN_DDR) {
            const struct mica_on_chip *window = &plan->chip->on_chip[viv_place_window(plan->chip, a->place)];
            const struct mica_on_chip *used = &plan->on_chip[viv_place_window(plan->chip, a->place)];
            assert_true(used->address >= window->address && used->address % MICA_DEVICE_PAGE == 0);
            assert_true(used->address + used->size <= window->address + window->size);
            assert_true(a->offset + a->size <= used->size);
        }
        for (uint32_t j = 0; j < i; j++) {
            const struct viv_storage *b = &plan->storages[j];
            bool alive = a->first <= b->last && b->first <= a->last && b->first != UINT32_MAX;
            bool same = b->parent == VIV_NONE && !a->external && !b->external && a->buffer == b->buffer;
            if (alive && same)
                assert_true(a->offset >= b->offset + b->size || b->offset >= a->offset + a->size);
        }
    }
}

static bool is_child(const struct viv_plan *plan, uint32_t storage)
{
    return plan->storages[storage].parent != VIV_NONE;
}

/* A job's planes inside its tensors, its caches below the tensors that live in the same memory meanwhile. */
static void check_jobs(const struct viv_plan *plan)
{
    unsigned window = viv_place_window(plan->chip, VIV_IN_VIP_SRAM);
    for (uint32_t i = 0; i < plan->job_count; i++) {
        const struct viv_nn *nn = &plan->jobs[i].nn;
        if (!plan->jobs[i].is_nn)
            continue;
        check_limits(plan->chip, nn);
        check_caches(plan->chip, nn);
        uint64_t in_plane = (uint64_t)nn->in_x_stride * nn->in_y_stride, rows = nn->in_h - 1;
        uint64_t out_plane = (uint64_t)nn->out_x_stride * nn->out_y_stride;
        uint32_t shrink = nn->first_pixel ? 2 : 1;
        uint64_t in_end = in_plane * (nn->in_c - 1) + rows * nn->in_x_stride + nn->in_w;
        uint64_t out_end = out_plane * (nn->out_c - 1) + (cdiv(nn->out_h, shrink) - 1) * (uint64_t)nn->out_x_stride +
                           cdiv(nn->out_w, shrink);
        if (!is_child(plan, nn->in.storage))
            assert_true(nn->in.offset + in_end <= plan->storages[nn->in.storage].size);
        if (!is_child(plan, nn->out.storage))
            assert_true(nn->out.offset + out_end <= plan->storages[nn->out.storage].size);
        for (uint32_t j = 0; j < plan->storage_count; j++) {
            const struct viv_storage *other = &plan->storages[j];
            bool alive = other->first <= i && i <= other->last && other->parent == VIV_NONE;
            if (alive && other->place == VIV_IN_VIP_SRAM)
                assert_true(nn->sram_bytes && nn->sram_bytes <= other->offset + plan->on_chip[window].address -
                                                                    plan->chip->on_chip[window].address);
        }
    }
}

static uint64_t cycles_of(const struct viv_plan *plan)
{
    uint64_t cycles = 0;
    for (uint32_t i = 0; i < plan->job_count; i++)
        cycles += plan->jobs[i].is_nn ? plan->jobs[i].nn.tile.cycles : 0;
    return cycles;
}

/* ---- the simple rule (specification, section 9.1) ---------------------------------- */

static uint32_t simple_interleave(const struct viv_chip *chip, const struct viv_nn *nn, uint32_t columns)
{
    uint32_t reach = nn->kernel_h - 1 + columns, base = columns > 32 ? 1 : columns > 16 ? 2 : 4;
    if (reach > 36)
        return 1;
    if (chip->z_offset_in_stream)
        return reach > 18 ? least(columns > 8 ? base : 8, 4) : least(base, 2);
    return reach > 18 ? least(base, 2) : base;
}

/* False where the rule gives a tile that the vendor's limits forbid: then there is nothing to compare. */
static bool simple_tile(const struct viv_chip *chip, struct viv_nn *nn)
{
    bool v7 = chip->z_offset_in_stream;
    struct viv_tile *tile = &nn->tile;
    *tile = (struct viv_tile){.x = least(nn->out_w, 64)};
    uint32_t shared = simple_interleave(chip, nn, tile->x), lines = chip->input_depth * shared;
    tile->y = lines >= nn->kernel_h ? lines - nn->kernel_h + 1 : 1;
    tile->y = least(least(tile->y, shared * chip->accumulator_depth), nn->out_h);
    tile->y = least(tile->y, v7 ? 127 : 4);
    tile->y -= nn->first_pixel && tile->y % 2 && tile->y > 1;
    uint32_t nk = cdiv(nn->out_c, chip->nn_cores), most = chip->accumulator_depth * shared / tile->y;
    if (!v7)
        most = least(chip->accumulator_depth / cdiv(tile->x * tile->y, 64), chip->accumulator_depth * 6 / 9);
    if (nn->kernel_w == 1)
        most = least(v7 ? most : chip->accumulator_depth / cdiv(tile->y, shared), chip->accumulator_depth / 3);
    most = least(most, least(nk, 127));
    if (!most)
        return false;
    tile->kernels_per_core = cdiv(nk, cdiv(nk, most));
    if (!viv_tile_fits(chip, nn, tile))
        return false;
    struct viv_sram sram = viv_sram_plan(chip, nn, tile, nn->stream_bytes);
    tile->image_cached = sram.image;
    tile->kernel_cached = sram.kernel;
    struct viv_nn_job job = viv_tile_job(nn);
    tile->cycles = viv_nn_cost(chip, &viv_default_memory, &job).cycles;
    return true;
}

/* Before scheduling: planes packed, one job as it was lowered. */
static uint64_t simple_cycles(const struct viv_plan *plan, unsigned *compared)
{
    uint64_t cycles = 0;
    for (uint32_t i = 0; i < plan->job_count; i++) {
        struct viv_nn simple = plan->jobs[i].nn, ours = simple;
        if (!plan->jobs[i].is_nn)
            continue;
        viv_tile_refine(plan->chip, &ours);
        bool fits = simple_tile(plan->chip, &simple);
        if (fits)
            assert_true(ours.tile.cycles <= simple.tile.cycles);
        cycles += fits ? simple.tile.cycles : ours.tile.cycles;
        *compared += fits;
    }
    return cycles;
}

/* ---- the shared models --------------------------------------------------------------- */

static void *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    void *data = malloc(*size);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, *size, file), *size);
    fclose(file);
    return data;
}

static void schedule(const struct mica_chip *chip, const struct mica_partition *partition, bool on_chip,
                     uint64_t *cycles)
{
    struct viv_plan plan;
    uint32_t external;
    unsigned compared = 0;
    assert_int_equal(plan_for(&plan, chip, partition, on_chip), 0);
    uint64_t simple = simple_cycles(&plan, &compared);
    assert_int_equal(viv_schedule(&plan), 0);
    assert_int_equal(viv_memory_place(&plan, 0, 1, 1 + MICA_ON_CHIP_WINDOWS, &external), 0);
    check_storages(&plan);
    check_jobs(&plan);
    *cycles = cycles_of(&plan);
    if (!on_chip)
        assert_true(*cycles <= simple);
    viv_plan_finish(&plan);
}

static void schedule_model(const char *name)
{
    char path[512];
    size_t size = 0;
    snprintf(path, sizeof(path), "%s/models/%s.tflite", MICA_SHARED_DIR, name);
    void *data = read_file(path, &size);
    struct mica_graph *graph;
    if (!data)
        skip();
    assert_int_equal(mica_tflite_read(data, size, NULL, &graph), 0);
    for (size_t i = 0; i < CHIPS; i++) {
        struct mica_plan steps;
        assert_int_equal(mica_plan_create(graph, chips[i], NULL, &steps), 0);
        for (uint32_t s = 0; s < steps.step_count; s++) {
            uint64_t cycles, on_chip;
            if (!steps.steps[s].npu)
                continue;
            schedule(chips[i], &steps.steps[s].partition, false, &cycles);
            schedule(chips[i], &steps.steps[s].partition, true, &on_chip);
            print_message("%s %s: %llu cycles, on chip %llu\n", name, chips[i]->name, (unsigned long long)cycles,
                          (unsigned long long)on_chip);
        }
        mica_plan_finish(&steps);
    }
    mica_graph_destroy(graph);
    free(data);
}

static void models_never_get_slower_than_by_the_simple_rule(void **state)
{
    (void)state;
    static const char *const models[] = {"mobilenet_v1_1.0_224_quant",
                                         "mobilenet_v1_0.25_128_quant",
                                         "mobilenet_v2_1.0_224_quant",
                                         "ssdlite_mobiledet_coco_qat_postprocess",
                                         "seeded_inception_v1_224_int8",
                                         "seeded_unet_128_int8",
                                         "seeded_efficientnet_lite0_224_int8",
                                         "tiny_resnet8_cifar_int8",
                                         "yolox"};
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++)
        schedule_model(models[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_fit_the_buffers),
        cmocka_unit_test(models_never_get_slower_than_by_the_simple_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
