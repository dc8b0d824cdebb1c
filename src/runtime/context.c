/* SPDX-License-Identifier: MIT */
/* Context and devices of the public API. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device_options.h"
#include "runtime/objects.h"

#define TEXT(x) #x
#define VERSION(major, minor, patch) TEXT(major) "." TEXT(minor) "." TEXT(patch)
#define MAX_THREADS 1024

/* mica.h's levels are the tree's own by number. */
_Static_assert((int)MICA_LEVEL_ERROR == MICA_LOG_ERROR && (int)MICA_LEVEL_WARNING == MICA_LOG_WARNING &&
                   (int)MICA_LEVEL_INFO == MICA_LOG_INFO && (int)MICA_LEVEL_DEBUG == MICA_LOG_DEBUG,
               "levels of mica.h and util/log.h");

const char *mica_version(void)
{
    return VERSION(MICA_VERSION_MAJOR, MICA_VERSION_MINOR, MICA_VERSION_PATCH);
}

int mica_context_create(mica_context **result)
{
    MICA_CHECK_ARG(NULL, result);
    mica_context *context = calloc(1, sizeof *context);
    if (!context)
        return -ENOMEM;
    pthread_mutex_init(&context->lock, NULL);
    *result = context;
    return 0;
}

void mica_context_destroy(mica_context *context)
{
    if (!context)
        return;
    mica_threads_destroy(context->threads);
    pthread_mutex_destroy(&context->lock);
    free(context);
}

void mica_user_sink_call(void *user, enum mica_log_level level, const char *message)
{
    const struct mica_user_sink *sink = user;
    sink->call(sink->user, (enum mica_level)level, message);
}

void mica_context_set_log(mica_context *context, enum mica_level level,
                          void (*sink)(void *user, enum mica_level level, const char *message), void *user)
{
    if (!context)
        return;
    context->sink = (struct mica_user_sink){sink, user};
    context->log.level = (enum mica_log_level)level;
    context->log.sink = sink ? mica_user_sink_call : NULL;
    context->log.user = &context->sink;
}

int mica_context_set_threads(mica_context *context, unsigned threads)
{
    MICA_CHECK_ARG(NULL, context);
    if (context->threads)
        return mica_fail(&context->log, -EBUSY, "the number of threads must be set before a device is opened");
    if (threads > MAX_THREADS)
        return mica_fail(&context->log, -EINVAL, "%u threads are too many: at most %d", threads, MAX_THREADS);
    context->thread_count = threads;
    return 0;
}

void mica_context_keep_error(mica_context *context, const char *message)
{
    pthread_mutex_lock(&context->lock);
    snprintf(context->waited_error, sizeof context->waited_error, "%s", message);
    context->has_waited_error = true;
    pthread_mutex_unlock(&context->lock);
}

void mica_context_set_error(mica_context *context, const char *message)
{
    pthread_mutex_lock(&context->lock);
    snprintf(context->log.last_error, sizeof context->log.last_error, "%s", message);
    pthread_mutex_unlock(&context->lock);
}

const char *mica_last_error(const mica_context *constant)
{
    mica_context *context = (mica_context *)constant;
    if (!context)
        return "";
    pthread_mutex_lock(&context->lock);
    if (context->has_waited_error)
        memcpy(context->log.last_error, context->waited_error, sizeof context->waited_error);
    context->has_waited_error = false;
    pthread_mutex_unlock(&context->lock);
    return context->log.last_error;
}

int mica_device_list(const mica_context *context, size_t index, struct mica_device_info *info)
{
    MICA_CHECK_ARG(NULL, context);
    MICA_CHECK_ARG(NULL, info);
    return mica_known_device(index, info);
}

static int start_threads(mica_context *context)
{
    if (context->threads)
        return 0;
    context->threads = mica_threads_create(context->thread_count ? context->thread_count : mica_threads_default());
    return context->threads ? 0 : mica_fail_nomem(&context->log);
}

int mica_device_open(mica_context *context, const char *name, mica_device **result)
{
    MICA_CHECK_ARG(NULL, context);
    MICA_CHECK_ARG(&context->log, result);
    int error = start_threads(context);
    if (error)
        return error;
    mica_device *device = calloc(1, sizeof *device);
    if (!device)
        return mica_fail_nomem(&context->log);
    device->context = context;
    mica_cores_init(&device->cores, &device->opened, context->threads);
    struct mica_core *first = &device->cores.cores[0];
    mica_core_lock(first, &context->log);
    error = mica_open_device(name, context->threads, &first->log, &device->opened);
    mica_core_unlock(first);
    if (error) {
        mica_device_close(device);
        return error;
    }
    *result = device;
    return 0;
}

void mica_device_close(mica_device *device)
{
    if (!device)
        return;
    mica_cores_finish(&device->cores);
    mica_close_device(&device->opened);
    free(device);
}

int mica_device_configure(mica_device *device, const char *key, const char *value)
{
    MICA_CHECK_ARG(NULL, device);
    MICA_CHECK_ARG(MICA_LOG_OF(device), key);
    MICA_CHECK_ARG(MICA_LOG_OF(device), value);
    char called[80];
    snprintf(called, sizeof called, "device option %.60s", key);
    return mica_device_option_set(&device->cores, &device->options, key, value, called, &device->context->log);
}

double mica_device_clock(const mica_device *device, double *least, double *most)
{
    const struct mica_chip *chip = device ? device->opened.chip : NULL;
    double now = device ? mica_cores_clock(&device->cores) : 0;
    bool any = chip && chip->family->sim_set_clock && device->opened.winsys->set_clock && chip->clock_most_mhz > 0;
    if (least)
        *least = any ? chip->clock_least_mhz : now;
    if (most)
        *most = any ? chip->clock_most_mhz : now;
    return now;
}

unsigned mica_device_cores(const mica_device *device)
{
    return device ? mica_cores_count(&device->cores) : 0;
}

int mica_device_operation(const mica_device *device, size_t index, struct mica_operation_support *operation)
{
    MICA_CHECK_ARG(NULL, device);
    MICA_CHECK_ARG(MICA_LOG_OF(device), operation);
    const struct mica_chip *chip = device->opened.chip;
    size_t count = 0;
    const struct mica_operation_support *rows = NULL;
    if (chip && chip->family->operations)
        rows = chip->family->operations(chip, &count);
    if (index >= count)
        return -ENOENT;
    *operation = rows[index];
    return 0;
}

const char *mica_device_name(const mica_device *device)
{
    return device ? device->opened.name : "";
}
