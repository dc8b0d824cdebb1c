/* SPDX-License-Identifier: MIT */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "npu/rockchip/hw/registers.h"
#include "util/checked.h"

static const struct mica_npu_family family = {
    .name = "rockchip",
    .sim_create = rk_sim_create,
    .sim_destroy = rk_sim_destroy,
    .sim_set_clock = rk_sim_set_clock,
    .sim_run = rk_sim_run,
};

const struct mica_chip bench_rk3588 = {
    .name = "rk3588",
    .description = "the chip under test",
    .driver = "rocket",
    .clock_mhz = 1000,
    .family = &family,
    .parameters = &rk_chip_rk3588,
};

const struct mica_chip bench_rk3566 = {
    .name = "rk3566",
    .description = "the chip under test",
    .driver = "rocket",
    .clock_mhz = 1000,
    .family = &family,
    .parameters = &rk_chip_rk3566,
};

void bench_open(struct bench *bench, const struct mica_chip *chip, struct mica_threads *threads)
{
    void *sim;
    *bench = (struct bench){0};
    assert_int_equal(mica_device_memory_create(&bench->memory), 0);
    assert_int_equal(rk_sim_create(chip, &bench->memory, threads, &bench->log, &sim), 0);
    bench->sim = sim;
}

void bench_close(struct bench *bench)
{
    rk_sim_destroy(bench->sim);
    mica_device_memory_destroy(&bench->memory);
}

uint8_t *bench_map(struct bench *bench, uint64_t address, uint64_t size, unsigned access)
{
    size = mica_align(size, MICA_DEVICE_PAGE);
    assert_int_equal(mica_device_memory_map(&bench->memory, address, size), 0);
    mica_device_memory_protect(&bench->memory, address, size, access);
    return bench->memory.base + address;
}

uint8_t *bench_at(struct bench *bench, uint64_t address)
{
    return bench->memory.base + address;
}

/* ---- register programs -------------------------------------------------------- */

static void append(struct vector_program *program, uint64_t word)
{
    assert_true(program->count < MAX_WORDS);
    program->words[program->count++] = word;
    program->length[program->task_count]++;
    if (rk_word_target(word) != RK_TARGET_START)
        return;
    program->task_count++;
    if (program->task_count < MAX_TASKS)
        program->first[program->task_count] = program->count;
}

bool vector_read(const char *folder, struct vector_program *program)
{
    char path[600], line[256];
    memset(program, 0, sizeof *program);
    snprintf(path, sizeof path, "%s/program.csv", folder);
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    assert_non_null(fgets(line, sizeof line, file)); /* the heads of the columns */
    while (fgets(line, sizeof line, file)) {
        unsigned index, target, offset, value;
        assert_int_equal(sscanf(line, "%u,%x,%x,%x", &index, &target, &offset, &value), 4);
        assert_int_equal(index, program->count);
        append(program, rk_word(target, (uint16_t)offset, value));
    }
    fclose(file);
    return true;
}

static bool writes(uint64_t word, uint16_t offset)
{
    return rk_word_offset(word) == offset && rk_block_of_target(rk_word_target(word)) != RK_BLOCK_COUNT;
}

void vector_set(struct vector_program *program, uint32_t task, uint16_t offset, uint32_t value)
{
    uint64_t *words = program->words + program->first[task];
    for (uint32_t i = 0; i < program->length[task]; i++)
        if (writes(words[i], offset))
            words[i] = rk_word(rk_word_target(words[i]), offset, value);
}

void vector_add(struct vector_program *program, uint32_t task, uint16_t offset, uint32_t value)
{
    vector_set(program, task, offset, vector_get(program, task, offset) + value);
}

uint32_t vector_get(const struct vector_program *program, uint32_t task, uint16_t offset)
{
    const uint64_t *words = program->words + program->first[task];
    for (uint32_t i = 0; i < program->length[task]; i++)
        if (writes(words[i], offset))
            return rk_word_value(words[i]);
    return 0;
}

int vector_run(struct bench *bench, const struct vector_program *program, uint32_t address,
               struct mica_job_report *reports)
{
    uint32_t stream[2 * MAX_TASKS];
    size_t count = 0;
    for (uint32_t i = 0; i < program->task_count; i++) {
        memcpy(bench_at(bench, address), program->words + program->first[i], 8 * (size_t)program->length[i]);
        stream[2 * i] = address;
        stream[2 * i + 1] = program->length[i];
        address = (uint32_t)mica_align(address + 8 * program->length[i], 64);
    }
    int result = rk_sim_run(bench->sim, stream, 2 * program->task_count, reports, reports ? MAX_TASKS : 0, &count);
    if (!result)
        assert_int_equal(count, program->task_count);
    return result;
}

/* ---- vectors, whole ------------------------------------------------------------- */

static void load_blob(struct bench *bench, const char *folder, const char *name, uint32_t address)
{
    char path[600];
    size_t size;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    uint8_t *data = read_whole_file(path, &size);
    if (data) {
        assert_true(size <= VECTOR_ROOM);
        memcpy(bench_at(bench, address), data, size);
    }
    free(data);
}

/* As every folder's meta.json has it: programs hold offsets from 0. */
static void relocate(struct vector_program *program)
{
    static const struct {
        uint16_t offset;
        uint32_t address;
    } places[] = {
        {0x1070, VECTOR_INPUT},   {0x1110, VECTOR_WEIGHTS},      {0x4020, VECTOR_OUTPUT}, {0x5018, VECTOR_INPUT},
        {0x5038, VECTOR_OPERAND}, {0x5020, VECTOR_COEFFICIENTS}, {0x701c, VECTOR_INPUT},  {0x6070, VECTOR_OUTPUT},
    };
    for (uint32_t task = 0; task < program->task_count; task++)
        for (size_t i = 0; i < sizeof places / sizeof *places; i++)
            vector_add(program, task, places[i].offset, places[i].address);
}

/* The tables' task copies an atom, which nobody wants. */
static void spare_the_output(struct vector_program *program)
{
    if (program->length[0] < 1000)
        return;
    vector_set(program, 0, 0x4020, VECTOR_SCRATCH);
    vector_set(program, 0, 0x5018, VECTOR_SCRATCH);
}

bool vector_load(struct bench *bench, const char *folder, struct vector_program *program)
{
    static const uint32_t rooms[] = {VECTOR_PROGRAM,      VECTOR_INPUT,  VECTOR_OPERAND, VECTOR_WEIGHTS,
                                     VECTOR_COEFFICIENTS, VECTOR_OUTPUT, VECTOR_SCRATCH};
    if (!vector_read(folder, program))
        return false;
    relocate(program);
    spare_the_output(program);
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++)
        bench_map(bench, rooms[i], VECTOR_ROOM, MICA_ACCESS_READ | MICA_ACCESS_WRITE);
    load_blob(bench, folder, "input.bin", VECTOR_INPUT);
    load_blob(bench, folder, "main.bin", VECTOR_INPUT);
    load_blob(bench, folder, "operand.bin", VECTOR_OPERAND);
    load_blob(bench, folder, "weights.bin", VECTOR_WEIGHTS);
    load_blob(bench, folder, "coef.bin", VECTOR_COEFFICIENTS);
    return true;
}

/* ---- odds and ends --------------------------------------------------------------- */

uint32_t random_word(struct random *random)
{
    random->state = random->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint64_t mixed = (random->state ^ random->state >> 33) * UINT64_C(0xff51afd7ed558ccd);
    return (uint32_t)(mixed >> 32);
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
    uint8_t *data = length >= 0 ? calloc(1, (size_t)length + 1) : NULL;
    if (data && fread(data, 1, (size_t)length, file) != (size_t)length) {
        free(data);
        data = NULL;
    }
    fclose(file);
    *size = data ? (size_t)length : 0;
    return data;
}
