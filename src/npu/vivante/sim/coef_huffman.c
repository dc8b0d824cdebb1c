/* SPDX-License-Identifier: MIT */
#include "npu/vivante/sim/coef_huffman.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "npu/vivante/sim/coef_huffman_bits.h"
#include "npu/vivante/sim/coef_order.h"
#include "util/checked.h"

#define BLOCK_TAPS 9u /* of a flattened kernel in V8's order */

/* One core's stream being decoded. */
struct core {
    const uint8_t *stream;
    uint64_t bits, start; /* of the stream; start within the buffer */
    uint32_t kernels;
    uint32_t first_kernel; /* among all cores' */
    uint8_t *bytes;        /* decoded, with VIV_HUFFMAN_SLACK behind */
    size_t count;          /* of them that the kernels take */
    uint64_t nonzero;
    const char *problem; /* NULL: decoded well */
};

struct decoder {
    const struct viv_huffman_shape *shape;
    struct viv_coefs *coefs;
    struct viv_huffman_header header;
    struct viv_huffman_table table;
    uint32_t block, blocks;           /* weights that a kernel has in each step but the last, steps */
    uint32_t last_block;              /* and in the last one */
    bool table_of_biases;             /* behind the streams; then no field is in them */
    uint8_t order[MAX_KERNEL_PIXELS]; /* place of a block's i-th weight */
    struct core cores[VIV_MAX_CORES];
};

/* ---- the header --------------------------------------------------------- */

static const char *check_map(const struct viv_huffman_header *header)
{
    uint32_t seen = 0;
    for (uint32_t i = 0; i < 8; i++)
        seen |= 1u << header->symbol_map[i];
    if (!header->runs)
        return seen == 0xff ? NULL : "its symbol map is no permutation of 0 to 7";
    uint32_t missing = ~seen & 0x1ff; /* one of the lengths 1 to 6 */
    if (seen > 0x1ff || (missing & (missing - 1)) || !(missing & 0x7e))
        return "its symbol map is none of a stream with zero runs";
    return NULL;
}

static const char *read_runs(const uint8_t *bytes, struct viv_huffman_header *header)
{
    header->runs = bytes[1];
    if (header->runs != 0 && header->runs != 4 && header->runs != 6 && header->runs != 10 && header->runs != 18)
        return "its run table has none of the known sizes";
    for (uint32_t i = 0; i < header->runs; i++)
        header->run[i] = (uint16_t)(bytes[2 + i] + 1);
    return NULL;
}

/* NULL, or what is wrong with it. */
static const char *read_header(const uint8_t *bytes, const struct viv_chip *chip, struct viv_huffman_header *header)
{
    if (bytes[0] % STREAM_ALIGNMENT == 0)
        return "they are a V7 stream, the format of the A311D, which this chip can't read";
    if (bytes[0] >> 4 != 1)
        return "their format's version is not 1";
    if (bytes[0] & 6)
        return "they are 16 bits wide, which is not simulated";
    if (bytes[0] & 8 || bytes[25] || bytes[26] || bytes[27])
        return "reserved bits of their header are set";
    header->precode = bytes[0] & 1;
    header->average_bias = bytes[24];
    if (header->precode && !chip->coef_precode)
        return "they are differences, which this chip can't decode";
    if (header->precode && header->average_bias)
        return "they are differences with an average bias, which nobody knows the meaning of";
    const char *problem = read_runs(bytes, header);
    for (uint32_t i = 0; i < 8; i++)
        header->symbol_map[i] = bytes[20 + i / 2] >> 4 * (i % 2) & 15;
    return problem ? problem : check_map(header);
}

static int fail_header(uint64_t address, struct mica_log *log, const char *problem)
{
    return mica_fail(log, -EIO, "coefficients at 0x%08llx: %s", (unsigned long long)address, problem);
}

static uint64_t stream_bytes(uint64_t bits)
{
    return mica_align((bits + 7) / 8, STREAM_ALIGNMENT);
}

static uint64_t size_of(const uint8_t *header, const struct viv_huffman_shape *shape)
{
    uint64_t size = VIV_HUFFMAN_HEADER_BYTES;
    for (uint32_t i = 0; i < shape->chip->nn_cores; i++)
        size += stream_bytes(load32(header + 28 + 4 * i));
    if (shape->chip->bias_place == VIV_BIAS_TABLE)
        size += UINT64_C(4) * shape->kernels;
    return size;
}

int viv_coef_huffman_size(const uint8_t *header, const struct viv_huffman_shape *shape, uint64_t address,
                          struct mica_log *log, uint64_t *size)
{
    struct viv_huffman_header parsed;
    const char *problem = read_header(header, shape->chip, &parsed);
    if (problem)
        return fail_header(address, log, problem);
    *size = size_of(header, shape);
    return 0;
}

/* ---- the order of the bytes --------------------------------------------- */

static void plan_blocks(struct decoder *decoder)
{
    const struct viv_huffman_shape *shape = decoder->shape;
    uint32_t pixels = shape->kernel_w * shape->kernel_h, taps = decoder->coefs->taps;
    decoder->table_of_biases = shape->chip->bias_place == VIV_BIAS_TABLE;
    for (uint32_t i = 0; i < MAX_KERNEL_PIXELS; i++)
        decoder->order[i] = (uint8_t)i;
    if (shape->chip->coef_blocks_of_nine) {
        decoder->block = shape->depthwise ? (uint32_t)mica_align(taps, BLOCK_TAPS) : BLOCK_TAPS;
    } else if (pixels > 1) {
        decoder->block = pixels;
        order_blocks(decoder->order, shape->kernel_w, shape->kernel_h);
    } else {
        decoder->block = CHANNELS_A_STEP;
    }
    decoder->blocks = mica_cdiv(taps, decoder->block);
    decoder->last_block = taps - decoder->block * (decoder->blocks - 1);
}

/* Bytes that a core with so many kernels decodes to. */
static uint64_t bytes_of(const struct decoder *decoder, uint32_t kernels)
{
    uint64_t weights = decoder->coefs->taps;
    if (decoder->table_of_biases)
        weights = (uint64_t)decoder->block * decoder->blocks;
    return 2 + kernels * (weights + (decoder->table_of_biases ? 0 : 8));
}

/* Channels are dealt out in groups of as many as there are cores, backwards in each. */
static uint32_t depthwise_channel(const struct viv_huffman_shape *shape, uint32_t core, uint32_t kernel)
{
    uint32_t start = kernel * shape->chip->nn_cores, left = shape->kernels - start;
    uint32_t members = left < shape->chip->nn_cores ? left : shape->chip->nn_cores;
    return start + members - 1 - core;
}

/*
 * Where the kernel's weights go. Chips without offsets in the stream compute the channel: superblock by
 * superblock, and core by core in each, channels follow each other.
 */
static uint32_t place_of(const struct decoder *decoder, const struct core *core, uint32_t kernel)
{
    uint32_t index = (uint32_t)(core - decoder->cores), superblock = decoder->shape->kernels_per_core;
    if (!decoder->table_of_biases)
        return core->first_kernel + kernel;
    if (decoder->shape->depthwise)
        return depthwise_channel(decoder->shape, index, kernel);
    uint32_t start = kernel - kernel % superblock, before = 0;
    for (uint32_t i = 0; i < decoder->shape->chip->nn_cores; i++) {
        uint32_t kernels = decoder->cores[i].kernels, end = start + (i < index ? superblock : 0);
        before += kernels < end ? kernels : end;
    }
    return before + kernel % superblock;
}

/* ---- from bytes to weights ---------------------------------------------- */

/* Differences back to bytes. */
static void undo_precode(uint8_t *bytes, size_t count)
{
    uint8_t sum = 0;
    for (size_t i = 0; i < count; i++)
        bytes[i] = sum = (uint8_t)(sum + bytes[i]);
}

/* One kernel's part of a step; `bytes` moves on. False when the filling behind its weights isn't zero points. */
static bool take_block(struct decoder *decoder, const uint8_t **bytes, uint32_t place, uint32_t block)
{
    struct viv_coefs *coefs = decoder->coefs;
    bool last = block == decoder->blocks - 1;
    uint32_t count = last ? decoder->last_block : decoder->block;
    uint8_t *weights = coefs->weights + (size_t)place * coefs->taps + (size_t)block * decoder->block;
    uint8_t added = decoder->shape->chip->coef_centred ? decoder->shape->zero_point : 0;
    bool filled = true;
    if (!decoder->table_of_biases && block == 0) {
        coefs->bias[place] = load32(*bytes);
        *bytes += 4;
    }
    if (decoder->block <= BLOCK_TAPS && decoder->shape->chip->coef_blocks_of_nine)
        for (uint32_t i = 0; i < count; i++)
            weights[i] = (uint8_t)((*bytes)[i] + added);
    else if (decoder->order[count - 1] == count - 1 && decoder->block == CHANNELS_A_STEP)
        memcpy(weights, *bytes, count);
    else
        for (uint32_t i = 0; i < count; i++)
            weights[decoder->order[i]] = (uint8_t)((*bytes)[i] + added);
    *bytes += count;
    if (decoder->table_of_biases)
        for (; count < decoder->block; count++)
            filled &= *(*bytes)++ == 0;
    if (!decoder->table_of_biases && last) {
        coefs->offset[place] = load32(*bytes);
        *bytes += 4;
    }
    return filled;
}

static void take_kernels(struct decoder *decoder, struct core *core)
{
    const uint8_t *bytes = core->bytes + 2;
    bool filled = true;
    for (uint32_t start = 0; start < core->kernels; start += decoder->shape->kernels_per_core) {
        uint32_t group = core->kernels - start, place = place_of(decoder, core, start);
        group = group < decoder->shape->kernels_per_core ? group : decoder->shape->kernels_per_core;
        for (uint32_t block = 0; block < decoder->blocks; block++)
            for (uint32_t k = 0; k < group; k++)
                filled &= take_block(decoder, &bytes,
                                     decoder->shape->depthwise ? place_of(decoder, core, start + k) : place + k, block);
    }
    if (!filled)
        core->problem = "has weights behind the last tap of a kernel";
}

static const char *end_problem(enum viv_huffman_end end)
{
    switch (end) {
    case VIV_HUFFMAN_ENDED:
        return NULL;
    case VIV_HUFFMAN_LIMIT:
        return "is longer than its kernels";
    case VIV_HUFFMAN_CUT:
        return "ends in the middle of a code";
    case VIV_HUFFMAN_NO_PAIR:
        return "is too short for any code";
    default:
        return "does not end as streams do";
    }
}

static void decode_core(void *user, size_t index)
{
    struct decoder *decoder = user;
    struct core *core = &decoder->cores[index];
    size_t count;
    if (!core->bits)
        return;
    core->problem =
        end_problem(viv_huffman_bytes(&decoder->table, core->stream, core->bits, core->bytes, core->count + 2, &count));
    if (!core->problem && count != core->count)
        core->problem = count < core->count ? "ends before its kernels do" : "is longer than its kernels";
    if (core->problem)
        return;
    if (decoder->header.precode)
        undo_precode(core->bytes, core->count);
    take_kernels(decoder, core);
}

/* ---- before decoding: how many kernels, and can the bits hold them? ------ */

/* The kernel count is a stream's first two bytes. */
static bool read_kernels(const struct decoder *decoder, struct core *core)
{
    uint8_t bytes[2 + VIV_HUFFMAN_SLACK];
    size_t count;
    enum viv_huffman_end end = viv_huffman_bytes(&decoder->table, core->stream, core->bits, bytes, 2, &count);
    core->problem = end == VIV_HUFFMAN_LIMIT ? NULL : end_problem(end);
    if (!core->problem && count < 2)
        core->problem = "is too short for its kernel count";
    if (core->problem)
        return false;
    if (decoder->header.precode)
        undo_precode(bytes, 2);
    core->kernels = bytes[0] | (uint32_t)bytes[1] << 8;
    return true;
}

/* Every code has three bits or more, and stands for one byte, or for a run of zeros. */
static bool can_hold(const struct decoder *decoder, const struct core *core)
{
    uint64_t most = core->bits / 3;
    if (decoder->header.runs)
        most *= VIV_HUFFMAN_LONGEST_RUN;
    return core->count <= most;
}

static bool right_count(const struct decoder *decoder, uint32_t index, uint32_t kernels)
{
    uint32_t all = decoder->shape->kernels, cores = decoder->shape->chip->nn_cores;
    uint32_t used = all < cores ? all : cores;
    if (!decoder->table_of_biases)
        return true;
    return index < used && kernels == all / used + (index < all % used);
}

static bool open_core(struct decoder *decoder, uint32_t index)
{
    struct core *core = &decoder->cores[index];
    if (!read_kernels(decoder, core))
        return false;
    core->count = (size_t)bytes_of(decoder, core->kernels);
    if (!right_count(decoder, index, core->kernels))
        core->problem = "has more or fewer kernels than the job's channels give it";
    else if (!can_hold(decoder, core))
        core->problem = "is too short for its kernels";
    return !core->problem;
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
    uint64_t start = VIV_HUFFMAN_HEADER_BYTES;
    for (uint32_t i = 0; i < decoder->shape->chip->nn_cores; i++) {
        struct core *core = &decoder->cores[i];
        core->bits = load32(buffer + 28 + 4 * i);
        core->start = start;
        core->stream = buffer + start;
        if (!core->bits)
            continue;
        if (!open_core(decoder, i))
            return fail_core(decoder, i, address, log);
        core->first_kernel = coefs->kernels;
        coefs->kernels += core->kernels;
        coefs->stream_bytes += stream_bytes(core->bits);
        start += stream_bytes(core->bits);
    }
    if (coefs->kernels == 0)
        return fail_header(address, log, "they hold no kernel");
    if (decoder->table_of_biases && coefs->kernels != decoder->shape->kernels)
        return fail_header(address, log, "their streams have fewer kernels than the job has channels");
    if (coefs->kernels > VIV_MAX_WEIGHTS / coefs->taps)
        return fail_header(address, log, "they are more weights than the simulator takes");
    return 0;
}

/* ---- the decoder's functions -------------------------------------------- */

static int allocate(struct decoder *decoder, struct mica_log *log)
{
    struct viv_coefs *coefs = decoder->coefs;
    coefs->weights = malloc((size_t)coefs->kernels * coefs->taps);
    coefs->bias = mica_new_array(coefs->kernels, sizeof *coefs->bias);
    coefs->offset = mica_new_array(coefs->kernels, sizeof *coefs->offset);
    if (!coefs->weights || !coefs->bias || !coefs->offset)
        return mica_fail_nomem(log);
    for (uint32_t i = 0; i < decoder->shape->chip->nn_cores; i++) {
        struct core *core = &decoder->cores[i];
        if (!core->bits)
            continue;
        core->bytes = malloc(core->count + 2 + VIV_HUFFMAN_SLACK);
        if (!core->bytes)
            return mica_fail_nomem(log);
    }
    return 0;
}

static void read_bias_table(const struct decoder *decoder, const uint8_t *buffer)
{
    struct viv_coefs *coefs = decoder->coefs;
    const uint8_t *table = buffer + VIV_HUFFMAN_HEADER_BYTES + coefs->stream_bytes;
    for (uint32_t kernel = 0; kernel < coefs->kernels; kernel++) {
        coefs->bias[kernel] = load32(table + 4 * (size_t)kernel);
        coefs->offset[kernel] = kernel * decoder->shape->plane;
    }
}

static uint64_t count_nonzero(const struct viv_coefs *coefs, uint8_t zero_point)
{
    size_t count = (size_t)coefs->kernels * coefs->taps, zeros = 0;
    for (size_t i = 0; i < count; i++)
        zeros += coefs->weights[i] == zero_point;
    return count - zeros;
}

static int decode(struct decoder *decoder, const uint8_t *buffer, uint64_t address, struct mica_threads *threads,
                  struct mica_log *log)
{
    uint32_t cores = decoder->shape->chip->nn_cores;
    int result = open_cores(decoder, buffer, address, log);
    if (!result)
        result = allocate(decoder, log);
    if (result)
        return result;
    mica_parallel_for(threads, cores, decode_core, decoder);
    for (uint32_t i = 0; i < cores; i++)
        if (decoder->cores[i].problem)
            return fail_core(decoder, i, address, log);
    if (decoder->table_of_biases)
        read_bias_table(decoder, buffer);
    decoder->coefs->nonzero = count_nonzero(decoder->coefs, decoder->shape->zero_point);
    return 0;
}

static int check_shape(const struct viv_huffman_shape *shape, uint64_t address, struct mica_log *log, uint32_t *taps)
{
    uint64_t pixels = (uint64_t)shape->kernel_w * shape->kernel_h,
             all = pixels * (shape->depthwise ? 1 : shape->channels);
    if (all == 0 || pixels > MAX_KERNEL_PIXELS || all > VIV_MAX_TAPS)
        return mica_fail(log, -EIO, "coefficients at 0x%08llx: kernels of %ux%ux%u are beyond the simulator",
                         (unsigned long long)address, shape->kernel_w, shape->kernel_h, shape->channels);
    if (shape->kernels_per_core == 0)
        return fail_header(address, log, "no kernels per core");
    if (shape->depthwise && !shape->chip->hardware_depthwise)
        return fail_header(address, log, "the chip has no depthwise mode");
    *taps = (uint32_t)all;
    return 0;
}

int viv_coef_huffman_decode(const uint8_t *buffer, uint64_t size, const struct viv_huffman_shape *shape,
                            uint64_t address, struct mica_threads *threads, struct mica_log *log,
                            struct viv_coefs *coefs)
{
    struct decoder *decoder;
    *coefs = (struct viv_coefs){0};
    int result = check_shape(shape, address, log, &coefs->taps);
    if (result)
        return result;
    decoder = calloc(1, sizeof *decoder); /* its tables are large for a thread's stack */
    if (!decoder)
        return mica_fail_nomem(log);
    decoder->shape = shape;
    decoder->coefs = coefs;
    const char *problem =
        size < VIV_HUFFMAN_HEADER_BYTES ? "the header is cut" : read_header(buffer, shape->chip, &decoder->header);
    if (!problem && size < size_of(buffer, shape))
        problem = "the streams are cut";
    if (problem) {
        result = fail_header(address, log, problem);
    } else {
        viv_huffman_table_make(&decoder->header, &decoder->table);
        plan_blocks(decoder);
        result = decode(decoder, buffer, address, threads, log);
    }
    for (uint32_t i = 0; i < VIV_MAX_CORES; i++)
        free(decoder->cores[i].bytes);
    free(decoder);
    if (result)
        viv_coefs_release(coefs);
    return result;
}
