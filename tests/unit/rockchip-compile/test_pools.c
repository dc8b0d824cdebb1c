/* SPDX-License-Identifier: MIT */
/* Pooling and MEAN, run on both generations' simulators. */
#include <math.h>
#include <string.h>

#include "rig.h"

static const struct mica_chip *const chips[] = {&test_rk3588, &test_rk3566};
#define CHIPS 2

/* ---- windows -------------------------------------------------------------------- */

struct pool {
    struct mica_op op;
    int32_t h, w, c, out_h, out_w, in, out;
};

static void axis(struct rig *rig, bool same, int32_t size, int32_t kernel, int32_t stride, int32_t *before,
                 int32_t *after, int32_t *out)
{
    *before = *after = 0;
    if (same)
        *before = mica_same_padding(size, kernel, stride, 1, after);
    *out = (size + *before + *after - kernel) / stride + 1;
    (void)rig;
}

static void any_pool(struct rig *rig, struct pool *pool, bool max)
{
    struct mica_window *w = &pool->op.window;
    bool same = rig_between(rig, 0, 1);
    pool->h = rig_between(rig, 1, 24);
    pool->w = rig_between(rig, 1, 24);
    pool->c = rig_channels(rig);
    int32_t most = max ? 6 : 4;
    w->kernel_x = rig_between(rig, 1, pool->w < most ? pool->w : most);
    w->kernel_y = rig_between(rig, 0, 2) && w->kernel_x <= pool->h
                      ? w->kernel_x
                      : rig_between(rig, 1, pool->h < most ? pool->h : most);
    w->stride_x = rig_between(rig, 1, 3);
    w->stride_y = rig_between(rig, 0, 2) ? w->stride_x : rig_between(rig, 1, 3);
    if (rig_between(rig, 0, 9) == 0) { /* all of the image */
        same = false;
        w->kernel_x = pool->w;
        w->kernel_y = pool->h;
    }
    axis(rig, same, pool->w, w->kernel_x, w->stride_x, &w->padding.left, &w->padding.right, &pool->out_w);
    axis(rig, same, pool->h, w->kernel_y, w->stride_y, &w->padding.top, &w->padding.bottom, &pool->out_h);
    w->activation = rig_between(rig, 0, 1) ? MICA_ACT_NONE : (enum mica_activation)rig_between(rig, 1, 3);
    pool->op.kind = max ? MICA_OP_MAX_POOL_2D : MICA_OP_AVERAGE_POOL_2D;
}

static double clamped(const struct rig *rig, const struct pool *pool, double value)
{
    double scale = (double)rig->net.graph->tensors[pool->out].quant.scale[0];
    enum mica_activation activation = pool->op.window.activation;
    double low = activation == MICA_ACT_RELU_N1_TO_1 ? round(-1 / scale) * scale : 0;
    double high = round((activation == MICA_ACT_RELU_N1_TO_1 ? 1 : 6) / scale) * scale;
    if (activation == MICA_ACT_NONE)
        return value;
    value = value < low ? low : value;
    return activation != MICA_ACT_RELU && value > high ? high : value;
}

static void check_window(const struct rig *rig, const struct pool *pool, int32_t y, int32_t x, int32_t c)
{
    const struct mica_window *w = &pool->op.window;
    bool max = pool->op.kind == MICA_OP_MAX_POOL_2D;
    double sum = 0, most = -INFINITY;
    int32_t count = 0;
    for (int32_t i = 0; i < w->kernel_y; i++)
        for (int32_t j = 0; j < w->kernel_x; j++) {
            int32_t row = y * w->stride_y - w->padding.top + i, column = x * w->stride_x - w->padding.left + j;
            if (row < 0 || row >= pool->h || column < 0 || column >= pool->w)
                continue;
            double value = rig_real(rig, pool->in, row, column, c);
            sum += value;
            most = value > most ? value : most;
            count++;
        }
    rig_check(rig, pool->out, y, x, c, clamped(rig, pool, max ? most : sum / count), max ? 1e-6 : 0.51);
}

static bool run_pool(const struct mica_chip *chip, uint64_t seed, bool max)
{
    struct rig rig;
    struct pool pool = {.h = 0};
    rig_open(&rig, chip, seed);
    any_pool(&rig, &pool, max);
    struct spec in = rig_image(&rig, 0.06, pool.h, pool.w, pool.c), out = in;
    out.dims[1] = pool.out_h;
    out.dims[2] = pool.out_w;
    pool.in = rig_input(&rig, &in);
    pool.out = rig_output(&rig, &out);
    rig_op(&rig, pool.op, max ? "MAX_POOL_2D" : "AVERAGE_POOL_2D", &pool.in, 1, &pool.out, 1);
    bool runs = rig_run(&rig);
    for (int32_t y = 0; runs && y < pool.out_h; y++)
        for (int32_t x = 0; x < pool.out_w; x++)
            for (int32_t c = 0; c < pool.c; c++)
                check_window(&rig, &pool, y, x, c);
    if (runs)
        rig_check_cpu(&rig, pool.out);
    else
        assert_non_null(strstr(rig.reason, "different numbers of pixels"));
    rig_close(&rig);
    return runs;
}

static void run_pools(bool max)
{
    unsigned ran = 0;
    for (uint64_t seed = 1; seed <= 150; seed++)
        ran += run_pool(chips[seed % CHIPS], seed, max);
    print_message("%u of 150 ran\n", ran);
    assert_true(ran > 140);
}

static void maximum_is_exact(void **state)
{
    (void)state;
    run_pools(true);
}

static void average_is_rounded_once(void **state)
{
    (void)state;
    run_pools(false);
}

/* ---- mean ------------------------------------------------------------------------- */

static double mean_of(const struct rig *rig, int32_t in, int32_t y, int32_t x, int32_t c, int32_t h, int32_t w)
{
    double sum = 0;
    for (int32_t i = y < 0 ? 0 : y; i <= (y < 0 ? h - 1 : y); i++)
        for (int32_t j = x < 0 ? 0 : x; j <= (x < 0 ? w - 1 : x); j++)
            sum += rig_real(rig, in, i, j, c);
    return sum / ((y < 0 ? h : 1) * (x < 0 ? w : 1));
}

static bool run_mean(const struct mica_chip *chip, uint64_t seed, int32_t h, int32_t w, char *reason)
{
    struct rig rig;
    rig_open(&rig, chip, seed);
    int32_t c = rig_channels(&rig), which = rig_between(&rig, 1, 3); /* bit 0: rows, bit 1: columns */
    bool keep = rig_between(&rig, 0, 1), rows = which & 1, columns = which & 2;
    struct spec in = rig_image(&rig, 0.05, h, w, c), out = rig_image(&rig, 0.05, rows ? 1 : h, columns ? 1 : w, c);
    int32_t left = keep ? 4 : 0, axes[2] = {rows ? 1 : -2, rows ? -2 : 2};
    for (int32_t i = 0; !keep && i < 4; i++)
        if (!((i == 1 && rows) || (i == 2 && columns)))
            out.dims[left++] = i == 1 ? h : i == 2 ? w : i == 3 ? c : 1;
    out.rank = (uint32_t)left;
    int32_t from = rig_input(&rig, &in), to = rig_output(&rig, &out);
    int32_t inputs[2] = {from, rig_numbers(&rig, axes, rows && columns ? 2 : 1)};
    rig_op(&rig, (struct mica_op){.kind = MICA_OP_MEAN, .keep_dims = keep}, "MEAN", inputs, 2, &to, 1);
    bool runs = rig_run(&rig), two = (rows && h > 31) || (columns && w > 31);
    int32_t pixels = (rows ? 1 : h) * (columns ? 1 : w), width = columns ? 1 : w;
    for (int32_t p = 0; runs && p < pixels; p++)
        for (int32_t k = 0; k < c; k++) {
            double exact = mean_of(&rig, from, rows ? -1 : p / width, columns ? -1 : p % width, k, h, w);
            int32_t columns_out = out.rank > 1 ? out.dims[out.rank - 2] : 1;
            rig_check(&rig, to, p / columns_out, p % columns_out, k, exact, two ? 1.4 : 0.52);
        }
    if (runs && !two)
        rig_check_cpu(&rig, to);
    strcpy(reason, rig.reason);
    rig_close(&rig);
    return runs;
}

static void means_are_within_one(void **state)
{
    (void)state;
    char reason[256];
    for (uint64_t seed = 1; seed <= 60; seed++)
        assert_true(
            run_mean(chips[seed % CHIPS], seed, 1 + (int32_t)(seed * 7 % 31), 1 + (int32_t)(seed * 11 % 31), reason));
    unsigned ran = 0;
    for (uint64_t seed = 1; seed <= 20; seed++)
        ran += run_mean(chips[seed % CHIPS], seed, 56, 64, reason);
    assert_true(ran > 5);
}

/* Surfaces that are computed as rows of fewer channels, and shapes that can't be. */
static void means_of_many_channels_are_exact(void **state)
{
    (void)state;
    static const int32_t shapes[][3] = {{7, 7, 1280}, {7, 7, 1024}, {4, 4, 64},  {1, 9, 96}, {6, 5, 128},
                                        {8, 8, 192},  {3, 2, 80},   {5, 5, 104}, {1, 1, 64}, {13, 1, 256}};
    for (uint64_t n = 0; n < 2 * sizeof(shapes) / sizeof(shapes[0]); n++) {
        const int32_t *shape = shapes[n / 2];
        struct rig rig;
        rig_open(&rig, chips[n % CHIPS], n + 1);
        struct spec in = rig_image(&rig, 0.05, shape[0], shape[1], shape[2]), out = in;
        out.dims[1] = out.dims[2] = 1;
        int32_t from = rig_input(&rig, &in), to = rig_output(&rig, &out);
        struct mica_op op = {.kind = MICA_OP_AVERAGE_POOL_2D};
        op.window = (struct mica_window){.kernel_x = shape[1], .kernel_y = shape[0], .stride_x = 1, .stride_y = 1};
        rig_op(&rig, op, "AVERAGE_POOL_2D", &from, 1, &to, 1);
        assert_true(rig_run(&rig));
        rig_check_cpu(&rig, to);
        rig_close(&rig);
    }
}

/* The image of a mean can't be larger than two steps of windows do. */
static void refusals_say_why(void **state)
{
    (void)state;
    char reason[256];
    uint64_t seed = 1;
    while (run_mean(chips[0], seed, 37, 37, reason))
        assert_true(++seed < 5);
    assert_non_null(strstr(reason, "end at 31 pixels"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maximum_is_exact),     cmocka_unit_test(average_is_rounded_once),
        cmocka_unit_test(means_are_within_one), cmocka_unit_test(means_of_many_channels_are_exact),
        cmocka_unit_test(refusals_say_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
