/* SPDX-License-Identifier: MIT */
/* Programs of the vendor's compiler with their data, for both chips: outputs as the register model has them, byte for
 * byte. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "npu/rockchip/hw/registers.h"
#include "support.h"
#include "util/checked.h"

#define VECTORS MICA_SHARED_DIR "/spec/rockchip/vectors"

/* The output's cube, from the registers that say where it goes. */
struct cube {
    uint32_t width, rows, channels, atom, plane;
};

static struct cube output_of(const struct vector_program *program, const struct rk_chip *chip)
{
    uint32_t last = program->task_count - 1;
    bool pooled = vector_get(program, last, 0x6004) != 0;
    struct cube cube = {.atom = chip->atom};
    cube.width = vector_get(program, 0, pooled ? 0x6018 : 0x4030) + 1;
    cube.channels = (pooled ? vector_get(program, 0, 0x6020) : vector_get(program, 0, 0x403c) >> 16) + 1;
    cube.plane = vector_get(program, 0, pooled ? 0x607c : 0x4024);
    if (program->length[0] > 1000) { /* the tables' task comes first */
        cube.width = vector_get(program, 1, 0x4030) + 1;
        cube.channels = (vector_get(program, 1, 0x403c) >> 16) + 1;
        cube.plane = vector_get(program, 1, 0x4024);
    }
    for (uint32_t i = program->length[0] > 1000 ? 1 : 0; i < program->task_count; i++) {
        bool written = vector_get(program, i, 0x4034) || vector_get(program, i, 0x601c) || pooled;
        uint32_t rows = pooled ? vector_get(program, i, 0x601c) : vector_get(program, i, 0x4034);
        if (!written) /* a program of differences says it with 0x405c alone */
            rows = vector_get(program, i, 0x405c) >> 16;
        cube.rows += rows + 1;
    }
    return cube;
}

static void compare(const struct bench *bench, const struct cube *cube, const uint8_t *expected, size_t size)
{
    size_t different = 0;
    assert_true(size >= (size_t)cube->plane * (mica_cdiv(cube->channels, cube->atom) - 1));
    for (uint32_t c = 0; c < cube->channels; c++)
        for (uint32_t p = 0; p < cube->rows * cube->width; p++) {
            size_t at = (size_t)(c / cube->atom) * cube->plane + (size_t)p * cube->atom + c % cube->atom;
            assert_true(at < size);
            different += bench->memory.base[VECTOR_OUTPUT + at] != expected[at];
        }
    print_message("  %u x %u x %u: %zu differ\n", cube->rows, cube->width, cube->channels, different);
    assert_int_equal(different, 0);
}

static void run_folder(const char *name, struct mica_threads *threads)
{
    const struct mica_chip *chip = strncmp(name, "rk3566", 6) ? &bench_rk3588 : &bench_rk3566;
    static struct vector_program program;
    struct mica_job_report reports[MAX_TASKS];
    struct bench bench;
    char folder[512], path[600];
    size_t size;
    snprintf(folder, sizeof folder, "%s/%s", VECTORS, name);
    snprintf(path, sizeof path, "%s/output.bin", folder);
    print_message("%s\n", name);
    bench_open(&bench, chip, threads);
    assert_true(vector_load(&bench, folder, &program));
    if (vector_run(&bench, &program, VECTOR_PROGRAM, reports))
        fail_msg("%s: %s", name, bench.log.last_error);
    uint8_t *expected = read_whole_file(path, &size);
    assert_non_null(expected);
    struct cube cube = output_of(&program, chip->parameters);
    compare(&bench, &cube, expected, size);
    for (uint32_t i = 0; i < program.task_count; i++)
        print_message("  %llu cycles (%llu compute, %llu memory), %llu bytes in, %llu of them coefficients, %llu out\n",
                      (unsigned long long)reports[i].cycles, (unsigned long long)reports[i].compute_cycles,
                      (unsigned long long)reports[i].memory_cycles, (unsigned long long)reports[i].read_bytes,
                      (unsigned long long)reports[i].coefficient_bytes, (unsigned long long)reports[i].write_bytes);
    free(expected);
    bench_close(&bench);
}

static void run_all(struct mica_threads *threads)
{
    size_t count = 0;
    struct dirent *entry;
    DIR *directory = opendir(VECTORS);
    assert_non_null(directory);
    while ((entry = readdir(directory))) {
        char path[600];
        snprintf(path, sizeof path, "%s/%s/program.csv", VECTORS, entry->d_name);
        if (entry->d_name[0] == '.' || access(path, R_OK))
            continue;
        run_folder(entry->d_name, threads);
        count++;
    }
    closedir(directory);
    assert_int_equal(count, 18);
}

static void in_one_thread(void **state)
{
    run_all(NULL);
}

static void in_three_threads(void **state)
{
    struct mica_threads *threads = mica_threads_create(3);
    assert_non_null(threads);
    run_all(threads);
    mica_threads_destroy(threads);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(in_one_thread), cmocka_unit_test(in_three_threads)};
    if (access(VECTORS, R_OK))
        return SKIP;
    return cmocka_run_group_tests_name("vectors", tests, NULL, NULL);
}
