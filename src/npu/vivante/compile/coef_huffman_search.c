/* SPDX-License-Identifier: MIT */
#include "npu/vivante/compile/coef_huffman_search.h"

#include <string.h>

#define MOST_CANDIDATES 512u /* averages, plain and of differences */
#define MOST_LENGTHS 24u     /* of runs that are tried as table entries */
#define QUICK_WORK 15000u    /* steps of refining a table, besides some for each byte */
#define QUICK_CANDIDATES 2u  /* averages that zero runs are tried around */

uint64_t viv_assign_symbols(uint32_t classes, const uint64_t *counts, const uint8_t *class_of, uint8_t *map)
{
    uint64_t sorted[8], bits = 0;
    for (uint32_t i = 0; i < classes; i++) {
        uint32_t place = i;
        for (; place > 0 && sorted[place - 1] < counts[i]; place--) {
            sorted[place] = sorted[place - 1];
            map[place] = map[place - 1];
        }
        sorted[place] = counts[i];
        map[place] = class_of[i];
    }
    for (uint32_t i = 0; i < classes; i++)
        bits += sorted[i] * viv_symbol_bits[i];
    return bits;
}

/* The best choices so far. */
struct best {
    struct viv_huffman_choices choices;
    uint64_t bits;
    uint32_t longest; /* run that there is */
};

/* ---- without zero runs: counts say it all ------------------------------- */

static void try_plain(const struct viv_tally *tally, uint8_t zero_point, uint8_t average, bool precode,
                      struct best *best)
{
    static const uint8_t class_of[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct viv_huffman_choices choices = {.precode = precode, .average_bias = average};
    uint64_t counts[VIV_CLASSES];
    viv_class_counts(tally, (uint8_t)(zero_point + average), false, counts);
    uint64_t bits = viv_assign_symbols(8, counts, class_of, choices.symbol_map);
    for (uint32_t class = 0; class < 8; class ++)
        bits += counts[class] * viv_class_bits(class, 0);
    if (bits < best->bits)
        *best = (struct best){choices, bits, 1};
}

/* ---- with zero runs ----------------------------------------------------- */

/*
 * Symbols for all classes but the least useful of 1..6, whose values then go
 * raw. `counts` are of the nine classes; returns all bits.
 */
static uint64_t choose_missing(const uint64_t counts[VIV_CLASSES], uint32_t runs, uint8_t map[8])
{
    uint64_t best = UINT64_MAX;
    for (uint32_t missing = 1; missing <= 6; missing++) {
        uint64_t of[8], bits = 0;
        uint8_t class_of[8], trial[8];
        uint32_t n = 0;
        for (uint32_t class = 0; class < VIV_CLASSES; class ++) {
            if (class == missing)
                continue;
            of[n] = counts[class] + (class == VIV_CLASS_RAW ? counts[missing] : 0);
            bits += of[n] * viv_class_bits(class, runs);
            class_of[n++] = (uint8_t) class;
        }
        bits += viv_assign_symbols(8, of, class_of, trial);
        if (bits < best) {
            best = bits;
            memcpy(map, trial, 8);
        }
    }
    return best;
}

/* How many codes a way to cut runs takes: by table entry, and raw zeros. */
struct usage {
    uint64_t entry[VIV_HUFFMAN_MAX_RUNS], raw;
};

static void count_usage(const struct viv_run_lengths *lengths, const struct viv_huffman_choices *choices,
                        const struct viv_run_plan *plan, struct usage *usage)
{
    uint64_t left[VIV_RUN_LIMIT + 1];
    memset(usage, 0, sizeof *usage);
    for (uint32_t length = 1; length <= lengths->longest; length++)
        left[length] = lengths->count[length];
    for (uint32_t length = lengths->longest; length > 0; length--) {
        uint32_t entry = plan->entry[length], run = entry == VIV_RUN_RAW ? 1 : choices->run[entry];
        if (!left[length])
            continue;
        if (entry == VIV_RUN_RAW)
            usage->raw += left[length];
        else
            usage->entry[entry] += left[length];
        if (length > run)
            left[length - run] += left[length];
    }
}

/* The two most used entries go first: they have a class of their own, and a shorter code. */
static void sort_entries(struct viv_huffman_choices *choices, struct usage *usage)
{
    for (uint32_t place = 0; place < 2; place++) {
        uint32_t most = place;
        for (uint32_t i = place + 1; i < choices->runs; i++)
            if (usage->entry[i] > usage->entry[most])
                most = i;
        uint16_t run = choices->run[most];
        uint64_t count = usage->entry[most];
        choices->run[most] = choices->run[place];
        usage->entry[most] = usage->entry[place];
        choices->run[place] = run;
        usage->entry[place] = count;
    }
}

/* One set of values around one zero, with its runs. */
struct table_search {
    const struct viv_run_lengths *lengths;
    uint64_t counts[VIV_CLASSES]; /* fixed: classes 1..6, and what is raw in any case */
    uint64_t work;                /* left to spend, in steps of the cutting of runs */
    uint16_t useful[MOST_LENGTHS];
    uint32_t useful_count;
};

/*
 * Bits with the table of `choices`, whose map is set. How runs are best cut
 * depends on the symbols' lengths, and these on how runs are cut: from a guess
 * of the costs, a few turns settle it.
 */
static uint64_t evaluate(struct table_search *search, struct viv_run_costs costs, struct viv_huffman_choices *choices)
{
    struct viv_huffman_choices trial = *choices;
    uint64_t best = UINT64_MAX, spent = (uint64_t)(search->lengths->longest + 8) * choices->runs + 500;
    for (uint32_t turn = 0; turn < 4; turn++) {
        struct viv_run_plan plan;
        struct usage usage;
        uint64_t counts[VIV_CLASSES];
        viv_run_plan_cheapest(&trial, &costs, search->lengths->longest, &plan);
        count_usage(search->lengths, &trial, &plan, &usage);
        sort_entries(&trial, &usage);
        memcpy(counts, search->counts, sizeof counts);
        counts[VIV_CLASS_RAW] += usage.raw;
        counts[VIV_CLASS_RUN_SHORT] = usage.entry[0] + usage.entry[1];
        for (uint32_t i = 2; i < trial.runs; i++)
            counts[VIV_CLASS_RUN_LONG] += usage.entry[i];
        uint64_t bits = choose_missing(counts, trial.runs, trial.symbol_map);
        search->work -= search->work < spent ? search->work : spent;
        if (bits >= best)
            break;
        best = bits;
        *choices = trial;
        struct viv_run_costs guess = costs;
        costs = viv_run_costs_of(&trial);
        if (!memcmp(&guess, &costs, sizeof costs))
            break;
    }
    return best;
}

/* Lengths by how many zeros they could take, most first; 1 is always among them. */
static void find_useful(struct table_search *search)
{
    const struct viv_run_lengths *lengths = search->lengths;
    uint64_t score[257] = {0};
    for (uint32_t length = 1; length <= lengths->longest; length++) {
        uint64_t count = lengths->count[length];
        if (!count)
            continue;
        if (length <= 256) {
            uint32_t root = 1; /* count * sqrt(length) (specification, section 5.3.5) */
            while ((root + 1) * (root + 1) <= 16 * length)
                root++;
            score[length] += count * root;
        } else {
            uint32_t pieces = (length + 255) / 256;
            score[256] += count * 64;
            score[length % 256] += count * 32;
            score[(length + pieces - 1) / pieces] += count * 32;
        }
    }
    score[0] = 0;
    score[1] = UINT64_MAX;
    search->useful_count = 0;
    while (search->useful_count < MOST_LENGTHS) {
        uint32_t most = 1;
        for (uint32_t length = 2; length <= 256; length++)
            if (score[length] > score[most])
                most = length;
        if (!score[most])
            break;
        search->useful[search->useful_count++] = (uint16_t)most;
        score[most] = 0;
    }
}

static bool in_table(const struct viv_huffman_choices *choices, uint16_t run)
{
    for (uint32_t i = 0; i < choices->runs; i++)
        if (choices->run[i] == run)
            return true;
    return false;
}

/* Puts other lengths in the place of single entries as long as that pays. */
static uint64_t improve(struct table_search *search, struct viv_huffman_choices *choices, uint64_t bits)
{
    for (bool better = true; better;) {
        better = false;
        for (uint32_t entry = 0; entry < choices->runs; entry++)
            for (uint32_t i = 0; i < search->useful_count; i++) {
                struct viv_huffman_choices trial = *choices;
                if (in_table(choices, search->useful[i]))
                    continue;
                if (!search->work)
                    return bits;
                trial.run[entry] = search->useful[i];
                uint64_t trial_bits = evaluate(search, viv_run_costs_of(choices), &trial);
                if (trial_bits < bits) {
                    bits = trial_bits;
                    *choices = trial;
                    better = true;
                }
            }
    }
    return bits;
}

static const uint8_t table_sizes[] = {4, 6, 10, 18};
#define TABLE_SIZES (sizeof table_sizes / sizeof table_sizes[0])

/* Tables of each size from the most useful lengths; returns how many sizes are worth it. */
static uint32_t start_tables(struct table_search *tables, const struct viv_huffman_choices *base,
                             struct best found[TABLE_SIZES])
{
    uint32_t sizes = 1; /* a larger table than there are lengths only makes codes longer */
    while (sizes < TABLE_SIZES && table_sizes[sizes - 1] < tables->useful_count)
        sizes++;
    for (uint32_t i = 0; i < sizes; i++) {
        struct viv_run_costs guess = {3, 3 + viv_class_bits(VIV_CLASS_RUN_LONG, table_sizes[i]), VIV_CODE_BITS};
        found[i] = (struct best){.choices = *base, .longest = tables->lengths->longest};
        found[i].choices.runs = table_sizes[i];
        for (uint32_t entry = 0; entry < table_sizes[i]; entry++)
            found[i].choices.run[entry] = entry < tables->useful_count ? tables->useful[entry] : 1;
        found[i].bits = evaluate(tables, guess, &found[i].choices);
    }
    return sizes;
}

/* Refines the best table, or with more effort each. */
static void refine_tables(struct table_search *tables, enum viv_huffman_effort effort, uint64_t bytes,
                          struct best *found, uint32_t sizes, struct best *best)
{
    const struct best *first = &found[0];
    for (uint32_t i = 1; i < sizes; i++)
        first = found[i].bits < first->bits ? &found[i] : first;
    for (uint32_t i = 0; i < sizes; i++) {
        if (effort != VIV_HUFFMAN_EXHAUSTIVE && &found[i] != first)
            continue;
        tables->work = effort == VIV_HUFFMAN_EXHAUSTIVE ? UINT64_MAX : QUICK_WORK + bytes / 4;
        found[i].bits = improve(tables, &found[i].choices, found[i].bits);
        if (found[i].bits < best->bits)
            *best = found[i];
    }
}

static void try_runs(const struct viv_search *search, uint8_t average, bool precode, struct best *best)
{
    const struct viv_sequence *sequences = precode ? search->differences : search->plain;
    const struct viv_huffman_choices base = {.precode = precode, .average_bias = average};
    uint8_t zero = (uint8_t)((search->chip->coef_centred ? search->zero_point : 0) + average);
    struct viv_run_lengths lengths = {.longest = 1};
    struct table_search tables = {.lengths = &lengths};
    struct best found[TABLE_SIZES];
    uint64_t bytes = 0;
    for (uint32_t core = 0; core < search->cores; core++) {
        viv_run_lengths_add(&lengths, &sequences[core], zero);
        bytes += sequences[core].count;
    }
    viv_class_counts(&search->tally[precode], zero, true, tables.counts);
    tables.counts[VIV_CLASS_RUN_SHORT] = 0; /* evaluate() counts the codes of runs */
    find_useful(&tables);
    uint32_t sizes = start_tables(&tables, &base, found);
    refine_tables(&tables, search->effort, bytes, found, sizes, best);
}

/* ---- which averages are worth it ---------------------------------------- */

struct candidate {
    uint64_t bits; /* at least */
    uint8_t average;
    bool precode;
};

/* Every run one code of the cheaper class: no table can do better. */
static uint64_t runs_bound(const struct viv_tally *tally, uint8_t zero)
{
    uint64_t counts[VIV_CLASSES];
    uint8_t map[8];
    viv_class_counts(tally, zero, true, counts);
    return choose_missing(counts, table_sizes[0], map);
}

static void add_candidate(const struct viv_search *search, uint8_t average, bool precode, uint64_t below,
                          struct candidate *candidates, uint32_t *count)
{
    uint8_t zero = (uint8_t)((search->chip->coef_centred ? search->zero_point : 0) + average);
    uint64_t bits = runs_bound(&search->tally[precode], zero);
    if (bits >= below)
        return;
    uint32_t place = (*count)++;
    for (; place > 0 && candidates[place - 1].bits > bits; place--)
        candidates[place] = candidates[place - 1];
    candidates[place] = (struct candidate){bits, average, precode};
}

/* Where a run's zero may be worth looking for: the weights' zero point and the bytes there are most of. */
static bool worth_runs(const struct viv_search *search, uint8_t average, const struct best *plain)
{
    const uint32_t *all = search->tally[0].all;
    uint32_t more = 0;
    if (search->effort == VIV_HUFFMAN_EXHAUSTIVE || average == search->zero_point ||
        average == plain->choices.average_bias)
        return true;
    for (uint32_t byte = 0; byte < 256; byte++)
        more += all[byte] > all[average];
    return more < 3;
}

uint32_t viv_huffman_search(const struct viv_search *search, struct viv_huffman_choices *choices)
{
    struct best best = {.bits = UINT64_MAX};
    struct candidate candidates[MOST_CANDIDATES];
    uint32_t count = 0, averages = search->chip->coef_average_bias ? 256 : 1;
    uint32_t most = search->effort == VIV_HUFFMAN_EXHAUSTIVE ? MOST_CANDIDATES : QUICK_CANDIDATES;
    uint8_t base = search->chip->coef_centred ? search->zero_point : 0;
    for (uint32_t average = 0; average < averages; average++)
        try_plain(&search->tally[0], base, (uint8_t)average, false, &best);
    if (search->differences)
        try_plain(&search->tally[1], base, 0, true, &best);
    struct best plain = best;
    for (uint32_t average = 0; average < averages; average++)
        if (worth_runs(search, (uint8_t)average, &plain))
            add_candidate(search, (uint8_t)average, false, plain.bits, candidates, &count);
    if (search->differences)
        add_candidate(search, 0, true, plain.bits, candidates, &count);
    for (uint32_t i = 0; i < count && i < most && candidates[i].bits < best.bits; i++)
        try_runs(search, candidates[i].average, candidates[i].precode, &best);
    *choices = best.choices;
    return best.longest;
}
