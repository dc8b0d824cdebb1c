/* SPDX-License-Identifier: MIT */
/* One word of a register program (specification, section 3). */
#include <stdarg.h>
#include <stdio.h>

#include "npu/rockchip/decode/internal.h"

struct line {
    char *text;
    size_t size, length;
};

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static void
append(struct line *line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    bool room = line->length < line->size;
    int length =
        vsnprintf(room ? line->text + line->length : NULL, room ? line->size - line->length : 0, format, arguments);
    va_end(arguments);
    if (length > 0)
        line->length += (size_t)length;
}

static bool has_csc(enum rk_generation generation)
{
    return generation == RK_GENERATION_RK356X;
}

/* The start bits that mean a block. */
static uint32_t known_starts(enum rk_generation generation)
{
    uint32_t known = 0;
    for (unsigned block = 0; block < RK_BLOCK_COUNT; block++)
        if (rk_blocks[block].start_bit >= 0 && (block != RK_CSC || has_csc(generation)))
            known |= UINT32_C(1) << rk_blocks[block].start_bit;
    return known;
}

void rk_start_names(enum rk_generation generation, uint32_t mask, char *text, size_t size)
{
    struct line line = {text, size, 0};
    mask &= known_starts(generation);
    append(&line, "%s", mask == 0 ? "nothing" : "");
    for (unsigned block = 0; block < RK_BLOCK_COUNT; block++)
        if (rk_blocks[block].start_bit >= 0 && mask >> rk_blocks[block].start_bit & 1)
            append(&line, "%s%s", line.length > 0 ? " " : "", rk_blocks[block].name);
}

static void look_at_register(enum rk_generation generation, uint32_t target, struct rk_word_view *view)
{
    const struct rk_register *known = rk_register_of(generation, view->offset);
    enum rk_block block = rk_block_of_target(target);
    view->kind = RK_WORD_UNKNOWN;
    snprintf(view->name, sizeof(view->name), "0x%04x:0x%04x", (unsigned)target, view->offset);
    if (block == RK_BLOCK_COUNT || (block == RK_CSC && !has_csc(generation))) {
        snprintf(view->problem, sizeof(view->problem), "no block has this target");
    } else if (known == NULL) {
        snprintf(view->problem, sizeof(view->problem), "%s has no known register there", rk_blocks[block].name);
    } else if (known->block != block) {
        snprintf(view->problem, sizeof(view->problem), "the target is %s, the register %s.%s", rk_blocks[block].name,
                 rk_blocks[known->block].name, known->name);
    } else {
        view->kind = RK_WORD_REGISTER;
        snprintf(view->name, sizeof(view->name), "%s.%s", rk_blocks[block].name, known->name);
    }
}

void rk_word_look(enum rk_generation generation, uint64_t word, struct rk_word_view *view)
{
    *view = (struct rk_word_view){.value = rk_word_value(word), .offset = rk_word_offset(word)};
    uint32_t target = rk_word_target(word);
    if (word == 0) {
        view->kind = RK_WORD_NOTHING;
        snprintf(view->name, sizeof(view->name), "NOTHING");
    } else if (word == RK_WORD_BARRIER) {
        view->kind = RK_WORD_IS_BARRIER;
        snprintf(view->name, sizeof(view->name), "BARRIER");
    } else if (target == RK_TARGET_START && view->offset == RK_START_OFFSET) {
        view->kind = RK_WORD_START;
        snprintf(view->name, sizeof(view->name), "START");
        if ((view->value & ~known_starts(generation)) != 0)
            snprintf(view->problem, sizeof(view->problem), "bits that stand for no block");
    } else {
        look_at_register(generation, target, view);
    }
}

static void append_fields(struct line *line, enum rk_generation generation, const struct rk_word_view *view)
{
    const char *between = ":";
    for (unsigned i = rk_field_next(generation, view->offset, 0); i < RK_FIELD_COUNT;
         i = rk_field_next(generation, view->offset, i + 1)) {
        uint32_t value = rk_field_extract(view->value, generation, (enum rk_field_id)i);
        if (value == 0)
            continue;
        if (rk_fields[i].is_signed)
            append(line, "%s %s %d", between, rk_fields[i].name, (int)(int32_t)value);
        else
            append(line, "%s %s %u", between, rk_fields[i].name, (unsigned)value);
        between = ",";
    }
}

size_t rk_decode_word(enum rk_generation generation, uint64_t word, char *text, size_t size)
{
    struct rk_word_view view;
    struct line line = {text, size, 0};
    char blocks[RK_WORD_NAME_BYTES];
    rk_word_look(generation, word, &view);
    append(&line, "%s", view.name);
    if (view.kind == RK_WORD_REGISTER || view.kind == RK_WORD_UNKNOWN || view.kind == RK_WORD_START)
        append(&line, " = 0x%08x", (unsigned)view.value);
    if (view.kind == RK_WORD_START) {
        rk_start_names(generation, view.value, blocks, sizeof(blocks));
        append(&line, ": %s", blocks);
    }
    if (view.kind == RK_WORD_REGISTER)
        append_fields(&line, generation, &view);
    if (view.problem[0] != '\0')
        append(&line, " (%s)", view.problem);
    return line.length;
}
