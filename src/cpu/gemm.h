/* SPDX-License-Identifier: MIT */
/*
 * Matrix products: convolutions and fully connected layers put the taps of
 * each output pixel in a row and multiply by the weights.
 */
#ifndef MICA_CPU_GEMM_H
#define MICA_CPU_GEMM_H

#include "cpu/requant.h"

/* Depths are filled up with zeros to a multiple of this, columns to a multiple of MICA_GEMM_TILE. */
#define MICA_GEMM_STEP 16
#define MICA_GEMM_TILE 2
/* More taps are refused: rows of the left side are kept whole, and no layer comes near. */
#define MICA_GEMM_MAX_TAPS ((size_t)1 << 22)

struct mica_gemm {
    size_t rows, columns; /* output pixels and channels */
    size_t depth;         /* taps that one output sums over, filled up */
    /* Writes row `row` of the left side, `depth` values with the zero point subtracted, zeros at the end. */
    void (*pack)(const void *user, size_t row, int16_t *out);
    const void *user;
    size_t (*place)(const void *user, size_t row); /* where row `row` of the output goes; NULL: to its own place */
    const int16_t *weights;                        /* [columns filled up][depth], zero point subtracted */
    const int32_t *bias;                           /* [columns], may be NULL */
    const struct mica_requant *requant;
    uint8_t *output; /* [rows][columns] */
};

/*
 * Weights [columns][taps] of either 8-bit type into what struct mica_gemm wants; NULL when memory runs out. All
 * channels share one zero point: with a scale for each it is 0.
 */
int16_t *mica_gemm_pack_weights(const struct mica_tensor *weights, const uint8_t *data, size_t columns, size_t taps,
                                struct mica_threads *threads);

static inline size_t mica_gemm_depth(size_t taps)
{
    return (taps + MICA_GEMM_STEP - 1) / MICA_GEMM_STEP * MICA_GEMM_STEP;
}

/* 8-bit values to 16 bits with the zero point (in the unsigned domain) subtracted. */
static inline void mica_gemm_widen(const uint8_t *in, size_t count, uint8_t flip, int32_t zero_point, int16_t *out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = (int16_t)((in[i] ^ flip) - zero_point);
}

/* output[row][column] = requant(bias + sum over taps), sums modulo 2^32. -ENOMEM or 0. */
int mica_gemm_run(const struct mica_gemm *gemm, struct mica_threads *threads, struct mica_log *log);

/*
 * One product of the larger ones that make up an operation: needs all but weights, which come as bytes [columns][taps]
 * quantized as `tensor`.
 */
int mica_gemm_run_part(struct mica_gemm *gemm, const struct mica_cpu_call *call, size_t taps,
                       const struct mica_tensor *tensor, const uint8_t *weights);

/* The same for a call of an 8-bit operation: needs rows, columns, pack and user, and fills in the rest. */
int mica_gemm_run_call(struct mica_gemm *gemm, const struct mica_cpu_call *call, size_t taps,
                       enum mica_activation activation, enum mica_tflite_rounding rounding);

struct mica_gemm_float {
    size_t rows, columns, taps;
    void (*pack)(const void *user, size_t row, float *out); /* `taps` values */
    const void *user;
    size_t (*place)(const void *user, size_t row); /* see struct mica_gemm */
    const float *weights;                          /* [columns][taps] */
    const float *bias;                             /* may be NULL */
    float min, max;                                /* activation */
    float *output;
};

/* Each sum runs over its taps in order and the bias comes last, as in TFLite's reference kernels. -ENOMEM or 0. */
int mica_gemm_float_run(const struct mica_gemm_float *gemm, struct mica_threads *threads, struct mica_log *log);

#endif
