/* SPDX-License-Identifier: MIT */
/*
 * What the open driver submitted for the recorded one-operation models: every
 * task must give what the slow reference gives, as submitted and with the
 * output conversion opened up so that nothing saturates; unsigned ones but
 * the fused addition are within 1 of the CPU. The others are wrong as
 * submitted (specification, sections 9 and 14).
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/capture.h"
#include "npu/rockchip/hw/registers.h"
#include "reference.h"
#include "support.h"

#define CAPTURES MICA_SHARED_DIR "/captures"
#define MEMORY_END 0x00200000u /* of all captures */
#define OPENED 12u             /* more bits shifted out */

struct captured {
    struct mica_recording recording;
    const uint32_t *tasks; /* of all jobs: address, count */
    size_t task_count, expected_size;
    const uint8_t *expected; /* the CPU's output 0 */
    bool is_signed;          /* int8 */
};

static struct reference_registers registers;

/* Maps all buffers of the one submission with their contents. */
static void load(const char *name, struct bench *bench, struct captured *captured)
{
    char folder[512];
    struct mica_log log = {0};
    snprintf(folder, sizeof folder, "%s/%s/rk3588", CAPTURES, name);
    if (mica_recording_load(folder, &log, &captured->recording))
        fail_msg("%s", log.last_error);
    assert_int_equal(captured->recording.submit_count, 1);
    assert_int_equal(captured->recording.output_count, 1);
    assert_int_equal(mica_recording_map(&captured->recording, 0, &bench->memory), 0);
    captured->tasks = captured->recording.submits[0].stream;
    captured->task_count = captured->recording.submits[0].words / 2;
    captured->expected = captured->recording.outputs[0].expected;
    captured->expected_size = captured->recording.outputs[0].size;
    captured->is_signed = !captured->recording.outputs[0].flipped;
}

static void run_reference(const struct captured *captured, uint8_t *memory)
{
    for (size_t i = 0; i < captured->task_count; i++) {
        uint32_t count = captured->tasks[2 * i + 1];
        static uint64_t words[MAX_WORDS];
        assert_true(count <= MAX_WORDS);
        memcpy(words, memory + captured->tasks[2 * i], 8 * (size_t)count);
        reference_read(&registers, words, count);
        reference_convolution(&registers, memory);
    }
}

static void run_simulator(struct bench *bench, const struct captured *captured)
{
    const struct mica_recorded_submit *submit = &captured->recording.submits[0];
    for (size_t i = 0; i < submit->job_count; i++) {
        size_t count, words;
        const uint32_t *tasks = mica_recording_job(submit, i, &words);
        if (rk_sim_run(bench->sim, tasks, words, NULL, 0, &count))
            fail_msg("%s", bench->log.last_error);
        assert_int_equal(count, words / 2);
    }
}

/* Everything that is mapped, byte for byte: also what must not be written. */
static void compare_memory(const struct bench *bench, const uint8_t *expected)
{
    for (uint64_t page = 0; page < MEMORY_END; page += MICA_DEVICE_PAGE)
        if (bench->memory.pages[page / MICA_DEVICE_PAGE] &&
            memcmp(bench->memory.base + page, expected + page, MICA_DEVICE_PAGE))
            fail_msg("the page at 0x%llx isn't what the reference makes of it", (unsigned long long)page);
}

static uint8_t *copy_memory(const struct bench *bench)
{
    uint8_t *copy = calloc(1, MEMORY_END);
    assert_non_null(copy);
    for (uint64_t page = 0; page < MEMORY_END; page += MICA_DEVICE_PAGE)
        if (bench->memory.pages[page / MICA_DEVICE_PAGE])
            memcpy(copy + page, bench->memory.base + page, MICA_DEVICE_PAGE);
    return copy;
}

static void open_conversion(struct bench *bench, const struct captured *captured)
{
    for (size_t i = 0; i < captured->task_count; i++)
        for (uint32_t j = 0; j < captured->tasks[2 * i + 1]; j++) {
            uint8_t *at = bench_at(bench, captured->tasks[2 * i] + 8 * j);
            uint64_t word;
            memcpy(&word, at, sizeof word);
            if (rk_word_offset(word) == 0x4080)
                word = rk_word(rk_word_target(word), 0x4080, 0);
            else if (rk_word_offset(word) == 0x4088)
                word = rk_word(rk_word_target(word), 0x4088, rk_word_value(word) + OPENED);
            memcpy(at, &word, sizeof word);
        }
}

/* How many of the CPU's bytes differ, *largest: by how much at most. The last task wrote the output. */
static size_t differences(const struct bench *bench, const struct captured *captured, int *largest)
{
    size_t different = 0, channels = (registers.word[0x403c / 4] >> 16) + 1;
    const uint8_t *out = bench->memory.base + registers.word[0x4020 / 4];
    *largest = 0;
    for (size_t i = 0; i < captured->expected_size; i++) {
        size_t c = i % channels, p = i / channels;
        int value = out[c / 16 * registers.word[0x4024 / 4] + p * 16 + c % 16] ^ 0x80;
        int difference = abs(value - captured->expected[i]);
        different += difference != 0;
        *largest = difference > *largest ? difference : *largest;
    }
    return different;
}

static size_t distinct(const struct bench *bench)
{
    bool seen[256] = {false};
    size_t count = 0, size = (size_t)(registers.word[0x4030 / 4] + 1) * (registers.word[0x4034 / 4] + 1) * 16;
    for (size_t i = 0; i < size; i++) {
        uint8_t value = bench->memory.base[registers.word[0x4020 / 4] + i];
        count += !seen[value];
        seen[value] = true;
    }
    return count;
}

static void run(const char *name, bool opened)
{
    struct bench bench;
    struct captured captured;
    int largest;
    bench_open(&bench, &bench_rk3588, NULL);
    load(name, &bench, &captured);
    if (opened)
        open_conversion(&bench, &captured);
    uint8_t *expected = copy_memory(&bench);
    run_simulator(&bench, &captured);
    run_reference(&captured, expected);
    compare_memory(&bench, expected);
    size_t different = differences(&bench, &captured, &largest);
    print_message("%s: %zu of %zu differ from the CPU's, by %d at most; %zu distinct values\n", name, different,
                  captured.expected_size, largest, distinct(&bench));
    if (!opened && !captured.is_signed && strncmp(name, "add", 3))
        assert_in_range(largest, 0, 1);
    free(expected);
    mica_recording_release(&captured.recording);
    bench_close(&bench);
}

static void run_all(bool opened)
{
    size_t count = 0;
    struct dirent *entry;
    DIR *directory = opendir(CAPTURES);
    assert_non_null(directory);
    while ((entry = readdir(directory))) {
        char folder[512];
        snprintf(folder, sizeof folder, "%s/%s/rk3588", CAPTURES, entry->d_name);
        if (entry->d_name[0] == '.' || access(folder, R_OK))
            continue;
        run(entry->d_name, opened);
        count++;
    }
    closedir(directory);
    assert_int_equal(count, 17);
}

static void as_submitted(void **state)
{
    run_all(false);
}

static void with_the_output_opened(void **state)
{
    run_all(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_submitted), cmocka_unit_test(with_the_output_opened)};
    if (access(CAPTURES, R_OK))
        return SKIP;
    return cmocka_run_group_tests_name("captures", tests, NULL, NULL);
}
