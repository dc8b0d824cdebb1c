/* SPDX-License-Identifier: MIT */
/*
 * From an int32 accumulator to an 8-bit value, in TFLite's way and in the
 * NPUs'. Values, zero points and limits are in the unsigned domain: int8 is
 * handled as uint8 with 128 added, which changes no difference and no rounding.
 */
#ifndef MICA_CPU_REQUANT_H
#define MICA_CPU_REQUANT_H

#include <math.h>

#include "cpu/kernels.h"

/* A real factor as the arithmetic keeps it. */
struct mica_multiplier {
    /* TFLite: 31 fraction bits, in [2^30, 2^31), or 0. NPU: integer, 2^15 (V7) or 2^23 (V8) plus the mantissa. */
    int32_t mantissa;
    /* TFLite: the factor is mantissa * 2^(shift - 31), shift in [-31, 30]. NPU: mantissa / 2^shift. */
    int32_t shift;
};

struct mica_requant {
    enum mica_arithmetic arithmetic;
    int32_t zero_point, min, max; /* of the result */
    uint8_t flip;                 /* see mica_cpu_flip() */
    int32_t *mantissa, *shift;    /* struct mica_multiplier of every channel, as two arrays; owned */
    double *factor;               /* of every channel, set where TFLite rounds as in mica_scale_once(); owned */
};

/* TFLite's fixed-point form of a real factor. */
struct mica_multiplier mica_multiplier_tflite(double factor);
/* The NPU's: specification, section 6.1. */
struct mica_multiplier mica_multiplier_vivante(float factor, enum mica_arithmetic arithmetic);

/* Zero point, limits of the fused activation and flip of `output`; leaves the multipliers alone. */
void mica_requant_set_output(struct mica_requant *requant, enum mica_arithmetic arithmetic,
                             const struct mica_tensor *output, enum mica_activation activation);

/* How TFLite forms the factor input scale * weight scale / output scale, and applies it. */
enum mica_tflite_rounding {
    /* The first product in float32, mantissa and shift: uint8 convolutions. */
    MICA_TFLITE_TWICE_SINGLE,
    /* All in double, mantissa and shift: int8 convolutions. */
    MICA_TFLITE_TWICE,
    /* All in double, applied in double: fully connected layers, since LiteRT 2.3. */
    MICA_TFLITE_ONCE,
};

/*
 * Sets everything for a weighted operation of `channels` channels. -ENOMEM or 0; mica_requant_finish() releases.
 */
int mica_requant_init(struct mica_requant *requant, const struct mica_cpu_call *call, enum mica_activation activation,
                      size_t channels, enum mica_tflite_rounding rounding);
void mica_requant_finish(struct mica_requant *requant);

/* Limits of a fused activation for float32. */
void mica_activation_range(enum mica_activation activation, float *min, float *max);

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

/* round(value * factor), ties away from zero, kept inside int32. */
static inline int32_t mica_scale_once(int32_t value, double factor)
{
    double scaled = round((double)value * factor);
    return scaled < -1e9 ? -1000000000 : scaled > 1e9 ? 1000000000 : (int32_t)scaled;
}

/* round(value * mantissa / 2^shift), ties to even (specification, section 6.1); shift in [0, 62]. */
static inline int64_t mica_scale_vivante(int32_t value, int32_t mantissa, int32_t shift)
{
    int64_t product = (int64_t)value * mantissa;
    if (shift == 0)
        return product;
    int64_t below_half = (INT64_C(1) << (shift - 1)) - 1;
    return (product + below_half + ((product >> shift) & 1)) >> shift;
}

/* One accumulator to one stored byte, by a mantissa and a shift. */
static inline uint8_t mica_requant_value(const struct mica_requant *requant, int32_t value, int32_t mantissa,
                                         int32_t shift)
{
    if (requant->arithmetic == MICA_ARITHMETIC_TFLITE) {
        uint32_t scaled = (uint32_t)mica_scale_tflite(value, mantissa, shift) + (uint32_t)requant->zero_point;
        return (uint8_t)mica_clamp_int((int32_t)scaled, requant->min, requant->max) ^ requant->flip;
    }
    int64_t scaled = mica_scale_vivante(value, mantissa, shift) + requant->zero_point;
    scaled = scaled < requant->min ? requant->min : scaled;
    return (uint8_t)(scaled > requant->max ? requant->max : scaled) ^ requant->flip;
}

/* Channels [first, first + count) of one pixel. Always inlined, to be compiled for the caller's instruction set. */
static inline __attribute__((always_inline)) void
mica_requant_row(const struct mica_requant *requant, const int32_t *values, size_t first, size_t count, uint8_t *out)
{
    const int32_t *mantissa = requant->mantissa + first, *shift = requant->shift + first;
    if (requant->factor) {
        for (size_t i = 0; i < count; i++) {
            int32_t scaled = mica_scale_once(values[i], requant->factor[first + i]) + requant->zero_point;
            out[i] = (uint8_t)mica_clamp_int(scaled, requant->min, requant->max) ^ requant->flip;
        }
        return;
    }
    if (requant->arithmetic == MICA_ARITHMETIC_TFLITE) {
        const int32_t zero_point = requant->zero_point, min = requant->min, max = requant->max;
        const uint8_t flip = requant->flip;
        for (size_t i = 0; i < count; i++) {
            uint32_t scaled = (uint32_t)mica_scale_tflite(values[i], mantissa[i], shift[i]) + (uint32_t)zero_point;
            out[i] = (uint8_t)mica_clamp_int((int32_t)scaled, min, max) ^ flip;
        }
        return;
    }
    for (size_t i = 0; i < count; i++)
        out[i] = mica_requant_value(requant, values[i], mantissa[i], shift[i]);
}

#endif
