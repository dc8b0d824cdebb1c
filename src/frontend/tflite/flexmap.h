/* SPDX-License-Identifier: MIT */
/*
 * Looks up numbers in a flexbuffer map, the format of custom operations'
 * options. Nothing in the buffer is trusted: the library's own verifier (2.0.8)
 * accepts keys that end nowhere, so this reads the little that is needed itself.
 */
#ifndef MICA_FRONTEND_TFLITE_FLEXMAP_H
#define MICA_FRONTEND_TFLITE_FLEXMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mica_flexmap {
    const uint8_t *data;
    size_t size;
    size_t values, types, keys; /* offsets of the three vectors */
    size_t count;
    unsigned width, key_width; /* bytes of one element */
};

/* False when the buffer's root is not a well-formed map of at most 64 entries. */
bool mica_flexmap_open(struct mica_flexmap *map, const uint8_t *data, size_t size);

/* The value of `key`; false, and *value untouched, when it is absent or not a number of the kind. */
bool mica_flexmap_int(const struct mica_flexmap *map, const char *key, int32_t *value);
bool mica_flexmap_float(const struct mica_flexmap *map, const char *key, float *value); /* integers convert */
bool mica_flexmap_bool(const struct mica_flexmap *map, const char *key, bool *value);   /* also 0 and 1 */

#ifdef __cplusplus
}
#endif

#endif
