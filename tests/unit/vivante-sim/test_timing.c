/* SPDX-License-Identifier: MIT */
/*
 * The timing model against the points it was fitted to: the vendor compiler's
 * own estimates for the three chips. Prints the errors, and fails where they
 * are larger than the specification's timing page reports (section 5), to the
 * digits it gives.
 */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define POINTS MICA_SHARED_DIR "/spec/vivante/timing-points.csv"
#define MAX_POINTS 6000u

/*
 * Per cent: `single` of single layers and `all` with those of whole networks
 * as the page prints them, of cycles from the points' byte counts;
 * `descriptor` is what was reached where bytes are modelled too, rounded up.
 */
struct spread {
    double median, p90;
};

static const struct known {
    const struct viv_chip *chip;
    const char *customer; /* as the points name the chip */
    uint32_t burst_bytes; /* in the vendor's accounting */
    struct spread all, single, descriptor;
} knowns[] = {
    {&viv_a311d, "88", 64, {2.6, 21}, {2.6, 16}, {3.5, 18}},
    {&viv_s905d3, "99", 64, {3.0, 19}, {2.9, 16}, {3.6, 20}},
    {&viv_imx8mp, "9f", 256, {8.4, 18}, {1.9, 20}, {5.2, 31}},
};
#define KNOWNS (sizeof knowns / sizeof knowns[0])

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
    const struct known *known;
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

static enum viv_place place_of(const char *name)
{
    return !strcmp(name, "DDR") ? VIV_IN_DDR : !strcmp(name, "AXI_SRAM") ? VIV_IN_AXI_SRAM : VIV_IN_VIP_SRAM;
}

static void add_point(const struct known *known, char *const *row)
{
    struct point *point = &points[point_count++];
    assert_in_range(point_count, 1, MAX_POINTS);
    point->known = known;
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
        .coefficient_bytes = whole(row, COEF_BYTES),
        .density = strtod(row[DENSITY], NULL),
        .depthwise = whole(row, DEPTHWISE) != 0,
        .in_place = place_of(row[SRC]),
        .out_place = place_of(row[DST]),
        .coefficient_place = place_of(row[COEF_SRC]),
    };
    point->memory =
        (struct viv_memory_model){.ddr_bytes_per_cycle = strtod(row[DDR], NULL), .burst_bytes = known->burst_bytes};
    point->single = !strncmp(row[SET], "single", 6);
    point->all_ddr = !point->job.in_place && !point->job.out_place && !point->job.coefficient_place;
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
        for (size_t i = 0; count == COLUMNS && i < KNOWNS; i++)
            if (!strcmp(row[CHIP], knowns[i].customer) && !strcmp(row[TARGET], "NN"))
                add_point(&knowns[i], row);
    }
    fclose(file);
    assert_true(point_count > 1000);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static struct spread spread_of(const struct known *known, double *errors, size_t count, const char *what)
{
    assert_true(count > 0);
    qsort(errors, count, sizeof *errors, by_size);
    struct spread spread = {100 * errors[count / 2], 100 * errors[count * 9 / 10]};
    print_message("%-6s %-40s %4zu points, median %5.2f %%, p90 %5.2f %%\n", known->chip->name, what, count,
                  spread.median, spread.p90);
    return spread;
}

static double error(double model, double reference)
{
    return fabs(model / reference - 1);
}

static bool within(struct spread spread, struct spread bound)
{
    return spread.median < bound.median + 0.05 && spread.p90 < bound.p90 + 0.5;
}

/* The cycle formulas, fed with the byte counts of the points. */
static void check_cycles(const struct known *known)
{
    static double all[MAX_POINTS], single[MAX_POINTS];
    size_t count = 0, singles = 0;
    for (size_t i = 0; i < point_count; i++) {
        const struct point *point = &points[i];
        if (point->known != known)
            continue;
        uint64_t cycles = viv_nn_cycles(known->chip, &point->memory, &point->job, point->read, point->write);
        all[count] = error((double)cycles, point->cycles);
        if (point->single)
            single[singles++] = all[count];
        count++;
    }
    struct spread spread = spread_of(known, single, singles, "cycles, bytes given, single layers");
    assert_true(within(spread, known->single));
    spread = spread_of(known, all, count, "cycles, bytes given, all");
    assert_true(within(spread, known->all));
}

static void cycles_from_given_bytes(void **state)
{
    for (size_t i = 0; i < KNOWNS; i++)
        check_cycles(&knowns[i]);
}

/* All of it from the descriptor alone, where every operand is in device memory. */
static void check_cost(const struct known *known)
{
    static double cycles[MAX_POINTS], read[MAX_POINTS], write[MAX_POINTS];
    double model_read = 0, given_read = 0, model_write = 0, given_write = 0;
    size_t count = 0;
    for (size_t i = 0; i < point_count; i++) {
        const struct point *point = &points[i];
        if (point->known != known || !point->all_ddr)
            continue;
        struct viv_cost cost = viv_nn_cost(known->chip, &point->memory, &point->job);
        cycles[count] = error((double)cost.cycles, point->cycles);
        read[count] = error((double)cost.read_bytes, point->read);
        write[count] = error((double)cost.write_bytes, point->write);
        assert_int_equal(cost.sram_bytes, 0);
        model_read += (double)cost.read_bytes;
        model_write += (double)cost.write_bytes;
        given_read += point->read;
        given_write += point->write;
        count++;
    }
    struct spread spread = spread_of(known, cycles, count, "cycles, from the descriptor");
    spread_of(known, read, count, "bytes read, from the descriptor");
    spread_of(known, write, count, "bytes written, from the descriptor");
    print_message("%-6s totals: read %+.1f %%, written %+.1f %%\n", known->chip->name,
                  100 * (model_read / given_read - 1), 100 * (model_write / given_write - 1));
    assert_true(within(spread, known->descriptor));
}

static void cost_from_descriptor(void **state)
{
    for (size_t i = 0; i < KNOWNS; i++)
        check_cost(&knowns[i]);
}

/* From the descriptor with on-chip operands: their bytes are not device memory's. */
static void check_on_chip(const struct known *known)
{
    static double cycles[MAX_POINTS];
    double model_read = 0, given_read = 0, model_write = 0, given_write = 0;
    size_t count = 0;
    for (size_t i = 0; i < point_count; i++) {
        const struct point *point = &points[i];
        if (point->known != known || point->all_ddr)
            continue;
        struct viv_cost cost = viv_nn_cost(known->chip, &point->memory, &point->job);
        cycles[count++] = error((double)cost.cycles, point->cycles);
        assert_true(cost.sram_bytes > 0);
        assert_true(!point->job.out_place || cost.write_bytes == 0);
        assert_true(!point->job.coefficient_place || cost.coefficient_bytes == 0);
        model_read += (double)cost.read_bytes;
        model_write += (double)cost.write_bytes;
        given_read += point->read;
        given_write += point->write;
    }
    spread_of(known, cycles, count, "cycles, operands on chip");
    print_message("%-6s totals: read %+.1f %%, written %+.1f %%\n", known->chip->name,
                  100 * (model_read / given_read - 1), 100 * (model_write / given_write - 1));
}

static void cost_with_operands_on_chip(void **state)
{
    for (size_t i = 0; i < KNOWNS; i++)
        check_on_chip(&knowns[i]);
}

static void cost_is_cheap(void **state)
{
    struct timespec start, end;
    uint64_t sum = 0;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (unsigned round = 0; round < 20; round++)
        for (size_t i = 0; i < point_count; i++)
            sum += viv_nn_cost(points[i].known->chip, &viv_default_memory, &points[i].job).cycles;
    clock_gettime(CLOCK_MONOTONIC, &end);
    double ns = (double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec);
    print_message("one estimate: %.0f ns (sum %llu)\n", ns / (20.0 * (double)point_count), (unsigned long long)sum);
    assert_true(sum > 0);
}

/* What the page gives for a whole operation is the sum over its cores. */
static void tp_cost_matches_the_fit(void **state)
{
    const struct {
        const struct viv_chip *chip;
        uint64_t elements, cycles;
    } sums[] = {
        {&viv_a311d, 19200, 25248}, {&viv_a311d, 9600, 15648}, {&viv_a311d, 2400, 8448},    {&viv_s905d3, 19200, 20712},
        {&viv_s905d3, 9600, 11112}, {&viv_s905d3, 2400, 3912}, {&viv_imx8mp, 19200, 36021}, {&viv_imx8mp, 9600, 21621},
    };
    for (size_t i = 0; i < sizeof sums / sizeof sums[0]; i++) {
        const struct viv_chip *chip = sums[i].chip;
        const struct viv_tp_job part = {.elements = sums[i].elements / chip->tp_cores};
        assert_int_equal(chip->tp_cores * viv_tp_cost(chip, &part).cycles, sums[i].cycles);
    }
}

static void tp_operands_on_chip_are_not_device_memory(void **state)
{
    const struct viv_tp_job job = {.elements = 64, .in_bytes = 100, .out_bytes = 64, .in_place = VIV_IN_VIP_SRAM};
    struct viv_cost cost = viv_tp_cost(&viv_a311d, &job);
    assert_int_equal(cost.read_bytes, 0);
    assert_int_equal(cost.write_bytes, 64);
    assert_int_equal(cost.sram_bytes, 100);
}

/* 28x28x256, 1x1: bound by memory while its image is there. */
static struct viv_nn_job pointwise_job(void)
{
    return (struct viv_nn_job){
        .in_w = 28,
        .in_h = 28,
        .in_channels = 256,
        .in_row_bytes = 28,
        .in_plane_bytes = 28 * 28,
        .kernel_w = 1,
        .kernel_h = 1,
        .out_w = 28,
        .out_h = 28,
        .out_channels = 256,
        .tile_x = 28,
        .tile_y = 14,
        .kernels_per_core = 8,
        .kernel_cached = true,
        .coefficient_bytes = 66000,
        .density = 1,
    };
}

static void each_operand_on_chip_saves_its_own_bytes(void **state)
{
    for (size_t i = 0; i < KNOWNS; i++) {
        struct viv_nn_job job = pointwise_job();
        const struct viv_chip *chip = knowns[i].chip;
        struct viv_cost all = viv_nn_cost(chip, &viv_default_memory, &job);
        assert_int_equal(all.sram_bytes, 0);
        assert_int_equal(all.coefficient_bytes, job.coefficient_bytes);
        job.out_place = VIV_IN_VIP_SRAM;
        struct viv_cost out = viv_nn_cost(chip, &viv_default_memory, &job);
        assert_int_equal(out.write_bytes, 0);
        assert_int_equal(out.read_bytes, all.read_bytes);
        job.in_place = VIV_IN_AXI_SRAM;
        struct viv_cost in = viv_nn_cost(chip, &viv_default_memory, &job);
        assert_in_range(in.read_bytes, job.coefficient_bytes, job.coefficient_bytes + 128);
        assert_true(in.cycles <= all.cycles);
        job.coefficient_place = VIV_IN_VIP_SRAM;
        struct viv_cost none = viv_nn_cost(chip, &viv_default_memory, &job);
        assert_int_equal(none.coefficient_bytes, 0);
        assert_in_range(none.read_bytes, 0, 128);
        assert_true(none.sram_bytes > 2 * 28 * 28 * 256 + job.coefficient_bytes);
    }
}

static void expanded_depthwise_costs_more_than_the_chips_own(void **state)
{
    struct viv_nn_job own = pointwise_job();
    own.kernel_w = own.kernel_h = 3;
    own.x_offset = own.y_offset = -1;
    struct viv_nn_job expanded = own;
    own.depthwise = true;
    own.in_channels = 1;
    expanded.density = 1.0 / expanded.in_channels;
    assert_true(viv_nn_cost(&viv_imx8mp, &viv_default_memory, &own).cycles <
                viv_nn_cost(&viv_imx8mp, &viv_default_memory, &expanded).cycles);
    assert_true(viv_nn_cost(&viv_imx8mp, &viv_default_memory, &own).read_bytes > 28 * 28 * 256);
}

static int setup(void **state)
{
    load_points();
    return 0;
}

int main(void)
{
    const struct CMUnitTest plain[] = {
        cmocka_unit_test(tp_cost_matches_the_fit),
        cmocka_unit_test(tp_operands_on_chip_are_not_device_memory),
        cmocka_unit_test(each_operand_on_chip_saves_its_own_bytes),
        cmocka_unit_test(expanded_depthwise_costs_more_than_the_chips_own),
    };
    const struct CMUnitTest against_points[] = {
        cmocka_unit_test(cycles_from_given_bytes),
        cmocka_unit_test(cost_from_descriptor),
        cmocka_unit_test(cost_with_operands_on_chip),
        cmocka_unit_test(cost_is_cheap),
    };
    int failed = cmocka_run_group_tests_name("timing model", plain, NULL, NULL);
    if (!failed && access(POINTS, R_OK))
        return SKIP;
    return failed + cmocka_run_group_tests_name("timing points", against_points, setup, NULL);
}
