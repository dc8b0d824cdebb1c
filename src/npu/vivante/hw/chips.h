/* SPDX-License-Identifier: MIT */
/* What the three chips are made of (specification, section 1). */
#ifndef MICA_VIVANTE_HW_CHIPS_H
#define MICA_VIVANTE_HW_CHIPS_H

#include <stdbool.h>
#include <stdint.h>

struct viv_chip {
    const char *name;
    uint32_t model, revision, product, eco, customer;
    uint32_t nn_cores, tp_cores;
    uint32_t input_depth, accumulator_depth; /* NN buffers, in vectors of 64 lanes */
    uint32_t sram_bytes;                     /* on-chip VIP SRAM */
    uint32_t zero_run_bits;                  /* longest zero-run field of a V7 stream */
    uint32_t max_kernel;                     /* columns and rows */
    uint32_t max_tile;                       /* columns of an output tile */
    uint32_t offset_bits;                    /* of in_image_x/y_offset, two's complement */
    uint32_t multiplier_bits;                /* of post_multiplier, the leading one not counted */
    bool z_offset_in_stream;                 /* each kernel carries its output offset (V7 order) */
    double clock_mhz;
};

extern const struct viv_chip viv_a311d;

/* Field widths that bound every chip's jobs. */
#define VIV_MAX_IMAGE 8191u     /* image columns and rows, 13 bits */
#define VIV_MAX_CHANNELS 16383u /* output channels, 14 bits */
#define VIV_MAX_KERNELS_PER_CORE 127u
#define VIV_SRAM_START 0x800u /* SRAM below it is not for caches */

#endif
