/* SPDX-License-Identifier: MIT */
/* Buffer objects of an open file, and where they are in the device's address space. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/checked.h"
#include "vnpu/node.h"
#include "vnpu/real.h"
#include "vnpu/user.h"

#define READ_WRITE (MICA_ACCESS_READ | MICA_ACCESS_WRITE)
/* The last page stays free so that every end address fits 32 bits. */
#define LAST_ADDRESS (MICA_DEVICE_SPACE - MICA_DEVICE_PAGE)

/* All buffers of all files; its lock is taken last, whatever else is held. */
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct vnpu_buffer *all;

void vnpu_buffers_lock(void)
{
    pthread_mutex_lock(&all_lock);
}

void vnpu_buffers_unlock(void)
{
    pthread_mutex_unlock(&all_lock);
}

static void enlist(struct vnpu_buffer *buffer)
{
    pthread_mutex_lock(&all_lock);
    buffer->next_of_all = all;
    all = buffer;
    pthread_mutex_unlock(&all_lock);
}

static void delist(const struct vnpu_buffer *buffer)
{
    pthread_mutex_lock(&all_lock);
    struct vnpu_buffer **link = &all;
    while (*link && *link != buffer)
        link = &(*link)->next_of_all;
    if (*link)
        *link = buffer->next_of_all;
    pthread_mutex_unlock(&all_lock);
}

void vnpu_buffer_set_outcome(struct vnpu_buffer *buffer, int outcome)
{
    pthread_mutex_lock(&all_lock);
    buffer->outcome = outcome;
    pthread_mutex_unlock(&all_lock);
}

bool vnpu_buffer_outcome(const struct stat *status, int *outcome)
{
    pthread_mutex_lock(&all_lock);
    const struct vnpu_buffer *buffer = all;
    while (buffer && (buffer->memory < 0 || buffer->inode != status->st_ino || buffer->device != status->st_dev))
        buffer = buffer->next_of_all;
    if (buffer)
        *outcome = buffer->outcome;
    pthread_mutex_unlock(&all_lock);
    return buffer != NULL;
}

void vnpu_buffer_replace(struct vnpu_buffer *buffer, int memory, const struct stat *status)
{
    pthread_mutex_lock(&all_lock);
    int before = buffer->memory;
    buffer->memory = memory;
    buffer->device = status ? status->st_dev : 0;
    buffer->inode = status ? status->st_ino : 0;
    pthread_mutex_unlock(&all_lock);
    if (before >= 0)
        vnpu_real_close(before);
}

/* Memory that nobody can take away under the simulator: sealed. */
static int make_memory(struct vnpu_buffer *buffer)
{
    struct stat status;
    int memory = memfd_create("npu buffer", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memory < 0)
        return -errno;
    if (ftruncate(memory, (off_t)buffer->size) ||
        fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) || vnpu_real_fstat(memory, &status)) {
        int error = -errno;
        vnpu_real_close(memory);
        return error;
    }
    buffer->memory = memory;
    buffer->device = status.st_dev;
    buffer->inode = status.st_ino;
    return 0;
}

int vnpu_buffer_create(struct vnpu_file *file, uint64_t size, struct vnpu_buffer **out)
{
    if (size > LAST_ADDRESS)
        return -ENOMEM;
    struct vnpu_buffer *buffer = calloc(1, sizeof *buffer);
    if (!buffer)
        return -ENOMEM;
    buffer->size = mica_align(size, MICA_DEVICE_PAGE);
    int error = make_memory(buffer);
    if (error) {
        free(buffer);
        return error;
    }
    buffer->handle = ++file->last_handle;
    buffer->offset = file->next_offset;
    file->next_offset += buffer->size + MICA_DEVICE_PAGE;
    buffer->next = file->buffers;
    file->buffers = buffer;
    enlist(buffer);
    *out = buffer;
    return 0;
}

struct vnpu_buffer *vnpu_buffer_find(const struct vnpu_file *file, uint32_t handle)
{
    struct vnpu_buffer *buffer = file->buffers;
    while (buffer && buffer->handle != handle)
        buffer = buffer->next;
    return buffer;
}

int vnpu_buffer_close(struct vnpu_file *file, uint32_t handle)
{
    struct vnpu_buffer **link = &file->buffers;
    while (*link && (*link)->handle != handle)
        link = &(*link)->next;
    struct vnpu_buffer *buffer = *link;
    if (!buffer)
        return -EINVAL;
    *link = buffer->next;
    vnpu_buffer_unplace(file, buffer);
    delist(buffer);
    if (buffer->memory >= 0)
        vnpu_real_close(buffer->memory);
    free(buffer);
    return 0;
}

int vnpu_buffer_place(struct vnpu_file *file, struct vnpu_buffer *buffer, uint64_t address)
{
    if (address > LAST_ADDRESS || buffer->size > LAST_ADDRESS - address || address % MICA_DEVICE_PAGE)
        return -EINVAL;
    int error = buffer->memory < 0 ? mica_device_memory_map(&file->memory, address, buffer->size)
                                   : mica_device_memory_map_file(&file->memory, address, buffer->size, buffer->memory);
    if (error)
        return error;
    buffer->mapped = true;
    buffer->address = address;
    return 0;
}

void vnpu_buffer_unplace(struct vnpu_file *file, struct vnpu_buffer *buffer)
{
    if (buffer->mapped)
        mica_device_memory_unmap(&file->memory, buffer->address, buffer->size);
    buffer->mapped = false;
}

/* The lowest end of a buffer that is in the way of [address, address + size); 0: the range is free. */
static uint64_t blocked_until(const struct vnpu_file *file, uint64_t address, uint64_t size)
{
    for (const struct vnpu_buffer *buffer = file->buffers; buffer; buffer = buffer->next)
        if (buffer->mapped && buffer->size && address < buffer->address + buffer->size &&
            buffer->address < address + size)
            return buffer->address + buffer->size;
    return 0;
}

bool vnpu_find_range(const struct vnpu_file *file, uint64_t first, uint64_t size, uint64_t *address)
{
    uint64_t next = first;
    do {
        *address = next;
        if (*address > LAST_ADDRESS || size > LAST_ADDRESS - *address)
            return false;
        next = blocked_until(file, *address, size);
    } while (next);
    return true;
}

/* ---- jobs --------------------------------------------------------------------------- */

static void *device_side(const struct vnpu_file *file, const struct vnpu_buffer *buffer)
{
    return file->memory.base + buffer->address;
}

/* Memory of the process goes in before a job and out after it. What it has unmapped meanwhile stays as it is. */
static void copy_user(struct vnpu_file *file, bool in)
{
    for (struct vnpu_buffer *buffer = file->buffers; buffer; buffer = buffer->next) {
        if (!buffer->listed || !buffer->mapped || !buffer->user)
            continue;
        if (in)
            vnpu_copy_in(device_side(file, buffer), (uintptr_t)buffer->user, buffer->size);
        else if (!buffer->user_read_only)
            vnpu_copy_out((uintptr_t)buffer->user, device_side(file, buffer), buffer->size);
    }
}

/* The kernel maps every buffer for reading and writing, whatever the submission says that it does with it. */
static void protect_listed(struct vnpu_file *file, unsigned access)
{
    for (struct vnpu_buffer *buffer = file->buffers; buffer; buffer = buffer->next)
        if (buffer->listed && buffer->mapped)
            mica_device_memory_protect(&file->memory, buffer->address, buffer->size, access);
}

int vnpu_run(struct vnpu_file *file, const uint32_t *stream, size_t words)
{
    size_t count = 0;
    copy_user(file, true);
    protect_listed(file, READ_WRITE);
    int error = file->chip->family->sim_run(file->sim, stream, words, NULL, 0, &count);
    protect_listed(file, 0);
    copy_user(file, false);
    return error ? -ECANCELED : 0;
}
