/* SPDX-License-Identifier: MIT */
/*
 * The two jobs of a function of one byte (table_fit.h): ramps, a plane each,
 * and their sum. The bytes' order does not matter. The planes are as many
 * tensors as there are ramps: what is large is cut, so that they stay small.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "npu/vivante/compile/compose.h"
#include "npu/vivante/compile/table_fit.h"
#include "npu/vivante/compile/tile.h"
#include "util/checked.h"

#define COLUMNS 64u             /* of a vector of lanes */
#define MOST_BYTES (4u << 20)   /* of all planes, in DDR */
#define EIGHTHS_ON_CHIP 7u      /* of the memory: caches want some */
#define STREAM_HEADER_BYTES 64u /* about; only tiles are chosen by it */

struct table_job {
    const struct viv_table_fit *fit;
    struct viv_nn ramps, sum; /* where they read and write is for each block */
    struct viv_ref in, out;
};

/* A rectangle of bytes. */
struct block {
    uint64_t start;
    uint32_t columns, rows;
};

/* ---- weights ------------------------------------------------------------------------- */

static int32_t factor(const struct viv_table_fit *fit, bool sum, uint32_t ramp)
{
    return sum ? fit->ramps[ramp].weight : fit->ramps[ramp].gain;
}

static uint8_t weight_zero(const struct viv_table_fit *fit, bool sum)
{
    for (uint32_t i = 0; i < fit->count; i++)
        if (factor(fit, sum, i) < 0)
            return 128;
    return 0;
}

/* `bias` + the chip's share for inputs that count from 0. */
static void fill(struct viv_plan *plan, const struct viv_table_fit *fit, bool sum, struct viv_weights *weights)
{
    int32_t input_zero = (int32_t)plan->chip->bias_input_zero;
    memset(weights->owned, weights->zero_point, (size_t)fit->count * weights->taps);
    weights->bias[0] = (uint32_t)fit->bias;
    for (uint32_t i = 0; i < fit->count; i++) {
        int32_t value = factor(fit, sum, i);
        weights->owned[i * weights->taps] = (uint8_t)(value + weights->zero_point);
        if (sum)
            weights->bias[0] += (uint32_t)(value * input_zero);
        else
            weights->bias[i] = (uint32_t)(value * (input_zero - fit->ramps[i].start));
    }
}

/*
 * One channel and a kernel a ramp, or a channel a ramp and one kernel. Kernels of
 * one channel are 2x2 with one tap (specification, section 7.4).
 */
static int make_weights(struct viv_plan *plan, const struct viv_table_fit *fit, bool sum, uint32_t *index)
{
    struct viv_weights *weights = viv_plan_weights(plan, index);
    if (!weights)
        return -ENOMEM;
    weights->phases = 1;
    weights->kernels = sum ? 1 : fit->count;
    weights->channels = sum ? fit->count : 1;
    weights->pointwise = weights->channels > 1;
    weights->taps = weights->pointwise ? 1 : 4;
    weights->zero_point = weight_zero(fit, sum);
    weights->owned = mica_new_array(fit->count, weights->taps);
    weights->bias = mica_new_array(weights->kernels, sizeof(*weights->bias));
    if (!weights->owned || !weights->bias)
        return mica_fail_nomem(plan->log);
    fill(plan, fit, sum, weights);
    weights->data = weights->owned;
    return 0;
}

/* ---- jobs ---------------------------------------------------------------------------- */

static int begin(struct viv_plan *plan, struct table_job *table)
{
    const struct viv_table_fit *fit = table->fit;
    struct viv_requant one;
    viv_requant_factor(plan->chip, 1, &one);
    table->ramps.post_multiplier = one.multiplier;
    table->ramps.post_shift = one.shift;
    table->sum.post_multiplier = fit->requant.multiplier;
    table->sum.post_shift = fit->requant.shift;
    table->sum.out_zero_point = fit->single ? fit->zero : 0;
    table->sum.relu = table->sum.out_zero_point > 0;
    int error = fit->single ? 0 : make_weights(plan, fit, false, &table->ramps.weights);
    return error ? error : make_weights(plan, fit, true, &table->sum.weights);
}

static int add_job(struct viv_plan *plan, uint32_t op, struct viv_nn nn, const struct block *block)
{
    const struct viv_weights *weights = plan->weights[nn.weights];
    nn.in_w = nn.out_w = nn.in_x_stride = nn.out_x_stride = block->columns;
    nn.in_h = nn.out_h = nn.in_y_stride = nn.out_y_stride = block->rows;
    nn.in_c = weights->channels;
    nn.out_c = weights->kernels;
    nn.kernel_w = nn.kernel_h = weights->pointwise ? 1 : 2;
    uint64_t stream_bytes = (uint64_t)weights->kernels * weights->channels * weights->taps + STREAM_HEADER_BYTES;
    viv_tile_choose(plan->chip, &nn, stream_bytes, 1.0 / weights->taps);
    struct viv_job *job = viv_plan_job(plan, op, true);
    if (!job)
        return -ENOMEM;
    job->nn = nn;
    return 0;
}

static int add_block(struct viv_plan *plan, uint32_t op, const struct table_job *table, const struct block *block)
{
    struct viv_nn ramps = table->ramps, sum = table->sum;
    ramps.in = sum.in = (struct viv_ref){table->in.storage, table->in.offset + block->start};
    sum.out = (struct viv_ref){table->out.storage, table->out.offset + block->start};
    int error = 0;
    if (!table->fit->single) {
        error = viv_plan_storage(plan, (uint64_t)block->columns * block->rows * table->fit->count, &ramps.out);
        sum.in = ramps.out;
        if (!error)
            error = add_job(plan, op, ramps, block);
    }
    return error ? error : add_job(plan, op, sum, block);
}

/* ---- blocks -------------------------------------------------------------------------- */

/* Full vectors, or about full ones that leave no rest. */
static uint32_t choose_columns(uint64_t bytes)
{
    for (uint32_t columns = COLUMNS; columns > COLUMNS / 2; columns--)
        if (bytes % columns == 0)
            return columns;
    return COLUMNS;
}

static uint64_t most_rows(const struct viv_plan *plan, const struct viv_table_fit *fit, uint32_t columns)
{
    uint64_t room = plan->options.on_chip ? plan->chip->on_chip[0].size / 8 * EIGHTHS_ON_CHIP : MOST_BYTES;
    uint64_t rows = fit->single ? VIV_MAX_IMAGE : room / ((uint64_t)columns * fit->count);
    return rows < 1 ? 1 : rows > VIV_MAX_IMAGE ? VIV_MAX_IMAGE : rows;
}

static int add_blocks(struct viv_plan *plan, uint32_t op, const struct table_job *table, uint64_t bytes)
{
    uint32_t columns = choose_columns(bytes);
    uint64_t rows = bytes / columns, most = most_rows(plan, table->fit, columns), blocks = (rows + most - 1) / most;
    int error = 0;
    for (uint64_t i = 0, row = 0; !error && i < blocks; i++) {
        struct block block = {row * columns, columns, (uint32_t)((rows - row) / (blocks - i))};
        error = add_block(plan, op, table, &block);
        row += block.rows;
    }
    struct block rest = {rows * columns, (uint32_t)(bytes % columns), 1};
    return !error && rest.columns ? add_block(plan, op, table, &rest) : error;
}

int viv_table_jobs(struct viv_plan *plan, uint32_t op, const uint8_t table[256], struct viv_ref in, struct viv_ref out,
                   uint64_t bytes)
{
    struct viv_table_fit fit;
    struct table_job job = {.fit = &fit, .in = in, .out = out};
    if (!viv_table_fit(plan->chip, table, &fit))
        return mica_fail(plan->log, -ENOTSUP, "%s: a function takes more than %u ramps", plan->graph->ops[op].type,
                         VIV_TABLE_RAMPS);
    mica_log(plan->log, MICA_LOG_DEBUG, "%s: %u ramp%s in %s", plan->graph->ops[op].type, fit.count,
             fit.count == 1 ? "" : "s", fit.single ? "one job" : "two jobs");
    int error = begin(plan, &job);
    return error ? error : add_blocks(plan, op, &job, bytes);
}
