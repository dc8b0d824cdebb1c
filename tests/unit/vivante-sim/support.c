/* SPDX-License-Identifier: MIT */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>

#include "npu/vivante/hw/states.h"

static const struct mica_npu_family family = {
    .name = "vivante",
    .sim_create = viv_sim_create,
    .sim_destroy = viv_sim_destroy,
    .sim_run = viv_sim_run,
};

const struct mica_chip bench_chip = {
    .name = "a311d",
    .description = "the chip under test",
    .driver = "etnaviv",
    .clock_mhz = 800,
    .family = &family,
    .parameters = &viv_a311d,
};

const struct mica_chip bench_imx8mp = {
    .name = "imx8mp",
    .description = "the chip under test",
    .driver = "etnaviv",
    .clock_mhz = 1000,
    .family = &family,
    .parameters = &viv_imx8mp,
};

const struct mica_chip bench_s905d3 = {
    .name = "s905d3",
    .description = "the chip under test",
    .driver = "etnaviv",
    .clock_mhz = 800,
    .family = &family,
    .parameters = &viv_s905d3,
};

const struct mica_chip *const bench_chips[BENCH_CHIPS] = {&bench_chip, &bench_imx8mp, &bench_s905d3};

void bench_open(struct bench *bench, struct mica_threads *threads)
{
    bench_open_chip(bench, &bench_chip, threads);
}

void bench_open_chip(struct bench *bench, const struct mica_chip *chip, struct mica_threads *threads)
{
    void *sim;
    *bench = (struct bench){0};
    assert_int_equal(mica_device_memory_create(&bench->memory), 0);
    assert_int_equal(viv_sim_create(chip, &bench->memory, threads, &bench->log, &sim), 0);
    bench->sim = sim;
}

void bench_close(struct bench *bench)
{
    viv_sim_destroy(bench->sim);
    mica_device_memory_destroy(&bench->memory);
}

uint8_t *bench_map(struct bench *bench, uint64_t address, uint64_t size, unsigned access)
{
    size = (size + MICA_DEVICE_PAGE - 1) / MICA_DEVICE_PAGE * MICA_DEVICE_PAGE;
    assert_int_equal(mica_device_memory_map(&bench->memory, address, size), 0);
    mica_device_memory_protect(&bench->memory, address, size, access);
    return bench_at(bench, address);
}

uint8_t *bench_at(struct bench *bench, uint64_t address)
{
    return bench->memory.base + address;
}

static int run(struct bench *bench, uint32_t state, uint32_t address, struct mica_job_report *report)
{
    const uint32_t stream[] = {VIV_LOAD_STATE(state), address};
    size_t count;
    return viv_sim_run(bench->sim, stream, 2, report, report ? 1 : 0, &count);
}

int bench_run_nn(struct bench *bench, uint32_t address, struct mica_job_report *report)
{
    return run(bench, VIV_PS_NN_INST_ADDR, address, report);
}

int bench_run_tp(struct bench *bench, uint32_t address, struct mica_job_report *report)
{
    return run(bench, VIV_PS_TP_INST_ADDR, address, report);
}

uint32_t random_word(struct random *random)
{
    random->state = random->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint64_t x = random->state ^ random->state >> 33;
    return (uint32_t)(x * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

uint32_t random_below(struct random *random, uint32_t bound)
{
    return (uint32_t)((uint64_t)random_word(random) * bound >> 32);
}

uint8_t *read_whole_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    fseek(file, 0, SEEK_END);
    long length = ftell(file);
    rewind(file);
    uint8_t *data = length >= 0 ? malloc((size_t)length + 1) : NULL;
    if (data && fread(data, 1, (size_t)length, file) != (size_t)length) {
        free(data);
        data = NULL;
    }
    fclose(file);
    if (data) {
        data[length] = 0;
        *size = (size_t)length;
    }
    return data;
}
