/* SPDX-License-Identifier: MIT */
/* Memory that lives as long as its graph: many small pieces, released together. */
#ifndef MICA_GRAPH_ARENA_H
#define MICA_GRAPH_ARENA_H

#include <stddef.h>

struct mica_arena_chunk;

struct mica_arena {
    struct mica_arena_chunk *chunks; /* newest first; small pieces come from the first */
};

/* Zeroed, aligned for any scalar; NULL when memory runs out. Size 0 gives a valid pointer. */
void *mica_arena_alloc(struct mica_arena *arena, size_t size);

/* A copy of `size` bytes; NULL when memory runs out. */
void *mica_arena_copy(struct mica_arena *arena, const void *data, size_t size);

void mica_arena_finish(struct mica_arena *arena);

#endif
