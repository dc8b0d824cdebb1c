/* SPDX-License-Identifier: MIT */
/*
 * Every register and field of the family as data: one table, used to set, to
 * get, to check and to print. The two generations place some fields
 * differently; a field that a generation has not got has width 0 there.
 */
#ifndef MICA_ROCKCHIP_HW_REGISTERS_H
#define MICA_ROCKCHIP_HW_REGISTERS_H

#include <stddef.h>
#include <stdint.h>

#include "npu/rockchip/hw/chips.h"

enum rk_block {
    RK_PC,
    RK_CNA,
    RK_CSC, /* RK356x */
    RK_CORE,
    RK_DPU,
    RK_DPU_RDMA,
    RK_PPU,
    RK_PPU_RDMA,
    RK_DDMA,
    RK_SDMA,
    RK_GLOBAL,
    RK_BLOCK_COUNT
};

/* A flat file of the registers that programs can write, indexed by offset / 4. */
#define RK_REGISTER_WORDS 0x2000u
struct rk_registers {
    uint32_t word[RK_REGISTER_WORDS];
};

struct rk_block_info {
    const char *name;
    uint32_t target;     /* of a register write in a program, bit 0 set; 0: programs can't reach it */
    uint16_t first, end; /* offsets */
    int start_bit;       /* in the mask of a start word, -1: none */
};

struct rk_register {
    const char *name; /* "CONV_CON1" */
    enum rk_block block;
    uint16_t offset;
    uint8_t generations; /* that have this register there: bit 1 << generation. Two may share an offset */
};

struct rk_field_place {
    uint16_t offset;
    uint8_t lsb, width; /* width 0: this generation has no such field */
};

struct rk_field {
    const char *name;    /* "CONV_MODE" */
    const char *meaning; /* for people */
    enum rk_block block;
    struct rk_field_place at[RK_GENERATION_COUNT];
    uint8_t is_signed; /* two's complement */
};

/* RK_CNA_CONV_CON1_CONV_MODE and so on: block, register, field. */
enum rk_field_id {
#define RK_FIELD(block, reg, field, ...) RK_##block##_##reg##_##field,
#include "npu/rockchip/hw/fields.def" /* undefines RK_FIELD */
    RK_FIELD_COUNT
};

extern const struct rk_block_info rk_blocks[RK_BLOCK_COUNT];
extern const struct rk_field rk_fields[RK_FIELD_COUNT];
extern const struct rk_register rk_register_table[]; /* by generation-independent offset, ascending */
extern const size_t rk_register_count;

/* The register at an offset, NULL: none is known there. Where the generations have different ones: RK3588's. */
const struct rk_register *rk_register_at(uint16_t offset);
/* The one of a generation. */
const struct rk_register *rk_register_of(enum rk_generation generation, uint16_t offset);
/* The block that has an offset, RK_BLOCK_COUNT: none. */
enum rk_block rk_block_at(uint16_t offset);
/* The block that a register write's target names, RK_BLOCK_COUNT: none. */
enum rk_block rk_block_of_target(uint32_t target);

/* Bits without a known meaning: 0 in all programs. */
bool rk_field_is_reserved(const struct rk_field *field);
/*
 * The fields of the register at an offset: gives the next one's index from `from` on, RK_FIELD_COUNT behind the last.
 * Start with 0, go on with what came + 1.
 */
unsigned rk_field_next(enum rk_generation generation, uint16_t offset, unsigned from);

/* A field's value; signed ones are sign-extended. 0 where the generation has no such field. */
uint32_t rk_get(const struct rk_registers *registers, enum rk_generation generation, enum rk_field_id field);
/* The same of one word, whatever register it is. */
uint32_t rk_field_extract(uint32_t word, enum rk_generation generation, enum rk_field_id field);
/* Stores the low bits; false, with nothing stored, when `value` doesn't fit (signed ones are passed cast), or, unless
 * it is 0, when the generation has no such field. */
bool rk_set(struct rk_registers *registers, enum rk_generation generation, enum rk_field_id field, uint32_t value);

/* ---- words of a register program (specification, section 3) --------------- */

#define RK_WORD_BARRIER (UINT64_C(0x0041) << 48)
#define RK_TARGET_START 0x0081u
#define RK_START_OFFSET 0x0008u

static inline uint64_t rk_word(uint32_t target, uint16_t offset, uint32_t value)
{
    return (uint64_t)target << 48 | (uint64_t)value << 16 | offset;
}

static inline uint32_t rk_word_target(uint64_t word)
{
    return (uint32_t)(word >> 48);
}

static inline uint32_t rk_word_value(uint64_t word)
{
    return (uint32_t)(word >> 16);
}

static inline uint16_t rk_word_offset(uint64_t word)
{
    return (uint16_t)word;
}

/* Bytes from the start of a word to its 32-bit value: where an address is relocated. */
#define RK_WORD_VALUE_BYTE 2u

/* Block mask of a start word. */
enum rk_start {
    RK_START_CNA = 1 << 0,
    RK_START_CSC = 1 << 1, /* RK356x */
    RK_START_CORE = 1 << 2,
    RK_START_DPU = 1 << 3,
    RK_START_DPU_RDMA = 1 << 4,
    RK_START_PPU = 1 << 5,
    RK_START_PPU_RDMA = 1 << 6,
};

/*
 * Which registers a whole program of a kind writes, in the vendor's order (specification, sections
 * 14 and 17; the vectors). A pointer register may stand in it.
 */
enum rk_program_kind {
    RK_PROGRAM_CONVOLUTION, /* 126 writes on RK3588, 133 on RK356x */
    RK_PROGRAM_ELEMENTWISE, /* DPU and DPU_RDMA alone */
    RK_PROGRAM_POOLING,     /* PPU and PPU_RDMA */
    RK_PROGRAM_KIND_COUNT
};

struct rk_order {
    const uint16_t *offsets;
    size_t count;
};

const struct rk_order *rk_program_order(enum rk_generation generation, enum rk_program_kind kind);

#endif
