/* SPDX-License-Identifier: MIT */
/*
 * A coefficient buffer for people: its header, how many bits it spends, which
 * values the weights have, and on request every kernel. The streams are read
 * by the simulator's decoders, which take untrusted bytes.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "npu/vivante/decode/decode.h"
#include "npu/vivante/decode/internal.h"
#include "npu/vivante/sim/coef_order.h"

struct source {
    const struct viv_decode *decode;
    uint64_t address, size; /* size 0: the memory's reader says what is there */
    const uint8_t *buffer;
    const struct viv_huffman_shape *shape;
};

static const uint8_t *bytes_of(const struct source *source, uint64_t size)
{
    if (source->buffer)
        return size <= source->size ? source->buffer : NULL;
    const struct mica_decode_memory *memory = source->decode->memory;
    return memory ? memory->at(memory->user, source->address, size) : NULL;
}

/* ---- the header --------------------------------------------------------- */

static void show_list(const struct viv_decode *decode, const char *name, const uint8_t *values, size_t count, int plus,
                      const char *meaning)
{
    char text[160] = "";
    for (size_t i = 0, used = 0; i < count && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%d", i ? " " : "", values[i] + plus);
    viv_decode_field(decode, &(struct mica_decoded){.name = name, .value = count, .text = text, .meaning = meaning});
}

/* Byte by byte as docs/coefficient-streams.md has it. */
static void show_huffman_header(const struct source *source, const uint8_t *bytes)
{
    const struct viv_decode *decode = source->decode;
    uint8_t map[8];
    for (uint32_t i = 0; i < 8; i++)
        map[i] = bytes[20 + i / 2] >> 4 * (i % 2) & 15;
    viv_decode_number(decode, "version", bytes[0] >> 4, "of the format");
    viv_decode_number(decode, "differences", bytes[0] & 1, "1: bytes are differences to the one before");
    show_list(decode, "runs", bytes + 2, bytes[1] <= 18 ? bytes[1] : 0, 1, "lengths of zero runs that have codes");
    show_list(decode, "symbol map", map, 8, 0, "which step each code stands for; 8 is a zero run");
    viv_decode_number(decode, "average bias", bytes[24], "added to every byte");
    for (uint32_t i = 0; i < source->shape->chip->nn_cores; i++) {
        char name[32];
        snprintf(name, sizeof name, "core %u", i);
        viv_decode_number(decode, name, load32(bytes + 28 + 4 * i), "bits of its stream");
    }
}

static void show_v7_header(const struct source *source, const uint8_t *bytes)
{
    uint32_t cores = source->shape->chip->nn_cores;
    for (uint32_t i = 0; i < cores; i++) {
        char name[32];
        snprintf(name, sizeof name, "core %u", i);
        viv_decode_number(source->decode, name, load32(bytes + 4 * i), "bytes of its stream");
    }
}

/* ---- what is in it ------------------------------------------------------- */

static void show_histogram(const struct viv_decode *decode, const struct viv_coefs *coefs, uint8_t zero_point)
{
    uint64_t counts[256] = {0}, total = (uint64_t)coefs->kernels * coefs->taps;
    double entropy = 0;
    for (uint64_t i = 0; i < total; i++)
        counts[coefs->weights[i]]++;
    viv_decode_open(decode, "histogram", 0, "how often each weight occurs, as value minus zero point");
    for (uint32_t i = 0; i < 256; i++) {
        char name[16];
        if (!counts[i])
            continue;
        entropy -= (double)counts[i] / (double)total * log2((double)counts[i] / (double)total);
        snprintf(name, sizeof name, "%d", (int)i - zero_point);
        viv_decode_number(decode, name, counts[i], "");
    }
    viv_decode_close(decode);
    char text[64];
    snprintf(text, sizeof text, "%.3f bits a weight", entropy);
    viv_decode_field(decode, &(struct mica_decoded){.name = "entropy", .text = text, .meaning = "of order 0"});
}

static void show_kernels(const struct viv_decode *decode, const struct viv_coefs *coefs)
{
    for (uint32_t kernel = 0; kernel < coefs->kernels; kernel++) {
        const uint8_t *weights = coefs->weights + (size_t)kernel * coefs->taps;
        char title[64], name[32];
        snprintf(title, sizeof title, "kernel %u", kernel);
        viv_decode_open(decode, "kernel", coefs->offset[kernel], title);
        viv_decode_field(decode, &(struct mica_decoded){.name = "bias",
                                                        .value = (uint64_t)(int64_t)(int32_t)coefs->bias[kernel],
                                                        .is_signed = true,
                                                        .meaning = "with the input's zero point folded in"});
        for (uint32_t tap = 0; tap < coefs->taps; tap += 32) {
            snprintf(name, sizeof name, "weights %u", tap);
            show_list(decode, name, weights + tap, coefs->taps - tap < 32 ? coefs->taps - tap : 32, 0, "");
        }
        viv_decode_close(decode);
    }
}

static void show_contents(const struct source *source, const struct viv_coefs *coefs, uint64_t bytes)
{
    const struct viv_decode *decode = source->decode;
    uint64_t total = (uint64_t)coefs->kernels * coefs->taps;
    char text[96];
    viv_decode_number(decode, "bytes", bytes, "of the whole buffer");
    viv_decode_number(decode, "kernels", coefs->kernels, "of all cores");
    viv_decode_number(decode, "weights", total, "");
    snprintf(text, sizeof text, "%.1f %% of the weights", total ? 100.0 * (double)coefs->nonzero / (double)total : 0);
    viv_decode_field(decode, &(struct mica_decoded){.name = "nonzero",
                                                    .value = coefs->nonzero,
                                                    .text = text,
                                                    .meaning = "weights that differ from the zero point"});
    snprintf(text, sizeof text, "%.3f", total ? 8.0 * (double)bytes / (double)total : 0);
    viv_decode_field(decode, &(struct mica_decoded){.name = "bits per weight",
                                                    .text = text,
                                                    .meaning = "the buffer's bits over its weights"});
    show_histogram(decode, coefs, source->shape->zero_point);
    if (decode->weights)
        show_kernels(decode, coefs);
}

/* ---- the two formats ------------------------------------------------------ */

static int decode_v7(struct source *source, struct mica_log *log, struct viv_coefs *coefs, uint64_t *bytes)
{
    const struct viv_huffman_shape *shape = source->shape;
    const uint8_t *buffer = bytes_of(source, viv_coef_v7_header_bytes(shape->chip->nn_cores));
    if (!buffer)
        return -EFAULT;
    show_v7_header(source, buffer);
    int error = viv_coef_v7_size(buffer, shape->chip->nn_cores, source->address, log, bytes);
    if (error || !(buffer = bytes_of(source, *bytes)))
        return error ? error : -EFAULT;
    const struct viv_coef_shape v7 = {
        .cores = shape->chip->nn_cores,
        .kernels_per_core = shape->kernels_per_core,
        .kernel_w = shape->kernel_w,
        .kernel_h = shape->kernel_h,
        .channels = shape->channels,
        .zero_run_bits = shape->chip->zero_run_bits,
        .zero_point = shape->zero_point,
    };
    return viv_coef_v7_decode(buffer, *bytes, &v7, source->address, NULL, log, coefs);
}

static int decode_huffman(struct source *source, struct mica_log *log, struct viv_coefs *coefs, uint64_t *bytes)
{
    const uint8_t *buffer = bytes_of(source, VIV_HUFFMAN_HEADER_BYTES);
    if (!buffer)
        return -EFAULT;
    show_huffman_header(source, buffer);
    int error = viv_coef_huffman_size(buffer, source->shape, source->address, log, bytes);
    if (error || !(buffer = bytes_of(source, *bytes)))
        return error ? error : -EFAULT;
    return viv_coef_huffman_decode(buffer, *bytes, source->shape, source->address, NULL, log, coefs);
}

static bool shape_sane(const struct viv_huffman_shape *shape)
{
    return shape->kernel_w && shape->kernel_h && shape->channels && shape->kernels_per_core &&
           shape->chip->nn_cores <= VIV_MAX_CORES;
}

void viv_decode_coefficients(const struct viv_decode *decode, uint64_t address, const uint8_t *buffer, uint64_t size,
                             const struct viv_huffman_shape *shape)
{
    struct source source = {decode, address, size, buffer, shape};
    struct mica_log log = {0}; /* keeps the decoders' sentence */
    struct viv_coefs coefs = {0};
    const uint8_t *first = bytes_of(&source, 1);
    bool v7 = first && *first % STREAM_ALIGNMENT == 0;
    uint64_t bytes = 0;
    viv_decode_open(decode, "coefficients", address, v7 ? "V7 tokens" : "Huffman");
    int error = -EFAULT;
    if (!shape_sane(shape))
        error = -EIO;
    else if (first)
        error = v7 ? decode_v7(&source, &log, &coefs, &bytes) : decode_huffman(&source, &log, &coefs, &bytes);
    if (error)
        viv_decode_note(decode, "problem",
                        log.last_error[0]  ? log.last_error
                        : error == -EFAULT ? "the buffer is not there, or ends before its streams do"
                                           : "the descriptor's kernel has no size");
    else
        show_contents(&source, &coefs, bytes);
    viv_coefs_release(&coefs);
    viv_decode_close(decode);
}
