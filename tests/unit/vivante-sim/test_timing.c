/* SPDX-License-Identifier: MIT */
/*
 * The timing model against the points it was fitted to: the vendor compiler's
 * own estimates for the A311D. Prints the errors, and fails above the bounds
 * that the specification's timing page reports (2.6 % and 21 %) with a little
 * room for rounding.
 */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define POINTS MICA_SHARED_DIR "/spec/vivante/timing-points.csv"
#define MAX_POINTS 2000u
#define MEDIAN_BOUND 3.0
#define P90_BOUND 22.0

enum column {
    CHIP,
    SET,
    CASE,
    DDR,
    BUS,
    SRAM,
    TARGET,
    OP,
    W,
    H,
    IC,
    OC,
    KW,
    KH,
    OUT_W,
    OUT_H,
    POOL,
    PAD_X,
    PAD_Y,
    TILE_X,
    TILE_Y,
    INTERLEAVE,
    KERNELS_PER_CORE,
    IMAGE_CACHE,
    KERNEL_CACHE,
    DEPTHWISE,
    IN_STRIDE,
    COEF_BYTES,
    DENSITY,
    SRC,
    DST,
    COEF_SRC,
    CYCLES,
    DDR_READ,
    DDR_WRITE,
    COLUMNS,
};

struct point {
    struct viv_nn_job job;
    struct viv_memory_model memory;
    bool single, all_ddr;
    double cycles, read, write;
};

static struct point points[MAX_POINTS];
static size_t point_count;

static uint32_t whole(char *const *row, enum column column)
{
    return (uint32_t)strtoul(row[column], NULL, 10);
}

static void add_point(char *const *row)
{
    struct point *point = &points[point_count++];
    assert_in_range(point_count, 1, MAX_POINTS);
    bool coefficients_in_ddr = !strcmp(row[COEF_SRC], "DDR");
    point->job = (struct viv_nn_job){
        .in_w = whole(row, W),
        .in_h = whole(row, H),
        .in_channels = whole(row, IC),
        .in_row_bytes = whole(row, IN_STRIDE),
        .in_plane_bytes = whole(row, IN_STRIDE) * whole(row, H),
        .x_offset = -(int32_t)whole(row, PAD_X),
        .y_offset = -(int32_t)whole(row, PAD_Y),
        .kernel_w = whole(row, KW),
        .kernel_h = whole(row, KH),
        .out_w = whole(row, OUT_W),
        .out_h = whole(row, OUT_H),
        .out_channels = whole(row, OC),
        .first_pixel_pooling = whole(row, POOL) == 2,
        .tile_x = whole(row, TILE_X),
        .tile_y = whole(row, TILE_Y),
        .kernels_per_core = whole(row, KERNELS_PER_CORE),
        .image_cached = whole(row, IMAGE_CACHE) != 0,
        .kernel_cached = whole(row, KERNEL_CACHE) == 1,
        .coefficient_bytes = coefficients_in_ddr ? whole(row, COEF_BYTES) : 0,
        .density = strtod(row[DENSITY], NULL),
    };
    point->memory = (struct viv_memory_model){.ddr_bytes_per_cycle = strtod(row[DDR], NULL), .burst_bytes = 64};
    point->single = !strncmp(row[SET], "single", 6);
    point->all_ddr = coefficients_in_ddr && !strcmp(row[SRC], "DDR") && !strcmp(row[DST], "DDR");
    point->cycles = strtod(row[CYCLES], NULL);
    point->read = strtod(row[DDR_READ], NULL);
    point->write = strtod(row[DDR_WRITE], NULL);
}

/* The next field of a line, with or without quotes; NULL at the line's end. */
static char *next_field(char **line)
{
    char *start = *line;
    if (!start || *start != '"')
        return strsep(line, ",\n");
    start++;
    *line = start + strcspn(start, "\"");
    if (**line)
        *(*line)++ = 0;
    strsep(line, ",\n");
    return start;
}

static void load_points(void)
{
    char line[1024];
    FILE *file = fopen(POINTS, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        char *row[COLUMNS], *next = line;
        size_t count = 0;
        while (count < COLUMNS && next)
            row[count++] = next_field(&next);
        if (count == COLUMNS && !strcmp(row[CHIP], "88") && !strcmp(row[TARGET], "NN"))
            add_point(row);
    }
    fclose(file);
    assert_true(point_count > 1000);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct spread {
    double median, p90;
};

static struct spread spread_of(double *errors, size_t count, const char *what)
{
    qsort(errors, count, sizeof *errors, by_size);
    struct spread spread = {100 * errors[count / 2], 100 * errors[count * 9 / 10]};
    print_message("%-58s %4zu points, median %4.1f %%, p90 %4.1f %%\n", what, count, spread.median, spread.p90);
    return spread;
}

static double error(double model, double reference)
{
    return fabs(model / reference - 1);
}

/* The cycle formulas, fed with the byte counts of the points. */
static void cycles_from_given_bytes(void **state)
{
    double all[MAX_POINTS], single[MAX_POINTS];
    size_t singles = 0;
    for (size_t i = 0; i < point_count; i++) {
        const struct point *point = &points[i];
        uint64_t cycles = viv_nn_cycles(&viv_a311d, &point->memory, &point->job, point->read, point->write);
        all[i] = error((double)cycles, point->cycles);
        if (point->single)
            single[singles++] = all[i];
    }
    spread_of(single, singles, "cycles, bytes given, single layers");
    struct spread spread = spread_of(all, point_count, "cycles, bytes given, all");
    assert_true(spread.median <= MEDIAN_BOUND);
    assert_true(spread.p90 <= P90_BOUND);
}

/* All of it from the descriptor alone, where every operand is in device memory. */
static void cost_from_descriptor(void **state)
{
    double cycles[MAX_POINTS], read[MAX_POINTS], write[MAX_POINTS];
    double model_read = 0, given_read = 0, model_write = 0, given_write = 0;
    size_t count = 0;
    for (size_t i = 0; i < point_count; i++) {
        const struct point *point = &points[i];
        if (!point->all_ddr)
            continue;
        struct viv_cost cost = viv_nn_cost(&viv_a311d, &point->memory, &point->job);
        cycles[count] = error((double)cost.cycles, point->cycles);
        read[count] = error((double)cost.read_bytes, point->read);
        write[count] = error((double)cost.write_bytes, point->write);
        model_read += (double)cost.read_bytes;
        model_write += (double)cost.write_bytes;
        given_read += point->read;
        given_write += point->write;
        count++;
    }
    struct spread spread = spread_of(cycles, count, "cycles, from the descriptor");
    spread_of(read, count, "bytes read, from the descriptor");
    spread_of(write, count, "bytes written, from the descriptor");
    print_message("totals: read %+.1f %%, written %+.1f %%\n", 100 * (model_read / given_read - 1),
                  100 * (model_write / given_write - 1));
    assert_true(spread.median <= 5.0);
    assert_true(spread.p90 <= P90_BOUND);
}

static void cost_is_cheap(void **state)
{
    struct timespec start, end;
    uint64_t sum = 0;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (unsigned round = 0; round < 20; round++)
        for (size_t i = 0; i < point_count; i++)
            sum += viv_nn_cost(&viv_a311d, &viv_default_memory, &points[i].job).cycles;
    clock_gettime(CLOCK_MONOTONIC, &end);
    double ns = (double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec);
    print_message("one estimate: %.0f ns (sum %llu)\n", ns / (20.0 * (double)point_count), (unsigned long long)sum);
    assert_true(sum > 0);
}

/* Published: A311D with 19,200 elements, sum over its four TP cores. */
static void tp_cost_matches_the_fit(void **state)
{
    const struct viv_tp_job part = {.elements = 19200 / 4, .in_bytes = 4800, .out_bytes = 4800};
    assert_int_equal(4 * viv_tp_cost(&viv_a311d, &part).cycles, 25248);
}

static int setup(void **state)
{
    load_points();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cycles_from_given_bytes),
        cmocka_unit_test(cost_from_descriptor),
        cmocka_unit_test(cost_is_cheap),
        cmocka_unit_test(tp_cost_matches_the_fit),
    };
    if (access(POINTS, R_OK))
        return SKIP;
    return cmocka_run_group_tests_name("timing model", tests, setup, NULL);
}
