/* SPDX-License-Identifier: MIT */
#include "intercept/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reserve(struct ic_text *text, size_t more)
{
    size_t room = text->room ? text->room : 256;
    if (text->failed)
        return false;
    while (room - text->size < more + 1)
        room *= 2;
    if (room == text->room)
        return true;
    char *grown = realloc(text->data, room);
    if (!grown) {
        text->failed = true;
        return false;
    }
    text->data = grown;
    text->room = room;
    return true;
}

void ic_text_put(struct ic_text *text, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int size = vsnprintf(NULL, 0, format, arguments);
    if (size >= 0 && reserve(text, (size_t)size)) {
        vsnprintf(text->data + text->size, (size_t)size + 1, format, again);
        text->size += (size_t)size;
    }
    va_end(again);
    va_end(arguments);
}

void ic_text_bytes(struct ic_text *text, const char *bytes, size_t size)
{
    if (!reserve(text, size))
        return;
    if (size)
        memcpy(text->data + text->size, bytes, size);
    text->size += size;
    text->data[text->size] = 0;
}

void ic_text_hex(struct ic_text *text, const void *bytes, size_t size)
{
    const unsigned char *byte = bytes;
    if (!reserve(text, 2 * size))
        return;
    for (size_t i = 0; i < size; i++) {
        text->data[text->size++] = "0123456789abcdef"[byte[i] >> 4];
        text->data[text->size++] = "0123456789abcdef"[byte[i] & 15];
    }
    text->data[text->size] = 0;
}

void ic_text_string(struct ic_text *text, const char *string)
{
    ic_text_put(text, "\"");
    for (const unsigned char *byte = (const unsigned char *)string; *byte; byte++) {
        if (*byte < 0x20 || *byte >= 0x7f || *byte == '"' || *byte == '\\')
            ic_text_put(text, "\\u%04x", *byte);
        else
            ic_text_bytes(text, (const char *)byte, 1);
    }
    ic_text_put(text, "\"");
}

void ic_text_free(struct ic_text *text)
{
    free(text->data);
    *text = (struct ic_text){0};
}
