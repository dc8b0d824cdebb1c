/* SPDX-License-Identifier: MIT */
#include "npu/vivante/hw/chips.h"

const struct viv_chip viv_a311d = {
    .name = "a311d",
    .model = 0x8000,
    .revision = 0x7120,
    .product = 0x45080009,
    .eco = 0,
    .customer = 0x88,
    .nn_cores = 8,
    .tp_cores = 4,
    .input_depth = 12,
    .accumulator_depth = 64,
    .sram_bytes = 512 * 1024,
    .zero_run_bits = 5,
    .max_kernel = 11,
    .max_tile = 64,
    .offset_bits = 4,
    .multiplier_bits = 15,
    .z_offset_in_stream = true,
    .sram_align = 128,
    .max_superblock = VIV_MAX_KERNELS_PER_CORE,
    .coef_format = VIV_COEF_V7,
    .bias_place = VIV_BIAS_AFTER_FIRST_WEIGHT,
    .clock_mhz = 800,
    /*
     * AXI-SRAM: inferred, the vendor's descriptors have addresses from here on (timing, section 7).
     * VIP-SRAM: unknown, the window that the vendor's driver maps on i.MX 8M Plus.
     */
    .on_chip = {{0x01000000, 1024 * 1024}, {0x00400000, 512 * 1024}},
};

/*
 * The header of its coefficients has an average bias too, but every NN stream
 * seen has 0 there (section 5.2.1), so ours have.
 */
const struct viv_chip viv_imx8mp = {
    .name = "imx8mp",
    .model = 0x8000,
    .revision = 0x8002,
    .product = 0x05080009,
    .eco = 0x06000000,
    .customer = 0x9f,
    .nn_cores = 6,
    .tp_cores = 3,
    .input_depth = 9,
    .accumulator_depth = 32,
    .sram_bytes = 256 * 1024,
    .zero_run_bits = 8,
    .max_kernel = 15,
    .max_tile = 64,
    .offset_bits = 5,
    .multiplier_bits = 23,
    .no_flush = true,
    .thin_kernels = true,
    .sram_align = 256,
    .max_superblock = 21,
    .coef_format = VIV_COEF_HUFFMAN,
    .bias_place = VIV_BIAS_TABLE,
    .coef_blocks_of_nine = true,
    .coef_centred = true,
    .hardware_depthwise = true,
    .bias_input_zero = 128,
    .clock_mhz = 1000,
    /* Inferred: the vendor's job writes this address to SRAM_REMAP_ADDRESS. */
    .on_chip = {{0x00400000, 256 * 1024}},
};

const struct viv_chip viv_s905d3 = {
    .name = "s905d3",
    .model = 0x8000,
    .revision = 0x7131,
    .product = 0x08000001,
    .eco = 0x02000000,
    .customer = 0x99,
    .nn_cores = 2,
    .tp_cores = 1,
    .input_depth = 6,
    .accumulator_depth = 64,
    .sram_bytes = 512 * 1024,
    .zero_run_bits = 8,
    .max_kernel = 11,
    .max_tile = 64,
    .offset_bits = 4,
    .multiplier_bits = 15,
    .z_offset_in_stream = true,
    .sram_align = 128,
    .max_superblock = VIV_MAX_KERNELS_PER_CORE,
    .coef_format = VIV_COEF_HUFFMAN,
    .bias_place = VIV_BIAS_BEFORE_FIRST_WEIGHT,
    .coef_precode = true,
    .coef_average_bias = true,
    .clock_mhz = 800,
    /* Unknown: the window that the vendor's driver maps on i.MX 8M Plus. */
    .on_chip = {{0x00400000, 512 * 1024}},
};
