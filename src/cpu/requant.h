/* SPDX-License-Identifier: MIT */
/*
 * From an int32 accumulator to an 8-bit value, in TFLite's way and in the
 * NPUs'. Values, zero points and limits are in the unsigned domain: int8 is
 * handled as uint8 with 128 added, which changes no difference and no rounding.
 */
#ifndef MICA_CPU_REQUANT_H
#define MICA_CPU_REQUANT_H

#include <math.h>

#include "cpu/fixed.h"
#include "cpu/kernels.h"

struct mica_requant {
    enum mica_arithmetic arithmetic;
    int32_t zero_point, min, max; /* of the result */
    uint8_t flip;                 /* see mica_cpu_flip() */
    int32_t *mantissa, *shift;    /* struct mica_multiplier of every channel, as two arrays; owned */
    /* Rockchip: what every channel's value is first multiplied with, and shifted by; NULL elsewhere. In `mantissa`. */
    int32_t *channel, *channel_shift;
    double *factor; /* of every channel, set where TFLite rounds as in mica_scale_once(); owned */
};

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

/* round(value * factor), ties away from zero, kept inside int32. */
static inline int32_t mica_scale_once(int32_t value, double factor)
{
    double scaled = round((double)value * factor);
    return scaled < -1e9 ? -1000000000 : scaled > 1e9 ? 1000000000 : (int32_t)scaled;
}

/* round(value * mantissa / 2^shift), ties to even, as all the NPUs have it; shift in [0, 63]. */
static inline int64_t mica_scale_even(int32_t value, int32_t mantissa, int32_t shift)
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
    int64_t scaled = mica_scale_even(value, mantissa, shift) + requant->zero_point;
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
    for (size_t i = 0; i < count; i++) {
        int64_t value = values[i];
        if (requant->channel)
            value = mica_scale_even(values[i], requant->channel[first + i], requant->channel_shift[first + i]);
        value = value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : value;
        out[i] = mica_requant_value(requant, (int32_t)value, mantissa[i], shift[i]);
    }
}

#endif
