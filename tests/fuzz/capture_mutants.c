/* SPDX-License-Identifier: MIT */
/*
 * Damaged captures through all that reads them: loaded, decoded, compared with the original, executed. An error is a
 * fine answer; a crash, a sanitizer's report or more than some seconds is not.
 *
 *     capture_mutants COUNT CAPTURE...     mutants 0 to COUNT-1 of the captures
 *     capture_mutants =SEED CAPTURE...     that one, to look at
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "analysis/analysis.h"
#include "mutate.h"

#define PATH_BYTES 1024
#define MOST_FILES 512u
#define CYCLES 20000000u /* of one job by the timing model */

/* What instrumented code takes on a busy machine. */
#define HANG_SECONDS 30.0

struct file {
    char name[256]; /* from the capture's top */
    uint8_t *data;
    size_t size;
};

struct original {
    struct file files[MOST_FILES];
    size_t count;
    struct mica_recording recording;
    struct mica_jobs jobs;
};

static void die(const char *what)
{
    perror(what);
    exit(2);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void read_one(struct original *original, const char *top, const char *name)
{
    char path[PATH_BYTES];
    struct stat status;
    snprintf(path, sizeof path, "%.700s/%.250s", top, name);
    FILE *file = fopen(path, "rb");
    if (!file || fstat(fileno(file), &status) || original->count == MOST_FILES)
        die(path);
    struct file *one = &original->files[original->count++];
    snprintf(one->name, sizeof one->name, "%.250s", name);
    one->size = (size_t)status.st_size;
    one->data = malloc(one->size + 1);
    if (!one->data || fread(one->data, 1, one->size, file) != one->size)
        die(path);
    fclose(file);
}

/* Files and those of submissions. */
static void read_files(struct original *original, const char *top, const char *below)
{
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%.700s/%.250s", top, below);
    DIR *directory = opendir(path);
    if (!directory)
        die(path);
    for (const struct dirent *entry; (entry = readdir(directory));) {
        char name[PATH_BYTES];
        struct stat status;
        snprintf(name, sizeof name, "%s%s%s", below, *below ? "/" : "", entry->d_name);
        snprintf(path, sizeof path, "%.500s/%.500s", top, name);
        if (entry->d_name[0] == '.' || stat(path, &status))
            continue;
        if (S_ISDIR(status.st_mode))
            read_files(original, top, name);
        else
            read_one(original, top, name);
    }
    closedir(directory);
}

static void write_files(const struct original *original, const char *top, size_t damaged, uint64_t seed)
{
    for (size_t i = 0; i < original->count; i++) {
        const struct file *file = &original->files[i];
        char path[PATH_BYTES];
        size_t size = file->size;
        uint8_t *data = malloc(size + 1);
        if (!data)
            die("malloc");
        memcpy(data, file->data, size);
        if (i == damaged)
            size = mica_mutate(data, size, seed);
        snprintf(path, sizeof path, "%s/%s", top, file->name);
        char *slash = strrchr(path, '/');
        *slash = 0;
        mkdir(path, 0777);
        *slash = '/';
        FILE *out = fopen(path, "wb");
        if (!out || fwrite(data, 1, size, out) != size || fclose(out))
            die(path);
        free(data);
    }
}

/* How far it came: 0 refused, 1 decoded, 2 executed. */
static int use(const char *folder, const struct original *original)
{
    struct mica_log log = {0};
    struct mica_recording recording;
    struct mica_jobs jobs = {0};
    struct mica_diff diff = {0};
    struct mica_replay replay = {0};
    const struct mica_chip *chip;
    int stage = 0;
    int error = mica_recording_load(folder, &log, &recording);
    if (!error)
        error = mica_analysis_find_chip(recording.chip, recording.driver, &log, &chip);
    if (!error)
        error = mica_jobs_load(&recording, chip, true, &log, &jobs);
    if (!error) {
        const struct mica_replay_options options = {.chip = chip, .cycle_limit = CYCLES};
        mica_diff_make(&original->jobs, &jobs, &log, &diff);
        stage = mica_replay_run(&recording, &options, &log, &replay) ? 1 : 2;
    }
    mica_replay_release(&replay);
    mica_diff_release(&diff);
    mica_jobs_release(&jobs);
    mica_recording_release(&recording);
    return stage;
}

static void load_original(struct original *original, const char *top)
{
    struct mica_log log = {0};
    const struct mica_chip *chip;
    read_files(original, top, "");
    if (mica_recording_load(top, &log, &original->recording) ||
        mica_analysis_find_chip(original->recording.chip, original->recording.driver, &log, &chip) ||
        mica_jobs_load(&original->recording, chip, true, &log, &original->jobs)) {
        fprintf(stderr, "%s\n", log.last_error);
        exit(2);
    }
}

static void release_original(struct original *original)
{
    for (size_t i = 0; i < original->count; i++)
        free(original->files[i].data);
    mica_jobs_release(&original->jobs);
    mica_recording_release(&original->recording);
    free(original);
}

static double mutant(const struct original *original, const char *folder, uint64_t seed, unsigned long *stages)
{
    double start = now();
    write_files(original, folder, (size_t)(seed / 7 % original->count), seed);
    stages[use(folder, original)]++;
    return now() - start;
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/mica-mutants-XXXXXX", command[64];
    unsigned long stages[3] = {0}, slow = 0;
    if (argc < 3 || !mkdtemp(folder)) {
        fprintf(stderr, "usage: capture_mutants COUNT|=SEED CAPTURE...\n");
        return 2;
    }
    bool one = argv[1][0] == '=';
    uint64_t count = strtoull(argv[1] + one, NULL, 10);
    for (int i = 2; i < argc; i++) {
        struct original *original = calloc(1, sizeof *original);
        if (!original)
            die("calloc");
        if (access(argv[i], R_OK))
            return 77;
        load_original(original, argv[i]);
        for (uint64_t seed = one ? count : 0; seed < count + one; seed++) {
            double took = mutant(original, folder, seed, stages);
            if (took > HANG_SECONDS)
                fprintf(stderr, "mutant %llu of %s takes %.1f s\n", (unsigned long long)seed, argv[i], took);
            slow += took > HANG_SECONDS;
        }
        release_original(original);
        snprintf(command, sizeof command, "rm -rf %s/*", folder);
        if (system(command))
            die(command);
    }
    rmdir(folder);
    printf("%lu refused, %lu decoded, %lu executed, %lu slow\n", stages[0], stages[1], stages[2], slow);
    return slow != 0;
}
