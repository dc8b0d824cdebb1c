/* SPDX-License-Identifier: MIT */
#include "graph/arena.h"

#include "util/checked.h"

#include <string.h>

#define ALIGNMENT 16
#define FIRST_CHUNK 4096
#define LARGEST_CHUNK 65536

struct mica_arena_chunk {
    struct mica_arena_chunk *next;
    size_t size, used; /* of bytes[] */
    _Alignas(ALIGNMENT) unsigned char bytes[];
};

/* Chunks double, so that small graphs stay small and large ones need few allocations. */
static size_t next_chunk_size(const struct mica_arena *arena, size_t needed)
{
    size_t size = arena->chunks ? arena->chunks->size * 2 : FIRST_CHUNK;
    if (size > LARGEST_CHUNK)
        size = LARGEST_CHUNK;
    return size < needed ? needed : size;
}

static struct mica_arena_chunk *new_chunk(struct mica_arena *arena, size_t needed)
{
    size_t size = next_chunk_size(arena, needed), total;
    if (!mica_add_size(sizeof(struct mica_arena_chunk), size, &total))
        return NULL;
    struct mica_arena_chunk *chunk = calloc(1, total);
    if (!chunk)
        return NULL;
    chunk->size = size;
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    return chunk;
}

void *mica_arena_alloc(struct mica_arena *arena, size_t size)
{
    size_t needed;
    if (!mica_add_size(size, ALIGNMENT - 1, &needed))
        return NULL;
    needed -= needed % ALIGNMENT;
    struct mica_arena_chunk *chunk = arena->chunks;
    if (!chunk || chunk->size - chunk->used < needed)
        chunk = new_chunk(arena, needed);
    if (!chunk)
        return NULL;
    void *piece = chunk->bytes + chunk->used;
    chunk->used += needed;
    return piece;
}

void *mica_arena_copy(struct mica_arena *arena, const void *data, size_t size)
{
    void *copy = mica_arena_alloc(arena, size);
    if (copy && size)
        memcpy(copy, data, size);
    return copy;
}

void mica_arena_finish(struct mica_arena *arena)
{
    while (arena->chunks) {
        struct mica_arena_chunk *next = arena->chunks->next;
        free(arena->chunks);
        arena->chunks = next;
    }
}
