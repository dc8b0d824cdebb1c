/* SPDX-License-Identifier: MIT */
/*
 * replay [--coefficients v7] FOLDER...: executes capture folders on the
 * simulator of their chip, prints what each job costs by the timing model, and
 * compares the device's output 0 with the recorded CPU result of it.
 *
 * --coefficients v7: coefficient buffers are read as V7 streams, whatever the
 * chip would make of them. Mainline writes those for the S905D3.
 *
 * Exit code: 0 all equal (or nothing to compare with), 1 differences, 2 errors.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "npu/npu.h"
#include "npu/vivante/sim/sim.h"

#define MAX_REPORTS 4096u

static const struct mica_chip *const chips[] = {
    &mica_chip_a311d, &mica_chip_imx8mp, &mica_chip_s905d3, &mica_chip_rk3588, &mica_chip_rk3566,
};

static const struct mica_chip *find_chip(const char *name)
{
    for (size_t i = 0; i < sizeof chips / sizeof chips[0]; i++)
        if (!strcmp(chips[i]->name, name))
            return chips[i];
    return NULL;
}

static void print_message(void *user, enum mica_log_level level, const char *message)
{
    fprintf(stderr, "%s\n", message);
}

static bool is_rocket(const struct capture *capture)
{
    return !strcmp(capture->driver, "rocket");
}

static const uint8_t *find_output(const struct capture *capture, const struct mica_device_memory *memory,
                                  uint32_t *address)
{
    uint64_t fault;
    if (!(is_rocket(capture) ? capture_rocket_output_address : capture_output_address)(capture, memory, address))
        return NULL;
    return mica_device_at(memory, *address, capture_output_extent(capture), MICA_ACCESS_WRITE, &fault);
}

static int compare(const struct capture *capture, const struct mica_device_memory *memory)
{
    uint32_t address;
    if (!capture->expected) {
        printf("  no CPU result to compare with\n");
        return 0;
    }
    if (capture->not_comparable) {
        printf("  not comparable: the model's output is not made by the device\n");
        return 0;
    }
    const uint8_t *output = find_output(capture, memory, &address);
    if (!output) {
        fprintf(stderr, "the output of the last job isn't in the submission\n");
        return 2;
    }
    size_t different = 0;
    int largest = 0, flip = capture->expected_signed ? 0x80 : 0;
    int sign = is_rocket(capture) ? 0x80 : 0; /* whose bytes are signed: makes them as large as they are meant */
    for (size_t i = 0; i < capture->expected_size; i++) {
        int difference = (output[capture_output_offset(capture, i)] ^ sign) - (capture->expected[i] ^ flip ^ sign);
        different += difference != 0;
        largest = abs(difference) > largest ? abs(difference) : largest;
    }
    printf("  output at 0x%08x: %zu of %zu bytes differ from the CPU's, by %d at most\n", address, different,
           capture->expected_size, largest);
    return different != 0;
}

static int run_job(const struct capture *capture, const struct mica_chip *chip, void *sim, size_t submit, size_t job)
{
    struct mica_job_report *reports = calloc(MAX_REPORTS, sizeof *reports);
    size_t count = 0, words;
    const uint32_t *stream = capture_job(&capture->submits[submit], job, &words);
    int result = !reports || chip->family->sim_run(sim, stream, words, reports, MAX_REPORTS, &count) ? 2 : 0;
    for (size_t j = 0; !result && j < count && j < MAX_REPORTS; j++)
        printf("  submit %zu, job %zu: %llu cycles, %llu bytes read (%llu coefficients), %llu written\n", submit,
               job + j, (unsigned long long)reports[j].cycles, (unsigned long long)reports[j].read_bytes,
               (unsigned long long)reports[j].coefficient_bytes, (unsigned long long)reports[j].write_bytes);
    free(reports);
    return result;
}

static int run_submits(const struct capture *capture, const struct mica_chip *chip, void *sim,
                       struct mica_device_memory *memory)
{
    int result = 0;
    for (size_t i = 0; i < capture->submit_count && !result; i++) {
        result = capture_map(capture, i, memory) ? 2 : 0;
        for (size_t j = 0; j < capture->submits[i].job_count && !result; j++)
            result = run_job(capture, chip, sim, i, j);
    }
    return result;
}

static int replay(const struct capture *capture, bool read_v7, struct mica_log *log)
{
    struct mica_device_memory memory;
    void *sim = NULL;
    const struct mica_chip *chip = find_chip(capture->chip);
    if (!chip) {
        fprintf(stderr, "there is no simulator of %s\n", capture->chip);
        return 2;
    }
    if (mica_device_memory_create(&memory))
        return 2;
    int result = chip->family->sim_create(chip, &memory, NULL, log, &sim) ? 2 : 0;
    if (!result && read_v7 && chip->family == &mica_vivante)
        viv_sim_read_v7(sim);
    if (!result)
        result = run_submits(capture, chip, sim, &memory);
    if (!result)
        result = compare(capture, &memory);
    chip->family->sim_destroy(sim);
    mica_device_memory_destroy(&memory);
    return result;
}

static int replay_folder(const char *folder, bool read_v7)
{
    struct mica_log log = {.sink = print_message, .level = MICA_LOG_WARNING};
    struct capture capture;
    char error[512] = "";
    int result = 2;
    printf("%s\n", folder);
    if (capture_load(folder, &capture, error, sizeof error))
        fprintf(stderr, "%s\n", error);
    else
        result = replay(&capture, read_v7, &log);
    capture_release(&capture);
    return result;
}

static const char usage[] =
    "usage: replay [--coefficients v7] FOLDER...\n"
    "Executes captures on the simulator of their chip, prints what each job costs by the timing model,\n"
    "and compares the device's output 0 with the recorded result of the CPU.\n"
    "  --coefficients v7  reads coefficient buffers as V7 streams, whatever the chip would make of them\n"
    "Exit code: 0 all equal or nothing to compare with, 1 differences, 2 errors.\n";

int main(int argc, char **argv)
{
    if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
        fputs(usage, stdout);
        return 0;
    }
    bool read_v7 = argc > 2 && !strcmp(argv[1], "--coefficients") && !strcmp(argv[2], "v7");
    int first = read_v7 ? 3 : 1, worst = 0;
    if (first >= argc || argv[first][0] == '-') {
        fputs(usage, stderr);
        return 2;
    }
    for (int i = first; i < argc; i++) {
        int result = replay_folder(argv[i], read_v7);
        worst = result > worst ? result : worst;
    }
    return worst;
}
