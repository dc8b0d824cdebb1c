/* SPDX-License-Identifier: MIT */
/* The kernels for x86-64 processors with AVX2; kernels.c has the plain version and says what they compute. */
#include "npu/vivante/sim/kernels_vector.h"

#ifdef VIV_KERNELS_AVX2

#include <immintrin.h>
#include <string.h>

#define AVX2 __attribute__((target("avx2")))
#define INLINE_AVX2 static inline __attribute__((always_inline, target("avx2")))

/* Two taps of 16 pixels as pairs of 16-bit numbers: pixels 0-3 and 8-11, then 4-7 and 12-15. */
struct pair16 {
    __m256i low, high;
};

INLINE_AVX2 __m128i load16(const uint8_t *bytes)
{
    return _mm_loadu_si128((const __m128i *)bytes);
}

/* Eight pixels of two taps as pairs. */
INLINE_AVX2 __m256i pair8(const uint8_t *first, const uint8_t *second)
{
    __m128i a = _mm_loadl_epi64((const __m128i *)first), b = _mm_loadl_epi64((const __m128i *)second);
    return _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(a, b));
}

AVX2 static void pack(int16_t *panel, const uint8_t *image, const uint32_t *taps, size_t pairs, unsigned width)
{
    __m256i *out = (__m256i *)panel;
    for (; pairs; pairs--, taps += 2) {
        const uint8_t *first = image + taps[0], *second = image + taps[1];
        if (width == VIV_WIDE) {
            __m128i a = load16(first), b = load16(second);
            _mm256_storeu_si256(out++, _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(a, b)));
            _mm256_storeu_si256(out++, _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(a, b)));
            first += 16;
            second += 16;
        }
        _mm256_storeu_si256(out++, pair8(first, second));
    }
}

INLINE_AVX2 __m256i weight_pair(const int16_t *weights)
{
    int32_t both;
    memcpy(&both, weights, sizeof both);
    return _mm256_set1_epi32(both);
}

INLINE_AVX2 __m256i load_panel(const int16_t *panel)
{
    return _mm256_loadu_si256((const __m256i *)panel);
}

INLINE_AVX2 void store_sums(int32_t *sums, __m256i value)
{
    _mm256_storeu_si256((__m256i *)sums, value);
}

INLINE_AVX2 __m256i multiply_add(__m256i sum, __m256i a, __m256i b)
{
    return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
}

/* Four kernels by 24 pixels: 12 sums, 3 vectors of the panel and one of weights fill the 16 registers. */
AVX2 static void dense_wide(int32_t *sums, const int16_t *weights, const int16_t *panel, size_t pairs)
{
    __m256i zero = _mm256_setzero_si256();
    __m256i a0 = zero, a1 = zero, a2 = zero, b0 = zero, b1 = zero, b2 = zero;
    __m256i c0 = zero, c1 = zero, c2 = zero, d0 = zero, d1 = zero, d2 = zero;
    for (; pairs; pairs--, weights += 8, panel += 48) {
        __m256i x0 = load_panel(panel), x1 = load_panel(panel + 16), x2 = load_panel(panel + 32);
        __m256i w = weight_pair(weights);
        a0 = multiply_add(a0, x0, w);
        a1 = multiply_add(a1, x1, w);
        a2 = multiply_add(a2, x2, w);
        w = weight_pair(weights + 2);
        b0 = multiply_add(b0, x0, w);
        b1 = multiply_add(b1, x1, w);
        b2 = multiply_add(b2, x2, w);
        w = weight_pair(weights + 4);
        c0 = multiply_add(c0, x0, w);
        c1 = multiply_add(c1, x1, w);
        c2 = multiply_add(c2, x2, w);
        w = weight_pair(weights + 6);
        d0 = multiply_add(d0, x0, w);
        d1 = multiply_add(d1, x1, w);
        d2 = multiply_add(d2, x2, w);
    }
    const __m256i all[] = {a0, a1, a2, b0, b1, b2, c0, c1, c2, d0, d1, d2};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        store_sums(sums + 8 * i, all[i]);
}

AVX2 static void dense_narrow(int32_t *sums, const int16_t *weights, const int16_t *panel, size_t pairs)
{
    __m256i a = _mm256_setzero_si256(), b = a, c = a, d = a;
    for (; pairs; pairs--, weights += 8, panel += 16) {
        __m256i x = load_panel(panel);
        a = multiply_add(a, x, weight_pair(weights));
        b = multiply_add(b, x, weight_pair(weights + 2));
        c = multiply_add(c, x, weight_pair(weights + 4));
        d = multiply_add(d, x, weight_pair(weights + 6));
    }
    store_sums(sums, a);
    store_sums(sums + 8, b);
    store_sums(sums + 16, c);
    store_sums(sums + 24, d);
}

static void dense(int32_t *sums, const int16_t *weights, const int16_t *panel, size_t pairs, unsigned width)
{
    if (width == VIV_WIDE)
        dense_wide(sums, weights, panel, pairs);
    else
        dense_narrow(sums, weights, panel, pairs);
}

INLINE_AVX2 struct pair16 load_pair16(const uint8_t *first, const uint8_t *second)
{
    __m128i a = load16(first), b = load16(second);
    return (struct pair16){_mm256_cvtepu8_epi16(_mm_unpacklo_epi8(a, b)),
                           _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(a, b))};
}

AVX2 static void sparse(int32_t *sums, const uint8_t *image, const uint32_t *taps, const int16_t *weights, size_t pairs,
                        size_t pixels)
{
    for (size_t i = 0; i < pixels; i += 32, image += 32, sums += 32) {
        __m256i a = _mm256_setzero_si256(), b = a, c = a, d = a;
        for (size_t pair = 0; pair < pairs; pair++) {
            const uint8_t *first = image + taps[2 * pair], *second = image + taps[2 * pair + 1];
            __m256i w = weight_pair(weights + 2 * pair);
            struct pair16 left = load_pair16(first, second), right = load_pair16(first + 16, second + 16);
            a = multiply_add(a, left.low, w);
            b = multiply_add(b, left.high, w);
            c = multiply_add(c, right.low, w);
            d = multiply_add(d, right.high, w);
        }
        store_sums(sums, a);
        store_sums(sums + 8, b);
        store_sums(sums + 16, c);
        store_sums(sums + 24, d);
    }
}

/*
 * Requantization in double precision, where it is exact (viv_exact_in_double()):
 * halving changes no bit of a product. Clamping comes first, which the rounding
 * after it can't undo. Adding a half is exact wherever it can decide the result.
 */
struct scale {
    __m256d factor, least, most;
    __m128i zero_point;
};

INLINE_AVX2 __m128i requantize4(__m128i sum, const struct scale *scale, enum viv_rounding rounding)
{
    __m256d value = _mm256_mul_pd(_mm256_cvtepi32_pd(sum), scale->factor);
    value = _mm256_min_pd(_mm256_max_pd(value, scale->least), scale->most);
    switch (rounding) {
    case VIV_ROUND_HALF_UP:
        value = _mm256_floor_pd(_mm256_add_pd(value, _mm256_set1_pd(0.5)));
        break;
    case VIV_ROUND_HALF_AWAY: /* a half with the sign of the value, then toward zero */
        value = _mm256_add_pd(value, _mm256_or_pd(_mm256_and_pd(value, _mm256_set1_pd(-0.0)), _mm256_set1_pd(0.5)));
        break;
    case VIV_ROUND_HALF_EVEN:
        value = _mm256_round_pd(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        break;
    case VIV_ROUND_TO_ZERO:
        value = _mm256_round_pd(value, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
        break;
    default:
        value = _mm256_floor_pd(value);
    }
    return _mm_add_epi32(_mm256_cvttpd_epi32(value), scale->zero_point);
}

INLINE_AVX2 void requantize_all(uint8_t *out, const int32_t *sums, size_t count, uint32_t bias,
                                const struct scale *scale, enum viv_rounding rounding)
{
    __m128i add = _mm_set1_epi32((int32_t)bias);
    for (size_t i = 0; i < count; i += 8) {
        __m128i low = _mm_add_epi32(_mm_loadu_si128((const __m128i *)(sums + i)), add);
        __m128i high = _mm_add_epi32(_mm_loadu_si128((const __m128i *)(sums + i + 4)), add);
        low = requantize4(low, scale, rounding);
        high = requantize4(high, scale, rounding);
        __m128i bytes = _mm_packus_epi16(_mm_packs_epi32(low, high), _mm_setzero_si128());
        _mm_storel_epi64((__m128i *)(out + i), bytes);
    }
}

/* 2^-shift times the multiplier; the exponent is made by hand as no number here needs more than a shift. */
static double factor_of(const struct viv_post *post)
{
    uint64_t bits = (uint64_t)(1023 - post->shift) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power * post->multiplier;
}

AVX2 static void requantize(uint8_t *out, const int32_t *sums, size_t count, uint32_t bias, const struct viv_post *post)
{
    if (!viv_exact_in_double(post)) {
        viv_kernels_portable.requantize(out, sums, count, bias, post);
        return;
    }
    struct scale scale = {
        .factor = _mm256_set1_pd(factor_of(post)),
        .least = _mm256_set1_pd(post->lowest - post->zero_point),
        .most = _mm256_set1_pd(255 - post->zero_point),
        .zero_point = _mm_set1_epi32(post->zero_point),
    };
    size_t whole = count & ~(size_t)7;
    switch (post->rounding) {
    case VIV_ROUND_HALF_UP:
        requantize_all(out, sums, whole, bias, &scale, VIV_ROUND_HALF_UP);
        break;
    case VIV_ROUND_HALF_EVEN:
        requantize_all(out, sums, whole, bias, &scale, VIV_ROUND_HALF_EVEN);
        break;
    case VIV_ROUND_TO_ZERO:
        requantize_all(out, sums, whole, bias, &scale, VIV_ROUND_TO_ZERO);
        break;
    case VIV_ROUND_HALF_AWAY:
        requantize_all(out, sums, whole, bias, &scale, VIV_ROUND_HALF_AWAY);
        break;
    case VIV_ROUND_DOWN:
        requantize_all(out, sums, whole, bias, &scale, VIV_ROUND_DOWN);
    }
    viv_kernels_portable.requantize(out + whole, sums + whole, count - whole, bias, post);
}

const struct viv_kernels viv_kernels_avx2 = {"AVX2", pack, dense, sparse, requantize};

#else
typedef int viv_kernels_not_avx2;
#endif
