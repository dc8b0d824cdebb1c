/* SPDX-License-Identifier: MIT */
/* Pooling against the rules of the specification's section 13, written down once more. */
#include <stdlib.h>

#include "programs.h"
#include "util/checked.h"

enum { AVERAGE, MAX, MIN };

/* Whole numbers only: sign * ((|sum| + n / 2) / n), and a step back where a tie shall not go away from zero. */
static int average(int sum, int kernel_w, int kernel_h)
{
    int n = kernel_w * kernel_h, quotient = (abs(sum) + n / 2) / n;
    bool tie = 2 * (abs(sum) % n) == n, whole = 65536 % kernel_w == 0 && 65536 % kernel_h == 0;
    if (tie && (!whole || quotient % 2))
        quotient -= 1;
    return sum < 0 ? -quotient : quotient;
}

static int expected(const struct bench *bench, const struct shape *shape, int atom, int method, int pad, int x, int y,
                    int c)
{
    const uint8_t *in = bench->memory.base + VECTOR_INPUT;
    int sum = 0, highest = -128, lowest = 127;
    for (int ky = 0; ky < (int)shape->kernel_h; ky++)
        for (int kx = 0; kx < (int)shape->kernel_w; kx++) {
            int ix = x * (int)shape->stride_x - (int)shape->left + kx,
                iy = y * (int)shape->stride_y - (int)shape->top + ky;
            if (ix < 0 || iy < 0 || ix >= (int)shape->width || iy >= (int)shape->rows) {
                sum += pad;
                continue;
            }
            size_t at =
                (size_t)(c / atom * (int)(shape->width * shape->rows) + iy * (int)shape->width + ix) * (size_t)atom;
            int value = (int8_t)in[at + (size_t)(c % atom)];
            sum += value;
            highest = value > highest ? value : highest;
            lowest = value < lowest ? value : lowest;
        }
    return method == MAX ? highest : method == MIN ? lowest : average(sum, (int)shape->kernel_w, (int)shape->kernel_h);
}

static void set_method(struct task *task, const struct shape *shape, uint32_t method, int pad)
{
    set_field(task, RK_PPU_OPERATION_MODE_CFG_POOLING_METHOD, method);
    set_field(task, RK_PPU_PADDING_VALUE_1_CFG_PAD_VALUE_0, (uint32_t)pad);
    if (method != AVERAGE)
        return;
    set_field(task, RK_PPU_RECIP_KERNEL_WIDTH_RECIP_KERNEL_WIDTH, 65536 / shape->kernel_w);
    set_field(task, RK_PPU_RECIP_KERNEL_HEIGHT_RECIP_KERNEL_HEIGHT, 65536 / shape->kernel_h);
}

static void random_pools_on(const struct mica_chip *chip)
{
    struct random random = {61};
    struct bench bench;
    int atom = (int)((const struct rk_chip *)chip->parameters)->atom;
    bench_open(&bench, chip, NULL);
    fill_rooms(&bench, &random);
    for (unsigned round = 0; round < 300; round++) {
        struct shape shape = {.width = 1 + random_below(&random, 12),
                              .rows = 1 + random_below(&random, 9),
                              .channels = 1 + random_below(&random, 40),
                              .kernel_w = 1 + random_below(&random, 4),
                              .kernel_h = 1 + random_below(&random, 4),
                              .stride_x = 1 + random_below(&random, 3),
                              .stride_y = 1 + random_below(&random, 3),
                              .dilation_x = 1,
                              .dilation_y = 1,
                              .left = random_below(&random, 3),
                              .top = random_below(&random, 3)};
        uint32_t method = round % 3;
        int pad = (int)random_below(&random, 256) - 128;
        struct task task;
        if (shape.width + 2 * shape.left < shape.kernel_w || shape.rows + 2 * shape.top < shape.kernel_h)
            continue;
        shape_fit(&shape);
        make_pool(&task, chip, &shape);
        set_method(&task, &shape, method, pad);
        if (run_task(&bench, &task, NULL))
            fail_msg("%s", bench.log.last_error);
        for (int c = 0; c < (int)shape.channels; c++)
            for (int y = 0; y < (int)shape.out_rows; y++)
                for (int x = 0; x < (int)shape.out_width; x++) {
                    size_t plane = (size_t)shape.out_width * shape.out_rows;
                    size_t at = ((size_t)(c / atom) * plane + (size_t)y * shape.out_width + (size_t)x) * (size_t)atom;
                    int got = (int8_t)bench_at(&bench, VECTOR_OUTPUT)[at + (size_t)(c % atom)];
                    assert_int_equal(got, expected(&bench, &shape, atom, (int)method, pad, x, y, c));
                }
    }
    bench_close(&bench);
}

static void random_pools(void **state)
{
    random_pools_on(&bench_rk3588);
    random_pools_on(&bench_rk3566);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_pools)};
    return cmocka_run_group_tests_name("pooling", tests, NULL, NULL);
}
