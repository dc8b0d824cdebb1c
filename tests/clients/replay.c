/* SPDX-License-Identifier: MIT */
/*
 * replay FOLDER...: executes capture folders on the simulator of their chip,
 * prints what each job costs by the timing model, and compares the output of
 * the last job with the recorded CPU result of output 0.
 *
 * Exit code: 0 all equal (or nothing to compare with), 1 differences, 2 errors.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "npu/npu.h"

#define MAX_REPORTS 4096u

static const struct mica_chip *const chips[] = {&mica_chip_a311d};

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

static int compare(const struct capture *capture, const struct mica_device_memory *memory)
{
    uint32_t address;
    uint64_t fault;
    if (!capture->expected) {
        printf("  no CPU result to compare with\n");
        return 0;
    }
    const uint8_t *output = NULL;
    if (capture_output_address(capture, memory, &address))
        output = mica_device_at(memory, address, capture->expected_size, MICA_ACCESS_WRITE, &fault);
    if (!output) {
        fprintf(stderr, "the output of the last job isn't in the submission\n");
        return 2;
    }
    size_t different = 0;
    int largest = 0;
    for (size_t i = 0; i < capture->expected_size; i++) {
        int difference = output[i] - (capture->expected[i] ^ (capture->expected_signed ? 0x80 : 0));
        different += difference != 0;
        largest = abs(difference) > largest ? abs(difference) : largest;
    }
    printf("  output at 0x%08x: %zu of %zu bytes differ from the CPU's, by %d at most\n", address, different,
           capture->expected_size, largest);
    return different != 0;
}

static int run_submits(const struct capture *capture, const struct mica_chip *chip, void *sim,
                       struct mica_device_memory *memory)
{
    struct mica_job_report *reports = calloc(MAX_REPORTS, sizeof *reports);
    int result = reports ? 0 : 2;
    for (size_t i = 0; i < capture->submit_count && !result; i++) {
        const struct capture_submit *submit = &capture->submits[i];
        size_t count;
        if (capture_map(capture, i, memory) ||
            chip->family->sim_run(sim, submit->stream, submit->words, reports, MAX_REPORTS, &count))
            result = 2;
        for (size_t j = 0; !result && j < count && j < MAX_REPORTS; j++)
            printf("  submit %zu, job %zu: %llu cycles, %llu bytes read (%llu coefficients), %llu written\n", i, j,
                   (unsigned long long)reports[j].cycles, (unsigned long long)reports[j].read_bytes,
                   (unsigned long long)reports[j].coefficient_bytes, (unsigned long long)reports[j].write_bytes);
    }
    free(reports);
    return result;
}

static int replay(const struct capture *capture, struct mica_log *log)
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
    if (!result)
        result = run_submits(capture, chip, sim, &memory);
    if (!result)
        result = compare(capture, &memory);
    chip->family->sim_destroy(sim);
    mica_device_memory_destroy(&memory);
    return result;
}

int main(int argc, char **argv)
{
    int worst = argc < 2 ? 2 : 0;
    if (argc < 2)
        fprintf(stderr, "usage: replay FOLDER...\n");
    for (int i = 1; i < argc; i++) {
        struct mica_log log = {.sink = print_message, .level = MICA_LOG_WARNING};
        struct capture capture;
        char error[512] = "";
        printf("%s\n", argv[i]);
        int result = 2;
        if (capture_load(argv[i], &capture, error, sizeof error))
            fprintf(stderr, "%s\n", error);
        else
            result = replay(&capture, &log);
        capture_release(&capture);
        worst = result > worst ? result : worst;
    }
    return worst;
}
