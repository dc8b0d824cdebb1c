/* SPDX-License-Identifier: MIT */
/* TP jobs: the loop-nest short cut against the element-wise execution, tables, maxima, and what is refused. */
#include "npu/vivante/sim/tp_job.h"
#include "reference.h"
#include "support.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "npu/vivante/hw/states.h"

#define DESCRIPTOR 0x400000u
#define TABLE 0x402000u
#define INPUT 0x500000u
#define OUTPUT 0x600000u
#define ROOM 0x40000u

static void set(uint32_t *words, enum viv_tp_field field, uint32_t value)
{
    if (!viv_field_set(words, &viv_tp_fields[field], value))
        fail_msg("%s can't hold %u", viv_tp_fields[field].name, value);
}

static void set_loop(uint32_t *words, unsigned loop, uint32_t step, uint32_t count)
{
    static const enum viv_tp_field steps[] = {VIV_TP_OUT_LOOP_0_INC, VIV_TP_OUT_LOOP_1_INC, VIV_TP_OUT_LOOP_2_INC,
                                              VIV_TP_OUT_LOOP_3_INC, VIV_TP_OUT_LOOP_4_INC, VIV_TP_OUT_LOOP_5_INC,
                                              VIV_TP_OUT_LOOP_6_INC};
    static const enum viv_tp_field counts[] = {VIV_TP_OUT_LOOP_0_COUNT, VIV_TP_OUT_LOOP_1_COUNT,
                                               VIV_TP_OUT_LOOP_2_COUNT, VIV_TP_OUT_LOOP_3_COUNT,
                                               VIV_TP_OUT_LOOP_4_COUNT, VIV_TP_OUT_LOOP_5_COUNT};
    set(words, steps[loop], step);
    if (loop < 6)
        set(words, counts[loop], count);
}

static void open_bench_of(struct bench *bench, const struct mica_chip *chip)
{
    struct random random = {11};
    bench_open_chip(bench, chip, NULL);
    bench_map(bench, DESCRIPTOR, 0x4000, MICA_ACCESS_READ);
    bench_map(bench, INPUT, ROOM, MICA_ACCESS_READ);
    bench_map(bench, OUTPUT, ROOM, MICA_ACCESS_WRITE);
    for (size_t i = 0; i < ROOM; i++)
        bench_at(bench, INPUT)[i] = (uint8_t)random_word(&random);
}

static void open_bench(struct bench *bench)
{
    open_bench_of(bench, &bench_chip);
}

/* A scan of a w x h x slices image in one tile, with everything else idle. */
static void describe_scan(uint32_t *words, uint32_t w, uint32_t h, uint32_t slices)
{
    viv_fields_idle(words, VIV_TP_WORDS, viv_tp_fields, VIV_TP_FIELD_COUNT);
    set(words, VIV_TP_IN_IMAGE_X_SIZE, w);
    set(words, VIV_TP_IN_IMAGE_Y_SIZE, h);
    set(words, VIV_TP_IN_IMAGE_Z_SIZE, slices);
    set(words, VIV_TP_IN_IMAGE_STRIDE, w);
    set(words, VIV_TP_IN_IMAGE_SLICE, w * h);
    set(words, VIV_TP_IN_WINDOW_X_END, w - 1);
    set(words, VIV_TP_IN_WINDOW_Y_END, h - 1);
    set(words, VIV_TP_IN_TILE_X_SIZE, w);
    set(words, VIV_TP_IN_TILE_Y_SIZE, h);
    set(words, VIV_TP_IN_TILE_X_INC, w);
    set(words, VIV_TP_IN_TILE_Y_INC, h);
    set(words, VIV_TP_IN_IMAGE_BASE_ADDRESS, INPUT);
    set(words, VIV_TP_OUT_IMAGE_BASE_ADDRESS, OUTPUT);
    set(words, VIV_TP_IN_ZP, 7);
    set(words, VIV_TP_OUT_ZP, 7);
    for (unsigned i = 0; i < 7; i++)
        set_loop(words, i, 0, 1);
}

static int run(struct bench *bench, const uint32_t *words)
{
    memcpy(bench_at(bench, DESCRIPTOR), words, 4 * VIV_TP_WORDS);
    bench->log.last_error[0] = 0;
    return bench_run_tp(bench, DESCRIPTOR, NULL);
}

/* ---- copies ----------------------------------------------------------- */

/* NHWC to planes or back, pads, space-to-depth: tile sizes and output loops at random, sometimes ones that fit. */
static void random_copy(struct random *random, uint32_t *words)
{
    uint32_t tiles_x = 1 + random_below(random, 3), tiles_y = 1 + random_below(random, 3);
    uint32_t tile_w = 1 + random_below(random, 9), tile_h = 1 + random_below(random, 9);
    uint32_t slices = 1 + random_below(random, 4), w = tiles_x * tile_w, h = tiles_y * tile_h;
    uint32_t cut_x = random_below(random, 3) ? 0 : random_below(random, w);
    uint32_t cut_y = random_below(random, 3) ? 0 : random_below(random, h);
    describe_scan(words, w, h, slices);
    set(words, VIV_TP_IN_TILE_X_SIZE, tile_w);
    set(words, VIV_TP_IN_TILE_Y_SIZE, tile_h);
    set(words, VIV_TP_IN_TILE_X_INC, random_below(random, 8) ? tile_w : 1 + random_below(random, 9));
    set(words, VIV_TP_IN_TILE_Y_INC, random_below(random, 8) ? tile_h : 1 + random_below(random, 9));
    /* The image is a part of the window: the rest is padding. */
    set(words, VIV_TP_IN_IMAGE_X_SIZE, w - cut_x);
    set(words, VIV_TP_IN_IMAGE_Y_SIZE, h - cut_y);
    int32_t left = (int32_t)random_below(random, cut_x + 1), top = (int32_t)random_below(random, cut_y + 1);
    set(words, VIV_TP_IN_WINDOW_X_START, (uint32_t)-left);
    set(words, VIV_TP_IN_WINDOW_Y_START, (uint32_t)-top);
    set(words, VIV_TP_IN_WINDOW_X_END, w - 1 - (uint32_t)left);
    set(words, VIV_TP_IN_WINDOW_Y_END, h - 1 - (uint32_t)top);
    set(words, VIV_TP_IN_WINDOW_Z_START_OVERFETCH, random_below(random, 4) ? 0 : random_below(random, 3));
    set(words, VIV_TP_IN_WINDOW_Z_END_OVERFETCH, random_below(random, 4) ? 0 : random_below(random, 3));
    set(words, VIV_TP_OUT_ZP, random_below(random, 2) ? 7 : random_below(random, 256));
    const uint32_t counts[] = {1, 1, 2, 3, tile_w, tile_h, tiles_x, tiles_y, slices, w, h, tile_w * tile_h};
    for (unsigned i = 0; i < 7; i++)
        set_loop(words, i, random_below(random, 200), counts[random_below(random, 12)]);
    bool fitting = random_below(random, 2);
    if (fitting) {
        set_loop(words, 0, 1 + random_below(random, 3), tile_w);
        set_loop(words, 1, random_below(random, 300), tile_h);
        set_loop(words, 2, random_below(random, 300), tiles_x);
        set_loop(words, 3, random_below(random, 300), tiles_y);
        set_loop(words, 4, 0, 1);
        set_loop(words, 5, 0, 1);
        set(words, VIV_TP_OUT_LOOP_1_RESET, random_below(random, 2) && tile_h == 1);
        set(words, VIV_TP_OUT_LOOP_3_RESET, 0);
    }
}

static void short_cut_equals_elements_and_reference(void **state)
{
    struct random random = {21};
    struct bench a, b;
    unsigned nests = 0, rounds = 3000;
    open_bench(&a);
    open_bench(&b);
    b.sim->element_wise = true;
    for (unsigned round = 0; round < rounds; round++) {
        uint32_t words[VIV_TP_WORDS];
        struct bench c = b;
        static uint8_t expected[ROOM];
        random_copy(&random, words);
        memset(bench_at(&a, OUTPUT), 0x5a, ROOM);
        memset(bench_at(&b, OUTPUT), 0x5a, ROOM);
        assert_int_equal(run(&a, words), 0);
        assert_int_equal(run(&b, words), 0);
        if (memcmp(bench_at(&a, OUTPUT), bench_at(&b, OUTPUT), ROOM))
            fail_msg("round %u: the short cut differs", round);
        memcpy(expected, bench_at(&b, OUTPUT), ROOM);
        memset(bench_at(&c, OUTPUT), 0x5a, ROOM);
        reference_tp(c.memory.base, DESCRIPTOR);
        /* It knows nothing of resets, which matter where tiles are cut. */
        if (!viv_tp_get(words, VIV_TP_OUT_LOOP_1_RESET) && memcmp(bench_at(&c, OUTPUT), expected, ROOM))
            fail_msg("round %u: the reference differs", round);
        struct viv_tp job;
        assert_int_equal(viv_tp_parse(a.sim, DESCRIPTOR, words, &job), 0);
        nests += viv_tp_run_nest(a.sim, &job) == 1;
    }
    print_message("%u of %u jobs took the short cut\n", nests, rounds);
    assert_in_range(nests, rounds / 10, rounds - rounds / 10);
    bench_close(&a);
    bench_close(&b);
}

static void every_level_of_transposition(void **state)
{
    enum { W = 13, H = 7, C = 5 };
    struct bench bench;
    uint32_t words[VIV_TP_WORDS];
    open_bench(&bench);
    describe_scan(words, C, W, H); /* specification, section 4.2, first column */
    set(words, VIV_TP_IN_TILE_X_SIZE, 1);
    set(words, VIV_TP_IN_TILE_X_INC, 1);
    set_loop(words, 0, 1, W);
    set_loop(words, 1, W * H, C);
    set_loop(words, 2, W, H);
    assert_int_equal(run(&bench, words), 0);
    for (size_t y = 0; y < H; y++)
        for (size_t x = 0; x < W; x++)
            for (size_t c = 0; c < C; c++)
                assert_int_equal(bench_at(&bench, OUTPUT)[(c * H + y) * W + x],
                                 bench_at(&bench, INPUT)[(y * W + x) * C + c]);
    bench_close(&bench);
}

/* ---- tables ----------------------------------------------------------- */

static uint32_t relu_entry(uint32_t i)
{
    return i < 16 ? 0 : i < 496 ? 0x8000 + (i - 16) * 0x800 : i < 512 ? 0xf7fff : 0x100000;
}

static uint32_t abs_entry(uint32_t i)
{
    return i < 512 ? relu_entry(i) : i < 528 ? 0x100000 : i < 1008 ? 0x8000 + (i - 528) * 0x800 : 0xf7fff;
}

static double argument(uint32_t i)
{
    uint32_t bits = i << 11, exponent = bits >> 15 & 31;
    double value = ldexp(1 + (double)(bits & 0x7fff) / 0x8000, (int)exponent - 15);
    return bits >> 20 ? -value : value;
}

static uint32_t logistic_entry(uint32_t i, double scale)
{
    uint32_t half = i & 511;
    if (half < 16)
        return 0x70000; /* 0.5 */
    if (half >= 496)
        return i < 512 ? 0x78000 : 0; /* 1 and 0 */
    double value = 1 / (1 + exp(-argument(i) * scale));
    int exponent;
    double mantissa = 2 * frexp(value, &exponent) - 1;
    exponent += 14;
    if (exponent <= 0 || mantissa < 0) /* too small for the format, or underflown to 0 */
        return 0;
    return (uint32_t)exponent << 15 | (uint32_t)(mantissa * 0x8000);
}

/* A LUT job as the specification's section 4.4 has it, on a C x H x W tensor. */
static void describe_lut(uint32_t *words, uint32_t x, uint32_t y, uint32_t z, float scale)
{
    uint32_t bits;
    memcpy(&bits, &scale, 4);
    int32_t exponent = 127 - (int32_t)(bits >> 23);
    describe_scan(words, x, y, z);
    set(words, VIV_TP_IN_TILE_X_SIZE, 64);
    set(words, VIV_TP_IN_TILE_X_INC, 64);
    set(words, VIV_TP_IN_TILE_Y_SIZE, 16);
    set(words, VIV_TP_IN_TILE_Y_INC, 16);
    set(words, VIV_TP_ALU_PWL_ENABLE, 1);
    set(words, VIV_TP_ALU_LOAD_PWL_LUT, 1);
    set(words, VIV_TP_ALU_LOAD_PWL_LUT_GLOBAL_MEM, 1);
    set(words, VIV_TP_ALU_PWL_SIGN_SUPPORT, 1);
    set(words, VIV_TP_ALU_LOAD_PWL_LUT_ADDRESS, TABLE);
    set(words, VIV_TP_ALU_OUTPUT_POST_MULTIPLIER, bits >> 8 & 0x7fff);
    set(words, VIV_TP_ALU_OUTPUT_POSTSHIFT, (uint32_t)exponent & 127);
    set(words, VIV_TP_OUT_LOOP_1_RESET, 1);
    set(words, VIV_TP_OUT_LOOP_2_RESET, 1);
    set_loop(words, 0, 0, 1);
    set_loop(words, 1, 1, 0);
    set_loop(words, 2, x, 0);
    set_loop(words, 3, 64, (x + 63) / 64);
    set_loop(words, 4, 16 * x, (y + 15) / 16);
    set_loop(words, 5, 0, 0);
    set_loop(words, 6, x * y, 0);
}

static double expected_value(unsigned kind, double real, double scale)
{
    return kind == 0 ? fmax(real, 0) * scale : kind == 1 ? fabs(real) * scale : 256 / (1 + exp(-real * scale));
}

static void tables(void **state)
{
    enum { X = 70, Y = 18, Z = 2, IN_ZERO = 120, OUT_ZERO = 3 };
    for (unsigned kind = 0; kind < 3; kind++) {
        struct bench bench;
        uint32_t words[VIV_TP_WORDS];
        double scale = kind == 2 ? 0.05 : 0.75;
        open_bench(&bench);
        describe_lut(words, X, Y, Z, kind == 2 ? 256 : (float)scale);
        set(words, VIV_TP_IN_ZP, IN_ZERO);
        set(words, VIV_TP_OUT_ZP, OUT_ZERO);
        for (uint32_t i = 0; i < 1024; i++) {
            uint32_t entry = kind == 0 ? relu_entry(i) : kind == 1 ? abs_entry(i) : logistic_entry(i, scale);
            memcpy(bench_at(&bench, TABLE) + 4 * i, &entry, 4);
        }
        memset(bench_at(&bench, OUTPUT), 0x5a, ROOM);
        assert_int_equal(run(&bench, words), 0);
        for (size_t i = 0; i < X * Y * Z; i++) {
            double value = expected_value(kind, bench_at(&bench, INPUT)[i] - IN_ZERO, scale) + OUT_ZERO;
            double error = bench_at(&bench, OUTPUT)[i] - fmin(fmax(value, 0), 255);
            assert_true(fabs(error) <= (kind == 2 ? 1.0 : 0.51));
        }
        assert_int_equal(bench_at(&bench, OUTPUT)[X * Y * Z], 0x5a);
        bench_close(&bench);
    }
}

/* ---- maxima ----------------------------------------------------------- */

struct pool {
    uint32_t window, step, processing, stride_bit, tile_w, inc_x, tile_h, inc_y;
};

static const struct pool pools[] = {{2, 2, 3, 0, 64, 64, 32, 32},
                                    {3, 2, 3, 1, 63, 62, 33, 32},
                                    {2, 1, 1, 0, 64, 63, 17, 16},
                                    {3, 1, 1, 0, 64, 62, 18, 16}};

static uint8_t maximum(const uint8_t *plane, int w, int h, int x, int y, int window)
{
    uint8_t most = 0;
    for (int j = y; j < y + window; j++)
        for (int i = x; i < x + window; i++)
            if (i >= 0 && i < w && j >= 0 && j < h && plane[j * w + i] > most)
                most = plane[j * w + i];
    return most;
}

static void check_pool(const struct pool *pool, uint32_t w, uint32_t h, uint32_t pad)
{
    struct bench bench;
    uint32_t words[VIV_TP_WORDS], slices = 2;
    uint32_t out_w = (w + 2 * pad - pool->window) / pool->step + 1,
             out_h = (h + 2 * pad - pool->window) / pool->step + 1;
    uint32_t per_tile = (pool->tile_w - pool->window) / pool->step + 1;
    open_bench(&bench);
    describe_scan(words, w, h, slices);
    set(words, VIV_TP_IN_WINDOW_X_START, 0 - pad);
    set(words, VIV_TP_IN_WINDOW_Y_START, 0 - pad);
    set(words, VIV_TP_IN_WINDOW_X_END, w - 1 + pad);
    set(words, VIV_TP_IN_WINDOW_Y_END, h - 1 + pad);
    set(words, VIV_TP_IN_TILE_X_SIZE, pool->tile_w);
    set(words, VIV_TP_IN_TILE_X_INC, pool->inc_x);
    set(words, VIV_TP_IN_TILE_Y_SIZE, pool->tile_h);
    set(words, VIV_TP_IN_TILE_Y_INC, pool->inc_y);
    set(words, VIV_TP_ALU_HORZ_PROCESSING, pool->processing);
    set(words, VIV_TP_ALU_HORZ_PROC_COUNT, pool->window - 1);
    set(words, VIV_TP_ALU_HORZ_PROC_STRIDE, pool->stride_bit);
    set(words, VIV_TP_ALU_VERT_PROCESSING, pool->processing);
    set(words, VIV_TP_ALU_VERT_PROC_COUNT, pool->window - 1);
    set(words, VIV_TP_ALU_VERT_PROC_STRIDE, pool->stride_bit);
    set(words, VIV_TP_IN_IMAGE_BORDER_MODE, 1);
    set(words, VIV_TP_ALU_LOAD_PWL_LUT_GLOBAL_MEM, 1);
    set(words, VIV_TP_OUT_LOOP_1_RESET, 1);
    set(words, VIV_TP_OUT_LOOP_2_RESET, 1);
    set_loop(words, 1, 1, 0);
    set_loop(words, 2, out_w, 0);
    set_loop(words, 3, per_tile, (out_w + per_tile - 1) / per_tile);
    set_loop(words, 4, 16 * out_w, (out_h + 15) / 16);
    set_loop(words, 6, out_w * out_h, 0);
    memset(bench_at(&bench, OUTPUT), 0x5a, ROOM);
    assert_int_equal(run(&bench, words), 0);
    for (uint32_t z = 0; z < slices; z++)
        for (uint32_t y = 0; y < out_h; y++)
            for (uint32_t x = 0; x < out_w; x++)
                assert_int_equal(bench_at(&bench, OUTPUT)[(z * out_h + y) * out_w + x],
                                 maximum(bench_at(&bench, INPUT) + z * w * h, (int)w, (int)h,
                                         (int)(x * pool->step) - (int)pad, (int)(y * pool->step) - (int)pad,
                                         (int)pool->window));
    assert_int_equal(bench_at(&bench, OUTPUT)[slices * out_w * out_h], 0x5a);
    bench_close(&bench);
}

static void maxima(void **state)
{
    for (size_t i = 0; i < sizeof pools / sizeof pools[0]; i++) {
        check_pool(&pools[i], 8, 8, 0);
        check_pool(&pools[i], 64, 33, 0);
        check_pool(&pools[i], 112, 112, 0);
        check_pool(&pools[i], 75, 50, pools[i].window - 1);
        check_pool(&pools[i], 127, 20, 1);
        check_pool(&pools[i], 140, 64, 0);
    }
}

/* ---- refusals --------------------------------------------------------- */

static void expect_refusal(enum viv_tp_field field, uint32_t value)
{
    struct bench bench;
    uint32_t words[VIV_TP_WORDS];
    open_bench(&bench);
    describe_scan(words, 8, 8, 1);
    set_loop(words, 0, 1, 64);
    assert_int_equal(run(&bench, words), 0);
    set(words, field, value);
    assert_int_equal(run(&bench, words), -EIO);
    assert_true(bench.log.last_error[0]);
    bench_close(&bench);
}

static void what_is_not_simulated_is_refused(void **state)
{
    expect_refusal(VIV_TP_IN_TILE_SEQUENCE, 3);
    expect_refusal(VIV_TP_ALU_SQUARE_ENABLE, 1);
    expect_refusal(VIV_TP_ALU_PWL_ENABLE, 1);
    expect_refusal(VIV_TP_IN_IMAGE_DATA_TYPE, 4);
    expect_refusal(VIV_TP_ALU_HORZ_PROCESSING, 2);
    expect_refusal(VIV_TP_ALU_HORZ_PROCESSING, 1); /* with a count of 0 */
    expect_refusal(VIV_TP_IN_CIRC_SIZE, 1);
    expect_refusal(VIV_TP_IN_TILE_X_INC, 0);
    expect_refusal(VIV_TP_IN_TILE_Y_SIZE, 0);
    expect_refusal(VIV_TP_IN_IMAGE_X_SIZE, 0);
    expect_refusal(VIV_TP_IN_WINDOW_X_END, 0xffff8000);
}

static void a_loop_nest_that_never_ends_in_time_is_refused(void **state)
{
    struct bench bench;
    uint32_t words[VIV_TP_WORDS];
    open_bench(&bench);
    describe_scan(words, 8, 8, 1);
    set(words, VIV_TP_IN_IMAGE_Z_SIZE, 65535);
    set(words, VIV_TP_IN_IMAGE_SLICE, 0);
    set(words, VIV_TP_IN_WINDOW_X_END, 32767);
    set(words, VIV_TP_IN_WINDOW_Y_END, 32767);
    set(words, VIV_TP_IN_TILE_X_SIZE, 65535);
    set(words, VIV_TP_IN_TILE_Y_SIZE, 65535);
    set(words, VIV_TP_IN_TILE_X_INC, 1);
    set(words, VIV_TP_IN_TILE_Y_INC, 1);
    assert_int_equal(run(&bench, words), -EIO);
    assert_non_null(strstr(bench.log.last_error, "timeout"));
    bench_close(&bench);
}

static void faults_name_the_address(void **state)
{
    struct bench bench;
    uint32_t words[VIV_TP_WORDS];
    open_bench(&bench);
    describe_scan(words, 64, 64, 1);
    set_loop(words, 0, 1, 64 * 64);
    set(words, VIV_TP_OUT_IMAGE_BASE_ADDRESS, OUTPUT + ROOM - 100);
    assert_int_equal(run(&bench, words), -EFAULT);
    assert_non_null(strstr(bench.log.last_error, "0x00640000"));
    set(words, VIV_TP_OUT_IMAGE_BASE_ADDRESS, OUTPUT);
    set(words, VIV_TP_IN_IMAGE_BASE_ADDRESS, 0xffffff00);
    assert_int_equal(run(&bench, words), -EFAULT);
    assert_non_null(strstr(bench.log.last_error, "0xffffff00"));
    bench_close(&bench);
}

/* Of jobs that run beside each other the first takes the time; a chip with N cores runs N of them. */
static void parts_run_beside_each_other_as_far_as_cores_go(void **state)
{
    for (size_t chip = 0; chip < BENCH_CHIPS; chip++) {
        const uint32_t start = VIV_LOAD_STATE(VIV_PS_TP_INST_ADDR);
        const uint32_t stream[] = {start,      DESCRIPTOR, start,      DESCRIPTOR, start,
                                   DESCRIPTOR, start,      DESCRIPTOR, start,      DESCRIPTOR};
        struct mica_job_report reports[5];
        struct bench bench;
        uint32_t words[VIV_TP_WORDS];
        size_t count;
        open_bench_of(&bench, bench_chips[chip]);
        describe_scan(words, 16, 16, 2);
        set_loop(words, 0, 1, 512);
        memcpy(bench_at(&bench, DESCRIPTOR), words, sizeof words);
        assert_int_equal(viv_sim_run(bench.sim, stream, 10, reports, 5, &count), 0);
        assert_int_equal(count, 5);
        for (size_t i = 0; i < 5; i++) {
            assert_int_equal(reports[i].cycles != 0, i % bench.sim->chip->tp_cores == 0);
            assert_int_equal(reports[i].read_bytes, 512);
        }
        bench_close(&bench);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_cut_equals_elements_and_reference),
        cmocka_unit_test(every_level_of_transposition),
        cmocka_unit_test(tables),
        cmocka_unit_test(maxima),
        cmocka_unit_test(what_is_not_simulated_is_refused),
        cmocka_unit_test(a_loop_nest_that_never_ends_in_time_is_refused),
        cmocka_unit_test(faults_name_the_address),
        cmocka_unit_test(parts_run_beside_each_other_as_far_as_cores_go),
    };
    return cmocka_run_group_tests_name("TP jobs", tests, NULL, NULL);
}
