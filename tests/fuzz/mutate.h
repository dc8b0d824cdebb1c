/* SPDX-License-Identifier: MIT */
/* Damages model files, reproducibly, where it hurts: in the structure more than in the weights. */
#ifndef TEST_FUZZ_MUTATE_H
#define TEST_FUZZ_MUTATE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Changes a flatbuffer model of `size` bytes in place, the same way for the same
 * seed, and returns its new size, which is never larger. One to eight changes:
 * bits, bytes, 16-, 32- and 64-bit fields (boundary values, small steps, odd floats,
 * another field's value), sometimes a truncation. Any other bytes are damaged too, evenly.
 */
size_t mica_mutate(uint8_t *data, size_t size, uint64_t seed);

#endif
