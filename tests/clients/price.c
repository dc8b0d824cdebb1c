/* SPDX-License-Identifier: MIT */
/*
 * price FOLDER...: what the jobs of capture folders cost by the timing model,
 * one JSON object a folder and line. The streams are executed on the simulator
 * of their chip; replay shows whether what they compute is right. A stream that
 * the simulator refuses gives an object with the reason as its "error".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/capture.h"
#include "npu/npu.h"
#include "npu/vivante/hw/states.h"

#define MAX_JOBS 4096u

static const struct mica_chip *const chips[] = {&mica_chip_a311d, &mica_chip_s905d3, &mica_chip_imx8mp};

static const struct mica_chip *find_chip(const char *name)
{
    for (size_t i = 0; i < sizeof chips / sizeof chips[0]; i++)
        if (!strcmp(chips[i]->name, name))
            return chips[i];
    return NULL;
}

/* Which unit each job of a stream runs on, in order: "NN" or "TP". */
static size_t find_units(const struct mica_recorded_submit *submit, const char **units, size_t capacity)
{
    size_t count = 0;
    for (size_t i = 0; i + 1 < submit->words && count < capacity; i += 2) {
        if (submit->stream[i] == VIV_LOAD_STATE(VIV_PS_NN_INST_ADDR))
            units[count++] = "NN";
        else if (submit->stream[i] == VIV_LOAD_STATE(VIV_PS_TP_INST_ADDR))
            units[count++] = "TP";
    }
    return count;
}

static void print_job(const struct mica_chip *chip, const char *unit, const struct mica_job_report *job, bool first)
{
    printf("%s{\"unit\": \"%s\", \"us\": %.3f, \"cycles\": %llu, \"coefficient_bytes\": %llu, \"read_bytes\": %llu, "
           "\"write_bytes\": %llu}",
           first ? "" : ", ", unit, (double)job->cycles / chip->clock_mhz, (unsigned long long)job->cycles,
           (unsigned long long)job->coefficient_bytes, (unsigned long long)job->read_bytes,
           (unsigned long long)job->write_bytes);
}

/* Messages have no control characters; quotes and backslashes get a backslash. */
static void print_text(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            putchar('\\');
        putchar(*text);
    }
    putchar('"');
}

static int price_submits(const struct mica_recording *capture, const struct mica_chip *chip, void *sim,
                         struct mica_device_memory *memory, struct mica_job_report *reports, const char **units)
{
    bool first = true;
    for (size_t i = 0; i < capture->submit_count; i++) {
        const struct mica_recorded_submit *submit = &capture->submits[i];
        size_t count = 0, known = find_units(submit, units, MAX_JOBS);
        if (mica_recording_map(capture, i, memory) ||
            chip->family->sim_run(sim, submit->stream, submit->words, reports, MAX_JOBS, &count))
            return 2;
        for (size_t j = 0; j < count && j < known; j++, first = false)
            print_job(chip, units[j], &reports[j], first);
    }
    return 0;
}

static int price(const struct mica_recording *capture, const char *folder, struct mica_log *log)
{
    const struct mica_chip *chip = find_chip(capture->chip);
    struct mica_job_report *reports = calloc(MAX_JOBS, sizeof *reports);
    const char **units = calloc(MAX_JOBS, sizeof *units);
    struct mica_device_memory memory;
    void *sim = NULL;
    int result = 2;
    if (!chip)
        fprintf(stderr, "there is no simulator of %s\n", capture->chip);
    if (chip && reports && units && !mica_device_memory_create(&memory)) {
        printf("{\"folder\": ");
        print_text(folder);
        printf(", \"chip\": \"%s\", \"jobs\": [", chip->name);
        if (!chip->family->sim_create(chip, &memory, NULL, log, &sim))
            result = price_submits(capture, chip, sim, &memory, reports, units);
        printf("], \"error\": ");
        print_text(result ? log->last_error : "");
        printf("}\n");
        result = 0;
        chip->family->sim_destroy(sim);
        mica_device_memory_destroy(&memory);
    }
    free(units);
    free(reports);
    return result;
}

int main(int argc, char **argv)
{
    int worst = argc < 2 ? 2 : 0;
    if (argc < 2)
        fprintf(stderr, "usage: price FOLDER...\n");
    for (int i = 1; i < argc; i++) {
        struct mica_log log = {.sink = NULL};
        struct mica_recording capture;
        int result = 2;
        if (mica_recording_load(argv[i], &log, &capture))
            fprintf(stderr, "%s\n", log.last_error);
        else
            result = price(&capture, argv[i], &log);
        mica_recording_release(&capture);
        worst = result > worst ? result : worst;
    }
    return worst;
}
