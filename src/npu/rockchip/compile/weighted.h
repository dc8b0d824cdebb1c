/* SPDX-License-Identifier: MIT */
/* What the files behind rk_lower_weighted() share. */
#ifndef MICA_ROCKCHIP_COMPILE_WEIGHTED_H
#define MICA_ROCKCHIP_COMPILE_WEIGHTED_H

#include "npu/rockchip/compile/plan.h"
#include "npu/rockchip/compile/requant.h"

/* ---- which part of the layer a task computes (tile.c) ------------------------ */

/* Output rows [first, end) and the input rows that they need; `pad_top` rows of padding stand above those. */
struct rk_rows {
    uint32_t first, end;
    uint32_t in_first, in_count;
    uint32_t pad_top;
};

struct rk_rows rk_rows_of(const struct rk_weighted *weighted, uint32_t first, uint32_t end);

/* How the layer is cut: so many output channels a tile, and of those rows as the buffer takes them. */
struct rk_tiling {
    uint32_t channels;                 /* of a tile; a multiple of the atom but for the last tile */
    uint32_t data_banks, weight_banks; /* of the buffer; a tile of one task may do with fewer for its data */
    uint32_t row_capacity;             /* input rows that the data banks hold */
    bool reuse;                        /* all weights of a tile stay in their banks from one task to the next */
    uint32_t tasks;
    double us;
    uint64_t bytes; /* what the tasks move */
};

/* The cheapest cut of output channels [0, channels) and rows [first, end) by the timing model; false: none fits. */
bool rk_tiling_choose(const struct rk_chip *chip, const struct rk_weighted *weighted, uint32_t channels, uint32_t first,
                      uint32_t end, struct rk_tiling *tiling);
/* The next task's rows: from `first` on as many, up to `end`, as the banks hold. */
struct rk_rows rk_tiling_rows(const struct rk_weighted *weighted, const struct rk_tiling *tiling, uint32_t first,
                              uint32_t end);
/* Banks for a task of so many input rows. */
uint32_t rk_tiling_banks(const struct rk_chip *chip, const struct rk_weighted *weighted, const struct rk_tiling *tiling,
                         uint32_t tile_channels, uint32_t rows);

/* Input channels as the weights have lanes for them, of a tile of so many output channels. */
uint32_t rk_lanes(const struct rk_weighted *weighted, uint32_t tile_channels);
uint32_t rk_row_entries(const struct rk_chip *chip, const struct rk_weighted *weighted, uint32_t tile_channels);
uint32_t rk_row_bytes(const struct rk_chip *chip, const struct rk_weighted *weighted, uint32_t tile_channels);
uint64_t rk_weight_bytes(const struct rk_weighted *weighted, uint32_t tile_channels);

/* What the timing model says of a task: cycles, and bytes with or without its weights. */
uint64_t rk_compute_cycles(const struct rk_chip *chip, const struct rk_weighted *weighted, uint32_t tile_channels,
                           const struct rk_rows *rows);
uint64_t rk_traffic(const struct rk_chip *chip, const struct rk_weighted *weighted, uint32_t tile_channels,
                    const struct rk_rows *rows, bool weights);

/* ---- constants (weights.c) ----------------------------------------------------- */

/* What the arithmetic needs to know of every output channel's weights. */
struct rk_channel {
    int64_t sum;  /* of w - zero */
    double reach; /* no accumulator is further from 0 */
};

/* How far from 0 a channel's accumulators can be without its bias; and can there be classes with all of these? */
double rk_channel_swing(const struct rk_weighted *weighted, const struct rk_channel *channel, uint32_t o);
bool rk_channels_sortable(const struct rk_weighted *weighted, const struct rk_channel *channels);

/* `count` = out.shape.c elements, to be freed; NULL when memory runs out. */
struct rk_channel *rk_channels_measure(const struct rk_weighted *weighted);

/* Weights and coefficients of output channels [first, first + count) in the chip's order. */
int rk_weights_pack(struct rk_plan *plan, const struct rk_weighted *weighted, uint32_t first, uint32_t count,
                    struct rk_ref *ref);
int rk_coefficients_pack(struct rk_plan *plan, const struct rk_weighted *weighted, const struct rk_channel *channels,
                         const struct rk_requant *requant, uint32_t first, uint32_t count, struct rk_ref *ref);

/* ---- registers (weighted_task.c) ----------------------------------------------- */

struct rk_weighted_task {
    const struct rk_weighted *weighted;
    const struct rk_requant *requant;
    uint32_t data_banks;
    struct rk_ref weights, coefficients;
    uint32_t first, count; /* output channels */
    uint32_t cube_first;   /* channel of the layer that the output's cube begins with */
    struct rk_rows rows;
    bool reuse; /* the weights are in the buffer already */
    uint64_t macs;
};

int rk_weighted_task(struct rk_plan *plan, const struct rk_weighted_task *job, struct rk_task **task);

/* Output channels as the output units count them: whole groups. */
uint32_t rk_padded_channels(const struct rk_chip *chip, bool depthwise, uint32_t channels);

#endif
