/* SPDX-License-Identifier: MIT */
/*
 * From lines (table_walk.c) to ramps: the multiplier decides how finely the
 * slopes are told apart and how steep an 8-bit weight can make them, so a few
 * are tried. Where a function has a long straight part, multipliers that its
 * slope is a multiple of need the fewest pieces.
 */
#include "npu/vivante/compile/table_fit.h"

#include <stdlib.h>

#define MAX_WEIGHT 127 /* either sign, with a zero point of 128 */
#define MAX_GAIN 127

static uint8_t byte(int64_t value)
{
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

uint8_t viv_table_value(const struct viv_chip *chip, const struct viv_table_fit *fit, uint8_t x)
{
    int32_t sum = fit->bias;
    for (uint32_t i = 0; i < fit->count; i++) {
        const struct viv_ramp *ramp = &fit->ramps[i];
        sum += ramp->weight * (fit->single ? x : byte(ramp->gain * (x - ramp->start)));
    }
    int64_t value = viv_table_scaled(chip, &fit->requant, sum);
    return byte((fit->zero && value < 0 ? 0 : value) + fit->zero);
}

static bool exact(const struct viv_chip *chip, const uint8_t table[256], const struct viv_table_fit *fit)
{
    for (uint32_t x = 0; x < 256; x++)
        if (viv_table_value(chip, fit, (uint8_t)x) != table[x])
            return false;
    return true;
}

/* ---- straight parts -------------------------------------------------------------- */

struct stretch {
    uint32_t first, count; /* bytes */
    double slope;
};

/* What is left between the lower and the upper bounds of all lines with this slope. No value is below `least`. */
static double slack(const uint8_t table[256], uint8_t least, const struct stretch *stretch, double slope,
                    double *middle)
{
    double low = -HUGE_VAL, high = HUGE_VAL;
    for (uint32_t x = stretch->first; x < stretch->first + stretch->count; x++) {
        double centre = table[x] - slope * x;
        if (table[x] > least && centre - 0.5 > low)
            low = centre - 0.5;
        if (table[x] < 255 && centre + 0.5 < high)
            high = centre + 0.5;
    }
    *middle = (low + high) / 2;
    return high - low;
}

/* The slope with the most slack, which falls off to both sides of it: within 2 of the whole stretch's rise. */
static double best_slope(const uint8_t table[256], uint8_t least, const struct stretch *stretch, double slope,
                         uint32_t count)
{
    double width = 2.0 / count, low = slope - width, high = slope + width, middle;
    for (uint32_t i = 0; i < 32; i++) {
        double third = (high - low) / 3;
        if (slack(table, least, stretch, low + third, &middle) < slack(table, least, stretch, high - third, &middle))
            low += third;
        else
            high -= third;
    }
    return (low + high) / 2;
}

/* How far a line from (first, start) gets. */
static struct stretch follow(const uint8_t table[256], uint32_t first, double start)
{
    double low = -HUGE_VAL, high = HUGE_VAL;
    struct stretch stretch = {first, 1, 0};
    for (uint32_t x = first + 1; x < 256; x++, stretch.count++) {
        double each = 1.0 / (x - first), slope = (table[x] - start) * each;
        low = slope - 0.5 * each > low ? slope - 0.5 * each : low;
        high = slope + 0.5 * each < high ? slope + 0.5 * each : high;
        if (low > high)
            break;
        stretch.slope = (low + high) / 2;
    }
    return stretch;
}

#define LEAST_RISE 12 /* of a stretch that says something about its slope */

/* The longest about straight part that rises or falls; count 0: there is none. */
static struct stretch find_stretch(const uint8_t table[256])
{
    struct stretch longest = {0};
    for (uint32_t x = 0; x < 255; x += 4)
        for (int32_t quarter = -1; quarter <= 1; quarter++) {
            struct stretch stretch = follow(table, x, table[x] + quarter * 0.25);
            if (stretch.count > longest.count && fabs(stretch.slope) * stretch.count >= LEAST_RISE)
                longest = stretch;
        }
    if (longest.count)
        longest.slope = best_slope(table, 0, &longest, longest.slope, longest.count);
    return longest;
}

/* ---- one job ------------------------------------------------------------------------ */

/* The slope between the ends, where the table stays at a bound. */
static double slope_inside(const uint8_t table[256], uint8_t least, uint32_t *count)
{
    uint32_t first = 0, last = 255;
    while (first < 254 && (table[first] == least || table[first] == 255) && table[first + 1] == table[first])
        first++;
    while (last > first + 1 && (table[last] == least || table[last] == 255) && table[last - 1] == table[last])
        last--;
    *count = last - first + 1;
    return ((double)table[last] - table[first]) / (last - first);
}

bool viv_table_fit_single(const struct viv_chip *chip, const uint8_t table[256], struct viv_table_fit *fit)
{
    static const struct stretch all = {0, 256, 0};
    uint8_t least = 255, most = 0;
    for (uint32_t x = 0; x < 256; x++) {
        least = table[x] < least ? table[x] : least;
        most = table[x] > most ? table[x] : most;
    }
    *fit = (struct viv_table_fit){.single = true, .count = 1, .zero = least};
    fit->ramps[0] = (struct viv_ramp){1, 0, 0};
    if (least == most)
        return viv_requant_factor(chip, 1, &fit->requant);
    uint32_t count;
    double slope = slope_inside(table, least, &count), start;
    slope = best_slope(table, least, &all, slope, count);
    if (slack(table, least, &all, slope, &start) <= 0)
        return false;
    for (int32_t weight = MAX_WEIGHT; weight > MAX_WEIGHT / 2; weight--) { /* one whose bias can be as it should */
        double factor = fabs(slope) / weight;
        if (!viv_requant_factor(chip, factor, &fit->requant))
            return false;
        fit->ramps[0].weight = (int16_t)(slope < 0 ? -weight : weight);
        fit->bias = (int32_t)lround((start - least) / factor);
        if (exact(chip, table, fit))
            return true;
    }
    return false;
}

/* ---- ramps -------------------------------------------------------------------------- */

static bool add_ramp(struct viv_table_fit *fit, int32_t gain, int32_t start, int32_t weight)
{
    if (!weight)
        return true;
    if (fit->count == VIV_TABLE_RAMPS)
        return false;
    fit->ramps[fit->count++] = (struct viv_ramp){(int16_t)gain, (int16_t)start, (int16_t)weight};
    return true;
}

/* The gain of a ramp for a change of slope, of at most `most`: 1 if that will do, else one that leaves no rest. */
static int32_t choose_gain(int32_t change, int32_t most)
{
    int32_t least = (abs(change) + MAX_WEIGHT - 1) / MAX_WEIGHT;
    for (int32_t gain = least > 1 ? least : 1; gain <= most; gain++)
        if (change % gain == 0)
            return gain;
    return least < 1 ? 1 : least < most ? least : most;
}

/* `last`: up to there no ramp may be at its end, 255. */
static bool add_change(struct viv_table_fit *fit, int32_t start, int32_t change, int32_t last)
{
    int32_t room = start < last ? 255 / (last - start) : MAX_GAIN;
    int32_t gain = choose_gain(change, room < MAX_GAIN ? room : MAX_GAIN), steepest = gain * MAX_WEIGHT;
    bool fits = true;
    for (; fits && abs(change) > steepest; change -= change > 0 ? steepest : -steepest)
        fits = add_ramp(fit, gain, start, change > 0 ? MAX_WEIGHT : -MAX_WEIGHT);
    return fits && add_ramp(fit, gain, start, change / gain) && add_ramp(fit, 1, start, change % gain);
}

/* The last change may be a jump to where all are 0, or 255. Flat first: then its ramp may be at its end soon. */
static bool add_last(struct viv_table_fit *fit, int32_t start, int32_t slope, int32_t next, int32_t last)
{
    if (last >= 255 || abs(next - slope) <= MAX_WEIGHT)
        return add_change(fit, start, next - slope, last);
    return add_change(fit, start, -slope, 255) && add_change(fit, start, next, last);
}

static bool make_ramps(const struct viv_table_line *line, int32_t last, bool mirrored, struct viv_table_fit *fit)
{
    int32_t slope = 0;
    fit->count = 0;
    fit->bias = line->first;
    for (uint32_t i = 0; i < line->count; slope = line->pieces[i++].slope) {
        int32_t start = line->pieces[i].start, next = line->pieces[i].slope;
        bool added =
            i + 1 < line->count ? add_change(fit, start, next - slope, last) : add_last(fit, start, slope, next, last);
        if (!added)
            return false;
    }
    for (uint32_t i = 0; mirrored && i < fit->count; i++) {
        fit->ramps[i].gain = (int16_t)-fit->ramps[i].gain;
        fit->ramps[i].start = (int16_t)(255 - fit->ramps[i].start);
    }
    return true;
}

/* ---- all ----------------------------------------------------------------------------- */

/* Keeps in *best what has fewer ramps. */
static void try_factor(const struct viv_chip *chip, const uint8_t table[256], double factor, bool mirrored,
                       struct viv_table_fit *best)
{
    struct viv_table_line line;
    struct viv_table_fit fit = {0};
    uint8_t turned[256];
    for (uint32_t x = 0; x < 256; x++)
        turned[x] = table[mirrored ? 255 - x : x];
    if (!viv_requant_factor(chip, factor, &fit.requant) ||
        !viv_table_walk(chip, &fit.requant, turned, best->count - 1, &line))
        return;
    bool made = make_ramps(&line, line.last + 1, mirrored, &fit) && exact(chip, table, &fit);
    if (!made) /* steep ramps that end may leave the bound again */
        made = make_ramps(&line, 255, mirrored, &fit) && exact(chip, table, &fit);
    if (made && fit.count < best->count)
        *best = fit;
}

/* About this many sums a step of the output. */
static double factor_of(const struct stretch *stretch, double sums)
{
    double times = round(fabs(stretch->slope) * sums);
    return stretch->count && times >= 1 ? fabs(stretch->slope) / times : 1 / sums;
}

/* Ramps that begin near the steep end soon leave what matters, and may be steep themselves. */
static bool steep_first(const uint8_t table[256])
{
    int32_t first = 0, last = 255, at = 0, steepest = 0;
    while (first < 255 && table[first + 1] == table[first])
        first++;
    while (last > first && table[last - 1] == table[last])
        last--;
    for (int32_t x = first; x < last; x++) {
        int32_t step = abs(table[x + 1] - table[x]);
        at = step > steepest ? x : at;
        steepest = step > steepest ? step : steepest;
    }
    return at - first < last - at;
}

/* Of what is tried, the best; or the first, if anything will do. More multipliers find one ramp less in fifty. */
static bool search(const struct viv_chip *chip, const uint8_t table[256], bool any, struct viv_table_fit *fit)
{
    static const double sums[] = {40, 60, 24}; /* to a step of the output */
    if (viv_table_fit_single(chip, table, fit))
        return true;
    struct stretch stretch = find_stretch(table);
    bool mirrored = steep_first(table);
    fit->count = VIV_TABLE_RAMPS + 1;
    for (uint32_t i = 0; i < 6 && !(any && fit->count <= VIV_TABLE_RAMPS); i++)
        try_factor(chip, table, factor_of(&stretch, sums[i % 3]), mirrored != (i >= 3), fit);
    return fit->count <= VIV_TABLE_RAMPS;
}

bool viv_table_fit(const struct viv_chip *chip, const uint8_t table[256], struct viv_table_fit *fit)
{
    return search(chip, table, false, fit);
}

bool viv_table_fits(const struct viv_chip *chip, const uint8_t table[256])
{
    struct viv_table_fit fit;
    return search(chip, table, true, &fit);
}
