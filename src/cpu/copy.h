/* SPDX-License-Identifier: MIT */
/* Copies elements from one regular place to another: transpositions, slices and their like. */
#ifndef MICA_CPU_COPY_H
#define MICA_CPU_COPY_H

#include <stddef.h>

#include "cpu/kernels.h"

enum { MICA_COPY_RANK = MICA_MAX_RANK + 2 };

/* Element (i0, i1, ...) goes from sum(i * from) to sum(i * to); strides are in elements and may be negative. */
struct mica_copy {
    uint32_t rank;
    struct mica_copy_dim {
        size_t count;
        ptrdiff_t from, to;
    } dims[MICA_COPY_RANK];
};

/* Adds a dimension inside those there are. */
void mica_copy_add(struct mica_copy *copy, size_t count, ptrdiff_t from, ptrdiff_t to);

/* Strides of a tensor, in elements. */
void mica_copy_strides(const struct mica_tensor *tensor, ptrdiff_t strides[MICA_MAX_RANK]);

/* `size`: bytes of an element, 1, 2, 4 or 8. */
void mica_copy_run(const struct mica_copy *copy, const void *from, void *to, size_t size, struct mica_threads *threads);

#endif
