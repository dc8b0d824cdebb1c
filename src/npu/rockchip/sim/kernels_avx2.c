/* SPDX-License-Identifier: MIT */
/* The kernels for x86-64 processors with AVX2; kernels.c has the plain version and says what they compute. */
#include "npu/rockchip/sim/kernels.h"

#ifdef RK_KERNELS_AVX2

#include <immintrin.h>
#include <string.h>

#define AVX2 __attribute__((target("avx2")))
#define INLINE_AVX2 static inline __attribute__((always_inline, target("avx2")))

INLINE_AVX2 __m256i load_bytes(const int8_t *bytes)
{
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)bytes));
}

INLINE_AVX2 __m256i load_features(const int16_t *features)
{
    return _mm256_loadu_si256((const __m256i *)features);
}

INLINE_AVX2 __m256i feature_pair(const int16_t *features)
{
    int32_t both;
    memcpy(&both, features, sizeof both);
    return _mm256_set1_epi32(both);
}

INLINE_AVX2 __m256i multiply_add(__m256i sum, __m256i a, __m256i b)
{
    return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
}

INLINE_AVX2 void store_sums(int32_t *sums, __m256i low, __m256i high)
{
    _mm256_storeu_si256((__m256i *)sums, low);
    _mm256_storeu_si256((__m256i *)(sums + 8), high);
}

/* Sixteen sums of one pixel. */
struct sums16 {
    __m256i low, high;
};

INLINE_AVX2 void add_pair(struct sums16 *sums, const int16_t *pixel, __m256i low, __m256i high)
{
    __m256i x = feature_pair(pixel);
    sums->low = multiply_add(sums->low, x, low);
    sums->high = multiply_add(sums->high, x, high);
}

/* Six pixels by sixteen columns: 12 sums, two vectors of weights and one pair of features fill the registers. */
AVX2 static void direct_six(int32_t *sums, size_t stride, const int16_t *const *pixels, const struct rk_runs *runs,
                            const int8_t *weights)
{
    const struct sums16 zero = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    struct sums16 a = zero, b = zero, c = zero, d = zero, e = zero, f = zero;
    for (size_t run = 0; run < runs->count; run++) {
        size_t at = runs->offsets[run];
        const int16_t *p0 = pixels[0] + at, *p1 = pixels[1] + at, *p2 = pixels[2] + at;
        const int16_t *p3 = pixels[3] + at, *p4 = pixels[4] + at, *p5 = pixels[5] + at;
        for (size_t i = 0; i < 2 * runs->pairs; i += 2, weights += 2 * RK_COLUMNS) {
            __m256i low = load_bytes(weights), high = load_bytes(weights + 16);
            add_pair(&a, p0 + i, low, high);
            add_pair(&b, p1 + i, low, high);
            add_pair(&c, p2 + i, low, high);
            add_pair(&d, p3 + i, low, high);
            add_pair(&e, p4 + i, low, high);
            add_pair(&f, p5 + i, low, high);
        }
    }
    store_sums(sums, a.low, a.high);
    store_sums(sums + stride, b.low, b.high);
    store_sums(sums + 2 * stride, c.low, c.high);
    store_sums(sums + 3 * stride, d.low, d.high);
    store_sums(sums + 4 * stride, e.low, e.high);
    store_sums(sums + 5 * stride, f.low, f.high);
}

AVX2 static void direct_one(int32_t *sums, const int16_t *pixel, const struct rk_runs *runs, const int8_t *weights)
{
    struct sums16 a = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    for (size_t run = 0; run < runs->count; run++) {
        const int16_t *x = pixel + runs->offsets[run];
        for (size_t pair = 0; pair < runs->pairs; pair++, x += 2, weights += 2 * RK_COLUMNS)
            add_pair(&a, x, load_bytes(weights), load_bytes(weights + 16));
    }
    store_sums(sums, a.low, a.high);
}

static void direct(int32_t *sums, size_t stride, const int16_t *const *pixels, unsigned count,
                   const struct rk_runs *runs, const int8_t *weights)
{
    if (count == RK_PIXELS)
        direct_six(sums, stride, pixels, runs, weights);
    else
        direct_one(sums, pixels[0], runs, weights);
}

/* Vectors hold columns 0-3 and 8-11, and 4-7 and 12-15: rk_depthwise_channel(). */
INLINE_AVX2 void store_halves(int32_t *sums, __m256i low, __m256i high)
{
    store_sums(sums, _mm256_permute2x128_si256(low, high, 0x20), _mm256_permute2x128_si256(low, high, 0x31));
}

AVX2 static void depthwise(int32_t *sums, int32_t *totals, const int16_t *pixel, const struct rk_runs *runs,
                           unsigned odd, const int8_t *weights)
{
    __m256i low = _mm256_setzero_si256(), high = low, all_low = low, all_high = low;
    const __m256i both = _mm256_set1_epi16(1), first = _mm256_set1_epi32(1);
    for (size_t tap = 0; tap < runs->count; tap += 2, weights += 2 * RK_COLUMNS) {
        __m256i x = load_features(pixel + runs->offsets[tap]), y = load_features(pixel + runs->offsets[tap + 1]);
        __m256i xy_low = _mm256_unpacklo_epi16(x, y), xy_high = _mm256_unpackhi_epi16(x, y);
        __m256i ones = odd && tap + 2 == runs->count ? first : both;
        low = multiply_add(low, xy_low, load_bytes(weights));
        high = multiply_add(high, xy_high, load_bytes(weights + 16));
        all_low = multiply_add(all_low, xy_low, ones);
        all_high = multiply_add(all_high, xy_high, ones);
    }
    store_halves(sums, low, high);
    if (totals)
        store_halves(totals, all_low, all_high);
}

AVX2 static void widen(int16_t *out, size_t step, const int8_t *in, size_t count, unsigned lanes)
{
    for (; count; count--, out += step, in += lanes)
        if (lanes == 16)
            _mm256_storeu_si256((__m256i *)out, load_bytes(in));
        else
            _mm_storeu_si128((__m128i *)out, _mm_cvtepi8_epi16(_mm_loadl_epi64((const __m128i *)in)));
}

const struct rk_kernels rk_kernels_avx2 = {"AVX2", direct, depthwise, widen};

#else
typedef int rk_kernels_not_avx2;
#endif
