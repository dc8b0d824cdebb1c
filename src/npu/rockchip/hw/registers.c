/* SPDX-License-Identifier: MIT */
#include "npu/rockchip/hw/registers.h"

#include <string.h>

/* Targets: specification, section 1. Those of DDMA, SDMA and GLOBAL don't fit a word. */
const struct rk_block_info rk_blocks[RK_BLOCK_COUNT] = {
    [RK_PC] = {"PC", 0x0101, 0x0000, 0x0040, -1},    [RK_CNA] = {"CNA", 0x0201, 0x1000, 0x1234, 0},
    [RK_CSC] = {"CSC", 0x0401, 0x2000, 0x2010, 1},   [RK_CORE] = {"CORE", 0x0801, 0x3000, 0x3034, 2},
    [RK_DPU] = {"DPU", 0x1001, 0x4000, 0x4130, 3},   [RK_DPU_RDMA] = {"DPU_RDMA", 0x2001, 0x5000, 0x5070, 4},
    [RK_PPU] = {"PPU", 0x4001, 0x6000, 0x60e0, 5},   [RK_PPU_RDMA] = {"PPU_RDMA", 0x8001, 0x7000, 0x7034, 6},
    [RK_DDMA] = {"DDMA", 0, 0x8000, 0x8034, -1},     [RK_SDMA] = {"SDMA", 0, 0x9000, 0x9034, -1},
    [RK_GLOBAL] = {"GLOBAL", 0, 0xf008, 0xf00c, -1},
};

/* How fields.def writes places and signs. */
/* clang-format off */
#define AT(offset, msb, lsb) {offset, lsb, (msb) - (lsb) + 1}
#define NOWHERE {0, 0, 0}
#define BOTH(offset, msb, lsb) {AT(offset, msb, lsb), AT(offset, msb, lsb)}
#define EACH(offset, msb, lsb, offset2, msb2, lsb2) {AT(offset, msb, lsb), AT(offset2, msb2, lsb2)}
#define RK3588(offset, msb, lsb) {AT(offset, msb, lsb), NOWHERE}
#define RK356X(offset, msb, lsb) {NOWHERE, AT(offset, msb, lsb)}
/* clang-format on */
#define UNSIGNED 0
#define SIGNED 1

const struct rk_field rk_fields[RK_FIELD_COUNT] = {
#define RK_FIELD(block, reg, field, place, sign, meaning) {#field, meaning, RK_##block, place, sign},
#include "npu/rockchip/hw/fields.def"
};

#undef BOTH
#undef RK3588
#undef RK356X
#define BOTH (1 << RK_GENERATION_RK3588 | 1 << RK_GENERATION_RK356X)
#define RK3588 (1 << RK_GENERATION_RK3588)
#define RK356X (1 << RK_GENERATION_RK356X)

const struct rk_register rk_register_table[] = {
#define RK_REGISTER(block, name, offset, generations) {#name, RK_##block, offset, generations},
#include "npu/rockchip/hw/fields.def"
};

const size_t rk_register_count = sizeof(rk_register_table) / sizeof(rk_register_table[0]);

/* The first register of the table at or behind an offset. */
static size_t lower_bound(uint16_t offset)
{
    size_t low = 0, high = rk_register_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (rk_register_table[middle].offset < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct rk_register *rk_register_at(uint16_t offset)
{
    size_t at = lower_bound(offset);
    return at < rk_register_count && rk_register_table[at].offset == offset ? &rk_register_table[at] : NULL;
}

const struct rk_register *rk_register_of(enum rk_generation generation, uint16_t offset)
{
    for (size_t i = lower_bound(offset); i < rk_register_count && rk_register_table[i].offset == offset; i++)
        if (rk_register_table[i].generations >> generation & 1)
            return &rk_register_table[i];
    return NULL;
}

enum rk_block rk_block_at(uint16_t offset)
{
    for (unsigned block = 0; block < RK_BLOCK_COUNT; block++)
        if (offset >= rk_blocks[block].first && offset < rk_blocks[block].end)
            return (enum rk_block)block;
    return RK_BLOCK_COUNT;
}

enum rk_block rk_block_of_target(uint32_t target)
{
    for (unsigned block = 0; block < RK_BLOCK_COUNT; block++)
        if (target != 0 && rk_blocks[block].target == target)
            return (enum rk_block)block;
    return RK_BLOCK_COUNT;
}

bool rk_field_is_reserved(const struct rk_field *field)
{
    static const char reserved[] = "RESERVED";
    return strncmp(field->name, reserved, sizeof(reserved) - 1) == 0;
}

unsigned rk_field_next(enum rk_generation generation, uint16_t offset, unsigned from)
{
    for (unsigned i = from; i < RK_FIELD_COUNT; i++) {
        struct rk_field_place place = rk_fields[i].at[generation];
        if (place.width > 0 && place.offset == offset)
            return i;
    }
    return RK_FIELD_COUNT;
}

/* All bits of a field, where its lowest one is bit 0. */
static uint32_t mask_of(struct rk_field_place place)
{
    return (uint32_t)((UINT64_C(1) << place.width) - 1);
}

uint32_t rk_field_extract(uint32_t word, enum rk_generation generation, enum rk_field_id field)
{
    struct rk_field_place place = rk_fields[field].at[generation];
    uint32_t value = word >> place.lsb & mask_of(place);
    uint32_t sign = rk_fields[field].is_signed && place.width > 0 ? UINT32_C(1) << (place.width - 1) : 0;
    return (value ^ sign) - sign;
}

/* The word of the file that a field is in; NULL: none, as programs can't reach it. */
static const uint32_t *word_of(const struct rk_registers *registers, struct rk_field_place place)
{
    return place.width > 0 && place.offset / 4 < RK_REGISTER_WORDS ? &registers->word[place.offset / 4] : NULL;
}

uint32_t rk_get(const struct rk_registers *registers, enum rk_generation generation, enum rk_field_id field)
{
    const uint32_t *word = word_of(registers, rk_fields[field].at[generation]);
    return word != NULL ? rk_field_extract(*word, generation, field) : 0;
}

static bool fits(uint32_t value, struct rk_field_place place, bool is_signed)
{
    if (!is_signed)
        return (value & ~mask_of(place)) == 0;
    /* What a signed field of this width would give back. */
    uint32_t sign = UINT32_C(1) << (place.width - 1);
    return (((value & mask_of(place)) ^ sign) - sign) == value;
}

bool rk_set(struct rk_registers *registers, enum rk_generation generation, enum rk_field_id field, uint32_t value)
{
    struct rk_field_place place = rk_fields[field].at[generation];
    uint32_t *word = (uint32_t *)word_of(registers, place);
    if (word == NULL)
        return value == 0;
    if (!fits(value, place, rk_fields[field].is_signed))
        return false;
    uint32_t mask = mask_of(place);
    *word = (*word & ~(mask << place.lsb)) | (value & mask) << place.lsb;
    return true;
}
