/* SPDX-License-Identifier: MIT */
/* The Vivante family and its chips, as the rest of the library sees them. */
#include "npu/npu.h"
#include "npu/vivante/compile/compile.h"
#include "npu/vivante/hw/chips.h"
#include "npu/vivante/sim/sim.h"

const struct mica_npu_family mica_vivante = {
    .name = "vivante",
    .supports = viv_supports,
    .compile = viv_compile,
    .sim_create = viv_sim_create,
    .sim_destroy = viv_sim_destroy,
    .sim_run = viv_sim_run,
};

const struct mica_chip mica_chip_a311d = {
    .name = "a311d",
    .description = "Amlogic A311D (VeriSilicon VIPNano-QI)",
    .driver = "etnaviv",
    .clock_mhz = 800,
    .family = &mica_vivante,
    .parameters = &viv_a311d,
};
