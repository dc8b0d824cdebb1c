/* SPDX-License-Identifier: MIT */
/*
 * Where messages go. A library prints nothing by itself: messages reach the
 * sink that the user installed, and the last error is kept as text.
 *
 * Convention of the whole tree: a function that can fail returns 0 or a
 * negative errno, and the place that detects the failure, and only that
 * place, reports it with mica_fail().
 */
#ifndef MICA_UTIL_LOG_H
#define MICA_UTIL_LOG_H

#include <stdarg.h>

enum mica_log_level {
    MICA_LOG_ERROR,
    MICA_LOG_WARNING,
    MICA_LOG_INFO,
    MICA_LOG_DEBUG,
};

typedef void (*mica_log_sink)(void *user, enum mica_log_level level, const char *message);

struct mica_log {
    mica_log_sink sink; /* may be NULL */
    void *user;
    enum mica_log_level level; /* messages above it are dropped */
    char last_error[512];      /* "" when none */
};

/* `log` may be NULL in both: then the message is lost, nothing else. */
void mica_log(struct mica_log *log, enum mica_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Reports an error and returns `code` (a negative errno), so that the caller can `return mica_fail(...)`. */
int mica_fail(struct mica_log *log, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The one message for memory that ran out; returns -ENOMEM. It allocates nothing. */
int mica_fail_nomem(struct mica_log *log);

#endif
