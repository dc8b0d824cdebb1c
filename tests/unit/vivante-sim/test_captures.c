/* SPDX-License-Identifier: MIT */
/*
 * Everything that mainline submitted for the recorded one-operation models.
 *
 * A311D: each job must give what the slow reference gives, and all but five
 * models what the CPU gave; the five carry defects of the compiler in their
 * streams. S905D3: streams that it can't read are refused, and read on request,
 * with the same results. i.MX 8M Plus: what the CPU gave, except additions.
 */
#include "support.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/capture.h"
#include "npu/vivante/hw/states.h"
#include "reference.h"

#define CAPTURES MICA_SHARED_DIR "/captures"

#define ADD "add_8_1_32_32_1_1_0_0_4"
#define FC "fc_128_32_0_4"

/* Known defects of these streams: the specification, section 11. */
static const char *const defective[] = {
    ADD, "conv_s8_i8_k1_ic16_oc16_s1_p1", "conv_s8_i8_k3_ic16_oc16_s1_p1", "dw_s8_i8_k3_c16_s1_p1", FC,
};

static bool is_defective(const char *name)
{
    for (size_t i = 0; i < sizeof defective / sizeof defective[0]; i++)
        if (!strcmp(defective[i], name))
            return true;
    return false;
}

static void compare_memory(const struct mica_recording *capture, size_t submit, const struct bench *a, const uint8_t *b)
{
    for (size_t i = 0; i < capture->submits[submit].bo_count; i++) {
        const struct mica_recorded_bo *bo = &capture->submits[submit].bos[i];
        if (memcmp(a->memory.base + bo->address, b + bo->address, bo->size))
            fail_msg("the buffer at 0x%llx is not what the reference makes of it", (unsigned long long)bo->address);
    }
}

/* Bytes of the output that differ from the CPU's; *largest gets the largest difference. */
static size_t differences(const struct mica_recording *capture, const struct bench *bench, int *largest)
{
    uint32_t address;
    size_t different = 0;
    *largest = 0;
    assert_true(mica_recording_locate(capture, &capture->outputs[0], &bench->memory, &address));
    for (size_t i = 0; i < capture->outputs[0].size; i++) {
        int expected = capture->outputs[0].expected[i] ^ (capture->outputs[0].flipped ? 0x80 : 0);
        int difference = abs(bench->memory.base[address + i] - expected);
        different += difference != 0;
        *largest = difference > *largest ? difference : *largest;
    }
    print_message("  %zu of %zu bytes differ from the CPU's\n", different, capture->outputs[0].size);
    return different;
}

static bool writable(const struct mica_recorded_submit *submit, uint32_t address)
{
    for (size_t i = 0; i < submit->bo_count; i++)
        if (submit->bos[i].access & MICA_ACCESS_WRITE && address >= submit->bos[i].address &&
            address - submit->bos[i].address < submit->bos[i].size)
            return true;
    return false;
}

/*
 * The fully connected capture has its weights kernel after kernel, where the
 * format wants the kernels of a core to take turns. Read as the format says,
 * output offsets are weights, and the first of them is what the device faults on.
 */
static void faults_at_the_first_wild_offset(const struct mica_recording *capture, size_t submit,
                                            const struct bench *bench, int result)
{
    const uint32_t *stream = capture->submits[submit].stream;
    uint32_t planes[64];
    size_t at = 0, i = 0;
    while (stream[at] != VIV_LOAD_STATE(VIV_PS_NN_INST_ADDR))
        at += 2;
    size_t count = reference_planes(bench->sim->chip, bench->memory.base, stream[at + 1] & ~63u, planes, 64);
    assert_in_range(count, 1, 64);
    while (i < count && writable(&capture->submits[submit], planes[i]))
        i++;
    assert_in_range(i, 0, count - 1);
    char address[16];
    snprintf(address, sizeof address, "0x%08x", planes[i]);
    assert_int_equal(result, -EFAULT);
    assert_non_null(strstr(bench->log.last_error, address));
    print_message("  %s\n", bench->log.last_error);
}

static void load(const char *folder, struct mica_recording *capture)
{
    struct mica_log log = {0};
    if (mica_recording_load(folder, &log, capture))
        fail_msg("%s", log.last_error);
}

/* Runs the submissions until one is refused. */
static int run_submits(const struct mica_recording *capture, struct bench *bench)
{
    for (size_t i = 0; i < capture->submit_count; i++) {
        const struct mica_recorded_submit *submit = &capture->submits[i];
        struct mica_job_report reports[64];
        size_t count;
        assert_int_equal(mica_recording_map(capture, i, &bench->memory), 0);
        int result = viv_sim_run(bench->sim, submit->stream, submit->words, reports, 64, &count);
        if (result)
            return result;
    }
    return 0;
}

/* V7 streams: against the reference and the CPU. */
static void run_v7(const struct mica_chip *chip, const char *name, const char *folder)
{
    struct mica_recording capture;
    struct bench bench;
    struct mica_device_memory other;
    int largest;
    load(folder, &capture);
    bench_open_chip(&bench, chip, NULL);
    viv_sim_read_v7(bench.sim);
    assert_int_equal(mica_device_memory_create(&other), 0);
    for (size_t i = 0; i < capture.submit_count; i++) {
        const struct mica_recorded_submit *submit = &capture.submits[i];
        struct mica_job_report reports[64];
        size_t count;
        assert_int_equal(mica_recording_map(&capture, i, &bench.memory), 0);
        assert_int_equal(mica_recording_map(&capture, i, &other), 0);
        int result = viv_sim_run(bench.sim, submit->stream, submit->words, reports, 64, &count);
        if (!strcmp(name, FC) && i == 1) {
            faults_at_the_first_wild_offset(&capture, i, &bench, result);
            continue;
        }
        if (result)
            fail_msg("%s: %s", name, bench.log.last_error);
        assert_int_equal(count, reference_run(bench.sim->chip, other.base, submit->stream, submit->words));
        compare_memory(&capture, i, &bench, other.base);
    }
    assert_int_equal(differences(&capture, &bench, &largest) == 0, !is_defective(name));
    mica_device_memory_destroy(&other);
    bench_close(&bench);
    mica_recording_release(&capture);
}

static void run_a311d(const char *name, const char *folder)
{
    run_v7(&bench_chip, name, folder);
}

static void run_s905d3(const char *name, const char *folder)
{
    struct mica_recording capture;
    struct bench bench;
    load(folder, &capture);
    bench_open_chip(&bench, &bench_s905d3, NULL);
    assert_int_equal(run_submits(&capture, &bench), -EIO);
    assert_non_null(strstr(bench.log.last_error, "V7"));
    assert_non_null(strstr(bench.log.last_error, "which this chip can't read"));
    bench_close(&bench);
    mica_recording_release(&capture);
    run_v7(&bench_s905d3, name, folder);
}

static void run_imx8mp(const char *name, const char *folder)
{
    struct mica_recording capture;
    struct bench bench;
    int largest;
    load(folder, &capture);
    bench_open_chip(&bench, &bench_imx8mp, NULL);
    if (run_submits(&capture, &bench))
        fail_msg("%s: %s", name, bench.log.last_error);
    size_t different = differences(&capture, &bench, &largest);
    assert_int_equal(different, strcmp(name, ADD) ? 0 : 66);
    assert_in_range(largest, 0, 1);
    bench_close(&bench);
    mica_recording_release(&capture);
}

static void run_chip(const char *chip, void (*run)(const char *name, const char *folder))
{
    size_t count = 0;
    struct dirent *entry;
    DIR *directory = opendir(CAPTURES);
    assert_non_null(directory);
    while ((entry = readdir(directory))) {
        char folder[512];
        snprintf(folder, sizeof folder, "%s/%s/%s", CAPTURES, entry->d_name, chip);
        if (entry->d_name[0] == '.' || access(folder, R_OK))
            continue;
        print_message("%s\n", entry->d_name);
        run(entry->d_name, folder);
        count++;
    }
    closedir(directory);
    assert_int_equal(count, 18);
}

static void a311d(void **state)
{
    run_chip("a311d", run_a311d);
}

static void imx8mp(void **state)
{
    run_chip("imx8mp", run_imx8mp);
}

static void s905d3(void **state)
{
    run_chip("s905d3", run_s905d3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a311d), cmocka_unit_test(imx8mp), cmocka_unit_test(s905d3)};
    if (access(CAPTURES, R_OK))
        return SKIP;
    return cmocka_run_group_tests_name("captures", tests, NULL, NULL);
}
