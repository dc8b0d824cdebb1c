/* SPDX-License-Identifier: MIT */
/* The table of registers and fields against itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "npu/rockchip/hw/registers.h"

static bool has(const struct rk_field *field, int generation)
{
    return field->at[generation].width > 0;
}

/* In the file of registers that programs write. */
static bool is_reachable(const struct rk_field *field, int generation)
{
    return has(field, generation) && field->at[generation].offset / 4 < RK_REGISTER_WORDS;
}

static uint32_t bits_of(struct rk_field_place place)
{
    return (uint32_t)((UINT64_C(1) << place.width) - 1) << place.lsb;
}

static void registers_ascend_and_stand_in_their_block(void **state)
{
    for (size_t i = 0; i < rk_register_count; i++) {
        const struct rk_register *reg = &rk_register_table[i];
        if (i > 0)
            assert_true(reg[-1].offset <= reg->offset);
        if (i > 0 && reg[-1].offset == reg->offset)
            assert_int_equal(reg[-1].generations & reg->generations, 0);
        assert_int_equal(rk_block_at(reg->offset), reg->block);
        assert_int_equal(reg->offset % 4, 0);
        assert_true(reg->generations > 0 && reg->generations < 4);
        assert_int_equal(rk_register_at(reg->offset)->offset, reg->offset);
        for (int g = 0; g < RK_GENERATION_COUNT; g++)
            if (reg->generations >> g & 1)
                assert_ptr_equal(rk_register_of((enum rk_generation)g, reg->offset), reg);
    }
}

static void unknown_offsets_have_no_register(void **state)
{
    size_t known = 0;
    for (uint32_t offset = 0; offset <= UINT16_MAX; offset++)
        known += rk_register_at((uint16_t)offset) != NULL;
    size_t offsets = 0;
    for (size_t i = 0; i < rk_register_count; i++)
        offsets += i == 0 || rk_register_table[i].offset != rk_register_table[i - 1].offset;
    assert_int_equal(known, offsets);
    assert_null(rk_register_at(0x1006));
    assert_null(rk_register_of(RK_GENERATION_RK3588, 0x2004));
    assert_null(rk_register_of(RK_GENERATION_RK356X, 0x4058));
    assert_int_equal(rk_block_at(0x0800), RK_BLOCK_COUNT);
    assert_int_equal(rk_block_of_target(0x0201), RK_CNA);
    assert_int_equal(rk_block_of_target(0x0200), RK_BLOCK_COUNT);
    assert_int_equal(rk_block_of_target(0), RK_BLOCK_COUNT);
}

/* Every register's 32 bits belong to one field each, and fields stand in registers of their block. */
static void fields_cover_every_bit_once(void **state)
{
    for (int g = 0; g < RK_GENERATION_COUNT; g++) {
        static uint32_t claimed[0x4000];
        memset(claimed, 0, sizeof(claimed));
        for (int i = 0; i < RK_FIELD_COUNT; i++) {
            const struct rk_field *field = &rk_fields[i];
            struct rk_field_place place = field->at[g];
            if (!has(field, g))
                continue;
            assert_true(place.lsb + place.width <= 32);
            assert_non_null(rk_register_of((enum rk_generation)g, place.offset));
            assert_int_equal(rk_block_at(place.offset), field->block);
            assert_int_equal(claimed[place.offset / 4] & bits_of(place), 0);
            claimed[place.offset / 4] |= bits_of(place);
        }
        for (size_t i = 0; i < rk_register_count; i++)
            if (rk_register_table[i].generations >> g & 1)
                assert_int_equal(claimed[rk_register_table[i].offset / 4], UINT32_MAX);
    }
}

static void names_are_unique_and_meanings_are_there(void **state)
{
    for (int g = 0; g < RK_GENERATION_COUNT; g++) {
        for (int i = 0; i < RK_FIELD_COUNT; i++) {
            if (!has(&rk_fields[i], g))
                continue;
            uint16_t offset = rk_fields[i].at[g].offset;
            for (unsigned k = rk_field_next((enum rk_generation)g, offset, 0); k < RK_FIELD_COUNT;
                 k = rk_field_next((enum rk_generation)g, offset, k + 1))
                assert_true((int)k == i || strcmp(rk_fields[k].name, rk_fields[i].name) != 0 ||
                            rk_field_is_reserved(&rk_fields[i]));
            assert_true(rk_fields[i].meaning[0] != '\0');
        }
    }
}

static void values_come_back(void **state)
{
    static struct rk_registers registers, none;
    for (int g = 0; g < RK_GENERATION_COUNT; g++) {
        enum rk_generation generation = (enum rk_generation)g;
        for (int i = 0; i < RK_FIELD_COUNT; i++) {
            enum rk_field_id id = (enum rk_field_id)i;
            if (!is_reachable(&rk_fields[i], g))
                continue;
            struct rk_field_place place = rk_fields[i].at[g];
            uint32_t top = (uint32_t)((UINT64_C(1) << place.width) - 1);
            uint32_t value = rk_fields[i].is_signed ? (uint32_t)-1 : top;
            assert_true(rk_set(&registers, generation, id, value));
            assert_int_equal(rk_get(&registers, generation, id), value);
            assert_int_equal(registers.word[place.offset / 4], bits_of(place));
            assert_int_equal(rk_field_extract(registers.word[place.offset / 4], generation, id), value);
            assert_true(rk_set(&registers, generation, id, 0));
            assert_int_equal(rk_get(&registers, generation, id), 0);
            assert_memory_equal(&registers, &none, sizeof(none));
            registers.word[place.offset / 4] = ~bits_of(place);
            assert_int_equal(rk_get(&registers, generation, id), 0);
            assert_true(rk_set(&registers, generation, id, value));
            assert_int_equal(registers.word[place.offset / 4], UINT32_MAX);
            registers.word[place.offset / 4] = 0;
        }
    }
}

static void what_does_not_fit_is_refused(void **state)
{
    static struct rk_registers registers, none;
    for (int g = 0; g < RK_GENERATION_COUNT; g++) {
        enum rk_generation generation = (enum rk_generation)g;
        for (int i = 0; i < RK_FIELD_COUNT; i++) {
            enum rk_field_id id = (enum rk_field_id)i;
            unsigned width = rk_fields[i].at[g].width;
            if (!is_reachable(&rk_fields[i], g)) {
                assert_true(rk_set(&registers, generation, id, 0));
                assert_false(rk_set(&registers, generation, id, 1));
                assert_int_equal(rk_get(&registers, generation, id), 0);
            } else if (width < 32 && rk_fields[i].is_signed) {
                uint32_t half = UINT32_C(1) << (width - 1);
                assert_false(rk_set(&registers, generation, id, half));
                assert_false(rk_set(&registers, generation, id, 0 - half - 1));
                assert_true(rk_set(&registers, generation, id, 0 - half));
                assert_int_equal(rk_get(&registers, generation, id), 0 - half);
                assert_true(rk_set(&registers, generation, id, half - 1));
                assert_int_equal(rk_get(&registers, generation, id), half - 1);
                assert_true(rk_set(&registers, generation, id, 0));
            } else if (width < 32) {
                assert_false(rk_set(&registers, generation, id, UINT32_C(1) << width));
                assert_false(rk_set(&registers, generation, id, UINT32_MAX));
            }
            assert_memory_equal(&registers, &none, sizeof(none));
        }
    }
}

/* The specification's table of what differs (section 17), in the registers' own bits. */
static void generations_differ_where_they_should(void **state)
{
    static const struct {
        enum rk_field_id field;
        uint32_t value;
        struct {
            uint16_t offset;
            uint32_t word;
        } at[RK_GENERATION_COUNT];
    } cases[] = {
        {RK_DPU_BS_CFG_BS_ALU_ALGO, 2, {{0x4040, 0x20000}, {0x4040, 0x8}}},
        {RK_DPU_BN_CFG_BN_ALU_ALGO, 2, {{0x4060, 0x20000}, {0x4060, 0x8}}},
        {RK_DPU_EW_CFG_EW_ALU_ALGO, 2, {{0x4070, 0x20000}, {0x4070, 0x10}}},
        {RK_DPU_FEATURE_MODE_CFG_CONV_MODE, 3, {{0x400c, 0x18}, {0x400c, 0x30}}},
        {RK_DPU_FEATURE_MODE_CFG_OUTPUT_MODE, 2, {{0x400c, 0x4}, {0x400c, 0x8}}},
        {RK_CNA_PAD_CON1_PAD_VALUE, 0xffffff80, {{0x1184, 0xffffff80}, {0x1068, 0xff800000}}},
        {RK_CORE_DATAOUT_SIZE_0_DATAOUT_HEIGHT, 9, {{0x3014, 0x90000}, {0x3010, 0x90000}}},
        {RK_CORE_DATAOUT_SIZE_1_DATAOUT_CHANNEL, 0x2f, {{0x3018, 0x2f}, {0x3014, 0x2f}}},
        {RK_CORE_MISC_CFG_DW_EN, 1, {{0x3010, 2}, {0x300c, 2}}},
        {RK_DPU_DST_SURF_STRIDE_DST_SURF_STRIDE, 49, {{0x4024, 49 * 16}, {0x4024, 49 * 8}}},
    };
    static struct rk_registers registers;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (int g = 0; g < RK_GENERATION_COUNT; g++) {
            uint32_t *word = &registers.word[cases[i].at[g].offset / 4];
            assert_true(rk_set(&registers, (enum rk_generation)g, cases[i].field, cases[i].value));
            assert_int_equal(*word, cases[i].at[g].word);
            *word = 0;
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(registers_ascend_and_stand_in_their_block),
        cmocka_unit_test(unknown_offsets_have_no_register),
        cmocka_unit_test(fields_cover_every_bit_once),
        cmocka_unit_test(names_are_unique_and_meanings_are_there),
        cmocka_unit_test(values_come_back),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(generations_differ_where_they_should),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
