/* SPDX-License-Identifier: MIT */
#include "cpu/gemm.h"

#include <stdatomic.h>
#include <string.h>

#include "cpu/simd.h"
#include "util/checked.h"

/* Rows (at most) and columns of one task: its sums and its part of the left side stay in the second-level cache. */
enum { TASK_ROWS = 32, TASK_COLUMNS = 256, TILE_ROWS = 4 };
/* From this depth on a task has the fewest rows, for the sake of memory. */
enum { DEEP = 1 << 16 };

struct packing {
    const struct mica_tensor *tensor;
    const uint8_t *data;
    size_t taps, depth;
    int16_t *out;
};

static void pack_column(void *user, size_t column)
{
    const struct packing *p = user;
    mica_gemm_widen(p->data + column * p->taps, p->taps, mica_cpu_flip(p->tensor), mica_cpu_zero_point(p->tensor),
                    p->out + column * p->depth);
}

int16_t *mica_gemm_pack_weights(const struct mica_tensor *weights, const uint8_t *data, size_t columns, size_t taps,
                                struct mica_threads *threads)
{
    size_t filled = mica_align(columns, MICA_GEMM_TILE);
    struct packing p = {weights, data, taps, mica_gemm_depth(taps), NULL};
    p.out = mica_new_array(filled * p.depth, sizeof *p.out);
    if (p.out)
        mica_parallel_for(threads, columns, pack_column, &p);
    return p.out;
}

/* 4 rows by 2 columns: sums[row][column], `stride` sums a row. */
MICA_INLINE void tile(const int16_t *a, const int16_t *b, size_t depth, int32_t *sums, size_t stride)
{
    const int16_t *a0 = a, *a1 = a + depth, *a2 = a + 2 * depth, *a3 = a + 3 * depth, *b0 = b, *b1 = b + depth;
    uint32_t s00 = 0, s01 = 0, s10 = 0, s11 = 0, s20 = 0, s21 = 0, s30 = 0, s31 = 0;
    for (size_t k = 0; k < depth / MICA_GEMM_STEP * MICA_GEMM_STEP; k++) {
        s00 += (uint32_t)(a0[k] * b0[k]);
        s01 += (uint32_t)(a0[k] * b1[k]);
        s10 += (uint32_t)(a1[k] * b0[k]);
        s11 += (uint32_t)(a1[k] * b1[k]);
        s20 += (uint32_t)(a2[k] * b0[k]);
        s21 += (uint32_t)(a2[k] * b1[k]);
        s30 += (uint32_t)(a3[k] * b0[k]);
        s31 += (uint32_t)(a3[k] * b1[k]);
    }
    sums[0] = (int32_t)s00, sums[1] = (int32_t)s01;
    sums[stride] = (int32_t)s10, sums[stride + 1] = (int32_t)s11;
    sums[2 * stride] = (int32_t)s20, sums[2 * stride + 1] = (int32_t)s21;
    sums[3 * stride] = (int32_t)s30, sums[3 * stride + 1] = (int32_t)s31;
}

MICA_INLINE void block_body(const struct mica_gemm *gemm, const int16_t *left, size_t rows, size_t first, size_t count,
                            int32_t *sums)
{
    for (size_t column = 0; column < count; column += MICA_GEMM_TILE)
        for (size_t row = 0; row < rows; row += TILE_ROWS)
            tile(left + row * gemm->depth, gemm->weights + (first + column) * gemm->depth, gemm->depth,
                 sums + row * TASK_COLUMNS + column, TASK_COLUMNS);
}

MICA_CPU_WIDE(block,
              (const struct mica_gemm *gemm, const int16_t *left, size_t rows, size_t first, size_t count,
               int32_t *sums),
              (gemm, left, rows, first, count, sums))

MICA_INLINE void finish_body(const struct mica_gemm *gemm, int32_t *sums, size_t first, size_t count, uint8_t *out)
{
    if (gemm->bias)
        for (size_t i = 0; i < count; i++)
            sums[i] = (int32_t)((uint32_t)sums[i] + (uint32_t)gemm->bias[first + i]);
    mica_requant_row(gemm->requant, sums, first, count, out);
}

MICA_CPU_WIDE(finish, (const struct mica_gemm *gemm, int32_t *sums, size_t first, size_t count, uint8_t *out),
              (gemm, sums, first, count, out))

struct run {
    const struct mica_gemm *gemm;
    size_t task_rows, column_tasks;
    atomic_bool out_of_memory;
};

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void run_task(void *user, size_t index)
{
    struct run *run = user;
    const struct mica_gemm *gemm = run->gemm;
    size_t row = index / run->column_tasks * run->task_rows, column = index % run->column_tasks * TASK_COLUMNS;
    size_t rows = least(gemm->rows - row, run->task_rows), columns = least(gemm->columns - column, TASK_COLUMNS);
    size_t filled = mica_align(rows, TILE_ROWS);
    int16_t *left = mica_new_array(filled * gemm->depth, sizeof *left);
    int32_t *sums = malloc(filled * TASK_COLUMNS * sizeof *sums);
    if (!left || !sums) {
        atomic_store(&run->out_of_memory, true);
    } else {
        for (size_t i = 0; i < rows; i++)
            gemm->pack(gemm->user, row + i, left + i * gemm->depth);
        block(gemm, left, filled, column, columns, sums);
        for (size_t i = 0; i < rows; i++) {
            size_t place = gemm->place ? gemm->place(gemm->user, row + i) : row + i;
            finish(gemm, sums + i * TASK_COLUMNS, column, columns, gemm->output + place * gemm->columns + column);
        }
    }
    free(sums);
    free(left);
}

int mica_gemm_run(const struct mica_gemm *gemm, struct mica_threads *threads, struct mica_log *log)
{
    struct run run = {
        .gemm = gemm,
        .task_rows = gemm->depth < DEEP ? TASK_ROWS : TILE_ROWS,
        .column_tasks = (gemm->columns + TASK_COLUMNS - 1) / TASK_COLUMNS,
    };
    size_t row_tasks = (gemm->rows + run.task_rows - 1) / run.task_rows;
    mica_parallel_for(threads, row_tasks * run.column_tasks, run_task, &run);
    return run.out_of_memory ? mica_fail_nomem(log) : 0;
}

int mica_gemm_run_part(struct mica_gemm *gemm, const struct mica_cpu_call *call, size_t taps,
                       const struct mica_tensor *tensor, const uint8_t *weights)
{
    int16_t *packed = mica_gemm_pack_weights(tensor, weights, gemm->columns, taps, call->threads);
    gemm->depth = mica_gemm_depth(taps);
    gemm->weights = packed;
    int result = packed ? mica_gemm_run(gemm, call->threads, call->log) : mica_fail_nomem(call->log);
    free(packed);
    return result;
}

int mica_gemm_run_call(struct mica_gemm *gemm, const struct mica_cpu_call *call, size_t taps,
                       enum mica_activation activation, enum mica_tflite_rounding rounding)
{
    struct mica_requant requant;
    int result = mica_requant_init(&requant, call, activation, gemm->columns, rounding);
    if (result)
        return result;
    gemm->bias = mica_cpu_input_data(call, mica_cpu_bias_input(call->op));
    gemm->requant = &requant;
    gemm->output = mica_cpu_output_data(call, 0);
    result = mica_gemm_run_part(gemm, call, taps, mica_cpu_input(call, 1), mica_cpu_input_data(call, 1));
    mica_requant_finish(&requant);
    return result;
}
