/* SPDX-License-Identifier: MIT */
/* One convolution, of whatever kind, to tasks. */
#include "npu/rockchip/compile/weighted.h"

#include <errno.h>
#include <stdlib.h>

#include "npu/rockchip/compile/fusion.h"
#include "npu/rockchip/compile/move.h"
#include "util/checked.h"

/* ---- limits --------------------------------------------------------------------- */

static bool spread_known(uint32_t spread)
{
    return spread == 1 || spread == 2 || spread == 4 || spread == 8; /* specification, section 12 */
}

static const char *geometry_problem(const struct rk_weighted *weighted)
{
    if (weighted->kernel_w > RK_MAX_KERNEL || weighted->kernel_h > RK_MAX_KERNEL)
        return "the kernel has more than 31 rows or columns, which the NPU's 5-bit fields can't count";
    if (weighted->stride_x > RK_MAX_STRIDE || weighted->stride_y > RK_MAX_STRIDE)
        return "the stride is above 7, which the NPU's 3-bit fields can't count";
    if (weighted->dilation_x > RK_MAX_DILATION || weighted->dilation_y > RK_MAX_DILATION)
        return "the dilation is above 17: larger ones failed on hardware";
    if (weighted->pad_left < 0 || weighted->pad_top < 0)
        return "the convolution leaves out rows or columns of its input, which the NPU can't skip";
    if (weighted->pad_left > (int32_t)RK_MAX_PAD || weighted->pad_top > (int32_t)RK_MAX_PAD)
        return "the padding is above 15, which the NPU's 4-bit fields can't count";
    if (!spread_known(weighted->spread_x) || !spread_known(weighted->spread_y))
        return "the NPU's transposed convolution has strides 1, 2, 4 and 8 only";
    bool spread = weighted->spread_x > 1 || weighted->spread_y > 1;
    if (spread && (weighted->depthwise || weighted->dilation_x > 1 || weighted->dilation_y > 1))
        return "the NPU's transposed convolution is not known to work depthwise or with dilation";
    return NULL;
}

static bool image_fits(struct rk_shape shape)
{
    return shape.w <= RK_MAX_IMAGE && shape.h <= RK_MAX_IMAGE;
}

const char *rk_weighted_problem(const struct rk_chip *chip, const struct rk_weighted *weighted)
{
    const struct rk_shape *in = &weighted->in.shape, *out = &weighted->out.shape;
    const char *problem = geometry_problem(weighted);
    if (problem)
        return problem;
    if (!image_fits(*in) || !image_fits(*out))
        return "an image has more than 2047 rows or columns, which the NPU's 11-bit fields can't count";
    if (in->c > RK_MAX_CHANNELS || out->c > RK_MAX_CHANNELS)
        return "there are more than 8191 channels, which the NPU's 13-bit fields can't count";
    if (weighted->depthwise && in->c != out->c)
        return "a depthwise convolution of the NPU has as many output as input channels";
    struct rk_tiling tiling;
    uint32_t channels = out->c < chip->atom ? out->c : chip->atom;
    if (!rk_tiling_choose(chip, weighted, channels, 0, out->h, &tiling))
        return "the rows that one row of output needs and the kernels of one output surface don't fit the NPU's "
               "convolution buffer together";
    return NULL;
}

/* ---- tasks ----------------------------------------------------------------------- */

/* Channels [first, first + count), made by several tasks, one a class, whose largest is the result. */
struct merge {
    uint32_t first, count, classes;
    struct rk_cube cubes[RK_MAX_CLASSES];
};

struct lowering {
    struct rk_plan *plan;
    const struct rk_weighted *weighted;
    const struct rk_channel *channels;
    const struct rk_factor *factors;
    uint32_t layer;      /* of all tasks */
    uint32_t cube_first; /* channel that the output's cube begins with */
    uint8_t *class_of;   /* of every channel where there are classes */
    bool sortable;       /* there can be */
    struct merge *merges;
    uint32_t merge_count;
};

/* The tasks of one tile of output channels and a range of rows, the weights being constant already. */
static int add_rows(struct lowering *lowering, struct rk_weighted_task job, const struct rk_tiling *tiling,
                    uint32_t end)
{
    const struct rk_weighted *weighted = lowering->weighted;
    const struct rk_chip *chip = lowering->plan->chip;
    bool several = rk_tiling_rows(weighted, tiling, job.rows.first, end).end < end;
    job.reuse = false;
    for (uint32_t row = job.rows.first; row < end; row = job.rows.end) {
        struct rk_task *task;
        job.rows = rk_tiling_rows(weighted, tiling, row, end);
        /* With several tasks the weights' banks must not move between them. */
        job.data_banks =
            several ? tiling->data_banks : rk_tiling_banks(chip, weighted, tiling, job.count, job.rows.in_count);
        uint64_t share = (uint64_t)job.count * (job.rows.end - job.rows.first);
        job.macs = (uint64_t)((double)weighted->macs * (double)share / weighted->out.shape.c / weighted->out.shape.h);
        int error = rk_weighted_task(lowering->plan, &job, &task);
        if (error)
            return error;
        task->layer = lowering->layer;
        task->follows = job.reuse;
        task->compute_cycles = rk_compute_cycles(chip, weighted, job.count, &job.rows);
        task->bytes = rk_traffic(chip, weighted, job.count, &job.rows, !job.reuse);
        job.reuse = tiling->reuse;
    }
    return 0;
}

/* One tile of output channels, its rows cut in `parts` that different cores may take. */
static int add_tile(struct lowering *lowering, const struct rk_requant *requant, const struct rk_tiling *tiling,
                    uint32_t first, uint32_t count, uint32_t parts)
{
    struct rk_weighted_task job = {.weighted = lowering->weighted, .requant = requant, .first = first, .count = count};
    job.cube_first = lowering->cube_first;
    uint32_t height = lowering->weighted->out.shape.h;
    int error = rk_weights_pack(lowering->plan, lowering->weighted, first, count, &job.weights);
    if (!error)
        error = rk_coefficients_pack(lowering->plan, lowering->weighted, lowering->channels, requant, first, count,
                                     &job.coefficients);
    for (uint32_t part = 0; !error && part < parts; part++) {
        job.rows.first = (uint32_t)((uint64_t)height * part / parts);
        error = add_rows(lowering, job, tiling, (uint32_t)((uint64_t)height * (part + 1) / parts));
    }
    return error;
}

/* ---- several cores --------------------------------------------------------------- */

/* How a group of channels is spread: by rows, or by channels, in so many parts. */
struct division {
    uint32_t row_parts, channel_parts;
};

/* Pieces smaller than what their dispatch costs gain nothing. */
static struct division divide(const struct rk_plan *plan, const struct rk_weighted *weighted, uint32_t count)
{
    uint32_t cores = plan->options.split < plan->chip->cores ? plan->options.split : plan->chip->cores;
    struct rk_rows all = rk_rows_of(weighted, 0, weighted->out.shape.h);
    double us = (double)rk_compute_cycles(plan->chip, weighted, count, &all) / plan->chip->clock_mhz;
    uint32_t parts = us < plan->chip->task_us * cores ? (uint32_t)(us / plan->chip->task_us) : cores;
    uint32_t group = weighted->depthwise ? plan->chip->depthwise_group : plan->chip->kernel_group;
    uint64_t in_bytes = (uint64_t)weighted->in.shape.w * weighted->in.shape.h * weighted->in.shape.c;
    if (cores <= 1 || parts <= 1)
        return (struct division){1, 1};
    bool rows = weighted->out.shape.h >= parts, channels = mica_cdiv(count, group) >= parts;
    /* Rows repeat the weights on each core, channels repeat the input (unless it is depthwise). */
    if (channels && (!rows || weighted->depthwise || rk_weight_bytes(weighted, count) > in_bytes))
        return (struct division){1, parts};
    return rows ? (struct division){parts, 1} : (struct division){1, 1};
}

/* ---- layers ---------------------------------------------------------------------- */

/* Channels [first, first + count), which one output conversion serves. */
static int add_channels(struct lowering *lowering, const struct rk_requant *requant, uint32_t first, uint32_t count)
{
    const struct rk_plan *plan = lowering->plan;
    const struct rk_weighted *weighted = lowering->weighted;
    struct division division = divide(plan, weighted, count);
    uint32_t group = weighted->depthwise ? plan->chip->depthwise_group : plan->chip->kernel_group;
    uint32_t part = mica_cdiv(count, group * division.channel_parts) * group, done = 0;
    part = division.channel_parts > 1 ? part : count;
    for (int error; done < count; done += part) {
        struct rk_tiling tiling;
        uint32_t wanted = count - done < part ? count - done : part;
        if (!rk_tiling_choose(plan->chip, weighted, wanted, 0, weighted->out.shape.h, &tiling))
            return mica_fail(plan->log, -ENOTSUP, "a convolution's rows and kernels don't fit the convolution buffer");
        for (uint32_t tile = 0; tile < wanted; tile += tiling.channels) {
            uint32_t size = wanted - tile < tiling.channels ? wanted - tile : tiling.channels;
            error = add_tile(lowering, requant, &tiling, first + done + tile, size, division.row_parts);
            if (error)
                return error;
        }
    }
    return 0;
}

static bool same_zero(const struct rk_weighted *weighted)
{
    for (uint32_t o = 1; o < weighted->out.shape.c; o++)
        if (weighted->weight_zero[o] != weighted->weight_zero[0])
            return false;
    return true;
}

/* Clamps of all classes, which fusion doesn't know. */
static bool clamp_classes(const struct rk_weighted *weighted, struct rk_classes *classes)
{
    bool clamped = !weighted->addend;
    for (uint32_t i = 0; i < classes->count; i++)
        clamped &= rk_requant_clamp(&classes->requants[i], weighted->out_zero, weighted->min, weighted->max);
    return clamped;
}

/* Channels [first, first + count) once for each class, in a cube of its own. */
static int add_classes(struct lowering *lowering, struct rk_classes *classes, uint32_t first, uint32_t count)
{
    const struct rk_weighted *weighted = lowering->weighted;
    struct rk_shape shape = {weighted->out.shape.w, weighted->out.shape.h, count};
    struct merge *merge = &lowering->merges[lowering->merge_count++];
    *merge = (struct merge){.first = first, .count = count, .classes = classes->count};
    int error = 0;
    for (uint8_t i = 0; !error && i < classes->count; i++) {
        struct rk_weighted one = *weighted;
        classes->requants[i].class_of = lowering->class_of;
        classes->requants[i].own = i;
        error = rk_plan_cube(lowering->plan, shape, &merge->cubes[i]);
        one.out = merge->cubes[i];
        one.out.shape = weighted->out.shape;
        one.macs = i ? 0 : weighted->macs; /* counted once */
        lowering->weighted = &one;
        lowering->cube_first = first;
        if (!error)
            error = add_channels(lowering, &classes->requants[i], first, count);
        lowering->weighted = weighted;
        lowering->cube_first = 0;
    }
    return error;
}

/* The largest of all classes' cubes, each of which has its own channels' values and nothing above others'. */
static int add_merge(struct rk_plan *plan, const struct rk_weighted *weighted, const struct merge *merge)
{
    struct rk_elementwise e = {.op = weighted->op,
                               .kind = RK_ELEMENTWISE_MAX,
                               .out = merge->cubes[0],
                               .scale_a = 1,
                               .scale_b = 1,
                               .scale_out = 1,
                               .min = INT8_MIN,
                               .max = INT8_MAX};
    for (uint32_t i = 1; i < merge->classes; i++) {
        int error = 0;
        e.a = e.out;
        e.b = merge->cubes[i];
        if (i + 1 < merge->classes)
            error = rk_plan_cube(plan, e.a.shape, &e.out);
        else
            e.out = rk_cube_channels(plan, weighted->out, merge->first, merge->count);
        if (!error)
            error = rk_lower_elementwise(plan, &e);
        if (error)
            return error;
    }
    return merge->classes > 1 ? 0
                              : rk_lower_copy(plan, weighted->op, e.out,
                                              rk_cube_channels(plan, weighted->out, merge->first, merge->count));
}

/* A group that classes serve: as for_groups(). */
static int try_classes(struct lowering *lowering, bool lower, bool zero, uint32_t first, uint32_t *used, bool *clamped)
{
    struct rk_classes classes;
    uint32_t left = lowering->weighted->out.shape.c - first;
    if (lowering->sortable)
        *used = rk_requant_classes(lowering->factors + first, left, lowering->plan->chip->atom, zero,
                                   lowering->class_of + first, &classes);
    if (!*used)
        return mica_fail(lowering->plan->log, -ENOTSUP, "a convolution's factors can't be had exactly enough");
    *clamped &= clamp_classes(lowering->weighted, &classes);
    return lower ? add_classes(lowering, &classes, first, *used) : 0;
}

/* Every group of channels with an output conversion of its own: tries its clamp and, if asked to, makes its tasks. */
static int for_groups(struct lowering *lowering, bool lower, bool *clamped)
{
    const struct rk_weighted *weighted = lowering->weighted;
    uint32_t channels = weighted->out.shape.c, used;
    bool zero = same_zero(weighted);
    for (uint32_t first = 0; first < channels; first += used) {
        struct rk_requant requant;
        struct rk_fusion fusion;
        used =
            rk_requant_group(lowering->factors + first, channels - first, lowering->plan->chip->atom, zero, &requant);
        if (!used) {
            int error = try_classes(lowering, lower, zero, first, &used, clamped);
            if (error)
                return error;
            continue;
        }
        if (weighted->addend) {
            requant.fusion = &fusion;
            *clamped &= used == channels || used % lowering->plan->chip->kernel_group == 0;
            *clamped &= rk_fusion_make(weighted, lowering->channels, first, used, &requant, &fusion);
        } else {
            *clamped &= rk_requant_clamp(&requant, weighted->out_zero, weighted->min, weighted->max);
        }
        int error = lower ? add_channels(lowering, &requant, first, used) : 0;
        if (error)
            return error;
    }
    return 0;
}

/* What the engine's own clamps can't do, a table does. */
static int add_clamp(struct rk_plan *plan, const struct rk_weighted *weighted, struct rk_cube out)
{
    int8_t table[256];
    for (int32_t i = 0; i < 256; i++) {
        int32_t value = i + INT8_MIN;
        value = value < weighted->min ? weighted->min : value > weighted->max ? weighted->max : value;
        table[i] = (int8_t)value;
    }
    return rk_lower_table(plan, weighted->op, weighted->out, out, table);
}

static int lower_measured(struct lowering *lowering)
{
    struct rk_plan *plan = lowering->plan;
    const struct rk_weighted *weighted = lowering->weighted;
    struct rk_weighted inner = *weighted;
    bool clamped = true;
    lowering->weighted = &inner;
    int error = for_groups(lowering, false, &clamped);
    if (!error && !clamped && weighted->addend)
        return RK_UNFUSED;
    if (!error && !clamped) {
        inner.min = INT8_MIN;
        inner.max = INT8_MAX;
        error = rk_plan_cube(plan, weighted->out.shape, &inner.out);
    }
    bool done = true;
    if (!error)
        error = for_groups(lowering, true, &done);
    for (uint32_t i = 0; !error && i < lowering->merge_count; i++)
        error = add_merge(plan, &inner, &lowering->merges[i]);
    if (error || clamped)
        return error;
    inner.min = weighted->min;
    inner.max = weighted->max;
    return add_clamp(plan, &inner, weighted->out);
}

int rk_lower_weighted(struct rk_plan *plan, const struct rk_weighted *weighted)
{
    const char *problem = rk_weighted_problem(plan->chip, weighted);
    if (problem)
        return mica_fail(plan->log, -ENOTSUP, "%s", problem);
    if (weighted->addend && !rk_fusion_readable(plan->chip, weighted))
        return RK_UNFUSED;
    struct rk_channel *channels = rk_channels_measure(weighted);
    struct rk_factor *factors = mica_new_array(weighted->out.shape.c, sizeof(*factors));
    struct lowering lowering = {plan, weighted, channels, factors, plan->layer_count, .cube_first = 0};
    lowering.class_of = malloc(weighted->out.shape.c);
    lowering.merges = mica_new_array(mica_cdiv(weighted->out.shape.c, plan->chip->atom), sizeof(*lowering.merges));
    int error = channels && factors && lowering.class_of && lowering.merges ? 0 : mica_fail_nomem(plan->log);
    for (uint32_t o = 0; !error && o < weighted->out.shape.c; o++)
        factors[o] = (struct rk_factor){weighted->factor[o], channels[o].reach};
    if (!error) {
        lowering.sortable = rk_channels_sortable(weighted, channels);
        error = lower_measured(&lowering);
    }
    free(channels);
    free(factors);
    free(lowering.class_of);
    free(lowering.merges);
    return error;
}
