/* SPDX-License-Identifier: MIT */
/*
 * Register programs as named fields. What is shown, in groups:
 *
 *   "task"      a register program; its address; its words and blocks
 *   "register"  a write; the address of its word; "CNA.CONV_CON1 = 0x6000a000". Fields follow, reserved ones only where
 *               they are not 0; idle: the field is 0; unknown: reserved bits are set
 *   "padding"   words of 0 between programs
 *
 * Link, amount, barrier and start words are in the task too, the last two as fields "BARRIER" and "START". A word of
 * no known register is a field "0x0301:0x4004" (target, offset) with `unknown` set, and what is wrong as its text.
 */
#ifndef MICA_ROCKCHIP_DECODE_DECODE_H
#define MICA_ROCKCHIP_DECODE_DECODE_H

#include "npu/decode.h"
#include "npu/rockchip/hw/registers.h"

struct rk_decode {
    enum rk_generation generation;
    const struct mica_decode_sink *sink;
    const struct mica_decode_memory *memory; /* NULL: nothing but what is passed is known */
};

/*
 * `size` bytes that stand at `address` of the device: any number of programs, one behind the other, each ended by its
 * start word. Bytes past the last whole word are not looked at.
 */
void rk_decode_programs(const struct rk_decode *decode, uint64_t address, const void *bytes, size_t size);

/* What a submission hands to the kernel: pairs of a program's address and its number of words. */
void rk_decode_tasks(const struct rk_decode *decode, const uint32_t *stream, size_t count);

/* One word in one line: name, value and the fields that are not 0. As snprintf() it returns the whole length. */
size_t rk_decode_word(enum rk_generation generation, uint64_t word, char *text, size_t size);

#endif
