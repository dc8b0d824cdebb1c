/* SPDX-License-Identifier: MIT */
/* What a word of a program is. */
#ifndef MICA_ROCKCHIP_DECODE_INTERNAL_H
#define MICA_ROCKCHIP_DECODE_INTERNAL_H

#include "npu/rockchip/decode/decode.h"

enum rk_word_kind {
    RK_WORD_NOTHING,
    RK_WORD_IS_BARRIER,
    RK_WORD_START,
    RK_WORD_REGISTER,
    RK_WORD_UNKNOWN,
};

#define RK_WORD_NAME_BYTES 64
#define RK_WORD_PROBLEM_BYTES 80

struct rk_word_view {
    enum rk_word_kind kind;
    char name[RK_WORD_NAME_BYTES];       /* "CNA.CONV_CON1", "BARRIER" */
    char problem[RK_WORD_PROBLEM_BYTES]; /* of an unknown one, and of a start with unknown bits; else "" */
    uint32_t value;
    uint16_t offset;
};

void rk_word_look(enum rk_generation generation, uint64_t word, struct rk_word_view *view);

/* The blocks of a start mask by name, "CNA CORE DPU". */
void rk_start_names(enum rk_generation generation, uint32_t mask, char *text, size_t size);

#endif
