/* SPDX-License-Identifier: MIT */
#include "npu/vivante/compile/coef_huffman_sequence.h"

#include <stdlib.h>
#include <string.h>

#include "util/checked.h"

#define STEP_CHANNELS 6u              /* of a 1x1 kernel in one step (specification, section 5.1) */
#define BLOCK_TAPS 9u                 /* of the flattened kernel (specification, section 5.2.2) */
#define MAX_BYTES (UINT32_C(1) << 28) /* 13 bits each still fit the header's 32-bit count */

uint32_t viv_huffman_cores(const struct viv_chip *chip, const struct viv_kernel_set *set)
{
    return set->count < chip->nn_cores ? set->count : chip->nn_cores;
}

/* ---- which core has which kernel --------------------------------------- */

/* Superblock by superblock, and core by core in each, kernels are handed out in order. */
static void place_in_order(const struct viv_kernel_set *set, const struct viv_huffman_job *job, uint32_t cores,
                           uint32_t rotation, const uint32_t *first, uint32_t *kernels)
{
    uint32_t next = rotation;
    for (uint32_t start = 0; start < first[1]; start += job->kernels_per_core)
        for (uint32_t core = 0; core < cores; core++)
            for (uint32_t k = start; k < start + job->kernels_per_core && k < first[core + 1] - first[core]; k++)
                kernels[first[core] + k] = next++ % set->count;
}

/* Groups of as many channels as the chip has cores, each group backwards (specification, section 5.2.2). */
static void place_depthwise(const struct viv_kernel_set *set, uint32_t group, const uint32_t *first, uint32_t *kernels)
{
    for (uint32_t start = 0; start < set->count; start += group) {
        uint32_t members = set->count - start < group ? set->count - start : group;
        for (uint32_t core = 0; core < members; core++)
            kernels[first[core] + start / group] = start + members - 1 - core;
    }
}

bool viv_huffman_place(const struct viv_chip *chip, const struct viv_kernel_set *set, const struct viv_huffman_job *job,
                       uint32_t rotation, struct viv_huffman_placement *placement)
{
    uint32_t cores = viv_huffman_cores(chip, set), *kernels = mica_new_array(set->count, sizeof *kernels);
    *placement = (struct viv_huffman_placement){.kernels = kernels};
    if (!kernels)
        return false;
    for (uint32_t core = 0; core < cores; core++)
        placement->first[core + 1] = placement->first[core] + set->count / cores + (core < set->count % cores);
    if (job->depthwise)
        place_depthwise(set, chip->nn_cores, placement->first, kernels);
    else
        place_in_order(set, job, cores, rotation, placement->first, kernels);
    return true;
}

/* ---- the order of a core's bytes --------------------------------------- */

struct maker {
    const struct viv_kernel_set *set;
    struct viv_sequence *sequence;
    uint32_t total;         /* taps of a kernel */
    uint32_t block, blocks; /* taps of a block, blocks of a kernel */
    bool whole_blocks;      /* the last one is filled with zero points */
    bool fields;            /* bias and offset are in the stream */
    bool closings, depthwise;
};

static void set_blocks(const struct viv_chip *chip, const struct viv_huffman_job *job, struct maker *maker)
{
    const struct viv_kernel_set *set = maker->set;
    maker->total = set->channels * set->taps;
    maker->whole_blocks = chip->coef_blocks_of_nine;
    if (!chip->coef_blocks_of_nine)
        maker->block = set->pointwise ? STEP_CHANNELS : set->taps;
    else if (job->depthwise)
        maker->block = (uint32_t)mica_align(maker->total, BLOCK_TAPS);
    else
        maker->block = BLOCK_TAPS;
    maker->blocks = mica_cdiv(maker->total, maker->block);
}

static void put_break(struct viv_sequence *sequence, uint16_t skip)
{
    sequence->breaks[sequence->break_count++] = (struct viv_break){sequence->count, skip, false};
}

static void put_field(struct viv_sequence *sequence, uint32_t value)
{
    put_break(sequence, 4);
    memcpy(sequence->data + sequence->count, &value, 4);
    sequence->count += 4;
}

/* Taps [first, first + count) of a kernel, whose own ones on the diagonal are few. */
static void put_diagonal(const struct viv_kernel_set *set, uint32_t kernel, uint32_t first, uint32_t count,
                         uint8_t *out)
{
    uint32_t size = set->stored_channels * set->taps, begin = viv_kernel_input(set, kernel) * size, end = begin + size;
    const uint8_t *own = set->data + (size_t)kernel * size;
    uint32_t from = first > begin ? first : begin, to = first + count < end ? first + count : end;
    memset(out, set->zero_point, count);
    if (from < to)
        memcpy(out + (from - first), own + (from - begin), to - from);
}

static void put_block(const struct maker *maker, uint32_t kernel, uint32_t block)
{
    const struct viv_kernel_set *set = maker->set;
    struct viv_sequence *sequence = maker->sequence;
    uint32_t first = block * maker->block, left = maker->total - first;
    uint32_t count = left < maker->block ? left : maker->block;
    uint8_t *out = sequence->data + sequence->count;
    if (set->diagonal)
        put_diagonal(set, kernel, first, count, out);
    else
        memcpy(out, set->data + (size_t)kernel * maker->total + first, count);
    if (maker->whole_blocks && count < maker->block) {
        memset(out + count, set->zero_point, maker->block - count);
        count = maker->block;
    }
    sequence->count += count;
}

/* Where the vendor closes runs (specification, sections 5.2.7 and 5.3.4). */
static void put_closing(const struct maker *maker, uint32_t start, uint32_t block, bool last_kernel)
{
    struct viv_sequence *sequence = maker->sequence;
    uint32_t at = sequence->count;
    if (maker->fields && !(block == 0 && last_kernel))
        return;
    if (!maker->fields && !maker->depthwise && block != maker->blocks - 1)
        return;
    if (maker->depthwise || (maker->fields && maker->set->pointwise))
        at = start + 1;
    sequence->breaks[sequence->break_count++] = (struct viv_break){at, 0, true};
}

static void put_superblock(const struct maker *maker, const uint32_t *kernels, uint32_t count)
{
    struct viv_sequence *sequence = maker->sequence;
    for (uint32_t block = 0; block < maker->blocks; block++)
        for (uint32_t k = 0; k < count; k++) {
            if (maker->fields && block == 0)
                put_field(sequence, maker->set->bias[kernels[k]]);
            uint32_t start = sequence->count;
            put_block(maker, kernels[k], block);
            if (maker->closings)
                put_closing(maker, start, block, k == count - 1);
            if (maker->fields && block == maker->blocks - 1)
                put_field(sequence, viv_kernel_place(maker->set, kernels[k]) * maker->set->plane);
        }
}

static bool allocate(const struct maker *maker, uint32_t kernels)
{
    struct viv_sequence *sequence = maker->sequence;
    uint64_t taps = maker->whole_blocks ? (uint64_t)maker->block * maker->blocks : maker->total;
    uint64_t bytes = kernels * (taps + (maker->fields ? 8 : 0)) + 2;
    if (bytes > MAX_BYTES)
        return false;
    sequence->data = malloc(bytes);
    sequence->breaks = mica_new_array((size_t)kernels * 3 + 2, sizeof *sequence->breaks);
    return sequence->data && sequence->breaks;
}

bool viv_sequence_make(const struct viv_chip *chip, const struct viv_kernel_set *set, const struct viv_huffman_job *job,
                       const struct viv_huffman_placement *placement, uint32_t core, bool closings,
                       struct viv_sequence *sequence)
{
    struct maker maker = {.set = set, .sequence = sequence, .closings = closings, .depthwise = job->depthwise};
    const uint32_t *kernels = placement->kernels + placement->first[core];
    uint32_t count = placement->first[core + 1] - placement->first[core],
             base = chip->coef_centred ? set->zero_point : 0;
    *sequence = (struct viv_sequence){0};
    maker.fields = chip->bias_place == VIV_BIAS_BEFORE_FIRST_WEIGHT;
    set_blocks(chip, job, &maker);
    if (!allocate(&maker, count)) {
        viv_sequence_finish(sequence);
        return false;
    }
    put_break(sequence, 2);
    sequence->data[sequence->count++] = (uint8_t)(count + base);
    sequence->data[sequence->count++] = (uint8_t)((count >> 8) + base);
    for (uint32_t start = 0; start < count; start += job->kernels_per_core) {
        uint32_t left = count - start;
        put_superblock(&maker, kernels + start, left < job->kernels_per_core ? left : job->kernels_per_core);
    }
    put_break(sequence, 0);
    return true;
}

void viv_sequence_difference(struct viv_sequence *sequence)
{
    for (uint32_t i = sequence->count - 1; i > 0; i--)
        sequence->data[i] = (uint8_t)(sequence->data[i] - sequence->data[i - 1]);
}

void viv_sequence_finish(struct viv_sequence *sequence)
{
    free(sequence->data);
    free(sequence->breaks);
    *sequence = (struct viv_sequence){0};
}
