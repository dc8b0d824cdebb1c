/* SPDX-License-Identifier: MIT */
#include "npu/rockchip/hw/chips.h"

const struct rk_chip rk_chip_rk3588 = {
    .name = "rk3588",
    .generation = RK_GENERATION_RK3588,
    .cores = 3,             /* mainline (section 1) */
    .atom = 16,             /* vendor programs (section 4) */
    .cbuf_banks = 12,       /* vendor programs (section 7) */
    .cbuf_entry = 64,       /* vendor programs (section 7) */
    .kernel_group = 32,     /* weight files and the vendor's timing (sections 5, 18) */
    .depthwise_group = 64,  /* likewise */
    .coef_group = 8,        /* vendor programs, measured (section 6) */
    .bytes_per_ns = 23.654, /* the vendor's timing: 0.7 of 33.79 GB/s (section 18) */
    .clock_mhz = 200,       /* what mainline's device tree assigns; silicon runs at up to 1000 (section 1) */
    .job_us = 52,           /* measured on mainline, default interrupt affinity (section 18) */
    .task_us = 44,          /* measured: one interrupt round trip (section 18) */
    .count_shift = 1,       /* vendor programs (section 3) */
};

const struct rk_chip rk_chip_rk3566 = {
    .name = "rk3566",
    .generation = RK_GENERATION_RK356X,
    .cores = 1,            /* section 17 */
    .atom = 8,             /* vendor programs (section 17) */
    .cbuf_banks = 8,       /* vendor programs (section 17) */
    .cbuf_entry = 32,      /* vendor programs (section 17) */
    .kernel_group = 16,    /* weight files and the vendor's timing (sections 17, 18) */
    .depthwise_group = 32, /* likewise */
    .coef_group = 4,       /* vendor programs (section 17) */
    .bytes_per_ns = 6.57,  /* the vendor's timing (section 18) */
    .clock_mhz = 1000,     /* assumed: no clock is documented; the one of the vendor's timing tables */
    .job_us = 52,          /* unknown: RK3588's figures */
    .task_us = 44,
    .count_shift = 0, /* vendor programs (section 17) */
};
