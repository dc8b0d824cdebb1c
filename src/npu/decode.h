/* SPDX-License-Identifier: MIT */
/*
 * What the families' decoders say and to whom: words to named fields, for
 * people and for tools. A decoder walks untrusted words, reads memory through
 * the caller only, and never stops at what it doesn't know: it says so.
 */
#ifndef MICA_NPU_DECODE_H
#define MICA_NPU_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One named value. Strings live during the call. */
struct mica_decoded {
    const char *name; /* "GL.NN_CONFIG", "KERNEL_X_SIZE" */
    uint64_t value;   /* as it is in the words, signed fields extended */
    bool is_signed;
    const char *text;    /* the value in words where it has some ("3x3 depthwise"); NULL */
    const char *meaning; /* of the field; NULL or "": nobody knows */
    bool unknown;        /* nobody knows what it does, and it isn't what drivers write there */
    bool idle;           /* holds what a driver writes that doesn't care */
};

/* Receives what a decoder finds, in order. Groups nest. */
struct mica_decode_sink {
    void *user;
    /* A group opens: kind "command", "descriptor", "coefficients", "task", ...; `address` of the device, or offset. */
    void (*open)(void *user, const char *kind, uint64_t address, const char *title);
    void (*field)(void *user, const struct mica_decoded *field);
    void (*close)(void *user);
};

/* The device's memory as the decoder sees it: `size` bytes at `address`, NULL when they aren't there. */
struct mica_decode_memory {
    void *user;
    const void *(*at)(void *user, uint64_t address, uint64_t size);
};

#endif
