/* SPDX-License-Identifier: MIT */
#include "reference.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "npu/vivante/hw/fields.h"

/* ---- coefficients ----------------------------------------------------- */

struct bits {
    const uint8_t *bytes;
    size_t at;
};

static uint32_t take(struct bits *bits, unsigned count)
{
    uint32_t value = 0;
    for (unsigned i = 0; i < count; i++, bits->at++)
        value |= (uint32_t)(bits->bytes[bits->at / 8] >> bits->at % 8 & 1) << i;
    return value;
}

struct kernel {
    uint8_t *weights; /* [channel][row][column] */
    uint32_t bias, offset, channel;
};

struct stream {
    struct bits bits;
    unsigned run_bits;
    uint32_t zeros; /* before `value`, not handed out yet */
    int value;      /* -1: none */
};

static uint8_t next_weight(struct stream *stream, uint8_t zero_point)
{
    if (!stream->zeros && stream->value < 0) {
        stream->zeros = take(&stream->bits, stream->run_bits);
        stream->value = (int)take(&stream->bits, 8);
    }
    if (stream->zeros) {
        stream->zeros--;
        return zero_point;
    }
    uint8_t value = (uint8_t)stream->value;
    stream->value = -1;
    return value;
}

/* Where the n-th weight of the stream's order lies within a kernel, and how many a step has. */
static size_t place(size_t n, size_t w, size_t h)
{
    size_t channel = n / (w * h), rest = n % (w * h);
    for (size_t pair = 0; pair < h; pair += 2)
        for (size_t block = 0; block < w; block += 3)
            for (size_t i = 0; i < 6; i++) {
                size_t row = pair + i / 3, column = block + i % 3;
                if (row < h && column < w && rest-- == 0)
                    return (channel * h + row) * w + column;
            }
    abort();
}

static size_t decode_core(const uint8_t *bytes, struct kernel *kernels, uint32_t group, size_t w, size_t h, size_t z,
                          uint8_t zero_point)
{
    struct stream stream = {.bits = {bytes, 0}, .value = -1};
    stream.run_bits = take(&stream.bits, 8);
    size_t count = take(&stream.bits, 16), taps = w * h * z, step = w * h == 1 ? 6 : w * h;
    for (size_t first = 0; first < count; first += group)
        for (size_t n = 0; n < taps; n += step)
            for (size_t k = first; k < first + group && k < count; k++) {
                if (n == 0)
                    kernels[k].weights = malloc(taps);
                for (size_t i = n; i < n + step && i < taps; i++) {
                    kernels[k].weights[place(i, w, h)] = next_weight(&stream, zero_point);
                    if (i == 0)
                        kernels[k].bias = take(&stream.bits, 32);
                    if (i == taps - 1)
                        kernels[k].offset = take(&stream.bits, 32);
                }
            }
    return count;
}

/* ---- NN --------------------------------------------------------------- */

struct nn {
    const struct viv_chip *chip;
    const uint32_t *words;
    uint8_t *base;
    int64_t w, h, z; /* of the kernel */
    int64_t out_w, out_h;
    uint8_t *plain; /* one kernel's output before pooling */
};

static int64_t field(const struct nn *nn, enum viv_nn_field name)
{
    return viv_nn_get(nn->words, name);
}

static int64_t pixel(const struct nn *nn, int64_t x, int64_t y, int64_t z)
{
    if (x < 0 || y < 0 || x >= field(nn, VIV_NN_IN_IMAGE_X_SIZE) || y >= field(nn, VIV_NN_IN_IMAGE_Y_SIZE))
        return field(nn, VIV_NN_IN_IMAGE_BORDER_CONST);
    int64_t stride = field(nn, VIV_NN_IN_IMAGE_X_STRIDE), plane = stride * field(nn, VIV_NN_IN_IMAGE_Y_STRIDE);
    return nn->base[field(nn, VIV_NN_IN_IMAGE_ADDRESS) + z * plane + y * stride + x];
}

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* A field of fewer bits than the table's has its sign there. */
static int64_t offset_of(const struct nn *nn, enum viv_nn_field name)
{
    int64_t modulus = INT64_C(1) << nn->chip->offset_bits, value = field(nn, name) % modulus;
    return value < modulus / 2 ? value : value - modulus;
}

/* Rounds numerator / 2^shift; half-way cases by comparing doubled rests. Mode 4: halves away from zero. */
static int64_t round_shift(int64_t numerator, int64_t shift, int64_t mode)
{
    if (shift < 0)
        return numerator > 0 ? 1000 : numerator < 0 ? -1000 : 0; /* far out of range whatever the shift */
    if (shift > 60)
        shift = 60;
    if (mode == 4 && numerator < 0)
        return -round_shift(-numerator, shift, 0);
    if (mode == 4)
        mode = 0;
    int64_t one = INT64_C(1) << shift, down = floor_div(numerator, one), rest = numerator - down * one;
    if (mode == 3 || (mode == 2 && numerator >= 0) || rest == 0)
        return down;
    if (mode == 2)
        return down + 1;
    if (2 * (rest / 2) == rest && 2 * rest == one)
        return mode == 0 || down % 2 != 0 ? down + 1 : down;
    return rest > one - rest ? down + 1 : rest == one - rest && mode == 0 ? down + 1 : down;
}

static uint8_t output(const struct nn *nn, const struct kernel *kernel, int64_t x, int64_t y)
{
    int64_t dx = offset_of(nn, VIV_NN_IN_IMAGE_X_OFFSET), dy = offset_of(nn, VIV_NN_IN_IMAGE_Y_OFFSET);
    int64_t zero = field(nn, VIV_NN_COEF_ZERO_POINT), sum = 0, v8 = nn->chip->multiplier_bits == 23;
    int64_t first = field(nn, VIV_NN_DEPTHWISE) ? kernel->channel : 0;
    const uint8_t *weight = kernel->weights;
    for (int64_t z = first; z < first + nn->z; z++)
        for (int64_t r = 0; r < nn->h; r++)
            for (int64_t q = 0; q < nn->w; q++)
                sum += (*weight++ - zero) * (pixel(nn, x + q + dx, y + r + dy, z) - (v8 ? 128 : 0));
    int32_t wrapped = (int32_t)((uint32_t)sum + kernel->bias);
    int64_t multiplier = field(nn, VIV_NN_POST_MULTIPLIER) + (v8 ? 8388608 : 32768);
    int64_t shift = field(nn, VIV_NN_POST_SHIFT), mode = field(nn, VIV_NN_ROUNDING_MODE);
    int64_t out_zero = field(nn, VIV_NN_OUT_ZERO_POINT);
    if (v8) {
        shift = (shift < 64 ? shift : shift - 128) + 23;
        mode = mode == 0 ? 4 : mode;
    }
    int64_t value = round_shift(wrapped * multiplier, shift, mode) + out_zero;
    if (field(nn, VIV_NN_RELU) && value < out_zero)
        value = out_zero;
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static uint8_t pooled(const struct nn *nn, int64_t x, int64_t y, int64_t window)
{
    uint8_t most = 0;
    for (int64_t i = 0; i < window * window; i++) {
        uint8_t value = nn->plain[(2 * y + i / window) * nn->out_w + 2 * x + i % window];
        most = value > most ? value : most;
    }
    return most;
}

static void run_kernel(const struct nn *nn, const struct kernel *kernel, bool surplus)
{
    int64_t pooling = field(nn, VIV_NN_POOLING), window = 2 + field(nn, VIV_NN_POOLING_XY_SIZE);
    int64_t w = nn->out_w, h = nn->out_h, stride = field(nn, VIV_NN_OUT_IMAGE_X_STRIDE);
    for (int64_t y = 0; y < nn->out_h; y++)
        for (int64_t x = 0; x < nn->out_w; x++)
            nn->plain[y * nn->out_w + x] = output(nn, kernel, x, y);
    if (pooling == 3) {
        w = (w + 1) / 2;
        h = (h + 1) / 2;
    } else if (pooling == 1) {
        w = (w - window) / 2 + 1;
        h = (h - window) / 2 + 1;
    }
    if (surplus && kernel->offset >= (uint64_t)(stride * h * field(nn, VIV_NN_OUT_IMAGE_Z_SIZE)))
        return;
    uint8_t *out = nn->base + (uint32_t)(field(nn, VIV_NN_OUT_IMAGE_ADDRESS) + kernel->offset);
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++)
            out[y * stride + x] = pooling == 1   ? pooled(nn, x, y, window)
                                  : pooling == 3 ? nn->plain[2 * y * nn->out_w + 2 * x]
                                                 : nn->plain[y * nn->out_w + x];
}

static struct nn read_nn(const struct viv_chip *chip, uint8_t *base, const uint32_t *words)
{
    struct nn nn = {.chip = chip, .words = words, .base = base};
    nn.w = field(&nn, VIV_NN_LAYER_TYPE) ? 1 : field(&nn, VIV_NN_KERNEL_X_SIZE);
    nn.h = field(&nn, VIV_NN_KERNEL_Y_SIZE);
    nn.z = field(&nn, VIV_NN_DEPTHWISE) ? 1 : field(&nn, VIV_NN_KERNEL_Z_SIZE);
    nn.out_w = field(&nn, VIV_NN_OUT_IMAGE_X_SIZE);
    nn.out_h = field(&nn, VIV_NN_OUT_IMAGE_Y_SIZE);
    return nn;
}

static struct kernel *read_kernels(const struct nn *nn, size_t *count)
{
    struct kernel *kernels = calloc((size_t)nn->chip->nn_cores * 65536, sizeof *kernels);
    const uint8_t *header = nn->base + ((size_t)field(nn, VIV_NN_KERNEL_ADDRESS) << 6), *stream = header + 64;
    *count = 0;
    for (size_t core = 0; core < nn->chip->nn_cores; core++) {
        uint32_t bytes;
        memcpy(&bytes, header + 4 * core, 4);
        if (bytes)
            *count += decode_core(stream, kernels + *count, (uint32_t)field(nn, VIV_NN_KERNELS_PER_CORE), (size_t)nn->w,
                                  (size_t)nn->h, (size_t)nn->z, (uint8_t)field(nn, VIV_NN_COEF_ZERO_POINT));
        stream += bytes;
    }
    return kernels;
}

/* Jobs that write over their own input would need a copy of the results first; no test has one. */
static void run_kernels(struct nn *nn, const struct kernel *kernels, size_t count)
{
    nn->plain = malloc((size_t)(nn->out_w * nn->out_h));
    for (size_t k = 0; k < count; k++)
        run_kernel(nn, &kernels[k], count > (size_t)field(nn, VIV_NN_OUT_IMAGE_Z_SIZE));
    free(nn->plain);
}

void reference_nn(const struct viv_chip *chip, uint8_t *base, uint32_t descriptor)
{
    uint32_t words[VIV_NN_WORDS];
    size_t count;
    memcpy(words, base + descriptor, sizeof words);
    struct nn nn = read_nn(chip, base, words);
    struct kernel *kernels = read_kernels(&nn, &count);
    run_kernels(&nn, kernels, count);
    for (size_t k = 0; k < count; k++)
        free(kernels[k].weights);
    free(kernels);
}

void reference_nn_with(const struct viv_chip *chip, uint8_t *base, uint32_t descriptor, const struct coefficients *c)
{
    uint32_t words[VIV_NN_WORDS];
    memcpy(words, base + descriptor, sizeof words);
    struct nn nn = read_nn(chip, base, words);
    size_t taps = (size_t)(nn.w * nn.h * nn.z);
    uint32_t plane = (uint32_t)(field(&nn, VIV_NN_OUT_IMAGE_X_STRIDE) * field(&nn, VIV_NN_OUT_IMAGE_Y_STRIDE));
    struct kernel *kernels = calloc(c->kernels, sizeof *kernels);
    for (uint32_t k = 0; k < c->kernels; k++)
        kernels[k] = (struct kernel){
            .weights = (uint8_t *)(uintptr_t)(c->weights + k * taps),
            .bias = c->bias[k],
            .offset = field(&nn, VIV_NN_NO_Z_OFFSET) ? k * plane : c->offset[k],
            .channel = k,
        };
    run_kernels(&nn, kernels, c->kernels);
    free(kernels);
}

size_t reference_planes(const struct viv_chip *chip, const uint8_t *base, uint32_t descriptor, uint32_t *addresses,
                        size_t room)
{
    uint32_t words[VIV_NN_WORDS];
    size_t count;
    memcpy(words, base + descriptor, sizeof words);
    struct nn nn = read_nn(chip, (uint8_t *)(uintptr_t)base, words);
    struct kernel *kernels = read_kernels(&nn, &count);
    for (size_t k = 0; k < count; k++) {
        if (k < room)
            addresses[k] = (uint32_t)field(&nn, VIV_NN_OUT_IMAGE_ADDRESS) + kernels[k].offset;
        free(kernels[k].weights);
    }
    free(kernels);
    return count;
}

/* ---- TP --------------------------------------------------------------- */

/* Jobs whose loops all have counts: the n-th element goes where n says, in mixed radix. */
static uint32_t out_offset(const uint32_t *words, uint64_t n)
{
    const enum viv_tp_field steps[] = {VIV_TP_OUT_LOOP_0_INC, VIV_TP_OUT_LOOP_1_INC, VIV_TP_OUT_LOOP_2_INC,
                                       VIV_TP_OUT_LOOP_3_INC, VIV_TP_OUT_LOOP_4_INC, VIV_TP_OUT_LOOP_5_INC};
    const enum viv_tp_field counts[] = {VIV_TP_OUT_LOOP_0_COUNT, VIV_TP_OUT_LOOP_1_COUNT, VIV_TP_OUT_LOOP_2_COUNT,
                                        VIV_TP_OUT_LOOP_3_COUNT, VIV_TP_OUT_LOOP_4_COUNT, VIV_TP_OUT_LOOP_5_COUNT};
    uint32_t offset = 0;
    for (size_t i = 0; i < 6; i++) {
        uint32_t count = viv_tp_get(words, counts[i]);
        offset += (uint32_t)(n % count) * viv_tp_get(words, steps[i]);
        n /= count;
    }
    return offset + (uint32_t)n * viv_tp_get(words, VIV_TP_OUT_LOOP_6_INC);
}

static int64_t signed_field(const uint32_t *words, enum viv_tp_field name)
{
    return (int16_t)viv_tp_get(words, name);
}

/* Copies only: scale 1, no table, no reduction. */
static uint8_t copied(const uint8_t *base, const uint32_t *words, int64_t x, int64_t y, int64_t z)
{
    int64_t real = 0;
    if (x >= 0 && x < viv_tp_get(words, VIV_TP_IN_IMAGE_X_SIZE) && y >= 0 &&
        y < viv_tp_get(words, VIV_TP_IN_IMAGE_Y_SIZE) && z >= 0 && z < viv_tp_get(words, VIV_TP_IN_IMAGE_Z_SIZE))
        real = base[viv_tp_get(words, VIV_TP_IN_IMAGE_BASE_ADDRESS) + z * viv_tp_get(words, VIV_TP_IN_IMAGE_SLICE) +
                    y * viv_tp_get(words, VIV_TP_IN_IMAGE_STRIDE) + x] -
               (int64_t)viv_tp_get(words, VIV_TP_IN_ZP);
    real += viv_tp_get(words, VIV_TP_OUT_ZP);
    return (uint8_t)(real < 0 ? 0 : real > 255 ? 255 : real);
}

void reference_tp(uint8_t *base, uint32_t descriptor)
{
    uint32_t words[VIV_TP_WORDS];
    memcpy(words, base + descriptor, sizeof words);
    int64_t x_end = signed_field(words, VIV_TP_IN_WINDOW_X_END), y_end = signed_field(words, VIV_TP_IN_WINDOW_Y_END);
    int64_t tile_w = viv_tp_get(words, VIV_TP_IN_TILE_X_SIZE), tile_h = viv_tp_get(words, VIV_TP_IN_TILE_Y_SIZE);
    int64_t before = viv_tp_get(words, VIV_TP_IN_WINDOW_Z_START_OVERFETCH);
    int64_t after = viv_tp_get(words, VIV_TP_IN_WINDOW_Z_END_OVERFETCH);
    uint32_t out = viv_tp_get(words, VIV_TP_OUT_IMAGE_BASE_ADDRESS);
    uint64_t n = 0;
    for (int64_t z = -before; z < viv_tp_get(words, VIV_TP_IN_IMAGE_Z_SIZE) + after; z++)
        for (int64_t ty = signed_field(words, VIV_TP_IN_WINDOW_Y_START); ty <= y_end;
             ty += viv_tp_get(words, VIV_TP_IN_TILE_Y_INC))
            for (int64_t tx = signed_field(words, VIV_TP_IN_WINDOW_X_START); tx <= x_end;
                 tx += viv_tp_get(words, VIV_TP_IN_TILE_X_INC))
                for (int64_t y = ty; y < ty + tile_h && y <= y_end; y++)
                    for (int64_t x = tx; x < tx + tile_w && x <= x_end; x++)
                        base[out + out_offset(words, n++)] = copied(base, words, x, y, z);
}

/* ---- streams ---------------------------------------------------------- */

size_t reference_run(const struct viv_chip *chip, uint8_t *base, const uint32_t *stream, size_t words)
{
    size_t jobs = 0;
    for (size_t i = 0; i + 1 < words; i += 2) {
        bool nn = stream[i] == 0x08010428, tp = stream[i] == 0x0801042e;
        if (nn)
            reference_nn(chip, base, stream[i + 1] & ~63u);
        else if (tp)
            reference_tp(base, stream[i + 1] & ~63u);
        jobs += nn || tp;
    }
    return jobs;
}
