/* SPDX-License-Identifier: MIT */
/* The plain version, which the others are checked against, and the choice among them. */
#include "npu/rockchip/sim/kernels.h"

#include <string.h>

static void direct_pixel(int32_t *sums, const int16_t *pixel, const struct rk_runs *runs, const int8_t *weights)
{
    memset(sums, 0, sizeof *sums * RK_COLUMNS);
    for (size_t run = 0; run < runs->count; run++) {
        const int16_t *x = pixel + runs->offsets[run];
        for (size_t pair = 0; pair < runs->pairs; pair++, x += 2, weights += 2 * RK_COLUMNS)
            for (uint32_t column = 0; column < RK_COLUMNS; column++)
                sums[column] += x[0] * weights[2 * column] + x[1] * weights[2 * column + 1];
    }
}

static void direct(int32_t *sums, size_t stride, const int16_t *const *pixels, unsigned count,
                   const struct rk_runs *runs, const int8_t *weights)
{
    for (unsigned i = 0; i < count; i++)
        direct_pixel(sums + i * stride, pixels[i], runs, weights);
}

static void depthwise(int32_t *sums, int32_t *totals, const int16_t *pixel, const struct rk_runs *runs, unsigned odd,
                      const int8_t *weights)
{
    for (uint32_t place = 0; place < RK_COLUMNS; place++) {
        uint32_t column = rk_depthwise_channel(place);
        int32_t sum = 0, total = 0;
        for (size_t tap = 0; tap < runs->count; tap++) {
            int32_t x = pixel[runs->offsets[tap] + column];
            sum += x * weights[(tap / 2 * RK_COLUMNS + place) * 2 + tap % 2];
            total += tap + odd < runs->count ? x : 0;
        }
        sums[column] = sum;
        if (totals)
            totals[column] = total;
    }
}

static void widen(int16_t *out, size_t step, const int8_t *in, size_t count, unsigned lanes)
{
    for (; count; count--, out += step, in += lanes)
        for (unsigned lane = 0; lane < lanes; lane++)
            out[lane] = in[lane];
}

const struct rk_kernels rk_kernels_portable = {"portable", direct, depthwise, widen};

const struct rk_kernels *rk_kernels_at(size_t index)
{
    const struct rk_kernels *known[3] = {&rk_kernels_portable};
    size_t count = 1;
#ifdef RK_KERNELS_AVX2
    if (__builtin_cpu_supports("avx2"))
        known[count++] = &rk_kernels_avx2;
#endif
#ifdef RK_KERNELS_NEON
    known[count++] = &rk_kernels_neon;
#endif
    return index < count ? known[index] : NULL;
}

const struct rk_kernels *rk_kernels_best(void)
{
    const struct rk_kernels *vector = rk_kernels_at(1);
    return vector ? vector : &rk_kernels_portable;
}
