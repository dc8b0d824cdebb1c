/* SPDX-License-Identifier: MIT */
#include "npu/vivante/compile/coef_v7.h"

#include <assert.h>
#include <stdlib.h>

#include "util/bits.h"
#include "util/checked.h"

#define STEP_CHANNELS 6u /* of a 1x1 kernel in one step (specification, section 5.1) */
#define MAX_RUN_BITS 8u
#define ALIGNMENT 64u
#define MAX_CORES 16u

/* The weights of one kernel in one step; `taps` NULL: all are the zero point. */
struct block {
    const uint8_t *taps;
    uint32_t count;
    bool first, last; /* of the kernel */
    uint32_t bias, offset;
};

/* Takes blocks in stream order. */
struct sink {
    uint8_t zero_point;
};

typedef void take_block(struct sink *sink, const struct block *block);

/* ---- the order of a core's weights ------------------------------------- */

struct core {
    const struct viv_kernel_set *set;
    uint32_t index, used; /* which of how many cores */
    uint32_t kernels;     /* of this core */
    uint32_t per_superblock;
};

static uint32_t kernels_of_core(const struct viv_kernel_set *set, uint32_t used, uint32_t core)
{
    return set->count / used + (core < set->count % used);
}

static struct core core_of(const struct viv_kernel_set *set, uint32_t used, uint32_t index, uint32_t per_superblock)
{
    return (struct core){set, index, used, kernels_of_core(set, used, index), per_superblock};
}

/*
 * The first kernel of `core` in the superblock that starts at each core's
 * kernel `start`: superblocks take kernels in order, and so do cores in each.
 */
static uint32_t first_kernel(const struct core *core, uint32_t start)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < core->used; i++) {
        uint32_t have = kernels_of_core(core->set, core->used, i);
        uint32_t end = i < core->index ? start + core->per_superblock : start;
        sum += have < end ? have : end;
    }
    return sum;
}

static inline struct block block_of(const struct viv_kernel_set *set, uint32_t kernel, uint32_t step, uint32_t steps)
{
    uint32_t width = set->pointwise ? STEP_CHANNELS : 1;
    uint32_t channel = step * width, left = set->channels - channel;
    struct block block = {.count = (left < width ? left : width) * set->taps, .first = step == 0};
    block.last = step == steps - 1;
    block.bias = set->bias[kernel];
    block.offset = viv_kernel_place(set, kernel) * set->plane;
    uint32_t first = set->diagonal ? viv_kernel_input(set, kernel) * set->stored_channels : 0;
    if (channel >= first && channel - first < set->stored_channels)
        block.taps = set->data + ((size_t)kernel * set->stored_channels + channel - first) * set->taps;
    return block;
}

/* Steps from `step` on, not the last, in which no kernel of [base, base + count) has stored weights. */
static uint32_t empty_steps(const struct viv_kernel_set *set, uint32_t base, uint32_t count, uint32_t step)
{
    if (!set->diagonal || step == 0)
        return 0;
    uint32_t first = viv_kernel_input(set, base) * set->stored_channels;
    uint32_t end = (viv_kernel_input(set, base + count - 1) + 1) * set->stored_channels;
    uint32_t next = step < first ? first : step < end ? step : set->channels;
    next = next < set->channels - 1 ? next : set->channels - 1;
    return next > step ? next - step : 0;
}

static inline __attribute__((always_inline)) void walk_superblock(const struct viv_kernel_set *set, uint32_t base,
                                                                  uint32_t count, struct sink *sink, take_block *take)
{
    uint32_t steps = set->pointwise ? mica_cdiv(set->channels, STEP_CHANNELS) : set->channels;
    for (uint32_t step = 0; step < steps; step++) {
        uint32_t empty = empty_steps(set, base, count, step);
        if (empty) {
            struct block zeros = {.count = empty * count * set->taps};
            take(sink, &zeros);
            step += empty;
        }
        for (uint32_t k = 0; k < count; k++) {
            struct block block = block_of(set, base + k, step, steps);
            take(sink, &block);
        }
    }
}

/* Inlined, so that each of the three ways to take a block gets a loop of its own: they are most of compiling. */
static inline __attribute__((always_inline)) void walk(const struct core *core, struct sink *sink, take_block *take)
{
    for (uint32_t start = 0; start < core->kernels; start += core->per_superblock) {
        uint32_t left = core->kernels - start, count = left < core->per_superblock ? left : core->per_superblock;
        walk_superblock(core->set, first_kernel(core, start), count, sink, take);
    }
}

/* ---- counting: all zero-run widths in one pass -------------------------- */

/*
 * A run of zero points that crosses a kernel's first weight must not cross the
 * next kernel's: two bias words behind one token were never seen in a vendor
 * stream. `holds_first` says that the pending run has one.
 */
struct counter {
    struct sink sink;
    uint32_t widths;                    /* 1..widths are counted */
    uint64_t run;                       /* zero points since the pending ones, the same for every width */
    uint32_t pending[MAX_RUN_BITS + 1]; /* below 2^width */
    bool holds_first[MAX_RUN_BITS + 1];
    uint64_t tokens[MAX_RUN_BITS + 1];
    uint64_t plain; /* tokens of one weight, the same for every width */
};

/* Moves the common run into the pending ones. */
static void counter_fold(struct counter *counter)
{
    for (uint32_t width = 1; width <= counter->widths; width++) {
        uint64_t total = counter->pending[width] + counter->run;
        counter->tokens[width] += total >> width;
        counter->holds_first[width] &= total >> width == 0;
        counter->pending[width] = (uint32_t)(total & ((1u << width) - 1));
    }
    counter->run = 0;
}

static void counter_close(struct counter *counter)
{
    counter_fold(counter);
    for (uint32_t width = 1; width <= counter->widths; width++) {
        counter->tokens[width] += counter->pending[width] > 0;
        counter->pending[width] = 0;
        counter->holds_first[width] = false;
    }
}

/* A token that ends with a weight other than the zero point. */
static void counter_value(struct counter *counter)
{
    counter_fold(counter);
    for (uint32_t width = 1; width <= counter->widths; width++) {
        counter->tokens[width]++;
        counter->pending[width] = 0;
        counter->holds_first[width] = false;
    }
}

static void counter_first(struct counter *counter, bool zero)
{
    counter_fold(counter);
    for (uint32_t width = 1; width <= counter->widths; width++)
        if (counter->holds_first[width]) {
            counter->tokens[width] += counter->pending[width] > 0;
            counter->pending[width] = 0;
            counter->holds_first[width] = false;
        }
    if (!zero) {
        counter_value(counter);
        return;
    }
    for (uint32_t width = 1; width <= counter->widths; width++)
        counter->holds_first[width] = true;
    counter->run = 1;
    counter_fold(counter);
}

static inline void count_block(struct sink *sink, const struct block *block)
{
    struct counter *counter = (struct counter *)sink;
    uint32_t i = 0;
    if (block->first)
        counter_first(counter, !block->taps || block->taps[i] == sink->zero_point), i++;
    if (!block->taps) {
        counter->run += block->count - i;
    } else {
        bool fresh = false; /* nothing is pending: the next value is a token of its own */
        for (; i < block->count; i++) {
            if (block->taps[i] == sink->zero_point) {
                counter->run++;
                fresh = false;
            } else if (fresh) {
                counter->plain++;
            } else {
                counter_value(counter);
                fresh = true;
            }
        }
    }
    if (block->last)
        counter_close(counter);
}

/* ---- writing ------------------------------------------------------------ */

struct writer {
    struct sink sink;
    struct mica_bit_writer bits;
    uint32_t width;
    uint32_t run;    /* pending zero points, below 2^width */
    bool bias_waits; /* a first weight is among them */
    uint32_t bias;
};

static void writer_token(struct writer *writer, uint32_t run, uint8_t value)
{
    mica_bits_write(&writer->bits, run | (uint32_t)value << writer->width, writer->width + 8);
    writer->run = 0;
    if (writer->bias_waits)
        mica_bits_write(&writer->bits, writer->bias, 32);
    writer->bias_waits = false;
}

static void writer_close(struct writer *writer)
{
    if (writer->run)
        writer_token(writer, writer->run - 1, writer->sink.zero_point);
}

static inline void writer_weight(struct writer *writer, uint8_t weight)
{
    if (weight != writer->sink.zero_point)
        writer_token(writer, writer->run, weight);
    else if (++writer->run >> writer->width)
        writer_close(writer);
}

static void writer_zeros(struct writer *writer, uint32_t count)
{
    uint32_t full = 1u << writer->width;
    while (count >= full - writer->run) {
        count -= full - writer->run;
        writer_token(writer, full - 1, writer->sink.zero_point);
    }
    writer->run += count;
}

static inline void write_block(struct sink *sink, const struct block *block)
{
    struct writer *writer = (struct writer *)sink;
    uint32_t i = 0;
    if (block->first) {
        if (writer->bias_waits)
            writer_close(writer);
        writer->bias = block->bias;
        writer->bias_waits = true;
        writer_weight(writer, block->taps ? block->taps[0] : sink->zero_point);
        i = 1;
    }
    if (!block->taps)
        writer_zeros(writer, block->count - i);
    else
        for (; i < block->count; i++)
            writer_weight(writer, block->taps[i]);
    if (block->last) {
        writer_close(writer);
        mica_bits_write(&writer->bits, block->offset, 32);
    }
}

/* Width 0: every weight is 8 bits, so everything stays on byte borders. */
static inline void write_block_plain(struct sink *sink, const struct block *block)
{
    struct writer *writer = (struct writer *)sink;
    uint32_t i = 0;
    if (block->first) {
        mica_bits_write(&writer->bits, block->taps ? block->taps[i] : sink->zero_point, 8);
        mica_bits_write(&writer->bits, block->bias, 32);
        i++;
    }
    for (; block->taps && i + 4 <= block->count; i += 4) {
        uint32_t word;
        memcpy(&word, block->taps + i, 4);
        mica_bits_write(&writer->bits, word, 32);
    }
    for (; i < block->count; i++)
        mica_bits_write(&writer->bits, block->taps ? block->taps[i] : sink->zero_point, 8);
    if (block->last)
        mica_bits_write(&writer->bits, block->offset, 32);
}

/* ---- the buffer --------------------------------------------------------- */

/* Bits of each zero-run width, 0 to chip->zero_run_bits. */
static void count_core(const struct viv_chip *chip, const struct core *core, uint64_t *bits)
{
    const struct viv_kernel_set *set = core->set;
    uint64_t fixed = 24 + (uint64_t)core->kernels * 64;
    bits[0] = fixed + (uint64_t)core->kernels * set->channels * set->taps * 8;
    if (set->pointwise)
        return;
    struct counter counter = {.sink = {set->zero_point}, .widths = chip->zero_run_bits};
    walk(core, &counter.sink, count_block);
    for (uint32_t width = 1; width <= chip->zero_run_bits; width++)
        bits[width] = fixed + (counter.tokens[width] + counter.plain) * (8 + width);
}

static size_t stream_size(uint64_t bits)
{
    return (size_t)(mica_align((bits + 7) / 8, ALIGNMENT));
}

/* The width with the smallest buffer, the narrower of equals; sizes[] gets the bytes of each core's stream. */
static uint32_t choose_width(const struct viv_chip *chip, const struct viv_kernel_set *set, uint32_t per_superblock,
                             struct viv_coefficients *coefficients, size_t *sizes)
{
    uint64_t bits[MAX_CORES][MAX_RUN_BITS + 1];
    uint32_t widths = set->pointwise ? 0 : chip->zero_run_bits, best = 0;
    size_t best_size = SIZE_MAX;
    for (uint32_t i = 0; i < coefficients->cores; i++) {
        struct core core = core_of(set, coefficients->cores, i, per_superblock);
        count_core(chip, &core, bits[i]);
    }
    for (uint32_t width = 0; width <= widths; width++) {
        size_t size = 0;
        for (uint32_t i = 0; i < coefficients->cores; i++)
            size += stream_size(bits[i][width]);
        if (size < best_size) {
            best_size = size;
            best = width;
        }
    }
    for (uint32_t i = 0; i < coefficients->cores; i++) {
        sizes[i] = stream_size(bits[i][best]);
        coefficients->stream_bytes += sizes[i];
        coefficients->largest_core = sizes[i] > coefficients->largest_core ? sizes[i] : coefficients->largest_core;
    }
    return best;
}

static void write_core(const struct core *core, uint32_t width, uint8_t *data, size_t size)
{
    struct writer writer = {.sink = {core->set->zero_point}, .width = width};
    mica_bit_writer_init(&writer.bits, data, (uint64_t)size * 8);
    mica_bits_write(&writer.bits, width, 8);
    mica_bits_write(&writer.bits, core->kernels, 16);
    if (width)
        walk(core, &writer.sink, write_block);
    else
        walk(core, &writer.sink, write_block_plain);
    assert(!writer.bits.error); /* counted and written by the same walk */
}

bool viv_coef_v7_encode(const struct viv_chip *chip, const struct viv_kernel_set *set, uint32_t kernels_per_core,
                        struct viv_coefficients *coefficients)
{
    size_t sizes[MAX_CORES], header = mica_align(chip->nn_cores * 4, ALIGNMENT);
    *coefficients = (struct viv_coefficients){.cores = set->count < chip->nn_cores ? set->count : chip->nn_cores};
    uint32_t width = choose_width(chip, set, kernels_per_core, coefficients, sizes);
    coefficients->zero_run_bits = width;
    coefficients->size = header + coefficients->stream_bytes;
    coefficients->data = calloc(1, coefficients->size);
    if (!coefficients->data)
        return false;
    uint8_t *stream = coefficients->data + header;
    for (uint32_t i = 0; i < coefficients->cores; i++) {
        uint32_t size = (uint32_t)sizes[i];
        memcpy(coefficients->data + 4 * i, &size, 4);
        struct core core = core_of(set, coefficients->cores, i, kernels_per_core);
        write_core(&core, width, stream, sizes[i]);
        stream += sizes[i];
    }
    return true;
}

uint64_t viv_coef_v7_estimate(const struct viv_chip *chip, uint32_t kernels, uint32_t channels, uint32_t taps,
                              double density)
{
    double weights = (double)channels * taps, bits = weights * 8;
    for (uint32_t width = 1; taps > 1 && width <= chip->zero_run_bits; width++) {
        double tokens = 1 + weights * density + weights * (1 - density) / (1u << width);
        double coded = (tokens < weights ? tokens : weights) * (8 + width);
        bits = coded < bits ? coded : bits;
    }
    uint32_t cores = kernels < chip->nn_cores ? kernels : chip->nn_cores, more = kernels % cores;
    uint64_t few = stream_size((uint64_t)(24 + kernels / cores * (bits + 64)));
    uint64_t many = stream_size((uint64_t)(24 + (kernels / cores + 1) * (bits + 64)));
    return more * many + (cores - more) * few;
}
