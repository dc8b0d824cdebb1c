/* SPDX-License-Identifier: MIT */
/*
 * What bench/run needs from libmica, as one JSON object: prepare and invoke
 * times of a model on a device, the modelled time and the coefficient bytes.
 *
 *     measure MODEL DEVICE THREADS REPEATS
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "mica/mica.h"

static double now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_times(const char *name, double *times, int count)
{
    qsort(times, (size_t)count, sizeof *times, compare);
    printf("\"%s\": {\"min\": %.3f, \"median\": %.3f}, ", name, times[0], times[count / 2]);
}

static void print_jobs(mica_session *session)
{
    double us = 0, cpu_us = 0;
    uint64_t coefficients = 0, read = 0, written = 0;
    size_t jobs = mica_session_job_count(session), device_jobs = 0;
    for (size_t i = 0; i < jobs; i++) {
        struct mica_job_info job;
        if (mica_session_job(session, i, &job))
            continue;
        *(job.estimate ? &us : &cpu_us) += job.us;
        device_jobs += job.estimate;
        coefficients += job.coefficient_bytes;
        read += job.read_bytes;
        written += job.write_bytes;
    }
    printf("\"modelled_ms\": %.3f, \"cpu_ms\": %.3f, \"jobs\": %zu, \"coefficient_bytes\": %llu, \"read_bytes\": %llu, "
           "\"write_bytes\": %llu}\n",
           us / 1e3, cpu_us / 1e3, device_jobs, (unsigned long long)coefficients, (unsigned long long)read,
           (unsigned long long)written);
}

static int measure(mica_context *context, const char *path, const char *device_name, int repeats, double *times)
{
    mica_device *device = NULL;
    mica_model *model = NULL;
    mica_executable *executable = NULL;
    mica_session *session = NULL;
    int error = mica_device_open(context, device_name, &device);
    if (!error)
        error = mica_model_load(context, path, &model);
    for (int i = 0; !error && i < repeats; i++) {
        mica_executable_destroy(executable);
        executable = NULL;
        double start = now_ms();
        error = mica_executable_compile(model, device, &executable);
        times[i] = now_ms() - start;
    }
    if (!error) {
        printf("{");
        print_times("prepare_ms", times, repeats);
        error = mica_session_create(executable, &session);
    }
    for (int i = -1; !error && i < repeats; i++) { /* one to warm up */
        double start = now_ms();
        error = mica_session_invoke(session);
        if (i >= 0)
            times[i] = now_ms() - start;
    }
    if (!error) {
        print_times("invoke_ms", times, repeats);
        print_jobs(session);
    }
    mica_session_destroy(session);
    mica_executable_destroy(executable);
    mica_model_destroy(model);
    mica_device_close(device);
    return error;
}

int main(int argc, char **argv)
{
    int repeats = argc == 5 ? atoi(argv[4]) : 0;
    if (repeats < 1) {
        fprintf(stderr, "usage: measure MODEL DEVICE THREADS REPEATS\n");
        return 2;
    }
    mica_context *context = NULL;
    double *times = calloc((size_t)repeats, sizeof *times);
    int error = times ? mica_context_create(&context) : -1;
    if (!error)
        error = mica_context_set_threads(context, (unsigned)atoi(argv[3]));
    if (!error)
        error = measure(context, argv[1], argv[2], repeats, times);
    if (error)
        fprintf(stderr, "measure: %s\n", context ? mica_last_error(context) : "out of memory");
    mica_context_destroy(context);
    free(times);
    return error ? 1 : 0;
}
