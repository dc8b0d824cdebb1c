/* SPDX-License-Identifier: MIT */
/*
 * What the format can't go below, for the benches. Without zero runs that is
 * exact. With them it is a bound: every choice of average bias, table size,
 * missing length and symbol lengths is tried, and for each the table may hold
 * the best lengths for these costs; a run whose length isn't in it takes two
 * codes of the cheaper kind, however it would really be cut. Kernels stay in
 * their usual order, on which runs and differences depend.
 */
#include <math.h>
#include <stdlib.h>

#include "npu/vivante/compile/coef_huffman_search.h"
#include "util/checked.h"

#define LONGEST_ENTRY 256u
#define RAW_LEAST 10u     /* bits of a raw zero under the shortest symbol */
#define PIPELINE_BITS 12u /* the two empty pairs at a stream's end */

/* Runs around one zero: how many there are of each length that one code can hold, and codes that longer ones take. */
struct runs {
    uint32_t count[LONGEST_ENTRY + 1];
    uint64_t beyond;
    uint32_t sorted[LONGEST_ENTRY]; /* the counts, largest first */
    uint32_t lengths;
};

static void add_run(struct runs *runs, uint32_t length)
{
    if (length <= LONGEST_ENTRY)
        runs->count[length]++;
    else
        runs->beyond += mica_cdiv(length, LONGEST_ENTRY);
}

/* All 256 zeros in one pass: a run of any byte is a run of zeros for one of them. */
static void add_runs(struct runs runs[256], const struct viv_sequence *sequence)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < sequence->break_count; i++) {
        struct viv_break stop = sequence->breaks[i];
        while (at < stop.at) {
            uint32_t begin = at;
            while (at < stop.at && sequence->data[at] == sequence->data[begin])
                at++;
            add_run(&runs[sequence->data[begin]], at - begin);
        }
        at += stop.skip;
    }
}

static int falling(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x < y) - (x > y);
}

static void sort_runs(struct runs *runs)
{
    for (uint32_t length = 1; length <= LONGEST_ENTRY; length++)
        if (runs->count[length])
            runs->sorted[runs->lengths++] = runs->count[length];
    qsort(runs->sorted, runs->lengths, sizeof runs->sorted[0], falling);
}

/* Bits of all runs: the commonest lengths take the `few` cheap codes, the next ones the `many` dearer ones. */
static uint64_t run_bits(const struct runs *runs, uint32_t cheap, uint32_t few, uint32_t dear, uint32_t many)
{
    uint32_t rest = 2 * cheap < RAW_LEAST ? 2 * cheap : RAW_LEAST;
    uint64_t bits = runs->beyond * cheap;
    for (uint32_t i = 0; i < runs->lengths; i++) {
        uint32_t cost = i < few ? cheap : i < few + many && dear < rest ? dear : rest;
        bits += runs->sorted[i] * (uint64_t)(cost < rest ? cost : rest);
    }
    return bits;
}

/* Values under the symbols that the two kinds of runs leave over. */
static uint64_t value_bits(const uint64_t counts[VIV_CLASSES], uint32_t missing, const uint8_t left[6])
{
    uint64_t sorted[6], bits = 0;
    uint32_t n = 0;
    for (uint32_t class = 1; class <= 7; class ++) {
        if (class == missing)
            continue;
        uint64_t count = counts[class] + (class == VIV_CLASS_RAW ? counts[missing] : 0);
        bits += count * (class == VIV_CLASS_RAW ? 8 : class);
        uint32_t place = n++;
        for (; place > 0 && sorted[place - 1] < count; place--)
            sorted[place] = sorted[place - 1];
        sorted[place] = count;
    }
    for (uint32_t i = 0; i < 6; i++)
        bits += sorted[i] * left[i];
    return bits;
}

static uint64_t least_value_bits(const uint64_t counts[VIV_CLASSES], uint32_t short_symbol, uint32_t long_symbol)
{
    uint64_t best = UINT64_MAX;
    uint8_t left[6];
    uint32_t n = 0;
    for (uint32_t symbol = 0; symbol < 8; symbol++)
        if (symbol != short_symbol && symbol != long_symbol)
            left[n++] = viv_symbol_bits[symbol];
    for (uint32_t missing = 1; missing <= 6; missing++) {
        uint64_t bits = value_bits(counts, missing, left);
        best = bits < best ? bits : best;
    }
    return best;
}

static uint64_t least_with_runs(const struct viv_tally *tally, uint8_t zero, const struct runs *runs)
{
    static const uint8_t symbols[] = {0, 1, 2, 3, 5, 6, 7}; /* two of each length at most are needed */
    static const uint8_t sizes[] = {4, 6, 10, 18};
    uint64_t counts[VIV_CLASSES], best = UINT64_MAX;
    viv_class_counts(tally, zero, true, counts);
    for (uint32_t a = 0; a < sizeof symbols; a++)
        for (uint32_t b = 0; b < sizeof symbols; b++) {
            if (a == b)
                continue;
            uint64_t values = least_value_bits(counts, symbols[a], symbols[b]);
            for (uint32_t i = 0; i < sizeof sizes; i++) {
                uint32_t shorter = viv_symbol_bits[symbols[a]] + 1u, many = sizes[i] - 2u;
                uint32_t longer = viv_symbol_bits[symbols[b]] + viv_class_bits(VIV_CLASS_RUN_LONG, sizes[i]);
                uint64_t bits = values + (shorter <= longer ? run_bits(runs, shorter, 2, longer, many)
                                                            : run_bits(runs, longer, many, shorter, 2));
                best = bits < best ? bits : best;
            }
        }
    return best;
}

static uint64_t least_plain(const struct viv_tally *tally, uint8_t zero)
{
    static const uint8_t class_of[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    uint64_t counts[VIV_CLASSES];
    uint8_t map[8];
    viv_class_counts(tally, zero, false, counts);
    uint64_t bits = viv_assign_symbols(8, counts, class_of, map);
    for (uint32_t class = 0; class < 8; class ++)
        bits += counts[class] * viv_class_bits(class, 0);
    return bits;
}

static uint64_t least_of(const struct viv_tally *tally, const struct viv_sequence *sequences, uint32_t cores,
                         uint32_t averages, uint8_t base, struct runs *runs)
{
    uint64_t best = UINT64_MAX;
    for (uint32_t core = 0; core < cores; core++)
        add_runs(runs, &sequences[core]);
    for (uint32_t average = 0; average < averages; average++) {
        uint8_t zero = (uint8_t)(base + average);
        sort_runs(&runs[zero]);
        uint64_t plain = least_plain(tally, zero), with_runs = least_with_runs(tally, zero, &runs[zero]);
        best = plain < best ? plain : best;
        best = with_runs < best ? with_runs : best;
    }
    return best;
}

bool viv_huffman_least_bits(const struct viv_search *search, uint64_t *bits)
{
    uint32_t averages = search->chip->coef_average_bias ? 256 : 1;
    uint8_t base = search->chip->coef_centred ? search->zero_point : 0;
    struct runs *runs = mica_new_array(512, sizeof *runs);
    if (!runs)
        return false;
    *bits = least_of(&search->tally[0], search->plain, search->cores, averages, base, runs);
    if (search->differences) {
        uint64_t other = least_of(&search->tally[1], search->differences, search->cores, 1, 0, runs + 256);
        *bits = other < *bits ? other : *bits;
    }
    *bits += (uint64_t)PIPELINE_BITS * search->cores;
    free(runs);
    return true;
}

static double entropy_of(const struct viv_tally *tally)
{
    double total = tally->below[256], bits = 0;
    for (uint32_t byte = 0; byte < 256; byte++)
        if (tally->all[byte])
            bits -= tally->all[byte] * log2(tally->all[byte] / total);
    return bits;
}

double viv_huffman_entropy_bits(const struct viv_search *search)
{
    double plain = entropy_of(&search->tally[0]);
    double differences = search->differences ? entropy_of(&search->tally[1]) : plain;
    return differences < plain ? differences : plain;
}
