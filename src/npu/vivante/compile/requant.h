/* SPDX-License-Identifier: MIT */
/* Scales and zero points as the hardware wants them (specification, sections 6.1 and 6.2). */
#ifndef MICA_VIVANTE_COMPILE_REQUANT_H
#define MICA_VIVANTE_COMPILE_REQUANT_H

#include <math.h>
#include <string.h>

#include "graph/graph.h"
#include "npu/vivante/hw/chips.h"

struct viv_requant {
    uint32_t multiplier, shift;
};

/* The factor in * weight / out, each step rounded to float32; false when the chip's fields can't hold it. */
static inline bool viv_requant_make(const struct viv_chip *chip, float in, float weight, float out,
                                    struct viv_requant *requant)
{
    float product = in * weight, scale = product / out;
    uint32_t bits;
    memcpy(&bits, &scale, 4);
    uint32_t exponent = bits >> 23 & 0xff;
    if (!(scale > 0) || exponent == 0 || exponent == 255)
        return false;
    requant->multiplier = (bits & 0x7fffff) >> (23 - chip->multiplier_bits);
    /* The result is acc * (2^15 + m) / 2^s on chips with a 15-bit m; with 23 bits the hardware adds 23 to s itself. */
    requant->shift = (chip->multiplier_bits == 23 ? 127u : 127u + chip->multiplier_bits) - exponent;
    return requant->shift <= 127; /* 7 bits; a larger exponent wraps to far above */
}

/* A factor that is a number of its own. */
static inline bool viv_requant_factor(const struct viv_chip *chip, double factor, struct viv_requant *requant)
{
    return viv_requant_make(chip, (float)factor, 1.0f, 1.0f, requant);
}

/* The factor that the hardware applies. */
static inline double viv_requant_exact(const struct viv_chip *chip, const struct viv_requant *requant)
{
    int shift = (int)requant->shift + (chip->multiplier_bits == 23 ? 23 : 0);
    return ldexp((double)((UINT32_C(1) << chip->multiplier_bits) + requant->multiplier), -shift);
}

/* int8 tensors live in the device as uint8, 128 higher. */
static inline uint8_t viv_zero_point(const struct mica_tensor *tensor)
{
    return (uint8_t)(tensor->quant.zero_point[0] + (tensor->type == MICA_TYPE_INT8 ? 128 : 0));
}

static inline uint8_t viv_flip(const struct mica_tensor *tensor)
{
    return tensor->type == MICA_TYPE_INT8 ? 0x80 : 0;
}

/* The clamp of an activation, as bytes of the output: 0 and 255 where there is none. */
struct viv_bounds {
    uint8_t low, high;
};

/* 0 of what is no number. */
static inline uint8_t viv_byte(float value)
{
    return !(value > 0) ? 0 : value >= 255 ? 255 : (uint8_t)value;
}

static inline struct viv_bounds viv_bounds_between(const struct mica_tensor *out, float low, float high)
{
    float zero = viv_zero_point(out), scale = out->quant.scale[0];
    return (struct viv_bounds){viv_byte(zero + roundf(low / scale)), viv_byte(zero + roundf(high / scale))};
}

static inline struct viv_bounds viv_bounds_of(enum mica_activation activation, const struct mica_tensor *out)
{
    switch (activation) {
    case MICA_ACT_RELU:
        return (struct viv_bounds){viv_zero_point(out), 255};
    case MICA_ACT_RELU6:
        return viv_bounds_between(out, 0, 6);
    case MICA_ACT_RELU_N1_TO_1:
        return viv_bounds_between(out, -1, 1);
    default:
        return (struct viv_bounds){0, 255};
    }
}

#endif
