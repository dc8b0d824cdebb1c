/* SPDX-License-Identifier: MIT */
/* What the chips of the family are made of (specification, sections 1, 7, 17, 18). */
#ifndef MICA_ROCKCHIP_HW_CHIPS_H
#define MICA_ROCKCHIP_HW_CHIPS_H

#include <stdbool.h>
#include <stdint.h>

/* The two register maps. */
enum rk_generation {
    RK_GENERATION_RK3588,
    RK_GENERATION_RK356X, /* RK3566, RK3568 */
    RK_GENERATION_COUNT
};

struct rk_chip {
    const char *name;
    enum rk_generation generation;
    uint32_t cores;
    uint32_t atom;            /* bytes of one pixel in one surface: channels a surface of an 8-bit cube has */
    uint32_t cbuf_banks;      /* of RK_CBUF_BANK_BYTES */
    uint32_t cbuf_entry;      /* bytes of one DATA_ENTRIES unit */
    uint32_t kernel_group;    /* kernels a direct convolution computes at once, and weights are grouped by */
    uint32_t depthwise_group; /* channels a depthwise one computes at once */
    uint32_t coef_group;      /* channels of one group of per-channel coefficients: 16 bytes of them a channel of it */
    double bytes_per_ns;      /* DDR traffic: bytes a nanosecond, whatever the NPU's clock */
    double clock_mhz;         /* default */
    double job_us, task_us;   /* cost of the first task of a submission, and of each later one */
    uint32_t count_shift;     /* PC.REGISTER_AMOUNTS = ceil(words >> count_shift, up) - 1: 1 on RK3588, 0 on RK356x */
};

extern const struct rk_chip rk_chip_rk3588;
extern const struct rk_chip rk_chip_rk3566;

#define RK_CBUF_BANK_BYTES 32768u
#define RK_MAX_KERNEL 31u     /* columns and rows, 5 bits */
#define RK_MAX_STRIDE 7u      /* 3 bits */
#define RK_MAX_PAD 15u        /* left and top, 4 bits */
#define RK_MAX_IMAGE 2047u    /* columns and rows that CNA counts, 11 bits */
#define RK_MAX_CHANNELS 8191u /* 13 bits */
/* 17 for certain: larger dilations failed on a sister chip (specification, section 12). */
#define RK_MAX_DILATION 17u

#endif
