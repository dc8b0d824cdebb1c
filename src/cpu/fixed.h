/* SPDX-License-Identifier: MIT */
/* TFLite's fixed-point arithmetic: numbers alone, nothing of tensors. */
#ifndef MICA_CPU_FIXED_H
#define MICA_CPU_FIXED_H

#include <stdint.h>

/* A real factor as the arithmetic keeps it. */
struct mica_multiplier {
    /* TFLite: 31 fraction bits, in [2^30, 2^31), or 0. NPU: integer, 2^15 (V7) or 2^23 (V8) plus the mantissa. */
    int32_t mantissa;
    /* TFLite: the factor is mantissa * 2^(shift - 31), shift in [-31, 30]. NPU: mantissa / 2^shift. */
    int32_t shift;
};

/* TFLite's fixed-point form of a real factor. */
struct mica_multiplier mica_multiplier_tflite(double factor);

static inline float mica_clamp_float(float value, float min, float max)
{
    value = value < min ? min : value;
    return max < value ? max : value;
}

static inline int32_t mica_clamp_int(int32_t value, int32_t min, int32_t max)
{
    value = value < min ? min : value;
    return value > max ? max : value;
}

/* round(a * b / 2^31), ties towards plus infinity. */
static inline int32_t mica_high_multiply(int32_t a, int32_t b)
{
    /* The bits above 2^63 are cut off below, so that a logical shift serves; vector units have no other for 64 bits. */
    return (int32_t)(uint32_t)(((uint64_t)((int64_t)a * b) + (UINT64_C(1) << 30)) >> 31);
}

/* round(value / 2^shift), ties away from zero; shift in [0, 31]. */
static inline int32_t mica_rounding_shift(int32_t value, int32_t shift)
{
    int32_t mask = (int32_t)((UINT32_C(1) << shift) - 1);
    return (value >> shift) + ((value & mask) > (mask >> 1) + (value < 0));
}

/* The reference kernels' two roundings, one after the other. */
static inline int32_t mica_scale_tflite(int32_t value, int32_t mantissa, int32_t shift)
{
    int32_t left = shift > 0 ? shift : 0;
    int32_t high = mica_high_multiply((int32_t)((uint32_t)value << left), mantissa);
    return mica_rounding_shift(high, left - shift);
}

#endif
