/* SPDX-License-Identifier: MIT */
/*
 * Buffers are decoded, and their kernels counted again. For Huffman streams
 * the counting is the encoder's own floor function; for V7 it is here: the
 * best zero-run width, bit by bit, without the padding of streams.
 */
#include "floor.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "npu/vivante/compile/coef_huffman.h"
#include "npu/vivante/hw/fields.h"
#include "npu/vivante/sim/coef_huffman.h"
#include "npu/vivante/sim/coef_v7.h"
#include "util/checked.h"

#define ALIGNMENT 64u
#define MAX_KERNEL_TAPS 256u

double bench_entropy(const void *data, size_t size)
{
    size_t counts[256] = {0};
    double bits = 0;
    for (size_t i = 0; i < size; i++)
        counts[((const uint8_t *)data)[i]]++;
    for (unsigned i = 0; i < 256; i++)
        if (counts[i])
            bits -= (double)counts[i] * log2((double)counts[i] / (double)size);
    return bits / 8;
}

/* ---- decoding ---------------------------------------------------------------- */

static struct viv_huffman_shape shape_of(const struct viv_chip *chip, const uint32_t *words)
{
    bool column = viv_nn_get(words, VIV_NN_LAYER_TYPE);
    return (struct viv_huffman_shape){
        .chip = chip,
        .kernels_per_core = viv_nn_get(words, VIV_NN_KERNELS_PER_CORE),
        .kernel_w = column ? 1 : viv_nn_get(words, VIV_NN_KERNEL_X_SIZE),
        .kernel_h = viv_nn_get(words, VIV_NN_KERNEL_Y_SIZE),
        .channels = viv_nn_get(words, VIV_NN_KERNEL_Z_SIZE),
        .depthwise = viv_nn_get(words, VIV_NN_DEPTHWISE),
        .zero_point = (uint8_t)viv_nn_get(words, VIV_NN_COEF_ZERO_POINT),
        .kernels = viv_nn_get(words, VIV_NN_OUT_IMAGE_Z_SIZE),
        .plane = 1, /* so that offsets are kernel numbers */
    };
}

/* -EIO when there are fewer than `stored` bytes. */
static int decode(const struct viv_huffman_shape *shape, const uint8_t *buffer, uint64_t stored,
                  struct mica_threads *threads, struct mica_log *log, struct viv_coefs *coefs)
{
    bool v7 = shape->chip->coef_format == VIV_COEF_V7;
    const struct viv_coef_shape plain = {
        .cores = shape->chip->nn_cores,
        .kernels_per_core = shape->kernels_per_core,
        .kernel_w = shape->kernel_w,
        .kernel_h = shape->kernel_h,
        .channels = shape->channels,
        .zero_run_bits = shape->chip->zero_run_bits,
        .zero_point = shape->zero_point,
    };
    uint64_t size;
    int error = stored < ALIGNMENT ? -EIO
                : v7               ? viv_coef_v7_size(buffer, plain.cores, 0, log, &size)
                                   : viv_coef_huffman_size(buffer, shape, 0, log, &size);
    if (error || size > stored)
        return mica_fail(log, -EIO, "coefficients go beyond their buffer");
    return v7 ? viv_coef_v7_decode(buffer, size, &plain, 0, threads, log, coefs)
              : viv_coef_huffman_decode(buffer, size, shape, 0, threads, log, coefs);
}

/*
 * Where taps of a kernel stand in a stream: as they are on chips with blocks
 * of nine, else pairs of rows in blocks of three columns (specification, section 5.1).
 */
static void tap_order(const struct viv_huffman_shape *shape, uint32_t *order)
{
    uint32_t width = shape->kernel_w, height = shape->kernel_h;
    if (shape->chip->coef_blocks_of_nine) {
        for (uint32_t i = 0; i < width * height; i++)
            order[i] = i;
        return;
    }
    for (uint32_t row = 0; row < height; row += 2)
        for (uint32_t column = 0; column < width; column += 3)
            for (uint32_t y = row; y < row + 2 && y < height; y++)
                for (uint32_t x = column; x < column + 3 && x < width; x++)
                    *order++ = y * width + x;
}

/* The decoder's kernels with their taps in the order of streams. */
static uint8_t *in_stream_order(const struct viv_huffman_shape *shape, const struct viv_coefs *coefs)
{
    uint32_t order[MAX_KERNEL_TAPS], taps = shape->kernel_w * shape->kernel_h;
    size_t planes = (size_t)coefs->kernels * coefs->taps / taps;
    uint8_t *weights = mica_new_array(planes, taps);
    if (!weights)
        return NULL;
    tap_order(shape, order);
    for (size_t i = 0; i < planes; i++)
        for (uint32_t tap = 0; tap < taps; tap++)
            weights[i * taps + tap] = coefs->weights[i * taps + order[tap]];
    return weights;
}

/* ---- V7 ------------------------------------------------------------------------ */

/*
 * Bits of the tokens with one width of zero runs. A run must end with its
 * kernel's last weight, behind which the output offset stands, and before a
 * second first weight, behind which a bias stands.
 */
struct tokens {
    uint32_t width, run;
    bool bias_waits;
    uint8_t zero_point;
    uint64_t bits;
};

static void put(struct tokens *tokens)
{
    tokens->bits += 8 + tokens->width;
    tokens->run = 0;
    tokens->bias_waits = false;
}

static void add_taps(struct tokens *tokens, const uint8_t *taps, uint32_t count, bool first, bool last)
{
    if (first) {
        if (tokens->bias_waits)
            put(tokens);
        tokens->bias_waits = true;
    }
    for (uint32_t i = 0; i < count; i++)
        if (taps[i] != tokens->zero_point || ++tokens->run == 1u << tokens->width)
            put(tokens);
    if (last && tokens->run)
        put(tokens);
}

/* `weights`: the core's kernels in stream order, each [channel][tap in stream order]. */
static uint64_t core_bits(const uint8_t *weights, uint32_t kernels, const struct viv_huffman_shape *shape,
                          uint32_t width)
{
    uint32_t taps = shape->kernel_w * shape->kernel_h, channels = shape->channels;
    struct tokens tokens = {.width = width, .zero_point = shape->zero_point};
    for (uint32_t start = 0; start < kernels; start += shape->kernels_per_core)
        for (uint32_t z = 0; z < channels; z++)
            for (uint32_t k = start; k < kernels && k < start + shape->kernels_per_core; k++)
                add_taps(&tokens, weights + ((size_t)k * channels + z) * taps, taps, z == 0, z == channels - 1);
    return tokens.bits + 24 + (uint64_t)kernels * 64;
}

static bool v7_floor(const struct viv_huffman_shape *shape, const struct viv_coefs *coefs, const uint8_t *buffer,
                     struct bench_floor *bounds)
{
    uint32_t widths = shape->kernel_w * shape->kernel_h == 1 ? 0 : shape->chip->zero_run_bits;
    uint32_t header = (uint32_t)mica_align(shape->chip->nn_cores * 4, ALIGNMENT);
    uint8_t *weights = in_stream_order(shape, coefs);
    if (!weights)
        return false;
    *bounds = (struct bench_floor){UINT64_MAX, UINT64_MAX};
    for (uint32_t width = 0; width <= widths; width++) {
        const uint8_t *core = weights, *stream = buffer + header;
        uint64_t bits = 0, padded = header;
        for (uint32_t i = 0; i < shape->chip->nn_cores; i++) {
            uint32_t size;
            memcpy(&size, buffer + 4 * i, 4);
            if (!size)
                continue;
            uint32_t kernels = stream[1] | (uint32_t)stream[2] << 8;
            uint64_t own = core_bits(core, kernels, shape, width);
            bits += own;
            padded += mica_align((own + 7) / 8, ALIGNMENT);
            core += (size_t)kernels * coefs->taps;
            stream += size;
        }
        bounds->format = header + (bits + 7) / 8 < bounds->format ? header + (bits + 7) / 8 : bounds->format;
        bounds->padded = padded < bounds->padded ? padded : bounds->padded;
    }
    free(weights);
    return true;
}

/* ---- Huffman ------------------------------------------------------------------- */

/* Kernels and biases in channel order; places on the cores are what the encoder may choose. */
static bool huffman_floor(const struct viv_huffman_shape *shape, const struct viv_coefs *coefs,
                          struct mica_threads *threads, struct bench_floor *bounds)
{
    struct viv_huffman_floor found = {0};
    uint8_t *ordered = in_stream_order(shape, coefs), *data = mica_new_array(coefs->kernels, coefs->taps);
    uint32_t *bias = mica_new_array(coefs->kernels, sizeof *bias);
    bool done = ordered && data && bias;
    uint32_t last = 0;
    for (uint32_t i = 0; i < coefs->kernels; i++)
        last = coefs->offset[i] > last ? coefs->offset[i] : last;
    uint32_t plane = coefs->kernels > 1 && last ? last / (coefs->kernels - 1) : 1;
    for (uint32_t i = 0; done && i < coefs->kernels; i++) {
        uint32_t kernel = coefs->offset[i] / plane;
        done = kernel < coefs->kernels;
        if (done) {
            memcpy(data + (size_t)kernel * coefs->taps, ordered + (size_t)i * coefs->taps, coefs->taps);
            bias[kernel] = coefs->bias[i];
        }
    }
    uint32_t channels = shape->depthwise ? 1 : shape->channels, taps = shape->kernel_w * shape->kernel_h;
    const struct viv_kernel_set set = {
        .count = coefs->kernels,
        .channels = channels,
        .stored_channels = channels,
        .taps = taps,
        .pointwise = taps == 1,
        .zero_point = shape->zero_point,
        .data = data,
        .bias = bias,
        .plane = plane,
    };
    const struct viv_huffman_job job = {
        .kernels_per_core = shape->kernels_per_core, .depthwise = shape->depthwise, .threads = threads};
    done = done && viv_coef_huffman_floor(shape->chip, &set, &job, &found);
    *bounds = (struct bench_floor){found.format, found.padded};
    free(ordered);
    free(data);
    free(bias);
    return done;
}

bool bench_floor(const struct viv_chip *chip, const uint32_t *words, const uint8_t *buffer, uint64_t size,
                 struct mica_threads *threads, struct mica_log *log, struct bench_floor *bounds)
{
    struct viv_huffman_shape shape = shape_of(chip, words);
    struct viv_coefs coefs;
    if (shape.kernel_w * shape.kernel_h > MAX_KERNEL_TAPS)
        return mica_fail(log, -EIO, "the kernel is too large"), false;
    if (decode(&shape, buffer, size, threads, log, &coefs))
        return false;
    bool done = chip->coef_format == VIV_COEF_V7 ? v7_floor(&shape, &coefs, buffer, bounds)
                                                 : huffman_floor(&shape, &coefs, threads, bounds);
    viv_coefs_release(&coefs);
    return done ? true : (mica_fail_nomem(log), false);
}
