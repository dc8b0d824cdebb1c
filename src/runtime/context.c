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

/* Sink of a device's log. The level was checked nowhere yet: the client's decides. */
static void to_client(void *user, enum mica_log_level level, const char *message)
{
    mica_device *device = user;
    mica_log(device->client, level, "%s", message);
}

void mica_device_lock(mica_device *device, struct mica_log *client)
{
    pthread_mutex_lock(&device->lock);
    device->client = client;
}

void mica_device_unlock(mica_device *device)
{
    device->client = NULL;
    pthread_mutex_unlock(&device->lock);
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
    device->client = &context->log;
    device->log = (struct mica_log){.sink = to_client, .user = device, .level = MICA_LOG_DEBUG};
    pthread_mutex_init(&device->lock, NULL);
    error = mica_open_device(name, context->threads, &device->log, &device->opened);
    device->client = NULL;
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
    mica_close_device(&device->opened);
    pthread_mutex_destroy(&device->lock);
    free(device);
}

int mica_device_configure(mica_device *device, const char *key, const char *value)
{
    MICA_CHECK_ARG(NULL, device);
    MICA_CHECK_ARG(MICA_LOG_OF(device), key);
    MICA_CHECK_ARG(MICA_LOG_OF(device), value);
    char called[80];
    snprintf(called, sizeof called, "device option %.60s", key);
    return mica_compile_option_set(&device->options, key, value, called, &device->context->log);
}

const char *mica_device_name(const mica_device *device)
{
    return device ? device->opened.name : "";
}
