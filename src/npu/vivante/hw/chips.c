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
    .clock_mhz = 800,
};
