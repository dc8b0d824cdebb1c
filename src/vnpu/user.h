/* SPDX-License-Identifier: MIT */
#ifndef MICA_VNPU_USER_H
#define MICA_VNPU_USER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 0, or -EFAULT where the process has no such memory. */
int vnpu_copy_in(void *to, uint64_t pointer, size_t size);
int vnpu_copy_out(uint64_t pointer, const void *from, size_t size);

/* A copy of `count` elements, to be freed; never NULL on success. */
int vnpu_copy_array(uint64_t pointer, size_t count, size_t size, void **array);

#endif
