/* SPDX-License-Identifier: MIT */
#include "npu/vivante/sim/coef_v7.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "npu/vivante/sim/coef_order.h"
#include "util/bits.h"
#include "util/checked.h"

/* The order in which a stream brings a kernel's weights: step by step, `size` weights in each but the last. */
struct steps {
    uint32_t count, size, last_size;
    uint8_t order[MAX_KERNEL_PIXELS]; /* place of the step's i-th weight */
};

/* One core's stream being decoded. */
struct core {
    struct mica_bit_reader bits;
    uint64_t bytes, start; /* of the stream; start within the buffer */
    uint32_t zero_run_bits, kernels;
    uint32_t first_kernel; /* among all cores' */
    uint32_t run;          /* zero-point weights of the current token still to come */
    bool pending;          /* then `value` */
    uint8_t value;
    uint64_t nonzero;
    const char *problem; /* NULL: decoded well */
};

struct decoder {
    const struct viv_coef_shape *shape;
    struct viv_coefs *coefs;
    struct steps steps;
    struct core cores[VIV_MAX_CORES];
};

size_t viv_coef_v7_header_bytes(uint32_t cores)
{
    return (size_t)mica_align(4 * (uint64_t)cores, STREAM_ALIGNMENT);
}

int viv_coef_v7_size(const uint8_t *header, uint32_t cores, uint64_t address, struct mica_log *log, uint64_t *size)
{
    *size = viv_coef_v7_header_bytes(cores);
    for (uint32_t i = 0; i < cores; i++) {
        uint32_t bytes = load32(header + 4 * i);
        if (bytes % STREAM_ALIGNMENT)
            return mica_fail(log, -EIO, "coefficients at 0x%08llx: core %u's stream of %u bytes is no multiple of %u",
                             (unsigned long long)address, i, bytes, STREAM_ALIGNMENT);
        *size += bytes;
    }
    return 0;
}

static void plan_steps(struct steps *steps, const struct viv_coef_shape *shape)
{
    uint32_t pixels = shape->kernel_w * shape->kernel_h;
    if (pixels > 1) {
        steps->count = shape->channels;
        steps->size = steps->last_size = pixels;
        order_blocks(steps->order, shape->kernel_w, shape->kernel_h);
        return;
    }
    steps->count = mica_cdiv(shape->channels, CHANNELS_A_STEP);
    steps->size = CHANNELS_A_STEP;
    steps->last_size = shape->channels - CHANNELS_A_STEP * (steps->count - 1);
    for (uint8_t i = 0; i < CHANNELS_A_STEP; i++)
        steps->order[i] = i;
}

static void read_token(struct core *core)
{
    uint32_t token = mica_bits_read(&core->bits, core->zero_run_bits + 8);
    core->run = token & ((1u << core->zero_run_bits) - 1);
    core->value = (uint8_t)(token >> core->zero_run_bits);
    core->pending = true;
}

/*
 * The weights of one kernel in one step. A field follows the token that holds
 * the weight it belongs to; what is left of that token stands for later weights.
 */
static void decode_step(struct decoder *decoder, struct core *core, uint32_t kernel, uint32_t step)
{
    const struct steps *steps = &decoder->steps;
    struct viv_coefs *coefs = decoder->coefs;
    uint8_t *weights = coefs->weights + (size_t)kernel * coefs->taps + (size_t)step * steps->size;
    bool last = step == steps->count - 1;
    uint32_t size = last ? steps->last_size : steps->size;
    for (uint32_t i = 0; i < size;) {
        bool first = step == 0 && i == 0;
        if (!core->run && !core->pending)
            read_token(core);
        if (core->run) {
            uint32_t skipped = core->run < size - i ? core->run : size - i;
            core->run -= skipped;
            i += skipped;
        } else {
            weights[steps->order[i++]] = core->value;
            core->pending = false;
            core->nonzero += core->value != decoder->shape->zero_point;
        }
        if (first)
            coefs->bias[kernel] = mica_bits_read(&core->bits, 32);
    }
    if (last)
        coefs->offset[kernel] = mica_bits_read(&core->bits, 32);
}

static void decode_kernels(struct decoder *decoder, struct core *core)
{
    for (uint32_t done = 0, group; done < core->kernels; done += group) {
        group = core->kernels - done;
        if (group > decoder->shape->kernels_per_core)
            group = decoder->shape->kernels_per_core;
        for (uint32_t step = 0; step < decoder->steps.count && !core->bits.error; step++)
            for (uint32_t k = 0; k < group; k++)
                decode_step(decoder, core, core->first_kernel + done + k, step);
    }
}

static void decode_core(void *user, size_t index)
{
    struct decoder *decoder = user;
    struct core *core = &decoder->cores[index];
    if (!core->bytes)
        return;
    decode_kernels(decoder, core);
    if (core->bits.error)
        core->problem = "ends in the middle of a kernel";
    else if (core->run || core->pending)
        core->problem = "ends with a run of zeros that goes past its last kernel";
    else if (mica_align(core->bits.position, 8 * STREAM_ALIGNMENT) != 8 * core->bytes)
        core->problem = "is longer than its kernels";
}

/* Reads a stream's first fields; false when its bytes can't hold the kernels it announces. */
static bool open_core(struct core *core, const uint8_t *stream, uint32_t zero_run_bits, uint32_t taps)
{
    mica_bit_reader_init(&core->bits, stream, 8 * core->bytes);
    core->zero_run_bits = mica_bits_read(&core->bits, 8);
    core->kernels = mica_bits_read(&core->bits, 16);
    if (core->zero_run_bits > zero_run_bits) {
        core->problem = "uses longer zero runs than the chip knows";
        return false;
    }
    /* Every kernel has two words, and a token of 8 + n bits stands for 2^n weights at most. */
    uint64_t left = core->bits.size - core->bits.position, fields = UINT64_C(64) * core->kernels;
    uint64_t weights = (uint64_t)core->kernels * taps;
    uint64_t tokens = (weights + (UINT64_C(1) << core->zero_run_bits) - 1) >> core->zero_run_bits;
    if (fields > left || tokens > (left - fields) / (8 + core->zero_run_bits)) {
        core->problem = "is too short for its kernels";
        return false;
    }
    return true;
}

static int fail_core(const struct decoder *decoder, uint32_t index, uint64_t address, struct mica_log *log)
{
    const struct core *core = &decoder->cores[index];
    return mica_fail(log, -EIO, "coefficients at 0x%08llx: core %u's stream at 0x%08llx (%u kernels of %u weights) %s",
                     (unsigned long long)address, index, (unsigned long long)(address + core->start), core->kernels,
                     decoder->coefs->taps, core->problem);
}

static int open_cores(struct decoder *decoder, const uint8_t *buffer, uint64_t address, struct mica_log *log)
{
    struct viv_coefs *coefs = decoder->coefs;
    uint64_t start = viv_coef_v7_header_bytes(decoder->shape->cores);
    for (uint32_t i = 0; i < decoder->shape->cores; i++) {
        struct core *core = &decoder->cores[i];
        core->bytes = load32(buffer + 4 * i);
        core->start = start;
        if (!core->bytes)
            continue;
        if (!open_core(core, buffer + start, decoder->shape->zero_run_bits, coefs->taps))
            return fail_core(decoder, i, address, log);
        core->first_kernel = coefs->kernels;
        coefs->kernels += core->kernels;
        coefs->stream_bytes += core->bytes;
        start += core->bytes;
    }
    if (coefs->kernels == 0)
        return mica_fail(log, -EIO, "coefficients at 0x%08llx hold no kernel", (unsigned long long)address);
    if (coefs->kernels > VIV_MAX_WEIGHTS / coefs->taps)
        return mica_fail(log, -EIO,
                         "coefficients at 0x%08llx: %u kernels of %u weights are more than the simulator takes",
                         (unsigned long long)address, coefs->kernels, coefs->taps);
    return 0;
}

static int allocate(struct viv_coefs *coefs, uint8_t zero_point, struct mica_log *log)
{
    size_t weights = (size_t)coefs->kernels * coefs->taps;
    coefs->weights = malloc(weights);
    coefs->bias = mica_new_array(coefs->kernels, sizeof *coefs->bias);
    coefs->offset = mica_new_array(coefs->kernels, sizeof *coefs->offset);
    if (!coefs->weights || !coefs->bias || !coefs->offset)
        return mica_fail_nomem(log);
    memset(coefs->weights, zero_point, weights);
    return 0;
}

static int decode(struct decoder *decoder, const uint8_t *buffer, uint64_t address, struct mica_threads *threads,
                  struct mica_log *log)
{
    int result = open_cores(decoder, buffer, address, log);
    if (!result)
        result = allocate(decoder->coefs, decoder->shape->zero_point, log);
    if (result)
        return result;
    mica_parallel_for(threads, decoder->shape->cores, decode_core, decoder);
    for (uint32_t i = 0; i < decoder->shape->cores; i++) {
        if (decoder->cores[i].problem)
            return fail_core(decoder, i, address, log);
        decoder->coefs->nonzero += decoder->cores[i].nonzero;
    }
    return 0;
}

int viv_coef_v7_decode(const uint8_t *buffer, uint64_t size, const struct viv_coef_shape *shape, uint64_t address,
                       struct mica_threads *threads, struct mica_log *log, struct viv_coefs *coefs)
{
    struct decoder decoder = {.shape = shape, .coefs = coefs};
    uint64_t taps = (uint64_t)shape->kernel_w * shape->kernel_h * shape->channels, expected;
    *coefs = (struct viv_coefs){0};
    if (taps == 0 || taps > VIV_MAX_TAPS || shape->kernel_w * shape->kernel_h > MAX_KERNEL_PIXELS)
        return mica_fail(log, -EIO, "coefficients at 0x%08llx: kernels of %ux%ux%u are beyond the simulator",
                         (unsigned long long)address, shape->kernel_w, shape->kernel_h, shape->channels);
    if (shape->cores == 0 || shape->cores > VIV_MAX_CORES || shape->kernels_per_core == 0)
        return mica_fail(log, -EIO, "coefficients at 0x%08llx: no kernels per core", (unsigned long long)address);
    if (size < viv_coef_v7_header_bytes(shape->cores))
        return mica_fail(log, -EIO, "coefficients at 0x%08llx: the header is cut", (unsigned long long)address);
    int result = viv_coef_v7_size(buffer, shape->cores, address, log, &expected);
    if (result)
        return result;
    if (size < expected)
        return mica_fail(log, -EIO, "coefficients at 0x%08llx: the streams are cut", (unsigned long long)address);
    coefs->taps = (uint32_t)taps;
    plan_steps(&decoder.steps, shape);
    result = decode(&decoder, buffer, address, threads, log);
    if (result)
        viv_coefs_release(coefs);
    return result;
}

void viv_coefs_release(struct viv_coefs *coefs)
{
    free(coefs->weights);
    free(coefs->bias);
    free(coefs->offset);
    *coefs = (struct viv_coefs){0};
}
