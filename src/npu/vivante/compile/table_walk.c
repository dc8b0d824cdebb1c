/* SPDX-License-Identifier: MIT */
/*
 * Each x has a cell: the whole numbers that a job's multiplier rounds to
 * table[x]. A line of straight pieces, whole numbers too, must go through all
 * cells. The fewest pieces are found by walking over x with, for each slope,
 * the set of sums at which pieces arrive. Cells are cut to 64 sums, so that a
 * set is a word and a slope shifts it. Then the line is followed back.
 */
#include <stdlib.h>

#include "npu/vivante/compile/table_fit.h"

#define CELL 64
#define SLOPES (2 * CELL - 1) /* that lead from a cell to the next one */
#define MORE 2                /* counts of pieces that are followed: the fewest that reach an x, and one more */

struct walk {
    const struct viv_chip *chip;
    const struct viv_requant *requant;
    const uint8_t *table;
    int32_t lead, last;              /* before and behind, all are 0, or 255: any sum beyond a bound will do */
    int32_t most_of_0, least_of_255; /* these bounds */
    int32_t base[256], size[256];    /* the cell's least sum, and how many it has */
    uint64_t cell[256];              /* all of its sums, bit 0 is the base */
    int32_t fewest[256];             /* pieces to reach it */
    uint64_t reached[256][MORE];     /* the sums that so many pieces reach, and one more, ... */
    int32_t step;                    /* between the bases of the two cells that the walk is at */
    uint64_t arrived[MORE][SLOPES];  /* as `reached` at the second, by the last piece's slope - step + CELL - 1 */
};

/* ---- cells --------------------------------------------------------------------- */

static uint32_t shift_of(const struct viv_chip *chip, const struct viv_requant *requant)
{
    return requant->shift + (chip->multiplier_bits == 23 ? 23 : 0);
}

static int64_t multiplier_of(const struct viv_chip *chip, const struct viv_requant *requant)
{
    return (int64_t)((UINT32_C(1) << chip->multiplier_bits) | requant->multiplier);
}

int64_t viv_table_scaled(const struct viv_chip *chip, const struct viv_requant *requant, int32_t sum)
{
    uint32_t shift = shift_of(chip, requant);
    int64_t product = sum * multiplier_of(chip, requant);
    if (shift == 0 || shift > 62)
        return shift ? 0 : product;
    int64_t down = product >> shift, half = INT64_C(1) << (shift - 1), rest = product & (2 * half - 1);
    return down + (rest > half || (rest == half && (down & 1)));
}

/* The least sum that gives at least `value`. */
static int32_t least_sum(const struct walk *walk, int32_t value)
{
    double factor = viv_requant_exact(walk->chip, walk->requant);
    int32_t sum = (int32_t)floor((value - 0.5) / factor);
    while (viv_table_scaled(walk->chip, walk->requant, sum) >= value)
        sum--;
    while (viv_table_scaled(walk->chip, walk->requant, sum) < value)
        sum++;
    return sum;
}

/* False: no sum gives some value. */
static bool make_cells(struct walk *walk)
{
    int32_t least[257];
    for (int32_t value = 1; value <= 256; value++)
        least[value] = least_sum(walk, value);
    walk->most_of_0 = least[1] - 1;
    walk->least_of_255 = least[255];
    for (int32_t x = 0; x < 256; x++) {
        uint8_t value = walk->table[x];
        int32_t top = value == 255 ? least[255] + CELL - 1 : least[value + 1] - 1;
        int32_t bottom = value ? least[value] : top - CELL + 1, size = top - bottom + 1;
        if (size <= 0)
            return false;
        walk->base[x] = bottom;
        walk->size[x] = size < CELL ? size : CELL;
        walk->cell[x] = size >= CELL ? UINT64_MAX : (UINT64_C(1) << size) - 1;
    }
    return true;
}

static void find_ends(struct walk *walk)
{
    const uint8_t *table = walk->table;
    walk->lead = 0;
    walk->last = 255;
    while (walk->lead < 255 && (table[0] == 0 || table[0] == 255) && table[walk->lead] == table[0])
        walk->lead++;
    while (walk->last > walk->lead && (table[255] == 0 || table[255] == 255) && table[walk->last] == table[255])
        walk->last--;
}

/* ---- forward ------------------------------------------------------------------- */

/* The sum one step outside of the part that counts, and the slope outwards: does all there stay what it is? */
static bool stays(const struct walk *walk, uint8_t value, int32_t sum, int32_t slope)
{
    return value ? slope >= 0 && sum >= walk->least_of_255 : slope <= 0 && sum <= walk->most_of_0;
}

/* Sums at the first x that counts, of a line with this slope: from where it is flat, that is free. */
static uint64_t initial(const struct walk *walk, int32_t slope)
{
    int32_t x = walk->lead;
    uint64_t set = 0;
    if (x == 0)
        return slope == 0 ? walk->cell[0] : 0;
    for (int32_t i = 0; i < CELL; i++)
        if (stays(walk, walk->table[0], walk->base[x] + i - slope, -slope))
            set |= UINT64_C(1) << i;
    return set & walk->cell[x];
}

/*
 * Sums at x + 1, by slope, that 0, 1, ... more than the fewest pieces reach: pieces go on, or begin at x. `by` is how
 * far a slope moves sums between the cells, all in one direction; by more than a cell's size it leads nowhere.
 */
static inline void spread(const struct walk *walk, int32_t x, int32_t step, int32_t first, int32_t end, bool up,
                          uint64_t next[MORE + 1][SLOPES])
{
    uint64_t cell = walk->cell[x + 1];
    for (int32_t by = first; by < end; by++) {
        int32_t i = by + CELL - 1, from = i + step - walk->step;
        bool follows = from >= 0 && from < SLOPES;
        for (uint32_t more = 0; more <= MORE; more++) {
            uint64_t set = more ? walk->reached[x][more - 1] : 0;
            set |= follows && more < MORE ? walk->arrived[more][from] : 0;
            next[more][i] = (up ? set << by : set >> -by) & cell;
        }
    }
}

static uint64_t all_of(const uint64_t sets[SLOPES])
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < SLOPES; i++)
        all |= sets[i];
    return all;
}

static void advance(struct walk *walk, int32_t x)
{
    uint64_t next[MORE + 1][SLOPES] = {0};
    int32_t step = walk->base[x + 1] - walk->base[x];
    spread(walk, x, step, 1 - walk->size[x], 0, false, next);
    spread(walk, x, step, 0, walk->size[x + 1], true, next);
    uint32_t first = all_of(next[0]) ? 0 : 1;
    walk->fewest[x + 1] = walk->fewest[x] + (int32_t)first;
    for (uint32_t more = 0; more < MORE; more++)
        walk->reached[x + 1][more] = all_of(next[more + first]);
    memcpy(walk->arrived, next[first], sizeof(walk->arrived));
    walk->step = step;
}

static bool forward(struct walk *walk, int32_t most)
{
    int32_t x = walk->lead;
    walk->fewest[x] = x ? 1 : 0;
    walk->reached[x][0] = walk->cell[x];
    walk->step = x < walk->last ? walk->base[x + 1] - walk->base[x] : 0;
    for (int32_t i = 0; i < SLOPES; i++)
        walk->arrived[0][i] = initial(walk, i - (CELL - 1) + walk->step);
    for (; x < walk->last && walk->fewest[x] <= most; x++)
        advance(walk, x);
    return walk->fewest[x] <= most;
}

/* ---- back ----------------------------------------------------------------------- */

/* A place on the line, the slope before it and how many pieces lead there. */
struct place {
    int32_t x, sum, slope, pieces;
};

static bool in_set(uint64_t set, int32_t bit)
{
    return bit >= 0 && bit < CELL && set >> bit & 1;
}

static bool in_cell(const struct walk *walk, int32_t x, int32_t sum)
{
    return in_set(walk->cell[x], sum - walk->base[x]);
}

static bool reached(const struct walk *walk, int32_t x, int32_t sum, int32_t pieces)
{
    int32_t more = pieces - walk->fewest[x];
    return more >= 0 && more < MORE && in_set(walk->reached[x][more], sum - walk->base[x]);
}

/* At the first x: is this where the line may come from? */
static bool starts(const struct walk *walk, const struct place *place)
{
    return place->pieces == (walk->lead ? 1 : 0) &&
           in_set(initial(walk, place->slope), place->sum - walk->base[walk->lead]);
}

/* Does a line lead there? */
static bool possible(const struct walk *walk, struct place place)
{
    for (; in_cell(walk, place.x, place.sum); place.x--, place.sum -= place.slope) {
        if (place.x == walk->lead)
            return starts(walk, &place);
        if (reached(walk, place.x - 1, place.sum - place.slope, place.pieces - 1))
            return true;
    }
    return false;
}

static void prefer(const struct walk *walk, struct place place, int32_t slope, struct place *best)
{
    if (abs(place.slope - slope) < abs(best->slope - slope) && possible(walk, place))
        *best = place;
}

/* Slopes that may lead to a place where the line goes on with `slope`: the most like it is kept in *best. */
static void prefer_gentle(const struct walk *walk, struct place place, int32_t slope, struct place *best)
{
    if (place.x == walk->lead) { /* any that is steep enough */
        int32_t bound = walk->table[0] ? walk->least_of_255 : walk->most_of_0, steep = place.sum - bound;
        int32_t low = walk->table[0] ? INT32_MIN : steep > 0 ? steep : 0;
        int32_t high = walk->table[0] ? (steep < 0 ? steep : 0) : INT32_MAX;
        place.slope = walk->lead == 0 ? 0 : slope < low ? low : slope > high ? high : slope;
        prefer(walk, place, slope, best);
        return;
    }
    int32_t step = walk->base[place.x] - walk->base[place.x - 1];
    for (place.slope = step - CELL + 1; place.slope < step + CELL; place.slope++)
        prefer(walk, place, slope, best);
}

#define NO_SLOPE (1 << 28) /* far from all */

/* Where the last piece to `place` begins; false: it comes from the start. */
static bool find_knot(const struct walk *walk, struct place place, struct place *knot)
{
    knot->slope = NO_SLOPE;
    for (; place.x > walk->lead && in_cell(walk, place.x, place.sum); place.x--, place.sum -= place.slope) {
        struct place before = {place.x - 1, place.sum - place.slope, 0, place.pieces - 1};
        if (reached(walk, before.x, before.sum, before.pieces))
            prefer_gentle(walk, before, place.slope, knot);
    }
    bool from_start = place.x == walk->lead && in_cell(walk, place.x, place.sum) && starts(walk, &place);
    return !from_start && knot->slope != NO_SLOPE;
}

static bool ends(const struct walk *walk, const struct place *end)
{
    return walk->last == 255 || stays(walk, walk->table[255], end->sum + end->slope, end->slope);
}

static void prefer_end(const struct walk *walk, uint64_t set, struct place end, bool any, struct place *best)
{
    for (int32_t i = 0; i < CELL; i++) {
        end.sum = walk->base[end.x] + i;
        if (in_set(set, i) && abs(end.slope) < abs(best->slope) && (any || ends(walk, &end)))
            *best = end;
    }
}

/* The line's last place that counts: with the fewest pieces and a slope that may go on, else any. */
static struct place find_end(const struct walk *walk)
{
    struct place best = {.slope = NO_SLOPE};
    int32_t x = walk->last;
    for (uint32_t more = 0; more <= MORE && best.slope == NO_SLOPE; more++) {
        uint32_t of = more < MORE ? more : 0;
        int32_t pieces = walk->fewest[x] + (int32_t)of, step = x > walk->lead ? walk->base[x] - walk->base[x - 1] : 0;
        struct place start = {x, walk->base[x], 0, pieces};
        if (x == walk->lead)
            prefer_gentle(walk, start, 0, &best);
        for (int32_t i = 0; x > walk->lead && i < SLOPES; i++)
            prefer_end(walk, walk->arrived[of][i], (struct place){x, 0, i - (CELL - 1) + step, pieces}, more == MORE,
                       &best);
    }
    return best;
}

static bool add_piece(struct viv_table_line *line, int32_t start, int32_t slope)
{
    if (line->count == VIV_TABLE_PIECES)
        return false;
    line->pieces[line->count].start = start;
    line->pieces[line->count++].slope = slope;
    return true;
}

static void reverse(struct viv_table_line *line)
{
    for (uint32_t i = 0, j = line->count; i + 1 < j; i++) {
        j--;
        int32_t start = line->pieces[i].start, slope = line->pieces[i].slope;
        line->pieces[i] = line->pieces[j];
        line->pieces[j].start = start;
        line->pieces[j].slope = slope;
    }
}

static bool back(const struct walk *walk, struct viv_table_line *line)
{
    struct place place = find_end(walk), knot;
    int32_t bound = walk->table[255] ? walk->least_of_255 : walk->most_of_0;
    bool room = ends(walk, &place) || add_piece(line, place.x, bound - place.sum);
    for (; room && find_knot(walk, place, &knot); place = knot)
        room = add_piece(line, knot.x, place.slope);
    line->first = place.sum - place.slope * (place.x - walk->lead);
    if (room && walk->lead) {
        line->first -= place.slope;
        room = add_piece(line, walk->lead - 1, place.slope);
    }
    reverse(line);
    line->last = walk->last;
    return room;
}

bool viv_table_walk(const struct viv_chip *chip, const struct viv_requant *requant, const uint8_t table[256],
                    uint32_t most, struct viv_table_line *line)
{
    struct walk walk = {.chip = chip, .requant = requant, .table = table};
    line->count = 0;
    find_ends(&walk);
    return make_cells(&walk) && forward(&walk, (int32_t)most) && back(&walk, line);
}
