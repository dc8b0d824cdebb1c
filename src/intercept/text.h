/* SPDX-License-Identifier: MIT */
/* Text that grows: JSON written by hand, as a preloaded library should bring no other along. */
#ifndef MICA_INTERCEPT_TEXT_H
#define MICA_INTERCEPT_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct ic_text {
    char *data;
    size_t size, room;
    bool failed; /* memory ran out: sticky */
};

void ic_text_put(struct ic_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void ic_text_bytes(struct ic_text *text, const char *bytes, size_t size);
void ic_text_hex(struct ic_text *text, const void *bytes, size_t size);
/* A JSON string, quotes included; what is no ASCII is escaped byte by byte. */
void ic_text_string(struct ic_text *text, const char *string);
void ic_text_free(struct ic_text *text);

#endif
