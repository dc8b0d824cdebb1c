/* SPDX-License-Identifier: MIT */
#include "cpu/fixed.h"

#include <math.h>

struct mica_multiplier mica_multiplier_tflite(double factor)
{
    if (!(factor > 0))
        return (struct mica_multiplier){0, 0};
    if (factor >= (double)(1 << 30))
        return (struct mica_multiplier){INT32_MAX, 30};
    int shift;
    int64_t mantissa = llround(frexp(factor, &shift) * (double)(INT64_C(1) << 31));
    if (mantissa == INT64_C(1) << 31) {
        mantissa /= 2;
        shift++;
    }
    if (shift < -31)
        return (struct mica_multiplier){0, 0};
    return (struct mica_multiplier){(int32_t)mantissa, shift > 30 ? 30 : shift};
}
