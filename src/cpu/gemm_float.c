/* SPDX-License-Identifier: MIT */
#include <stdatomic.h>

#include "cpu/gemm.h"
#include "cpu/simd.h"
#include "util/checked.h"

/* Channels side by side in vectors; each channel's sum is in the order of its taps. */
enum { LANES = 16, ROWS = 4 };

struct run {
    const struct mica_gemm_float *gemm;
    float *weights; /* [blocks of LANES columns][taps][LANES] */
    size_t blocks;
    atomic_bool out_of_memory;
};

static void transpose_block(void *user, size_t block)
{
    struct run *run = user;
    const struct mica_gemm_float *gemm = run->gemm;
    float *out = run->weights + block * gemm->taps * LANES;
    for (size_t lane = 0; lane < LANES && block * LANES + lane < gemm->columns; lane++)
        for (size_t tap = 0; tap < gemm->taps; tap++)
            out[tap * LANES + lane] = gemm->weights[(block * LANES + lane) * gemm->taps + tap];
}

MICA_INLINE void sum_body(const float *left, const float *weights, size_t taps, float *sums)
{
    float totals[ROWS][LANES] = {0};
    for (size_t tap = 0; tap < taps; tap++)
        for (size_t row = 0; row < ROWS; row++)
            for (size_t lane = 0; lane < LANES; lane++)
                totals[row][lane] += left[row * taps + tap] * weights[tap * LANES + lane];
    for (size_t row = 0; row < ROWS; row++)
        for (size_t lane = 0; lane < LANES; lane++)
            sums[row * LANES + lane] = totals[row][lane];
}

MICA_CPU_WIDE(sum, (const float *left, const float *weights, size_t taps, float *sums), (left, weights, taps, sums))

static void store(const struct mica_gemm_float *gemm, const float *sums, size_t row, size_t block)
{
    for (size_t i = 0; i < ROWS && row + i < gemm->rows; i++) {
        size_t place = gemm->place ? gemm->place(gemm->user, row + i) : row + i;
        for (size_t lane = 0; lane < LANES && block * LANES + lane < gemm->columns; lane++) {
            size_t column = block * LANES + lane;
            float value = sums[i * LANES + lane] + (gemm->bias ? gemm->bias[column] : 0.0f);
            gemm->output[place * gemm->columns + column] = mica_clamp_float(value, gemm->min, gemm->max);
        }
    }
}

static void run_rows(void *user, size_t index)
{
    struct run *run = user;
    const struct mica_gemm_float *gemm = run->gemm;
    float sums[ROWS * LANES];
    float *left = mica_new_array(ROWS * gemm->taps, sizeof *left);
    if (!left) {
        atomic_store(&run->out_of_memory, true);
        return;
    }
    for (size_t i = 0; i < ROWS && index * ROWS + i < gemm->rows; i++)
        gemm->pack(gemm->user, index * ROWS + i, left + i * gemm->taps);
    for (size_t block = 0; block < run->blocks; block++) {
        sum(left, run->weights + block * gemm->taps * LANES, gemm->taps, sums);
        store(gemm, sums, index * ROWS, block);
    }
    free(left);
}

int mica_gemm_float_run(const struct mica_gemm_float *gemm, struct mica_threads *threads, struct mica_log *log)
{
    struct run run = {gemm, NULL, (gemm->columns + LANES - 1) / LANES, false};
    run.weights = mica_new_array(run.blocks * gemm->taps, LANES * sizeof *run.weights);
    if (!run.weights)
        return mica_fail_nomem(log);
    mica_parallel_for(threads, run.blocks, transpose_block, &run);
    mica_parallel_for(threads, (gemm->rows + ROWS - 1) / ROWS, run_rows, &run);
    free(run.weights);
    return run.out_of_memory ? mica_fail_nomem(log) : 0;
}
