/* SPDX-License-Identifier: MIT */
/* Programs, word by word, into the sink. */
#include <stdio.h>
#include <string.h>

#include "npu/rockchip/decode/internal.h"

#define WORD_BYTES 8u

struct walk {
    const struct rk_decode *decode;
    uint64_t address;
    const unsigned char *bytes;
    size_t count, at; /* words */
};

static uint64_t word_at(const struct walk *walk, size_t index)
{
    uint64_t word;
    memcpy(&word, walk->bytes + index * WORD_BYTES, sizeof(word));
    return word;
}

static uint64_t address_of(const struct walk *walk, size_t index)
{
    return walk->address + (uint64_t)index * WORD_BYTES;
}

static void open(const struct rk_decode *decode, const char *kind, uint64_t address, const char *title)
{
    decode->sink->open(decode->sink->user, kind, address, title);
}

static void show(const struct rk_decode *decode, const struct mica_decoded *field)
{
    decode->sink->field(decode->sink->user, field);
}

static void close(const struct rk_decode *decode)
{
    decode->sink->close(decode->sink->user);
}

/* What one value says beyond itself; "": nothing. */
static void explain(const struct rk_decode *decode, unsigned field, uint32_t value, char *text, size_t size)
{
    text[0] = '\0';
    if (field == RK_PC_REGISTER_AMOUNTS_PC_DATA_AMOUNT && value > 0) {
        if (decode->generation == RK_GENERATION_RK3588)
            snprintf(text, size, "the next program has %u or %u words", 2 * value + 1, 2 * value + 2);
        else
            snprintf(text, size, "the next program has %u words", value + 1);
    }
}

static void show_field(const struct rk_decode *decode, unsigned index, uint32_t word)
{
    const struct rk_field *field = &rk_fields[index];
    uint32_t value = rk_field_extract(word, decode->generation, (enum rk_field_id)index);
    bool reserved = rk_field_is_reserved(field);
    char text[64];
    if (reserved && value == 0)
        return;
    explain(decode, index, value, text, sizeof(text));
    show(decode, &(struct mica_decoded){
                     .name = field->name,
                     .value = field->is_signed ? (uint64_t)(int64_t)(int32_t)value : value,
                     .is_signed = field->is_signed,
                     .text = text[0] != '\0' ? text : NULL,
                     .meaning = field->meaning,
                     .unknown = reserved,
                     .idle = value == 0,
                 });
}

static void show_register(const struct walk *walk, const struct rk_word_view *view)
{
    const struct rk_decode *decode = walk->decode;
    char title[RK_WORD_NAME_BYTES + 16];
    snprintf(title, sizeof(title), "%s = 0x%08x", view->name, (unsigned)view->value);
    open(decode, "register", address_of(walk, walk->at), title);
    for (unsigned i = rk_field_next(decode->generation, view->offset, 0); i < RK_FIELD_COUNT;
         i = rk_field_next(decode->generation, view->offset, i + 1))
        show_field(decode, i, view->value);
    close(decode);
}

static void show_other(const struct rk_decode *decode, const struct rk_word_view *view)
{
    static const char *const meanings[] = {
        [RK_WORD_NOTHING] = "does nothing",
        [RK_WORD_IS_BARRIER] = "what comes next waits for all before",
        [RK_WORD_START] = "starts the blocks",
        [RK_WORD_UNKNOWN] = NULL,
    };
    char blocks[RK_WORD_NAME_BYTES] = "";
    if (view->kind == RK_WORD_START)
        rk_start_names(decode->generation, view->value, blocks, sizeof(blocks));
    const char *text = view->problem[0] != '\0' ? view->problem : blocks;
    show(decode, &(struct mica_decoded){
                     .name = view->name,
                     .value = view->value,
                     .text = text[0] != '\0' ? text : NULL,
                     .meaning = meanings[view->kind],
                     .unknown = view->problem[0] != '\0',
                     .idle = view->kind == RK_WORD_NOTHING,
                 });
}

static void show_word(const struct walk *walk, const struct rk_word_view *view)
{
    if (view->kind == RK_WORD_REGISTER)
        show_register(walk, view);
    else
        show_other(walk->decode, view);
}

static bool is_start(uint64_t word)
{
    return rk_word_target(word) == RK_TARGET_START && rk_word_offset(word) == RK_START_OFFSET;
}

/* The program's words from here on: to its start word, or all there are. */
static size_t program_length(const struct walk *walk, uint32_t *mask)
{
    for (size_t i = walk->at; i < walk->count; i++) {
        if (!is_start(word_at(walk, i)))
            continue;
        *mask = rk_word_value(word_at(walk, i));
        return i + 1 - walk->at;
    }
    return walk->count - walk->at;
}

static void show_program(struct walk *walk)
{
    uint32_t mask = 0;
    size_t length = program_length(walk, &mask), end = walk->at + length;
    char blocks[RK_WORD_NAME_BYTES], title[RK_WORD_NAME_BYTES + 64];
    rk_start_names(walk->decode->generation, mask, blocks, sizeof(blocks));
    bool ends = is_start(word_at(walk, end - 1));
    snprintf(title, sizeof(title), "%zu words, %s%s", length, ends ? "starts " : "no start word", ends ? blocks : "");
    open(walk->decode, "task", address_of(walk, walk->at), title);
    for (; walk->at < end; walk->at++) {
        struct rk_word_view view;
        rk_word_look(walk->decode->generation, word_at(walk, walk->at), &view);
        show_word(walk, &view);
    }
    close(walk->decode);
}

static void show_padding(struct walk *walk)
{
    size_t first = walk->at;
    while (walk->at < walk->count && word_at(walk, walk->at) == 0)
        walk->at++;
    char title[32];
    snprintf(title, sizeof(title), "%zu words of 0", walk->at - first);
    open(walk->decode, "padding", address_of(walk, first), title);
    close(walk->decode);
}

void rk_decode_programs(const struct rk_decode *decode, uint64_t address, const void *bytes, size_t size)
{
    struct walk walk = {decode, address, bytes, size / WORD_BYTES, 0};
    while (walk.at < walk.count) {
        if (word_at(&walk, walk.at) == 0)
            show_padding(&walk);
        else
            show_program(&walk);
    }
}

void rk_decode_tasks(const struct rk_decode *decode, const uint32_t *stream, size_t count)
{
    for (size_t i = 0; i + 1 < count; i += 2) {
        uint64_t address = stream[i], bytes = (uint64_t)stream[i + 1] * WORD_BYTES;
        const void *host = decode->memory != NULL ? decode->memory->at(decode->memory->user, address, bytes) : NULL;
        if (host != NULL) {
            rk_decode_programs(decode, address, host, (size_t)bytes);
            continue;
        }
        char title[64];
        snprintf(title, sizeof(title), "%u words that are in no buffer", (unsigned)stream[i + 1]);
        open(decode, "task", address, title);
        close(decode);
    }
}
