/* SPDX-License-Identifier: MIT */
/*
 * Timing model of NN and TP jobs: cycles and device-memory bytes from what a
 * descriptor and a coefficient stream say. Used by the compiler to choose and
 * by the simulator to report. The formulas and constants were fitted to the
 * vendor compiler's own estimates, not to silicon: every figure is an estimate.
 */
#ifndef MICA_VIVANTE_HW_TIMING_H
#define MICA_VIVANTE_HW_TIMING_H

#include <stdbool.h>
#include <stdint.h>

#include "npu/vivante/hw/chips.h"

/* Where an operand of a job lives. Which chip has which memory: section 1 of the timing page. */
enum viv_place {
    VIV_IN_DDR,
    VIV_IN_AXI_SRAM,
    VIV_IN_VIP_SRAM,
    VIV_PLACES,
};

/* What the job's surroundings cost. */
struct viv_memory_model {
    double ddr_bytes_per_cycle; /* reads plus writes */
    uint32_t burst_bytes;       /* a power of two */
};

/* 8 bytes a cycle, 64-byte bursts: the setting that fits published silicon figures best. */
extern const struct viv_memory_model viv_default_memory;

/* Sizes are at least 1: whoever fills this in has checked them. */
struct viv_nn_job {
    uint32_t in_w, in_h, in_channels; /* input image, pixels */
    uint32_t in_row_bytes, in_plane_bytes;
    uint64_t in_address;        /* only its place within a burst matters */
    int32_t x_offset, y_offset; /* input pixel of kernel tap (0,0) at output (0,0) */
    uint32_t kernel_w, kernel_h;
    uint32_t out_w, out_h, out_channels;     /* before pooling */
    bool first_pixel_pooling;                /* one output of each 2x2 is written */
    uint32_t out_row_bytes, out_plane_bytes; /* as stored; 0: rows, planes are packed */
    uint32_t tile_x, tile_y, kernels_per_core;
    uint32_t interleave; /* rows of a tile that share a vector; 0: by viv_interleave() */
    bool image_cached, kernel_cached;
    uint64_t coefficient_bytes; /* of the per-core streams, header not counted */
    double density;             /* share of the stream's coefficients that differ from the weight zero point */
    bool depthwise;             /* the chip's own depthwise mode; in_channels is 1 or out_channels then */
    /* On-chip operands cost that memory's bandwidth and no device-memory bytes. */
    enum viv_place in_place, out_place, coefficient_place;
};

struct viv_tp_job {
    uint64_t elements; /* scanned by this core's descriptor */
    uint64_t in_bytes, out_bytes;
    enum viv_place in_place, out_place;
};

/* All bytes but sram_bytes are device memory's; coefficient_bytes are part of read_bytes. */
struct viv_cost {
    uint64_t cycles, read_bytes, write_bytes, coefficient_bytes;
    uint64_t sram_bytes; /* to and from on-chip operands */
};

struct viv_cost viv_nn_cost(const struct viv_chip *chip, const struct viv_memory_model *memory,
                            const struct viv_nn_job *job);

/* The cycles alone, for device-memory bytes that are known from elsewhere; on-chip memories are taken as fast enough.
 */
uint64_t viv_nn_cycles(const struct viv_chip *chip, const struct viv_memory_model *memory, const struct viv_nn_job *job,
                       double read_bytes, double write_bytes);

/* One core's descriptor; parts of a split operation run at the same time on different cores. */
struct viv_cost viv_tp_cost(const struct viv_chip *chip, const struct viv_tp_job *job);

/* Rows of a tile that share one vector of 64 lanes (the vendor's rule, `timing.md` section 2). */
uint32_t viv_interleave(uint32_t tile_x, uint32_t kernel_w, uint32_t kernel_h);

#endif
