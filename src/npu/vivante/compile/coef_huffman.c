/* SPDX-License-Identifier: MIT */
#include "npu/vivante/compile/coef_huffman.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "npu/vivante/compile/coef_huffman_search.h"
#include "util/checked.h"

#define ALIGNMENT 64u
#define HEADER_BYTES 64u
#define VERSION 1u
/* Streams up to this size are worth several tries, for what paddings take of them. */
#define SMALL_BYTES 16384u
#define QUICK_PLACEMENTS 3u
#define MOST_PLACEMENTS 16u

/* What the cores' threads share. */
struct encoder {
    const struct viv_chip *chip;
    const struct viv_kernel_set *set;
    const struct viv_huffman_job *job;
    const struct viv_huffman_placement *placement;
    uint32_t cores;
    bool closings, want_differences, tallied, failed;
    struct viv_sequence plain[VIV_HUFFMAN_MAX_CORES], differences[VIV_HUFFMAN_MAX_CORES];
    struct viv_tally *tally[2]; /* [cores] each */
    const struct viv_huffman_choices *choices;
    struct viv_run_plan plan;
    uint8_t *stream[VIV_HUFFMAN_MAX_CORES];
    uint64_t bits[VIV_HUFFMAN_MAX_CORES];
};

static void encoder_finish(struct encoder *encoder)
{
    for (uint32_t i = 0; i < VIV_HUFFMAN_MAX_CORES; i++) {
        viv_sequence_finish(&encoder->plain[i]);
        viv_sequence_finish(&encoder->differences[i]);
        free(encoder->stream[i]);
    }
    free(encoder->tally[0]);
}

static void encoder_init(struct encoder *encoder, const struct viv_chip *chip, const struct viv_kernel_set *set,
                         const struct viv_huffman_job *job)
{
    *encoder = (struct encoder){.chip = chip, .set = set, .job = job, .cores = viv_huffman_cores(chip, set)};
    assert(chip->coef_format == VIV_COEF_HUFFMAN && chip->nn_cores <= VIV_HUFFMAN_MAX_CORES);
    assert(!job->depthwise || chip->hardware_depthwise);
}

/* ---- sequences and their counts ----------------------------------------- */

static bool copy_sequence(const struct viv_sequence *from, struct viv_sequence *to)
{
    *to = *from;
    to->data = malloc(from->count);
    to->breaks = malloc(from->break_count * sizeof *to->breaks);
    if (!to->data || !to->breaks)
        return false;
    memcpy(to->data, from->data, from->count);
    memcpy(to->breaks, from->breaks, from->break_count * sizeof *to->breaks);
    return true;
}

static bool prepare_plain(struct encoder *encoder, uint32_t core)
{
    struct viv_sequence *plain = &encoder->plain[core];
    if (!viv_sequence_make(encoder->chip, encoder->set, encoder->job, encoder->placement, core, encoder->closings,
                           plain))
        return false;
    if (encoder->tallied)
        viv_tally_add(&encoder->tally[0][core], plain);
    return true;
}

static bool prepare_differences(struct encoder *encoder, uint32_t core)
{
    struct viv_sequence *differences = &encoder->differences[core];
    if (!copy_sequence(&encoder->plain[core], differences))
        return false;
    viv_sequence_difference(differences);
    if (encoder->tallied)
        viv_tally_add(&encoder->tally[1][core], differences);
    return true;
}

static void plain_body(void *user, size_t core)
{
    struct encoder *encoder = user;
    if (!prepare_plain(encoder, (uint32_t)core))
        __atomic_store_n(&encoder->failed, true, __ATOMIC_RELAXED);
}

static void differences_body(void *user, size_t core)
{
    struct encoder *encoder = user;
    if (!prepare_differences(encoder, (uint32_t)core))
        __atomic_store_n(&encoder->failed, true, __ATOMIC_RELAXED);
}

static bool prepare(struct encoder *encoder)
{
    mica_parallel_for(encoder->job->threads, encoder->cores, plain_body, encoder);
    if (encoder->failed)
        return false;
    if (encoder->tallied && encoder->job->effort == VIV_HUFFMAN_QUICK)
        encoder->want_differences = encoder->want_differences && viv_differences_may_pay(&encoder->plain[0]);
    if (encoder->want_differences)
        mica_parallel_for(encoder->job->threads, encoder->cores, differences_body, encoder);
    return !encoder->failed;
}

/* Counts of all cores go to the first one's. */
static bool prepare_tallied(struct encoder *encoder)
{
    encoder->tally[0] = mica_new_array((size_t)encoder->cores * 2, sizeof *encoder->tally[0]);
    if (!encoder->tally[0])
        return false;
    encoder->tally[1] = encoder->tally[0] + encoder->cores;
    encoder->tallied = true;
    if (!prepare(encoder))
        return false;
    for (uint32_t kind = 0; kind < 2; kind++) {
        for (uint32_t core = 1; core < encoder->cores; core++)
            viv_tally_merge(&encoder->tally[kind][0], &encoder->tally[kind][core]);
        viv_tally_sum(&encoder->tally[kind][0]);
    }
    return true;
}

static void search_of(const struct encoder *encoder, struct viv_search *search)
{
    *search = (struct viv_search){
        .chip = encoder->chip,
        .plain = encoder->plain,
        .differences = encoder->want_differences ? encoder->differences : NULL,
        .cores = encoder->cores,
        .tally = {encoder->tally[0][0], encoder->tally[1][0]},
        .zero_point = encoder->set->zero_point,
        .effort = encoder->job->effort,
    };
}

/* ---- streams ------------------------------------------------------------ */

static void code_body(void *user, size_t core)
{
    struct encoder *encoder = user;
    const struct viv_sequence *sequence =
        encoder->choices->precode ? &encoder->differences[core] : &encoder->plain[core];
    size_t size = ((size_t)(sequence->count + 1) * VIV_CODE_BITS + 12 + 7) / 8;
    uint8_t *stream = calloc(1, size);
    encoder->stream[core] = stream;
    if (!stream) {
        __atomic_store_n(&encoder->failed, true, __ATOMIC_RELAXED);
        return;
    }
    encoder->bits[core] = viv_huffman_code(sequence, encoder->choices, &encoder->plan,
                                           encoder->chip->coef_centred ? encoder->set->zero_point : 0, stream, size);
}

static bool code(struct encoder *encoder, const struct viv_huffman_choices *choices, uint32_t longest_run)
{
    encoder->choices = choices;
    if (choices->runs && choices->split == VIV_SPLIT_VENDOR) {
        viv_run_plan_vendor(choices, &encoder->plan);
    } else if (choices->runs) {
        struct viv_run_costs costs = viv_run_costs_of(choices);
        viv_run_plan_cheapest(choices, &costs, longest_run, &encoder->plan);
    }
    mica_parallel_for(encoder->job->threads, encoder->cores, code_body, encoder);
    return !encoder->failed;
}

static size_t stream_bytes(uint64_t bits)
{
    return (size_t)mica_align((bits + 7) / 8, ALIGNMENT);
}

static void put_header(uint8_t *header, const struct encoder *encoder)
{
    const struct viv_huffman_choices *choices = encoder->choices;
    header[0] = (uint8_t)(VERSION << 4 | choices->precode);
    header[1] = choices->runs;
    for (uint32_t i = 0; i < choices->runs; i++)
        header[2 + i] = (uint8_t)(choices->run[i] - 1);
    for (uint32_t i = 0; i < 4; i++)
        header[20 + i] = (uint8_t)(choices->symbol_map[2 * i] | choices->symbol_map[2 * i + 1] << 4);
    header[24] = choices->average_bias;
    for (uint32_t core = 0; core < encoder->cores; core++) {
        uint32_t bits = (uint32_t)encoder->bits[core];
        memcpy(header + 28 + 4 * core, &bits, 4);
    }
}

/* Puts header, streams and biases together. */
static bool assemble(const struct encoder *encoder, struct viv_coefficients *coefficients)
{
    bool table = encoder->chip->bias_place == VIV_BIAS_TABLE;
    *coefficients = (struct viv_coefficients){.cores = encoder->cores};
    for (uint32_t core = 0; core < encoder->cores; core++) {
        size_t bytes = stream_bytes(encoder->bits[core]);
        coefficients->stream_bytes += bytes;
        coefficients->largest_core = bytes > coefficients->largest_core ? bytes : coefficients->largest_core;
    }
    size_t biases = table ? (size_t)encoder->set->count * 4 : 0;
    coefficients->size = HEADER_BYTES + coefficients->stream_bytes + (size_t)mica_align(biases, ALIGNMENT);
    coefficients->data = calloc(1, coefficients->size);
    if (!coefficients->data)
        return false;
    put_header(coefficients->data, encoder);
    uint8_t *out = coefficients->data + HEADER_BYTES;
    for (uint32_t core = 0; core < encoder->cores; core++) {
        memcpy(out, encoder->stream[core], (size_t)((encoder->bits[core] + 7) / 8));
        out += stream_bytes(encoder->bits[core]);
    }
    if (table)
        memcpy(out, encoder->set->bias, biases);
    return true;
}

/* ---- the encoder's functions -------------------------------------------- */

static bool write_placed(const struct viv_chip *chip, const struct viv_kernel_set *set,
                         const struct viv_huffman_job *job, const struct viv_huffman_choices *choices,
                         const struct viv_huffman_placement *placement, uint32_t longest_run,
                         struct viv_coefficients *coefficients)
{
    struct encoder encoder;
    encoder_init(&encoder, chip, set, job);
    encoder.placement = placement;
    encoder.closings = choices->split == VIV_SPLIT_VENDOR;
    encoder.want_differences = choices->precode;
    bool done = prepare(&encoder) && code(&encoder, choices, longest_run) && assemble(&encoder, coefficients);
    encoder_finish(&encoder);
    return done;
}

bool viv_coef_huffman_write(const struct viv_chip *chip, const struct viv_kernel_set *set,
                            const struct viv_huffman_job *job, const struct viv_huffman_choices *choices,
                            const struct viv_huffman_placement *placement, struct viv_coefficients *coefficients)
{
    struct viv_huffman_placement usual;
    if (placement)
        return write_placed(chip, set, job, choices, placement, VIV_RUN_LIMIT, coefficients);
    if (!viv_huffman_place(chip, set, job, 0, &usual))
        return false;
    bool done = write_placed(chip, set, job, choices, &usual, VIV_RUN_LIMIT, coefficients);
    free((void *)usual.kernels);
    return done;
}

/* The fewest blocks that as many bits can take: one stream's paddings can be where another's end is. */
static size_t least_bytes(const struct encoder *encoder)
{
    uint64_t bits = 0;
    for (uint32_t core = 0; core < encoder->cores; core++)
        bits += encoder->bits[core];
    return stream_bytes(bits);
}

/* Where a kernel is does not matter to such a chip, but where it is may save a block of padding. */
static bool try_rotations(const struct encoder *encoder, const struct viv_huffman_choices *choices,
                          uint32_t longest_run, struct viv_coefficients *coefficients)
{
    size_t least = least_bytes(encoder);
    uint32_t count = encoder->set->count;
    uint32_t most = encoder->job->effort == VIV_HUFFMAN_QUICK ? QUICK_PLACEMENTS : MOST_PLACEMENTS;
    most = count < most ? count : most;
    if (!encoder->chip->z_offset_in_stream || coefficients->stream_bytes > SMALL_BYTES)
        return true;
    for (uint32_t i = 1; i < most && coefficients->stream_bytes > least; i++) {
        struct viv_huffman_placement placement;
        struct viv_coefficients other;
        if (!viv_huffman_place(encoder->chip, encoder->set, encoder->job, i * count / most, &placement))
            return false;
        bool done = write_placed(encoder->chip, encoder->set, encoder->job, choices, &placement, longest_run, &other);
        free((void *)placement.kernels);
        if (!done)
            return false;
        if (other.stream_bytes < coefficients->stream_bytes) {
            struct viv_coefficients larger = *coefficients;
            *coefficients = other;
            other = larger;
        }
        free(other.data);
    }
    return true;
}

static bool search_and_write(struct encoder *encoder, struct viv_coefficients *coefficients,
                             struct viv_huffman_choices *choices)
{
    struct viv_search search;
    if (!prepare_tallied(encoder))
        return false;
    search_of(encoder, &search);
    uint32_t longest_run = viv_huffman_search(&search, choices);
    if (!code(encoder, choices, longest_run) || !assemble(encoder, coefficients))
        return false;
    if (try_rotations(encoder, choices, longest_run, coefficients))
        return true;
    free(coefficients->data);
    *coefficients = (struct viv_coefficients){0};
    return false;
}

bool viv_coef_huffman_encode(const struct viv_chip *chip, const struct viv_kernel_set *set,
                             const struct viv_huffman_job *job, struct viv_coefficients *coefficients,
                             struct viv_huffman_choices *choices)
{
    struct encoder encoder;
    struct viv_huffman_placement placement;
    struct viv_huffman_choices made;
    encoder_init(&encoder, chip, set, job);
    if (!viv_huffman_place(chip, set, job, 0, &placement))
        return false;
    encoder.placement = &placement;
    encoder.want_differences = chip->coef_precode;
    bool done = search_and_write(&encoder, coefficients, choices ? choices : &made);
    encoder_finish(&encoder);
    free((void *)placement.kernels);
    return done;
}

/* ---- the floor ---------------------------------------------------------- */

/*
 * Streams in blocks of 64 bytes. Where kernels have fixed places each core
 * alone has a floor; else only all together have one, and a block each.
 */
static bool padded_streams(const struct encoder *encoder, uint64_t bits, uint64_t *bytes)
{
    *bytes = stream_bytes(bits);
    if (encoder->chip->z_offset_in_stream) {
        if (*bytes < (uint64_t)encoder->cores * ALIGNMENT)
            *bytes = (uint64_t)encoder->cores * ALIGNMENT;
        return true;
    }
    uint64_t sum = 0;
    for (uint32_t core = 0; core < encoder->cores; core++) {
        struct viv_search one = {.chip = encoder->chip, .plain = &encoder->plain[core], .cores = 1};
        uint64_t least;
        one.zero_point = encoder->set->zero_point;
        viv_tally_add(&one.tally[0], &encoder->plain[core]);
        viv_tally_sum(&one.tally[0]);
        if (!viv_huffman_least_bits(&one, &least))
            return false;
        sum += stream_bytes(least);
    }
    *bytes = sum > *bytes ? sum : *bytes;
    return true;
}

static bool find_floor(struct encoder *encoder, struct viv_huffman_floor *bounds)
{
    uint32_t table = encoder->chip->bias_place == VIV_BIAS_TABLE ? encoder->set->count * 4 : 0;
    struct viv_search search;
    uint64_t bits, streams;
    if (!prepare_tallied(encoder))
        return false;
    search_of(encoder, &search);
    if (!viv_huffman_least_bits(&search, &bits) || !padded_streams(encoder, bits, &streams))
        return false;
    bounds->entropy = HEADER_BYTES + viv_huffman_entropy_bits(&search) / 8 + table;
    bounds->format = HEADER_BYTES + (bits + 7) / 8 + table;
    bounds->padded = HEADER_BYTES + streams + mica_align(table, ALIGNMENT);
    return true;
}

bool viv_coef_huffman_floor(const struct viv_chip *chip, const struct viv_kernel_set *set,
                            const struct viv_huffman_job *job, struct viv_huffman_floor *bounds)
{
    struct encoder encoder;
    struct viv_huffman_placement placement;
    struct viv_huffman_job thorough = *job;
    thorough.effort = VIV_HUFFMAN_EXHAUSTIVE;
    encoder_init(&encoder, chip, set, &thorough);
    if (!viv_huffman_place(chip, set, job, 0, &placement))
        return false;
    encoder.placement = &placement;
    encoder.want_differences = chip->coef_precode;
    bool done = find_floor(&encoder, bounds);
    encoder_finish(&encoder);
    free((void *)placement.kernels);
    return done;
}
