/* SPDX-License-Identifier: MIT */
#include "delegate/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device_options.h"

#define MAX_THREADS 1024

/* `name` is what the user wrote the value behind: an option or an environment variable. */
typedef int parse_function(const char *name, const char *value, struct mica_log *log,
                           struct mica_delegate_options *options);

static int parse_device(const char *name, const char *value, struct mica_log *log,
                        struct mica_delegate_options *options)
{
    int length = snprintf(options->device, sizeof options->device, "%s", value);
    if (length < 0 || (size_t)length >= sizeof options->device)
        return mica_fail(log, -EINVAL, "%s is longer than %zu bytes", name, sizeof options->device - 1);
    return 0;
}

static int parse_profile(const char *name, const char *value, struct mica_log *log,
                         struct mica_delegate_options *options)
{
    if (strcmp(value, "0") && strcmp(value, "1"))
        return mica_fail(log, -EINVAL, "%s must be 0 or 1, not \"%.64s\"", name, value);
    options->profile = value[0] == '1';
    return 0;
}

static int parse_log_level(const char *name, const char *value, struct mica_log *log,
                           struct mica_delegate_options *options)
{
    static const char *const levels[] = {"error", "warning", "info", "debug"};
    for (int i = 0; i <= MICA_LOG_DEBUG; i++) {
        if (!strcmp(value, levels[i])) {
            options->log_level = (enum mica_log_level)i;
            return 0;
        }
    }
    return mica_fail(log, -EINVAL, "%s must be error, warning, info or debug, not \"%.64s\"", name, value);
}

static int parse_threads(const char *name, const char *value, struct mica_log *log,
                         struct mica_delegate_options *options)
{
    char *end;
    errno = 0;
    unsigned long threads = strtoul(value, &end, 10);
    /* strtoul() accepts signs and blanks; an option doesn't. */
    if (errno || *end || value[0] < '0' || value[0] > '9' || threads > MAX_THREADS) {
        return mica_fail(log, -EINVAL, "%s must be a number from 0 (one per processor) to %d, not \"%.64s\"", name,
                         MAX_THREADS, value);
    }
    options->threads = (unsigned)threads;
    return 0;
}

static int parse_on_chip(const char *name, const char *value, struct mica_log *log,
                         struct mica_delegate_options *options)
{
    return mica_compile_option_set(&options->compile, "on-chip", value, name, log);
}

static int parse_optimize(const char *name, const char *value, struct mica_log *log,
                          struct mica_delegate_options *options)
{
    return mica_compile_option_set(&options->compile, "optimize", value, name, log);
}

static int parse_fuse(const char *name, const char *value, struct mica_log *log, struct mica_delegate_options *options)
{
    return mica_compile_option_set(&options->compile, "fuse", value, name, log);
}

static int parse_per_channel(const char *name, const char *value, struct mica_log *log,
                             struct mica_delegate_options *options)
{
    return mica_compile_option_set(&options->compile, "per-channel", value, name, log);
}

static int parse_partition(const char *name, const char *value, struct mica_log *log,
                           struct mica_delegate_options *options)
{
    return mica_compile_option_set(&options->compile, "partition", value, name, log);
}

static int parse_cores(const char *name, const char *value, struct mica_log *log, struct mica_delegate_options *options)
{
    return mica_device_option_number("cores", value, name, log, &options->cores);
}

static int parse_clock(const char *name, const char *value, struct mica_log *log, struct mica_delegate_options *options)
{
    return mica_device_option_number("clock", value, name, log, &options->clock_mhz);
}

static int parse_split(const char *name, const char *value, struct mica_log *log, struct mica_delegate_options *options)
{
    return mica_device_option_number("split", value, name, log, &options->compile.split);
}

static const struct {
    const char *key, *variable;
    parse_function *parse;
} known[] = {
    {"device", "MICA_DEVICE", parse_device},
    {"profile", "MICA_PROFILE", parse_profile},
    {"log_level", "MICA_LOG_LEVEL", parse_log_level},
    {"threads", "MICA_THREADS", parse_threads},
    {"on_chip", "MICA_ON_CHIP", parse_on_chip},
    {"optimize", "MICA_OPTIMIZE", parse_optimize},
    {"cores", "MICA_CORES", parse_cores},
    {"clock", "MICA_CLOCK", parse_clock},
    {"split", "MICA_SPLIT", parse_split},
    {"partition", "MICA_PARTITION", parse_partition},
    {"fuse", "MICA_FUSE", parse_fuse},
    {"per_channel", "MICA_PER_CHANNEL", parse_per_channel},
};
#define KNOWN_COUNT (sizeof known / sizeof known[0])

static bool is_given(const char *key, const char *const *keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (keys[i] && !strcmp(keys[i], key))
            return true;
    }
    return false;
}

/* A variable that an option overrides isn't even looked at. */
static int parse_environment(const char *const *keys, size_t count, struct mica_log *log,
                             struct mica_delegate_options *options)
{
    for (size_t i = 0; i < KNOWN_COUNT; i++) {
        const char *value = getenv(known[i].variable);
        if (!value || !value[0] || is_given(known[i].key, keys, count))
            continue;
        char name[64];
        snprintf(name, sizeof name, "environment variable %s", known[i].variable);
        int error = known[i].parse(name, value, log, options);
        if (error)
            return error;
    }
    return 0;
}

static int parse_option(const char *key, const char *value, struct mica_log *log, struct mica_delegate_options *options)
{
    for (size_t i = 0; key && i < KNOWN_COUNT; i++) {
        if (strcmp(key, known[i].key))
            continue;
        char name[64];
        snprintf(name, sizeof name, "option %s", key);
        return value ? known[i].parse(name, value, log, options) : mica_fail(log, -EINVAL, "%s has no value", name);
    }
    char names[160] = "";
    for (size_t i = 0, used = 0; i < KNOWN_COUNT && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", known[i].key);
    return mica_fail(log, -EINVAL, "unknown option \"%.64s\"; the options are %s", key ? key : "", names);
}

int mica_delegate_options_parse(const char *const *keys, const char *const *values, size_t count, struct mica_log *log,
                                struct mica_delegate_options *options)
{
    *options = (struct mica_delegate_options){.device = "auto", .log_level = MICA_LOG_WARNING};
    if (count && (!keys || !values))
        return mica_fail(log, -EINVAL, "the host counts %zu options and passes none", count);
    int error = parse_environment(keys, count, log, options);
    for (size_t i = 0; !error && i < count; i++)
        error = parse_option(keys[i], values[i], log, options);
    return error;
}
