/* SPDX-License-Identifier: MIT */
/* The Vivante family and its chips, as the rest of the library sees them. */
#include "npu/npu.h"
#include "npu/vivante/compile/compile.h"
#include "npu/vivante/hw/chips.h"
#include "npu/vivante/sim/sim.h"

/* Unknown: the least of what published inference times leave for a job's start and the wake-up (timing, section 5). */
#define SUBMIT_US 40

const struct mica_npu_family mica_vivante = {
    .name = "vivante",
    .supports = viv_supports,
    .compile = viv_compile,
    .sim_create = viv_sim_create,
    .sim_destroy = viv_sim_destroy,
    .sim_run = viv_sim_run,
    .operations = viv_operations,
    .describe = viv_describe,
};

const struct mica_chip mica_chip_a311d = {
    .name = "a311d",
    .description = "Amlogic A311D (VeriSilicon VIPNano-QI)",
    .driver = "etnaviv",
    .clock_mhz = 800,
    .family = &mica_vivante,
    .submit_us = SUBMIT_US,
    .parameters = &viv_a311d,
    .identity = "8000:7120:45080009:88:0",
    .on_chip = viv_a311d.on_chip,
    .notes =
        "on-chip: no open driver used this memory; its 1 MiB at 0x01000000 is inferred from the vendor's jobs, the "
        "address of the other 512 KiB is a guess",
};

const struct mica_chip mica_chip_imx8mp = {
    .name = "imx8mp",
    .description = "NXP i.MX 8M Plus (VeriSilicon VIPNano-SI+)",
    .driver = "etnaviv",
    .clock_mhz = 1000,
    .family = &mica_vivante,
    .submit_us = SUBMIT_US,
    .parameters = &viv_imx8mp,
    .identity = "8000:8002:5080009:9f:6000000",
    .on_chip = viv_imx8mp.on_chip,
    .notes = "a shift below zero, for layers whose scale is 2 or more, was never seen: its coding is inferred\n"
             "on-chip: no open driver used this memory; its address is inferred from one job of the vendor's driver",
};

/* Specification, sections 1.4, 5.3 and 12.3. */
const struct mica_chip mica_chip_s905d3 = {
    .name = "s905d3",
    .description = "Amlogic S905D3 (VeriSilicon Vivante, V7 with Huffman coefficients)",
    .driver = "etnaviv",
    .clock_mhz = 800,
    .family = &mica_vivante,
    .submit_us = SUBMIT_US,
    .parameters = &viv_s905d3,
    .identity = "8000:7131:8000001:99:2000000",
    .on_chip = viv_s905d3.on_chip,
    .notes =
        "nothing that any open driver wrote ever ran on it; what is known comes from the vendor compiler's output\n"
        "the coefficient format was decoded from that output, with every weight and bias; that the silicon reads "
        "it is inferred from a feature bit\n"
        "free placement of kernels on cores is inferred from the output offset that each kernel carries\n"
        "tile sizes follow the V7 rule with this chip's buffer depths: it bounds every vendor job seen, the "
        "hardware's own limit is unknown\n"
        "on-chip: no open driver used this memory, and its address is a guess",
};
