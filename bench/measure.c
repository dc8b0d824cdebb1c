/* SPDX-License-Identifier: MIT */
/*
 * What bench/run needs from libmica, as one JSON object: prepare and invoke
 * times of a model on a device, what the last invocation's jobs cost, and, where
 * the timing model tells, what a stream of inferences on its cores takes.
 *
 *     measure MODEL DEVICE THREADS REPEATS [OPTION=VALUE...]
 *
 * Options are those of mica_device_configure().
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mica/mica.h"

#define STREAM_LENGTH 300u

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

static void print_job(const mica_model *model, const struct mica_job_info *job, bool first)
{
    struct mica_operation_info operation = {.type = "?"};
    mica_model_operation(model, job->operation, &operation);
    printf("%s{\"unit\": \"%s\", \"operation\": %zu, \"type\": \"%s\", \"us\": %.3f, \"cycles\": %llu, "
           "\"coefficient_bytes\": %llu, \"read_bytes\": %llu, \"write_bytes\": %llu, \"estimate\": %s, "
           "\"dispatch_us\": %.3f}",
           first ? "" : ", ", job->unit, job->operation, operation.type, job->us, (unsigned long long)job->cycles,
           (unsigned long long)job->coefficient_bytes, (unsigned long long)job->read_bytes,
           (unsigned long long)job->write_bytes, job->estimate ? "true" : "false", job->dispatch_us);
}

static void print_jobs(mica_session *session, const mica_model *model)
{
    size_t jobs = mica_session_job_count(session);
    printf("\"jobs\": [");
    for (size_t i = 0; i < jobs; i++) {
        struct mica_job_info job;
        if (!mica_session_job(session, i, &job))
            print_job(model, &job, i == 0);
    }
    printf("], ");
}

/* Microseconds an inference of a stream takes: {"MHz": [on one core, on two, ...]}. */
static void print_streams(const mica_device *device, const mica_session *session)
{
    static const unsigned clocks[] = {200, 400, 600, 800, 1000};
    double us;
    size_t count = mica_session_stream_us(session, 0, 1, 1, &us) ? 0 : sizeof clocks / sizeof *clocks;
    printf("\"streams\": {");
    for (size_t i = 0; i < count; i++) {
        printf("%s\"%u\": [", i ? ", " : "", clocks[i]);
        for (unsigned cores = 1; cores <= mica_device_cores(device); cores++)
            if (!mica_session_stream_us(session, clocks[i], STREAM_LENGTH, cores, &us))
                printf("%s%.3f", cores > 1 ? ", " : "", us / STREAM_LENGTH);
        printf("]");
    }
    printf("}}\n");
}

static void print_memory(const mica_executable *executable)
{
    struct mica_memory_info memory;
    if (!mica_executable_memory(executable, &memory))
        printf("\"memory\": {\"coefficients\": %llu, \"commands\": %llu, \"intermediates\": %llu, \"tensors\": %llu, "
               "\"on_chip\": %llu}, ",
               (unsigned long long)memory.coefficient_bytes, (unsigned long long)memory.command_bytes,
               (unsigned long long)memory.intermediate_bytes, (unsigned long long)memory.tensor_bytes,
               (unsigned long long)memory.on_chip_bytes);
}

/* "KEY=VALUE" of the command line. */
static int configure(mica_device *device, char *option)
{
    char *value = strchr(option, '=');
    if (!value)
        return mica_device_configure(device, option, "");
    *value = 0;
    int error = mica_device_configure(device, option, value + 1);
    *value = '=';
    return error;
}

static int measure(mica_context *context, char **arguments, int repeats, double *times)
{
    const char *path = arguments[0], *device_name = arguments[1];
    mica_device *device = NULL;
    mica_model *model = NULL;
    mica_executable *executable = NULL;
    mica_session *session = NULL;
    int error = mica_device_open(context, device_name, &device);
    for (char **option = arguments + 4; !error && *option; option++)
        error = configure(device, *option);
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
        print_memory(executable);
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
        print_jobs(session, model);
        print_streams(device, session);
    }
    mica_session_destroy(session);
    mica_executable_destroy(executable);
    mica_model_destroy(model);
    mica_device_close(device);
    return error;
}

int main(int argc, char **argv)
{
    int repeats = argc >= 5 ? atoi(argv[4]) : 0;
    if (repeats < 1) {
        fprintf(stderr, "usage: measure MODEL DEVICE THREADS REPEATS [OPTION=VALUE...]\n");
        return 2;
    }
    mica_context *context = NULL;
    double *times = calloc((size_t)repeats, sizeof *times);
    int error = times ? mica_context_create(&context) : -1;
    if (!error)
        error = mica_context_set_threads(context, (unsigned)atoi(argv[3]));
    if (!error)
        error = measure(context, argv + 1, repeats, times);
    if (error)
        fprintf(stderr, "measure: %s\n", context ? mica_last_error(context) : "out of memory");
    mica_context_destroy(context);
    free(times);
    return error ? 1 : 0;
}
