/* SPDX-License-Identifier: MIT */
/*
 * Which channels make a group. Sorted by factor, groups are runs of neighbours, each with the multiplier that its
 * largest factor wants; the cheapest cut into runs is found from the smallest factor on. The second stage has one
 * multiplier for all, so that is tried with a few.
 */
#include "npu/vivante/compile/channels.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/checked.h"

#define LARGEST 255.0   /* factor of the second stage */
#define MOST_ENDS 40u   /* places where groups may end, beyond them evenly spread */
#define WIDE_GAP 1.3    /* between neighbours' factors where a group may always end */
#define NEAR_SHARE 0.99 /* of what the bound leaves, that a group's multiplier is below its largest factor */
#define NONE UINT32_MAX

/* What a factor of 255 in the second stage stands for. Large ones make wide groups, small ones are finer. */
static const double widest_factors[] = {1.46, 1.2, 0.98};
#define WIDEST_COUNT (sizeof(widest_factors) / sizeof(*widest_factors))

struct ranked {
    double factor;
    uint32_t index;
};

struct chooser {
    const struct viv_channel_layer *layer;
    const struct viv_channel_costs *costs;
    uint32_t cost_count;
    struct viv_channels *channels;
    struct viv_channel_judge judge;
    struct ranked *sorted; /* channels that are not idle, by factor */
    uint32_t count;
    uint32_t *ends; /* positions in `sorted` where a group may end: behind the last of it */
    uint32_t end_count;
    bool second; /* there is a second stage, with `widest` as what its largest factor stands for */
    double widest;
    struct best *best; /* of each cost, of each end */
};

/* The cheapest groups for all channels before an end. */
struct best {
    double cost;
    uint32_t from; /* index of the end before the last group; NONE: there is no way to here */
    enum viv_channel_way way;
};

bool viv_channels_differ(const struct mica_tensor *weights)
{
    for (uint32_t i = 1; i < weights->quant.count; i++)
        if (weights->quant.scale[i] != weights->quant.scale[0])
            return true;
    return false;
}

static const struct viv_channel *channel_at(const struct chooser *chooser, uint32_t position)
{
    return &chooser->channels->channels[chooser->sorted[position].index];
}

/* ---- a group's multiplier ---------------------------------------------------------- */

/* For the largest factor of a group. */
static bool set_multiplier(struct chooser *chooser, enum viv_channel_way way, const struct viv_channel *top,
                           struct viv_requant *requant)
{
    double factor = top->factor, off = (VIV_CHANNEL_LIMIT - 0.5 - top->rounding - 0.5 * factor) / 127.5;
    if (way == VIV_NEAR) /* as far below it as its own bound allows, so that smaller ones fit */
        factor *= 1 - NEAR_SHARE * fmax(off, 0);
    if (way == VIV_ADDED) /* its factor in the second stage is the largest, exactly */
        factor /= LARGEST * chooser->judge.unit;
    if (!viv_requant_factor(chooser->layer->chip, factor, requant))
        return false;
    chooser->judge.first = viv_requant_exact(chooser->layer->chip, requant);
    return true;
}

static bool may_use(const struct chooser *chooser, enum viv_channel_way way)
{
    if (way == VIV_ADDED)
        return chooser->second;
    /* Planes in channel order leave no choice of who is in a job, without a second stage that sorts them. */
    return (chooser->layer->chip->z_offset_in_stream || !chooser->second) &&
           (way == VIV_NEAR || viv_channel_few_weights(&chooser->judge) || chooser->layer->fold);
}

/* ---- the cheapest cut ------------------------------------------------------------------ */

static struct best *best_at(const struct chooser *chooser, uint32_t costs, uint32_t end)
{
    return &chooser->best[(size_t)costs * (chooser->count + 1) + end];
}

static double group_cost(const struct viv_channel_costs *costs, enum viv_channel_way way, uint32_t channels,
                         uint32_t planes)
{
    double kernel = costs->kernel + (way == VIV_ADDED ? costs->second_kernel : 0);
    return costs->job * (channels < costs->blocks ? channels : costs->blocks) + kernel * planes;
}

/* A group of the channels between two ends. */
static void offer(struct chooser *chooser, enum viv_channel_way way, uint32_t from, uint32_t last, uint32_t planes)
{
    uint32_t channels = chooser->ends[last] - chooser->ends[from];
    for (uint32_t i = 0; i < chooser->cost_count; i++) {
        const struct best *before = best_at(chooser, i, from);
        struct best *best = best_at(chooser, i, last);
        if (before->from == NONE)
            continue;
        double cost = before->cost + group_cost(&chooser->costs[i], way, channels, planes);
        if (best->from == NONE || cost < best->cost)
            *best = (struct best){cost, from, way};
    }
}

/* All groups of one way that end at ends[last]. */
static void try_groups(struct chooser *chooser, uint32_t last, enum viv_channel_way way)
{
    struct viv_requant requant;
    uint32_t planes = 0, end = chooser->ends[last];
    double error;
    if (!may_use(chooser, way) || !set_multiplier(chooser, way, channel_at(chooser, end - 1), &requant))
        return;
    for (uint32_t from = last; from-- > 0;) {
        for (uint32_t i = chooser->ends[from + 1]; i-- > chooser->ends[from];) {
            uint32_t own = viv_channel_try(&chooser->judge, way, chooser->sorted[i].index, channel_at(chooser, i),
                                           &error, NULL, NULL);
            if (!own)
                return;
            planes += own;
        }
        offer(chooser, way, from, last, planes);
    }
}

/* Places where groups may end: all of them, or some, close enough together that one group can reach over. */
static void list_ends(struct chooser *chooser, bool all)
{
    uint32_t step = all ? 1 : mica_cdiv(chooser->count, MOST_ENDS), last = 0;
    chooser->end_count = 0;
    for (uint32_t i = 0; i < chooser->count; i++) {
        if (i && i - last < step && chooser->sorted[i].factor < WIDE_GAP * chooser->sorted[last].factor)
            continue;
        chooser->ends[chooser->end_count++] = i;
        last = i;
    }
    chooser->ends[chooser->end_count++] = chooser->count;
}

/* For all costs; which of them are cheapest. */
static uint32_t find_cut(struct chooser *chooser, bool all)
{
    uint32_t least = 0;
    list_ends(chooser, all);
    uint32_t last = chooser->end_count - 1;
    for (uint32_t i = 0; i <= last; i++) {
        for (uint32_t j = 0; j < chooser->cost_count; j++)
            *best_at(chooser, j, i) = (struct best){.from = i ? NONE : 0};
        for (enum viv_channel_way way = 0; i && way < VIV_WAYS; way++)
            try_groups(chooser, i, way);
    }
    for (uint32_t j = 1; j < chooser->cost_count; j++)
        if (best_at(chooser, j, last)->cost < best_at(chooser, least, last)->cost)
            least = j;
    return least;
}

static bool set_second(struct chooser *chooser, double widest)
{
    struct viv_requant requant;
    chooser->second = widest != 0;
    chooser->widest = widest;
    if (!widest)
        return true;
    if (!viv_requant_factor(chooser->layer->chip, widest / LARGEST, &requant))
        return false;
    chooser->channels->correction = requant;
    chooser->judge.unit = viv_requant_exact(chooser->layer->chip, &requant);
    return true;
}

/* ---- what was chosen -------------------------------------------------------------------- */

static int add_channel(struct chooser *chooser, uint32_t index)
{
    struct viv_channels *channels = chooser->channels;
    struct viv_channel *channel = &channels->channels[index];
    double error;
    channel->first = channels->plane_count;
    channel->planes = viv_channel_try(&chooser->judge, channels->groups[channel->group].way, index, channel, &error,
                                      &channels->planes[channels->plane_count], &channel->bias);
    channels->plane_count += channel->planes;
    channels->bound = fmax(channels->bound, error);
    return channel->planes ? 0 : -ENOTSUP;
}

static int add_channels(struct chooser *chooser)
{
    struct viv_channels *channels = chooser->channels;
    channels->planes = mica_new_array((size_t)channels->count * VIV_MAX_PLANES, sizeof(*channels->planes));
    int error = channels->planes ? 0 : -ENOMEM;
    for (uint32_t i = 0; !error && i < channels->count; i++) {
        chooser->judge.first =
            viv_requant_exact(chooser->layer->chip, &channels->groups[channels->channels[i].group].requant);
        error = add_channel(chooser, i);
    }
    return error;
}

/* Groups from the last one back, numbered from the largest factor on. Idle channels are in the first. */
static int make_groups(struct chooser *chooser)
{
    struct viv_channels *channels = chooser->channels;
    const struct best *best = best_at(chooser, channels->costs, 0);
    for (uint32_t end = chooser->end_count - 1; end; end = best[end].from) {
        struct viv_channel_group *group = &channels->groups[channels->group_count];
        group->way = best[end].way;
        set_multiplier(chooser, group->way, channel_at(chooser, chooser->ends[end] - 1), &group->requant);
        for (uint32_t i = chooser->ends[best[end].from]; i < chooser->ends[end]; i++)
            channels->channels[chooser->sorted[i].index].group = channels->group_count;
        channels->corrected |= group->way == VIV_ADDED;
        channels->group_count++;
    }
    if (!channels->group_count && viv_requant_factor(chooser->layer->chip, 1.0 / 256, &channels->groups[0].requant))
        channels->group_count = 1; /* all idle: any multiplier will do */
    return add_channels(chooser);
}

/* ---- all ways ------------------------------------------------------------------------------ */

/* Planes in channel order and no second stage that sorts them: all must be one group. */
static bool in_order(const struct chooser *chooser, const struct best *last)
{
    return chooser->second || chooser->layer->chip->z_offset_in_stream || last->from == 0;
}

/* The cheapest cut with and without a second stage; *widest is what its largest factor stands for, 0: none. */
static bool find_way(struct chooser *chooser, bool all, double *widest)
{
    double least = -1;
    for (unsigned i = 0; i <= WIDEST_COUNT; i++) {
        if (!set_second(chooser, i ? widest_factors[i - 1] : 0))
            continue;
        uint32_t costs = find_cut(chooser, all);
        const struct best *last = best_at(chooser, costs, chooser->end_count - 1);
        double cost = last->cost + (i ? chooser->costs[costs].second_job : 0);
        if (last->from == NONE || !in_order(chooser, last) || (least >= 0 && cost >= least))
            continue;
        least = cost;
        *widest = chooser->widest;
    }
    return least >= 0;
}

static int choose(struct chooser *chooser)
{
    double widest;
    bool all = chooser->count <= MOST_ENDS, found = find_way(chooser, all, &widest);
    if (!found && !all) {
        all = true;
        found = find_way(chooser, all, &widest);
    }
    if (!found)
        return -ENOTSUP;
    set_second(chooser, widest);
    chooser->channels->costs = find_cut(chooser, all);
    return make_groups(chooser);
}

/* ---- the layer ------------------------------------------------------------------------------- */

static int by_factor(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return x->factor != y->factor ? (x->factor < y->factor ? -1 : 1) : (x->index > y->index) - (x->index < y->index);
}

static int chooser_create(const struct viv_channel_layer *layer, struct viv_channels *channels, struct chooser *chooser)
{
    uint32_t count = layer->weights->quant.count;
    *channels = (struct viv_channels){.count = count};
    *chooser = (struct chooser){.layer = layer, .channels = channels};
    channels->channels = mica_new_array(count, sizeof(*channels->channels));
    channels->groups = mica_new_array(count, sizeof(*channels->groups));
    chooser->sorted = mica_new_array(count, sizeof(*chooser->sorted));
    chooser->ends = mica_new_array((size_t)count + 1, sizeof(*chooser->ends));
    bool all = channels->channels && channels->groups && chooser->sorted && chooser->ends;
    viv_channel_judge_init(layer, &chooser->judge);
    if (!all || !viv_channel_judge_gather(&chooser->judge))
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        struct viv_channel *channel = &channels->channels[i];
        viv_channel_measure(&chooser->judge, i, channel);
        if (!channel->idle)
            chooser->sorted[chooser->count++] = (struct ranked){channel->factor, i};
    }
    qsort(chooser->sorted, chooser->count, sizeof(*chooser->sorted), by_factor);
    return 0;
}

static void chooser_finish(struct chooser *chooser)
{
    viv_channel_judge_finish(&chooser->judge);
    free(chooser->sorted);
    free(chooser->ends);
    free(chooser->best);
}

int viv_channels_choose(const struct viv_channel_layer *layer, const struct viv_channel_costs *costs, uint32_t count,
                        struct viv_channels *channels)
{
    struct chooser chooser;
    int error = chooser_create(layer, channels, &chooser);
    chooser.costs = costs;
    chooser.cost_count = count;
    chooser.best = mica_new_array(((size_t)chooser.count + 1) * count, sizeof(*chooser.best));
    if (!error)
        error = chooser.best ? choose(&chooser) : -ENOMEM;
    chooser_finish(&chooser);
    return error;
}

/* Is there a way for the channel in a group of its own, whatever it costs? */
static bool possible_alone(struct chooser *chooser, uint32_t index, const struct viv_channel *channel)
{
    bool in_order = !chooser->layer->chip->z_offset_in_stream;
    for (unsigned i = in_order ? 1 : 0; i <= WIDEST_COUNT; i++) {
        struct viv_requant requant;
        enum viv_channel_way way = i ? VIV_ADDED : VIV_NEAR;
        double error;
        if (set_second(chooser, i ? widest_factors[i - 1] : 0) && set_multiplier(chooser, way, channel, &requant) &&
            viv_channel_try(&chooser->judge, way, index, channel, &error, NULL, NULL))
            return true;
    }
    return false;
}

bool viv_channels_possible(const struct viv_channel_layer *layer, char *reason, size_t size)
{
    struct viv_channels channels = {0};
    struct chooser chooser = {.layer = layer, .channels = &channels};
    viv_channel_judge_init(layer, &chooser.judge);
    for (uint32_t i = 0; i < layer->weights->quant.count; i++) {
        struct viv_channel channel;
        viv_channel_measure(&chooser.judge, i, &channel);
        if (channel.idle || possible_alone(&chooser, i, &channel))
            continue;
        snprintf(reason, size,
                 "the weights are quantized per channel, and for a factor of %g from sum to output nothing keeps the "
                 "result within 1 of the exact one",
                 channel.factor);
        return false;
    }
    return true;
}

void viv_channels_finish(struct viv_channels *channels)
{
    free(channels->channels);
    free(channels->groups);
    free(channels->planes);
}

void viv_channels_describe(const struct viv_channels *channels, char *text, size_t size)
{
    static const char *const names[VIV_WAYS] = {"of near scales", "with folded scales", "with a second stage"};
    uint32_t counts[VIV_WAYS] = {0}, ways = 0;
    for (uint32_t i = 0; i < channels->group_count; i++)
        ways += !counts[channels->groups[i].way]++;
    size_t used = (size_t)snprintf(text, size, "%u group%s of channels", channels->group_count,
                                   channels->group_count == 1 ? "" : "s");
    for (enum viv_channel_way way = 0; way < VIV_WAYS && used < size; way++)
        if (counts[way] && ways == 1)
            used += (size_t)snprintf(text + used, size - used, " %s", names[way]);
        else if (counts[way])
            used += (size_t)snprintf(text + used, size - used, ", %u %s", counts[way], names[way]);
    if (channels->bound >= 2 && !counts[VIV_FOLDED] && used < size)
        snprintf(text + used, size - used, ", folded scales");
}
