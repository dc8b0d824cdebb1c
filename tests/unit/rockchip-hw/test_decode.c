/* SPDX-License-Identifier: MIT */
/* The decoder on the specification's programs, on captures of the open driver and on words of no meaning. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "captures.h"
#include "npu/rockchip/decode/decode.h"
#include "programs.h"

#define WORD_BYTES 8u

static struct programs programs;

/* What came out of a decoder. */
struct seen {
    unsigned depth, deepest, tasks, registers, fields, others, unknown, starts, absent;
    size_t padding;    /* words */
    uint64_t last;     /* address */
    const char *shown; /* report unknown things under this name */
};

static void on_open(void *user, const char *kind, uint64_t address, const char *title)
{
    struct seen *seen = user;
    seen->depth++;
    seen->deepest = seen->depth > seen->deepest ? seen->depth : seen->deepest;
    seen->tasks += strcmp(kind, "task") == 0;
    seen->registers += strcmp(kind, "register") == 0;
    seen->absent += strstr(title, "in no buffer") != NULL;
    if (strcmp(kind, "padding") == 0)
        seen->padding += strtoull(title, NULL, 10);
    seen->last = address;
}

static void on_field(void *user, const struct mica_decoded *field)
{
    struct seen *seen = user;
    assert_true(seen->depth == 1 || seen->depth == 2);
    if (seen->depth == 1)
        seen->others++;
    else
        seen->fields++;
    assert_true(field->name != NULL && field->name[0] != '\0');
    seen->unknown += field->unknown;
    seen->starts += strcmp(field->name, "START") == 0;
    if (field->unknown && seen->shown != NULL)
        print_error("%s, at 0x%llx: %s = 0x%llx\n", seen->shown, (unsigned long long)seen->last, field->name,
                    (unsigned long long)field->value);
}

static void on_close(void *user)
{
    struct seen *seen = user;
    assert_true(seen->depth > 0);
    seen->depth--;
}

static struct mica_decode_sink sink_of(struct seen *seen)
{
    return (struct mica_decode_sink){seen, on_open, on_field, on_close};
}

static void every_word_is_shown(const struct seen *seen, size_t words)
{
    assert_int_equal(seen->depth, 0);
    assert_int_equal(seen->registers + seen->others + seen->padding, words);
}

static void specification_programs_are_known(void **state)
{
    for (size_t i = 0; i < programs.count; i++) {
        const struct program *program = &programs.list[i];
        struct seen seen = {.shown = program->name};
        struct mica_decode_sink sink = sink_of(&seen);
        struct rk_decode decode = {program->generation, &sink, NULL};
        unsigned starts = 0;
        for (size_t k = 0; k < program->count; k++)
            starts += rk_word_target(program->words[k]) == RK_TARGET_START;
        rk_decode_programs(&decode, 0x1000, program->words, program->count * WORD_BYTES);
        every_word_is_shown(&seen, program->count);
        assert_int_equal(seen.unknown, 0);
        assert_int_equal(seen.starts, starts);
        assert_true(seen.tasks >= starts);
    }
}

static const void *in_capture(void *user, uint64_t address, uint64_t size)
{
    const struct rk_submit *submit = user;
    for (size_t i = 0; i < submit->bo_count; i++) {
        const struct rk_bo *bo = &submit->bos[i];
        if (bo->data != NULL && address >= bo->address && size <= bo->size && address - bo->address <= bo->size - size)
            return bo->data + (address - bo->address);
    }
    return NULL;
}

static size_t decode_submit(struct rk_submit *submit, const char *name)
{
    struct seen seen = {.shown = name};
    struct mica_decode_sink sink = sink_of(&seen);
    struct mica_decode_memory memory = {submit, in_capture};
    struct rk_decode decode = {RK_GENERATION_RK3588, &sink, &memory};
    size_t words = 0;
    for (size_t i = 0; i < submit->task_count; i++)
        words += submit->tasks[2 * i + 1];
    rk_decode_tasks(&decode, submit->tasks, 2 * submit->task_count);
    every_word_is_shown(&seen, words);
    assert_int_equal(seen.unknown, 0);
    assert_int_equal(seen.absent, 0);
    assert_int_equal(seen.tasks, submit->task_count);
    assert_int_equal(seen.starts, submit->task_count);
    return words;
}

static void captures_are_known(void **state)
{
    struct rk_captures captures = rk_captures_load();
    size_t words = 0;
    for (size_t i = 0; i < captures.count; i++)
        words += decode_submit(&captures.list[i], captures.list[i].name);
    print_message("%zu words of %zu submissions\n", words, captures.count);
    assert_true(captures.count >= 17);
    assert_true(words >= 17 * 130);
    rk_captures_release(&captures);
}

static uint32_t random_word(void)
{
    static uint64_t seed = 1;
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(seed >> 32);
}

/* Anything at all, or a known register with any value, or what ends a program. */
static uint64_t random_program_word(void)
{
    uint32_t kind = random_word() % 8;
    const struct rk_register *reg = &rk_register_table[random_word() % rk_register_count];
    switch (kind) {
    case 0:
        return (uint64_t)random_word() << 32 | random_word();
    case 1:
        return 0;
    case 2:
        return rk_word(RK_TARGET_START, RK_START_OFFSET, random_word() >> random_word() % 32);
    case 3:
        return rk_word(rk_blocks[random_word() % RK_BLOCK_COUNT].target, reg->offset, random_word());
    default:
        return rk_word(rk_blocks[reg->block].target, reg->offset, random_word() >> random_word() % 32);
    }
}

/* A line is the same whatever the room for it, and no byte behind the room is touched. */
static void check_line(enum rk_generation generation, uint64_t word)
{
    char whole[1024];
    size_t length = rk_decode_word(generation, word, whole, sizeof(whole)), room = random_word() % (length + 2);
    assert_true(length < sizeof(whole));
    assert_int_equal(strlen(whole), length);
    char *text = malloc(room + 1);
    assert_non_null(text);
    memset(text, '#', room + 1);
    assert_int_equal(rk_decode_word(generation, word, text, room), length);
    assert_int_equal(text[room], '#');
    if (room > 0) {
        assert_int_equal(strlen(text), room > length ? length : room - 1);
        assert_memory_equal(text, whole, strlen(text));
    }
    free(text);
}

static void random_words_do_no_harm(void **state)
{
    for (unsigned round = 0; round < 3000; round++) {
        size_t count = random_word() % 40, tail = random_word() % WORD_BYTES, size = count * WORD_BYTES + tail;
        /* Exactly as large as it claims to be, and unaligned, so that sanitizers see every byte too many. */
        unsigned char *bytes = malloc(size + 1);
        assert_non_null(bytes);
        memset(bytes, 0xff, size + 1);
        enum rk_generation generation = (enum rk_generation)(round % RK_GENERATION_COUNT);
        for (size_t i = 0; i < count; i++) {
            uint64_t word = random_program_word();
            memcpy(bytes + 1 + i * WORD_BYTES, &word, sizeof(word));
            check_line(generation, word);
        }
        struct seen seen = {0};
        struct mica_decode_sink sink = sink_of(&seen);
        struct rk_decode decode = {generation, &sink, NULL};
        rk_decode_programs(&decode, UINT64_MAX - round, bytes + 1, size);
        every_word_is_shown(&seen, count);
        free(bytes);
    }
}

struct region {
    uint64_t address, size;
    const unsigned char *data;
    unsigned asked;
};

static const void *in_region(void *user, uint64_t address, uint64_t size)
{
    struct region *region = user;
    region->asked++;
    bool inside =
        address >= region->address && size <= region->size && address - region->address <= region->size - size;
    return inside ? region->data + (address - region->address) : NULL;
}

static void tasks_in_no_buffer_are_said_to_be(void **state)
{
    uint64_t words[4] = {rk_word(0x0201, 0x1040, 0xb1), 0, RK_WORD_BARRIER, rk_word(0x0081, 8, 0x1d)};
    struct region region = {0x10000, sizeof(words), (const unsigned char *)words, 0};
    struct mica_decode_memory memory = {&region, in_region};
    struct seen seen = {0};
    struct mica_decode_sink sink = sink_of(&seen);
    struct rk_decode decode = {RK_GENERATION_RK3588, &sink, &memory};
    const uint32_t stream[] = {0x10000, 4, 0x10000, 5, 0x20000, UINT32_MAX, 0, 0, 0x10000};
    rk_decode_tasks(&decode, stream, sizeof(stream) / sizeof(stream[0]));
    assert_int_equal(region.asked, 4);
    assert_int_equal(seen.depth, 0);
    assert_int_equal(seen.starts, 1);
    assert_int_equal(seen.absent, 3);
    assert_int_equal(seen.registers, 1);
    decode.memory = NULL;
    rk_decode_tasks(&decode, stream, 2);
    assert_int_equal(seen.absent, 4);
}

static void assert_line(enum rk_generation generation, uint64_t word, const char *wanted)
{
    char text[512];
    rk_decode_word(generation, word, text, sizeof(text));
    assert_string_equal(text, wanted);
}

static void lines_say_what_words_are(void **state)
{
    enum rk_generation big = RK_GENERATION_RK3588, small = RK_GENERATION_RK356X;
    assert_line(big, 0, "NOTHING");
    assert_line(big, RK_WORD_BARRIER, "BARRIER");
    assert_line(big, rk_word(0x0081, 8, 0x1d), "START = 0x0000001d: CNA CORE DPU DPU_RDMA");
    assert_line(small, rk_word(0x0081, 8, 0x1f), "START = 0x0000001f: CNA CSC CORE DPU DPU_RDMA");
    assert_line(big, rk_word(0x0081, 8, 0x1f),
                "START = 0x0000001f: CNA CORE DPU DPU_RDMA (bits that stand for no block)");
    assert_line(big, rk_word(0x0081, 8, 0), "START = 0x00000000: nothing");
    assert_line(big, rk_word(0x0201, 0x100c, 0x6000a000),
                "CNA.CONV_CON1 = 0x6000a000: NONALIGN_DMA 1, GROUP_LINE_OFF 1, ARGB_IN 10");
    assert_line(big, rk_word(0x1001, 0x4040, 0x20150),
                "DPU.BS_CFG = 0x00020150: BS_ALU_ALGO 2, BS_ALU_SRC 1, "
                "BS_RELU_BYPASS 1, BS_MUL_BYPASS 1");
    assert_line(small, rk_word(0x1001, 0x4040, 0x158),
                "DPU.BS_CFG = 0x00000158: BS_ALU_ALGO 2, BS_ALU_SRC 1, "
                "BS_RELU_BYPASS 1, BS_MUL_BYPASS 1");
    assert_line(big, rk_word(0x0201, 0x1080, 0x0ffffffd), "CNA.DMA_CON2 = 0x0ffffffd: SURF_STRIDE -3");
    assert_line(big, rk_word(0x0201, 0x1184, 0xffffff80), "CNA.PAD_CON1 = 0xffffff80: PAD_VALUE -128");
    assert_line(small, rk_word(0x0201, 0x1068, 0xff800011),
                "CNA.PAD_CON0 = 0xff800011: PAD_LEFT 1, PAD_TOP 1, PAD_VALUE -128");
    assert_line(big, rk_word(0x0401, 0x2004, 0xe), "0x0401:0x2004 = 0x0000000e (no block has this target)");
    assert_line(big, rk_word(0x0201, 0x1018, 1), "0x0201:0x1018 = 0x00000001 (CNA has no known register there)");
    assert_line(big, rk_word(0x0201, 0x4004, 1),
                "0x0201:0x4004 = 0x00000001 (the target is CNA, the register DPU.S_POINTER)");
    assert_line(big, rk_word(0x0200, 0x1040, 1), "0x0200:0x1040 = 0x00000001 (no block has this target)");
    assert_line(big, rk_word(0x0041, 0, 1), "0x0041:0x0000 = 0x00000001 (no block has this target)");
}

int main(void)
{
    programs = programs_load();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_say_what_words_are), cmocka_unit_test(tasks_in_no_buffer_are_said_to_be),
        cmocka_unit_test(random_words_do_no_harm),  cmocka_unit_test(specification_programs_are_known),
        cmocka_unit_test(captures_are_known),
    };
    int result = cmocka_run_group_tests(tests, NULL, NULL);
    programs_release(&programs);
    return result;
}
