/* SPDX-License-Identifier: MIT */
/* The table against the specification's programs: orders, and no word that it doesn't know. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "programs.h"

#define MOST_SHOWN 20

static struct programs programs;

static bool is_start(uint64_t word)
{
    return rk_word_target(word) == RK_TARGET_START;
}

/* Register writes of the program that begins at a word, without link and amount; `mask` gets what it starts. */
static size_t writes_of(const struct program *program, size_t first, size_t *end, uint32_t *mask)
{
    for (*end = first; *end < program->count && !is_start(program->words[*end]); ++*end)
        ;
    assert_true(*end < program->count);
    *mask = rk_word_value(program->words[(*end)++]);
    return *end - first - 4;
}

static enum rk_program_kind kind_of(uint32_t mask)
{
    if (mask & RK_START_CNA)
        return RK_PROGRAM_CONVOLUTION;
    return mask & RK_START_PPU ? RK_PROGRAM_POOLING : RK_PROGRAM_ELEMENTWISE;
}

static bool is_in_order(const struct program *program, size_t first, const struct rk_order *order)
{
    for (size_t i = 0; i < order->count; i++)
        if (rk_word_offset(program->words[first + i]) != order->offsets[i])
            return false;
    return true;
}

/*
 * Every whole program has the words of its kind's order and nothing else. Two kinds of other programs are known: tables
 * are loaded behind an elementwise one, and the vendor's delta tasks are shorter.
 */
static void programs_are_in_order(void **state)
{
    unsigned whole[RK_GENERATION_COUNT][RK_PROGRAM_KIND_COUNT] = {{0}}, loading = 0, delta = 0;
    for (size_t i = 0; i < programs.count; i++) {
        const struct program *program = &programs.list[i];
        /* The columns of RK3588 in the table of RK3566 have RK3566's order. */
        if (strstr(program->name, "rk3588") != NULL)
            continue;
        for (size_t first = 0, end; first < program->count; first = end) {
            uint32_t mask;
            size_t writes = writes_of(program, first, &end, &mask);
            const struct rk_order *order = rk_program_order(program->generation, kind_of(mask));
            if (writes < order->count) {
                delta++;
                continue;
            }
            assert_true(is_in_order(program, first, order));
            for (size_t k = order->count; k < writes; k++)
                assert_int_equal(rk_word_offset(program->words[first + k]) & ~4u, 0x4100);
            if (writes > order->count)
                loading++;
            else
                whole[program->generation][kind_of(mask)]++;
        }
    }
    assert_true(whole[RK_GENERATION_RK3588][RK_PROGRAM_CONVOLUTION] >= 8);
    assert_true(whole[RK_GENERATION_RK3588][RK_PROGRAM_ELEMENTWISE] >= 5);
    assert_int_equal(whole[RK_GENERATION_RK3588][RK_PROGRAM_POOLING], 3);
    assert_true(whole[RK_GENERATION_RK356X][RK_PROGRAM_CONVOLUTION] >= 6);
    assert_int_equal(whole[RK_GENERATION_RK356X][RK_PROGRAM_POOLING], 1);
    assert_int_equal(loading, 2);
    assert_int_equal(delta, 1);
}

/* Of elementwise programs on RK356x none was seen: their order is inferred. */
static void orders_name_known_registers(void **state)
{
    static const size_t counts[RK_GENERATION_COUNT][RK_PROGRAM_KIND_COUNT] = {{126, 69, 26}, {133, 69, 29}};
    for (int g = 0; g < RK_GENERATION_COUNT; g++)
        for (int kind = 0; kind < RK_PROGRAM_KIND_COUNT; kind++) {
            const struct rk_order *order = rk_program_order((enum rk_generation)g, (enum rk_program_kind)kind);
            assert_int_equal(order->count, counts[g][kind]);
            for (size_t i = 0; i < order->count; i++) {
                const struct rk_register *reg = rk_register_of((enum rk_generation)g, order->offsets[i]);
                assert_non_null(reg);
                assert_true(rk_blocks[reg->block].target != 0);
            }
        }
}

static void show(const struct program *program, uint64_t word, const char *why)
{
    print_error("%s: target 0x%04x, offset 0x%04x, value 0x%08x: %s\n", program->name, (unsigned)rk_word_target(word),
                rk_word_offset(word), (unsigned)rk_word_value(word), why);
}

static bool is_known(const struct program *program, uint64_t word)
{
    const struct rk_register *reg = rk_register_of(program->generation, rk_word_offset(word));
    if (reg == NULL || rk_blocks[reg->block].target != rk_word_target(word)) {
        show(program, word, "no such register");
        return false;
    }
    for (unsigned i = rk_field_next(program->generation, reg->offset, 0); i < RK_FIELD_COUNT;
         i = rk_field_next(program->generation, reg->offset, i + 1))
        if (rk_field_is_reserved(&rk_fields[i]) &&
            rk_field_extract(rk_word_value(word), program->generation, (enum rk_field_id)i) != 0) {
            show(program, word, rk_fields[i].name);
            return false;
        }
    return true;
}

static void every_bit_that_programs_set_is_known(void **state)
{
    size_t words = 0, unknown = 0;
    for (size_t i = 0; i < programs.count; i++)
        for (size_t k = 0; k < programs.list[i].count; k++) {
            uint64_t word = programs.list[i].words[k];
            if (word == 0 || word == RK_WORD_BARRIER || is_start(word))
                continue;
            words++;
            unknown += unknown < MOST_SHOWN && !is_known(&programs.list[i], word);
        }
    print_message("%zu register writes of %zu programs\n", words, programs.count);
    assert_true(words > 4000);
    assert_int_equal(unknown, 0);
}

/* Rows that our table has finer, or with more bits: its comments say why. */
static bool is_finer(unsigned offset, const char *field)
{
    bool reserved = strcmp(field, "RESERVED_0") == 0;
    return (offset == 0x1044 && (reserved || strcmp(field, "DATA_ENTRIES") == 0)) || /* entries of packed pixels */
           (offset % 0x1000 == 4 && reserved) ||                                     /* CORE_INDEX of S_POINTERs */
           (offset == 0x4104 && reserved) ||                                         /* LUT_ACCESS_SIGN */
           ((offset == 0x3030 || offset == 0x40c4) && strcmp(field, "VALUE") == 0);  /* RESERVED_0 here */
}

static bool has_row(unsigned offset, const char *reg, const char *field, unsigned msb, unsigned lsb)
{
    const struct rk_register *known = rk_register_of(RK_GENERATION_RK3588, (uint16_t)offset);
    if (known == NULL || strcmp(known->name, reg) != 0)
        return false;
    for (unsigned i = rk_field_next(RK_GENERATION_RK3588, (uint16_t)offset, 0); i < RK_FIELD_COUNT;
         i = rk_field_next(RK_GENERATION_RK3588, (uint16_t)offset, i + 1)) {
        struct rk_field_place place = rk_fields[i].at[RK_GENERATION_RK3588];
        if (strcmp(rk_fields[i].name, field) == 0 && place.lsb == lsb && place.width == msb - lsb + 1)
            return true;
    }
    return false;
}

/* block,offset,register,field,msb,lsb,meaning */
static void rows_of_the_specification_are_in_the_table(void **state)
{
    FILE *file = fopen(MICA_SHARED_DIR "/spec/rockchip/registers.csv", "r");
    assert_non_null(file);
    char line[512], block[16], reg[64], field[64];
    unsigned offset, msb, lsb, rows = 0, finer = 0;
    while (fgets(line, sizeof(line), file) != NULL) {
        if (sscanf(line, "%15[^,],%x,%63[^,],%63[^,],%u,%u", block, &offset, reg, field, &msb, &lsb) != 6)
            continue;
        rows++;
        if (has_row(offset, reg, field, msb, lsb)) {
            assert_string_equal(rk_blocks[rk_block_at((uint16_t)offset)].name, block);
            continue;
        }
        finer++;
        if (!is_finer(offset, field))
            fail_msg("%s.%s.%s, bits %u to %u", block, reg, field, msb, lsb);
    }
    fclose(file);
    assert_int_equal(rows, 714);
    assert_int_equal(finer, 11);
}

int main(void)
{
    programs = programs_load();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_of_the_specification_are_in_the_table),
        cmocka_unit_test(orders_name_known_registers),
        cmocka_unit_test(programs_are_in_order),
        cmocka_unit_test(every_bit_that_programs_set_is_known),
    };
    int result = cmocka_run_group_tests(tests, NULL, NULL);
    programs_release(&programs);
    return result;
}
