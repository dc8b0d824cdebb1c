/* SPDX-License-Identifier: MIT */
/* Tasks whose main operand comes from memory: it streams through the output stage in place of accumulators. */
#include <string.h>

#include "npu/rockchip/sim/dpu.h"
#include "npu/rockchip/sim/job.h"

#define CHUNK 64u /* pixels that go through the stage at a time */

struct stream {
    const struct rk_dpu *dpu;
    bool by_table; /* the result depends on nothing but the byte */
    uint8_t table[256];
};

static bool same(const int32_t *values, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        if (values[i] != values[0])
            return false;
    return true;
}

/* Nothing but the main operand makes a difference: then 256 values say it all. */
static bool depends_on_byte(const struct rk_dpu *dpu)
{
    uint32_t count = dpu->surfaces * dpu->atom;
    bool operand = dpu->ew != RK_EW_NONE && !(dpu->per_channel && same(dpu->channel_operand, count));
    return !operand && same(dpu->bias, count) && same(dpu->factor, count);
}

static void fill_table(const struct rk_dpu *dpu, uint8_t *table)
{
    int32_t values[256];
    for (int i = 0; i < 256; i++)
        values[i] = (int8_t)i;
    struct rk_run run = {.pixels = 256 / dpu->atom, .lanes = dpu->atom, .acc = values, .out = table};
    rk_dpu_general(dpu, &run);
}

static void by_table(const struct stream *stream, const uint8_t *from, uint32_t surface, uint32_t row)
{
    const struct rk_dpu *dpu = stream->dpu;
    uint8_t *to = dpu->out + surface * dpu->surface_bytes + row * dpu->line_bytes[surface & 1];
    uint32_t real = dpu->channels - surface * dpu->atom;
    for (size_t i = 0; i < (size_t)dpu->width * dpu->atom; i++)
        to[i] = stream->table[from[i]];
    for (uint32_t x = 0; real < dpu->atom && x < dpu->width; x++)
        memset(to + (size_t)x * dpu->atom + real, rk_dpu_padding(dpu), dpu->atom - real);
}

static void through_stage(const struct rk_dpu *dpu, const uint8_t *from, uint32_t surface, uint32_t row)
{
    int32_t values[CHUNK * RK_MAX_ATOM];
    for (uint32_t x = 0; x < dpu->width; x += CHUNK) {
        uint32_t pixels = dpu->width - x < CHUNK ? dpu->width - x : CHUNK;
        for (uint32_t i = 0; i < pixels * dpu->atom; i++)
            values[i] = (int8_t)from[(size_t)x * dpu->atom + i];
        rk_dpu_block(dpu, row * dpu->width + x, pixels, surface * dpu->atom, dpu->atom, values, NULL);
    }
}

/* One row of one surface. */
static void run_row(void *user, size_t index)
{
    const struct stream *stream = user;
    const struct rk_dpu *dpu = stream->dpu;
    uint32_t surface = (uint32_t)(index / dpu->rows), row = (uint32_t)(index % dpu->rows);
    const uint8_t *from = dpu->main.base + surface * dpu->main.step + row * dpu->main.line;
    if (stream->by_table)
        by_table(stream, from, surface, row);
    else
        through_stage(dpu, from, surface, row);
}

void rk_elementwise_run(struct rk_sim *sim, const struct rk_dpu *dpu)
{
    struct stream stream = {.dpu = dpu, .by_table = depends_on_byte(dpu)};
    if (stream.by_table)
        fill_table(dpu, stream.table);
    mica_parallel_for(sim->threads, (size_t)dpu->surfaces * dpu->rows, run_row, &stream);
}
