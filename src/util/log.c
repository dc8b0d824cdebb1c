/* SPDX-License-Identifier: MIT */
#include "util/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void emit(struct mica_log *log, enum mica_log_level level, const char *format, va_list args)
{
    char text[sizeof log->last_error];
    vsnprintf(text, sizeof text, format, args);
    if (level == MICA_LOG_ERROR)
        memcpy(log->last_error, text, sizeof text);
    if (log->sink && level <= log->level)
        log->sink(log->user, level, text);
}

void mica_log(struct mica_log *log, enum mica_log_level level, const char *format, ...)
{
    if (!log)
        return;
    va_list args;
    va_start(args, format);
    emit(log, level, format, args);
    va_end(args);
}

int mica_fail(struct mica_log *log, int code, const char *format, ...)
{
    if (log) {
        va_list args;
        va_start(args, format);
        emit(log, MICA_LOG_ERROR, format, args);
        va_end(args);
    }
    return code;
}

int mica_fail_nomem(struct mica_log *log)
{
    return mica_fail(log, -ENOMEM, "out of memory");
}
