/* SPDX-License-Identifier: MIT */
/* What the three chips are made of (specification, section 1). */
#ifndef MICA_VIVANTE_HW_CHIPS_H
#define MICA_VIVANTE_HW_CHIPS_H

#include <stdbool.h>
#include <stdint.h>

#include "npu/on_chip.h"

/* How a coefficient buffer is coded: COEF_COMPRESSION_ENHANCEMENT decides, not the version (section 1.4). */
enum viv_coef_format {
    VIV_COEF_V7,      /* tokens of zero run and value (section 5.1) */
    VIV_COEF_HUFFMAN, /* Huffman-coded bytes (sections 5.2, 5.3) */
};

/* Where a kernel's bias is. */
enum viv_bias_place {
    VIV_BIAS_AFTER_FIRST_WEIGHT,
    VIV_BIAS_BEFORE_FIRST_WEIGHT,
    VIV_BIAS_TABLE, /* behind the streams, in channel order */
};

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
    bool no_flush;                           /* what every driver writes in the descriptor's field (section 3.2) */
    bool thin_kernels;   /* one row or one column is written as it is; else one column is layer type 1 (section 3.2) */
    uint32_t sram_align; /* of the ranges of on-chip memory (section 12.6) */
    uint32_t max_superblock; /* kernels a core takes in one (section 9.1) */
    enum viv_coef_format coef_format;
    enum viv_bias_place bias_place;
    bool coef_blocks_of_nine; /* taps go in blocks of nine of the flattened kernel (section 5.2.2), else as on V7 */
    bool coef_centred;        /* Huffman streams hold w - zero point, else w */
    bool coef_precode;        /* Huffman streams may hold differences */
    bool coef_average_bias;   /* an average bias other than 0 is known from NN streams of this chip */
    bool hardware_depthwise;  /* NN_DEPTHWISE_SUPPORT */
    uint32_t bias_input_zero; /* bias' = bias + (this - input zero point) * sum(w - zero point) */
    double clock_mhz;
    /* Device addresses of on-chip memory. None was tried on hardware with the open kernel driver. */
    struct mica_on_chip on_chip[MICA_ON_CHIP_WINDOWS];
};

extern const struct viv_chip viv_a311d;
extern const struct viv_chip viv_imx8mp;
/* No open driver was ever run on it: what is known comes from a compiler's output (section 1.4). */
extern const struct viv_chip viv_s905d3;

/* Field widths that bound every chip's jobs. */
#define VIV_MAX_IMAGE 8191u     /* image columns and rows, 13 bits */
#define VIV_MAX_CHANNELS 16383u /* output channels, 14 bits */
#define VIV_MAX_KERNELS_PER_CORE 127u
#define VIV_SRAM_START 0x800u /* SRAM below it is not for caches */

#endif
