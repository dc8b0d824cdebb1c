/* SPDX-License-Identifier: MIT */
/* Buffers of an open file, and files with their contents. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "intercept/intercept.h"
#include "intercept/real.h"

#define MOST_VIEWS 4096u             /* kept mapped; a process may have 65530 mappings */
#define MOST_CHUNK ((size_t)4 << 20) /* read at once: what the library needs of memory */
#define PAGE UINT64_C(4096)
#define MOST_BUFFER (UINT64_C(1) << 32)

static size_t position(const struct ic_file *file, uint32_t handle)
{
    size_t low = 0, high = file->buffer_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (file->buffers[middle].handle < handle)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct ic_buffer *ic_buffer_find(const struct ic_file *file, uint32_t handle)
{
    size_t at = position(file, handle);
    return at < file->buffer_count && file->buffers[at].handle == handle ? &file->buffers[at] : NULL;
}

struct ic_buffer *ic_buffer_at(const struct ic_file *file, uint64_t address)
{
    for (size_t i = 0; i < file->buffer_count; i++) {
        struct ic_buffer *buffer = &file->buffers[i];
        if (address >= buffer->address && address - buffer->address < buffer->size)
            return buffer;
    }
    return NULL;
}

void ic_buffer_hide(struct ic_file *file, struct ic_buffer *buffer)
{
    if (buffer->view && buffer->view_ours) {
        ic_real()->munmap((void *)(uintptr_t)buffer->view, buffer->view_size);
        file->view_count--;
    } else if (buffer->view) {
        atomic_fetch_sub(&ic_program_views, 1);
    }
    buffer->view = NULL;
}

void ic_buffer_remove(struct ic_file *file, uint32_t handle)
{
    struct ic_buffer *buffer = ic_buffer_find(file, handle);
    if (!buffer)
        return;
    ic_buffer_hide(file, buffer);
    size_t at = (size_t)(buffer - file->buffers);
    memmove(buffer, buffer + 1, (file->buffer_count - at - 1) * sizeof *buffer);
    file->buffer_count--;
}

void ic_buffers_release(struct ic_file *file)
{
    for (size_t i = 0; i < file->buffer_count; i++)
        ic_buffer_hide(file, &file->buffers[i]);
    file->buffer_count = 0;
}

struct ic_buffer *ic_buffer_add(struct ic_file *file, uint32_t handle, uint64_t size)
{
    static uint64_t serial;
    ic_buffer_remove(file, handle);
    if (file->buffer_count == file->buffer_room) {
        size_t room = file->buffer_room ? 2 * file->buffer_room : 16;
        struct ic_buffer *grown = realloc(file->buffers, room * sizeof *grown);
        if (!grown)
            return NULL;
        file->buffers = grown;
        file->buffer_room = room;
    }
    size_t at = position(file, handle);
    struct ic_buffer *buffer = &file->buffers[at];
    memmove(buffer + 1, buffer, (file->buffer_count - at) * sizeof *buffer);
    *buffer =
        (struct ic_buffer){.handle = handle, .serial = ++serial, .size = size > INT64_MAX ? 0 : size, .map_fd = -1};
    file->buffer_count++;
    return buffer;
}

/* ---- seeing contents ------------------------------------------------------------ */

/*
 * A mapping of our own: the program may take its away at any time. Memory that
 * drivers map is no memory that the kernel would copy out of.
 */
static bool map(struct ic_file *file, struct ic_buffer *buffer)
{
    if (buffer->view)
        return true;
    if (!buffer->offset_known || file->driver->program_views)
        return false;
    size_t size = (size_t)((buffer->size + PAGE - 1) / PAGE * PAGE);
    int fd = buffer->map_fd >= 0 ? buffer->map_fd : file->fd;
    void *view = ic_real()->mmap64(NULL, size, PROT_READ, MAP_SHARED, fd, (off64_t)buffer->offset);
    if (view == MAP_FAILED)
        return false;
    buffer->view = view;
    buffer->view_size = size;
    buffer->view_ours = true;
    file->view_count++;
    return true;
}

static size_t nonzero_end(const uint8_t *data, size_t size)
{
    uint64_t word;
    while (size % sizeof word && !data[size - 1])
        size--;
    if (size % sizeof word)
        return size;
    for (; size; size -= sizeof word) {
        memcpy(&word, data + size - sizeof word, sizeof word);
        if (word)
            break;
    }
    while (size && !data[size - 1])
        size--;
    return size;
}

static uint8_t chunk[MOST_CHUNK];

static bool read_chunk(const struct ic_buffer *buffer, size_t at, size_t size)
{
    if (buffer->user)
        return ic_copy(chunk, buffer->user + at, size);
    memcpy(chunk, buffer->view + at, size);
    return true;
}

static size_t chunk_size(const struct ic_buffer *buffer, size_t at)
{
    size_t left = (size_t)buffer->size - at;
    return left < MOST_CHUNK ? left : MOST_CHUNK;
}

/* False: memory of the program that is gone. */
static bool look(const struct ic_buffer *buffer, XXH128_hash_t *sum, size_t *end)
{
    XXH3_state_t state;
    XXH3_INITSTATE(&state);
    XXH3_128bits_reset(&state);
    *end = 0;
    for (size_t at = 0; at < buffer->size; at += MOST_CHUNK) {
        size_t size = chunk_size(buffer, at);
        if (!read_chunk(buffer, at, size))
            return false;
        XXH3_128bits_update(&state, chunk, size);
        size_t used = nonzero_end(chunk, size);
        *end = used ? at + used : *end;
    }
    *sum = XXH3_128bits_digest(&state);
    return true;
}

/* ---- files --------------------------------------------------------------------------- */

static void give_name(const struct ic_buffer *buffer, uint32_t submit, char *name, size_t room)
{
    const char *suffix = buffer->dump_after ? "_after" : "";
    if (buffer->dump_submit == submit)
        snprintf(name, room, "bo_%u%s.bin", buffer->handle, suffix);
    else
        snprintf(name, room, "../submit_%04u/bo_%u%s.bin", buffer->dump_submit, buffer->handle, suffix);
}

/* Device memory is slow to read: what fits one chunk is still there from looking at it. */
static bool write_contents(const struct ic_file *file, const struct ic_buffer *buffer)
{
    char path[IC_PATH + 96], name[64];
    give_name(buffer, buffer->dump_submit, name, sizeof name);
    snprintf(path, sizeof path, "%s/submit_%04u/%s", file->folder, buffer->dump_submit, name);
    int output = ic_create(path);
    if (output < 0)
        return false;
    bool good = true;
    for (size_t at = 0; good && at < buffer->nonzero_end; at += MOST_CHUNK) {
        size_t size = chunk_size(buffer, at), left = buffer->nonzero_end - at;
        good = buffer->size <= MOST_CHUNK || read_chunk(buffer, at, size);
        good = good && ic_append(output, chunk, left < size ? left : size);
    }
    return ic_finish(output, good, buffer->size);
}

static bool dump(const struct ic_file *file, struct ic_buffer *buffer, uint32_t submit, bool after, char *name,
                 size_t room)
{
    XXH128_hash_t sum;
    size_t end;
    if (!look(buffer, &sum, &end))
        return true;
    if (!buffer->dumped || buffer->sum[0] != sum.low64 || buffer->sum[1] != sum.high64) {
        buffer->dump_submit = submit;
        buffer->dump_after = after;
        buffer->sum[0] = sum.low64;
        buffer->sum[1] = sum.high64;
        buffer->nonzero_end = end;
        buffer->dumped = write_contents(file, buffer);
    }
    if (buffer->dumped)
        give_name(buffer, submit, name, room);
    return buffer->dumped;
}

bool ic_buffer_dump(struct ic_file *file, struct ic_buffer *buffer, uint32_t submit, bool after, char *name,
                    size_t room)
{
    name[0] = 0;
    if (!buffer->size || buffer->size > MOST_BUFFER || (!buffer->user && !map(file, buffer)))
        return true;
    bool good = dump(file, buffer, submit, after, name, room);
    if (file->view_count > MOST_VIEWS && buffer->view_ours)
        ic_buffer_hide(file, buffer);
    return good;
}
